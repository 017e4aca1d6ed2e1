/* Running a model over files of samples: reads inputs, runs batch by batch, gathers and writes
 * outputs, counts correct labels. One piece for npusim (the simulated machine) and npucc
 * --reference (the host). */
#ifndef NPU_BATCH_H
#define NPU_BATCH_H
#include "tools/samples.h"

typedef struct {
  const ModelPort *inputs, *outputs;
  int ninputs, noutputs;
  /* Runs once on row-major buffers of the declared shapes; false after a diagnostic. */
  bool (*run)(void *user, const void *const *inputs, void *const *outputs, DiagEngine *diag);
  void *user;
} BatchModel;

typedef struct {
  const char *const *inputs;  /* as for samples_add */
  const char *const *outputs; /* "name=file", "name=file:tensor" or "file" (all outputs by name) */
  int ninputs, noutputs;
  bool random; /* draw the inputs not given */
  uint64_t seed;
  const char *labels; /* FILE or FILE:TENSOR of the right class of every sample, or NULL */
  bool progress;      /* show the number of the run on standard error */
  bool quiet;         /* no outputs in text when there is no --output */
} BatchOptions;

/* The samples that the options bind or draw. NULL after a diagnostic. */
SampleSet *batch_samples(const ModelPort *inputs, int n, const BatchOptions *o, DiagEngine *diag);
/* Outputs are gathered on their first axis; what the filling of the last batch produced is dropped.
 * An output without the batch axis gets one row per run; a warning says when what filled up the
 * last batch may be in it. What is wrong with inputs, labels or the names of outputs is found
 * before the first run; nothing is written unless every run succeeded. text receives what there is
 * to tell: accuracy, small outputs. */
bool batch_run(const BatchModel *m, const BatchOptions *o, StrBuf *text, DiagEngine *diag);
#endif
