/* tile: tile sizes, loop order, plane blocks and slots of every kernel, by the smallest predicted
 * time. Coordinate descent over candidate sizes from two starts (smallest tiles, and the largest
 * that fit), each with two ways to cut the contraction into planes, with loop orders and slots as
 * further coordinates. A kernel whose rows do not fit is split after its first reductions and tried
 * again. Level: nest. Adds attributes tile, order, slots, block, stream, engine (see sched.h).
 * Terminates: every accepted move lowers the predicted time; every split removes a reduction level.
 */
#include "passes/sched.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_SIZES = 64, MAX_ROUNDS = 12 };

typedef struct {
  const KernelInfo *ki;
  const MachineDesc *m;
  bool search;
  int max_slots;
  int priority[IR_MAX_DIMS]; /* parallel dimensions, outermost first */
  int npriority;
  Schedule best;
  Predicted cost;
  const char *why;
  int64_t evaluated;
} Search;

/* Order of the dimensions that have several tiles: parallel ones by priority, reductions innermost.
 */
static void set_order(const Search *se, Schedule *s) {
  s->norder = 0;
  for (int i = 0; i < se->npriority; i++)
    if (sched_tiles(se->ki, s, se->priority[i]) > 1) s->order[s->norder++] = se->priority[i];
  for (int d = 0; d < se->ki->k.ndims; d++)
    if ((se->ki->red >> d & 1) && sched_tiles(se->ki, s, d) > 1) s->order[s->norder++] = d;
}

static bool consider(Search *se, Schedule *s) {
  Predicted p;
  set_order(se, s);
  se->evaluated++;
  if (!sched_predict(se->ki, s, se->m, &p, &se->why) || p.total >= se->cost.total) return false;
  se->best = *s;
  se->cost = p;
  return true;
}

static int add_size(int64_t *sizes, int n, int64_t v, int64_t extent) {
  if (v < 1) v = 1;
  if (v > extent) v = extent;
  for (int i = 0; i < n; i++)
    if (sizes[i] == v) return n;
  if (n < MAX_SIZES) sizes[n++] = v;
  return n;
}

/* Candidate tile sizes of a dimension: doublings of a plane block (or of one), and even cuts of the
 * extent. */
static int sizes_of(const KernelInfo *ki, const Schedule *s, int d, int64_t sizes[MAX_SIZES]) {
  int64_t extent = ki->k.extent[d], unit = s->block[d] > 0 ? s->block[d] : 1;
  int n = add_size(sizes, 0, unit, extent);
  if ((ki->whole >> d & 1) != 0) return add_size(sizes, 0, extent, extent);
  for (int64_t v = unit; v < extent && n < 34; v *= 2) n = add_size(sizes, n, v, extent);
  for (int64_t cut = 1; cut <= 12; cut++)
    n = add_size(sizes, n, round_up(ceil_div(extent, cut), unit), extent);
  return n;
}

static bool improve_sizes(Search *se) {
  bool better = false;
  for (int d = 0; d < se->ki->k.ndims; d++) {
    int64_t sizes[MAX_SIZES];
    if (!(se->ki->all >> d & 1) || se->ki->k.extent[d] == 1) continue;
    int n = sizes_of(se->ki, &se->best, d, sizes);
    for (int i = 0; i < n; i++) {
      Schedule s = se->best;
      s.tile[d] = sizes[i];
      better |= consider(se, &s);
    }
  }
  return better;
}

/* Pairs of dimensions changed together leave a minimum that no single change does: one grows while
 * another shrinks. */
static bool improve_pairs(Search *se) {
  bool better = false;
  for (int a = 0; a < se->ki->k.ndims; a++)
    for (int b = 0; b < se->ki->k.ndims; b++) {
      if (a == b || (se->ki->whole >> a & 1) || (se->ki->whole >> b & 1)) continue;
      if (se->ki->k.extent[a] == 1 || se->ki->k.extent[b] == 1) continue;
      Schedule s = se->best;
      s.tile[a] = s.tile[a] * 2;
      s.tile[b] = ceil_div(s.tile[b], 2);
      better |= consider(se, &s);
    }
  return better;
}

static bool improve_order(Search *se) {
  bool better = false;
  for (int i = 0; i < se->npriority; i++)
    for (int j = i + 1; j < se->npriority; j++) {
      int t = se->priority[i];
      se->priority[i] = se->priority[j], se->priority[j] = t;
      Schedule s = se->best;
      if (consider(se, &s))
        better = true;
      else
        t = se->priority[i], se->priority[i] = se->priority[j], se->priority[j] = t;
    }
  return better;
}

static bool improve_slots(Search *se) {
  Schedule s = se->best;
  s.slots = s.slots == 1 ? se->max_slots : 1;
  return consider(se, &s);
}

static void descend(Search *se) {
  for (int round = 0; round < MAX_ROUNDS; round++) {
    bool better = improve_sizes(se);
    better |= improve_order(se);
    better |= improve_slots(se);
    if (!better) better = improve_pairs(se);
    if (!better) break;
  }
}

static void start_smallest(const KernelInfo *ki, Schedule *s) {
  for (int d = 0; d < ki->k.ndims; d++) {
    s->tile[d] = s->block[d] > 0 ? s->block[d] : 1;
    if (ki->whole >> d & 1) s->tile[d] = ki->k.extent[d];
  }
}

/* Everything whole, then the dimension with the largest tile halved until it fits. */
static bool start_largest(Search *se, Schedule *s) {
  const KernelInfo *ki = se->ki;
  for (int d = 0; d < ki->k.ndims; d++) s->tile[d] = ki->k.extent[d];
  for (int tries = 0; tries < 64 * IR_MAX_DIMS; tries++) {
    if (consider(se, s)) return true;
    int widest = -1;
    for (int d = 0; d < ki->k.ndims; d++) {
      bool may = !(ki->whole >> d & 1) && s->tile[d] > 1 && s->tile[d] > s->block[d];
      if (may && (widest < 0 || s->tile[d] > s->tile[widest])) widest = d;
    }
    if (widest < 0) return false;
    s->tile[widest] = ceil_div(s->tile[widest], 2);
  }
  return false;
}

/* One start of the search: the largest tiles that fit (start 0) or the smallest, with as many slots
 * as fit. */
static bool find_start(Search *se, int start, Schedule *s) {
  for (s->slots = se->max_slots; s->slots >= 1; s->slots--) {
    if (start == 0 && start_largest(se, s)) return true;
    start_smallest(se->ki, s);
    if (start == 1 && consider(se, s)) return true;
  }
  return false;
}

static void search_stream(Search *se, int stream) {
  const KernelInfo *ki = se->ki;
  Schedule kept = se->best;
  Predicted kept_cost = se->cost;
  for (int start = 0; start < 4; start++) {
    Schedule s = {.stream = stream};
    bool fewer = start >= 2;
    se->cost.total = INFINITY;
    se->npriority = 0;
    for (int d = 0; d < ki->k.ndims; d++)
      if (ki->par >> d & 1) se->priority[se->npriority++] = d;
    if (ki->mxu_step >= 0) sched_set_blocks(ki, se->m, &s);
    if (fewer && (ki->mxu_step < 0 || !sched_fewer_runs(ki, se->m, &s))) break;
    bool found = find_start(se, start & 1, &s);
    if (found && se->search) descend(se);
    if (se->cost.total < kept_cost.total) kept = se->best, kept_cost = se->cost;
    if (found && !se->search) break;
  }
  se->best = kept;
  se->cost = kept_cost;
}

static bool search_kernel(PassContext *pc, IrOp *k, Schedule *out, Predicted *cost, int *phases,
                          const char **why) {
  KernelInfo ki;
  VprogCache *cache = ARENA_NEW(pc->scratch, VprogCache);
  *phases = 0;
  if (!sched_analyze(k, &ki, why)) return false;
  *phases = ki.phases;
  ki.cache = cache;
  Search se = {.ki = &ki,
               .m = pc->machine,
               .search = pass_option_bool(pc, "search"),
               .max_slots = (int)pass_option_int(pc, "slots"),
               .cost.total = INFINITY};
  if (ki.mxu_step >= 0 && sched_column_dim(&ki, 0) < 0 && sched_column_dim(&ki, 1) < 0) {
    *why = "no columns for the array"; /* the vector unit computes it */
    return false;
  }
  for (int stream = 0; stream < (ki.mxu_step >= 0 ? 2 : 1); stream++) search_stream(&se, stream);
  pass_count(pc, "schedules tried", se.evaluated);
  *why = se.why;
  *out = se.best;
  *cost = se.cost;
  return isfinite(se.cost.total);
}

/* ---- the pass ---- */

static bool has_product(const IrOp *k, double *macs) {
  KernelInfo ki;
  const char *why;
  if (!sched_analyze(k, &ki, &why) || ki.mxu_step < 0) return false;
  const Step *st = &ki.step[ki.mxu_step];
  *macs = 1;
  for (int d = 0; d < ki.k.ndims; d++)
    if ((st->par | st->red) >> d & 1) *macs *= (double)ki.k.extent[d];
  return true;
}

static void use_vector_unit(PassContext *pc, IrOp *k, bool use) {
  ir_set_attr(k, "engine", use ? ir_attr_str(pc->module, "vpu") : NULL);
}

/* The array's schedule, or the vector unit's where the array cannot or is slower: products with
 * little to share, such as depthwise convolutions, leave most of the array idle. The vector unit is
 * only tried when its lower bound, two loads and two operations a product, beats what was found. */
static bool search_engines(PassContext *pc, IrOp *k, Schedule *s, Predicted *cost, int *phases,
                           const char **why) {
  double macs;
  bool product = has_product(k, &macs), found = search_kernel(pc, k, s, cost, phases, why);
  if (!product ||
      (found && cost->total < 4 * macs / (double)(pc->machine->vpu_lanes * pc->machine->vpu_issue)))
    return found;
  Schedule vector;
  Predicted vector_cost;
  use_vector_unit(pc, k, true);
  bool better = search_kernel(pc, k, &vector, &vector_cost, phases, why) &&
                (!found || vector_cost.total < 0.95 * cost->total);
  if (!better) {
    if (found) use_vector_unit(pc, k, false);
    return found;
  }
  *s = vector, *cost = vector_cost;
  pass_count(pc, "products on the vector unit", 1);
  return true;
}

static PassStatus tile_kernel(PassContext *pc, IrOp *k) {
  Schedule s;
  Predicted cost;
  int phases = 1;
  const char *why = NULL;
  while (!search_engines(pc, k, &s, &cost, &phases, &why)) {
    IrOp *first, *rest;
    if (phases < 2 || !sched_split(pc, k, &first, &rest)) {
      diag_error(pc->diag, k->loc, "E-tile",
                 "this operation does not fit machine '%s' at any tile size: it needs %s",
                 pc->machine->name, why ? why : "more than there is");
      return PASS_FAILED;
    }
    pass_count(pc, "kernels split", 1);
    if (tile_kernel(pc, first) != PASS_OK) return PASS_FAILED;
    k = rest;
  }
  sched_write(k, &s, (int)ir_attr(k, "dims")->array.n);
  ir_set_attr(k, "predicted", ir_attr_float(pc->module, round(cost.total)));
  pass_count(pc, "kernels", 1);
  return PASS_OK;
}

static bool asks_index(const IrOp *kernel) {
  for (const IrOp *op = kernel->region->first; op; op = op->next)
    if (op->kind == IR_OP_INDEX) return true;
  return false;
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  int64_t slots = pass_option_int(pc, "slots");
  if (slots != 1 && slots != 2) {
    diag_error(pc->diag, f->loc, "E-option", "pass `tile`: slots is 1 or 2, not %lld",
               (long long)slots);
    return PASS_FAILED;
  }
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    if (op->kind != IR_OP_KERNEL || ir_attr(op, "tile")) continue;
    if (asks_index(op)) {
      diag_error(pc->diag, op->loc, "E-tile",
                 "a kernel computes with its own indices: run the pass 'legalize' before 'tile'");
      return PASS_FAILED;
    }
    if (tile_kernel(pc, op) != PASS_OK) return PASS_FAILED;
  }
  return PASS_OK;
}

static const PassOption options[] = {
    {"search", "bool", "true",
     "search for the smallest predicted time; false: the largest tiles that fit"},
    {"slots", "int", "2",
     "copies of each block: 2 overlaps loading, computing and storing, 1 does not"},
    {NULL, NULL, NULL, NULL}};

const Pass pass_tile = {.abi = NPU_PASS_ABI,
                        .size = sizeof(Pass),
                        .name = "tile",
                        .help = "tile sizes, loop order and slots by predicted time",
                        .from = IR_NEST,
                        .to = IR_NEST,
                        .options = options,
                        .run = run};
