/* What schedules leave on and read from the IR. */
#include "passes/sched.h"
#include <limits.h>
#include <string.h>

/* What no int holds is out of every range that sched_valid allows. */
static int to_int(int64_t v) {
  return v < INT_MIN ? INT_MIN : v > INT_MAX ? INT_MAX : (int)v;
}

void sched_read(const IrOp *kernel, Schedule *s, bool *present) {
  int64_t order[IR_MAX_DIMS];
  memset(s, 0, sizeof *s);
  *present = ir_attr(kernel, "tile") != NULL;
  ir_get_ints(kernel, "tile", s->tile, IR_MAX_DIMS);
  ir_get_ints(kernel, "block", s->block, IR_MAX_DIMS);
  s->norder = ir_get_ints(kernel, "order", order, IR_MAX_DIMS);
  for (int i = 0; i < s->norder; i++) s->order[i] = to_int(order[i]);
  s->slots = to_int(ir_get_int(kernel, "slots", 1));
  s->stream = to_int(ir_get_int(kernel, "stream", 0));
}

void sched_write(IrOp *kernel, const Schedule *s, int ndims) {
  IrModule *m = ir_op_module(kernel);
  int64_t order[IR_MAX_DIMS];
  for (int i = 0; i < s->norder; i++) order[i] = s->order[i];
  ir_set_attr(kernel, "tile", ir_attr_ints(m, s->tile, (size_t)ndims));
  ir_set_attr(kernel, "block", ir_attr_ints(m, s->block, (size_t)ndims));
  ir_set_attr(kernel, "order", ir_attr_ints(m, order, (size_t)s->norder));
  ir_set_attr(kernel, "slots", ir_attr_int(m, s->slots));
  ir_set_attr(kernel, "stream", ir_attr_int(m, s->stream));
}

bool sched_valid(const KernelInfo *ki, const Schedule *s, const char **why) {
  uint32_t seen = 0;
  bool reducing = false;
  *why = "slots of 1 or 2 and a stream of 0 or 1";
  if (s->slots < 1 || s->slots > 2 || s->stream < 0 || s->stream > 1) return false;
  for (int d = 0; d < ki->k.ndims; d++) {
    *why = "a tile size of at least 1 for every dimension, and blocks of at least 0";
    if (s->tile[d] < 1 || s->block[d] < 0 || s->block[d] > INT32_MAX) return false;
    *why = "whole tiles of dimensions it reduces and also keeps";
    if ((ki->whole >> d & 1) && sched_tiles(ki, s, d) > 1) return false;
  }
  *why = "an order that names each dimension with several tiles once, reductions last";
  for (int i = 0; i < s->norder; i++) {
    int d = s->order[i];
    if (d < 0 || d >= ki->k.ndims || (seen >> d & 1) || sched_tiles(ki, s, d) == 1) return false;
    bool red = ki->red >> d & 1;
    if (reducing && !red) return false;
    reducing = red;
    seen |= 1u << d;
  }
  for (int d = 0; d < ki->k.ndims; d++)
    if (!(seen >> d & 1) && sched_tiles(ki, s, d) > 1) return false;
  return true;
}

IrValue *sched_storage(const IrValue *v) {
  while (ir_is(v->def, IR_OP_RESHAPE)) v = ir_operand(v->def, 0);
  return (IrValue *)(uintptr_t)v;
}
