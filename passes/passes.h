/* passes: the built-in pass table. Includes ir, isa (machine and costs) and support. */
#ifndef NPU_PASSES_H
#define NPU_PASSES_H
#include "ir/ir.h"
#include "isa/isa.h"

NPU_C_BEGIN

/* All built-in passes, NULL-terminated, in the order of passes/passes.def. */
extern const Pass *const builtin_passes[];
/* The pipeline of an optimization level 0, 1 or 2 as text for pass_manager_add_pipeline. quantize
 * false leaves the model in its own types. */
const char *pipeline_for_level(int level, bool quantize);
NPU_C_END
#endif
