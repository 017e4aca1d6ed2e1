/* reassociate: (x + c1) + c2 -> x + (c1 + c2) on integers, likewise *, min and max; `fold` then
 * computes what stands in the brackets. Exact: s32 wraps, and so does any order of additions or
 * products; floats are left alone. Level: graph. Needs: nothing. Keeps: values, bit for bit.
 * Terminates: every rewrite takes one op between x and the result away. */
#include "passes/passes.h"

static bool is_constant(const IrValue *v) {
  return v->def && ir_has_trait(v->def, IR_CONSTANT);
}

static bool is_associative(const IrOp *op) {
  bool known = op->kind == IR_OP_ADD || op->kind == IR_OP_MUL || op->kind == IR_OP_MIN ||
               op->kind == IR_OP_MAX;
  return known && !dtype_is_float(op->results[0].type->dtype);
}

/* A constant, or constants already joined: ((c1 + c2) + c3). */
static bool is_known(const IrValue *v) {
  while (v->def && is_associative(v->def) && is_constant(ir_operand(v->def, 1)))
    v = ir_operand(v->def, 0);
  return is_constant(v);
}

/* The number of op's one known operand; -1 when none or both are. */
static int known_operand(const IrOp *op) {
  bool a = is_known(ir_operand(op, 0)), b = is_known(ir_operand(op, 1));
  return a == b ? -1 : a ? 0 : 1;
}

static bool reassociate(IrOp *op) {
  int outer = is_associative(op) ? known_operand(op) : -1;
  if (outer < 0) return false;
  IrOp *first = ir_operand(op, 1 - outer)->def;
  if (!ir_is(first, op->kind) || !ir_has_one_use(ir_result(first, 0))) return false;
  int inner = known_operand(first);
  if (inner < 0) return false;
  IrValue *c1 = ir_operand(first, inner), *c2 = ir_operand(op, outer);
  IrBuilder b = ir_builder_before(op);
  IrValue *both = ir_build2(&b, op->kind, c1, c2);
  int64_t n1 = ir_type_elements(c1->type), n2 = ir_type_elements(c2->type);
  if (ir_type_elements(both->type) > (n1 > n2 ? n1 : n2)) { /* a column and a row make a matrix */
    ir_op_erase(both->def);
    return false;
  }
  ir_set_operand(op, 1 - outer, ir_operand(first, 1 - inner));
  ir_set_operand(op, outer, both);
  ir_op_erase(first);
  return true;
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  for (IrOp *op = f->body->first; op; op = op->next)
    if (reassociate(op)) pass_count(pc, "constants joined", 1);
  return PASS_OK;
}

const Pass pass_reassociate = {.abi = NPU_PASS_ABI,
                               .size = sizeof(Pass),
                               .name = "reassociate",
                               .help = "join the constants of integer chains: (x + c1) + c2",
                               .from = IR_GRAPH,
                               .to = IR_GRAPH,
                               .options = NULL,
                               .run = run};
