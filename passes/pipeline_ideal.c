/* The work a model cannot do without, whatever the tiling: what the roofline bound is computed
 * from. Written on the return as macs_s8, macs_bf16 and vpu_ops, and on each tensor as touched
 * (bytes some kernel reads). */
#include "passes/pipeline.h"
#include <math.h>
#include <string.h>

static double elements(const KernelInfo *ki, uint32_t dims) {
  double n = 1;
  for (int d = 0; d < ki->k.ndims; d++)
    if (dims >> d & 1) n *= (double)ki->k.extent[d];
  return n;
}

/* Distinct elements an operand's map can reach, at most the tensor. */
static double reached(const KernelInfo *ki, int operand) {
  const IrMap *map = ir_kernel_in_map(ki->op, operand);
  const IrType *t = ir_operand(ki->op, operand)->type;
  double n = 1;
  for (int a = 0; a < map->rank; a++) {
    double span = 1;
    if (map->axis[a].index >= 0) span = elements(ki, sched_operand_dims(ki, map->axis[a].index));
    for (int d = 0; d < ki->k.ndims; d++)
      if (map->axis[a].coef[d] && map->axis[a].index < 0)
        span += fabs((double)map->axis[a].coef[d]) * (double)(ki->k.extent[d] - 1);
    n *= fmin(span, (double)t->shape[a]);
  }
  return n * (double)dtype_size(t->dtype);
}

static double vector_ops(const KernelInfo *ki) {
  double n = 0;
  for (int i = 0; i < ki->nscalars; i++) {
    const IrOp *op = ki->scalar[i].value->def;
    if (!op || op->kind == IR_OP_CONSTANT || op->kind == IR_OP_CAST) continue;
    int store = sched_store_of(ki, ki->scalar[i].value);
    if (store >= 0 && ki->store[store].kind == STORE_ACC) continue;
    if (op->kind == IR_OP_MUL && ki->mxu_step >= 0 && ir_has_one_use(&op->results[0]) &&
        op->results[0].uses->op == ki->step[ki->mxu_step].target[0]->def)
      continue;
    uint32_t dims = ki->scalar[i].dims;
    if (op->kind == IR_OP_REDUCE) dims |= ki->scalar[sched_scalar(ki, ir_operand(op, 0))].dims;
    n += elements(ki, dims);
  }
  return n;
}

void write_ideal(const Places *p, IrOp *ret, const IrOp *kernel) {
  KernelInfo ki;
  const char *why;
  if (!sched_analyze_ideal(kernel, &ki, &why)) return;
  IrModule *m = p->pc->module;
  if (ki.mxu_step >= 0) {
    const Step *st = &ki.step[ki.mxu_step];
    bool s8 = ki.store[st->factor[0]].dtype == DT_S8 && ki.store[st->factor[1]].dtype == DT_S8;
    const char *name = s8 ? "macs_s8" : "macs_bf16";
    ir_set_attr(ret, name,
                ir_attr_float(m, ir_get_float(ret, name, 0) + elements(&ki, st->par | st->red)));
  }
  ir_set_attr(ret, "vpu_ops", ir_attr_float(m, ir_get_float(ret, "vpu_ops", 0) + vector_ops(&ki)));
  for (int i = 0; i < ki.k.nin; i++) {
    IrValue *t = pipeline_place_of(p, ir_operand(kernel, i));
    double bytes = reached(&ki, i);
    if (t && (double)ir_get_int(t->def, "touched", 0) < bytes)
      ir_set_attr(t->def, "touched", ir_attr_int(m, (int64_t)bytes));
  }
}
