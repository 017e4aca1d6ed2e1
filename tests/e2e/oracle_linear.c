/* Oracle: matrix products, convolutions, pooling. */
#include "tests/e2e/oracle_internal.h"
#include <math.h>
#include <string.h>

/* ---- matrix products ---- */

static int64_t lead(const Ora *t, int i) {
  return i < t->rank - 2 ? t->shape[i] : 1;
}

/* Rank 2 or 3 operands; a leading axis of 1 (or none) is broadcast. */
static void matmul(OracleCall *c, bool ta, bool tb) {
  const Ora *a = ora_in(c, "a"), *b = ora_in(c, "b");
  int64_t ar = a->shape[a->rank - 2], ac = a->shape[a->rank - 1], br = b->shape[b->rank - 2],
          bc = b->shape[b->rank - 1];
  int64_t m = ta ? ac : ar, k = ta ? ar : ac, n = tb ? br : bc;
  int64_t na = lead(a, 0), nb = lead(b, 0), batch = na > nb ? na : nb;
  int64_t shape3[] = {batch, m, n};
  bool flat = a->rank == 2 && b->rank == 2;
  Ora *y = flat ? ora_out(c, 2, shape3 + 1) : ora_out(c, 3, shape3);
  c->terms = (double)k;
  for (int64_t i = 0; i < y->n; i++) {
    int64_t q = i / (m * n), r = i / n % m, s = i % n;
    const double *x = a->v + (na == 1 ? 0 : q) * ar * ac, *w = b->v + (nb == 1 ? 0 : q) * br * bc;
    double sum = 0, mag = 0;
    for (int64_t j = 0; j < k; j++) {
      double p = x[ta ? j * ac + r : r * ac + j] * w[tb ? s * bc + j : j * bc + s];
      sum += p, mag += fabs(p);
    }
    ora_set(y, i, sum, mag);
  }
}
void oracle_matmul(OracleCall *c) {
  matmul(c, false, false);
}
void oracle_matmul_ta(OracleCall *c) {
  matmul(c, true, false);
}
void oracle_matmul_tb(OracleCall *c) {
  matmul(c, false, true);
}

void oracle_linear(OracleCall *c) {
  const Ora *x = ora_in(c, "x"), *w = ora_in(c, "w"), *b = ora_in(c, "b");
  int64_t k = w->shape[1], n = w->shape[0], shape[ORACLE_RANK];
  memcpy(shape, x->shape, sizeof shape);
  shape[x->rank - 1] = n;
  Ora *y = ora_out(c, x->rank, shape);
  c->terms = (double)k;
  for (int64_t i = 0; i < y->n; i++) {
    double sum = b->v[i % n], mag = fabs(sum);
    for (int64_t j = 0; j < k; j++) {
      double p = x->v[i / n * k + j] * w->v[i % n * k + j];
      sum += p, mag += fabs(p);
    }
    ora_set(y, i, sum, mag);
  }
}

/* ---- convolutions ---- */

typedef struct {
  int64_t sh, sw, top, left, bottom, right, dh, dw, g;
} Window;

static Window window_of(const OracleCall *c) {
  return (Window){ora_def(c, "SH"), ora_def(c, "SW"), ora_def(c, "PT"),
                  ora_def(c, "PL"), ora_def(c, "PB"), ora_def(c, "PR"),
                  ora_def(c, "DH"), ora_def(c, "DW"), ora_def(c, "G")};
}

static double get4(const Ora *x, int64_t n, int64_t c, int64_t h, int64_t w) {
  if (h < 0 || w < 0 || h >= x->shape[2] || w >= x->shape[3]) return 0;
  return x->v[((n * x->shape[1] + c) * x->shape[2] + h) * x->shape[3] + w];
}

static int64_t out_size(int64_t in, int64_t k, int64_t stride, int64_t pads, int64_t dilation) {
  return (in + pads - dilation * (k - 1) - 1) / stride + 1;
}

static void conv(OracleCall *c, const Ora *x, const Ora *w, const Ora *b, Window p) {
  int64_t kh = w->shape[2], kw = w->shape[3], cg = w->shape[1], at[4] = {0}, i = 0;
  int64_t shape[] = {x->shape[0], w->shape[0],
                     out_size(x->shape[2], kh, p.sh, p.top + p.bottom, p.dh),
                     out_size(x->shape[3], kw, p.sw, p.left + p.right, p.dw)};
  Ora *y = ora_out(c, 4, shape);
  c->terms = (double)(cg * kh * kw);
  do {
    int64_t first = at[1] / (w->shape[0] / p.g) * cg; /* channel of the group */
    double sum = b->v[at[1]], mag = fabs(sum);
    for (int64_t t = 0; t < cg * kh * kw; t++) {
      int64_t k = t / (kh * kw), r = t / kw % kh, s = t % kw;
      double v = get4(x, at[0], first + k, at[2] * p.sh + r * p.dh - p.top,
                      at[3] * p.sw + s * p.dw - p.left);
      double term = v * w->v[at[1] * cg * kh * kw + t];
      sum += term, mag += fabs(term);
    }
    ora_set(y, i++, sum, mag);
  } while (ora_next(y, at));
}

void oracle_conv2d(OracleCall *c) {
  conv(c, ora_in(c, "x"), ora_in(c, "w"), ora_in(c, "b"), window_of(c));
}

static Ora as_rows(const Ora *t) { /* [a, b, l] as [a, b, 1, l] */
  Ora r = *t;
  r.rank = 4;
  r.shape[3] = t->shape[2];
  r.shape[2] = 1;
  return r;
}

void oracle_conv1d(OracleCall *c) {
  Ora x = as_rows(ora_in(c, "x")), w = as_rows(ora_in(c, "w"));
  int64_t pad = ora_def(c, "P");
  Window p = {1, ora_def(c, "S"), 0, pad, 0, pad, 1, ora_def(c, "D"), ora_def(c, "G")};
  conv(c, &x, &w, ora_in(c, "b"), p);
  Ora *y = &c->out[0];
  y->rank = 3;
  y->shape[2] = y->shape[3];
}

/* Every input element adds its multiple of the kernel to the result; w is [in, out/groups, kh, kw].
 */
void oracle_conv_transpose2d(OracleCall *c) {
  const Ora *x = ora_in(c, "x"), *w = ora_in(c, "w"), *b = ora_in(c, "b");
  Window p = window_of(c);
  int64_t kh = w->shape[2], kw = w->shape[3], og = w->shape[1], ig = w->shape[0] / p.g, at[4] = {0};
  int64_t shape[] = {x->shape[0], og * p.g,
                     (x->shape[2] - 1) * p.sh - p.top - p.bottom + p.dh * (kh - 1) + 1,
                     (x->shape[3] - 1) * p.sw - p.left - p.right + p.dw * (kw - 1) + 1};
  Ora *y = ora_out(c, 4, shape);
  c->terms = (double)(ig * kh * kw);
  for (int64_t i = 0; i < y->n; i++) {
    double bias = b->v[i / (shape[2] * shape[3]) % shape[1]];
    ora_set(y, i, bias, fabs(bias));
  }
  do {
    double v = x->v[ora_at(x, at)];
    for (int64_t t = 0; t < og * kh * kw; t++) {
      int64_t o = at[1] / ig * og + t / (kh * kw), h = at[2] * p.sh + t / kw % kh * p.dh - p.top,
              k = at[3] * p.sw + t % kw * p.dw - p.left;
      if (h < 0 || k < 0 || h >= shape[2] || k >= shape[3]) continue;
      int64_t i = ((at[0] * shape[1] + o) * shape[2] + h) * shape[3] + k;
      double term = v * w->v[at[1] * og * kh * kw + t];
      ora_set(y, i, y->v[i] + term, y->mag[i] + fabs(term));
    }
  } while (ora_next(x, at));
}

/* ---- pooling ---- */

typedef enum { POOL_MAX, POOL_MEAN, POOL_MEAN_COUNT_PAD } PoolKind;

static void pool(OracleCall *c, PoolKind kind) {
  const Ora *x = ora_in(c, "x");
  int64_t kh = ora_def(c, "KH"), kw = ora_def(c, "KW"), sh = ora_def(c, "SH"),
          sw = ora_def(c, "SW");
  int64_t ph = ora_def(c, "PH"), pw = ora_def(c, "PW"), at[4] = {0}, i = 0;
  int64_t shape[] = {x->shape[0], x->shape[1], out_size(x->shape[2], kh, sh, 2 * ph, 1),
                     out_size(x->shape[3], kw, sw, 2 * pw, 1)};
  Ora *y = ora_out(c, 4, shape);
  c->terms = kind == POOL_MAX ? 0 : (double)(kh * kw);
  do {
    double sum = 0, mag = 0, max = -INFINITY, n = 0;
    for (int64_t t = 0; t < kh * kw; t++) {
      int64_t h = at[2] * sh + t / kw - ph, w = at[3] * sw + t % kw - pw;
      if (h < 0 || w < 0 || h >= x->shape[2] || w >= x->shape[3]) continue;
      double v = get4(x, at[0], at[1], h, w);
      sum += v, mag += fabs(v), n++;
      max = fmax(max, v);
    }
    if (kind == POOL_MEAN_COUNT_PAD) n = (double)(kh * kw);
    ora_set(y, i++, kind == POOL_MAX ? max : sum / n, kind == POOL_MAX ? fabs(max) : mag / n);
  } while (ora_next(y, at));
}
void oracle_max_pool(OracleCall *c) {
  pool(c, POOL_MAX);
}
void oracle_avg_pool(OracleCall *c) {
  pool(c, POOL_MEAN);
}
void oracle_avg_pool_count(OracleCall *c) {
  pool(c, POOL_MEAN_COUNT_PAD);
}

void oracle_global_avg_pool(OracleCall *c) {
  const Ora *x = ora_in(c, "x");
  int64_t shape[] = {x->shape[0], x->shape[1], 1, 1}, len = x->shape[2] * x->shape[3];
  Ora *y = ora_out(c, 4, shape);
  c->terms = (double)len;
  for (int64_t r = 0; r < y->n; r++) {
    double sum = 0, mag = 0;
    for (int64_t i = 0; i < len; i++) sum += x->v[r * len + i], mag += fabs(x->v[r * len + i]);
    ora_set(y, r, sum / (double)len, mag / (double)len);
  }
}
