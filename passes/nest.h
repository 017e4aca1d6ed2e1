/* nest: a helper that writes one kernel at a time, used by the passes that make kernels.
 * Order of use: nest_begin, nest_dim..., nest_in..., nest_out..., nest_open, body calls,
 * nest_close. */
#ifndef NPU_PASSES_NEST_H
#define NPU_PASSES_NEST_H
#include "ir/ir.h"

#define NEST_MAX_IO 16
#define NEST_NO_DIM (-1) /* a dimension of extent 1: always at coordinate 0, so it is left out */

typedef struct {
  bool is_splat; /* every element equal: written into the body as a constant, not an operand */
  double value;
  DType dtype;
  int arg; /* operand number otherwise */
} NestSlot;

typedef struct Nest {
  IrBuilder *at;
  int ndims, nin, nout, nslots;
  const char *names[IR_MAX_DIMS];
  int64_t extents[IR_MAX_DIMS];
  NestSlot slots[NEST_MAX_IO];
  IrValue *in[NEST_MAX_IO];
  IrMap in_maps[NEST_MAX_IO];
  const IrAttr *pads[NEST_MAX_IO];
  const IrType *out_types[NEST_MAX_IO];
  IrMap out_maps[NEST_MAX_IO];
  IrOp *kernel;
  IrBuilder body;
} Nest;

Nest nest_begin(IrBuilder *at);
/* Adds a dimension; NEST_NO_DIM when extent is 1. */
int nest_dim(Nest *n, const char *name, int64_t extent);
/* One dimension per axis of t, in dims[0..rank). */
void nest_dims_of(Nest *n, const IrType *t, int *dims);
/* Adds a tensor read at map; pad NULL: every read is in range. Returns its slot. */
int nest_in(Nest *n, IrValue *v, const IrMap *map, const IrAttr *pad);
/* The same, but a constant with all elements equal becomes a body constant. Reads are in range. */
int nest_in_or_splat(Nest *n, IrValue *v, const IrMap *map);
void nest_out(Nest *n, const IrType *t, const IrMap *map);
/* Result of type t, axis i written along dims[i]. */
void nest_out_dims(Nest *n, const IrType *t, const int *dims);
void nest_open(Nest *n);
/* Yields one scalar per result, each cast to the result's element type; returns result 0. */
IrValue *nest_close(Nest *n, IrValue *const *values);
IrValue *nest_close1(Nest *n, IrValue *value);

/* Map helpers. NEST_NO_DIM adds nothing. */
void nest_axis(IrMap *m, int axis, int dim, int64_t coef);
IrMap nest_map_dims(int rank, const int *dims);
/* Reads a tensor of type t as if broadcast to `to`, whose axis i runs along dims[i]. */
IrMap nest_map_broadcast(const IrType *t, const IrType *to, const int *dims);

/* Body helpers. */
IrValue *nest_arg(Nest *n, int slot);                  /* the element as stored */
IrValue *nest_load(Nest *n, int slot);                 /* in f32 for floats, s32 for integers */
IrValue *nest_load_as(Nest *n, int slot, DType dtype); /* converted directly */
IrValue *nest_const(Nest *n, DType dtype, double v);
IrValue *nest_un(Nest *n, IrOpKind kind, IrValue *x);
IrValue *nest_bin(Nest *n, IrOpKind kind, IrValue *a, IrValue *b);
/* a op constant of a's type */
IrValue *nest_bin_const(Nest *n, IrOpKind kind, IrValue *a, double b);
IrValue *nest_where(Nest *n, IrValue *c, IrValue *a, IrValue *b);
IrValue *nest_cast(Nest *n, IrValue *x, DType to);
IrValue *nest_index(Nest *n, int dim); /* s32; constant 0 for NEST_NO_DIM */
/* op "sum", "max" or "min" over dims (NEST_NO_DIM entries are ignored; none left: x itself). */
IrValue *nest_reduce(Nest *n, const char *op, IrValue *x, const int *dims, int ndims);
#endif
