/* quantize, static: 8-bit activations with one scale and zero point per tensor (Jacob et al.,
 * "Quantization and Training of Neural Networks for Efficient Integer-Arithmetic-Only Inference",
 * 2018). */
#include "passes/lower_internal.h"
#include "passes/quantize_internal.h"
#include <math.h>

/* Zero is always representable: padding and clamps at zero stay exact. */
QuantRange range_of(float lo, float hi) {
  if (!(lo < 0)) lo = 0;
  if (!(hi > 0)) hi = 0;
  QuantRange r = {.scale = (float)(((double)hi - lo) / 255.0), .zero_point = 0};
  if (!(r.scale >= 1.17549435e-38f)) return (QuantRange){.scale = 1.0f};
  double zp = -128.0 - lo / (double)r.scale;
  r.zero_point = (int)(zp < -128 ? -128 : zp > 127 ? 127 : nearbyint(zp));
  return r;
}

static int64_t saturate_s32(double v) {
  return v < INT32_MIN ? INT32_MIN : v > INT32_MAX ? INT32_MAX : (int64_t)v;
}

static double bias_steps(const IrData *bias, int64_t c, const QuantWeight *w, QuantRange range) {
  if (!bias) return 0;
  double own = dtype_get(bias->type->dtype, bias->bytes, (size_t)c);
  return nearbyint(own / ((double)range.scale * (double)w->scales[c]));
}

/* The product's bias when it is known and in s32 leaves room for the sum; where weights are tiny
 * beside it, or it is infinite, it does not. */
static const IrData *integer_bias(const Product *p, const QuantWeight *w, QuantRange range) {
  const IrData *bias = p->bias ? ir_constant_data(p->bias) : NULL;
  for (int64_t c = 0; bias && c < p->outer * p->inner; c++)
    if (!(fabs(bias_steps(bias, c, w, range)) <= INT32_MAX / 2)) return NULL;
  return bias;
}

/* round(bias / (sx * sw)) - zero point * sum of the weights, per channel: what the sum lacks to be
 * that of the shifted activations. bias: may be NULL. */
static const IrAttr *static_bias(PassContext *pc, const Product *p, const QuantWeight *w,
                                 QuantRange range, const IrData *bias) {
  int64_t channels = p->outer * p->inner;
  int64_t *sums = ARENA_ARRAY(pc->scratch, int64_t, channels);
  weight_channel_sums(p, w->q->data->bytes, sums);
  void *bytes;
  const IrType *t = ir_type_tensor(pc->module, DT_S32, 1, &channels);
  const IrAttr *attr = ir_attr_data_new(pc->module, t, &bytes);
  int32_t *out = bytes;
  for (int64_t c = 0; c < channels; c++) {
    double steps = bias_steps(bias, c, w, range);
    out[c] = (int32_t)saturate_s32(steps - (double)range.zero_point * (double)sums[c]);
  }
  return attr;
}

static double quantized(double x, QuantRange r) {
  double q = nearbyint((double)((float)x / r.scale)) + (double)r.zero_point;
  return q < -128 ? -128 : q > 127 ? 127 : q;
}

/* conv1d pads with 0, which its input's zero point stands for; it has no other value to pad with,
 * so its border is added before (and becomes padding again when kernels are fused). */
static IrValue *padded_conv1d(IrBuilder *b, const Product *p, IrValue **operands, int zero_point) {
  int64_t before, after;
  conv1d_pads(p->op, &before, &after);
  const IrAttr *pairs[3] = {ir_attr_ints(b->m, (int64_t[]){0, 0}, 2), NULL,
                            ir_attr_ints(b->m, (int64_t[]){before, after}, 2)};
  pairs[1] = pairs[0];
  IrAttrInit attrs[2] = {{"pads", ir_attr_array(b->m, pairs, 3)},
                         {"value", ir_attr_float(b->m, zero_point)}};
  if (before > 0 || after > 0)
    operands[0] = ir_result(ir_build(b, IR_OP_PAD, 1, operands, 2, attrs), 0);
  IrAttrInit none = {"pad", ir_attr_int(b->m, 0)};
  return rebuild(b, p->op, 3, operands, &none);
}

/* x * w + bias in s32; matmul has no bias operand. */
static IrValue *integer_product(IrBuilder *b, const Product *p, IrValue *xq, IrValue *wq,
                                IrValue *bias, QuantRange range) {
  IrValue *operands[3] = {xq, wq, bias};
  double outside = quantized(ir_get_float(p->op, "pad_value", 0), range);
  IrAttrInit border = {"pad_value", ir_attr_float(b->m, outside)};
  switch (p->op->kind) {
  case IR_OP_CONV2D: return rebuild(b, p->op, 3, operands, &border);
  case IR_OP_CONV1D: return padded_conv1d(b, p, operands, range.zero_point);
  case IR_OP_MATMUL: return ir_build2(b, IR_OP_ADD, rebuild_product(b, p, 2, operands), bias);
  default: return rebuild(b, p->op, 3, operands, NULL);
  }
}

IrValue *product_to_static(PassContext *pc, Product *p, QuantWeight *w, IrValue *xq,
                           QuantRange range) {
  IrBuilder b = ir_builder_before(p->last);
  int64_t channels = p->outer * p->inner;
  const IrData *known = integer_bias(p, w, range);
  IrValue *wq = weight_constant(p, w);
  IrValue *bias = ir_build_constant(&b, static_bias(pc, p, w, range, known));
  IrValue *acc = integer_product(&b, p, xq, wq, bias, range);
  float *scales = ARENA_ARRAY(pc->scratch, float, channels);
  for (int64_t c = 0; c < channels; c++) scales[c] = range.scale * w->scales[c];
  const IrType *t = ir_type_tensor(b.m, DT_F32, 1, &channels);
  IrValue *operands[2] = {acc, ir_build_constant(&b, ir_attr_data(b.m, t, scales))};
  IrAttrInit attr = {"axis", ir_attr_int(b.m, p->axis)};
  IrValue *v = ir_result(ir_build(&b, IR_OP_DEQUANTIZE, 2, operands, 1, &attr), 0);
  if (p->bias && !known) { /* added after */
    IrValue *extra = ir_build_cast(&b, p->bias, DT_F32);
    IrAttrInit shape = {"shape", ir_attr_ints(b.m, p->shape, (size_t)p->rank)};
    if (p->rank > 1) extra = ir_result(ir_build(&b, IR_OP_RESHAPE, 1, &extra, 1, &shape), 0);
    v = ir_build2(&b, IR_OP_ADD, v, extra);
  }
  pass_count(pc, "products s8 x s8", 1);
  return replace_product(p, &b, v);
}

/* ---- settling ---- */

static bool commutes_with_quantize(const IrOp *op) {
  if (!op || op->nresults != 1) return false;
  return ir_has_trait(op, IR_DATA_MOVEMENT) || op->kind == IR_OP_MAX_POOL;
}

/* quantize(move(x, ...)) to move(quantize(x), ...); rounding is monotone, so max pooling is the
 * same either way. */
static bool hoist_once(PassContext *pc, IrOp *q) {
  IrValue *x = ir_operand(q, 0);
  if (q->noperands > 1 || !commutes_with_quantize(x->def) || !ir_has_one_use(x)) return false;
  IrOp *move = x->def;
  IrBuilder b = ir_builder_before(move);
  IrValue **operands = ARENA_ARRAY(pc->scratch, IrValue *, move->noperands);
  for (int i = 0; i < move->noperands; i++) {
    IrValue *in = ir_operand(move, i);
    operands[i] = rebuild(&b, q, 1, &in, NULL);
  }
  IrValue *moved = rebuild(&b, move, move->noperands, operands, NULL);
  moved->name = move->results[0].name;
  ir_replace_all_uses(&q->results[0], moved);
  ir_op_erase(q);
  ir_op_erase(move);
  return true;
}

/* Bounds of a chain of clamps, in real numbers. */
typedef struct {
  double lo, hi;
} Clamp;

static bool clamp_of(const IrOp *op, Clamp *c) {
  Clamp own;
  switch (op->kind) {
  case IR_OP_RELU: own = (Clamp){0, INFINITY}; break;
  case IR_OP_RELU6: own = (Clamp){0, 6}; break;
  case IR_OP_CLIP:
    own = (Clamp){ir_get_float(op, "lo", -INFINITY), ir_get_float(op, "hi", INFINITY)};
    break;
  default: return false;
  }
  /* Walking from the last clamp to the first: an earlier one narrows what the later ones leave. */
  double lo = own.lo > c->lo ? own.lo : c->lo, hi = own.hi < c->hi ? own.hi : c->hi;
  if (lo > hi) return false;
  *c = (Clamp){lo, hi};
  return true;
}

/* quantize(clamp*(dequantize(acc, scales))) to requantize(acc): exact when the upper clamp lies at
 * or above the largest quantized value, for then saturation is the clamp. */
static bool join_requantize(PassContext *pc, IrOp *q) {
  Clamp c = {-INFINITY, INFINITY};
  IrValue *v = ir_operand(q, 0);
  while (v->def && ir_has_one_use(v) && v->def->noperands == 1 && clamp_of(v->def, &c))
    v = ir_operand(v->def, 0);
  IrOp *d = v->def;
  if (!ir_is(d, IR_OP_DEQUANTIZE) || d->noperands != 2 || !ir_has_one_use(v) || q->noperands != 1)
    return false;
  const IrData *scales = ir_constant_data(ir_operand(d, 1));
  if (!scales || ir_get_int(d, "zero_point", 0) != 0) return false;
  QuantRange range = {(float)ir_get_float(q, "scale", 1), (int)ir_get_int(q, "zero_point", 0)};
  if (isfinite(c.hi) && quantized(c.hi, range) < 127) return false;
  int64_t min = isfinite(c.lo) ? (int64_t)quantized(c.lo, range) : -128;

  int64_t channels = ir_type_elements(scales->type);
  float *m = ARENA_ARRAY(pc->scratch, float, channels);
  for (int64_t i = 0; i < channels; i++)
    m[i] = (float)(dtype_get(scales->type->dtype, scales->bytes, (size_t)i) / (double)range.scale);
  IrBuilder b = ir_builder_before(q);
  b.loc = d->loc;
  IrValue *operands[2] = {ir_operand(d, 0),
                          ir_build_constant(&b, ir_attr_data(b.m, scales->type, m))};
  IrAttrInit attrs[3] = {{"axis", ir_attr_int(b.m, ir_get_int(d, "axis", 1))},
                         {"zero_point", ir_attr_int(b.m, range.zero_point)},
                         {"min", ir_attr_int(b.m, min)}};
  IrValue *r = ir_result(ir_build(&b, IR_OP_REQUANTIZE, 2, operands, 3, attrs), 0);
  r->name = ir_operand(q, 0)->name;
  IrValue *dead = ir_operand(q, 0);
  ir_replace_all_uses(&q->results[0], r);
  ir_op_erase(q);
  while (dead->def && !dead->uses) {
    IrOp *op = dead->def;
    dead = ir_operand(op, 0);
    ir_op_erase(op);
    if (op == d) break;
  }
  pass_count(pc, "requantized directly", 1);
  return true;
}

/* A scale of our own choice can as well be multiplied by: a division is several passes through the
 * special-function unit for every element. */
static void multiply(PassContext *pc, IrOp *q) {
  float inverse = (float)(1 / ir_get_float(q, "scale", 1));
  if (!isfinite(inverse)) return;
  IrBuilder b = ir_builder_before(q);
  b.loc = q->loc;
  IrAttrInit attrs[2] = {{"multiplier", ir_attr_float(b.m, (double)inverse)},
                         {"zero_point", ir_attr_int(b.m, ir_get_int(q, "zero_point", 0))}};
  IrValue *x = ir_operand(q, 0), *r = ir_result(ir_build(&b, IR_OP_REQUANTIZE, 1, &x, 2, attrs), 0);
  r->name = q->results[0].name;
  ir_replace_all_uses(&q->results[0], r);
  ir_op_erase(q);
  pass_count(pc, "divisions multiplied", 1);
}

void settle_quantize(PassContext *pc, IrFunc *f, Facts *k) {
  /* Backwards, so that hoisted ops, which land before, are met again. */
  for (IrOp *op = f->body->last, *prev; op; op = prev) {
    prev = op->prev;
    if (op->kind != IR_OP_QUANTIZE || is_own(k, op)) continue;
    IrOp *anchor = op->next;
    if (hoist_once(pc, op)) prev = anchor ? anchor->prev : f->body->last;
  }
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    if (op->kind != IR_OP_QUANTIZE || is_own(k, op)) continue;
    if (!join_requantize(pc, op) && op->noperands == 1) multiply(pc, op);
  }
}
