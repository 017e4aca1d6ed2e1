/* libnpucc: the whole compiler as a library call. */
#ifndef NPU_COMPILE_H
#define NPU_COMPILE_H
#include "backend/host/host.h"
#include "frontend/frontend.h"
#include "ir/ir.h"
#include "isa/isa.h"

NPU_C_BEGIN

typedef struct {
  MdlOptions mdl;
  const MachineDesc *machine; /* NULL: edge */
  int opt_level;              /* 0, 1, 2 */
  bool quantize;              /* false: keep the model's own types */
  const char *calibrate;      /* NULL: weight-only; a tensor file; "random" */
  /* Passes; `default`, `default{O=1,quantize=false}` among them stand for a level's pipeline. NULL:
   * `default`, of opt_level and quantize. */
  const char *pipeline;
  const char *const *plugins;
  size_t nplugins;
  PathMaps paths; /* what names of files become in binaries; those of IR text: in run.print */
  PassRunOptions run;
} NpuccOptions;
void npucc_options_init(NpuccOptions *o);

/* One compilation: owns the module. Everything an option points at must outlive it. */
typedef struct Npucc Npucc;
/* NULL after a diagnostic. */
Npucc *npucc_new(const NpuccOptions *o, DiagEngine *diag);
void npucc_free(Npucc *c);
/* An .mdl model, or IR text when the name ends in .ir, of which one function stays; "-" reads a
 * model from standard input. False after a diagnostic. */
bool npucc_read(Npucc *c, const char *path);
/* IR text from memory; label names it in messages. */
bool npucc_read_ir(Npucc *c, const char *text, size_t len, const char *label);
/* Runs the pipeline as far as its passes stay within level `until`; the next call continues. */
bool npucc_run_passes(Npucc *c, IrLevel until);
/* Has `after` called after every pass; see PassRunOptions. */
void npucc_after_each(Npucc *c, bool (*after)(void *user, const Pass *pass), void *user);
/* What the next call of npucc_run_passes would begin with; NULL when all have run. */
const char *npucc_next_pass(const Npucc *c);
/* Is it the pass whose purpose is to round? */
bool npucc_rounds(const Pass *p);
/* After npucc_run_passes(c, IR_PROGRAM). Fills an image to be freed with isa_image_free before c,
 * from which it borrows; after a failure the image is empty. */
bool npucc_emit_image(Npucc *c, IsaImage *out);
IrModule *npucc_module(Npucc *c); /* NULL before a model was read */
PassManager *npucc_passes(Npucc *c);
void npucc_print_pipeline(const Npucc *c, StrBuf *out); /* a line of text */
/* Compiles for the host. As read, before any pass: the float reference. After
 * npucc_run_passes(IR_GRAPH): the same numbers the NPU program computes, integers bit for bit. The
 * module is left as it was and must outlive the program. NULL after a diagnostic. */
HostProgram *npucc_host(Npucc *c);

NPU_C_END
#endif
