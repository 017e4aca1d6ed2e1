/* e2e: compiles and runs every case of the table on one machine, at one optimization level, with
 * one kind of numbers, and compares: the host, model as read      with the oracle (plain
 * double-precision loops) the simulator, in each mode  with the host running the graph the program
 * was compiled from the simulator                with the oracle: within rounding when the model
 * keeps its own types, by signal to noise when it was quantized
 *
 * Bounds. Float sums on the host and on the vector unit are off by a few units of 2^-24 sum|t|
 * whatever their length (isa/README.md, passes/README.md; sums.c holds them to it); with the other
 * roundings a result passes, and functions good to a few units, 32 2^-24 mag are allowed, mag from
 * the oracle. The array adds n products in f32 one by one: n units more (Higham, Accuracy and
 * Stability of Numerical Algorithms, 2002, section 4.2). Two such sums differ by twice that. Where
 * values are stored as bf16, the two sums may round to neighbours: 2^-7 |y| more. Integers, and
 * elementwise operators, which round the same everywhere, are compared exactly. */
#include "support/tensorfile.h"
#include "tests/e2e/cases.h"
#include "tests/e2e/diff.h"
#include "tests/support/compare.h"
#include <getopt.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef enum { OWN, DEFAULT, STATIC } Numerics;
static const char *const numerics_names[] = {"own", "default", "static"};

typedef struct {
  const char *machine_name, *only, *dir;
  MachineDesc machine;
  int opt, shape; /* shape: -1 all */
  Numerics numerics;
  bool keep, verbose, host_only;
} Config;

/* One case in one shape. */
typedef struct {
  const Config *cfg;
  const Case *row;
  const char *shape;
  Arena *arena;
  OracleCall call; /* parameters and weights; inputs are added per run */
  int nweights;
  Diff diff;
  bool failed;
} Run;

static void complain(Run *r, const char *fmt, ...) NPU_PRINTF(2, 3);
static void complain(Run *r, const char *fmt, ...) {
  va_list ap;
  if (!r->failed)
    printf("FAILED %s \"%s\" (--machine %s --opt %d --numerics %s)\n", r->row->name, r->shape,
           r->cfg->machine_name, r->cfg->opt, numerics_names[r->cfg->numerics]);
  r->failed = true;
  va_start(ap, fmt);
  fputs("  ", stdout);
  vprintf(fmt, ap);
  va_end(ap);
}

/* ---- the table's little languages ---- */

static void read_defs(Run *r) {
  char *copy = arena_strdup(r->arena, r->shape), *save = NULL;
  for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
    char *eq = strchr(w, '=');
    *eq = '\0';
    r->call.defs[r->call.ndefs++] = (OracleDef){w, strtoll(eq + 1, NULL, 10)};
  }
}

/* "17*S/8": factors from left to right. */
static int64_t eval(const Run *r, const char *s) {
  int64_t v = 1;
  char op = '*';
  while (*s) {
    size_t len = strcspn(s, "*/");
    char *word = arena_strndup(r->arena, s, len);
    word[strcspn(word, " ")] = '\0';
    int64_t x =
        word[0] >= '0' && word[0] <= '9' ? strtoll(word, NULL, 10) : ora_def(&r->call, word);
    v = op == '*' ? v * x : v / x;
    s += len;
    op = *s;
    if (*s) s++;
  }
  return v;
}

static uint64_t seed_of(const Run *r, const char *name, int run) {
  uint64_t h = 14695981039346656037u + (uint64_t)run;
  const char *parts[] = {r->row->name, r->shape, name};
  for (int i = 0; i < 3; i++)
    for (const char *p = parts[i]; *p; p++) h = (h ^ (uint8_t)*p) * 1099511628211u;
  return h;
}

/* Finds "name=lo:hi" in the case's ranges. */
static bool range_of(const Run *r, const char *name, double *lo, double *hi) {
  size_t len = strlen(name);
  for (const char *p = r->row->ranges; p && *p; p += strcspn(p, " "), p += *p == ' ') {
    if (strncmp(p, name, len) || p[len] != '=') continue;
    char *end;
    *lo = strtod(p + len + 1, &end);
    const char *high = end + 1;
    if (*high >= 'A' && *high <= 'Z')
      *hi = (double)eval(r, arena_strndup(r->arena, high, strcspn(high, " "))) - 1;
    else
      *hi = strtod(high, NULL);
    return true;
  }
  return false;
}

static void fill(void *user, int run, const DiffTensor *t) {
  const Run *r = user;
  Rng rng;
  rng_seed(&rng, seed_of(r, t->name, run));
  double lo = 0, hi = 0;
  bool ranged = range_of(r, t->name, &lo, &hi);
  if (!ranged && !dtype_is_float(t->dtype)) {
    lo = t->dtype == DT_S8 ? -128 : -999;
    hi = t->dtype == DT_S8 ? 127 : 999;
  }
  for (size_t i = 0; i < t->n; i++) {
    double v = ranged ? lo + (hi - lo) * rng_uniform(&rng) : rng_normal(&rng);
    if (!dtype_is_float(t->dtype)) v = (double)rng_range(&rng, (int64_t)lo, (int64_t)hi);
    dtype_set(t->dtype, t->data, i, v);
  }
}

/* ---- inputs of a case ---- */

static void add_tensor(OracleCall *c, const char *name, DType t, int rank, const int64_t *shape,
                       const void *data) {
  Ora *o = &c->in[c->nin++];
  *o = (Ora){.name = name, .rank = rank, .n = 1};
  for (int i = 0; i < rank; i++) o->n *= o->shape[i] = shape[i];
  o->v = ARENA_ARRAY(c->arena, double, o->n);
  for (int64_t i = 0; i < o->n; i++) o->v[i] = dtype_get(t, data, (size_t)i);
}

/* Makes the weights named in the row and writes them to a file. */
static const char *write_weights(Run *r, DiagEngine *diag) {
  TensorEntry t[16];
  size_t n = 0;
  char *copy = arena_strdup(r->arena, r->row->weights), *save = NULL;
  for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
    char *eq = strchr(w, '='), *dims = NULL;
    *eq = '\0';
    TensorEntry *e = &t[n++];
    *e = (TensorEntry){.name = w, .dtype = DT_F32};
    size_t count = 1;
    for (char *d = strtok_r(eq + 1, ",", &dims); d; d = strtok_r(NULL, ",", &dims))
      count *= (size_t)(e->shape[e->rank++] = eval(r, d));
    e->bytes = count * sizeof(float);
    float *data = arena_alloc(r->arena, e->bytes);
    Rng rng;
    rng_seed(&rng, seed_of(r, w, 0));
    double std = e->rank > 1 ? 1 / sqrt((double)count / (double)e->shape[0]) : 0.5;
    for (size_t i = 0; i < count; i++) data[i] = (float)(std * rng_normal(&rng));
    e->data = data;
    if (r->row->oracle) add_tensor(&r->call, w, DT_F32, e->rank, e->shape, data);
  }
  r->nweights = r->call.nin;
  const char *path = arena_printf(r->arena, "%s/weights.safetensors", r->cfg->dir);
  return tensor_file_write(path, t, n, diag) ? path : NULL;
}

/* Shape of the tensor declared as "name: dtype[A, B*C]" at s; returns its end. */
static const char *read_decl(Run *r, const char *s, Ora *t) {
  s += strspn(s, " ,");
  t->name = arena_strndup(r->arena, s, strcspn(s, ":"));
  s = strchr(s, '[') + 1;
  t->n = 1;
  while (*s && *s != ']') {
    size_t len = strcspn(s, ",]");
    t->n *= t->shape[t->rank++] = eval(r, arena_strndup(r->arena, s, len));
    s += len + strspn(s + len, ", ");
  }
  return s + strspn(s, "]");
}

/* Declarations of the results. The oracle gives their shapes, found by running it on zeros;
 * networks declare them in the table. */
static void write_outputs(Run *r, StrBuf *b) {
  if (!r->row->oracle) {
    strbuf_puts(b, r->row->out);
    return;
  }
  OracleCall c = r->call;
  for (const char *s = r->row->in; *s;) {
    Ora *t = &c.in[c.nin++];
    *t = (Ora){0};
    s = read_decl(r, s, t);
    t->v = ARENA_ARRAY(r->arena, double, t->n);
  }
  r->row->oracle(&c);
  char *copy = arena_strdup(r->arena, r->row->out), *save = NULL;
  int i = 0;
  for (char *w = strtok_r(copy, ",", &save); w && i < c.nout; w = strtok_r(NULL, ",", &save), i++) {
    strbuf_printf(b, "%s%s[", i ? "," : "", w);
    for (int a = 0; a < c.out[i].rank; a++)
      strbuf_printf(b, "%s%lld", a ? ", " : "", (long long)c.out[i].shape[a]);
    strbuf_puts(b, "]");
  }
}

static const char *write_model(Run *r) {
  StrBuf b = {0};
  strbuf_printf(&b, "model m(%s) -> (", r->row->in);
  write_outputs(r, &b);
  strbuf_puts(&b, ")\n  with ");
  for (int i = 0; i < r->call.ndefs; i++)
    strbuf_printf(&b, "%s%s = 1", i ? ", " : "", r->call.defs[i].name);
  strbuf_printf(&b, "\n{\n%s\n}\n", r->row->body);
  const char *path = arena_printf(r->arena, "%s/model.mdl", r->cfg->dir), *why = NULL;
  bool ok = file_write_atomic(path, b.data, b.len, &why);
  strbuf_free(&b);
  return ok ? path : NULL;
}

/* ---- comparing ---- */

static double get(const DiffTensor *t, size_t i) {
  return dtype_get(t->dtype, t->data, i);
}

static double sum_bound(const Ora *o, size_t i, double more) {
  return (32 + more) * 0x1p-24 * o->mag[i] + 1e-37;
}

static bool same_shape(const DiffTensor *t, const Ora *o) {
  if (t->rank != o->rank) return false;
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] != o->shape[i]) return false;
  return true;
}

static void compare_oracle(Run *r, const char *who, const DiffTensor *t, const Ora *o) {
  if (!same_shape(t, o)) {
    complain(r, "%s: result '%s' has another shape than the oracle's\n", who, t->name);
    return;
  }
  for (size_t i = 0; i < t->n; i++) {
    double bound = r->row->flags & CASE_STEP ? 0 : sum_bound(o, i, 0);
    if (t->dtype == DT_BF16 && bound > 0) bound += 0x1p-8 * fabs(o->v[i]);
    if (!dtype_is_float(t->dtype)) bound = 0;
    if (number_near(get(t, i), o->v[i], bound)) continue;
    complain(r, "%s: %s[%zu] is %.9g, the oracle says %.9g within %.3g\n", who, t->name, i,
             get(t, i), o->v[i], bound);
    return;
  }
}

/* How far simulator and host may differ on element i. Networks have no oracle; their bounds are
 * relative to the largest result: neighbours in bf16 or s8 somewhere inside move it by a fraction
 * of a step. */
static double diff_bound(const Run *r, const DiffTensor *t, const OracleCall *c, const Ora *o,
                         size_t i, double max) {
  static const double net[] = {0x1p-14, 0x1p-6, 0x1p-4};
  if (!dtype_is_float(t->dtype)) return 0;
  if (!o) return max * net[r->cfg->numerics];
  if (c->terms == 0) return 0;
  double bound = 2 * sum_bound(o, i, r->cfg->numerics == OWN ? 0 : c->terms);
  if (r->cfg->numerics != OWN || t->dtype == DT_BF16) bound += 0x1p-7 * fabs(get(t, i));
  return bound;
}

static void compare_host(Run *r, const DiffTensor *sim, const DiffTensor *host, const OracleCall *c,
                         const Ora *o) {
  double max = tensor_largest(host->dtype, host->data, host->n);
  for (size_t i = 0; i < sim->n; i++) {
    double bound = diff_bound(r, host, c, o, i, max);
    if (number_near(get(sim, i), get(host, i), bound)) continue;
    complain(r, "simulator: %s[%zu] is %.9g, the host says %.9g within %.3g\n", sim->name, i,
             get(sim, i), get(host, i), bound);
    return;
  }
}

/* Signal to quantization noise, against the oracle or else the float model on the host. */
static void compare_sqnr(Run *r, const DiffTensor *sim, const DiffTensor *as_read, const Ora *o) {
  static const double want_op[] = {0, 30, 25}, want_net[] = {0, 25, 15};
  double signal = 0, noise = 0;
  for (size_t i = 0; i < sim->n; i++) {
    double v = o ? o->v[i] : get(as_read, i), e = get(sim, i) - v;
    if (!isfinite(v) && number_same(get(sim, i), v)) continue;
    signal += v * v;
    noise += e * e;
  }
  double db = 10 * log10(signal / (noise + 1e-300)),
         want = (o ? want_op : want_net)[r->cfg->numerics];
  if (r->cfg->verbose)
    printf("  %s %s: SQNR %.1f dB, %.0f cycles\n", r->row->name, r->shape, db, r->diff.cycles);
  if (!(db >= want) && signal != 0)
    complain(r, "simulator: %s has a signal to noise ratio of %.1f dB, less than %.0f\n", sim->name,
             db, want);
}

static void compare_run(Run *r, int run, const OracleCall *c) {
  const Diff *d = &r->diff;
  for (int i = 0; i < d->nout; i++) {
    int k = run * d->nout + i;
    const Ora *o = c ? &c->out[i] : NULL;
    if (o) compare_oracle(r, "host", &d->as_read[k], o);
    if (d->host_only) continue;
    compare_host(r, &d->simulated[k], &d->optimized[k], c, o);
    if (o && r->cfg->numerics == OWN) compare_oracle(r, "simulator", &d->simulated[k], o);
    bool smooth = dtype_is_float(d->simulated[k].dtype) && !(r->row->flags & CASE_STEP);
    if (smooth && r->cfg->numerics != OWN) compare_sqnr(r, &d->simulated[k], &d->as_read[k], o);
  }
}

static void compare_all(Run *r) {
  const Diff *d = &r->diff;
  OracleCall *before = NULL;
  for (int run = 0; run < d->runs; run++) {
    if (!r->row->oracle) {
      compare_run(r, run, NULL);
      continue;
    }
    OracleCall *c = arena_copy(r->arena, &r->call, sizeof r->call);
    c->nin = r->nweights;
    c->before = before;
    for (int i = 0; i < d->nin; i++) {
      const DiffTensor *t = &d->in[run * d->nin + i];
      add_tensor(c, t->name, t->dtype, t->rank, t->shape, t->data);
    }
    r->row->oracle(c);
    if (c->nout != d->nout)
      complain(r, "the model has %d results, the oracle %d\n", d->nout, c->nout);
    else
      compare_run(r, run, c);
    before = c;
  }
}

/* ---- running ---- */

static bool run_case(const Config *cfg, const Case *row, const char *shape) {
  Run r = {.cfg = cfg, .row = row, .shape = shape, .arena = arena_new()};
  DiagEngine *diag = diag_new();
  r.call.arena = r.arena;
  r.call.unary = row->unary;
  r.call.binary = row->binary;
  read_defs(&r);
  const char *weights = row->weights ? write_weights(&r, diag) : NULL;
  MdlDefine defines[24];
  for (int i = 0; i < r.call.ndefs; i++)
    defines[i] = (MdlDefine){r.call.defs[i].name, r.call.defs[i].value};
  Diff *d = &r.diff;
  diff_init(d);
  d->path = write_model(&r);
  d->dir = cfg->dir;
  d->host_only = cfg->host_only;
  d->fill = fill;
  d->user = &r;
  d->runs = row->flags & CASE_TWICE ? 3 : 1;
  d->options.mdl = (MdlOptions){.defines = defines,
                                .ndefines = (size_t)r.call.ndefs,
                                .weight_files = &weights,
                                .nweight_files = weights ? 1 : 0};
  d->options.machine = &cfg->machine;
  d->options.opt_level = cfg->opt;
  d->options.quantize = cfg->numerics != OWN;
  d->options.calibrate = cfg->numerics == STATIC ? "random" : NULL;
  if (!d->path || (row->weights && !weights))
    complain(&r, "cannot write to %s\n", cfg->dir);
  else if (!diff_run(d))
    complain(&r, "%s", d->why.data);
  else
    compare_all(&r);
  bool ok = !r.failed;
  diff_free(d);
  diag_free(diag);
  arena_free(r.arena);
  return ok;
}

static int run_table(const Config *cfg) {
  int ran = 0, failed = 0;
  for (size_t k = 0; k < e2e_ncases; k++) {
    const Case *row = &e2e_cases[k];
    if (cfg->only && !strstr(row->name, cfg->only)) continue;
    if (cfg->numerics == STATIC && !(row->flags & CASE_STATIC)) continue;
    for (int i = 0; i < (int)NPU_COUNTOF(row->shapes) && row->shapes[i]; i++) {
      if (cfg->shape >= 0 && cfg->shape != i) continue;
      ran++;
      failed += !run_case(cfg, row, row->shapes[i]);
      fflush(stdout);
    }
  }
  printf("%d of %d passed\n", ran - failed, ran);
  return failed || !ran ? 1 : 0;
}

static bool read_options(Config *c, int argc, char **argv) {
  static const struct option options[] = {
      {"machine", 1, NULL, 'm'}, {"opt", 1, NULL, 'o'},       {"numerics", 1, NULL, 'n'},
      {"case", 1, NULL, 'c'},    {"shape", 1, NULL, 's'},     {"keep", 0, NULL, 'k'},
      {"verbose", 0, NULL, 'v'}, {"host-only", 0, NULL, 'h'}, {0}};
  for (int o; (o = getopt_long(argc, argv, "", options, NULL)) != -1;) {
    switch (o) {
    case 'm': c->machine_name = optarg; break;
    case 'o': c->opt = atoi(optarg); break;
    case 'n':
      for (int i = 0; i < 3; i++)
        if (!strcmp(optarg, numerics_names[i])) c->numerics = (Numerics)i;
      break;
    case 'c': c->only = optarg; break;
    case 's': c->shape = atoi(optarg); break;
    case 'k': c->keep = true; break;
    case 'v': c->verbose = true; break;
    case 'h': c->host_only = true; break;
    default: return false;
    }
  }
  return true;
}

int main(int argc, char **argv) {
  Config c = {.machine_name = "edge", .opt = 2, .shape = -1};
  if (!read_options(&c, argc, argv)) {
    fprintf(stderr, "usage: e2e [--machine M] [--opt 0|1|2] [--numerics own|default|static] "
                    "[--case TEXT] [--shape N] "
                    "[--host-only] [--keep] [--verbose]\n");
    return 2;
  }
  DiagEngine *diag = diag_new();
  bool ok = machine_load(c.machine_name, &c.machine, diag);
  if (!ok) diag_print_all(diag, stderr, false);
  diag_free(diag);
  char dir[] = "/tmp/npucc-e2e-XXXXXX";
  if (!ok || !mkdtemp(dir)) return 2;
  c.dir = dir;
  int status = run_table(&c);
  if (c.keep) {
    printf("files of the last case are in %s\n", dir);
    return status;
  }
  static const char *const files[] = {"model.mdl", "weights.safetensors", "model.bin"};
  for (size_t i = 0; i < NPU_COUNTOF(files); i++) {
    char path[sizeof dir + 32];
    snprintf(path, sizeof path, "%s/%s", dir, files[i]);
    unlink(path);
  }
  rmdir(dir);
  return status;
}
