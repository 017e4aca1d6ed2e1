/* fuse, forward: a kernel joins its consumers by composing maps, in the consumer's dimensions.
 * Copies (transposes, slices, borders, broadcasts) and widening casts join every consumer and
 * disappear; other elementwise kernels join a single consumer that reads each element once, so that
 * nothing is computed twice. */
#include "passes/cast.h"
#include "passes/fuse_internal.h"
#include <math.h>

/* Yields its operand, perhaps through casts that lose nothing. */
static bool is_plain_copy(const IrOp *kernel) {
  if (kernel->noperands != 1) return false;
  const IrValue *v = ir_operand(kernel->region->last, 0);
  while (v->def && v->def->kind == IR_OP_CAST) {
    const IrValue *from = ir_operand(v->def, 0);
    if (!cast_is_exact(from->type->dtype, v->type->dtype)) return false;
    v = from;
  }
  return !v->def;
}

/* No reduction, and every dimension is written along its own axis of the one result. */
static bool is_pointwise(const IrOp *kernel, int *dims) {
  if (kernel->nresults != 1 || kernel->noperands == 0 || kernel_has_reduce(kernel)) return false;
  const IrMap *out = ir_kernel_out_map(kernel, 0);
  for (int a = 0; a < out->rank; a++) {
    dims[a] = axis_dim(&out->axis[a]);
    if (dims[a] == AXIS_OTHER) return false;
  }
  return true;
}

static bool has_indirect(const IrOp *kernel) {
  for (int i = 0; i < kernel->noperands; i++)
    if (kernel_operand_is_index(kernel, i)) return true;
  return false;
}

/* Whether the last axis of the copy that varies is also the source's last: runs of elements stay
 * runs. */
static bool keeps_runs(const IrOp *copy) {
  const IrMap *in = ir_kernel_in_map(copy, 0), *out = ir_kernel_out_map(copy, 0);
  const IrType *from = ir_operand(copy, 0)->type, *to = copy->results[0].type;
  int last_in = from->rank - 1, last_out = to->rank - 1;
  while (last_in > 0 && from->shape[last_in] == 1) last_in--;
  while (last_out > 0 && to->shape[last_out] == 1) last_out--;
  if (last_in < 0 || last_out < 0) return true;
  int dim = axis_dim(&out->axis[last_out]);
  return dim == NEST_NO_DIM || in->axis[last_in].coef[dim] == 1;
}

static bool reads_once(const IrOp *consumer, int operand) {
  IrKernel k;
  ir_kernel_read(consumer, &k);
  const IrMap *map = ir_kernel_in_map(consumer, operand);
  uint32_t seen = 0;
  for (int a = 0; a < map->rank; a++) {
    int d = axis_dim(&map->axis[a]);
    if (d == AXIS_OTHER || (d >= 0 && (seen >> d & 1))) return false;
    if (d >= 0) seen |= 1u << d;
  }
  for (int d = 0; d < k.ndims; d++)
    if (!(seen >> d & 1) && k.extent[d] > 1) return false;
  return true;
}

/* 0.0 and -0.0 are two values. */
static bool same_value(double a, double b) {
  return a == b && signbit(a) == signbit(b);
}

/* What the consumer reads outside of the copy must be what it would read outside of the source.
 * Returns false when it would not; *pad is then the pad the merged operand needs (NULL: none). */
static bool merged_pad(const IrOp *copy, const IrOp *consumer, int operand, const IrAttr **pad) {
  double outer, inner;
  bool padded = ir_kernel_pad(consumer, operand, &outer);
  *pad = kernel_pad_attr(copy, 0);
  if (!padded) return true;
  const IrMap *in = ir_kernel_in_map(copy, 0), *out = ir_kernel_out_map(copy, 0);
  const IrType *from = ir_operand(copy, 0)->type, *to = copy->results[0].type;
  /* Positions outside of the copy must be outside of the source too: every axis the same, the copy
   * at least as large. */
  if (in->rank != out->rank) return false;
  for (int a = 0; a < in->rank; a++) {
    int d = axis_dim(&out->axis[a]);
    if (d == NEST_NO_DIM) {
      /* The copy has no dimension to carry the position on: it must be 0. */
      if (from->shape[a] != 1 || in->axis[a].cst != 0) return false;
      if (axis_dim(&ir_kernel_in_map(consumer, operand)->axis[a]) != NEST_NO_DIM) return false;
      continue;
    }
    IrAffine plain = in->axis[a];
    plain.cst = 0;
    int64_t before = -in->axis[a].cst, after = to->shape[a] - from->shape[a] - before;
    if (axis_dim(&plain) != d || before < 0 || after < 0) return false;
  }
  if (*pad) return ir_kernel_pad(copy, 0, &inner) && same_value(inner, outer);
  if (!dtype_holds(from->dtype, outer)) return false;
  if (!dtype_is_float(from->dtype) && !same_value(outer, outer + 0.0)) return false; /* -0.0 */
  *pad = kernel_pad_attr(consumer, operand);
  return true;
}

static bool may_join(const IrOp *kernel, const IrOp *consumer, int operand, bool plain) {
  if (consumer->noperands > NEST_MAX_IO || consumer->nresults != 1) return false;
  if (kernel_operand_is_index(consumer, operand)) return false;
  const IrMap *map = ir_kernel_in_map(consumer, operand);
  for (int a = 0; a < map->rank; a++)
    if (map->axis[a].index >= 0) return false;
  if (!plain)
    return !kernel_pad_attr(consumer, operand) && !kernel_is_contraction(consumer) &&
           reads_once(consumer, operand);
  return !kernel_is_contraction(consumer) || keeps_runs(kernel);
}

/* Joins kernel to one operand of one consumer; the merged kernel or NULL. */
static IrOp *join(IrOp *kernel, const int *dims, IrOp *consumer, int operand) {
  Merge m = {.producer = kernel, .consumer = consumer, .base = consumer};
  m.reads[operand] = true;
  m.type = consumer->results[0].type;
  m.out_map = *ir_kernel_out_map(consumer, 0);
  images_identity(m.consumer_dims);
  const IrMap *map = ir_kernel_in_map(consumer, operand);
  for (int a = 0; a < map->rank; a++) {
    if (map->axis[a].index >= 0) return NULL;
    if (dims[a] == NEST_NO_DIM) continue;
    for (int d = 0; d < IR_MAX_DIMS; d++) m.producer_dims[dims[a]].coef[d] = map->axis[a].coef[d];
    m.producer_dims[dims[a]].cst = map->axis[a].cst;
  }
  return merge_kernels(&m);
}

static bool join_use(IrOp *kernel, const int *dims, IrOp *consumer, int operand, bool plain) {
  const IrAttr *pad = NULL, *own = NULL;
  if (!may_join(kernel, consumer, operand, plain)) return false;
  if (plain && !merged_pad(kernel, consumer, operand, &pad)) return false;
  own = ir_attr(kernel, "pads");
  if (plain) { /* the producer's read takes the pad of the merged read while they are joined */
    const IrAttr *pads = pad ? pad : ir_attr_str(ir_op_module(kernel), "none");
    ir_set_attr(kernel, "pads", ir_attr_array(ir_op_module(kernel), &pads, 1));
  }
  IrOp *merged = join(kernel, dims, consumer, operand);
  ir_set_attr(kernel, "pads", own);
  if (!merged) return false;
  ir_replace_all_uses(&consumer->results[0], &merged->results[0]);
  ir_op_erase(consumer);
  return true;
}

int fuse_forward(IrOp *kernel, bool compute) {
  int dims[IR_MAX_RANK], joined = 0;
  if (kernel->noperands > NEST_MAX_IO || has_indirect(kernel) || !is_pointwise(kernel, dims))
    return 0;
  bool plain = is_plain_copy(kernel);
  IrValue *v = &kernel->results[0];
  if (!plain && (!compute || !ir_has_one_use(v))) return 0;
  for (bool again = true; again;) {
    again = false;
    for (IrUse *u = v->uses; u && !again; u = u->next)
      again = u->op->kind == IR_OP_KERNEL && join_use(kernel, dims, u->op, u->index, plain);
    joined += again;
  }
  return joined;
}
