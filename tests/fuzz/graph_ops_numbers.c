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

/* A product of the model's integers that becomes integers again. Scales are small multiples of
 * powers of two, so that its sums are exact in any order, and its factors are too wide for bf16. */
bool gen_make_integer_layer(Gen *g) {
  GenValue *x = gen_pick(g, DT_S8, 2, 3, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t k = a.shape[a.rank - 1], n = gen_dim(g), w[] = {n, k}, shape[GEN_RANK];
  if (gen_elements(a.rank, a.shape) * n > GEN_WORK || k > 256) return false;
  memcpy(shape, a.shape, sizeof shape);
  shape[a.rank - 1] = n;
  if (gen_elements(a.rank, shape) > GEN_ELEMENTS) return false;
  char wn[24];
  gen_integer_weight(g, 2, w, wn);
  static const char *const middles[] = {"%s", "relu(%s)", "clip(%s, -3, 3)", "%s * 0.5 + 0.25"};
  const char *middle = middles[gen_range(g, 0, 3)], *at = strstr(middle, "%s");
  int t = g->n, zero = (int)gen_range(g, -20, 20);
  strbuf_printf(&g->body,
                "  p%d = dequantize(%s, scale = 0.1875, zero_point = %d) @ "
                "dequantize(%s, scale = 0.0078125)'\n",
                t, a.name, zero, wn);
  return gen_emit(g, DT_S8, a.rank, shape, 128, true,
                  "quantize(%.*sp%d%s, scale = 0.25, zero_point = %d)", (int)(at - middle), middle,
                  t, at + 2, zero);
}

/* "c<n>_<which> = ...", of x's shape: numbers from 1 to 3, mostly from a product. */
static void one_to_three(Gen *g, const GenValue *x, int which) {
  int64_t k = x->shape[x->rank - 1], w[] = {k, k};
  bool small = k * k <= GEN_ELEMENTS && gen_elements(x->rank, x->shape) * k <= GEN_WORK;
  char wn[24];
  if (small && gen_chance(g, 0.8)) {
    gen_weight(g, 2, w, gen_fan(k), wn);
    strbuf_printf(&g->body, "  c%d_%d = clip(%s @ %s, -1, 1) + 2\n", g->n, which, x->name, wn);
  } else {
    strbuf_printf(&g->body, "  c%d_%d = clip(%s, -1, 1) + 2\n", g->n, which, x->name);
  }
}

/* There and back, by a value that is kept in between: what it loses there shows. */
bool gen_make_there_and_back(Gen *g) {
  static const char *const ways[][2] = {{"exp(%s)", "log(%s)"},
                                        {"log(%s)", "exp(%s)"},
                                        {"%s + 60", "%s - 60"},
                                        {"sqrt(%s)", "pow(%s, 2)"},
                                        {"1 - %s", "1 - %s"}};
  GenValue *x = gen_pick(g, DT_F32, 2, 2, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t turned[] = {a.shape[1], a.shape[0]};
  const char *const *way = ways[gen_range(g, 0, (int64_t)NPU_COUNTOF(ways) - 1)];
  const char *there = strstr(way[0], "%s"), *back = strstr(way[1], "%s");
  int n = g->n;
  one_to_three(g, &a, 0);
  strbuf_printf(&g->body, "  e%d = transpose(%.*sc%d_0%s, [1, 0])\n", n, (int)(there - way[0]),
                way[0], n, there + 2);
  char text[96];
  snprintf(text, sizeof text, "%.*se%d%s - transpose(c%d_0, [1, 0])", (int)(back - way[1]), way[1],
           n, back + 2, n);
  return emit_zero(g, 2, turned, 0x1p-12, text);
}

/* The mean of a product of two values less the product of their means, written in two ways: a
 * variance when they are one value. */
bool gen_make_covariance(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, 4, false);
  if (!x) return false;
  GenValue a = *x;
  static const char *const products[] = {"%s * %s", "%s * %s", "(%s * 0.5) * (%s * 2)",
                                         "pow(%s, 2)"};
  const char *op = products[gen_range(g, 0, 3)], *first = strstr(op, "%s"),
             *second = strstr(first + 2, "%s");
  int axis = (int)gen_range(g, 0, a.rank - 1), n = g->n, other = second && gen_chance(g, 0.5);
  int64_t shape[GEN_RANK];
  memcpy(shape, a.shape, sizeof shape);
  shape[axis] = 1;
  for (int i = 0; i <= other; i++) {
    one_to_three(g, &a, i);
    strbuf_printf(&g->body, "  m%d_%d = mean(c%d_%d, axis = %d, keep = true)\n", n, i, n, i, axis);
    strbuf_printf(&g->body, "  d%d_%d = c%d_%d - m%d_%d\n", n, i, n, i, n, i);
  }
  strbuf_printf(&g->body, "  q%d = %.*sc%d_0", n, (int)(first - op), op, n);
  if (second)
    strbuf_printf(&g->body, "%.*sc%d_%d%s\n", (int)(second - first - 2), first + 2, n, other,
                  second + 2);
  else
    strbuf_printf(&g->body, "%s\n", first + 2);
  char text[160];
  snprintf(text, sizeof text,
           "mean(q%d, axis = %d, keep = true) - m%d_0 * m%d_%d - "
           "mean(d%d_0 * d%d_%d, axis = %d, keep = true)",
           n, axis, n, n, other, n, n, other, axis);
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
