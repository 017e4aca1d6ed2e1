/* Comparing the model before and after every pass; see bisect.h. */
#include "tools/bisect.h"

#include <math.h>
#include <string.h>

#include "tools/calibration.h"
#include "tools/cli.h"
#include "tools/results.h"

/* A pass that has run, for its next occurrence. */
typedef struct {
  const Pass *pass;
  int times;
} Ran;

typedef struct {
  const BisectOptions *options;
  HostRunner host;
  DiagEngine *diag;
  SampleSet *samples;
  Results *written, *before; /* before may be `written` */
  bool integer;              /* the model computes with integers alone, which no pass may change */
  Ran *ran;
  int nran;
  StrBuf culprit; /* the first pass that changes too much, with what it does; empty: none */
} Bisect;

/* ---- figures ---- */

/* The largest change of an output. */
typedef struct {
  double size;        /* rms, relative; infinite when elements became or were infinite or NaN */
  const char *output; /* NULL: all are as they were */
} Change;

static Change largest_change(const Results *from, const Results *to) {
  Change c = {0};
  for (int i = 0; i < from->noutputs; i++) {
    Difference d = results_difference(to, from, i);
    double size = d.special ? INFINITY : difference_relative(&d);
    if (!d.differing || (c.output && size <= c.size)) continue;
    c = (Change){size, from->outputs[i].name};
  }
  return c;
}

static double rounding_tolerance(const Bisect *b) {
  double t = b->options->tolerance;
  return t > CALIBRATION_ERROR ? t : CALIBRATION_ERROR;
}

/* By how much p may change an output. */
static double allowed(const Bisect *b, const Pass *p) {
  if (b->integer) return 0;
  return npucc_rounds(p) ? rounding_tolerance(b) : b->options->tolerance;
}

static bool has_floats(const IrFunc *f) {
  for (int i = 0; i < f->body->nargs; i++)
    if (dtype_is_float(f->body->args[i]->type->dtype)) return true;
  for (const IrOp *op = f->body->first; op; op = op->next)
    for (int i = 0; i < op->nresults; i++)
      if (dtype_is_float(op->results[i].type->dtype)) return true;
  return false;
}

/* ---- lines ---- */

static const char *ordinal(int n) {
  static const char *const ends[] = {"th", "st", "nd", "rd"};
  int tens = n / 10 % 10, ones = n % 10;
  return tens == 1 || ones > 3 ? ends[0] : ends[ones];
}

/* "cse"; the next time "cse (2nd)". */
static StrBuf name_of(Bisect *b, const Pass *p) {
  Ran *r = NULL;
  for (int i = 0; i < b->nran && !r; i++)
    if (b->ran[i].pass == p) r = &b->ran[i];
  if (!r) {
    b->ran = mem_realloc(b->ran, (size_t)(b->nran + 1) * sizeof *b->ran);
    r = &b->ran[b->nran++];
    *r = (Ran){.pass = p};
  }
  StrBuf name = {0};
  strbuf_puts(&name, p->name);
  if (++r->times > 1) strbuf_printf(&name, " (%d%s)", r->times, ordinal(r->times));
  return name;
}

enum { NAME_COLUMN = 24, FIGURE_COLUMN = 12 };

/* At once, so that it is there whatever the next pass does. */
static bool put_line(Bisect *b, const StrBuf *line) {
  return cli_write(NULL, line, b->diag);
}

static bool put_header(Bisect *b) {
  StrBuf line = {0};
  strbuf_printf(&line, "%-*s%-*s%-*s%s\n", NAME_COLUMN, "after pass", FIGURE_COLUMN, "change",
                FIGURE_COLUMN, "in all", "output");
  bool ok = put_line(b, &line);
  strbuf_free(&line);
  return ok;
}

static void accuse(Bisect *b, const char *name, const char *what) {
  if (b->culprit.len) return;
  strbuf_printf(&b->culprit, "%s is the first pass %s", name, what);
}

static bool compare(Bisect *b, const Pass *p, const char *name, const Results *now) {
  Change change = largest_change(b->before, now), error = largest_change(b->written, now);
  double limit = allowed(b, p);
  bool wrong = change.output && change.size > limit;
  StrBuf line = {0}, what = {0};
  strbuf_printf(&line, "%-*s%-*.3g%-*.3g%s%s", NAME_COLUMN, name, FIGURE_COLUMN, change.size,
                FIGURE_COLUMN, error.size, change.output ? change.output : "-",
                wrong ? "  <-- too much" : "");
  strbuf_putc(&line, '\n');
  if (wrong) {
    strbuf_printf(&what, "to change an output by more than %.3g of its size: '%s' by %.3g", limit,
                  change.output, change.size);
    accuse(b, name, what.data);
  }
  bool ok = put_line(b, &line);
  strbuf_free(&what);
  strbuf_free(&line);
  return ok;
}

/* A pass after which nothing can be compared. Ends the run. */
static bool put_lost(Bisect *b, const char *name, const char *why, const char *what) {
  StrBuf line = {0};
  strbuf_printf(&line, "%-*s%s\n", NAME_COLUMN, name, why);
  accuse(b, name, what);
  put_line(b, &line);
  strbuf_free(&line);
  return false;
}

/* ---- passes ---- */

static bool after_pass(void *user, const Pass *p) {
  Bisect *b = user;
  if (b->nran == 0 && !put_header(b)) return false;
  StrBuf name = name_of(b, p);
  Results *now = NULL;
  bool ok = b->host.module->nfuncs > 0;
  if (ok) now = results_new(b->host.module->funcs[0]);
  if (!ok || !results_same_signature(b->written, now)) {
    diag_error(b->diag, SRC_LOC_NONE, "E-bisect",
               "pass `%s` changed the model's inputs or outputs, so nothing can be compared with "
               "them; it is a mistake in the pass",
               p->name);
    ok = put_lost(b, name.data, "other inputs or outputs", "to change the model's signature");
  } else if (!results_run(now, &b->host, b->host.module->funcs[0], b->samples, b->written->runs)) {
    ok = put_lost(b, name.data, "does not run on the host", "after which the model does not run");
  } else {
    ok = compare(b, p, name.data, now);
    if (b->before != b->written) results_free(b->before);
    b->before = now;
    now = NULL;
  }
  results_free(now);
  strbuf_free(&name);
  return ok;
}

/* Indices are drawn as zeros, where much that passes do wrong does not show. */
static void warn_of_zeros(const Bisect *b) {
  for (int i = 0; i < b->written->ninputs; i++)
    if (samples_zero(b->samples, i))
      diag_warning(b->diag, SRC_LOC_NONE, "W-samples",
                   "--random draws only zeros for input '%s', whose range is not known; give it "
                   "with --input to compare on other values",
                   b->written->inputs[i].name);
}

static bool put_verdict(Bisect *b, const char *rest) {
  StrBuf line = {0};
  if (rest)
    strbuf_printf(&line, "%-*snot compared, nor what follows: the host does not run programs\n",
                  NAME_COLUMN, rest);
  if (b->culprit.len)
    strbuf_printf(&line, "%s\n", b->culprit.data);
  else if (b->integer)
    strbuf_puts(&line, "no pass changes an output\n");
  else
    strbuf_printf(&line, "no pass changes an output by more than %.3g of its size, quantize %.3g\n",
                  b->options->tolerance, rounding_tolerance(b));
  bool ok = put_line(b, &line);
  strbuf_free(&line);
  return ok;
}

bool bisect(Npucc *c, const MachineDesc *machine, const BisectOptions *o, DiagEngine *diag,
            bool *found) {
  const IrFunc *f = npucc_module(c)->funcs[0];
  Bisect b = {.options = o,
              .host = {.module = npucc_module(c), .machine = machine, .diag = diag},
              .diag = diag,
              .written = results_new(f),
              .integer = !has_floats(f)};
  b.before = b.written;
  b.samples = batch_samples(b.written->inputs, b.written->ninputs, o->inputs, diag);
  bool ok = b.samples && results_run(b.written, &b.host, f, b.samples, samples_runs(b.samples));
  if (ok) {
    warn_of_zeros(&b);
    npucc_after_each(c, after_pass, &b);
    ok = npucc_run_passes(c, IR_NEST);
    npucc_after_each(c, NULL, NULL);
  }
  if (ok || b.culprit.len) ok = put_verdict(&b, ok ? npucc_next_pass(c) : NULL) && ok;
  *found = b.culprit.len > 0;
  if (b.before != b.written) results_free(b.before);
  results_free(b.written);
  samples_free(b.samples);
  strbuf_free(&b.culprit);
  mem_free(b.ran);
  return ok;
}
