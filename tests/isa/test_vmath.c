/* Special functions against libm in double precision. */
#include "isa/isa.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

/* Error in units of the last place of the f32 nearest to want. */
static double ulp_error(float got, double want) {
  if (isnan(want)) return isnan(got) ? 0 : INFINITY;
  if (isinf((float)want) || isinf(got)) return got == (float)want ? 0 : INFINITY;
  if (want == 0) return got == 0 ? 0 : INFINITY;
  int e;
  frexp(want, &e);
  return fabs((double)got - want) / ldexp(1, (e < -125 ? -125 : e) - 24);
}

static float from_bits(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static uint32_t to_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static const struct {
  IsaVopKind vop;
  double (*exact)(double);
  float limit; /* of |x| */
} functions[] = {{VOP_EXP_F, exp, INFINITY},   {VOP_LOG_F, log, INFINITY},
                 {VOP_TANH_F, tanh, INFINITY}, {VOP_ERF_F, erf, INFINITY},
                 {VOP_SIN_F, sin, 1e4f},       {VOP_COS_F, cos, 1e4f}};

static void test_accuracy(void **state) {
  (void)state;
  for (size_t i = 0; i < NPU_COUNTOF(functions); i++) {
    const VmathFn *fn = vmath_fn(functions[i].vop);
    assert_non_null(fn);
    double worst = 0;
    float where = 0;
    for (uint64_t u = 0; u <= UINT32_MAX; u += 12289) {
      float x = from_bits((uint32_t)u);
      if (!(fabsf(x) <= functions[i].limit) && !isnan(x)) continue;
      double e = ulp_error(vmath_eval(functions[i].vop, x), functions[i].exact((double)x));
      if (e > worst) {
        worst = e;
        where = x;
      }
    }
    if (worst > fn->max_ulp)
      fail_msg("%s: %g ulp at %a, the table says %g", fn->name, worst, (double)where, fn->max_ulp);
    assert_true(worst > 0.6 * fn->max_ulp); /* the table's figure is not slack */
  }
}

static void expect_bits(IsaVopKind vop, float x, float want) {
  float got = vmath_eval(vop, x);
  if (isnan(want) ? !isnan(got) : to_bits(got) != to_bits(want))
    fail_msg("%s(%a) = %a, expected %a", vmath_fn(vop)->name, (double)x, (double)got, (double)want);
}

static void test_special_values(void **state) {
  (void)state;
  for (size_t i = 0; i < NPU_COUNTOF(functions); i++) expect_bits(functions[i].vop, NAN, NAN);
  expect_bits(VOP_EXP_F, INFINITY, INFINITY);
  expect_bits(VOP_EXP_F, -INFINITY, 0.0f);
  expect_bits(VOP_EXP_F, 0.0f, 1.0f);
  expect_bits(VOP_EXP_F, -0.0f, 1.0f);
  expect_bits(VOP_EXP_F, 88.8f, INFINITY);
  expect_bits(VOP_EXP_F, -104.0f, 0.0f);
  expect_bits(VOP_EXP_F, -103.9f,
              0x1p-149f); /* e^-103.9 = 1.09 * 2^-150: rounds up to the smallest denormal */
  expect_bits(VOP_EXP_F, 88.72283f, 0x1.ffff08p127f); /* the last finite result */
  expect_bits(VOP_LOG_F, 0.0f, -INFINITY);
  expect_bits(VOP_LOG_F, -0.0f, -INFINITY);
  expect_bits(VOP_LOG_F, -1.0f, NAN);
  expect_bits(VOP_LOG_F, -INFINITY, NAN);
  expect_bits(VOP_LOG_F, INFINITY, INFINITY);
  expect_bits(VOP_LOG_F, 1.0f, 0.0f);
  expect_bits(VOP_LOG_F, 0x1p-149f, -103.27893f); /* -149 ln 2 */
  expect_bits(VOP_TANH_F, INFINITY, 1.0f);
  expect_bits(VOP_TANH_F, -INFINITY, -1.0f);
  expect_bits(VOP_TANH_F, -0.0f, -0.0f);
  expect_bits(VOP_ERF_F, INFINITY, 1.0f);
  expect_bits(VOP_ERF_F, -INFINITY, -1.0f);
  expect_bits(VOP_ERF_F, -0.0f, -0.0f);
  expect_bits(VOP_ERF_F, -100.0f, -1.0f);
  expect_bits(VOP_SIN_F, INFINITY, NAN);
  expect_bits(VOP_COS_F, -INFINITY, NAN);
  expect_bits(VOP_SIN_F, -0.0f, -0.0f);
  expect_bits(VOP_SIN_F, 0x1p-149f, 0x1p-149f);
  expect_bits(VOP_COS_F, 0.0f, 1.0f);
}

/* Near multiples of pi/2 the reduction must not lose the result: these are the floats below 10^4
 * closest to one. */
static void test_trig_reduction(void **state) {
  (void)state;
  for (int n = 1; n <= 6366; n++) {
    float x = (float)(n * 1.5707963267948966);
    double s = sin((double)x), c = cos((double)x);
    assert_true(ulp_error(vmath_eval(VOP_SIN_F, x), s) < 2.5);
    assert_true(ulp_error(vmath_eval(VOP_COS_F, x), c) < 2.5);
  }
  for (double x = 1; x < 3e38; x *= 1.7) { /* far out: bounded, whatever the accuracy */
    assert_true(fabsf(vmath_eval(VOP_SIN_F, (float)x)) <= 1);
    assert_true(fabsf(vmath_eval(VOP_COS_F, (float)x)) <= 1);
  }
}

/* Steps use earlier values only, basic operations only. */
static void test_steps(void **state) {
  (void)state;
  for (size_t i = 0; i < NPU_COUNTOF(functions); i++) {
    const VmathFn *fn = vmath_fn(functions[i].vop);
    for (int s = 0; s < fn->nsteps; s++) {
      const VmathStep *st = &fn->steps[s];
      assert_true(st->a == VMATH_IMM || st->a <= s);
      assert_true(st->b == VMATH_IMM || st->b <= s);
      assert_true(st->c == VMATH_IMM || st->c <= s);
      assert_null(vmath_fn((IsaVopKind)st->op));
      unsigned unit = isa_vop_info((IsaVopKind)st->op)->unit;
      assert_true(unit == UNIT_ALU || (unit >= UNIT_SFU && unit <= UNIT_SIN));
      assert_false(st->op >= VOP_IOTA && st->op <= VOP_IOTAO1);
    }
  }
  assert_null(vmath_fn(VOP_ADD_F));
}

static uint32_t eval_f(IsaVopKind op, float a, float b) {
  return isa_vop_eval(op, to_bits(a), to_bits(b), 0);
}

static void test_basic_ops(void **state) {
  (void)state;
  assert_true(isnan(from_bits(eval_f(VOP_MIN_F, NAN, 2))));
  assert_true(isnan(from_bits(eval_f(VOP_MIN_F, 2, NAN))));
  assert_int_equal(eval_f(VOP_MAX_F, 0.0f, -0.0f), to_bits(0.0f)); /* whatever the order */
  assert_int_equal(eval_f(VOP_MAX_F, -0.0f, 0.0f), to_bits(0.0f));
  assert_int_equal(eval_f(VOP_MIN_F, 0.0f, -0.0f), to_bits(-0.0f));
  assert_int_equal(eval_f(VOP_MIN_F, -0.0f, 0.0f), to_bits(-0.0f));
  assert_int_equal(eval_f(VOP_MAX_F, -2, -2), to_bits(-2));
  assert_int_equal(eval_f(VOP_RNE_F, 2.5f, 0), to_bits(2));
  assert_int_equal(eval_f(VOP_FLOOR_F, -0.5f, 0), to_bits(-1));
  assert_int_equal(eval_f(VOP_CVT_IF, 3e9f, 0), INT32_MAX);
  assert_int_equal(eval_f(VOP_CVT_IF, NAN, 0), 0);
  assert_int_equal((int32_t)eval_f(VOP_CVT_IF, -2.5f, 0), -2);
  assert_int_equal(eval_f(VOP_CVT_BF, 0x1.018p0f, 0), to_bits(0x1.02p0f)); /* tie, to even */
  assert_int_equal(eval_f(VOP_NE_F, NAN, NAN), 1);
  assert_int_equal(eval_f(VOP_EQ_F, NAN, NAN), 0);
  assert_int_equal(isa_vop_eval(VOP_ADD_I, 0x7fffffff, 1, 0), 0x80000000);
  assert_int_equal(isa_vop_eval(VOP_ABS_I, 0x80000000, 0, 0), 0x80000000);
  assert_int_equal(isa_vop_eval(VOP_SHR_I, 0x80000000, 33, 0), 0xc0000000);
  assert_int_equal(isa_vop_eval(VOP_SHL_I, 3, 32, 0), 3);
  assert_int_equal(isa_vop_eval(VOP_LT_I, 0xffffffff, 0, 0), 1);
  assert_int_equal(isa_vop_eval(VOP_SEL, 5, 6, 0), 6);
  assert_int_equal(isa_vop_eval(VOP_SEL, 5, 6, 2), 5);
  assert_int_equal(isa_vop_eval(VOP_CVT_FI, 16777217, 0, 0), to_bits(16777216));
  assert_int_equal(eval_f(VOP_RSQRT_F, 4, 0), to_bits(0.5f));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_accuracy), cmocka_unit_test(test_special_values),
      cmocka_unit_test(test_trig_reduction), cmocka_unit_test(test_steps),
      cmocka_unit_test(test_basic_ops)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
