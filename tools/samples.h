/* Inputs of a model from tensor files, cut into the batches the compiled model takes. Used by
 * calibration, by `npucc --reference` and by npusim, so that all three read data alike.
 *
 * A file's first axis is samples, however many: a model input f32[8,784] takes a tensor f32[n,784]
 * of any n, in ceil(n/8) runs; the last batch is filled up by repeating its own samples. A tensor
 * of exactly the declared shape is one run, a tensor without the first axis is one sample.
 *
 * Several inputs that are cut into runs must fill the same number of runs, each with samples of its
 * own number a run: f32[1,4] with 3 rows and f32[2,1,4] with 6 are 3 runs; the same fraction of the
 * last run may be missing in all. What fills one run exactly, scalars included, is given again to
 * every run; but an input of two or more samples a run must not fill one where another that takes
 * as many a run has more. */
#ifndef NPU_SAMPLES_H
#define NPU_SAMPLES_H
#include "support/dtype.h"
#include "support/support.h"
#include "support/tensorfile.h"

/* An input or output of a model as its signature declares it. */
typedef struct {
  const char *name;
  DType dtype; /* a machine type */
  int rank;
  int64_t shape[TENSOR_MAX_RANK];
} ModelPort;
int64_t port_elements(const ModelPort *p);
size_t port_bytes(const ModelPort *p);
void port_print(StrBuf *b, DType dtype, int rank, const int64_t *shape); /* f32[8,784] */

typedef struct SampleSet SampleSet;
/* ports must outlive the set. */
SampleSet *samples_new(const ModelPort *ports, int nports, DiagEngine *diag);
void samples_free(SampleSet *s);
/* Binds inputs: "name=file", "name=file:tensor", "file:tensor" (a model with one input) or "file"
 * (by tensor names; an .npy or a file with one tensor serves a model with one input). "[0:256]" at
 * the end takes these rows alone (of every tensor bound by a "file"). False after a diagnostic
 * (E-input, E-file, E-tensor-file). */
bool samples_add(SampleSet *s, const char *spec);
/* Every input not bound is drawn: floats normal, s8 uniform, s32 (indices) zero. */
void samples_random(SampleSet *s, uint64_t seed, int64_t runs);
/* What is drawn for an s32 input are indices below extent (> 0). */
void samples_indices(SampleSet *s, int port, int64_t extent);
/* Are all elements of an input zero because it is drawn and its range is not known? */
bool samples_zero(const SampleSet *s, int port);
/* To be called once everything is bound: checks shapes, types and numbers of rows. */
bool samples_finish(SampleSet *s);

int64_t samples_runs(const SampleSet *s);
/* Whether some input is cut into runs; not when all tensors have exactly the declared shapes or are
 * random. */
bool samples_cut(const SampleSet *s);
/* Samples of the inputs cut into runs that take `batch` of them a run; 0 when there are none. */
int64_t samples_rows(const SampleSet *s, int64_t batch);
/* Samples a run of an input whose last run is not full; 0 when all runs are full. */
int64_t samples_part(const SampleSet *s);
/* The inputs of run number `run`, converted to the declared types; valid until the next call. To be
 * called for run 0, 1 and so on; run 0 starts again, and what is drawn is drawn again. NULL
 * after a diagnostic; only the first call can find something wrong (a value that the declared type
 * cannot hold, a damaged file), in the samples of all runs. */
const void *const *samples_load(SampleSet *s, int64_t run);
#endif
