/* backend/host: elementwise operations, moving data, and functions of several ops. */
#include "tests/unit/host_model.h"
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- elementwise ---- */

static const float specials[] = {0.0f,          -0.0f,     0.5f,   -0.5f,         1.5f,
                                 2.5f,          -2.5f,     126.5f, 127.5f,        -128.5f,
                                 -129,          1e9f,      -3e9f,  2147483648.0f, -2147483648.0f,
                                 INFINITY,      -INFINITY, NAN,    1.00390625f,   1.01171875f,
                                 3.3895314e38f, 1e-40f,    7};
enum { NSPECIAL = sizeof specials / sizeof *specials };

static void unary_model(Model *t, DType from, DType to) {
  char text[16];
  snprintf(text, sizeof text, "i=%d", NSPECIAL);
  dims(t, text);
  In in[] = {{input(t, tensor(t, from, 1, NSPECIAL)), "i", NULL}};
  Out out[] = {{tensor(t, to, 1, NSPECIAL), "i"}};
  kernel(t, 1, in, 1, out);
}

static void test_casts(void **state) {
  (void)state;
  static const DType to[] = {DT_S8, DT_S32, DT_BF16};
  for (size_t k = 0; k < NPU_COUNTOF(to); k++) {
    Model t = model_new();
    unary_model(&t, DT_F32, to[k]);
    yield1(&t, arg(&t, 0, to[k]));
    returns_kernel(&t);
    int32_t y[NSPECIAL];
    run(&t, (const void *[]){specials}, (void *[]){y});
    for (int i = 0; i < NSPECIAL; i++) {
      double r = nearbyint(specials[i]); /* the default mode rounds half to even */
      double lo = to[k] == DT_S8 ? -128 : -2147483648.0, hi = to[k] == DT_S8 ? 127 : 2147483647.0;
      int32_t want = isnan(r) ? 0 : r > hi ? (int32_t)hi : r < lo ? (int32_t)lo : (int32_t)r;
      if (to[k] == DT_S8) assert_int_equal(((int8_t *)y)[i], want);
      if (to[k] == DT_S32) assert_int_equal(y[i], want);
    }
    if (to[k] == DT_BF16) {
      const uint16_t *h = (const uint16_t *)y;
      assert_int_equal(h[18], 0x3f80); /* 1 + 2^-8: half way, down to even */
      assert_int_equal(h[19], 0x3f82); /* 1 + 3*2^-8: half way, up to even */
      assert_int_equal(h[20], 0x7f7f); /* largest */
      assert_int_equal(h[15], 0x7f80);
      assert_true((h[17] & 0x7fff) > 0x7f80); /* NaN stays one */
    }
    model_free(&t);
  }
}

static void test_s32_to_s8_saturates(void **state) {
  (void)state;
  Model t = model_new();
  dims(&t, "i=5");
  In in[] = {{input(&t, tensor(&t, DT_S32, 1, 5)), "i", NULL}};
  Out out[] = {{tensor(&t, DT_S8, 1, 5), "i"}};
  kernel(&t, 1, in, 1, out);
  yield1(&t, arg(&t, 0, DT_S8));
  returns_kernel(&t);
  static const int32_t a[] = {300, -300, 127, -128, INT32_MIN};
  int8_t y[5];
  run(&t, (const void *[]){a}, (void *[]){y});
  static const int8_t want[] = {127, -128, 127, -128, -128};
  assert_memory_equal(y, want, 5);
  model_free(&t);
}

static void test_float_ops(void **state) {
  (void)state;
  static const struct {
    IrOpKind op;
    double (*f)(double);
  } ops[] = {{IR_OP_EXP, exp},   {IR_OP_LOG, log},     {IR_OP_TANH, tanh},       {IR_OP_ERF, erf},
             {IR_OP_SQRT, sqrt}, {IR_OP_FLOOR, floor}, {IR_OP_ROUND, nearbyint}, {IR_OP_ABS, fabs},
             {IR_OP_SIN, sin},   {IR_OP_COS, cos}};
  for (size_t k = 0; k < NPU_COUNTOF(ops); k++) {
    Model t = model_new();
    unary_model(&t, DT_F32, DT_F32);
    yield1(&t, un(&t, ops[k].op, arg(&t, 0, DT_F32)));
    returns_kernel(&t);
    float y[NSPECIAL];
    run(&t, (const void *[]){specials}, (void *[]){y});
    for (int i = 0; i < NSPECIAL; i++) {
      if ((ops[k].op == IR_OP_SIN || ops[k].op == IR_OP_COS) && fabsf(specials[i]) > 1e4f)
        continue; /* reduction of huge arguments is the ISA's */
      float want = (float)ops[k].f(specials[i]);
      if (specials[i] == 1e-40f) continue; /* subnormals are the ISA's business */
      if (isnan(want))
        assert_true(isnan(y[i]));
      else if (isinf(want))
        assert_true(y[i] == want);
      else
        near(y[i], want, fabs((double)want) * 1e-6 + 1e-7, (size_t)i);
    }
    model_free(&t);
  }
}

/* A NaN is the larger and the smaller of two, whichever it is. */
static void test_extremes_and_select(void **state) {
  (void)state;
  Model t = model_new();
  dims(&t, "i=4");
  IrValue *a = input(&t, tensor(&t, DT_F32, 1, 4)), *b = input(&t, tensor(&t, DT_F32, 1, 4));
  In in[] = {{a, "i", NULL}, {b, "i", NULL}};
  const IrType *f = tensor(&t, DT_F32, 1, 4);
  Out out[] = {{f, "i"}, {f, "i"}, {tensor(&t, DT_S8, 1, 4), "i"}, {f, "i"}};
  kernel(&t, 2, in, 4, out);
  IrValue *x = arg(&t, 0, DT_F32), *y = arg(&t, 1, DT_F32), *lt = bin(&t, IR_OP_LT, x, y);
  IrValue *v[] = {bin(&t, IR_OP_MAX, x, y), bin(&t, IR_OP_MIN, x, y), lt,
                  where(&t, lt, num(&t, DT_F32, 5), x)};
  yield(&t, 4, v);
  returns_kernel(&t);
  static const float p[] = {1, NAN, 2, -1}, q[] = {2, 3, NAN, -1};
  float max[4], min[4], sel[4];
  int8_t less[4];
  run(&t, (const void *[]){p, q}, (void *[]){max, min, less, sel});
  assert_true(max[0] == 2 && isnan(max[1]) && isnan(max[2]) && max[3] == -1);
  assert_true(min[0] == 1 && isnan(min[1]) && isnan(min[2]) && min[3] == -1);
  assert_true(less[0] == 1 && less[1] == 0 && less[2] == 0 && less[3] == 0);
  assert_true(sel[0] == 5 && isnan(sel[1]) && sel[2] == 2 && sel[3] == -1);
  model_free(&t);
}

/* ---- moving ---- */

static void test_transpose_and_reverse(void **state) {
  (void)state;
  enum { A = 5, B = 18 };
  Model t = model_new();
  dims(&t, "b=18 a=5");
  In in[] = {{input(&t, tensor(&t, DT_S32, 2, A, B)), "a, b*-1+17", NULL}};
  Out out[] = {{tensor(&t, DT_S32, 2, B, A), "b, a"}};
  kernel(&t, 1, in, 1, out);
  yield1(&t, arg(&t, 0, DT_S32));
  returns_kernel(&t);
  int32_t x[A * B], y[A * B];
  for (int i = 0; i < A * B; i++) x[i] = i;
  run(&t, (const void *[]){x}, (void *[]){y});
  for (int b = 0; b < B; b++)
    for (int a = 0; a < A; a++) assert_int_equal(y[b * A + a], a * B + B - 1 - b);
  model_free(&t);
}

static HostProgram *gather_model(Model *t, int rows, int width, int n) {
  char text[64];
  snprintf(text, sizeof text, "i=%d j=%d", n, width);
  dims(t, text);
  IrValue *table = input(t, tensor(t, DT_F32, 2, rows, width)),
          *index = input(t, tensor(t, DT_S32, 1, n));
  In in[] = {{table, "@1, j", NULL}, {index, "i", NULL}};
  Out out[] = {{tensor(t, DT_F32, 2, n, width), "i, j"}};
  kernel(t, 2, in, 1, out);
  yield1(t, arg(t, 0, DT_F32));
  returns_kernel(t);
  return compile(t);
}

static void test_gather(void **state) {
  (void)state;
  static const int width[] = {1, 20};
  for (int k = 0; k < 2; k++) { /* the index along the lanes, and beside them */
    enum { ROWS = 9, N = 21 };
    Rng r;
    rng_seed(&r, 2);
    Model t = model_new();
    HostProgram *p = gather_model(&t, ROWS, width[k], N);
    float *table = floats(&r, (size_t)(ROWS * width[k])),
          *y = mem_alloc((size_t)(N * width[k]) * sizeof *y);
    int32_t index[N];
    for (int i = 0; i < N; i++) index[i] = i * 5 % ROWS;
    assert_true(host_run(p, (const void *[]){table, index}, (void *[]){y}, t.diag));
    for (int i = 0; i < N * width[k]; i++)
      assert_true(y[i] == table[index[i / width[k]] * width[k] + i % width[k]]);
    index[7] = ROWS;
    assert_false(host_run(p, (const void *[]){table, index}, (void *[]){y}, t.diag));
    assert_int_equal(diag_errors(t.diag), 1);
    const Diag *d = diag_get(t.diag, 0);
    assert_string_equal(d->code, "E-index");
    assert_int_equal(d->loc.line, 3);
    assert_non_null(strstr(d->message, "index 9"));
    assert_non_null(strstr(d->message, "0..8"));
    index[7] = -1;
    assert_false(host_run(p, (const void *[]){table, index}, (void *[]){y}, t.diag));
    host_free(p);
    mem_free(table), mem_free(y);
    model_free(&t);
  }
}

/* ---- functions ---- */

/* y = x + c through a layout, a reshape out of it, and a splat. */
static void test_layouts_and_reshape(void **state) {
  (void)state;
  static const int order[] = {0, 2, 1};
  Model t = model_new();
  dims(&t, "a=2 b=3 c=17");
  IrValue *x = input(&t, tensor(&t, DT_S32, 3, 2, 3, 17));
  IrValue *seven = ir_build_splat(&t.at, tensor(&t, DT_S32, 1, 17), 7);
  In in[] = {{x, "a, b, c", NULL}, {seven, "c", NULL}};
  Out out[] = {{tensor(&t, DT_S32, 3, 2, 3, 17), "a, b, c"}};
  kernel(&t, 2, in, 1, out);
  yield1(&t, bin(&t, IR_OP_ADD, arg(&t, 0, DT_S32), arg(&t, 1, DT_S32)));
  IrValue *v = ir_result(t.kernel, 0);
  ir_set_layout(v, order);
  const IrType *flat = tensor(&t, DT_S32, 2, 6, 17);
  IrValue *r = ir_result(ir_build_typed(&t.at, IR_OP_RESHAPE, 1, &v, 1, &flat, 0, NULL), 0);
  dims(&t, "i=6 c=17");
  In in2[] = {{r, "i, c", NULL}};
  Out out2[] = {{flat, "i, c"}};
  kernel(&t, 1, in2, 1, out2);
  yield1(&t, bin(&t, IR_OP_MUL, arg(&t, 0, DT_S32), num(&t, DT_S32, 2)));
  IrValue *both[] = {ir_result(t.kernel, 0), r, v, x, seven};
  returns(&t, 5, both);
  int32_t a[102], y[102], z[102], w[102], same[102], c[17];
  for (int i = 0; i < 102; i++) a[i] = i * i;
  run(&t, (const void *[]){a}, (void *[]){y, z, w, same, c});
  for (int i = 0; i < 102; i++) {
    assert_int_equal(y[i], 2 * (i * i + 7));
    assert_int_equal(z[i], i * i + 7);
    assert_int_equal(w[i], i * i + 7);
    assert_int_equal(same[i], i * i);
  }
  for (int i = 0; i < 17; i++) assert_int_equal(c[i], 7);
  model_free(&t);
}

static IrValue *state_value(Model *t, const char *name, const IrType *type, const IrAttr *data) {
  IrAttrInit attrs[] = {{"name", ir_attr_str(t->m, name)}, {"data", data}};
  return ir_result(ir_build_typed(&t->at, IR_OP_STATE, 0, NULL, 1, &type, data ? 2 : 1, attrs), 0);
}
static void state_write(Model *t, const char *name, IrValue *v) {
  IrAttrInit a = {"name", ir_attr_str(t->m, name)};
  ir_build_typed(&t->at, IR_OP_STATE_WRITE, 1, &v, 0, NULL, 1, &a);
}

/* Two states that swap each run, and a counter. */
static void test_states(void **state) {
  (void)state;
  static const int32_t first[] = {10, 20};
  Model t = model_new();
  const IrType *pair = tensor(&t, DT_S32, 1, 2);
  IrValue *step = input(&t, pair);
  IrValue *p = state_value(&t, "p", pair, ir_attr_data(t.m, pair, first));
  IrValue *q = state_value(&t, "q", pair, NULL), *n = state_value(&t, "n", pair, NULL);
  dims(&t, "i=2");
  In in[] = {{n, "i", NULL}, {step, "i", NULL}};
  Out out[] = {{pair, "i"}};
  kernel(&t, 2, in, 1, out);
  yield1(&t, bin(&t, IR_OP_ADD, arg(&t, 0, DT_S32), arg(&t, 1, DT_S32)));
  state_write(&t, "p", q);
  state_write(&t, "q", p);
  state_write(&t, "n", ir_result(t.kernel, 0));
  IrValue *v[] = {p, q, ir_result(t.kernel, 0)};
  returns(&t, 3, v);
  HostProgram *prog = compile(&t);
  int32_t by[] = {1, 100}, a[2], b[2], c[2];
  for (int k = 1; k <= 3; k++) {
    assert_true(host_run(prog, (const void *[]){by}, (void *[]){a, b, c}, t.diag));
    assert_int_equal(a[1], k % 2 ? 20 : 0);
    assert_int_equal(b[1], k % 2 ? 0 : 20);
    assert_int_equal(c[0], k);
    assert_int_equal(c[1], 100 * k);
  }
  host_reset_states(prog);
  assert_true(host_run(prog, (const void *[]){by}, (void *[]){a, b, c}, t.diag));
  assert_int_equal(a[0], 10);
  assert_int_equal(c[1], 100);
  host_free(prog);
  model_free(&t);
}

/* A chain of kernels whose temporaries must not overlap while live. */
static void test_chain_reuses_memory(void **state) {
  (void)state;
  enum { N = 1000 };
  Model t = model_new();
  const IrType *type = tensor(&t, DT_S32, 1, N);
  dims(&t, "i=1000");
  IrValue *v = input(&t, type), *early = NULL;
  for (int k = 0; k < 6; k++) {
    In in[] = {{v, "i", NULL}, {early ? early : v, "i", NULL}};
    Out out[] = {{type, "i"}};
    kernel(&t, 2, in, 1, out);
    yield1(&t, bin(&t, IR_OP_ADD, arg(&t, 0, DT_S32), arg(&t, 1, DT_S32)));
    v = ir_result(t.kernel, 0);
    if (k == 1) early = v;
  }
  returns(&t, 1, &v);
  int32_t x[N], y[N];
  for (int i = 0; i < N; i++) x[i] = i;
  run(&t, (const void *[]){x}, (void *[]){y});
  for (int i = 0; i < N; i++) assert_int_equal(y[i], 4 * i + 4 * 4 * i);
  model_free(&t);
}

static void test_graph_op_is_refused(void **state) {
  (void)state;
  Model t = model_new();
  IrValue *x = input(&t, tensor(&t, DT_F32, 1, 4));
  IrValue *y = ir_build1(&t.at, IR_OP_RELU, x);
  returns(&t, 1, &y);
  assert_null(host_compile(t.f, t.diag));
  assert_string_equal(diag_get(t.diag, 0)->code, "E-host-op");
  model_free(&t);
}

static void test_out_of_range_without_pad(void **state) {
  (void)state;
  Model t = model_new();
  dims(&t, "i=5");
  In in[] = {{input(&t, tensor(&t, DT_F32, 1, 4)), "i", NULL}};
  Out out[] = {{tensor(&t, DT_F32, 1, 5), "i"}};
  kernel(&t, 1, in, 1, out);
  yield1(&t, arg(&t, 0, DT_F32));
  returns_kernel(&t);
  assert_null(host_compile(t.f, t.diag));
  assert_string_equal(diag_get(t.diag, 0)->code, "E-host-range");
  model_free(&t);
}

enum { DOT_TERMS = 192 };

static IrValue *dot(Model *t) {
  In in[] = {{input(t, tensor(t, DT_F32, 1, DOT_TERMS)), "k", NULL},
             {input(t, tensor(t, DT_F32, 2, 2, DOT_TERMS)), "n, k", NULL}};
  Out out[] = {{tensor(t, DT_F32, 1, 2), "n"}};
  dims(t, "n=2 k=192");
  kernel(t, 2, in, 1, out);
  IrValue *p = bin(t, IR_OP_MUL, arg(t, 0, DT_F32), arg(t, 1, DT_F32));
  yield1(t, reduce(t, "sum", p, "k"));
  return ir_result(t->kernel, 0);
}

static IrValue *negative(Model *t, IrValue *v, DType as) {
  In in[] = {{v, "n", NULL}};
  Out out[] = {{tensor(t, as, 1, 2), "n"}};
  dims(t, "n=2");
  kernel(t, 1, in, 1, out);
  IrValue *x = un(t, IR_OP_NEG, arg(t, 0, DT_F32));
  yield1(t, as == DT_F32 ? x : ir_build_cast(&t->body, x, as));
  return ir_result(t->kernel, 0);
}

/* What becomes an integer, some kernels later or in the next run, is rounded once: of 2^24, 1,
 * -2^24, 2^24, 1, ... no 1 is lost, whatever the order. */
static void test_sums_that_become_integers(void **state) {
  (void)state;
  for (int by_state = 0; by_state < 2; by_state++) {
    Model t = model_new();
    const IrType *type = tensor(&t, DT_F32, 1, 2);
    IrValue *sum = negative(&t, dot(&t), DT_F32), *before = sum;
    if (by_state) {
      before = state_value(&t, "s", type, NULL);
      state_write(&t, "s", sum);
    }
    IrValue *v[] = {negative(&t, before, DT_S32)};
    returns(&t, 1, v);
    HostProgram *prog = compile(&t);
    static const float term[] = {0x1p24f, 1, -0x1p24f};
    float x[DOT_TERMS], w[2 * DOT_TERMS];
    for (int i = 0; i < DOT_TERMS; i++) x[i] = term[i % 3], w[i] = 1, w[DOT_TERMS + i] = 2;
    int32_t y[2];
    for (int k = 0; k < 1 + by_state; k++)
      assert_true(host_run(prog, (const void *[]){x, w}, (void *[]){y}, t.diag));
    assert_int_equal(y[0], DOT_TERMS / 3);
    assert_int_equal(y[1], DOT_TERMS / 3 * 2);
    host_free(prog);
    model_free(&t);
  }
}

static void test_print_llvm(void **state) {
  (void)state;
  Model t = model_new();
  HostProgram *p = gather_model(&t, 3, 32, 2);
  StrBuf text = {0};
  host_print_llvm(p, &text);
  assert_non_null(strstr(text.data, "define void @kernel0"));
  assert_non_null(strstr(text.data, "<16 x float>"));
  strbuf_free(&text);
  host_free(p);
  model_free(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_casts),
      cmocka_unit_test(test_s32_to_s8_saturates),
      cmocka_unit_test(test_float_ops),
      cmocka_unit_test(test_extremes_and_select),
      cmocka_unit_test(test_transpose_and_reverse),
      cmocka_unit_test(test_gather),
      cmocka_unit_test(test_layouts_and_reshape),
      cmocka_unit_test(test_states),
      cmocka_unit_test(test_chain_reuses_memory),
      cmocka_unit_test(test_graph_op_is_refused),
      cmocka_unit_test(test_out_of_range_without_pad),
      cmocka_unit_test(test_sums_that_become_integers),
      cmocka_unit_test(test_print_llvm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
