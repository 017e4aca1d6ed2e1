/* The verifier's part for kernels: dimensions, maps, pads, body. */
#include "ir/verify.h"

#include <string.h>

/* The list attribute `name` with n items; NULL after reporting. */
static const IrAttr *need_items(Verifier *v, const IrOp *op, const char *name, int n,
                                const char *per) {
  const IrAttr *a = ir_attr(op, name);
  if (a->kind == IR_ATTR_ARRAY && a->array.n == (size_t)n) return a;
  verify_fail(v, op, "E-kernel", "%s must be a list with one item per %s (%d)", name, per, n);
  return NULL;
}

static bool check_dims(Verifier *v, const IrOp *op, IrKernel *k) {
  const IrAttr *dims = ir_attr(op, "dims");
  const char *names[IR_MAX_DIMS];
  if (dims->kind != IR_ATTR_ARRAY || dims->array.n > IR_MAX_DIMS)
    return verify_fail(v, op, "E-kernel",
                       "dims must be a list of at most %d pairs [\"name\", extent]", IR_MAX_DIMS);
  int64_t points = 1;
  for (size_t d = 0; d < dims->array.n; d++) {
    const IrAttr *pair = dims->array.items[d];
    if (pair->kind != IR_ATTR_ARRAY || pair->array.n != 2 ||
        pair->array.items[0]->kind != IR_ATTR_STR || pair->array.items[1]->kind != IR_ATTR_INT)
      return verify_fail(v, op, "E-kernel", "dims must hold pairs [\"name\", extent]");
    if (pair->array.items[1]->i < 1 || pair->array.items[1]->i > IR_MAX_ELEMENTS)
      return verify_fail(v, op, "E-kernel", "dimension %s has extent %lld; it must be 1 to 2^40",
                         pair->array.items[0]->s, (long long)pair->array.items[1]->i);
    if (!mul_i64(points, pair->array.items[1]->i, &points))
      return verify_fail(v, op, "E-kernel", "the dimensions have more than 2^63 points together");
  }
  if (kernel_dim_names(dims, names) < 0)
    return verify_fail(v, op, "E-kernel",
                       "dimension names must be distinct words, and not like d3");
  ir_kernel_read(op, k);
  return true;
}

/* Smallest and largest coordinate of an affine axis, in doubles' exact range; false when it leaves
 * 2^52. */
static bool axis_range(const IrAffine *a, const IrKernel *k, int64_t *lo, int64_t *hi) {
  *lo = *hi = a->cst;
  for (int d = 0; d < k->ndims; d++) {
    int64_t reach, *end = a->coef[d] < 0 ? lo : hi;
    if (!mul_i64(a->coef[d], k->extent[d] - 1, &reach) || !add_i64(*end, reach, end)) return false;
  }
  return *lo > -(1ll << 52) && *hi < 1ll << 52;
}

/* The map of an operand or result: rank and dimensions. */
static bool check_map_form(Verifier *v, const IrOp *op, const IrAttr *a, const IrType *t,
                           const IrKernel *k, const char *what, int i) {
  if (a->kind != IR_ATTR_MAP)
    return verify_fail(v, op, "E-map", "%s %d needs a map such as (oh, ow)", what, i);
  if (a->map->rank != t->rank)
    return verify_fail(v, op, "E-map", "the map of %s %d has %d axes, but it is %s", what, i,
                       a->map->rank, verify_type_text(v, t));
  for (int axis = 0; axis < t->rank; axis++)
    for (int d = k->ndims; d < IR_MAX_DIMS; d++)
      if (a->map->axis[axis].coef[d])
        return verify_fail(v, op, "E-map", "axis %d of %s %d uses dimension %d, but there are %d",
                           axis, what, i, d, k->ndims);
  return true;
}

static bool check_indirect(Verifier *v, const IrOp *op, int i, int axis, int index) {
  if (index >= i)
    return verify_fail(v, op, "E-map",
                       "axis %d of operand %d is indexed by operand %d; the index must be "
                       "an earlier operand",
                       axis, i, index);
  const IrType *t = ir_operand(op, index)->type;
  if (t->kind == IR_TYPE_TENSOR && t->dtype == DT_S32) return true;
  return verify_fail(v, op, "E-map",
                     "axis %d of operand %d is indexed by operand %d, which is %s; an "
                     "index is s32",
                     axis, i, index, verify_type_text(v, t));
}

static bool check_in_map(Verifier *v, const IrOp *op, const IrKernel *k, int i) {
  const IrMap *map = ir_kernel_in_map(op, i);
  const IrType *t = ir_operand(op, i)->type;
  double pad;
  for (int axis = 0; axis < t->rank; axis++) {
    const IrAffine *a = &map->axis[axis];
    int64_t lo, hi;
    if (a->index >= 0) {
      if (!check_indirect(v, op, i, axis, a->index)) return false;
      continue;
    }
    if (!axis_range(a, k, &lo, &hi))
      return verify_fail(v, op, "E-map", "axis %d of operand %d leaves the range of coordinates",
                         axis, i);
    if (!ir_kernel_pad(op, i, &pad) && (lo < 0 || hi >= t->shape[axis]))
      return verify_fail(v, op, "E-map",
                         "operand %d is read at %lld..%lld of axis %d, which has 0..%lld; "
                         "correct the map or give the operand a pad value",
                         i, (long long)lo, (long long)hi, axis, (long long)t->shape[axis] - 1);
  }
  return true;
}

static bool check_pad(Verifier *v, const IrOp *op, const IrAttr *a, int i) {
  DType t = ir_operand(op, i)->type->dtype;
  double value;
  if (a->kind == IR_ATTR_STR && !strcmp(a->s, "none")) return true;
  if (!ir_kernel_pad(op, i, &value))
    return verify_fail(v, op, "E-kernel", "the pad of operand %d must be a number or \"none\"", i);
  if (dtype_is_float(t) || dtype_holds(t, value)) return true;
  return verify_fail(v, op, "E-kernel", "the pad %g of operand %d is not a value of %s", value, i,
                     dtype_name(t));
}

/* Each axis is one dimension, from its first to its last element; an axis of 1 may be the constant
 * 0. */
static bool check_out_map(Verifier *v, const IrOp *op, const IrKernel *k, int r) {
  const IrMap *map = ir_kernel_out_map(op, r);
  const IrType *t = op->results[r].type;
  uint32_t used = 0;
  for (int axis = 0; axis < t->rank; axis++) {
    const IrAffine *a = &map->axis[axis];
    int dim = -1, terms = 0;
    for (int d = 0; d < k->ndims; d++)
      if (a->coef[d]) {
        dim = d;
        terms++;
      }
    if (a->index >= 0 || a->cst || terms > 1 || (terms == 1 && a->coef[dim] != 1))
      return verify_fail(v, op, "E-map",
                         "axis %d of result %d must be one dimension with coefficient 1", axis, r);
    if (dim >= 0 && used >> dim & 1)
      return verify_fail(v, op, "E-map", "dimension %s stands on two axes of result %d",
                         k->name[dim], r);
    int64_t covered = dim < 0 ? 1 : k->extent[dim];
    if (covered != t->shape[axis])
      return verify_fail(v, op, "E-map",
                         "axis %d of result %d has %lld elements, but %lld are written; every "
                         "element must be",
                         axis, r, (long long)t->shape[axis], (long long)covered);
    if (dim >= 0) used |= 1u << dim;
  }
  return true;
}

static bool check_maps(Verifier *v, const IrOp *op, const IrKernel *k) {
  const IrAttr *in = need_items(v, op, "in_maps", k->nin, "operand");
  const IrAttr *pads = need_items(v, op, "pads", k->nin, "operand");
  const IrAttr *out = need_items(v, op, "out_maps", k->nout, "result");
  if (!in || !pads || !out) return false;
  for (int i = 0; i < k->nin; i++)
    if (!check_map_form(v, op, in->array.items[i], ir_operand(op, i)->type, k, "operand", i) ||
        !check_pad(v, op, pads->array.items[i], i) || !check_in_map(v, op, k, i))
      return false;
  for (int r = 0; r < k->nout; r++)
    if (!check_map_form(v, op, out->array.items[r], op->results[r].type, k, "result", r) ||
        !check_out_map(v, op, k, r))
      return false;
  return true;
}

/* ---- body ---- */

static bool check_body_args(Verifier *v, const IrOp *op) {
  const IrBlock *b = op->region;
  if (b->nargs != op->noperands)
    return verify_fail(v, op, "E-kernel", "the body takes %d arguments for %d operands", b->nargs,
                       op->noperands);
  for (int i = 0; i < b->nargs; i++) {
    const IrType *t = ir_operand(op, i)->type, *want = ir_type_scalar(v->m, t->dtype);
    if (b->args[i]->type != want)
      return verify_fail(v, op, "E-kernel", "body argument %d is %s, but operand %d holds %s", i,
                         verify_type_text(v, b->args[i]->type), i, dtype_name(t->dtype));
  }
  return true;
}

static void check_body_op(Verifier *v, const IrOp *op, const IrKernel *k) {
  if (op->kind == IR_OP_INDEX) {
    int64_t dim = ir_get_int(op, "dim", -1);
    if (dim < 0 || dim >= k->ndims)
      verify_fail(v, op, "E-kernel", "dim = %lld is not a dimension of the kernel; it has %d",
                  (long long)dim, k->ndims);
    else if (k->extent[dim] > IR_MAX_INDEX)
      verify_fail(v, op, "E-kernel", "dimension %s has more positions than s32 has numbers",
                  k->name[dim]);
  }
  if (op->kind != IR_OP_REDUCE) return;
  int64_t over[IR_MAX_DIMS];
  int n = ir_get_ints(op, "over", over, IR_MAX_DIMS);
  for (int i = 0; i < n; i++)
    if (over[i] >= k->ndims)
      verify_fail(v, op, "E-kernel", "over names dimension %lld, but the kernel has %d",
                  (long long)over[i], k->ndims);
}

static void check_yield(Verifier *v, const IrOp *kernel, const IrKernel *k) {
  const IrOp *yield = kernel->region->last;
  if (yield->noperands != k->nout) {
    verify_fail(v, yield, "E-kernel", "yields %d scalar%s for %d result%s", yield->noperands,
                yield->noperands == 1 ? "" : "s", k->nout, k->nout == 1 ? "" : "s");
    return;
  }
  for (int r = 0; r < k->nout; r++) {
    const IrValue *x = ir_operand(yield, r);
    DType want = kernel->results[r].type->dtype;
    if (x->type->dtype != want)
      verify_fail(v, yield, "E-kernel", "scalar %d is %s but result %d holds %s; cast it", r,
                  verify_type_text(v, x->type), r, dtype_name(want));
    uint32_t extra = ir_scalar_dims(kernel, x) & ~ir_map_dims(ir_kernel_out_map(kernel, r));
    for (int d = 0; d < k->ndims; d++)
      if (extra >> d & 1)
        verify_fail(v, yield, "E-kernel",
                    "scalar %d varies over dimension %s, which result %d does not "
                    "have; reduce over it",
                    r, k->name[d], r);
  }
}

/* A list with one entry, at least `least`, for every item. */
static bool check_entries(Verifier *v, const IrOp *op, const char *name, int items,
                          const char *each, int64_t least) {
  const IrAttr *a = ir_attr(op, name);
  if (!a) return true;
  size_t n = a->kind == IR_ATTR_ARRAY ? a->array.n : 1;
  if (n != (size_t)items)
    return verify_fail(v, op, "E-kernel", "%s must hold one number per %s (%d), not %zu", name,
                       each, items, n);
  for (size_t i = 0; i < n; i++) {
    int64_t x = a->kind == IR_ATTR_ARRAY ? a->array.items[i]->i : a->i;
    if (x < least)
      return verify_fail(v, op, "E-kernel", "%s holds %lld; it must be at least %lld", name,
                         (long long)x, (long long)least);
  }
  return true;
}

/* The schedule, as far as it can be judged without the machine; sched_valid does the rest. */
static void check_schedule(Verifier *v, const IrOp *op, const IrKernel *k) {
  static const char *const needs_tile[] = {"block", "order", "slots", "stream"};
  const IrAttr *engine = ir_attr(op, "engine");
  for (size_t i = 0; i < NPU_COUNTOF(needs_tile); i++)
    if (ir_attr(op, needs_tile[i]) && !ir_attr(op, "tile"))
      verify_fail(v, op, "E-kernel",
                  "%s is part of a schedule, which begins with tile: give tile = [...] as well, or "
                  "leave the schedule to the pass 'tile'",
                  needs_tile[i]);
  if (engine && strcmp(engine->s, "vpu"))
    verify_fail(v, op, "E-kernel", "engine = \"%s\" is not vpu, the only one that can be asked for",
                engine->s);
  if (check_entries(v, op, "tile", k->ndims, "dimension", 1) &&
      check_entries(v, op, "block", k->ndims, "dimension", 0))
    check_entries(v, op, "addrs", op->nresults, "result", 0);
}

void verify_kernel(Verifier *v, const IrOp *op) {
  IrKernel k;
  if (!check_dims(v, op, &k) || !check_maps(v, op, &k) || !check_body_args(v, op)) return;
  check_schedule(v, op, &k);
  for (const IrOp *o = op->region->first; o; o = o->next) check_body_op(v, o, &k);
  if (v->ok) check_yield(v, op, &k);
}

void verify_layout(Verifier *v, const IrOp *op) {
  const IrAttr *a = ir_attr(op, "layout");
  if (!a || op->kind == IR_OP_TENSOR) return;
  if (a->kind != IR_ATTR_ARRAY || a->array.n != (size_t)op->nresults) {
    verify_fail(v, op, "E-attr", "layout must hold one list of axes per result (%d)", op->nresults);
    return;
  }
  for (int r = 0; r < op->nresults; r++) {
    const IrAttr *order = a->array.items[r];
    int rank = op->results[r].type->rank;
    uint32_t seen = 0;
    bool ok = order->kind == IR_ATTR_ARRAY && order->array.n == (size_t)rank && attr_is_ints(order);
    for (int i = 0; ok && i < rank; i++) {
      int64_t axis = order->array.items[i]->i;
      ok = axis >= 0 && axis < rank && !(seen >> axis & 1);
      if (ok) seen |= 1u << axis;
    }
    if (!ok)
      verify_fail(v, op, "E-attr", "the layout of result %d must name each of its %d axes once", r,
                  rank);
  }
}
