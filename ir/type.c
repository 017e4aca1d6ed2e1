/* Types: interning, sizes, text. */
#include "ir/internal.h"

#include <ctype.h>
#include <string.h>

/* The interned copy of t, whose unused fields are zero. */
static const IrType *type_intern(IrModule *m, const IrType *t) {
  Interned *e = NULL;
  HASH_FIND(hh, m->impl->types, t, sizeof *t, e);
  if (e) return e->thing;
  e = ARENA_NEW(m->arena, Interned);
  e->thing = arena_copy(m->arena, t, sizeof *t);
  HASH_ADD_KEYPTR(hh, m->impl->types, e->thing, sizeof *t, e);
  return e->thing;
}

/* Padding bytes take part in the hash, so every type starts from zeroed memory. */
static void type_clear(IrType *t, IrTypeKind kind, DType dtype) {
  memset(t, 0, sizeof *t);
  t->kind = kind;
  t->dtype = dtype;
}

const IrType *ir_type_tensor(IrModule *m, DType dtype, int rank, const int64_t *shape) {
  IrType t;
  type_clear(&t, IR_TYPE_TENSOR, dtype);
  t.rank = rank;
  if (rank) memcpy(t.shape, shape, sizeof *shape * (size_t)rank);
  return type_intern(m, &t);
}

const IrType *ir_type_scalar(IrModule *m, DType dtype) {
  IrType t;
  type_clear(&t, IR_TYPE_SCALAR, dtype);
  return type_intern(m, &t);
}

const IrType *ir_type_token(IrModule *m, const char *token) {
  IrType t;
  type_clear(&t, IR_TYPE_TOKEN, (DType)0);
  t.token = ir_str(m, token);
  return type_intern(m, &t);
}

const IrType *ir_type_with_dtype(IrModule *m, const IrType *t, DType dtype) {
  IrType copy;
  memcpy(&copy, t, sizeof copy);
  copy.dtype = dtype;
  return type_intern(m, &copy);
}

int64_t ir_type_elements(const IrType *t) {
  int64_t n = 1;
  for (int i = 0; i < t->rank; i++) n *= t->shape[i];
  return n;
}

int64_t ir_type_bytes(const IrType *t) {
  if (t->kind == IR_TYPE_TOKEN) return 0;
  return ir_type_elements(t) * (int64_t)dtype_size(t->dtype);
}

void ir_type_print(StrBuf *b, const IrType *t) {
  if (t->kind == IR_TYPE_TOKEN) {
    strbuf_printf(b, "!%s", t->token);
    return;
  }
  strbuf_puts(b, dtype_name(t->dtype));
  if (t->kind == IR_TYPE_SCALAR) return;
  strbuf_putc(b, '[');
  for (int i = 0; i < t->rank; i++)
    strbuf_printf(b, "%s%lld", i ? "," : "", (long long)t->shape[i]);
  strbuf_putc(b, ']');
}

static const char *skip_space(const char *s) {
  while (*s == ' ' || *s == '\t') s++;
  return s;
}

/* Reads "1, 28, 28]"; false when it is not that or the element count is out of range. */
static bool parse_dims(const char *s, int64_t *shape, int *rank) {
  int64_t count = 1;
  for (s = skip_space(s); *s != ']'; s = skip_space(s)) {
    char digits[24];
    size_t n = 0;
    while (isdigit((unsigned char)*s) && n < sizeof digits - 1) digits[n++] = *s++;
    digits[n] = 0;
    if (*rank == IR_MAX_RANK || !n || !parse_i64(digits, &shape[*rank])) return false;
    if (shape[*rank] < 1 || !mul_i64(count, shape[*rank], &count) || count > IR_MAX_ELEMENTS)
      return false;
    ++*rank;
    s = skip_space(s);
    if (*s == ',')
      s++;
    else if (*s != ']')
      return false;
  }
  return !*skip_space(s + 1);
}

const IrType *ir_type_parse(IrModule *m, const char *text) {
  char word[32];
  size_t n = 0;
  const char *s = skip_space(text);
  bool token = *s == '!';
  if (token) s++;
  while ((isalnum((unsigned char)*s) || *s == '_') && n < sizeof word - 1) word[n++] = *s++;
  word[n] = 0;
  s = skip_space(s);
  if (token) return n && !*s ? ir_type_token(m, word) : NULL;
  DType dtype;
  if (!dtype_parse(word, &dtype)) return NULL;
  if (!*s) return ir_type_scalar(m, dtype);
  int64_t shape[IR_MAX_RANK];
  int rank = 0;
  if (*s != '[' || !parse_dims(s + 1, shape, &rank)) return NULL;
  return ir_type_tensor(m, dtype, rank, shape);
}
