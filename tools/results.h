/* What a function computes on samples, kept to be compared with what other forms of it compute. */
#ifndef NPU_RESULTS_H
#define NPU_RESULTS_H
#include "tools/difference.h"
#include "tools/hostrun.h"

typedef struct {
  Arena *arena;
  ModelPort *inputs, *outputs; /* the function's signature */
  int ninputs, noutputs;
  int64_t runs;
  void **data; /* per output, run after run; NULL before results_run */
} Results;

/* The signature of f, whose module must outlive it. */
Results *results_new(const IrFunc *f);
void results_free(Results *r);
/* Runs f, of the signature, on the first `runs` of s. False after a diagnostic. */
bool results_run(Results *r, const HostRunner *h, const IrFunc *f, SampleSet *s, int64_t runs);
/* Inputs and outputs of the same types and shapes. */
bool results_same_signature(const Results *a, const Results *b);
/* Output i of all runs, of two Results of one signature and number of runs; NaN equals NaN. */
Difference results_difference(const Results *a, const Results *b, int i);
#endif
