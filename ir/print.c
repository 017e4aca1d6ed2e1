/* Text form, writing. The grammar is in ir/README.md; parse.c reads it back.
 * Names are made unique function-wide (per kernel body inside kernels) in order of appearance, so
 * that printing what was parsed gives the same text. Attributes that equal their declared default
 * are left out; the parser puts them back. */
#include "ir/print.h"

#include <ctype.h>
#include <string.h>

/* ---- names ---- */

typedef struct Taken { /* a printed name, with its next suffix to try */
  UT_hash_handle hh;
  int next;
  char name[];
} Taken;

typedef struct Scope {
  Taken *taken;
  int next_number;
} Scope;

static Taken *taken_find(Scope *s, const char *name) {
  Taken *t = NULL;
  HASH_FIND_STR(s->taken, name, t);
  return t;
}

static void taken_add(Scope *s, const char *name) {
  size_t len = strlen(name);
  Taken *t = mem_alloc(sizeof *t + len + 1);
  memcpy(t->name, name, len);
  t->next = 1;
  HASH_ADD_KEYPTR(hh, s->taken, t->name, len, t);
}

static void scope_free(Scope *s) {
  Taken *t, *next;
  HASH_ITER(hh, s->taken, t, next) {
    HASH_DEL(s->taken, t);
    mem_free(t);
  }
}

bool text_is_word(const char *s) {
  if (!isalpha((unsigned char)*s) && *s != '_') return false;
  for (; *s; s++)
    if (!isalnum((unsigned char)*s) && *s != '_' && *s != '.') return false;
  return true;
}

/* Gives v its printed name: its hint, the hint with a number when that is taken, or a number. */
static void name_value(Printer *p, Scope *s, const IrValue *v) {
  StrBuf b = {0};
  if (!v->name) {
    strbuf_printf(&b, "%d", s->next_number++);
  } else {
    strbuf_puts(&b, v->name);
    Taken *t = taken_find(s, v->name);
    while (t && taken_find(s, b.data)) {
      b.len = 0;
      strbuf_printf(&b, "%s_%d", v->name, t->next++);
    }
    taken_add(s, b.data);
    if (!text_is_word(v->name)) { /* quoted, so that it can be anything, "7" included */
      StrBuf quoted = {0};
      strbuf_quote(&quoted, b.data);
      strbuf_free(&b);
      b = quoted;
    }
  }
  ptr_map_put(&p->names, v, b.data);
}

static void name_block(Printer *p, Scope *s, const IrBlock *b) {
  for (int i = 0; i < b->nargs; i++) name_value(p, s, b->args[i]);
  for (const IrOp *op = b->first; op; op = op->next) {
    for (int i = 0; i < op->nresults; i++) name_value(p, s, &op->results[i]);
    if (!op->region) continue;
    if (op->kind == IR_OP_KERNEL) {
      Scope inner = {0};
      name_block(p, &inner, op->region);
      scope_free(&inner);
    } else {
      name_block(p, s, op->region);
    }
  }
}

void print_value(Printer *p, const IrValue *v) {
  const char *name = v ? ptr_map_get(p->names, v) : NULL;
  strbuf_printf(p->out, "%%%s",
                name                                    ? name
                : v && v->name && text_is_word(v->name) ? v->name
                                                        : "?");
}

static void printer_free(Printer *p) {
  for (PtrMap *e = p->names; e; e = e->hh.next) mem_free(e->value);
  ptr_map_free(&p->names);
}

/* ---- ops ---- */

void print_word(StrBuf *b, const char *s) {
  if (text_is_word(s))
    strbuf_puts(b, s);
  else
    strbuf_quote(b, s);
}

static void print_loc(Printer *p, SrcLoc loc) {
  if (!p->options.locations) return;
  if (!loc.line || !loc.file) {
    strbuf_puts(p->out, " loc(unknown)");
    return;
  }
  strbuf_puts(p->out, " loc(");
  print_path(p->out, p->options.paths, loc.file);
  strbuf_printf(p->out, ":%u:%u", loc.line, loc.col);
  if (loc.end_line || loc.end_col) strbuf_printf(p->out, "-%u:%u", loc.end_line, loc.end_col);
  strbuf_putc(p->out, ')');
}

static bool is_shown(const FormText *f, const char *name) {
  for (int i = 0; i < f->nshown; i++)
    if (!strcmp(f->shown[i], name)) return true;
  return false;
}

/* Those of op (or, when it is NULL, of a function) that its form does not show. lead stands before
 * the first. */
static void print_attrs(Printer *p, const IrNamedAttr *attrs, int n, const IrOp *op,
                        const FormText *f, const char *lead) {
  const char *dims[IR_MAX_DIMS];
  AttrStyle style = {
      .m = p->m, .dims = dims, .elide_data = p->options.elide_data, .paths = p->options.paths};
  int printed = 0;
  style.ndims = op ? kernel_dim_names(ir_attr(op, "dims"), dims) : -1;
  for (int i = 0; i < n; i++) {
    if (op && is_default(op, attrs[i].name, attrs[i].value)) continue;
    if (is_shown(f, attrs[i].name)) continue;
    strbuf_puts(p->out, printed++ ? ", " : lead);
    print_word(p->out, attrs[i].name);
    strbuf_puts(p->out, " = ");
    print_attr(p->out, &style, attrs[i].value);
  }
  if (printed) strbuf_putc(p->out, '}');
}

static void print_types(Printer *p, const IrOp *op) {
  strbuf_puts(p->out, " : (");
  for (int i = 0; i < op->noperands; i++) {
    if (i) strbuf_puts(p->out, ", ");
    if (ir_operand(op, i))
      ir_type_print(p->out, ir_operand(op, i)->type);
    else
      strbuf_putc(p->out, '?');
  }
  strbuf_puts(p->out, op->nresults == 1 ? ") -> " : ") -> (");
  for (int i = 0; i < op->nresults; i++) {
    if (i) strbuf_puts(p->out, ", ");
    ir_type_print(p->out, op->results[i].type);
  }
  if (op->nresults != 1) strbuf_putc(p->out, ')');
}

/* Whether the results are those that an op in its form has without saying so. */
static bool implied_results(const IrOp *op) {
  const char *token = form_result(op->kind);
  if (!token) return !op->nresults;
  const IrType *t = op->nresults == 1 ? op->results[0].type : NULL;
  return t && t->kind == IR_TYPE_TOKEN && !strcmp(t->token, token);
}

static void print_block(Printer *p, const IrBlock *b);

static void newline(Printer *p) {
  strbuf_putc(p->out, '\n');
  for (int i = 0; i < p->indent; i++) strbuf_puts(p->out, "  ");
}

static void print_args(Printer *p, const IrBlock *b) {
  strbuf_putc(p->out, '(');
  for (int i = 0; i < b->nargs; i++) {
    if (i) strbuf_puts(p->out, ", ");
    print_value(p, b->args[i]);
    strbuf_puts(p->out, ": ");
    ir_type_print(p->out, b->args[i]->type);
  }
  strbuf_putc(p->out, ')');
}

static void print_op(Printer *p, const IrOp *op, bool region) {
  for (int i = 0; i < op->nresults; i++) {
    if (i) strbuf_puts(p->out, ", ");
    print_value(p, &op->results[i]);
  }
  if (op->nresults) strbuf_puts(p->out, " = ");
  strbuf_puts(p->out, ir_op_info(op->kind)->name);
  FormText f = {0};
  bool form = print_form(p, op, &f);
  for (int i = 0; i < op->noperands && !form; i++) {
    strbuf_puts(p->out, i ? ", " : " ");
    print_value(p, ir_operand(op, i));
  }
  print_attrs(p, op->attrs, op->nattrs, op, &f, form && op->region ? " attributes {" : " {");
  if (!form || !implied_results(op)) print_types(p, op);
  print_loc(p, op->loc);
  if (!op->region || !region) return;
  strbuf_puts(p->out, " {");
  if (!form) {
    strbuf_puts(p->out, " ^");
    print_args(p, op->region);
    strbuf_putc(p->out, ':');
  }
  print_block(p, op->region);
  newline(p);
  strbuf_putc(p->out, '}');
}

static void print_block(Printer *p, const IrBlock *b) {
  p->indent++;
  for (const IrOp *op = b->first; op; op = op->next) {
    newline(p);
    print_op(p, op, true);
  }
  p->indent--;
}

static void print_results(Printer *p, const IrFunc *f) {
  const IrOp *ret = f->body->last;
  if (!ret || ret->kind != IR_OP_RETURN) ret = NULL;
  strbuf_puts(p->out, " -> (");
  for (int i = 0; i < f->nresults; i++) {
    if (i) strbuf_puts(p->out, ", ");
    print_word(p->out, f->result_names[i] ? f->result_names[i] : "");
    if (!ret || i >= ret->noperands || !ir_operand(ret, i)) continue;
    strbuf_puts(p->out, ": ");
    ir_type_print(p->out, ir_operand(ret, i)->type);
  }
  strbuf_putc(p->out, ')');
}

static const char *level_name(IrLevel level) {
  return level == IR_GRAPH ? "graph" : level == IR_NEST ? "nest" : "program";
}

static void print_func(Printer *p, const IrFunc *f) {
  Scope scope = {0};
  name_block(p, &scope, f->body);
  scope_free(&scope);
  strbuf_puts(p->out, "func @");
  print_word(p->out, f->name);
  print_args(p, f->body);
  print_results(p, f);
  strbuf_printf(p->out, " level %s", level_name(f->level));
  print_attrs(p, f->attrs, f->nattrs, NULL, &(FormText){0}, " attributes {");
  print_loc(p, f->loc);
  strbuf_puts(p->out, " {");
  print_block(p, f->body);
  strbuf_puts(p->out, "\n}\n");
}

void ir_print_with(const IrModule *m, StrBuf *out, const IrPrintOptions *options) {
  for (int i = 0; i < m->nfuncs; i++) {
    Printer p = {.m = m, .out = out, .options = *options};
    if (i) strbuf_putc(out, '\n');
    print_func(&p, m->funcs[i]);
    printer_free(&p);
  }
}

void ir_print(const IrModule *m, StrBuf *out, bool locations) {
  ir_print_with(m, out, &(IrPrintOptions){.locations = locations});
}

void ir_print_op(const IrModule *m, const IrOp *op, StrBuf *out) {
  Printer p = {.m = m, .out = out, .options.elide_data = TEXT_LIST_ELEMENTS};
  Scope scope = {0};
  const IrFunc *f = op->parent ? ir_block_func(op->parent) : NULL;
  if (f) name_block(&p, &scope, f->body); /* the names it has in a full dump */
  scope_free(&scope);
  print_op(&p, op, false);
  printer_free(&p);
}
