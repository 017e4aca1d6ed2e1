/* lower: products, convolutions and pooling against their definitions, in every combination of
 * their attributes. */
#include "tests/passes/lower_util.h"
#include <math.h>

static double element(const Tensor *t, int64_t a, int64_t b, int64_t c, int64_t d) {
  const int64_t index[4] = {a, b, c, d};
  return tensor_at(t, index);
}

/* ---- matmul, linear ---- */

/* m[.., i, j] with leading axes broadcast to the result's; swapped: m[.., j, i]. */
static double matrix_at(const Tensor *m, const IrType *to, const int64_t *index, bool swapped,
                        int64_t i, int64_t j) {
  int64_t at[IR_MAX_RANK];
  int rank = m->type->rank;
  for (int a = 0; a < rank - 2; a++)
    at[a] = m->type->shape[a] == 1 ? 0 : index[to->rank - rank + a];
  at[rank - 2] = swapped ? j : i;
  at[rank - 1] = swapped ? i : j;
  return tensor_at(m, at);
}
static double ref_matmul(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  const IrType *t = op->results[result].type;
  bool ta = ir_get_bool(op, "transpose_a", false), tb = ir_get_bool(op, "transpose_b", false);
  int64_t k = in[0].type->shape[in[0].type->rank - (ta ? 2 : 1)];
  double sum = 0;
  for (int64_t i = 0; i < k; i++)
    sum += matrix_at(&in[0], t, index, ta, index[t->rank - 2], i) *
           matrix_at(&in[1], t, index, tb, i, index[t->rank - 1]);
  return sum;
}
static double ref_linear(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  const IrType *t = op->results[result].type;
  int64_t at[IR_MAX_RANK], o = index[t->rank - 1], k = in[1].type->shape[1];
  double sum = op->noperands > 2 ? in[2].v[o] : 0;
  for (int i = 0; i < t->rank; i++) at[i] = index[i];
  for (int64_t i = 0; i < k; i++) {
    at[t->rank - 1] = i;
    sum += tensor_at(&in[0], at) * in[1].v[o * k + i];
  }
  return sum;
}

/* ---- convolution ---- */

static int64_t either(const IrOp *op, const char *name, int i) {
  int64_t v[4];
  int n = ir_get_ints(op, name, v, 4);
  return n == 0 ? 1 : v[n == 1 ? 0 : i];
}
/* pad as one number, [h, w] or [top, left, bottom, right]; "same" cases state what it must be
 * through their shape. */
static int64_t pad_before(const IrOp *op, int i, int64_t in, int64_t k, int64_t out) {
  int64_t v[4];
  int n = ir_get_ints(op, "pad", v, 4);
  if (n > 0) return v[n == 1 ? 0 : i];
  int64_t all = (out - 1) * either(op, "stride", i) + either(op, "dilation", i) * (k - 1) + 1 - in;
  return all > 0 ? all / 2 : 0;
}
static double ref_conv2d(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)result;
  const int64_t *sx = in[0].type->shape, *sw = in[1].type->shape, *so = op->results[0].type->shape;
  int64_t groups = ir_get_int(op, "groups", 1), first = index[1] / (sw[0] / groups) * sw[1];
  int64_t ph = pad_before(op, 0, sx[2], sw[2], so[2]), pw = pad_before(op, 1, sx[3], sw[3], so[3]);
  double sum = op->noperands > 2 ? in[2].v[index[1]] : 0;
  for (int64_t c = 0; c < sw[1]; c++)
    for (int64_t i = 0; i < sw[2]; i++)
      for (int64_t j = 0; j < sw[3]; j++) {
        int64_t h = index[2] * either(op, "stride", 0) + i * either(op, "dilation", 0) - ph;
        int64_t w = index[3] * either(op, "stride", 1) + j * either(op, "dilation", 1) - pw;
        bool inside = h >= 0 && h < sx[2] && w >= 0 && w < sx[3];
        double x =
            inside ? element(&in[0], index[0], first + c, h, w) : ir_get_float(op, "pad_value", 0);
        sum += x * element(&in[1], index[1], c, i, j);
      }
  return sum;
}
static double ref_conv1d(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)result;
  const int64_t *sx = in[0].type->shape, *sw = in[1].type->shape;
  int64_t groups = ir_get_int(op, "groups", 1), first = index[1] / (sw[0] / groups) * sw[1];
  int64_t pad = pad_before(op, 0, sx[2], sw[2], op->results[0].type->shape[2]);
  double sum = op->noperands > 2 ? in[2].v[index[1]] : 0;
  for (int64_t c = 0; c < sw[1]; c++)
    for (int64_t j = 0; j < sw[2]; j++) {
      int64_t at[3] = {index[0], first + c,
                       index[2] * either(op, "stride", 0) + j * either(op, "dilation", 0) - pad};
      int64_t tap[3] = {index[1], c, j};
      if (at[2] >= 0 && at[2] < sx[2]) sum += tensor_at(&in[0], at) * tensor_at(&in[1], tap);
    }
  return sum;
}
/* Every input element adds x * w at stride * position + dilation * tap - pad. */
static double ref_conv_transpose(const IrOp *op, const Tensor *in, int result,
                                 const int64_t *index) {
  (void)result;
  const int64_t *sx = in[0].type->shape, *sw = in[1].type->shape;
  int64_t groups = ir_get_int(op, "groups", 1), per_group = sx[1] / groups, g = index[1] / sw[1];
  double sum = op->noperands > 2 ? in[2].v[index[1]] : 0;
  for (int64_t c = g * per_group; c < (g + 1) * per_group; c++)
    for (int64_t h = 0; h < sx[2]; h++)
      for (int64_t w = 0; w < sx[3]; w++)
        for (int64_t i = 0; i < sw[2]; i++)
          for (int64_t j = 0; j < sw[3]; j++) {
            int64_t oh =
                h * either(op, "stride", 0) + i * either(op, "dilation", 0) - either(op, "pad", 0);
            int64_t ow =
                w * either(op, "stride", 1) + j * either(op, "dilation", 1) - either(op, "pad", 1);
            if (oh == index[2] && ow == index[3])
              sum +=
                  element(&in[0], index[0], c, h, w) * element(&in[1], c, index[1] % sw[1], i, j);
          }
  return sum;
}

/* ---- pooling ---- */

typedef struct {
  double sum, max;
  int64_t inside, all;
} Window;
static Window window(const IrOp *op, const Tensor *x, const int64_t *index) {
  Window r = {0, -INFINITY, 0, 0};
  const int64_t *s = x->type->shape;
  int64_t kh = either(op, "kernel", 0), kw = either(op, "kernel", 1), given[4];
  int64_t stride_h = kh, stride_w = kw, pad_h = 0, pad_w = 0;
  if (ir_get_ints(op, "stride", given, 4))
    stride_h = either(op, "stride", 0), stride_w = either(op, "stride", 1);
  if (ir_get_ints(op, "pad", given, 4)) pad_h = either(op, "pad", 0), pad_w = either(op, "pad", 1);
  for (int64_t i = 0; i < kh; i++)
    for (int64_t j = 0; j < kw; j++) {
      int64_t h = index[2] * stride_h + i * either(op, "dilation", 0) - pad_h;
      int64_t w = index[3] * stride_w + j * either(op, "dilation", 1) - pad_w;
      r.all++;
      if (h < 0 || h >= s[2] || w < 0 || w >= s[3]) continue;
      double v = element(x, index[0], index[1], h, w);
      r.inside++;
      r.sum += v;
      r.max = fmax(r.max, v);
    }
  return r;
}
static double ref_max_pool(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)result;
  return window(op, &in[0], index).max;
}
static double ref_avg_pool(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)result;
  Window r = window(op, &in[0], index);
  return r.sum / (double)(ir_get_bool(op, "count_pad", false) ? r.all : r.inside);
}
static double ref_global_pool(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)op, (void)result;
  const int64_t *s = in[0].type->shape;
  double sum = 0;
  for (int64_t h = 0; h < s[2]; h++)
    for (int64_t w = 0; w < s[3]; w++) sum += element(&in[0], index[0], index[1], h, w);
  return sum / (double)(s[2] * s[3]);
}

#define CONV(in, tol, ...)                                                                         \
  { IR_OP_CONV2D, ref_conv2d, in, {__VA_ARGS__}, tol }

static const Case cases[] = {
    {IR_OP_MATMUL, ref_matmul, "f32[5,7] f32[7,3]", {{0}}, 1e-5},
    {IR_OP_MATMUL, ref_matmul, "s8[5,7] s8[7,3]", {{0}}, 0},
    {IR_OP_MATMUL, ref_matmul, "bf16[5,7] s8[3,7]", {FLAG("transpose_b", 1)}, 1e-5},
    {IR_OP_MATMUL,
     ref_matmul,
     "f32[7,5] f32[3,7]",
     {FLAG("transpose_a", 1), FLAG("transpose_b", 1)},
     1e-5},
    {IR_OP_MATMUL, ref_matmul, "f32[2,1,4,6] f32[3,6,5]", {{0}}, 1e-5},
    {IR_OP_MATMUL, ref_matmul, "s8[2,4,6] s8[6,1]", {{0}}, 0},
    {IR_OP_MATMUL, ref_matmul, "f32[1,1] f32[1,9]", {{0}}, 1e-6},
    {IR_OP_MATMUL, ref_matmul, "f32[3,1,7] f32[3,7,1]", {{0}}, 1e-5},
    {IR_OP_LINEAR, ref_linear, "f32[4,7] f32[3,7] f32[3]", {{0}}, 1e-5},
    {IR_OP_LINEAR, ref_linear, "s8[2,4,7] s8[3,7] s32[3]", {{0}}, 0},
    {IR_OP_LINEAR, ref_linear, "f32[7] f32[3,7]", {{0}}, 1e-5},
    {IR_OP_LINEAR, ref_linear, "bf16[1,7] s8[3,7] f32[3] =0.5", {{0}}, 1e-5},
    CONV("f32[2,3,8,9] f32[4,3,3,2] f32[4]", 1e-5, {0}),
    CONV("s8[1,3,8,9] s8[4,3,3,3] s32[4]", 0, INTS("stride", 2, 1), INTS("pad", 1, 2)),
    CONV("s8[1,3,8,9] s8[4,3,3,3]", 0, INTS("pad", 1), REAL("pad_value", -7)),
    CONV("f32[1,2,9,9] f32[2,2,3,3]", 1e-5, INTS("dilation", 2, 3), INTS("pad", 0, 1, 2, 3)),
    CONV("f32[1,2,9,8] f32[2,2,3,4]", 1e-5, TEXT("pad", "same"), INTS("stride", 2)),
    CONV("f32[2,6,5,5] f32[4,3,3,3] f32[4]", 1e-5, INT("groups", 2), INTS("pad", 1)),
    CONV("s8[2,6,5,5] s8[6,1,3,3] s32[6]", 0, INT("groups", 6), INTS("pad", 1)),
    CONV("f32[1,4,5,5] f32[8,1,3,3]", 1e-5, INT("groups", 4)),
    CONV("f32[1,4,5,5] f32[2,2,3,3]", 1e-5, INT("groups", 2)),
    CONV("bf16[1,1,1,1] s8[1,1,1,1]", 1e-6, {0}),
    CONV("bf16[3,5,1,1] s8[7,5,1,1] f32[7]", 1e-5, {0}),
    {IR_OP_CONV1D,
     ref_conv1d,
     "f32[2,4,11] f32[6,2,3] f32[6]",
     {INT("stride", 2), INTS("pad", 2, 0), INT("groups", 2)},
     1e-5},
    {IR_OP_CONV1D, ref_conv1d, "s8[1,3,11] s8[2,3,3]", {INT("dilation", 3)}, 0},
    {IR_OP_CONV1D, ref_conv1d, "f32[1,3,11] f32[2,3,4]", {TEXT("pad", "same")}, 1e-5},
    {IR_OP_CONV_TRANSPOSE2D,
     ref_conv_transpose,
     "f32[2,3,4,5] f32[3,2,3,3] f32[2]",
     {INTS("pad", 0)},
     1e-5},
    {IR_OP_CONV_TRANSPOSE2D,
     ref_conv_transpose,
     "f32[1,4,3,4] f32[4,3,3,2]",
     {INTS("stride", 2, 3), INTS("pad", 1, 0), INT("groups", 2)},
     1e-5},
    {IR_OP_CONV_TRANSPOSE2D,
     ref_conv_transpose,
     "f32[1,2,5,5] f32[2,1,2,2]",
     {INTS("stride", 1), INTS("pad", 2)},
     1e-5},
    {IR_OP_CONV_TRANSPOSE2D,
     ref_conv_transpose,
     "s8[1,2,3,3] s8[2,2,2,3]",
     {INTS("stride", 3), INTS("pad", 0), INTS("dilation", 2)},
     0},
    {IR_OP_CONV_TRANSPOSE2D,
     ref_conv_transpose,
     "f32[1,2,3,3] f32[2,2,2,3] =0.5",
     {INTS("stride", 2), INTS("pad", 1)},
     1e-5},
    {IR_OP_MAX_POOL,
     ref_max_pool,
     "f32[2,3,8,9] -9:-1",
     {INTS("kernel", 3), INTS("stride", 2), INTS("pad", 1)},
     0},
    {IR_OP_MAX_POOL,
     ref_max_pool,
     "s8[1,2,8,9] -128:-100",
     {INTS("kernel", 2, 3), INTS("pad", 0, 1)},
     0},
    {IR_OP_MAX_POOL, ref_max_pool, "bf16[1,2,8,9]", {INTS("kernel", 2), INTS("dilation", 2)}, 0},
    {IR_OP_AVG_POOL,
     ref_avg_pool,
     "f32[2,3,8,9]",
     {INTS("kernel", 3), INTS("stride", 2), INTS("pad", 1)},
     1e-6},
    {IR_OP_AVG_POOL,
     ref_avg_pool,
     "f32[2,3,8,9]",
     {INTS("kernel", 3, 2), INTS("stride", 1), INTS("pad", 1), FLAG("count_pad", 1)},
     1e-6},
    {IR_OP_AVG_POOL, ref_avg_pool, "f32[1,1,4,4]", {INTS("kernel", 2)}, 1e-6},
    {IR_OP_GLOBAL_AVG_POOL, ref_global_pool, "f32[2,3,5,7]", {{0}}, 1e-6},
};

int main(void) {
  return run_cases(cases, NPU_COUNTOF(cases)) != 0;
}
