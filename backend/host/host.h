/* backend/host: graph and nest IR to native code through LLVM-C: the reference the NPU is compared
 * with, and what constant folding and calibration run on. Shares with the simulator only the ISA's
 * definition of the special functions (isa/vmath). Graphs reach it already lowered (passes/lower),
 * so this folder includes ir, support and, for vmath alone, isa. */
#ifndef NPU_BACKEND_HOST_H
#define NPU_BACKEND_HOST_H
#include "ir/ir.h"

NPU_C_BEGIN

typedef struct HostProgram HostProgram;
/* Compiles function f at nest level (every op a kernel, reshape, weight, constant, state,
 * state_write or return), in whatever layouts it has been given; vectorized, in process (ORC
 * LLJIT). The module of f must outlive the program. NULL after a diagnostic. */
HostProgram *host_compile(IrFunc *f, DiagEngine *diag);
void host_free(HostProgram *p);
/* Runs once. inputs[i]/outputs[i]: row-major buffers for the function's arguments and results.
 * States live in the program between runs and start as zeros (or their data). False with a
 * diagnostic when an index was out of range. */
bool host_run(HostProgram *p, const void *const *inputs, void *const *outputs, DiagEngine *diag);
void host_reset_states(HostProgram *p);
/* The generated LLVM IR, for tests and the curious. */
void host_print_llvm(const HostProgram *p, StrBuf *out);
NPU_C_END
#endif
