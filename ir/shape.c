/* Shape rules, the common part: dispatch over the op table, messages, and what several rules need.
 */
#include "ir/shape.h"

#include <string.h>

/* Every row names its rule: one that is missing does not link. */
static bool (*const rules[])(Shape *) = {
#define OP(e, name, levels, traits, nresults, signature, shape, doc) [IR_OP_##e] = shape_##shape,
#include "ir/ops.def"
#undef OP
};

/* ---- messages ---- */

bool shape_fail(Shape *s, const char *code, const char *fmt, ...) {
  StrBuf text = {0};
  va_list ap;
  va_start(ap, fmt);
  strbuf_vprintf(&text, fmt, ap);
  va_end(ap);
  diag_error(s->m->diag, s->loc, code, "`%s`: %s", s->name, text.data);
  strbuf_free(&text);
  return false;
}

const char *type_text(Shape *s, const IrType *t) {
  StrBuf b = {0};
  ir_type_print(&b, t);
  const char *copy = arena_strdup(s->m->arena, b.data);
  strbuf_free(&b);
  return copy;
}

const char *dims_text(Shape *s, int rank, const int64_t *shape) {
  StrBuf b = {0};
  strbuf_putc(&b, '[');
  for (int i = 0; i < rank; i++) strbuf_printf(&b, "%s%lld", i ? "," : "", (long long)shape[i]);
  strbuf_putc(&b, ']');
  const char *copy = arena_strdup(s->m->arena, b.data);
  strbuf_free(&b);
  return copy;
}

const char *operand_name(Shape *s, int operand) {
  const IrParam *p;
  int n = ir_op_params(s->kind, &p);
  for (int i = 0, seen = 0; i < n; i++)
    if (p[i].is_operand && (seen++ == operand || p[i].variadic)) return p[i].name;
  return "operand";
}

/* ---- results ---- */

bool result(Shape *s, const IrType *t) {
  if (s->nout == IR_MAX_RESULTS)
    return shape_fail(s, "E-shape", "more than %d results; split in two steps", IR_MAX_RESULTS);
  s->out[s->nout++] = t;
  return true;
}

bool result_shape(Shape *s, DType dtype, int rank, const int64_t *shape) {
  int64_t count = 1;
  if (rank > IR_MAX_RANK)
    return shape_fail(s, "E-shape",
                      "the result would have %d axes; %d is the most, merge some first", rank,
                      IR_MAX_RANK);
  for (int i = 0; i < rank; i++) {
    if (shape[i] < 1)
      return shape_fail(s, "E-shape", "the result would be %s, and every axis needs at least 1",
                        dims_text(s, rank, shape));
    if (!mul_i64(count, shape[i], &count) || count > IR_MAX_ELEMENTS)
      return shape_fail(s, "E-shape",
                        "the result would be %s, more than the 2^40 elements a tensor can have",
                        dims_text(s, rank, shape));
  }
  return result(s, ir_type_tensor(s->m, dtype, rank, shape));
}

bool result_like(Shape *s, const IrType *x, DType dtype) {
  return result(s, ir_type_with_dtype(s->m, x, dtype));
}

/* ---- what rules ask for ---- */

DType widened(DType t) {
  return t == DT_S8 ? DT_S32 : t;
}

bool promote(Shape *s, const IrType *a, const IrType *b, DType *out) {
  bool fa = dtype_is_float(a->dtype), fb = dtype_is_float(b->dtype);
  if (s->body && a->dtype != b->dtype)
    return shape_fail(s, "E-dtype", "%s with %s: in a kernel body both are the same type; cast one",
                      type_text(s, a), type_text(s, b));
  if (fa != fb)
    return shape_fail(s, "E-dtype",
                      "%s with %s mixes integers with reals; cast one side, "
                      "e.g. cast(%s, %s)",
                      type_text(s, a), type_text(s, b), operand_name(s, fa ? 1 : 0),
                      dtype_name(fa ? a->dtype : b->dtype));
  if (a->dtype == b->dtype)
    *out = a->dtype;
  else
    *out = fa ? DT_F32 : DT_S32;
  return true;
}

bool need_float(Shape *s, const IrType *t, const char *what) {
  if (dtype_is_float(t->dtype)) return true;
  return shape_fail(s, "E-dtype", "%s is %s, but this works on reals; write cast(%s, f32)", what,
                    type_text(s, t), what);
}

bool need_rank(Shape *s, int operand, int rank, const char *axes) {
  if (s->x[operand]->rank == rank) return true;
  return shape_fail(s, "E-shape", "%s must have %d axes %s, found %s; reshape it first",
                    operand_name(s, operand), rank, axes, type_text(s, s->x[operand]));
}

bool need_vector(Shape *s, int operand, int64_t extent, const char *of) {
  const IrType *t = s->x[operand];
  if (t->rank == 1 && t->shape[0] == extent) return true;
  return shape_fail(s, "E-shape", "%s must be [%lld], one value per %s, found %s",
                    operand_name(s, operand), (long long)extent, of, type_text(s, t));
}

bool need_s32(Shape *s, int operand) {
  if (s->x[operand]->dtype == DT_S32) return true;
  return shape_fail(s, "E-dtype", "%s must hold s32 indices, found %s; write cast(%s, s32)",
                    operand_name(s, operand), type_text(s, s->x[operand]),
                    operand_name(s, operand));
}

bool need_axis(Shape *s, const char *name, int rank, int *axis) {
  int64_t given = ir_get_int(s->op, name, 0);
  *axis = ir_axis(given, rank);
  if (*axis >= 0) return true;
  if (!rank) return shape_fail(s, "E-shape", "x is a scalar and has no axis; reshape it to [1]");
  return shape_fail(s, "E-shape", "%s = %lld is not an axis of %s; use %d..%d", name,
                    (long long)given, type_text(s, s->x[0]), -rank, rank - 1);
}

bool need_border(Shape *s, const char *name, DType t) {
  double value = ir_get_float(s->op, name, 0);
  if (dtype_is_float(t) || dtype_holds(t, value)) return true;
  return shape_fail(s, "E-attr", "%s = %.10g is not a value of %s", name, value, dtype_name(t));
}

bool need_ints(Shape *s, const char *name, int n, int64_t lo, int64_t hi, int64_t *out) {
  const IrAttr *a = ir_attr(s->op, name);
  bool list = a->kind == IR_ATTR_ARRAY;
  if (list && a->array.n != (size_t)n && a->array.n != 1)
    return shape_fail(s, "E-attr", "%s needs one number or %d, found %zu", name, n, a->array.n);
  for (int i = 0; i < n; i++) {
    out[i] = !list ? a->i : a->array.items[a->array.n == 1 ? 0 : i]->i;
    if (out[i] < lo || out[i] > hi)
      return shape_fail(s, "E-attr", "%s = %lld is out of range; use %lld..%lld", name,
                        (long long)out[i], (long long)lo, (long long)hi);
  }
  return true;
}

int ir_axis(int64_t axis, int rank) {
  if (axis < -rank || axis >= rank) return -1;
  return (int)(axis < 0 ? axis + rank : axis);
}

bool ir_broadcast_shapes(const IrType *a, const IrType *b, int *rank, int64_t *shape) {
  int n = a->rank > b->rank ? a->rank : b->rank;
  *rank = n;
  for (int i = 1; i <= n; i++) { /* aligned at the last axis */
    int64_t x = i <= a->rank ? a->shape[a->rank - i] : 1;
    int64_t y = i <= b->rank ? b->shape[b->rank - i] : 1;
    if (x != y && x != 1 && y != 1) return false;
    shape[n - i] = x == 1 ? y : x;
  }
  return true;
}

/* ---- dispatch ---- */

/* Operands are all tensors, or all scalars where the row has a body form; element types the machine
 * knows. */
static bool check_operand_types(Shape *s) {
  unsigned levels = ir_op_info(s->kind)->levels;
  int scalars = 0;
  if (levels == IR_PROGRAM || s->kind == IR_OP_RETURN) return true;
  for (int i = 0; i < s->n; i++) {
    const IrType *t = s->operands[i]->type;
    scalars += t->kind == IR_TYPE_SCALAR;
    if (t->kind == IR_TYPE_TOKEN)
      return shape_fail(s, "E-type",
                        "operand %d is %s; only tensors and scalars can be computed with", i,
                        type_text(s, t));
    if (t->dtype >= DT_MACHINE_COUNT)
      return shape_fail(s, "E-dtype",
                        "operand %d is %s, a type only files have; convert it to "
                        "s8, bf16, f32 or s32",
                        i, type_text(s, t));
  }
  s->body = levels == IR_BODY || scalars > 0;
  if (s->body && scalars != s->n)
    return shape_fail(s, "E-type",
                      "tensors and scalars cannot be mixed; inside a kernel every "
                      "operand is a scalar");
  if (s->body && !(levels & IR_BODY))
    return shape_fail(s, "E-type", "works on tensors only, not on scalars inside a kernel");
  return true;
}

bool ir_infer(IrModule *m, IrOpKind kind, SrcLoc loc, int noperands, IrValue *const *operands,
              int nattrs, const IrNamedAttr *attrs, const IrType **types, int *n) {
  *n = 0;
  if (!signature_check(m, kind, loc, noperands, attrs, nattrs)) return false;
  IrOp op = {.kind = kind, .loc = loc, .module = m};
  IrNamedAttr *own =
      mem_alloc(sizeof *own * (size_t)capacity_for(nattrs)); /* the caller's stay as they are */
  if (nattrs) memcpy(own, attrs, sizeof *own * (size_t)nattrs);
  op.attrs = own;
  op.nattrs = nattrs;
  fill_defaults(&op);
  Shape s = {.m = m,
             .kind = kind,
             .name = ir_op_info(kind)->name,
             .loc = loc,
             .n = noperands,
             .operands = operands,
             .op = &op,
             .out = types};
  for (int i = 0; i < noperands && i < IR_MAX_RESULTS; i++) s.x[i] = operands[i]->type;
  bool ok = check_operand_types(&s) && rules[kind](&s);
  mem_free(own);
  if (ok) *n = s.nout;
  return ok;
}
