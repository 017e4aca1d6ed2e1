/* The builder: ops with inferred types and filled-in defaults at an insertion point. */
#include "ir/internal.h"

IrBuilder ir_builder_at_end(IrBlock *b, SrcLoc loc) {
  return (IrBuilder){.m = block_module(b), .block = b, .loc = loc};
}

IrBuilder ir_builder_before(IrOp *op) {
  return (IrBuilder){.m = op->module, .block = op->parent, .before = op, .loc = op->loc};
}

IrBuilder ir_builder_after(IrOp *op) {
  return (IrBuilder){.m = op->module, .block = op->parent, .before = op->next, .loc = op->loc};
}

static void place(IrBuilder *b, IrOp *op) {
  if (b->before)
    ir_op_insert_before(b->before, op);
  else if (b->block)
    ir_op_append(b->block, op);
}

static IrOp *with_attrs(IrBuilder *b, IrOpKind kind, int noperands, IrValue *const *operands,
                        int nresults, const IrType *const *types, int nattrs,
                        const IrAttrInit *attrs) {
  IrOp *op = ir_op_new(b->m, kind, b->loc, noperands, operands, nresults, types);
  for (int i = 0; i < nattrs; i++)
    if (attrs[i].value) ir_set_attr(op, attrs[i].name, attrs[i].value);
  fill_defaults(op);
  return op;
}

IrOp *ir_build(IrBuilder *b, IrOpKind kind, int noperands, IrValue *const *operands, int nattrs,
               const IrAttrInit *attrs) {
  IrOp *op = with_attrs(b, kind, noperands, operands, 0, NULL, nattrs, attrs);
  const IrType *types[IR_MAX_RESULTS];
  int n = 0;
  bool ok = ir_infer(b->m, kind, b->loc, noperands, operands, op->nattrs, op->attrs, types, &n);
  if (ok && n < 0) {
    diag_error(b->m->diag, b->loc, "E-shape", "`%s` does not say its result types; give them",
               ir_op_info(kind)->name);
    ok = false;
  }
  if (!ok) {
    ir_op_erase(op);
    return NULL;
  }
  op->nresults = n;
  op->results = n ? ARENA_ARRAY(b->m->arena, IrValue, n) : NULL;
  for (int i = 0; i < n; i++) op->results[i] = (IrValue){.type = types[i], .def = op, .index = i};
  place(b, op);
  return op;
}

IrOp *ir_build_typed(IrBuilder *b, IrOpKind kind, int noperands, IrValue *const *operands,
                     int nresults, const IrType *const *types, int nattrs,
                     const IrAttrInit *attrs) {
  IrOp *op = with_attrs(b, kind, noperands, operands, nresults, types, nattrs, attrs);
  place(b, op);
  return op;
}

static IrValue *first_result(IrOp *op) {
  return op && op->nresults ? &op->results[0] : NULL;
}

IrValue *ir_build1(IrBuilder *b, IrOpKind kind, IrValue *x) {
  return first_result(ir_build(b, kind, 1, &x, 0, NULL));
}

IrValue *ir_build2(IrBuilder *b, IrOpKind kind, IrValue *x, IrValue *y) {
  IrValue *operands[] = {x, y};
  return first_result(ir_build(b, kind, 2, operands, 0, NULL));
}

IrValue *ir_build_cast(IrBuilder *b, IrValue *x, DType to) {
  if (x->type->dtype == to) return x;
  IrAttrInit attr = {"dtype", ir_attr_dtype(b->m, to)};
  return first_result(ir_build(b, IR_OP_CAST, 1, &x, 1, &attr));
}

IrValue *ir_build_splat(IrBuilder *b, const IrType *type, double value) {
  bool real = dtype_is_float(type->dtype);
  const IrAttr *a = real ? ir_attr_float(b->m, value) : ir_attr_int(b->m, (int64_t)value);
  IrAttrInit attr = {"value", a};
  return first_result(ir_build_typed(b, IR_OP_CONSTANT, 0, NULL, 1, &type, 1, &attr));
}

IrValue *ir_build_constant(IrBuilder *b, const IrAttr *data) {
  IrAttrInit attr = {"data", data};
  return first_result(ir_build(b, IR_OP_CONSTANT, 0, NULL, 1, &attr));
}

IrValue *ir_build_scalar(IrBuilder *b, DType dtype, double value) {
  return ir_build_splat(b, ir_type_scalar(b->m, dtype), value);
}
