/* Options of the compiler that npucc and npu-opt share. */
#ifndef NPU_COMPILE_ARGS_H
#define NPU_COMPILE_ARGS_H
#include "tools/cli.h"
#include "tools/compile.h"

enum {
  CARG_MACHINE = 100,
  CARG_LOAD_PASS,
  CARG_PASSES,
  CARG_STOP_AFTER,
  CARG_REPRODUCER,
  CARG_PRINT_AFTER,
  CARG_PRINT_AFTER_ALL,
  CARG_LOCATIONS,
  CARG_ELIDE_DATA,
  CARG_VERIFY_EACH,
  CARG_TIME_PASSES,
  CARG_STATS,
  CARG_PREFIX_MAP,
  CARG_PRINT_PIPELINE,
  CARG_PRINT_BEFORE,
  CARG_PRINT_CHANGED,
};
/* Rows for a command's option table. */
#define COMPILE_ARGS_PASSES                                                                        \
  {0, 0, NULL, NULL, "Passes:"},                                                                   \
      {CARG_PASSES, 0, "passes", "A,B{X=1},...",                                                   \
       "run these passes (npu-opt --list-passes shows all; default, default{O=1}: a level's)"},    \
      {CARG_PRINT_PIPELINE, 0, "print-pipeline", NULL,                                             \
       "print the passes that would run and exit"},                                                \
      {CARG_LOAD_PASS, 0, "load-pass", "FILE.so", "load passes built elsewhere. Repeatable"},      \
      {CARG_STOP_AFTER, 0, "stop-after", "N", "run the first N passes only"}, {                    \
    CARG_REPRODUCER, 0, "reproducer", "FILE",                                                      \
        "when a pass fails, write the IR it was given and the rest of the pipeline"                \
  }
#define COMPILE_ARGS_WATCH                                                                         \
  {0, 0, NULL, NULL, "Watching (on standard error):"},                                             \
      {CARG_PRINT_BEFORE, 0, "print-before", "PASS,...", "print the IR before these passes"},      \
      {CARG_PRINT_AFTER, 0, "print-after", "PASS,...", "print the IR after these passes"},         \
      {CARG_PRINT_AFTER_ALL, 0, "print-after-all", NULL, "print the IR after every pass"},         \
      {CARG_PRINT_CHANGED, 0, "print-changed", NULL,                                               \
       "print the IR after every pass that changed it"},                                           \
      {CARG_LOCATIONS, 0, "locations", NULL, "print source locations with IR"},                    \
      {CARG_ELIDE_DATA, 0, "elide-data", "N",                                                      \
       "print IR without constants of more than N elements"},                                      \
      {CARG_VERIFY_EACH, 0, "verify-each", NULL, "verify the IR after every pass"},                \
      {CARG_TIME_PASSES, 0, "time-passes", NULL, "print the time every pass took"}, {              \
    CARG_STATS, 0, "stats", NULL, "print what every pass counted"                                  \
  }
#define COMPILE_ARGS_NAMES                                                                         \
  {                                                                                                \
    CARG_PREFIX_MAP, 0, "file-prefix-map", "OLD=NEW",                                              \
        "write NEW for OLD where a file's name in the result begins with OLD. Repeatable"          \
  }
#define COMPILE_ARGS_MACHINE                                                                       \
  {                                                                                                \
    CARG_MACHINE, 0, "machine", "NAME|FILE[,KEY=VALUE...]",                                        \
        "edge (default), another machine of isa/machines (cloud, gemmini ...) or a file, and "     \
        "changes"                                                                                  \
  }

typedef struct {
  NpuccOptions options;
  MachineDesc machine;
  const char *machine_name;
  CliList print_before, print_after, plugins;
  bool print_pipeline;
  PathMap *paths;
  size_t npaths;
  Arena *arena;
} CompileArgs;
void compile_args_init(CompileArgs *a);
void compile_args_free(CompileArgs *a);
/* Takes one of the options above; false after a message. */
bool compile_args_take(CompileArgs *a, Cli *cli, int id, const char *value);
/* After the last option: loads the machine and completes a->options. False after a diagnostic. */
bool compile_args_finish(CompileArgs *a, DiagEngine *diag);
/* --print-pipeline: what npucc_new would run, to standard output. */
bool compile_args_print_pipeline(CompileArgs *a, DiagEngine *diag);
/* Is an option given that only matters when passes run? */
bool compile_args_for_passes(const CompileArgs *a);
/* Are the names of --print-before and --print-after passes of c? False after a diagnostic. */
bool compile_args_check(const CompileArgs *a, Npucc *c, DiagEngine *diag);
#endif
