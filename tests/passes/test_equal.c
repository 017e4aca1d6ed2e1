/* Models through different pipelines give the same numbers: each model is lowered as it stands and
 * run on the host, then again with the optimizing passes. Sums of floats may be taken in another
 * order, so floats agree within a bound; integers agree exactly. Quantized pipelines are compared
 * with the quantized graph alone, and loosely with the float model. */
#include "frontend/frontend.h"
#include "passes/passes.h"
#include "tests/support/compare.h"
#include "tools/hostrun.h"
#include <math.h>
#include <string.h>

enum { MAX_PORTS = 8 };

typedef struct {
  IrModule *m;
  HostProgram *p;
  int nin, nout;
  ModelPort in[MAX_PORTS], out[MAX_PORTS];
  void *result[MAX_PORTS];
} Compiled;

static bool run_pipeline(IrModule *m, DiagEngine *diag, const char *pipeline) {
  HostRunner host = {.module = m, .machine = machine_default(), .diag = diag};
  PassManager *pm = pass_manager_new(m, host.machine);
  PassRunOptions options = {.verify_each = true, .stop_after = -1};
  pass_manager_set_host(pm, &host, hostrun_evaluate, hostrun_observe);
  bool ok = true;
  for (const Pass *const *p = builtin_passes; *p; p++) ok = ok && pass_manager_register(pm, *p);
  ok = ok && pass_manager_add_pipeline(pm, pipeline) && pass_manager_run(pm, &options);
  pass_manager_free(pm);
  return ok;
}

static bool compile(const char *path, const char *pipeline, DiagEngine *diag, Compiled *c) {
  MdlOptions options = {0};
  *c = (Compiled){.m = mdl_read(path, &options, diag)};
  if (!c->m) return false;
  IrFunc *f = c->m->funcs[0];
  c->nin = f->body->nargs;
  c->nout = f->nresults;
  if (c->nin > MAX_PORTS || c->nout > MAX_PORTS) return false;
  hostrun_inputs(f, c->in);
  hostrun_outputs(f, c->out);
  return run_pipeline(c->m, diag, pipeline) && (c->p = host_compile(c->m->funcs[0], diag)) != NULL;
}

static void compiled_free(Compiled *c) {
  host_free(c->p);
  for (int i = 0; i < c->nout; i++) mem_free(c->result[i]);
  if (c->m) ir_module_free(c->m);
}

static bool execute(Compiled *c, DiagEngine *diag) {
  void *inputs[MAX_PORTS] = {0};
  Rng rng;
  rng_seed(&rng, 7);
  for (int i = 0; i < c->nin; i++) {
    size_t n = (size_t)port_elements(&c->in[i]);
    inputs[i] = mem_alloc(port_bytes(&c->in[i]));
    for (size_t k = 0; k < n; k++)
      dtype_set(c->in[i].dtype, inputs[i], k,
                dtype_is_float(c->in[i].dtype) ? rng_normal(&rng)
                                               : (double)rng_range(&rng, -128, 127));
  }
  for (int i = 0; i < c->nout; i++) c->result[i] = mem_alloc(port_bytes(&c->out[i]));
  bool ok = host_run(c->p, (const void *const *)inputs, c->result, diag);
  for (int i = 0; i < c->nin; i++) mem_free(inputs[i]);
  return ok;
}

static bool compare(const char *path, const char *base, const char *pipeline, double tolerance,
                    DiagEngine *diag) {
  Compiled a = {0}, b = {0};
  bool ok = compile(path, base, diag, &a) && compile(path, pipeline, diag, &b) &&
            execute(&a, diag) && execute(&b, diag);
  for (int i = 0; i < a.nout && ok; i++) {
    if (a.out[i].dtype != b.out[i].dtype) ok = false;
    double d = INFINITY;
    if (ok)
      d = tensor_distance(a.out[i].dtype, b.result[i], a.result[i],
                          (size_t)port_elements(&a.out[i]));
    if (d <= (dtype_is_float(a.out[i].dtype) ? tolerance : 0)) continue;
    printf("%s: %s differs by %g between \"%s\" and \"%s\"\n", path, a.out[i].name, d, base,
           pipeline);
    ok = false;
  }
  compiled_free(&a);
  compiled_free(&b);
  return ok;
}

#define SIMPLIFY "canonicalize,fold,cse,dce"
#define STATIC "quantize{calibrate=random}"
static const struct {
  const char *base, *pipeline;
  double tolerance;
} pairs[] = {
    {"lower", "lower,fuse", 1e-5},
    {"lower", "lower,layout", 1e-5},
    {"lower", "lower,fuse,layout", 1e-5},
    {"lower", "lower,fuse,fuse,layout", 1e-5},
    {"lower", "lower,layout,fuse,layout", 1e-5},
    {"lower", SIMPLIFY ",lower", 1e-5},
    {"lower", SIMPLIFY "," SIMPLIFY ",lower,fuse,layout", 1e-5},
    {"quantize,lower", "quantize," SIMPLIFY ",lower,fuse,layout", 2e-2},
    {STATIC ",lower", STATIC "," SIMPLIFY ",lower,fuse,layout", 3e-2},
    {"lower", SIMPLIFY ",quantize," SIMPLIFY ",lower,fuse,layout", 5e-2},
    {"lower", SIMPLIFY "," STATIC "," SIMPLIFY ",lower,fuse,layout", 0.15},
};

int main(int argc, char **argv) {
  int failed = 0;
  for (int i = 1; i < argc; i++)
    for (size_t k = 0; k < NPU_COUNTOF(pairs); k++) {
      DiagEngine *diag = diag_new();
      failed += !compare(argv[i], pairs[k].base, pairs[k].pipeline, pairs[k].tolerance, diag);
      diag_print_all(diag, stdout, false);
      diag_free(diag);
    }
  return argc < 2 || failed != 0;
}
