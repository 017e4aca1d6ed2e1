/* What is known at compile time: data of constants and weights, initializers made once per module.
 */
#include "ir/internal.h"

#include <math.h>
#include <string.h>

/* Identifies an initializer's values: all that decides them. */
typedef struct {
  const IrType *type;
  const char *init;
  int64_t seed;
  double a, b; /* normal: mean, std; uniform: lo, hi; zeros, ones: unused; splat: the value */
} InitKey;

static void generate(const InitKey *k, void *bytes) {
  int64_t n = ir_type_elements(k->type);
  DType t = k->type->dtype;
  Rng rng;
  rng_seed(&rng, (uint64_t)k->seed);
  if (!strcmp(k->init, "zeros")) return; /* module memory starts as zeros */
  bool normal = !strcmp(k->init, "normal"), uniform = !strcmp(k->init, "uniform");
  double drawn[512];
  float block[512];
  size_t size = dtype_size(t);
  for (int64_t at = 0; at < n;) {
    size_t count = n - at < 512 ? (size_t)(n - at) : 512;
    if (normal) rng_normals(&rng, drawn, count);
    for (size_t i = 0; i < count; i++)
      block[i] = (float)(normal    ? drawn[i] * k->b + k->a
                         : uniform ? k->a + (k->b - k->a) * rng_uniform(&rng)
                                   : k->a);
    dtype_convert(t, (char *)bytes + (size_t)at * size, DT_F32, block, count);
    at += (int64_t)count;
  }
}

void data_splat(const IrType *type, double value, void *bytes) {
  size_t size = dtype_size(type->dtype), total = (size_t)ir_type_bytes(type);
  if (value == 0 && !signbit(value)) return;
  dtype_set(type->dtype, bytes, 0, value);
  for (size_t done = size; done < total; done *= 2) /* copies of what is there already */
    memcpy((char *)bytes + done, bytes, done < total - done ? done : total - done);
}

static const IrData *materialise(IrModule *m, SrcLoc loc, const InitKey *k) {
  Interned *e = NULL;
  HASH_FIND(hh, m->impl->initializers, k, sizeof *k, e);
  if (e) return e->thing;
  void *bytes;
  const IrAttr *a = attr_data_at(m, loc, k->type, &bytes);
  if (!strcmp(k->init, "splat"))
    data_splat(k->type, k->a, bytes);
  else
    generate(k, bytes);
  e = ARENA_NEW(m->arena, Interned);
  e->thing = a->data;
  HASH_ADD_KEYPTR(hh, m->impl->initializers, arena_copy(m->arena, k, sizeof *k), sizeof *k, e);
  return e->thing;
}

static bool number_of(const IrAttr *a, double *out) {
  if (!a || (a->kind != IR_ATTR_INT && a->kind != IR_ATTR_FLOAT)) return false;
  *out = a->kind == IR_ATTR_INT ? (double)a->i : a->f;
  return true;
}

/* The initializer of a weight as a key; false when it has none. */
static bool weight_key(const IrOp *op, InitKey *k) {
  const char *init = ir_get_str(op, "init", NULL);
  if (!init) return false;
  memset(k, 0, sizeof *k);
  k->type = op->results[0].type;
  k->init = ir_str(op->module, init);
  if (!strcmp(init, "normal")) {
    k->a = ir_get_float(op, "mean", 0);
    k->b = ir_get_float(op, "std", 1);
  } else if (!strcmp(init, "uniform")) {
    k->a = ir_get_float(op, "lo", 0);
    k->b = ir_get_float(op, "hi", 1);
  } else {
    k->a = !strcmp(init, "ones");
    return true;
  }
  k->seed = ir_get_int(op, "seed", 0);
  return true;
}

const IrData *ir_constant_data(const IrValue *v) {
  const IrOp *op = v->def;
  if (!op || (op->kind != IR_OP_CONSTANT && op->kind != IR_OP_WEIGHT)) return NULL;
  const IrAttr *data = ir_attr(op, "data");
  if (data && data->kind == IR_ATTR_DATA) return data->data;
  InitKey k;
  if (op->kind == IR_OP_WEIGHT)
    return weight_key(op, &k) ? materialise(op->module, op->loc, &k) : NULL;
  memset(&k, 0, sizeof k);
  if (!number_of(ir_attr(op, "value"), &k.a)) return NULL;
  k.type = v->type;
  k.init = ir_str(op->module, "splat");
  return materialise(op->module, op->loc, &k);
}

bool ir_constant_splat(const IrValue *v, double *out) {
  const IrOp *op = v->def;
  if (!op || (op->kind != IR_OP_CONSTANT && op->kind != IR_OP_WEIGHT)) return false;
  const IrAttr *data = ir_attr(op, "data");
  if (op->kind == IR_OP_CONSTANT && !data) {
    uint64_t element = 0; /* through the element type: 0.1 as bf16 is another number */
    if (!number_of(ir_attr(op, "value"), out)) return false;
    dtype_set(v->type->dtype, &element, 0, *out);
    *out = dtype_get(v->type->dtype, &element, 0);
    return true;
  }
  if (!data) {
    const char *init = ir_get_str(op, "init", "");
    *out = !strcmp(init, "ones");
    return *out != 0 || !strcmp(init, "zeros");
  }
  if (data->kind != IR_ATTR_DATA) return false;
  /* Comparing the bytes with themselves one element on stops at the first difference. */
  const IrData *d = data->data;
  const char *bytes = d->bytes;
  size_t size = dtype_size(d->type->dtype), total = (size_t)ir_type_bytes(d->type);
  if (total > size && memcmp(bytes, bytes + size, total - size)) return false;
  *out = dtype_get(d->type->dtype, bytes, 0);
  return true;
}
