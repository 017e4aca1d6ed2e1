/* lower: reductions, pooling, softmax and the normalisations. Each is one kernel whose body reduces
 * once or more. */
#include "passes/lower_internal.h"
#include <math.h>

/* ---- plain reductions ---- */

typedef struct {
  Nest n;
  int x; /* slot */
  int red[IR_MAX_RANK], nred;
  int64_t count;         /* elements reduced into one */
  int dims[IR_MAX_RANK]; /* of x's axes */
} ReduceNest;

/* Opens a kernel that reads all of operand 0 and reduces over `axes`; the result keeps those axes
 * when its rank is x's. */
static ReduceNest reduce_open(IrBuilder *at, IrOp *op, unsigned axes) {
  static const char *const red_names[IR_MAX_RANK] = {"r0", "r1", "r2", "r3",
                                                     "r4", "r5", "r6", "r7"};
  static const char *const par_names[IR_MAX_RANK] = {"i0", "i1", "i2", "i3",
                                                     "i4", "i5", "i6", "i7"};
  const IrType *tx = ir_operand(op, 0)->type, *t = op->results[0].type;
  ReduceNest r = {.n = nest_begin(at), .count = 1};
  int out_dims[IR_MAX_RANK], rank = 0;
  bool keep = t->rank == tx->rank;
  for (int i = 0; i < tx->rank; i++) {
    bool reduced = axes >> i & 1;
    if (!reduced) r.dims[i] = nest_dim(&r.n, par_names[i], tx->shape[i]);
    if (!reduced || keep) out_dims[rank++] = reduced ? NEST_NO_DIM : r.dims[i];
  }
  for (int i = 0; i < tx->rank; i++) {
    if (!(axes >> i & 1)) continue;
    r.red[r.nred++] = r.dims[i] = nest_dim(&r.n, red_names[i], tx->shape[i]);
    r.count *= tx->shape[i];
  }
  IrMap map = nest_map_dims(tx->rank, r.dims);
  r.x = nest_in(&r.n, ir_operand(op, 0), &map, NULL);
  nest_out_dims(&r.n, t, out_dims);
  nest_open(&r.n);
  return r;
}

static void lower_plain_reduce(IrBuilder *at, IrOp *op, IrValue **out, const char *how, bool mean) {
  ReduceNest r = reduce_open(at, op, attr_axes(op, ir_operand(op, 0)->type->rank));
  IrValue *s = nest_reduce(&r.n, how, nest_load(&r.n, r.x), r.red, r.nred);
  if (mean && r.count > 1)
    s = nest_bin_const(&r.n, IR_OP_DIV, nest_cast(&r.n, s, DT_F32), (double)r.count);
  out[0] = nest_close1(&r.n, s);
}
void lower_SUM(IrBuilder *at, IrOp *op, IrValue **out) {
  lower_plain_reduce(at, op, out, "sum", false);
}
void lower_MEAN(IrBuilder *at, IrOp *op, IrValue **out) {
  lower_plain_reduce(at, op, out, "sum", true);
}
void lower_REDUCE_MAX(IrBuilder *at, IrOp *op, IrValue **out) {
  lower_plain_reduce(at, op, out, "max", false);
}
void lower_REDUCE_MIN(IrBuilder *at, IrOp *op, IrValue **out) {
  lower_plain_reduce(at, op, out, "min", false);
}

void lower_ARGMAX(IrBuilder *at, IrOp *op, IrValue **out) {
  int rank = ir_operand(op, 0)->type->rank;
  int axis = ir_axis(ir_get_int(op, "axis", -1), rank);
  ReduceNest r = reduce_open(at, op, 1u << axis);
  Nest *n = &r.n;
  IrValue *x = nest_load(n, r.x);
  IrValue *largest = nest_reduce(n, "max", x, r.red, r.nred);
  IrValue *here = nest_index(n, r.red[0]), *nowhere = nest_const(n, DT_S32, INT32_MAX);
  IrValue *position = nest_where(n, nest_bin(n, IR_OP_EQ, x, largest), here, nowhere);
  /* A NaN is the largest, and equals nothing. */
  if (dtype_is_float(x->type->dtype))
    position = nest_where(n, nest_bin(n, IR_OP_NE, x, x), here, position);
  out[0] = nest_close1(n, nest_reduce(n, "min", position, r.red, r.nred));
}

/* ---- pooling ---- */

typedef struct {
  int64_t kernel[2], stride[2], dilation[2], pad[4];
  bool padded;
} Pool;

static Pool pool_of(const IrOp *op) {
  const IrType *x = ir_operand(op, 0)->type;
  Pool p = {0};
  attr_pair(op, "kernel", 1, p.kernel);
  p.stride[0] = p.kernel[0], p.stride[1] = p.kernel[1];
  int64_t given[2];
  if (ir_get_ints(op, "stride", given, 2) > 0) attr_pair(op, "stride", 1, p.stride);
  attr_pair(op, "dilation", 1, p.dilation);
  ir_resolve_pads(op, x->shape[2], x->shape[3], p.kernel[0], p.kernel[1], p.pad);
  for (int i = 0; i < 4; i++) p.padded |= p.pad[i] > 0;
  return p;
}

typedef struct {
  Nest n;
  int x, counts;
  int red[2];
} PoolNest;

/* counts (may be NULL): a tensor [oh, ow]. */
static PoolNest pool_open(IrBuilder *at, IrOp *op, const Pool *p, double pad_value,
                          IrValue *counts) {
  const IrType *t = op->results[0].type;
  PoolNest q = {.n = nest_begin(at), .counts = -1};
  static const char *const names[4] = {"n", "c", "oh", "ow"};
  int dims[4];
  for (int i = 0; i < 4; i++) dims[i] = nest_dim(&q.n, names[i], t->shape[i]);
  q.red[0] = nest_dim(&q.n, "kh", p->kernel[0]);
  q.red[1] = nest_dim(&q.n, "kw", p->kernel[1]);
  IrMap map = nest_map_dims(2, dims);
  map.rank = 4;
  for (int i = 0; i < 2; i++) {
    map.axis[2 + i] = (IrAffine){.cst = -p->pad[i], .index = -1};
    nest_axis(&map, 2 + i, dims[2 + i], p->stride[i]);
    nest_axis(&map, 2 + i, q.red[i], p->dilation[i]);
  }
  q.x = nest_in(&q.n, ir_operand(op, 0), &map, p->padded ? ir_attr_float(at->m, pad_value) : NULL);
  if (counts) {
    IrMap m = nest_map_dims(2, dims + 2);
    q.counts = nest_in_or_splat(&q.n, counts, &m);
  }
  nest_out_dims(&q.n, t, dims);
  nest_open(&q.n);
  return q;
}

void lower_MAX_POOL(IrBuilder *at, IrOp *op, IrValue **out) {
  Pool p = pool_of(op);
  DType dtype = ir_operand(op, 0)->type->dtype;
  double lowest = dtype_is_float(dtype) ? -INFINITY : dtype == DT_S8 ? INT8_MIN : INT32_MIN;
  PoolNest q = pool_open(at, op, &p, lowest, NULL);
  out[0] = nest_close1(&q.n, nest_reduce(&q.n, "max", nest_load(&q.n, q.x), q.red, 2));
}

/* Positions of one window along one axis that lie inside the tensor: those k with 0 <= first + k *
 * dilation < extent. */
static int64_t window_inside(const Pool *p, int axis, int64_t o, int64_t extent) {
  int64_t first = o * p->stride[axis] - p->pad[axis], step = p->dilation[axis];
  int64_t lo = first < 0 ? ceil_div(-first, step) : 0;
  int64_t hi = first < extent ? (extent - 1 - first) / step : -1;
  if (hi > p->kernel[axis] - 1) hi = p->kernel[axis] - 1;
  return hi >= lo ? hi - lo + 1 : 0;
}

static IrValue *window_counts(IrBuilder *at, const Pool *p, const IrType *x, const IrType *t) {
  const IrType *type = ir_type_tensor(at->m, DT_F32, 2, &t->shape[2]);
  void *bytes;
  const IrAttr *data = ir_attr_data_new(at->m, type, &bytes);
  float *counts = bytes;
  for (int64_t oh = 0; oh < t->shape[2]; oh++) {
    int64_t rows = window_inside(p, 0, oh, x->shape[2]);
    for (int64_t ow = 0; ow < t->shape[3]; ow++) {
      int64_t count = rows * window_inside(p, 1, ow, x->shape[3]);
      counts[oh * t->shape[3] + ow] = (float)(count > 0 ? count : 1);
    }
  }
  return ir_build_constant(at, data);
}

void lower_AVG_POOL(IrBuilder *at, IrOp *op, IrValue **out) {
  Pool p = pool_of(op);
  bool per_window = p.padded && !ir_get_bool(op, "count_pad", false);
  IrValue *counts =
      per_window ? window_counts(at, &p, ir_operand(op, 0)->type, op->results[0].type) : NULL;
  PoolNest q = pool_open(at, op, &p, 0, counts);
  Nest *n = &q.n;
  IrValue *s = nest_cast(n, nest_reduce(n, "sum", nest_load(n, q.x), q.red, 2), DT_F32);
  if (per_window)
    s = nest_bin(n, IR_OP_DIV, s, nest_load(n, q.counts));
  else
    s = nest_bin_const(n, IR_OP_DIV, s, (double)(p.kernel[0] * p.kernel[1]));
  out[0] = nest_close1(n, s);
}

void lower_GLOBAL_AVG_POOL(IrBuilder *at, IrOp *op, IrValue **out) {
  unsigned spatial = ((1u << ir_operand(op, 0)->type->rank) - 1) & ~3u;
  ReduceNest r = reduce_open(at, op, spatial);
  IrValue *s = nest_reduce(&r.n, "sum", nest_load(&r.n, r.x), r.red, r.nred);
  s = nest_bin_const(&r.n, IR_OP_DIV, nest_cast(&r.n, s, DT_F32), (double)r.count);
  out[0] = nest_close1(&r.n, s);
}

/* ---- softmax and normalisation ---- */

#define NORM_MAX_PARAMS 4

/* A kernel over all of x whose body reduces over some axes and whose result has x's shape. */
typedef struct {
  Nest n;
  int x, param[NORM_MAX_PARAMS];
  int red[IR_MAX_RANK], nred;
  int64_t count;
} NormNest;

/* Operand 1 + i, when present, is read along the axes of x from param_axis on. */
static NormNest norm_open(IrBuilder *at, IrOp *op, unsigned axes, int param_axis) {
  const IrType *t = op->results[0].type;
  NormNest q = {.n = nest_begin(at), .count = 1};
  int dims[IR_MAX_RANK];
  nest_dims_of(&q.n, t, dims);
  for (int i = 0; i < t->rank; i++) {
    if (!(axes >> i & 1)) continue;
    q.red[q.nred++] = dims[i];
    q.count *= t->shape[i];
  }
  IrMap map = nest_map_dims(t->rank, dims);
  q.x = nest_in(&q.n, ir_operand(op, 0), &map, NULL);
  for (int i = 0; i < NORM_MAX_PARAMS; i++) {
    q.param[i] = -1;
    if (i + 1 >= op->noperands) continue;
    IrValue *v = ir_operand(op, i + 1);
    IrMap m = ir_map_zero(v->type->rank);
    for (int a = 0; a < v->type->rank && param_axis + a < t->rank; a++)
      if (v->type->shape[a] != 1) nest_axis(&m, a, dims[param_axis + a], 1);
    q.param[i] = nest_in_or_splat(&q.n, v, &m);
  }
  nest_out_dims(&q.n, t, dims);
  nest_open(&q.n);
  return q;
}

static IrValue *norm_mean(NormNest *q, IrValue *x) {
  IrValue *s = nest_reduce(&q->n, "sum", x, q->red, q->nred);
  return q->count > 1 ? nest_bin_const(&q->n, IR_OP_DIV, s, (double)q->count) : s;
}

static IrValue *scale_and_shift(NormNest *q, IrValue *x, int scale, int shift) {
  if (q->param[scale] >= 0)
    x = nest_bin(&q->n, IR_OP_MUL, x, nest_load_as(&q->n, q->param[scale], DT_F32));
  if (q->param[shift] >= 0)
    x = nest_bin(&q->n, IR_OP_ADD, x, nest_load_as(&q->n, q->param[shift], DT_F32));
  return x;
}

void lower_SOFTMAX(IrBuilder *at, IrOp *op, IrValue **out) {
  int axis = ir_axis(ir_get_int(op, "axis", -1), op->results[0].type->rank);
  NormNest q = norm_open(at, op, 1u << axis, 0);
  Nest *n = &q.n;
  IrValue *x = nest_load_as(n, q.x, DT_F32);
  IrValue *largest = nest_reduce(n, "max", x, q.red, q.nred);
  IrValue *e = nest_un(n, IR_OP_EXP, nest_bin(n, IR_OP_SUB, x, largest));
  IrValue *sum = nest_reduce(n, "sum", e, q.red, q.nred);
  /* One reciprocal per row instead of a division per element. */
  out[0] = nest_close1(n, nest_bin(n, IR_OP_MUL, e, nest_un(n, IR_OP_RECIP, sum)));
}

void lower_BATCH_NORM(IrBuilder *at, IrOp *op, IrValue **out) {
  NormNest q = norm_open(at, op, 0, 1);
  Nest *n = &q.n;
  IrValue *raw = nest_load_as(n, q.x, DT_F32), *mean = nest_load_as(n, q.param[2], DT_F32);
  IrValue *x = nest_bin(n, IR_OP_SUB, raw, mean);
  IrValue *var = nest_load_as(n, q.param[3], DT_F32);
  IrValue *deviation =
      nest_un(n, IR_OP_SQRT, nest_bin_const(n, IR_OP_ADD, var, ir_get_float(op, "eps", 1e-5)));
  out[0] = nest_close1(n, scale_and_shift(&q, nest_bin(n, IR_OP_DIV, x, deviation), 0, 1));
}

/* Two passes over the data: the mean, then the mean square distance from it. */
void lower_LAYER_NORM(IrBuilder *at, IrOp *op, IrValue **out) {
  int rank = op->results[0].type->rank;
  int axis = ir_axis(ir_get_int(op, "axis", -1), rank);
  NormNest q = norm_open(at, op, ((1u << rank) - 1) & ~((1u << axis) - 1), axis);
  Nest *n = &q.n;
  IrValue *x = nest_load_as(n, q.x, DT_F32);
  IrValue *centered = nest_bin(n, IR_OP_SUB, x, norm_mean(&q, x));
  IrValue *var = norm_mean(&q, nest_bin(n, IR_OP_MUL, centered, centered));
  IrValue *r =
      nest_un(n, IR_OP_RSQRT, nest_bin_const(n, IR_OP_ADD, var, ir_get_float(op, "eps", 1e-5)));
  out[0] = nest_close1(n, scale_and_shift(&q, nest_bin(n, IR_OP_MUL, centered, r), 0, 1));
}

void lower_RMS_NORM(IrBuilder *at, IrOp *op, IrValue **out) {
  int last = op->results[0].type->rank - 1;
  NormNest q = norm_open(at, op, 1u << last, last);
  Nest *n = &q.n;
  IrValue *x = nest_load_as(n, q.x, DT_F32);
  IrValue *square = norm_mean(&q, nest_bin(n, IR_OP_MUL, x, x));
  IrValue *r =
      nest_un(n, IR_OP_RSQRT, nest_bin_const(n, IR_OP_ADD, square, ir_get_float(op, "eps", 1e-5)));
  out[0] = nest_close1(n, scale_and_shift(&q, nest_bin(n, IR_OP_MUL, x, r), 0, 1));
}
