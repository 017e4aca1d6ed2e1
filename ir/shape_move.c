/* Shape rules of ops that rearrange, select and join elements. */
#include "ir/shape.h"

#include <string.h>

/* The list attribute `name` as exactly n whole numbers (a lone number counts as a list of one). */
static bool need_list(Shape *s, const char *name, int n, int64_t *out) {
  const IrAttr *a = ir_attr(s->op, name);
  size_t found = a->kind == IR_ATTR_INT ? 1 : a->array.n;
  if (found != (size_t)n)
    return shape_fail(s, "E-attr", "%s needs %d number%s, one per axis of %s, found %zu", name, n,
                      n == 1 ? "" : "s", type_text(s, s->x[0]), found);
  ir_get_ints(s->op, name, out, n);
  return true;
}

/* A shape attribute of any rank. */
static bool need_shape(Shape *s, int64_t *shape, int *rank) {
  const IrAttr *a = ir_attr(s->op, "shape");
  if (a->kind == IR_ATTR_ARRAY && a->array.n > IR_MAX_RANK)
    return shape_fail(s, "E-shape", "shape has %zu axes; %d is the most", a->array.n, IR_MAX_RANK);
  *rank = ir_get_ints(s->op, "shape", shape, IR_MAX_RANK);
  return true;
}

bool shape_reshape(Shape *s) {
  const IrType *x = s->x[0];
  int64_t shape[IR_MAX_RANK], known = 1, total = ir_type_elements(x);
  int rank = 0, hole = -1;
  if (!need_shape(s, shape, &rank)) return false;
  for (int i = 0; i < rank; i++) {
    if (shape[i] == -1 && hole < 0)
      hole = i;
    else if (shape[i] < 1)
      return shape_fail(s, "E-shape",
                        shape[i] == -1 ? "shape %s has two -1; give one of them"
                                       : "shape %s: every axis must be at least 1, or -1 once",
                        dims_text(s, rank, shape));
    else if (!mul_i64(known, shape[i], &known))
      known = INT64_MAX;
  }
  if (hole >= 0 && known <= total && total % known == 0)
    shape[hole] = total / known;
  else if (hole >= 0 || known != total)
    return shape_fail(s, "E-shape", "%s has %lld elements, which do not make %s", type_text(s, x),
                      (long long)total, dims_text(s, rank, shape));
  return result_shape(s, x->dtype, rank, shape);
}

bool shape_flatten(Shape *s) {
  const IrType *x = s->x[0];
  int from;
  int64_t shape[IR_MAX_RANK];
  if (!need_axis(s, "from", x->rank, &from)) return false;
  for (int i = 0; i <= from; i++) shape[i] = x->shape[i];
  for (int i = from + 1; i < x->rank; i++) shape[from] *= x->shape[i];
  return result_shape(s, x->dtype, from + 1, shape);
}

bool shape_transpose(Shape *s) {
  const IrType *x = s->x[0];
  int64_t perm[IR_MAX_RANK], shape[IR_MAX_RANK];
  uint32_t seen = 0;
  if (!need_list(s, "perm", x->rank, perm)) return false;
  for (int i = 0; i < x->rank; i++) {
    if (perm[i] < 0 || perm[i] >= x->rank || seen >> perm[i] & 1)
      return shape_fail(s, "E-attr", "perm %s must name each of the axes 0..%d once",
                        dims_text(s, x->rank, perm), x->rank - 1);
    seen |= 1u << perm[i];
    shape[i] = x->shape[perm[i]];
  }
  return result_shape(s, x->dtype, x->rank, shape);
}

bool shape_concat(Shape *s) {
  const IrType *x = s->x[0];
  int axis;
  int64_t shape[IR_MAX_RANK];
  if (!need_axis(s, "axis", x->rank, &axis)) return false;
  memcpy(shape, x->shape, sizeof shape);
  for (int i = 1; i < s->n; i++) {
    const IrType *y = s->operands[i]->type;
    bool agree = y->rank == x->rank;
    for (int a = 0; agree && a < x->rank; a++) agree = a == axis || y->shape[a] == x->shape[a];
    if (!agree)
      return shape_fail(s, "E-shape",
                        "operand %d is %s and operand 0 is %s: all axes but axis %d must "
                        "be equal",
                        i, type_text(s, y), type_text(s, x), axis);
    if (y->dtype != x->dtype)
      return shape_fail(s, "E-dtype", "operand %d is %s and operand 0 is %s; cast one of them", i,
                        type_text(s, y), type_text(s, x));
    if (!add_i64(shape[axis], y->shape[axis], &shape[axis])) shape[axis] = INT64_MAX;
  }
  return result_shape(s, x->dtype, x->rank, shape);
}

/* Sizes along axis of split's results. */
static bool split_sizes(Shape *s, int axis, int64_t *sizes, int *n) {
  const IrType *x = s->x[0];
  const IrAttr *a = ir_attr(s->op, "parts");
  int64_t extent = x->shape[axis], sum = 0;
  if (!attr_is_ints(a)) return shape_fail(s, "E-attr", "parts must be a count or a list of sizes");
  int64_t count = a->kind == IR_ATTR_INT ? a->i : (int64_t)a->array.n;
  if (count < 1 || count > IR_MAX_RESULTS)
    return shape_fail(s, "E-attr", "%lld parts; 1 to %d are possible", (long long)count,
                      IR_MAX_RESULTS);
  *n = (int)count;
  if (a->kind == IR_ATTR_INT && extent % count)
    return shape_fail(s, "E-shape",
                      "axis %d of %s has %lld elements, not a multiple of %lld parts; "
                      "give a list of sizes",
                      axis, type_text(s, x), (long long)extent, (long long)count);
  for (int i = 0; i < *n; i++) {
    sizes[i] = a->kind == IR_ATTR_INT ? extent / count : a->array.items[i]->i;
    if (sizes[i] < 1 || !add_i64(sum, sizes[i], &sum)) sum = -1;
    if (sum < 0) break;
  }
  if (sum == extent) return true;
  return shape_fail(s, "E-shape",
                    "parts must be sizes of at least 1 that add up to %lld, the extent "
                    "of axis %d of %s",
                    (long long)extent, axis, type_text(s, x));
}

bool shape_split(Shape *s) {
  const IrType *x = s->x[0];
  int axis, n = 0;
  int64_t sizes[IR_MAX_RESULTS], shape[IR_MAX_RANK];
  if (!need_axis(s, "axis", x->rank, &axis) || !split_sizes(s, axis, sizes, &n)) return false;
  memcpy(shape, x->shape, sizeof shape);
  for (int i = 0; i < n; i++) {
    shape[axis] = sizes[i];
    if (!result_shape(s, x->dtype, x->rank, shape)) return false;
  }
  return true;
}

bool shape_slice(Shape *s) {
  const IrType *x = s->x[0];
  int64_t begin[IR_MAX_RANK], end[IR_MAX_RANK], step[IR_MAX_RANK], shape[IR_MAX_RANK];
  if (!need_list(s, "begin", x->rank, begin) || !need_list(s, "end", x->rank, end) ||
      !need_ints(s, "step", x->rank, 1, MAX_EXTENT, step))
    return false;
  for (int i = 0; i < x->rank; i++) {
    if (begin[i] < 0 || end[i] > x->shape[i] || begin[i] >= end[i])
      return shape_fail(s, "E-shape",
                        "%lld:%lld takes nothing from, or reaches outside, axis %d of %s; "
                        "use 0 <= begin < end <= %lld",
                        (long long)begin[i], (long long)end[i], i, type_text(s, x),
                        (long long)x->shape[i]);
    shape[i] = ceil_div(end[i] - begin[i], step[i]);
  }
  return result_shape(s, x->dtype, x->rank, shape);
}

bool shape_pad(Shape *s) {
  const IrType *x = s->x[0];
  const IrAttr *a = ir_attr(s->op, "pads");
  int64_t shape[IR_MAX_RANK];
  if (a->kind != IR_ATTR_ARRAY || a->array.n != (size_t)x->rank)
    return shape_fail(s, "E-attr",
                      "pads must be [[before, after], ...], one pair for each of the %d "
                      "axes of %s",
                      x->rank, type_text(s, x));
  for (int i = 0; i < x->rank; i++) {
    const IrAttr *pair = a->array.items[i];
    if (pair->kind != IR_ATTR_ARRAY || pair->array.n != 2 || !attr_is_ints(pair) ||
        pair->array.items[0]->i < 0 || pair->array.items[1]->i < 0)
      return shape_fail(s, "E-attr", "pads of axis %d must be [before, after], both at least 0", i);
    if (!add_i64(x->shape[i], pair->array.items[0]->i, &shape[i]) ||
        !add_i64(shape[i], pair->array.items[1]->i, &shape[i]))
      shape[i] = INT64_MAX;
  }
  return need_border(s, "value", x->dtype) && result_shape(s, x->dtype, x->rank, shape);
}

bool shape_broadcast(Shape *s) {
  const IrType *x = s->x[0];
  IrType to = {.kind = IR_TYPE_TENSOR};
  int64_t shape[IR_MAX_RANK];
  int rank;
  if (!need_shape(s, to.shape, &to.rank)) return false;
  if (!ir_broadcast_shapes(x, &to, &rank, shape) || rank != to.rank ||
      memcmp(shape, to.shape, sizeof *shape * (size_t)rank))
    return shape_fail(s, "E-shape",
                      "%s does not broadcast to %s: aligned at the last axis, each axis "
                      "of x must be 1 or the one wanted",
                      type_text(s, x), dims_text(s, to.rank, to.shape));
  return result_shape(s, x->dtype, rank, shape);
}

/* table with its axis replaced by the axes of index. */
static bool result_gathered(Shape *s, const IrType *table, const IrType *index, int axis) {
  int64_t shape[2 * IR_MAX_RANK];
  int rank = 0;
  for (int i = 0; i < axis; i++) shape[rank++] = table->shape[i];
  for (int i = 0; i < index->rank; i++) shape[rank++] = index->shape[i];
  for (int i = axis + 1; i < table->rank; i++) shape[rank++] = table->shape[i];
  return result_shape(s, table->dtype, rank, shape);
}

bool shape_gather(Shape *s) {
  int axis;
  return need_s32(s, 1) && need_axis(s, "axis", s->x[0]->rank, &axis) &&
         result_gathered(s, s->x[0], s->x[1], axis);
}

bool shape_embed(Shape *s) {
  return need_s32(s, 0) && need_rank(s, 1, 2, "[vocabulary, width]") &&
         result_gathered(s, s->x[1], s->x[0], 0);
}

bool shape_update(Shape *s) {
  const IrType *x = s->x[0], *v = s->x[1];
  int64_t begin[IR_MAX_RANK];
  if (v->dtype != x->dtype || v->rank != x->rank)
    return shape_fail(s, "E-shape",
                      "value %s must have the element type and the number of axes of x %s",
                      type_text(s, v), type_text(s, x));
  if (!need_list(s, "begin", x->rank, begin)) return false;
  for (int i = 0; i < x->rank; i++)
    if (begin[i] < 0 || begin[i] > x->shape[i] - v->shape[i])
      return shape_fail(s, "E-shape", "value %s at %s reaches outside x %s along axis %d",
                        type_text(s, v), dims_text(s, x->rank, begin), type_text(s, x), i);
  return result(s, x);
}
