/* Random models: values, inputs, weights, the frame around the statements. */
#include "tests/fuzz/graph_ops.h"
#include <math.h>
#include <string.h>

int64_t gen_range(Gen *g, int64_t lo, int64_t hi) {
  return rng_range(&g->rng, lo, hi);
}
bool gen_chance(Gen *g, double p) {
  return rng_uniform(&g->rng) < p;
}

int64_t gen_elements(int rank, const int64_t *shape) {
  int64_t n = 1;
  for (int i = 0; i < rank; i++) n *= shape[i];
  return n;
}

int64_t gen_dim(Gen *g) {
  static const int64_t odd[] = {11, 13, 17, 19, 23, 29, 31, 37, 53, 67, 101, 131};
  double u = rng_uniform(&g->rng);
  if (u < 0.15) return 1;
  if (u < 0.75) return gen_range(g, 2, 9);
  if (u < 0.85) return (int64_t)1 << gen_range(g, 3, 6);
  return odd[gen_range(g, 0, (int64_t)NPU_COUNTOF(odd) - 1)];
}

GenValue *gen_pick(Gen *g, DType t, int lo, int hi, bool exact) {
  int fit[GEN_VALUES], n = 0;
  for (int i = 0; i < g->n; i++) {
    const GenValue *v = &g->v[i];
    if (v->special) continue;
    if (v->dtype == t && v->rank >= lo && v->rank <= hi && (v->exact || !exact)) fit[n++] = i;
  }
  if (!n) return NULL;
  int64_t a = gen_range(g, 0, n - 1), b = gen_range(g, 0, n - 1);
  GenValue *v = &g->v[fit[a > b ? a : b]];
  v->used = true;
  return v;
}

static GenValue *value_new(Gen *g, DType t, int rank, const int64_t *shape, double mag,
                           bool exact) {
  if (g->n == GEN_VALUES) return NULL;
  GenValue *v = &g->v[g->n++];
  *v = (GenValue){.dtype = t, .rank = rank, .mag = mag, .exact = exact};
  for (int i = 0; i < rank; i++) v->shape[i] = shape[i];
  return v;
}

GenValue *gen_emit(Gen *g, DType t, int rank, const int64_t *shape, double mag, bool exact,
                   const char *fmt, ...) {
  if (rank > GEN_RANK || gen_elements(rank, shape) > GEN_ELEMENTS) return NULL;
  GenValue *v = value_new(g, t, rank, shape, mag, exact);
  if (!v) return NULL;
  snprintf(v->name, sizeof v->name, "v%d", g->n - 1);
  va_list ap;
  va_start(ap, fmt);
  strbuf_printf(&g->body, "  %s = ", v->name);
  strbuf_vprintf(&g->body, fmt, ap);
  strbuf_putc(&g->body, '\n');
  va_end(ap);
  return v;
}

static void put_type(StrBuf *b, DType t, int rank, const int64_t *shape) {
  strbuf_puts(b, dtype_name(t));
  if (rank == 0) return;
  for (int i = 0; i < rank; i++) strbuf_printf(b, "%s%lld", i ? ", " : "[", (long long)shape[i]);
  strbuf_putc(b, ']');
}

static const char *weight(Gen *g, DType t, int rank, const int64_t *shape, char name[24]) {
  snprintf(name, 24, "w%d", g->nweights++);
  strbuf_printf(&g->body, "  weight %s: ", name);
  put_type(&g->body, t, rank, shape);
  return name;
}

const char *gen_weight(Gen *g, int rank, const int64_t *shape, double std, char name[24]) {
  weight(g, DT_F32, rank, shape, name);
  strbuf_printf(&g->body, " = normal(seed = %d, std = %.4f)\n", g->nweights, std);
  return name;
}

const char *gen_positive_weight(Gen *g, int rank, const int64_t *shape, char name[24]) {
  weight(g, DT_F32, rank, shape, name);
  strbuf_printf(&g->body, " = uniform(seed = %d, lo = 0.5, hi = 1.5)\n", g->nweights);
  return name;
}

const char *gen_integer_weight(Gen *g, int rank, const int64_t *shape, char name[24]) {
  weight(g, DT_S8, rank, shape, name);
  strbuf_printf(&g->body, " = uniform(seed = %d, lo = -100, hi = 100)\n", g->nweights);
  return name;
}

GenValue *gen_input(Gen *g, DType t, int rank, const int64_t *shape) {
  GenValue *v = value_new(g, t, rank, shape, t == DT_S8 ? 128 : t == DT_S32 ? 1000 : 1, true);
  if (!v) return NULL;
  snprintf(v->name, sizeof v->name, "x%d", g->n - 1);
  strbuf_printf(&g->inputs, "%s%s: ", g->inputs.len ? ", " : "", v->name);
  put_type(&g->inputs, t, rank, shape);
  return v;
}

GenValue *gen_special_input(Gen *g, int64_t length) {
  GenValue *v = value_new(g, DT_F32, 1, &length, 1, true);
  if (!v) return NULL;
  snprintf(v->name, sizeof v->name, "z%d", g->n - 1);
  v->special = v->used = true;
  strbuf_printf(&g->inputs, "%s%s: f32[%lld]", g->inputs.len ? ", " : "", v->name,
                (long long)length);
  return v;
}

const char *gen_far_input(Gen *g, int rank, const int64_t *shape, char name[24]) {
  snprintf(name, 24, "far%d", g->nfar++);
  strbuf_printf(&g->inputs, "%s%s: ", g->inputs.len ? ", " : "", name);
  put_type(&g->inputs, DT_F32, rank, shape);
  return name;
}

GenValue *gen_index_input(Gen *g, int64_t length, int64_t limit) {
  GenValue *v = value_new(g, DT_S32, 1, &length, (double)limit, true);
  if (!v) return NULL;
  snprintf(v->name, sizeof v->name, "i%d_%lld", g->n - 1, (long long)limit);
  v->used = true;
  strbuf_printf(&g->inputs, "%s%s: s32[%lld]", g->inputs.len ? ", " : "", v->name,
                (long long)length);
  return v;
}

static void first_inputs(Gen *g) {
  int n = (int)gen_range(g, 1, 3);
  for (int i = 0; i < n; i++) {
    int64_t shape[GEN_RANK];
    int rank = (int)gen_range(g, i == 0 ? 2 : 1, 4);
    do
      for (int a = 0; a < rank; a++) shape[a] = gen_dim(g);
    while (gen_elements(rank, shape) > GEN_ELEMENTS / 2);
    double u = rng_uniform(&g->rng);
    gen_input(g, i == 0 || u < 0.7 ? DT_F32 : u < 0.9 ? DT_S8 : DT_S32, rank, shape);
  }
}

/* The last value and others nobody uses. */
static void choose_outputs(Gen *g) {
  for (int i = g->n - 1; i >= 0 && g->nout < 4; i--)
    if (!g->v[i].used && g->v[i].name[0] == 'v') g->out[g->nout++] = i;
  if (!g->nout) g->out[g->nout++] = g->n - 1;
}

static void write_text(Gen *g) {
  strbuf_printf(&g->text, "model random(%s) -> (", g->inputs.data);
  for (int i = 0; i < g->nout; i++) {
    const GenValue *v = &g->v[g->out[i]];
    strbuf_printf(&g->text, "%sy%d: ", i ? ", " : "", i);
    put_type(&g->text, v->dtype, v->rank, v->shape);
  }
  strbuf_printf(&g->text, ")\n{\n%s  return ", g->body.data);
  for (int i = 0; i < g->nout; i++)
    strbuf_printf(&g->text, "%s%s", i ? ", " : "", g->v[g->out[i]].name);
  strbuf_puts(&g->text, "\n}\n");
}

#define X(name, weight) {gen_make_##name, weight},
static const struct {
  bool (*make)(Gen *g);
  int weight;
} ops[] = {GEN_OPS(X)};
#undef X

void gen_model(Gen *g, uint64_t seed, int size) {
  *g = (Gen){0};
  rng_seed(&g->rng, seed);
  first_inputs(g);
  int total = 0, made = 0;
  for (size_t i = 0; i < NPU_COUNTOF(ops); i++) total += ops[i].weight;
  for (int tries = 0; made < size && tries < size * 20 && g->n < GEN_VALUES - 8; tries++) {
    int64_t at = gen_range(g, 0, total - 1);
    int k = 0;
    while (at >= ops[k].weight) at -= ops[k++].weight;
    made += ops[k].make(g);
  }
  if (!made) {
    GenValue *x = &g->v[0];
    gen_emit(g, x->dtype, x->rank, x->shape, x->mag, true, "relu(%s)", x->name);
  }
  choose_outputs(g);
  write_text(g);
}

void gen_free(Gen *g) {
  strbuf_free(&g->inputs);
  strbuf_free(&g->body);
  strbuf_free(&g->text);
}
