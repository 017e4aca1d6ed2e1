/* backend/npu: program IR to instructions and container. */
#ifndef NPU_BACKEND_NPU_H
#define NPU_BACKEND_NPU_H
#include "ir/ir.h"
#include "isa/isa.h"

NPU_C_BEGIN

/* Encodes function f (level program, allocated) into an image that borrows constant data from f's
 * module. False after a diagnostic. */
bool npu_emit(const IrFunc *f, const MachineDesc *machine, IsaImage *out, DiagEngine *diag);
NPU_C_END
#endif
