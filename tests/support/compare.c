/* See compare.h. */
#include "tests/support/compare.h"
#include <math.h>

bool number_same(double got, double want) {
  if (isnan(got) || isnan(want)) return isnan(got) && isnan(want);
  return got == want && signbit(got) == signbit(want);
}

bool number_near(double got, double want, double bound) {
  if (number_same(got, want)) return true;
  return bound > 0 && isfinite(bound) && isfinite(got) && isfinite(want) &&
         fabs(got - want) <= bound;
}

size_t tensor_first_far(DType t, const void *got, const void *want, size_t n, double bound) {
  for (size_t i = 0; i < n; i++)
    if (!number_near(dtype_get(t, got, i), dtype_get(t, want, i), bound)) return i;
  return n;
}

double tensor_largest(DType t, const void *data, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; i++) {
    double v = fabs(dtype_get(t, data, i));
    if (isfinite(v) && v > most) most = v;
  }
  return most;
}

double tensor_error(DType t, const void *got, const void *want, size_t n) {
  double most = 0;
  for (size_t i = 0; i < n; i++) {
    double x = dtype_get(t, got, i), y = dtype_get(t, want, i);
    if (number_same(x, y)) continue;
    if (!isfinite(x) || !isfinite(y)) return INFINITY;
    if (fabs(x - y) > most) most = fabs(x - y);
  }
  return most;
}

double tensor_distance(DType t, const void *got, const void *want, size_t n) {
  double most = tensor_error(t, got, want, n);
  return most > 0 ? most / fmax(tensor_largest(t, want, n), 1e-30) : 0;
}
