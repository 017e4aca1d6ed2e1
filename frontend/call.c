/* Calls of operators, driven by the signatures of the op table: a row of ir/ops.def is callable as
 * soon as it exists. Positional arguments are tensors, then the attributes nobody omits; the rest
 * is named. */
#include <string.h>

#include "frontend/lower.h"

typedef struct {
  const char *op; /* spelling */
  IrOpKind kind;
  const IrParam *params;
  int nparams;
  Value *operands; /* per parameter, variadic ones apart */
  Value *variadic;
  size_t nvariadic;
  const IrAttr **attrs; /* per parameter */
  SrcLoc *given;        /* per parameter; line 0: not given */
  bool ok;              /* nothing wrong so far */
  bool poisoned;        /* an argument has no value */
} OpCall;

/* ---- which ops, and how they look ---- */

/* A tensor function of tensors; not constants, states, control or what other levels have. */
static bool callable(IrOpKind kind) {
  const IrOpInfo *info = ir_op_info(kind);
  const IrParam *params;
  int n = ir_op_params(kind, &params);
  return (info->levels & IR_GRAPH) && (info->traits & IR_PURE) && !(info->traits & IR_CONSTANT) &&
         info->nresults != 0 && n > 0 && params[0].is_operand;
}

bool callable_op(const char *name, IrOpKind *out) {
  return ir_op_by_name(name, out) && callable(*out);
}

void op_signature(StrBuf *b, IrOpKind kind) {
  const IrParam *params;
  int n = ir_op_params(kind, &params);
  strbuf_printf(b, "%s(", ir_op_info(kind)->name);
  for (int i = 0; i < n; i++) {
    const IrParam *p = &params[i];
    const char *sep = i ? ", " : "";
    if (p->variadic)
      strbuf_printf(b, "%s%s, ...", sep, p->name);
    else if (p->is_operand && p->optional)
      strbuf_printf(b, "%s%s = none", sep, p->name);
    else if (p->is_operand || !p->dflt)
      strbuf_printf(b, "%s%s", sep, p->name);
    else if (strcmp(p->type, "str") == 0)
      strbuf_printf(b, "%s%s = \"%s\"", sep, p->name, p->dflt);
    else
      strbuf_printf(b, "%s%s = %s", sep, p->name, p->dflt);
  }
  strbuf_putc(b, ')');
}

static void call_error(Lower *l, OpCall *c, SrcLoc loc, const char *message) {
  StrBuf b = {0};
  op_signature(&b, c->kind);
  lower_error(l, loc, "E-arg", "%s", message);
  lower_note(l, SRC_LOC_NONE, "the call is %s", b.data);
  strbuf_free(&b);
  c->ok = false;
}

/* ---- attributes ---- */

static bool all_ints(Value v, int depth) {
  if (v.kind == VALUE_INT) return true;
  if (v.kind != VALUE_LIST || depth == 0) return false;
  for (size_t i = 0; i < v.list.n; i++)
    if (!all_ints(v.list.items[i], depth - 1)) return false;
  return true;
}

/* What a value of an attribute type looks like, or NULL when v is one. */
static const char *attr_mismatch(const char *type, Value v) {
  if (strcmp(type, "int") == 0) return v.kind == VALUE_INT ? NULL : "an integer";
  if (strcmp(type, "float") == 0) return value_is_number(v) ? NULL : "a number";
  if (strcmp(type, "bool") == 0) return v.kind == VALUE_BOOL ? NULL : "true or false";
  if (strcmp(type, "str") == 0) return v.kind == VALUE_TEXT ? NULL : "a text";
  if (strcmp(type, "dtype") == 0)
    return v.kind == VALUE_DTYPE ? NULL : "an element type: s8, bf16, f32 or s32";
  if (strcmp(type, "ints") == 0) return all_ints(v, 1) ? NULL : "an integer or a list of integers";
  if (strcmp(type, "axes") == 0) return all_ints(v, 1) ? NULL : "an axis or a list of axes";
  if (strcmp(type, "pads") == 0)
    return all_ints(v, 1) || (v.kind == VALUE_TEXT && strcmp(v.s, "same") == 0)
               ? NULL
               : "an integer, [h, w], [top, left, bottom, right] or \"same\"";
  return value_is_const(v) ? NULL : "a compile-time value";
}

static void set_attr(Lower *l, OpCall *c, int i, Value v, SrcLoc loc) {
  const IrParam *p = &c->params[i];
  const char *want = attr_mismatch(p->type, v);
  if (!want) {
    if (strcmp(p->type, "float") == 0) v = value_real(value_number(v));
    c->attrs[i] = lower_attr(l, v);
    if (c->attrs[i]) return;
    want = "a compile-time value";
  }
  StrBuf b = {0}, found = {0};
  value_describe(&found, v);
  strbuf_printf(&b, "argument `%s` of `%s` is %s, found %s", p->name, c->op, want, found.data);
  call_error(l, c, loc, b.data);
  strbuf_free(&b);
  strbuf_free(&found);
}

/* ---- binding of arguments ---- */

static bool takes_literals(const OpCall *c) {
  return (ir_op_info(c->kind)->traits & IR_ELEMENTWISE) || c->kind == IR_OP_BROADCAST;
}

static bool check_operand(Lower *l, OpCall *c, const char *name, Value v, SrcLoc loc) {
  bool number = value_is_number(v) || v.kind == VALUE_LIST || v.kind == VALUE_BOOL;
  if (v.kind == VALUE_TENSOR || (number && takes_literals(c))) return true;
  StrBuf b = {0}, found = {0};
  value_describe(&found, v);
  strbuf_printf(&b, "argument `%s` of `%s` is a tensor, found %s", name, c->op, found.data);
  call_error(l, c, loc, b.data);
  strbuf_free(&b);
  strbuf_free(&found);
  return false;
}

static void set_param(Lower *l, OpCall *c, int i, Value v, SrcLoc loc) {
  const IrParam *p = &c->params[i];
  if (!p->variadic && c->given[i].line) {
    StrBuf b = {0};
    strbuf_printf(&b, "argument `%s` is given twice", p->name);
    call_error(l, c, loc, b.data);
    strbuf_free(&b);
    return;
  }
  c->given[i] = loc;
  if (v.kind == VALUE_POISON) {
    c->poisoned = true;
    return;
  }
  if (!p->is_operand) {
    set_attr(l, c, i, v, loc);
  } else if (check_operand(l, c, p->name, v, loc)) {
    v.from = v.from.line ? v.from : loc;
    if (p->variadic)
      c->variadic[c->nvariadic++] = v;
    else
      c->operands[i] = v;
  }
}

/* The parameter the next positional argument goes to: operands in order, then attributes as long as
 * they have no default, or the first one. -1: none. */
static int next_positional(const OpCall *c, int *next) {
  if (*next >= c->nparams) return -1;
  const IrParam *p = &c->params[*next];
  if (p->variadic) return *next; /* takes all */
  bool first_attr = !p->is_operand && (*next == 0 || c->params[*next - 1].is_operand);
  if (!p->is_operand && p->dflt && !first_attr) return -1;
  return (*next)++;
}

static int find_param(Lower *l, OpCall *c, const Node *arg) {
  const char **names = ARENA_ARRAY(l->arena, const char *, c->nparams + 1);
  for (int i = 0; i < c->nparams; i++) {
    if (strcmp(c->params[i].name, arg->name) == 0) return i;
    names[i] = c->params[i].name;
  }
  const char *near = str_nearest(arg->name, names, (size_t)c->nparams);
  StrBuf b = {0};
  strbuf_printf(&b, "`%s` has no argument `%s`", c->op, arg->name);
  if (near) strbuf_printf(&b, "; did you mean `%s`?", near);
  call_error(l, c, arg->name_loc, b.data);
  strbuf_free(&b);
  return -1;
}

/* `none` is what signatures show for an argument that is left out. */
static bool is_none(Lower *l, const Node *n) {
  return n->kind == NODE_NAME && strcmp(n->name, "none") == 0 && !scope_find(l->scope, n->name) &&
         !program_find(l->program, n->name);
}

static bool may_be_none(const IrParam *p) {
  return p->is_operand ? p->optional : p->dflt && strcmp(p->dflt, "none") == 0;
}

static void bind_arguments(Lower *l, OpCall *c, const Node *call) {
  int next = 0;
  bool named = false;
  NODE_EACH(arg, call->list) {
    bool none = is_none(l, arg->a);
    Value v = none ? value_poison() : eval_one(l, arg->a);
    int i;
    if (arg->name) {
      named = true;
      i = find_param(l, c, arg);
    } else {
      if (named) {
        call_error(l, c, arg->loc, "positional arguments come before named ones");
        return;
      }
      i = next_positional(c, &next);
      if (i < 0) {
        const char *name = next < c->nparams ? c->params[next].name : NULL;
        StrBuf b = {0};
        strbuf_printf(&b, "too many positional arguments for `%s`", c->op);
        if (name) strbuf_printf(&b, "; write `%s = ...`", name);
        call_error(l, c, arg->loc, b.data);
        strbuf_free(&b);
        return;
      }
    }
    if (i < 0 || (none && may_be_none(&c->params[i]))) continue;
    if (none) v = eval_one(l, arg->a); /* an error: nothing has that name */
    set_param(l, c, i, v, arg->a->loc);
  }
}

/* Required parameters are there, and optional operands without a gap. */
static void check_complete(Lower *l, OpCall *c, const Node *call) {
  int missing = -1;
  StrBuf b = {0};
  for (int i = 0; i < c->nparams; i++) {
    const IrParam *p = &c->params[i];
    bool required = p->is_operand ? !p->optional : !p->dflt;
    if (c->given[i].line || !required) continue;
    if (!b.len)
      strbuf_printf(&b, "`%s` lacks its argument `%s`", c->op, p->name);
    else
      strbuf_printf(&b, ", `%s`", p->name);
  }
  if (b.len) call_error(l, c, call->loc, b.data);
  for (int i = 0; i < c->nparams && c->ok; i++) {
    const IrParam *p = &c->params[i];
    if (!p->is_operand) continue;
    if (c->given[i].line == 0 && missing < 0) missing = i;
    if (c->given[i].line && missing >= 0) {
      strbuf_printf(&b, "`%s` needs `%s` as well", p->name, c->params[missing].name);
      call_error(l, c, c->given[i], b.data);
    }
  }
  strbuf_free(&b);
}

/* ---- the call ---- */

static Value build(Lower *l, OpCall *c, SrcLoc loc) {
  size_t n = 0, nattrs = 0;
  Value *operands = ARENA_ARRAY(l->arena, Value, (size_t)c->nparams + c->nvariadic + 1);
  IrAttrInit *attrs = ARENA_ARRAY(l->arena, IrAttrInit, c->nparams + 1);
  for (int i = 0; i < c->nparams; i++) {
    const IrParam *p = &c->params[i];
    if (p->variadic) {
      if (c->nvariadic) memcpy(operands + n, c->variadic, c->nvariadic * sizeof *operands);
      n += c->nvariadic;
    } else if (p->is_operand) {
      if (c->given[i].line) operands[n++] = c->operands[i];
    } else if (c->attrs[i]) {
      attrs[nattrs++] = (IrAttrInit){p->name, c->attrs[i]};
    }
  }
  /* The condition of `where` is no partner in element type of the two values. */
  if (!literal_adapt(l, operands, n, c->kind == IR_OP_WHERE ? 1 : 0, loc)) return value_poison();
  return lower_results(lower_op(l, loc, c->kind, n, operands, nattrs, attrs), loc, l->arena);
}

static bool all_numbers(const OpCall *c) {
  for (int i = 0; i < c->nparams; i++) {
    if (c->params[i].variadic || (c->given[i].line && !c->params[i].is_operand)) return false;
    if (c->given[i].line && !value_is_number(c->operands[i])) return false;
  }
  return true;
}

static Value call_number_function(Lower *l, const Node *n, OpCall *c) {
  Value out = value_poison();
  ValueError why;
  switch (value_function(n->name, c->operands, (size_t)c->nparams, &out, &why)) {
  case NUMBER_DONE: out.from = n->loc; break;
  case NUMBER_NO_FUNCTION: return build(l, c, n->loc);
  case NUMBER_FAILED: lower_error(l, n->loc, why.code, "%s", why.message); return value_poison();
  }
  return out;
}

static Value call_op(Lower *l, const Node *n, IrOpKind kind) {
  OpCall c = {.op = n->name, .kind = kind, .ok = true};
  c.nparams = ir_op_params(kind, &c.params);
  c.operands = ARENA_ARRAY(l->arena, Value, c.nparams + 1);
  c.attrs = ARENA_ARRAY(l->arena, const IrAttr *, c.nparams + 1);
  c.given = ARENA_ARRAY(l->arena, SrcLoc, c.nparams + 1);
  c.variadic = ARENA_ARRAY(l->arena, Value, n->list.n + 1);
  if (n->list2.n) {
    call_error(l, &c, n->list2.first->loc, "operators take all their arguments in ()");
    return value_poison();
  }
  bind_arguments(l, &c, n);
  if (c.ok) check_complete(l, &c, n);
  if (!c.ok || c.poisoned || l->stopped) return value_poison();
  /* min, sqrt, ... of numbers are numbers. */
  return all_numbers(&c) ? call_number_function(l, n, &c) : build(l, &c, n->loc);
}

static void unknown_call(Lower *l, const Node *n) {
  size_t nbuiltins, count = 0;
  const char *const *builtins = builtin_names(&nbuiltins);
  const char **names = ARENA_ARRAY(l->arena, const char *,
                                   IR_OP_COUNT + nbuiltins + HASH_COUNT(l->program->globals));
  for (int k = 0; k < IR_OP_COUNT; k++)
    if (callable((IrOpKind)k)) names[count++] = ir_op_info((IrOpKind)k)->name;
  for (size_t i = 0; i < nbuiltins; i++) names[count++] = builtins[i];
  for (Global *g = l->program->globals; g; g = g->hh.next)
    if (g->decl->kind == NODE_FN) names[count++] = g->name;
  const char *near = str_nearest(n->name, names, count);
  if (near)
    lower_error(l, n->name_loc, "E-name",
                "there is no operator or function `%s`; did you mean `%s`?", n->name, near);
  else
    lower_error(l, n->name_loc, "E-name",
                "there is no operator or function `%s`; define it with `fn %s(...) { ... }`",
                n->name, n->name);
}

/* Errors inside the arguments of a call that cannot be made are still worth hearing of. */
static void eval_arguments(Lower *l, const Node *n) {
  NODE_EACH(arg, n->list) eval(l, arg->a);
}

Value eval_call(Lower *l, const Node *n) {
  const Global *g = program_find(l->program, n->name);
  if (g && g->decl->kind == NODE_FN) return call_function(l, n, g);
  Value out;
  if (call_builtin(l, n, &out)) return out;
  IrOpKind kind;
  if (callable_op(n->name, &kind)) return call_op(l, n, kind);
  if (!program_may_define(l->program, n->name)) {
    if (g) {
      lower_error(l, n->name_loc, "E-name", "`%s` is a %s and cannot be called", n->name,
                  g->decl->kind == NODE_MODEL ? "model" : "constant");
      lower_note(l, g->decl->name_loc, "defined here");
    } else {
      unknown_call(l, n);
    }
  }
  eval_arguments(l, n);
  return value_poison();
}
