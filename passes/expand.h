/* expand: ops that are written as other graph ops before anything else happens to them. */
#ifndef NPU_PASSES_EXPAND_H
#define NPU_PASSES_EXPAND_H
#include "ir/ir.h"
bool op_expands(const IrOp *op);
/* Replaces op by plainer graph ops when it has such a form; returns the first of them, NULL when op
 * stays. */
IrOp *expand_op(IrOp *op);
/* x[begin:end:step], one number per axis. */
IrValue *expand_slice(IrBuilder *b, IrValue *x, const int64_t *begin, const int64_t *end,
                      const int64_t *step);
#endif
