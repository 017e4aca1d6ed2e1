/* CHECK lines against an output; the driver of text tests. */
#include "tests/support/textcheck.h"

#include <ctype.h>
#include <regex.h>
#include <string.h>

#define MAX_VARS 32
#define MAX_GROUPS 16
#define MAX_SHOWN 8000 /* characters of an output that fails */

/* ---- patterns ---- */

typedef struct {
  Arena *arena;
  struct {
    const char *name, *value;
  } vars[MAX_VARS];
  int nvars;
} Vars;

typedef struct {
  regex_t re;
  const char *names[MAX_GROUPS]; /* per group: the variable it defines, or NULL */
  int ngroups;
} Pattern;

static const char *var_value(const Vars *v, const char *name, size_t len) {
  for (int i = v->nvars - 1; i >= 0; i--)
    if (strlen(v->vars[i].name) == len && memcmp(v->vars[i].name, name, len) == 0)
      return v->vars[i].value;
  return NULL;
}

static void put_literal(StrBuf *re, const char *s, size_t n) {
  for (size_t i = 0; i < n; i++) {
    if (s[i] == ' ' || s[i] == '\t') {
      strbuf_puts(re, "[ \t]+");
      while (i + 1 < n && (s[i + 1] == ' ' || s[i + 1] == '\t')) i++;
      continue;
    }
    if (strchr("\\^$.|?*+()[]{}", s[i])) strbuf_putc(re, '\\');
    strbuf_putc(re, s[i]);
  }
}

static int count_groups(const char *s, size_t n) {
  int groups = 0;
  for (size_t i = 0; i < n; i++) {
    if (s[i] == '\\')
      i++;
    else if (s[i] == '(')
      groups++;
  }
  return groups;
}

/* One {{...}} or [[...]], whose inside is body..close. */
static bool put_special(Vars *v, Pattern *p, StrBuf *re, bool variable, const char *body,
                        const char *close, StrBuf *why) {
  size_t len = (size_t)(close - body);
  const char *colon = memchr(body, ':', len), *expr = body;
  if (variable && !colon) {
    const char *value = var_value(v, body, len);
    if (value)
      put_literal(re, value, strlen(value));
    else
      strbuf_printf(why, "[[%.*s]] is not defined\n", (int)len, body);
    return value != NULL;
  }
  if (variable) expr = colon + 1;
  int inner = count_groups(expr, (size_t)(close - expr));
  if (p->ngroups + 1 + inner >= MAX_GROUPS) {
    strbuf_puts(why, "too many groups\n");
    return false;
  }
  if (variable) p->names[p->ngroups] = arena_strndup(v->arena, body, (size_t)(colon - body));
  p->ngroups += 1 + inner;
  strbuf_printf(re, "(%.*s)", (int)(close - expr), expr);
  return true;
}

static bool compile(Vars *v, const char *s, size_t len, Pattern *p, StrBuf *why) {
  StrBuf re = {0};
  const char *end = s + len;
  bool ok = true;
  *p = (Pattern){.ngroups = 1};
  while (s < end && ok) {
    const char *open = s;
    while (open < end && strncmp(open, "{{", 2) != 0 && strncmp(open, "[[", 2) != 0) open++;
    put_literal(&re, s, (size_t)(open - s));
    if (open >= end) break;
    const char *close = strstr(open + 2, *open == '{' ? "}}" : "]]");
    /* [[0, 1], [2, 3]] is what it looks like. */
    if (*open == '[' && !isalpha((unsigned char)open[2])) close = NULL;
    if (close && close < end) {
      ok = put_special(v, p, &re, *open == '[', open + 2, close, why);
      s = close + 2;
    } else {
      put_literal(&re, open, 2);
      s = open + 2;
    }
  }
  if (ok && regcomp(&p->re, re.data ? re.data : "", REG_EXTENDED | REG_NEWLINE) != 0) {
    strbuf_printf(why, "bad expression: %s\n", re.data ? re.data : "");
    ok = false;
  }
  strbuf_free(&re);
  return ok;
}

static bool match(Vars *v, const Pattern *p, const char *text, size_t *begin, size_t *end) {
  regmatch_t m[MAX_GROUPS];
  if (regexec(&p->re, text, MAX_GROUPS, m, 0) != 0) return false;
  for (int i = 1; i < p->ngroups; i++) {
    if (!p->names[i] || v->nvars == MAX_VARS) continue;
    v->vars[v->nvars].name = p->names[i];
    v->vars[v->nvars++].value =
        arena_strndup(v->arena, text + m[i].rm_so, (size_t)(m[i].rm_eo - m[i].rm_so));
  }
  *begin = (size_t)m[0].rm_so;
  *end = (size_t)m[0].rm_eo;
  return true;
}

/* ---- CHECK lines ---- */

/* CHECK_UNKNOWN: meant to be an expectation, and none; text is what stands behind CHECK. */
typedef enum { CHECK_PLAIN, CHECK_NEXT, CHECK_NOT, CHECK_COUNT, CHECK_UNKNOWN } CheckKind;
typedef struct {
  CheckKind kind;
  int line, count;
  const char *text;
  size_t len;
} Check;

typedef struct {
  const TextCase *c;
  const char *output;
  size_t at; /* end of the last match */
  Vars vars;
  StrBuf *report;
} Checker;

bool textcheck_line(TextLines *t) {
  if (t->left == 0) return false;
  const char *nl = memchr(t->text, '\n', t->left);
  t->line = t->text;
  t->len = nl ? (size_t)(nl - t->text) : t->left;
  size_t step = t->len + (nl ? 1 : 0);
  t->text += step;
  t->left -= step;
  t->number++;
  return true;
}

/* What follows word in the line, where word begins one. */
static const char *after(const TextLines *t, const char *word) {
  size_t n = strlen(word);
  for (size_t i = 0; i + n <= t->len; i++)
    if (memcmp(t->line + i, word, n) == 0 && (i == 0 || strchr(" #/", t->line[i - 1])))
      return t->line + i + n;
  return NULL;
}

/* What the word p..end behind CHECK means. */
static CheckKind check_kind(const char *p, const char *end, int *count) {
  static const struct {
    const char *word;
    CheckKind kind;
  } kinds[] = {{"", CHECK_PLAIN}, {"-NEXT", CHECK_NEXT}, {"-NOT", CHECK_NOT}};
  size_t len = (size_t)(end - p);
  for (size_t i = 0; i < NPU_COUNTOF(kinds); i++)
    if (strlen(kinds[i].word) == len && memcmp(kinds[i].word, p, len) == 0) return kinds[i].kind;
  if (len < 8 || memcmp(p, "-COUNT-", 7) != 0) return CHECK_UNKNOWN;
  *count = 0;
  for (p += 7; p < end; p++) {
    if (!isdigit((unsigned char)*p) || *count > INT16_MAX) return CHECK_UNKNOWN;
    *count = *count * 10 + (*p - '0');
  }
  return *count > 0 ? CHECK_COUNT : CHECK_UNKNOWN;
}

/* CHECK with a blank behind it, and no colon, is prose. */
static bool parse_check(const TextLines *t, Check *out) {
  const char *p = after(t, "CHECK"), *end = t->line + t->len;
  if (!p) return false;
  const char *word = p, *blank;
  while (p < end && *p != ':' && !isspace((unsigned char)*p)) p++;
  for (blank = p; blank < end && isspace((unsigned char)*blank); blank++) continue;
  bool colon = blank < end && *blank == ':';
  if (p == word && !colon) return false;
  *out = (Check){CHECK_UNKNOWN, t->number, 1, word, (size_t)(p - word)};
  if (p < end && *p == ':') out->kind = check_kind(word, p, &out->count);
  if (out->kind == CHECK_UNKNOWN) return true;
  p++;
  while (p < end && *p == ' ') p++;
  while (end > p && isspace((unsigned char)end[-1])) end--;
  out->text = p;
  out->len = (size_t)(end - p);
  return true;
}

/* A comment that begins with a word of capitals and a colon, and is no directive: one misspelt. */
static bool is_unknown(const TextLines *t) {
  const char *end = t->line + t->len, *p = t->line;
  while (p < end && *p != '#' && strncmp(p, "//", 2) != 0) p++;
  while (p < end && strchr("#/ ", *p)) p++;
  const char *word = p;
  while (p < end && (isupper((unsigned char)*p) || isdigit((unsigned char)*p) || *p == '-')) p++;
  size_t len = (size_t)(p - word);
  if (len < 2 || p == end || *p != ':') return false;
  return !(len == 3 && memcmp(word, "RUN", 3) == 0) && !(len >= 5 && memcmp(word, "CHECK", 5) == 0);
}

static bool complain(Checker *k, const Check *check, const char *what) {
  strbuf_printf(k->report, "%s:%d: %s: %.*s\n", k->c->path, check->line, what, (int)check->len,
                check->text);
  return false;
}

static bool none_between(Checker *k, const Check *nots, size_t n, size_t end) {
  bool ok = true;
  const char *region = arena_strndup(k->vars.arena, k->output + k->at, end - k->at);
  for (size_t i = 0; i < n; i++) {
    Pattern p;
    size_t b, e;
    if (!compile(&k->vars, nots[i].text, nots[i].len, &p, k->report))
      return complain(k, &nots[i], "cannot be matched");
    if (match(&k->vars, &p, region, &b, &e)) ok = complain(k, &nots[i], "must not be there");
    regfree(&p.re);
  }
  return ok;
}

/* The line after the last match; *from is its place. */
static const char *next_line(Checker *k, size_t *from) {
  const char *nl = strchr(k->output + k->at, '\n');
  if (!nl) return "";
  const char *stop = strchr(nl + 1, '\n');
  *from = (size_t)(nl + 1 - k->output);
  return stop ? arena_strndup(k->vars.arena, nl + 1, (size_t)(stop - nl - 1)) : nl + 1;
}

static bool run_check(Checker *k, const Check *check, const Check *nots, size_t nnots) {
  Pattern p;
  bool ok = true;
  if (!compile(&k->vars, check->text, check->len, &p, k->report))
    return complain(k, check, "cannot be matched");
  for (int i = 0; i < check->count && ok; i++) {
    size_t b = 0, e = 0, from = k->at;
    const char *region = check->kind == CHECK_NEXT ? next_line(k, &from) : k->output + from;
    if (match(&k->vars, &p, region, &b, &e)) {
      ok = none_between(k, nots, nnots, from + b);
      k->at = from + e;
    } else {
      ok = complain(k, check, check->kind == CHECK_NEXT ? "not on the next line" : "not found");
    }
  }
  regfree(&p.re);
  return ok;
}

bool textcheck_output(const TextCase *c, const char *output, StrBuf *report, int *checks) {
  Checker k = {.c = c, .output = output, .vars = {.arena = arena_new()}, .report = report};
  TextLines t = {.text = c->text, .left = c->len};
  Check nots[32];
  size_t nnots = 0;
  bool ok = true;
  while (ok && textcheck_line(&t)) {
    Check check;
    if (is_unknown(&t)) {
      strbuf_printf(report, "%s:%d: no directive is called so: %.*s\n", c->path, t.number,
                    (int)t.len, t.line);
      ok = false;
      break;
    }
    if (!parse_check(&t, &check)) continue;
    ++*checks;
    if (check.kind == CHECK_UNKNOWN) {
      ok = complain(&k, &check,
                    "there are CHECK:, CHECK-NEXT:, CHECK-NOT: and CHECK-COUNT-n:, but no CHECK "
                    "followed by");
    } else if (check.kind != CHECK_NOT) {
      ok = run_check(&k, &check, nots, nnots);
      nnots = 0;
    } else if (nnots < NPU_COUNTOF(nots)) {
      nots[nnots++] = check;
    } else {
      ok = complain(&k, &check, "one CHECK-NOT too many between two matches");
    }
  }
  if (ok && nnots) ok = none_between(&k, nots, nnots, strlen(output));
  arena_free(k.vars.arena);
  return ok;
}

/* ---- driver ---- */

static void collect_arguments(TextCase *c, Arena *arena) {
  TextLines t = {.text = c->text, .left = c->len};
  c->argv = ARENA_ARRAY(arena, const char *, 64);
  while (textcheck_line(&t)) {
    const char *p = after(&t, "RUN:"), *end = t.line + t.len;
    while (p && p < end && c->argc < 63) {
      while (p < end && isspace((unsigned char)*p)) p++;
      const char *stop = p;
      while (stop < end && !isspace((unsigned char)*stop)) stop++;
      if (stop > p) c->argv[c->argc++] = arena_strndup(arena, p, (size_t)(stop - p));
      p = stop;
    }
  }
}

static bool run_case(const char *path, const FileMap *map, TextRun run) {
  Arena *arena = arena_new();
  DiagEngine *diag = diag_new();
  StrBuf output = {0}, report = {0};
  int checks = 0;
  TextCase c = {.path = path, .text = (const char *)map->data, .len = map->size};
  collect_arguments(&c, arena);
  bool ok = run(&c, diag, &output, &report);
  ok &= textcheck_diagnostics(&c, diag, &report, &checks);
  bool same = textcheck_output(&c, output.data ? output.data : "", &report, &checks);
  if (checks == 0) strbuf_printf(&report, "%s: expects nothing\n", path);
  ok = ok && same && checks > 0;
  if (!ok) printf("FAIL %s\n%s", path, report.data ? report.data : "");
  if (!same) {
    int shown = output.len < MAX_SHOWN ? (int)output.len : MAX_SHOWN;
    printf("---- output ----\n%.*s%s\n----------------\n", shown, output.data ? output.data : "",
           output.len > MAX_SHOWN ? "..." : "");
  }
  strbuf_free(&output);
  strbuf_free(&report);
  diag_free(diag);
  arena_free(arena);
  return ok;
}

int textcheck_main(int argc, char **argv, TextRun run) {
  int failed = 0;
  for (int i = 1; i < argc; i++) {
    FileMap map;
    const char *why = NULL;
    if (file_map(argv[i], &map, &why)) {
      if (!run_case(argv[i], &map, run)) failed++;
      file_unmap(&map);
    } else {
      printf("FAIL %s: %s\n", argv[i], why);
      failed++;
    }
  }
  printf("%d of %d passed\n", argc - 1 - failed, argc - 1);
  return failed || argc < 2;
}
