/* npucc --bisect: the first pass after which the model computes something else on the host. */
#ifndef NPU_BISECT_H
#define NPU_BISECT_H
#include "tools/batch.h"
#include "tools/compile.h"

/* By how much of an output's size (rms) a pass may change it. */
#define BISECT_TOLERANCE 1e-3

typedef struct {
  const BatchOptions *inputs;
  double tolerance;
} BisectOptions;

/* After npucc_read: runs the passes as far as the host runs what they make, comparing the results
 * after each with those before it and with the model's as written, and prints a line about each.
 * `machine` is that of c. *found: a pass changes an output by more than it may. False after a
 * diagnostic. */
bool bisect(Npucc *c, const MachineDesc *machine, const BisectOptions *o, DiagEngine *diag,
            bool *found);
#endif
