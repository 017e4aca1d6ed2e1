/* lower: elementwise ops, computed in f32 or s32 and converted to the result's type. */
#include "passes/lower_internal.h"
#include <math.h>
#include <string.h>

/* x[i]: operand i in its compute type. Returns the result before conversion to the op's type. */
typedef IrValue *EmitFn(Nest *n, const IrOp *op, IrValue **x);

/* A binary op computes in f32 when any operand is a float. */
static DType operands_compute_dtype(const IrOp *op) {
  for (int i = 0; i < op->noperands; i++)
    if (dtype_is_float(ir_operand(op, i)->type->dtype)) return DT_F32;
  return DT_S32;
}

static void lower_elementwise(IrBuilder *at, IrOp *op, IrValue **out, EmitFn *emit,
                              bool own_types) {
  const IrType *t = op->results[0].type;
  Nest n = nest_begin(at);
  int dims[IR_MAX_RANK], slots[3];
  nest_dims_of(&n, t, dims);
  for (int i = 0; i < op->noperands; i++) {
    IrMap map = nest_map_broadcast(ir_operand(op, i)->type, t, dims);
    slots[i] = nest_in_or_splat(&n, ir_operand(op, i), &map);
  }
  nest_out_dims(&n, t, dims);
  nest_open(&n);
  IrValue *x[3];
  DType compute = operands_compute_dtype(op);
  for (int i = 0; i < op->noperands; i++)
    x[i] = own_types ? nest_load(&n, slots[i]) : nest_load_as(&n, slots[i], compute);
  out[0] = nest_close1(&n, emit(&n, op, x));
}

static IrValue *emit_unary(Nest *n, const IrOp *op, IrValue **x) {
  return nest_un(n, op->kind, x[0]);
}
static IrValue *emit_binary(Nest *n, const IrOp *op, IrValue **x) {
  return nest_bin(n, op->kind, x[0], x[1]);
}
#define UNARY(e)                                                                                   \
  void lower_##e(IrBuilder *at, IrOp *op, IrValue **out) {                                         \
    lower_elementwise(at, op, out, emit_unary, false);                                             \
  }
#define BINARY(e)                                                                                  \
  void lower_##e(IrBuilder *at, IrOp *op, IrValue **out) {                                         \
    lower_elementwise(at, op, out, emit_binary, false);                                            \
  }
#define COMPOSITE(e, fn)                                                                           \
  void lower_##e(IrBuilder *at, IrOp *op, IrValue **out) {                                         \
    lower_elementwise(at, op, out, fn, false);                                                     \
  }
BINARY(ADD)
BINARY(SUB)
BINARY(MUL)
BINARY(DIV)
BINARY(MIN)
BINARY(MAX)
BINARY(EQ)
BINARY(NE)
BINARY(LT)
BINARY(LE)
BINARY(GT)
BINARY(GE)
UNARY(NEG)
UNARY(ABS)
UNARY(FLOOR)
UNARY(ROUND)
UNARY(EXP)
UNARY(LOG)
UNARY(SQRT)
UNARY(RSQRT)
UNARY(RECIP)
UNARY(ERF)
UNARY(TANH)
UNARY(SIN)
UNARY(COS)

/* The value is converted when it is yielded. */
static IrValue *emit_cast(Nest *n, const IrOp *op, IrValue **x) {
  (void)n, (void)op;
  return x[0];
}
COMPOSITE(CAST, emit_cast)

static IrValue *emit_where(Nest *n, const IrOp *op, IrValue **x) {
  (void)op;
  if (x[1]->type !=
      x[2]->type) { /* a float and an integer cannot meet: the shape rule has promoted */
    x[1] = nest_cast(n, x[1], DT_F32);
    x[2] = nest_cast(n, x[2], DT_F32);
  }
  return nest_where(n, nest_bin_const(n, IR_OP_NE, x[0], 0), x[1], x[2]);
}
void lower_WHERE(IrBuilder *at, IrOp *op, IrValue **out) {
  lower_elementwise(at, op, out, emit_where, true);
}

/* ---- composites ---- */

/* Safe at both ends: exp overflows to inf, whose reciprocal is 0. */
static IrValue *sigmoid(Nest *n, IrValue *x) {
  IrValue *e = nest_un(n, IR_OP_EXP, nest_un(n, IR_OP_NEG, x));
  return nest_un(n, IR_OP_RECIP, nest_bin_const(n, IR_OP_ADD, e, 1));
}
static IrValue *emit_sigmoid(Nest *n, const IrOp *op, IrValue **x) {
  (void)op;
  return sigmoid(n, x[0]);
}
static IrValue *emit_silu(Nest *n, const IrOp *op, IrValue **x) {
  (void)op;
  return nest_bin(n, IR_OP_MUL, x[0], sigmoid(n, x[0]));
}
static IrValue *clip(Nest *n, IrValue *x, double lo, double hi) {
  return nest_bin_const(n, IR_OP_MIN, nest_bin_const(n, IR_OP_MAX, x, lo), hi);
}
static IrValue *emit_relu(Nest *n, const IrOp *op, IrValue **x) {
  (void)op;
  return nest_bin_const(n, IR_OP_MAX, x[0], 0);
}
static IrValue *emit_relu6(Nest *n, const IrOp *op, IrValue **x) {
  (void)op;
  return clip(n, x[0], 0, 6);
}
/* On integers a bound between two integers moves inwards, and both saturate. */
static double bound(DType t, double v, bool up) {
  if (t == DT_F32) return v;
  double r = up ? ceil(v) : floor(v);
  return r < INT32_MIN ? INT32_MIN : r > INT32_MAX ? INT32_MAX : r;
}
static IrValue *emit_clip(Nest *n, const IrOp *op, IrValue **x) {
  DType t = x[0]->type->dtype;
  double lo = ir_get_float(op, "lo", -INFINITY), hi = ir_get_float(op, "hi", INFINITY);
  return clip(n, x[0], bound(t, lo, true), bound(t, hi, false));
}
static IrValue *emit_leaky_relu(Nest *n, const IrOp *op, IrValue **x) {
  IrValue *scaled = nest_bin_const(n, IR_OP_MUL, x[0], ir_get_float(op, "slope", 0.01));
  return nest_where(n, nest_bin_const(n, IR_OP_GE, x[0], 0), x[0], scaled);
}
static IrValue *emit_hard_sigmoid(Nest *n, const IrOp *op, IrValue **x) {
  (void)op;
  return clip(n, nest_bin_const(n, IR_OP_ADD, nest_bin_const(n, IR_OP_DIV, x[0], 6), 0.5), 0, 1);
}
static IrValue *emit_hard_swish(Nest *n, const IrOp *op, IrValue **x) {
  return nest_bin(n, IR_OP_MUL, x[0], emit_hard_sigmoid(n, op, x));
}
/* Hendrycks and Gimpel, "Gaussian Error Linear Units" (2016): the exact form and the tanh
 * approximation. */
static IrValue *emit_gelu(Nest *n, const IrOp *op, IrValue **x) {
  IrValue *phi;
  if (!strcmp(ir_get_str(op, "approximate", "none"), "tanh")) {
    IrValue *cube = nest_bin(n, IR_OP_MUL, nest_bin(n, IR_OP_MUL, x[0], x[0]), x[0]);
    IrValue *inner = nest_bin(n, IR_OP_ADD, x[0], nest_bin_const(n, IR_OP_MUL, cube, 0.044715));
    phi = nest_un(n, IR_OP_TANH, nest_bin_const(n, IR_OP_MUL, inner, 0.7978845608028654));
  } else {
    phi = nest_un(n, IR_OP_ERF, nest_bin_const(n, IR_OP_MUL, x[0], 0.7071067811865476));
  }
  IrValue *half = nest_bin_const(n, IR_OP_MUL, x[0], 0.5);
  return nest_bin(n, IR_OP_MUL, half, nest_bin_const(n, IR_OP_ADD, phi, 1));
}
COMPOSITE(SIGMOID, emit_sigmoid)
COMPOSITE(SILU, emit_silu)
COMPOSITE(RELU, emit_relu)
COMPOSITE(RELU6, emit_relu6)
COMPOSITE(CLIP, emit_clip)
COMPOSITE(LEAKY_RELU, emit_leaky_relu)
COMPOSITE(HARD_SIGMOID, emit_hard_sigmoid)
COMPOSITE(HARD_SWISH, emit_hard_swish)
COMPOSITE(GELU, emit_gelu)

/* ---- pow ---- */

#define POW_MAX_WHOLE 64 /* larger whole exponents take the exponential form */

/* x to a whole power by squaring. */
static IrValue *pow_whole(Nest *n, IrValue *x, int e) {
  IrValue *r = NULL;
  for (IrValue *square = x; e > 0; e >>= 1) {
    if (e & 1) r = r ? nest_bin(n, IR_OP_MUL, r, square) : square;
    if (e > 1) square = nest_bin(n, IR_OP_MUL, square, square);
  }
  return r;
}

static IrValue *is_whole(Nest *n, IrValue *x) {
  return nest_bin(n, IR_OP_EQ, nest_un(n, IR_OP_ROUND, x), x);
}

static IrValue *equals(Nest *n, IrValue *x, double c) {
  return nest_bin_const(n, IR_OP_EQ, x, c);
}

/* exp(b * log(|a|)), where log(0) is -inf. The logarithm of 1 is 0, which an infinite b would make
 * NaN: the power of 1 is 1, of -1 too where b is a number. */
static IrValue *power_of_magnitude(Nest *n, IrValue *a, IrValue *b) {
  IrValue *magnitude = nest_un(n, IR_OP_ABS, a);
  IrValue *log = nest_un(n, IR_OP_LOG, magnitude);
  IrValue *r = nest_un(n, IR_OP_EXP, nest_bin(n, IR_OP_MUL, b, log));
  IrValue *of_one = nest_where(n, nest_bin(n, IR_OP_EQ, b, b), nest_const(n, DT_F32, 1), b);
  return nest_where(n, equals(n, magnitude, 1), of_one, r);
}

/* a with its zeros made infinities of the same sign: < 0 tells the sign of every number. */
static IrValue *zeros_to_infinity(Nest *n, IrValue *a) {
  return nest_where(n, equals(n, a, 0), nest_un(n, IR_OP_RECIP, a), a);
}

/* What the power of a negative number has beside its magnitude: -1 when the exponent is odd, 1 when
 * it is even (infinities are); when it is no whole number, 1 for -inf (and -0, which `signed_base`
 * has as -inf), NaN for others. */
static IrValue *power_sign(Nest *n, IrValue *signed_base, IrValue *exponent) {
  IrValue *one = nest_const(n, DT_F32, 1);
  IrValue *even = is_whole(n, nest_bin_const(n, IR_OP_MUL, exponent, 0.5));
  IrValue *sign = nest_where(n, even, one, nest_const(n, DT_F32, -1));
  IrValue *broken =
      nest_where(n, equals(n, signed_base, -INFINITY), one, nest_const(n, DT_F32, NAN));
  return nest_where(n, is_whole(n, exponent), sign, broken);
}

/* With the special cases of IEEE 754-2019, 9.2.1: 1 to whatever power and whatever to the power 0
 * are 1, NaNs included. */
static IrValue *pow_general(Nest *n, IrValue *a, IrValue *b) {
  IrValue *r = power_of_magnitude(n, a, b), *one = nest_const(n, DT_F32, 1);
  IrValue *base = zeros_to_infinity(n, a);
  IrValue *with_sign = nest_bin(n, IR_OP_MUL, r, power_sign(n, base, b));
  r = nest_where(n, nest_bin_const(n, IR_OP_LT, base, 0), with_sign, r);
  r = nest_where(n, equals(n, a, 1), one, r);
  return nest_where(n, equals(n, b, 0), one, r);
}

/* The same for a known b that is no whole number of at most POW_MAX_WHOLE. */
static IrValue *pow_constant(Nest *n, IrValue *a, double b) {
  IrValue *one = nest_const(n, DT_F32, 1), *known = nest_const(n, DT_F32, b);
  if (isnan(b)) return nest_where(n, equals(n, a, 1), one, known);
  if (isinf(b)) return power_of_magnitude(n, a, known);
  bool whole = b == floor(b);
  /* No whole number: of negative numbers NaN, which the logarithm gives; of -inf as of inf. */
  IrValue *base = whole
                      ? nest_un(n, IR_OP_ABS, a)
                      : nest_where(n, equals(n, a, -INFINITY), nest_const(n, DT_F32, INFINITY), a);
  if (b == 0.5) /* of -0 it is 0, unlike the square root */
    return nest_un(n, IR_OP_SQRT, nest_bin_const(n, IR_OP_ADD, base, 0));
  IrValue *r = nest_un(n, IR_OP_EXP, nest_bin(n, IR_OP_MUL, nest_un(n, IR_OP_LOG, base), known));
  if (!whole || fmod(b, 2) == 0) return r;
  IrValue *negative = nest_bin_const(n, IR_OP_LT, zeros_to_infinity(n, a), 0);
  return nest_where(n, negative, nest_un(n, IR_OP_NEG, r), r);
}

static IrValue *emit_pow(Nest *n, const IrOp *op, IrValue **x) {
  double b;
  if (!ir_constant_splat(ir_operand(op, 1), &b)) return pow_general(n, x[0], x[1]);
  if (b == 0) return nest_const(n, DT_F32, 1);
  if (b == floor(b) && fabs(b) <= POW_MAX_WHOLE) {
    IrValue *r = pow_whole(n, x[0], (int)fabs(b));
    return b < 0 ? nest_un(n, IR_OP_RECIP, r) : r;
  }
  return pow_constant(n, x[0], b);
}
COMPOSITE(POW, emit_pow)

/* ---- quantization ---- */

/* Slot of the per-axis operand 1, read along `axis` of operand 0; -1 when the parameter is an
 * attribute. */
static int per_axis_slot(Nest *n, const IrOp *op, const int *dims, int64_t otherwise) {
  if (op->noperands < 2) return -1;
  IrValue *v = ir_operand(op, 1);
  int rank = ir_operand(op, 0)->type->rank;
  int axis = ir_axis(ir_get_int(op, "axis", otherwise), rank);
  IrMap map = ir_map_zero(v->type->rank);
  if (v->type->rank == 1 && axis >= 0 && v->type->shape[0] != 1) nest_axis(&map, 0, dims[axis], 1);
  return nest_in_or_splat(n, v, &map);
}

typedef struct {
  Nest n;
  int x, param;
} QuantNest;

static QuantNest quant_open(IrBuilder *at, IrOp *op, int64_t default_axis) {
  QuantNest q = {.n = nest_begin(at)};
  const IrType *t = op->results[0].type;
  int dims[IR_MAX_RANK];
  nest_dims_of(&q.n, t, dims);
  IrMap map = nest_map_dims(t->rank, dims);
  q.x = nest_in_or_splat(&q.n, ir_operand(op, 0), &map);
  q.param = per_axis_slot(&q.n, op, dims, default_axis);
  nest_out_dims(&q.n, t, dims);
  nest_open(&q.n);
  return q;
}

static IrValue *quant_param(QuantNest *q, const IrOp *op, const char *attr) {
  if (q->param >= 0) return nest_load_as(&q->n, q->param, DT_F32);
  return nest_const(&q->n, DT_F32, ir_get_float(op, attr, 1.0));
}

/* The conversion to s8 rounds and saturates; a zero point is added to the rounded value. */
static IrValue *round_and_shift(Nest *n, IrValue *x, int64_t zero_point) {
  if (zero_point == 0) return x;
  return nest_bin_const(n, IR_OP_ADD, nest_un(n, IR_OP_ROUND, x), (double)zero_point);
}

void lower_QUANTIZE(IrBuilder *at, IrOp *op, IrValue **out) {
  QuantNest q = quant_open(at, op, -1);
  IrValue *x = nest_load_as(&q.n, q.x, DT_F32);
  x = nest_bin(&q.n, IR_OP_DIV, x, quant_param(&q, op, "scale"));
  out[0] = nest_close1(&q.n, round_and_shift(&q.n, x, ir_get_int(op, "zero_point", 0)));
}

void lower_DEQUANTIZE(IrBuilder *at, IrOp *op, IrValue **out) {
  QuantNest q = quant_open(at, op, -1);
  int64_t zero_point = ir_get_int(op, "zero_point", 0);
  IrValue *x;
  if (zero_point == 0) {
    x = nest_load_as(&q.n, q.x, DT_F32);
  } else {
    x = nest_bin_const(&q.n, IR_OP_SUB, nest_load(&q.n, q.x), (double)zero_point);
    x = nest_cast(&q.n, x, DT_F32);
  }
  out[0] = nest_close1(&q.n, nest_bin(&q.n, IR_OP_MUL, x, quant_param(&q, op, "scale")));
}

void lower_REQUANTIZE(IrBuilder *at, IrOp *op, IrValue **out) {
  QuantNest q = quant_open(at, op, 1);
  IrValue *x = nest_load_as(&q.n, q.x, DT_F32);
  x = nest_bin(&q.n, IR_OP_MUL, x, quant_param(&q, op, "multiplier"));
  int64_t min = ir_get_int(op, "min", -128);
  int64_t zero_point = ir_get_int(op, "zero_point", 0);
  if (min > -128) { /* the bound applies to the rounded value; rounding is monotone and min whole */
    x = nest_bin_const(&q.n, IR_OP_MAX, round_and_shift(&q.n, x, zero_point), (double)min);
    out[0] = nest_close1(&q.n, x);
    return;
  }
  out[0] = nest_close1(&q.n, round_and_shift(&q.n, x, zero_point));
}
