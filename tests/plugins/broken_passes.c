/* A plugin of passes that leave the IR broken, each in one way, or crash. On `relu` of an argument
 * followed by `neg`, at the graph level. */
#include "ir/ir.h"

#include <signal.h>
#include <stdlib.h>

typedef struct {
  PassContext *pc;
  IrFunc *f;
  IrOp *relu, *neg, *ret;
} Ops;

static Ops ops_of(PassContext *pc, IrFunc *f) {
  Ops o = {.pc = pc, .f = f, .ret = f->body->last};
  for (IrOp *op = f->body->first; op; op = op->next) {
    if (op->kind == IR_OP_RELU) o.relu = op;
    if (op->kind == IR_OP_NEG) o.neg = op;
  }
  return o;
}

static void wrong_type(Ops o) {
  o.relu->results[0].type = o.pc->api->type_tensor(o.pc->module, DT_S8, 0, NULL);
}
static void no_type(Ops o) {
  o.relu->results[0].type = NULL;
}
static void no_operand(Ops o) {
  o.neg->operands[0].value = NULL;
}
static void raw_operand(Ops o) {
  o.neg->operands[0].value = o.f->body->args[0];
}
static void use_before_def(Ops o) {
  o.pc->api->op_unlink(o.relu);
  o.pc->api->op_insert_after(o.neg, o.relu);
}
static void taken_out(Ops o) {
  o.pc->api->op_unlink(o.relu);
}
static void no_return(Ops o) {
  o.pc->api->op_erase(o.ret);
}
static void wrong_level(Ops o) {
  const IrType *t = o.pc->api->type_token(o.pc->module, "reg");
  IrBuilder b = o.pc->api->builder_before(o.ret);
  o.pc->api->build_typed(&b, IR_OP_REG, 0, NULL, 1, &t, 0, NULL);
}
static void no_such_op(Ops o) {
  o.relu->kind = (IrOpKind)12345;
}
static void ring(Ops o) {
  o.ret->next = o.relu;
}
static void short_list(Ops o) {
  o.relu->next = NULL;
}
static void ring_of_uses(Ops o) {
  IrUse *u = o.relu->results[0].uses;
  u->next = u;
}
static void no_value(Ops o) {
  static IrNamedAttr attr = {"slope", NULL};
  o.relu->attrs = &attr;
  o.relu->nattrs = 1;
}
static void foreign_result(Ops o) {
  o.relu->results[0].def = o.neg;
}
static void untyped_argument(Ops o) {
  o.f->body->args[0]->type = NULL;
}
static void no_body(Ops o) {
  o.f->body = NULL;
}
static void harmless(Ops o) {
  (void)o;
}
static void segv(Ops o) {
  *(volatile int *)(uintptr_t)o.relu->nattrs = 1; /* 0: no attributes */
}
static void aborts(Ops o) {
  (void)o;
  abort();
}
static void divides(Ops o) {
  (void)o;
  raise(SIGFPE);
}
static int deep(volatile char *above, int n) {
  volatile char here[4096];
  here[0] = above[0];
  return n < 0 ? here[0] : deep(here, n + 1) + here[0];
}
static void recurses(Ops o) {
  char top[1] = {0};
  o.relu->nattrs = deep(top, 0);
}

typedef struct {
  Pass pass;
  void (*does)(Ops o);
} Breaker;
static PassStatus run(PassContext *pc, IrFunc *f) {
  ((const Breaker *)(const void *)pc->pass)->does(ops_of(pc, f));
  return PASS_OK;
}

#define BREAKER(fn, text, level)                                                                   \
  {                                                                                                \
    .pass = {.abi = NPU_PASS_ABI,                                                                  \
             .size = sizeof(Pass),                                                                 \
             .name = text,                                                                         \
             .help = "breaks",                                                                     \
             .from = IR_GRAPH,                                                                     \
             .to = level,                                                                          \
             .run = run},                                                                          \
    .does = fn                                                                                     \
  }
static const Breaker breakers[] = {
    BREAKER(wrong_type, "wrong-type", IR_GRAPH),
    BREAKER(no_type, "no-type", IR_GRAPH),
    BREAKER(no_operand, "no-operand", IR_GRAPH),
    BREAKER(raw_operand, "raw-operand", IR_GRAPH),
    BREAKER(use_before_def, "use-before-def", IR_GRAPH),
    BREAKER(taken_out, "taken-out", IR_GRAPH),
    BREAKER(no_return, "no-return", IR_GRAPH),
    BREAKER(wrong_level, "wrong-level", IR_GRAPH),
    BREAKER(no_such_op, "no-such-op", IR_GRAPH),
    BREAKER(ring, "ring", IR_GRAPH),
    BREAKER(short_list, "short-list", IR_GRAPH),
    BREAKER(ring_of_uses, "ring-of-uses", IR_GRAPH),
    BREAKER(no_value, "no-value", IR_GRAPH),
    BREAKER(foreign_result, "foreign-result", IR_GRAPH),
    BREAKER(untyped_argument, "untyped-argument", IR_GRAPH),
    BREAKER(no_body, "no-body", IR_GRAPH),
    BREAKER(harmless, "lie-about-level", IR_NEST),
    BREAKER(harmless, "harmless", IR_GRAPH),
    BREAKER(segv, "segv", IR_GRAPH),
    BREAKER(aborts, "aborts", IR_GRAPH),
    BREAKER(divides, "divides", IR_GRAPH),
    BREAKER(recurses, "recurses", IR_GRAPH),
};

const NpuPlugin *npu_plugin(void);
const NpuPlugin *npu_plugin(void) {
  static const Pass *passes[NPU_COUNTOF(breakers) + 1];
  static NpuPlugin plugin = {NPU_PASS_ABI, sizeof(NpuPlugin), passes};
  for (size_t i = 0; i < NPU_COUNTOF(breakers); i++) passes[i] = &breakers[i].pass;
  return &plugin;
}
