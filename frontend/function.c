/* Calls of the file's own functions: lowered in place, with tensors for () and compile-time values
 * for []. */
#include <string.h>

#include "frontend/lower.h"

#define MAX_CALLS 100 /* one inside the other */

typedef struct {
  const Node *fn, *call;
  Value *tensors; /* per () parameter */
  SrcLoc *tensor_locs;
  Value *consts; /* per [] parameter */
  SrcLoc *const_locs;
  bool ok, poisoned;
} FnCall;

static void fn_error(Lower *l, FnCall *c, SrcLoc loc, const char *message) {
  lower_error(l, loc, "E-arg", "%s", message);
  lower_note(l, c->fn->name_loc, "`%s` is defined here", c->fn->name);
  c->ok = false;
}

static const Node *nth(NodeList list, size_t i) {
  const Node *n = list.first;
  while (n && i--) n = n->next;
  return n;
}

/* Position of a parameter called name among (), then []; -1 when there is none. */
static int find(const Node *fn, const char *name) {
  int i = 0;
  NODE_EACH(p, fn->args) {
    if (p->name == name) return i;
    i++;
  }
  NODE_EACH(p, fn->list2) {
    if (p->name == name) return i;
    i++;
  }
  return -1;
}

static void unknown_argument(Lower *l, FnCall *c, const Node *arg) {
  const char **names = ARENA_ARRAY(l->arena, const char *, c->fn->args.n + c->fn->list2.n + 1);
  size_t n = 0;
  NODE_EACH(p, c->fn->args) names[n++] = p->name;
  NODE_EACH(p, c->fn->list2) names[n++] = p->name;
  const char *near = str_nearest(arg->name, names, n);
  StrBuf b = {0};
  strbuf_printf(&b, "`%s` has no argument `%s`", c->fn->name, arg->name);
  if (near) strbuf_printf(&b, "; did you mean `%s`?", near);
  fn_error(l, c, arg->name_loc, b.data);
  strbuf_free(&b);
}

static void set(Lower *l, FnCall *c, size_t i, const Node *value) {
  Value v = eval_one(l, value);
  bool is_tensor = i < c->fn->args.n;
  size_t j = is_tensor ? i : i - c->fn->args.n;
  SrcLoc *loc = is_tensor ? &c->tensor_locs[j] : &c->const_locs[j];
  const char *name = nth(is_tensor ? c->fn->args : c->fn->list2, j)->name;
  StrBuf b = {0};
  if (loc->line) {
    strbuf_printf(&b, "argument `%s` is given twice", name);
    fn_error(l, c, value->loc, b.data);
  } else if (!is_tensor && v.kind == VALUE_TENSOR) {
    strbuf_printf(&b, "argument `%s` of `%s` is known at compile time, found a tensor", name,
                  c->fn->name);
    fn_error(l, c, value->loc, b.data);
  }
  strbuf_free(&b);
  *loc = value->loc;
  if (v.kind == VALUE_POISON) c->poisoned = true;
  *(is_tensor ? &c->tensors[j] : &c->consts[j]) = v;
}

static void bind_list(Lower *l, FnCall *c, NodeList args, size_t first) {
  size_t next = first, total = c->fn->args.n + c->fn->list2.n;
  bool named = false;
  NODE_EACH(arg, args) {
    bool is_arg = arg->kind == NODE_ARG;
    const Node *value = is_arg ? arg->a : arg;
    if (is_arg && arg->name) {
      named = true;
      int i = find(c->fn, arg->name);
      if (i >= 0)
        set(l, c, (size_t)i, value);
      else {
        unknown_argument(l, c, arg);
        eval(l, value);
      }
    } else if (named) {
      fn_error(l, c, value->loc, "positional arguments come before named ones");
    } else if (next >= total) {
      StrBuf b = {0};
      strbuf_printf(&b, "`%s` takes %zu arguments, found more", c->fn->name, total);
      fn_error(l, c, value->loc, b.data);
      strbuf_free(&b);
      return;
    } else {
      set(l, c, next++, value);
    }
  }
}

static void check_given(Lower *l, FnCall *c, const char *what, NodeList params,
                        const SrcLoc *given) {
  StrBuf b = {0};
  NODE_EACH(p, params) {
    if ((given++)->line || (p->kind == NODE_PARAM && p->a)) continue;
    if (!b.len)
      strbuf_printf(&b, "`%s` lacks its %s `%s`", c->fn->name, what, p->name);
    else
      strbuf_printf(&b, ", `%s`", p->name);
  }
  if (b.len) fn_error(l, c, c->call->loc, b.data);
  strbuf_free(&b);
}

static bool too_deep(Lower *l, const Node *fn, SrcLoc loc) {
  int depth = 0;
  for (const Scope *s = l->scope; s; s = s->caller) {
    depth++;
    if (s->decl != fn) continue;
    lower_error(l, loc, "E-recursion", "`%s` calls itself", fn->name);
    return true;
  }
  if (depth <= MAX_CALLS) return false;
  lower_stop(l, loc, "functions call each other more than %d deep", MAX_CALLS);
  return true;
}

static bool named_once(Lower *l, const Node *p) {
  const Binding *old = scope_find(l->scope, p->name);
  if (!old) return true;
  lower_error(l, p->loc, "E-duplicate", "the argument `%s` is declared twice", p->name);
  lower_note(l, old->loc, "first declared here");
  return false;
}

/* Names of arguments, defaults, declared types. In the function's scope. */
static bool bind_parameters(Lower *l, FnCall *c) {
  size_t i = 0;
  bool ok = true;
  NODE_EACH(p, c->fn->args) {
    Value v = c->tensors[i];
    if (v.kind == VALUE_TENSOR || !v.from.line) v.from = c->tensor_locs[i];
    ok &= named_once(l, p);
    scope_bind(l, p->name, BIND_INPUT, v, p->loc, p);
    i++;
  }
  i = 0;
  NODE_EACH(p, c->fn->list2) {
    Value v = c->const_locs[i].line ? c->consts[i] : eval_one(l, p->a);
    ok &= named_once(l, p);
    scope_bind(l, p->name, BIND_PARAM, v, p->loc, p);
    ok &= v.kind != VALUE_POISON;
    i++;
  }
  i = 0;
  NODE_EACH(p, c->fn->args) {
    if (p->a) {
      const IrType *type = eval_type(l, p->a, p->name);
      Binding *b = scope_find(l->scope, p->name);
      b->value = type ? check_declared(l, b->value, p, type, "argument", c->tensor_locs[i])
                      : value_poison();
      ok &= b->value.kind != VALUE_POISON;
    }
    i++;
  }
  return ok;
}

static Value check_results(Lower *l, const Node *fn, Scope *s, SrcLoc loc) {
  if (!s->returned) {
    if (!l->stopped && !l->program->failed) {
      lower_error(l, fn->name_loc, "E-return", "`%s` returns nothing", fn->name);
    }
    return value_poison();
  }
  Value v = s->result;
  v.from = loc;
  if (fn->outs.n == 0) return v;
  Value *items = v.kind == VALUE_TUPLE ? v.list.items : &v;
  size_t n = v.kind == VALUE_TUPLE ? v.list.n : 1, i = 0;
  if (n != fn->outs.n) {
    lower_error(l, s->return_stmt->loc, "E-return", "`%s` declares %zu results, this returns %zu",
                fn->name, fn->outs.n, n);
    return value_poison();
  }
  const Node *next = s->return_stmt->list.first;
  NODE_EACH(out, fn->outs) {
    const IrType *type = out->a ? eval_type(l, out->a, out->name) : NULL;
    SrcLoc place = return_place(s, &next);
    if (type) items[i] = check_declared(l, items[i], out, type, "result", place);
    i++;
  }
  return v;
}

Value call_function(Lower *l, const Node *call, const Global *g) {
  const Node *fn = g->decl;
  size_t na = fn->args.n, nc = fn->list2.n;
  FnCall c = {fn,
              call,
              ARENA_ARRAY(l->arena, Value, na + 1),
              ARENA_ARRAY(l->arena, SrcLoc, na + 1),
              ARENA_ARRAY(l->arena, Value, nc + 1),
              ARENA_ARRAY(l->arena, SrcLoc, nc + 1),
              true,
              false};
  if (fn->i || g->recursive) return value_poison(); /* reported */
  if (too_deep(l, fn, call->loc)) return value_poison();
  bind_list(l, &c, call->list2, na);
  /* Compile-time arguments given in [] are not asked for again in (). */
  bind_list(l, &c, call->list, 0);
  if (c.ok) {
    check_given(l, &c, "argument", fn->args, c.tensor_locs);
    check_given(l, &c, "compile-time argument", fn->list2, c.const_locs);
  }
  if (!c.ok || c.poisoned || l->stopped) return value_poison();
  Scope scope;
  Value v = value_poison();
  scope_push(l, &scope, fn, call->loc);
  if (bind_parameters(l, &c)) {
    exec_block(l, fn->list);
    v = check_results(l, fn, &scope, call->loc);
  }
  scope_pop(l);
  return l->stopped ? value_poison() : v;
}
