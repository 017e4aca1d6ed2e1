/* Comparing elements; see difference.h. */
#include "tools/difference.h"

#include <math.h>

Difference difference_of(const Tolerance *t, DType a_type, const void *a, DType b_type,
                         const void *b, size_t n) {
  Difference d = {.n = n};
  for (size_t i = 0; i < n; i++) {
    double u = dtype_get(a_type, a, i), v = dtype_get(b_type, b, i), gap = fabs(u - v);
    bool finite = isfinite(u) && isfinite(v); /* else no tolerance is enough */
    if (finite) d.size += v * v;
    if (u == v || (t->equal_nan && isnan(u) && isnan(v))) continue;
    if (!finite) gap = INFINITY;
    double rel = finite ? gap / fabs(v) : INFINITY;
    if (gap > d.max_abs) d.max_abs = gap;
    if (rel > d.max_rel) d.max_rel = rel;
    if (finite)
      d.sum += gap * gap;
    else
      d.special++;
    if (finite && gap <= t->atol + t->rtol * fabs(v)) continue;
    if (d.differing++ == 0) {
      d.first = i;
      d.a = u;
      d.b = v;
    }
  }
  return d;
}

double difference_rms(const Difference *d) {
  if (d->special) return INFINITY;
  return d->n ? sqrt(d->sum / (double)d->n) : 0;
}

double difference_relative(const Difference *d) {
  return d->sum == 0 ? 0 : sqrt(d->sum / d->size);
}
