/* backend/host: kernels at nest level against plain loops written here. */
#include "backend/host/host.h"
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- making functions --------------------------------------------------------------------------
 */

typedef struct {
  DiagEngine *diag;
  IrModule *m;
  IrFunc *f;
  IrOp *kernel;
  IrBuilder at, body;
  int ndims;
  const char *names[IR_MAX_DIMS];
  int64_t extents[IR_MAX_DIMS];
} Model;

static Model model_new(void) {
  Model t = {.diag = diag_new()};
  t.m = ir_module_new(t.diag);
  t.f = ir_func_new(t.m, "test", IR_NEST);
  t.at = ir_builder_at_end(t.f->body, (SrcLoc){.file = "test.mdl", .line = 3, .col = 5});
  return t;
}

static void model_free(Model *t) {
  ir_module_free(t->m);
  diag_free(t->diag);
}

static const IrType *tensor(Model *t, DType dtype, int rank, ...) {
  int64_t shape[IR_MAX_RANK];
  va_list ap;
  va_start(ap, rank);
  for (int i = 0; i < rank; i++) shape[i] = va_arg(ap, int);
  va_end(ap);
  return ir_type_tensor(t->m, dtype, rank, shape);
}

static IrValue *input(Model *t, const IrType *type) {
  return ir_block_add_arg(t->f->body, type, NULL);
}

/* "m=5 n=7": the dimensions of the next kernel. */
static void dims(Model *t, const char *text) {
  t->ndims = 0;
  char *copy = arena_strdup(t->m->arena, text), *save = NULL;
  for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
    char *eq = strchr(w, '=');
    *eq = '\0';
    t->names[t->ndims] = ir_str(t->m, w);
    t->extents[t->ndims++] = strtoll(eq + 1, NULL, 10);
  }
}

static int dim(const Model *t, const char *name, size_t len) {
  for (int d = 0; d < t->ndims; d++)
    if (strlen(t->names[d]) == len && !strncmp(t->names[d], name, len)) return d;
  abort();
}

/* "n, oh*2+kh-1, @1, 0": one expression per axis; @1 is the value of operand 1. */
static IrMap map(const Model *t, const char *s) {
  IrMap m = ir_map_zero(0);
  while (*s) {
    m.axis[m.rank].index = -1;
    for (; *s && *s != ','; s += *s == '+') {
      while (*s == ' ') s++;
      if (*s == '@') {
        m.axis[m.rank].index = (int)strtol(s + 1, (char **)(uintptr_t)&s, 10);
      } else if (isalpha((unsigned char)*s)) {
        size_t len = 0;
        while (isalnum((unsigned char)s[len])) len++;
        int d = dim(t, s, len);
        s += len;
        m.axis[m.rank].coef[d] = *s == '*' ? strtoll(s + 1, (char **)(uintptr_t)&s, 10) : 1;
      } else {
        m.axis[m.rank].cst += strtoll(s, (char **)(uintptr_t)&s, 10);
      }
    }
    m.rank++;
    if (*s) s++;
  }
  return m;
}

typedef struct {
  IrValue *value;
  const char *map, *pad; /* pad: NULL for none */
} In;
typedef struct {
  const IrType *type;
  const char *map;
} Out;

static void kernel(Model *t, int nin, const In *in, int nout, const Out *out) {
  IrValue *values[8];
  IrMap in_maps[8], out_maps[8];
  const IrAttr *pads[8];
  const IrType *types[8];
  for (int i = 0; i < nin; i++) {
    values[i] = in[i].value;
    in_maps[i] = map(t, in[i].map);
    pads[i] = in[i].pad ? ir_attr_float(t->m, strtod(in[i].pad, NULL)) : NULL;
  }
  for (int i = 0; i < nout; i++) {
    types[i] = out[i].type;
    out_maps[i] = map(t, out[i].map);
  }
  t->kernel = ir_kernel_new(&t->at, t->ndims, t->names, t->extents, nin, values, in_maps, pads,
                            nout, types, out_maps);
  t->body = ir_builder_at_end(t->kernel->region, t->at.loc);
}

static IrValue *arg(Model *t, int i, DType as) {
  return ir_build_cast(&t->body, t->kernel->region->args[i], as);
}
static IrValue *un(Model *t, IrOpKind k, IrValue *x) {
  return ir_build1(&t->body, k, x);
}
static IrValue *bin(Model *t, IrOpKind k, IrValue *a, IrValue *b) {
  return ir_build2(&t->body, k, a, b);
}
static IrValue *num(Model *t, DType d, double v) {
  return ir_build_scalar(&t->body, d, v);
}
static IrValue *reduce(Model *t, const char *op, IrValue *x, const char *over) {
  int64_t d[IR_MAX_DIMS];
  int n = 0;
  for (const char *s = over; *s; s += *s == ' ') {
    size_t len = strcspn(s, " ");
    d[n++] = dim(t, s, len);
    s += len;
  }
  IrAttrInit attrs[] = {{"op", ir_attr_str(t->m, op)}, {"over", ir_attr_ints(t->m, d, (size_t)n)}};
  return ir_result(ir_build(&t->body, IR_OP_REDUCE, 1, &x, 2, attrs), 0);
}
static IrValue *index_of(Model *t, const char *d) {
  IrAttrInit a = {"dim", ir_attr_int(t->m, dim(t, d, strlen(d)))};
  return ir_result(ir_build(&t->body, IR_OP_INDEX, 0, NULL, 1, &a), 0);
}
static IrValue *where(Model *t, IrValue *c, IrValue *a, IrValue *b) {
  IrValue *v[] = {c, a, b};
  return ir_result(ir_build(&t->body, IR_OP_WHERE, 3, v, 0, NULL), 0);
}
static void yield(Model *t, int n, IrValue *const *v) {
  ir_build_typed(&t->body, IR_OP_YIELD, n, v, 0, NULL, 0, NULL);
}
static void yield1(Model *t, IrValue *v) {
  yield(t, 1, &v);
}

static void returns(Model *t, int n, IrValue *const *v) {
  ir_build_typed(&t->at, IR_OP_RETURN, n, v, 0, NULL, 0, NULL);
  t->f->nresults = n;
  t->f->result_names = ARENA_ARRAY(t->m->arena, const char *, n);
  for (int i = 0; i < n; i++) t->f->result_names[i] = "r";
}

static HostProgram *compile(Model *t) {
  HostProgram *p = host_compile(t->f, t->diag);
  if (!p) diag_print_all(t->diag, stderr, false);
  assert_non_null(p);
  return p;
}

/* Compiles and runs once. */
static void run(Model *t, const void *const *in, void *const *out) {
  HostProgram *p = compile(t);
  assert_true(host_run(p, in, out, t->diag));
  host_free(p);
}

static void returns_kernel(Model *t) {
  IrValue *v[8];
  for (int i = 0; i < t->kernel->nresults; i++) v[i] = ir_result(t->kernel, i);
  returns(t, t->kernel->nresults, v);
}

/* ---- data
 * ----------------------------------------------------------------------------------------- */

static float *floats(Rng *r, size_t n) {
  float *x = mem_alloc(n * sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (float)rng_normal(r);
  return x;
}
static int8_t *bytes(Rng *r, size_t n) {
  int8_t *x = mem_alloc(n);
  for (size_t i = 0; i < n; i++) x[i] = (int8_t)rng_range(r, -128, 127);
  return x;
}
static void near(double got, double want, double bound, size_t at) {
  if (fabs(got - want) <= bound) return;
  fail_msg("element %zu is %.9g, want %.9g within %.3g", at, got, want, bound);
}

/* ---- matrix products
 * --------------------------------------------------------------------------------- */

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

/* ---- windows
 * ------------------------------------------------------------------------------------------- */

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

/* ---- several reductions
 * -------------------------------------------------------------------------------- */

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

/* ---- elementwise
 * ------------------------------------------------------------------------------------------ */

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

/* max and min choose as `a > b ? a : b` does. */
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
  assert_true(max[0] == 2 && max[1] == 3 && isnan(max[2]) && max[3] == -1);
  assert_true(min[0] == 1 && min[1] == 3 && isnan(min[2]) && min[3] == -1);
  assert_true(less[0] == 1 && less[1] == 0 && less[2] == 0 && less[3] == 0);
  assert_true(sel[0] == 5 && isnan(sel[1]) && sel[2] == 2 && sel[3] == -1);
  model_free(&t);
}

/* ---- moving
 * ------------------------------------------------------------------------------------------------
 */

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

/* ---- functions
 * ------------------------------------------------------------------------------------------------
 */

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
      cmocka_unit_test(test_matmul_s8),
      cmocka_unit_test(test_matmul_f32_epilogue),
      cmocka_unit_test(test_conv),
      cmocka_unit_test(test_max_pool),
      cmocka_unit_test(test_softmax),
      cmocka_unit_test(test_layer_norm_with_mean),
      cmocka_unit_test(test_argmax),
      cmocka_unit_test(test_reduce_everything),
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
      cmocka_unit_test(test_print_llvm),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
