/* Results of functions on samples; see results.h. */
#include "tools/results.h"

#include <string.h>

Results *results_new(const IrFunc *f) {
  Results *r = mem_alloc(sizeof *r);
  Arena *a = arena_new();
  *r = (Results){.arena = a, .ninputs = f->body->nargs, .noutputs = f->nresults};
  r->inputs = ARENA_ARRAY(a, ModelPort, r->ninputs + 1);
  r->outputs = ARENA_ARRAY(a, ModelPort, r->noutputs + 1);
  hostrun_inputs(f, r->inputs);
  hostrun_outputs(f, r->outputs);
  return r;
}

void results_free(Results *r) {
  if (!r) return;
  for (int i = 0; r->data && i < r->noutputs; i++) mem_free(r->data[i]);
  mem_free(r->data);
  arena_free(r->arena);
  mem_free(r);
}

static bool take_memory(Results *r, SrcLoc loc, DiagEngine *diag) {
  r->data = mem_alloc((size_t)r->noutputs * sizeof *r->data);
  for (int i = 0; i < r->noutputs; i++) {
    int64_t bytes;
    if (mul_i64((int64_t)port_bytes(&r->outputs[i]), r->runs, &bytes))
      r->data[i] = mem_try_alloc((size_t)bytes);
    if (r->data[i]) continue;
    diag_error(diag, loc, "E-memory", "there is no memory for output '%s' of %lld run%s",
               r->outputs[i].name, (long long)r->runs, r->runs == 1 ? "" : "s");
    return false;
  }
  return true;
}

bool results_run(Results *r, const HostRunner *h, const IrFunc *f, SampleSet *s, int64_t runs) {
  r->runs = runs;
  HostProgram *p = take_memory(r, f->loc, h->diag) ? hostrun_compile(h, f) : NULL;
  void **at = mem_alloc((size_t)r->noutputs * sizeof *at);
  bool ok = p != NULL;
  for (int64_t run = 0; ok && run < runs; run++) {
    for (int i = 0; i < r->noutputs; i++)
      at[i] = (char *)r->data[i] + (size_t)run * port_bytes(&r->outputs[i]);
    const void *const *inputs = samples_load(s, run);
    ok = inputs && host_run(p, inputs, at, h->diag);
  }
  mem_free(at);
  host_free(p);
  return ok;
}

static bool same_ports(const ModelPort *a, const ModelPort *b, int n) {
  for (int i = 0; i < n; i++)
    if (a[i].dtype != b[i].dtype || a[i].rank != b[i].rank ||
        memcmp(a[i].shape, b[i].shape, (size_t)a[i].rank * sizeof *a[i].shape) != 0)
      return false;
  return true;
}

bool results_same_signature(const Results *a, const Results *b) {
  return a->ninputs == b->ninputs && a->noutputs == b->noutputs &&
         same_ports(a->inputs, b->inputs, a->ninputs) &&
         same_ports(a->outputs, b->outputs, a->noutputs);
}

Difference results_difference(const Results *a, const Results *b, int i) {
  static const Tolerance none = {.equal_nan = true};
  const ModelPort *p = &a->outputs[i];
  return difference_of(&none, p->dtype, a->data[i], p->dtype, b->data[i],
                       (size_t)(port_elements(p) * a->runs));
}
