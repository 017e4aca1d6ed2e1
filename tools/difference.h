/* How far two lots of elements are apart; what npu-diff, calibration and npucc --bisect compare by.
 */
#ifndef NPU_DIFFERENCE_H
#define NPU_DIFFERENCE_H
#include "support/dtype.h"

typedef struct {
  double rtol, atol; /* elements differ when |a - b| > atol + rtol * |b| */
  bool equal_nan;    /* NaN equals NaN */
} Tolerance;

/* Infinities equal themselves; beside anything else, infinities and NaN are infinitely far off. */
typedef struct {
  size_t n, differing, first; /* first: the first that differ, a and b */
  double a, b;
  double max_abs, max_rel;
  size_t special;   /* not finite on one side or both, and not equal */
  double sum, size; /* of squares, over pairs of finite elements: of a - b, and of b */
} Difference;
/* Compares n elements. */
Difference difference_of(const Tolerance *t, DType a_type, const void *a, DType b_type,
                         const void *b, size_t n);
/* Root mean square of a - b; infinite when an element is infinitely far off. */
double difference_rms(const Difference *d);
/* Root mean square of a - b over that of b, where both are finite. */
double difference_relative(const Difference *d);
#endif
