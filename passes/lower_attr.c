/* lower: attributes of graph ops, resolved against shapes. */
#include "passes/lower_internal.h"

void attr_pair(const IrOp *op, const char *name, int64_t otherwise, int64_t out[2]) {
  int n = ir_get_ints(op, name, out, 2);
  if (n == 0) out[0] = otherwise;
  if (n < 2) out[1] = out[0];
}

unsigned attr_axes(const IrOp *op, int rank) {
  int64_t axes[IR_MAX_RANK];
  int n = ir_get_ints(op, "axis", axes, IR_MAX_RANK);
  unsigned set = 0;
  for (int i = 0; i < n; i++) {
    int axis = ir_axis(axes[i], rank);
    if (axis >= 0) set |= 1u << axis;
  }
  return n > 0 ? set : (1u << rank) - 1;
}

IrValue *lower_reshape(IrBuilder *at, IrValue *v, const IrType *t) {
  if (v->type == t) return v;
  IrAttrInit attr = {"shape", ir_attr_ints(at->m, t->shape, (size_t)t->rank)};
  return ir_result(ir_build_typed(at, IR_OP_RESHAPE, 1, &v, 1, &t, 1, &attr), 0);
}

void slice_range(const IrOp *op, int64_t *begin, int64_t *step) {
  int rank = ir_operand(op, 0)->type->rank;
  ir_get_ints(op, "begin", begin, rank);
  int n = ir_get_ints(op, "step", step, rank);
  for (int i = n; i < rank; i++) step[i] = n == 0 ? 1 : step[0];
}

void pad_before(const IrOp *op, int rank, int64_t *before) {
  const IrAttr *pads = ir_attr(op, "pads");
  for (int i = 0; i < rank; i++) {
    before[i] = pads->array.items[i]->array.items[0]->i;
  }
}

void conv1d_pads(const IrOp *op, int64_t *before, int64_t *after) {
  const IrType *x = ir_operand(op, 0)->type, *w = ir_operand(op, 1)->type;
  int64_t tlbr[4] = {0};
  ir_resolve_pads(op, 1, x->shape[2], 1, w->shape[2], tlbr);
  *before = tlbr[1];
  *after = tlbr[3];
}

void conv_transpose_pads(const IrOp *op, int64_t tlbr[4]) {
  const IrType *x = ir_operand(op, 0)->type, *w = ir_operand(op, 1)->type;
  ir_resolve_pads(op, x->shape[2], x->shape[3], w->shape[2], w->shape[3], tlbr);
}
