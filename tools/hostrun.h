/* Running graph functions on the host: what the pass manager's evaluate and observe callbacks do.
 */
#ifndef NPU_HOSTRUN_H
#define NPU_HOSTRUN_H
#include "backend/host/host.h"
#include "ir/ir.h"
#include "isa/isa.h"
#include "tools/samples.h"

typedef struct {
  IrModule *module;
  const MachineDesc *machine;
  DiagEngine *diag;
} HostRunner;

/* Lowers a copy of f, leaving f as it was, and compiles it. NULL after a diagnostic. */
HostProgram *hostrun_compile(const HostRunner *h, const IrFunc *f);
/* Signatures into arrays of f->body->nargs and f->nresults ports. */
void hostrun_inputs(const IrFunc *f, ModelPort *out);
void hostrun_outputs(const IrFunc *f, ModelPort *out);
/* The callbacks; `host` is a HostRunner. */
bool hostrun_evaluate(void *host, IrFunc *f, const IrAttr **out);
bool hostrun_observe(void *host, IrFunc *f, const char *calibration, int n, IrValue *const *values,
                     float *lo, float *hi);
#endif
