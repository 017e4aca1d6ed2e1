/* The whole compiler as a library call (libnpucc). */
#ifndef NPU_COMPILE_H
#define NPU_COMPILE_H
#include "backend/host/host.h"
#include "frontend/frontend.h"
#include "ir/ir.h"
#include "isa/isa.h"

typedef struct {
  MdlOptions mdl;
  const MachineDesc *machine;      /* NULL: edge */
  int opt_level;                   /* 0, 1, 2 */
  bool quantize;                   /* false: keep the model's own types */
  const char *calibrate;           /* NULL: weight-only; a tensor file; "random" */
  const char *pipeline;            /* NULL: by level */
  const char *const *plugins; size_t nplugins;
  PassRunOptions run;
} NpuccOptions;
void npucc_options_init(NpuccOptions *o);
/* One compilation: owns the module. */
typedef struct Npucc Npucc;
Npucc *npucc_new(const NpuccOptions *o, DiagEngine *diag);
void npucc_free(Npucc *c);
bool npucc_read(Npucc *c, const char *path);         /* .mdl, or IR text (.ir) */
bool npucc_run_passes(Npucc *c, IrLevel until);       /* lowers to graph (optimized), nest or program */
bool npucc_emit_image(Npucc *c, IsaImage *out);
IrModule *npucc_module(Npucc *c);
PassManager *npucc_passes(Npucc *c);
/* Compiles for the host. As read, before any pass: the float reference. After npucc_run_passes(IR_GRAPH): the same
 * numbers the NPU program computes, integers bit for bit. The module is left as it was. */
HostProgram *npucc_host(Npucc *c);
#endif
