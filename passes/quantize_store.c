/* quantize, storage: activations that are kept between ops are kept as bf16, half the bytes, and
 * computed with in f32 as before. A float counts as an activation when it comes from a product, a
 * normalisation, softmax or an embedding, perhaps through elementwise ops and rearrangements;
 * squares, sums and what has only integers in its past do not. Of activations those are stored as
 * bf16 of which nobody needs more (may_be_rounded). */
#include "passes/quantize_internal.h"

static bool makes_activations(const IrOp *op) {
  switch (op->kind) {
  case IR_OP_MATMUL:
  case IR_OP_LINEAR:
  case IR_OP_CONV1D:
  case IR_OP_CONV2D:
  case IR_OP_EMBED:
  case IR_OP_BATCH_NORM:
  case IR_OP_LAYER_NORM:
  case IR_OP_RMS_NORM:
  case IR_OP_SOFTMAX: return true;
  default: return false;
  }
}

static bool passes_activations_on(const IrOp *op) {
  return ir_has_trait(op, IR_ELEMENTWISE) || ir_has_trait(op, IR_DATA_MOVEMENT) ||
         op->kind == IR_OP_MAX_POOL || op->kind == IR_OP_AVG_POOL || op->kind == IR_OP_UPDATE ||
         op->kind == IR_OP_PAD;
}

/* The model's own integers are none; sums of 8-bit products this pass made are. */
static bool comes_from_activations(Facts *k, const IrOp *op) {
  if (hint(op, "hint.bf16")) return true;
  if (op->kind == IR_OP_DEQUANTIZE && !is_own(k, op)) return true;
  if (op->nresults == 0 || !dtype_is_float(op->results[0].type->dtype)) return false;
  if (makes_activations(op)) return true;
  if (!passes_activations_on(op) || is_square(op)) return false;
  for (int i = 0; i < op->noperands; i++)
    if (is_activation(k, ir_operand(op, i))) return true;
  return false;
}

static bool is_step_up(const IrValue *v) {
  return ir_is(v->def, IR_OP_CAST) && v->type->dtype == DT_F32 &&
         ir_operand(v->def, 0)->type->dtype == DT_BF16;
}

/* move(f32(x), ...) to f32(move(x, ...)): rearranging needs no f32, and the largest of bf16 values
 * is one of them. */
static IrOp *sink_step_up(PassContext *pc, IrOp *op) {
  bool moves = ir_has_trait(op, IR_DATA_MOVEMENT) || op->kind == IR_OP_MAX_POOL;
  if (!moves || op->noperands == 0 || op->nresults != 1) return NULL;
  IrValue **operands = ARENA_ARRAY(pc->scratch, IrValue *, op->noperands);
  for (int i = 0; i < op->noperands; i++) {
    if (!is_step_up(ir_operand(op, i))) return NULL;
    operands[i] = ir_operand(ir_operand(op, i)->def, 0);
  }
  IrBuilder b = ir_builder_before(op);
  IrValue *moved = rebuild(&b, op, op->noperands, operands, NULL);
  IrValue *up = ir_build_cast(&b, moved, DT_F32);
  up->name = op->results[0].name;
  ir_replace_all_uses(&op->results[0], up);
  ir_op_erase(op);
  return up->def;
}

/* Whether v stays inside a kernel: its only reader is elementwise and of the same shape. */
static bool is_passed_on(const IrValue *v) {
  if (!ir_has_one_use(v)) return false;
  const IrOp *reader = v->uses->op;
  if (!ir_has_trait(reader, IR_ELEMENTWISE)) return false;
  const IrType *t = reader->results[0].type;
  return ir_type_elements(t) == ir_type_elements(v->type) && t->rank == v->type->rank;
}

/* v, then down, then up; readers that want bf16 take the middle. */
static void store(PassContext *pc, IrValue *v) {
  IrBuilder b = ir_builder_after(v->def);
  b.loc = v->def->loc;
  IrValue *down = ir_build_cast(&b, v, DT_BF16);
  IrValue *up = ir_build_cast(&b, down, DT_F32);
  ir_replace_all_uses(v, up);
  ir_set_operand(down->def, 0, v);
  for (IrUse *u = up->uses, *next; u; u = next) {
    next = u->next;
    IrOp *reader = u->op;
    if (reader->kind != IR_OP_CAST || reader->results[0].type != down->type) continue;
    ir_replace_all_uses(&reader->results[0], down);
    ir_op_erase(reader);
  }
  if (!up->uses) ir_op_erase(up->def);
  pass_count(pc, "activations in bf16", 1);
}

void store_as_bf16(PassContext *pc, IrFunc *f, Facts *k) {
  facts_find_needs(k, f);
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    IrOp *up = sink_step_up(pc, op);
    if (up) {
      set_activation(k, ir_result(up, 0));
      set_activation(k, ir_operand(up, 0));
      continue;
    }
    if (!comes_from_activations(k, op)) continue;
    for (int i = 0; i < op->nresults; i++) {
      IrValue *v = ir_result(op, i);
      set_activation(k, v);
      if (v->type->dtype != DT_F32 || !v->uses || is_step_up(v)) continue;
      if (!is_passed_on(v) && may_be_rounded(k, v)) store(pc, v);
    }
    next = op->next;
  }
}
