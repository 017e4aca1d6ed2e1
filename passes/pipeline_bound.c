/* What the program has to say about the bound in reports: the model's own figures, which the pass
 * `roofline` noted, but no more than the kernels ask for, in the types they compute and store in.
 * On each section macs, multiply-accumulates of its kernel; on the return macs_s8, macs_bf16 and
 * model_bytes. */
#include "passes/pipeline.h"
#include <math.h>
#include <string.h>

void bound_kernel(Bound *b, const Places *p, const IrOp *kernel, IrOp *section) {
  ReachBox all = reach_all(kernel->results[0].type);
  bool s8 = false;
  double macs = reach_macs(kernel, &all, &s8);
  if (s8)
    b->macs_s8 += macs;
  else
    b->macs_other += macs;
  if (macs > 0) ir_set_attr(section, "macs", ir_attr_float(p->pc->module, macs));
  for (int r = 0; r < kernel->nresults; r++) {
    all = reach_all(kernel->results[r].type);
    for (int i = 0; i < kernel->noperands; i++) {
      const IrValue *v = ir_operand(kernel, i), *root = sched_storage(v);
      IrValue *tensor = pipeline_place_of(p, v);
      ReachBox read, stored;
      if (!tensor || !reach_operand(kernel, r, &all, i, &read) ||
          !reach_reshape(&read, v->type, root->type, &stored))
        continue;
      TensorReads *t;
      HASH_FIND_PTR(b->reads, &tensor, t);
      if (!t) {
        t = ARENA_NEW(p->pc->scratch, TensorReads);
        t->tensor = tensor;
        t->element = dtype_size(root->type->dtype);
        HASH_ADD_PTR(b->reads, tensor, t);
      }
      reach_add(p->pc->scratch, &t->reach, &stored);
    }
  }
}

/* Bytes that kernels read of tensors in a role, each element once. */
static double bytes_read(const Bound *b, const char *role) {
  double bytes = 0;
  for (const TensorReads *t = b->reads; t; t = t->hh.next)
    if (!strcmp(ir_get_str(t->tensor->def, "role", ""), role))
      bytes += reach_count(&t->reach) * (double)t->element;
  return bytes;
}

static double noted(const IrFunc *f, const char *name) {
  const IrAttr *a = ir_func_attr(f, name);
  return a && a->kind == IR_ATTR_FLOAT ? a->f : 0;
}

void bound_finish(Bound *b, IrFunc *f) {
  IrOp *ret = f->body->last;
  IrModule *m = f->module;
  double macs = fmin(noted(f, "model_macs"), b->macs_s8 + b->macs_other);
  double s8 = fmin(macs, b->macs_s8);
  double bytes = fmin(noted(f, "model_reads"), bytes_read(b, "input") + bytes_read(b, "state")) +
                 fmin(noted(f, "model_constants"), bytes_read(b, "const")) +
                 noted(f, "model_writes");
  ir_set_attr(ret, "macs_s8", ir_attr_float(m, s8));
  ir_set_attr(ret, "macs_bf16", ir_attr_float(m, macs - s8));
  ir_set_attr(ret, "model_bytes", ir_attr_float(m, bytes));
  HASH_CLEAR(hh, b->reads);
}
