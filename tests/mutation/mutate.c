/* Plants one wrong token in C source.
 *   mutate SEED DRAW FILE...
 * The DRAW-th mistake of SEED: a token of one of the files, all tokens alike likely, is replaced by
 * one that is easily written in its place, and the file rewritten. Prints
 *   FILE:LINE:COL: `OLD` -> `NEW`
 * The same seed, draw and files give the same mistake. Comments, strings, character constants and
 * preprocessor lines are left alone. */
#include "support/support.h"
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Operators and words, and what may stand in their place. Unary and binary uses are told apart by
 * what stands before; longer tokens stand before their prefixes. */
static const struct {
  const char *token;
  bool binary_only;
  const char *wrong[2];
} swaps[] = {
    {"<<=", false, {">>="}},
    {">>=", false, {"<<="}},
    {"->", false, {NULL}},
    {"<=", false, {"<", ">="}},
    {">=", false, {">", "<="}},
    {"==", false, {"!="}},
    {"!=", false, {"=="}},
    {"&&", true, {"||"}},
    {"||", false, {"&&"}},
    {"<<", false, {">>"}},
    {">>", false, {"<<"}},
    {"++", false, {"--"}},
    {"--", false, {"++"}},
    {"+=", false, {"-=", "="}},
    {"-=", false, {"+=", "="}},
    {"*=", false, {"="}},
    {"/=", false, {"*="}},
    {"%=", false, {"="}},
    {"|=", false, {"&=", "="}},
    {"&=", false, {"|=", "="}},
    {"^=", false, {"="}},
    {"<", false, {"<=", ">"}},
    {">", false, {">=", "<"}},
    {"+", true, {"-"}},
    {"-", true, {"+"}},
    {"-", false, {""}},
    {"*", true, {"+"}},
    {"/", false, {"*"}},
    {"%", false, {"/"}},
    {"&", true, {"|"}},
    {"|", false, {"&"}},
    {"^", false, {"|"}},
    {"!", false, {""}},
    {"~", false, {""}},
    {"true", false, {"false"}},
    {"false", false, {"true"}},
    {"break", false, {"continue"}},
    {"continue", false, {"break"}},
    {"fmin", false, {"fmax"}},
    {"fmax", false, {"fmin"}},
};

typedef struct {
  const char *file, *text; /* the whole file */
  size_t at, length;       /* bytes of the token */
  char wrong[24];
} Site;

typedef struct {
  Site *site;
  size_t n, cap;
} Sites;

static void add_site(Sites *s, const char *file, const char *text, size_t at, size_t length,
                     const char *wrong) {
  if (s->n == s->cap) {
    s->cap = s->cap ? 2 * s->cap : 4096;
    s->site = mem_realloc(s->site, s->cap * sizeof *s->site);
  }
  Site *site = &s->site[s->n++];
  *site = (Site){.file = file, .text = text, .at = at, .length = length};
  snprintf(site->wrong, sizeof site->wrong, "%s", wrong);
}

static bool is_word(char c) {
  return isalnum((unsigned char)c) || c == '_';
}

/* The end of what is no code at `at`: blanks, a comment, a string, a preprocessor line. `at` itself
 * when code stands there. */
static size_t skip_other(const char *text, size_t at) {
  const char *s = text + at;
  if (isspace((unsigned char)*s)) return at + 1;
  if (s[0] == '/' && s[1] == '*') {
    const char *end = strstr(s + 2, "*/");
    return end ? (size_t)(end + 2 - text) : at + strlen(s);
  }
  if (s[0] == '/' && s[1] == '/') return at + strcspn(s, "\n");
  if (*s == '"' || *s == '\'') {
    size_t i = 1;
    while (s[i] && s[i] != *s) i += s[i] == '\\' && s[i + 1] ? 2 : 1;
    return at + i + (s[i] != 0);
  }
  if (*s != '#') return at;
  size_t i = 0;
  while (s[i] && s[i] != '\n') i += s[i] == '\\' && s[i + 1] ? 2 : 1;
  return at + i;
}

/* Decimal integers only: n + 1, and n - 1 where that is not negative. */
static void number_sites(Sites *out, const char *file, const char *text, size_t at, size_t length) {
  char *end;
  unsigned long long v = strtoull(text + at, &end, 10);
  size_t digits = (size_t)(end - (text + at));
  if (digits > 18 || (text[at] == '0' && digits > 1)) return;
  if (digits < length && strchr(".xXeEfF", *end)) return;
  char wrong[24];
  snprintf(wrong, sizeof wrong, "%llu", v + 1);
  add_site(out, file, text, at, digits, wrong);
  if (v == 0) return;
  snprintf(wrong, sizeof wrong, "%llu", v - 1);
  add_site(out, file, text, at, digits, wrong);
}

/* `binary`: an operand stands before the token. */
static size_t operator_sites(Sites *out, const char *file, const char *text, size_t at,
                             bool binary) {
  for (size_t i = 0; i < NPU_COUNTOF(swaps); i++) {
    size_t length = strlen(swaps[i].token);
    if (strncmp(text + at, swaps[i].token, length) || (swaps[i].binary_only && !binary)) continue;
    if (is_word(text[at]) && is_word(text[at + length])) continue;
    for (int k = 0; k < 2 && swaps[i].wrong[k]; k++)
      add_site(out, file, text, at, length, swaps[i].wrong[k]);
    return length;
  }
  return 1;
}

static void sites_of(Sites *out, const char *file, const char *text) {
  bool operand = false;
  for (size_t at = 0; text[at];) {
    size_t next = skip_other(text, at);
    if (next > at) {
      if (text[at] == '"' || text[at] == '\'') operand = true;
      at = next;
      continue;
    }
    size_t length = 1;
    if (is_word(text[at])) {
      while (is_word(text[at + length]) ||
             (isdigit((unsigned char)text[at]) && text[at + length] == '.'))
        length++;
      if (isdigit((unsigned char)text[at]))
        number_sites(out, file, text, at, length);
      else
        operator_sites(out, file, text, at, operand);
      operand = true;
      if (length == 6 && !strncmp(text + at, "return", 6)) operand = false;
    } else {
      length = operator_sites(out, file, text, at, operand);
      operand = text[at] == ')' || text[at] == ']';
    }
    at += length;
  }
}

/* Writes the file with the mistake in it and says what it is. */
static bool plant(const Site *s, const char *text, const char **why) {
  int line = 1, col = 1;
  for (size_t i = 0; i < s->at; i++) {
    col = text[i] == '\n' ? 1 : col + 1;
    line += text[i] == '\n';
  }
  printf("%s:%d:%d: `%.*s` -> `%s`\n", s->file, line, col, (int)s->length, text + s->at, s->wrong);
  StrBuf b = {0};
  strbuf_write(&b, text, s->at);
  strbuf_puts(&b, s->wrong);
  strbuf_puts(&b, text + s->at + s->length);
  bool ok = file_write_atomic(s->file, b.data, b.len, why);
  strbuf_free(&b);
  return ok;
}

/* Draws are independent of one another: draw n of a seed needs none before it. */
static const Site *draw_site(const Sites *s, uint64_t seed, uint64_t draw) {
  Rng rng;
  rng_seed(&rng, seed);
  rng_seed(&rng, rng_u64(&rng) ^ draw);
  return &s->site[rng_range(&rng, 0, (int64_t)s->n - 1)];
}

int main(int argc, char **argv) {
  int64_t seed, draw;
  if (argc < 4 || !parse_i64(argv[1], &seed) || !parse_i64(argv[2], &draw)) {
    fprintf(stderr, "usage: mutate SEED DRAW FILE...\n");
    return 2;
  }
  Arena *arena = arena_new();
  Sites sites = {0};
  const char *why = NULL, *file = NULL;
  for (int i = 3; i < argc && !why; i++) {
    FileMap map;
    file = argv[i];
    if (!file_map(file, &map, &why)) break;
    sites_of(&sites, file, arena_strndup(arena, (const char *)map.data, map.size));
    file_unmap(&map);
  }
  if (!why && !sites.n) why = "nothing to change";
  if (!why) {
    const Site *s = draw_site(&sites, (uint64_t)seed, (uint64_t)draw);
    file = s->file;
    plant(s, s->text, &why);
  }
  if (why) fprintf(stderr, "mutate: %s: %s\n", file, why);
  mem_free(sites.site);
  arena_free(arena);
  return why ? 1 : 0;
}
