/* When two numbers, or two tensors, are the same within a bound: the one definition tests use. */
#ifndef TESTS_SUPPORT_COMPARE_H
#define TESTS_SUPPORT_COMPARE_H
#include "support/dtype.h"
#include "support/support.h"

/* The same value: equal, zeros of the same sign, or both NaN. */
bool number_same(double got, double want);

/* |got - want| <= bound. NaNs and infinities are near themselves alone, and only a number is a
 * bound: NaN or infinity as one bounds nothing and is near nothing that is not the same. With bound
 * 0, as number_same; with any other, 0 and -0 are near. */
bool number_near(double got, double want, double bound);

/* The first element that is not near the wanted one; n when all are. */
size_t tensor_first_far(DType t, const void *got, const void *want, size_t n, double bound);

/* The largest |got - want|. NaNs and infinities count nothing where both have the same, and make it
 * infinite where they differ, wherever they stand. 0: the same everywhere, but for the sign of
 * zeros. */
double tensor_error(DType t, const void *got, const void *want, size_t n);

/* The same relative to the largest finite magnitude wanted. */
double tensor_distance(DType t, const void *got, const void *want, size_t n);

/* The largest finite magnitude; 0 when there is none. */
double tensor_largest(DType t, const void *data, size_t n);
#endif
