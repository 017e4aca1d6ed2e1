/* dce: removes ops whose results nobody needs.
 * Level: graph. Needs: SSA. Keeps: everything. Terminates: one walk from the end; users are gone
 * before their operands are looked at. */
#include "passes/passes.h"

static bool is_dead(const IrOp *op) {
  /* Reading a state has no effect either, but a state is part of the model's interface. */
  if (!ir_has_trait(op, IR_PURE) || op->nresults == 0) return false;
  for (int i = 0; i < op->nresults; i++)
    if (op->results[i].uses) return false;
  return true;
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  for (IrOp *op = f->body->last, *prev; op; op = prev) {
    prev = op->prev;
    if (!is_dead(op)) continue;
    ir_op_erase(op);
    pass_count(pc, "ops removed", 1);
  }
  return PASS_OK;
}

const Pass pass_dce = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(Pass),
    .name = "dce",
    .help = "remove ops whose results are not used",
    .from = IR_GRAPH,
    .to = IR_GRAPH,
    .options = NULL,
    .run = run,
};
