/* Tokens of IR text. */
#include "ir/parse.h"

#include <ctype.h>
#include <string.h>

static int peek(const Lexer *l, size_t ahead) {
  return l->pos + ahead < l->len ? (unsigned char)l->text[l->pos + ahead] : -1;
}

static void skip_line(Lexer *l) {
  while (l->pos < l->len && l->text[l->pos] != '\n') l->pos++;
}

static void skip_blank(Lexer *l) {
  for (;;) {
    int c = peek(l, 0);
    if (c == '\n') {
      l->pos++;
      l->line++;
      l->line_start = l->pos;
    } else if (c == ' ' || c == '\t' || c == '\r') {
      l->pos++;
    } else if (c == '#' || (c == '/' && peek(l, 1) == '/')) {
      skip_line(l);
    } else {
      return;
    }
  }
}

static bool word_char(int c) {
  return c >= 0 && (isalnum(c) || c == '_' || c == '.');
}

/* Digits and letters, and a sign after an exponent letter: "12", "1e-05", "0x1.8p-6". */
static void lex_number(Lexer *l) {
  bool hex = peek(l, 0) == '0' && (peek(l, 1) == 'x' || peek(l, 1) == 'X');
  int before = 0;
  for (int c; (c = peek(l, 0)) >= 0; before = c, l->pos++) {
    bool exponent = hex ? before == 'p' || before == 'P' : before == 'e' || before == 'E';
    if (!word_char(c) && !(exponent && (c == '+' || c == '-'))) return;
  }
}

/* To the closing quote; false when the line or the text ends first. */
static bool lex_string(Lexer *l) {
  for (int c; (c = peek(l, 0)) >= 0 && c != '\n'; l->pos++) {
    if (c == '"') return true;
    if (c == '\\' && peek(l, 1) >= 0 && peek(l, 1) != '\n') l->pos++;
  }
  return false;
}

Token lex_next(Lexer *l) {
  skip_blank(l);
  Token t = {.line = l->line, .col = (uint32_t)(l->pos - l->line_start + 1)};
  size_t start = l->pos;
  int c = peek(l, 0);
  t.text = l->text + start;
  if (c < 0) return t;
  if (c == '"') {
    l->pos++;
    t.text++;
    t.kind = lex_string(l) ? TOK_STRING : TOK_BAD;
    t.len = l->pos - start - 1;
    if (t.kind == TOK_STRING) l->pos++;
    return t;
  }
  if (isdigit(c)) {
    lex_number(l);
    t.kind = TOK_NUMBER;
  } else if (isalpha(c) || c == '_') {
    while (word_char(peek(l, 0))) l->pos++;
    t.kind = TOK_WORD;
  } else if (c == '-' && peek(l, 1) == '>') {
    l->pos += 2;
    t.kind = TOK_ARROW;
  } else {
    l->pos++;
    t.kind = strchr("%@!^(){}[]<>:,=+-*?", c) ? TOK_PUNCT : TOK_BAD;
    t.punct = (char)c;
  }
  t.len = l->pos - start;
  return t;
}
