/* Builders for program IR. */
#include "passes/pipeline.h"
#include <string.h>

static const IrAttr *pair(IrModule *m, int64_t a, int64_t b) {
  return ir_attr_ints(m, (int64_t[]){a, b}, 2);
}

void prog_insn(IrBuilder *b, const char *op, int nargs, const PArg *args) {
  IrValue *operands[8];
  const IrAttr *items[8];
  int n = 0;
  for (int i = 0; i < nargs; i++) {
    switch (args[i].kind) {
    case ARG_VALUE:
      items[i] = ir_attr_ints(b->m, (int64_t[]){n}, 1);
      operands[n++] = args[i].value;
      break;
    case ARG_ADDR:
      items[i] = pair(b->m, n, args[i].imm);
      operands[n++] = args[i].value;
      break;
    case ARG_IMM: items[i] = ir_attr_int(b->m, args[i].imm); break;
    case ARG_FIELD: items[i] = ir_attr_str(b->m, args[i].field); break;
    }
  }
  IrAttrInit attrs[2] = {{"op", ir_attr_str(b->m, op)},
                         {"args", ir_attr_array(b->m, items, (size_t)nargs)}};
  ir_build_typed(b, IR_OP_INSN, n, operands, 0, NULL, 2, attrs);
}

static IrValue *token(IrBuilder *b, IrOpKind kind, const char *type, int noperands,
                      IrValue *const *operands, int nattrs, const IrAttrInit *attrs) {
  const IrType *t = ir_type_token(b->m, type);
  return ir_result(ir_build_typed(b, kind, noperands, operands, 1, &t, nattrs, attrs), 0);
}

IrValue *prog_reg(IrBuilder *b) {
  return token(b, IR_OP_REG, "reg", 0, NULL, 0, NULL);
}

IrValue *prog_buffer(IrBuilder *b, const char *space, int64_t bytes, int slots, const char *name) {
  IrAttrInit attrs[] = {{"space", ir_attr_str(b->m, space)},
                        {"bytes", ir_attr_int(b->m, bytes)},
                        {"slots", ir_attr_int(b->m, slots)},
                        {"name", ir_attr_str(b->m, name)}};
  return token(b, IR_OP_BUFFER, "buf", 0, NULL, 4, attrs);
}

IrValue *prog_vprog(IrBuilder *b, const char *text) {
  return token(b, IR_OP_VPROG, "vprog", 0, NULL, 1, &(IrAttrInit){"text", ir_attr_str(b->m, text)});
}

static const char *const kind_names[] = {"none", "dma", "plane", "rows", "vector"};

/* Header members first, then every field of the kind that is not zero, then the address fields. */
IrValue *prog_desc(IrBuilder *b, const IsaDesc *d, int naddrs, const PAddrField *addrs) {
  const IrAttr *items[320];
  IrValue *operands[ISA_STREAMS + 2];
  size_t n = 0;
  char name[24];
  const struct {
    const char *name;
    int value;
  } head[] = {{"rank", d->rank},
              {"elsize", d->elsize},
              {"dtype", d->dtype},
              {"wdtype", d->wdtype},
              {"nstreams", d->nstreams}};
  for (size_t i = 0; i < NPU_COUNTOF(head); i++)
    if (head[i].value)
      items[n++] = ir_attr_array(
          b->m,
          (const IrAttr *[]){ir_attr_str(b->m, head[i].name), ir_attr_int(b->m, head[i].value)}, 2);
  for (int k = 0; d->kind == DESC_VECTOR && k < d->nstreams; k++)
    items[n++] = ir_attr_array(
        b->m,
        (const IrAttr *[]){ir_attr_str(b->m, "stream"), ir_attr_int(b->m, k),
                           ir_attr_str(b->m, d->vec.stream[k].space == SPACE_ACC ? "acc" : "spm"),
                           ir_attr_dtype(b->m, (DType)d->vec.stream[k].dtype)},
        4);
  for (unsigned f = 0; f < isa_field_count(); f++) {
    if (!isa_field_in_kind(f, (IsaDescKind)d->kind)) continue;
    int64_t v = isa_field_get(d, f);
    if (v)
      items[n++] = ir_attr_array(
          b->m,
          (const IrAttr *[]){ir_attr_str(b->m, isa_field_name(f, name)), ir_attr_int(b->m, v)}, 2);
  }
  for (int i = 0; i < naddrs; i++) {
    operands[i] = addrs[i].base;
    items[n++] =
        ir_attr_array(b->m,
                      (const IrAttr *[]){ir_attr_str(b->m, addrs[i].field), ir_attr_int(b->m, i),
                                         ir_attr_int(b->m, addrs[i].cst)},
                      3);
  }
  IrAttrInit attrs[] = {{"kind", ir_attr_str(b->m, kind_names[d->kind])},
                        {"fields", ir_attr_array(b->m, items, n)}};
  return token(b, IR_OP_DESC, "desc", naddrs, operands, 2, attrs);
}

IrBuilder prog_for(IrBuilder *b, IrValue *counter, int64_t hi, IrValue *bound, int64_t step) {
  IrValue *operands[2] = {counter, bound};
  IrAttrInit attrs[] = {{"lo", ir_attr_int(b->m, 0)},
                        {"hi", ir_attr_int(b->m, hi)},
                        {"step", ir_attr_int(b->m, step)}};
  IrOp *op = ir_build_typed(b, IR_OP_FOR, bound ? 2 : 1, operands, 0, NULL, 3, attrs);
  return ir_builder_at_end(ir_op_add_region(op), b->loc);
}

IrBuilder prog_if(IrBuilder *b, IrValue *a, const char *cond, IrValue *other) {
  IrValue *operands[2] = {a, other};
  IrOp *op = ir_build_typed(b, IR_OP_IF, 2, operands, 0, NULL, 1,
                            &(IrAttrInit){"cond", ir_attr_str(b->m, cond)});
  return ir_builder_at_end(ir_op_add_region(op), b->loc);
}

static void hand_over(IrBuilder *b, IrOpKind kind, IrValue *buffer, IsaEngine e, bool write) {
  IrAttrInit attrs[] = {{"engine", ir_attr_str(b->m, isa_engine_name(e))},
                        {"write", ir_attr_bool(b->m, write)}};
  ir_build_typed(b, kind, 1, &buffer, 0, NULL, 2, attrs);
}
void prog_acquire(IrBuilder *b, IrValue *buffer, IsaEngine e, bool write) {
  hand_over(b, IR_OP_ACQUIRE, buffer, e, write);
}
void prog_release(IrBuilder *b, IrValue *buffer, IsaEngine e, bool write) {
  hand_over(b, IR_OP_RELEASE, buffer, e, write);
}

void prog_affine(IrBuilder *b, IrValue *dst, const IrAffine *a, IrValue *const reg[IR_MAX_DIMS]) {
  bool started = false;
  for (int d = 0; d < IR_MAX_DIMS; d++) {
    if (!a->coef[d] || !reg[d]) continue;
    IrValue *t = started ? prog_reg(b) : dst;
    if (a->coef[d] == 1 && !started)
      INSN_(b, "mov", pv(dst), pv(reg[d]));
    else
      INSN_(b, "muli", pv(t), pv(reg[d]), pi(a->coef[d]));
    if (started) INSN_(b, "add", pv(dst), pv(dst), pv(t));
    started = true;
  }
  if (!started)
    INSN_(b, "li", pv(dst), pi(a->cst));
  else if (a->cst)
    INSN_(b, "addi", pv(dst), pv(dst), pi(a->cst));
}

const char *prog_field(IrBuilder *b, const char *name, int element) {
  char text[32];
  snprintf(text, sizeof text, "%s.%d", name, element);
  return ir_str(b->m, text);
}
