/* What calibration data is worth: data that says nothing about ranges, and static results that do
 * not agree with the model as it was. All findings are warnings (W-calibrate). */
#ifndef NPU_CALIBRATION_H
#define NPU_CALIBRATION_H
#include "tools/hostrun.h"

enum { CALIBRATION_SAMPLES = 64 }; /* drawn by "random" */

/* The samples to observe: of a file, or drawn, s32 inputs among the indices that f takes with them
 * as far as that shows. ports: f's inputs. NULL after a diagnostic.
 */
SampleSet *calibration_samples(const char *calibration, const IrFunc *f, const ModelPort *ports,
                               DiagEngine *diag);

/* Values of the inputs, seen run by run. */
typedef struct {
  int64_t values, zero, nan, infinite;
} InputSeen;
void calibration_see(InputSeen *seen, const ModelPort *ports, int n, const void *const *inputs);
void calibration_warn(const InputSeen *seen, const ModelPort *ports, int n, bool random, SrcLoc loc,
                      DiagEngine *diag); /* random: drawn, not read */

/* Results of the model before it is quantized, on the first samples. */
typedef struct FloatResults FloatResults;
/* NULL after a diagnostic. */
FloatResults *float_results(const HostRunner *h, const IrFunc *f, const char *calibration);
void float_results_free(FloatResults *r);
/* Warns of outputs of f, quantized, whose relative rms error is above CALIBRATION_ERROR. False
 * after an error. */
bool float_results_compare(const FloatResults *r, const HostRunner *h, const IrFunc *f);
#define CALIBRATION_ERROR 0.1
#endif
