/* expand: ops that are written as other graph ops before anything else happens to them. */
#ifndef NPU_PASSES_EXPAND_H
#define NPU_PASSES_EXPAND_H
#include "ir/ir.h"
/* Replaces op by plainer graph ops when it has such a form; returns the first of them, NULL when op
 * stays. */
IrOp *expand_op(IrOp *op);
#endif
