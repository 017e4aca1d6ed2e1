/* Running graph functions on the host: copy, lower, compile with backend/host, run. */
#include "tools/hostrun.h"

#include <math.h>
#include <string.h>

#include "passes/passes.h"
#include "tools/calibration.h"

/* ---- lowering a copy ---- */

static const Pass *builtin_pass(const char *name) {
  for (const Pass *const *p = builtin_passes; *p; p++)
    if (strcmp((*p)->name, name) == 0) return *p;
  return NULL;
}

/* Runs one pass on one function, with its default options and outside any pipeline. */
static bool run_pass(const HostRunner *h, IrFunc *f, const char *name) {
  const Pass *pass = builtin_pass(name);
  const char *values[32] = {0};
  for (size_t i = 0; pass->options && pass->options[i].name && i < NPU_COUNTOF(values); i++)
    values[i] = pass->options[i].dflt;
  PassManager *pm = pass_manager_new(h->module, h->machine); /* collects statistics nobody reads */
  Arena *scratch = arena_new();
  PassContext pc = {
      .module = h->module,
      .diag = h->diag,
      .scratch = scratch,
      .machine = h->machine,
      .pass = pass,
      .option_values = values,
      .api = ir_api(),
      .pm = pm,
  };
  bool ok = pass->run(&pc, f) == PASS_OK;
  f->level = pass->to;
  arena_free(scratch);
  pass_manager_free(pm);
  return ok;
}

/* Compiles the function in its lowered form and removes it from the module: its memory stays, being
 * the module's. */
static HostProgram *compile_and_remove(const HostRunner *h, IrFunc *f) {
  HostProgram *p = NULL;
  if (f->level != IR_GRAPH || run_pass(h, f, "lower")) p = host_compile(f, h->diag);
  ir_func_erase(f);
  return p;
}

HostProgram *hostrun_compile(const HostRunner *h, const IrFunc *f) {
  return compile_and_remove(h, ir_func_clone(f, "host", NULL, NULL));
}

/* ---- signatures ---- */

static ModelPort port_of(const char *name, const IrType *t) {
  ModelPort p = {.name = name, .dtype = t->dtype, .rank = t->rank};
  memcpy(p.shape, t->shape, sizeof p.shape);
  return p;
}

void hostrun_inputs(const IrFunc *f, ModelPort *out) {
  for (int i = 0; i < f->body->nargs; i++)
    out[i] = port_of(f->body->args[i]->name, f->body->args[i]->type);
}

void hostrun_outputs(const IrFunc *f, ModelPort *out) {
  for (int i = 0; i < f->nresults; i++)
    out[i] = port_of(f->result_names[i], ir_operand(f->body->last, i)->type);
}

/* ---- constant folding ---- */

bool hostrun_evaluate(void *host, IrFunc *f, const IrAttr **out) {
  const HostRunner *h = host;
  int n = f->nresults;
  HostProgram *p = hostrun_compile(h, f);
  if (!p) return false;
  void **outputs = mem_alloc((size_t)n * sizeof *outputs);
  for (int i = 0; i < n; i++)
    out[i] = ir_attr_data_new(h->module, ir_operand(f->body->last, i)->type, &outputs[i]);
  bool ok = host_run(p, NULL, outputs, h->diag);
  mem_free(outputs);
  host_free(p);
  return ok;
}

/* ---- observing ---- */

typedef struct {
  int n;
  IrValue *const *values;
  IrValue **copies;
} ValueCopies;

static void note_copy(void *user, const IrValue *old, IrValue *copy) {
  ValueCopies *v = user;
  for (int i = 0; i < v->n; i++)
    if (v->values[i] == old) v->copies[i] = copy;
}

/* Makes f return the given values and nothing else. */
static void set_results(IrFunc *f, int n, IrValue *const *values) {
  IrOp *ret = f->body->last;
  while (ret->noperands > 0) ir_remove_operand(ret, ret->noperands - 1);
  f->result_names = ARENA_ARRAY(f->module->arena, const char *, n);
  f->nresults = n;
  for (int i = 0; i < n; i++) {
    char name[24];
    snprintf(name, sizeof name, "observed%d", i);
    f->result_names[i] = ir_str(f->module, name);
    ir_add_operand(ret, values[i]);
  }
}

static HostProgram *compile_observer(const HostRunner *h, IrFunc *f, int n, IrValue *const *values,
                                     ModelPort *ports) {
  ValueCopies v = {n, values, mem_alloc((size_t)n * sizeof *v.copies)};
  IrFunc *copy = ir_func_clone(f, "observer", note_copy, &v);
  set_results(copy, n, v.copies);
  hostrun_outputs(copy, ports);
  mem_free(v.copies);
  return compile_and_remove(h, copy);
}

static void widen(const ModelPort *p, const void *data, float *lo, float *hi) {
  size_t n = (size_t)port_elements(p);
  for (size_t i = 0; i < n; i++) {
    float x = (float)dtype_get(p->dtype, data, i);
    if (x < *lo) *lo = x;
    if (x > *hi) *hi = x;
  }
}

/* The model's inputs while values inside are observed. */
typedef struct {
  const ModelPort *inputs;
  int ninputs;
  InputSeen *seen;
} Watch;

static bool observe_runs(HostProgram *p, SampleSet *s, const Watch *w, int n,
                         IrValue *const *values, const ModelPort *ports, float *lo, float *hi,
                         DiagEngine *diag) {
  void **outputs = mem_alloc((size_t)n * sizeof *outputs);
  bool ok = true;
  for (int i = 0; ok && i < n; i++) {
    outputs[i] = mem_try_alloc(port_bytes(&ports[i]));
    ok = outputs[i] != NULL;
    if (!ok)
      diag_error(diag, values[i]->def ? values[i]->def->loc : SRC_LOC_NONE, "E-memory",
                 "there is no memory for the %zu bytes of this value, whose range is to be seen",
                 port_bytes(&ports[i]));
  }
  for (int64_t run = 0; ok && run < samples_runs(s); run++) {
    const void *const *inputs = samples_load(s, run);
    ok = inputs && host_run(p, inputs, outputs, diag);
    if (ok) calibration_see(w->seen, w->inputs, w->ninputs, inputs);
    for (int i = 0; ok && i < n; i++) widen(&ports[i], outputs[i], &lo[i], &hi[i]);
  }
  for (int i = 0; i < n; i++) mem_free(outputs[i]);
  mem_free(outputs);
  return ok;
}

bool hostrun_observe(void *host, IrFunc *f, const char *calibration, int n, IrValue *const *values,
                     float *lo, float *hi) {
  const HostRunner *h = host;
  int nargs = f->body->nargs;
  ModelPort *inputs = mem_alloc((size_t)nargs * sizeof *inputs);
  ModelPort *ports = mem_alloc((size_t)n * sizeof *ports);
  hostrun_inputs(f, inputs);
  for (int i = 0; i < n; i++) {
    lo[i] = INFINITY;
    hi[i] = -INFINITY;
  }
  SampleSet *s = calibration_samples(calibration, f, inputs, h->diag);
  Watch w = {inputs, nargs, mem_alloc((size_t)nargs * sizeof *w.seen)};
  HostProgram *p = s ? compile_observer(h, f, n, values, ports) : NULL;
  bool ok = p && observe_runs(p, s, &w, n, values, ports, lo, hi, h->diag);
  if (ok)
    calibration_warn(w.seen, inputs, nargs, strcmp(calibration, "random") == 0, f->loc, h->diag);
  for (int i = 0; i < n; i++)
    if (lo[i] > hi[i]) lo[i] = hi[i] = 0; /* nothing but NaN was seen */
  host_free(p);
  samples_free(s);
  mem_free(w.seen);
  mem_free(inputs);
  mem_free(ports);
  return ok;
}
