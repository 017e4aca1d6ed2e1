/* lower: rearrangements. Most are a kernel that yields its operand, all of the meaning in the maps;
 * reshapes stay aliases of the row-major elements. */
#include "passes/lower_internal.h"

void lower_FLATTEN(IrBuilder *at, IrOp *op, IrValue **out) {
  out[0] = lower_reshape(at, ir_operand(op, 0), op->results[0].type);
}

/* result[dims] = x[map] */
static IrValue *lower_copy(IrBuilder *at, IrValue *x, const IrType *t, Nest *n, const int *dims,
                           const IrMap *map, const IrAttr *pad) {
  (void)at;
  int slot = nest_in(n, x, map, pad);
  nest_out_dims(n, t, dims);
  nest_open(n);
  return nest_close1(n, nest_arg(n, slot));
}

void lower_TRANSPOSE(IrBuilder *at, IrOp *op, IrValue **out) {
  const IrType *t = op->results[0].type;
  int64_t perm[IR_MAX_RANK] = {0};
  ir_get_ints(op, "perm", perm, IR_MAX_RANK);
  Nest n = nest_begin(at);
  int dims[IR_MAX_RANK];
  nest_dims_of(&n, t, dims);
  IrMap map = ir_map_zero(t->rank);
  for (int i = 0; i < t->rank; i++) nest_axis(&map, ir_axis(perm[i], t->rank), dims[i], 1);
  out[0] = lower_copy(at, ir_operand(op, 0), t, &n, dims, &map, NULL);
}

void lower_BROADCAST(IrBuilder *at, IrOp *op, IrValue **out) {
  const IrType *t = op->results[0].type, *tx = ir_operand(op, 0)->type;
  Nest n = nest_begin(at);
  int dims[IR_MAX_RANK];
  nest_dims_of(&n, t, dims);
  IrMap map = nest_map_broadcast(tx, t, dims);
  out[0] = lower_copy(at, ir_operand(op, 0), t, &n, dims, &map, NULL);
}

/* Axis i of the result reads begin[i] + step[i] * d; pad NULL when all of it lies inside x. */
static IrValue *lower_box(IrBuilder *at, IrValue *x, const IrType *t, const int64_t *begin,
                          const int64_t *step, const IrAttr *pad) {
  Nest n = nest_begin(at);
  int dims[IR_MAX_RANK];
  nest_dims_of(&n, t, dims);
  IrMap map = ir_map_zero(t->rank);
  for (int i = 0; i < t->rank; i++) {
    nest_axis(&map, i, dims[i], step ? step[i] : 1);
    map.axis[i].cst = begin[i];
  }
  return lower_copy(at, x, t, &n, dims, &map, pad);
}

void lower_SLICE(IrBuilder *at, IrOp *op, IrValue **out) {
  int64_t begin[IR_MAX_RANK], step[IR_MAX_RANK];
  slice_range(op, begin, step);
  out[0] = lower_box(at, ir_operand(op, 0), op->results[0].type, begin, step, NULL);
}

void lower_SPLIT(IrBuilder *at, IrOp *op, IrValue **out) {
  int axis = ir_axis(ir_get_int(op, "axis", 0), ir_operand(op, 0)->type->rank);
  int64_t begin[IR_MAX_RANK] = {0};
  for (int i = 0; i < op->nresults; i++) {
    out[i] = lower_box(at, ir_operand(op, 0), op->results[i].type, begin, NULL, NULL);
    begin[axis] += op->results[i].type->shape[axis];
  }
}

void lower_PAD(IrBuilder *at, IrOp *op, IrValue **out) {
  const IrType *tx = ir_operand(op, 0)->type;
  int64_t before[IR_MAX_RANK], begin[IR_MAX_RANK];
  pad_before(op, tx->rank, before);
  for (int i = 0; i < tx->rank; i++) begin[i] = -before[i];
  const IrAttr *pad = ir_attr_float(at->m, ir_get_float(op, "value", 0));
  out[0] = lower_box(at, ir_operand(op, 0), op->results[0].type, begin, NULL, pad);
}

/* ---- concat, update ---- */

#define CONCAT_MAX 3 /* parts joined by one kernel */

static const IrType *concat_type(IrModule *m, IrValue *const *parts, int nparts, int axis) {
  IrType t = *parts[0]->type;
  for (int i = 1; i < nparts; i++) t.shape[axis] += parts[i]->type->shape[axis];
  return ir_type_tensor(m, t.dtype, t.rank, t.shape);
}

/* Every part is read at every position; outside of a part the read gives 0 and the select takes
 * another. */
static IrValue *concat_few(IrBuilder *at, IrValue *const *parts, int nparts, int axis) {
  if (nparts == 1) return parts[0];
  const IrType *t = concat_type(at->m, parts, nparts, axis);
  Nest n = nest_begin(at);
  int dims[IR_MAX_RANK], slots[CONCAT_MAX];
  int64_t begin[CONCAT_MAX], at_axis = 0;
  nest_dims_of(&n, t, dims);
  const IrAttr *zero = ir_attr_float(at->m, 0);
  for (int i = 0; i < nparts; i++) {
    IrMap map = nest_map_dims(t->rank, dims);
    map.axis[axis].cst = -at_axis;
    begin[i] = at_axis;
    at_axis += parts[i]->type->shape[axis];
    slots[i] = nest_in(&n, parts[i], &map, zero);
  }
  nest_out_dims(&n, t, dims);
  nest_open(&n);
  IrValue *r = nest_load(&n, slots[nparts - 1]);
  for (int i = nparts - 2; i >= 0; i--) {
    IrValue *here = nest_bin_const(&n, IR_OP_LT, nest_index(&n, dims[axis]), (double)begin[i + 1]);
    r = nest_where(&n, here, nest_load(&n, slots[i]), r);
  }
  return nest_close1(&n, r);
}

/* A balanced tree, so that no element is copied more than log3(parts) times. */
static IrValue *concat_tree(IrBuilder *at, IrValue *const *parts, int nparts, int axis) {
  if (nparts <= CONCAT_MAX) return concat_few(at, parts, nparts, axis);
  IrValue *joined[CONCAT_MAX];
  int done = 0;
  for (int i = 0; i < CONCAT_MAX; i++) {
    int end = (int)((int64_t)nparts * (i + 1) / CONCAT_MAX);
    joined[i] = concat_tree(at, parts + done, end - done, axis);
    done = end;
  }
  return concat_few(at, joined, CONCAT_MAX, axis);
}

void lower_CONCAT(IrBuilder *at, IrOp *op, IrValue **out) {
  int axis = ir_axis(ir_get_int(op, "axis", 0), op->results[0].type->rank);
  IrValue **parts = arena_alloc(at->m->arena, sizeof(IrValue *) * (size_t)op->noperands);
  for (int i = 0; i < op->noperands; i++) parts[i] = ir_operand(op, i);
  IrValue *r = concat_tree(at, parts, op->noperands, axis);
  if (op->noperands == 1) { /* a copy, so that no value stands for another's name */
    const int64_t begin[IR_MAX_RANK] = {0};
    r = lower_box(at, parts[0], op->results[0].type, begin, NULL, NULL);
  }
  out[0] = r;
}

/* One read tells inside from outside on every axis at once: ones of the box's shape, zero around
 * them. */
void lower_UPDATE(IrBuilder *at, IrOp *op, IrValue **out) {
  IrValue *x = ir_operand(op, 0), *value = ir_operand(op, 1);
  const IrType *t = op->results[0].type;
  int64_t begin[IR_MAX_RANK] = {0};
  ir_get_ints(op, "begin", begin, IR_MAX_RANK);
  Nest n = nest_begin(at);
  int dims[IR_MAX_RANK];
  nest_dims_of(&n, t, dims);
  IrMap map_x = nest_map_dims(t->rank, dims), map_v = map_x;
  bool whole = true;
  for (int i = 0; i < t->rank; i++) {
    map_v.axis[i].cst = -begin[i];
    whole = whole && value->type->shape[i] == t->shape[i];
  }
  const IrAttr *zero = ir_attr_float(at->m, 0);
  int old = nest_in(&n, x, &map_x, NULL), new = nest_in(&n, value, &map_v, zero), inside = -1;
  if (!whole)
    inside = nest_in(&n, ir_build_splat(at, ir_type_with_dtype(at->m, value->type, DT_S8), 1),
                     &map_v, zero);
  nest_out_dims(&n, t, dims);
  nest_open(&n);
  IrValue *o = nest_load(&n, old), *r = nest_load(&n, new);
  if (!whole) r = nest_where(&n, nest_arg(&n, inside), r, o);
  out[0] = nest_close1(&n, r);
}

/* ---- gather ---- */

/* result[before axis, index axes, after axis] = table[before, index[...], after] */
static IrValue *lower_take(IrBuilder *at, IrValue *table, IrValue *index, int axis,
                           const IrType *t) {
  Nest n = nest_begin(at);
  int dims[IR_MAX_RANK];
  nest_dims_of(&n, t, dims);
  const IrType *tt = table->type, *ti = index->type;
  IrMap map_i = nest_map_dims(ti->rank, dims + axis), map_t = ir_map_zero(tt->rank);
  for (int i = 0; i < tt->rank; i++) {
    if (i == axis)
      map_t.axis[i].index = 0; /* the index list is operand 0 */
    else
      nest_axis(&map_t, i, dims[i < axis ? i : i - 1 + ti->rank], 1);
  }
  nest_in(&n, index, &map_i, NULL);
  int slot = nest_in(&n, table, &map_t, NULL);
  nest_out_dims(&n, t, dims);
  nest_open(&n);
  return nest_close1(&n, nest_arg(&n, slot));
}

void lower_GATHER(IrBuilder *at, IrOp *op, IrValue **out) {
  int axis = ir_axis(ir_get_int(op, "axis", 0), ir_operand(op, 0)->type->rank);
  out[0] = lower_take(at, ir_operand(op, 0), ir_operand(op, 1), axis, op->results[0].type);
}

void lower_EMBED(IrBuilder *at, IrOp *op, IrValue **out) {
  out[0] = lower_take(at, ir_operand(op, 1), ir_operand(op, 0), 0, op->results[0].type);
}
