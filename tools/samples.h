/* Inputs of a model from tensor files, cut into the batches the compiled model takes. Used by
 * calibration, by `npucc --reference` and by npusim, so that all three read data alike.
 *
 * A file's first axis is samples, however many: a model input f32[8,784] takes a tensor f32[n,784]
 * of any n, in ceil(n/8) runs; the last batch is filled up by repeating its own samples. A tensor
 * of exactly the declared shape is one run, a tensor without the first axis is one sample. */
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
/* To be called once everything is bound: checks shapes, types and numbers of rows. */
bool samples_finish(SampleSet *s);

int64_t samples_runs(const SampleSet *s);
/* Samples in the files, and per run; 0 when the tensors have exactly the declared shapes or are
 * random. */
int64_t samples_rows(const SampleSet *s);
int64_t samples_batch(const SampleSet *s);
/* The inputs of run number `run`, converted to the declared types; valid until the next call. NULL
 * after a diagnostic (a value that is not finite or out of range). */
const void *const *samples_load(SampleSet *s, int64_t run);
#endif
