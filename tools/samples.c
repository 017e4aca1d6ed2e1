/* Inputs of a model from tensor files: binding by name, checks, conversion, batches. */
#include "tools/samples.h"

#include <math.h>
#include <string.h>

#include "tools/tensorspec.h"

typedef enum { UNBOUND, RANDOM, FIXED, BATCHED } Binding; /* FIXED: the same tensor in every run */

typedef struct {
  Binding binding;
  TensorEntry tensor; /* the rows to run; data NULL until the first */
  TensorFile *file;
  const TensorEntry *entry; /* of the file, and the byte of it where the rows begin */
  size_t first;
  int64_t extent; /* > 0: drawn s32 elements are indices below it */
  int64_t rows;   /* samples in the tensor, for rank >= 1 */
} Input;

struct SampleSet {
  DiagEngine *diag;
  const ModelPort *ports;
  Input *inputs;
  void **buffers;
  int n;
  TensorFile **files;
  size_t nfiles;
  uint64_t seed;
  Rng rng;
  int64_t runs, part; /* part: samples a run of an input whose last run is not full, or 0 */
  bool cut;
};

/* ---- ports ---- */

int64_t port_elements(const ModelPort *p) {
  int64_t n = 1;
  for (int i = 0; i < p->rank; i++) n *= p->shape[i];
  return n;
}

size_t port_bytes(const ModelPort *p) {
  return (size_t)port_elements(p) * dtype_size(p->dtype);
}

void port_print(StrBuf *b, DType dtype, int rank, const int64_t *shape) {
  strbuf_printf(b, "%s[", dtype_name(dtype));
  for (int i = 0; i < rank; i++) strbuf_printf(b, i ? ",%lld" : "%lld", (long long)shape[i]);
  strbuf_putc(b, ']');
}

/* ---- errors ---- */

static bool input_error(SampleSet *s, const char *fmt, ...) NPU_PRINTF(2, 3);
static bool input_error(SampleSet *s, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_report(s->diag, DIAG_ERROR, SRC_LOC_NONE, "E-input", fmt, ap);
  va_end(ap);
  return false;
}

static void list_ports(const SampleSet *s, StrBuf *b) {
  for (int i = 0; i < s->n; i++) {
    strbuf_printf(b, "%s%s: ", i ? ", " : "", s->ports[i].name);
    port_print(b, s->ports[i].dtype, s->ports[i].rank, s->ports[i].shape);
  }
}

enum { LIST_MAX = 8 };

/* The array of an .npy file has no name. */
static void put_name(StrBuf *b, const char *before, const char *name) {
  strbuf_printf(b, *name ? "%s'%s'" : "%san array without a name", before, name);
}

static void list_tensors(TensorFile *f, StrBuf *b) {
  size_t n = tensor_file_count(f);
  for (size_t i = 0; i < n && i < LIST_MAX; i++)
    put_name(b, i ? ", " : "", tensor_file_at(f, i)->name);
  if (n > LIST_MAX) strbuf_printf(b, " and %zu more", n - LIST_MAX);
  if (n == 0) strbuf_puts(b, "no tensor");
}

/* ---- binding ---- */

SampleSet *samples_new(const ModelPort *ports, int nports, DiagEngine *diag) {
  SampleSet *s = mem_alloc(sizeof *s);
  *s = (SampleSet){.diag = diag, .ports = ports, .n = nports, .runs = 1};
  s->inputs = mem_alloc((size_t)nports * sizeof *s->inputs);
  s->buffers = mem_alloc((size_t)nports * sizeof *s->buffers);
  return s;
}

void samples_free(SampleSet *s) {
  if (!s) return;
  for (int i = 0; i < s->n; i++) mem_free(s->buffers[i]);
  for (size_t i = 0; i < s->nfiles; i++) tensor_file_close(s->files[i]);
  mem_free(s->files);
  mem_free(s->buffers);
  mem_free(s->inputs);
  mem_free(s);
}

static int find_port(const SampleSet *s, const char *name, size_t len) {
  for (int i = 0; i < s->n; i++)
    if (strlen(s->ports[i].name) == len && memcmp(s->ports[i].name, name, len) == 0) return i;
  return -1;
}

static bool unknown_port(SampleSet *s, const char *spec, size_t len) {
  StrBuf have = {0};
  list_ports(s, &have);
  input_error(s, "the model has no input '%.*s'; it has %s (a file of this name is './%s')",
              (int)len, spec, have.len ? have.data : "none", spec);
  strbuf_free(&have);
  return false;
}

static TensorFile *open_file(SampleSet *s, const char *path) {
  for (size_t i = 0; i < s->nfiles; i++)
    if (strcmp(tensor_file_path(s->files[i]), path) == 0) return s->files[i];
  TensorFile *f = tensor_file_open(path, s->diag, SRC_LOC_NONE);
  if (!f) return NULL;
  s->files = mem_realloc(s->files, (s->nfiles + 1) * sizeof *s->files);
  return s->files[s->nfiles++] = f;
}

static bool bind(SampleSet *s, int port, TensorFile *f, const TensorEntry *t,
                 const TensorSpec *spec) {
  Input *in = &s->inputs[port];
  if (in->binding != UNBOUND)
    return input_error(s, "input '%s' is given twice ('%s' and '%s')", s->ports[port].name,
                       tensor_file_path(in->file), tensor_file_path(f));
  *in = (Input){.binding = FIXED, .tensor = *t, .file = f, .entry = t};
  return tensor_spec_cut(spec, &in->tensor, &in->first, s->diag);
}

static bool no_tensor(SampleSet *s, TensorFile *f, const char *name) {
  const char *why = tensor_file_why_unusable(f, name);
  if (why) return input_error(s, "tensor '%s' of '%s' %s", name, tensor_file_path(f), why);
  StrBuf have = {0};
  list_tensors(f, &have);
  input_error(s, "'%s' has no tensor '%s'; it has %s (choose one with NAME=%s:TENSOR)",
              tensor_file_path(f), name, have.data, tensor_file_path(f));
  strbuf_free(&have);
  return false;
}

/* One input from a file: the tensor asked for, the only one, or the one of the input's name. */
static bool bind_one(SampleSet *s, int port, TensorFile *f, const TensorSpec *spec) {
  const char *tensor = spec->tensor;
  const TensorEntry *t = NULL;
  if (tensor)
    t = tensor_file_find(f, tensor);
  else if (tensor_file_count(f) == 1)
    t = tensor_file_at(f, 0);
  else
    t = tensor_file_find(f, s->ports[port].name);
  return t ? bind(s, port, f, t, spec) : no_tensor(s, f, tensor ? tensor : s->ports[port].name);
}

static bool bind_by_names(SampleSet *s, TensorFile *f, const TensorSpec *spec) {
  int bound = 0;
  for (int i = 0; i < s->n; i++) {
    const TensorEntry *t = tensor_file_find(f, s->ports[i].name);
    if (!t && tensor_file_why_unusable(f, s->ports[i].name))
      return no_tensor(s, f, s->ports[i].name);
    if (!t) continue;
    if (!bind(s, i, f, t, spec)) return false;
    bound++;
  }
  if (bound || s->n == 0) return true;
  StrBuf inputs = {0}, have = {0};
  list_ports(s, &inputs);
  list_tensors(f, &have);
  input_error(
      s,
      "no tensor of '%s' has the name of an input; the model takes %s, the file has %s (say "
      "which is which with NAME=FILE:TENSOR)",
      tensor_file_path(f), inputs.data, have.data);
  strbuf_free(&inputs);
  strbuf_free(&have);
  return false;
}

bool samples_add(SampleSet *s, const char *spec) {
  const char *eq = strchr(spec, '=');
  int port = eq ? find_port(s, spec, (size_t)(eq - spec)) : -1;
  if (port < 0 && tensor_spec_name(spec)) return unknown_port(s, spec, (size_t)(eq - spec));
  Arena *a = arena_new();
  TensorSpec at = tensor_spec_parse(a, port >= 0 ? eq + 1 : spec);
  TensorFile *f = open_file(s, at.path);
  if (port < 0 && s->n == 1) port = 0;
  bool ok = f != NULL;
  if (ok && at.tensor && port < 0)
    ok = input_error(s, "which input is tensor '%s' of '%s' for? Write NAME=%s", at.tensor, at.path,
                     spec);
  else if (ok)
    ok = port >= 0 ? bind_one(s, port, f, &at) : bind_by_names(s, f, &at);
  arena_free(a);
  return ok;
}

void samples_random(SampleSet *s, uint64_t seed, int64_t runs) {
  s->seed = seed;
  for (int i = 0; i < s->n; i++)
    if (s->inputs[i].binding == UNBOUND) s->inputs[i].binding = RANDOM;
  s->runs = runs;
}

void samples_indices(SampleSet *s, int port, int64_t extent) {
  s->inputs[port].extent = extent;
}

bool samples_zero(const SampleSet *s, int port) {
  const Input *in = &s->inputs[port];
  return in->binding == RANDOM && s->ports[port].dtype == DT_S32 && in->extent == 0;
}

/* ---- checks ---- */

static bool wrong_shape(SampleSet *s, int i) {
  const ModelPort *p = &s->ports[i];
  const TensorEntry *t = &s->inputs[i].tensor;
  StrBuf want = {0}, got = {0};
  port_print(&want, p->dtype, p->rank, p->shape);
  port_print(&got, t->dtype, t->rank, t->shape);
  input_error(s, "input '%s' is declared %s, but '%s' gives %s; %s", p->name, want.data,
              tensor_file_path(s->inputs[i].file), got.data,
              p->rank ? "all axes but the first must agree" : "a scalar is wanted");
  strbuf_free(&want);
  strbuf_free(&got);
  return false;
}

static bool check_type(SampleSet *s, int i) {
  const ModelPort *p = &s->ports[i];
  const TensorEntry *t = &s->inputs[i].tensor;
  if (dtype_is_float(p->dtype) || !dtype_is_float(t->dtype)) return true;
  return input_error(s,
                     "input '%s' is declared %s, but '%s' gives %s; convert it to an integer type "
                     "first, if rounding is what you want",
                     p->name, dtype_name(p->dtype), tensor_file_path(s->inputs[i].file),
                     dtype_name(t->dtype));
}

static bool check_shape(SampleSet *s, int i) {
  const ModelPort *p = &s->ports[i];
  Input *in = &s->inputs[i];
  const TensorEntry *t = &in->tensor;
  bool one_sample = p->rank > 0 && t->rank == p->rank - 1;
  if (t->rank != p->rank && !one_sample) return wrong_shape(s, i);
  for (int d = p->rank ? 1 : 0; d < p->rank; d++)
    if (t->shape[one_sample ? d - 1 : d] != p->shape[d]) return wrong_shape(s, i);
  in->rows = p->rank == 0 || one_sample ? 1 : t->shape[0];
  if (in->rows == 0)
    return input_error(s, "'%s' holds no samples for input '%s'", tensor_file_path(in->file),
                       p->name);
  if (p->rank > 0 && in->rows != p->shape[0]) in->binding = BATCHED;
  return true;
}

/* Whether the first axis of input i takes part in what is cut into runs, or should. */
static bool counts_runs(const SampleSet *s, int i) {
  const Input *in = &s->inputs[i];
  return in->binding == BATCHED ||
         (in->binding == FIXED && s->ports[i].rank > 0 && s->ports[i].shape[0] > 1 &&
          samples_rows(s, s->ports[i].shape[0]) > 0);
}

static bool disagree(SampleSet *s) {
  StrBuf b = {0};
  for (int i = 0; i < s->n; i++) {
    long long rows = (long long)s->inputs[i].rows, batch = (long long)s->ports[i].shape[0];
    if (!counts_runs(s, i)) continue;
    strbuf_printf(&b, "%s'%s' has %lld sample%s at %lld a run (%.4g run%s)", b.len ? ", " : "",
                  s->ports[i].name, rows, rows == 1 ? "" : "s", batch, (double)rows / (double)batch,
                  rows == batch ? "" : "s");
  }
  input_error(s,
              "the inputs hold samples for different numbers of runs: %s; give each enough for the "
              "same number",
              b.data);
  strbuf_free(&b);
  return false;
}

/* rows of a for batches of its size are as many runs as those of b, parts of runs included. */
static bool same_runs(const SampleSet *s, int a, int b) {
  int64_t ra = s->inputs[a].rows, na = s->ports[a].shape[0];
  int64_t rb = s->inputs[b].rows, nb = s->ports[b].shape[0];
  int64_t ga = gcd_i64(ra, na), gb = gcd_i64(rb, nb);
  return ra / ga == rb / gb && na / ga == nb / gb;
}

/* All inputs cut into runs must fill the same number of them. An input of exactly the declared
 * shape is repeated, unless others that take as many samples a run have more: then it is too short.
 * One sample may always stand for all. */
static bool check_rows(SampleSet *s) {
  int first = -1;
  for (int i = 0; i < s->n; i++) {
    if (!counts_runs(s, i)) continue;
    if (first < 0) first = i;
    if (!same_runs(s, first, i)) return disagree(s);
  }
  if (first < 0) return true;
  int64_t rows = s->inputs[first].rows, batch = s->ports[first].shape[0];
  s->runs = ceil_div(rows, batch);
  s->cut = true;
  if (rows % batch) s->part = batch;
  return true;
}

static bool take_buffers(SampleSet *s) {
  for (int i = 0; i < s->n; i++) {
    s->buffers[i] = mem_try_alloc(port_bytes(&s->ports[i]));
    if (s->buffers[i]) continue;
    diag_error(s->diag, SRC_LOC_NONE, "E-memory",
               "there is no memory for the %zu bytes of input '%s'", port_bytes(&s->ports[i]),
               s->ports[i].name);
    return false;
  }
  return true;
}

bool samples_finish(SampleSet *s) {
  bool ok = true;
  for (int i = 0; i < s->n; i++) {
    if (s->inputs[i].binding == UNBOUND) {
      StrBuf want = {0};
      port_print(&want, s->ports[i].dtype, s->ports[i].rank, s->ports[i].shape);
      ok = input_error(s, "input '%s' (%s) is not given; use --input %s=FILE or --random SEED",
                       s->ports[i].name, want.data, s->ports[i].name);
      strbuf_free(&want);
    } else if (s->inputs[i].binding != RANDOM) {
      ok = check_type(s, i) && check_shape(s, i) && ok;
    }
  }
  return ok && check_rows(s) && take_buffers(s);
}

int64_t samples_runs(const SampleSet *s) {
  return s->runs;
}
int64_t samples_rows(const SampleSet *s, int64_t batch) {
  for (int i = 0; i < s->n; i++)
    if (s->inputs[i].binding == BATCHED && s->ports[i].shape[0] == batch) return s->inputs[i].rows;
  return 0;
}
bool samples_cut(const SampleSet *s) {
  return s->cut;
}
int64_t samples_part(const SampleSet *s) {
  return s->part;
}

/* ---- loading ---- */

/* Whether the declared type can hold every element, those of later runs too; says which cannot. */
static bool values_fit(SampleSet *s, int i) {
  enum { CHUNK = 1024 };
  const ModelPort *p = &s->ports[i];
  const TensorEntry *t = &s->inputs[i].tensor;
  size_t size = dtype_size(t->dtype), n = t->bytes / size;
  bool to_float = dtype_is_float(p->dtype);
  double converted[CHUNK]; /* room for any type */
  if (t->dtype == p->dtype || (to_float && !dtype_is_float(t->dtype))) return true;
  for (size_t at = 0; at < n; at += CHUNK) {
    const char *from = (const char *)t->data + at * size;
    size_t count = n - at < CHUNK ? n - at : CHUNK;
    dtype_convert(p->dtype, converted, t->dtype, from, count);
    for (size_t k = 0; k < count; k++) {
      double v = dtype_get(t->dtype, from, k), w = dtype_get(p->dtype, converted, k);
      /* infinities and NaN are values, as in masks; becoming one is not */
      if (to_float ? isfinite(w) || !isfinite(v) : v == w) continue;
      return input_error(s, "input '%s': '%s' holds %g, which %s", p->name,
                         tensor_file_path(s->inputs[i].file), v,
                         to_float ? "is too large for the declared type"
                                  : "does not fit the declared integer type");
    }
  }
  return true;
}

static void draw(SampleSet *s, int i) {
  const ModelPort *p = &s->ports[i];
  size_t n = (size_t)port_elements(p);
  for (size_t k = 0; k < n; k++) {
    double v = 0;
    if (dtype_is_float(p->dtype))
      v = rng_normal(&s->rng);
    else if (p->dtype == DT_S8)
      v = (double)rng_range(&s->rng, INT8_MIN, INT8_MAX);
    else if (s->inputs[i].extent > 0)
      v = (double)rng_range(&s->rng, 0, s->inputs[i].extent - 1);
    dtype_set(p->dtype, s->buffers[i], k, v);
  }
}

static void load_batch(SampleSet *s, int i, int64_t run) {
  const ModelPort *p = &s->ports[i];
  const TensorEntry *t = &s->inputs[i].tensor;
  size_t row = (size_t)(port_elements(p) / p->shape[0]);
  size_t from_bytes = row * dtype_size(t->dtype), to_bytes = row * dtype_size(p->dtype);
  int64_t batch = p->shape[0], first = run * batch, left = s->inputs[i].rows - first;
  int64_t whole = left < batch ? left : batch;
  char *to = s->buffers[i];
  dtype_convert(p->dtype, to, t->dtype, (const char *)t->data + (size_t)first * from_bytes,
                row * (size_t)whole);
  for (int64_t k = whole; k < batch; k++) /* repeat the batch's own samples */
    memcpy(to + (size_t)k * to_bytes, to + (size_t)(k % whole) * to_bytes, to_bytes);
}

/* The elements of a bound input: read and checked once everything else about it has been found
 * right, before the first run. */
static bool read_elements(SampleSet *s, int i) {
  Input *in = &s->inputs[i];
  if (in->tensor.data) return true;
  in->tensor.data =
      tensor_file_part(in->file, in->entry, in->first, in->tensor.bytes, s->diag, SRC_LOC_NONE);
  return in->tensor.data != NULL && values_fit(s, i);
}

const void *const *samples_load(SampleSet *s, int64_t run) {
  if (run == 0) rng_seed(&s->rng, s->seed);
  for (int i = 0; i < s->n; i++) {
    const Input *in = &s->inputs[i];
    if (in->binding != RANDOM && !read_elements(s, i)) return NULL;
    if (in->binding == RANDOM)
      draw(s, i);
    else if (in->binding == BATCHED)
      load_batch(s, i, run);
    else if (run == 0)
      dtype_convert(s->ports[i].dtype, s->buffers[i], in->tensor.dtype, in->tensor.data,
                    (size_t)port_elements(&s->ports[i]));
  }
  return (const void *const *)s->buffers;
}
