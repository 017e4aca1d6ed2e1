/* Shape rules of quantization, constants and state, kernel bodies and the program level. */
#include "ir/shape.h"

#include <math.h>
#include <string.h>

/* ---- quantization ---- */

/* The per-channel operand 1, when there is one, against axis; the per-tensor number `scalar`
 * otherwise. */
static bool need_scales(Shape *s, const char *scalar) {
  const IrType *x = s->x[0];
  int64_t axis = ir_get_int(s->op, "axis", -1);
  double scale = ir_get_float(s->op, scalar, 1);
  if (s->n < 2) {
    if (scale > 0 && isfinite(scale)) return true;
    return shape_fail(s, "E-attr", "%s = %g must be a finite number above 0", scalar, scale);
  }
  if (axis < 0 || axis >= x->rank)
    return shape_fail(s, "E-attr",
                      "axis = %lld must be the axis of %s that %s goes along; use 0..%d",
                      (long long)axis, type_text(s, x), operand_name(s, 1), x->rank - 1);
  if (s->x[1]->dtype != DT_F32)
    return shape_fail(s, "E-dtype", "%s must be f32, found %s", operand_name(s, 1),
                      type_text(s, s->x[1]));
  return need_vector(s, 1, x->shape[axis], "element of that axis of x");
}

static bool need_s8_range(Shape *s, const char *name) {
  int64_t v = ir_get_int(s->op, name, 0);
  if (v >= -128 && v <= 127) return true;
  return shape_fail(s, "E-attr", "%s = %lld must be in -128..127", name, (long long)v);
}

bool shape_quantize(Shape *s) {
  return need_float(s, s->x[0], "x") && need_scales(s, "scale") && need_s8_range(s, "zero_point") &&
         result_like(s, s->x[0], DT_S8);
}

bool shape_dequantize(Shape *s) {
  if (dtype_is_float(s->x[0]->dtype))
    return shape_fail(s, "E-dtype", "x is %s, expected s8 or s32", type_text(s, s->x[0]));
  return need_scales(s, "scale") && result_like(s, s->x[0], DT_F32);
}

bool shape_requantize(Shape *s) {
  if (s->x[0]->dtype == DT_S8)
    return shape_fail(s, "E-dtype", "x is %s, expected s32 sums or reals", type_text(s, s->x[0]));
  return need_scales(s, "multiplier") && need_s8_range(s, "zero_point") &&
         need_s8_range(s, "min") && result_like(s, s->x[0], DT_S8);
}

#define MAX_INITIALIZER_BYTES (1ll << 35) /* made in memory, so it should have a chance to fit */

/* ---- constants and state ---- */

static bool machine_tensor(Shape *s, const IrType *t, const char *what) {
  if (t->kind == IR_TYPE_TENSOR && t->dtype < DT_MACHINE_COUNT) return true;
  return shape_fail(s, "E-dtype", "%s is %s; expected a tensor of s8, bf16, f32 or s32", what,
                    type_text(s, t));
}

bool shape_weight(Shape *s) {
  static const char *const inits[] = {"normal", "uniform", "zeros", "ones"};
  const IrAttr *data = ir_attr(s->op, "data"), *type = ir_attr(s->op, "type");
  const char *init = ir_get_str(s->op, "init", NULL);
  if (!data == !init)
    return shape_fail(s, "E-attr", "needs either data or init, %s",
                      data ? "not both" : "found neither");
  const IrType *t = data ? data->data->type : NULL;
  if (type) {
    const IrType *given = type->kind == IR_ATTR_STR ? ir_type_parse(s->m, type->s) : NULL;
    if (!given) return shape_fail(s, "E-attr", "type must be text such as \"f32[10,784]\"");
    if (t && given != t)
      return shape_fail(s, "E-shape", "type is %s but the data is %s", type_text(s, given),
                        type_text(s, t));
    t = given;
  }
  if (!t) return shape_fail(s, "E-attr", "an initializer needs type = \"f32[...]\"");
  if (!machine_tensor(s, t, "the weight")) return false;
  if (init && ir_type_bytes(t) > MAX_INITIALIZER_BYTES)
    return shape_fail(s, "E-shape",
                      "an initializer of %s would take more than 32 GiB; use a weight file",
                      type_text(s, t));
  bool known = !init;
  for (size_t i = 0; i < NPU_COUNTOF(inits) && init; i++) known |= !strcmp(init, inits[i]);
  if (ir_get_float(s->op, "std", 1) < 0)
    return shape_fail(s, "E-attr", "std = %g is a deviation, which is not negative",
                      ir_get_float(s->op, "std", 1));
  if (known) return need_range(s, 1) && result(s, t);
  const char *near = str_nearest(init, inits, NPU_COUNTOF(inits));
  return shape_fail(s, "E-attr", "init = \"%s\" is not normal, uniform, zeros or ones%s%s%s", init,
                    near ? "; did you mean \"" : "", near ? near : "", near ? "\"?" : "");
}

bool shape_constant(Shape *s) {
  const IrAttr *data = ir_attr(s->op, "data"), *value = ir_attr(s->op, "value");
  if (!data == !value)
    return shape_fail(s, "E-attr", "needs either data or value, %s",
                      data ? "not both" : "found neither");
  if (data) return machine_tensor(s, data->data->type, "the data") && result(s, data->data->type);
  if (value->kind != IR_ATTR_INT && value->kind != IR_ATTR_FLOAT)
    return shape_fail(s, "E-attr", "value must be a number");
  s->nout = -1;
  return true;
}

bool shape_state(Shape *s) {
  const IrAttr *data = ir_attr(s->op, "data");
  if (data) return machine_tensor(s, data->data->type, "the state") && result(s, data->data->type);
  s->nout = -1;
  return true;
}

bool shape_state_write(Shape *s) {
  return machine_tensor(s, s->x[0], "x");
}

bool shape_none(Shape *s) {
  s->nout = ir_op_info(s->kind)->nresults;
  return true;
}

/* ---- kernel bodies ---- */

bool shape_scalar_same(Shape *s) {
  const char *op = ir_get_str(s->op, "op", "");
  const IrAttr *over = ir_attr(s->op, "over");
  uint32_t seen = 0;
  if (strcmp(op, "sum") && strcmp(op, "max") && strcmp(op, "min"))
    return shape_fail(s, "E-attr", "op = \"%s\" is not sum, max or min", op);
  if (s->x[0]->dtype != DT_F32 && s->x[0]->dtype != DT_S32)
    return shape_fail(s, "E-dtype", "x is %s; kernel bodies compute in f32 and s32, cast it first",
                      type_text(s, s->x[0]));
  int64_t dims[IR_MAX_DIMS + 1];
  int n = ir_get_ints(s->op, "over", dims, IR_MAX_DIMS + 1);
  for (int i = 0; i < n; i++) {
    if (dims[i] < 0 || dims[i] >= IR_MAX_DIMS || seen >> dims[i] & 1)
      n = 0;
    else
      seen |= 1u << dims[i];
  }
  if (!n || over->kind == IR_ATTR_INT)
    return shape_fail(s, "E-attr",
                      "over must list distinct dimension numbers of the kernel, [2, 3]");
  return result(s, s->x[0]);
}

bool shape_scalar_s32(Shape *s) {
  return result(s, ir_type_scalar(s->m, DT_S32));
}

/* ---- program ---- */

static bool result_token(Shape *s, const char *token) {
  return result(s, ir_type_token(s->m, token));
}

bool shape_token_reg(Shape *s) {
  return result_token(s, "reg");
}
bool shape_token_buf(Shape *s) {
  return result_token(s, "buf");
}
bool shape_token_sem(Shape *s) {
  return result_token(s, "sem");
}
bool shape_token_desc(Shape *s) {
  return result_token(s, "desc");
}
bool shape_token_vprog(Shape *s) {
  return result_token(s, "vprog");
}
bool shape_token_addr(Shape *s) {
  return result_token(s, "addr");
}
