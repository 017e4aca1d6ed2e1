/* Long sums of numbers that are nearly equal and far from zero, where a sum that rounds once per
 * addition loses digits: in every operator that sums, along every axis, on machines whose tiles are
 * short and on one that holds the rows whole. The right values are sums in double precision; the
 * error allowed does not grow with the length:
 *
 *   tile of a sum (1) + sum over tiles (2) + division (1): 4 units of 2^-24 sum|x|
 *
 * (N. J. Higham, The accuracy of floating point summation, SIAM J. Sci. Comput. 14, 1993). Beside
 * that: infinities, NaN, overflow and the sign of zero as IEEE 754 has them for a plain sum. */
#include "tests/e2e/diff.h"
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static const double unit = 0x1p-24;

typedef enum { SUM, MEAN, SQUARES, SOFTMAX, NORM, DOT } Kind;
typedef struct {
  const char *signature, *body;
  Kind kind;
  int64_t shape[4]; /* of x, with ones at the end */
  unsigned axes;    /* summed over */
} Sum;

static const Sum sums[] = {
    {"x: f32[3, 40007]) -> (y: f32[3]", "sum(x, axis = 1)", SUM, {3, 40007, 1, 1}, 2},
    {"x: f32[40007, 3]) -> (y: f32[3]", "sum(x, axis = 0)", SUM, {40007, 3, 1, 1}, 1},
    {"x: f32[3, 40007]) -> (y: f32[3]", "mean(x, axis = 1)", MEAN, {3, 40007, 1, 1}, 2},
    {"x: f32[40007, 9]) -> (y: f32[9]", "mean(x, axis = 0)", MEAN, {40007, 9, 1, 1}, 1},
    /* as wide as the lanes: each adds up a column */
    {"x: f32[9001, 64]) -> (y: f32[64]", "mean(x, axis = 0)", MEAN, {9001, 64, 1, 1}, 1},
    {"x: f32[23, 911, 8]) -> (y: f32[8]", "sum(x, axis = [0, 1])", SUM, {23, 911, 8, 1}, 3},
    {"x: f32[2, 20011, 5]) -> (y: f32[2, 5]", "mean(x, axis = 1)", MEAN, {2, 20011, 5, 1}, 2},
    {"x: f32[2, 211, 3, 97]) -> (y: f32[2, 3]",
     "mean(x, axis = [1, 3])",
     MEAN,
     {2, 211, 3, 97},
     10},
    {"x: f32[211, 2, 97, 3]) -> (y: f32[2, 3]", "mean(x, axis = [0, 2])", MEAN, {211, 2, 97, 3}, 5},
    {"x: f32[1, 3, 131, 149]) -> (y: f32[1, 3, 1, 1]",
     "global_avg_pool(x)",
     MEAN,
     {1, 3, 131, 149},
     12},
    {"x: f32[1, 3, 131, 149]) -> (y: f32[1, 3, 1, 1]",
     "avg_pool(x, kernel = [131, 149])",
     MEAN,
     {1, 3, 131, 149},
     12},
    {"x: f32[3, 40007]) -> (y: f32[3]", "mean(x * x, axis = 1)", SQUARES, {3, 40007, 1, 1}, 2},
    {"x: f32[3, 40007]) -> (y: f32[3, 40007]", "softmax(x)", SOFTMAX, {3, 40007, 1, 1}, 2},
    {"x: f32[2, 10007]) -> (y: f32[2, 10007]", "layer_norm(x)", NORM, {2, 10007, 1, 1}, 2},
    {"x: f32[2, 20011], w: f32[20011, 3]) -> (y: f32[2, 3]", "x @ w", DOT, {2, 20011, 1, 1}, 2},
};

static double value_of(const Sum *s, size_t i) {
  if (s->kind == NORM) return 1000.1;
  return (s->kind == SOFTMAX ? 0 : 1000.1) + 0.001 * (double)(i % 7);
}

static void fill(void *user, int run, const DiffTensor *t) {
  const Sum *s = user;
  (void)run;
  for (size_t i = 0; i < t->n; i++)
    dtype_set(t->dtype, t->data, i,
              t->name[0] == 'w' ? 3 + 0.001 * (double)(i % 5) : value_of(s, i));
}

/* ---- right values: results of the rows, and the magnitude their error is relative to ---- */

typedef struct {
  double sum, mag;
} Exact;

static size_t row_of(const Sum *s, size_t i) {
  size_t at[4], row = 0;
  for (int a = 3; a >= 0; a--) at[a] = i % (size_t)s->shape[a], i /= (size_t)s->shape[a];
  for (int a = 0; a < 4; a++)
    if (!(s->axes >> a & 1)) row = row * (size_t)s->shape[a] + at[a];
  return row;
}

static double term(const Sum *s, double x) {
  return s->kind == SQUARES ? x * x : s->kind == SOFTMAX ? exp(x) : x;
}

static void add_rows(const Sum *s, const DiffTensor *x, Exact *rows) {
  for (size_t i = 0; i < x->n; i++) {
    double v = term(s, dtype_get(x->dtype, x->data, i));
    rows[row_of(s, i)].sum += v;
    rows[row_of(s, i)].mag += fabs(v);
  }
}

static double count_of(const Sum *s) {
  double n = 1;
  for (int a = 0; a < 4; a++)
    if (s->axes >> a & 1) n *= (double)s->shape[a];
  return n;
}

static void dot_rows(const DiffTensor *x, const DiffTensor *w, Exact *rows) {
  for (size_t i = 0; i < x->n; i++)
    for (size_t c = 0; c < 3; c++) {
      size_t len = x->n / 2;
      double p = dtype_get(x->dtype, x->data, i) * dtype_get(w->dtype, w->data, i % len * 3 + c);
      rows[i / len * 3 + c].sum += p;
      rows[i / len * 3 + c].mag += fabs(p);
    }
}

static void expect(const Sum *s, const Exact *rows, const DiffTensor *x, const DiffTensor *y,
                   const char *where) {
  double n = s->kind == SUM || s->kind == DOT ? 1 : count_of(s);
  for (size_t i = 0; i < y->n; i++) {
    double want, bound, got = dtype_get(y->dtype, y->data, i);
    if (s->kind == NORM) { /* rows of equal numbers: NumPy's float32 stays below this too */
      want = 0, bound = 0.04;
    } else if (s->kind ==
               SOFTMAX) { /* exp, reciprocal and product: 3 more; exp is good to 1.0 ulp */
      want = exp(dtype_get(x->dtype, x->data, i)) / rows[row_of(s, i)].sum;
      bound = 9 * unit * want;
    } else { /* products round once */
      want = rows[i].sum / n;
      bound = (s->kind == SQUARES || s->kind == DOT ? 5 : 4) * unit * rows[i].mag / n;
    }
    if (fabs(got - want) <= bound) continue;
    fail_msg("%s, %s: y[%zu] is %.9g, exactly %.9g within %.3g", s->body, where, i, got, want,
             bound);
  }
}

/* ---- machines and pipelines ---- */

typedef struct {
  const char *name;
  int64_t spm_bytes; /* 0: the machine's own */
  int opt;
  const char *pipeline;
} Road;

static const Road roads[] = {
    {"edge", 0, 2, NULL},
    {"tests/e2e/machines/tiny.txt", 0, 0, NULL},
    {"tests/e2e/machines/tiny.txt", 2048, 2, NULL},
    {"tests/e2e/machines/odd.txt", 3000, 1,
     "lower,fuse,legalize,tile{slots=1},plan,pipeline,sync,allocate"},
};

static void load_machine(const Road *r, MachineDesc *m) {
  DiagEngine *diag = diag_new();
  char path[512];
  snprintf(path, sizeof path, "%s/%s", strchr(r->name, '/') ? NPU_SOURCE_DIR : "", r->name);
  if (!machine_load(strchr(r->name, '/') ? path : r->name, m, diag))
    fail_msg("no machine %s", r->name);
  if (r->spm_bytes) m->spm_bytes = r->spm_bytes;
  diag_free(diag);
}

/* Compiles and runs the model in all ways; the caller frees d. */
static void run_road(const Road *r, const char *model, const char *dir, void *user,
                     void (*filler)(void *, int, const DiffTensor *), Diff *d) {
  MachineDesc m;
  char path[64];
  const char *why;
  load_machine(r, &m);
  snprintf(path, sizeof path, "%s/model.mdl", dir);
  if (!file_write_atomic(path, model, strlen(model), &why)) fail_msg("%s: %s", path, why);
  diff_init(d);
  d->path = path, d->dir = dir, d->fill = filler, d->user = user, d->runs = 1;
  d->options.machine = &m, d->options.opt_level = r->opt, d->options.quantize = false;
  d->options.pipeline = r->pipeline;
  if (!diff_run(d)) fail_msg("%s, machine %s: %s", model, r->name, d->why.data);
}

static void remove_files(const char *dir) {
  static const char *const files[] = {"model.mdl", "model.bin"};
  for (size_t i = 0; i < NPU_COUNTOF(files); i++) {
    char path[64];
    snprintf(path, sizeof path, "%s/%s", dir, files[i]);
    unlink(path);
  }
  rmdir(dir);
}

static void long_sums(void **state) {
  (void)state;
  char dir[] = "/tmp/npucc-sums-XXXXXX", model[300];
  assert_non_null(mkdtemp(dir));
  for (size_t i = 0; i < NPU_COUNTOF(sums); i++)
    for (size_t k = 0; k < NPU_COUNTOF(roads); k++) {
      Sum s = sums[i];
      Diff d;
      snprintf(model, sizeof model, "model m(%s) { return %s }\n", s.signature, s.body);
      run_road(&roads[k], model, dir, &s, fill, &d);
      Exact *rows = arena_alloc(d.arena, sizeof *rows * d.in[0].n);
      if (s.kind == DOT)
        dot_rows(&d.in[0], &d.in[1], rows);
      else
        add_rows(&s, &d.in[0], rows);
      expect(&s, rows, &d.in[0], &d.as_read[0], "host");
      expect(&s, rows, &d.in[0], &d.simulated[0], roads[k].name);
      diff_free(&d);
    }
  remove_files(dir);
}

/* ---- values that are no ordinary numbers ---- */

enum { KINDS = 7, LEN = 3001 };

/* Row k: one infinity; both; an overflow on the way that the rest does not undo; a NaN; negative
 * zeros; an infinity at the end; ones that cancel. */
static float special(int64_t row, int64_t i) {
  switch (row) {
  case 0: return i == 5 ? INFINITY : 1;
  case 1: return i == 5 ? INFINITY : i == LEN - 2 ? -INFINITY : 1;
  case 2: return 3e38f;
  case 3: return i == LEN / 2 ? NAN : 1;
  case 4: return -0.0f;
  case 5: return i == LEN - 1 ? -INFINITY : 2;
  default: return i == LEN - 1 ? 0 : i % 2 ? 1 : -1;
  }
}

static void fill_special(void *user, int run, const DiffTensor *t) {
  const bool *rows = user;
  (void)run;
  for (size_t i = 0; i < t->n; i++) {
    size_t row = *rows ? i / LEN : i % KINDS, at = *rows ? i % LEN : i / KINDS;
    dtype_set(t->dtype, t->data, i, (double)special((int64_t)row, (int64_t)at));
  }
}

static void expect_special(const DiffTensor *y, const char *where) {
  static const double want[KINDS] = {INFINITY, NAN, INFINITY, NAN, 0, -INFINITY, 0};
  for (size_t i = 0; i < KINDS; i++) {
    double got = dtype_get(y->dtype, y->data, i);
    bool same = isnan(want[i]) ? isnan(got) : got == want[i] && !signbit(got) == !signbit(want[i]);
    if (!same) fail_msg("%s: sum %zu is %g, not %g", where, i, got, want[i]);
  }
}

static void special_values(void **state) {
  (void)state;
  static const char *const models[] = {
      "model m(x: f32[3001, 7]) -> (y: f32[7]) { return sum(x, axis = 0) }\n",
      "model m(x: f32[7, 3001]) -> (y: f32[7]) { return sum(x, axis = 1) }\n"};
  char dir[] = "/tmp/npucc-sums-XXXXXX";
  assert_non_null(mkdtemp(dir));
  for (int rows = 0; rows < 2; rows++)
    for (size_t k = 0; k < NPU_COUNTOF(roads); k++) {
      bool by_rows = rows;
      Diff d;
      run_road(&roads[k], models[rows], dir, &by_rows, fill_special, &d);
      expect_special(&d.as_read[0], "host");
      expect_special(&d.simulated[0], roads[k].name);
      diff_free(&d);
    }
  remove_files(dir);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(long_sums), cmocka_unit_test(special_values)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
