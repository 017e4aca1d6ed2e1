/* Operators of random models: elementwise and rearrangement. A function picks operands that fit,
 * writes the statement and states the result's type. */
#include "tests/fuzz/graph_ops.h"
#include <math.h>
#include <string.h>

/* ---- elementwise ---- */

bool gen_make_unary(Gen *g) {
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
             {"hard_swish(%s)", 0},
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
bool gen_make_step(Gen *g) {
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
    if (b == x || b->special || b->dtype != x->dtype || b->rank != x->rank ||
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

bool gen_make_binary(Gen *g) {
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

bool gen_make_cast(Gen *g) {
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

bool gen_make_compare(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 1, GEN_RANK, true);
  if (!x) return false;
  static const char *const ops[] = {"<", "<=", ">", ">=", "==", "!="};
  return gen_emit(g, DT_S8, x->rank, x->shape, 1, true, "round(%s * 2) %s 1.0", x->name,
                  ops[gen_range(g, 0, 5)]);
}

/* A mask chooses between two values of its shape. */
bool gen_make_mask(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 1, GEN_RANK, true);
  if (!x) return false;
  GenValue a = *x;
  int64_t row = a.shape[a.rank - 1];
  char w[24];
  gen_weight(g, 1, &row, 0.5, w);
  return gen_emit(g, DT_F32, a.rank, a.shape, a.mag + 1, true, "where(%s >= %s, %s, %s * 2)",
                  a.name, w, a.name, w);
}

bool gen_make_quantize(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 1, GEN_RANK, true);
  if (!x) return false;
  GenValue a = *x;
  int zero = (int)gen_range(g, -20, 20);
  GenValue *q = gen_emit(g, DT_S8, a.rank, a.shape, 128, true,
                         "quantize(%s, scale = 0.03, zero_point = %d)", a.name, zero);
  if (!q || gen_chance(g, 0.4)) return q;
  q->used = true;
  return gen_emit(g, DT_F32, a.rank, a.shape, a.mag, true,
                  "dequantize(%s, scale = 0.03, zero_point = %d)", q->name, zero);
}

/* Stays bf16 through a few elementwise operators. */
bool gen_make_bf16(Gen *g) {
  static const char *const ops[] = {"tanh(%s)",
                                    "relu(%s)",
                                    "%s * %s",
                                    "%s + %s",
                                    "gelu(%s)",
                                    "max(%s, -%s)",
                                    "exp(clip(%s, -4, 1))"};
  GenValue *x = gen_pick(g, DT_F32, 1, GEN_RANK, true);
  if (!x) return false;
  GenValue a = *x;
  GenValue *b = gen_emit(g, DT_BF16, a.rank, a.shape, a.mag, true, "cast(%s, bf16)", a.name);
  for (int64_t n = gen_range(g, 0, 2); b && n > 0; n--) {
    const char *op = ops[gen_range(g, 0, (int64_t)NPU_COUNTOF(ops) - 1)], *first = strstr(op, "%s"),
               *second = strstr(first + 2, "%s");
    char text[96];
    b->used = true;
    if (!second)
      snprintf(text, sizeof text, "%.*s%s%s", (int)(first - op), op, b->name, first + 2);
    else
      snprintf(text, sizeof text, "%.*s%s%.*s%s%s", (int)(first - op), op, b->name,
               (int)(second - first - 2), first + 2, b->name, second + 2);
    b = gen_emit(g, DT_BF16, a.rank, a.shape, b->mag * 2, true, "%s", text);
  }
  if (!b || gen_chance(g, 0.3)) return b;
  b->used = true;
  return gen_emit(g, DT_F32, a.rank, a.shape, b->mag, true, "cast(%s, f32)", b->name);
}

/* ---- rearrangement ---- */

DType gen_any_dtype(Gen *g) {
  return gen_chance(g, 0.75) ? DT_F32 : gen_chance(g, 0.5) ? DT_S8 : DT_S32;
}

bool gen_make_reshape(Gen *g) {
  GenValue *x = gen_pick(g, gen_any_dtype(g), 1, GEN_RANK, false);
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

bool gen_make_transpose(Gen *g) {
  GenValue *x = gen_pick(g, gen_any_dtype(g), 2, GEN_RANK, false);
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

bool gen_make_concat(Gen *g) {
  GenValue *x = gen_pick(g, gen_any_dtype(g), 1, GEN_RANK, false);
  if (!x) return false;
  int axis = (int)gen_range(g, 0, x->rank - 1);
  GenValue *y = x;
  for (int tries = 0; tries < 6; tries++) {
    GenValue *c = &g->v[gen_range(g, 0, g->n - 1)];
    if (c->special || c->dtype != x->dtype || c->rank != x->rank) continue;
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

bool gen_make_slice(Gen *g) {
  GenValue *x = gen_pick(g, gen_any_dtype(g), 1, GEN_RANK, false);
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

bool gen_make_pad(Gen *g) {
  GenValue *x = gen_pick(g, gen_any_dtype(g), 1, GEN_RANK, false);
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

bool gen_make_broadcast(Gen *g) {
  GenValue *x = gen_pick(g, gen_any_dtype(g), 1, GEN_RANK - 1, false);
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

bool gen_make_gather(Gen *g) {
  GenValue *x = gen_pick(g, gen_any_dtype(g), 1, GEN_RANK, false);
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

bool gen_make_state(Gen *g) {
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

/* Index values computed by the model itself: positions from argmax. */
bool gen_make_gather_computed(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, GEN_RANK, true);
  if (!x) return false;
  GenValue a = *x;
  int axis = (int)gen_range(g, 0, a.rank - 1), rank = 0;
  int64_t shape[GEN_RANK], limit = a.shape[axis], width = gen_range(g, 1, 9);
  for (int i = 0; i < a.rank; i++)
    if (i != axis) shape[rank++] = a.shape[i];
  if (rank + 1 > GEN_RANK || gen_elements(rank, shape) * width > GEN_ELEMENTS) return false;
  GenValue *i =
      gen_emit(g, DT_S32, rank, shape, (double)limit, true, "argmax(%s, axis = %d)", a.name, axis);
  if (!i) return false;
  i->used = true;
  shape[rank] = width;
  int64_t table[] = {limit + gen_range(g, 0, 3), width};
  char w[24];
  gen_weight(g, 2, table, 1, w);
  g->tables = true;
  return gen_emit(g, DT_F32, rank + 1, shape, 1, true, "embed(%s, %s)", i->name, w);
}

bool gen_make_embed(Gen *g) {
  int64_t n = gen_dim(g), table[] = {gen_dim(g), gen_dim(g)}, shape[] = {n, table[1]};
  char w[24];
  if (gen_elements(2, table) > GEN_ELEMENTS) return false;
  GenValue *i = gen_index_input(g, n, table[0]);
  if (!i) return false;
  gen_weight(g, 2, table, 1, w);
  g->tables = true;
  return gen_emit(g, DT_F32, 2, shape, 1, true, "embed(%s, %s)", i->name, w);
}

/* All parts are joined again, in another order. */
bool gen_make_split(Gen *g) {
  GenValue *x = gen_pick(g, gen_any_dtype(g), 1, GEN_RANK, false);
  if (!x) return false;
  int axis = (int)gen_range(g, 0, x->rank - 1), parts = (int)gen_range(g, 2, 3);
  if (x->shape[axis] % parts) return false;
  int n = g->n;
  strbuf_printf(&g->body, "  p%d, q%d", n, n);
  if (parts == 3) strbuf_printf(&g->body, ", r%d", n);
  strbuf_printf(&g->body, " = split(%s, %d, axis = %d)\n", x->name, parts, axis);
  char last[32] = "";
  if (parts == 3) snprintf(last, sizeof last, "r%d, ", n);
  return gen_emit(g, x->dtype, x->rank, x->shape, x->mag, x->exact, "concat(%sq%d, p%d, axis = %d)",
                  last, n, n, axis);
}

bool gen_make_update(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 1, 4, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t shape[GEN_RANK];
  char list[96] = "", w[24];
  for (int i = 0; i < a.rank; i++) {
    int64_t begin = gen_range(g, 0, a.shape[i] - 1);
    shape[i] = gen_range(g, 1, a.shape[i] - begin);
    snprintf(list + strlen(list), sizeof list - strlen(list), "%s%lld", i ? ", " : "",
             (long long)begin);
  }
  gen_weight(g, a.rank, shape, 1, w);
  return gen_emit(g, DT_F32, a.rank, a.shape, a.mag + 1, a.exact, "update(%s, %s, begin = [%s])",
                  a.name, w, list);
}

/* ---- values read twice, zeros and what is no number ---- */

/* "[0, 1, 3, 2]": the last two axes exchanged. */
static void put_turn(char *list, size_t size, int rank) {
  snprintf(list, size, "[");
  for (int i = 0; i < rank; i++) {
    int axis = i < rank - 2 ? i : 2 * rank - 3 - i;
    snprintf(list + strlen(list), size - strlen(list), "%s%d", i ? ", " : "", axis);
  }
  snprintf(list + strlen(list), size - strlen(list), "]");
}

/* A value whose last two axes are equal; of one that has them not, its product with itself. */
static GenValue *square(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 2, 4, false);
  if (!x || x->shape[x->rank - 1] == x->shape[x->rank - 2]) return x;
  int64_t shape[GEN_RANK], k = x->shape[x->rank - 1], m = x->shape[x->rank - 2];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->rank - 1] = m;
  if (gen_elements(x->rank, shape) * k > GEN_WORK) return NULL;
  return gen_emit(g, DT_F32, x->rank, shape, x->mag * x->mag, false, "%s @ %s' * %.4f", x->name,
                  x->name, 1.0 / (double)k);
}

/* v and v turned, or v twice as factors: two reads through different maps. */
bool gen_make_turned(Gen *g) {
  GenValue *x = square(g);
  if (!x) return false;
  GenValue a = *x;
  x->used = true;
  char turn[48];
  put_turn(turn, sizeof turn, a.rank);
  switch (gen_range(g, 0, 2)) {
  case 0:
    return gen_emit(g, DT_F32, a.rank, a.shape, a.mag * 2, a.exact, "%s + transpose(%s, %s)",
                    a.name, a.name, turn);
  case 1:
    return gen_emit(g, DT_F32, a.rank, a.shape, a.mag, a.exact, "max(transpose(%s, %s), %s)",
                    a.name, turn, a.name);
  default:
    if (gen_elements(a.rank, a.shape) * a.shape[a.rank - 1] > GEN_WORK) return false;
    return gen_emit(g, DT_F32, a.rank, a.shape, a.mag * a.mag, false, "%s @ %s * %.4f", a.name,
                    a.name, 1.0 / (double)a.shape[a.rank - 1]);
  }
}

/* The new state is made from other elements of the old one. */
bool gen_make_turned_state(Gen *g) {
  if (g->nstates == 2) return false;
  GenValue *x = square(g);
  if (!x) return false;
  GenValue a = *x;
  x->used = true;
  char turn[48], type[64] = "f32[";
  put_turn(turn, sizeof turn, a.rank);
  for (int i = 0; i < a.rank; i++)
    snprintf(type + strlen(type), sizeof type - strlen(type), "%s%lld", i ? ", " : "",
             (long long)a.shape[i]);
  int s = g->nstates++;
  strbuf_printf(&g->body, "  state s%d: %s]\n  s%d = transpose(s%d, %s) * 0.5 + %s\n", s, type, s,
                s, turn, a.name);
  return gen_emit(g, DT_F32, a.rank, a.shape, a.mag * 2, a.exact, "s%d * 1", s);
}

/* A border of some value inside the border of a convolution. */
bool gen_make_padded_conv(Gen *g) {
  GenValue *x = gen_pick(g, DT_F32, 4, 4, false);
  if (!x) return false;
  GenValue a = *x;
  int64_t w[] = {gen_range(g, 1, 5), a.shape[1], 3, 3};
  int64_t shape[] = {a.shape[0], w[0], a.shape[2] + 2, a.shape[3] + 2};
  if (gen_elements(4, shape) > GEN_ELEMENTS || gen_elements(4, shape) * w[1] * 9 > GEN_WORK)
    return false;
  char name[24];
  gen_weight(g, 4, w, 1 / sqrt((double)w[1] * 9), name);
  static const char *const values[] = {"5", "-0.5", "0", "-0.0"};
  return gen_emit(g, DT_F32, 4, shape, a.mag + 2, false,
                  "conv2d(pad(%s, [[0, 0], [0, 0], [1, 1], [1, 1]], value = %s), %s, pad = 1)",
                  a.name, values[gen_range(g, 0, 3)], name);
}
