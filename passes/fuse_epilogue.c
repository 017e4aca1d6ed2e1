/* fuse, epilogue: consumer(producer(x)) in the producer's dimensions, when the consumer is
 * elementwise in the tensor between them. A reshape between the two is looked through when each of
 * its result axes is one source axis or several merged. */
#include "passes/fuse_internal.h"

/* Axis j of the consumer's tensor as source axes first[j]..first[j]+count[j]-1, row-major. */
typedef struct {
  int first[IR_MAX_RANK], count[IR_MAX_RANK];
} AxisGroups;

/* False when an axis of `to` is only part of an axis of `from`. Axes of extent 1 get count 0 or
 * join a neighbour. */
static bool group_axes(const IrType *from, const IrType *to, AxisGroups *g) {
  int i = 0;
  for (int j = 0; j < to->rank; j++) {
    g->first[j] = i;
    int64_t product = 1;
    while (i < from->rank && product < to->shape[j]) product *= from->shape[i++];
    if (product != to->shape[j]) return false;
    g->count[j] = i - g->first[j];
  }
  for (; i < from->rank; i++)
    if (from->shape[i] != 1) return false;
  return true;
}

/* The one kernel that reads every use of v; NULL when uses differ. */
static IrOp *only_reader(const IrValue *v) {
  IrOp *reader = NULL;
  for (const IrUse *u = v->uses; u; u = u->next) {
    if (reader && u->op != reader) return NULL;
    reader = u->op;
  }
  return ir_is(reader, IR_OP_KERNEL) ? reader : NULL;
}

/* Axis of v each consumer dimension runs along, -1 for dimensions of extent 1; false unless every
 * dimension covers one axis fully. */
static bool dims_to_axes(const IrOp *consumer, int operand, int *axis_of_dim) {
  IrKernel k;
  ir_kernel_read(consumer, &k);
  const IrMap *map = ir_kernel_in_map(consumer, operand);
  const IrType *t = ir_operand(consumer, operand)->type;
  for (int d = 0; d < k.ndims; d++) axis_of_dim[d] = -1;
  for (int a = 0; a < map->rank; a++) {
    int d = axis_dim(&map->axis[a]);
    if (d == AXIS_OTHER) return false;
    if (t->shape[a] == 1 && d == NEST_NO_DIM) continue;
    if (d == NEST_NO_DIM || axis_of_dim[d] >= 0 || k.extent[d] != t->shape[a]) return false;
    axis_of_dim[d] = a;
  }
  for (int d = 0; d < k.ndims; d++)
    if (axis_of_dim[d] < 0 && k.extent[d] != 1) return false;
  return true;
}

/* Marks the operands that read v; false when they read it differently or as indices. */
static bool mark_reads(Merge *m, const IrValue *v, int *axis_of_dim) {
  int axes[IR_MAX_DIMS];
  bool first = true;
  IrKernel k;
  ir_kernel_read(m->consumer, &k);
  for (int i = 0; i < m->consumer->noperands; i++) {
    m->reads[i] = ir_operand(m->consumer, i) == v;
    if (!m->reads[i]) continue;
    if (kernel_operand_is_index(m->consumer, i)) return false;
    if (!dims_to_axes(m->consumer, i, first ? axis_of_dim : axes)) return false;
    for (int d = 0; !first && d < k.ndims; d++)
      if (axes[d] != axis_of_dim[d]) return false;
    first = false;
  }
  return true;
}

/* Producer dimension written along each axis of its result, NEST_NO_DIM along axes of extent 1. */
static bool producer_axis_dims(const IrOp *producer, int *dims) {
  const IrMap *map = ir_kernel_out_map(producer, 0);
  for (int a = 0; a < map->rank; a++) {
    dims[a] = axis_dim(&map->axis[a]);
    if (dims[a] == AXIS_OTHER) return false;
  }
  return true;
}

/* Image of consumer dimension d: the producer dimensions of its axis group, row-major. */
static DimImage group_image(const IrType *t, const AxisGroups *g, int axis,
                            const int *producer_dims) {
  DimImage image = {0};
  int64_t stride = 1;
  for (int i = g->first[axis] + g->count[axis]; i-- > g->first[axis];) {
    if (producer_dims[i] != NEST_NO_DIM) image.coef[producer_dims[i]] = stride;
    stride *= t->shape[i];
  }
  return image;
}

/* The merged result: the consumer's axes, an axis along a merged group replaced by the group's
 * axes. False when it has too many. */
static bool merged_result(Merge *m, const IrType *t, const AxisGroups *g, const int *axis_of_dim,
                          const int *producer_dims) {
  const IrMap *out = ir_kernel_out_map(m->consumer, 0);
  const IrType *to = m->consumer->results[0].type;
  int64_t shape[IR_MAX_RANK];
  int rank = 0;
  m->out_map = ir_map_zero(0);
  for (int a = 0; a < out->rank; a++) {
    int d = axis_dim(&out->axis[a]);
    if (d == AXIS_OTHER) return false;
    int axis = d == NEST_NO_DIM ? -1 : axis_of_dim[d];
    int wide = 0;
    for (int i = 0; axis >= 0 && i < g->count[axis]; i++) wide += t->shape[g->first[axis] + i] != 1;
    if (rank + (wide > 1 ? wide : 1) > IR_MAX_RANK) return false;
    if (wide == 0) {
      shape[rank++] = 1;
      continue;
    }
    for (int i = g->first[axis]; i < g->first[axis] + g->count[axis]; i++) {
      if (t->shape[i] == 1) continue;
      ir_map_dim(&m->out_map, rank, producer_dims[i], 1);
      shape[rank++] = t->shape[i];
    }
  }
  m->out_map.rank = rank;
  m->type = ir_type_tensor(ir_op_module(m->consumer), to->dtype, rank, shape);
  /* A reshape will follow, both ends of which are row-major. */
  return m->type == to || !ir_attr(m->consumer, "layout");
}

static void replace_result(IrOp *consumer, IrOp *merged) {
  IrValue *value = &merged->results[0], *old = &consumer->results[0];
  if (value->type != old->type) {
    IrBuilder b = ir_builder_after(merged);
    b.loc = consumer->loc;
    IrAttrInit attr = {"shape", ir_attr_ints(b.m, old->type->shape, (size_t)old->type->rank)};
    value = ir_result(ir_build_typed(&b, IR_OP_RESHAPE, 1, &value, 1, &old->type, 1, &attr), 0);
    value->name = old->name;
  }
  ir_replace_all_uses(old, value);
  ir_op_erase(consumer);
}

IrOp *fuse_epilogue(IrOp *producer) {
  if (producer->nresults != 1) return NULL;
  IrValue *v = &producer->results[0];
  const IrType *t = v->type;
  if (ir_has_one_use(v) && ir_is(v->uses->op, IR_OP_RESHAPE)) v = &v->uses->op->results[0];
  Merge m = {.producer = producer, .consumer = only_reader(v), .base = producer};
  if (!m.consumer || m.consumer->nresults != 1 || m.consumer->noperands > NEST_MAX_IO) return NULL;
  if (kernel_has_reduce(m.consumer)) return NULL;
  AxisGroups g;
  int axis_of_dim[IR_MAX_DIMS], producer_dims[IR_MAX_RANK];
  if (!group_axes(t, v->type, &g) || !mark_reads(&m, v, axis_of_dim)) return NULL;
  if (!producer_axis_dims(producer, producer_dims)) return NULL;
  if (!merged_result(&m, t, &g, axis_of_dim, producer_dims)) return NULL;
  images_identity(m.producer_dims);
  IrKernel k;
  ir_kernel_read(m.consumer, &k);
  for (int d = 0; d < k.ndims; d++)
    if (axis_of_dim[d] >= 0) m.consumer_dims[d] = group_image(t, &g, axis_of_dim[d], producer_dims);
  IrOp *merged = merge_kernels(&m);
  if (!merged) return NULL;
  replace_result(m.consumer, merged);
  if (v->def->kind == IR_OP_RESHAPE) ir_op_erase(v->def);
  return merged;
}
