/* Lines and tokens of assembly text. */
#include "isa/asm_internal.h"
#include <ctype.h>
#include <stdarg.h>
#include <string.h>

static const char *line_end(const Asm *a) {
  const char *nl = memchr(a->line_text, '\n', (size_t)(a->end - a->line_text));
  return nl ? nl : a->end;
}

static bool word_start(char c) {
  return isalpha((unsigned char)c) || c == '_' || c == '.' || c == '$';
}
static bool word_char(char c) {
  return isalnum((unsigned char)c) || c == '_' || c == '.' || c == '$';
}

static void set_text(Asm *a, TokKind kind, const char *from, const char *to) {
  a->tok.kind = kind;
  a->tok.text = arena_strndup(a->scratch, from, (size_t)(to - from));
  a->tok.len = (size_t)(to - from);
  a->pos = to;
}

static const char *number_end(const char *p, const char *end) {
  if (*p == '-' || *p == '+') p++;
  bool hex = end - p > 1 && p[0] == '0' && (p[1] == 'x' || p[1] == 'X');
  while (p < end && (word_char(*p) || ((*p == '-' || *p == '+') &&
                                       (hex ? strchr("pP", p[-1]) : strchr("eE", p[-1])))))
    p++;
  return p;
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  c = (char)tolower((unsigned char)c);
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The escapes strbuf_quote writes: \" \\ \n \t \xHH. */
static void lex_string(Asm *a, const char *end) {
  StrBuf b = {0};
  const char *p = a->pos + 1;
  bool ok = true;
  while (p < end && *p != '"') {
    char c = *p++;
    if (c == '\\' && p < end) {
      c = *p++;
      if (c == 'n')
        c = '\n';
      else if (c == 't')
        c = '\t';
      else if (c == 'x' && end - p >= 2 && hex_digit(p[0]) >= 0 && hex_digit(p[1]) >= 0) {
        c = (char)(hex_digit(p[0]) * 16 + hex_digit(p[1]));
        p += 2;
      } else if (c != '"' && c != '\\')
        ok = false;
    }
    if (c == 0) ok = false;
    strbuf_putc(&b, c);
  }
  a->tok.kind = TOK_STRING;
  a->tok.text = arena_strndup(a->scratch, b.data ? b.data : "", b.len);
  a->tok.len = b.len;
  strbuf_free(&b);
  a->pos = p < end ? p + 1 : end;
  a->tok.end_col = (uint32_t)(a->pos - a->line_text) + 1;
  if (p >= end)
    asm_error(a, "the string has no closing '\"' on its line");
  else if (!ok)
    asm_error(a, "unknown escape in the string; known are \\\" \\\\ \\n \\t \\xHH (not \\x00)");
}

void asm_next(Asm *a) {
  const char *end = line_end(a);
  while (a->pos < end && isspace((unsigned char)*a->pos)) a->pos++;
  const char *p = a->pos;
  a->tok = (Tok){.kind = TOK_END, .col = (uint32_t)(p - a->line_text) + 1, .text = ""};
  a->tok.end_col = a->tok.col;
  if (p == end || *p == '#' || (*p == '/' && end - p > 1 && p[1] == '/')) return;
  bool sign =
      (*p == '-' || *p == '+') && end - p > 1 && (isalnum((unsigned char)p[1]) || p[1] == '.');
  if (*p == '"') {
    lex_string(a, end);
  } else if (isdigit((unsigned char)*p) || sign) {
    set_text(a, TOK_NUMBER, p, number_end(p, end));
  } else if (word_start(*p)) {
    const char *q = p;
    while (q < end && word_char(*q)) q++;
    set_text(a, TOK_WORD, p, q);
  } else {
    set_text(a, TOK_PUNCT, p, p + 1);
    a->tok.punct = *p;
  }
  a->tok.end_col = (uint32_t)(a->pos - a->line_text) + 1;
}

bool asm_next_line(Asm *a) {
  if (a->line) {
    const char *end = line_end(a);
    if (end == a->end) return false;
    a->line_text = end + 1;
  }
  a->line++;
  a->pos = a->line_text;
  asm_next(a);
  return true;
}

const char *asm_rest(Asm *a, size_t *len) {
  const char *start = a->line_text + a->tok.col - 1, *end = line_end(a);
  const char *p = start;
  while (p < end && *p != '#' && !(*p == '/' && end - p > 1 && p[1] == '/')) p++;
  a->pos = end;
  *len = (size_t)(p - start);
  asm_next(a);
  return start;
}

SrcLoc asm_loc(const Asm *a) {
  return (SrcLoc){.file = a->label,
                  .line = a->line,
                  .col = a->tok.col,
                  .end_line = a->line,
                  .end_col = a->tok.end_col};
}

static void report(Asm *a, SrcLoc loc, const char *fmt, va_list ap) {
  if (++a->errors <= ASM_MAX_ERRORS) diag_report(a->diag, DIAG_ERROR, loc, "E-asm", fmt, ap);
}
bool asm_error(Asm *a, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(a, asm_loc(a), fmt, ap);
  va_end(ap);
  return false;
}
bool asm_error_at(Asm *a, SrcLoc loc, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  report(a, loc, fmt, ap);
  va_end(ap);
  return false;
}

bool asm_is_word(const Asm *a, const char *word) {
  return a->tok.kind == TOK_WORD && strcmp(a->tok.text, word) == 0;
}
bool asm_accept(Asm *a, char punct) {
  if (a->tok.kind != TOK_PUNCT || a->tok.punct != punct) return false;
  asm_next(a);
  return true;
}
bool asm_expect(Asm *a, char punct) {
  return asm_accept(a, punct) || asm_error(a, "expected '%c', found %s%s%s", punct,
                                           a->tok.kind == TOK_END ? "the end of the line" : "'",
                                           a->tok.text, a->tok.kind == TOK_END ? "" : "'");
}
bool asm_int(Asm *a, int64_t lo, int64_t hi, const char *what, int64_t *out) {
  int64_t v;
  if (a->tok.kind == TOK_NUMBER && number_too_large(a->tok.text, true))
    return asm_error(a, "%s is %lld to %lld, not %s", what, (long long)lo, (long long)hi,
                     a->tok.text);
  if (a->tok.kind != TOK_NUMBER || !parse_i64(a->tok.text, &v))
    return asm_error(a, "expected %s, an integer", what);
  if (v < lo || v > hi)
    return asm_error(a, "%s is %lld to %lld, not %lld", what, (long long)lo, (long long)hi,
                     (long long)v);
  *out = v;
  asm_next(a);
  return true;
}
bool asm_real(Asm *a, const char *what, double *out) {
  if (a->tok.kind != TOK_NUMBER && a->tok.kind != TOK_WORD)
    return asm_error(a, "expected %s, a number", what);
  if (!parse_f64(a->tok.text, out))
    return asm_error(
        a, number_too_large(a->tok.text, false) ? "%s is too large" : "'%s' is not a number",
        a->tok.text);
  asm_next(a);
  return true;
}
bool asm_string(Asm *a, const char *what, const char **out) {
  if (a->tok.kind != TOK_STRING) return asm_error(a, "expected %s in double quotes", what);
  *out = arena_strdup(a->arena, a->tok.text);
  asm_next(a);
  return true;
}
bool asm_expect_end(Asm *a) {
  return a->tok.kind == TOK_END ||
         asm_error(a, "unexpected '%s' after the end of the statement", a->tok.text);
}
