/* Shape rules of elementwise ops, on tensors (NumPy broadcasting) and on scalars in kernel bodies.
 */
#include "ir/shape.h"
#include <string.h>

/* Bodies compute in f32 and s32 only. */
static bool body_type_ok(Shape *s) {
  for (int i = 0; i < s->n && s->body; i++)
    if (s->x[i]->dtype != DT_F32 && s->x[i]->dtype != DT_S32)
      return shape_fail(s, "E-dtype",
                        "%s is %s; kernel bodies compute in f32 and s32, cast it first",
                        operand_name(s, i), type_text(s, s->x[i]));
  return true;
}

static bool result_broadcast(Shape *s, DType dtype, const IrType *a, const IrType *b) {
  int rank;
  int64_t shape[IR_MAX_RANK];
  if (s->body) return result(s, ir_type_scalar(s->m, dtype));
  if (!ir_broadcast_shapes(a, b, &rank, shape))
    return shape_fail(
        s, "E-shape",
        "%s and %s do not broadcast: aligned at the last axis, axes must be equal or 1",
        type_text(s, a), type_text(s, b));
  return result_shape(s, dtype, rank, shape);
}

bool shape_arith(Shape *s) {
  DType t;
  return body_type_ok(s) && promote(s, s->x[0], s->x[1], &t) &&
         result_broadcast(s, widened(t), s->x[0], s->x[1]);
}

bool shape_arith_float(Shape *s) {
  DType t;
  return need_float(s, s->x[0], "a") && need_float(s, s->x[1], "b") && body_type_ok(s) &&
         promote(s, s->x[0], s->x[1], &t) && result_broadcast(s, t, s->x[0], s->x[1]);
}

bool shape_same_dtype(Shape *s) {
  DType t;
  return body_type_ok(s) && promote(s, s->x[0], s->x[1], &t) &&
         result_broadcast(s, t, s->x[0], s->x[1]);
}

bool shape_compare(Shape *s) {
  DType t;
  return body_type_ok(s) && promote(s, s->x[0], s->x[1], &t) &&
         result_broadcast(s, DT_S8, s->x[0], s->x[1]);
}

bool shape_where(Shape *s) {
  DType t;
  const IrType *a = s->x[1], *b = s->x[2];
  if (dtype_is_float(s->x[0]->dtype))
    return shape_fail(s, "E-dtype", "c is %s; a condition is s8 or s32, such as c != 0.0",
                      type_text(s, s->x[0]));
  if (dtype_is_float(a->dtype) != dtype_is_float(b->dtype) || (s->body && a->dtype != b->dtype))
    return shape_fail(s, "E-dtype", "a is %s and b is %s; cast one so that they agree",
                      type_text(s, a), type_text(s, b));
  if (!promote(s, a, b, &t) || !result_broadcast(s, t, a, b)) return false;
  const IrType *ab = s->out[--s->nout];
  return result_broadcast(s, t, s->x[0], ab);
}

bool shape_unary_arith(Shape *s) {
  return body_type_ok(s) && result_like(s, s->x[0], widened(s->x[0]->dtype));
}

bool shape_unary_float(Shape *s) {
  return need_float(s, s->x[0], "x") && body_type_ok(s) && result(s, s->x[0]);
}

bool shape_gelu(Shape *s) {
  const char *form = ir_get_str(s->op, "approximate", "none");
  if (strcmp(form, "none") && strcmp(form, "tanh"))
    return shape_fail(s, "E-attr", "approximate = \"%s\" is neither \"none\" nor \"tanh\"", form);
  return shape_unary_float(s);
}

bool shape_same1(Shape *s) {
  return result(s, s->x[0]);
}

bool need_range(Shape *s, double default_hi) {
  double lo = ir_get_float(s->op, "lo", 0), hi = ir_get_float(s->op, "hi", default_hi);
  return lo <= hi || shape_fail(s, "E-attr", "lo = %g is not at most hi = %g; swap them", lo, hi);
}

bool shape_clip(Shape *s) {
  return need_range(s, 0) && result(s, s->x[0]);
}

bool shape_cast(Shape *s) {
  DType to = ir_attr(s->op, "dtype")->dtype;
  if (to >= DT_MACHINE_COUNT)
    return shape_fail(s, "E-dtype", "%s exists only in files; cast to s8, bf16, f32 or s32",
                      dtype_name(to));
  return result_like(s, s->x[0], to);
}
