/* nest: writing one kernel. See nest.h. */
#include "passes/nest.h"
#include <assert.h>

Nest nest_begin(IrBuilder *at) {
  Nest n = {0};
  n.at = at;
  return n;
}

int nest_dim(Nest *n, const char *name, int64_t extent) {
  if (extent == 1) return NEST_NO_DIM;
  assert(n->ndims < IR_MAX_DIMS);
  n->names[n->ndims] = name;
  n->extents[n->ndims] = extent;
  return n->ndims++;
}

void nest_dims_of(Nest *n, const IrType *t, int *dims) {
  static const char *const names[IR_MAX_RANK] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"};
  for (int i = 0; i < t->rank; i++) dims[i] = nest_dim(n, names[i], t->shape[i]);
}

int nest_in(Nest *n, IrValue *v, const IrMap *map, const IrAttr *pad) {
  assert(n->nin < NEST_MAX_IO && n->nslots < NEST_MAX_IO && map->rank == v->type->rank);
  n->in[n->nin] = v;
  n->in_maps[n->nin] = *map;
  n->pads[n->nin] = pad;
  n->slots[n->nslots] = (NestSlot){.dtype = v->type->dtype, .arg = n->nin++};
  return n->nslots++;
}

int nest_in_or_splat(Nest *n, IrValue *v, const IrMap *map) {
  double value;
  if (!ir_constant_splat(v, &value)) return nest_in(n, v, map, NULL);
  assert(n->nslots < NEST_MAX_IO);
  n->slots[n->nslots] = (NestSlot){.is_splat = true, .value = value, .dtype = v->type->dtype};
  return n->nslots++;
}

void nest_out(Nest *n, const IrType *t, const IrMap *map) {
  assert(n->nout < NEST_MAX_IO && map->rank == t->rank);
  n->out_types[n->nout] = t;
  n->out_maps[n->nout++] = *map;
}

void nest_out_dims(Nest *n, const IrType *t, const int *dims) {
  IrMap map = nest_map_dims(t->rank, dims);
  nest_out(n, t, &map);
}

void nest_open(Nest *n) {
  n->kernel = ir_kernel_new(n->at, n->ndims, n->names, n->extents, n->nin, n->in, n->in_maps,
                            n->pads, n->nout, n->out_types, n->out_maps);
  n->body = ir_builder_at_end(n->kernel->region, n->at->loc);
}

IrValue *nest_close(Nest *n, IrValue *const *values) {
  IrValue *out[NEST_MAX_IO];
  for (int i = 0; i < n->nout; i++) out[i] = nest_cast(n, values[i], n->out_types[i]->dtype);
  ir_build_typed(&n->body, IR_OP_YIELD, n->nout, out, 0, NULL, 0, NULL);
  return ir_result(n->kernel, 0);
}

IrValue *nest_close1(Nest *n, IrValue *value) {
  return nest_close(n, &value);
}

/* ---- maps ---- */

void nest_axis(IrMap *m, int axis, int dim, int64_t coef) {
  if (dim != NEST_NO_DIM) m->axis[axis].coef[dim] += coef;
}

IrMap nest_map_dims(int rank, const int *dims) {
  IrMap m = ir_map_zero(rank);
  for (int i = 0; i < rank; i++) nest_axis(&m, i, dims[i], 1);
  return m;
}

IrMap nest_map_broadcast(const IrType *t, const IrType *to, const int *dims) {
  IrMap m = ir_map_zero(t->rank);
  int skip = to->rank - t->rank;
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] != 1) nest_axis(&m, i, dims[skip + i], 1);
  return m;
}

/* ---- body ---- */

static DType compute_dtype(DType t) {
  return dtype_is_float(t) ? DT_F32 : DT_S32;
}

IrValue *nest_arg(Nest *n, int slot) {
  const NestSlot *s = &n->slots[slot];
  if (s->is_splat) return nest_const(n, compute_dtype(s->dtype), s->value);
  return n->kernel->region->args[s->arg];
}

IrValue *nest_load(Nest *n, int slot) {
  return nest_load_as(n, slot, compute_dtype(n->slots[slot].dtype));
}

IrValue *nest_load_as(Nest *n, int slot, DType dtype) {
  const NestSlot *s = &n->slots[slot];
  if (s->is_splat && compute_dtype(s->dtype) != dtype && dtype == DT_F32)
    return nest_const(n, DT_F32, s->value);
  return nest_cast(n, nest_arg(n, slot), dtype);
}

IrValue *nest_const(Nest *n, DType dtype, double v) {
  return ir_build_scalar(&n->body, dtype, v);
}

IrValue *nest_un(Nest *n, IrOpKind kind, IrValue *x) {
  return ir_build1(&n->body, kind, x);
}

IrValue *nest_bin(Nest *n, IrOpKind kind, IrValue *a, IrValue *b) {
  return ir_build2(&n->body, kind, a, b);
}

IrValue *nest_bin_const(Nest *n, IrOpKind kind, IrValue *a, double b) {
  return nest_bin(n, kind, a, nest_const(n, a->type->dtype, b));
}

IrValue *nest_where(Nest *n, IrValue *c, IrValue *a, IrValue *b) {
  IrValue *operands[3] = {c, a, b};
  return ir_result(ir_build(&n->body, IR_OP_WHERE, 3, operands, 0, NULL), 0);
}

IrValue *nest_cast(Nest *n, IrValue *x, DType to) {
  return ir_build_cast(&n->body, x, to);
}

IrValue *nest_index(Nest *n, int dim) {
  if (dim == NEST_NO_DIM) return nest_const(n, DT_S32, 0);
  const IrType *t = ir_type_scalar(n->body.m, DT_S32);
  IrAttrInit attr = {"dim", ir_attr_int(n->body.m, dim)};
  return ir_result(ir_build_typed(&n->body, IR_OP_INDEX, 0, NULL, 1, &t, 1, &attr), 0);
}

IrValue *nest_reduce(Nest *n, const char *op, IrValue *x, const int *dims, int ndims) {
  int64_t over[IR_MAX_DIMS];
  size_t nover = 0;
  for (int i = 0; i < ndims; i++)
    if (dims[i] != NEST_NO_DIM) over[nover++] = dims[i];
  if (nover == 0) return x;
  IrModule *m = n->body.m;
  IrAttrInit attrs[2] = {{"op", ir_attr_str(m, op)}, {"over", ir_attr_ints(m, over, nover)}};
  return ir_result(ir_build_typed(&n->body, IR_OP_REDUCE, 1, &x, 1, &x->type, 2, attrs), 0);
}
