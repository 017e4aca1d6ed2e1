/* Private to the pass manager. */
#ifndef NPU_IR_PM_H
#define NPU_IR_PM_H
#include "ir/internal.h"

typedef struct {
  const Pass *pass;
  const char **values; /* parallel to pass->options, defaults filled in */
} QueuedPass;

typedef struct {
  const Pass *pass;
  const char *what;
  int64_t n;
} PassStat;

typedef struct {
  const Pass *pass;
  double ms;
} PassTime;

struct PassManager {
  IrModule *module;
  const struct MachineDesc *machine;
  Arena *arena, *scratch;
  const Pass **passes;
  size_t npasses, ntrusted; /* the first ones are the compiler's own */
  bool cannot_reproduce;    /* said already */
  void **plugins;
  size_t nplugins;
  QueuedPass *queue;
  size_t nqueue;
  PassStat *stats;
  size_t nstats;
  PassTime *times;
  size_t ntimes;
  void *host;
  bool (*evaluate)(void *, IrFunc *, const IrAttr **);
  bool (*observe)(void *, IrFunc *, const char *, int, IrValue *const *, float *, float *);
};

int pass_option_count(const Pass *pass);
/* The declared default, or false, 0, "" by type. */
const char *pm_option_default(const PassOption *o);
const Pass *pm_find(const PassManager *pm, const char *name);
/* One of the compiler's own. */
bool pm_is_trusted(const PassManager *pm, const Pass *pass);
/* Sets option `name` of q; false after reporting at loc. */
bool pm_set_option(PassManager *pm, QueuedPass *q, const char *name, const char *value, SrcLoc loc);
/* Reports that there is no such pass, with the nearest name; false. */
bool pm_unknown_pass(PassManager *pm, const char *name, SrcLoc loc);
/* q as pipeline text: name{option=value,...} with options that differ from their defaults. */
void pm_print_queued(const QueuedPass *q, StrBuf *out);
#endif
