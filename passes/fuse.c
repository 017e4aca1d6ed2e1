/* fuse: fewer, larger kernels, so that intermediate tensors never reach memory.
 *   1. a kernel that only moves or widens elements disappears into the maps of its consumers
 *   2. an elementwise consumer joins the kernel that makes its operand (epilogue)
 *   3. an elementwise producer joins a consumer that reads each element once (prologue)
 * Scalars keep the element types they had as tensors, so results are the same bit for bit.
 * Level: nest -> nest. Keeps: storage orders of what remains. Terminates: every step removes a
 * kernel or an operand's producer. */
#include "passes/fuse_internal.h"

#include "isa/isa.h"

void images_identity(DimImage *images) {
  for (int d = 0; d < IR_MAX_DIMS; d++) {
    images[d] = (DimImage){0};
    images[d].coef[d] = 1;
  }
}

static bool add_operands(Nest *n, const IrOp *kernel, const DimImage *images, const bool *skip,
                         int *number) {
  bool ok = true;
  for (int i = 0; i < kernel->noperands && ok; i++) {
    if (skip && skip[i]) continue;
    number[i] = nest_add_operand(n, kernel, i, images, number);
    ok = number[i] >= 0;
  }
  return ok;
}

/* Dimensions whose position the body reads: legalize makes an operand of each. */
static int index_operands(const IrOp *kernel) {
  uint32_t dims = 0;
  int n = 0;
  for (const IrOp *op = kernel->region->first; op; op = op->next)
    if (op->kind == IR_OP_INDEX) dims |= 1u << ir_get_int(op, "dim", 0);
  for (; dims; dims &= dims - 1) n++;
  return n;
}

/* What a vector program reads to compute a scalar: operands, positions, finished reductions. */
typedef struct {
  const IrValue *seen[256];
  int n, streams;
} Reads;

static void read_below(Reads *r, const IrValue *v) {
  for (int i = 0; i < r->n; i++)
    if (r->seen[i] == v) return;
  if (r->n == (int)NPU_COUNTOF(r->seen)) {
    r->streams = ISA_STREAMS;
    return;
  }
  r->seen[r->n++] = v;
  bool leaf = !v->def || v->def->kind == IR_OP_REDUCE || v->def->kind == IR_OP_INDEX;
  r->streams += leaf;
  for (int i = 0; !leaf && i < v->def->noperands; i++) read_below(r, ir_operand(v->def, i));
}

/* Of the widest vector program: one for each reduction, whose sum has its carry beside it, and one
 * for the results. */
static int most_streams(const IrOp *kernel) {
  int most = 0;
  for (const IrOp *op = kernel->region->first; op; op = op->next) {
    if (op->kind != IR_OP_REDUCE && op->kind != IR_OP_YIELD) continue;
    Reads r = {.streams = op->kind == IR_OP_REDUCE ? 2 : kernel->nresults};
    for (int i = 0; i < op->noperands; i++) read_below(&r, ir_operand(op, i));
    if (r.streams > most) most = r.streams;
  }
  return most;
}

static bool within_limits(const IrOp *kernel) {
  return kernel->noperands + kernel->nresults + index_operands(kernel) <= FUSE_MAX_IO &&
         most_streams(kernel) <= ISA_STREAMS && kernel_body_cost(kernel) <= FUSE_MAX_BODY &&
         kernel_body_live(kernel) <= FUSE_MAX_LIVE;
}

IrOp *merge_kernels(const Merge *m) {
  const IrOp *p = m->producer, *c = m->consumer;
  if (p->noperands + c->noperands > NEST_MAX_IO) return NULL;
  IrBuilder at = ir_builder_before(m->consumer);
  if (m->base == p) at.loc = p->loc;
  Nest n = nest_begin(&at);
  nest_copy_dims(&n, m->base);
  int p_number[NEST_MAX_IO] = {0}, c_number[NEST_MAX_IO] = {0};
  if (!add_operands(&n, p, m->producer_dims, NULL, p_number) ||
      !add_operands(&n, c, m->consumer_dims, m->reads, c_number))
    return NULL;
  nest_out(&n, m->type, &m->out_map);
  nest_open(&n);
  IrValue *args[NEST_MAX_IO] = {0}, *made[1], *yielded[1];
  for (int i = 0; i < p->noperands; i++) args[i] = n.kernel->region->args[p_number[i]];
  nest_copy_body(&n, p, m->producer_dims, args, made);
  for (int i = 0; i < c->noperands; i++)
    args[i] = m->reads[i] ? made[0] : n.kernel->region->args[c_number[i]];
  nest_copy_body(&n, c, m->consumer_dims, args, yielded);
  nest_close(&n, yielded);
  n.kernel->results[0].name = c->results[0].name;
  kernel_join_names(n.kernel, p, c);
  if (m->type == c->results[0].type) ir_set_attr(n.kernel, "layout", ir_attr(c, "layout"));
  IrOp *merged = kernel_simplify(n.kernel);
  if (within_limits(merged)) return merged;
  ir_op_erase(merged);
  return NULL;
}

/* ---- the pass ---- */

static void erase_dead_chain(IrOp *op) {
  while (op && op->nresults > 0) {
    for (int i = 0; i < op->nresults; i++)
      if (op->results[i].uses) return;
    IrOp *source = op->noperands == 1 ? ir_operand(op, 0)->def : NULL;
    if (op->kind != IR_OP_KERNEL && op->kind != IR_OP_RESHAPE) return;
    ir_op_erase(op);
    op = source;
  }
}

/* reshape(reshape(x)) to one; a reshape to the same shape to none. */
static void tidy_reshape(IrOp *op) {
  IrOp *source = ir_operand(op, 0)->def;
  if (ir_is(source, IR_OP_RESHAPE)) {
    ir_set_operand(op, 0, ir_operand(source, 0));
    erase_dead_chain(source);
  }
  if (ir_operand(op, 0)->type != op->results[0].type) return;
  ir_replace_all_uses(&op->results[0], ir_operand(op, 0));
  ir_op_erase(op);
}

static void forward_all(PassContext *pc, IrFunc *f, bool compute) {
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    if (op->kind == IR_OP_RESHAPE) {
      tidy_reshape(op);
      continue;
    }
    if (op->kind != IR_OP_KERNEL) continue;
    pass_count(pc, "producers read through", fuse_forward(op, compute));
    next = op->next;
    erase_dead_chain(op);
  }
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    if (op->kind == IR_OP_KERNEL) kernel_simplify(op);
  }
  forward_all(pc, f, false);
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    if (op->kind != IR_OP_KERNEL) continue;
    IrOp *merged = fuse_epilogue(op);
    if (!merged) continue;
    next = op->next; /* the merged kernel lies further on and gets its turn there */
    pass_count(pc, "consumers fused", 1);
    erase_dead_chain(op);
  }
  forward_all(pc, f, true);
  return PASS_OK;
}

const Pass pass_fuse = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(Pass),
    .name = "fuse",
    .help = "join elementwise kernels with the kernels they feed on",
    .from = IR_NEST,
    .to = IR_NEST,
    .options = NULL,
    .run = run,
};
