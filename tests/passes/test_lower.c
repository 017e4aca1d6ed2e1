/* lower: elementwise ops, reductions, normalisations and rearrangements against their definitions.
 */
#include "tests/passes/lower_util.h"
#include <math.h>
#include <string.h>

#define X(i) tensor_broadcast(&in[i], op->results[0].type, index)
#define REF(name, expr)                                                                            \
  static double name(const IrOp *op, const Tensor *in, int result, const int64_t *index) {         \
    (void)op, (void)in, (void)result, (void)index;                                                 \
    return expr;                                                                                   \
  }

/* ---- elementwise ---- */

static double sigmoid(double x) {
  return 1 / (1 + exp(-x));
}
static double clamp(double x, double lo, double hi) {
  return fmin(fmax(x, lo), hi);
}
static double s8(double q) {
  return clamp(nearbyint(q), -128, 127);
}

REF(ref_add, X(0) + X(1))
REF(ref_sub, X(0) - X(1))
REF(ref_mul, X(0) * X(1))
REF(ref_div, X(0) / X(1))
REF(ref_pow, pow(X(0), X(1)))
REF(ref_min, fmin(X(0), X(1)))
REF(ref_max, fmax(X(0), X(1)))
REF(ref_lt, X(0) < X(1))
REF(ref_eq, X(0) == X(1))
REF(ref_where, X(0) != 0 ? X(1) : X(2))
REF(ref_neg, -X(0))
REF(ref_abs, fabs(X(0)))
REF(ref_floor, floor(X(0)))
REF(ref_round, nearbyint(X(0)))
REF(ref_exp, exp(X(0)))
REF(ref_log, log(X(0)))
REF(ref_sqrt, sqrt(X(0)))
REF(ref_rsqrt, 1 / sqrt(X(0)))
REF(ref_recip, 1 / X(0))
REF(ref_erf, erf(X(0)))
REF(ref_tanh, tanh(X(0)))
REF(ref_sin, sin(X(0)))
REF(ref_cos, cos(X(0)))
REF(ref_sigmoid, sigmoid(X(0)))
REF(ref_relu, fmax(X(0), 0))
REF(ref_relu6, clamp(X(0), 0, 6))
REF(ref_leaky, X(0) >= 0 ? X(0) : 0.25 * X(0))
REF(ref_gelu, X(0) * 0.5 * erfc(-X(0) / sqrt(2)))
REF(ref_gelu_tanh, 0.5 * X(0) * (1 + tanh(sqrt(2 / acos(-1)) * (X(0) + 0.044715 * pow(X(0), 3)))))
REF(ref_silu, X(0) * sigmoid(X(0)))
REF(ref_hard_sigmoid, clamp(X(0) / 6 + 0.5, 0, 1))
REF(ref_hard_swish, X(0) * clamp(X(0) / 6 + 0.5, 0, 1))
REF(ref_clip, clamp(X(0), -0.5, 1.25))
REF(ref_to_s8, s8(X(0)))
REF(ref_identity, X(0))
REF(ref_quantize, s8(nearbyint((float)X(0) / (float)0.05) - 3))
REF(ref_quantize_axis, s8(nearbyint((float)X(0) / (float)in[1].v[index[1]]) + 7))
REF(ref_dequantize, (X(0) + 5) * 0.125)
REF(ref_dequantize_axis, X(0) * in[1].v[index[1]])
REF(ref_requantize, fmax(-4, s8(nearbyint((float)X(0) * (float)in[1].v[index[1]]) - 4)))
REF(ref_requantize_all, s8(nearbyint((float)X(0) * (float)0.01) + 2))

#define U(k, r, in, tol)                                                                           \
  { IR_OP_##k, r, in, {{0}}, tol }

static const Case elementwise[] = {
    U(ADD, ref_add, "f32[2,3,5] f32[3,1]", 1e-6),
    U(ADD, ref_add, "s8[4,4] s8[4]", 0),
    U(ADD, ref_add, "bf16[3,4] f32[1,4]", 1e-6),
    U(SUB, ref_sub, "f32[1] f32[7]", 1e-6),
    U(MUL, ref_mul, "s32[3] s32[2,1]", 0),
    U(MUL, ref_mul, "f32[] f32[]", 1e-6),
    U(DIV, ref_div, "f32[2,3] f32[3] 0.5:2", 1e-6),
    U(DIV, ref_div, "bf16[6] bf16[6] =0.5", 0),
    U(POW, ref_pow, "f32[9] f32[] =3", 1e-5),
    U(POW, ref_pow, "f32[9] f32[] =-2", 1e-5),
    U(POW, ref_pow, "f32[9] 0:2 f32[] =0.5", 1e-5),
    U(POW, ref_pow, "f32[9] f32[] =0", 0),
    U(POW, ref_pow, "f32[9] f32[] =64", 1e-4),
    U(POW, ref_pow, "f32[9] -2:2 f32[] =100", 1e-4),
    U(POW, ref_pow, "f32[9] -2:2 f32[] =71", 1e-4),
    U(POW, ref_pow, "f32[9] -2:-0.5 f32[] =-65", 1e-4),
    U(POW, ref_pow, "f32[9] 0.1:2 f32[9] -3:3", 1e-4),
    U(POW, ref_pow, "f32[4] =0 f32[4] -3:3", 0),
    U(POW, ref_pow, "f32[4] =0 f32[4] =nan", 0),
    U(POW, ref_pow, "f32[4] =0 f32[] =1.5", 0),
    U(POW, ref_pow, "f32[9] -2:-0.1 f32[] =1.5", 0),
    U(MIN, ref_min, "f32[5,2] f32[2]", 0),
    U(MAX, ref_max, "s8[5,2] s8[2]", 0),
    U(LT, ref_lt, "f32[5,4] f32[4]", 0),
    U(EQ, ref_eq, "s8[50] -2:2 s8[50] -2:2", 0),
    U(WHERE, ref_where, "s8[3,4] -1:1 f32[4] f32[3,1]", 0),
    U(WHERE, ref_where, "s32[3,4] -1:1 s8[4] s32[3,1]", 0),
    U(NEG, ref_neg, "s8[300] -128:127", 0),
    U(ABS, ref_abs, "f32[4,3]", 0),
    U(FLOOR, ref_floor, "f32[40]", 0),
    U(ROUND, ref_round, "f32[40] -9:9", 0),
    U(EXP, ref_exp, "f32[40]", 1e-6),
    U(LOG, ref_log, "f32[40] 0.01:9", 1e-6),
    U(SQRT, ref_sqrt, "f32[40] 0:9", 1e-6),
    U(RSQRT, ref_rsqrt, "f32[40] 0.1:9", 1e-6),
    U(RECIP, ref_recip, "f32[40] 0.1:9", 1e-6),
    U(ERF, ref_erf, "f32[40]", 1e-6),
    U(TANH, ref_tanh, "bf16[40]", 5e-3),
    U(SIN, ref_sin, "f32[40] -9:9", 1e-6),
    U(COS, ref_cos, "f32[40] -9:9", 1e-6),
    U(SIGMOID, ref_sigmoid, "f32[60] -200:200", 1e-6),
    U(RELU, ref_relu, "s8[10]", 0),
    U(RELU6, ref_relu6, "f32[50] -9:9", 0),
    {IR_OP_LEAKY_RELU, ref_leaky, "f32[20]", {REAL("slope", 0.25)}, 1e-6},
    U(GELU, ref_gelu, "f32[60] -30:30", 1e-6),
    {IR_OP_GELU, ref_gelu_tanh, "f32[60] -30:30", {TEXT("approximate", "tanh")}, 1e-6},
    U(SILU, ref_silu, "f32[60] -200:200", 1e-6),
    U(HARD_SIGMOID, ref_hard_sigmoid, "f32[60] -9:9", 1e-6),
    U(HARD_SWISH, ref_hard_swish, "f32[60] -9:9", 1e-6),
    {IR_OP_CLIP, ref_clip, "f32[60]", {REAL("lo", -0.5), REAL("hi", 1.25)}, 0},
    {IR_OP_CAST, ref_to_s8, "f32[200] -200:200", {DTYPE("dtype", DT_S8)}, 0},
    {IR_OP_CAST, ref_to_s8, "s32[200] -200:200", {DTYPE("dtype", DT_S8)}, 0},
    {IR_OP_CAST, ref_identity, "s8[2,9]", {DTYPE("dtype", DT_BF16)}, 0},
    {IR_OP_CAST, ref_identity, "bf16[2,9]", {DTYPE("dtype", DT_F32)}, 0},
    {IR_OP_QUANTIZE, ref_quantize, "f32[99] -9:9", {REAL("scale", 0.05), INT("zero_point", -3)}, 0},
    {IR_OP_QUANTIZE,
     ref_quantize_axis,
     "f32[4,3,5] -9:9 f32[3] 0.01:0.1",
     {INT("axis", 1), INT("zero_point", 7)},
     0},
    {IR_OP_DEQUANTIZE, ref_dequantize, "s8[256]", {REAL("scale", 0.125), INT("zero_point", -5)}, 0},
    {IR_OP_DEQUANTIZE, ref_dequantize_axis, "s32[4,3,5] f32[3]", {INT("axis", 1)}, 1e-6},
    {IR_OP_REQUANTIZE,
     ref_requantize,
     "s32[4,3,5] -9999:9999 f32[3] 0.001:0.1",
     {INT("zero_point", -4), INT("min", -4)},
     0},
    {IR_OP_REQUANTIZE,
     ref_requantize_all,
     "s32[40] -99999:99999",
     {REAL("multiplier", 0.01), INT("zero_point", 2)},
     0},
};

/* ---- reductions ---- */

/* Visits x's elements that are reduced into `index`; the reduced axes come from the op's `axis`. */
typedef struct {
  double sum, max, min;
  int64_t argmax, count;
} Reduced;

static bool is_reduced(const IrOp *op, int axis, int rank) {
  int64_t axes[IR_MAX_RANK];
  int n = ir_get_ints(op, "axis", axes, IR_MAX_RANK);
  if (n == 0) return true;
  for (int i = 0; i < n; i++)
    if ((axes[i] + rank) % rank == axis) return true;
  return false;
}

static Reduced reduce(const IrOp *op, const Tensor *x, const int64_t *index) {
  Reduced r = {0, -INFINITY, INFINITY, 0, 0};
  const IrType *t = x->type;
  bool keep = ir_get_bool(op, "keep", false);
  int64_t n = ir_type_elements(t), at[IR_MAX_RANK];
  for (int64_t i = 0; i < n; i++) {
    int64_t rest = i, position = 0;
    for (int a = t->rank; a-- > 0; rest /= t->shape[a]) at[a] = rest % t->shape[a];
    bool mine = true;
    for (int a = 0, o = 0; a < t->rank; a++) {
      bool reduced = is_reduced(op, a, t->rank);
      if (reduced) position = at[a];
      if (!reduced) mine = mine && at[a] == index[o];
      if (!reduced || keep) o++;
    }
    if (!mine) continue;
    double v = x->v[i];
    r.sum += v;
    r.count++;
    if (v > r.max) r.max = v, r.argmax = position;
    if (v < r.min) r.min = v;
  }
  return r;
}
REF(ref_sum, reduce(op, &in[0], index).sum)
REF(ref_mean, reduce(op, &in[0], index).sum / (double)reduce(op, &in[0], index).count)
REF(ref_reduce_max, reduce(op, &in[0], index).max)
REF(ref_reduce_min, reduce(op, &in[0], index).min)
REF(ref_argmax, (double)reduce(op, &in[0], index).argmax)

/* Sum over the axes from `axis` on of f(x - shift), other coordinates as in index. */
static double row_sum(const Tensor *x, const int64_t *index, int axis, int naxes, double shift,
                      int power, bool expo) {
  int64_t at[IR_MAX_RANK], n = 1;
  double sum = 0;
  memcpy(at, index, sizeof at);
  for (int a = axis; a < axis + naxes; a++) n *= x->type->shape[a];
  for (int64_t i = 0; i < n; i++) {
    int64_t rest = i;
    for (int a = axis + naxes; a-- > axis; rest /= x->type->shape[a])
      at[a] = rest % x->type->shape[a];
    double v = tensor_at(x, at) - shift;
    sum += expo ? exp(v) : pow(v, power);
  }
  return sum;
}
static double ref_softmax(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)result;
  int rank = in[0].type->rank, axis = (int)(ir_get_int(op, "axis", -1) + rank) % rank;
  double x = tensor_at(&in[0], index);
  return 1 / row_sum(&in[0], index, axis, 1, x, 1, true);
}
static double ref_layer_norm(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)result;
  int rank = in[0].type->rank, axis = (int)(ir_get_int(op, "axis", -1) + rank) % rank;
  double n = 1;
  for (int a = axis; a < rank; a++) n *= (double)in[0].type->shape[a];
  double mean = row_sum(&in[0], index, axis, rank - axis, 0, 1, false) / n;
  double var = row_sum(&in[0], index, axis, rank - axis, mean, 2, false) / n;
  double y = (tensor_at(&in[0], index) - mean) / sqrt(var + ir_get_float(op, "eps", 1e-5));
  if (op->noperands > 1) y *= tensor_at(&in[1], index + axis);
  if (op->noperands > 2) y += tensor_at(&in[2], index + axis);
  return y;
}
static double ref_rms_norm(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)result;
  int last = in[0].type->rank - 1;
  double mean = row_sum(&in[0], index, last, 1, 0, 2, false) / (double)in[0].type->shape[last];
  double y = tensor_at(&in[0], index) / sqrt(mean + ir_get_float(op, "eps", 1e-5));
  return op->noperands > 1 ? y * in[1].v[index[last]] : y;
}
static double ref_batch_norm(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)result;
  int64_t c = index[1];
  double y =
      (tensor_at(&in[0], index) - in[3].v[c]) / sqrt(in[4].v[c] + ir_get_float(op, "eps", 1e-5));
  return y * in[1].v[c] + in[2].v[c];
}

static const Case reductions[] = {
    {IR_OP_SUM, ref_sum, "f32[3,4,5]", {INTS("axis", 1)}, 1e-5},
    {IR_OP_SUM, ref_sum, "s8[3,4,5]", {INTS("axis", 0, -1)}, 0},
    {IR_OP_SUM, ref_sum, "f32[3,4,5]", {{0}}, 1e-5},
    {IR_OP_SUM, ref_sum, "f32[1,4,1]", {INTS("axis", 0, 2), FLAG("keep", 1)}, 0},
    {IR_OP_MEAN, ref_mean, "f32[3,4,5]", {INTS("axis", 2), FLAG("keep", 1)}, 1e-6},
    {IR_OP_MEAN, ref_mean, "bf16[37]", {{0}}, 1e-2},
    {IR_OP_REDUCE_MAX, ref_reduce_max, "s8[6,7]", {INTS("axis", 0)}, 0},
    {IR_OP_REDUCE_MAX, ref_reduce_max, "f32[6,7] -9:-1", {INTS("axis", 1)}, 0},
    {IR_OP_REDUCE_MIN, ref_reduce_min, "f32[6,7] 1:9", {INTS("axis", 1), FLAG("keep", 1)}, 0},
    {IR_OP_ARGMAX, ref_argmax, "f32[6,17]", {INT("axis", 1)}, 0},
    {IR_OP_ARGMAX, ref_argmax, "s8[6,50] -3:3", {INT("axis", -1), FLAG("keep", 1)}, 0},
    {IR_OP_ARGMAX, ref_argmax, "f32[50,3]", {INT("axis", 0)}, 0},
    {IR_OP_SOFTMAX, ref_softmax, "f32[4,33] -50:50", {{0}}, 1e-6},
    {IR_OP_SOFTMAX, ref_softmax, "f32[4,5,3]", {INT("axis", 1)}, 1e-6},
    {IR_OP_SOFTMAX, ref_softmax, "f32[1,1]", {{0}}, 0},
    {IR_OP_LAYER_NORM, ref_layer_norm, "f32[3,19] 90:99 f32[19] f32[19]", {{0}}, 1e-4},
    {IR_OP_LAYER_NORM,
     ref_layer_norm,
     "f32[3,4,5] f32[4,5]",
     {INT("axis", 1), REAL("eps", 0.1)},
     1e-5},
    {IR_OP_LAYER_NORM, ref_layer_norm, "f32[3,19]", {{0}}, 1e-5},
    {IR_OP_RMS_NORM, ref_rms_norm, "f32[3,19] f32[19]", {{0}}, 1e-5},
    {IR_OP_RMS_NORM, ref_rms_norm, "bf16[2,2,7]", {{0}}, 2e-2},
    {IR_OP_BATCH_NORM,
     ref_batch_norm,
     "f32[2,3,4,5] f32[3] f32[3] f32[3] f32[3] 0.1:2",
     {{0}},
     1e-5},
    {IR_OP_BATCH_NORM,
     ref_batch_norm,
     "f32[6,3] f32[3] f32[3] =0 f32[3] =0 f32[3] =1",
     {REAL("eps", 0)},
     1e-5},
};

/* ---- rearrangements ---- */

static double ref_reshape(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)result;
  Tensor y = {op->results[0].type, in[0].v};
  return tensor_at(&y, index);
}
static double ref_transpose(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)result;
  int64_t perm[IR_MAX_RANK], at[IR_MAX_RANK];
  int n = ir_get_ints(op, "perm", perm, IR_MAX_RANK);
  for (int i = 0; i < n; i++) at[perm[i]] = index[i];
  return tensor_at(&in[0], at);
}
static double ref_concat(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)result;
  int rank = in[0].type->rank, axis = (int)(ir_get_int(op, "axis", 0) + rank) % rank, i = 0;
  int64_t at[IR_MAX_RANK];
  memcpy(at, index, sizeof at);
  for (; at[axis] >= in[i].type->shape[axis]; i++) at[axis] -= in[i].type->shape[axis];
  return tensor_at(&in[i], at);
}
static double ref_split(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  int rank = in[0].type->rank, axis = (int)(ir_get_int(op, "axis", 0) + rank) % rank;
  int64_t at[IR_MAX_RANK];
  memcpy(at, index, sizeof at);
  for (int i = 0; i < result; i++) at[axis] += op->results[i].type->shape[axis];
  return tensor_at(&in[0], at);
}
static double ref_slice(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)result;
  int64_t begin[IR_MAX_RANK], step[IR_MAX_RANK], at[IR_MAX_RANK];
  ir_get_ints(op, "begin", begin, IR_MAX_RANK);
  int n = ir_get_ints(op, "step", step, IR_MAX_RANK);
  for (int i = 0; i < in[0].type->rank; i++) at[i] = begin[i] + step[n > 1 ? i : 0] * index[i];
  return tensor_at(&in[0], at);
}
/* pads = [[1, 0], [2, 3]], value = 1.5 */
static double ref_pad(const IrOp *op, const Tensor *in, int result, const int64_t *index) {
  (void)op, (void)result;
  int64_t at[2] = {index[0] - 1, index[1] - 2};
  for (int i = 0; i < 2; i++)
    if (at[i] < 0 || at[i] >= in[0].type->shape[i]) return 1.5;
  return tensor_at(&in[0], at);
}
REF(ref_embed, in[1].v[(int64_t)tensor_at(&in[0], index) * 5 + index[2]])
REF(ref_gather1, in[0].v[index[0] * 7 + (int64_t)in[1].v[index[1]]])
REF(ref_update, index[0] >= 1 && index[0] < 3 && index[1] >= 2
                    ? in[1].v[(index[0] - 1) * 3 + index[1] - 2]
                    : tensor_at(&in[0], index))

static const Case moves[] = {
    {IR_OP_RESHAPE, ref_reshape, "f32[2,3,4]", {INTS("shape", 6, -1)}, 0},
    {IR_OP_FLATTEN, ref_reshape, "s8[2,3,4]", {INT("from", 1)}, 0},
    {IR_OP_TRANSPOSE, ref_transpose, "f32[2,3,4]", {INTS("perm", 2, 0, 1)}, 0},
    {IR_OP_TRANSPOSE, ref_transpose, "bf16[1,5,4,2]", {INTS("perm", 3, 1, 0, 2)}, 0},
    {IR_OP_CONCAT, ref_concat, "f32[2,3] f32[2,1] f32[2,4]", {INT("axis", 1)}, 0},
    {IR_OP_CONCAT, ref_concat, "s8[1,3] s8[2,3] s8[1,3] s8[3,3] s8[1,3]", {INT("axis", 0)}, 0},
    {IR_OP_CONCAT, ref_concat, "bf16[2,3]", {INT("axis", -1)}, 0},
    {IR_OP_SPLIT, ref_split, "f32[2,6]", {INT("parts", 3), INT("axis", 1)}, 0},
    {IR_OP_SPLIT, ref_split, "s8[6,2]", {INTS("parts", 1, 3, 2)}, 0},
    {IR_OP_SLICE,
     ref_slice,
     "f32[7,9]",
     {INTS("begin", 1, 2), INTS("end", 6, 9), INTS("step", 2, 3)},
     0},
    {IR_OP_PAD, ref_pad, "f32[3,4]", {PAIRS("pads", 1, 0, 2, 3), REAL("value", 1.5)}, 0},
    {IR_OP_BROADCAST, ref_identity, "s8[3,1]", {INTS("shape", 2, 3, 4)}, 0},
    {IR_OP_EMBED, ref_embed, "s32[2,3] 0:8 f32[9,5]", {{0}}, 0},
    {IR_OP_GATHER, ref_gather1, "s8[3,7] s32[4] 0:6", {INT("axis", 1)}, 0},
    {IR_OP_UPDATE, ref_update, "f32[4,5] f32[2,3]", {INTS("begin", 1, 2)}, 0},
};

int main(void) {
  int failed = run_cases(elementwise, NPU_COUNTOF(elementwise));
  failed += run_cases(reductions, NPU_COUNTOF(reductions));
  failed += run_cases(moves, NPU_COUNTOF(moves));
  return failed != 0;
}
