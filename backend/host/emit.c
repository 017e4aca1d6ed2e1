/* Loop nests of one kernel as LLVM IR. Every body scalar is computed in the outermost loop that
 * fixes all its dimensions, addresses are advanced loop by loop, and vectors are written as
 * vectors: little is left for LLVM's optimizer, which is why none of its passes need to run. */
#include "backend/host/host_internal.h"
#include <string.h>

typedef struct {
  HostGen *g;
  const HostKernel *k;
  Arena *arena;
  LLVMValueRef *base;              /* per access: byte pointer */
  LLVMValueRef *cursor;            /* per access: byte offset of the loops open so far, NULL: 0 */
  LLVMValueRef start[IR_MAX_DIMS]; /* of the group's tile, NULL: 0 */
  LLVMValueRef index[IR_MAX_DIMS]; /* in the tile, NULL: 0 */
  LLVMValueRef vector_trip;        /* number of the vector loop's trip when it is a reduction */
  const HostStage *s;
  HostVal (*memo)[HOST_MAX_COMBOS]; /* per node and combination of unrolled copies */
  LLVMValueRef acc[HOST_MAX_COMBOS];
  bool in_block; /* acc are sums of a block, as f32 */
} Emit;

typedef struct {
  bool carries, group;     /* accumulators from trip to trip; around all stages */
  LLVMValueRef first, end; /* trips, NULL: all */
  LLVMBasicBlockRef head;
  LLVMValueRef trip, phi[HOST_MAX_COMBOS];
  LLVMValueRef *saved;
} OpenLoop;

/* ---- unrolled copies ---- */

static int combos(const HostStage *s) {
  int n = 1;
  for (int i = 0; i < s->nunroll; i++) n *= (int)s->unroll[i].count;
  return n;
}

/* The same combination with copies the dims do not move with set to 0: what the value is shared
 * under. */
static int combo_of(const HostStage *s, uint32_t dims, int combo) {
  int out = 0, scale = 1;
  for (int i = 0; i < s->nunroll; i++) {
    int count = (int)s->unroll[i].count, c = combo % count;
    combo /= count;
    if (host_has_dim(dims, s->unroll[i].dim)) out += c * scale;
    scale *= count;
  }
  return out;
}

/* Distance of a copy from the first along dim. */
static int64_t combo_shift(const HostStage *s, int dim, int combo) {
  int64_t shift = 0;
  for (int i = 0; i < s->nunroll; i++) {
    int64_t count = s->unroll[i].count, c = combo % count;
    combo /= (int)count;
    if (s->unroll[i].dim == dim) shift += c * s->unroll[i].unit;
  }
  return shift;
}

/* ---- loops ---- */

static LLVMValueRef add(Emit *e, LLVMValueRef a, LLVMValueRef b) {
  return !a ? b : !b ? a : LLVMBuildAdd(e->g->b, a, b, "");
}

static LLVMValueRef scale(Emit *e, LLVMValueRef v, int64_t by) {
  return !v || by == 0 ? NULL : by == 1 ? v : LLVMBuildMul(e->g->b, v, host_int(e->g, by), "");
}

static LLVMValueRef trip_start(Emit *e, const HostLoop *l, LLVMValueRef trip) {
  LLVMValueRef start = scale(e, trip, l->step);
  if (l->trips * l->step == l->extent) return start;
  LLVMValueRef last = host_int(e->g, l->extent - l->step);
  LLVMValueRef over = LLVMBuildICmp(e->g->b, LLVMIntSGT, start, last, "");
  return LLVMBuildSelect(e->g->b, over, last, start, "");
}

static bool access_used(const Emit *e, int access) {
  const HostKernel *k = e->k;
  if (!e->s) return true;
  for (int n = 0; n < k->nnodes; n++)
    if (k->nodes[n].access == access && (e->s->needed[n] || e->s->reduce == n)) return true;
  for (int i = 0; i < e->s->nresults; i++)
    if (k->info.nin + e->s->results[i] == access) return true;
  return false;
}

static void advance_cursors(Emit *e, int dim, LLVMValueRef start, bool group) {
  for (int i = 0; i < e->k->naccess; i++) {
    const HostAccess *x = &e->k->access[i];
    if ((group && x->relative) || !x->stride[dim] || !access_used(e, i)) continue;
    int64_t bytes = host_wrap_mul(x->stride[dim], (int64_t)dtype_size(x->dtype));
    e->cursor[i] = add(e, e->cursor[i], scale(e, start, bytes));
  }
}

static void trips_begin(Emit *e, OpenLoop *o, LLVMValueRef first, const char *name) {
  HostGen *g = e->g;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(g->b);
  o->head = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
  LLVMBuildBr(g->b, o->head);
  LLVMPositionBuilderAtEnd(g->b, o->head);
  o->trip = LLVMBuildPhi(g->b, g->i64, name);
  LLVMAddIncoming(o->trip, &first, &before, 1);
  for (int c = 0; o->carries && c < combos(e->s); c++) {
    o->phi[c] = LLVMBuildPhi(g->b, LLVMTypeOf(e->acc[c]), "");
    LLVMAddIncoming(o->phi[c], &e->acc[c], &before, 1);
    e->acc[c] = o->phi[c];
  }
}

static void trips_end(Emit *e, OpenLoop *o, LLVMValueRef end) {
  HostGen *g = e->g;
  LLVMValueRef next = LLVMBuildAdd(g->b, o->trip, host_int(g, 1), "");
  LLVMValueRef more = LLVMBuildICmp(g->b, LLVMIntSLT, next, end, "");
  LLVMBasicBlockRef latch = LLVMGetInsertBlock(g->b);
  LLVMBasicBlockRef exit = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
  LLVMBuildCondBr(g->b, more, o->head, exit);
  LLVMAddIncoming(o->trip, &next, &latch, 1);
  for (int c = 0; o->carries && c < combos(e->s); c++)
    LLVMAddIncoming(o->phi[c], &e->acc[c], &latch, 1);
  LLVMPositionBuilderAtEnd(g->b, exit);
}

static void loop_open(Emit *e, const HostLoop *l, OpenLoop *o) {
  size_t bytes = sizeof(LLVMValueRef) * (size_t)e->k->naccess;
  o->saved = arena_copy(e->arena, e->cursor, bytes);
  LLVMValueRef start = NULL;
  if (l->trips > 1) {
    trips_begin(e, o, o->first ? o->first : host_int(e->g, 0), e->k->info.name[l->dim]);
    start = trip_start(e, l, o->trip);
  }
  if (o->carries && l->dim == e->s->vdim) e->vector_trip = o->trip;
  if (o->group)
    e->start[l->dim] = start;
  else
    e->index[l->dim] = start;
  advance_cursors(e, l->dim, start, o->group);
}

static void loop_close(Emit *e, const HostLoop *l, OpenLoop *o) {
  memcpy(e->cursor, o->saved, sizeof(LLVMValueRef) * (size_t)e->k->naccess);
  if (l->trips > 1) trips_end(e, o, o->end ? o->end : host_int(e->g, l->trips));
}

/* ---- memory ---- */

static LLVMValueRef address(Emit *e, int access, LLVMValueRef offset, int64_t bytes,
                            LLVMTypeRef type) {
  HostGen *g = e->g;
  LLVMValueRef p = e->base[access];
  if (offset) p = LLVMBuildGEP2(g->b, g->i8, p, &offset, 1, "");
  LLVMValueRef c = host_int(g, bytes);
  if (bytes) p = LLVMBuildGEP2(g->b, g->i8, p, &c, 1, "");
  return LLVMBuildBitCast(g->b, p, LLVMPointerType(type, 0), "");
}

static LLVMValueRef load(Emit *e, LLVMTypeRef type, LLVMValueRef p) {
  LLVMValueRef v = LLVMBuildLoad2(e->g->b, type, p, "");
  LLVMSetAlignment(v, 1); /* mapped weights lie anywhere */
  return v;
}

static void store(Emit *e, LLVMValueRef v, LLVMValueRef p) {
  LLVMSetAlignment(LLVMBuildStore(e->g->b, v, p), 1);
}

static int lanes_of(const Emit *e, uint32_t dims) {
  return e->s->lanes > 1 && host_has_dim(dims, e->s->vdim) ? e->s->lanes : 1;
}

/* Bytes of the copy's place behind the cursor. */
static int64_t const_bytes(const Emit *e, const HostAccess *x, int combo) {
  int64_t at = x->offset;
  for (int i = 0; i < e->s->nunroll; i++) /* the unrolled dimensions are different ones */
    at = host_wrap_add(at, host_wrap_mul(x->stride[e->s->unroll[i].dim],
                                         combo_shift(e->s, e->s->unroll[i].dim, combo)));
  return host_wrap_mul(at, (int64_t)dtype_size(x->dtype));
}

static HostVal node(Emit *e, int n, int combo);

/* Byte offset through index operands: scalar in *offset, per lane in *lanes (vector), NULL when
 * none. */
static void indirect_offset(Emit *e, const HostAccess *x, int combo, LLVMValueRef *offset,
                            LLVMValueRef *lanes) {
  HostGen *g = e->g;
  for (int i = 0; i < x->nindirect; i++) {
    LLVMValueRef v = node(e, x->indirect[i].operand, combo).v;
    bool vector = LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind;
    int64_t bytes = x->indirect[i].stride * (int64_t)dtype_size(x->dtype);
    LLVMTypeRef wide = vector ? LLVMVectorType(g->i64, (unsigned)e->s->lanes) : g->i64;
    v = LLVMBuildSExt(g->b, v, wide, "");
    v = LLVMBuildMul(g->b, v, host_splat(g, host_int(g, bytes), vector ? e->s->lanes : 1), "");
    if (vector)
      *lanes = add(e, *lanes, v);
    else
      *offset = add(e, *offset, v);
  }
}

static LLVMValueRef lane_address(Emit *e, int access, LLVMValueRef offset, LLVMValueRef per_lane,
                                 int lane, int64_t bytes) {
  HostGen *g = e->g;
  const HostAccess *x = &e->k->access[access];
  LLVMTypeRef type = host_llvm_type(g, x->dtype, 1);
  if (per_lane) {
    LLVMValueRef at = LLVMConstInt(g->i32, (unsigned long long)lane, 0);
    offset = add(e, offset, LLVMBuildExtractElement(g->b, per_lane, at, ""));
  }
  bytes += x->stride[e->s->vdim] * lane * (int64_t)dtype_size(x->dtype);
  return address(e, access, offset, bytes, type);
}

static LLVMValueRef coordinate(Emit *e, int dim, int combo) {
  LLVMValueRef at = add(e, e->start[dim], e->index[dim]);
  int64_t shift = combo_shift(e->s, dim, combo);
  return shift || !at ? add(e, at, host_int(e->g, shift)) : at;
}

static LLVMValueRef read_guarded(Emit *e, int access, int combo, LLVMValueRef offset,
                                 LLVMValueRef per_lane) {
  HostGen *g = e->g;
  const HostAccess *x = &e->k->access[access];
  HostRead r = {.base = e->base[access],
                .per_lane = per_lane,
                .lanes = lanes_of(e, x->dims),
                .vdim = e->s->vdim,
                .lane_bytes = host_wrap_mul(x->stride[e->s->vdim], (int64_t)dtype_size(x->dtype))};
  r.offset = add(e, offset, host_int(g, const_bytes(e, x, combo)));
  for (int i = 0; i < x->nguards; i++) {
    r.coord[i] = host_int(g, x->guard[i].cst);
    for (int d = 0; d < e->k->info.ndims; d++)
      if (x->guard[i].coef[d])
        r.coord[i] = add(e, r.coord[i], scale(e, coordinate(e, d, combo), x->guard[i].coef[d]));
  }
  return host_emit_guarded(g, x, &r);
}

static LLVMValueRef read_access(Emit *e, int access, int combo) {
  HostGen *g = e->g;
  const HostAccess *x = &e->k->access[access];
  LLVMValueRef offset = e->cursor[access], per_lane = NULL;
  indirect_offset(e, x, combo, &offset, &per_lane);
  if (x->nguards) return read_guarded(e, access, combo, offset, per_lane);
  int64_t bytes = const_bytes(e, x, combo);
  int lanes = lanes_of(e, x->dims);
  int64_t stride = lanes > 1 ? x->stride[e->s->vdim] : 0;
  if (!per_lane && stride <= 1 && stride >= 0) {
    LLVMTypeRef type = host_llvm_type(g, x->dtype, stride ? lanes : 1);
    return load(e, type, address(e, access, offset, bytes, type));
  }
  LLVMTypeRef type = host_llvm_type(g, x->dtype, 1);
  LLVMValueRef v = LLVMGetUndef(host_llvm_type(g, x->dtype, lanes));
  for (int i = 0; i < lanes; i++) {
    LLVMValueRef one = load(e, type, lane_address(e, access, offset, per_lane, i, bytes));
    v = LLVMBuildInsertElement(g->b, v, one, LLVMConstInt(g->i32, (unsigned long long)i, 0), "");
  }
  return v;
}

static void write_access(Emit *e, int access, int combo, LLVMValueRef v) {
  HostGen *g = e->g;
  const HostAccess *x = &e->k->access[access];
  int64_t bytes = const_bytes(e, x, combo);
  int lanes = lanes_of(e, x->dims);
  v = host_splat(g, v, lanes);
  if (lanes == 1 || x->stride[e->s->vdim] == 1) {
    store(e, v, address(e, access, e->cursor[access], bytes, host_llvm_type(g, x->dtype, lanes)));
    return;
  }
  for (int i = 0; i < lanes; i++) {
    LLVMValueRef one =
        LLVMBuildExtractElement(g->b, v, LLVMConstInt(g->i32, (unsigned long long)i, 0), "");
    store(e, one, lane_address(e, access, e->cursor[access], NULL, i, bytes));
  }
}

/* ---- nodes ---- */

static LLVMValueRef iota(LLVMTypeRef type, int lanes) {
  LLVMValueRef v[HOST_LANES];
  for (int i = 0; i < lanes; i++) v[i] = LLVMConstInt(type, (unsigned long long)i, 0);
  return LLVMConstVector(v, (unsigned)lanes);
}

static LLVMValueRef emit_index(Emit *e, int dim, int combo) {
  HostGen *g = e->g;
  LLVMValueRef at = LLVMBuildTrunc(g->b, coordinate(e, dim, combo), g->i32, "");
  int lanes = lanes_of(e, 1u << dim);
  if (lanes == 1) return at;
  return LLVMBuildAdd(g->b, host_splat(g, at, lanes), iota(g->i32, lanes), "");
}

static HostVal emit_node(Emit *e, int n, int combo) {
  const HostNode *x = &e->k->nodes[n];
  if (x->access >= 0) return (HostVal){.v = read_access(e, x->access, combo)};
  if (x->op->kind == IR_OP_INDEX)
    return (HostVal){.v = emit_index(e, (int)ir_get_int(x->op, "dim", 0), combo)};
  if (x->op->kind == IR_OP_CONSTANT)
    return (HostVal){.v = host_const(e->g, x->dtype, ir_get_float(x->op, "value", 0))};
  HostVal arg[3] = {{0}};
  for (int i = 0; i < x->narg; i++) arg[i] = node(e, x->arg[i], combo);
  return host_emit_op(e->g, x->op, e->k->nodes[x->arg[0]].dtype, x->dtype, x->narg, arg);
}

/* The node's value in a copy; computed where first asked for. */
static HostVal node(Emit *e, int n, int combo) {
  HostVal *m = &e->memo[n][combo_of(e->s, e->k->nodes[n].dims, combo)];
  if (!m->v) *m = emit_node(e, n, combo);
  return *m;
}

/* Computes what the loops open so far fix: those of the stage before `level`. */
static void emit_fixed(Emit *e, int level) {
  const HostStage *s = e->s;
  uint32_t open = 0;
  for (int d = 0; d < e->k->info.ndims; d++) open |= 1u << d;
  for (int i = level; i < s->nloops; i++) open &= ~(1u << s->loops[i].dim);
  for (int n = 0; n < e->k->nnodes; n++) {
    if (!s->needed[n] || (e->k->nodes[n].dims & ~open)) continue;
    for (int c = 0; c < combos(s); c++) node(e, n, c);
  }
}

/* ---- stages ---- */

static const char *reduce_op(const Emit *e) {
  return ir_get_str(e->k->nodes[e->s->reduce].op, "op", "sum");
}

static LLVMValueRef identity(const Emit *e) {
  DType t = e->k->nodes[e->s->reduce].dtype;
  return e->in_block ? host_const(e->g, t, 0) : host_identity(e->g, reduce_op(e), t);
}

static void init_accumulators(Emit *e) {
  bool vector = e->s->lanes > 1; /* in lanes of the result, or of partial results to fold */
  for (int c = 0; c < combos(e->s); c++)
    e->acc[c] = host_splat(e->g, identity(e), vector ? e->s->lanes : 1);
}

/* Lanes of an overlapping last trip that were counted before. */
static LLVMValueRef drop_counted(Emit *e, const HostLoop *l, LLVMValueRef x) {
  HostGen *g = e->g;
  if (l->trips * l->step == l->extent) return x;
  int lanes = e->s->lanes;
  LLVMValueRef due = LLVMBuildMul(g->b, e->vector_trip, host_int(g, l->step), "");
  LLVMValueRef done = LLVMBuildSub(g->b, due, e->index[l->dim], "");
  done = host_splat(g, LLVMBuildTrunc(g->b, done, g->i32, ""), lanes);
  LLVMValueRef fresh = LLVMBuildICmp(g->b, LLVMIntSGE, iota(g->i32, lanes), done, "");
  return LLVMBuildSelect(g->b, fresh, x, host_splat(g, identity(e), lanes), "");
}

static void accumulate(Emit *e) {
  const HostStage *s = e->s;
  const HostNode *r = &e->k->nodes[s->reduce];
  bool folded = s->lanes > 1 && host_has_dim(s->red, s->vdim);
  for (int c = 0; c < combos(s); c++) {
    LLVMValueRef x = host_value(e->g, node(e, r->arg[0], c));
    if (!e->in_block) x = host_to_accumulator(e->g, reduce_op(e), r->dtype, x);
    x = host_splat(e->g, x, s->lanes);
    if (folded) x = drop_counted(e, &s->loops[s->nloops - 1], x);
    e->acc[c] = host_emit_combine(e->g, reduce_op(e), r->dtype, e->acc[c], x);
  }
}

/* n lanes of v from `first` on; one lane is a scalar. */
static LLVMValueRef take_lanes(HostGen *g, LLVMValueRef v, int first, int n) {
  LLVMValueRef at[HOST_LANES];
  for (int i = 0; i < n; i++)
    at[i] = LLVMConstInt(g->i32, (unsigned long long)first + (unsigned long long)i, 0);
  if (n == 1) return LLVMBuildExtractElement(g->b, v, at[0], "");
  LLVMValueRef undef = LLVMGetUndef(LLVMTypeOf(v));
  return LLVMBuildShuffleVector(g->b, v, undef, LLVMConstVector(at, (unsigned)n), "");
}

/* Upper half of the lanes onto the lower, until one is left. */
static LLVMValueRef fold_lanes(Emit *e, LLVMValueRef v, int lanes) {
  DType t = e->k->nodes[e->s->reduce].dtype;
  for (int half = lanes / 2; half > 0; half /= 2)
    v = host_emit_combine(e->g, reduce_op(e), t, take_lanes(e->g, v, 0, half),
                          take_lanes(e->g, v, half, half));
  return v;
}

static void finish_reduction(Emit *e) {
  const HostStage *s = e->s;
  bool folded = s->lanes > 1 && host_has_dim(s->red, s->vdim);
  for (int c = 0; c < combos(s); c++) {
    LLVMValueRef v = folded ? fold_lanes(e, e->acc[c], s->lanes) : e->acc[c];
    v = host_from_accumulator(e->g, reduce_op(e), e->k->nodes[s->reduce].dtype, v);
    write_access(e, e->k->nodes[s->reduce].access, c, v);
  }
}

static void write_results(Emit *e) {
  const HostStage *s = e->s;
  for (int i = 0; i < s->nresults; i++) {
    int r = s->results[i];
    for (int c = 0; c < combos(s); c++)
      write_access(e, e->k->info.nin + r, c, host_value(e->g, node(e, e->k->yield[r], c)));
  }
}

static void emit_loops(Emit *e, int level);

static void emit_loop(Emit *e, int level, OpenLoop o) {
  const HostLoop *l = &e->s->loops[level];
  loop_open(e, l, &o);
  emit_loops(e, level + 1);
  loop_close(e, l, &o);
}

/* The loops from level on, a block of them at a time: added up as f32, then widened and added. */
static void emit_blocks(Emit *e, int level) {
  HostGen *g = e->g;
  const HostStage *s = e->s;
  const HostNode *r = &e->k->nodes[s->reduce];
  OpenLoop blocks = {.carries = true}, inner = {.carries = true};
  int64_t trips = s->loops[level].trips;
  bool cut = s->block_trips < trips;
  if (cut) {
    trips_begin(e, &blocks, host_int(g, 0), "block");
    inner.first = scale(e, blocks.trip, s->block_trips);
    LLVMValueRef all = host_int(g, trips), end = add(e, inner.first, host_int(g, s->block_trips));
    LLVMValueRef over = LLVMBuildICmp(g->b, LLVMIntSGT, end, all, "");
    inner.end = LLVMBuildSelect(g->b, over, all, end, "");
  }
  LLVMValueRef wide[HOST_MAX_COMBOS];
  memcpy(wide, e->acc, sizeof wide);
  e->in_block = true;
  init_accumulators(e);
  emit_loop(e, level, inner);
  e->in_block = false;
  for (int c = 0; c < combos(s); c++) {
    LLVMValueRef sum = host_to_accumulator(g, reduce_op(e), r->dtype, e->acc[c]);
    e->acc[c] = host_emit_combine(g, reduce_op(e), r->dtype, wide[c], sum);
  }
  if (cut) trips_end(e, &blocks, host_int(g, ceil_div(trips, s->block_trips)));
}

static void emit_loops(Emit *e, int level) {
  const HostStage *s = e->s;
  bool reduction = s->reduce >= 0;
  emit_fixed(e, level);
  if (reduction && level == s->npar) init_accumulators(e);
  if (level == s->nloops && reduction)
    accumulate(e);
  else if (level == s->nloops)
    write_results(e);
  else if (level == s->block_level && s->block_trips)
    emit_blocks(e, level);
  else
    emit_loop(e, level, (OpenLoop){.carries = level >= s->npar});
  if (reduction && level == s->npar) finish_reduction(e);
}

static void emit_stage(Emit *e, const HostStage *s) {
  e->s = s;
  e->memo = arena_alloc(e->arena, sizeof *e->memo * (size_t)e->k->nnodes);
  memset(e->index, 0, sizeof e->index);
  emit_loops(e, 0);
  e->s = NULL;
}

static void emit_group(Emit *e, int level) {
  if (level == e->k->ngroup) {
    for (int i = 0; i < e->k->nstages; i++) emit_stage(e, &e->k->stages[i]);
    return;
  }
  OpenLoop o = {.group = true};
  loop_open(e, &e->k->group_loops[level], &o);
  emit_group(e, level + 1);
  loop_close(e, &e->k->group_loops[level], &o);
}

static LLVMValueRef load_base(HostGen *g, int buf) {
  LLVMTypeRef bytes = LLVMPointerType(g->i8, 0);
  LLVMValueRef at = host_int(g, buf);
  LLVMValueRef slot = LLVMBuildGEP2(g->b, bytes, LLVMGetParam(g->fn, 0), &at, 1, "");
  return LLVMBuildLoad2(g->b, bytes, slot, "");
}

void host_emit_kernel(HostGen *g, const HostKernel *k, const char *symbol, Arena *arena) {
  LLVMTypeRef bufs = LLVMPointerType(LLVMPointerType(g->i8, 0), 0);
  g->fn =
      LLVMAddFunction(g->mod, symbol, LLVMFunctionType(LLVMVoidTypeInContext(g->ctx), &bufs, 1, 0));
  LLVMAttributeRef wide = LLVMCreateStringAttribute(g->ctx, "prefer-vector-width", 19, "512", 3);
  LLVMAddAttributeAtIndex(g->fn, (LLVMAttributeIndex)LLVMAttributeFunctionIndex, wide);
  LLVMPositionBuilderAtEnd(g->b, LLVMAppendBasicBlockInContext(g->ctx, g->fn, ""));
  Emit e = {.g = g, .k = k, .arena = arena};
  e.base = ARENA_ARRAY(arena, LLVMValueRef, k->naccess);
  e.cursor = ARENA_ARRAY(arena, LLVMValueRef, k->naccess);
  for (int i = 0; i < k->naccess; i++) e.base[i] = load_base(g, k->access[i].buf);
  emit_group(&e, 0);
  LLVMBuildRetVoid(g->b);
}
