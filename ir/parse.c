/* Text form, reading: recursive descent over functions, ops, regions and types. Stops at the first
 * error. */
#include "ir/parse.h"
#include "ir/print.h"

#include <string.h>

/* ---- tokens ---- */

void advance(Parser *p) {
  p->tok = lex_next(&p->lex);
}

SrcLoc token_loc(const Parser *p, const Token *t) {
  uint32_t width = (uint32_t)t->len + (t->kind == TOK_STRING ? 2 : 0);
  return (SrcLoc){p->file, t->line, t->col, t->line, t->col + width};
}

bool parse_error(Parser *p, SrcLoc loc, const char *code, const char *fmt, ...) {
  if (p->failed) return false;
  p->failed = true;
  va_list ap;
  va_start(ap, fmt);
  diag_report(p->diag, DIAG_ERROR, loc, code, fmt, ap);
  va_end(ap);
  return false;
}

bool expected(Parser *p, const char *what) {
  const Token *t = &p->tok;
  SrcLoc loc = token_loc(p, t);
  if (t->kind == TOK_END)
    return parse_error(p, loc, "E-syntax", "expected %s, but the text ends here", what);
  if (t->kind == TOK_BAD && t->punct == 0)
    return parse_error(p, loc, "E-syntax", "expected %s, found a string without closing quote",
                       what);
  if (t->kind == TOK_BAD)
    return parse_error(p, loc, "E-syntax", "expected %s, found the stray byte 0x%02x", what,
                       (unsigned)(unsigned char)t->punct);
  int len = t->len < 40 ? (int)t->len : 40;
  return parse_error(p, loc, "E-syntax", "expected %s, found `%.*s`", what, len, t->text);
}

bool at_punct(const Parser *p, char c) {
  return p->tok.kind == TOK_PUNCT && p->tok.punct == c;
}

bool at_word(const Parser *p, const char *word) {
  return p->tok.kind == TOK_WORD && strlen(word) == p->tok.len &&
         !memcmp(word, p->tok.text, p->tok.len);
}

bool take_punct(Parser *p, char c) {
  if (!at_punct(p, c)) return false;
  advance(p);
  return true;
}

bool need_punct(Parser *p, char c) {
  char what[] = {'`', c, '`', 0};
  return take_punct(p, c) || expected(p, what);
}

static int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

const char *string_value(Parser *p) {
  const char *s = p->tok.text;
  size_t n = p->tok.len;
  p->scratch.len = 0;
  for (size_t i = 0; i < n; i++) {
    char c = s[i];
    if (c == '\\' && i + 1 < n) {
      c = s[++i];
      if (c == 'n')
        c = '\n';
      else if (c == 't')
        c = '\t';
      else if (c == 'x') {
        int hi = i + 1 < n ? hex_digit(s[i + 1]) : -1, lo = i + 2 < n ? hex_digit(s[i + 2]) : -1;
        c = hi < 0 || lo < 0 ? 0 : (char)(hi * 16 + lo);
        i += 2;
      } else if (c != '"' && c != '\\')
        c = 0;
    }
    if (!c) {
      parse_error(
          p, token_loc(p, &p->tok), "E-syntax",
          "a string holds a zero byte or an unknown escape; use \\\\ \\\" \\n \\t \\x01..\\xff");
      return NULL;
    }
    strbuf_putc(&p->scratch, c);
  }
  const char *value =
      str_intern_n(p->m->strings, p->scratch.len ? p->scratch.data : "", p->scratch.len);
  advance(p);
  return value;
}

const char *name_value(Parser *p, const char *what) {
  if (p->tok.kind == TOK_STRING) return string_value(p);
  if (p->tok.kind != TOK_WORD) {
    expected(p, what);
    return NULL;
  }
  const char *name = str_intern_n(p->m->strings, p->tok.text, p->tok.len);
  advance(p);
  return name;
}

bool need_uint(Parser *p, uint64_t max, uint64_t *out) {
  const Token *t = &p->tok;
  uint64_t v = 0;
  bool ok = t->kind == TOK_NUMBER;
  for (size_t i = 0; ok && i < t->len; i++) {
    unsigned digit = (unsigned)(t->text[i] - '0');
    ok = digit < 10 && v <= (max - digit) / 10;
    v = v * 10 + digit;
  }
  if (!ok || v > max) return expected(p, "a whole number in range");
  *out = v;
  advance(p);
  return true;
}

/* ---- types and places ---- */

static const IrType *parse_tensor(Parser *p, DType dtype) {
  int64_t shape[IR_MAX_RANK], count = 1;
  int rank = 0;
  while (!take_punct(p, ']')) {
    uint64_t dim;
    SrcLoc loc = token_loc(p, &p->tok);
    if (rank && !need_punct(p, ',')) return NULL;
    if (!need_uint(p, IR_MAX_ELEMENTS, &dim)) return NULL;
    if (rank == IR_MAX_RANK) {
      parse_error(p, loc, "E-type", "a tensor has at most %d axes", IR_MAX_RANK);
      return NULL;
    }
    shape[rank++] = (int64_t)dim;
    if (!dim || !mul_i64(count, (int64_t)dim, &count) || count > IR_MAX_ELEMENTS) {
      parse_error(p, loc, "E-type", "axes must be at least 1 and a tensor at most 2^40 elements");
      return NULL;
    }
  }
  return ir_type_tensor(p->m, dtype, rank, shape);
}

const IrType *parse_type(Parser *p) {
  if (take_punct(p, '!')) {
    const char *token = p->tok.kind == TOK_WORD ? name_value(p, "a token name") : NULL;
    if (token) return ir_type_token(p->m, token);
    expected(p, "a token name after `!`");
    return NULL;
  }
  char word[16] = {0};
  DType dtype;
  if (p->tok.kind == TOK_WORD && p->tok.len < sizeof word) memcpy(word, p->tok.text, p->tok.len);
  if (!dtype_parse(word, &dtype)) {
    expected(p, "a type such as f32[1,28,28], f32 or !reg");
    return NULL;
  }
  advance(p);
  return take_punct(p, '[') ? parse_tensor(p, dtype) : ir_type_scalar(p->m, dtype);
}

/* loc("file":line:col-line:col) or loc(unknown), when next; otherwise *loc stays as it is. */
bool parse_loc(Parser *p, SrcLoc *loc) {
  if (!at_word(p, "loc")) return true;
  advance(p);
  if (!need_punct(p, '(')) return false;
  if (at_word(p, "unknown")) {
    advance(p);
    *loc = SRC_LOC_NONE;
    return need_punct(p, ')');
  }
  uint64_t v[4] = {0};
  if (p->tok.kind != TOK_STRING) return expected(p, "a file name in quotes or `unknown`");
  const char *file = string_value(p);
  if (!file || !need_punct(p, ':') || !need_uint(p, UINT32_MAX, &v[0]) || !need_punct(p, ':') ||
      !need_uint(p, UINT32_MAX, &v[1]))
    return false;
  if (take_punct(p, '-') &&
      (!need_uint(p, UINT32_MAX, &v[2]) || !need_punct(p, ':') || !need_uint(p, UINT32_MAX, &v[3])))
    return false;
  *loc = (SrcLoc){file, (uint32_t)v[0], (uint32_t)v[1], (uint32_t)v[2], (uint32_t)v[3]};
  if (!loc->line) *loc = SRC_LOC_NONE;
  return need_punct(p, ')');
}

/* ---- values ---- */

static Name *scope_find(ParseScope *s, const char *text, bool outer) {
  Name *n = NULL;
  for (; s && !n; s = outer ? s->outer : NULL) HASH_FIND_STR(s->names, text, n);
  return n;
}

/* %word, %"any text" or %7. *hint is what the value is called: NULL for a number. The key is valid
 * until the next string is interned away, that is, as long as the module. */
static bool parse_value_name(Parser *p, const char **key, const char **hint, SrcLoc *loc) {
  *loc = token_loc(p, &p->tok);
  if (!need_punct(p, '%')) return false;
  loc->end_col = token_loc(p, &p->tok).end_col;
  if (p->tok.kind == TOK_NUMBER) {
    char number[24];
    if (p->tok.len > 20) return expected(p, "a value name");
    (void)snprintf(number, sizeof number, "%%%.*s", (int)p->tok.len, p->tok.text);
    *key = ir_str(p->m, number);
    *hint = NULL;
    advance(p);
    return true;
  }
  *hint = name_value(p, "a value name after `%`");
  if (!*hint) return false;
  /* A quoted name may look like a number's key: set it apart. */
  *key = **hint == '%' ? str_intern(p->m->strings, *hint) : *hint;
  if (**hint == '%') {
    p->scratch.len = 0;
    strbuf_printf(&p->scratch, "%%%s", *hint);
    *key = ir_str(p->m, p->scratch.data);
  }
  return true;
}

static bool define(Parser *p, const char *key, const char *hint, SrcLoc loc, IrValue *v) {
  const Name *known = scope_find(p->scope, key, true);
  if (known) {
    parse_error(p, loc, "E-redefined", "%%%s is already defined; give this value another name",
                key + (*key == '%'));
    diag_note(p->diag, known->loc, "first defined here");
    return false;
  }
  size_t len = strlen(key);
  Name *n = mem_alloc(sizeof *n + len + 1);
  memcpy(n->text, key, len);
  n->value = v;
  n->loc = loc;
  v->name = hint;
  HASH_ADD_KEYPTR(hh, p->scope->names, n->text, len, n);
  return true;
}

void scope_leave(Parser *p, ParseScope *s, ParseScope *back) {
  Name *n, *next;
  HASH_ITER(hh, s->names, n, next) {
    HASH_DEL(s->names, n);
    mem_free(n);
  }
  p->scope = back;
}

IrValue *parse_operand(Parser *p) {
  const char *key = NULL, *hint;
  SrcLoc loc;
  if (!parse_value_name(p, &key, &hint, &loc)) return NULL;
  Name *n = scope_find(p->scope, key, true);
  if (n) return n->value;
  bool kernel = false;
  for (const ParseScope *s = p->scope; s; s = s->outer) kernel |= s->kernel;
  parse_error(p, loc, "E-undefined", "%%%s is not defined before this point%s", key + (*key == '%'),
              kernel ? "; a kernel body sees only its own arguments: make it an operand" : "");
  return NULL;
}

/* (%a: f32, %b: s32) as arguments of b. */
bool parse_args(Parser *p, IrBlock *b) {
  if (!need_punct(p, '(')) return false;
  while (!take_punct(p, ')')) {
    const char *key, *hint;
    SrcLoc loc;
    if (b->nargs && !need_punct(p, ',')) return false;
    if (!parse_value_name(p, &key, &hint, &loc) || !need_punct(p, ':')) return false;
    const IrType *t = parse_type(p);
    if (!t || !define(p, key, hint, loc, ir_block_add_arg(b, t, hint))) return false;
  }
  return true;
}

/* ---- ops ---- */

typedef struct { /* what precedes the `=` of an op */
  const char *key, *hint;
  SrcLoc loc;
} ResultName;

typedef struct { /* growing scratch lists of one op */
  ResultName results[IR_MAX_RESULTS];
  int nresults;
  const IrType *types[IR_MAX_RESULTS];
  int ntypes;
  SrcLoc loc, *operand_locs;
} OpText;

static bool parse_result_names(Parser *p, OpText *t) {
  if (!at_punct(p, '%')) return true;
  do {
    if (t->nresults == IR_MAX_RESULTS) return expected(p, "at most 64 results");
    ResultName *r = &t->results[t->nresults++];
    if (!parse_value_name(p, &r->key, &r->hint, &r->loc)) return false;
  } while (take_punct(p, ','));
  return need_punct(p, '=');
}

static bool parse_op_kind(Parser *p, IrOpKind *kind) {
  const char *names[IR_OP_COUNT];
  SrcLoc loc = token_loc(p, &p->tok);
  if (p->tok.kind != TOK_WORD) return expected(p, "an op");
  const char *name = name_value(p, "an op");
  if (ir_op_by_name(name, kind)) return true;
  for (int k = 0; k < IR_OP_COUNT; k++) names[k] = ir_op_info((IrOpKind)k)->name;
  const char *near = str_nearest(name, names, IR_OP_COUNT);
  return parse_error(p, loc, "E-op", "there is no op `%.60s`%s%s%s", name,
                     near ? "; did you mean `" : "", near ? near : "", near ? "`?" : "");
}

bool parse_attrs(Parser *p, IrOp *op, IrFunc *f) {
  if (!at_punct(p, '{')) return true;
  p->ndims = -1;
  if (op && op->kind == IR_OP_KERNEL) find_dim_names(p);
  advance(p);
  for (int n = 0; !take_punct(p, '}'); n++) {
    if (n && !need_punct(p, ',')) return false;
    SrcLoc loc = token_loc(p, &p->tok);
    const char *name = name_value(p, "an attribute name");
    if (!name || !need_punct(p, '=')) return false;
    if (op ? ir_attr(op, name) != NULL : ir_func_attr(f, name) != NULL)
      return parse_error(p, loc, "E-attr", "the attribute `%.60s` is given twice", name);
    const IrAttr *a = parse_attr(p, 0);
    if (!a) return false;
    if (op)
      ir_set_attr(op, name, a);
    else
      ir_set_func_attr(f, name, a);
  }
  return true;
}

/* (f32[2], s32) -> f32[2]: the declared operand types must be those of the operands. */
static bool parse_signature(Parser *p, IrOp *op, OpText *t) {
  if (!need_punct(p, ':') || !need_punct(p, '(')) return false;
  for (int i = 0; !take_punct(p, ')'); i++) {
    if (i && !need_punct(p, ',')) return false;
    SrcLoc loc = token_loc(p, &p->tok);
    const IrType *declared = parse_type(p);
    if (!declared) return false;
    if (i >= op->noperands)
      return parse_error(p, loc, "E-operands", "more operand types than operands (%d)",
                         op->noperands);
    if (declared == ir_operand(op, i)->type) continue;
    StrBuf text = {0};
    ir_type_print(&text, ir_operand(op, i)->type);
    parse_error(p, loc, "E-type", "operand %d is %s, not what is written here", i, text.data);
    strbuf_free(&text);
    return false;
  }
  if (p->tok.kind != TOK_ARROW) return expected(p, "`->`");
  advance(p);
  bool list = take_punct(p, '(');
  while (!list || !take_punct(p, ')')) {
    if (t->ntypes && !need_punct(p, ',')) return false;
    if (t->ntypes == IR_MAX_RESULTS) return expected(p, "at most 64 results");
    if (!(t->types[t->ntypes++] = parse_type(p))) return false;
    if (!list) break;
  }
  if (t->ntypes == t->nresults) return true;
  return parse_error(p, t->loc, "E-operands", "%d result%s named but %d type%s given", t->nresults,
                     t->nresults == 1 ? "" : "s", t->ntypes, t->ntypes == 1 ? "" : "s");
}

/* form: the op was written in its text form, whose region has no argument list. */
static bool parse_region(Parser *p, IrOp *op, bool form, int depth) {
  if (!at_punct(p, '{')) return !form || !ir_has_trait(op, IR_HAS_REGION) || expected(p, "`{`");
  SrcLoc loc = token_loc(p, &p->tok);
  if (!ir_has_trait(op, IR_HAS_REGION))
    return parse_error(p, loc, "E-region", "`%s` has no region", ir_op_info(op->kind)->name);
  if (depth == PARSE_MAX_DEPTH)
    return parse_error(p, loc, "E-region", "regions nest deeper than %d", PARSE_MAX_DEPTH);
  advance(p);
  ParseScope *back = p->scope, inner = {.kernel = op->kind == IR_OP_KERNEL};
  if (!inner.kernel) inner.outer = back;
  p->scope = &inner;
  IrBlock *b = ir_op_add_region(op);
  bool ok = (form || (need_punct(p, '^') && parse_args(p, b) && need_punct(p, ':'))) &&
            parse_block(p, b, depth + 1) && need_punct(p, '}');
  scope_leave(p, &inner, back);
  return ok;
}

/* After these a `%` starts the next op. */
static bool takes_no_operands(IrOpKind kind) {
  return kind == IR_OP_REG || kind == IR_OP_SEM;
}

/* Everything between the mnemonic and the types. *form: in the op's text form. */
static bool parse_inputs(Parser *p, IrOp *op, bool *form) {
  bool operands = at_punct(p, '%') && !takes_no_operands(op->kind);
  if (operands) {
    IrValue *first = parse_operand(p);
    if (!first) return false;
    ir_add_operand(op, first);
  }
  if (!parse_form(p, op, form)) return false;
  while (operands && !*form && take_punct(p, ',')) {
    IrValue *v = parse_operand(p);
    if (!v) return false;
    ir_add_operand(op, v);
  }
  if (*form && ir_has_trait(op, IR_HAS_REGION)) { /* the word tells attributes from the region */
    if (!at_word(p, "attributes")) return true;
    advance(p);
    if (!at_punct(p, '{')) return expected(p, "`{`");
  }
  return parse_attrs(p, op, NULL);
}

/* Types may be left out where the text form implies them. */
static bool parse_types(Parser *p, IrOp *op, OpText *t, bool form) {
  if (!form || at_punct(p, ':')) return parse_signature(p, op, t);
  const char *token = form_result(op->kind);
  if (token) t->types[t->ntypes++] = ir_type_token(p->m, token);
  if (t->nresults == t->ntypes) return true;
  return parse_error(p, t->loc, "E-operands", "`%s` has %s", ir_op_info(op->kind)->name,
                     token ? "one result" : "no result");
}

static bool parse_op(Parser *p, IrBlock *b, int depth) {
  OpText t = {0};
  IrOpKind kind;
  bool form = false;
  if (!parse_result_names(p, &t)) return false;
  t.loc = token_loc(p, &p->tok);
  if (!parse_op_kind(p, &kind)) return false;
  IrOp *op = ir_op_new(p->m, kind, t.loc, 0, NULL, 0, NULL);
  ir_op_append(b, op);
  if (!parse_inputs(p, op, &form)) return false;
  fill_defaults(op);
  if (!parse_types(p, op, &t, form) || !parse_loc(p, &op->loc)) return false;
  op->nresults = t.nresults;
  op->results = t.nresults ? ARENA_ARRAY(p->m->arena, IrValue, t.nresults) : NULL;
  for (int i = 0; i < t.nresults; i++)
    op->results[i] = (IrValue){.type = t.types[i], .def = op, .index = i};
  if (!parse_region(p, op, form, depth)) return false;
  for (int i = 0; i < t.nresults; i++)
    if (!define(p, t.results[i].key, t.results[i].hint, t.results[i].loc, &op->results[i]))
      return false;
  return true;
}

bool parse_block(Parser *p, IrBlock *b, int depth) {
  while (!at_punct(p, '}'))
    if (!parse_op(p, b, depth)) return false;
  return true;
}
