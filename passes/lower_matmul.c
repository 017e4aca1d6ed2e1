/* lower: matrix products and convolutions. Both are reduce{sum}(mul(x, w)) with the operands
 * converted to the accumulator's type, the form the scheduler recognises as work for the matrix
 * unit; only the maps differ. */
#include "passes/lower_internal.h"

/* sum over red of x * w, in s32 for integers and f32 otherwise. */
static IrValue *contract(Nest *n, int x, int w, const int *red, int nred) {
  bool ints = !dtype_is_float(n->slots[x].dtype) && !dtype_is_float(n->slots[w].dtype);
  DType acc = ints ? DT_S32 : DT_F32;
  IrValue *a = nest_load_as(n, x, acc), *b = nest_load_as(n, w, acc);
  IrValue *product = nest_bin(n, IR_OP_MUL, a, b);
  return nest_reduce(n, "sum", product, red, nred);
}

static IrValue *add_bias(Nest *n, IrValue *acc, int bias) {
  if (bias < 0) return acc;
  IrValue *b = nest_load(n, bias);
  if (b->type->dtype != acc->type->dtype) {
    acc = nest_cast(n, acc, DT_F32);
    b = nest_cast(n, b, DT_F32);
  }
  return nest_bin(n, IR_OP_ADD, acc, b);
}

/* ---- matmul, linear ---- */

/* Leading axes of t, broadcast against the result's leading axes along dims. */
static void map_batch(IrMap *map, const IrType *t, int nbatch, int result_nbatch, const int *dims) {
  for (int i = 0; i < nbatch; i++)
    if (t->shape[i] != 1) nest_axis(map, i, dims[result_nbatch - nbatch + i], 1);
}

void lower_MATMUL(IrBuilder *at, IrOp *op, IrValue **out) {
  static const char *const batch_names[IR_MAX_RANK] = {"b0", "b1", "b2", "b3",
                                                       "b4", "b5", "b6", "b7"};
  IrValue *a = ir_operand(op, 0), *b = ir_operand(op, 1);
  const IrType *ta = a->type, *tb = b->type, *t = op->results[0].type;
  bool vec_a = ta->rank == 1, vec_b = tb->rank == 1;
  int na = vec_a ? 0 : ta->rank - 2, nb = vec_b ? 0 : tb->rank - 2;
  int nbatch = na > nb ? na : nb;
  bool swap_a = !vec_a && ir_get_bool(op, "transpose_a", false);
  bool swap_b = !vec_b && ir_get_bool(op, "transpose_b", false);
  int am = na + swap_a, ak = vec_a ? 0 : na + !swap_a;
  int bk = vec_b ? 0 : nb + swap_b, bn = nb + !swap_b;

  Nest n = nest_begin(at);
  int dims[IR_MAX_RANK], rank = 0;
  for (; rank < nbatch; rank++) dims[rank] = nest_dim(&n, batch_names[rank], t->shape[rank]);
  int m = vec_a ? NEST_NO_DIM : (dims[rank++] = nest_dim(&n, "m", ta->shape[am]));
  int col = vec_b ? NEST_NO_DIM : (dims[rank++] = nest_dim(&n, "n", tb->shape[bn]));
  int k = nest_dim(&n, "k", ta->shape[ak]);

  IrMap map_a = ir_map_zero(ta->rank), map_b = ir_map_zero(tb->rank);
  map_batch(&map_a, ta, na, nbatch, dims);
  map_batch(&map_b, tb, nb, nbatch, dims);
  nest_axis(&map_a, ak, k, 1);
  nest_axis(&map_b, bk, k, 1);
  if (!vec_a) nest_axis(&map_a, am, m, 1);
  if (!vec_b) nest_axis(&map_b, bn, col, 1);
  int x = nest_in(&n, a, &map_a, NULL), w = nest_in(&n, b, &map_b, NULL);
  nest_out_dims(&n, t, dims);
  nest_open(&n);
  out[0] = nest_close1(&n, contract(&n, x, w, &k, 1));
}

void lower_LINEAR(IrBuilder *at, IrOp *op, IrValue **out) {
  static const char *const row_names[IR_MAX_RANK] = {"m", "m1", "m2", "m3", "m4", "m5", "m6", "m7"};
  IrValue *x = ir_operand(op, 0), *w = ir_operand(op, 1);
  const IrType *t = op->results[0].type;
  Nest n = nest_begin(at);
  int dims[IR_MAX_RANK], last = t->rank - 1;
  for (int i = 0; i < last; i++) dims[i] = nest_dim(&n, row_names[last - 1 - i], t->shape[i]);
  int col = dims[last] = nest_dim(&n, "n", t->shape[last]);
  int k = nest_dim(&n, "k", x->type->shape[last]);
  IrMap map_x = nest_map_dims(last, dims), map_w = ir_map_zero(2), map_bias = ir_map_zero(1);
  map_x.rank = t->rank;
  map_x.axis[last] = ir_map_zero(1).axis[0];
  nest_axis(&map_x, last, k, 1);
  nest_axis(&map_w, 0, col, 1);
  nest_axis(&map_w, 1, k, 1);
  nest_axis(&map_bias, 0, col, 1);
  int sx = nest_in(&n, x, &map_x, NULL), sw = nest_in(&n, w, &map_w, NULL);
  int bias = op->noperands > 2 ? nest_in_or_splat(&n, ir_operand(op, 2), &map_bias) : -1;
  nest_out_dims(&n, t, dims);
  nest_open(&n);
  out[0] = nest_close1(&n, add_bias(&n, contract(&n, sx, sw, &k, 1), bias));
}

/* ---- convolution ---- */

/* x [n, c, spatial...], w [out, in/groups, spatial...]; one or two spatial axes. */
typedef struct {
  int nspatial;
  int64_t groups, in_per_group, out_per_group;
  int64_t stride[2], dilation[2], before[2], after[2];
  double pad_value;
} Conv;

typedef struct {
  int n, g, oc, ic, o[2], k[2];
} ConvDims;

static ConvDims conv_dims(Nest *n, const Conv *c, const IrType *w, const IrType *t) {
  static const char *const out_names[2] = {"oh", "ow"}, *const tap_names[2] = {"kh", "kw"};
  ConvDims d;
  int skip = 2 - c->nspatial; /* a single spatial axis is called ow, kw */
  bool depthwise = c->in_per_group == 1 && c->out_per_group == 1;
  d.n = nest_dim(n, "n", t->shape[0]);
  d.g = nest_dim(n, depthwise ? "c" : "g", c->groups);
  d.oc = nest_dim(n, "oc", c->out_per_group);
  for (int i = 0; i < c->nspatial; i++) d.o[i] = nest_dim(n, out_names[skip + i], t->shape[2 + i]);
  for (int i = 0; i < c->nspatial; i++) d.k[i] = nest_dim(n, tap_names[skip + i], w->shape[2 + i]);
  d.ic = nest_dim(n, "ic", c->in_per_group);
  return d;
}

static IrMap conv_input_map(const Conv *c, const ConvDims *d) {
  IrMap m = ir_map_zero(2 + c->nspatial);
  nest_axis(&m, 0, d->n, 1);
  nest_axis(&m, 1, d->g, c->in_per_group);
  nest_axis(&m, 1, d->ic, 1);
  for (int i = 0; i < c->nspatial; i++) {
    nest_axis(&m, 2 + i, d->o[i], c->stride[i]);
    nest_axis(&m, 2 + i, d->k[i], c->dilation[i]);
    m.axis[2 + i].cst = -c->before[i];
  }
  return m;
}

static IrMap conv_weight_map(const Conv *c, const ConvDims *d) {
  IrMap m = ir_map_zero(2 + c->nspatial);
  nest_axis(&m, 0, d->g, c->out_per_group);
  nest_axis(&m, 0, d->oc, 1);
  nest_axis(&m, 1, d->ic, 1);
  for (int i = 0; i < c->nspatial; i++) nest_axis(&m, 2 + i, d->k[i], 1);
  return m;
}

/* A result axis names one dimension, so groups of several channels are written to [n, g, oc,
 * spatial...]. */
static const IrType *conv_nest_type(IrModule *m, const Conv *c, const IrType *t, const ConvDims *d,
                                    int *dims) {
  int64_t shape[IR_MAX_RANK];
  int rank = 0;
  bool split = c->groups > 1 && c->out_per_group > 1;
  dims[rank] = d->n, shape[rank++] = t->shape[0];
  if (split || c->groups > 1) dims[rank] = d->g, shape[rank++] = c->groups;
  if (split || c->groups == 1) dims[rank] = d->oc, shape[rank++] = c->out_per_group;
  for (int i = 0; i < c->nspatial; i++) dims[rank] = d->o[i], shape[rank++] = t->shape[2 + i];
  return ir_type_tensor(m, t->dtype, rank, shape);
}

static IrValue *lower_conv(IrBuilder *at, IrOp *op, const Conv *c) {
  IrValue *x = ir_operand(op, 0), *w = ir_operand(op, 1);
  const IrType *t = op->results[0].type;
  Nest n = nest_begin(at);
  ConvDims d = conv_dims(&n, c, w->type, t);
  IrMap map_x = conv_input_map(c, &d), map_w = conv_weight_map(c, &d), map_b = ir_map_zero(1);
  nest_axis(&map_b, 0, d.g, c->out_per_group);
  nest_axis(&map_b, 0, d.oc, 1);
  bool padded = false;
  for (int i = 0; i < c->nspatial; i++) padded |= c->before[i] > 0 || c->after[i] > 0;
  int sx = nest_in(&n, x, &map_x, padded ? ir_attr_float(at->m, c->pad_value) : NULL);
  int sw = nest_in(&n, w, &map_w, NULL);
  int bias = op->noperands > 2 ? nest_in_or_splat(&n, ir_operand(op, 2), &map_b) : -1;
  int dims[IR_MAX_RANK];
  const IrType *nest_type = conv_nest_type(at->m, c, t, &d, dims);
  nest_out_dims(&n, nest_type, dims);
  nest_open(&n);
  int red[3] = {d.ic, d.k[0], c->nspatial == 2 ? d.k[1] : NEST_NO_DIM};
  IrValue *r = nest_close1(&n, add_bias(&n, contract(&n, sx, sw, red, 3), bias));
  return lower_reshape(at, r, t);
}

static Conv conv_of(const IrOp *op) {
  const IrType *w = ir_operand(op, 1)->type;
  Conv c = {.nspatial = w->rank - 2, .groups = ir_get_int(op, "groups", 1)};
  c.in_per_group = w->shape[1];
  c.out_per_group = w->shape[0] / c.groups;
  c.pad_value = ir_get_float(op, "pad_value", 0);
  return c;
}

void lower_CONV2D(IrBuilder *at, IrOp *op, IrValue **out) {
  const IrType *x = ir_operand(op, 0)->type, *w = ir_operand(op, 1)->type;
  Conv c = conv_of(op);
  int64_t tlbr[4] = {0};
  ir_resolve_pads(op, x->shape[2], x->shape[3], w->shape[2], w->shape[3], tlbr);
  attr_pair(op, "stride", 1, c.stride);
  attr_pair(op, "dilation", 1, c.dilation);
  for (int i = 0; i < 2; i++) c.before[i] = tlbr[i], c.after[i] = tlbr[2 + i];
  out[0] = lower_conv(at, op, &c);
}

void lower_CONV1D(IrBuilder *at, IrOp *op, IrValue **out) {
  Conv c = conv_of(op);
  c.stride[0] = ir_get_int(op, "stride", 1);
  c.dilation[0] = ir_get_int(op, "dilation", 1);
  conv1d_pads(op, &c.before[0], &c.after[0]);
  out[0] = lower_conv(at, op, &c);
}

/* Expanded into plain ops before lowering starts. */
void lower_CONV_TRANSPOSE2D(IrBuilder *at, IrOp *op, IrValue **out) {
  (void)at, (void)op, (void)out;
}
