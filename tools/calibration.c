/* What calibration data is worth; see calibration.h. */
#include "tools/calibration.h"

#include <math.h>
#include <string.h>

enum { RANDOM_SEED = 1, COMPARED_SAMPLES = 16 };

/* ---- samples ---- */

/* The number of slices that operand `index` of op chooses from; 0 when it chooses none. */
static int64_t index_extent(const IrOp *op, int index) {
  if (op->kind == IR_OP_GATHER && index == 1)
    return ir_operand(op, 0)->type->shape[ir_get_int(op, "axis", 0)];
  if (op->kind == IR_OP_EMBED && index == 0) return ir_operand(op, 1)->type->shape[0];
  return 0;
}

/* The smallest extent an argument indexes; 0 when none is known. */
static int64_t extent_of(const IrFunc *f, const IrValue *arg) {
  int64_t least = 0;
  for (const IrOp *op = f->body->first; op; op = op->next)
    for (int i = 0; i < op->noperands; i++) {
      int64_t extent = ir_operand(op, i) == arg ? index_extent(op, i) : 0;
      if (extent > 0 && (least == 0 || extent < least)) least = extent;
    }
  return least;
}

SampleSet *calibration_samples(const char *calibration, const IrFunc *f, const ModelPort *ports,
                               DiagEngine *diag) {
  int n = f->body->nargs;
  SampleSet *s = samples_new(ports, n, diag);
  bool ok = true;
  if (strcmp(calibration, "random") == 0) {
    int64_t batch = n > 0 && ports[0].rank > 0 ? ports[0].shape[0] : 1;
    for (int i = 0; i < n; i++) samples_indices(s, i, extent_of(f, f->body->args[i]));
    samples_random(s, RANDOM_SEED, ceil_div(CALIBRATION_SAMPLES, batch));
  } else {
    ok = samples_add(s, calibration);
  }
  if (ok && samples_finish(s)) return s;
  samples_free(s);
  return NULL;
}

/* ---- inputs that say nothing ---- */

void calibration_see(InputSeen *seen, const ModelPort *ports, int n, const void *const *inputs) {
  for (int i = 0; i < n; i++) {
    size_t count = (size_t)port_elements(&ports[i]);
    for (size_t k = 0; k < count; k++) {
      double v = dtype_get(ports[i].dtype, inputs[i], k);
      seen[i].zero += v == 0;
      seen[i].nan += isnan(v) != 0;
      seen[i].infinite += isinf(v) != 0;
    }
    seen[i].values += (int64_t)count;
  }
}

void calibration_warn(const InputSeen *seen, const ModelPort *ports, int n, bool random, SrcLoc loc,
                      DiagEngine *diag) {
  for (int i = 0; i < n; i++) {
    const InputSeen *s = &seen[i];
    if (s->zero == s->values && ports[i].dtype == DT_S32 && random)
      diag_warning(diag, loc, "W-calibrate",
                   "--calibrate random draws only zeros for input '%s', whose range is not known; "
                   "calibrate with a file",
                   ports[i].name);
    else if (s->zero == s->values && dtype_is_float(ports[i].dtype))
      diag_warning(diag, loc, "W-calibrate",
                   "all %lld values of input '%s' are zero in the calibration data, which says "
                   "nothing of ranges; give data as the model will see it",
                   (long long)s->values, ports[i].name);
    if (s->nan || s->infinite)
      diag_warning(diag, loc, "W-calibrate",
                   "of %lld values of input '%s' in the calibration data %lld are NaN and %lld "
                   "infinite; they make no ranges",
                   (long long)s->values, ports[i].name, (long long)s->nan, (long long)s->infinite);
  }
}

/* ---- agreement of the quantized model with the one it was ---- */

struct FloatResults {
  const char *calibration;
  Arena *arena;
  ModelPort *inputs, *outputs;
  int noutputs;
  int64_t runs;
  void **data; /* per output, all runs */
};

/* Runs f on the first samples: outputs[i] receives run after run. */
static bool run_first(const HostRunner *h, const IrFunc *f, SampleSet *s, const FloatResults *r,
                      void **outputs) {
  HostProgram *p = hostrun_compile(h, f);
  void **at = mem_alloc((size_t)r->noutputs * sizeof *at);
  bool ok = p != NULL;
  for (int64_t run = 0; ok && run < r->runs; run++) {
    for (int i = 0; i < r->noutputs; i++)
      at[i] = (char *)outputs[i] + (size_t)run * port_bytes(&r->outputs[i]);
    const void *const *inputs = samples_load(s, run);
    ok = inputs && host_run(p, inputs, at, h->diag);
  }
  mem_free(at);
  host_free(p);
  return ok;
}

static void **new_outputs(const FloatResults *r) {
  void **data = mem_alloc((size_t)r->noutputs * sizeof *data);
  for (int i = 0; i < r->noutputs; i++)
    data[i] = mem_alloc((size_t)r->runs * port_bytes(&r->outputs[i]));
  return data;
}

static void free_outputs(const FloatResults *r, void **data) {
  for (int i = 0; data && i < r->noutputs; i++) mem_free(data[i]);
  mem_free(data);
}

static int64_t compared_runs(const SampleSet *s, const ModelPort *inputs, int n) {
  int64_t batch = n > 0 && inputs[0].rank > 0 ? inputs[0].shape[0] : 1;
  int64_t runs = ceil_div(COMPARED_SAMPLES, batch), all = samples_runs(s);
  return runs < all ? runs : all;
}

FloatResults *float_results(const HostRunner *h, const IrFunc *f, const char *calibration) {
  FloatResults *r = mem_alloc(sizeof *r);
  Arena *a = arena_new();
  *r = (FloatResults){.calibration = calibration, .arena = a, .noutputs = f->nresults};
  r->inputs = ARENA_ARRAY(a, ModelPort, f->body->nargs + 1);
  r->outputs = ARENA_ARRAY(a, ModelPort, f->nresults + 1);
  hostrun_inputs(f, r->inputs);
  hostrun_outputs(f, r->outputs);
  SampleSet *s = calibration_samples(calibration, f, r->inputs, h->diag);
  bool ok = s != NULL;
  if (ok) {
    r->runs = compared_runs(s, r->inputs, f->body->nargs);
    r->data = new_outputs(r);
    ok = run_first(h, f, s, r, r->data);
  }
  samples_free(s);
  if (ok) return r;
  float_results_free(r);
  return NULL;
}

void float_results_free(FloatResults *r) {
  if (!r) return;
  free_outputs(r, r->data);
  arena_free(r->arena);
  mem_free(r);
}

/* The root of the mean square of the difference over that of `exact`, where both are finite. */
static double relative_error(const ModelPort *p, int64_t runs, const void *exact, const void *got) {
  size_t n = (size_t)(port_elements(p) * runs);
  double difference = 0, size = 0;
  for (size_t k = 0; k < n; k++) {
    double x = dtype_get(p->dtype, exact, k), y = dtype_get(p->dtype, got, k);
    if (!isfinite(x) || !isfinite(y)) continue;
    difference += (x - y) * (x - y);
    size += x * x;
  }
  return difference == 0 ? 0 : sqrt(difference / size);
}

bool float_results_compare(const FloatResults *r, const HostRunner *h, const IrFunc *f) {
  SampleSet *s = calibration_samples(r->calibration, f, r->inputs, h->diag);
  void **got = new_outputs(r);
  bool ok = s && run_first(h, f, s, r, got);
  for (int i = 0; ok && i < r->noutputs; i++) {
    if (!dtype_is_float(r->outputs[i].dtype)) continue;
    double error = relative_error(&r->outputs[i], r->runs, r->data[i], got[i]);
    if (error > CALIBRATION_ERROR)
      diag_warning(h->diag, f->loc, "W-calibrate",
                   "output '%s' of the quantized model differs from the model's own by %.3g of its "
                   "size (rms, on %lld runs of the calibration data); keep what needs more than 8 "
                   "bits with @bf16 or @f32, or leave out --calibrate",
                   r->outputs[i].name, error, (long long)r->runs);
  }
  free_outputs(r, got);
  samples_free(s);
  return ok;
}
