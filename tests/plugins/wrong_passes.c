/* A plugin of passes that leave IR in order which computes something else. */
#include "ir/ir.h"

/* ---- scale: the first result times `by`, or plus `by` when it is an integer ---- */

static IrValue *changed(PassContext *pc, IrBuilder *b, IrValue *v) {
  double by = pc->api->option_float(pc, "by");
  IrValue *with = pc->api->build_splat(b, v->type, by);
  bool integer = v->type->dtype == DT_S32 || v->type->dtype == DT_S8;
  return pc->api->build2(b, integer ? IR_OP_ADD : IR_OP_MUL, v, with);
}

static PassStatus scale(PassContext *pc, IrFunc *f) {
  IrOp *ret = f->body->last;
  int64_t turn = pc->api->get_int(ret, "test.turn", 1);
  IrBuilder b = pc->api->builder_before(ret);
  if (turn == pc->api->option_int(pc, "turn"))
    pc->api->set_operand(ret, 0, changed(pc, &b, ret->operands[0].value));
  pc->api->set_attr(ret, "test.turn", pc->api->attr_int(pc->module, turn + 1));
  return PASS_OK;
}

/* ---- the others ---- */

/* max becomes min in every kernel. */
static PassStatus swap_max(PassContext *pc, IrFunc *f) {
  (void)pc;
  for (IrOp *op = f->body->first; op; op = op->next)
    for (IrOp *in = op->region ? op->region->first : NULL; in; in = in->next)
      if (in->kind == IR_OP_MAX) in->kind = IR_OP_MIN;
  return PASS_OK;
}

/* The first result becomes the first argument. */
static PassStatus give_argument(PassContext *pc, IrFunc *f) {
  pc->api->set_operand(f->body->last, 0, f->body->args[0]);
  return PASS_OK;
}

/* Lists of indices begin behind the end of their tables. */
static PassStatus index_outside(PassContext *pc, IrFunc *f) {
  for (IrOp *op = f->body->first; op; op = op->next) {
    if (op->kind != IR_OP_EMBED) continue;
    IrBuilder b = pc->api->builder_before(op);
    IrValue *list = op->operands[0].value;
    IrValue *end =
        pc->api->build_splat(&b, list->type, (double)op->operands[1].value->type->shape[0]);
    pc->api->set_operand(op, 0, pc->api->build2(&b, IR_OP_ADD, list, end));
  }
  return PASS_OK;
}

static const PassOption options[] = {
    {"by", "float", "1", "factor of floats, addend of integers"},
    {"turn", "int", "1", "which run of the pass does it"},
    {0},
};
#define WRONG(text, fn, level, opts)                                                               \
  {                                                                                                \
    .abi = NPU_PASS_ABI, .size = sizeof(Pass), .name = text, .help = "computes something else",    \
    .from = level, .to = level, .options = opts, .run = fn                                         \
  }
static const Pass wrong[] = {
    WRONG("scale", scale, IR_GRAPH, options),
    WRONG("swap-max", swap_max, IR_NEST, NULL),
    WRONG("give-argument", give_argument, IR_GRAPH, NULL),
    WRONG("index-outside", index_outside, IR_GRAPH, NULL),
};

__attribute__((visibility("default"))) const NpuPlugin *npu_plugin(void);
const NpuPlugin *npu_plugin(void) {
  static const Pass *passes[NPU_COUNTOF(wrong) + 1];
  static NpuPlugin plugin = {NPU_PASS_ABI, sizeof(NpuPlugin), passes};
  for (size_t i = 0; i < NPU_COUNTOF(wrong); i++) passes[i] = &wrong[i];
  return &plugin;
}
