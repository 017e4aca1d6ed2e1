/* libnpurt: loads a model binary, runs it on the simulated machine, reports. Installed; depends on
 * isa and support, never on the compiler. One NpurtModel is used by one thread at a time; several
 * models may run at once. */
#ifndef NPURT_H
#define NPURT_H
#include "isa/isa.h"
#include "support/tensorfile.h"

typedef enum { NPURT_FAST, NPURT_TIMED, NPURT_CHECK } NpurtMode;
typedef struct NpurtModel NpurtModel;
typedef struct {
  NpurtMode mode;
  bool trace;                 /* record engine intervals for npurt_trace_write */
  const MachineDesc *machine; /* NULL: the binary's own; otherwise must equal it (error names the
                                 first difference) */
  uint64_t max_instructions;  /* 0: no limit; a runaway program is an error */
  int isa_level; /* host vector level: -1 best available, 0 portable, 1 AVX2, 2 AVX-512/VNNI, 3 AMX;
                    same bytes */
} NpurtOptions;
NpurtModel *npurt_load(const char *path, const NpurtOptions *options,
                       DiagEngine *diag); /* NULL after a diagnostic */
NpurtModel *npurt_load_memory(const void *data, size_t size, const NpurtOptions *options,
                              DiagEngine *diag);
void npurt_free(NpurtModel *m);
const IsaImage *npurt_image(const NpurtModel *m);
const IsaIo *npurt_find_io(const NpurtModel *m, IsaIoRole role, const char *name);
/* Pointer to the tensor's bytes in simulated DRAM, row-major, dtype and shape as in the signature:
 * write inputs before a run, read outputs after it, save and restore states. */
void *npurt_io_data(NpurtModel *m, const IsaIo *io);
void npurt_set_arg(NpurtModel *m, int number, int64_t value); /* host arguments read by `arg` */
void npurt_reset(NpurtModel *m); /* DRAM as loaded: states back to their start */
/* Executes the program once. False after a diagnostic (trap with pc, source line, and reason). */
bool npurt_run(NpurtModel *m, DiagEngine *diag);

/* Figures of the runs since load or npurt_clear_profile (timed and check modes; fast counts
 * instructions and work). */
typedef struct {
  uint64_t runs, instructions;
  double cycles, seconds;
  struct {
    double busy, stall_take, stall_queue, idle;
    uint64_t instructions;
  } engine[ENGINE_COUNT];
  double dram_read, dram_write; /* bytes on the bus */
  double macs_s8, macs_bf16, vpu_ops;
  IsaEnergy energy;
  double energy_static;                    /* pJ */
  double bound_compute, bound_dram, bound; /* roofline, cycles for these runs */
} NpurtProfile;
const NpurtProfile *npurt_profile(const NpurtModel *m);
void npurt_clear_profile(NpurtModel *m);
typedef struct {
  const char *op, *file;
  uint32_t line, col;
  double cycles, macs, dram_bytes, energy;
  uint64_t instructions;
} NpurtOpProfile;
size_t npurt_op_profile(const NpurtModel *m,
                        const NpurtOpProfile **out); /* per source op, in program order */
void npurt_report(const NpurtModel *m, StrBuf *out); /* the text of --report */
bool npurt_trace_write(const NpurtModel *m, const char *path,
                       DiagEngine *diag); /* Chrome trace JSON */
#endif
