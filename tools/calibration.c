/* What calibration data is worth; see calibration.h. */
#include "tools/calibration.h"

#include <math.h>
#include <string.h>

#include "tools/results.h"

#define uthash_malloc(n) mem_alloc(n)
#define uthash_free(p, n) mem_free(p)
#include <uthash.h>

enum { RANDOM_SEED = 1, COMPARED_SAMPLES = 16 };

/* ---- samples ---- */

/* The number of slices that operand `index` of op chooses from; 0 when it chooses none. */
static int64_t index_extent(const IrOp *op, int index) {
  if (op->kind == IR_OP_GATHER && index == 1)
    return ir_operand(op, 0)->type->shape[ir_get_int(op, "axis", 0)];
  if (op->kind == IR_OP_EMBED && index == 0) return ir_operand(op, 1)->type->shape[0];
  return 0;
}

/* Whether the result's numbers are the operand's: rearranged, converted, held at bounds. */
static bool keeps_indices(const IrOp *op) {
  return op->kind == IR_OP_CAST || op->kind == IR_OP_CLIP || op->kind == IR_OP_MIN ||
         op->kind == IR_OP_MAX || op->kind == IR_OP_WHERE || ir_has_trait(op, IR_DATA_MOVEMENT);
}

/* The smallest extent that a value's numbers index. */
typedef struct {
  const IrValue *value;
  int64_t extent;
  UT_hash_handle hh;
} Extent;

/* 0 when none is known. */
static int64_t extent_of(const Extent *table, const IrValue *v) {
  const Extent *found;
  HASH_FIND_PTR(table, &v, found);
  return found ? found->extent : 0;
}

static void note_extent(Arena *a, Extent **table, const IrValue *v, int64_t extent) {
  Extent *found;
  HASH_FIND_PTR(*table, &v, found);
  if (!found) {
    found = ARENA_NEW(a, Extent);
    *found = (Extent){.value = v, .extent = extent};
    HASH_ADD_PTR(*table, value, found);
  }
  if (extent < found->extent) found->extent = extent;
}

/* From readers back to what they read. */
static void find_extents(const IrFunc *f, SampleSet *s) {
  Arena *a = arena_new();
  Extent *table = NULL;
  for (const IrOp *op = f->body->last; op; op = op->prev)
    for (int i = 0; i < op->noperands; i++) {
      int64_t extent = index_extent(op, i);
      if (extent == 0 && keeps_indices(op)) extent = extent_of(table, ir_result(op, 0));
      if (extent > 0) note_extent(a, &table, ir_operand(op, i), extent);
    }
  for (int i = 0; i < f->body->nargs; i++)
    samples_indices(s, i, extent_of(table, f->body->args[i]));
  HASH_CLEAR(hh, table);
  arena_free(a);
}

SampleSet *calibration_samples(const char *calibration, const IrFunc *f, const ModelPort *ports,
                               DiagEngine *diag) {
  int n = f->body->nargs;
  SampleSet *s = samples_new(ports, n, diag);
  bool ok = true;
  if (strcmp(calibration, "random") == 0) {
    int64_t batch = n > 0 && ports[0].rank > 0 ? ports[0].shape[0] : 1;
    find_extents(f, s);
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
  SampleSet *samples;
  Results *exact;
};

static int64_t compared_runs(const SampleSet *s, const Results *r) {
  int64_t batch = r->ninputs > 0 && r->inputs[0].rank > 0 ? r->inputs[0].shape[0] : 1;
  int64_t runs = ceil_div(COMPARED_SAMPLES, batch), all = samples_runs(s);
  return runs < all ? runs : all;
}

FloatResults *float_results(const HostRunner *h, const IrFunc *f, const char *calibration) {
  FloatResults *r = mem_alloc(sizeof *r);
  r->exact = results_new(f);
  r->samples = calibration_samples(calibration, f, r->exact->inputs, h->diag);
  if (r->samples && results_run(r->exact, h, f, r->samples, compared_runs(r->samples, r->exact)))
    return r;
  float_results_free(r);
  return NULL;
}

void float_results_free(FloatResults *r) {
  if (!r) return;
  samples_free(r->samples);
  results_free(r->exact);
  mem_free(r);
}

bool float_results_compare(const FloatResults *r, const HostRunner *h, const IrFunc *f) {
  Results *got = results_new(f);
  bool ok = results_run(got, h, f, r->samples, r->exact->runs);
  for (int i = 0; ok && i < got->noutputs; i++) {
    if (!dtype_is_float(got->outputs[i].dtype)) continue;
    Difference d = results_difference(got, r->exact, i);
    double error = difference_relative(&d);
    if (error > CALIBRATION_ERROR)
      diag_warning(h->diag, f->loc, "W-calibrate",
                   "output '%s' of the quantized model differs from the model's own by %.3g of its "
                   "size (rms, on %lld runs of the calibration data); keep what needs more than 8 "
                   "bits with @bf16 or @f32, or leave out --calibrate",
                   got->outputs[i].name, error, (long long)got->runs);
  }
  results_free(got);
  return ok;
}
