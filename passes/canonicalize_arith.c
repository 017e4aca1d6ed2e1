/* canonicalize: arithmetic, casts and repeated functions. */
#include "passes/canonicalize_internal.h"
#include "passes/cast.h"
#include <math.h>

/* Every element is that number; zeros differ by their signs. */
static bool is_splat(const IrValue *v, double value) {
  double found;
  return ir_constant_splat(v, &found) && found == value && signbit(found) == signbit(value);
}

/* v added to any number leaves it: -0.0, for -0.0 + 0.0 is 0.0; among integers 0. */
static bool is_nothing(const IrValue *v) {
  return is_splat(v, dtype_is_float(v->type->dtype) ? -0.0 : 0);
}

/* The operand that is the result already, bit for bit whatever it holds: x + -0.0, x - 0, x * 1,
 * x / 1, x to the power 1, -(-x), where(constant, a, b). */
static IrValue *neutral_operand(const IrOp *op) {
  IrValue *a = op->noperands > 0 ? ir_operand(op, 0) : NULL;
  IrValue *b = op->noperands > 1 ? ir_operand(op, 1) : NULL;
  double c;
  switch (op->kind) {
  case IR_OP_ADD: return is_nothing(b) ? a : is_nothing(a) ? b : NULL;
  case IR_OP_SUB: return is_splat(b, 0) ? a : NULL;
  case IR_OP_MUL: return is_splat(b, 1) ? a : is_splat(a, 1) ? b : NULL;
  case IR_OP_DIV:
  case IR_OP_POW: return is_splat(b, 1) ? a : NULL;
  case IR_OP_NEG: return ir_is(a->def, IR_OP_NEG) ? ir_operand(a->def, 0) : NULL;
  case IR_OP_WHERE: return ir_constant_splat(a, &c) ? ir_operand(op, c != 0 ? 1 : 2) : NULL;
  default: return NULL;
  }
}

bool simplify_arith(IrOp *op) {
  IrValue *v = neutral_operand(op);
  return v && v->type == op->results[0].type && replace_with(op, v);
}

/* A cast to the type it has, and a cast of a cast whose first step loses nothing. */
bool simplify_cast(IrOp *op) {
  if (op->kind != IR_OP_CAST) return false;
  IrValue *x = ir_operand(op, 0);
  if (x->type == op->results[0].type) return replace_with(op, x);
  if (!ir_is(x->def, IR_OP_CAST)) return false;
  IrValue *source = ir_operand(x->def, 0);
  if (!cast_is_exact(source->type->dtype, x->type->dtype)) return false;
  ir_set_operand(op, 0, source);
  if (source->type == op->results[0].type) replace_with(op, source);
  return true;
}

/* f(f(x)) with f idempotent; also relu after what is never negative. */
bool simplify_repeated(IrOp *op) {
  if (op->noperands != 1 || !ir_operand(op, 0)->def) return false;
  const IrOp *inner = ir_operand(op, 0)->def;
  bool repeated =
      ir_has_trait(op, IR_IDEMPOTENT) && inner->kind == op->kind && ir_same_attrs(op, inner);
  bool positive =
      op->kind == IR_OP_RELU && (inner->kind == IR_OP_RELU6 || inner->kind == IR_OP_SIGMOID);
  if (!repeated && !positive) return false;
  if (ir_operand(op, 0)->type != op->results[0].type) return false;
  return replace_with(op, ir_operand(op, 0));
}
