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

/* x added to itself n times, in x's type: one product. */
static IrValue *multiple(IrBuilder *b, IrValue *x, const IrKernel *k, uint32_t dims) {
  double n = 1;
  uint32_t bits = 1;
  for (int d = 0; d < k->ndims; d++)
    if (dims >> d & 1) n *= (double)k->extent[d], bits *= (uint32_t)(k->extent[d] & UINT32_MAX);
  int64_t wrapped = bits <= INT32_MAX ? (int64_t)bits : (int64_t)bits - (1ll << 32);
  DType t = x->type->dtype;
  return ir_build2(b, IR_OP_MUL, x, ir_build_scalar(b, t, t == DT_S32 ? (double)wrapped : n));
}

/* A reduction over dimensions its operand does not vary over meets the same element again and
 * again: the largest of them is that element, their sum a multiple of it. */
static bool shrink_reduce(IrOp *kernel, IrOp *op) {
  int64_t over[IR_MAX_DIMS], left[IR_MAX_DIMS];
  size_t nleft = 0;
  if (op->kind != IR_OP_REDUCE) return false;
  IrValue *x = ir_operand(op, 0);
  uint32_t varies = ir_scalar_dims(kernel, x), same = 0;
  int n = ir_get_ints(op, "over", over, IR_MAX_DIMS);
  for (int i = 0; i < n; i++) {
    if (varies >> over[i] & 1)
      left[nleft++] = over[i];
    else
      same |= 1u << over[i];
  }
  bool sum = !strcmp(ir_get_str(op, "op", ""), "sum");
  if (!same || (sum && x->type->dtype != DT_F32 && x->type->dtype != DT_S32)) return false;
  IrKernel k;
  ir_kernel_read(kernel, &k);
  IrBuilder b = ir_builder_after(op);
  if (nleft) {
    IrAttrInit attrs[2] = {{"op", ir_attr(op, "op")}, {"over", ir_attr_ints(b.m, left, nleft)}};
    x = ir_result(ir_build_typed(&b, IR_OP_REDUCE, 1, &x, 1, &x->type, 2, attrs), 0);
  }
  ir_replace_all_uses(&op->results[0], sum ? multiple(&b, x, &k, same) : x);
  ir_op_erase(op);
  return true;
}

static bool simplify_body(IrOp *kernel) {
  IrBlock *body = kernel->region;
  bool changed = false;
  for (IrOp *op = body->first, *next; op; op = next) {
    next = op->next;
    if (op->kind == IR_OP_YIELD) continue;
    changed |= drop_test(op) || drop_cast(op) || merge_equal(op) || shrink_reduce(kernel, op);
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

/* Dimensions some operand, result, position or reduction of the kernel runs along. */
static uint32_t dims_needed(const IrOp *kernel) {
  uint32_t dims = 0;
  for (int i = 0; i < kernel->noperands; i++)
    if (operand_needed(kernel, i)) dims |= ir_map_dims(ir_kernel_in_map(kernel, i));
  for (int i = 0; i < kernel->nresults; i++) dims |= ir_map_dims(ir_kernel_out_map(kernel, i));
  for (const IrOp *op = kernel->region->first; op; op = op->next) {
    int64_t over[IR_MAX_DIMS];
    int n = op->kind == IR_OP_REDUCE ? ir_get_ints(op, "over", over, IR_MAX_DIMS) : 0;
    if (op->kind == IR_OP_INDEX) over[n++] = ir_get_int(op, "dim", 0);
    for (int i = 0; i < n; i++) dims |= 1u << over[i];
  }
  return dims;
}

/* Gives n the needed dimensions of kernel; images: where each went. False when all are needed. */
static bool keep_dims(Nest *n, const IrOp *kernel, DimImage images[IR_MAX_DIMS]) {
  IrKernel k;
  uint32_t needed = dims_needed(kernel);
  ir_kernel_read(kernel, &k);
  for (int d = 0; d < k.ndims; d++) {
    if (!(needed >> d & 1)) continue;
    images[d].coef[n->ndims] = 1;
    n->names[n->ndims] = k.name[d];
    n->extents[n->ndims++] = k.extent[d];
  }
  return n->ndims < k.ndims;
}

IrOp *kernel_simplify(IrOp *kernel) {
  while (simplify_body(kernel)) {
  }
  if (kernel->noperands > NEST_MAX_IO || kernel->nresults > NEST_MAX_IO) return kernel;
  IrBuilder at = ir_builder_before(kernel);
  Nest n = nest_begin(&at);
  DimImage images[IR_MAX_DIMS] = {0};
  if (!keep_dims(&n, kernel, images) && !has_spare_operand(kernel)) return kernel;
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
