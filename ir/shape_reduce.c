/* Shape rules of pooling, reductions and normalisation. */
#include "ir/shape.h"

#include <string.h>

bool shape_pool(Shape *s) {
  const IrType *x = s->x[0];
  int64_t k[2], stride[2], dilation[2] = {1, 1}, tlbr[4], out[4];
  if (!need_rank(s, 0, 4, "[n, c, h, w]") || !need_ints(s, "kernel", 2, 1, MAX_EXTENT, k) ||
      !need_ints(s, "stride", 2, 1, MAX_EXTENT, stride) ||
      (s->kind == IR_OP_MAX_POOL && !need_ints(s, "dilation", 2, 1, MAX_EXTENT, dilation)) ||
      (s->kind == IR_OP_AVG_POOL && !need_float(s, x, "x")) ||
      !need_pads(s, &x->shape[2], k, tlbr) ||
      !window_outputs(s, &x->shape[2], k, stride, dilation, tlbr, &out[2]))
    return false;
  for (int i = 0; i < 4; i++)
    if (tlbr[i] > (k[i % 2] - 1) * dilation[i % 2])
      return shape_fail(s, "E-attr",
                        "pad = %lld leaves windows of %lld that see no input; use a "
                        "smaller pad",
                        (long long)tlbr[i], (long long)k[i % 2]);
  out[0] = x->shape[0];
  out[1] = x->shape[1];
  return result_shape(s, x->dtype, 4, out);
}

bool shape_global_pool(Shape *s) {
  const IrType *x = s->x[0];
  if (!need_float(s, x, "x") || !need_rank(s, 0, 4, "[n, c, h, w]")) return false;
  return result_shape(s, x->dtype, 4, (int64_t[]){x->shape[0], x->shape[1], 1, 1});
}

/* Bit set of the axes in attribute `axis`; reports those that are none or come twice. */
static bool need_axes(Shape *s, uint32_t *mask) {
  const IrType *x = s->x[0];
  const IrAttr *a = ir_attr(s->op, "axis");
  *mask = 0;
  if (a->kind == IR_ATTR_STR) {
    *mask = (1u << x->rank) - 1;
    return true;
  }
  size_t n = a->kind == IR_ATTR_INT ? 1 : a->array.n;
  if (!n) return shape_fail(s, "E-attr", "axis = [] names no axis; use \"all\" or list some");
  for (size_t i = 0; i < n; i++) {
    int64_t given = a->kind == IR_ATTR_INT ? a->i : a->array.items[i]->i;
    int axis = ir_axis(given, x->rank);
    if (axis < 0)
      return shape_fail(s, "E-shape", "axis = %lld is not an axis of %s, which has %d",
                        (long long)given, type_text(s, x), x->rank);
    if (*mask >> axis & 1)
      return shape_fail(s, "E-attr", "axis %d is named twice; name it once", axis);
    *mask |= 1u << axis;
  }
  return true;
}

static bool result_reduced(Shape *s, uint32_t mask, DType dtype) {
  const IrType *x = s->x[0];
  bool keep = ir_get_bool(s->op, "keep", false);
  int64_t shape[IR_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < x->rank; i++) {
    if (!(mask >> i & 1))
      shape[rank++] = x->shape[i];
    else if (keep)
      shape[rank++] = 1;
  }
  return result_shape(s, dtype, rank, shape);
}

bool shape_reduce(Shape *s) {
  uint32_t mask;
  return need_axes(s, &mask) && result_reduced(s, mask, widened(s->x[0]->dtype));
}

bool shape_reduce_float(Shape *s) {
  uint32_t mask;
  return need_float(s, s->x[0], "x") && need_axes(s, &mask) &&
         result_reduced(s, mask, s->x[0]->dtype);
}

bool shape_reduce_same(Shape *s) {
  uint32_t mask;
  return need_axes(s, &mask) && result_reduced(s, mask, s->x[0]->dtype);
}

bool shape_argmax(Shape *s) {
  int axis;
  if (!need_axis(s, "axis", s->x[0]->rank, &axis)) return false;
  if (s->x[0]->shape[axis] > IR_MAX_INDEX)
    return shape_fail(s, "E-shape", "axis %d has %lld elements, and an s32 index counts %lld", axis,
                      (long long)s->x[0]->shape[axis], (long long)IR_MAX_INDEX);
  return result_reduced(s, 1u << axis, DT_S32);
}

bool shape_float_axis(Shape *s) {
  int axis;
  return need_float(s, s->x[0], "x") && need_axis(s, "axis", s->x[0]->rank, &axis) &&
         result(s, s->x[0]);
}

/* ---- normalisation: parameters may be more exact than x, the result has x's type ---- */

static bool all_float(Shape *s) {
  for (int i = 0; i < s->n; i++)
    if (!need_float(s, s->x[i], operand_name(s, i))) return false;
  return true;
}

static bool need_eps(Shape *s) {
  double eps = ir_get_float(s->op, "eps", 0);
  if (eps >= 0 && eps < 1e30) return true;
  return shape_fail(s, "E-attr", "eps = %g must be a small number of at least 0, such as 1e-5",
                    eps);
}

bool shape_batch_norm(Shape *s) {
  const IrType *x = s->x[0];
  if (!all_float(s) || !need_eps(s)) return false;
  if (x->rank < 2)
    return shape_fail(s, "E-shape", "x %s needs a channel axis: [n, c, ...]", type_text(s, x));
  for (int i = 1; i < s->n; i++)
    if (!need_vector(s, i, x->shape[1], "channel (axis 1 of x)")) return false;
  return result(s, x);
}

bool shape_layer_norm(Shape *s) {
  const IrType *x = s->x[0];
  int axis;
  if (!all_float(s) || !need_eps(s) || !need_axis(s, "axis", x->rank, &axis)) return false;
  int rank = x->rank - axis;
  for (int i = 1; i < s->n; i++)
    if (s->x[i]->rank != rank ||
        memcmp(s->x[i]->shape, &x->shape[axis], sizeof *x->shape * (size_t)rank))
      return shape_fail(s, "E-shape", "%s must be %s, the axes normalised over, found %s",
                        operand_name(s, i), dims_text(s, rank, &x->shape[axis]),
                        type_text(s, s->x[i]));
  return result(s, x);
}

bool shape_rms_norm(Shape *s) {
  const IrType *x = s->x[0];
  if (!all_float(s) || !need_eps(s)) return false;
  if (x->rank < 1) return shape_fail(s, "E-shape", "x is a scalar; reshape it to [1]");
  if (s->n > 1 && !need_vector(s, 1, x->shape[x->rank - 1], "element of x's last axis"))
    return false;
  return result(s, x);
}
