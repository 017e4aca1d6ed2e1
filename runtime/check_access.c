/* Which bytes an instruction reads and writes, in the order it does. Every address here has been
 * checked. */
#include "runtime/runtime_internal.h"
#include <string.h>

/* ---- DMA ---- */

typedef struct {
  Check *c;
  const DmaBox *b;
  RtSpace space;
  bool write, whole_box; /* whole_box: the SPM side of a load, fill included */
  const int64_t *stride;
} BoxWalk;

static void walk_box(const BoxWalk *w, int axis, int64_t addr) {
  const DmaBox *b = w->b;
  int64_t lo = w->whole_box ? 0 : b->lo[axis], hi = w->whole_box ? b->size[axis] : b->hi[axis];
  if (axis == b->rank - 1 && w->stride[axis] == b->elsize &&
      !(b->indexed && axis == 0 && w->space == RT_DRAM)) {
    check_access(w->c, w->space, addr + lo * b->elsize, (hi - lo) * b->elsize, w->write);
    return;
  }
  for (int64_t i = lo; i < hi; i++) {
    int64_t at = b->indexed && axis == 0 && w->space == RT_DRAM ? b->list[i] : i;
    int64_t next = (int64_t)((uint64_t)addr + (uint64_t)at * (uint64_t)w->stride[axis]);
    if (axis == b->rank - 1)
      check_access(w->c, w->space, next, b->elsize, w->write);
    else
      walk_box(w, axis + 1, next);
  }
}

void check_dma(Check *c, const DmaBox *b) {
  BoxWalk dram = {.c = c, .b = b, .space = RT_DRAM, .write = b->store, .stride = b->dstride};
  BoxWalk spm = {.c = c,
                 .b = b,
                 .space = RT_SPM,
                 .write = !b->store,
                 .whole_box = !b->store,
                 .stride = b->sstride};
  if (b->store) {
    if (b->empty) return;
    walk_box(&spm, 0, b->spm);
    walk_box(&dram, 0, b->dram);
    return;
  }
  if (!b->empty) walk_box(&dram, 0, b->dram);
  walk_box(&spm, 0, b->spm);
}

/* ---- matrix unit ---- */

/* Elements of three loops from addr: contiguous runs where the innermost loop is. */
static void walk_three(Check *c, RtSpace space, int64_t addr, const int64_t n[3],
                       const int64_t stride[3], int64_t elsize, bool write) {
  bool run = stride[2] == elsize || n[2] == 1;
  for (int64_t i = 0; i < n[0]; i++)
    for (int64_t j = 0; j < n[1]; j++) {
      int64_t at = addr + i * stride[0] + j * stride[1];
      if (run)
        check_access(c, space, at, n[2] * elsize, write);
      else
        for (int64_t k = 0; k < n[2]; k++)
          check_access(c, space, at + k * stride[2], elsize, write);
    }
}

void check_plane(Check *c, const RowsView *v, int64_t n, int64_t nstride, int64_t elsize) {
  if (nstride != elsize) { /* K runs, one per column */
    for (int64_t i = 0; i < n; i++)
      walk_three(c, RT_SPM, v->spm + i * nstride, v->k, v->kstride, elsize, false);
    return;
  }
  for (int64_t i = 0; i < v->k[0]; i++)
    for (int64_t j = 0; j < v->k[1]; j++)
      for (int64_t k = 0; k < v->k[2]; k++)
        check_access(c, RT_SPM, v->spm + i * v->kstride[0] + j * v->kstride[1] + k * v->kstride[2],
                     n * elsize, false);
}

void check_rows(Check *c, const RowsView *v, int64_t elsize, int64_t n, bool acc) {
  for (int64_t i = 0; i < v->m[0]; i++)
    for (int64_t j = 0; j < v->m[1]; j++)
      for (int64_t k = 0; k < v->m[2]; k++) {
        int64_t spm = v->spm + i * v->mstride[0] + j * v->mstride[1] + k * v->mstride[2];
        int64_t word = v->acc + i * v->astride[0] + j * v->astride[1] + k * v->astride[2];
        walk_three(c, RT_SPM, spm, v->k, v->kstride, elsize, false);
        if (acc) check_access(c, RT_ACC, 4 * word, 4 * n, false);
        check_access(c, RT_ACC, 4 * word, 4 * n, true);
      }
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
  walk_three(w->c, space, w->row[s], n, stride, es, write);
}

static void walk_row(const VxWalk *w) {
  unsigned where = VX_USE_ROW;
  for (int i = 0; i < w->p->n; i++) {
    const IsaVop *v = &w->p->ops[i];
    switch ((IsaVopKind)v->op) {
    case VOP_VEC:
    case VOP_ENDR: where = VX_USE_PASS; break;
    case VOP_RED: where = VX_USE_RED; break;
    case VOP_ENDV: where = VX_USE_ROW; break;
    case VOP_LD: walk_stream(w, v->stream, where, false); break;
    case VOP_ST: walk_stream(w, v->stream, where, true); break;
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
