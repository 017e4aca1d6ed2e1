/* canonicalize: rearrangements. */
#include "passes/canonicalize_internal.h"
#include <string.h>

static IrValue *build_reshape(IrOp *at, IrValue *x, const IrType *t) {
  if (x->type == t) return x;
  IrBuilder b = ir_builder_before(at);
  IrAttrInit attr = {"shape", ir_attr_ints(b.m, t->shape, (size_t)t->rank)};
  return ir_result(ir_build_typed(&b, IR_OP_RESHAPE, 1, &x, 1, &t, 1, &attr), 0);
}

/* flatten is a reshape; of two reshapes the last one counts; one to the shape there is does
 * nothing. */
bool simplify_reshape(IrOp *op) {
  if (op->kind == IR_OP_FLATTEN)
    return replace_with(op, build_reshape(op, ir_operand(op, 0), op->results[0].type));
  if (op->kind != IR_OP_RESHAPE) return false;
  IrValue *x = ir_operand(op, 0);
  if (x->type == op->results[0].type) return replace_with(op, x);
  if (!ir_is(x->def, IR_OP_RESHAPE)) return false;
  ir_set_operand(op, 0, ir_operand(x->def, 0));
  return true;
}

/* f(reshape(x)) is reshape(f(x)) for elementwise f of one operand: f then stands beside what made
 * x, and can join its kernel. */
bool sink_reshape(IrOp *op) {
  if (op->noperands != 1 || op->nresults != 1 || !ir_has_trait(op, IR_ELEMENTWISE)) return false;
  IrValue *x = ir_operand(op, 0);
  if (!ir_is(x->def, IR_OP_RESHAPE) || !ir_has_one_use(x)) return false;
  IrValue *source = ir_operand(x->def, 0);
  IrBuilder b = ir_builder_before(op);
  const IrType *t = ir_type_with_dtype(b.m, source->type, op->results[0].type->dtype);
  IrOp *moved = ir_build_typed(&b, op->kind, 1, &source, 1, &t, 0, NULL);
  for (int i = 0; i < op->nattrs; i++) ir_set_attr(moved, op->attrs[i].name, op->attrs[i].value);
  return replace_with(op, build_reshape(op, ir_result(moved, 0), op->results[0].type));
}

/* Moving only axes of extent 1 keeps the order of the elements. */
static bool keeps_order(const IrType *x, const int64_t *perm) {
  int64_t last = -1;
  for (int i = 0; i < x->rank; i++) {
    if (x->shape[perm[i]] == 1) continue;
    if (perm[i] < last) return false;
    last = perm[i];
  }
  return true;
}

bool simplify_transpose(IrOp *op) {
  if (op->kind != IR_OP_TRANSPOSE) return false;
  IrValue *x = ir_operand(op, 0);
  int64_t perm[IR_MAX_RANK] = {0}, inner[IR_MAX_RANK] = {0}, both[IR_MAX_RANK];
  ir_get_ints(op, "perm", perm, IR_MAX_RANK);
  if (keeps_order(x->type, perm))
    return replace_with(op, build_reshape(op, x, op->results[0].type));
  if (!ir_is(x->def, IR_OP_TRANSPOSE)) return false;
  ir_get_ints(x->def, "perm", inner, IR_MAX_RANK);
  for (int i = 0; i < x->type->rank; i++) both[i] = inner[perm[i]];
  ir_set_attr(op, "perm", ir_attr_ints(ir_op_module(op), both, (size_t)x->type->rank));
  ir_set_operand(op, 0, ir_operand(x->def, 0));
  return true;
}

static void steps_of(const IrOp *op, int rank, int64_t *step) {
  int n = ir_get_ints(op, "step", step, IR_MAX_RANK);
  for (int i = n; i < rank; i++) step[i] = n == 0 ? 1 : step[0];
}

/* A slice of a slice takes begin + step * begin', step * step'. */
bool simplify_slice(IrOp *op) {
  if (op->kind != IR_OP_SLICE) return false;
  IrValue *x = ir_operand(op, 0);
  if (!ir_is(x->def, IR_OP_SLICE)) return false;
  int rank = x->type->rank;
  int64_t b0[IR_MAX_RANK], s0[IR_MAX_RANK], b1[IR_MAX_RANK], s1[IR_MAX_RANK], end[IR_MAX_RANK];
  ir_get_ints(x->def, "begin", b0, IR_MAX_RANK);
  ir_get_ints(op, "begin", b1, IR_MAX_RANK);
  steps_of(x->def, rank, s0);
  steps_of(op, rank, s1);
  for (int i = 0; i < rank; i++) {
    b1[i] = b0[i] + s0[i] * b1[i];
    s1[i] *= s0[i];
    end[i] = b1[i] + s1[i] * (op->results[0].type->shape[i] - 1) + 1;
  }
  IrModule *m = ir_op_module(op);
  ir_set_attr(op, "begin", ir_attr_ints(m, b1, (size_t)rank));
  ir_set_attr(op, "end", ir_attr_ints(m, end, (size_t)rank));
  ir_set_attr(op, "step", ir_attr_ints(m, s1, (size_t)rank));
  ir_set_operand(op, 0, ir_operand(x->def, 0));
  return true;
}

/* Slices of everything, borders of nothing, broadcasts to the same shape, concat of one, split into
 * one. */
bool simplify_no_move(IrOp *op) {
  switch (op->kind) {
  case IR_OP_SLICE:
  case IR_OP_PAD:
  case IR_OP_BROADCAST:
  case IR_OP_CONCAT:
  case IR_OP_SPLIT: break;
  default: return false;
  }
  if (op->noperands != 1 || op->nresults != 1) return false;
  return ir_operand(op, 0)->type == op->results[0].type && replace_with(op, ir_operand(op, 0));
}

/* Whether every element along an axis of x is one and the same. */
static bool repeats(const IrValue *x, int axis) {
  if (!ir_is(x->def, IR_OP_BROADCAST)) return false;
  const IrType *from = ir_operand(x->def, 0)->type;
  int behind = axis - (x->type->rank - from->rank);
  return behind < 0 || from->shape[behind] == 1;
}

/* Of equal elements the first is the largest. */
bool simplify_argmax(IrOp *op) {
  if (op->kind != IR_OP_ARGMAX) return false;
  const IrValue *x = ir_operand(op, 0);
  if (!repeats(x, ir_axis(ir_get_int(op, "axis", -1), x->type->rank))) return false;
  IrBuilder b = ir_builder_before(op);
  return replace_with(op, ir_build_splat(&b, op->results[0].type, 0));
}
