/* Running a model over files of samples; see batch.h. */
#include "tools/batch.h"

#include <string.h>

#include "tools/outputs.h"
#include "tools/tensorspec.h"

/* All outputs of all runs. */
typedef struct {
  TensorEntry *tensors; /* one per output port; data points into buffers */
  char **buffers;
  void **run; /* where the next run writes */
} Gathered;

static bool gather_new(Gathered *g, const BatchModel *m, const SampleSet *s, DiagEngine *diag) {
  size_t n = (size_t)m->noutputs;
  int64_t runs = samples_runs(s), part = samples_part(s);
  *g = (Gathered){mem_alloc(n * sizeof *g->tensors), mem_alloc(n * sizeof *g->buffers),
                  mem_alloc(n * sizeof *g->run)};
  for (size_t i = 0; i < n; i++) {
    const ModelPort *p = &m->outputs[i];
    TensorEntry *t = &g->tensors[i];
    int64_t bytes;
    if (!mul_i64((int64_t)port_bytes(p), runs, &bytes)) {
      diag_error(diag, SRC_LOC_NONE, "E-output", "output '%s' of %lld runs is too large", p->name,
                 (long long)runs);
      return false;
    }
    g->buffers[i] = mem_try_alloc((size_t)bytes);
    if (!g->buffers[i]) {
      diag_error(diag, SRC_LOC_NONE, "E-memory",
                 "there is no memory for the %lld bytes of output '%s' in %lld run%s",
                 (long long)bytes, p->name, (long long)runs, runs == 1 ? "" : "s");
      return false;
    }
    *t = (TensorEntry){.name = p->name, .dtype = p->dtype, .rank = p->rank, .data = g->buffers[i]};
    memcpy(t->shape, p->shape, sizeof t->shape);
    t->bytes = (size_t)bytes;
    if (!samples_cut(s)) continue; /* one run of exactly the declared shapes */
    int64_t rows = p->rank > 0 ? samples_rows(s, p->shape[0]) : 0;
    if (rows == 0 && part)
      diag_warning(diag, SRC_LOC_NONE, "W-samples",
                   "the last run of %lld was filled up with samples that output '%s' may count "
                   "twice; give a multiple of %lld samples",
                   (long long)part, p->name, (long long)part);
    if (rows) {
      t->shape[0] = rows;
      t->bytes = (size_t)rows * (port_bytes(p) / (size_t)p->shape[0]);
    } else if (p->rank == 0) {
      t->rank = 1;
      t->shape[0] = runs;
    } else {
      t->shape[0] *= runs;
    }
  }
  return true;
}

static void gather_free(Gathered *g, int n) {
  for (int i = 0; i < n && g->buffers; i++) mem_free(g->buffers[i]);
  mem_free(g->buffers);
  mem_free(g->tensors);
  mem_free(g->run);
}

static void show_progress(const BatchOptions *o, int64_t run, int64_t runs) {
  if (!o->progress || runs < 2) return;
  fprintf(stderr, run == runs ? "\r\x1b[K" : "\rrun %lld of %lld", (long long)run + 1,
          (long long)runs);
  fflush(stderr);
}

static bool run_all(const BatchModel *m, const BatchOptions *o, SampleSet *s, Gathered *g,
                    DiagEngine *diag) {
  int64_t runs = samples_runs(s);
  bool ok = true;
  for (int64_t run = 0; ok && run < runs; run++) {
    show_progress(o, run, runs);
    for (int i = 0; i < m->noutputs; i++)
      g->run[i] = g->buffers[i] + (size_t)run * port_bytes(&m->outputs[i]);
    const void *const *inputs = samples_load(s, run);
    ok = inputs && m->run(m->user, inputs, g->run, diag);
  }
  show_progress(o, runs, runs);
  return ok;
}

/* ---- labels ---- */

/* The right class of every sample, and the output that says which the model takes it for. All that
 * can be wrong with them is found before anything runs. */
typedef struct {
  TensorFile *file;
  TensorEntry classes;
  const TensorEntry *entry; /* of the file, and the byte of it where the classes begin */
  size_t first;
  const TensorEntry *scores;
} Labels;

static bool find_labels(const char *text, Labels *l, DiagEngine *diag) {
  Arena *a = arena_new();
  TensorSpec spec = tensor_spec_parse(a, text);
  l->file = tensor_file_open(spec.path, diag, SRC_LOC_NONE);
  const char *name = spec.tensor ? spec.tensor : "labels";
  const TensorEntry *t = NULL;
  if (l->file)
    t = tensor_file_count(l->file) == 1 && !spec.tensor ? tensor_file_at(l->file, 0)
                                                        : tensor_file_find(l->file, name);
  const char *why = l->file && !t ? tensor_file_why_unusable(l->file, name) : NULL;
  if (why)
    diag_error(diag, SRC_LOC_NONE, "E-input", "the labels, tensor '%s' of '%s', %s", name,
               spec.path, why);
  else if (l->file && !t)
    diag_error(diag, SRC_LOC_NONE, "E-input",
               "'%s' has no tensor '%s'; name the labels with --labels %s:TENSOR", spec.path, name,
               spec.path);
  if (t) l->classes = *t;
  l->entry = t;
  bool ok = t && tensor_spec_cut(&spec, &l->classes, &l->first, diag);
  arena_free(a);
  return ok;
}

/* The output that holds class scores: the first of shape [rows, classes]. */
static const TensorEntry *find_scores(const Gathered *g, int n) {
  for (int i = 0; i < n; i++)
    if (g->tensors[i].rank == 2) return &g->tensors[i];
  return NULL;
}

/* One class number per sample. */
static bool check_labels(const char *path, Labels *l, DiagEngine *diag) {
  TensorEntry *t = &l->classes;
  int64_t rows = l->scores->shape[0], classes = l->scores->shape[1];
  StrBuf found = {0};
  port_print(&found, t->dtype, t->rank, t->shape);
  bool ok = t->rank > 0 && t->shape[0] == rows && t->bytes / dtype_size(t->dtype) == (size_t)rows;
  if (!ok)
    diag_error(diag, SRC_LOC_NONE, "E-input",
               "the labels of '%s' are %s, but %lld sample%s run; give one label per sample", path,
               found.data, (long long)rows, rows == 1 ? " is" : "s are");
  if (ok) t->data = tensor_file_part(l->file, l->entry, l->first, t->bytes, diag, SRC_LOC_NONE);
  ok = ok && t->data;
  for (int64_t r = 0; ok && r < rows; r++) {
    double label = dtype_get(t->dtype, t->data, (size_t)r);
    ok = label >= 0 && label < (double)classes && label == (double)(int64_t)label;
    if (!ok)
      diag_error(diag, SRC_LOC_NONE, "E-input",
                 "label %g of sample %lld in '%s' is none of the classes 0..%lld", label,
                 (long long)r, path, (long long)classes - 1);
  }
  strbuf_free(&found);
  return ok;
}

static bool read_labels(const BatchOptions *o, const Gathered *g, int n, Labels *l,
                        DiagEngine *diag) {
  if (!o->labels) return true;
  l->scores = find_scores(g, n);
  if (!l->scores) {
    diag_error(diag, SRC_LOC_NONE, "E-output",
               "--labels needs an output of shape [samples, classes]; this model has none");
    return false;
  }
  return find_labels(o->labels, l, diag) && check_labels(o->labels, l, diag);
}

static int64_t best_class(const TensorEntry *scores, int64_t row) {
  int64_t classes = scores->shape[1], best = 0;
  size_t first = (size_t)(row * classes);
  for (int64_t c = 1; c < classes; c++)
    if (dtype_get(scores->dtype, scores->data, first + (size_t)c) >
        dtype_get(scores->dtype, scores->data, first + (size_t)best))
      best = c;
  return best;
}

static void show_accuracy(const Labels *l, StrBuf *text) {
  int64_t right = 0, rows = l->scores->shape[0];
  for (int64_t r = 0; r < rows; r++)
    right +=
        (double)best_class(l->scores, r) == dtype_get(l->classes.dtype, l->classes.data, (size_t)r);
  strbuf_printf(text, "top-1 accuracy of %s: %.2f %% (%lld of %lld)\n", l->scores->name,
                100.0 * (double)right / (double)rows, (long long)right, (long long)rows);
}

/* ---- all ---- */

enum { SHOWN_ELEMENTS = 10 };

static void show_outputs(const Gathered *g, int n, StrBuf *text) {
  for (int i = 0; i < n; i++) {
    const TensorEntry *t = &g->tensors[i];
    size_t count = t->bytes / dtype_size(t->dtype);
    strbuf_printf(text, "%s: ", t->name);
    port_print(text, t->dtype, t->rank, t->shape);
    strbuf_puts(text, " =");
    for (size_t k = 0; k < count && k < SHOWN_ELEMENTS; k++)
      strbuf_printf(text, dtype_is_float(t->dtype) ? " %.6g" : " %.0f",
                    dtype_get(t->dtype, t->data, k));
    strbuf_puts(text, count > SHOWN_ELEMENTS ? " ...\n" : "\n");
  }
}

static bool run_samples(const BatchModel *m, const BatchOptions *o, const OutputPlan *plan,
                        SampleSet *s, StrBuf *text, DiagEngine *diag) {
  Gathered g = {0};
  Labels labels = {0};
  bool ok = gather_new(&g, m, s, diag) && read_labels(o, &g, m->noutputs, &labels, diag) &&
            run_all(m, o, s, &g, diag);
  if (ok && o->labels) show_accuracy(&labels, text);
  if (ok && o->noutputs == 0 && !o->labels && !o->quiet) show_outputs(&g, m->noutputs, text);
  ok = ok && outputs_write(plan, g.tensors, diag);
  if (labels.file) tensor_file_close(labels.file);
  gather_free(&g, m->noutputs);
  return ok;
}

SampleSet *batch_samples(const ModelPort *inputs, int n, const BatchOptions *o, DiagEngine *diag) {
  SampleSet *s = samples_new(inputs, n, diag);
  bool ok = true;
  for (int i = 0; ok && i < o->ninputs; i++) ok = samples_add(s, o->inputs[i]);
  if (ok && o->random) samples_random(s, o->seed, 1);
  if (ok && samples_finish(s)) return s;
  samples_free(s);
  return NULL;
}

bool batch_run(const BatchModel *m, const BatchOptions *o, StrBuf *text, DiagEngine *diag) {
  OutputPlan *plan = outputs_plan(m->outputs, m->noutputs, o->outputs, o->noutputs, diag);
  SampleSet *s = plan ? batch_samples(m->inputs, m->ninputs, o, diag) : NULL;
  bool ok = s && run_samples(m, o, plan, s, text, diag);
  outputs_free(plan);
  samples_free(s);
  return ok;
}
