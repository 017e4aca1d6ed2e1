/* kernel_simplify: tidies one kernel after a merge. See kernel_edit.h. */
#include "passes/cast.h"
#include "passes/kernel_edit.h"
#include <string.h>

static bool same_scalar(const IrOp *a, const IrOp *b) {
  if (a->kind != b->kind || a->noperands != b->noperands || a->nresults != 1) return false;
  if (a->results[0].type != b->results[0].type) return false;
  for (int i = 0; i < a->noperands; i++)
    if (ir_operand(a, i) != ir_operand(b, i)) return false;
  return ir_same_attrs(a, b);
}

static bool merge_equal(IrOp *op) {
  for (IrOp *before = op->prev; before; before = before->prev) {
    if (!same_scalar(before, op)) continue;
    ir_replace_all_uses(&op->results[0], &before->results[0]);
    ir_op_erase(op);
    return true;
  }
  return false;
}

/* cast(cast(x)): to where it came from, or straight on, when the first step lost nothing. */
static bool drop_cast(IrOp *op) {
  if (op->kind != IR_OP_CAST || !ir_is(ir_operand(op, 0)->def, IR_OP_CAST)) return false;
  IrValue *source = ir_operand(ir_operand(op, 0)->def, 0);
  if (!cast_is_exact(source->type->dtype, ir_operand(op, 0)->type->dtype)) return false;
  if (source->type == op->results[0].type) {
    ir_replace_all_uses(&op->results[0], source);
    ir_op_erase(op);
  } else {
    ir_set_operand(op, 0, source);
  }
  return true;
}

static bool is_compare(const IrOp *op) {
  switch (op ? op->kind : IR_OP_COUNT) {
  case IR_OP_EQ:
  case IR_OP_NE:
  case IR_OP_LT:
  case IR_OP_LE:
  case IR_OP_GT:
  case IR_OP_GE: return true;
  default: return false;
  }
}

/* cast(comparison) != 0 is the comparison. */
static bool drop_test(IrOp *op) {
  double zero;
  if (op->kind != IR_OP_NE) return false;
  if (!ir_constant_splat(ir_operand(op, 1), &zero) || zero != 0) return false;
  IrValue *v = ir_operand(op, 0);
  while (ir_is(v->def, IR_OP_CAST)) v = ir_operand(v->def, 0);
  if (!is_compare(v->def)) return false;
  ir_replace_all_uses(&op->results[0], v);
  ir_op_erase(op);
  return true;
}

static bool simplify_body(IrBlock *body) {
  bool changed = false;
  for (IrOp *op = body->first, *next; op; op = next) {
    next = op->next;
    if (op->kind == IR_OP_YIELD) continue;
    changed |= drop_test(op) || drop_cast(op) || merge_equal(op);
  }
  for (IrOp *op = body->last, *prev; op; op = prev) {
    prev = op->prev;
    if (op->kind == IR_OP_YIELD || op->results[0].uses) continue;
    ir_op_erase(op);
    changed = true;
  }
  return changed;
}

static bool operand_needed(const IrOp *kernel, int i) {
  return kernel->region->args[i]->uses || kernel_operand_is_index(kernel, i);
}

static bool has_spare_operand(const IrOp *kernel) {
  for (int i = 0; i < kernel->noperands; i++)
    if (!operand_needed(kernel, i)) return true;
  return false;
}

IrOp *kernel_simplify(IrOp *kernel) {
  while (simplify_body(kernel->region)) {
  }
  if (kernel->noperands > NEST_MAX_IO || kernel->nresults > NEST_MAX_IO) return kernel;
  if (!has_spare_operand(kernel)) return kernel;
  IrBuilder at = ir_builder_before(kernel);
  Nest n = nest_begin(&at);
  nest_copy_dims(&n, kernel);
  DimImage images[IR_MAX_DIMS] = {0};
  for (int d = 0; d < IR_MAX_DIMS; d++) images[d].coef[d] = 1;
  int number[NEST_MAX_IO] = {0};
  for (int i = 0; i < kernel->noperands; i++)
    if (operand_needed(kernel, i)) number[i] = nest_add_operand(&n, kernel, i, images, number);
  for (int i = 0; i < kernel->nresults; i++)
    nest_out(&n, kernel->results[i].type, ir_kernel_out_map(kernel, i));
  nest_open(&n);
  IrValue *args[NEST_MAX_IO] = {0}, *yielded[NEST_MAX_IO];
  for (int i = 0; i < kernel->noperands; i++)
    if (operand_needed(kernel, i)) args[i] = n.kernel->region->args[number[i]];
  nest_copy_body(&n, kernel, images, args, yielded);
  nest_close(&n, yielded);
  kernel_set_name(n.kernel, kernel_name(kernel));
  ir_set_attr(n.kernel, "layout", ir_attr(kernel, "layout"));
  for (int i = 0; i < kernel->nresults; i++) {
    n.kernel->results[i].name = kernel->results[i].name;
    ir_replace_all_uses(&kernel->results[i], &n.kernel->results[i]);
  }
  ir_op_erase(kernel);
  return n.kernel;
}
