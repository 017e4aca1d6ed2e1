/* double-neg: -(-x) is x.
 * Level: graph. Keeps: everything. Terminates: every rewrite takes away a use of a neg. */
#include "ir/ir.h"

/* The x of neg(neg(x)); NULL when op is something else. */
static IrValue *doubly_negated(const IrOp *op) {
  if (!ir_is(op, IR_OP_NEG)) return NULL;
  const IrOp *inner = ir_operand(op, 0)->def;
  return ir_is(inner, IR_OP_NEG) ? ir_operand(inner, 0) : NULL;
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  int64_t limit = pc->api->option_int(pc, "limit"), done = 0;
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    IrValue *x = doubly_negated(op);
    if (!x || (limit >= 0 && done == limit)) continue;
    pc->api->replace_all_uses(ir_result(op, 0), x);
    pc->api->op_erase(op);
    done++;
  }
  pc->api->count(pc, "pairs removed", done);
  return PASS_OK;
}

static const PassOption options[] = {
    {"limit", "int", "-1", "remove at most this many pairs; -1: all"},
    {0},
};

static const Pass pass_double_neg = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(Pass),
    .name = "double-neg",
    .help = "-(-x) -> x",
    .from = IR_GRAPH,
    .to = IR_GRAPH,
    .options = options,
    .run = run,
};

static const Pass *const passes[] = {&pass_double_neg, NULL};
static const NpuPlugin plugin = {NPU_PASS_ABI, sizeof(NpuPlugin), passes};

/* The one symbol the compiler looks for. */
__attribute__((visibility("default"))) const NpuPlugin *npu_plugin(void);
const NpuPlugin *npu_plugin(void) {
  return &plugin;
}
