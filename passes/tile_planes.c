/* How the contraction of a product is cut into the array's planes: the `block` of a schedule. */
#include <string.h>

#include "passes/sched.h"

/* A contraction dimension as the streamed factor has it. */
typedef struct {
  int dim;
  bool alone;   /* only contraction dimensions walk its axis, so tiles of it lie without gaps */
  bool follows; /* its elements lie one behind the other */
} PlaneDim;

/* The contraction dimensions from the innermost in scratchpad out: axis_place puts axes that are
 * walked by the contraction alone before others. */
static int plane_dims(const KernelInfo *ki, const Schedule *s, PlaneDim out[IR_MAX_DIMS]) {
  const Step *st = &ki->step[ki->mxu_step];
  const IrMap *map = ir_kernel_in_map(ki->op, st->factor[s->stream]);
  const IrValue *x = ir_operand(ki->op, st->factor[s->stream]);
  int order[IR_MAX_RANK], n = 0;
  uint32_t left = st->red;
  ir_layout(x, order);
  for (int pass = 0; pass < 2; pass++) {
    bool alone = pass == 0;
    for (int i = x->type->rank - 1; i >= 0; i--) {
      const IrAffine *a = &map->axis[order[i]];
      if (sched_contracts(ki, a) != alone) continue;
      for (int d = 0; d < ki->k.ndims; d++) {
        if (!a->coef[d] || !(left >> d & 1)) continue;
        left &= ~(1u << d);
        out[n++] = (PlaneDim){d, alone, a->coef[d] == 1};
      }
    }
  }
  return n;
}

void sched_set_blocks(const KernelInfo *ki, const MachineDesc *m, Schedule *s) {
  PlaneDim dims[IR_MAX_DIMS];
  int64_t room = m->mxu_rows;
  memset(s->block, 0, sizeof s->block);
  int n = sched_column_dim(ki, s->stream);
  if (n >= 0) s->block[n] = ki->k.extent[n] < m->mxu_cols ? ki->k.extent[n] : m->mxu_cols;
  for (int d = 0; d < ki->k.ndims; d++)
    if (ki->step[ki->mxu_step].red >> d & 1) s->block[d] = 1;
  n = plane_dims(ki, s, dims);
  for (int i = 0; i < n; i++) {
    int d = dims[i].dim;
    int64_t extent = ki->k.extent[d], most = extent < room ? extent : room;
    s->block[d] = ceil_div(extent, ceil_div(extent, most));
    while (extent % s->block[d] && !sched_may_round(ki, d)) s->block[d]--;
    room = s->block[d] == extent ? room / extent : 1;
  }
}

/* Search for the blocks that stream the fewest runs: every plane streams the rows once, in as many
 * runs as its contraction elements lie in. */
typedef struct {
  const KernelInfo *ki;
  PlaneDim dim[IR_MAX_DIMS];
  int n;
  Schedule now, best;
  double fewest;
} PlaneSearch;

/* By how much a block of b in this dimension multiplies the runs; `joined`: do the elements before,
 * and with these still, lie in one run? */
static double runs_along(const PlaneDim *d, int64_t extent, int64_t b, bool *joined) {
  bool joins = *joined && d->follows;
  *joined = joins && d->alone;
  return (double)(ceil_div(extent, b) * (joins ? 1 : b));
}

/* Blocks of the dimensions from number i on, for `room` rows of a plane; `runs` are those of the
 * blocks before, which lie in one run when `joined`. */
static void search_planes(PlaneSearch *p, int i, int64_t room, bool joined, double runs) {
  if (runs >= p->fewest) return;
  if (i == p->n) {
    p->fewest = runs;
    p->best = p->now;
    return;
  }
  const PlaneDim *d = &p->dim[i];
  int64_t extent = p->ki->k.extent[d->dim], b = extent;
  for (int64_t planes = 1;; planes = ceil_div(extent, b - 1)) {
    b = ceil_div(extent, planes);
    if (b <= room && (extent % b == 0 || sched_may_round(p->ki, d->dim))) {
      p->now.block[d->dim] = b;
      bool still = joined;
      double times = runs_along(d, extent, b, &still);
      search_planes(p, i + 1, room / b, still, runs * times);
    }
    if (b == 1) return;
  }
}

bool sched_fewer_runs(const KernelInfo *ki, const MachineDesc *m, Schedule *s) {
  PlaneSearch p = {.ki = ki, .now = *s, .fewest = 1};
  p.n = plane_dims(ki, s, p.dim);
  bool joined = true;
  for (int i = 0; i < p.n; i++) {
    int d = p.dim[i].dim;
    p.fewest *= runs_along(&p.dim[i], ki->k.extent[d], s->block[d], &joined);
  }
  double before = p.fewest;
  search_planes(&p, 0, m->mxu_rows, true, 1);
  if (p.fewest < before) *s = p.best;
  return p.fewest < before;
}
