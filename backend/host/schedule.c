/* From stages to loops. All stages of a kernel run inside common outer loops (the group) over
 * dimensions they share, tiled so that the temporaries between them stay in cache. Inside, each
 * stage has its own loops: one dimension goes into vector lanes, up to two more are unrolled so
 * that a reduction keeps several accumulators in registers. A trip that does not divide an extent
 * is made up by an overlapping last trip, which computes some elements twice, to the same values.
 */
#include "backend/host/host_internal.h"
#include <string.h>

enum { TILE_INNER = 4096, TILE_ALL = 16384 }; /* elements of a temporary: inner dimension, all */

/* At most `most` per trip, the trips as equal as can be. */
static int64_t balanced(int64_t extent, int64_t most) {
  if (most >= extent) return extent;
  if (most < 1) most = 1;
  return ceil_div(extent, ceil_div(extent, most));
}

static HostLoop loop_make(int dim, int64_t extent, int64_t step) {
  return (HostLoop){.dim = dim, .extent = extent, .step = step, .trips = ceil_div(extent, step)};
}

static int dim_at_rank(const HostKernel *k, int rank) {
  for (int d = 0; d < k->info.ndims; d++)
    if (k->rank[d] == rank) return d;
  return -1;
}

void host_schedule_group(HostKernel *k) {
  if (k->nstages < 2) return;
  uint32_t shared = ~0u;
  for (int i = 0; i < k->nstages; i++) shared &= k->stages[i].par;
  int64_t elements = 1;
  for (int r = k->info.ndims - 1; r >= 0; r--) {
    int d = dim_at_rank(k, r);
    if (!host_has_dim(shared, d)) continue;
    int64_t limit = elements == 1 ? TILE_INNER : TILE_ALL / elements;
    k->tile[d] = balanced(k->info.extent[d], limit);
    elements *= k->tile[d];
  }
  for (int r = 0; r < k->info.ndims; r++) {
    int d = dim_at_rank(k, r);
    if (k->tile[d] == k->info.extent[d]) continue;
    k->group |= 1u << d;
    k->group_loops[k->ngroup++] = loop_make(d, k->info.extent[d], k->tile[d]);
  }
}

/* ---- vector dimension ---- */

static int lanes_for(int64_t extent) {
  int lanes = HOST_LANES;
  while (lanes > extent) lanes /= 2;
  return lanes;
}

static double extents(const HostKernel *k, uint32_t dims) {
  double n = 1;
  for (int d = 0; d < k->info.ndims; d++)
    if (host_has_dim(dims, d)) n *= (double)k->tile[d];
  return n;
}

/* Cost of reading or writing one vector: lanes one by one when they do not lie side by side. */
static double access_cost(const HostKernel *k, int access, int v, int lanes, const bool *packable) {
  const HostAccess *x = &k->access[access];
  if (!host_has_dim(x->dims, v)) return 1;
  bool moves_alone = x->stride[v] == 1;
  for (int i = 0; i < x->nindirect; i++)
    if (host_has_dim(k->access[x->indirect[i].operand].dims, v)) moves_alone = false;
  if (moves_alone) return 1;
  if (access < k->info.nin && packable[access * IR_MAX_DIMS + v]) return 1.01;
  return 1 + lanes;
}

static double vector_cost(const HostKernel *k, const HostStage *s, int v, const bool *packable) {
  int lanes = lanes_for(k->tile[v]);
  double vectors = (double)ceil_div(k->tile[v], lanes);
  double trips = extents(k, (s->par | s->red) & ~(1u << v)) * vectors, each = 2;
  for (int n = 0; n < k->nnodes; n++) {
    if (!s->needed[n]) continue;
    if (k->nodes[n].access < 0)
      each += 0.5;
    else
      each += access_cost(k, k->nodes[n].access, v, lanes, packable);
  }
  double cost = trips * each;
  if (host_has_dim(s->red, v)) /* folding the lanes at the end */
    return cost + extents(k, s->par) * 10;
  double stores = extents(k, s->par & ~(1u << v)) * vectors;
  if (s->reduce >= 0)
    return cost + stores * access_cost(k, k->nodes[s->reduce].access, v, lanes, packable);
  for (int i = 0; i < s->nresults; i++)
    cost += stores * access_cost(k, k->info.nin + s->results[i], v, lanes, packable);
  return cost;
}

void host_stage_choose_vector(const HostKernel *k, HostStage *s, const bool *packable) {
  double best = 0;
  s->vdim = 0;
  s->lanes = 1;
  for (int r = 0; r < k->info.ndims; r++) {
    int d = dim_at_rank(k, r);
    if (!host_has_dim(s->par | s->red, d) || k->tile[d] < 2) continue;
    double cost = vector_cost(k, s, d, packable);
    if (s->lanes > 1 && cost > best) continue; /* on a tie the inner dimension */
    best = cost;
    s->vdim = d;
    s->lanes = lanes_for(k->tile[d]);
  }
}

/* ---- register tile ---- */

enum { TILE_COMBOS = 8, HEAVY_BODY = 24, SHORT_REDUCTION = 8 };

/* How many reads of the reduction loop serve several copies when dim is unrolled. */
static int reuse(const HostKernel *k, const HostStage *s, int dim) {
  int n = 0;
  for (int i = 0; i < k->nnodes; i++)
    if (s->needed[i] && k->nodes[i].access >= 0 && (k->nodes[i].dims & s->red) &&
        !host_has_dim(k->nodes[i].dims, dim))
      n++;
  return n;
}

static void unroll_add(HostStage *s, int dim, int64_t extent, int64_t most, int64_t unit) {
  int64_t count = balanced(extent, most);
  if (count < 2) return;
  s->unroll[s->nunroll].dim = dim;
  s->unroll[s->nunroll].count = count;
  s->unroll[s->nunroll++].unit = unit;
}

static void choose_unroll(const HostKernel *k, HostStage *s) {
  int body = 0;
  for (int i = 0; i < k->nnodes; i++) body += s->needed[i];
  if (s->reduce < 0 || body > HEAVY_BODY || extents(k, s->red) < SHORT_REDUCTION) return;
  int64_t combos = 1, most = 4;
  uint32_t taken = 1u << s->vdim;
  while (s->nunroll < HOST_MAX_UNROLL && combos < TILE_COMBOS) {
    int best = -1, best_reuse = 0;
    for (int d = 0; d < k->info.ndims; d++) {
      if (!host_has_dim(s->par & ~taken, d) || k->tile[d] < 2) continue;
      int n = reuse(k, s, d);
      if (n > best_reuse || (n == best_reuse && n > 0 && k->rank[d] > k->rank[best])) {
        best = d;
        best_reuse = n;
      }
    }
    if (best < 0) break;
    taken |= 1u << best;
    unroll_add(s, best, k->tile[best], most < TILE_COMBOS / combos ? most : TILE_COMBOS / combos,
               1);
    if (s->nunroll) combos = combos == 1 ? s->unroll[0].count : TILE_COMBOS;
  }
  /* Several vectors side by side, so that additions do not wait for one another. */
  if (combos < 4 && s->nunroll < HOST_MAX_UNROLL && s->lanes > 1 && host_has_dim(s->par, s->vdim))
    unroll_add(s, s->vdim, k->tile[s->vdim] / s->lanes, 4, s->lanes);
}

static int64_t step_of(const HostStage *s, int dim) {
  int64_t step = dim == s->vdim ? s->lanes : 1;
  for (int i = 0; i < s->nunroll; i++)
    if (s->unroll[i].dim == dim) step *= s->unroll[i].count;
  return step;
}

static void add_loops(const HostKernel *k, HostStage *s, uint32_t dims) {
  bool vector = s->lanes > 1 && host_has_dim(dims, s->vdim);
  for (int r = 0; r < k->info.ndims; r++) {
    int d = dim_at_rank(k, r);
    if (!host_has_dim(dims, d) || (vector && d == s->vdim)) continue;
    s->loops[s->nloops++] = loop_make(d, k->tile[d], step_of(s, d));
  }
  if (vector) s->loops[s->nloops++] = loop_make(s->vdim, k->tile[s->vdim], step_of(s, s->vdim));
}

/* ---- blocks of sums ---- */

enum { BLOCK_TERMS = 8 }; /* added up as f32 */

/* A factor that others share: sums of squares and the like, whose terms are all of one tensor's
 * elements, are none. */
static bool sums_products(const HostKernel *k, const HostStage *s) {
  const HostNode *r = &k->nodes[s->reduce], *x = &k->nodes[r->arg[0]];
  if (r->dtype != DT_F32 || strcmp(ir_get_str(r->op, "op", "sum"), "sum") != 0) return false;
  if (!x->op || x->op->kind != IR_OP_MUL) return false;
  return k->nodes[x->arg[0]].dims != k->nodes[x->arg[1]].dims;
}

/* The inner loops with as many trips as a block has terms, the outermost of them cut. */
static void choose_block(const HostKernel *k, HostStage *s) {
  if (s->reduce < 0 || k->wide_sums || !sums_products(k, s)) return;
  int64_t terms = 1;
  s->block_level = s->nloops;
  while (s->block_level > s->npar && terms < BLOCK_TERMS) {
    int64_t trips = s->loops[s->block_level - 1].trips, most = BLOCK_TERMS / terms;
    if (most < 2) break;
    s->block_level--;
    s->block_trips = trips < most ? trips : most;
    terms *= s->block_trips;
    if (s->block_trips < trips) break;
  }
  if (terms == 1) s->block_trips = 0;
}

void host_schedule_stage(const HostKernel *k, HostStage *s) {
  choose_unroll(k, s);
  add_loops(k, s, s->par);
  s->npar = s->nloops;
  add_loops(k, s, s->red);
  choose_block(k, s);
}
