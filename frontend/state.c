/* `state`: memory that outlives a run. Within a run its value is an ordinary tensor; assigning a
 * part is an `update` of it, and what it is at the end is written back once. */
#include <string.h>

#include "frontend/lower.h"

static bool initial_data(Lower *l, const Node *n, const IrType *type, IrAttrInit *out) {
  Value v = eval_one(l, n->b);
  if (v.kind == VALUE_POISON) return false;
  if (value_is_number(v) || v.kind == VALUE_LIST) v = literal_tensor(l, v, type->dtype, n->b->loc);
  if (v.kind == VALUE_POISON) return false;
  if (v.kind == VALUE_TENSOR) weights_read(l, v.tensor);
  const IrData *data = v.kind == VALUE_TENSOR ? ir_constant_data(v.tensor) : NULL;
  double splat;
  if (v.kind == VALUE_TENSOR && v.tensor->type->rank == 0 && v.tensor->type->dtype == type->dtype &&
      ir_constant_splat(v.tensor, &splat)) {
    void *bytes;
    *out = (IrAttrInit){"data", ir_attr_data_new(l->m, type, &bytes)};
    for (int64_t i = 0; i < ir_type_elements(type); i++)
      dtype_set(type->dtype, bytes, (size_t)i, splat);
    return true;
  }
  if (data && data->type == type) {
    *out = (IrAttrInit){"data", ir_attr_data(l->m, type, data->bytes)};
    return true;
  }
  StrBuf b = {0}, want = {0};
  value_describe(&b, v);
  ir_type_print(&want, type);
  lower_error(l, n->b->loc, "E-state",
              "the initial value of `%s` is a number or constant data of type %s, found %s",
              n->name, want.data, b.data);
  strbuf_free(&b);
  strbuf_free(&want);
  return false;
}

static bool state_allowed(Lower *l, const Node *n) {
  if (l->scope->decl->kind != NODE_MODEL) {
    lower_error(l, n->loc, "E-state", "a state is declared in the model, not in a function");
    return false;
  }
  Binding *old = scope_find(l->scope, n->name);
  if (!old) return true;
  bool again = old->decl == n;
  lower_error(l, n->name_loc, again ? "E-state" : "E-duplicate",
              again ? "the state `%s` is declared again by a loop; declare it outside"
                    : "`%s` is defined twice",
              n->name);
  if (!again) lower_note(l, old->loc, "first defined here");
  return false;
}

void exec_state(Lower *l, const Node *n) {
  if (!state_allowed(l, n)) return;
  const IrType *type = eval_type(l, n->a, n->name);
  IrAttrInit attrs[2];
  size_t nattrs = 1;
  bool ok = type != NULL;
  if (ok && n->b) ok = initial_data(l, n, type, &attrs[nattrs++]);
  if (!ok || l->stopped) {
    scope_bind(l, n->name, BIND_VARIABLE, value_poison(), n->name_loc, n);
    return;
  }
  attrs[0] = (IrAttrInit){"name", ir_attr_str(l->m, n->name)};
  IrBuilder b = ir_builder_at_end(l->func->body, n->loc);
  IrOp *op = ir_build_typed(&b, IR_OP_STATE, 0, NULL, 1, &type, (int)nattrs, attrs);
  if (!op) return;
  StateVar *s = ARENA_NEW(l->arena, StateVar);
  *s = (StateVar){.name = n->name, .type = type, .loc = n->name_loc, .current = ir_result(op, 0)};
  *l->last_state = s;
  l->last_state = &s->next;
  Binding *bind =
      scope_bind(l, n->name, BIND_STATE, value_tensor(s->current, n->name_loc), n->name_loc, n);
  bind->state = s;
}

/* ---- assignment ---- */

static bool overlaps(const Box *w, const Selection *s, int rank) {
  for (int a = 0; a < rank; a++)
    if (w->begin[a] >= s->end[a] || s->begin[a] >= w->end[a]) return false;
  return true;
}

/* Remembers the box as written; false, reported, when part of it was. */
static bool claim(Lower *l, StateVar *st, const Selection *s, SrcLoc loc) {
  for (const Box *w = st->written; w; w = w->next) {
    if (!overlaps(w, s, st->type->rank)) continue;
    lower_error(
        l, loc, "E-state",
        "the state `%s` is written twice%s; compute the final value first, then assign it once",
        st->name, st->type->rank ? " in the same place" : "");
    lower_note(l, w->loc, "first written here");
    return false;
  }
  Box *box = ARENA_NEW(l->arena, Box);
  memcpy(box->begin, s->begin, sizeof box->begin);
  memcpy(box->end, s->end, sizeof box->end);
  box->loc = loc;
  box->next = st->written;
  st->written = box;
  return true;
}

static bool select_target(Lower *l, StateVar *st, const Node *index, Selection *s) {
  if (!index) {
    *s = (Selection){0};
    for (int a = 0; a < st->type->rank; a++) s->end[a] = st->type->shape[a], s->step[a] = 1;
    return true;
  }
  StrBuf what = {0};
  strbuf_printf(&what, "`%s`", st->name);
  bool ok = slice_select(l, st->type, index, what.data, s);
  strbuf_free(&what);
  for (int a = 0; ok && a < st->type->rank; a++)
    if (s->step[a] != 1) {
      lower_error(l, index->loc, "E-state",
                  "the part of a state that is assigned is one box: no steps");
      ok = false;
    }
  return ok;
}

/* v as a tensor of exactly `type`; numbers are repeated. */
static Value fit(Lower *l, StateVar *st, Value v, const IrType *type, SrcLoc loc) {
  if (value_is_number(v)) {
    v = literal_tensor(l, v, type->dtype, loc);
    if (v.kind == VALUE_POISON || type->rank == 0) return v;
    IrAttrInit attr = {"shape", ir_attr_ints(l->m, type->shape, (size_t)type->rank)};
    return lower_op1(l, loc, IR_OP_BROADCAST, v, 1, &attr);
  }
  if (v.kind == VALUE_LIST) v = literal_tensor(l, v, type->dtype, loc);
  if (v.kind == VALUE_POISON || (v.kind == VALUE_TENSOR && v.tensor->type == type)) return v;
  StrBuf found = {0}, want = {0};
  value_describe(&found, v);
  ir_type_print(&want, type);
  bool cast = v.kind == VALUE_TENSOR && v.tensor->type->dtype != type->dtype;
  lower_error(l, loc, cast ? "E-dtype" : "E-shape",
              "this part of the state `%s` is %s, found %s%s%s%s", st->name, want.data, found.data,
              cast ? "; write cast(..., " : "", cast ? dtype_name(type->dtype) : "",
              cast ? ")" : "");
  lower_note(l, st->loc, "the state is declared here");
  strbuf_free(&found);
  strbuf_free(&want);
  return value_poison();
}

void state_assign(Lower *l, Binding *b, const Node *index, Value v, SrcLoc loc) {
  StateVar *st = b->state;
  Selection s;
  if (!select_target(l, st, index, &s)) return;
  size_t rank = (size_t)st->type->rank;
  if (!claim(l, st, &s, index ? index->loc : loc) || v.kind == VALUE_POISON) return;
  v = fit(l, st, v, slice_type(l, st->type, &s), loc);
  bool whole = true;
  int64_t box[IR_MAX_RANK];
  for (size_t a = 0; a < rank; a++) {
    box[a] = s.end[a] - s.begin[a];
    whole &= box[a] == st->type->shape[a];
  }
  if (v.kind == VALUE_TENSOR && v.tensor->type->rank != (int)rank) {
    IrAttrInit shape = {"shape", ir_attr_ints(l->m, box, rank)};
    v = lower_op1(l, loc, IR_OP_RESHAPE, v, 1, &shape);
  }
  if (v.kind == VALUE_TENSOR && !whole) {
    Value operands[2] = {value_tensor(st->current, b->loc), v};
    IrAttrInit begin = {"begin", ir_attr_ints(l->m, s.begin, rank)};
    v = lower_results(lower_op(l, loc, IR_OP_UPDATE, 2, operands, 1, &begin), loc, l->arena);
  }
  if (v.kind == VALUE_TENSOR) st->current = v.tensor;
}
