/* Diagnostics: collected, counted and formatted with the source line and a caret range. */
#include "support/support.h"

#include <string.h>

typedef struct {
  const char *file, *text;
  size_t len;
} Source;

struct DiagEngine {
  Arena *arena;
  Diag *diags;
  size_t ndiags, cap;
  unsigned errors;
  Source *sources;
  size_t nsources;
  FileTrack *track;
  bool owns_track;
  void (*sink)(void *, const DiagEngine *, const Diag *);
  void *sink_user;
};

DiagEngine *diag_new(void) {
  DiagEngine *d = mem_alloc(sizeof *d);
  d->arena = arena_new();
  return d;
}

void diag_free(DiagEngine *d) {
  if (!d) return;
  arena_free(d->arena);
  mem_free(d->diags);
  mem_free(d->sources);
  if (d->owns_track) file_track_free(d->track);
  mem_free(d);
}

void diag_track_files(DiagEngine *d) {
  if (d->track) return;
  d->track = file_track_new();
  d->owns_track = true;
}

void diag_track_with(DiagEngine *d, const DiagEngine *outer) {
  d->track = outer->track;
}

FileTrack *diag_track(const DiagEngine *d) {
  return d ? d->track : NULL;
}

void diag_add_source(DiagEngine *d, const char *file, const char *text, size_t len) {
  Source s = {arena_strdup(d->arena, file), arena_strndup(d->arena, text, len), len};
  for (size_t i = 0; i < d->nsources; i++)
    if (strcmp(d->sources[i].file, file) == 0) {
      d->sources[i] = s;
      return;
    }
  d->sources = mem_realloc(d->sources, (d->nsources + 1) * sizeof *d->sources);
  d->sources[d->nsources++] = s;
}

void diag_report(DiagEngine *d, DiagSeverity severity, SrcLoc loc, const char *code,
                 const char *fmt, va_list ap) {
  StrBuf text = {0};
  strbuf_vprintf(&text, fmt, ap);
  /* The place's file name may not outlive the engine: keep a copy. */
  if (loc.file) loc.file = arena_strdup(d->arena, loc.file);
  Diag diag = {severity, loc, code ? arena_strdup(d->arena, code) : NULL,
               arena_strndup(d->arena, text.data, text.len)};
  strbuf_free(&text);
  if (d->ndiags == d->cap) {
    d->cap = d->cap ? 2 * d->cap : 16;
    d->diags = mem_realloc(d->diags, d->cap * sizeof *d->diags);
  }
  d->diags[d->ndiags++] = diag;
  if (severity == DIAG_ERROR) d->errors++;
  if (d->sink) d->sink(d->sink_user, d, &diag);
}

void diag_error(DiagEngine *d, SrcLoc loc, const char *code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_report(d, DIAG_ERROR, loc, code, fmt, ap);
  va_end(ap);
}

void diag_warning(DiagEngine *d, SrcLoc loc, const char *code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_report(d, DIAG_WARNING, loc, code, fmt, ap);
  va_end(ap);
}

void diag_note(DiagEngine *d, SrcLoc loc, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_report(d, DIAG_NOTE, loc, NULL, fmt, ap);
  va_end(ap);
}

size_t diag_count(const DiagEngine *d) {
  return d->ndiags;
}

const Diag *diag_get(const DiagEngine *d, size_t i) {
  return &d->diags[i];
}

unsigned diag_errors(const DiagEngine *d) {
  return d->errors;
}

void diag_set_sink(DiagEngine *d, void (*sink)(void *user, const DiagEngine *d, const Diag *diag),
                   void *user) {
  d->sink = sink;
  d->sink_user = user;
}

/* ---- formatting ---- */

/* The text of line number `line` (from 1) without its end; false when there is none. */
static bool source_line(const DiagEngine *d, SrcLoc loc, const char **text, size_t *len) {
  for (size_t i = 0; i < d->nsources; i++) {
    const Source *s = &d->sources[i];
    if (!loc.file || strcmp(s->file, loc.file) != 0) continue;
    const char *p = s->text, *end = s->text + s->len;
    for (uint32_t line = 1; line < loc.line; line++) {
      p = memchr(p, '\n', (size_t)(end - p));
      if (!p) return false;
      p++;
    }
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    if (!stop) stop = end;
    if (stop > p && stop[-1] == '\r') stop--;
    *text = p;
    *len = (size_t)(stop - p);
    return true;
  }
  return false;
}

/* Copies text, control characters made harmless; tabs stay, the caret line repeats them. */
static void put_plain(StrBuf *out, const char *text, size_t len) {
  for (size_t i = 0; i < len; i++) {
    unsigned char c = (unsigned char)text[i];
    strbuf_putc(out, (c < 0x20 && c != '\t') || c == 0x7f ? '?' : (char)c);
  }
}

static bool utf8_tail(char c) {
  return ((unsigned char)c & 0xc0) == 0x80;
}

static void put_caret(StrBuf *out, SrcLoc loc, const char *text, size_t len) {
  size_t from = loc.col - 1, to = from + 1;
  if (from > len) from = len;
  if (loc.end_line > loc.line)
    to = len;
  else if (loc.end_col > loc.col)
    to = loc.end_col - 1;
  if (to > len) to = len;
  for (size_t i = 0; i < from; i++) {
    if (text[i] == '\t')
      strbuf_putc(out, '\t');
    else if (!utf8_tail(text[i]))
      strbuf_putc(out, ' ');
  }
  strbuf_putc(out, '^');
  for (size_t i = from + 1; i < to; i++)
    if (!utf8_tail(text[i])) strbuf_putc(out, '~');
}

enum {
  SNIPPET_MAX = 400, /* of a longer line only what is near the caret is shown */
  SNIPPET_BEFORE = 60,
  SNIPPET_AFTER = 100,
  MESSAGE_MAX = 1000 /* longer ones quote something endless */
};

static void put_message(StrBuf *out, const char *message) {
  size_t len = strlen(message);
  put_plain(out, message, len > MESSAGE_MAX ? MESSAGE_MAX : len);
  if (len > MESSAGE_MAX) strbuf_puts(out, "...");
}

static void put_snippet(StrBuf *out, SrcLoc loc, const char *text, size_t len, bool color) {
  size_t at = loc.col - 1 < len ? loc.col - 1 : len, skip = 0;
  bool cut = false;
  if (len > SNIPPET_MAX) {
    skip = at > SNIPPET_BEFORE ? at - SNIPPET_BEFORE : 0;
    while (skip < at && utf8_tail(text[skip])) skip++;
    text += skip;
    len -= skip;
    loc.col -= (uint32_t)skip;
    if (loc.end_col) loc.end_col -= (uint32_t)skip;
    cut = len > at - skip + SNIPPET_AFTER;
    if (cut) len = at - skip + SNIPPET_AFTER;
  }
  strbuf_puts(out, skip ? "  ..." : "  ");
  put_plain(out, text, len);
  strbuf_puts(out, cut ? "...\n" : "\n");
  strbuf_puts(out, skip ? "     " : "  ");
  if (color) strbuf_puts(out, "\x1b[1;32m");
  put_caret(out, loc, text, len);
  strbuf_puts(out, color ? "\x1b[0m\n" : "\n");
}

void diag_format(const DiagEngine *d, const Diag *diag, bool color, StrBuf *out) {
  static const char *const name[] = {"note", "warning", "error"};
  static const char *const paint[] = {"\x1b[1;36m", "\x1b[1;35m", "\x1b[1;31m"};
  SrcLoc loc = diag->loc;
  if (color) strbuf_puts(out, "\x1b[1m");
  if (loc.file && loc.line)
    strbuf_printf(out, "%s:%u:%u: ", loc.file, loc.line, loc.col);
  else if (loc.file)
    strbuf_printf(out, "%s: ", loc.file);
  if (color) strbuf_puts(out, paint[diag->severity]);
  strbuf_printf(out, "%s: ", name[diag->severity]);
  if (color) strbuf_puts(out, "\x1b[0m");
  put_message(out, diag->message);
  if (diag->code) strbuf_printf(out, " [%s]", diag->code);
  strbuf_putc(out, '\n');
  const char *text;
  size_t len;
  if (loc.line && loc.col && source_line(d, loc, &text, &len))
    put_snippet(out, loc, text, len, color);
}

void diag_print_all(const DiagEngine *d, FILE *out, bool color) {
  for (size_t i = 0; i < d->ndiags; i++) {
    StrBuf text = {0};
    diag_format(d, &d->diags[i], color, &text);
    fwrite(text.data, 1, text.len, out);
    strbuf_free(&text);
  }
}
