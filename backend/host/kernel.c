/* Analysis of one kernel: the body as numbered nodes, its operands as accesses, its reductions and
 * results as stages; and the preparation of operands. An operand that may be read out of range is
 * copied into a padded buffer first where that is not much larger than itself, so that the loops
 * need not test coordinates; elsewhere its reads are guarded. A constant whose vector dimension
 * does not lie contiguous is repacked at compile time. */
#include "backend/host/host_internal.h"
#include <string.h>

/* How an operand is stored for this kernel. */
typedef struct {
  int rank, order[IR_MAX_RANK];            /* logical axis at each position, outermost first */
  int64_t lo[IR_MAX_RANK], n[IR_MAX_RANK]; /* per logical axis: first coordinate and how many */
  uint32_t outside;                        /* axes on which it may be read out of range */
  bool padded, packed;                     /* padded: copied with what lies around it */
} Prep;

/* How much a padded copy may be larger than what it copies, and what is small in any case. */
enum {
  PAD_RATIO = 4,
  PAD_SMALL = 1 << 16,
};

typedef struct {
  HostProgram *p;
  DiagEngine *diag;
  HostKernel *k;
  const HostOperand *operands;
  Prep *prep;
  bool failed;
} Build;

/* ---- nodes ---- */

static int count_ops(const IrOp *op) {
  int n = 0;
  for (const IrOp *o = op->region->first; o; o = o->next) n++;
  return n;
}

static uint32_t map_dims(const HostKernel *k, const IrMap *map, int depth) {
  uint32_t dims = 0;
  for (int a = 0; a < map->rank; a++) {
    if (map->axis[a].index >= 0) {
      if (depth < k->info.nin) /* an index may be indexed itself, never by itself */
        dims |= map_dims(k, ir_kernel_in_map(k->op, map->axis[a].index), depth + 1);
      continue;
    }
    for (int d = 0; d < k->info.ndims; d++)
      if (map->axis[a].coef[d]) dims |= 1u << d;
  }
  return dims;
}

static int node_of(const Build *b, const IrValue *v, const IrOp *const *ops) {
  const HostKernel *k = b->k;
  if (!v->def) return v->index;
  for (int i = k->info.nin; i < k->nnodes; i++)
    if (ops[i] == v->def) return i;
  return -1;
}

static void build_nodes(Build *b) {
  HostKernel *k = b->k;
  int max = k->info.nin + count_ops(k->op);
  k->nodes = ARENA_ARRAY(b->p->arena, HostNode, max);
  const IrOp **ops = ARENA_ARRAY(b->p->arena, const IrOp *, max);
  for (int i = 0; i < k->info.nin; i++) {
    k->nodes[i] = (HostNode){.dims = map_dims(k, ir_kernel_in_map(k->op, i), 0),
                             .dtype = k->op->region->args[i]->type->dtype,
                             .access = i};
  }
  k->nnodes = k->info.nin;
  k->yield = ARENA_ARRAY(b->p->arena, int, k->info.nout + 1);
  for (const IrOp *o = k->op->region->first; o; o = o->next) {
    if (o->kind == IR_OP_YIELD) {
      for (int i = 0; i < k->info.nout; i++) k->yield[i] = node_of(b, ir_operand(o, i), ops);
      continue;
    }
    HostNode n = {.op = o, .narg = o->noperands, .dtype = o->results[0].type->dtype, .access = -1};
    for (int i = 0; i < o->noperands; i++) {
      n.arg[i] = node_of(b, ir_operand(o, i), ops);
      n.dims |= k->nodes[n.arg[i]].dims;
    }
    if (o->kind == IR_OP_INDEX) n.dims = 1u << ir_get_int(o, "dim", 0);
    if (o->kind == IR_OP_REDUCE) {
      int64_t over[IR_MAX_DIMS];
      int nover = ir_get_ints(o, "over", over, IR_MAX_DIMS);
      for (int i = 0; i < nover; i++) n.dims &= ~(1u << over[i]);
    }
    ops[k->nnodes] = o;
    k->nodes[k->nnodes++] = n;
  }
}

/* ---- stages ---- */

static void mark_needed(const HostKernel *k, HostStage *s, int node) {
  if (s->needed[node]) return;
  s->needed[node] = true;
  const HostNode *n = &k->nodes[node];
  if (!n->op) {
    const IrMap *map = ir_kernel_in_map(k->op, node);
    for (int a = 0; a < map->rank; a++)
      if (map->axis[a].index >= 0) mark_needed(k, s, map->axis[a].index);
    return;
  }
  if (n->op->kind == IR_OP_REDUCE) return; /* read from its temporary */
  for (int i = 0; i < n->narg; i++) mark_needed(k, s, n->arg[i]);
}

static HostStage *stage_new(Build *b) {
  HostStage *s = &b->k->stages[b->k->nstages++];
  s->reduce = -1;
  s->needed = ARENA_ARRAY(b->p->arena, bool, b->k->nnodes);
  s->results = ARENA_ARRAY(b->p->arena, int, b->k->info.nout);
  return s;
}

static uint32_t out_dims(const HostKernel *k, int result) {
  return ir_map_dims(ir_kernel_out_map(k->op, result));
}

static void build_stages(Build *b) {
  HostKernel *k = b->k;
  int nreduce = 0;
  for (int i = 0; i < k->nnodes; i++)
    if (k->nodes[i].op && k->nodes[i].op->kind == IR_OP_REDUCE) nreduce++;
  k->stages = ARENA_ARRAY(b->p->arena, HostStage, nreduce + k->info.nout);
  for (int i = 0; i < k->nnodes; i++) {
    HostNode *n = &k->nodes[i];
    if (!n->op || n->op->kind != IR_OP_REDUCE) continue;
    HostStage *s = stage_new(b);
    s->reduce = i;
    s->par = n->dims;
    int64_t over[IR_MAX_DIMS];
    int nover = ir_get_ints(n->op, "over", over, IR_MAX_DIMS);
    for (int j = 0; j < nover; j++) s->red |= 1u << over[j];
    mark_needed(k, s, n->arg[0]);
  }
  for (int r = 0; r < k->info.nout; r++) {
    HostStage *s = NULL;
    for (int i = nreduce; i < k->nstages; i++)
      if (k->stages[i].par == out_dims(k, r)) s = &k->stages[i];
    if (!s) s = stage_new(b);
    s->par = out_dims(k, r);
    s->results[s->nresults++] = r;
    mark_needed(k, s, k->yield[r]);
  }
}

/* ---- accesses ---- */

static void axis_range(const HostKernel *k, const IrAffine *a, int64_t *lo, int64_t *hi) {
  *lo = *hi = a->cst;
  for (int d = 0; d < k->info.ndims; d++) {
    int64_t far = a->coef[d] * (k->info.extent[d] - 1);
    if (far < 0)
      *lo += far;
    else
      *hi += far;
  }
}

static bool worth_padding(const Prep *p, const IrType *t) {
  int64_t n = 1, own = ir_type_elements(t);
  for (int a = 0; a < p->rank; a++)
    if (!mul_i64(n, p->n[a], &n)) return false;
  return n <= PAD_SMALL || n / PAD_RATIO <= own;
}

static void prep_init(Build *b, int i) {
  const HostKernel *k = b->k;
  const IrMap *map = ir_kernel_in_map(k->op, i);
  const HostOperand *o = &b->operands[i];
  Prep *p = &b->prep[i];
  p->rank = map->rank;
  ir_layout(ir_operand(k->op, i), p->order);
  for (int a = 0; a < map->rank; a++) {
    int64_t lo = 0, hi = o->type->shape[a] - 1;
    if (map->axis[a].index < 0) axis_range(k, &map->axis[a], &lo, &hi);
    bool outside = lo < 0 || hi >= o->type->shape[a];
    p->lo[a] = outside ? lo : 0;
    p->n[a] = outside ? hi - lo + 1 : o->type->shape[a];
    p->outside |= (uint32_t)outside << a;
  }
  p->padded = p->outside && worth_padding(p, o->type);
  for (int a = 0; a < map->rank && !p->padded; a++) {
    p->lo[a] = 0;
    p->n[a] = o->type->shape[a];
  }
  double pad;
  if (p->outside && !ir_kernel_pad(k->op, i, &pad)) {
    diag_error(
        b->diag, k->op->loc, "E-host-range",
        "operand %d of a kernel is read out of range but has no pad value; give it one in `pads`",
        i);
    b->failed = true;
  }
}

static void prep_strides(const Build *b, int i, int64_t stride[IR_MAX_RANK]) {
  const Prep *p = &b->prep[i];
  if (!p->padded && !p->packed) {
    memcpy(stride, b->operands[i].stride, sizeof(int64_t) * IR_MAX_RANK);
    return;
  }
  int64_t s = 1;
  for (int j = p->rank - 1; j >= 0; j--) {
    stride[p->order[j]] = s;
    s *= p->n[p->order[j]];
  }
}

static void guard_access(Build *b, int i) {
  HostKernel *k = b->k;
  const IrMap *map = ir_kernel_in_map(k->op, i);
  HostAccess *x = &k->access[i];
  x->guard = ARENA_ARRAY(b->p->arena, HostGuard, map->rank + 1);
  ir_kernel_pad(k->op, i, &x->pad);
  for (int a = 0; a < map->rank; a++) {
    if (!(b->prep[i].outside >> a & 1)) continue;
    HostGuard *g = &x->guard[x->nguards++];
    *g = (HostGuard){.cst = map->axis[a].cst, .size = b->operands[i].type->shape[a]};
    memcpy(g->coef, map->axis[a].coef, sizeof g->coef);
  }
}

static void access_operand(Build *b, int i) {
  HostKernel *k = b->k;
  const IrMap *map = ir_kernel_in_map(k->op, i);
  const Prep *p = &b->prep[i];
  int64_t stride[IR_MAX_RANK];
  prep_strides(b, i, stride);
  HostAccess *x = &k->access[i];
  *x = (HostAccess){
      .buf = b->operands[i].buf, .dtype = b->operands[i].type->dtype, .dims = k->nodes[i].dims};
  for (int a = 0; a < map->rank; a++) {
    const IrAffine *f = &map->axis[a];
    x->offset = host_wrap_add(x->offset, host_wrap_mul(f->cst - p->lo[a], stride[a]));
    if (f->index >= 0) {
      if (stride[a] == 0) continue;
      x->indirect[x->nindirect].operand = f->index;
      x->indirect[x->nindirect++].stride = stride[a];
      continue;
    }
    for (int d = 0; d < k->info.ndims; d++)
      x->stride[d] = host_wrap_add(x->stride[d], host_wrap_mul(f->coef[d], stride[a]));
  }
  if (b->operands[i].splat && !p->padded) x->offset = 0;
  if (!p->padded) guard_access(b, i);
}

static void access_result(Build *b, int r, int buf) {
  HostKernel *k = b->k;
  const IrMap *map = ir_kernel_out_map(k->op, r);
  const IrValue *v = ir_result(k->op, r);
  int64_t stride[IR_MAX_RANK];
  host_strides(v, stride);
  HostAccess *x = &k->access[k->info.nin + r];
  *x = (HostAccess){.buf = buf, .dtype = v->type->dtype, .dims = out_dims(k, r)};
  for (int a = 0; a < map->rank; a++) {
    x->offset += map->axis[a].cst * stride[a];
    for (int d = 0; d < k->info.ndims; d++) x->stride[d] += map->axis[a].coef[d] * stride[a];
  }
}

/* Whether the kernel writes every element of the result. */
static bool covers(const HostKernel *k, int r) {
  int64_t n = 1;
  uint32_t dims = out_dims(k, r);
  for (int d = 0; d < k->info.ndims; d++)
    if (host_has_dim(dims, d)) n *= k->info.extent[d];
  return n == ir_type_elements(ir_result(k->op, r)->type);
}

/* ---- preparation ---- */

static HostCopy *prep_copy(Build *b, int i) {
  const Prep *p = &b->prep[i];
  const HostOperand *o = &b->operands[i];
  HostCopy *c = ARENA_NEW(b->p->arena, HostCopy);
  c->rank = p->rank;
  c->elsize = dtype_size(o->type->dtype);
  for (int j = 0; j < p->rank; j++) {
    int a = p->order[j];
    int64_t first = p->lo[a] < 0 ? -p->lo[a] : 0, end = o->type->shape[a] - p->lo[a];
    c->size[j] = p->n[a];
    c->lo[j] = first < p->n[a] ? first : p->n[a];
    c->hi[j] = end < p->n[a] ? end : p->n[a];
    if (c->hi[j] < c->lo[j]) c->hi[j] = c->lo[j];
    c->stride[j] = o->stride[a];
    c->offset += p->lo[a] * o->stride[a];
  }
  double pad = 0;
  if (ir_kernel_pad(b->k->op, i, &pad)) dtype_set(o->type->dtype, c->fill, 0, pad);
  return c;
}

static void prepare(Build *b, int i) {
  const Prep *p = &b->prep[i];
  const HostOperand *o = &b->operands[i];
  if (!p->padded && !p->packed) return;
  HostCopy *c = prep_copy(b, i);
  int64_t bytes = host_copy_bytes(c);
  if (o->constant) {
    void *data = arena_alloc(b->p->arena, (size_t)bytes);
    host_copy_run(c, data, o->constant);
    b->k->access[i].buf = host_buf_new(b->p, BUF_CONST, 0, data, bytes);
    return;
  }
  int buf = host_buf_temp(b->p, bytes);
  host_buf_use(b->p, o->buf);
  HostStep *s = host_step_new(b->p, STEP_COPY, b->k->op->loc);
  s->src = o->buf;
  s->dst = buf;
  s->copy = c;
  b->k->access[i].buf = buf;
}

static void add_checks(Build *b, int i) {
  HostKernel *k = b->k;
  const IrMap *map = ir_kernel_in_map(k->op, i);
  for (int a = 0; a < map->rank; a++) {
    const IrAffine *f = &map->axis[a];
    if (f->index < 0) continue;
    HostCheck *c = ARENA_NEW(b->p->arena, HostCheck);
    *c = (HostCheck){.access = k->access,
                     .extent = k->info.extent,
                     .operand = f->index,
                     .of = i,
                     .axis = a,
                     .cst = f->cst,
                     .size = b->operands[i].type->shape[a]};
    host_buf_use(b->p, k->access[f->index].buf);
    host_step_new(b->p, STEP_CHECK, k->op->loc)->check = c;
  }
}

/* Repacking pays when the constant is read several times over. */
static bool worth_packing(const Build *b, int i) {
  const HostKernel *k = b->k;
  const HostOperand *o = &b->operands[i];
  if (!o->constant || o->splat || k->access[i].nindirect) return false;
  double work = 1;
  for (int d = 0; d < k->info.ndims; d++) work *= (double)k->info.extent[d];
  return work >= 8.0 * (double)ir_type_elements(o->type);
}

/* The one axis dim d moves along, by single steps; -1 when it is not so. */
static int unit_axis(const IrMap *map, int d) {
  int found = -1;
  for (int a = 0; a < map->rank; a++) {
    if (map->axis[a].index >= 0 || map->axis[a].coef[d] == 0) continue;
    if (found >= 0 || map->axis[a].coef[d] != 1) return -1;
    found = a;
  }
  return found;
}

static bool *packable_table(const Build *b) {
  const HostKernel *k = b->k;
  bool *t = ARENA_ARRAY(b->p->arena, bool, (k->info.nin + 1) * IR_MAX_DIMS);
  for (int i = 0; i < k->info.nin; i++) {
    if (!worth_packing(b, i)) continue;
    for (int d = 0; d < k->info.ndims; d++)
      t[i * IR_MAX_DIMS + d] = unit_axis(ir_kernel_in_map(k->op, i), d) >= 0;
  }
  return t;
}

static void pack_for(Build *b, const HostStage *s, const bool *packable) {
  HostKernel *k = b->k;
  for (int i = 0; s->lanes > 1 && i < k->info.nin; i++) {
    int64_t stride = k->access[i].stride[s->vdim];
    if (!s->needed[i] || stride == 0 || stride == 1 || !packable[i * IR_MAX_DIMS + s->vdim])
      continue;
    Prep *p = &b->prep[i];
    int axis = unit_axis(ir_kernel_in_map(k->op, i), s->vdim), n = 0;
    for (int j = 0; j < p->rank; j++)
      if (p->order[j] != axis) p->order[n++] = p->order[j];
    p->order[n] = axis;
    p->packed = true;
    access_operand(b, i);
  }
}

/* ---- the whole ---- */

/* Order in which dimensions nest: as the first result is stored, then the others as written. */
static void rank_dims(HostKernel *k) {
  int n = 0, order[IR_MAX_RANK];
  for (int d = 0; d < k->info.ndims; d++) k->rank[d] = -1;
  ir_layout(ir_result(k->op, 0), order);
  const IrMap *map = ir_kernel_out_map(k->op, 0);
  for (int j = 0; j < map->rank; j++)
    for (int d = 0; d < k->info.ndims; d++)
      if (map->axis[order[j]].coef[d] && k->rank[d] < 0) k->rank[d] = n++;
  for (int d = 0; d < k->info.ndims; d++)
    if (k->rank[d] < 0) k->rank[d] = n++;
}

/* Places the temporaries in scratch memory; returns its size, -1 when that leaves 63 bits. */
static int64_t layout_temps(HostKernel *k) {
  int64_t bytes = 0;
  for (int i = 0; i < k->nstages; i++) {
    if (k->stages[i].reduce < 0) continue;
    HostNode *n = &k->nodes[k->stages[i].reduce];
    HostAccess *x = &k->access[n->access];
    int64_t elsize = (int64_t)dtype_size(n->dtype), stride = 1;
    x->offset = bytes / elsize;
    for (int r = k->info.ndims - 1; r >= 0; r--)
      for (int d = 0; d < k->info.ndims; d++)
        if (k->rank[d] == r && host_has_dim(n->dims, d)) {
          x->stride[d] = stride;
          if (!mul_i64(stride, k->tile[d], &stride)) return -1;
        }
    int64_t own;
    if (!mul_i64(stride, elsize, &own) || !add_i64(bytes, own, &bytes) || bytes > INT64_MAX - 64)
      return -1;
    bytes = round_up(bytes, 64);
  }
  return bytes;
}

static void build_accesses(Build *b, const int *results) {
  HostKernel *k = b->k;
  int ntemps = 0;
  for (int i = 0; i < k->nstages; i++) ntemps += k->stages[i].reduce >= 0;
  k->access = ARENA_ARRAY(b->p->arena, HostAccess, k->info.nin + k->info.nout + ntemps);
  for (int i = 0; i < k->info.nin; i++) prep_init(b, i);
  for (int i = 0; i < k->info.nin; i++) access_operand(b, i);
  for (int r = 0; r < k->info.nout; r++) access_result(b, r, results[r]);
  k->naccess = k->info.nin + k->info.nout;
  for (int i = 0; i < k->nstages; i++) {
    if (k->stages[i].reduce < 0) continue;
    HostNode *n = &k->nodes[k->stages[i].reduce];
    n->access = k->naccess++;
    k->access[n->access] = (HostAccess){.dtype = n->dtype, .dims = n->dims, .relative = true};
  }
  for (int d = 0; d < k->info.ndims; d++) k->tile[d] = k->info.extent[d];
}

static void add_steps(Build *b, int64_t scratch_bytes) {
  HostKernel *k = b->k;
  HostProgram *p = b->p;
  for (int i = 0; i < k->info.nin; i++) prepare(b, i);
  for (int i = 0; i < k->info.nin; i++) add_checks(b, i);
  for (int r = 0; r < k->info.nout; r++) {
    int buf = k->access[k->info.nin + r].buf;
    host_buf_use(p, buf);
    if (covers(k, r)) continue;
    HostStep *s = host_step_new(p, STEP_ZERO, k->op->loc);
    s->dst = buf;
    s->bytes = ir_type_bytes(ir_result(k->op, r)->type);
  }
  k->scratch = scratch_bytes ? host_buf_temp(p, scratch_bytes) : -1;
  for (int i = 0; i < k->naccess; i++) {
    if (k->access[i].relative) k->access[i].buf = k->scratch;
    host_buf_use(p, k->access[i].buf);
  }
}

HostKernel *host_kernel_build(HostProgram *p, const IrOp *op, const HostOperand *operands,
                              const int *results, bool wide_sums, DiagEngine *diag) {
  HostKernel *k = ARENA_NEW(p->arena, HostKernel);
  k->wide_sums = wide_sums;
  Build b = {.p = p, .diag = diag, .k = k, .operands = operands};
  k->op = op;
  ir_kernel_read(op, &k->info);
  b.prep = ARENA_ARRAY(p->arena, Prep, k->info.nin + 1);
  build_nodes(&b);
  build_stages(&b);
  build_accesses(&b, results);
  if (b.failed) return NULL;
  rank_dims(k);
  host_schedule_group(k);
  int64_t scratch_bytes = layout_temps(k);
  if (scratch_bytes < 0) {
    diag_error(diag, op->loc, "E-memory",
               "the values between the steps of this operation have more bytes than fit 63 bits");
    return NULL;
  }
  const bool *packable = packable_table(&b);
  for (int i = 0; i < k->nstages; i++) {
    host_stage_choose_vector(k, &k->stages[i], packable);
    pack_for(&b, &k->stages[i], packable);
  }
  for (int i = 0; i < k->nstages; i++) host_schedule_stage(k, &k->stages[i]);
  add_steps(&b, scratch_bytes);
  return k;
}
