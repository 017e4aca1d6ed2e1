/* A pass plugin: replaces add(x, x) by mul(x, 2) through the function table alone. */
#include "ir/ir.h"

#include <stddef.h>

#ifndef PLUGIN_ABI
#define PLUGIN_ABI NPU_PASS_ABI
#endif

static PassStatus run(PassContext *pc, IrFunc *f) {
  const IrApi *ir = pc->api;
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    if (op->kind != IR_OP_ADD || ir_operand(op, 0) != ir_operand(op, 1)) continue;
    IrBuilder b = ir->builder_before(op);
    IrValue *two = ir->build_splat(&b, ir->type_tensor(pc->module, DT_F32, 0, NULL), 2.0);
    IrValue *twice = ir->build2(&b, IR_OP_MUL, ir_operand(op, 0), two);
    if (!twice) return PASS_FAILED;
    ir->replace_all_uses(ir_result(op, 0), twice);
    ir->op_erase(op);
    ir->count(pc, "doublings", 1);
  }
  return PASS_OK;
}

static const Pass pass = {.abi = PLUGIN_ABI,
                          .size = sizeof(Pass),
                          .name = "double",
                          .help = "x + x -> x * 2",
                          .from = IR_GRAPH,
                          .to = IR_GRAPH,
                          .run = run};
static const Pass *const passes[] = {&pass, NULL};
static const NpuPlugin plugin = {PLUGIN_ABI, sizeof(NpuPlugin), passes};

#ifdef PLUGIN_DATA
extern const NpuPlugin *const npu_plugin;
const NpuPlugin *const npu_plugin = &plugin;
#else
const NpuPlugin *npu_plugin(void);
const NpuPlugin *npu_plugin(void) {
  return &plugin;
}
#endif
