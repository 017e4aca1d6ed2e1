/* Functions that are not operators: weight("name"), questions about shapes, conversions at compile
 * time. */
#include <math.h>
#include <string.h>

#include "frontend/lower.h"

static Value shape_list(Lower *l, const IrType *t) {
  size_t n = (size_t)t->rank;
  Value v = {.kind = VALUE_LIST, .list = {ARENA_ARRAY(l->arena, Value, n + 1), n}};
  for (size_t i = 0; i < n; i++) v.list.items[i] = value_int(t->shape[i]);
  return v;
}

static Value bad_argument(Lower *l, const Node *call, const char *want, Value found) {
  StrBuf b = {0};
  if (found.kind == VALUE_POISON) return found;
  value_describe(&b, found);
  lower_error(l, call->list.first->loc, "E-arg", "`%s` is asked of %s, found %s", call->name, want,
              b.data);
  strbuf_free(&b);
  return value_poison();
}

static Value do_weight(Lower *l, const Node *call, const Value *a) {
  if (a[0].kind != VALUE_TEXT) return bad_argument(l, call, "a text, the tensor's name", a[0]);
  return weight_lookup(l, a[0].s, call->loc);
}

static Value do_shape(Lower *l, const Node *call, const Value *a) {
  return a[0].kind == VALUE_TENSOR ? shape_list(l, a[0].tensor->type)
                                   : bad_argument(l, call, "a tensor", a[0]);
}

static Value do_rank(Lower *l, const Node *call, const Value *a) {
  return a[0].kind == VALUE_TENSOR ? value_int(a[0].tensor->type->rank)
                                   : bad_argument(l, call, "a tensor", a[0]);
}

static Value do_dtype(Lower *l, const Node *call, const Value *a) {
  if (a[0].kind != VALUE_TENSOR) return bad_argument(l, call, "a tensor", a[0]);
  return (Value){.kind = VALUE_DTYPE, .dtype = a[0].tensor->type->dtype};
}

static Value do_dim(Lower *l, const Node *call, const Value *a) {
  if (a[0].kind != VALUE_TENSOR) return bad_argument(l, call, "a tensor", a[0]);
  const IrType *t = a[0].tensor->type;
  int axis = a[1].kind == VALUE_INT ? ir_axis(a[1].i, t->rank) : -1;
  if (axis >= 0) return value_int(t->shape[axis]);
  if (a[1].kind == VALUE_POISON) return a[1];
  StrBuf b = {0};
  ir_type_print(&b, t);
  lower_error(l, call->list.last->loc, "E-arg", "`dim` wants an axis of %s: -%d to %d", b.data,
              t->rank, t->rank - 1);
  strbuf_free(&b);
  return value_poison();
}

static Value do_len(Lower *l, const Node *call, const Value *a) {
  if (a[0].kind == VALUE_LIST) return value_int((int64_t)a[0].list.n);
  if (a[0].kind == VALUE_TEXT) return value_int((int64_t)strlen(a[0].s));
  return bad_argument(l, call, "a list or a text", a[0]);
}

static Value do_int(Lower *l, const Node *call, const Value *a) {
  if (a[0].kind == VALUE_INT) return a[0];
  if (a[0].kind == VALUE_BOOL) return value_int(a[0].b);
  if (a[0].kind == VALUE_REAL && fabs(a[0].r) < 9.2e18) return value_int((int64_t)a[0].r);
  return bad_argument(l, call, "a number within 64 bits", a[0]);
}

static Value do_real(Lower *l, const Node *call, const Value *a) {
  return value_is_number(a[0]) ? value_real(value_number(a[0]))
                               : bad_argument(l, call, "a number", a[0]);
}

static const struct {
  const char *name;
  size_t nargs;
  Value (*run)(Lower *, const Node *, const Value *);
} builtins[] = {{"weight", 1, do_weight}, {"shape", 1, do_shape}, {"rank", 1, do_rank},
                {"dtype", 1, do_dtype},   {"dim", 2, do_dim},     {"len", 1, do_len},
                {"int", 1, do_int},       {"real", 1, do_real}};

const char *const *builtin_names(size_t *n) {
  static const char *const names[] = {"weight", "shape", "rank", "dtype",
                                      "dim",    "len",   "int",  "real"};
  _Static_assert(NPU_COUNTOF(names) == NPU_COUNTOF(builtins), "every builtin has its name here");
  *n = NPU_COUNTOF(names);
  return names;
}

bool call_builtin(Lower *l, const Node *call, Value *out) {
  size_t k = 0;
  while (k < NPU_COUNTOF(builtins) && strcmp(builtins[k].name, call->name) != 0) k++;
  if (k == NPU_COUNTOF(builtins)) return false;
  Value args[2] = {value_poison(), value_poison()};
  size_t n = 0;
  bool plain = call->list2.n == 0;
  NODE_EACH(arg, call->list) {
    Value v = eval_one(l, arg->a);
    if (arg->name) plain = false;
    if (n < NPU_COUNTOF(args)) args[n] = v;
    n++;
  }
  *out = value_poison();
  if (n != builtins[k].nargs || !plain) {
    lower_error(l, call->loc, "E-arg", "`%s` takes %zu unnamed argument%s", call->name,
                builtins[k].nargs, builtins[k].nargs == 1 ? "" : "s");
    return true;
  }
  if (l->stopped) return true;
  *out = builtins[k].run(l, call, args);
  out->from = call->loc;
  return true;
}
