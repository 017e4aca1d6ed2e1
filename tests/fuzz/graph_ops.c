/* One function per kind of operator: picks operands that fit, writes the statement, states the
 * result's type. */
#include "tests/fuzz/graph_gen.h"
#include <math.h>
#include <string.h>

/* ---- elementwise ---- */

static bool make_unary(Gen *g) {
  static const struct {
    const char *text;
    double mag; /* 0: as the operand */
  } ops[] = {{"relu(%s)", 0},
             {"abs(%s)", 0},
             {"-%s", 0},
             {"sigmoid(%s)", 1},
             {"tanh(%s)", 1},
             {"gelu(%s)", 0},
             {"gelu(%s, approximate = \"tanh\")", 0},
             {"silu(%s)", 0},
             {"hard_sigmoid(%s)", 1},
             {"erf(%s)", 1},
             {"exp(clip(%s, -4, 1))", 2.7},
             {"log(abs(%s) + 0.5)", 2},
             {"sqrt(abs(%s) + 0.01)", 0},
             {"rsqrt(abs(%s) + 0.5)", 1.5},
             {"leaky_relu(%s, 0.1)", 0},
             {"relu6(%s)", 0},
             {"clip(%s, -1, 0.5)", 1},
             {"sin(clip(%s, -9, 9))", 1},
             {"cos(clip(%s, -9, 9))", 1},
             {"pow(abs(%s) + 0.25, 0.5)", 0},
             {"pow(clip(%s, -1.5, 1.5), 3)", 3},
             {"1 / (abs(%s) + 0.5)", 2},
             {"%s * 0.5 + 0.25", 0},
             {"1 - %s", 0}};
  GenValue *x = gen_pick(g, DT_F32, 0, GEN_RANK, false);
  if (!x) return false;
  int k = (int)gen_range(g, 0, (int64_t)NPU_COUNTOF(ops) - 1);
  char text[96];
  const char *at = strstr(ops[k].text, "%s");
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - ops[k].text), ops[k].text, x->name, at + 2);
  return gen_emit(g, DT_F32, x->rank, x->shape, ops[k].mag > 0 ? ops[k].mag : x->mag, x->exact,
                  "%s", text);
}

/* Jumps: only where both sides compute the very same argument. */
static bool make_step(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 0, GEN_RANK, true);
  if (!x) return false;
  static const char *const ops[] = {"floor(%s * 3)", "round(%s * 3)", "where(%s > 0.1, %s, 0.5)",
                                    "cast(cast(%s, bf16), f32)"};
  int k = (int)gen_range(g, 0, 3);
  if (k == 2)
    return gen_emit(g, DT_F32, x->rank, x->shape, x->mag, true, "where(%s > 0.1, %s, %s * 0.5)",
                    x->name, x->name, x->name);
  char text[96];
  const char *at = strstr(ops[k], "%s");
  snprintf(text, sizeof text, "%.*s%s%s", (int)(at - ops[k]), ops[k], x->name, at + 2);
  return gen_emit(g, DT_F32, x->rank, x->shape, x->mag * 3, true, "%s", text);
}

/* A partner for x: another value of the same shape, or a weight or input that broadcasts to it. */
static bool partner(Gen *g, const GenValue *x, char name[24], double *mag, bool *exact) {
  for (int tries = 0; tries < 4; tries++) {
    GenValue *b = &g->v[gen_range(g, 0, g->n - 1)];
    if (b == x || b->dtype != x->dtype || b->rank != x->rank ||
        memcmp(b->shape, x->shape, sizeof(int64_t) * (size_t)x->rank))
      continue;
    b->used = true;
    snprintf(name, 24, "%s", b->name);
    *mag = b->mag;
    *exact = b->exact;
    return true;
  }
  int drop = x->rank > 1 && gen_chance(g, 0.4) ? 1 : 0;
  int64_t shape[GEN_RANK];
  for (int i = drop; i < x->rank; i++) shape[i - drop] = gen_chance(g, 0.3) ? 1 : x->shape[i];
  *exact = true;
  *mag = 1;
  if (x->dtype == DT_F32 && gen_chance(g, 0.6)) {
    gen_weight(g, x->rank - drop, shape, 0.5, name);
    return true;
  }
  GenValue *b = gen_input(g, x->dtype, x->rank - drop, shape);
  if (!b) return false;
  b->used = true;
  *mag = b->mag;
  snprintf(name, 24, "%s", b->name);
  return true;
}

static bool make_binary(Gen *g) {
  GenValue *x = gen_pick(g, gen_chance(g, 0.85) ? DT_F32 : DT_S32, 1, GEN_RANK, false);
  if (!x) return false;
  GenValue a = *x;
  char b[24];
  double mag;
  bool exact;
  if (!partner(g, x, b, &mag, &exact)) return false;
  exact = exact && a.exact;
  static const char *const ops[] = {"%s + %s",     "%s - %s", "min(%s, %s)",
                                    "max(%s, %s)", "%s * %s", "%s / (abs(%s) + 0.5)"};
  int k = (int)gen_range(g, 0, a.dtype == DT_F32 ? 5 : 4);
  if (k == 4 && a.dtype == DT_F32 && a.mag * mag > 20) k = 0;
  const char *op = ops[k], *first = strstr(op, "%s"), *second = strstr(first + 2, "%s");
  char text[96];
  snprintf(text, sizeof text, "%.*s%s%.*s%s%s", (int)(first - op), op, a.name,
           (int)(second - first - 2), first + 2, b, second + 2);
  double m = k == 4 ? a.mag * mag : k == 5 ? a.mag * 2 : k < 2 ? a.mag + mag : fmax(a.mag, mag);
  return gen_emit(g, a.dtype, a.rank, a.shape, m, exact, "%s", text);
}

static bool make_cast(Gen *g) {
  static const DType from[] = {DT_F32, DT_S8, DT_S32, DT_S32};
  int k = (int)gen_range(g, 0, 3);
  GenValue *x = gen_pick(g, from[k], 0, GEN_RANK, k == 0);
  if (!x) return false;
  switch (k) {
  case 0: return gen_emit(g, DT_S8, x->rank, x->shape, 128, true, "cast(%s * 25, s8)", x->name);
  case 1: return gen_emit(g, DT_F32, x->rank, x->shape, 1, true, "cast(%s, f32) * 0.01", x->name);
  case 2:
    return gen_emit(g, DT_F32, x->rank, x->shape, 1, true, "tanh(cast(%s, f32) * 0.001)", x->name);
  default: return gen_emit(g, DT_S8, x->rank, x->shape, 128, true, "cast(%s, s8)", x->name);
  }
}

static bool make_compare(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 1, GEN_RANK, true);
  if (!x) return false;
  static const char *const ops[] = {"<", "<=", ">", ">=", "==", "!="};
  return gen_emit(g, DT_S8, x->rank, x->shape, 1, true, "round(%s * 2) %s 1.0", x->name,
                  ops[gen_range(g, 0, 5)]);
}

/* ---- products ---- */

static double fan(int64_t k) {
  return 1 / sqrt((double)k);
}

static bool make_matmul(Gen *g) {
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
    gen_weight(g, 2, w, fan(k), b);
  else {
    GenValue *in = gen_input(g, DT_F32, 2, w);
    if (!in) return false;
    in->used = true;
    snprintf(b, sizeof b, "(%s * %.3f)", in->name, fan(k));
  }
  return gen_emit(g, DT_F32, a.rank, shape, a.mag, false, "%s @ %s%s", a.name, b,
                  turned ? "'" : "");
}

/* x x' over the last two axes: attention's shape. */
static bool make_self_product(Gen *g) {
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

static bool make_integer_product(Gen *g) {
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

static bool make_linear(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, 4, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t k = a.shape[a.rank - 1], n = gen_dim(g), w[] = {n, k}, shape[GEN_RANK];
  if (gen_elements(a.rank, a.shape) * n > GEN_WORK || n * k > GEN_ELEMENTS) return false;
  memcpy(shape, a.shape, sizeof shape);
  shape[a.rank - 1] = n;
  char wn[24], bn[24];
  gen_weight(g, 2, w, fan(k), wn);
  gen_weight(g, 1, &n, 0.3, bn);
  return gen_emit(g, DT_F32, a.rank, shape, a.mag + 0.3, false, "linear(%s, %s, bias = %s)", a.name,
                  wn, bn);
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

static bool make_conv(Gen *g) {
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
  gen_weight(g, 4, w, fan(w[1] * w[2] * w[3]), wn);
  if (gen_chance(g, 0.7)) snprintf(bias, sizeof bias, ", bias = %s", gen_weight(g, 1, &o, 0.3, bn));
  return gen_emit(g, DT_F32, 4, shape, x.mag + 0.3, false,
                  "conv2d(%s, %s%s, stride = [%d, %d], pad = [%d, %d, %d, %d], dilation = [%d, "
                  "%d], groups = %d)",
                  x.name, wn, bias, (int)s[0], (int)s[1], (int)p[0], (int)p[1], (int)p[2],
                  (int)p[3], (int)d[0], (int)d[1], (int)groups);
}

static bool make_pool(Gen *g) {
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

static bool make_reduce(Gen *g) {
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
  if (k == 2 && t == DT_F32) snprintf(scale, sizeof scale, " * %.4f", fan(x->shape[axis]));
  return gen_emit(g, t, rank, shape, x->mag, x->exact && (k < 2 || t == DT_S32),
                  "%s(%s, axis = %d, keep = %s)%s", ops[k], x->name, axis, keep ? "true" : "false",
                  scale);
}

static bool make_argmax(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, GEN_RANK, true);
  if (!x) return false;
  int axis = (int)gen_range(g, 0, x->rank - 1), rank = 0;
  int64_t shape[GEN_RANK];
  for (int i = 0; i < x->rank; i++)
    if (i != axis) shape[rank++] = x->shape[i];
  return gen_emit(g, DT_S32, rank, shape, (double)x->shape[axis], true, "argmax(%s, axis = %d)",
                  x->name, axis);
}

static bool make_norm(Gen *g) {
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

/* ---- rearrangement ---- */

static DType any_dtype(Gen *g) {
  return gen_chance(g, 0.75) ? DT_F32 : gen_chance(g, 0.5) ? DT_S8 : DT_S32;
}

static bool make_reshape(Gen *g) {
  GenValue *x = gen_pick(g, any_dtype(g), 1, GEN_RANK, false);
  if (!x) return false;
  int64_t shape[GEN_RANK], n = gen_elements(x->rank, x->shape);
  int rank = (int)gen_range(g, 1, 4);
  char list[96] = "";
  for (int i = 0; i < rank; i++) {
    int64_t d = 1;
    for (int tries = 0; tries < 3 && i < rank - 1; tries++) {
      int64_t f = gen_range(g, 1, 12);
      if (n % f == 0) d = f;
    }
    shape[i] = i == rank - 1 ? n : d;
    n /= d;
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%lld", i ? ", " : "",
             (long long)shape[i]);
  }
  return gen_emit(g, x->dtype, rank, shape, x->mag, x->exact, "reshape(%s, [%s])", x->name, list);
}

static bool make_transpose(Gen *g) {
  GenValue *x = gen_pick(g, any_dtype(g), 2, GEN_RANK, false);
  if (!x) return false;
  int64_t perm[GEN_RANK], shape[GEN_RANK];
  for (int i = 0; i < x->rank; i++) perm[i] = i;
  for (int i = x->rank - 1; i > 0; i--) {
    int64_t j = gen_range(g, 0, i), t = perm[i];
    perm[i] = perm[j], perm[j] = t;
  }
  char list[64] = "";
  for (int i = 0; i < x->rank; i++) {
    shape[i] = x->shape[perm[i]];
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%d", i ? ", " : "", (int)perm[i]);
  }
  return gen_emit(g, x->dtype, x->rank, shape, x->mag, x->exact, "transpose(%s, [%s])", x->name,
                  list);
}

static bool make_concat(Gen *g) {
  GenValue *x = gen_pick(g, any_dtype(g), 1, GEN_RANK, false);
  if (!x) return false;
  int axis = (int)gen_range(g, 0, x->rank - 1);
  GenValue *y = x;
  for (int tries = 0; tries < 6; tries++) {
    GenValue *c = &g->v[gen_range(g, 0, g->n - 1)];
    if (c->dtype != x->dtype || c->rank != x->rank) continue;
    bool fits = true;
    for (int i = 0; i < x->rank; i++) fits = fits && (i == axis || c->shape[i] == x->shape[i]);
    if (fits) y = c;
  }
  y->used = true;
  int64_t shape[GEN_RANK];
  memcpy(shape, x->shape, sizeof shape);
  shape[axis] += y->shape[axis];
  return gen_emit(g, x->dtype, x->rank, shape, fmax(x->mag, y->mag), x->exact && y->exact,
                  "concat(%s, %s, axis = %d)", x->name, y->name, axis);
}

static bool make_slice(Gen *g) {
  GenValue *x = gen_pick(g, any_dtype(g), 1, GEN_RANK, false);
  if (!x) return false;
  char list[128] = "";
  int64_t shape[GEN_RANK];
  for (int i = 0; i < x->rank; i++) {
    int64_t step = gen_chance(g, 0.25) ? 2 : 1, begin = gen_range(g, 0, x->shape[i] - 1),
            end = gen_range(g, begin + 1, x->shape[i]);
    shape[i] = ceil_div(end - begin, step);
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%lld:%lld:%lld", i ? ", " : "",
             (long long)begin, (long long)end, (long long)step);
  }
  return gen_emit(g, x->dtype, x->rank, shape, x->mag, x->exact, "%s[%s]", x->name, list);
}

static bool make_pad(Gen *g) {
  GenValue *x = gen_pick(g, any_dtype(g), 1, GEN_RANK, false);
  if (!x) return false;
  char list[128] = "";
  int64_t shape[GEN_RANK];
  for (int i = 0; i < x->rank; i++) {
    int64_t a = gen_range(g, 0, 3), b = gen_range(g, 0, 3);
    shape[i] = x->shape[i] + a + b;
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s[%lld, %lld]", i ? ", " : "",
             (long long)a, (long long)b);
  }
  return gen_emit(g, x->dtype, x->rank, shape, x->mag, x->exact, "pad(%s, [%s], value = %s)",
                  x->name, list, dtype_is_float(x->dtype) ? "0.5" : "3");
}

static bool make_broadcast(Gen *g) {
  GenValue *x = gen_pick(g, any_dtype(g), 1, GEN_RANK - 1, false);
  if (!x) return false;
  int64_t shape[GEN_RANK] = {gen_range(g, 1, 4)};
  char list[96];
  snprintf(list, sizeof list, "%d", (int)shape[0]);
  for (int i = 0; i < x->rank; i++) {
    shape[i + 1] = x->shape[i] == 1 ? gen_range(g, 1, 7) : x->shape[i];
    snprintf(list + strlen(list), sizeof list - strlen(list), ", %lld", (long long)shape[i + 1]);
  }
  return gen_emit(g, x->dtype, x->rank + 1, shape, x->mag, x->exact, "broadcast(%s, [%s])", x->name,
                  list);
}

static bool make_gather(Gen *g) {
  GenValue *x = gen_pick(g, any_dtype(g), 1, GEN_RANK, false);
  if (!x) return false;
  GenValue a = *x;
  int axis = (int)gen_range(g, 0, a.rank - 1);
  int64_t n = gen_dim(g), shape[GEN_RANK];
  memcpy(shape, a.shape, sizeof shape);
  shape[axis] = n;
  if (gen_elements(a.rank, shape) > GEN_ELEMENTS) return false;
  GenValue *i = gen_index_input(g, n, a.shape[axis]);
  return i && gen_emit(g, a.dtype, a.rank, shape, a.mag, a.exact, "gather(%s, %s, axis = %d)",
                       a.name, i->name, axis);
}

static bool make_state(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 1, 4, false);
  if (!x || g->nstates == 2) return false;
  GenValue a = *x;
  char type[64] = "f32[";
  for (int i = 0; i < a.rank; i++)
    snprintf(type + strlen(type), sizeof type - strlen(type), "%s%lld", i ? ", " : "",
             (long long)a.shape[i]);
  int s = g->nstates++;
  strbuf_printf(&g->body, "  state s%d: %s]\n  s%d = s%d * 0.5 + %s\n", s, type, s, s, a.name);
  return gen_emit(g, DT_F32, a.rank, a.shape, a.mag * 2, a.exact, "s%d + 0.125", s);
}

#define ROW(name, weight)                                                                          \
  { make_##name, weight }
const GenOpRow gen_ops[] = {
    ROW(unary, 20),  ROW(step, 4),   ROW(binary, 18),      ROW(cast, 6),
    ROW(compare, 2), ROW(matmul, 8), ROW(self_product, 3), ROW(integer_product, 6),
    ROW(linear, 8),  ROW(conv, 12),  ROW(pool, 8),         ROW(reduce, 8),
    ROW(argmax, 3),  ROW(norm, 8),   ROW(reshape, 6),      ROW(transpose, 6),
    ROW(concat, 5),  ROW(slice, 5),  ROW(pad, 4),          ROW(broadcast, 3),
    ROW(gather, 4),  ROW(state, 2)};
const int gen_nops = (int)NPU_COUNTOF(gen_ops);
