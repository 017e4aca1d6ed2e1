/* Oracle: reductions, softmax, normalisations. */
#include "tests/e2e/oracle_internal.h"
#include <math.h>

/* ---- reductions ---- */

/* x as [outer, axis, inner]; parameter AXIS counts from the front. */
typedef struct {
  const Ora *x;
  int64_t outer, len, inner;
} Rows;

static Rows rows_of(const OracleCall *c, int axis) {
  Rows r = {.x = ora_in(c, "x"), .outer = 1, .inner = 1};
  for (int i = 0; i < r.x->rank; i++) {
    if (i < axis) r.outer *= r.x->shape[i];
    if (i > axis) r.inner *= r.x->shape[i];
  }
  r.len = r.x->shape[axis];
  return r;
}

static double row_get(const Rows *r, int64_t row, int64_t i) {
  return r->x->v[(row / r->inner * r->len + i) * r->inner + row % r->inner];
}

static Ora *reduced_out(OracleCall *c, int axis) {
  const Ora *x = ora_in(c, "x");
  int64_t shape[ORACLE_RANK];
  int rank = 0;
  bool keep = ora_def(c, "KEEP") != 0;
  for (int i = 0; i < x->rank; i++)
    if (i != axis || keep) shape[rank++] = i == axis ? 1 : x->shape[i];
  return ora_out(c, rank, shape);
}

typedef enum { SUM, MEAN, MAX, MIN, ARGMAX } How;

static void reduce(OracleCall *c, How how) {
  int axis = (int)ora_def(c, "AXIS");
  Rows r = rows_of(c, axis);
  Ora *y = reduced_out(c, axis);
  c->terms = how <= MEAN ? (double)r.len : 0;
  for (int64_t row = 0; row < y->n; row++) {
    double sum = 0, mag = 0;
    int64_t max = 0, min = 0;
    for (int64_t i = 0; i < r.len; i++) {
      double v = row_get(&r, row, i);
      sum += v, mag += fabs(v);
      if (v > row_get(&r, row, max)) max = i;
      if (v < row_get(&r, row, min)) min = i;
    }
    double n = (double)r.len;
    double v = how == SUM    ? sum
               : how == MEAN ? sum / n
               : how == MAX  ? row_get(&r, row, max)
               : how == MIN  ? row_get(&r, row, min)
                             : (double)max;
    ora_set(y, row, v, how == SUM ? mag : how == MEAN ? mag / n : fabs(v));
  }
}
void oracle_sum(OracleCall *c) {
  reduce(c, SUM);
}
void oracle_mean(OracleCall *c) {
  reduce(c, MEAN);
}
void oracle_reduce_max(OracleCall *c) {
  reduce(c, MAX);
}
void oracle_reduce_min(OracleCall *c) {
  reduce(c, MIN);
}
void oracle_argmax(OracleCall *c) {
  reduce(c, ARGMAX);
}

/* Of x, in which what is below -2 counts as NaN: the largest, the smallest, the largest's place. */
void oracle_nan(OracleCall *c) {
  int axis = (int)ora_def(c, "AXIS");
  Rows r = rows_of(c, axis);
  Ora *largest = reduced_out(c, axis), *smallest = reduced_out(c, axis),
      *place = reduced_out(c, axis);
  for (int64_t row = 0; row < place->n; row++) {
    int64_t max = 0, min = 0, nan = 0;
    while (nan < r.len && row_get(&r, row, nan) >= -2) nan++;
    for (int64_t i = 0; i < r.len; i++) {
      if (row_get(&r, row, i) > row_get(&r, row, max)) max = i;
      if (row_get(&r, row, i) < row_get(&r, row, min)) min = i;
    }
    bool none = nan == r.len;
    ora_set(largest, row, none ? row_get(&r, row, max) : NAN, 0);
    ora_set(smallest, row, none ? row_get(&r, row, min) : NAN, 0);
    ora_set(place, row, (double)(none ? max : nan), 0);
  }
}

void oracle_softmax(OracleCall *c) {
  Rows r = rows_of(c, (int)ora_def(c, "AXIS"));
  Ora *y = ora_out(c, r.x->rank, r.x->shape);
  c->terms = (double)r.len;
  for (int64_t row = 0; row < r.outer * r.inner; row++) {
    double max = -INFINITY, sum = 0;
    for (int64_t i = 0; i < r.len; i++) max = fmax(max, row_get(&r, row, i));
    for (int64_t i = 0; i < r.len; i++) sum += exp(row_get(&r, row, i) - max);
    for (int64_t i = 0; i < r.len; i++) {
      double d = row_get(&r, row, i) - max, v = exp(d) / sum;
      ora_set(y, (row / r.inner * r.len + i) * r.inner + row % r.inner, v,
              v * (1 - d)); /* x - max rounds */
    }
  }
}

/* ---- normalisations ---- */

void oracle_batch_norm(OracleCall *c) {
  const Ora *x = ora_in(c, "x"), *scale = ora_in(c, "scale"), *shift = ora_in(c, "shift");
  const Ora *mean = ora_in(c, "mean"), *var = ora_in(c, "var");
  Ora *y = ora_out(c, x->rank, x->shape);
  int64_t inner = 1;
  for (int i = 2; i < x->rank; i++) inner *= x->shape[i];
  for (int64_t i = 0; i < x->n; i++) {
    int64_t k = i / inner % x->shape[1];
    double g = scale->v[k] / sqrt(var->v[k] + 1e-3);
    ora_set(y, i, (x->v[i] - mean->v[k]) * g + shift->v[k],
            (fabs(x->v[i]) + fabs(mean->v[k])) * fabs(g) + fabs(shift->v[k]));
  }
}

/* Over the last two axes when LAST2, else the last one. */
void oracle_layer_norm(OracleCall *c) {
  const Ora *x = ora_in(c, "x"), *scale = ora_in(c, "scale"), *shift = ora_in(c, "shift");
  Ora *y = ora_out(c, x->rank, x->shape);
  int64_t len = x->shape[x->rank - 1];
  if (ora_def(c, "LAST2")) len *= x->shape[x->rank - 2];
  c->terms = (double)len;
  for (int64_t row = 0; row < x->n / len; row++) {
    const double *v = x->v + row * len;
    double mean = 0, var = 0, big = 0;
    for (int64_t i = 0; i < len; i++) mean += v[i] / (double)len, big = fmax(big, fabs(v[i]));
    for (int64_t i = 0; i < len; i++) var += (v[i] - mean) * (v[i] - mean) / (double)len;
    double inv = 1 / sqrt(var + 1e-5);
    for (int64_t i = 0; i < len; i++) {
      double s = scale->v[i], t = (v[i] - mean) * inv;
      ora_set(y, row * len + i, t * s + shift->v[i],
              (fabs(t) + big * inv) * fabs(s) + fabs(shift->v[i]));
    }
  }
}

void oracle_rms_norm(OracleCall *c) {
  const Ora *x = ora_in(c, "x"), *scale = ora_in(c, "scale");
  Ora *y = ora_out(c, x->rank, x->shape);
  int64_t len = x->shape[x->rank - 1];
  c->terms = (double)len;
  for (int64_t row = 0; row < x->n / len; row++) {
    double sq = 0;
    for (int64_t i = 0; i < len; i++) sq += x->v[row * len + i] * x->v[row * len + i];
    for (int64_t i = 0; i < len; i++) {
      double v = x->v[row * len + i] / sqrt(sq / (double)len + 1e-5) * scale->v[i];
      ora_set(y, row * len + i, v, fabs(v));
    }
  }
}
