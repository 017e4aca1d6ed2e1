/* The pass ABI: what a built-in pass and a plugin both are. Included by ir.h; versioned. */
#ifndef NPU_PASS_H
#define NPU_PASS_H
#include "ir/ir.h"

NPU_C_BEGIN

/* Counts changes of what a plugin sees that the stamp below does not tell: what members and
 * arguments mean, members that change places. */
#define NPU_PASS_ABI 2

typedef struct PassContext PassContext;
typedef enum { PASS_OK, PASS_FAILED } PassStatus; /* FAILED: a diagnostic was reported */

typedef struct {
  const char *name, *type, *dflt, *help; /* type: int float bool str */
} PassOption;

typedef struct Pass {
  uint32_t abi, size; /* NPU_PASS_ABI, sizeof(Pass) */
  const char *name;   /* dashes: "fold-relu"; file passes/fold_relu.c */
  const char *help;   /* one line */
  IrLevel from, to;
  const PassOption *options; /* ends with a NULL name; NULL for none */
  PassStatus (*run)(PassContext *pc, IrFunc *f);
} Pass;

struct MachineDesc; /* isa/: MachineDesc, opaque here */

/* Everything a pass may ask of its surroundings. Also reachable by plugins, through the vtable. */
struct PassContext {
  IrModule *module;
  DiagEngine *diag;
  Arena *scratch;                    /* reset after the pass */
  const struct MachineDesc *machine; /* what we compile for */
  const Pass *pass;
  const char *const *option_values; /* parallel to pass->options */
  /* Runs graph-level function f, which has no arguments, on the host reference: one data attribute
   * (of f's module) per returned value in out[]; false when it cannot. NULL when no host is
   * attached. One call compiles once, so a pass gathers all it wants evaluated in one function. */
  bool (*evaluate)(void *host, IrFunc *f, const IrAttr **out);
  /* Runs graph-level function f on samples of `calibration` (file path, or "random") and returns
   * for each value in values[] its smallest and largest element, NaN left out. */
  bool (*observe)(void *host, IrFunc *f, const char *calibration, int n, IrValue *const *values,
                  float *lo, float *hi);
  void *host;
  const struct IrApi *api; /* the functions a plugin may call */
  struct PassManager *pm;  /* private */
};
bool pass_option_bool(const PassContext *pc, const char *name);
int64_t pass_option_int(const PassContext *pc, const char *name);
double pass_option_float(const PassContext *pc, const char *name);
const char *pass_option_str(const PassContext *pc, const char *name);
/* Statistics by name, summed and shown by --stats. */
void pass_count(PassContext *pc, const char *what, int64_t n);

/* What a plugin's one exported symbol, `npu_plugin`, returns. */
typedef struct {
  uint32_t abi, size;
  const Pass *const *passes; /* NULL-terminated */
} NpuPlugin;
typedef const NpuPlugin *(*NpuPluginEntry)(void);
#define NPU_PLUGIN_SYMBOL "npu_plugin"

/* The vtable handed to plugins: pointers to the functions of ir.h they may use, so that a plugin
 * links against nothing. See ir/api.c. */
typedef struct IrApi {
  uint32_t abi, size;
#define API(ret, name, function, args) ret(*name) args;
#include "ir/api.def"
#undef API
} IrApi;
const IrApi *ir_api(void);

/* What the including file was compiled against: rows of tables by number, functions of the vtable,
 * sizes of structures; ends with a NULL name. Every plugin exports it without doing anything for
 * it, and one whose stamp differs from the compiler's is refused: an op it knows by number would be
 * another one here. */
typedef struct {
  const char *name;
  uint64_t value;
} NpuStampRow;
typedef const NpuStampRow *(*NpuStampEntry)(void);
#define NPU_STAMP_SYMBOL "npu_plugin_stamp"
__attribute__((weak, visibility("default"))) const NpuStampRow *npu_plugin_stamp(void);
__attribute__((weak, visibility("default"))) const NpuStampRow *npu_plugin_stamp(void) {
#define SIZE(t)                                                                                    \
  { "size of " #t, sizeof(t) }
  static const NpuStampRow rows[] = {
#define OP(e, name, ...) {"op " #e " " name, IR_OP_##e},
#include "ir/ops.def"
#undef OP
#define X(e, n, b, f) {"element type " #e " " n, DT_##e},
      NPU_DTYPES(X)
#undef X
#define X(e) {"attribute kind " #e, IR_ATTR_##e},
          NPU_ATTR_KINDS(X)
#undef X
#define API(ret, name, function, args) {"function " #name #args, 0},
#include "ir/api.def"
#undef API
              SIZE(IrType),
      SIZE(IrMap),
      SIZE(IrData),
      SIZE(IrAttr),
      SIZE(IrNamedAttr),
      SIZE(IrUse),
      SIZE(IrValue),
      SIZE(IrOp),
      SIZE(IrBlock),
      SIZE(IrFunc),
      SIZE(IrModule),
      SIZE(IrBuilder),
      SIZE(IrAttrInit),
      SIZE(IrOpInfo),
      SIZE(IrParam),
      SIZE(IrKernel),
      SIZE(SrcLoc),
      SIZE(StrBuf),
      SIZE(Pass),
      SIZE(PassOption),
      SIZE(PassContext),
      SIZE(NpuPlugin),
      {NULL, 0}};
#undef SIZE
  return rows;
}

/* What runs now, for a handler of crashes: the manager keeps it while a pass runs and what it left
 * is looked at. */
typedef struct {
  const char *volatile pass, *volatile function; /* NULL: none */
  /* A file that would repeat the crash, to be renamed to `reproducer`; NULL: none was written. */
  const char *volatile draft, *volatile reproducer;
} PassWatch;

typedef struct {
  /* verify_each: after every pass, which debug builds do in any case. Passes that are not trusted
   * (pass_manager_trust) are always followed by it. */
  bool verify_each, time_passes, stats, print_after_all;
  bool print_changed;   /* after every pass that changed something, and which ones did not */
  IrPrintOptions print; /* how dumps print */
  const char *const *print_before, *const *print_after; /* pass names */
  int nprint_before, nprint_after;
  int stop_after;         /* run at most this many passes; -1: all */
  const char *reproducer; /* where to write IR + pipeline when a pass fails; NULL: nowhere */
  PassWatch *watch;       /* NULL: none */
  /* What the command in a reproducer needs besides the pipeline: machine, plugins, the file's name;
   * NULL: nothing */
  const char *reproducer_args;
  FILE *print_stream; /* where dumps, times and statistics go */
  /* Called after every pass that left a module in order; NULL: nothing is. False, after a
   * diagnostic, ends the run. */
  bool (*after)(void *user, const Pass *pass);
  void *user;
} PassRunOptions;

typedef struct PassManager PassManager;
PassManager *pass_manager_new(IrModule *m, const struct MachineDesc *machine);
void pass_manager_free(PassManager *pm);
/* Rows are registered once: the built-in table (passes/), then plugins. Duplicate names are an
 * error. */
bool pass_manager_register(PassManager *pm, const Pass *pass);
bool pass_manager_load_plugin(PassManager *pm, const char *path);
/* The passes registered so far are the compiler's own. */
void pass_manager_trust(PassManager *pm);
size_t pass_manager_count(const PassManager *pm);
const Pass *pass_manager_at(const PassManager *pm, size_t i);
void pass_manager_set_host(PassManager *pm, void *host,
                           bool (*evaluate)(void *, IrFunc *, const IrAttr **),
                           bool (*observe)(void *, IrFunc *, const char *, int, IrValue *const *,
                                           float *, float *));
/* "lower,fuse,tile{budget=3}": parses and queues; unknown names and options are diagnosed with
 * suggestions. */
bool pass_manager_add_pipeline(PassManager *pm, const char *pipeline);
/* Sets an option of every queued pass of that name (after add_pipeline); false, diagnosed, when
 * there is none. */
bool pass_manager_set_option(PassManager *pm, const char *pass, const char *option,
                             const char *value);
/* Runs the queue over every function at each pass's level and empties it. A pass for whose level
 * there is no function is an error. False after a diagnostic. */
bool pass_manager_run(PassManager *pm, const PassRunOptions *options);
NPU_C_END
#endif
