/* Nest level: reading and making kernels, affine maps, layouts. */
#include "ir/internal.h"

#include <assert.h>
#include <ctype.h>
#include <string.h>

/* The item of an array attribute, or NULL. */
static const IrAttr *item(const IrAttr *a, int i) {
  return a && a->kind == IR_ATTR_ARRAY && i >= 0 && (size_t)i < a->array.n ? a->array.items[i]
                                                                           : NULL;
}

/* Tolerates malformed attributes (the verifier reports them): what is not there reads as extent 1,
 * no name. */
void ir_kernel_read(const IrOp *op, IrKernel *out) {
  const IrAttr *dims = ir_attr(op, "dims");
  memset(out, 0, sizeof *out);
  out->nin = op->noperands;
  out->nout = op->nresults;
  if (!dims || dims->kind != IR_ATTR_ARRAY) return;
  for (int d = 0; d < IR_MAX_DIMS && (size_t)d < dims->array.n; d++) {
    const IrAttr *name = item(item(dims, d), 0), *extent = item(item(dims, d), 1);
    out->name[d] = name && name->kind == IR_ATTR_STR ? name->s : "";
    out->extent[d] = extent && extent->kind == IR_ATTR_INT ? extent->i : 1;
    out->ndims++;
  }
}

static const IrMap *map_at(const IrOp *op, const char *attr, int i) {
  const IrAttr *a = item(ir_attr(op, attr), i);
  return a && a->kind == IR_ATTR_MAP ? a->map : NULL;
}

const IrMap *ir_kernel_in_map(const IrOp *op, int operand) {
  return map_at(op, "in_maps", operand);
}

const IrMap *ir_kernel_out_map(const IrOp *op, int result) {
  return map_at(op, "out_maps", result);
}

bool ir_kernel_pad(const IrOp *op, int operand, double *value) {
  const IrAttr *a = item(ir_attr(op, "pads"), operand);
  if (!a || (a->kind != IR_ATTR_INT && a->kind != IR_ATTR_FLOAT)) return false;
  *value = a->kind == IR_ATTR_INT ? (double)a->i : a->f;
  return true;
}

static const IrAttr *maps_attr(IrModule *m, int n, const IrMap *maps) {
  const IrAttr **items = ARENA_ARRAY(m->arena, const IrAttr *, n ? n : 1);
  for (int i = 0; i < n; i++) items[i] = ir_attr_map(m, &maps[i]);
  return ir_attr_array(m, items, (size_t)n);
}

static const IrAttr *dims_attr(IrModule *m, int n, const char *const *names,
                               const int64_t *extents) {
  const IrAttr *dims[IR_MAX_DIMS];
  assert(n <= IR_MAX_DIMS);
  for (int d = 0; d < n; d++) {
    const IrAttr *pair[] = {ir_attr_str(m, names[d]), ir_attr_int(m, extents[d])};
    dims[d] = ir_attr_array(m, pair, 2);
  }
  return ir_attr_array(m, dims, (size_t)n);
}

IrOp *ir_kernel_new(IrBuilder *b, int ndims, const char *const *names, const int64_t *extents,
                    int nin, IrValue *const *inputs, const IrMap *in_maps,
                    const IrAttr *const *pads, int nout, const IrType *const *out_types,
                    const IrMap *out_maps) {
  IrModule *m = b->m;
  const IrAttr **pad = ARENA_ARRAY(m->arena, const IrAttr *, nin ? nin : 1);
  for (int i = 0; i < nin; i++) pad[i] = pads && pads[i] ? pads[i] : ir_attr_str(m, "none");
  IrAttrInit attrs[] = {{"dims", dims_attr(m, ndims, names, extents)},
                        {"in_maps", maps_attr(m, nin, in_maps)},
                        {"pads", ir_attr_array(m, pad, (size_t)nin)},
                        {"out_maps", maps_attr(m, nout, out_maps)}};
  IrOp *op =
      ir_build_typed(b, IR_OP_KERNEL, nin, inputs, nout, out_types, NPU_COUNTOF(attrs), attrs);
  IrBlock *body = ir_op_add_region(op);
  for (int i = 0; i < nin; i++)
    ir_block_add_arg(body, ir_type_scalar(m, inputs[i]->type->dtype), inputs[i]->name);
  return op;
}

static uint32_t over_mask(const IrOp *reduce) {
  int64_t dims[IR_MAX_DIMS];
  uint32_t mask = 0;
  int n = ir_get_ints(reduce, "over", dims, IR_MAX_DIMS);
  for (int i = 0; i < n; i++)
    if (dims[i] >= 0 && dims[i] < IR_MAX_DIMS) mask |= 1u << dims[i];
  return mask;
}

/* Dimensions an argument varies over: its map's, and through indirect axes those of earlier index
 * operands. */
static uint32_t arg_dims(const IrOp *kernel, int i, PtrMap *memo) {
  const IrMap *map = ir_kernel_in_map(kernel, i);
  if (!map) return 0;
  uint32_t dims = ir_map_dims(map);
  for (int a = 0; a < map->rank; a++) {
    int index = map->axis[a].index;
    if (index >= 0 && index < i)
      dims |= (uint32_t)(uintptr_t)ptr_map_get(memo, kernel->region->args[index]);
  }
  return dims;
}

static uint32_t op_dims(const IrOp *op, PtrMap *memo) {
  if (op->kind == IR_OP_INDEX) {
    int64_t dim = ir_get_int(op, "dim", 0);
    return dim >= 0 && dim < IR_MAX_DIMS ? 1u << dim : 0;
  }
  uint32_t dims = 0;
  for (int i = 0; i < op->noperands; i++)
    dims |= (uint32_t)(uintptr_t)ptr_map_get(memo, ir_operand(op, i));
  return op->kind == IR_OP_REDUCE ? dims & ~over_mask(op) : dims;
}

/* Everything before the scalar in order, so that each operand is known when it is asked for. */
uint32_t ir_scalar_dims(const IrOp *kernel, const IrValue *scalar) {
  const IrBlock *body = kernel->region;
  PtrMap *memo = NULL;
  for (int i = 0; i < body->nargs; i++)
    ptr_map_put(&memo, body->args[i], (void *)(uintptr_t)arg_dims(kernel, i, memo));
  if (scalar->def && scalar->def->parent == body)
    for (const IrOp *op = body->first; op; op = op == scalar->def ? NULL : op->next)
      for (int r = 0; r < op->nresults; r++)
        ptr_map_put(&memo, &op->results[r], (void *)(uintptr_t)op_dims(op, memo));
  uint32_t dims = (uint32_t)(uintptr_t)ptr_map_get(memo, scalar);
  ptr_map_free(&memo);
  return dims;
}

IrMap ir_map_zero(int rank) {
  IrMap m;
  memset(&m, 0, sizeof m);
  m.rank = rank;
  for (int i = 0; i < IR_MAX_RANK; i++) m.axis[i].index = -1;
  return m;
}

void ir_map_dim(IrMap *m, int axis, int dim, int64_t coef) {
  m->axis[axis].coef[dim] = coef;
}

uint32_t ir_map_dims(const IrMap *m) {
  uint32_t dims = 0;
  for (int a = 0; a < m->rank; a++)
    for (int d = 0; d < IR_MAX_DIMS && m->axis[a].index < 0; d++)
      if (m->axis[a].coef[d]) dims |= 1u << d;
  return dims;
}

/* ---- layouts ---- */

void ir_layout(const IrValue *v, int order[IR_MAX_RANK]) {
  for (int i = 0; i < IR_MAX_RANK; i++) order[i] = i;
  const IrAttr *a = v->def ? item(ir_attr(v->def, "layout"), v->index) : NULL;
  if (!a || a->kind != IR_ATTR_ARRAY || a->array.n != (size_t)v->type->rank || !attr_is_ints(a))
    return;
  for (int i = 0; i < v->type->rank; i++) order[i] = (int)a->array.items[i]->i;
}

void ir_set_layout(IrValue *v, const int *order) {
  IrOp *op = v->def;
  IrModule *m = op->module;
  const IrAttr **all = ARENA_ARRAY(m->arena, const IrAttr *, op->nresults);
  for (int r = 0; r < op->nresults; r++) {
    int current[IR_MAX_RANK];
    int64_t axes[IR_MAX_RANK];
    ir_layout(&op->results[r], current);
    for (int i = 0; i < op->results[r].type->rank; i++)
      axes[i] = r == v->index ? order[i] : current[i];
    all[r] = ir_attr_ints(m, axes, (size_t)op->results[r].type->rank);
  }
  ir_set_attr(op, "layout", ir_attr_array(m, all, (size_t)op->nresults));
}

/* ---- dimension names in text ---- */

static bool plain_dim_name(const char *s) {
  if (!isalpha((unsigned char)*s) && *s != '_') return false;
  if (*s == 'd' && s[1] && strspn(s + 1, "0123456789") == strlen(s + 1)) return false;
  for (; *s; s++)
    if (!isalnum((unsigned char)*s) && *s != '_') return false;
  return true;
}

int kernel_dim_names(const IrAttr *dims, const char **names) {
  if (!dims || dims->kind != IR_ATTR_ARRAY || dims->array.n > IR_MAX_DIMS) return -1;
  int n = (int)dims->array.n;
  for (int d = 0; d < n; d++) {
    const IrAttr *name = item(item(dims, d), 0);
    if (!name || name->kind != IR_ATTR_STR || !plain_dim_name(name->s)) return -1;
    for (int e = 0; e < d; e++)
      if (names[e] == name->s) return -1;
    names[d] = name->s;
  }
  return n;
}
