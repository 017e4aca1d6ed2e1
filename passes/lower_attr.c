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
  const IrType *x = ir_operand(op, 0)->type;
  int n = ir_get_ints(op, "begin", begin, IR_MAX_RANK);
  int ns = ir_get_ints(op, "step", step, IR_MAX_RANK);
  for (int i = 0; i < x->rank; i++) {
    if (i >= n) begin[i] = 0;
    if (i >= ns) step[i] = ns == 1 ? step[0] : 1;
    int64_t last = step[i] > 0 ? x->shape[i] : x->shape[i] - 1;
    if (begin[i] < 0) begin[i] += x->shape[i];
    if (begin[i] < 0) begin[i] = 0;
    if (begin[i] > last) begin[i] = last;
  }
}

void pad_before(const IrOp *op, int rank, int64_t *before) {
  const IrAttr *pads = ir_attr(op, "pads");
  for (int i = 0; i < rank; i++) {
    const IrAttr *pair = pads->array.items[i];
    before[i] = pair->kind == IR_ATTR_ARRAY ? pair->array.items[0]->i : pair->i;
  }
}

/* Padding of one axis whose result has `out` elements: explicit, or as much as "same" needs, the
 * odd one after. */
static void axis_pads(const IrOp *op, int64_t in, int64_t k, int64_t stride, int64_t dilation,
                      int64_t out, int64_t *before, int64_t *after) {
  int64_t needed = (out - 1) * stride + dilation * (k - 1) + 1 - in;
  int64_t given[4];
  int n = ir_get_ints(op, "pad", given, 4);
  *before = n > 0 ? given[0] : needed > 0 ? needed / 2 : 0;
  *after = needed - *before;
}

void conv1d_pads(const IrOp *op, int64_t *before, int64_t *after) {
  const IrType *x = ir_operand(op, 0)->type, *w = ir_operand(op, 1)->type;
  axis_pads(op, x->shape[2], w->shape[2], ir_get_int(op, "stride", 1),
            ir_get_int(op, "dilation", 1), op->results[0].type->shape[2], before, after);
}

void conv_transpose_pads(const IrOp *op, int64_t tlbr[4]) {
  const IrType *x = ir_operand(op, 0)->type, *w = ir_operand(op, 1)->type;
  ir_resolve_pads(op, x->shape[2], x->shape[3], w->shape[2], w->shape[3], tlbr);
}
