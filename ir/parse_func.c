/* Text form, reading: functions and whole modules. */
#include "ir/parse.h"

#include <string.h>

typedef struct {
  const char **names;
  const IrType **types; /* NULL where none was written */
  int n;
} Results;

static bool parse_results(Parser *p, Results *r) {
  if (p->tok.kind != TOK_ARROW) return expected(p, "`->`");
  advance(p);
  if (!need_punct(p, '(')) return false;
  while (!take_punct(p, ')')) {
    if (r->n && !need_punct(p, ',')) return false;
    if (r->n + 1 > capacity_for(r->n) || !r->names) {
      size_t cap = (size_t)capacity_for(r->n + 1);
      const char **names = ARENA_ARRAY(p->m->arena, const char *, cap);
      const IrType **types = ARENA_ARRAY(p->m->arena, const IrType *, cap);
      if (r->n) memcpy(names, r->names, sizeof *names * (size_t)r->n);
      if (r->n) memcpy(types, r->types, sizeof *types * (size_t)r->n);
      r->names = names;
      r->types = types;
    }
    if (!(r->names[r->n++] = name_value(p, "a result name"))) return false;
    if (take_punct(p, ':') && !(r->types[r->n - 1] = parse_type(p))) return false;
  }
  return true;
}

static bool check_results(Parser *p, const IrFunc *f, const Results *r, SrcLoc loc) {
  const IrOp *ret = f->body->last;
  if (!ret || ret->kind != IR_OP_RETURN) return true; /* the verifier says so */
  for (int i = 0; i < r->n && i < ret->noperands; i++) {
    if (!r->types[i] || r->types[i] == ir_operand(ret, i)->type) continue;
    StrBuf text = {0};
    ir_type_print(&text, ir_operand(ret, i)->type);
    parse_error(p, loc, "E-type",
                "result `%.60s` of @%.60s is declared with another type than the %s "
                "returned",
                r->names[i], f->name, text.data);
    strbuf_free(&text);
    return false;
  }
  return true;
}

static bool parse_level(Parser *p, IrFunc *f) {
  static const struct {
    const char *name;
    IrLevel level;
  } levels[] = {{"graph", IR_GRAPH}, {"nest", IR_NEST}, {"program", IR_PROGRAM}};
  if (!at_word(p, "level")) return expected(p, "`level`");
  advance(p);
  for (size_t i = 0; i < NPU_COUNTOF(levels); i++) {
    if (!at_word(p, levels[i].name)) continue;
    f->level = levels[i].level;
    advance(p);
    return true;
  }
  return expected(p, "graph, nest or program");
}

/* attributes {a = 1}: the word tells them from the body. */
static bool parse_func_attrs(Parser *p, IrFunc *f) {
  if (!at_word(p, "attributes")) return true;
  advance(p);
  return at_punct(p, '{') ? parse_attrs(p, NULL, f) : expected(p, "`{`");
}

static bool parse_func(Parser *p) {
  SrcLoc loc = token_loc(p, &p->tok);
  if (!at_word(p, "func")) return expected(p, "`func`");
  advance(p);
  if (!need_punct(p, '@')) return false;
  const char *name = name_value(p, "a function name after `@`");
  if (!name) return false;
  IrFunc *f = ir_func_new(p->m, name, IR_GRAPH);
  ParseScope scope = {0};
  Results results = {0};
  f->loc = loc;
  p->scope = &scope;
  bool ok = parse_args(p, f->body) && parse_results(p, &results) && parse_level(p, f) &&
            parse_func_attrs(p, f) && parse_loc(p, &f->loc) && need_punct(p, '{') &&
            parse_block(p, f->body, 0) && need_punct(p, '}');
  scope_leave(p, &scope, NULL);
  f->result_names = results.names;
  f->nresults = results.n;
  return ok && check_results(p, f, &results, loc);
}

IrModule *ir_parse(const char *text, size_t len, const char *label, DiagEngine *diag) {
  IrModule *m = ir_module_new(diag);
  Parser p = {.m = m, .diag = diag, .file = ir_str(m, label), .ndims = -1};
  p.lex = (Lexer){.text = text, .len = len, .line = 1};
  diag_add_source(diag, label, text, len);
  advance(&p);
  while (!p.failed && p.tok.kind != TOK_END)
    if (!parse_func(&p)) break;
  strbuf_free(&p.scratch);
  if (!p.failed) return m;
  ir_module_free(m);
  return NULL;
}
