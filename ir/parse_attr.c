/* Text form, reading: attributes. */
#include "ir/parse.h"
#include "ir/print.h"

#include <math.h>
#include <string.h>

static const IrAttr *expected_attr(Parser *p, const char *what) {
  expected(p, what);
  return NULL;
}

/* ---- numbers ---- */

typedef struct {
  bool is_int;
  int64_t i;
  double f; /* set for both */
} Number;

/* [-] number, inf or nan. */
static bool parse_number(Parser *p, Number *out) {
  char text[72] = {0};
  size_t n = 0;
  if (take_punct(p, '-')) text[n++] = '-';
  const Token *t = &p->tok;
  if ((t->kind != TOK_NUMBER && !at_word(p, "inf") && !at_word(p, "nan")) ||
      t->len > sizeof text - 2)
    return expected(p, "a number");
  memcpy(text + n, t->text, t->len);
  out->is_int = t->kind == TOK_NUMBER && strspn(text + n, "0123456789") == t->len;
  if (out->is_int && parse_i64(text, &out->i)) {
    out->f = (double)out->i;
  } else if (at_word(p, "inf")) {
    out->f = n ? -HUGE_VAL : HUGE_VAL;
  } else if (at_word(p, "nan")) {
    out->f = NAN;
  } else if (out->is_int || !parse_f64(text, &out->f)) {
    return expected(p, "a number in range");
  }
  advance(p);
  return true;
}

static const IrAttr *number_attr(Parser *p) {
  Number v;
  if (!parse_number(p, &v)) return NULL;
  return v.is_int ? ir_attr_int(p->m, v.i) : ir_attr_float(p->m, v.f);
}

/* ---- affine maps ---- */

/* An unsigned literal with the sign that stood before it. */
bool parse_literal(Parser *p, bool negative, int64_t *out) {
  char text[32] = "-";
  const Token *t = &p->tok;
  if (t->kind != TOK_NUMBER || t->len > 20) return expected(p, "a whole number");
  memcpy(text + 1, t->text, t->len);
  text[1 + t->len] = 0;
  if (strspn(text + 1, "0123456789") != t->len || !parse_i64(negative ? text : text + 1, out))
    return expected(p, "a whole number in range");
  advance(p);
  return true;
}

bool parse_int(Parser *p, int64_t *out) {
  return parse_literal(p, take_punct(p, '-'), out);
}

/* A dimension by name or as d0..d15. */
static bool parse_dim(Parser *p, int *dim) {
  const Token *t = &p->tok;
  for (int d = 0; d < p->ndims; d++) {
    if (!at_word(p, p->dims[d])) continue;
    *dim = d;
    advance(p);
    return true;
  }
  for (int d = 0; d < IR_MAX_DIMS; d++) {
    char name[8];
    (void)snprintf(name, sizeof name, "d%d", d);
    if (!at_word(p, name)) continue;
    *dim = d;
    advance(p);
    return true;
  }
  if (t->kind == TOK_WORD) {
    const char *near = NULL;
    char word[40] = {0};
    memcpy(word, t->text, t->len < sizeof word - 1 ? t->len : sizeof word - 1);
    if (p->ndims > 0) near = str_nearest(word, p->dims, (size_t)p->ndims);
    return parse_error(p, token_loc(p, t), "E-map", "`%s` is not a dimension of the kernel%s%s%s",
                       word,
                       near           ? "; did you mean `"
                       : p->ndims < 0 ? "; `dims` does not name each once, so they are d0, d1, ..."
                                      : "",
                       near ? near : "", near ? "`?" : "");
  }
  return expected(p, "a dimension or a number");
}

static bool add_term(Parser *p, SrcLoc loc, int64_t *sum, int64_t v) {
  return add_i64(*sum, v, sum) ||
         parse_error(p, loc, "E-map", "the sum leaves the range of 64 bits");
}

/* oh*2, 3, or kh; after a sign. */
static bool parse_term(Parser *p, bool negative, IrAffine *a) {
  SrcLoc loc = token_loc(p, &p->tok);
  int64_t v = negative ? -1 : 1;
  int dim = 0;
  if (p->tok.kind == TOK_NUMBER)
    return parse_literal(p, negative, &v) && add_term(p, loc, &a->cst, v);
  if (!parse_dim(p, &dim)) return false;
  if (take_punct(p, '*') && !parse_literal(p, negative, &v)) return false;
  return add_term(p, loc, &a->coef[dim], v);
}

static bool parse_affine(Parser *p, IrAffine *a) {
  a->index = -1;
  if (take_punct(p, '@')) {
    int64_t index;
    if (!parse_literal(p, false, &index)) return false;
    if (index > INT32_MAX) return expected(p, "an operand number");
    a->index = (int)index;
    if (!at_punct(p, '+') && !at_punct(p, '-')) return true;
    bool negative = at_punct(p, '-');
    advance(p);
    return parse_literal(p, negative, &a->cst);
  }
  bool negative = take_punct(p, '-');
  if (!parse_term(p, negative, a)) return false;
  while (at_punct(p, '+') || at_punct(p, '-')) {
    negative = at_punct(p, '-');
    advance(p);
    if (!parse_term(p, negative, a)) return false;
  }
  return true;
}

static const IrAttr *map_attr(Parser *p) {
  IrMap map;
  memset(&map, 0, sizeof map);
  advance(p);
  while (!take_punct(p, ')')) {
    if (map.rank && !need_punct(p, ',')) return NULL;
    if (map.rank == IR_MAX_RANK) return expected_attr(p, "at most 8 axes in a map");
    if (!parse_affine(p, &map.axis[map.rank++])) return NULL;
  }
  return ir_attr_map(p->m, &map);
}

/* ---- data ---- */

/* The file a data attribute names: already attached, beside the text, or as the path says. */
static TensorFile *open_file(Parser *p, const char *file, SrcLoc loc) {
  TensorFile *f = ir_module_file(p->m, file);
  if (f) return f;
  const char *beside = path_beside(p->m->arena, p->file, file);
  f = tensor_file_open(file_exists(beside) ? beside : file, p->diag, loc);
  if (!f) {
    p->failed = true;
    return NULL;
  }
  f = ir_module_attach(p->m, f);
  module_attach_alias(p->m, f, file);
  return f;
}

/* file("w.safetensors", "name", byte offset) */
static const IrAttr *file_data(Parser *p, const IrType *type) {
  SrcLoc loc = token_loc(p, &p->tok);
  uint64_t offset = 0;
  advance(p);
  if (!need_punct(p, '(')) return NULL;
  const char *file = p->tok.kind == TOK_STRING ? string_value(p) : NULL;
  if (!file) return expected_attr(p, "a file name in quotes");
  if (!need_punct(p, ',')) return NULL;
  const char *name = p->tok.kind == TOK_STRING ? string_value(p) : NULL;
  if (!name) return expected_attr(p, "a tensor name in quotes");
  if (take_punct(p, ',') && !need_uint(p, INT64_MAX, &offset)) return NULL;
  if (!need_punct(p, ')')) return NULL;
  TensorFile *f = open_file(p, file, loc);
  if (!f) return NULL;
  const TensorEntry *e = tensor_file_find(f, name);
  uint64_t bytes = (uint64_t)ir_type_bytes(type);
  if (!e)
    parse_error(p, loc, "E-weight", "%s has no tensor `%s`", file, name);
  else if (e->dtype != type->dtype || offset > e->bytes || bytes > e->bytes - offset)
    parse_error(p, loc, "E-weight",
                "`%s` of %s is %s and has %zu bytes; %s at byte %llu does not fit", name, file,
                dtype_name(e->dtype), e->bytes, dtype_name(type->dtype),
                (unsigned long long)offset);
  if (p->failed) return NULL;
  const char *data = tensor_file_data(f, e, p->diag, loc);
  if (!data) p->failed = true;
  return data ? ir_attr_data_file(p->m, type, data + offset, file, name) : NULL;
}

static const IrAttr *splat_data(Parser *p, const IrType *type) {
  Number v;
  if (ir_type_bytes(type) > TEXT_SPLAT_BYTES)
    return expected_attr(p, "hex data: too large for splat");
  advance(p);
  if (!need_punct(p, '(') || !parse_number(p, &v) || !need_punct(p, ')')) return NULL;
  void *bytes;
  const IrAttr *a = ir_attr_data_new(p->m, type, &bytes);
  data_splat(type, v.f, bytes);
  return a;
}

static const IrAttr *list_data(Parser *p, const IrType *type) {
  StrBuf bytes = {0};
  int64_t n = 0, wanted = ir_type_elements(type);
  bool ok = true;
  SrcLoc loc = token_loc(p, &p->tok);
  advance(p);
  while (ok && !take_punct(p, ']')) {
    Number v;
    uint64_t element = 0;
    ok = (!n || need_punct(p, ',')) && parse_number(p, &v);
    if (!ok) break;
    dtype_set(type->dtype, &element, 0, v.f);
    strbuf_write(&bytes, &element, dtype_size(type->dtype));
    n++;
  }
  if (ok && n != wanted)
    ok = parse_error(p, loc, "E-data", "%lld numbers for %lld elements", (long long)n,
                     (long long)wanted);
  const IrAttr *a = ok ? ir_attr_data(p->m, type, bytes.data) : NULL;
  strbuf_free(&bytes);
  return a;
}

static int hex_value(char c) {
  const char *digits = "0123456789abcdef", *at = c ? strchr(digits, c) : NULL;
  return at ? (int)(at - digits) : -1;
}

static const IrAttr *hex_data(Parser *p, const IrType *type) {
  advance(p);
  if (!need_punct(p, '(')) return NULL;
  const Token t = p->tok;
  if (t.kind != TOK_STRING) return expected_attr(p, "hex digits in quotes");
  if (t.len != 2 * (uint64_t)ir_type_bytes(type)) {
    parse_error(p, token_loc(p, &t), "E-data", "%zu hex digits for %lld bytes; two each are needed",
                t.len, (long long)ir_type_bytes(type));
    return NULL;
  }
  void *out;
  const IrAttr *a = ir_attr_data_new(p->m, type, &out);
  uint8_t *bytes = out;
  for (size_t i = 0; i < t.len; i += 2) {
    int hi = hex_value(t.text[i]), lo = hex_value(t.text[i + 1]);
    if (hi < 0 || lo < 0) return expected_attr(p, "lower-case hex digits");
    bytes[i / 2] = (uint8_t)(hi * 16 + lo);
  }
  advance(p);
  return need_punct(p, ')') ? a : NULL;
}

static const IrAttr *elided_data(Parser *p) {
  parse_error(p, token_loc(p, &p->tok), "E-data",
              "the values were left out when this was printed; print it without --elide-data");
  return NULL;
}

/* data<type, file(...)>, data<type, splat(x)>, data<type, [x, ...]>, data<type, hex("...")> */
static const IrAttr *data_attr(Parser *p) {
  advance(p);
  if (!need_punct(p, '<')) return NULL;
  SrcLoc loc = token_loc(p, &p->tok);
  const IrType *type = parse_type(p);
  if (!type || !need_punct(p, ',')) return NULL;
  if (type->kind != IR_TYPE_TENSOR) {
    parse_error(p, loc, "E-type", "data needs a tensor type such as f32[4] or f32[]");
    return NULL;
  }
  const IrAttr *a = at_word(p, "file")     ? file_data(p, type)
                    : at_word(p, "splat")  ? splat_data(p, type)
                    : at_word(p, "hex")    ? hex_data(p, type)
                    : at_word(p, "elided") ? elided_data(p)
                    : at_punct(p, '[')
                        ? list_data(p, type)
                        : expected_attr(p, "file(...), splat(...), hex(...) or [...]");
  return a && need_punct(p, '>') ? a : NULL;
}

/* ---- any attribute ---- */

static const IrAttr *array_attr(Parser *p, int depth) {
  const IrAttr **items = NULL;
  size_t n = 0, cap = 0;
  bool ok = true;
  if (depth == PARSE_MAX_DEPTH) return expected_attr(p, "lists nested less deeply");
  advance(p);
  while (ok && !take_punct(p, ']')) {
    if (n && !need_punct(p, ',')) ok = false;
    const IrAttr *a = ok ? parse_attr(p, depth + 1) : NULL;
    if (!a) ok = false;
    if (n == cap) items = mem_realloc(items, (cap = cap ? 2 * cap : 8) * sizeof *items);
    items[n++] = a;
  }
  const IrAttr *r = ok ? ir_attr_array(p->m, items, n) : NULL;
  mem_free(items);
  return r;
}

static const IrAttr *word_attr(Parser *p) {
  char word[16] = {0};
  DType dtype;
  if (at_word(p, "data")) return data_attr(p);
  if (at_word(p, "inf") || at_word(p, "nan")) return number_attr(p);
  if (at_word(p, "true") || at_word(p, "false")) {
    bool value = at_word(p, "true");
    advance(p);
    return ir_attr_bool(p->m, value);
  }
  if (p->tok.len < sizeof word) memcpy(word, p->tok.text, p->tok.len);
  if (!dtype_parse(word, &dtype)) return expected_attr(p, "an attribute value");
  advance(p);
  return ir_attr_dtype(p->m, dtype);
}

const IrAttr *parse_attr(Parser *p, int depth) {
  if (p->tok.kind == TOK_WORD) return word_attr(p);
  if (p->tok.kind == TOK_NUMBER || at_punct(p, '-')) return number_attr(p);
  if (at_punct(p, '[')) return array_attr(p, depth);
  if (at_punct(p, '(')) return map_attr(p);
  if (p->tok.kind != TOK_STRING) return expected_attr(p, "an attribute value");
  const char *s = string_value(p);
  return s ? ir_attr_str(p->m, s) : NULL;
}

void find_dim_names(Parser *p) {
  Lexer lexer = p->lex;
  Token token = p->tok;
  int depth = 0;
  do {
    if (p->tok.kind == TOK_END || p->tok.kind == TOK_BAD) break;
    if (at_punct(p, '{') || at_punct(p, '[') || at_punct(p, '(')) depth++;
    if (at_punct(p, '}') || at_punct(p, ']') || at_punct(p, ')')) depth--;
    bool found = depth == 1 && at_word(p, "dims");
    advance(p);
    if (!found || !take_punct(p, '=')) continue;
    const IrAttr *dims = parse_attr(p, 0);
    p->ndims = dims ? kernel_dim_names(dims, p->dims) : -1;
    break;
  } while (depth > 0);
  p->lex = lexer;
  p->tok = token;
}
