/* ieee: zeros of both signs, infinities and NaN through arithmetic, powers and what the compiler
 * may simplify, at every optimization level, on the host and on the simulator in every mode,
 * against C's float arithmetic and libm's pow. What is exact must be the same value, sign of zero
 * included; powers out of the ordinary (IEEE 754-2019, 9.2.1: a special result, or the power of 1)
 * too, others within the error of exp(b * log(a)). */
#include "tests/e2e/diff.h"
#include "tests/support/compare.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const float values[] = {
    0.0f,   -0.0f,   1,     -1,     2,        -2,        0.5f,  -0.5f,     3,          -3,
    1.5f,   -1.5f,   65,    -65,    66,       -66,       1e10f, -1e10f,    1e30f,      -1e30f,
    1e-30f, -1e-30f, 0.25f, -0.75f, INFINITY, -INFINITY, NAN,   0x1p-149f, -0x1p-149f, 3.4e38f};
enum { N = (int)NPU_COUNTOF(values) };
/* What stands in a model as a constant: identities, and exponents of every form. */
static const float constants[] = {0.0f, -0.0f, 1,  -1,  2,  -3,       0.5f,      -0.5f,
                                  1.5f, -65,   65, -66, 66, INFINITY, -INFINITY, NAN};

typedef float Fn(float a, float b);

static float f_add(float a, float b) {
  return a + b;
}
static float f_sub(float a, float b) {
  return a - b;
}
static float f_mul(float a, float b) {
  return a * b;
}
static float f_div(float a, float b) {
  return a / b;
}
/* fmin and fmax leave the sign of zero open and drop NaN. */
static float f_min(float a, float b) {
  if (isnan(a) || isnan(b)) return NAN;
  return a < b || (a == b && signbit(a)) ? a : b;
}
static float f_max(float a, float b) {
  if (isnan(a) || isnan(b)) return NAN;
  return a > b || (a == b && !signbit(a)) ? a : b;
}
static float f_pow(float a, float b) {
  return (float)pow((double)a, (double)b);
}
static float f_same(float a, float b) {
  return (void)b, a;
}
static float f_zero_minus(float a, float b) {
  return (void)b, 0.0f - a;
}
static float f_minus_self(float a, float b) {
  return (void)b, a - a;
}
static float f_relu(float a, float b) {
  return (void)b, f_max(a, 0);
}
static float f_minus_one(float a, float b) {
  return (void)b, a * -1.0f;
}
static float f_minus_zero(float a, float b) {
  return (void)a, (void)b, -0.0f;
}
static float f_max_minus_zero(float a, float b) {
  return (void)b, f_max(a, -0.0f);
}
static float f_min_zero(float a, float b) {
  return (void)b, f_min(a, 0);
}
static float f_eq(float a, float b) {
  return a == b;
}
static float f_lt(float a, float b) {
  return a < b;
}

/* A line of IR: @ the result, $A and $B the operands' types, $M s8 of a's shape, $n elements, $h
 * half of them. */
typedef struct {
  const char *name, *text;
  Fn *want;
} Row;
static const Row binary[] = {
    {"a + b", "@ = add %a, %b : ($A, $B) -> $A", f_add},
    {"b + a", "@ = add %b, %a : ($B, $A) -> $A", f_add},
    {"a - b", "@ = sub %a, %b : ($A, $B) -> $A", f_sub},
    {"a * b", "@ = mul %a, %b : ($A, $B) -> $A", f_mul},
    {"b * a", "@ = mul %b, %a : ($B, $A) -> $A", f_mul},
    {"a / b", "@ = div %a, %b : ($A, $B) -> $A", f_div},
    {"min(a, b)", "@ = min %a, %b : ($A, $B) -> $A", f_min},
    {"min(b, a)", "@ = min %b, %a : ($B, $A) -> $A", f_min},
    {"max(a, b)", "@ = max %a, %b : ($A, $B) -> $A", f_max},
    {"max(b, a)", "@ = max %b, %a : ($B, $A) -> $A", f_max},
    {"pow(a, b)", "@ = pow %a, %b : ($A, $B) -> $A", f_pow},
    {"a == b", "@ = eq %a, %b : ($A, $B) -> $M", f_eq},
    {"a < b", "@ = lt %a, %b : ($A, $B) -> $M", f_lt},
};
static const Row unary[] = {
    {"-(-a)", "%n = neg %a : ($A) -> $A\n @ = neg %n : ($A) -> $A", f_same},
    {"0 - a", "%z = constant {value = 0.0} : () -> f32[]\n @ = sub %z, %a : (f32[], $A) -> $A",
     f_zero_minus},
    {"a - a", "@ = sub %a, %a : ($A, $A) -> $A", f_minus_self},
    {"relu(a)", "@ = relu %a : ($A) -> $A", f_relu},
    {"a * -1", "%m = constant {value = -1.0} : () -> f32[]\n @ = mul %a, %m : ($A, f32[]) -> $A",
     f_minus_one},
    {"max(a, a)", "@ = max %a, %a : ($A, $A) -> $A", f_same},
    {"two transposes",
     "%p = reshape %a {shape = [2, $h]} : ($A) -> f32[2,$h]\n"
     "%t = transpose %p {perm = [1, 0]} : (f32[2,$h]) -> f32[$h,2]\n"
     "%u = transpose %t {perm = [1, 0]} : (f32[$h,2]) -> f32[2,$h]\n"
     "@ = reshape %u {shape = [$n]} : (f32[2,$h]) -> $A",
     f_same},
    {"padding of -0",
     "%b0 = constant {value = -0.0} : () -> f32[]\n %b1 = mul %a, %b0 : ($A, f32[]) -> $A\n"
     "%b2 = pad %b1 {pads = [[$n, 0]], value = -0.0} : ($A) -> f32[$d]\n"
     "@ = slice %b2 {begin = [0], end = [$n]} : (f32[$d]) -> $A",
     f_minus_zero},
    {"largest of a and -0",
     "%c0 = reshape %a {shape = [$n, 1]} : ($A) -> f32[$n,1]\n"
     "%c1 = pad %c0 {pads = [[0, 0], [2, 2]], value = -0.0} : (f32[$n,1]) -> f32[$n,5]\n"
     "@ = reduce_max %c1 {axis = 1} : (f32[$n,5]) -> $A",
     f_max_minus_zero},
    {"smallest of a and 0",
     "%d0 = reshape %a {shape = [$n, 1]} : ($A) -> f32[$n,1]\n"
     "%d1 = pad %d0 {pads = [[0, 0], [2, 2]], value = 0.0} : (f32[$n,1]) -> f32[$n,5]\n"
     "@ = reduce_min %d1 {axis = 1} : (f32[$n,5]) -> $A",
     f_min_zero},
};

/* ---- what is put in, and what comes out ---- */

typedef struct {
  const Row *rows;
  int nrows, n, opt; /* n: elements of every tensor */
  char how;          /* b is 'i' an input, 's' a scalar, 'w' a weight of equal elements */
  float c;           /* b where it is no input; inputs are all pairs of values */
  const char *dir;
  int failed;
} Sweep;

static float operand_a(const Sweep *s, size_t i) {
  return values[s->how == 'i' ? i / N : i];
}
static float operand_b(const Sweep *s, size_t i) {
  return s->how == 'i' ? values[i % N] : s->c;
}

static void fill(void *user, int run, const DiffTensor *t) {
  (void)run;
  for (size_t i = 0; i < t->n; i++)
    ((float *)t->data)[i] = t->name[0] == 'a' ? operand_a(user, i) : operand_b(user, i);
}

/* How far a power may be off: the logarithm's rounding, magnified by the exponent. Special powers
 * and powers of 1 are exact. */
static double bound_of(Fn *want, float a, float b, float y) {
  if (want != f_pow || !isfinite(y) || y == 0 || fabsf(a) == 1 || b == 0) return 0;
  double l = (double)b * log(fabs((double)a));
  return fabs((double)y) * (fabs(l) + 4) * 0x1p-21 + 0x1p-148;
}

/* A power at the very end of the range may round to the other side of it. */
static bool at_the_edge(Fn *want, float a, float b) {
  if (want != f_pow || !isfinite(a) || !isfinite(b) || a == 0) return false;
  double l = fabs((double)b * log2(fabs((double)a)));
  return l > 125 && l < 151;
}

static void check(Sweep *s, const char *road, const Row *row, const DiffTensor *got) {
  for (size_t i = 0; i < got->n; i++) {
    float a = operand_a(s, i), b = operand_b(s, i), y = row->want(a, b);
    double v = dtype_get(got->dtype, got->data, i);
    if (number_near(v, (double)y, bound_of(row->want, a, b, y)) || at_the_edge(row->want, a, b))
      continue;
    printf("FAILED %s, -O%d, b %c: %s with a = %g, b = %g is %.9g, not %.9g\n", road, s->opt,
           s->how, row->name, (double)a, (double)b, v, (double)y);
    s->failed++;
    return;
  }
}

/* ---- models ---- */

static void put_row(const Sweep *s, int k, StrBuf *b) {
  for (const char *p = s->rows[k].text; *p; p++) {
    if (*p == '@')
      strbuf_printf(b, "%%r%d", k);
    else if (*p != '$')
      strbuf_putc(b, *p);
    else if (*++p == 'B' && s->how == 's')
      strbuf_puts(b, "f32[]");
    else if (*p == 'A' || *p == 'B' || *p == 'M')
      strbuf_printf(b, "%s[%d]", *p == 'M' ? "s8" : "f32", s->n);
    else
      strbuf_printf(b, "%d", *p == 'h' ? s->n / 2 : *p == 'd' ? s->n * 2 : s->n);
  }
  strbuf_putc(b, '\n');
}

/* The results' types, each after prefix and its number when prefix is not empty. */
static void put_types(const Sweep *s, const char *prefix, StrBuf *b) {
  for (int k = 0; k < s->nrows; k++) {
    strbuf_puts(b, k ? ", " : "");
    if (*prefix) strbuf_printf(b, "%s%d: ", prefix, k);
    strbuf_printf(b, "%s[%d]", strstr(s->rows[k].text, "$M") ? "s8" : "f32", s->n);
  }
}

static void put_model(const Sweep *s, StrBuf *b) {
  strbuf_printf(b, "func @m(%%a: f32[%d]", s->n);
  if (s->how == 'i') strbuf_printf(b, ", %%b: f32[%d]", s->n);
  strbuf_puts(b, ") -> (");
  put_types(s, "y", b);
  strbuf_puts(b, ") level graph {\n");
  if (s->how == 's') strbuf_puts(b, "%b = constant {value = ");
  if (s->how == 'w') strbuf_printf(b, "%%b = weight {data = data<f32[%d], splat(", s->n);
  if (s->how != 'i') strbuf_float(b, s->c);
  if (s->how == 's') strbuf_puts(b, "} : () -> f32[]\n");
  if (s->how == 'w') strbuf_printf(b, ")>} : () -> f32[%d]\n", s->n);
  for (int k = 0; k < s->nrows; k++) put_row(s, k, b);
  strbuf_puts(b, "return ");
  for (int k = 0; k < s->nrows; k++) strbuf_printf(b, "%s%%r%d", k ? ", " : "", k);
  strbuf_puts(b, " : (");
  put_types(s, "", b);
  strbuf_puts(b, ") -> ()\n}\n");
}

/* ---- running ---- */

static void sweep(Sweep *s) {
  Diff d;
  diff_init(&d);
  StrBuf text = {0};
  const char *why = "";
  put_model(s, &text);
  d.path = arena_printf(d.arena, "%s/ieee.ir", s->dir);
  d.dir = s->dir;
  d.fill = fill;
  d.user = s;
  d.options.opt_level = s->opt;
  d.options.quantize = false;
  bool ok = file_write_atomic(d.path, text.data, text.len, &why) && diff_run(&d);
  if (!ok) printf("FAILED -O%d: %s%s\n%s", s->opt, why, d.why.len ? d.why.data : "", text.data);
  s->failed += !ok;
  for (int k = 0; ok && k < d.nout; k++) {
    check(s, "host, as read", &s->rows[k], &d.as_read[k]);
    check(s, "host, after the graph passes", &s->rows[k], &d.optimized[k]);
    check(s, "simulator", &s->rows[k], &d.simulated[k]);
  }
  strbuf_free(&text);
  diff_free(&d);
}

int main(void) {
  char dir[] = "/tmp/npucc-ieee-XXXXXX";
  if (!mkdtemp(dir)) return 2;
  Sweep s = {.dir = dir};
  for (s.opt = 0; s.opt <= 2; s.opt++) {
    s.rows = binary, s.nrows = (int)NPU_COUNTOF(binary), s.n = N * N, s.how = 'i';
    sweep(&s);
    s.n = N;
    for (int k = 0; k < (int)NPU_COUNTOF(constants); k++) {
      s.c = constants[k];
      s.how = (k + s.opt) % 2 ? 's' : 'w';
      sweep(&s);
    }
    s.rows = unary, s.nrows = (int)NPU_COUNTOF(unary);
    s.how = 's';
    sweep(&s);
  }
  static const char *const files[] = {"ieee.ir", "model.bin"};
  for (size_t i = 0; i < NPU_COUNTOF(files); i++) {
    char path[sizeof dir + 16];
    snprintf(path, sizeof path, "%s/%s", dir, files[i]);
    unlink(path);
  }
  rmdir(dir);
  return s.failed != 0;
}
