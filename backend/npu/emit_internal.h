/* Private to backend/npu. */
#ifndef NPU_BACKEND_NPU_EMIT_INTERNAL_H
#define NPU_BACKEND_NPU_EMIT_INTERNAL_H
#include "backend/npu/npu.h"

typedef struct {
  const IrFunc *f;
  const MachineDesc *machine;
  IsaImage *img;
  DiagEngine *diag;
  IsaInsn *code; /* targets as instruction numbers */
  uint32_t ninsns, capacity;
  struct {
    const IrValue *value;
    uint16_t index;
  } * vprogs; /* of every vprog op so far, its number in the image */
  uint32_t nvprogs;
  struct KnownVprog *known; /* uthash */
  struct Label *labels;     /* uthash */
  bool failed;
} Emitter;

/* Reports a located error once; later ones are swallowed. */
void emit_fail(Emitter *e, SrcLoc loc, const char *fmt, ...) NPU_PRINTF(3, 4);
/* Address of a buffer or tensor value, times scale, plus an offset. */
int64_t emit_address(Emitter *e, const IrValue *v, int64_t scale, int64_t offset);
/* Fills d from a `desc` op. */
bool emit_desc(Emitter *e, const IrOp *op, IsaDesc *d);
/* Segments, I/O signature, roofline figures and DRAM size from the function's `tensor` ops. */
void emit_tensors(Emitter *e);
#endif
