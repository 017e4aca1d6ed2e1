/* Strings: interning, growing buffers, shortest exact numbers, edit distance. */
#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define uthash_malloc(n) mem_alloc(n)
#define uthash_free(p, n) mem_free(p)
#include <uthash.h>

/* ---- interning ---- */

typedef struct {
  UT_hash_handle hh;
  char text[];
} StrEntry;

struct StrTable {
  Arena *arena;
  StrEntry *entries;
};

StrTable *str_table_new(void) {
  StrTable *t = mem_alloc(sizeof *t);
  t->arena = arena_new();
  return t;
}

void str_table_free(StrTable *t) {
  if (!t) return;
  HASH_CLEAR(hh, t->entries);
  arena_free(t->arena);
  mem_free(t);
}

const char *str_intern_n(StrTable *t, const char *s, size_t len) {
  StrEntry *e = NULL;
  HASH_FIND(hh, t->entries, s, len, e);
  if (e) return e->text;
  e = arena_alloc(t->arena, sizeof *e + len + 1);
  if (len) memcpy(e->text, s, len);
  HASH_ADD_KEYPTR(hh, t->entries, e->text, len, e);
  return e->text;
}

const char *str_intern(StrTable *t, const char *s) {
  return str_intern_n(t, s, strlen(s));
}

/* ---- growing strings ---- */

void strbuf_free(StrBuf *b) {
  mem_free(b->data);
  *b = (StrBuf){0};
}

/* Room for extra bytes and the terminator. */
static void strbuf_reserve(StrBuf *b, size_t extra) {
  size_t need = b->len + extra + 1;
  if (need <= b->cap) return;
  size_t cap = b->cap ? b->cap : 64;
  while (cap < need) cap *= 2;
  b->data = mem_realloc(b->data, cap);
  b->cap = cap;
}

void strbuf_write(StrBuf *b, const void *bytes, size_t len) {
  strbuf_reserve(b, len);
  if (len) memcpy(b->data + b->len, bytes, len);
  b->len += len;
  b->data[b->len] = 0;
}

void strbuf_putc(StrBuf *b, char c) {
  strbuf_write(b, &c, 1);
}

void strbuf_puts(StrBuf *b, const char *s) {
  strbuf_write(b, s, strlen(s));
}

void strbuf_vprintf(StrBuf *b, const char *fmt, va_list ap) {
  va_list again;
  va_copy(again, ap);
  strbuf_reserve(b, 0);
  size_t room = b->cap - b->len;
  int len = vsnprintf(b->data + b->len, room, fmt, ap);
  if (len > 0 && (size_t)len >= room) {
    strbuf_reserve(b, (size_t)len);
    vsnprintf(b->data + b->len, (size_t)len + 1, fmt, again);
  }
  if (len > 0) b->len += (size_t)len;
  b->data[b->len] = 0;
  va_end(again);
}

void strbuf_printf(StrBuf *b, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  strbuf_vprintf(b, fmt, ap);
  va_end(ap);
}

void strbuf_quote(StrBuf *b, const char *s) {
  strbuf_putc(b, '"');
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    switch (c) {
    case '"': strbuf_puts(b, "\\\""); break;
    case '\\': strbuf_puts(b, "\\\\"); break;
    case '\n': strbuf_puts(b, "\\n"); break;
    case '\t': strbuf_puts(b, "\\t"); break;
    default:
      if (c < 0x20 || c == 0x7f)
        strbuf_printf(b, "\\x%02x", c);
      else
        strbuf_putc(b, (char)c);
    }
  }
  strbuf_putc(b, '"');
}

static bool put_special(StrBuf *b, double d) {
  if (isnan(d))
    strbuf_puts(b, "nan");
  else if (isinf(d))
    strbuf_puts(b, d < 0 ? "-inf" : "inf");
  else
    return false;
  return true;
}

/* A number without point or exponent gets ".0", so that it reads as a real. */
static void put_real(StrBuf *b, const char *text) {
  strbuf_puts(b, text);
  if (!strpbrk(text, ".e")) strbuf_puts(b, ".0");
}

/* 4e+01 is 40: numbers a person writes without an exponent are printed without one. */
static void plain_integer(char *text, size_t size, double v) {
  if (strchr(text, 'e') && fabs(v) >= 1 && fabs(v) < 1e9) snprintf(text, size, "%.0f", v);
}

void strbuf_float(StrBuf *b, float f) {
  if (put_special(b, (double)f)) return;
  char text[40];
  for (int digits = 1; digits <= 9; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, (double)f);
    if (strtof(text, NULL) == f) break;
  }
  plain_integer(text, sizeof text, (double)f);
  put_real(b, text);
}

void strbuf_double(StrBuf *b, double d) {
  if (put_special(b, d)) return;
  char text[40];
  for (int digits = 1; digits <= 17; digits++) {
    snprintf(text, sizeof text, "%.*g", digits, d);
    if (strtod(text, NULL) == d) break;
  }
  plain_integer(text, sizeof text, d);
  put_real(b, text);
}

/* ---- nearness ---- */

static unsigned min3(unsigned a, unsigned b, unsigned c) {
  unsigned m = a < b ? a : b;
  return m < c ? m : c;
}

/* Optimal string alignment: rows of the dynamic programme for prefixes of a, the last three kept.
 */
unsigned str_distance(const char *a, const char *b) {
  size_t la = strlen(a), lb = strlen(b);
  unsigned *memory = mem_alloc(3 * (lb + 1) * sizeof *memory);
  unsigned *two = memory, *one = two + lb + 1, *row = one + lb + 1;
  for (size_t j = 0; j <= lb; j++) row[j] = (unsigned)j;
  for (size_t i = 1; i <= la; i++) {
    unsigned *spare = two;
    two = one, one = row, row = spare;
    row[0] = (unsigned)i;
    for (size_t j = 1; j <= lb; j++) {
      unsigned differ = a[i - 1] != b[j - 1];
      row[j] = min3(one[j] + 1, row[j - 1] + 1, one[j - 1] + differ);
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && two[j - 2] + 1 < row[j])
        row[j] = two[j - 2] + 1;
    }
  }
  unsigned d = row[lb];
  mem_free(memory);
  return d;
}

const char *str_nearest(const char *word, const char *const *candidates, size_t n) {
  size_t len = strlen(word), best = SIZE_MAX;
  const char *nearest = NULL;
  for (size_t i = 0; i < n; i++) {
    size_t lc = strlen(candidates[i]), shorter = lc < len ? lc : len, longer = lc + len - shorter;
    size_t most = longer < 3 ? 1 : longer / 3;
    if (longer - shorter > most) continue;
    size_t d = str_distance(word, candidates[i]);
    /* One letter is near every other letter. */
    if (d <= most && d < longer && d < best) {
      best = d;
      nearest = candidates[i];
    }
  }
  return nearest;
}

bool str_ends_with(const char *s, const char *suffix) {
  size_t ls = strlen(s), lx = strlen(suffix);
  return ls >= lx && memcmp(s + ls - lx, suffix, lx) == 0;
}
