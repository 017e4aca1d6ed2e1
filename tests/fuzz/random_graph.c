/* npu-fuzz-graphs: random models, compiled for random machines at random levels, simulated in every
 * mode, compared with the host. Endless by default; a mismatch prints the model and the seed that
 * makes it again, and ends the run.
 *
 *   npu-fuzz-graphs [--seed S] [--count N] [--size OPS] [--keep-going] [--verbose]
 *
 * Values with no float sum in their past must agree bit for bit. The others may differ as sums in
 * another order do, times what the operators after them make of it: 2^-13 of the largest element in
 * the model's own types, and 2^-6 of it, two steps of s8, where rounding can fall to the other
 * side; the generator keeps operators that amplify without bound out. Differences that are zero by
 * construction must be near it, quantized or not. */
#include "tests/e2e/diff.h"
#include "tests/fuzz/graph_gen.h"
#include "tests/support/compare.h"
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum { OWN, DEFAULT, STATIC } Numerics;

typedef struct {
  uint64_t seed;
  int64_t count; /* -1: endless */
  int size;
  bool keep_going, verbose;
  MachineDesc machines[3];
  const char *dir;
} Fuzz;

/* One model and how it is compiled, all from the seed. */
typedef struct {
  uint64_t seed;
  Gen gen;
  const MachineDesc *machine;
  int opt;
  Numerics numerics;
  StrBuf why;
} Trial;

static void fill(void *user, int run, const DiffTensor *t) {
  const Trial *trial = user;
  Rng rng;
  uint64_t h = trial->seed * 1000003u + (uint64_t)run;
  for (const char *p = t->name; *p; p++) h = h * 31 + (uint8_t)*p;
  rng_seed(&rng, h);
  const char *limit = t->name[0] == 'i' ? strchr(t->name, '_') : NULL;
  int64_t lo = t->dtype == DT_S8 ? -128 : -1000, hi = t->dtype == DT_S8 ? 127 : 1000;
  if (limit) lo = 0, hi = strtoll(limit + 1, NULL, 10) - 1;
  static const float special[] = {0.0f, -0.0f, 1,    -1,     INFINITY, -INFINITY, NAN, 0.5f,
                                  2,    -3,    1.5f, 1e-30f, -1e30f,   65,        -66};
  if (t->name[0] == 'z') {
    for (size_t i = 0; i < t->n; i++)
      dtype_set(t->dtype, t->data, i,
                (double)special[rng_range(&rng, 0, (int64_t)NPU_COUNTOF(special) - 1)]);
    return;
  }
  /* few different numbers, so that they round the same way and not to and fro */
  bool far = strncmp(t->name, "far", 3) == 0;
  for (size_t i = 0; i < t->n; i++) {
    double v = far                        ? 1000.1 + 0.001 * (double)rng_range(&rng, 0, 2)
               : dtype_is_float(t->dtype) ? rng_normal(&rng)
                                          : (double)rng_range(&rng, lo, hi);
    dtype_set(t->dtype, t->data, i, v);
  }
}

static bool compare(Trial *t, const DiffTensor *got, const DiffTensor *want, double relative,
                    const char *who) {
  double bound = relative * fmax(1, tensor_largest(want->dtype, want->data, want->n));
  size_t i = tensor_first_far(want->dtype, got->data, want->data, want->n, bound);
  if (i == want->n) return true;
  strbuf_printf(&t->why, "%s: %s[%zu] is %.9g, the host says %.9g within %.3g\n", who, got->name, i,
                dtype_get(got->dtype, got->data, i), dtype_get(want->dtype, want->data, i), bound);
  return false;
}

/* Of a value that is zero by construction. */
static bool near_zero(Trial *t, const DiffTensor *got, double bound) {
  for (size_t i = 0; i < got->n; i++) {
    double x = dtype_get(got->dtype, got->data, i);
    if (number_near(x, 0, bound)) continue;
    strbuf_printf(&t->why, "%s[%zu] is %.9g and should be zero within %.3g\n", got->name, i, x,
                  bound);
    return false;
  }
  return true;
}

/* A product whose weight -O0 leaves uncomputed stays bf16, where its like, calibrated on inputs
 * that differ from those of the run, may clip: their difference is not zero. */
static bool zeros_hold(const Trial *t) {
  return t->opt > 0 || t->numerics != STATIC;
}

static bool compare_all(Trial *t, const Diff *d) {
  static const double relative[] = {0x1p-13, 0x1p-6, 0x1p-6};
  for (int i = 0; i < d->runs * d->nout; i++) {
    const GenValue *v = &t->gen.v[t->gen.out[i % d->nout]];
    if (v->zero > 0 && zeros_hold(t) && !near_zero(t, &d->simulated[i], v->zero)) return false;
    double bound = v->exact ? 0 : relative[t->gen.coarse ? DEFAULT : t->numerics];
    if (!compare(t, &d->simulated[i], &d->optimized[i], bound, "simulator")) return false;
    /* The graph passes alone change nothing but the order of sums, and quantize nothing before the
     * first product. */
    if ((t->numerics == OWN || (v->exact && !t->gen.tables)) &&
        !compare(t, &d->optimized[i], &d->as_read[i], bound, "optimized graph"))
      return false;
  }
  return true;
}

static void set_up(Trial *t, const Fuzz *f, uint64_t seed) {
  Rng r;
  rng_seed(&r, seed ^ 0x5bd1e995);
  *t = (Trial){.seed = seed};
  t->machine = &f->machines[rng_range(&r, 0, 2)];
  t->opt = (int)rng_range(&r, 0, 2);
  double u = rng_uniform(&r);
  t->numerics = u < 0.5 ? OWN : u < 0.8 ? DEFAULT : STATIC;
  gen_model(&t->gen, seed, f->size ? f->size : (int)rng_range(&r, 1, 12));
}

static bool run_trial(Trial *t, const Fuzz *f) {
  Diff d;
  diff_init(&d);
  const char *path = arena_printf(d.arena, "%s/random.mdl", f->dir), *why = "";
  d.path = path;
  d.dir = f->dir;
  d.runs = t->gen.nstates ? 2 : 1;
  d.fill = fill;
  d.user = t;
  d.options.machine = t->machine;
  d.options.opt_level = t->opt;
  d.options.quantize = t->numerics != OWN;
  d.options.calibrate = t->numerics == STATIC ? "random" : NULL;
  bool ok = file_write_atomic(path, t->gen.text.data, t->gen.text.len, &why);
  if (!ok)
    strbuf_printf(&t->why, "cannot write %s: %s\n", path, why);
  else if (!diff_run(&d))
    strbuf_puts(&t->why, d.why.data), ok = false;
  else
    ok = compare_all(t, &d);
  diff_free(&d);
  return ok;
}

static void report(const Trial *t) {
  static const char *const numerics[] = {"--no-quantize", "", "--calibrate random"};
  printf("MISMATCH seed %llu: --machine %s -O%d %s\n%s%s\n", (unsigned long long)t->seed,
         t->machine->name, t->opt, numerics[t->numerics], t->why.data, t->gen.text.data);
}

static int run(const Fuzz *f) {
  int64_t bad = 0, n = 0;
  for (; f->count < 0 || n < f->count; n++) {
    Trial t;
    set_up(&t, f, f->seed + (uint64_t)n);
    if (f->verbose)
      printf("seed %llu\n%s", (unsigned long long)t.seed, t.gen.text.data), fflush(stdout);
    bool ok = run_trial(&t, f);
    if (!ok) report(&t), bad++;
    strbuf_free(&t.why);
    gen_free(&t.gen);
    if (f->count < 0 && n % 1000 == 999)
      printf("%lld models, %lld mismatches\n", (long long)n + 1, (long long)bad);
    fflush(stdout);
    if (!ok && !f->keep_going) break;
  }
  printf("%lld models from seed %llu, %lld mismatches\n",
         (long long)(bad && !f->keep_going ? n + 1 : n), (unsigned long long)f->seed,
         (long long)bad);
  return bad ? 1 : 0;
}

static bool read_options(Fuzz *f, int argc, char **argv) {
  static const struct option options[] = {{"seed", 1, NULL, 's'},    {"count", 1, NULL, 'c'},
                                          {"size", 1, NULL, 'z'},    {"keep-going", 0, NULL, 'k'},
                                          {"verbose", 0, NULL, 'v'}, {0}};
  for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (o) {
    case 's': f->seed = strtoull(optarg, NULL, 10); break;
    case 'c': f->count = strtoll(optarg, NULL, 10); break;
    case 'z': f->size = atoi(optarg); break;
    case 'k': f->keep_going = true; break;
    case 'v': f->verbose = true; break;
    default: return false;
    }
  }
  return true;
}

static bool load_machines(Fuzz *f) {
  static const char *const names[] = {"edge", MACHINES "/tiny.txt", MACHINES "/odd.txt"};
  DiagEngine *diag = diag_new();
  bool ok = true;
  for (int i = 0; i < 3; i++) ok = ok && machine_load(names[i], &f->machines[i], diag);
  if (!ok) diag_print_all(diag, stderr, false);
  diag_free(diag);
  return ok;
}

int main(int argc, char **argv) {
  Fuzz f = {.seed = 1, .count = -1};
  if (!read_options(&f, argc, argv)) {
    fprintf(
        stderr,
        "usage: npu-fuzz-graphs [--seed S] [--count N] [--size OPS] [--keep-going] [--verbose]\n");
    return 2;
  }
  char dir[] = "/tmp/npu-fuzz-graphs-XXXXXX";
  if (!load_machines(&f) || !mkdtemp(dir)) return 2;
  f.dir = dir;
  int status = run(&f);
  static const char *const files[] = {"random.mdl", "model.bin"};
  for (size_t i = 0; i < NPU_COUNTOF(files); i++) {
    char path[sizeof dir + 16];
    snprintf(path, sizeof path, "%s/%s", dir, files[i]);
    unlink(path);
  }
  rmdir(dir);
  return status;
}
