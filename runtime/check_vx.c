/* What a vx reads and writes, and the rule of a pass: its elements have no order, so what one
 * stores no other may load or store. */
#include "runtime/runtime_internal.h"
#include <stdlib.h>

/* ---- the rule of a pass ---- */

/* One ld or st of a pass. */
typedef struct {
  int stream;
  bool red, write;
} Use;

/* The elements of a use in one row: at + v * stride, and n[0] x n[1] of those from a red loop. */
typedef struct {
  int64_t at, bytes, count, stride;
  int64_t n[2], red[2];
} Elements;

enum { MAX_USES = 4 * ISA_STREAMS };
typedef struct {
  Use use[MAX_USES];
  int n;
} PassUses;

static void add_use(PassUses *p, int stream, bool red, bool write) {
  for (int i = 0; i < p->n; i++)
    if (p->use[i].stream == stream && p->use[i].red == red && p->use[i].write == write) return;
  p->use[p->n++] = (Use){stream, red, write};
}

static void lowest_highest(const Elements *e, int64_t *lo, int64_t *hi) {
  const int64_t n[3] = {e->count, e->n[0], e->n[1]}, stride[3] = {e->stride, e->red[0], e->red[1]};
  rt_range(e->at, 3, n, stride, lo, hi);
  *hi += e->bytes;
}

/* An element of `e` other than number i that touches [at, at + bytes); false when there is none. */
static bool other_element(const Elements *e, int64_t i, int64_t at, int64_t bytes, int64_t *other) {
  for (int64_t r0 = 0; r0 < e->n[0]; r0++)
    for (int64_t r1 = 0; r1 < e->n[1]; r1++) {
      int64_t first = e->at + r0 * e->red[0] + r1 * e->red[1];
      if (e->stride == 0) {
        *other = i ? 0 : 1;
        if (e->count > 1 && first < at + bytes && at < first + e->bytes) return true;
        continue;
      }
      /* elements j with at - bytes of e < first + j * stride < at + bytes, and those beside them */
      int64_t j = (at - first) / e->stride, reach = (bytes + e->bytes) / llabs(e->stride) + 1;
      for (int64_t k = j - reach; k <= j + reach; k++) {
        int64_t a = first + k * e->stride;
        if (k < 0 || k >= e->count || k == i || a >= at + bytes || at >= a + e->bytes) continue;
        *other = k;
        return true;
      }
    }
  return false;
}

/* The first element that stores what another one loads or stores; -1 when none does. */
static int64_t clash(const Elements *st, const Elements *e, int64_t *other, int64_t *at) {
  int64_t lo[2], hi[2];
  if (st->at == e->at && st->stride == e->stride && llabs(st->stride) >= st->bytes &&
      st->bytes == e->bytes && st->n[0] * st->n[1] * e->n[0] * e->n[1] == 1)
    return -1; /* in place */
  lowest_highest(st, &lo[0], &hi[0]);
  lowest_highest(e, &lo[1], &hi[1]);
  if (lo[0] >= hi[1] || lo[1] >= hi[0]) return -1;
  for (int64_t i = 0; i < st->count; i++)
    for (int64_t r0 = 0; r0 < st->n[0]; r0++)
      for (int64_t r1 = 0; r1 < st->n[1]; r1++) {
        *at = st->at + i * st->stride + r0 * st->red[0] + r1 * st->red[1];
        if (other_element(e, i, *at, st->bytes, other)) return i;
      }
  return -1;
}

/* ---- vector unit ---- */

typedef struct {
  Check *c;
  const IsaVprog *p;
  const IsaDesc *d;
  int64_t row[ISA_STREAMS]; /* byte address of the row */
} VxWalk;

static int64_t stream_stride(const IsaDesc *d, int s, int loop) {
  return (int64_t)d->vec.stream[s].stride[loop] * (d->vec.stream[s].space == SPACE_ACC ? 4 : 1);
}

static Elements elements_of(const VxWalk *w, const Use *u) {
  const IsaDesc *d = w->d;
  Elements e = {.at = w->row[u->stream],
                .bytes = (int64_t)dtype_size((DType)d->vec.stream[u->stream].dtype),
                .count = d->vec.count[VLOOP_V],
                .stride = stream_stride(d, u->stream, VLOOP_V),
                .n = {1, 1}};
  for (int j = 0; j < 2 && u->red; j++) {
    e.n[j] = d->vec.count[VLOOP_R0 + j];
    e.red[j] = stream_stride(d, u->stream, VLOOP_R0 + j);
  }
  return e;
}

static void check_pass(const VxWalk *w, const PassUses *p) {
  for (int i = 0; i < p->n; i++) {
    if (!p->use[i].write) continue;
    Elements st = elements_of(w, &p->use[i]);
    int space = w->d->vec.stream[p->use[i].stream].space;
    for (int j = 0; j < p->n; j++) {
      Elements e = elements_of(w, &p->use[j]);
      int64_t other, at;
      if (w->d->vec.stream[p->use[j].stream].space != space || st.n[0] * st.n[1] == 0 ||
          e.n[0] * e.n[1] == 0 || st.count == 0)
        continue;
      int64_t one = clash(&st, &e, &other, &at);
      if (one < 0) continue;
      check_pass_clash(w->c, space == SPACE_ACC ? RT_ACC : RT_SPM, at, st.bytes, one, other,
                       p->use[j].write);
      return;
    }
  }
}

/* One ld or st of a row: where says which loops it walks. */
static void walk_stream(const VxWalk *w, int s, unsigned where, bool write) {
  const IsaDesc *d = w->d;
  RtSpace space = d->vec.stream[s].space == SPACE_ACC ? RT_ACC : RT_SPM;
  bool red = where == VX_USE_RED;
  int64_t es = (int64_t)dtype_size((DType)d->vec.stream[s].dtype);
  int64_t n[3] = {red ? d->vec.count[VLOOP_R0] : 1, red ? d->vec.count[VLOOP_R1] : 1,
                  where == VX_USE_ROW ? 1 : d->vec.count[VLOOP_V]};
  int64_t stride[3];
  for (int j = 0; j < 3; j++) stride[j] = stream_stride(d, s, VLOOP_R0 + j);
  if (n[2] == 0) return;
  if (stride[2] == 0) n[2] = 1;
  check_three(w->c, space, w->row[s], n, stride, es, write);
}

static void walk_row(const VxWalk *w) {
  unsigned where = VX_USE_ROW;
  PassUses pass = {.n = 0};
  for (int i = 0; i < w->p->n; i++) {
    const IsaVop *v = &w->p->ops[i];
    switch ((IsaVopKind)v->op) {
    case VOP_VEC:
    case VOP_ENDR: where = VX_USE_PASS; break;
    case VOP_RED: where = VX_USE_RED; break;
    case VOP_ENDV:
      check_pass(w, &pass);
      pass.n = 0;
      where = VX_USE_ROW;
      break;
    case VOP_LD:
    case VOP_ST:
      walk_stream(w, v->stream, where, v->op == VOP_ST);
      if (where != VX_USE_ROW) add_use(&pass, v->stream, where == VX_USE_RED, v->op == VOP_ST);
      break;
    default: break;
    }
  }
}

void check_vx(Check *c, const IsaVprog *p, const IsaDesc *d) {
  VxWalk w = {.c = c, .p = p, .d = d};
  for (int64_t i = 0; i < d->vec.count[VLOOP_O0]; i++)
    for (int64_t j = 0; j < d->vec.count[VLOOP_O1]; j++) {
      for (int s = 0; s < d->nstreams; s++)
        w.row[s] = (int64_t)d->vec.stream[s].base * (d->vec.stream[s].space == SPACE_ACC ? 4 : 1) +
                   i * stream_stride(d, s, VLOOP_O0) + j * stream_stride(d, s, VLOOP_O1);
      walk_row(&w);
    }
}
