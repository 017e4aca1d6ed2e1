/* libnpurt: loads a model binary, runs it on the simulated machine, reports. Installed; depends on
 * isa and support, never on the compiler. One NpurtModel is used by one thread at a time; several
 * models may run at once. */
#ifndef NPURT_H
#define NPURT_H
#include "isa/isa.h"
#include "support/tensorfile.h"

NPU_C_BEGIN

typedef enum { NPURT_FAST, NPURT_TIMED, NPURT_CHECK } NpurtMode;
/* Vector instructions of the host, each with those before it. The results are the same bytes. */
typedef enum {
  NPURT_HOST_BEST, /* all there are */
  NPURT_HOST_PORTABLE,
  NPURT_HOST_AVX2,
  NPURT_HOST_AVX512, /* with VNNI */
  NPURT_HOST_AMX
} NpurtHost;
typedef struct NpurtModel NpurtModel;
typedef struct {
  NpurtMode mode;
  bool trace;                 /* record engine intervals for npurt_trace_write */
  const MachineDesc *machine; /* what to run on; NULL: what the binary was compiled for. Its sizes
                                 must be the same (isa/machine.def, class SIZE) */
  uint64_t max_instructions;  /* 0: no limit; a runaway program is an error */
  NpurtHost host;             /* what simulating may use; a host without it uses what it has */
} NpurtOptions;
/* NULL after a diagnostic. options NULL: timed. The model keeps the file mapped. */
NpurtModel *npurt_load(const char *path, const NpurtOptions *options, DiagEngine *diag);
/* The same from memory; data is not copied and must outlive the model. */
NpurtModel *npurt_load_memory(const void *data, size_t size, const NpurtOptions *options,
                              DiagEngine *diag);
void npurt_free(NpurtModel *m); /* NULL is fine; ends all that was got from m */
const IsaImage *npurt_image(const NpurtModel *m);
const IsaIo *npurt_find_io(const NpurtModel *m, IsaIoRole role, const char *name); /* NULL: none */
/* Pointer to the tensor's bytes in simulated DRAM, row-major, dtype and shape as in the signature:
 * write inputs before a run, read outputs after it, save and restore states. */
void *npurt_io_data(NpurtModel *m, const IsaIo *io);
/* Host arguments 0 to 63, read by `arg`, 0 until set; other numbers are ignored. */
void npurt_set_arg(NpurtModel *m, int number, int64_t value);
void npurt_reset(NpurtModel *m); /* DRAM as loaded: states back to their start */
/* Executes the program once. False after a diagnostic (trap with pc, source line, and reason). */
bool npurt_run(NpurtModel *m, DiagEngine *diag);

/* Figures of the runs since load or npurt_clear_profile (timed and check modes; fast counts
 * instructions, work and its energy). An engine's or op's energy is that of its instructions and of
 * the time it worked: a stretch of time belongs in equal parts to the engines that work in it, or
 * to the sequencer when none does. So engines and ops both sum to energy.total. */
typedef struct {
  uint64_t runs, instructions;
  double cycles, seconds; /* simulated */
  struct {
    double busy, stall_take, stall_queue, idle; /* cycles; they sum to all */
    double energy;                              /* pJ */
    uint64_t instructions;
  } engine[ENGINE_COUNT];
  double dram_read, dram_write;  /* bytes on the bus */
  double dram_rows;              /* opened: by address in timed mode, in closed form in fast */
  double spm_bytes, acc_bytes;   /* read and written */
  double macs_s8, macs_bf16;     /* multiply-accumulates of all columns of the array */
  double useful_s8, useful_bf16; /* of them those of columns that the plane has */
  double vpu_ops, sfu_ops;       /* lane operations; of which special functions */
  double macs;                   /* multiply-accumulates of the model, see isa/README.md */
  IsaEnergy energy;
  double bound_compute, bound_dram, bound; /* roofline, cycles for these runs */
  double bound_bytes;                      /* that must cross the DRAM bus */
} NpurtProfile;
const NpurtProfile *npurt_profile(const NpurtModel *m); /* m's own, kept up to date */
void npurt_clear_profile(NpurtModel *m);
/* What the instructions of one source op cost; place as in the model file. macs: its
 * multiply-accumulates of elements that exist, whatever unit does them; array_macs: those of all
 * columns of the array, useful_macs of columns that the planes have. */
typedef struct {
  const char *op, *file;
  uint32_t line, col;
  double cycles, macs, array_macs, useful_macs, dram_bytes, spm_bytes, acc_bytes;
  double energy; /* pJ */
  uint64_t instructions;
} NpurtOpProfile;
/* In program order; *out is m's own, kept up to date. Returns how many. */
size_t npurt_op_profile(const NpurtModel *m, const NpurtOpProfile **out);
void npurt_report(const NpurtModel *m, StrBuf *out); /* adds the text of --report */
/* Adds cycles, time, energy and runs in one line. */
void npurt_summary(const NpurtModel *m, StrBuf *out);
/* Chrome trace JSON of what options.trace recorded. False after a diagnostic. */
bool npurt_trace_write(const NpurtModel *m, const char *path, DiagEngine *diag);
NPU_C_END
#endif
