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

/* The elements of a transfer have no order, except that a scatter follows its list. */
static void box_access(const BoxWalk *w, int64_t addr, int64_t bytes) {
  if (w->write && !(w->b->store && w->b->indexed))
    check_write_once(w->c, w->space, addr, bytes);
  else
    check_access(w->c, w->space, addr, bytes, w->write);
}

static void walk_box(const BoxWalk *w, int axis, int64_t addr) {
  const DmaBox *b = w->b;
  int64_t lo = w->whole_box ? 0 : b->lo[axis], hi = w->whole_box ? b->size[axis] : b->hi[axis];
  if (axis == b->rank - 1 && w->stride[axis] == b->elsize &&
      !(b->indexed && axis == 0 && w->space == RT_DRAM)) {
    box_access(w, addr + lo * b->elsize, (hi - lo) * b->elsize);
    return;
  }
  for (int64_t i = lo; i < hi; i++) {
    int64_t at = b->indexed && axis == 0 && w->space == RT_DRAM ? b->list[i] : i;
    int64_t next = (int64_t)((uint64_t)addr + (uint64_t)at * (uint64_t)w->stride[axis]);
    if (axis == b->rank - 1)
      box_access(w, next, b->elsize);
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

/* ---- loops ---- */

/* Elements of three loops from addr: contiguous runs where the innermost loop is. */
void check_three(Check *c, RtSpace space, int64_t addr, const int64_t n[3], const int64_t stride[3],
                 int64_t elsize, bool write) {
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

/* ---- matrix unit ---- */

void check_plane(Check *c, const RowsView *v, int64_t n, int64_t nstride, int64_t elsize) {
  if (nstride != elsize) { /* K runs, one per column */
    for (int64_t i = 0; i < n; i++)
      check_three(c, RT_SPM, v->spm + i * nstride, v->k, v->kstride, elsize, false);
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
        check_three(c, RT_SPM, spm, v->k, v->kstride, elsize, false);
        if (acc) check_access(c, RT_ACC, 4 * word, 4 * n, false);
        check_access(c, RT_ACC, 4 * word, 4 * n, true);
      }
}
