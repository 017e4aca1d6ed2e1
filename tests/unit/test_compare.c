/* The comparer of the tests: what it must not let pass. */
#include "tests/support/compare.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void test_same(void **state) {
  (void)state;
  assert_true(number_same(1.5, 1.5) && number_same(INFINITY, INFINITY) && number_same(NAN, -NAN));
  assert_true(number_same(-0.0, -0.0) && !number_same(-0.0, 0.0) && !number_same(0.0, -0.0));
  assert_false(number_same(NAN, 1) || number_same(1, NAN) || number_same(INFINITY, -INFINITY));
}

static void test_near(void **state) {
  (void)state;
  assert_true(number_near(1.25, 1, 0.25) && number_near(0.75, 1, 0.25));
  assert_false(number_near(1.2501, 1, 0.25) || number_near(0.7499, 1, 0.25));
  assert_true(number_near(0.0, -0.0, 1e-9) && !number_near(0.0, -0.0, 0));
  assert_false(number_near(NAN, 1, 1e9) || number_near(1, NAN, 1e9));
  assert_false(number_near(INFINITY, 1, 1e9) || number_near(1, -INFINITY, 1e9));
  assert_false(number_near(INFINITY, -INFINITY, INFINITY));
  /* A bound that overflowed is none. */
  assert_false(number_near(2, 1, INFINITY) || number_near(2, 1, NAN) || number_near(2, 1, -1));
  assert_true(number_near(INFINITY, INFINITY, NAN));
}

/* What is equal and infinite or NaN ends nothing and scales nothing. */
static void test_tensors(void **state) {
  (void)state;
  static const float want[] = {NAN, INFINITY, 2, -4, 0}, same[] = {NAN, INFINITY, 2, -4, 0};
  assert_int_equal(tensor_first_far(DT_F32, same, want, 5, 0), 5);
  assert_true(tensor_distance(DT_F32, same, want, 5) == 0);
  assert_true(tensor_largest(DT_F32, want, 5) == 4);
  float got[] = {NAN, INFINITY, 2, -3, 0};
  assert_int_equal(tensor_first_far(DT_F32, got, want, 5, 0.5), 3);
  assert_true(tensor_error(DT_F32, got, want, 5) == 1);
  assert_true(tensor_distance(DT_F32, got, want, 5) == 0.25); /* 1 of 4 */
  got[3] = -4, got[4] = NAN;
  assert_int_equal(tensor_first_far(DT_F32, got, want, 5, 1e9), 4);
  assert_true(isinf(tensor_distance(DT_F32, got, want, 5)));
  got[4] = 0, got[1] = -INFINITY;
  assert_int_equal(tensor_first_far(DT_F32, got, want, 5, 1e9), 1);
  assert_true(isinf(tensor_distance(DT_F32, got, want, 5)));
  static const float zeros[] = {0, 0}, ones[] = {0, 1};
  assert_true(tensor_distance(DT_F32, ones, zeros, 2) > 1e29); /* relative to nothing */
  assert_true(tensor_distance(DT_F32, zeros, zeros, 2) == 0);
  static const int32_t big[] = {INT32_MIN, INT32_MAX}, next[] = {INT32_MIN, INT32_MAX - 1};
  assert_int_equal(tensor_first_far(DT_S32, next, big, 2, 0), 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_near),
                                     cmocka_unit_test(test_tensors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
