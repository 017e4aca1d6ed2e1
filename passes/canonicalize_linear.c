/* canonicalize: matrix products, convolutions and what stands around them. */
#include "passes/canonicalize_internal.h"
#include <math.h>

/* ---- transposes ---- */

/* v = transpose(source) of the last two axes alone. */
static IrValue *swapped_source(IrValue *v) {
  if (!ir_is(v->def, IR_OP_TRANSPOSE)) return NULL;
  int rank = v->type->rank;
  int64_t perm[IR_MAX_RANK] = {0};
  ir_get_ints(v->def, "perm", perm, IR_MAX_RANK);
  for (int i = 0; i < rank - 2; i++)
    if (perm[i] != i) return NULL;
  return rank >= 2 && perm[rank - 1] == rank - 2 ? ir_operand(v->def, 0) : NULL;
}

bool absorb_transpose(IrOp *op) {
  static const char *const flags[2] = {"transpose_a", "transpose_b"};
  if (op->kind != IR_OP_MATMUL) return false;
  bool changed = false;
  for (int i = 0; i < 2; i++) {
    IrValue *source = swapped_source(ir_operand(op, i));
    if (!source) continue;
    ir_set_attr(op, flags[i], ir_attr_bool(ir_op_module(op), !ir_get_bool(op, flags[i], false)));
    ir_set_operand(op, i, source);
    changed = true;
  }
  return changed;
}

/* ---- batch normalisation ---- */

/* y = x * gain + offset per channel. */
typedef struct {
  int64_t n;
  double *gain, *offset;
} Affine;

/* Of a batch_norm whose parameters are known, gains and offsets finite: (x - mean) * inf is another
 * thing than x * inf - mean * inf. gain is released with mem_free. */
static bool batch_norm_affine(const IrOp *op, Affine *a) {
  const IrData *d[4]; /* scale, shift, mean, var */
  for (int i = 0; i < 4; i++) {
    d[i] = ir_constant_data(ir_operand(op, i + 1));
    if (!d[i]) return false;
  }
  a->n = ir_operand(op, 0)->type->shape[1];
  a->gain = mem_alloc(sizeof(double) * 2 * (size_t)a->n);
  a->offset = a->gain + a->n;
  double eps = ir_get_float(op, "eps", 1e-5);
  bool finite = true;
  for (size_t i = 0; i < (size_t)a->n; i++) {
    double v[4];
    for (int j = 0; j < 4; j++) v[j] = dtype_get(d[j]->type->dtype, d[j]->bytes, i);
    a->gain[i] = v[0] / sqrt(v[3] + eps);
    a->offset[i] = v[1] - v[2] * a->gain[i];
    finite = finite && isfinite((float)a->gain[i]) && isfinite((float)a->offset[i]);
  }
  if (!finite) mem_free(a->gain);
  return finite;
}

static IrValue *f32_constant(IrBuilder *b, int rank, const int64_t *shape, float **values) {
  void *bytes;
  const IrAttr *attr = ir_attr_data_new(b->m, ir_type_tensor(b->m, DT_F32, rank, shape), &bytes);
  *values = bytes;
  return ir_build_constant(b, attr);
}

/* The convolution or linear op whose output channels are op's, with known f32 weights and bias,
 * read by op alone. */
static IrOp *scalable_product(const IrOp *op) {
  IrValue *x = ir_operand(op, 0);
  IrOp *p = x->def;
  if (!p || !ir_has_one_use(x) || x->type->dtype != DT_F32) return NULL;
  bool conv = p->kind == IR_OP_CONV2D || p->kind == IR_OP_CONV1D;
  if (!conv && !(p->kind == IR_OP_LINEAR && x->type->rank == 2)) return NULL;
  if (ir_operand(p, 1)->type->dtype != DT_F32 || !ir_constant_data(ir_operand(p, 1))) return NULL;
  if (p->noperands > 2 && !ir_constant_data(ir_operand(p, 2))) return NULL;
  return p;
}

static IrValue *scaled_weights(IrBuilder *b, IrValue *w, const Affine *a) {
  const IrData *d = ir_constant_data(w);
  float *values;
  IrValue *v = f32_constant(b, d->type->rank, d->type->shape, &values);
  int64_t per_channel = ir_type_elements(d->type) / a->n;
  for (int64_t c = 0; c < a->n; c++)
    for (int64_t i = c * per_channel; i < (c + 1) * per_channel; i++)
      values[i] = (float)(dtype_get(DT_F32, d->bytes, (size_t)i) * a->gain[c]);
  v->name = w->name;
  return v;
}

static IrValue *scaled_bias(IrBuilder *b, const IrOp *p, const Affine *a) {
  const IrData *d = p->noperands > 2 ? ir_constant_data(ir_operand(p, 2)) : NULL;
  float *values;
  IrValue *v = f32_constant(b, 1, &a->n, &values);
  for (int64_t c = 0; c < a->n; c++) {
    double bias = d ? dtype_get(d->type->dtype, d->bytes, (size_t)c) : 0;
    values[c] = (float)(bias * a->gain[c] + a->offset[c]);
  }
  return v;
}

bool absorb_batch_norm(IrOp *op) {
  Affine a;
  if (op->kind != IR_OP_BATCH_NORM) return false;
  IrOp *p = scalable_product(op);
  if (!p || !batch_norm_affine(op, &a)) return false;
  IrBuilder b = ir_builder_before(op);
  b.loc = p->loc;
  IrValue *operands[3] = {ir_operand(p, 0), scaled_weights(&b, ir_operand(p, 1), &a),
                          scaled_bias(&b, p, &a)};
  mem_free(a.gain);
  IrAttrInit attrs[16];
  int n = 0;
  for (; n < p->nattrs && n < 16; n++) attrs[n] = (IrAttrInit){p->attrs[n].name, p->attrs[n].value};
  return replace_with(op, ir_result(ir_build(&b, p->kind, 3, operands, n, attrs), 0));
}

/* Elsewhere one multiplication and one addition per element. */
bool expand_batch_norm(IrOp *op) {
  Affine a;
  if (op->kind != IR_OP_BATCH_NORM || op->results[0].type->dtype != DT_F32) return false;
  if (!batch_norm_affine(op, &a)) return false;
  IrBuilder b = ir_builder_before(op);
  const IrType *t = op->results[0].type;
  int64_t shape[IR_MAX_RANK] = {a.n, 1, 1, 1, 1, 1, 1, 1};
  float *gain, *offset;
  IrValue *g = f32_constant(&b, t->rank - 1, shape, &gain);
  IrValue *o = f32_constant(&b, t->rank - 1, shape, &offset);
  for (int64_t c = 0; c < a.n; c++) {
    gain[c] = (float)a.gain[c];
    offset[c] = (float)a.offset[c];
  }
  mem_free(a.gain);
  IrValue *scaled = ir_build2(&b, IR_OP_MUL, ir_operand(op, 0), g);
  IrValue *moved = ir_build2(&b, IR_OP_ADD, scaled, o);
  ir_copy_hints(scaled->def, op);
  ir_copy_hints(moved->def, op);
  return replace_with(op, moved);
}
