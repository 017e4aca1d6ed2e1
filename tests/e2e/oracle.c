/* Oracle: helpers, elementwise operators, rearrangement. */
#include "tests/e2e/oracle_internal.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const Ora *ora_in(const OracleCall *c, const char *name) {
  for (int i = 0; i < c->nin; i++)
    if (!strcmp(c->in[i].name, name)) return &c->in[i];
  fprintf(stderr, "the case has no tensor '%s'\n", name);
  abort();
}

int64_t ora_def(const OracleCall *c, const char *name) {
  for (int i = 0; i < c->ndefs; i++)
    if (!strcmp(c->defs[i].name, name)) return c->defs[i].value;
  fprintf(stderr, "the case has no parameter '%s'\n", name);
  abort();
}

Ora *ora_out(OracleCall *c, int rank, const int64_t *shape) {
  Ora *t = &c->out[c->nout++];
  *t = (Ora){.rank = rank, .n = 1};
  for (int i = 0; i < rank; i++) t->n *= t->shape[i] = shape[i];
  t->v = ARENA_ARRAY(c->arena, double, t->n);
  t->mag = ARENA_ARRAY(c->arena, double, t->n);
  return t;
}

bool ora_next(const Ora *t, int64_t *at) {
  for (int i = t->rank - 1; i >= 0; i--) {
    if (++at[i] < t->shape[i]) return true;
    at[i] = 0;
  }
  return false;
}

int64_t ora_at(const Ora *t, const int64_t *at) {
  int64_t i = 0;
  for (int a = 0; a < t->rank; a++) i = i * t->shape[a] + at[a];
  return i;
}

void ora_set(Ora *t, int64_t i, double v, double mag) {
  t->v[i] = v;
  t->mag[i] = mag;
}

/* Element of t broadcast to a shape of rank `rank` at `at`. */
static double broadcast_get(const Ora *t, int rank, const int64_t *at) {
  int64_t i = 0;
  for (int a = 0; a < t->rank; a++)
    i = i * t->shape[a] + (t->shape[a] == 1 ? 0 : at[rank - t->rank + a]);
  return t->v[i];
}

static void broadcast_shape(const Ora *a, const Ora *b, int *rank, int64_t *shape) {
  *rank = a->rank > b->rank ? a->rank : b->rank;
  for (int i = 0; i < *rank; i++) {
    int64_t x = i < *rank - a->rank ? 1 : a->shape[i - (*rank - a->rank)];
    int64_t y = i < *rank - b->rank ? 1 : b->shape[i - (*rank - b->rank)];
    shape[i] = x == 1 ? y : x;
  }
}

/* ---- elementwise ---- */

double ora_neg(double x) {
  return -x;
}
double ora_relu(double x) {
  return x > 0 ? x : 0;
}
double ora_relu6(double x) {
  return fmin(fmax(x, 0), 6);
}
double ora_sigmoid(double x) {
  return 1 / (1 + exp(-x));
}
double ora_gelu(double x) {
  return x * 0.5 * erfc(-x / sqrt(2));
}
double ora_gelu_tanh(double x) {
  return 0.5 * x * (1 + tanh(sqrt(2 / acos(-1)) * (x + 0.044715 * x * x * x)));
}
double ora_silu(double x) {
  return x * ora_sigmoid(x);
}
double ora_hard_sigmoid(double x) {
  return fmin(fmax(x / 6 + 0.5, 0), 1);
}
double ora_hard_swish(double x) {
  return x * fmin(fmax(x + 3, 0), 6) / 6;
}
double ora_rsqrt(double x) {
  return 1 / sqrt(x);
}
double ora_recip(double x) {
  return 1 / x;
}
double ora_add(double a, double b) {
  return a + b;
}
double ora_sub(double a, double b) {
  return a - b;
}
double ora_mul(double a, double b) {
  return a * b;
}
double ora_div(double a, double b) {
  return a / b;
}
double ora_eq(double a, double b) {
  return floor(a) == floor(b);
}
double ora_ne(double a, double b) {
  return a != b;
}
double ora_lt(double a, double b) {
  return a < b;
}
double ora_le(double a, double b) {
  return a <= b;
}
double ora_gt(double a, double b) {
  return a > b;
}
double ora_ge(double a, double b) {
  return a >= b;
}
double ora_pow_halves(double a, double b) {
  return pow(a, nearbyint(b * 2) / 2);
}
double ora_nan_clip(double a, double b) {
  return a < 0 || b < 0 ? NAN : fmin(fmax(a, 1), b);
}

/* Formulas add numbers of the size of x or 1 on the way. */
void oracle_unary(OracleCall *c) {
  const Ora *x = ora_in(c, "x");
  Ora *y = ora_out(c, x->rank, x->shape);
  for (int64_t i = 0; i < y->n; i++) {
    double v = c->unary(x->v[i]);
    ora_set(y, i, v, fabs(v) + 0.1 * (fabs(x->v[i]) + 1));
  }
}

void oracle_binary(OracleCall *c) {
  const Ora *a = ora_in(c, "a"), *b = ora_in(c, "b");
  int rank;
  int64_t shape[ORACLE_RANK], at[ORACLE_RANK] = {0}, i = 0;
  broadcast_shape(a, b, &rank, shape);
  Ora *y = ora_out(c, rank, shape);
  do {
    double v = c->binary(broadcast_get(a, rank, at), broadcast_get(b, rank, at));
    ora_set(y, i++, v, fabs(v));
  } while (ora_next(y, at));
}

void oracle_pow(OracleCall *c) {
  oracle_binary(c);
  Ora *y = &c->out[0];
  for (int64_t i = 0; i < y->n; i++) /* exp(b log a): the exponent's rounding counts in full */
    y->mag[i] *= 1 + fabs(log(fabs(y->v[i]) + 1e-30));
}

void oracle_where(OracleCall *c) {
  const Ora *k = ora_in(c, "a"), *b = ora_in(c, "b");
  Ora *y = ora_out(c, k->rank, k->shape);
  for (int64_t i = 0; i < y->n; i++) {
    double v = k->v[i] > 0.25 ? k->v[i] : b->v[i];
    ora_set(y, i, v, fabs(v));
  }
}

static double clip(double x) {
  return fmin(fmax(x, -0.5), 0.75);
}
static double leaky(double x) {
  return x >= 0 ? x : 0.125 * x;
}
static double to_s32(double x) {
  return fmin(fmax(nearbyint(x) + 0.0, -2147483648.0), 2147483647.0);
}
static double to_s8(double x) {
  return fmin(fmax(nearbyint(x) + 0.0, -128), 127);
}
/* Eight bits of significand, half to even. */
static double to_bf16(double x) {
  int e;
  double m = frexp(x, &e);
  return ldexp(nearbyint(ldexp(m, 8)), e - 8);
}

static void unary_with(OracleCall *c, double (*f)(double)) {
  c->unary = f;
  oracle_unary(c);
}
void oracle_clip(OracleCall *c) {
  unary_with(c, clip);
}
void oracle_leaky_relu(OracleCall *c) {
  unary_with(c, leaky);
}
void oracle_cast_s32(OracleCall *c) {
  unary_with(c, to_s32);
}
void oracle_cast_s8(OracleCall *c) {
  unary_with(c, to_s8);
}
void oracle_cast_bf16(OracleCall *c) {
  unary_with(c, to_bf16);
}

/* ---- rearrangement ---- */

static void move(Ora *y, int64_t i, double v) {
  ora_set(y, i, v, fabs(v));
}

/* Same elements in the same order; the shape is parameters D0 and D1. */
void oracle_copy(OracleCall *c) {
  const Ora *x = ora_in(c, "x");
  int64_t shape[] = {ora_def(c, "D0"), ora_def(c, "D1")};
  Ora *y = ora_out(c, 2, shape);
  for (int64_t i = 0; i < y->n; i++) move(y, i, x->v[i]);
}

/* Rank 4, result axis i is axis Pi. */
void oracle_transpose(OracleCall *c) {
  const Ora *x = ora_in(c, "x");
  const int64_t perm[] = {ora_def(c, "P0"), ora_def(c, "P1"), ora_def(c, "P2"), ora_def(c, "P3")};
  int64_t shape[4], at[4] = {0}, from[4], i = 0;
  for (int a = 0; a < 4; a++) shape[a] = x->shape[perm[a]];
  Ora *y = ora_out(c, 4, shape);
  do {
    for (int a = 0; a < 4; a++) from[perm[a]] = at[a];
    move(y, i++, x->v[ora_at(x, from)]);
  } while (ora_next(y, at));
}

/* a, b, a along AXIS. */
void oracle_concat(OracleCall *c) {
  const Ora *a = ora_in(c, "a"), *b = ora_in(c, "b"), *part[] = {a, b, a};
  int axis = (int)ora_def(c, "AXIS");
  int64_t shape[ORACLE_RANK], at[ORACLE_RANK] = {0}, i = 0;
  memcpy(shape, a->shape, sizeof shape);
  shape[axis] = 2 * a->shape[axis] + b->shape[axis];
  Ora *y = ora_out(c, a->rank, shape);
  do {
    int64_t from[ORACLE_RANK];
    int p = 0;
    memcpy(from, at, sizeof from);
    for (; from[axis] >= part[p]->shape[axis]; p++) from[axis] -= part[p]->shape[axis];
    move(y, i++, part[p]->v[ora_at(part[p], from)]);
  } while (ora_next(y, at));
}

/* Result `begin .. begin + len` along axis, every step-th. */
static void cut(OracleCall *c, const int64_t *begin, const int64_t *len, const int64_t *step) {
  const Ora *x = ora_in(c, "x");
  int64_t at[ORACLE_RANK] = {0}, from[ORACLE_RANK], i = 0;
  Ora *y = ora_out(c, x->rank, len);
  do {
    for (int a = 0; a < x->rank; a++) from[a] = begin[a] + at[a] * step[a];
    move(y, i++, x->v[ora_at(x, from)]);
  } while (ora_next(y, at));
}

/* Three equal parts along the last of two axes. */
void oracle_split(OracleCall *c) {
  const Ora *x = ora_in(c, "x");
  for (int p = 0; p < 3; p++) {
    int64_t len[] = {x->shape[0], x->shape[1] / 3}, begin[] = {0, p * len[1]}, step[] = {1, 1};
    cut(c, begin, len, step);
  }
}

/* x[B0:B0+L0*S0:S0, B1:B1+L1*S1:S1] */
void oracle_slice(OracleCall *c) {
  int64_t begin[] = {ora_def(c, "B0"), ora_def(c, "B1")},
          len[] = {ora_def(c, "L0"), ora_def(c, "L1")};
  int64_t step[] = {ora_def(c, "S0"), ora_def(c, "S1")};
  cut(c, begin, len, step);
}

/* Rows by PA, PB, columns by PC, PD, with 1.5. */
void oracle_pad(OracleCall *c) {
  const Ora *x = ora_in(c, "x");
  int64_t top = ora_def(c, "PA"), left = ora_def(c, "PC"), at[2] = {0}, i = 0;
  int64_t shape[] = {x->shape[0] + top + ora_def(c, "PB"), x->shape[1] + left + ora_def(c, "PD")};
  Ora *y = ora_out(c, 2, shape);
  do {
    int64_t r = at[0] - top, k = at[1] - left;
    bool in = r >= 0 && r < x->shape[0] && k >= 0 && k < x->shape[1];
    move(y, i++, in ? x->v[r * x->shape[1] + k] : 1.5);
  } while (ora_next(y, at));
}

void oracle_broadcast(OracleCall *c) {
  const Ora *x = ora_in(c, "x");
  int64_t shape[] = {ora_def(c, "D0"), ora_def(c, "D1"), ora_def(c, "D2")}, at[3] = {0}, i = 0;
  Ora *y = ora_out(c, 3, shape);
  do move(y, i++, broadcast_get(x, 3, at));
  while (ora_next(y, at));
}

/* Along the middle of three axes; the index has one axis. */
void oracle_gather(OracleCall *c) {
  const Ora *x = ora_in(c, "x"), *index = ora_in(c, "i");
  int64_t shape[] = {x->shape[0], index->n, x->shape[2]}, at[3] = {0}, i = 0;
  Ora *y = ora_out(c, 3, shape);
  do {
    int64_t from[] = {at[0], (int64_t)index->v[at[1]], at[2]};
    move(y, i++, x->v[ora_at(x, from)]);
  } while (ora_next(y, at));
}

void oracle_embed(OracleCall *c) {
  const Ora *table = ora_in(c, "table"), *index = ora_in(c, "i");
  int64_t width = table->shape[1], shape[] = {index->shape[0], index->shape[1], width};
  Ora *y = ora_out(c, 3, shape);
  for (int64_t i = 0; i < y->n; i++)
    move(y, i, table->v[(int64_t)index->v[i / width] * width + i % width]);
}

/* x with the box of v's shape at B0, B1 replaced. */
void oracle_update(OracleCall *c) {
  const Ora *x = ora_in(c, "x"), *v = ora_in(c, "v");
  int64_t b0 = ora_def(c, "B0"), b1 = ora_def(c, "B1"), at[2] = {0}, i = 0;
  Ora *y = ora_out(c, 2, x->shape);
  do {
    int64_t r = at[0] - b0, k = at[1] - b1;
    bool in = r >= 0 && r < v->shape[0] && k >= 0 && k < v->shape[1];
    move(y, i, in ? v->v[r * v->shape[1] + k] : x->v[i]);
    i++;
  } while (ora_next(y, at));
}

/* A state that sums its inputs up. */
void oracle_accumulate(OracleCall *c) {
  const Ora *x = ora_in(c, "x");
  Ora *y = ora_out(c, x->rank, x->shape);
  for (int64_t i = 0; i < y->n; i++) {
    double v = c->before ? c->before->out[0].v[i] : 0,
           mag = c->before ? c->before->out[0].mag[i] : 0;
    ora_set(y, i, x->v[i] + v, fabs(x->v[i]) + mag);
  }
}

/* Twice a state that is turned and halved before its input is added. */
void oracle_turn(OracleCall *c) {
  const Ora *x = ora_in(c, "x"), *old = c->before ? &c->before->out[0] : NULL;
  Ora *y = ora_out(c, 2, x->shape);
  int64_t n = x->shape[0];
  for (int64_t i = 0; i < n * n; i++) {
    int64_t turned = i % n * n + i / n;
    double v = old ? old->v[turned] : 0, mag = old ? old->mag[turned] : 0;
    ora_set(y, i, 2 * x->v[i] + 0.5 * v, 2 * fabs(x->v[i]) + 0.5 * mag);
  }
}
