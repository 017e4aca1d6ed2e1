/* Running a pipeline: levels, checks, dumps, times, statistics, reproducers. */
#include "ir/pm.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

/* Debug builds hold every pass to what it reports. */
#ifdef NDEBUG
#define VERIFY_ALWAYS false
#else
#define VERIFY_ALWAYS true
#endif

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

void pass_count(PassContext *pc, const char *what, int64_t n) {
  PassManager *pm = pc->pm;
  for (size_t i = 0; i < pm->nstats; i++) {
    if (pm->stats[i].pass != pc->pass || strcmp(pm->stats[i].what, what)) continue;
    pm->stats[i].n += n;
    return;
  }
  pm->stats = mem_realloc(pm->stats, (pm->nstats + 1) * sizeof *pm->stats);
  pm->stats[pm->nstats++] = (PassStat){pc->pass, arena_strdup(pm->arena, what), n};
}

/* ---- dumps and tables ---- */

static bool names(const char *const *list, int n, const Pass *pass) {
  for (int i = 0; i < n; i++)
    if (!strcmp(list[i], pass->name)) return true;
  return false;
}

static void dump(PassManager *pm, const PassRunOptions *o, const char *when, const Pass *pass) {
  StrBuf text = {0};
  strbuf_printf(&text, "// %s %s\n", when, pass->name);
  ir_print_with(pm->module, &text, &o->print);
  fwrite(text.data, 1, text.len, o->print_stream);
  strbuf_free(&text);
}

/* Everything there is in the module, for a comparison. */
static StrBuf whole_text(PassManager *pm) {
  StrBuf text = {0};
  ir_print(pm->module, &text, true);
  return text;
}

/* before: the module's text before the pass; empty unless changes are to be shown. */
static void dump_after(PassManager *pm, const PassRunOptions *o, const Pass *pass,
                       const StrBuf *before) {
  bool wanted = o->print_after_all || names(o->print_after, o->nprint_after, pass);
  if (o->print_changed) {
    StrBuf after = whole_text(pm);
    bool changed = after.len != before->len || memcmp(after.data, before->data, after.len) != 0;
    if (!changed && !wanted) fprintf(o->print_stream, "// %s: no change\n", pass->name);
    wanted = wanted || changed;
    strbuf_free(&after);
  }
  if (wanted) dump(pm, o, "after", pass);
}

static void print_times(const PassManager *pm, FILE *out) {
  double total = 0;
  for (size_t i = 0; i < pm->ntimes; i++) total += pm->times[i].ms;
  fprintf(out, "// %-24s %10s %6s\n", "pass", "ms", "%");
  for (size_t i = 0; i < pm->ntimes; i++)
    fprintf(out, "// %-24s %10.3f %6.1f\n", pm->times[i].pass->name, pm->times[i].ms,
            total > 0 ? pm->times[i].ms / total * 100 : 0.0);
  fprintf(out, "// %-24s %10.3f %6.1f\n", "total", total, 100.0);
}

static void print_stats(const PassManager *pm, FILE *out) {
  for (size_t i = 0; i < pm->nstats; i++)
    fprintf(out, "// %12" PRId64 "  %s: %s\n", pm->stats[i].n, pm->stats[i].pass->name,
            pm->stats[i].what);
}

/* ---- one pass ---- */

/* The command that runs q on the module as it is now, then the module. */
static void put_reproducer(PassManager *pm, const QueuedPass *q, const PassRunOptions *o,
                           StrBuf *text) {
  StrBuf pass = {0};
  pm_print_queued(q, &pass);
  strbuf_puts(text, "// npu-opt --passes='");
  for (size_t i = 0; i < pass.len; i++) { /* an apostrophe as the shell wants it */
    if (pass.data[i] == '\'')
      strbuf_puts(text, "'\\''");
    else
      strbuf_putc(text, pass.data[i] == '\n' ? ' ' : pass.data[i]);
  }
  strbuf_puts(text, "' --verify-each");
  if (o->reproducer_args) strbuf_printf(text, " %s", o->reproducer_args);
  strbuf_putc(text, '\n');
  ir_print(pm->module, text, true);
  strbuf_free(&pass);
}

/* Written before the pass runs, so that it is there should the pass crash. The draft's name, or
 * NULL after a warning. */
static const char *draft_reproducer(PassManager *pm, const QueuedPass *q, const PassRunOptions *o) {
  const char *draft = arena_printf(pm->arena, "%s.draft", o->reproducer), *why;
  StrBuf text = {0};
  put_reproducer(pm, q, o, &text);
  bool ok = file_write_atomic(draft, text.data, text.len, &why);
  strbuf_free(&text);
  if (ok) return draft;
  if (!pm->cannot_reproduce)
    diag_warning(pm->module->diag, SRC_LOC_NONE, "W-reproducer", "cannot write %s: %s",
                 o->reproducer, why);
  pm->cannot_reproduce = true;
  return NULL;
}

/* The draft becomes the reproducer when the pass failed, else it goes. */
static void finish_reproducer(PassManager *pm, const QueuedPass *q, const PassRunOptions *o,
                              const char *draft, bool ok) {
  if (!draft) return;
  if (ok)
    remove(draft);
  else if (rename(draft, o->reproducer) == 0)
    diag_note(pm->module->diag, SRC_LOC_NONE,
              "pass `%s` failed; %s repeats it, its first line says how", q->pass->name,
              o->reproducer);
  else
    diag_warning(pm->module->diag, SRC_LOC_NONE, "W-reproducer", "cannot write %s: %s",
                 o->reproducer, strerror(errno));
}

static bool run_on(PassManager *pm, const QueuedPass *q, IrFunc *f) {
  DiagEngine *diag = pm->module->diag;
  PassContext pc = {.module = pm->module,
                    .diag = diag,
                    .scratch = pm->scratch,
                    .machine = pm->machine,
                    .pass = q->pass,
                    .option_values = q->values,
                    .evaluate = pm->evaluate,
                    .observe = pm->observe,
                    .host = pm->host,
                    .api = ir_api(),
                    .pm = pm};
  unsigned errors = diag_errors(diag);
  PassStatus status = q->pass->run(&pc, f);
  arena_reset(pm->scratch);
  if (status != PASS_OK && diag_errors(diag) == errors)
    diag_error(diag, f->loc, "E-internal",
               "pass `%s` failed on @%s without saying why; report this", q->pass->name, f->name);
  if (diag_errors(diag) != errors) return false;
  f->level = q->pass->to;
  return true;
}

static bool in_module(const IrModule *m, const IrFunc *f) {
  for (int i = 0; i < m->nfuncs; i++)
    if (m->funcs[i] == f) return true;
  return false;
}

static const char *level_name(IrLevel l) {
  return l == IR_GRAPH ? "graph" : l == IR_NEST ? "nest" : "program";
}

/* Over the functions at its level as they are now; those it makes itself are not visited. */
static bool run_pass(PassManager *pm, const QueuedPass *q, const PassRunOptions *o) {
  IrModule *m = pm->module;
  int n = 0, total = m->nfuncs;
  IrFunc **funcs = ARENA_ARRAY(pm->arena, IrFunc *, total + 1);
  for (int i = 0; i < total; i++)
    if (m->funcs[i]->level == q->pass->from) funcs[n++] = m->funcs[i];
  if (!n && total) {
    diag_error(m->diag, m->funcs[0]->loc, "E-level",
               "pass `%s` works on the %s level, but @%s is at the %s level; put a pass before it "
               "that leads there",
               q->pass->name, level_name(q->pass->from), m->funcs[0]->name,
               level_name(m->funcs[0]->level));
    return false;
  }
  for (int i = 0; i < n; i++) {
    if (!in_module(m, funcs[i])) continue;
    if (o->watch) o->watch->function = funcs[i]->name;
    if (!run_on(pm, q, funcs[i])) return false;
  }
  return true;
}

static bool verify_after(PassManager *pm, const QueuedPass *q, const PassRunOptions *o) {
  if (!o->verify_each && !VERIFY_ALWAYS && pm_is_trusted(pm, q->pass)) return true;
  if (ir_verify(pm->module)) return true;
  if (pm_is_trusted(pm, q->pass))
    diag_error(pm->module->diag, SRC_LOC_NONE, "E-internal",
               "pass `%s`, which is the compiler's own, reported success and left this; report it",
               q->pass->name);
  else
    diag_note(pm->module->diag, SRC_LOC_NONE,
              "pass `%s` reported success and left this; it is a mistake in the pass",
              q->pass->name);
  return false;
}

static bool run_step(PassManager *pm, const QueuedPass *q, const PassRunOptions *o) {
  const char *draft = o->reproducer ? draft_reproducer(pm, q, o) : NULL;
  if (o->watch) {
    o->watch->draft = draft;
    o->watch->reproducer = o->reproducer;
    o->watch->pass = q->pass->name;
  }
  StrBuf before = {0};
  if (o->print_stream && names(o->print_before, o->nprint_before, q->pass))
    dump(pm, o, "before", q->pass);
  if (o->print_stream && o->print_changed) before = whole_text(pm);
  double start = now_ms();
  bool ok = run_pass(pm, q, o);
  pm->times = mem_realloc(pm->times, (pm->ntimes + 1) * sizeof *pm->times);
  pm->times[pm->ntimes++] = (PassTime){q->pass, now_ms() - start};
  ok = ok && verify_after(pm, q, o);
  if (ok && o->print_stream) dump_after(pm, o, q->pass, &before);
  strbuf_free(&before);
  if (o->watch) *o->watch = (PassWatch){0};
  finish_reproducer(pm, q, o, draft, ok);
  return ok && (!o->after || o->after(o->user, q->pass));
}

bool pass_manager_run(PassManager *pm, const PassRunOptions *o) {
  bool ok = true;
  pm->nstats = pm->ntimes = 0;
  for (int i = 0; i < o->nprint_before; i++)
    if (!pm_find(pm, o->print_before[i]))
      ok = pm_unknown_pass(pm, o->print_before[i], SRC_LOC_NONE);
  for (int i = 0; i < o->nprint_after; i++)
    if (!pm_find(pm, o->print_after[i])) ok = pm_unknown_pass(pm, o->print_after[i], SRC_LOC_NONE);
  for (size_t i = 0; i < pm->nqueue && ok && (o->stop_after < 0 || i < (size_t)o->stop_after); i++)
    ok = run_step(pm, &pm->queue[i], o);
  pm->nqueue = 0;
  if (o->time_passes && o->print_stream) print_times(pm, o->print_stream);
  if (o->stats && o->print_stream) print_stats(pm, o->print_stream);
  return ok;
}
