/* canonicalize: what its files share. */
#ifndef NPU_PASSES_CANONICALIZE_INTERNAL_H
#define NPU_PASSES_CANONICALIZE_INTERNAL_H
#include "ir/ir.h"
#include "passes/passes.h"

/* Rewrites op, or returns false and leaves everything alone. May insert before op and erase op
 * itself; what becomes dead otherwise is left to dce. */
typedef bool RewriteFn(IrOp *op);
RewriteFn simplify_arith, simplify_cast, simplify_repeated; /* canonicalize_arith.c */
RewriteFn simplify_reshape, sink_reshape, simplify_transpose, simplify_slice, simplify_no_move,
    simplify_argmax;                                              /* canonicalize_move.c */
RewriteFn absorb_transpose, absorb_batch_norm, expand_batch_norm; /* canonicalize_linear.c */

/* op's one result is v from now on. */
bool replace_with(IrOp *op, IrValue *v);
#endif
