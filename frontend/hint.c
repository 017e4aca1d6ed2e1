/* Hints before a statement: `@bf16 h = x @ w`. They become attributes of the ops the statement
 * makes and never change what is computed, only how. */
#include <string.h>

#include "frontend/lower.h"

typedef enum { HINT_FLAG, HINT_INT, HINT_NUMBER } HintValue;

static const struct {
  const char *name, *attr, *argument; /* name of the argument, which may be left out */
  HintValue value;
  bool effective; /* some pass looks at it */
  bool numerics;  /* says in what to compute: one of them at a time */
} hints[] = {
    {"bf16", "hint.bf16", NULL, HINT_FLAG, true, true},
    {"f32", "hint.f32", NULL, HINT_FLAG, true, true},
    {"int8", "hint.int8", NULL, HINT_FLAG, true, true},
    {"bits", "hint.bits", "bits", HINT_NUMBER, false, false},
    {"shard", "hint.shard", "axis", HINT_INT, false, false},
    {"stage", "hint.stage", "stage", HINT_INT, false, false},
    {"keep", "hint.keep", NULL, HINT_FLAG, false, false},
};

static int find_hint(Lower *l, const Node *n) {
  const char *names[NPU_COUNTOF(hints)];
  for (size_t i = 0; i < NPU_COUNTOF(hints); i++) {
    names[i] = hints[i].name;
    if (strcmp(names[i], n->name) == 0) return (int)i;
  }
  const char *near = str_nearest(n->name, names, NPU_COUNTOF(names));
  if (near)
    lower_error(l, n->loc, "E-hint", "there is no hint `@%s`; did you mean `@%s`?", n->name, near);
  else
    lower_error(
        l, n->loc, "E-hint",
        "there is no hint `@%s`; there are @bf16, @f32, @int8, @bits(4.3), @shard(axis = 1), "
        "@stage(2) and @keep",
        n->name);
  return -1;
}

static const IrAttr *hint_value(Lower *l, const Node *n, int k) {
  HintValue want = hints[k].value;
  const Node *arg = n->list.first;
  if (want == HINT_FLAG) {
    if (n->list.n == 0) return ir_attr_bool(l->m, true);
    lower_error(l, n->loc, "E-hint", "`@%s` takes no argument", n->name);
    return NULL;
  }
  if (n->list.n != 1 || (arg->name && strcmp(arg->name, hints[k].argument) != 0)) {
    lower_error(l, n->loc, "E-hint", "`@%s` takes one argument: @%s(%s = ...)", n->name, n->name,
                hints[k].argument);
    return NULL;
  }
  Value v = eval_one(l, arg->a);
  if (v.kind == VALUE_POISON) return NULL;
  if (want == HINT_INT ? v.kind != VALUE_INT : !value_is_number(v)) {
    lower_error(l, arg->loc, "E-hint", "the argument of `@%s` is %s", n->name,
                want == HINT_INT ? "an integer" : "a number");
    return NULL;
  }
  return want == HINT_INT ? ir_attr_int(l->m, v.i) : ir_attr_float(l->m, value_number(v));
}

static bool active(const Lower *l, const char *attr, const ActiveHint *until) {
  for (const ActiveHint *h = l->hints; h != until; h = h->outer)
    if (strcmp(h->attr, attr) == 0) return true;
  return false;
}

/* Another hint of the same statement that says in what to compute. */
static const char *other_numerics(const Lower *l, const char *name, const ActiveHint *until) {
  for (const ActiveHint *h = l->hints; h != until; h = h->outer)
    if (h->numerics && strcmp(h->name, name) != 0) return h->name;
  return NULL;
}

ActiveHint *hints_push(Lower *l, NodeList list) {
  ActiveHint *outer = l->hints;
  NODE_EACH(n, list) {
    int k = find_hint(l, n);
    if (k < 0) continue;
    const IrAttr *value = hint_value(l, n, k);
    if (!value) continue;
    if (active(l, hints[k].attr, outer))
      lower_error(l, n->loc, "E-hint", "`@%s` is given twice", n->name);
    const char *other = hints[k].numerics ? other_numerics(l, n->name, outer) : NULL;
    if (other)
      lower_error(l, n->loc, "E-hint", "`@%s` and `@%s` contradict each other; keep one", other,
                  n->name);
    if (!hints[k].effective) lower_warning(l, n->loc, "W-hint", "`@%s` has no effect yet", n->name);
    ActiveHint *h = ARENA_NEW(l->arena, ActiveHint);
    *h = (ActiveHint){.attr = hints[k].attr,
                      .name = hints[k].name,
                      .value = value,
                      .loc = n->loc,
                      .numerics = hints[k].numerics,
                      .outer = l->hints};
    l->hints = h;
  }
  return outer;
}

void hints_pop(Lower *l, ActiveHint *outer, bool failed) {
  for (const ActiveHint *h = l->hints; h != outer; h = h->outer)
    if (h->numerics && !h->on_reals && !failed)
      lower_warning(l, h->loc, "W-hint",
                    "`@%s` has no effect: the statement makes no operation on reals", h->name);
  l->hints = outer;
}

static bool is_on_reals(const IrOp *op) {
  for (int i = 0; i < op->noperands; i++)
    if (dtype_is_float(ir_operand(op, i)->type->dtype)) return true;
  for (int i = 0; i < op->nresults; i++)
    if (dtype_is_float(op->results[i].type->dtype)) return true;
  return false;
}

void hints_attach(Lower *l, IrOp *op) {
  bool on_reals = is_on_reals(op), numerics = false;
  for (ActiveHint *h = l->hints; h; h = h->outer) {
    h->on_reals = h->on_reals || on_reals;
    if ((h->numerics && numerics) || ir_attr(op, h->attr)) continue;
    ir_set_attr(op, h->attr, h->value);
    numerics = numerics || h->numerics;
  }
}
