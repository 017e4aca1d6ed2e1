/* roofline: what the model asks for, before any pass rewrites it: multiplications of its products
 * and bytes that must move, counted on a copy and left as notes on the function: model_macs
 * multiply-accumulates of matrix products and convolutions of run-time values; none for padding,
 * for zeros between inputs or for a sum of one product model_reads      bytes of inputs, and of
 * states before they change model_constants  bytes of weights and constants as the model declares
 * them model_writes     bytes of outputs, and of the parts of states that change Only elements that
 * an output or a new state depends on count, each once; of what an index list chooses, one row, or
 * those that a constant list has. `pipeline` takes these figures to the program. Level: graph.
 * Changes nothing but the notes. */
#include "passes/expand.h"
#include "passes/lower_internal.h"
#include "passes/passes.h"
#include "passes/reach.h"
#include <string.h>

#define uthash_malloc(size) mem_alloc(size)
#define uthash_free(p, size) mem_free(p)
#include <uthash.h>

typedef struct {
  const IrValue *value;
  Reach reach;
  bool known; /* at compile time */
  UT_hash_handle hh;
} Node;

typedef struct {
  Arena *arena;
  Node *nodes;
  double macs;
} Walk;

static Node *node_of(Walk *w, const IrValue *v) {
  Node *n;
  HASH_FIND_PTR(w->nodes, &v, n);
  if (n) return n;
  n = ARENA_NEW(w->arena, Node);
  n->value = v;
  HASH_ADD_PTR(w->nodes, value, n);
  return n;
}

static void need(Walk *w, const IrValue *v, const ReachBox *b) {
  reach_add(w->arena, &node_of(w, v)->reach, b);
}

static void need_all(Walk *w, const IrValue *v) {
  ReachBox all = reach_all(v->type);
  need(w, v, &all);
}

/* ---- updates and states ---- */

/* x with value at begin, cut along axis and those after it: slices of x before and behind, joined.
 */
static IrValue *updated(IrBuilder *b, IrValue *x, IrValue *value, const int64_t *at, int axis) {
  int64_t begin[IR_MAX_RANK] = {0}, end[IR_MAX_RANK], step[IR_MAX_RANK];
  int rank = x->type->rank, n = 0;
  while (axis < rank && value->type->shape[axis] == x->type->shape[axis]) axis++;
  if (axis == rank) return value;
  IrValue *parts[3];
  int64_t from = at[axis], to = from + value->type->shape[axis], size = x->type->shape[axis];
  for (int i = 0; i < rank; i++) end[i] = x->type->shape[i], step[i] = 1;
  if (from > 0) end[axis] = from, parts[n++] = expand_slice(b, x, begin, end, step);
  begin[axis] = from, end[axis] = to;
  parts[n++] = updated(b, expand_slice(b, x, begin, end, step), value, at, axis + 1);
  begin[axis] = to, end[axis] = size;
  if (to < size) parts[n++] = expand_slice(b, x, begin, end, step);
  IrAttrInit attr = {"axis", ir_attr_int(b->m, axis)};
  return ir_result(ir_build(b, IR_OP_CONCAT, n, parts, 1, &attr), 0);
}

/* Updates as slices and joins, whose reads are exact: what is replaced is not read. */
static void split_updates(IrFunc *f) {
  for (IrOp *op = f->body->first, *next; op; op = next) {
    int64_t at[IR_MAX_RANK] = {0};
    next = op->next;
    if (op->kind != IR_OP_UPDATE) continue;
    IrBuilder b = ir_builder_before(op);
    ir_get_ints(op, "begin", at, IR_MAX_RANK);
    ir_replace_all_uses(&op->results[0], updated(&b, ir_operand(op, 0), ir_operand(op, 1), at, 0));
    ir_op_erase(op);
  }
}

/* The state `name` takes v: what v puts into the old value becomes a result, the rest stays as it
 * is. Returns the bytes that change. */
static double write_state(Walk *w, IrOp *ret, const char *name, IrValue *v) {
  const IrType *t = v->type;
  Reach written = {0};
  IrValue *old = v;
  while (ir_is(old->def, IR_OP_UPDATE)) old = ir_operand(old->def, 0);
  if (!ir_is(old->def, IR_OP_STATE) || strcmp(ir_get_str(old->def, "name", ""), name) != 0) {
    ir_add_operand(ret, v);
    return (double)ir_type_bytes(t);
  }
  for (; v != old; v = ir_operand(v->def, 0)) { /* the last one first */
    IrValue *part = ir_operand(v->def, 1);
    ReachBox box = reach_all(part->type);
    int64_t at[IR_MAX_RANK] = {0};
    ir_get_ints(v->def, "begin", at, IR_MAX_RANK);
    for (int i = 0; i < t->rank; i++) box.axis[i].first = at[i];
    double before = reach_count(&written);
    reach_add(w->arena, &written, &box);
    if (reach_count(&written) - before == reach_box_count(&box)) ir_add_operand(ret, part);
  }
  return reach_count(&written) * (double)dtype_size(t->dtype);
}

/* Makes results of all that outlives a run; returns the bytes written. */
static double collect_results(Walk *w, IrFunc *f) {
  IrOp *ret = f->body->last;
  double bytes = 0;
  for (int i = 0; i < ret->noperands; i++) bytes += (double)ir_type_bytes(ir_operand(ret, i)->type);
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    if (op->kind != IR_OP_STATE_WRITE) continue;
    bytes += write_state(w, ret, ir_get_str(op, "name", ""), ir_operand(op, 0));
    ir_op_erase(op);
  }
  return bytes;
}

/* ---- needs, from the results back ---- */

static double kernel_macs(void *user, const ReachBox *b) {
  return reach_macs(user, b, NULL);
}

static void walk_kernel(Walk *w, IrOp *k) {
  for (int r = 0; r < k->nresults; r++) {
    Node *n = node_of(w, &k->results[r]);
    if (r == 0 && !n->known) w->macs += reach_sum(&n->reach, kernel_macs, k);
    for (int i = 0; i < k->noperands; i++)
      for (int b = 0; b < n->reach.n; b++) {
        ReachBox box;
        if (reach_operand(k, r, n->reach.box[b], i, &box)) need(w, ir_operand(k, i), &box);
      }
  }
}

static void walk_reshape(Walk *w, const IrOp *op) {
  const IrValue *x = ir_operand(op, 0);
  const Reach *r = &node_of(w, &op->results[0])->reach;
  for (int b = 0; b < r->n; b++) {
    ReachBox box;
    if (reach_reshape(r->box[b], op->results[0].type, x->type, &box)) need(w, x, &box);
  }
}

/* A transposed convolution's pairs of input and tap along one spatial axis: `first` + stride *
 * input
 * + dilation * tap lies in the part of the result that is needed, which has to be one piece. */
typedef struct {
  int64_t inputs, taps, stride, dilation, first, size;
} TapAxis;

static bool tap_axis(const IrOp *op, int i, const IndexSet *out, TapAxis *a) {
  int64_t stride[2], dilation[2], tlbr[4] = {0};
  attr_pair(op, "stride", 1, stride);
  attr_pair(op, "dilation", 1, dilation);
  conv_transpose_pads(op, tlbr);
  *a = (TapAxis){.inputs = ir_operand(op, 0)->type->shape[2 + i],
                 .taps = ir_operand(op, 1)->type->shape[2 + i],
                 .stride = stride[i],
                 .dilation = dilation[i],
                 .first = -tlbr[i] - out->first,
                 .size = index_set_last(out) - out->first + 1};
  return out->n == 0 || (out->n == 1 && out->level[0].stride == 1);
}

/* Inputs with a tap in the part that is needed. */
static bool tap_inputs(const TapAxis *a, IndexSet *in) {
  int64_t reach = (a->taps - 1) * a->dilation;
  if (a->taps > 1 && a->size < a->dilation) return false; /* taps may all miss it */
  *in = (IndexSet){.first = a->first};
  if (!index_set_spread(in, a->inputs, a->stride)) return false;
  in->first += reach; /* the last tap of each */
  if (!index_set_clip(in, a->size + reach)) return false;
  int64_t from = (in->first - reach - a->first) / a->stride;
  int64_t count = (int64_t)index_set_count(in);
  *in = index_set_range(count);
  in->first = from;
  return true;
}

static double transposed_macs(void *user, const ReachBox *b) {
  const IrOp *op = user;
  const IrType *w = ir_operand(op, 1)->type;
  double n = index_set_count(&b->axis[0]) * index_set_count(&b->axis[1]) *
             ((double)w->shape[0] / (double)ir_get_int(op, "groups", 1));
  for (int i = 0; i < 2; i++) {
    TapAxis a;
    if (!tap_axis(op, i, &b->axis[2 + i], &a)) return 0;
    const int64_t terms[2][2] = {{a.inputs, a.stride}, {a.taps, a.dilation}};
    n *= reach_tuples_inside(2, terms, a.first, a.size);
  }
  return n;
}

static void walk_transposed(Walk *w, IrOp *op) {
  Node *n = node_of(w, &op->results[0]);
  const IrType *t = op->results[0].type;
  if (!n->known) w->macs += reach_sum(&n->reach, transposed_macs, op);
  for (int k = 0; k < n->reach.n; k++) {
    const ReachBox *b = n->reach.box[k];
    ReachBox x = reach_all(ir_operand(op, 0)->type);
    TapAxis a;
    bool ok =
        ir_get_int(op, "groups", 1) == 1 || index_set_count(&b->axis[1]) == (double)t->shape[1];
    x.anywhere = b->anywhere;
    x.axis[0] = b->axis[0];
    for (int i = 0; i < 2; i++)
      ok = ok && tap_axis(op, i, &b->axis[2 + i], &a) && tap_inputs(&a, &x.axis[2 + i]);
    if (ok) need(w, ir_operand(op, 0), &x);
    if (reach_box_count(b) != (double)ir_type_elements(t)) continue;
    for (int i = 1; i < op->noperands; i++) need_all(w, ir_operand(op, i));
  }
}

static void walk_op(Walk *w, IrOp *op) {
  if (op->kind == IR_OP_RETURN)
    for (int i = 0; i < op->noperands; i++) need_all(w, ir_operand(op, i));
  if (op->kind == IR_OP_KERNEL) walk_kernel(w, op);
  if (op->kind == IR_OP_RESHAPE) walk_reshape(w, op);
  if (op->kind == IR_OP_CONV_TRANSPOSE2D) walk_transposed(w, op);
}

static void mark_known(Walk *w, IrFunc *f) {
  for (IrOp *op = f->body->first; op; op = op->next) {
    bool known = op->kind != IR_OP_STATE;
    for (int i = 0; i < op->noperands; i++) known = known && node_of(w, ir_operand(op, i))->known;
    for (int i = 0; i < op->nresults; i++) node_of(w, &op->results[i])->known = known;
  }
}

/* ---- the pass ---- */

static double bytes_needed(Walk *w, const IrValue *v) {
  return reach_count(&node_of(w, v)->reach) * (double)dtype_size(v->type->dtype);
}

static void note(IrFunc *f, const char *name, double figure) {
  ir_set_func_attr(f, name, ir_attr_float(f->module, figure));
}

static void count_model(Walk *w, IrFunc *f, IrFunc *copy, double writes) {
  double reads = 0, constants = 0;
  mark_known(w, copy);
  for (IrOp *op = copy->body->last; op; op = op->prev) walk_op(w, op);
  for (int i = 0; i < copy->body->nargs; i++) reads += bytes_needed(w, copy->body->args[i]);
  for (IrOp *op = copy->body->first; op; op = op->next) {
    if (op->kind == IR_OP_STATE) reads += bytes_needed(w, &op->results[0]);
    if (ir_has_trait(op, IR_CONSTANT)) constants += bytes_needed(w, &op->results[0]);
  }
  note(f, "model_macs", w->macs);
  note(f, "model_reads", reads);
  note(f, "model_constants", constants);
  note(f, "model_writes", writes);
}

/* What cannot be lowered as it stands has no figures; whether that is an error is for `lower` to
 * say. */
static PassStatus run(PassContext *pc, IrFunc *f) {
  DiagEngine *loud = pc->module->diag, *quiet = diag_new();
  PassContext silent = *pc;
  Walk w = {.arena = pc->scratch};
  silent.diag = pc->module->diag = quiet;
  IrFunc *copy = ir_func_clone(f, "roofline", NULL, NULL);
  double writes = collect_results(&w, copy);
  split_updates(copy);
  if (lower_plain_ops(&silent, copy)) count_model(&w, f, copy, writes);
  HASH_CLEAR(hh, w.nodes);
  ir_func_erase(copy);
  pc->module->diag = loud;
  diag_free(quiet);
  return PASS_OK;
}

const Pass pass_roofline = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(Pass),
    .name = "roofline",
    .help = "note the model's multiplications and bytes, for the bound in reports",
    .from = IR_GRAPH,
    .to = IR_GRAPH,
    .options = NULL,
    .run = run,
};
