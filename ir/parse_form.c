/* Text form, reading: what stands between the mnemonic of a program op and its attributes, see
 * print_form.c. Operands are numbered in the order in which they are written. */
#include "ir/parse.h"

#include <string.h>

/* A growing list of attributes. */
typedef struct {
  const IrAttr **items;
  size_t n, cap;
} List;

/* False when a is NULL, that is, after an error. */
static bool list_add(List *l, const IrAttr *a) {
  if (!a) return false;
  if (l->n == l->cap) {
    l->cap = l->cap ? 2 * l->cap : 8;
    l->items = mem_realloc(l->items, l->cap * sizeof *l->items);
  }
  l->items[l->n++] = a;
  return true;
}

/* Sets the attribute when ok, frees the list. */
static bool list_finish(Parser *p, List *l, IrOp *op, const char *name, bool ok) {
  if (ok) ir_set_attr(op, name, ir_attr_array(p->m, l->items, l->n));
  mem_free(l->items);
  return ok;
}

static bool need_word(Parser *p, const char *word, const char *what) {
  if (!at_word(p, word)) return expected(p, what);
  advance(p);
  return true;
}

static bool set_str(Parser *p, IrOp *op, const char *name, const char *what) {
  const char *s = name_value(p, what);
  if (s) ir_set_attr(op, name, ir_attr_str(p->m, s));
  return s != NULL;
}

static bool set_int(Parser *p, IrOp *op, const char *name) {
  int64_t v;
  if (!parse_int(p, &v)) return false;
  ir_set_attr(op, name, ir_attr_int(p->m, v));
  return true;
}

/* The name of a buffer or tensor, when one is next. */
static bool set_name(Parser *p, IrOp *op) {
  return p->tok.kind != TOK_STRING || set_str(p, op, "name", "a name in quotes");
}

/* Appends the value that is next to op's operands; *index is its number. */
static bool add_operand(Parser *p, IrOp *op, int64_t *index) {
  IrValue *v = parse_operand(p);
  if (!v) return false;
  *index = op->noperands;
  ir_add_operand(op, v);
  return true;
}

/* + 64 or - 64 */
static bool parse_offset(Parser *p, int64_t *out) {
  bool negative = at_punct(p, '-');
  if (!negative && !at_punct(p, '+')) return expected(p, "`+` and an offset");
  advance(p);
  return parse_literal(p, negative, out);
}

/* ---- insn ---- */

static const IrAttr *parse_arg(Parser *p, IrOp *op) {
  int64_t v[2];
  if (p->tok.kind == TOK_WORD || p->tok.kind == TOK_STRING) {
    const char *field = name_value(p, "a field");
    return field ? ir_attr_str(p->m, field) : NULL;
  }
  if (!at_punct(p, '%')) return parse_int(p, v) ? ir_attr_int(p->m, v[0]) : NULL;
  if (!add_operand(p, op, &v[0])) return NULL;
  if (!at_punct(p, '+') && !at_punct(p, '-')) return ir_attr_ints(p->m, v, 1);
  return parse_offset(p, &v[1]) ? ir_attr_ints(p->m, v, 2) : NULL;
}

/* take %a:1, %b:2 */
static bool parse_sems(Parser *p, IrOp *op, const char *name) {
  List list = {0};
  bool ok = true;
  if (!at_word(p, name)) return true;
  advance(p);
  do {
    int64_t v[2];
    ok = add_operand(p, op, &v[0]) && need_punct(p, ':') && parse_int(p, &v[1]) &&
         list_add(&list, ir_attr_ints(p->m, v, 2));
  } while (ok && take_punct(p, ','));
  return list_finish(p, &list, op, name, ok);
}

static bool parse_insn(Parser *p, IrOp *op) {
  List args = {0};
  bool ok = set_str(p, op, "op", "a mnemonic") && need_punct(p, '(');
  while (ok && !take_punct(p, ')'))
    ok = (!args.n || need_punct(p, ',')) && list_add(&args, parse_arg(p, op));
  return list_finish(p, &args, op, "args", ok) && parse_sems(p, op, "take") &&
         parse_sems(p, op, "give");
}

/* ---- desc ---- */

/* stream 0 = spm s8, after the word */
static const IrAttr *parse_stream(Parser *p, const IrAttr *name) {
  char word[16] = {0};
  DType dtype;
  int64_t k;
  if (!parse_int(p, &k) || !need_punct(p, '=')) return NULL;
  const char *space = p->tok.kind == TOK_WORD ? name_value(p, "a space") : NULL;
  if (space && p->tok.kind == TOK_WORD && p->tok.len < sizeof word)
    memcpy(word, p->tok.text, p->tok.len);
  if (!space || !dtype_parse(word, &dtype)) {
    expected(p, space ? "an element type such as f32" : "spm or acc");
    return NULL;
  }
  advance(p);
  const IrAttr *items[] = {name, ir_attr_int(p->m, k), ir_attr_str(p->m, space),
                           ir_attr_dtype(p->m, dtype)};
  return ir_attr_array(p->m, items, 4);
}

static const IrAttr *parse_field(Parser *p, IrOp *op) {
  int64_t v, cst;
  bool stream = at_word(p, "stream");
  const char *text = name_value(p, "a field");
  if (!text) return NULL;
  const IrAttr *name = ir_attr_str(p->m, text);
  if (stream && !at_punct(p, '=')) return parse_stream(p, name);
  if (!need_punct(p, '=')) return NULL;
  if (!at_punct(p, '%')) {
    if (!parse_int(p, &v)) return NULL;
    return ir_attr_array(p->m, (const IrAttr *[]){name, ir_attr_int(p->m, v)}, 2);
  }
  if (!add_operand(p, op, &v) || !parse_offset(p, &cst)) return NULL;
  const IrAttr *items[] = {name, ir_attr_int(p->m, v), ir_attr_int(p->m, cst)};
  return ir_attr_array(p->m, items, 3);
}

static bool parse_desc(Parser *p, IrOp *op) {
  List fields = {0};
  bool ok = set_str(p, op, "kind", "a kind of descriptor") && need_punct(p, '(');
  while (ok && !take_punct(p, ')'))
    ok = (!fields.n || need_punct(p, ',')) && list_add(&fields, parse_field(p, op));
  return list_finish(p, &fields, op, "fields", ok);
}

/* ---- places ---- */

static bool parse_buffer(Parser *p, IrOp *op) {
  if (!set_str(p, op, "space", "spm or acc") || !set_int(p, op, "bytes")) return false;
  if (at_word(p, "x")) {
    advance(p);
    if (!set_int(p, op, "slots")) return false;
  }
  return set_name(p, op);
}

static bool parse_tensor_op(Parser *p, IrOp *op) {
  if (!set_str(p, op, "role", "what the tensor is for")) return false;
  SrcLoc loc = token_loc(p, &p->tok);
  const IrType *t = parse_type(p);
  if (!t) return false;
  if (t->kind != IR_TYPE_TENSOR)
    return parse_error(p, loc, "E-type", "this needs a tensor type such as f32[4] or f32[]");
  const IrAttr *type[] = {ir_attr_dtype(p->m, t->dtype),
                          ir_attr_ints(p->m, t->shape, (size_t)t->rank)};
  ir_set_attr(op, "type", ir_attr_array(p->m, type, 2));
  return set_name(p, op);
}

static bool parse_sem(Parser *p, IrOp *op) {
  if (!at_word(p, "init")) return true;
  advance(p);
  return set_int(p, op, "init");
}

/* ---- control, after the first operand ---- */

static bool parse_for(Parser *p, IrOp *op) {
  int64_t bound;
  if (!need_punct(p, '=') || !set_int(p, op, "lo") || !need_word(p, "to", "`to`")) return false;
  if (!(at_punct(p, '%') ? add_operand(p, op, &bound) : set_int(p, op, "hi"))) return false;
  return need_word(p, "step", "`step`") && set_int(p, op, "step");
}

static bool parse_if(Parser *p, IrOp *op) {
  int64_t other;
  return set_str(p, op, "cond", "eq, ne, lt or ge") && add_operand(p, op, &other);
}

static bool parse_hand_over(Parser *p, IrOp *op) {
  bool write = at_word(p, "write");
  if (!write && !at_word(p, "read")) return expected(p, "read or write");
  advance(p);
  ir_set_attr(op, "write", ir_attr_bool(p->m, write));
  return set_str(p, op, "engine", "an engine");
}

bool parse_form(Parser *p, IrOp *op, bool *form) {
  bool first = op->noperands == 1; /* else nothing but the mnemonic has been read */
  bool word = p->tok.kind == TOK_WORD, string = p->tok.kind == TOK_STRING;
  *form = true;
  switch (op->kind) {
  case IR_OP_REG: return true;
  case IR_OP_SEM: return parse_sem(p, op);
  case IR_OP_RETURN: *form = !first; return true;
  case IR_OP_INSN:
    if (!first && word) return parse_insn(p, op);
    break;
  case IR_OP_DESC:
    if (!first && word) return parse_desc(p, op);
    break;
  case IR_OP_BUFFER:
    if (!first && word) return parse_buffer(p, op);
    break;
  case IR_OP_TENSOR:
    if (!first && word) return parse_tensor_op(p, op);
    break;
  case IR_OP_VPROG:
    if (string) return set_str(p, op, "text", "a vector program in quotes");
    break;
  case IR_OP_SECTION:
    if (string) return set_name(p, op);
    break;
  case IR_OP_FOR:
    if (first && at_punct(p, '=')) return parse_for(p, op);
    break;
  case IR_OP_IF:
    if (first && word) return parse_if(p, op);
    break;
  case IR_OP_ACQUIRE:
  case IR_OP_RELEASE:
    if (first && word) return parse_hand_over(p, op);
    break;
  default: break;
  }
  *form = false;
  return true;
}
