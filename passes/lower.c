/* lower: every graph op becomes kernels, or one of the ops the nest level keeps (reshape, weight,
 * constant, state, state_write, return). Level: graph -> nest. Needs: shapes. Terminates: each op
 * is visited once; conv_transpose2d is first expanded into plain ops, which are visited in turn. */
#include "passes/expand.h"
#include "passes/kernel_edit.h"
#include "passes/lower_internal.h"
#include "passes/passes.h"

/* Rows that are graph only need a function each: one that is missing does not link. Ops the nest
 * level has too stay. */
static LowerFn *const lower_table[IR_OP_COUNT] = {
#define OP(e, name, levels, ...)                                                                   \
  [IR_OP_##e] = ((levels) & (IR_GRAPH | IR_NEST)) == IR_GRAPH ? lower_##e : NULL,
#include "ir/ops.def"
#undef OP
};

/* ---- the pass ---- */

static bool lower_op(PassContext *pc, IrOp *op) {
  IrValue *out[64] = {0};
  IrBuilder at = ir_builder_before(op);
  IrOp *before = op->prev;
  unsigned errors = diag_errors(pc->diag);
  lower_table[op->kind](&at, op, out);
  if (diag_errors(pc->diag) != errors) return false;
  for (int i = 0; i < op->nresults; i++) {
    if (!out[i]) {
      diag_error(pc->diag, op->loc, "E-lower", "%s has no form as a loop nest",
                 ir_op_info(op->kind)->name);
      return false;
    }
    if (!out[i]->name) out[i]->name = op->results[i].name;
    ir_replace_all_uses(&op->results[i], out[i]);
  }
  for (IrOp *made = before ? before->next : op->parent->first; made != op; made = made->next)
    if (made->kind == IR_OP_KERNEL) kernel_set_name(made, ir_op_info(op->kind)->name);
  ir_op_erase(op);
  return true;
}

/* Ops that are expanded first stay as they are. */
static bool stays(const IrOp *op) {
  return !lower_table[op->kind] || op_expands(op);
}

bool lower_plain_ops(PassContext *pc, IrFunc *f) {
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    if (!stays(op) && !lower_op(pc, op)) return false;
  }
  return true;
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    IrOp *first = expand_op(op);
    if (first) next = first;
  }
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    if (!lower_table[op->kind]) continue;
    if (!lower_op(pc, op)) return PASS_FAILED;
    pass_count(pc, "ops lowered", 1);
  }
  f->level = IR_NEST;
  return PASS_OK;
}

const Pass pass_lower = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(Pass),
    .name = "lower",
    .help = "write every graph op as a loop nest",
    .from = IR_GRAPH,
    .to = IR_NEST,
    .options = NULL,
    .run = run,
};
