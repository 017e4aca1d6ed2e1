/* backend/host: products, windows and reductions against plain loops written here. */
#include "tests/unit/host_model.h"
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- matrix products ---- */

/* a[m,k] * b (stored [k,n] or [n,k]) in s32, every combination of awkward extents. */
static void check_matmul_s8(int M, int N, int K, bool transposed) {
  Rng r;
  rng_seed(&r, (uint64_t)(M * 10007 + N * 101 + K));
  Model t = model_new();
  char text[64];
  snprintf(text, sizeof text, "m=%d n=%d k=%d", M, N, K);
  dims(&t, text);
  IrValue *a = input(&t, tensor(&t, DT_S8, 2, M, K));
  IrValue *b = input(&t, transposed ? tensor(&t, DT_S8, 2, N, K) : tensor(&t, DT_S8, 2, K, N));
  In in[] = {{a, "m, k", NULL}, {b, transposed ? "n, k" : "k, n", NULL}};
  Out out[] = {{tensor(&t, DT_S32, 2, M, N), "m, n"}};
  kernel(&t, 2, in, 1, out);
  IrValue *p = bin(&t, IR_OP_MUL, arg(&t, 0, DT_S32), arg(&t, 1, DT_S32));
  yield1(&t, reduce(&t, "sum", p, "k"));
  returns_kernel(&t);
  int8_t *x = bytes(&r, (size_t)(M * K)), *w = bytes(&r, (size_t)(K * N));
  int32_t *y = mem_alloc((size_t)(M * N) * sizeof *y);
  run(&t, (const void *[]){x, w}, (void *[]){y});
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      int32_t want = 0;
      for (int k = 0; k < K; k++) want += x[m * K + k] * (transposed ? w[n * K + k] : w[k * N + n]);
      assert_int_equal(y[m * N + n], want);
    }
  mem_free(x), mem_free(w), mem_free(y);
  model_free(&t);
}

static void test_matmul_s8(void **state) {
  (void)state;
  static const int size[] = {1, 2, 3, 7, 16, 17, 37};
  for (size_t i = 0; i < NPU_COUNTOF(size); i++)
    for (size_t j = 0; j < NPU_COUNTOF(size); j += 2) {
      check_matmul_s8(size[i], size[j], 19, false);
      check_matmul_s8(size[j], size[i], 33, true);
    }
  check_matmul_s8(1, 5001, 3, false); /* wider than a tile */
  check_matmul_s8(5, 129, 700, true);
}

/* gelu-like epilogue on bias + product, weights in a packed constant. */
static void test_matmul_f32_epilogue(void **state) {
  (void)state;
  enum { M = 13, N = 21, K = 50 };
  Rng r;
  rng_seed(&r, 7);
  Model t = model_new();
  dims(&t, "m=13 n=21 k=50");
  float *x = floats(&r, M * K), *w = floats(&r, N * K), *b = floats(&r, N);
  IrValue *a = input(&t, tensor(&t, DT_F32, 2, M, K));
  IrValue *wv = ir_build_constant(&t.at, ir_attr_data(t.m, tensor(&t, DT_F32, 2, N, K), w));
  IrValue *bv = input(&t, tensor(&t, DT_F32, 1, N));
  In in[] = {{a, "m, k", NULL}, {wv, "n, k", NULL}, {bv, "n", NULL}};
  Out out[] = {{tensor(&t, DT_F32, 2, M, N), "m, n"}};
  kernel(&t, 3, in, 1, out);
  IrValue *s = reduce(&t, "sum", bin(&t, IR_OP_MUL, arg(&t, 0, DT_F32), arg(&t, 1, DT_F32)), "k");
  IrValue *v = bin(&t, IR_OP_ADD, s, arg(&t, 2, DT_F32));
  yield1(&t, un(&t, IR_OP_TANH, v));
  returns_kernel(&t);
  float y[M * N];
  run(&t, (const void *[]){x, b}, (void *[]){y});
  for (int m = 0; m < M; m++)
    for (int n = 0; n < N; n++) {
      double want = b[n];
      for (int k = 0; k < K; k++) want += (double)x[m * K + k] * w[n * K + k];
      near(y[m * N + n], tanh(want), 1e-5, (size_t)(m * N + n));
    }
  mem_free(x), mem_free(w), mem_free(b);
  model_free(&t);
}

/* Sums of products are off by no more than 8 additions of f32, the product and the last rounding,
 * however many there are. All terms are alike, so that a sum rounded each time would be far off. */
static void check_product_sums(int K) {
  enum { M = 5, N = 19 };
  Rng r;
  rng_seed(&r, (uint64_t)K);
  Model t = model_new();
  char text[64];
  snprintf(text, sizeof text, "m=5 n=19 k=%d", K);
  dims(&t, text);
  In in[] = {{input(&t, tensor(&t, DT_F32, 2, M, K)), "m, k", NULL},
             {input(&t, tensor(&t, DT_F32, 2, N, K)), "n, k", NULL}};
  Out out[] = {{tensor(&t, DT_F32, 2, M, N), "m, n"}};
  kernel(&t, 2, in, 1, out);
  IrValue *p = bin(&t, IR_OP_MUL, arg(&t, 0, DT_F32), arg(&t, 1, DT_F32));
  yield1(&t, reduce(&t, "sum", p, "k"));
  returns_kernel(&t);
  float *x = floats(&r, (size_t)(M * K)), *w = floats(&r, (size_t)(N * K)), y[M * N];
  for (int i = 0; i < M * K; i++) x[i] = 1000.1f + 0.7f * (float)(i / K);
  for (int i = 0; i < N * K; i++) w[i] = 3.3f + 0.1f * (float)(i / K);
  run(&t, (const void *[]){x, w}, (void *[]){y});
  for (int i = 0; i < M * N; i++) {
    double want = 0;
    for (int k = 0; k < K; k++) want += (double)x[i / N * K + k] * w[i % N * K + k];
    near(y[i], want, 10 * 0x1p-24 * want, (size_t)i);
  }
  mem_free(x), mem_free(w);
  model_free(&t);
}

static void test_product_sums(void **state) {
  (void)state;
  static const int size[] = {1, 2, 7, 8, 9, 15, 16, 17, 127, 129, 4099, 20003};
  for (size_t i = 0; i < NPU_COUNTOF(size); i++) check_product_sums(size[i]);
}

/* ---- windows ---- */

typedef struct {
  int n, g, c, o, h, w, kh, kw, sh, sw, ph, pw, dh, dw; /* c, o: channels per group */
} Conv;

static double conv_at(const Conv *v, const float *x, const float *w, int n, int o, int oh, int ow) {
  double sum = 0;
  int g = o / v->o;
  for (int c = 0; c < v->c; c++)
    for (int i = 0; i < v->kh; i++)
      for (int j = 0; j < v->kw; j++) {
        int ih = oh * v->sh + i * v->dh - v->ph, iw = ow * v->sw + j * v->dw - v->pw;
        if (ih < 0 || ih >= v->h || iw < 0 || iw >= v->w) continue;
        double a = x[((n * v->g * v->c + g * v->c + c) * v->h + ih) * v->w + iw];
        sum += a * w[((o * v->c + c) * v->kh + i) * v->kw + j];
      }
  return sum;
}

static int conv_out(int size, int k, int s, int p, int d) {
  return (size + 2 * p - d * (k - 1) - 1) / s + 1;
}

/* As lowered: group and channel of the group are dimensions of their own. */
static void check_conv(Conv v, const int *order) {
  Rng r;
  rng_seed(&r, 99);
  Model t = model_new();
  int oh = conv_out(v.h, v.kh, v.sh, v.ph, v.dh), ow = conv_out(v.w, v.kw, v.sw, v.pw, v.dw);
  char text[160], xm[160];
  snprintf(text, sizeof text, "n=%d g=%d o=%d oh=%d ow=%d c=%d kh=%d kw=%d", v.n, v.g, v.o, oh, ow,
           v.c, v.kh, v.kw);
  dims(&t, text);
  snprintf(xm, sizeof xm, "n, g*%d+c, oh*%d+kh*%d+%d, ow*%d+kw*%d+%d", v.c, v.sh, v.dh, -v.ph, v.sw,
           v.dw, -v.pw);
  size_t nx = (size_t)(v.n * v.g * v.c * v.h * v.w), nw = (size_t)(v.g * v.o * v.c * v.kh * v.kw);
  float *x = floats(&r, nx), *w = floats(&r, nw);
  IrValue *xv = input(&t, tensor(&t, DT_F32, 4, v.n, v.g * v.c, v.h, v.w));
  const IrType *wt = tensor(&t, DT_F32, 5, v.g, v.o, v.c, v.kh, v.kw);
  IrValue *wv = ir_build_constant(&t.at, ir_attr_data(t.m, wt, w));
  In in[] = {{xv, xm, "0"}, {wv, "g, o, c, kh, kw", NULL}};
  Out out[] = {{tensor(&t, DT_F32, 5, v.n, v.g, v.o, oh, ow), "n, g, o, oh, ow"}};
  kernel(&t, 2, in, 1, out);
  yield1(&t,
         reduce(&t, "sum", bin(&t, IR_OP_MUL, arg(&t, 0, DT_F32), arg(&t, 1, DT_F32)), "c kh kw"));
  if (order) ir_set_layout(ir_result(t.kernel, 0), order);
  returns_kernel(&t);
  float *y = mem_alloc((size_t)(v.n * v.g * v.o * oh * ow) * sizeof *y);
  run(&t, (const void *[]){x}, (void *[]){y});
  size_t at = 0;
  for (int n = 0; n < v.n; n++)
    for (int o = 0; o < v.g * v.o; o++)
      for (int i = 0; i < oh; i++)
        for (int j = 0; j < ow; j++, at++) near(y[at], conv_at(&v, x, w, n, o, i, j), 1e-4, at);
  mem_free(x), mem_free(w), mem_free(y);
  model_free(&t);
}

static void test_conv(void **state) {
  (void)state;
  static const int channels_last[] = {0, 3, 4, 1, 2};
  const Conv cases[] = {
      {1, 1, 3, 8, 11, 13, 3, 3, 1, 1, 1, 1, 1, 1}, {2, 1, 5, 7, 9, 30, 3, 2, 2, 1, 1, 0, 1, 2},
      {1, 6, 1, 1, 10, 10, 3, 3, 1, 1, 1, 1, 1, 1}, {1, 2, 3, 4, 17, 19, 5, 5, 3, 2, 2, 4, 2, 1},
      {3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1},   {1, 1, 32, 33, 6, 6, 1, 1, 1, 1, 0, 0, 1, 1},
  };
  for (size_t i = 0; i < NPU_COUNTOF(cases); i++) {
    check_conv(cases[i], NULL);
    check_conv(cases[i], channels_last);
  }
}

static void test_max_pool(void **state) {
  (void)state;
  enum { C = 3, H = 11, W = 23, OH = 6, OW = 12 };
  Rng r;
  rng_seed(&r, 5);
  Model t = model_new();
  dims(&t, "c=3 oh=6 ow=12 kh=3 kw=3");
  IrValue *x = input(&t, tensor(&t, DT_F32, 3, C, H, W));
  In in[] = {{x, "c, oh*2+kh-1, ow*2+kw-1", "-inf"}};
  Out out[] = {{tensor(&t, DT_F32, 3, C, OH, OW), "c, oh, ow"}};
  kernel(&t, 1, in, 1, out);
  yield1(&t, reduce(&t, "max", arg(&t, 0, DT_F32), "kh kw"));
  returns_kernel(&t);
  float *a = floats(&r, C * H * W), y[C * OH * OW];
  run(&t, (const void *[]){a}, (void *[]){y});
  for (int i = 0; i < C * OH * OW; i++) {
    int c = i / (OH * OW), oh = i / OW % OH, ow = i % OW;
    float want = -INFINITY;
    for (int k = 0; k < 9; k++) {
      int h = oh * 2 + k / 3 - 1, w = ow * 2 + k % 3 - 1;
      if (h >= 0 && h < H && w >= 0 && w < W) want = fmaxf(want, a[(c * H + h) * W + w]);
    }
    assert_true(y[i] == want);
  }
  mem_free(a);
  model_free(&t);
}

/* ---- several reductions ---- */

static IrValue *softmax_body(Model *t, IrValue *x, const char *over) {
  IrValue *e = un(t, IR_OP_EXP, bin(t, IR_OP_SUB, x, reduce(t, "max", x, over)));
  return bin(t, IR_OP_DIV, e, reduce(t, "sum", e, over));
}

static void check_softmax(int R, int C, int I) {
  Rng r;
  rng_seed(&r, 11);
  Model t = model_new();
  char text[64];
  snprintf(text, sizeof text, "r=%d i=%d c=%d", R, I, C);
  dims(&t, text);
  IrValue *x = input(&t, tensor(&t, DT_F32, 3, R, C, I));
  In in[] = {{x, "r, c, i", NULL}};
  Out out[] = {{tensor(&t, DT_F32, 3, R, C, I), "r, c, i"}};
  kernel(&t, 1, in, 1, out);
  yield1(&t, softmax_body(&t, arg(&t, 0, DT_F32), "c"));
  returns_kernel(&t);
  size_t n = (size_t)(R * C * I);
  float *a = floats(&r, n), *y = mem_alloc(n * sizeof *y);
  run(&t, (const void *[]){a}, (void *[]){y});
  for (int q = 0; q < R * I; q++) {
    int base = q / I * C * I + q % I;
    double max = -INFINITY, sum = 0;
    for (int c = 0; c < C; c++) max = fmax(max, a[base + c * I]);
    for (int c = 0; c < C; c++) sum += exp(a[base + c * I] - max);
    for (int c = 0; c < C; c++)
      near(y[base + c * I], exp(a[base + c * I] - max) / sum, 1e-6, (size_t)(base + c * I));
  }
  mem_free(a), mem_free(y);
  model_free(&t);
}

static void test_softmax(void **state) {
  (void)state;
  check_softmax(5, 37, 1);
  check_softmax(1, 1, 1);
  check_softmax(3, 10, 19);
  check_softmax(700, 17, 1);
  check_softmax(2, 6000, 1);
}

/* Layer norm that also returns its mean: two results over different dimensions. */
static void test_layer_norm_with_mean(void **state) {
  (void)state;
  enum { R = 9, C = 45 };
  Rng r;
  rng_seed(&r, 3);
  Model t = model_new();
  dims(&t, "r=9 c=45");
  IrValue *x = input(&t, tensor(&t, DT_BF16, 2, R, C)), *g = input(&t, tensor(&t, DT_F32, 1, C));
  In in[] = {{x, "r, c", NULL}, {g, "c", NULL}};
  Out out[] = {{tensor(&t, DT_F32, 2, R, C), "r, c"}, {tensor(&t, DT_BF16, 1, R), "r"}};
  kernel(&t, 2, in, 2, out);
  IrValue *v = arg(&t, 0, DT_F32), *n = num(&t, DT_F32, C);
  IrValue *mean = bin(&t, IR_OP_DIV, reduce(&t, "sum", v, "c"), n);
  IrValue *d = bin(&t, IR_OP_SUB, v, mean);
  IrValue *var = bin(&t, IR_OP_DIV, reduce(&t, "sum", bin(&t, IR_OP_MUL, d, d), "c"), n);
  IrValue *inv = un(&t, IR_OP_RSQRT, bin(&t, IR_OP_ADD, var, num(&t, DT_F32, 1e-5)));
  IrValue *y0 = bin(&t, IR_OP_MUL, bin(&t, IR_OP_MUL, d, inv), arg(&t, 1, DT_F32));
  IrValue *ys[] = {y0, ir_build_cast(&t.body, mean, DT_BF16)};
  yield(&t, 2, ys);
  returns_kernel(&t);
  float *f = floats(&r, R * C), *gain = floats(&r, C), y[R * C];
  uint16_t a[R * C], means[R];
  for (int i = 0; i < R * C; i++) a[i] = f32_to_bf16(f[i]);
  run(&t, (const void *[]){a, gain}, (void *[]){y, means});
  for (int i = 0; i < R; i++) {
    double m = 0, s = 0;
    for (int c = 0; c < C; c++) m += bf16_to_f32(a[i * C + c]) / C;
    for (int c = 0; c < C; c++) s += pow(bf16_to_f32(a[i * C + c]) - m, 2) / C;
    near(bf16_to_f32(means[i]), m, fabs(m) / 256 + 1e-6, (size_t)i);
    for (int c = 0; c < C; c++)
      near(y[i * C + c], (bf16_to_f32(a[i * C + c]) - m) / sqrt(s + 1e-5) * gain[c], 1e-5,
           (size_t)(i * C + c));
  }
  mem_free(f), mem_free(gain);
  model_free(&t);
}

/* argmax: the reduced dimension appears as a number; ties give the first. */
static void test_argmax(void **state) {
  (void)state;
  enum { R = 6, C = 35 };
  Rng r;
  rng_seed(&r, 21);
  Model t = model_new();
  dims(&t, "r=6 c=35");
  IrValue *x = input(&t, tensor(&t, DT_S8, 2, R, C));
  In in[] = {{x, "r, c", NULL}};
  Out out[] = {{tensor(&t, DT_S32, 1, R), "r"}};
  kernel(&t, 1, in, 1, out);
  IrValue *v = arg(&t, 0, DT_S32);
  IrValue *is_max = bin(&t, IR_OP_EQ, v, reduce(&t, "max", v, "c"));
  IrValue *at = where(&t, is_max, index_of(&t, "c"), num(&t, DT_S32, 1000));
  yield1(&t, reduce(&t, "min", at, "c"));
  returns_kernel(&t);
  int8_t a[R * C];
  int32_t y[R];
  for (int i = 0; i < R * C; i++) a[i] = (int8_t)rng_range(&r, -4, 4);
  run(&t, (const void *[]){a}, (void *[]){y});
  for (int i = 0; i < R; i++) {
    int best = 0;
    for (int c = 1; c < C; c++)
      if (a[i * C + c] > a[i * C + best]) best = c;
    assert_int_equal(y[i], best);
  }
  model_free(&t);
}

/* A sum over a dimension the value does not move with counts it as often; over all, to a scalar. */
static void test_reduce_everything(void **state) {
  (void)state;
  Model t = model_new();
  dims(&t, "i=77 j=3");
  IrValue *x = input(&t, tensor(&t, DT_S32, 1, 77));
  In in[] = {{x, "i", NULL}};
  Out out[] = {{tensor(&t, DT_S32, 0), ""}};
  kernel(&t, 1, in, 1, out);
  yield1(&t, reduce(&t, "sum", arg(&t, 0, DT_S32), "i j"));
  returns_kernel(&t);
  int32_t a[77], y;
  uint32_t want = 0;
  for (int i = 0; i < 77; i++) {
    a[i] = INT32_MAX / 3 + i * 1000003; /* wraps */
    want += 3u * (uint32_t)a[i];
  }
  run(&t, (const void *[]){a}, (void *[]){&y});
  assert_int_equal(y, (int32_t)want);
  model_free(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_matmul_s8),
      cmocka_unit_test(test_matmul_f32_epilogue),
      cmocka_unit_test(test_product_sums),
      cmocka_unit_test(test_conv),
      cmocka_unit_test(test_max_pool),
      cmocka_unit_test(test_softmax),
      cmocka_unit_test(test_layer_norm_with_mean),
      cmocka_unit_test(test_argmax),
      cmocka_unit_test(test_reduce_everything),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
