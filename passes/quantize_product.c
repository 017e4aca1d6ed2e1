/* quantize, products: recognising products with constant weights, and their weight-only and bf16
 * forms. */
#include "passes/quantize_internal.h"
#include <string.h>

/* ---- recognising ---- */

static bool is_known_float(const IrValue *v) {
  if (!v->def || !dtype_is_float(v->type->dtype)) return false;
  return v->def->kind == IR_OP_WEIGHT || v->def->kind == IR_OP_CONSTANT;
}

/* The matrix behind a swap of its two axes, or NULL. */
static IrValue *behind_transpose(IrValue *v) {
  if (!ir_is(v->def, IR_OP_TRANSPOSE) || v->type->rank != 2) return NULL;
  int64_t perm[2] = {0, 1};
  ir_get_ints(v->def, "perm", perm, 2);
  return perm[0] == 1 ? ir_operand(v->def, 0) : NULL;
}

static bool match_matmul(IrOp *op, Product *p) {
  p->w = ir_operand(op, 1);
  IrValue *source = behind_transpose(p->w);
  if (source) p->w = source, p->transposed = true;
  if (!is_known_float(p->w)) return false;
  const IrType *t = p->w->type;
  bool rows = ir_get_bool(op, "transpose_b", false) != p->transposed; /* [.., n, k] */
  int64_t batch = 1, k = t->shape[t->rank - (rows ? 1 : 2)], n = t->shape[t->rank - (rows ? 2 : 1)];
  for (int i = 0; i < t->rank - 2; i++) batch *= t->shape[i];
  p->k = k;
  p->outer = rows ? batch * n : batch;
  p->inner = rows ? 1 : n;
  p->axis = batch == 1 ? op->results[0].type->rank - 1 : -1;
  if (t->rank == 2) {
    p->rank = 1;
    p->shape[0] = n;
    return true;
  }
  p->rank = t->rank;
  memcpy(p->shape, t->shape, sizeof p->shape);
  p->shape[t->rank - 2] = 1;
  p->shape[t->rank - 1] = n;
  return true;
}

static bool match_rows(IrOp *op, Product *p) {
  p->w = ir_operand(op, 1);
  if (!is_known_float(p->w)) return false;
  const IrType *t = p->w->type;
  p->outer = t->shape[0];
  p->k = ir_type_elements(t) / p->outer;
  p->inner = 1;
  p->bias = op->noperands > 2 ? ir_operand(op, 2) : NULL;
  p->shape[0] = p->outer;
  p->rank = t->rank - 1; /* [oc, 1, 1] beside [n, oc, h, w]; [n] beside [.., n] */
  for (int i = 1; i < p->rank; i++) p->shape[i] = 1;
  p->axis = op->kind == IR_OP_LINEAR ? op->results[0].type->rank - 1 : 1;
  int64_t groups = ir_get_int(op, "groups", 1);
  p->depthwise = groups > 1 && groups == p->outer && t->shape[1] == 1;
  return true;
}

/* op + constant, one value per channel, is op with a bias. */
static void absorb_bias(Product *p) {
  const IrValue *v = &p->op->results[0];
  if (p->bias || p->axis < 0 || !ir_has_one_use(v) || v->uses->op->kind != IR_OP_ADD) return;
  IrOp *add = v->uses->op;
  IrValue *bias = ir_operand(add, 1 - v->uses->index);
  int axis = p->axis - (v->type->rank - bias->type->rank);
  if (!is_known_float(bias) || add->results[0].type != v->type || axis < 0) return;
  int64_t channels = p->outer * p->inner;
  if (bias->type->shape[axis] != channels || ir_type_elements(bias->type) != channels) return;
  p->bias = bias;
  p->last = add;
}

static bool match(IrOp *op, Product *p) {
  *p = (Product){.op = op, .last = op};
  if (op->noperands < 2 || !dtype_is_float(ir_operand(op, 0)->type->dtype)) return false;
  p->x = ir_operand(op, 0);
  switch (op->kind) {
  case IR_OP_MATMUL: return match_matmul(op, p);
  case IR_OP_LINEAR:
  case IR_OP_CONV1D:
  case IR_OP_CONV2D: return match_rows(op, p);
  default: return false;
  }
}

bool product_match(IrOp *op, Product *p) {
  if (!match(op, p)) return false;
  absorb_bias(p);
  return true;
}

/* ---- rewriting ---- */

IrValue *rebuild(IrBuilder *b, const IrOp *op, int noperands, IrValue *const *operands,
                 const IrAttrInit *other) {
  IrAttrInit attrs[17];
  int n = 0;
  for (int i = 0; i < op->nattrs && n < 16; i++)
    if (!other || strcmp(op->attrs[i].name, other->name) != 0)
      attrs[n++] = (IrAttrInit){op->attrs[i].name, op->attrs[i].value};
  if (other) attrs[n++] = *other;
  IrOp *copy = ir_build(b, op->kind, noperands, operands, n, attrs);
  return copy ? ir_result(copy, 0) : NULL;
}

IrValue *rebuild_product(IrBuilder *b, const Product *p, int noperands, IrValue *const *operands) {
  if (!p->transposed) return rebuild(b, p->op, noperands, operands, NULL);
  IrAttrInit flipped = {"transpose_b",
                        ir_attr_bool(b->m, !ir_get_bool(p->op, "transpose_b", false))};
  return rebuild(b, p->op, noperands, operands, &flipped);
}

void keep_sum_wide(IrOp *op) {
  ir_set_attr(op, "wide", ir_attr_bool(ir_op_module(op), true));
}

static IrValue *channel_constant(IrBuilder *b, const Product *p, const float *values) {
  const IrType *t = ir_type_tensor(b->m, DT_F32, p->rank, p->shape);
  return ir_build_constant(b, ir_attr_data(b->m, t, values));
}

IrValue *replace_product(Product *p, IrBuilder *b, IrValue *v) {
  IrValue *old = &p->last->results[0];
  v = ir_build_cast(b, v, old->type->dtype);
  if (!v->name) v->name = old->name;
  ir_replace_all_uses(old, v);
  if (p->last != p->op) ir_op_erase(p->last);
  ir_op_erase(p->op);
  return v;
}

IrValue *as_bf16(IrBuilder *b, IrValue *x) {
  if (ir_is(x->def, IR_OP_CAST) && ir_operand(x->def, 0)->type->dtype == DT_BF16 &&
      x->type->dtype == DT_F32)
    return ir_operand(x->def, 0);
  return ir_build_cast(b, x, DT_BF16);
}

/* v + bias in f32, the bias shaped to broadcast along the channels. */
static IrValue *add_channel_bias(IrBuilder *b, const Product *p, IrValue *v) {
  if (!p->bias) return v;
  IrValue *bias = p->bias;
  const IrData *known = ir_constant_data(bias);
  if (known && known->type->dtype == DT_F32) {
    bias = ir_build_constant(
        b, ir_attr_data(b->m, ir_type_tensor(b->m, DT_F32, p->rank, p->shape), known->bytes));
  } else {
    bias = ir_build_cast(b, bias, DT_F32);
    IrAttrInit attr = {"shape", ir_attr_ints(b->m, p->shape, (size_t)p->rank)};
    if (p->rank > 1) bias = ir_result(ir_build(b, IR_OP_RESHAPE, 1, &bias, 1, &attr), 0);
  }
  return ir_build2(b, IR_OP_ADD, v, bias);
}

IrValue *weight_constant(const Product *p, QuantWeight *w) {
  if (!w->constant) {
    IrBuilder b = ir_builder_after(p->w->def); /* before every op that shares it */
    b.loc = p->w->def->loc;
    w->constant = ir_build_constant(&b, w->q);
    w->constant->name = p->w->name;
  }
  return w->constant;
}

IrValue *product_to_weight_only(PassContext *pc, Product *p, QuantWeight *w) {
  IrBuilder b = ir_builder_before(p->last);
  IrValue *operands[2] = {as_bf16(&b, p->x), weight_constant(p, w)};
  IrValue *v = rebuild_product(&b, p, 2, operands);
  v = ir_build2(&b, IR_OP_MUL, v, channel_constant(&b, p, w->scales));
  pass_count(pc, "products bf16 x s8", 1);
  return replace_product(p, &b, add_channel_bias(&b, p, v));
}

IrValue *product_to_bf16(PassContext *pc, Product *p) {
  IrBuilder b = ir_builder_before(p->last);
  IrValue *operands[2] = {as_bf16(&b, p->x), ir_build_constant(&b, constant_as_bf16(b.m, p->w))};
  operands[1]->name = p->w->name;
  keep_sum_wide(p->op);
  IrValue *v = rebuild_product(&b, p, 2, operands);
  pass_count(pc, "products bf16 x bf16", 1);
  return replace_product(p, &b, add_channel_bias(&b, p, v));
}
