/* How a step is cut for its engine: which dimensions become loops of one instruction and which
 * become sequencer loops around it. Neighbouring dimensions that every stream walks as one are
 * merged. */
#include "passes/sched.h"
#include <math.h>
#include <string.h>

/* Elements of a tile that exist: a rounded-up tile of a short dimension has fewer. */
static int64_t live(const KernelInfo *ki, const Schedule *s, int dim) {
  int64_t t = sched_tile(ki, s, dim);
  return t < ki->k.extent[dim] ? t : ki->k.extent[dim];
}
static bool has_edge(const KernelInfo *ki, const Schedule *s, int dim) {
  return ki->k.extent[dim] % live(ki, s, dim) != 0;
}

/* ---- the array ---- */

static void factor_dims(const KernelInfo *ki, int stream, uint32_t *rows, uint32_t *cols,
                        uint32_t *batch) {
  const Step *st = &ki->step[ki->mxu_step];
  uint32_t x = sched_operand_dims(ki, st->factor[stream]),
           w = sched_operand_dims(ki, st->factor[!stream]);
  *rows = st->par & ~w;
  *cols = st->par & w & ~x;
  *batch = st->par & w & x;
}

int sched_column_dim(const KernelInfo *ki, int stream) {
  uint32_t rows, cols, batch;
  int best = -1;
  factor_dims(ki, stream, &rows, &cols, &batch);
  for (int d = 0; d < ki->k.ndims; d++)
    if ((cols >> d & 1) && ki->k.extent[d] > 1 &&
        (best < 0 || ki->k.extent[d] > ki->k.extent[best]))
      best = d;
  return best;
}

/* Does the operand read outside its tensor for every index of dim from its extent on? */
static bool ends_with(const KernelInfo *ki, int operand, int dim) {
  const IrMap *map = ir_kernel_in_map(ki->op, operand);
  const IrType *t = ir_operand(ki->op, operand)->type;
  for (int a = 0; a < map->rank; a++) {
    const IrAffine *x = &map->axis[a];
    bool alone = x->coef[dim] != 0;
    for (int d = 0; d < ki->k.ndims; d++) alone = alone && (d == dim || x->coef[d] == 0);
    int64_t past = x->cst + x->coef[dim] * ki->k.extent[dim];
    if (alone && (x->coef[dim] > 0 ? past >= t->shape[a] : past < 0)) return true;
  }
  return false;
}

bool sched_may_round(const KernelInfo *ki, int dim) {
  const Step *st = &ki->step[ki->mxu_step];
  bool zero[2], finite[2];
  for (int i = 0; i < 2; i++) {
    double pad = 0;
    bool outside = ends_with(ki, st->factor[i], dim);
    if (!ir_kernel_pad(ki->op, st->factor[i], &pad)) pad = 0;
    zero[i] = outside && pad == 0;
    finite[i] = ki->store[st->factor[i]].dtype == DT_S8 || (outside && isfinite(pad));
  }
  return (zero[0] && finite[1]) || (zero[1] && finite[0]);
}

static void around(Mxu *mx, int64_t trip, int64_t x, int64_t w, int64_t acc, bool reduction) {
  if (trip <= 1) return;
  mx->loop[mx->nloops].trip = trip;
  mx->loop[mx->nloops].x = x;
  mx->loop[mx->nloops].w = w;
  mx->loop[mx->nloops].acc = acc;
  mx->loop[mx->nloops++].reduction = reduction;
}

/* Dimensions of a set with more than one element in a tile, by descending stride in the streamed
 * block. */
static int sorted_dims(const KernelInfo *ki, const Schedule *s, uint32_t set, const int64_t *stride,
                       int out[IR_MAX_DIMS]) {
  int n = 0;
  for (int d = 0; d < ki->k.ndims; d++) {
    if (!(set >> d & 1) || sched_tile(ki, s, d) <= 1) continue;
    int i = n++;
    for (; i > 0 && stride[out[i - 1]] < stride[d]; i--) out[i] = out[i - 1];
    out[i] = d;
  }
  return n;
}

static bool cut_rows(const KernelInfo *ki, const Schedule *s, uint32_t rows, const Block *x,
                     Mxu *mx, const char **why) {
  int dims[IR_MAX_DIMS], n = sorted_dims(ki, s, rows, x->dim_stride, dims);
  int64_t acc = mx->nblocks;
  int loops = 0;
  struct {
    int64_t len, mult, x, acc;
    int edge;
  } l[IR_MAX_DIMS];
  for (int i = n - 1; i >= 0; i--) { /* innermost first */
    int d = dims[i];
    int64_t len = live(ki, s, d);
    mx->acc_stride[d] = acc;
    if (loops && l[loops - 1].edge < 0 && x->dim_stride[d] == l[loops - 1].x * l[loops - 1].len) {
      l[loops - 1].mult = l[loops - 1].len, l[loops - 1].len *= len;
    } else {
      l[loops].len = len, l[loops].mult = 1, l[loops].x = x->dim_stride[d], l[loops].acc = acc;
      loops++;
    }
    l[loops - 1].edge = has_edge(ki, s, d) ? d : -1;
    *why = "more accumulator rows than there are numbers for";
    if (!mul_i64(acc, len, &acc)) return false;
  }
  if (loops > 3) {
    *why = "more than three row loops for the array";
    return false;
  }
  mx->nm = loops;
  for (int i = 0; i < loops; i++) {
    mx->m[i].len = l[loops - 1 - i].len, mx->m[i].mult = l[loops - 1 - i].mult,
    mx->m[i].x = l[loops - 1 - i].x;
    mx->m[i].acc = l[loops - 1 - i].acc, mx->m[i].edge = l[loops - 1 - i].edge;
  }
  mx->acc_rows = acc;
  return true;
}

static bool cut_contraction(const KernelInfo *ki, const Schedule *s, uint32_t red, const Block *x,
                            const Block *w, const MachineDesc *m, Mxu *mx, const char **why) {
  int dims[IR_MAX_DIMS], n = 0, loops = 0;
  int64_t total = 1;
  struct {
    int64_t len, x, w;
  } l[IR_MAX_DIMS];
  n = sorted_dims(ki, s, red, x->dim_stride, dims);
  for (int i = 0; i < n; i++) { /* blocks of the contraction, outermost first */
    *why = "contraction tiles that end where the contraction does";
    if (ki->k.extent[dims[i]] % sched_tile(ki, s, dims[i]) && !sched_may_round(ki, dims[i]))
      return false;
    int64_t kb = s->block[dims[i]] > 0 ? s->block[dims[i]] : 1;
    around(mx, sched_tile(ki, s, dims[i]) / kb, x->dim_stride[dims[i]] * kb,
           w->dim_stride[dims[i]] * kb, 0, true);
  }
  for (int i = n - 1; i >= 0; i--) {
    int d = dims[i];
    int64_t kb = s->block[d];
    if (kb <= 1) continue;
    total *= kb;
    if (loops && x->dim_stride[d] == l[loops - 1].x * l[loops - 1].len &&
        w->dim_stride[d] == l[loops - 1].w * l[loops - 1].len) {
      l[loops - 1].len *= kb;
      continue;
    }
    l[loops].len = kb, l[loops].x = x->dim_stride[d], l[loops].w = w->dim_stride[d];
    loops++;
  }
  if (loops > 3 || total > m->mxu_rows) {
    *why = "a weight plane larger than the array";
    return false;
  }
  mx->nk = loops;
  for (int i = 0; i < loops; i++) {
    mx->k[i].len = l[loops - 1 - i].len, mx->k[i].x = l[loops - 1 - i].x,
    mx->k[i].w = l[loops - 1 - i].w;
  }
  return true;
}

bool sched_mxu(const KernelInfo *ki, const Schedule *s, const MachineDesc *m, Mxu *mx,
               const char **why) {
  const Step *st = &ki->step[ki->mxu_step];
  uint32_t rows, cols, batch;
  Block x, w;
  memset(mx, 0, sizeof *mx);
  mx->x = st->factor[s->stream], mx->w = st->factor[!s->stream];
  DType xt = ki->store[mx->x].dtype, wt = ki->store[mx->w].dtype;
  *why = "an array that streams s8 through bf16 planes";
  if (xt == DT_S8 && wt != DT_S8) return false;
  if (!sched_operand_block(ki, s, mx->x, &x, why) || !sched_operand_block(ki, s, mx->w, &w, why))
    return false;
  factor_dims(ki, s->stream, &rows, &cols, &batch);
  mx->bf16 = xt == DT_BF16;
  mx->x_first = x.first, mx->w_first = w.first;
  mx->n = sched_column_dim(ki, s->stream);
  mx->nb = mx->nblocks = 1, mx->nstride = (int64_t)dtype_size(wt);
  if (mx->n >= 0) {
    mx->nb = s->block[mx->n] > 0 ? s->block[mx->n] : 1;
    mx->nblocks = sched_tile(ki, s, mx->n) / mx->nb;
    mx->nstride = w.dim_stride[mx->n];
    *why = "column blocks as wide as the array";
    if (mx->nb > m->mxu_cols || (mx->nblocks > 1 && mx->nb != m->mxu_cols)) return false;
  }
  if (!cut_rows(ki, s, rows, &x, mx, why)) return false;
  for (int d = 0; d < ki->k.ndims; d++) { /* batch and further columns */
    if (!((batch | cols) >> d & 1) || d == mx->n) continue;
    mx->acc_stride[d] = mx->acc_rows;
    around(mx, sched_tile(ki, s, d), batch >> d & 1 ? x.dim_stride[d] : 0, w.dim_stride[d],
           mx->acc_rows, false);
    *why = "more accumulator rows than there are numbers for";
    if (!mul_i64(mx->acc_rows, sched_tile(ki, s, d), &mx->acc_rows)) return false;
  }
  if (mx->nblocks > 1) around(mx, mx->nblocks, 0, mx->nb * mx->nstride, 1, false);
  if (!cut_contraction(ki, s, st->red, &x, &w, m, mx, why)) return false;
  mx->transposed = mx->nb > 1 && mx->nstride != (int64_t)dtype_size(wt);
  *why = "a weight plane contiguous along neither side";
  return !mx->transposed || (mx->nk && mx->k[mx->nk - 1].w == (int64_t)dtype_size(wt)) || !mx->nk;
}

/* ---- the vector unit ---- */

typedef struct {
  const KernelInfo *ki;
  Vec *v;
  bool full;
} Reading;
static void add_stream(Reading *r, int store, bool write) {
  if (r->v->nstreams == ISA_STREAMS) {
    r->full = true;
    return;
  }
  r->v->stream[r->v->nstreams].store = store;
  r->v->stream[r->v->nstreams++].write = write;
}
static void add_read(void *user, int store) {
  add_stream(user, store, false);
}

static bool store_block(const KernelInfo *ki, const Schedule *s, int store, const MachineDesc *m,
                        Block *b, const char **why) {
  const Store *st = &ki->store[store];
  Mxu mx;
  switch (st->kind) {
  case STORE_OPERAND: return sched_operand_block(ki, s, st->index, b, why);
  case STORE_RESULT: return sched_result_block(ki, s, st->index, b, why);
  case STORE_STAGE:
  case STORE_CARRY: return sched_stage_block(ki, s, store, b, why);
  case STORE_ACC:
    if (!sched_mxu(ki, s, m, &mx, why)) return false;
    sched_acc_block(&mx, m, b);
    return true;
  }
  return false;
}

/* Reads, then writes, then the carries of sums, if any. */
static bool collect_streams(const KernelInfo *ki, const Schedule *s, const Step *st, Vec *v) {
  Reading r = {ki, v, false};
  sched_step_reads(ki, st, add_read, &r);
  for (int t = 0; t < st->ntargets; t++) add_stream(&r, st->store[t], true);
  v->accumulates = sched_accumulates(ki, s, st->red);
  for (int t = 0; v->accumulates && t < st->ntargets; t++) {
    int carry = ki->store[st->store[t]].carry;
    if (carry >= 0) add_stream(&r, carry, true);
  }
  return !r.full;
}

/* Two loops that every stream walks as one are one, where a descriptor's count can say so. */
static bool merges(const VecLoop *outer, const VecLoop *inner, int nstreams) {
  if (inner->edge >= 0 || outer->len > UINT32_MAX / inner->len) return false;
  for (int k = 0; k < nstreams; k++)
    if (outer->stride[k] != inner->stride[k] * inner->len) return false;
  return true;
}

/* Loops over a dimension set, merged where possible, outermost (largest strides) first. */
static int make_loops(const KernelInfo *ki, const Schedule *s, uint32_t set, const Block *blocks,
                      int nstreams, VecLoop *out) {
  int n = 0;
  for (int d = 0; d < ki->k.ndims; d++) {
    if (!(set >> d & 1) || live(ki, s, d) <= 1) continue;
    VecLoop l = {.dim = d, .len = live(ki, s, d), .mult = 1, .edge = has_edge(ki, s, d) ? d : -1};
    for (int k = 0; k < nstreams; k++) l.stride[k] = blocks[k].dim_stride[d];
    out[n++] = l;
  }
  for (bool again = true; again;) {
    again = false;
    for (int i = 0; i < n && !again; i++)
      for (int j = 0; j < n && !again; j++) {
        if (i == j || !merges(&out[i], &out[j], nstreams)) continue;
        out[i].mult *= out[j].len;
        out[i].len *= out[j].len;
        memcpy(out[i].stride, out[j].stride, sizeof out[i].stride);
        memmove(&out[j], &out[j + 1], sizeof *out * (size_t)(n - j - 1));
        n--;
        again = true;
      }
  }
  return n;
}

static int64_t chunks(int64_t len, const MachineDesc *m) {
  return ceil_div(len, m->vpu_lanes);
}

/* The vector loop is the one that wastes the fewest lanes; among equals a parallel one, then unit
 * stride on the last stream (the first target). */
static int pick_vector(const VecLoop *l, int npar, int n, int unit_stream, const MachineDesc *m) {
  int best = -1;
  double best_cost = 0;
  for (int i = 0; i < n; i++) {
    double cost = (double)chunks(l[i].len, m) / (double)l[i].len;
    if (i >= npar) cost *= 1.05;
    if (l[i].stride[unit_stream] == 0 || l[i].stride[unit_stream] > 4) cost *= 1.01;
    if (best < 0 || cost < best_cost) best = i, best_cost = cost;
  }
  return best;
}

static void take_longest(VecLoop *l, int *n, VecLoop *to) {
  int best = 0;
  for (int i = 1; i < *n; i++)
    if (l[i].len > l[best].len) best = i;
  *to = l[best];
  memmove(&l[best], &l[best + 1], sizeof *l * (size_t)(*n - best - 1));
  (*n)--;
}

static bool assign_loops(Vec *v, VecLoop *par, int npar, VecLoop *red, int nred, const char **why) {
  if (nred > 2) {
    *why = "more than two reduction loops in one vector instruction";
    return false;
  }
  for (int i = 0; i < nred; i++) v->loop[VLOOP_R1 - i] = red[nred - 1 - i];
  v->nred = nred;
  VecLoop outer[2];
  int nouter = 0;
  while (npar && nouter < 2) take_longest(par, &npar, &outer[nouter++]);
  if (nouter) v->loop[VLOOP_O1] = outer[0];
  if (nouter > 1) v->loop[VLOOP_O0] = outer[1];
  v->nouter = npar;
  memcpy(v->outer, par, sizeof *par * (size_t)npar);
  return true;
}

bool sched_vec(const KernelInfo *ki, const Schedule *s, int step, const MachineDesc *m, Vec *v,
               const char **why) {
  const Step *st = &ki->step[step];
  Block blocks[ISA_STREAMS];
  VecLoop l[2 * IR_MAX_DIMS];
  memset(v, 0, sizeof *v);
  *why = "a vector program with more than eight streams";
  if (!collect_streams(ki, s, st, v)) return false;
  for (int k = 0; k < v->nstreams; k++) {
    if (!store_block(ki, s, v->stream[k].store, m, &blocks[k], why)) return false;
    v->stream[k].first = blocks[k].first;
  }
  int npar = make_loops(ki, s, st->par, blocks, v->nstreams, l);
  int nred = make_loops(ki, s, st->red, blocks, v->nstreams, l + npar);
  for (int i = 0; i < 5; i++) v->loop[i] = (VecLoop){.dim = -1, .len = 1, .mult = 1, .edge = -1};
  int unit = 0; /* the first written stream */
  while (unit + 1 < v->nstreams && !v->stream[unit].write) unit++;
  int vec = pick_vector(l, npar, npar + nred, unit, m);
  if (vec >= 0) {
    v->loop[VLOOP_V] = l[vec];
    v->v_reduces = vec >= npar;
    memmove(&l[vec], &l[vec + 1], sizeof *l * (size_t)(npar + nred - vec - 1));
    if (v->v_reduces)
      nred--;
    else
      npar--;
  }
  return assign_loops(v, l, npar, l + npar, nred, why);
}
