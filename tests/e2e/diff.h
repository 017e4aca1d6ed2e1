/* One model through every road: as read and as optimized on the host, compiled and simulated in all
 * three modes. */
#ifndef TESTS_E2E_DIFF_H
#define TESTS_E2E_DIFF_H
#include "runtime/npurt.h"
#include "tools/compile.h"

typedef struct {
  const char *name;
  DType dtype;
  int rank;
  int64_t shape[IR_MAX_RANK];
  size_t n, bytes; /* elements, bytes */
  void *data;
} DiffTensor;

typedef struct {
  /* What to run. */
  const char *path; /* .mdl or .ir */
  const char *dir;  /* for the binary */
  NpuccOptions options;
  int runs; /* each with new inputs; states persist */
  bool host_only;
  void (*fill)(void *user, int run, const DiffTensor *t); /* writes an input's data */
  void *user;
  /* What came out; runs * nin and runs * nout tensors. */
  int nin, nout;
  DiffTensor *in, *as_read, *optimized, *simulated;
  double cycles; /* of the timed mode */
  StrBuf why;    /* what failed, when something did */
  Arena *arena;
} Diff;

void diff_init(Diff *d);
/* False with d->why: compilation, a trap, fewer cycles than the bound, or different bytes between
 * the modes. Comparing the three result sets is the caller's. */
bool diff_run(Diff *d);
void diff_free(Diff *d);
#endif
