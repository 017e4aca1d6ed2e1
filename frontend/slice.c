/* x[...]: slices of tensors, items of compile-time lists, and the boxes that parts of a state are.
 */
#include <string.h>

#include "frontend/lower.h"

static bool bad_index(Lower *l, SrcLoc loc, const char *what, int axis, int64_t extent,
                      int64_t at) {
  lower_error(l, loc, "E-shape", "index %lld is outside axis %d of %s, which has %lld elements",
              (long long)at, axis, what, (long long)extent);
  return false;
}

static bool select_index(Lower *l, const Node *item, const char *what, int axis, int64_t extent,
                         Selection *s) {
  Value v = eval_one(l, item);
  if (v.kind == VALUE_POISON) return false;
  if (v.kind == VALUE_TENSOR) {
    lower_error(l, item->loc, "E-const",
                "an index in [] is known at compile time; use gather(x, index, axis = %d) for one "
                "that is computed",
                axis);
    return false;
  }
  if (v.kind != VALUE_INT) {
    StrBuf b = {0};
    value_describe(&b, v);
    lower_error(l, item->loc, "E-const", "an index is an integer, found %s", b.data);
    strbuf_free(&b);
    return false;
  }
  int64_t at = v.i < 0 && v.i >= -extent ? v.i + extent : v.i;
  if (at < 0 || at >= extent) return bad_index(l, item->loc, what, axis, extent, v.i);
  s->begin[axis] = at;
  s->end[axis] = at + 1;
  s->squeezed[axis] = true;
  return true;
}

static bool range_bound(Lower *l, const Node *n, int64_t extent, int64_t *out) {
  if (!n) return true;
  int64_t v;
  if (!eval_int(l, n, "the bound of a slice", &v)) return false;
  *out = v < 0 && v >= -extent ? v + extent : v;
  return true;
}

static bool select_range(Lower *l, const Node *item, const char *what, int axis, int64_t extent,
                         Selection *s) {
  int64_t begin = 0, end = extent, step = 1;
  bool ok = range_bound(l, item->a, extent, &begin);
  ok &= range_bound(l, item->b, extent, &end);
  if (item->c) ok &= eval_int(l, item->c, "the step of a slice", &step);
  if (!ok) return false;
  if (step < 1) {
    lower_error(l, item->c->loc, "E-shape", "the step of a slice is at least 1, found %lld",
                (long long)step);
    return false;
  }
  if (begin < 0 || end > extent || begin > extent) {
    lower_error(l, item->loc, "E-shape",
                "the slice %lld:%lld leaves axis %d of %s, which has %lld elements",
                (long long)begin, (long long)end, axis, what, (long long)extent);
    return false;
  }
  if (begin >= end) {
    lower_error(l, item->loc, "E-shape", "the slice %lld:%lld of axis %d of %s is empty",
                (long long)begin, (long long)end, axis, what);
    return false;
  }
  s->begin[axis] = begin;
  s->end[axis] = end;
  s->step[axis] = step;
  return true;
}

bool slice_select(Lower *l, const IrType *type, const Node *index, const char *what,
                  Selection *out) {
  *out = (Selection){0};
  for (int a = 0; a < type->rank; a++) out->end[a] = type->shape[a], out->step[a] = 1;
  int axis = 0, ellipses = 0;
  bool ok = true;
  NODE_EACH(item, index->list) ellipses += item->kind == NODE_ELLIPSIS;
  int named = (int)index->list.n - ellipses;
  if (named > type->rank || ellipses > 1) {
    StrBuf b = {0};
    ir_type_print(&b, type);
    if (ellipses > 1)
      lower_error(l, index->loc, "E-shape", "`...` can stand once in []");
    else
      lower_error(l, index->loc, "E-shape", "%d indices for %s, a %s with %d axes", named, what,
                  b.data, type->rank);
    strbuf_free(&b);
    return false;
  }
  NODE_EACH(item, index->list) {
    if (item->kind == NODE_ELLIPSIS) {
      axis += type->rank - named;
      continue;
    }
    bool range = item->kind == NODE_RANGE;
    ok &= range ? select_range(l, item, what, axis, type->shape[axis], out)
                : select_index(l, item, what, axis, type->shape[axis], out);
    axis++;
  }
  return ok;
}

const IrType *slice_type(Lower *l, const IrType *type, const Selection *s) {
  int64_t shape[IR_MAX_RANK];
  int rank = 0;
  for (int a = 0; a < type->rank; a++)
    if (!s->squeezed[a]) shape[rank++] = ceil_div(s->end[a] - s->begin[a], s->step[a]);
  return ir_type_tensor(l->m, type->dtype, rank, shape);
}

static Value slice_tensor(Lower *l, const Node *n, Value x) {
  const IrType *type = x.tensor->type;
  size_t rank = (size_t)type->rank;
  Selection s;
  StrBuf what = {0};
  if (n->a->kind == NODE_NAME)
    strbuf_printf(&what, "`%s`", n->a->name);
  else
    strbuf_puts(&what, "this tensor");
  bool ok = slice_select(l, type, n, what.data, &s);
  strbuf_free(&what);
  if (!ok) return value_poison();
  bool whole = true, squeezed = false;
  for (size_t a = 0; a < rank; a++) {
    whole &= s.begin[a] == 0 && s.end[a] == type->shape[a] && s.step[a] == 1;
    squeezed |= s.squeezed[a];
  }
  if (!whole) {
    IrAttrInit attrs[] = {{"begin", ir_attr_ints(l->m, s.begin, rank)},
                          {"end", ir_attr_ints(l->m, s.end, rank)},
                          {"step", ir_attr_ints(l->m, s.step, rank)}};
    x = lower_op1(l, n->loc, IR_OP_SLICE, x, 3, attrs);
  }
  if (!squeezed || x.kind == VALUE_POISON) return x;
  const IrType *to = slice_type(l, type, &s);
  IrAttrInit attr = {"shape", ir_attr_ints(l->m, to->shape, (size_t)to->rank)};
  return lower_op1(l, n->loc, IR_OP_RESHAPE, x, 1, &attr);
}

static Value list_item(Lower *l, const Node *n, Value list) {
  const Node *item = n->list.first;
  int64_t given, count = (int64_t)list.list.n;
  if (n->list.n != 1 || item->kind == NODE_RANGE || item->kind == NODE_ELLIPSIS) {
    lower_error(l, n->loc, "E-const", "a list is indexed by one integer");
    return value_poison();
  }
  if (!eval_int(l, item, "the index of a list", &given)) return value_poison();
  int64_t at = given < 0 ? given + count : given;
  if (at < 0 || at >= count) {
    lower_error(l, item->loc, "E-const", "index %lld is outside the list, which has %lld items",
                (long long)given, (long long)count);
    return value_poison();
  }
  return list.list.items[at];
}

Value eval_index(Lower *l, const Node *n) {
  Value x = eval_one(l, n->a);
  if (x.kind == VALUE_TENSOR) return slice_tensor(l, n, x);
  if (x.kind == VALUE_LIST) return list_item(l, n, x);
  if (x.kind == VALUE_POISON) return x;
  StrBuf b = {0};
  value_describe(&b, x);
  lower_error(l, n->loc, "E-arg", "only tensors and lists have [], found %s", b.data);
  strbuf_free(&b);
  return value_poison();
}
