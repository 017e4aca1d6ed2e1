/* Operators of random models about numbers: integers of the model's own, differences that are zero,
 * zeros with signs and other special values. */
#include "tests/fuzz/graph_ops.h"
#include <string.h>

/* The value must be within `bound` of zero in every element. */
static bool emit_zero(Gen *g, int rank, const int64_t *shape, double bound, const char *text) {
  GenValue *v = gen_emit(g, DT_F32, rank, shape, bound, false, "%s", text);
  if (v) v->zero = bound;
  return v != NULL;
}

/* dequantize, what integer networks have in between, quantize. Scales are powers of two, so that
 * sums of a window are exact in any order. */
bool gen_make_integer_region(Gen *g) {
  GenValue *x = gen_pick(g, gen_chance(g, 0.7) ? DT_S32 : DT_S8, 4, 4, false);
  if (!x) return false;
  GenValue a = *x;
  int zero = (int)gen_range(g, -20, 20);
  char source[96], d[160];
  if (a.dtype == DT_S32)
    snprintf(source, sizeof source, "requantize(%s, multiplier = 0.003, zero_point = %d)", a.name,
             zero);
  else
    snprintf(source, sizeof source, "%s", a.name);
  snprintf(d, sizeof d, "dequantize(%s, scale = 0.0625, zero_point = %d)", source, zero);
  GenValue *real = gen_emit(g, DT_F32, 4, a.shape, 8, true, "%s", d);
  if (!real) return false;
  real->used = true;
  static const char *const chains[] = {"%s + %s * 0.3", "max(%s, 0.5) * sigmoid(%s)",
                                       "relu6(%s) - %s"};
  const char *r = real->name, *op = chains[gen_range(g, 0, 2)], *first = strstr(op, "%s"),
             *second = strstr(first + 2, "%s");
  if (gen_chance(g, 0.5)) {
    int64_t k[2], shape[4] = {a.shape[0], a.shape[1]};
    for (int i = 0; i < 2; i++) {
      k[i] = gen_range(g, 1, a.shape[2 + i] < 3 ? a.shape[2 + i] : 3);
      shape[2 + i] = a.shape[2 + i] / k[i];
    }
    return gen_emit(g, DT_S8, 4, shape, 128, true,
                    "quantize(avg_pool(%s, [%d, %d]), scale = 0.04, zero_point = %d)", r, (int)k[0],
                    (int)k[1], zero);
  }
  return gen_emit(g, DT_S8, 4, a.shape, 128, true, "quantize(%.*s%s%.*s%s%s, scale = 0.05)",
                  (int)(first - op), op, r, (int)(second - first - 2), first + 2, r, second + 2);
}

/* A variance written in two ways, of numbers from 1 to 3. */
bool gen_make_variance(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 1, 4, false);
  if (!x) return false;
  GenValue a = *x;
  int axis = (int)gen_range(g, 0, a.rank - 1);
  int64_t shape[GEN_RANK];
  memcpy(shape, a.shape, sizeof shape);
  shape[axis] = 1;
  static const char *const squares[] = {"%s * %s", "pow(%s, 2)", "(%s * 0.5) * (%s * 2)"};
  const char *op = squares[gen_range(g, 0, 2)], *first = strstr(op, "%s"),
             *second = strstr(first + 2, "%s");
  int n = g->n;
  strbuf_printf(&g->body, "  c%d = clip(%s, -1, 1) + 2\n", n, a.name);
  strbuf_printf(&g->body, "  m%d = mean(c%d, axis = %d, keep = true)\n", n, n, axis);
  strbuf_printf(&g->body, "  q%d = %.*sc%d", n, (int)(first - op), op, n);
  if (second)
    strbuf_printf(&g->body, "%.*sc%d%s\n", (int)(second - first - 2), first + 2, n, second + 2);
  else
    strbuf_printf(&g->body, "%s\n", first + 2);
  strbuf_printf(&g->body, "  d%d = c%d - m%d\n", n, n, n);
  char text[128];
  snprintf(
      text, sizeof text,
      "mean(q%d, axis = %d, keep = true) - m%d * m%d - mean(d%d * d%d, axis = %d, keep = true)", n,
      axis, n, n, n, n, axis);
  return emit_zero(g, a.rank, shape, 0x1p-12, text);
}

/* One square weight read by rows and by columns, each against the same product written otherwise.
 */
bool gen_make_shared_weight(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, 3, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t k = a.shape[a.rank - 1], w[] = {k, k};
  if (gen_elements(a.rank, a.shape) * k > GEN_WORK || k * k > GEN_ELEMENTS) return false;
  char wn[24], text[96];
  gen_weight(g, 2, w, gen_fan(k), wn);
  int n = g->n;
  strbuf_printf(&g->body, "  t%d = tanh(%s)\n", n, a.name);
  snprintf(text, sizeof text, "t%d @ %s - linear(t%d, transpose(%s, [1, 0]))", n, wn, n, wn);
  bool ok = emit_zero(g, a.rank, a.shape, 0.1, text);
  snprintf(text, sizeof text, "linear(t%d, %s) - t%d @ %s'", n, wn, n, wn);
  return emit_zero(g, a.rank, a.shape, 0.1, text) && ok;
}

/* A constant as large as the result is not a bias. */
bool gen_make_full_constant(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, 3, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t k = a.shape[a.rank - 1], n = gen_dim(g), w[] = {n, k}, shape[GEN_RANK];
  if (gen_elements(a.rank, a.shape) * n > GEN_WORK || n * k > GEN_ELEMENTS) return false;
  memcpy(shape, a.shape, sizeof shape);
  shape[a.rank - 1] = n;
  if (gen_elements(a.rank, shape) > GEN_ELEMENTS) return false;
  char wn[24], cn[24], text[128];
  gen_weight(g, 2, w, gen_fan(k), wn);
  gen_weight(g, a.rank, shape, 0.5, cn);
  int t = g->n;
  strbuf_printf(&g->body, "  t%d = tanh(%s)\n", t, a.name);
  snprintf(text, sizeof text, "(linear(t%d, %s) + %s) - %s - t%d @ %s'", t, wn, cn, cn, t, wn);
  return emit_zero(g, a.rank, shape, 0.1, text);
}

/* Integers with more digits than bf16 has. */
bool gen_make_wide_integer(Gen *g) {
  GenValue *x = gen_pick(g, DT_S32, 1, GEN_RANK, false);
  if (!x) return false;
  return gen_emit(g, DT_F32, x->rank, x->shape, 8, true,
                  "clip(cast(cast(%s, bf16), f32) * 0.015625 + 1, -8, 8)", x->name);
}

/* Zeros of both signs through what must keep them, or must not; their signs come out as numbers. */
bool gen_make_zeros(Gen *g) {
  static const char *const ops[] = {"%s + 0",    "0 + %s",        "%s - (-0.0)",  "%s - 0",
                                    "%s + -0.0", "max(%s, -0.0)", "min(0.0, %s)", "%s * 1"};
  GenValue *x = gen_pick(g, DT_F32, 1, GEN_RANK, true);
  if (!x) return false;
  GenValue a = *x;
  GenValue *z = gen_emit(g, DT_F32, a.rank, a.shape, a.mag, true, "relu(%s) * -1", a.name);
  if (!z) return false;
  z->used = true;
  char text[64];
  const char *op = ops[gen_range(g, 0, (int64_t)NPU_COUNTOF(ops) - 1)], *at = strstr(op, "%s");
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - op), op, z->name, at + 2);
  return gen_emit(g, DT_F32, a.rank, a.shape, 1, true, "where(1 / (%s) < 0, -0.5, 0.75)", text);
}

/* Arithmetic and powers of special values, tamed. */
bool gen_make_special(Gen *g) {
  static const char *const ops[] = {
      "pow(%s, %s)", "pow(%s, 0.5) + %s * 0", "max(%s, %s)", "min(%s, %s)", "%s - %s",
      "%s / %s",     "pow(%s, -3) * %s"};
  int64_t n = gen_range(g, 12, 120);
  GenValue *a = gen_special_input(g, n), *b = a ? gen_special_input(g, n) : NULL;
  if (!b) return false;
  const char *op = ops[gen_range(g, 0, (int64_t)NPU_COUNTOF(ops) - 1)], *first = strstr(op, "%s"),
             *second = strstr(first + 2, "%s");
  int k = g->n;
  strbuf_printf(&g->body, "  q%d = %.*s%s%.*s%s%s\n", k, (int)(first - op), op, a->name,
                (int)(second - first - 2), first + 2, b->name, second + 2);
  return gen_emit(g, DT_F32, 1, &n, 4, true,
                  "where(q%d == q%d, clip(q%d, -4, 4) + where(1 / q%d < 0, 0.5, 0.25), 0.125)", k,
                  k, k, k);
}
