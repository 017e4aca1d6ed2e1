/* Statements, run one after another at compile time. */
#include <string.h>

#include "frontend/lower.h"

static void exec(Lower *l, const Node *n);

/* ---- assignment ---- */

static bool assignable(Lower *l, const Binding *b, const Node *target) {
  static const char *const word[] = {
      [BIND_CONST] = "constant", [BIND_PARAM] = "parameter", [BIND_LOOP] = "loop counter"};
  if (!b || b->kind == BIND_VARIABLE || b->kind == BIND_INPUT || b->kind == BIND_STATE) return true;
  lower_error(l, target->loc, "E-const", "the %s `%s` cannot be assigned; use another name",
              word[b->kind], target->name);
  lower_note(l, b->loc, "defined here");
  return false;
}

static void assign_part(Lower *l, const Node *target, Value v) {
  const Node *base = target->a;
  Binding *b = base->kind == NODE_NAME ? scope_find(l->scope, base->name) : NULL;
  if (b && b->kind == BIND_STATE) {
    state_assign(l, b, target, v, target->loc);
    return;
  }
  if (b && b->value.kind == VALUE_POISON) return;
  if (base->kind == NODE_NAME && program_may_define(l->program, base->name)) return;
  if (base->kind == NODE_NAME)
    lower_error(l, target->loc, "E-state",
                "only a state can be assigned in part, `%s` is none; make a new value with concat, "
                "where or update",
                base->name);
  else
    lower_error(l, target->loc, "E-state", "only a state can be assigned in part");
  if (b) lower_note(l, b->loc, "`%s` is defined here", base->name);
}

static void assign(Lower *l, const Node *target, Value v, SrcLoc value_loc) {
  if (target->kind == NODE_INDEX) {
    assign_part(l, target, v);
    return;
  }
  if (target->kind == NODE_BROKEN) return;
  if (target->kind != NODE_NAME) {
    lower_error(l, target->loc, "E-parse", "only a name, or a part of a state, can be assigned");
    return;
  }
  Binding *b = scope_find(l->scope, target->name);
  if (!assignable(l, b, target)) return;
  if (b && b->kind == BIND_STATE) {
    state_assign(l, b, NULL, v, loc_span(target->loc, value_loc));
    return;
  }
  if (v.kind != VALUE_POISON) v.from = loc_span(target->loc, value_loc);
  scope_bind(l, target->name, b ? b->kind : BIND_VARIABLE, v, target->loc, target);
}

static void exec_assign(Lower *l, const Node *n) {
  size_t targets = n->list.n, count = 0;
  Value *values = ARENA_ARRAY(l->arena, Value, n->list2.n + 1);
  const Node *last = n->list2.last;
  if (n->list2.n == 1) {
    Value v = eval(l, last);
    values[0] = v;
    count = 1;
    if (v.kind == VALUE_TUPLE) values = v.list.items, count = v.list.n;
    if (v.kind == VALUE_POISON) { /* whatever it would have given */
      NODE_EACH(t, n->list) assign(l, t, v, last->loc);
      return;
    }
  } else {
    NODE_EACH(e, n->list2) values[count++] = eval_one(l, e);
  }
  if (count != targets && !l->stopped) {
    lower_error(l, n->loc, "E-arg", "%zu name%s for %zu value%s", targets, targets == 1 ? "" : "s",
                count, count == 1 ? "" : "s");
    NODE_EACH(t, n->list) assign(l, t, value_poison(), last->loc);
    return;
  }
  size_t i = 0;
  NODE_EACH(t, n->list) assign(l, t, values[i++], last->loc);
}

static void exec_const(Lower *l, const Node *n) {
  Binding *old = scope_find(l->scope, n->name);
  if (old && old->decl != n) {
    lower_error(l, n->name_loc, "E-duplicate", "`%s` is defined twice", n->name);
    lower_note(l, old->loc, "first defined here");
    return;
  }
  Value v = eval_one(l, n->a);
  if (v.kind == VALUE_TENSOR) {
    lower_error(
        l, n->a->loc, "E-const",
        "`%s` is a tensor; constants are numbers, booleans, texts and lists. Leave `const` away",
        n->name);
    v = value_poison();
  }
  scope_bind(l, n->name, BIND_CONST, v, n->name_loc, n);
}

/* ---- control ---- */

static void too_many_iterations(Lower *l, const Node *n) {
  lower_stop(l, n->loc, "the loops of this model run more than %d times", MAX_ITERATIONS);
}

/* The body of a loop that does not run, or not to its end: its names exist, without values. */
static void poison_targets(Lower *l, NodeList body) {
  if (!body.first || !lower_enter(l, body.first->loc)) return;
  NODE_EACH(s, body) {
    const Node *n = s->kind == NODE_HINTED ? s->a : s;
    if (n && (n->kind == NODE_FOR || n->kind == NODE_IF)) {
      poison_targets(l, n->list);
      poison_targets(l, n->list2);
    }
    if (!n || n->kind != NODE_ASSIGN) continue;
    NODE_EACH(t, n->list) if (t->kind == NODE_NAME) {
      const Binding *b = scope_find(l->scope, t->name);
      if (!b || b->kind == BIND_VARIABLE || b->kind == BIND_INPUT)
        scope_bind(l, t->name, BIND_VARIABLE, value_poison(), t->loc, t);
    }
  }
  l->depth--;
}

/* False when the loop ends here: a body that failed would fail the same way again. */
static bool iterate(Lower *l, const Node *n, Value v) {
  unsigned before = diag_errors(l->m->diag);
  if (l->iterations++ >= MAX_ITERATIONS) {
    too_many_iterations(l, n);
    return false;
  }
  scope_bind(l, n->name, BIND_LOOP, v, n->name_loc, n);
  l->loops++;
  exec_block(l, n->list);
  l->loops--;
  bool failed = diag_errors(l->m->diag) != before;
  if (failed) poison_targets(l, n->list);
  return !failed && !l->scope->returned && !l->stopped;
}

static void exec_for(Lower *l, const Node *n) {
  Binding *old = scope_find(l->scope, n->name);
  if (old && (old->kind == BIND_CONST || old->kind == BIND_PARAM || old->kind == BIND_STATE)) {
    lower_error(l, n->name_loc, "E-duplicate", "the loop counter `%s` is already defined", n->name);
    lower_note(l, old->loc, "defined here");
    return;
  }
  if (!n->b) {
    Value list = eval_one(l, n->a);
    if (list.kind != VALUE_LIST) {
      if (list.kind != VALUE_POISON)
        lower_error(l, n->a->loc, "E-const", "a loop runs over a range `0..n` or a list");
      poison_targets(l, n->list);
      return;
    }
    for (size_t i = 0; i < list.list.n; i++)
      if (!iterate(l, n, list.list.items[i])) break;
    return;
  }
  int64_t from, to;
  bool ok = eval_int(l, n->a, "the start of a loop", &from);
  ok &= eval_int(l, n->b, "the end of a loop", &to);
  if (!ok) {
    poison_targets(l, n->list);
    return;
  }
  if (from < to && (uint64_t)to - (uint64_t)from > MAX_ITERATIONS) {
    too_many_iterations(l, n);
    return;
  }
  for (int64_t i = from; i < to; i++)
    if (!iterate(l, n, value_int(i))) break;
}

static void exec_if(Lower *l, const Node *n) {
  Value v = eval_one(l, n->a);
  if (v.kind == VALUE_BOOL) {
    exec_block(l, v.b ? n->list : n->list2);
    return;
  }
  poison_targets(l, n->list);
  poison_targets(l, n->list2);
  if (v.kind == VALUE_POISON) return;
  StrBuf b = {0};
  value_describe(&b, v);
  lower_error(l, n->a->loc, "E-const",
              "the condition of `if` is true or false at compile time, found %s%s", b.data,
              v.kind == VALUE_TENSOR ? "; to choose per element use where(c, a, b)" : "");
  strbuf_free(&b);
}

SrcLoc return_place(const Scope *s, const Node **next) {
  const Node *n = *next;
  if (n) *next = n->next;
  return n && s->return_stmt->list.n > 1 ? n->loc : s->return_stmt->loc;
}

static void exec_return(Lower *l, const Node *n) {
  Scope *s = l->scope;
  size_t count = n->list.n;
  s->returned = true;
  s->return_stmt = n;
  s->result = value_poison();
  if (count == 1 && n->list.first) {
    s->result = eval(l, n->list.first);
    return;
  }
  Value v = {.kind = VALUE_TUPLE,
             .from = n->loc,
             .list = {ARENA_ARRAY(l->arena, Value, count + 1), count}};
  size_t i = 0;
  NODE_EACH(e, n->list) v.list.items[i++] = eval_one(l, e);
  s->result = v;
}

static void exec_hinted(Lower *l, const Node *n) {
  unsigned before = diag_errors(l->m->diag);
  ActiveHint *outer = hints_push(l, n->list);
  if (n->a) exec(l, n->a);
  hints_pop(l, outer, diag_errors(l->m->diag) != before);
}

static void exec_unused(Lower *l, const Node *n) {
  if (eval(l, n->list.first).kind == VALUE_POISON) return;
  lower_error(l, n->loc, "E-unused", "this value is not used; assign it to a name, or return it");
}

static void exec(Lower *l, const Node *n) {
  switch (n->kind) {
  case NODE_ASSIGN: exec_assign(l, n); break;
  case NODE_CONST: exec_const(l, n); break;
  case NODE_STATE: exec_state(l, n); break;
  case NODE_WEIGHT: exec_weight(l, n); break;
  case NODE_WEIGHTS: weights_statement(l, n); break;
  case NODE_FOR: exec_for(l, n); break;
  case NODE_IF: exec_if(l, n); break;
  case NODE_RETURN: exec_return(l, n); break;
  case NODE_HINTED: exec_hinted(l, n); break;
  default: exec_unused(l, n); break;
  }
}

void exec_block(Lower *l, NodeList body) {
  if (!body.first || !lower_enter(l, body.first->loc)) return;
  NODE_EACH(n, body) {
    exec(l, n);
    if (n->kind == NODE_RETURN && n->next && !l->stopped) {
      lower_error(l, n->next->loc, "E-return", "nothing runs after `return`");
      lower_note(l, n->loc, "the return is here");
    }
    if (l->stopped || l->scope->returned) break;
  }
  l->depth--;
}
