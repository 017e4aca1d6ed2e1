/* Diagnostics against the expected-error, -warning and -note comments of a test file. */
#include <ctype.h>
#include <string.h>

#include "tests/support/textcheck.h"

typedef struct {
  DiagSeverity severity;
  const char *file; /* end of its path; NULL: the test file */
  uint32_t line;    /* 0: none */
  int at;           /* line of the expectation */
  const char *text; /* NULL: it is not written as expectations are */
} Expected;

static const char *const severity_word[] = {"note", "warning", "error"};

/* The place after `expected-error`: nothing, @+n, @-n, @none, @file:n. NULL when it is none. */
static const char *parse_place(Arena *arena, const char *p, const char *end, Expected *e) {
  if (p >= end || *p != '@') return p;
  const char *stop = ++p;
  while (stop < end && !isspace((unsigned char)*stop)) stop++;
  char *word = arena_strndup(arena, p, (size_t)(stop - p)), *colon = strrchr(word, ':');
  int64_t n = 0;
  if (strcmp(word, "none") == 0) {
    e->line = 0;
  } else if (colon && parse_i64(colon + 1, &n)) {
    *colon = 0;
    e->file = word;
    e->line = (uint32_t)n;
  } else if (parse_i64(word[0] == '+' ? word + 1 : word, &n)) {
    e->line = (uint32_t)((int64_t)e->line + n);
  } else {
    return NULL;
  }
  return stop;
}

static const char *parse_severity(const char *p, const char *end, Expected *e) {
  size_t len = 0;
  while (p + len < end && (isalnum((unsigned char)p[len]) || p[len] == '-')) len++;
  for (int s = 0; s < 3; s++) {
    if (strlen(severity_word[s]) != len || memcmp(p, severity_word[s], len) != 0) continue;
    e->severity = (DiagSeverity)s;
    return p + len;
  }
  return NULL;
}

/* The expectation at or after p in the line; NULL when there is none, else where to go on. */
static const char *parse_one(Arena *arena, const char *p, const char *end, Expected *e) {
  const char *word = p < end ? memmem(p, (size_t)(end - p), "expected-", 9) : NULL;
  if (!word) return NULL;
  p = parse_severity(word + 9, end, e);
  if (p) p = parse_place(arena, p, end, e);
  const char *open = p ? memmem(p, (size_t)(end - p), "{{", 2) : NULL;
  const char *close = open ? memmem(open, (size_t)(end - open), "}}", 2) : NULL;
  if (!close) return word + 9;
  while (close + 2 < end && close[2] == '}') close++; /* a text that ends in a brace */
  e->text = arena_strndup(arena, open + 2, (size_t)(close - open - 2));
  return close + 2;
}

static bool matches(const TextCase *c, const Diag *d, const Expected *e, Arena *arena) {
  if (d->severity != e->severity || d->loc.line != e->line) return false;
  if (d->loc.file && e->line) {
    bool same = e->file ? str_ends_with(d->loc.file, e->file) : strcmp(d->loc.file, c->path) == 0;
    if (!same) return false;
  }
  const char *whole = d->code ? arena_printf(arena, "%s [%s]", d->message, d->code) : d->message;
  return strstr(whole, e->text) != NULL;
}

static void report_unexpected(const TextCase *c, const DiagEngine *diag, const Diag *d,
                              StrBuf *report) {
  StrBuf text = {0};
  diag_format(diag, d, false, &text);
  strbuf_printf(report, "%s: not expected:\n%s\n", c->path, text.data);
  strbuf_free(&text);
}

bool textcheck_diagnostics(const TextCase *c, const DiagEngine *diag, StrBuf *report, int *checks) {
  Arena *arena = arena_new();
  TextLines t = {.text = c->text, .left = c->len};
  Expected expected[256];
  bool used[256] = {false}, ok = true;
  size_t n = 0;
  while (textcheck_line(&t)) {
    const char *p = t.line, *end = t.line + t.len;
    for (;;) {
      Expected e = {.line = (uint32_t)t.number, .at = t.number};
      if (!(p = parse_one(arena, p, end, &e))) break;
      if (e.text && n < NPU_COUNTOF(expected)) {
        expected[n++] = e;
        continue;
      }
      strbuf_printf(report, "%s:%d: %s\n", c->path, e.at,
                    e.text ? "one expectation too many"
                           : "an expectation is written expected-error, -warning or -note, where "
                             "(@+1, @-1, @none, @file:1) and {{what}}");
      ok = false;
    }
  }
  *checks += (int)n;
  for (size_t i = 0; i < diag_count(diag); i++) {
    const Diag *d = diag_get(diag, i);
    size_t j = 0;
    while (j < n && (used[j] || !matches(c, d, &expected[j], arena))) j++;
    if (j < n) {
      used[j] = true;
    } else if (d->severity != DIAG_NOTE) {
      report_unexpected(c, diag, d, report);
      ok = false;
    }
  }
  for (size_t j = 0; j < n; j++) {
    if (used[j]) continue;
    ok = false;
    strbuf_printf(report, "%s:%d: no such %s: %s\n", c->path, expected[j].at,
                  severity_word[expected[j].severity], expected[j].text);
  }
  arena_free(arena);
  return ok;
}
