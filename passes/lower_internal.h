/* lower: what its files share. */
#ifndef NPU_PASSES_LOWER_INTERNAL_H
#define NPU_PASSES_LOWER_INTERNAL_H
#include "passes/nest.h"

/* Writes op's nest at `at` (just before op) and stores the values that replace its results in
 * out[]. */
typedef void LowerFn(IrBuilder *at, IrOp *op, IrValue **out);

#define OP(e, ...) LowerFn lower_##e;
#include "ir/ops.def"
#undef OP

/* Lowers the ops of f that `lower` does not expand into others first; false after a diagnostic. */
bool lower_plain_ops(PassContext *pc, IrFunc *f);

/* Two ints of an attribute for [h, w]; one number stands for both. */
void attr_pair(const IrOp *op, const char *name, int64_t otherwise, int64_t out[2]);
/* Bit set of the axes in attribute `axis` of a reduction over rank axes; none named: all. */
unsigned attr_axes(const IrOp *op, int rank);
/* Where a slice begins on each axis, and its steps. */
void slice_range(const IrOp *op, int64_t *begin, int64_t *step);
/* Elements a pad op adds before each axis. */
void pad_before(const IrOp *op, int rank, int64_t *before);
/* Elements a 1-D convolution adds on both sides. */
void conv1d_pads(const IrOp *op, int64_t *before, int64_t *after);
/* top, left, bottom, right of a transposed convolution. */
void conv_transpose_pads(const IrOp *op, int64_t tlbr[4]);
/* A reshape alias of v; v itself when it already has the type's shape. */
IrValue *lower_reshape(IrBuilder *at, IrValue *v, const IrType *t);
#endif
