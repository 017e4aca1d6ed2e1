/* fuse: what its files share. */
#ifndef NPU_PASSES_FUSE_INTERNAL_H
#define NPU_PASSES_FUSE_INTERNAL_H
#include "passes/kernel_edit.h"
#include "passes/passes.h"

/* What one kernel can hold: streams of the vector unit, micro-operations of a vector program,
 * vector registers. The margins leave room for what scheduling adds. */
enum { FUSE_MAX_IO = 7, FUSE_MAX_BODY = 44, FUSE_MAX_LIVE = 11 };

/* Joins producer and consumer in one kernel, in place of the consumer. */
typedef struct {
  IrOp *producer, *consumer;
  bool reads[NEST_MAX_IO]; /* consumer operands that become the producer's yielded scalar */
  const IrOp *base;        /* the one whose dimensions the new kernel has */
  DimImage producer_dims[IR_MAX_DIMS], consumer_dims[IR_MAX_DIMS];
  const IrType *type; /* of the new kernel's result */
  IrMap out_map;
} Merge;
/* The new kernel, before the consumer, or NULL when it would exceed the limits (nothing changed
 * then). The old ones stay; the caller replaces the consumer's result and erases. */
IrOp *merge_kernels(const Merge *m);
void images_identity(DimImage *images);

/* fuse_epilogue.c: an elementwise consumer of kernel's only result joins it. The new kernel, or
 * NULL. */
IrOp *fuse_epilogue(IrOp *kernel);
/* fuse_forward.c: the consumers of a kernel that only copies or widens read its operand instead.
 * With `compute`, other elementwise kernels join a single consumer that reads each element once.
 * Returns the number of consumers changed. */
int fuse_forward(IrOp *kernel, bool compute);
#endif
