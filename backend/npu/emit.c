/* Program IR to instructions: a walk over the ops, each instruction encoded from its row of the ISA
 * table.
 * - for: li counter, lo; L: body; addi counter, step; [li r31, hi]; blt counter, bound, L
 * - if: branch on the opposite condition over the region
 * - desc: dload
 * Register r31 is the backend's own. */
#include "backend/npu/emit_internal.h"
#include <string.h>

#define uthash_malloc(size) mem_alloc(size)
#define uthash_free(p, size) mem_free(p)
#include <uthash.h>

enum { SCRATCH = ISA_REGS - 1 };

void emit_fail(Emitter *e, SrcLoc loc, const char *fmt, ...) {
  va_list ap;
  if (!e->failed) {
    va_start(ap, fmt);
    diag_report(e->diag, DIAG_ERROR, loc, "E-emit", fmt, ap);
    va_end(ap);
  }
  e->failed = true;
}

int64_t emit_address(Emitter *e, const IrValue *v, int64_t scale, int64_t offset) {
  SrcLoc loc = v->def ? v->def->loc : e->f->loc;
  int64_t addr = v->def ? ir_get_int(v->def, "addr", -1) : -1;
  if (addr < 0)
    emit_fail(e, loc, "no address: run the passes 'plan' and 'allocate' first");
  else if (!mul_i64(addr, scale, &addr) || !add_i64(addr, offset, &addr))
    emit_fail(e, loc, "the address leaves the range of 64 bits");
  return addr;
}

static int64_t number_of(Emitter *e, const IrValue *v, const char *token, const char *what,
                         int64_t limit) {
  int64_t id = v->def ? ir_get_int(v->def, "id", -1) : -1;
  if (v->type->kind != IR_TYPE_TOKEN || strcmp(v->type->token, token)) {
    emit_fail(e, v->def ? v->def->loc : e->f->loc, "this is used as %s but is none", what);
    return 0;
  }
  if (id < 0 || id >= limit) {
    emit_fail(e, v->def ? v->def->loc : e->f->loc,
              "%s without a number: run the pass 'allocate', after 'sync'", what);
    return 0;
  }
  return id;
}
static uint8_t reg_of(Emitter *e, const IrValue *v) {
  return (uint8_t)number_of(e, v, "reg", "a register", ISA_REGS);
}
static uint8_t desc_of(Emitter *e, const IrValue *v) {
  return (uint8_t)number_of(e, v, "desc", "a descriptor", ISA_DESCS);
}

static uint32_t here(const Emitter *e) {
  return e->ninsns;
}
static void put(Emitter *e, IsaInsn in) {
  if (e->ninsns == e->capacity) {
    e->capacity = e->capacity ? 2 * e->capacity : 256;
    e->code = mem_realloc(e->code, e->capacity * sizeof *e->code);
  }
  e->code[e->ninsns++] = in;
}

/* ---- instructions ---- */

/* One entry of `args`: [operand] a value, [operand, constant] an address, an int, or a field name.
 */
static const IrValue *arg_value(Emitter *e, const IrOp *op, const IrAttr *a) {
  bool ok = a->kind == IR_ATTR_ARRAY && a->array.n >= 1 && a->array.items[0]->kind == IR_ATTR_INT &&
            a->array.items[0]->i >= 0 && a->array.items[0]->i < op->noperands;
  if (!ok) emit_fail(e, op->loc, "an instruction argument that names no operand");
  return ok ? ir_operand(op, (int)a->array.items[0]->i) : NULL;
}

static int64_t arg_number(Emitter *e, const IrOp *op, const IrAttr *a) {
  if (a->kind == IR_ATTR_INT) return a->i;
  const IrValue *v = arg_value(e, op, a);
  if (!v || a->array.n != 2 || a->array.items[1]->kind != IR_ATTR_INT) {
    emit_fail(e, op->loc, "an instruction argument that is neither a number nor an address");
    return 0;
  }
  return emit_address(e, v, 1, a->array.items[1]->i);
}

/* The number of a vector program; the one asked for is most often the last made. */
static bool vprog_of(const Emitter *e, const IrValue *v, uint16_t *out) {
  for (uint32_t i = e->nvprogs; i-- > 0;)
    if (e->vprogs[i].value == v) {
      *out = e->vprogs[i].index;
      return true;
    }
  return false;
}

/* Sets the operand called `name` in the row's operand list from an argument. */
static void set_operand(Emitter *e, const IrOp *op, const char *name, const IrAttr *a,
                        IsaInsn *in) {
  const IrValue *v = NULL;
  if (!strcmp(name, "imm")) {
    in->imm = arg_number(e, op, a);
    return;
  }
  if (!strcmp(name, "fld")) {
    const IrValue *d = op->noperands ? ir_operand(op, 0) : NULL;
    static const char *const kinds[] = {"", "dma", "plane", "rows", "vector"};
    for (int k = DESC_DMA; d && ir_is(d->def, IR_OP_DESC) && k <= DESC_VECTOR; k++)
      if (!strcmp(ir_get_str(d->def, "kind", ""), kinds[k]) && a->kind == IR_ATTR_STR &&
          isa_field_by_name((IsaDescKind)k, a->s, &in->field))
        return;
    emit_fail(e, op->loc, "an unknown descriptor field");
    return;
  }
  if (!(v = arg_value(e, op, a))) return;
  if (!strcmp(name, "rd"))
    in->rd = reg_of(e, v);
  else if (!strcmp(name, "rs"))
    in->rs = reg_of(e, v);
  else if (!strcmp(name, "rt"))
    in->rt = reg_of(e, v);
  else if (!strcmp(name, "dn"))
    in->dn = desc_of(e, v);
  else if (strcmp(name, "vp") || !vprog_of(e, v, &in->vp))
    emit_fail(e, op->loc, "operand '%s' cannot be given here", name);
}

static void set_sems(Emitter *e, const IrOp *op, const char *list, IsaSemRef out[2]) {
  const IrAttr *a = ir_attr(op, list);
  if (!a || a->kind != IR_ATTR_ARRAY) return;
  for (size_t i = 0; i < a->array.n; i++) {
    const IrAttr *item = a->array.items[i];
    const IrValue *v = i < 2 && item->kind == IR_ATTR_ARRAY && item->array.n == 2 &&
                               item->array.items[1]->kind == IR_ATTR_INT
                           ? arg_value(e, op, item)
                           : NULL;
    if (!v) {
      emit_fail(e, op->loc, "an instruction takes and gives at most two semaphores");
      return;
    }
    out[i].sem = (uint8_t)number_of(e, v, "sem", "a semaphore", ISA_SEMS);
    int64_t count = item->array.items[1]->i;
    if (count < 1 || count > ISA_SEM_COUNT_MAX)
      emit_fail(e, op->loc, "a semaphore count of one instruction is 1 to %d", ISA_SEM_COUNT_MAX);
    out[i].count = (uint8_t)count;
  }
}

static void emit_insn(Emitter *e, const IrOp *op) {
  IsaInsn in = {0};
  const char *mnemonic = ir_get_str(op, "op", "");
  const IrAttr *args = ir_attr(op, "args");
  if (!isa_insn_by_name(mnemonic, &in.kind)) {
    emit_fail(e, op->loc, "the machine has no instruction '%s'", mnemonic);
    return;
  }
  const char *p = isa_insn_info(in.kind)->operands;
  size_t n = args && args->kind == IR_ATTR_ARRAY ? args->array.n : 0, i = 0;
  while (*p) {
    char name[8];
    size_t len = strcspn(p, ", ");
    snprintf(name, sizeof name, "%.*s", (int)len, p);
    if (i == n) {
      emit_fail(e, op->loc, "instruction '%s' needs operands %s", mnemonic,
                isa_insn_info(in.kind)->operands);
      return;
    }
    set_operand(e, op, name, args->array.items[i++], &in);
    p += len;
    p += strspn(p, ", ");
  }
  set_sems(e, op, "take", in.take);
  set_sems(e, op, "give", in.give);
  put(e, in);
}

/* ---- regions ---- */

static void emit_block(Emitter *e, const IrBlock *b);

static void emit_for(Emitter *e, const IrOp *op) {
  uint8_t counter = reg_of(e, ir_operand(op, 0)), bound = SCRATCH;
  put(e, (IsaInsn){.kind = INSN_LI, .rd = counter, .imm = ir_get_int(op, "lo", 0)});
  uint32_t top = here(e);
  emit_block(e, op->region);
  put(e,
      (IsaInsn){.kind = INSN_ADDI, .rd = counter, .rs = counter, .imm = ir_get_int(op, "step", 1)});
  if (op->noperands > 1)
    bound = reg_of(e, ir_operand(op, 1));
  else
    put(e, (IsaInsn){.kind = INSN_LI, .rd = SCRATCH, .imm = ir_get_int(op, "hi", 0)});
  put(e, (IsaInsn){.kind = INSN_BLT, .rs = counter, .rt = bound, .target = top});
}

static void emit_if(Emitter *e, const IrOp *op) {
  static const struct {
    const char *cond;
    IsaInsnKind skip;
  } conds[] = {{"eq", INSN_BNE}, {"ne", INSN_BEQ}, {"lt", INSN_BGE}, {"ge", INSN_BLT}};
  const char *cond = ir_get_str(op, "cond", "");
  for (size_t i = 0; i < NPU_COUNTOF(conds); i++) {
    if (strcmp(conds[i].cond, cond) != 0) continue;
    uint32_t at = here(e);
    put(e, (IsaInsn){.kind = conds[i].skip,
                     .rs = reg_of(e, ir_operand(op, 0)),
                     .rt = reg_of(e, ir_operand(op, 1))});
    emit_block(e, op->region);
    e->code[at].target = here(e);
    return;
  }
  emit_fail(e, op->loc, "unknown condition '%s': eq, ne, lt or ge", cond);
}

/* A vector program of the image, by its micro-operations. */
typedef struct KnownVprog {
  uint32_t index;
  UT_hash_handle hh;
} KnownVprog;

static void emit_vprog(Emitter *e, const IrOp *op) {
  IsaImage *img = e->img;
  IsaVprog vp;
  char why[160];
  if (!isa_vprog_parse(ir_get_str(op, "text", ""), &vp, why)) {
    emit_fail(e, op->loc, "vector program: %s", why);
    return;
  }
  KnownVprog *known = NULL;
  size_t bytes = sizeof *vp.ops * (size_t)vp.n;
  HASH_FIND(hh, e->known, vp.ops, bytes, known);
  if (!known) {
    known = ARENA_NEW(img->arena, KnownVprog);
    known->index = img->nvprogs;
    img->vprogs[img->nvprogs++] = vp;
    HASH_ADD_KEYPTR(hh, e->known, img->vprogs[known->index].ops, bytes, known);
  }
  uint32_t i = known->index;
  if (i > UINT16_MAX) emit_fail(e, op->loc, "more vector programs than an instruction can name");
  e->vprogs[e->nvprogs].value = ir_result(op, 0);
  e->vprogs[e->nvprogs++].index = (uint16_t)i;
}

/* A label taken, and how many sections asked for it. */
typedef struct Label {
  const char *name;
  int asked;
  UT_hash_handle hh;
} Label;

/* The section's name, numbered from the second of that name on. */
static const char *label_of(Emitter *e, const char *name) {
  Arena *arena = e->img->arena;
  Label *first = NULL, *taken = NULL;
  const char *text = name;
  HASH_FIND_STR(e->labels, name, first);
  for (taken = first; taken;) {
    text = arena_printf(arena, "%s.%d", name, ++first->asked);
    HASH_FIND_STR(e->labels, text, taken);
  }
  Label *l = ARENA_NEW(arena, Label);
  l->name = arena_strdup(arena, text);
  l->asked = 1;
  HASH_ADD_KEYPTR(hh, e->labels, l->name, strlen(l->name), l);
  return l->name;
}

static void emit_section(Emitter *e, const IrOp *op) {
  IsaImage *img = e->img;
  const char *name = label_of(e, ir_get_str(op, "name", "kernel"));
  img->symbols[img->nsymbols++] = (IsaSymbol){name, here(e)};
  img->srcmap[img->nsrcmap++] =
      (IsaSrcMap){.insn = here(e),
                  .line = op->loc.line,
                  .col = op->loc.col,
                  .file = arena_strdup(img->arena, op->loc.file ? op->loc.file : ""),
                  .op = name,
                  .macs = ir_get_float(op, "macs", 0)};
  emit_block(e, op->region);
}

static void emit_op(Emitter *e, const IrOp *op) {
  IsaDesc d;
  switch (op->kind) {
  case IR_OP_INSN: emit_insn(e, op); break;
  case IR_OP_FOR: emit_for(e, op); break;
  case IR_OP_IF: emit_if(e, op); break;
  case IR_OP_SECTION: emit_section(e, op); break;
  case IR_OP_VPROG: emit_vprog(e, op); break;
  case IR_OP_DESC:
    if (!emit_desc(e, op, &d)) break;
    put(e, (IsaInsn){
               .kind = INSN_DLOAD, .dn = desc_of(e, ir_result(op, 0)), .target = e->img->ndescs});
    e->img->descs[e->img->ndescs++] = d;
    break;
  case IR_OP_REG:
  case IR_OP_BUFFER:
  case IR_OP_SEM:
  case IR_OP_TENSOR:
  case IR_OP_RETURN: break;
  case IR_OP_ACQUIRE:
  case IR_OP_RELEASE:
    emit_fail(e, op->loc, "hand-overs without semaphores: run the pass 'sync' first");
    break;
  default: emit_fail(e, op->loc, "'%s' is not a program op", ir_op_info(op->kind)->name); break;
  }
}

static void emit_block(Emitter *e, const IrBlock *b) {
  for (const IrOp *op = b->first; op && !e->failed; op = op->next) emit_op(e, op);
}

/* ---- the image ---- */

static void count_ops(const IrBlock *b, uint32_t *sections, uint32_t *descs, uint32_t *vprogs) {
  for (const IrOp *op = b->first; op; op = op->next) {
    *sections += op->kind == IR_OP_SECTION;
    *descs += op->kind == IR_OP_DESC;
    *vprogs += op->kind == IR_OP_VPROG;
    if (op->region) count_ops(op->region, sections, descs, vprogs);
  }
}

static void encode_all(Emitter *e) {
  IsaImage *img = e->img;
  const char *why;
  img->ninsns = here(e);
  img->code = arena_alloc(img->arena, (size_t)img->ninsns * ISA_INSN_BYTES);
  for (uint32_t i = 0; i < img->ninsns; i++)
    if (!isa_encode(&e->code[i], img->code + (size_t)i * ISA_INSN_BYTES, &why)) {
      emit_fail(e, e->f->loc, "instruction %u (%s) cannot be encoded: %s", i,
                isa_insn_info(e->code[i].kind)->mnemonic, why);
      return;
    }
}

bool npu_emit(const IrFunc *f, const MachineDesc *machine, IsaImage *out, DiagEngine *diag) {
  Emitter e = {.f = f, .machine = machine, .img = out, .diag = diag};
  uint32_t sections = 0, descs = 0, vprogs = 0;
  isa_image_init(out);
  out->machine = *machine;
  if (f->level != IR_PROGRAM)
    emit_fail(&e, f->loc, "only a function at program level can be emitted");
  count_ops(f->body, &sections, &descs, &vprogs);
  out->symbols = ARENA_ARRAY(out->arena, IsaSymbol, sections + 1);
  out->srcmap = ARENA_ARRAY(out->arena, IsaSrcMap, sections + 1);
  out->descs = ARENA_ARRAY(out->arena, IsaDesc, descs + 1);
  out->vprogs = ARENA_ARRAY(out->arena, IsaVprog, vprogs + 1);
  e.vprogs = arena_alloc(out->arena, sizeof *e.vprogs * (vprogs + 1));
  if (!e.failed) emit_tensors(&e);
  if (!e.failed) emit_block(&e, f->body);
  put(&e, (IsaInsn){.kind = INSN_HALT});
  if (!e.failed) encode_all(&e);
  mem_free(e.code);
  HASH_CLEAR(hh, e.labels);
  HASH_CLEAR(hh, e.known);
  if (e.failed) isa_image_free(out);
  return !e.failed;
}
