/* Hints before a statement: `@bf16 h = x @ w`. They become attributes of the ops the statement
 * makes and never change what is computed, only how. */
#include <string.h>

#include "frontend/lower.h"

static const IrHint *find_hint(Lower *l, const Node *n) {
  const char *names[IR_HINT_COUNT];
  for (size_t i = 0; i < IR_HINT_COUNT; i++) {
    names[i] = ir_hints[i].name;
    if (strcmp(names[i], n->name) == 0) return &ir_hints[i];
  }
  const char *near = str_nearest(n->name, names, IR_HINT_COUNT);
  if (near)
    lower_error(l, n->loc, "E-hint", "there is no hint `@%s`; did you mean `@%s`?", n->name, near);
  else
    lower_error(
        l, n->loc, "E-hint",
        "there is no hint `@%s`; there are @bf16, @f32, @int8, @bits(4.3), @shard(axis = 1), "
        "@stage(2) and @keep",
        n->name);
  return NULL;
}

static const IrAttr *hint_value(Lower *l, const Node *n, const IrHint *hint) {
  const Node *arg = n->list.first;
  bool integer = strcmp(hint->type, "int") == 0;
  if (!hint->argument) {
    if (n->list.n == 0) return ir_attr_bool(l->m, true);
    lower_error(l, n->loc, "E-hint", "`@%s` takes no argument", n->name);
    return NULL;
  }
  if (n->list.n != 1 || (arg->name && strcmp(arg->name, hint->argument) != 0)) {
    lower_error(l, n->loc, "E-hint", "`@%s` takes one argument: @%s(%s = ...)", n->name, n->name,
                hint->argument);
    return NULL;
  }
  Value v = eval_one(l, arg->a);
  if (v.kind == VALUE_POISON) return NULL;
  if (integer ? v.kind != VALUE_INT : !value_is_number(v)) {
    lower_error(l, arg->loc, "E-hint", "the argument of `@%s` is %s", n->name,
                integer ? "an integer" : "a number");
    return NULL;
  }
  return integer ? ir_attr_int(l->m, v.i) : ir_attr_float(l->m, value_number(v));
}

static bool active(const Lower *l, const IrHint *hint, const ActiveHint *until) {
  for (const ActiveHint *h = l->hints; h != until; h = h->outer)
    if (h->hint == hint) return true;
  return false;
}

/* Another hint of the same statement that says in what to compute. */
static const char *other_numerics(const Lower *l, const IrHint *hint, const ActiveHint *until) {
  for (const ActiveHint *h = l->hints; h != until; h = h->outer)
    if (h->hint->numerics && h->hint != hint) return h->hint->name;
  return NULL;
}

ActiveHint *hints_push(Lower *l, NodeList list) {
  ActiveHint *outer = l->hints;
  NODE_EACH(n, list) {
    const IrHint *hint = find_hint(l, n);
    const IrAttr *value = hint ? hint_value(l, n, hint) : NULL;
    if (!value) continue;
    if (active(l, hint, outer)) lower_error(l, n->loc, "E-hint", "`@%s` is given twice", n->name);
    const char *other = hint->numerics ? other_numerics(l, hint, outer) : NULL;
    if (other)
      lower_error(l, n->loc, "E-hint", "`@%s` and `@%s` contradict each other; keep one", other,
                  n->name);
    if (!hint->effective) lower_warning(l, n->loc, "W-hint", "`@%s` has no effect yet", n->name);
    ActiveHint *h = ARENA_NEW(l->arena, ActiveHint);
    *h = (ActiveHint){.hint = hint, .value = value, .loc = n->loc, .outer = l->hints};
    l->hints = h;
  }
  return outer;
}

/* Why h does nothing, or NULL. */
static const char *idle_hint(const ActiveHint *h) {
  if (!h->hint->numerics) return NULL;
  if (!h->on_reals) return "the statement makes no operation on reals";
  if (h->hint->products && !h->on_products)
    return "8 bits are for products of reals (`@`, linear, conv1d, conv2d, conv_transpose2d), and "
           "the statement makes none under it";
  return NULL;
}

void hints_pop(Lower *l, ActiveHint *outer, bool failed) {
  for (const ActiveHint *h = l->hints; h != outer; h = h->outer) {
    const char *why = failed ? NULL : idle_hint(h);
    if (why) lower_warning(l, h->loc, "W-hint", "`@%s` has no effect: %s", h->hint->name, why);
  }
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
    if ((h->hint->numerics && numerics) || ir_attr(op, h->hint->attr)) continue;
    ir_set_attr(op, h->hint->attr, h->value);
    h->on_products = h->on_products || (on_reals && ir_has_trait(op, IR_PRODUCT));
    numerics = numerics || h->hint->numerics;
  }
}
