/* Private to the verifier. */
#ifndef NPU_IR_VERIFY_H
#define NPU_IR_VERIFY_H
#include "ir/internal.h"

typedef struct {
  IrModule *m;
  const IrFunc *f;
  IrLevel level;   /* of the block being checked: the function's, or IR_BODY */
  PtrMap *visible; /* values an op here may use */
  bool ok;
  bool broken; /* lists and links cannot be followed: nothing more can be said */
} Verifier;

/* Reports at op (message prefixed by its name) and returns false. */
bool verify_fail(Verifier *v, const IrOp *op, const char *code, const char *fmt, ...)
    NPU_PRINTF(4, 5);
const char *verify_type_text(Verifier *v, const IrType *t);
/* Maps, pads and body of a kernel whose ops have passed on their own. */
void verify_kernel(Verifier *v, const IrOp *op);
/* Attributes of an op at program level that fits its signature. */
void verify_program_op(Verifier *v, const IrOp *op);
/* `layout`, when there: one permutation of the axes per result. */
void verify_layout(Verifier *v, const IrOp *op);
#endif
