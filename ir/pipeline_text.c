/* Pipelines as text: "lower,fuse,tile{budget=3,file=\"a b\"}". */
#include "ir/pm.h"

#include <ctype.h>
#include <string.h>

#define LABEL "<pipeline>"

typedef struct {
  PassManager *pm;
  const char *text, *at;
  StrBuf word;
} Reader;

static SrcLoc place(const Reader *r, const char *at) {
  uint32_t col = (uint32_t)(at - r->text) + 1;
  return (SrcLoc){LABEL, 1, col, 1, col + 1};
}

static bool expected(Reader *r, const char *what) {
  char found[] = {'`', *r->at, '`', 0};
  diag_error(r->pm->module->diag, place(r, r->at), "E-pipeline", "expected %s, found %s", what,
             *r->at ? found : "the end");
  return false;
}

static void skip_blank(Reader *r) {
  while (isspace((unsigned char)*r->at)) r->at++;
}

static bool take(Reader *r, char c) {
  skip_blank(r);
  if (*r->at != c) return false;
  r->at++;
  return true;
}

/* A name into r->word. */
static bool read_name(Reader *r, const char *what) {
  skip_blank(r);
  r->word.len = 0;
  while (isalnum((unsigned char)*r->at) || *r->at == '-' || *r->at == '_')
    strbuf_putc(&r->word, *r->at++);
  return r->word.len || expected(r, what);
}

/* Bare text up to , or }, or a quoted string. */
static bool read_value(Reader *r) {
  r->word.len = 0;
  strbuf_write(&r->word, "", 0);
  if (!take(r, '"')) {
    skip_blank(r);
    while (*r->at && !strchr(",}\" \t\n", *r->at)) strbuf_putc(&r->word, *r->at++);
    return r->word.len || expected(r, "a value");
  }
  for (; *r->at && *r->at != '"'; r->at++) {
    if (*r->at == '\\' && r->at[1]) r->at++;
    strbuf_putc(&r->word, *r->at);
  }
  return take(r, '"') || expected(r, "a closing quote");
}

static bool read_options(Reader *r, QueuedPass *q) {
  for (bool first = true; !take(r, '}'); first = false) {
    if (!first && !take(r, ',')) return expected(r, "`,` or `}`");
    skip_blank(r);
    SrcLoc loc = place(r, r->at);
    if (!read_name(r, "an option name")) return false;
    const char *name = arena_strdup(r->pm->arena, r->word.data),
               *value = "true"; /* {flag} is {flag=true} */
    if (take(r, '=')) {
      if (!read_value(r)) return false;
      value = r->word.len ? r->word.data : "";
    }
    if (!pm_set_option(r->pm, q, name, value, loc)) return false;
  }
  return true;
}

static QueuedPass queued(PassManager *pm, const Pass *pass) {
  int n = pass_option_count(pass);
  QueuedPass q = {pass, ARENA_ARRAY(pm->arena, const char *, n + 1)};
  for (int i = 0; i < n; i++) q.values[i] = pm_option_default(&pass->options[i]);
  return q;
}

static bool read_pass(Reader *r) {
  PassManager *pm = r->pm;
  skip_blank(r);
  SrcLoc loc = place(r, r->at);
  if (!read_name(r, "a pass name")) return false;
  loc.end_col = loc.col + (uint32_t)r->word.len;
  const Pass *pass = pm_find(pm, r->word.data);
  if (!pass) return pm_unknown_pass(pm, arena_strdup(pm->arena, r->word.data), loc);
  QueuedPass q = queued(pm, pass);
  if (take(r, '{') && !read_options(r, &q)) return false;
  pm->queue = mem_realloc(pm->queue, (pm->nqueue + 1) * sizeof q);
  pm->queue[pm->nqueue++] = q;
  return true;
}

bool pass_manager_add_pipeline(PassManager *pm, const char *pipeline) {
  Reader r = {.pm = pm, .text = pipeline, .at = pipeline};
  size_t before = pm->nqueue;
  diag_add_source(pm->module->diag, LABEL, pipeline, strlen(pipeline));
  skip_blank(&r);
  bool ok = true;
  if (*r.at) {
    do ok = read_pass(&r);
    while (ok && take(&r, ','));
    skip_blank(&r);
    if (ok && *r.at) ok = expected(&r, "`,` or `{`");
  }
  strbuf_free(&r.word);
  if (!ok) pm->nqueue = before; /* all or nothing */
  return ok;
}

void pm_print_queued(const QueuedPass *q, StrBuf *out) {
  int printed = 0;
  strbuf_puts(out, q->pass->name);
  for (int i = 0; i < pass_option_count(q->pass); i++) {
    const PassOption *o = &q->pass->options[i];
    if (!strcmp(pm_option_default(o), q->values[i])) continue;
    strbuf_printf(out, "%s%s=\"", printed++ ? "," : "{", o->name);
    for (const char *s = q->values[i]; *s; s++) {
      if (*s == '"' || *s == '\\') strbuf_putc(out, '\\');
      strbuf_putc(out, *s);
    }
    strbuf_putc(out, '"');
  }
  if (printed) strbuf_putc(out, '}');
}
