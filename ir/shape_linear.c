/* Shape rules of matrix products and convolutions, and of the padding they share with pooling. */
#include "ir/shape.h"

#include <string.h>

/* Element type of a sum of products: s8 s8 gives s32, bf16 with s8 weights gives f32 (both exact);
 * bf16 bf16 is rounded to bf16, unless the op is asked for the sum as it is. */
static bool product_type(Shape *s, DType *out) {
  const IrType *a = s->x[0], *w = s->x[1];
  if (a->dtype == DT_BF16 && w->dtype == DT_S8) {
    *out = DT_F32;
    return true;
  }
  if (!promote(s, a, w, out)) return false;
  *out = *out == DT_BF16 && ir_get_bool(s->op, "wide", false) ? DT_F32 : widened(*out);
  return true;
}

/* With operand 2, a bias of `channels` values, taken into the element type. */
static bool add_bias(Shape *s, int64_t channels, DType *t) {
  if (s->n < 3) return true;
  if (!need_vector(s, 2, channels, "output channel")) return false;
  DType b = s->x[2]->dtype;
  if (dtype_is_float(b) != dtype_is_float(*t))
    return shape_fail(s, "E-dtype", "bias is %s but the sum is %s; cast the bias to %s",
                      type_text(s, s->x[2]), dtype_name(*t), dtype_name(*t));
  if (b == DT_F32) *t = DT_F32;
  return true;
}

bool shape_matmul(Shape *s) {
  const IrType *a = s->x[0], *b = s->x[1];
  bool ta = ir_get_bool(s->op, "transpose_a", false), tb = ir_get_bool(s->op, "transpose_b", false);
  DType t;
  if (a->rank < 2 || b->rank < 2)
    return shape_fail(s, "E-shape",
                      "%s @ %s: both sides need two axes or more; reshape a vector to "
                      "[1,n] or [n,1]",
                      type_text(s, a), type_text(s, b));
  int64_t m = a->shape[a->rank - (ta ? 1 : 2)], ka = a->shape[a->rank - (ta ? 2 : 1)];
  int64_t kb = b->shape[b->rank - (tb ? 1 : 2)], n = b->shape[b->rank - (tb ? 2 : 1)];
  if (ka != kb)
    return shape_fail(
        s, "E-shape", "%s%s @ %s%s: %lld columns on the left meet %lld rows on the right%s",
        type_text(s, a), ta ? "'" : "", type_text(s, b), tb ? "'" : "", (long long)ka,
        (long long)kb, ka == n ? "; transpose the right side" : "; they must be equal");
  IrType la = {.kind = IR_TYPE_TENSOR, .rank = a->rank - 2},
         lb = {.kind = IR_TYPE_TENSOR, .rank = b->rank - 2};
  memcpy(la.shape, a->shape, sizeof la.shape);
  memcpy(lb.shape, b->shape, sizeof lb.shape);
  int rank;
  int64_t shape[IR_MAX_RANK];
  if (!ir_broadcast_shapes(&la, &lb, &rank, shape))
    return shape_fail(s, "E-shape", "%s @ %s: the axes before the last two do not broadcast",
                      type_text(s, a), type_text(s, b));
  shape[rank] = m;
  shape[rank + 1] = n;
  return product_type(s, &t) && result_shape(s, t, rank + 2, shape);
}

bool shape_linear(Shape *s) {
  const IrType *x = s->x[0], *w = s->x[1];
  DType t;
  if (!need_rank(s, 1, 2, "[out, in]")) return false;
  if (x->rank < 1) return shape_fail(s, "E-shape", "x is a scalar; reshape it to [1]");
  if (x->shape[x->rank - 1] != w->shape[1])
    return shape_fail(s, "E-shape", "x %s has %lld columns but w %s takes %lld%s", type_text(s, x),
                      (long long)x->shape[x->rank - 1], type_text(s, w), (long long)w->shape[1],
                      x->shape[x->rank - 1] == w->shape[0] ? "; w is [out, in], transpose it" : "");
  int64_t shape[IR_MAX_RANK];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->rank - 1] = w->shape[0];
  return product_type(s, &t) && add_bias(s, w->shape[0], &t) && result_shape(s, t, x->rank, shape);
}

/* ---- padding ---- */

/* Elements a dilated window spans; saturates far above any tensor. */
static int64_t window_extent(int64_t k, int64_t dilation) {
  int64_t extent;
  if (!mul_i64(k - 1, dilation, &extent) || extent > 1ll << 61) return 1ll << 61;
  return extent + 1;
}

/* TensorFlow's "same" (ONNX SAME_UPPER): ceil(in / stride) results, the odd element at the end. A
 * transposed convolution gives in * stride. */
static void same_pads(bool transposed, int64_t in, int64_t k, int64_t stride, int64_t dilation,
                      int64_t *before, int64_t *after) {
  int64_t extent = window_extent(k, dilation);
  int64_t total = transposed ? extent - stride : (ceil_div(in, stride) - 1) * stride + extent - in;
  if (total < 0) total = 0;
  *before = total / 2;
  *after = total - *before;
}

static int64_t int_or_last(const IrOp *op, const char *name, int i) {
  int64_t v[2];
  int n = ir_get_ints(op, name, v, 2);
  return n == 0 ? 1 : v[n == 1 ? 0 : i];
}

bool ir_resolve_pads(const IrOp *op, int64_t ih, int64_t iw, int64_t kh, int64_t kw,
                     int64_t out_tlbr[4]) {
  const IrAttr *a = ir_attr(op, "pad");
  int64_t v[5] = {0};
  bool one_d = op->kind == IR_OP_CONV1D;
  memset(out_tlbr, 0, 4 * sizeof *out_tlbr);
  if (!a) return true;
  if (a->kind == IR_ATTR_STR) {
    bool transposed = op->kind == IR_OP_CONV_TRANSPOSE2D;
    for (int i = 0; i < 2; i++)
      if (int_or_last(op, "stride", i) < 1 || int_or_last(op, "dilation", i) < 1) return false;
    if (strcmp(a->s, "same")) return false;
    if (!one_d)
      same_pads(transposed, ih, kh, int_or_last(op, "stride", 0), int_or_last(op, "dilation", 0),
                &out_tlbr[0], &out_tlbr[2]);
    same_pads(transposed, iw, kw, int_or_last(op, "stride", 1), int_or_last(op, "dilation", 1),
              &out_tlbr[1], &out_tlbr[3]);
    return true;
  }
  int n = ir_get_ints(op, "pad", v, 5);
  for (int i = 0; i < n; i++)
    if (v[i] < 0 || v[i] > MAX_EXTENT) return false;
  if (one_d) {
    out_tlbr[1] = v[0];
    out_tlbr[3] = v[n == 2 ? 1 : 0];
    return n == 1 || n == 2;
  }
  for (int i = 0; i < 4; i++) out_tlbr[i] = n == 4 ? v[i] : v[n == 1 ? 0 : i % 2];
  return n == 1 || n == 2 || n == 4;
}

bool need_pads(Shape *s, const int64_t in[2], const int64_t k[2], int64_t tlbr[4]) {
  if (ir_resolve_pads(s->op, in[0], in[1], k[0], k[1], tlbr)) return true;
  bool one_d = s->kind == IR_OP_CONV1D;
  return shape_fail(s, "E-attr", "pad must be one number of at least 0, %s or \"same\"",
                    one_d ? "[left, right]" : "[h, w], [top, left, bottom, right]");
}

/* Positions of a window: (in + pads - extent) / stride + 1 for both axes. */
bool window_outputs(Shape *s, const int64_t in[2], const int64_t k[2], const int64_t stride[2],
                    const int64_t dilation[2], const int64_t tlbr[4], int64_t out[2]) {
  for (int i = 0; i < 2; i++) {
    int64_t padded = in[i] + tlbr[i] + tlbr[i + 2], extent = window_extent(k[i], dilation[i]);
    if (extent > padded)
      return shape_fail(s, "E-shape",
                        "a window of %lld%s does not fit into %lld input elements%s along axis %d; "
                        "pad more or use a smaller kernel",
                        (long long)extent, dilation[i] > 1 ? " (dilated)" : "", (long long)padded,
                        padded > in[i] ? " (padded)" : "", i + (s->kind == IR_OP_CONV1D ? 1 : 2));
    out[i] = (padded - extent) / stride[i] + 1;
  }
  return true;
}

/* ---- convolutions ---- */

/* Channels against groups; in_axis: w's axis holding input channels per group. */
static bool check_groups(Shape *s, int64_t channels, int64_t per_group, int64_t other,
                         int64_t groups, const char *other_name) {
  if (groups < 1)
    return shape_fail(s, "E-attr", "groups = %lld must be at least 1", (long long)groups);
  if (channels % groups || other % groups)
    return shape_fail(s, "E-shape", "groups = %lld must divide %lld input channels and %lld %s",
                      (long long)groups, (long long)channels, (long long)other, other_name);
  if (channels / groups == per_group) return true;
  return shape_fail(s, "E-shape",
                    "x %s has %lld channels, %lld per group, but w %s takes %lld; "
                    "w is [out, in/groups, kernel...]",
                    type_text(s, s->x[0]), (long long)channels, (long long)(channels / groups),
                    type_text(s, s->x[1]), (long long)per_group);
}

bool shape_conv2d(Shape *s) {
  const IrType *x = s->x[0], *w = s->x[1];
  int64_t stride[2], dilation[2], tlbr[4], out[4];
  DType t;
  if (!need_rank(s, 0, 4, "[n, c, h, w]") || !need_rank(s, 1, 4, "[out, in/groups, kh, kw]") ||
      !check_groups(s, x->shape[1], w->shape[1], w->shape[0], ir_get_int(s->op, "groups", 1),
                    "output channels") ||
      !need_ints(s, "stride", 2, 1, MAX_EXTENT, stride) ||
      !need_ints(s, "dilation", 2, 1, MAX_EXTENT, dilation) ||
      !need_pads(s, &x->shape[2], &w->shape[2], tlbr) || !need_border(s, "pad_value", x->dtype) ||
      !window_outputs(s, &x->shape[2], &w->shape[2], stride, dilation, tlbr, &out[2]))
    return false;
  out[0] = x->shape[0];
  out[1] = w->shape[0];
  return product_type(s, &t) && add_bias(s, out[1], &t) && result_shape(s, t, 4, out);
}

bool shape_conv1d(Shape *s) {
  const IrType *x = s->x[0], *w = s->x[1];
  int64_t stride[2] = {1, 1}, dilation[2] = {1, 1}, tlbr[4], out[2];
  DType t;
  if (!need_rank(s, 0, 3, "[n, c, l]") || !need_rank(s, 1, 3, "[out, in/groups, k]") ||
      !check_groups(s, x->shape[1], w->shape[1], w->shape[0], ir_get_int(s->op, "groups", 1),
                    "output channels") ||
      !need_ints(s, "stride", 1, 1, MAX_EXTENT, &stride[1]) ||
      !need_ints(s, "dilation", 1, 1, MAX_EXTENT, &dilation[1]))
    return false;
  int64_t in[2] = {1, x->shape[2]}, k[2] = {1, w->shape[2]};
  if (!need_pads(s, in, k, tlbr) || !window_outputs(s, in, k, stride, dilation, tlbr, out))
    return false;
  int64_t shape[3] = {x->shape[0], w->shape[0], out[1]};
  return product_type(s, &t) && add_bias(s, shape[1], &t) && result_shape(s, t, 3, shape);
}

bool shape_conv_transpose2d(Shape *s) {
  const IrType *x = s->x[0], *w = s->x[1];
  int64_t stride[2], dilation[2], tlbr[4], out[4], groups = ir_get_int(s->op, "groups", 1);
  DType t;
  if (!need_rank(s, 0, 4, "[n, c, h, w]") || !need_rank(s, 1, 4, "[in, out/groups, kh, kw]"))
    return false;
  if (groups < 1 || x->shape[1] % groups)
    return shape_fail(s, "E-shape",
                      "groups = %lld must be at least 1 and divide %lld input channels",
                      (long long)groups, (long long)x->shape[1]);
  if (x->shape[1] != w->shape[0])
    return shape_fail(s, "E-shape",
                      "x %s has %lld channels but w %s takes %lld; w is [in, out/groups, "
                      "kh, kw]",
                      type_text(s, x), (long long)x->shape[1], type_text(s, w),
                      (long long)w->shape[0]);
  if (!need_ints(s, "stride", 2, 1, MAX_EXTENT, stride) ||
      !need_ints(s, "dilation", 2, 1, MAX_EXTENT, dilation) ||
      !need_pads(s, &x->shape[2], &w->shape[2], tlbr))
    return false;
  out[0] = x->shape[0];
  if (!mul_i64(w->shape[1], groups, &out[1])) out[1] = INT64_MAX;
  for (int i = 0; i < 2; i++) {
    int64_t full = window_extent(x->shape[2 + i], stride[i]) - 1;
    out[2 + i] = full + window_extent(w->shape[2 + i], dilation[i]) - tlbr[i] - tlbr[i + 2];
  }
  return product_type(s, &t) && add_bias(s, out[1], &t) && result_shape(s, t, 4, out);
}
