/* Operators of random models: products, windows, reductions, normalisations. */
#include "tests/fuzz/graph_ops.h"
#include <math.h>
#include <string.h>

/* ---- products ---- */

double gen_fan(int64_t k) {
  return 1 / sqrt((double)k);
}

bool gen_make_matmul(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, 4, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t k = a.shape[a.rank - 1], n = gen_dim(g), shape[GEN_RANK];
  if (gen_elements(a.rank, a.shape) * n > GEN_WORK) return false;
  memcpy(shape, a.shape, sizeof shape);
  shape[a.rank - 1] = n;
  bool turned = gen_chance(g, 0.5);
  int64_t w[] = {turned ? n : k, turned ? k : n};
  char b[48];
  if (gen_elements(2, w) > GEN_ELEMENTS) return false;
  if (gen_chance(g, 0.75))
    gen_weight(g, 2, w, gen_fan(k), b);
  else {
    GenValue *in = gen_input(g, DT_F32, 2, w);
    if (!in) return false;
    in->used = true;
    snprintf(b, sizeof b, "(%s * %.3f)", in->name, gen_fan(k));
  }
  return gen_emit(g, DT_F32, a.rank, shape, a.mag, false, "%s @ %s%s", a.name, b,
                  turned ? "'" : "");
}

/* x x' over the last two axes: attention's shape. */
bool gen_make_self_product(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, 4, false);
  if (!x) return false;
  int64_t shape[GEN_RANK], k = x->shape[x->rank - 1], m = x->shape[x->rank - 2];
  memcpy(shape, x->shape, sizeof shape);
  bool other = gen_chance(g, 0.5);
  shape[x->rank - 1] = other ? k : m;
  shape[x->rank - 2] = other ? k : m;
  if (gen_elements(x->rank, shape) * (other ? m : k) > GEN_WORK) return false;
  return gen_emit(g, DT_F32, x->rank, shape, x->mag * x->mag, false,
                  "matmul(%s, %s, %s = true) * %.4f", x->name, x->name,
                  other ? "transpose_a" : "transpose_b", 1.0 / (double)(other ? m : k));
}

bool gen_make_integer_product(Gen *g) {
  GenValue *x = gen_pick(g, DT_S8, 2, 3, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t k = a.shape[a.rank - 1], n = gen_dim(g), w[] = {k, n}, shape[GEN_RANK];
  if (gen_elements(a.rank, a.shape) * n > GEN_WORK || k * n > GEN_ELEMENTS) return false;
  memcpy(shape, a.shape, sizeof shape);
  shape[a.rank - 1] = n;
  GenValue *b = gen_input(g, DT_S8, 2, w);
  if (!b) return false;
  b->used = true;
  return gen_emit(g, DT_S32, a.rank, shape, 1e4, true, "%s @ %s", a.name, b->name);
}

bool gen_make_linear(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, 4, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t k = a.shape[a.rank - 1], n = gen_dim(g), w[] = {n, k}, shape[GEN_RANK];
  if (gen_elements(a.rank, a.shape) * n > GEN_WORK || n * k > GEN_ELEMENTS) return false;
  memcpy(shape, a.shape, sizeof shape);
  shape[a.rank - 1] = n;
  char wn[24], bn[24];
  gen_weight(g, 2, w, gen_fan(k), wn);
  gen_weight(g, 1, &n, 0.3, bn);
  return gen_emit(g, DT_F32, a.rank, shape, a.mag + 0.3, false, "linear(%s, %s, bias = %s)", a.name,
                  wn, bn);
}

/* Both factors bf16, the product rounded to bf16: neighbours there are far apart for everything
 * after. */
bool gen_make_bf16_product(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, 3, true);
  if (!x) return false;
  GenValue a = *x;
  int64_t k = a.shape[a.rank - 1], n = gen_dim(g), w[] = {k, n}, shape[GEN_RANK];
  if (gen_elements(a.rank, a.shape) * n > GEN_WORK || k * n > GEN_ELEMENTS) return false;
  memcpy(shape, a.shape, sizeof shape);
  shape[a.rank - 1] = n;
  GenValue *b = gen_input(g, DT_BF16, 2, w);
  if (!b) return false;
  b->used = true;
  g->coarse = true;
  return gen_emit(g, DT_F32, a.rank, shape, a.mag, false, "cast(cast(%s, bf16) @ %s, f32) * %.4f",
                  a.name, b->name, gen_fan(k));
}

/* A value as an image: its own rank 4, or reshaped. */
static bool image(Gen *g, GenValue *out) {
  GenValue *x = gen_pick(g, DT_F32, 4, 4, false);
  if (!x && (x = gen_pick(g, DT_F32, 3, 3, false))) {
    int64_t shape[] = {1, x->shape[0], x->shape[1], x->shape[2]};
    x = gen_emit(g, DT_F32, 4, shape, x->mag, x->exact, "reshape(%s, [1, %lld, %lld, %lld])",
                 x->name, (long long)shape[1], (long long)shape[2], (long long)shape[3]);
    if (x) x->used = true;
  }
  if (x) *out = *x;
  return x != NULL;
}

static int64_t window(int64_t size, int64_t pads, int64_t k, int64_t dilation, int64_t stride) {
  int64_t room = size + pads - dilation * (k - 1) - 1;
  return room < 0 ? 0 : room / stride + 1;
}

bool gen_make_conv(Gen *g) {
  GenValue x;
  if (!image(g, &x)) return false;
  int64_t c = x.shape[1], groups = 1;
  if (gen_chance(g, 0.3))
    groups = c;
  else if (c % 2 == 0 && gen_chance(g, 0.3))
    groups = 2;
  int64_t o = groups * (groups == c ? gen_range(g, 1, 2) : gen_range(g, 1, 8)),
          w[] = {o, c / groups, gen_range(g, 1, 4), gen_range(g, 1, 4)};
  int64_t s[2], d[2], p[4];
  for (int i = 0; i < 2; i++) s[i] = gen_range(g, 1, 3), d[i] = gen_range(g, 1, 2);
  for (int i = 0; i < 4; i++) p[i] = gen_range(g, 0, 2);
  int64_t shape[] = {x.shape[0], o, window(x.shape[2], p[0] + p[2], w[2], d[0], s[0]),
                     window(x.shape[3], p[1] + p[3], w[3], d[1], s[1])};
  if (shape[2] < 1 || shape[3] < 1 || gen_elements(4, w) > GEN_ELEMENTS ||
      gen_elements(4, shape) > GEN_ELEMENTS)
    return false;
  if (gen_elements(4, shape) * w[1] * w[2] * w[3] > GEN_WORK) return false;
  char wn[24], bias[40] = "", bn[24];
  gen_weight(g, 4, w, gen_fan(w[1] * w[2] * w[3]), wn);
  if (gen_chance(g, 0.7)) snprintf(bias, sizeof bias, ", bias = %s", gen_weight(g, 1, &o, 0.3, bn));
  return gen_emit(g, DT_F32, 4, shape, x.mag + 0.3, false,
                  "conv2d(%s, %s%s, stride = [%d, %d], pad = [%d, %d, %d, %d], dilation = [%d, "
                  "%d], groups = %d)",
                  x.name, wn, bias, (int)s[0], (int)s[1], (int)p[0], (int)p[1], (int)p[2],
                  (int)p[3], (int)d[0], (int)d[1], (int)groups);
}

bool gen_make_integer_conv(Gen *g) {
  GenValue *x = gen_pick(g, DT_S8, 2, 4, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t n = gen_elements(a.rank, a.shape), w = a.shape[a.rank - 1],
          h = a.rank > 2 ? a.shape[a.rank - 2] : 1, c = n / (w * h);
  int64_t o = gen_range(g, 1, 7), wshape[] = {o, c, gen_range(g, 1, 3), gen_range(g, 1, 3)},
          s = gen_range(g, 1, 2), p = gen_range(g, 0, 1);
  int64_t shape[] = {1, o, window(h, 2 * p, wshape[2], 1, s), window(w, 2 * p, wshape[3], 1, s)};
  if (shape[2] < 1 || shape[3] < 1 || gen_elements(4, wshape) > GEN_ELEMENTS ||
      gen_elements(4, shape) * c * wshape[2] * wshape[3] > GEN_WORK)
    return false;
  GenValue *k = gen_input(g, DT_S8, 4, wshape);
  if (!k) return false;
  k->used = true;
  return gen_emit(g, DT_S32, 4, shape, 1e5, true,
                  "conv2d(reshape(%s, [1, %lld, %lld, %lld]), %s, stride = %d, pad = %d)", a.name,
                  (long long)c, (long long)h, (long long)w, k->name, (int)s, (int)p);
}

bool gen_make_conv1d(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 3, 3, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t c = a.shape[1], o = gen_range(g, 1, 9), k = gen_range(g, 1, 5), s = gen_range(g, 1, 3),
          p = gen_range(g, 0, 2), d = gen_range(g, 1, 3);
  int64_t w[] = {o, c, k}, shape[] = {a.shape[0], o, window(a.shape[2], 2 * p, k, d, s)};
  if (shape[2] < 1 || gen_elements(3, shape) * c * k > GEN_WORK) return false;
  char wn[24];
  gen_weight(g, 3, w, gen_fan(c * k), wn);
  return gen_emit(g, DT_F32, 3, shape, a.mag, false,
                  "conv1d(%s, %s, stride = %d, pad = %d, dilation = %d)", a.name, wn, (int)s,
                  (int)p, (int)d);
}

bool gen_make_conv_transpose(Gen *g) {
  GenValue x;
  if (!image(g, &x)) return false;
  int64_t c = x.shape[1], o = gen_range(g, 1, 5), k = gen_range(g, 1, 4), s = gen_range(g, 1, 3),
          p = gen_range(g, 0, k - 1), d = gen_range(g, 1, 2);
  int64_t w[] = {c, o, k, k},
          shape[] = {x.shape[0], o, (x.shape[2] - 1) * s - 2 * p + d * (k - 1) + 1,
                     (x.shape[3] - 1) * s - 2 * p + d * (k - 1) + 1};
  if (shape[2] < 1 || shape[3] < 1 || gen_elements(4, w) > GEN_ELEMENTS ||
      gen_elements(4, shape) > GEN_ELEMENTS)
    return false;
  if (gen_elements(4, shape) * c * k * k > GEN_WORK) return false;
  char wn[24];
  gen_weight(g, 4, w, gen_fan(c * k * k), wn);
  return gen_emit(g, DT_F32, 4, shape, x.mag, false,
                  "conv_transpose2d(%s, %s, stride = %d, pad = %d, dilation = %d)", x.name, wn,
                  (int)s, (int)p, (int)d);
}

bool gen_make_pool(Gen *g) {
  GenValue x;
  if (!image(g, &x)) return false;
  bool max = gen_chance(g, 0.6);
  if (gen_chance(g, 0.2)) {
    int64_t one[] = {x.shape[0], x.shape[1], 1, 1};
    return gen_emit(g, DT_F32, 4, one, x.mag, false, "global_avg_pool(%s)", x.name);
  }
  int64_t k[2], s[2], p[2], shape[4] = {x.shape[0], x.shape[1]};
  for (int i = 0; i < 2; i++) {
    k[i] = gen_range(g, 1, 3), s[i] = gen_range(g, 1, 3), p[i] = gen_range(g, 0, k[i] / 2);
    shape[2 + i] = window(x.shape[2 + i], 2 * p[i], k[i], 1, s[i]);
    if (shape[2 + i] < 1) return false;
  }
  return gen_emit(g, DT_F32, 4, shape, x.mag, x.exact && max,
                  "%s(%s, [%d, %d], stride = [%d, %d], pad = [%d, %d])",
                  max ? "max_pool" : "avg_pool", x.name, (int)k[0], (int)k[1], (int)s[0], (int)s[1],
                  (int)p[0], (int)p[1]);
}

/* ---- reductions and normalisations ---- */

bool gen_make_reduce(Gen *g) {
  DType t = gen_chance(g, 0.8) ? DT_F32 : DT_S32;
  GenValue *x = gen_pick(g, t, 1, GEN_RANK, false);
  if (!x) return false;
  int axis = (int)gen_range(g, 0, x->rank - 1), rank = 0,
      k = (int)gen_range(g, 0, t == DT_F32 ? 3 : 2);
  bool keep = gen_chance(g, 0.5);
  int64_t shape[GEN_RANK];
  for (int i = 0; i < x->rank; i++)
    if (i != axis || keep) shape[rank++] = i == axis ? 1 : x->shape[i];
  if (rank == 0) return false;
  static const char *const ops[] = {"reduce_max", "reduce_min", "sum", "mean"};
  char scale[24] = "";
  if (k == 2 && t == DT_F32) snprintf(scale, sizeof scale, " * %.4f", gen_fan(x->shape[axis]));
  return gen_emit(g, t, rank, shape, x->mag, x->exact && (k < 2 || t == DT_S32),
                  "%s(%s, axis = %d, keep = %s)%s", ops[k], x->name, axis, keep ? "true" : "false",
                  scale);
}

/* The mean of many numbers about 1000, less 1000: what a sum loses by its length shows. A quarter
 * of it, so that four units in the last place of the sum stay below what is compared. */
bool gen_make_far_mean(Gen *g) {
  int axis = (int)gen_range(g, 0, 2), rank = 0;
  int64_t shape[3], kept[3];
  bool two = gen_chance(g, 0.3);
  for (int i = 0; i < 3; i++) shape[i] = i == axis ? 1 : gen_range(g, 1, 5);
  int64_t most = GEN_ELEMENTS / gen_elements(3, shape);
  shape[axis] = gen_range(g, most / 4, most);
  for (int i = 0; i < 3; i++)
    if (i != axis && !(two && i == (axis + 1) % 3)) kept[rank++] = shape[i];
  char x[24], more[8] = "";
  if (two) snprintf(more, sizeof more, ", %d", (axis + 1) % 3);
  return gen_emit(g, DT_F32, rank, kept, 1, false, "(mean(%s, axis = [%d%s]) - 1000) * 0.25",
                  gen_far_input(g, 3, shape, x), axis, more);
}

bool gen_make_argmax(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, GEN_RANK, true);
  if (!x) return false;
  int axis = (int)gen_range(g, 0, x->rank - 1), rank = 0;
  int64_t shape[GEN_RANK];
  for (int i = 0; i < x->rank; i++)
    if (i != axis) shape[rank++] = x->shape[i];
  return gen_emit(g, DT_S32, rank, shape, (double)x->shape[axis], true, "argmax(%s, axis = %d)",
                  x->name, axis);
}

bool gen_make_norm(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, 4, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t c = a.shape[a.rank - 1];
  char s[24], b[24], m[24], v[24];
  int k = (int)gen_range(g, 0, 3);
  if (k == 0)
    return gen_emit(g, DT_F32, a.rank, a.shape, 1, false, "softmax(%s, axis = %d)", a.name,
                    (int)gen_range(g, 0, a.rank - 1));
  if (k == 3 && (a.rank != 4 || a.shape[1] < 1)) k = 1;
  if (k == 3) {
    gen_weight(g, 1, &a.shape[1], 0.5, s), gen_weight(g, 1, &a.shape[1], 0.5, b);
    gen_weight(g, 1, &a.shape[1], 0.5, m), gen_positive_weight(g, 1, &a.shape[1], v);
    return gen_emit(g, DT_F32, 4, a.shape, a.mag + 1, false,
                    "batch_norm(%s, %s, %s, %s, %s, eps = 1e-3)", a.name, s, b, m, v);
  }
  gen_weight(g, 1, &c, 0.5, s), gen_weight(g, 1, &c, 0.5, b);
  /* A generous eps: normalising nearly equal numbers would amplify rounding without bound. */
  if (k == 1)
    return gen_emit(g, DT_F32, a.rank, a.shape, 2, false, "layer_norm(%s, %s, %s, eps = 0.1)",
                    a.name, s, b);
  return gen_emit(g, DT_F32, a.rank, a.shape, 2, false, "rms_norm(%s, %s, eps = 0.1)", a.name, s);
}
