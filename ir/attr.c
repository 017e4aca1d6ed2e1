/* Attributes: interning and access. Equal attributes of a module are one pointer, data excepted. */
#include "ir/internal.h"

#include <math.h>
#include <string.h>

/* Keys are the kind followed by what tells two attributes of that kind apart. */
static const IrAttr *attr_intern(IrModule *m, const IrAttr *a, const void *content, size_t bytes) {
  size_t size = sizeof a->kind + bytes;
  uint8_t small[128], *key = size <= sizeof small ? small : mem_alloc(size);
  memcpy(key, &a->kind, sizeof a->kind);
  if (bytes) memcpy(key + sizeof a->kind, content, bytes);
  Interned *e = NULL;
  HASH_FIND(hh, m->impl->attrs, key, size, e);
  if (!e) {
    e = ARENA_NEW(m->arena, Interned);
    IrAttr *copy = arena_copy(m->arena, a, sizeof *a);
    if (a->kind == IR_ATTR_ARRAY && a->array.n)
      copy->array.items = arena_copy(m->arena, a->array.items, bytes);
    if (a->kind == IR_ATTR_MAP) copy->map = arena_copy(m->arena, a->map, sizeof *a->map);
    e->thing = copy;
    HASH_ADD_KEYPTR(hh, m->impl->attrs, arena_copy(m->arena, key, size), size, e);
  }
  if (key != small) mem_free(key);
  return e->thing;
}

const IrAttr *ir_attr_int(IrModule *m, int64_t i) {
  IrAttr a = {.kind = IR_ATTR_INT, .i = i};
  return attr_intern(m, &a, &i, sizeof i);
}

const IrAttr *ir_attr_float(IrModule *m, double f) {
  if (isnan(f)) f = NAN; /* one NaN, as text has only one */
  IrAttr a = {.kind = IR_ATTR_FLOAT, .f = f};
  return attr_intern(m, &a, &f, sizeof f);
}

const IrAttr *ir_attr_bool(IrModule *m, bool b) {
  IrAttr a = {.kind = IR_ATTR_BOOL, .b = b};
  return attr_intern(m, &a, &b, sizeof b);
}

const IrAttr *ir_attr_str(IrModule *m, const char *s) {
  const char *name = ir_str(m, s);
  IrAttr a = {.kind = IR_ATTR_STR, .s = name};
  return attr_intern(m, &a, &name, sizeof name);
}

const IrAttr *ir_attr_dtype(IrModule *m, DType t) {
  IrAttr a = {.kind = IR_ATTR_DTYPE, .dtype = t};
  return attr_intern(m, &a, &t, sizeof t);
}

const IrAttr *ir_attr_array(IrModule *m, const IrAttr *const *items, size_t n) {
  IrAttr a = {.kind = IR_ATTR_ARRAY};
  a.array.items = (const IrAttr **)(uintptr_t)items;
  a.array.n = n;
  return attr_intern(m, &a, items, n * sizeof *items);
}

const IrAttr *ir_attr_ints(IrModule *m, const int64_t *v, size_t n) {
  const IrAttr *small[32] = {0},
               **items = n <= NPU_COUNTOF(small) ? small : mem_alloc(n * sizeof *items);
  for (size_t i = 0; i < n; i++) items[i] = ir_attr_int(m, v[i]);
  const IrAttr *a = ir_attr_array(m, items, n);
  if (items != small) mem_free(items);
  return a;
}

const IrAttr *ir_attr_map(IrModule *m, const IrMap *map) {
  IrMap *copy = mem_alloc(sizeof *copy);
  copy->rank = map->rank;
  for (int i = 0; i < map->rank; i++) {
    copy->axis[i].cst = map->axis[i].cst;
    copy->axis[i].index = map->axis[i].index < 0 ? -1 : map->axis[i].index;
    if (map->axis[i].index < 0)
      memcpy(copy->axis[i].coef, map->axis[i].coef, sizeof copy->axis[i].coef);
  }
  IrAttr a = {.kind = IR_ATTR_MAP, .map = copy};
  const IrAttr *r = attr_intern(m, &a, copy, sizeof *copy);
  mem_free(copy);
  return r;
}

static const IrAttr *data_attr(IrModule *m, IrData d) {
  IrAttr *a = ARENA_NEW(m->arena, IrAttr);
  a->kind = IR_ATTR_DATA;
  a->data = arena_copy(m->arena, &d, sizeof d);
  return a;
}

const IrAttr *attr_data_at(IrModule *m, SrcLoc loc, const IrType *type, void **bytes_out) {
  size_t bytes = (size_t)ir_type_bytes(type);
  *bytes_out = arena_try_alloc(m->arena, bytes);
  if (!*bytes_out) {
    StrBuf text = {0};
    ir_type_print(&text, type);
    diag_error(m->diag, loc, "E-memory", "there is no memory for the %zu bytes of a constant %s",
               bytes, text.data);
    mem_exhausted(bytes);
  }
  return data_attr(m, (IrData){.type = type, .bytes = *bytes_out});
}

const IrAttr *ir_attr_data_new(IrModule *m, const IrType *type, void **bytes_out) {
  return attr_data_at(m, SRC_LOC_NONE, type, bytes_out);
}

const IrAttr *ir_attr_data(IrModule *m, const IrType *type, const void *bytes) {
  void *copy;
  const IrAttr *a = ir_attr_data_new(m, type, &copy);
  memcpy(copy, bytes, (size_t)ir_type_bytes(type));
  return a;
}

const IrAttr *ir_attr_data_file(IrModule *m, const IrType *type, const void *bytes,
                                const char *file, const char *name) {
  IrData d = {.type = type, .bytes = bytes, .file = ir_str(m, file), .name = ir_str(m, name)};
  return data_attr(m, d);
}

const IrAttr *ir_attr_data_of(IrModule *m, const IrData *data) {
  return data_attr(m, *data);
}

/* ---- lists of named attributes --------------------------------------------------------------- */

const IrAttr *attrs_find(const IrNamedAttr *attrs, int n, const char *name) {
  for (int i = 0; i < n; i++)
    if (attrs[i].name == name || !strcmp(attrs[i].name, name)) return attrs[i].value;
  return NULL;
}

void attrs_set(IrModule *m, IrNamedAttr **attrs, int *n, const char *name, const IrAttr *value) {
  int at = 0, order = 1;
  while (at < *n && (order = strcmp((*attrs)[at].name, name)) < 0) at++;
  bool found = at < *n && order == 0;
  if (found && value) {
    (*attrs)[at].value = value;
  } else if (found) {
    memmove(*attrs + at, *attrs + at + 1, sizeof **attrs * (size_t)(*n - at - 1));
    --*n;
  } else if (value) {
    if (!*attrs || *n + 1 > capacity_for(*n)) {
      IrNamedAttr *grown = ARENA_ARRAY(m->arena, IrNamedAttr, capacity_for(*n + 1));
      if (*n) memcpy(grown, *attrs, sizeof *grown * (size_t)*n);
      *attrs = grown;
    }
    memmove(*attrs + at + 1, *attrs + at, sizeof **attrs * (size_t)(*n - at));
    (*attrs)[at] = (IrNamedAttr){ir_str(m, name), value};
    ++*n;
  }
}

const IrAttr *ir_attr(const IrOp *op, const char *name) {
  return attrs_find(op->attrs, op->nattrs, name);
}

void ir_set_attr(IrOp *op, const char *name, const IrAttr *value) {
  attrs_set(op->module, &op->attrs, &op->nattrs, name, value);
}

int64_t ir_get_int(const IrOp *op, const char *name, int64_t otherwise) {
  const IrAttr *a = ir_attr(op, name);
  return a && a->kind == IR_ATTR_INT ? a->i : otherwise;
}

double ir_get_float(const IrOp *op, const char *name, double otherwise) {
  const IrAttr *a = ir_attr(op, name);
  if (a && a->kind == IR_ATTR_INT) return (double)a->i;
  return a && a->kind == IR_ATTR_FLOAT ? a->f : otherwise;
}

bool ir_get_bool(const IrOp *op, const char *name, bool otherwise) {
  const IrAttr *a = ir_attr(op, name);
  return a && a->kind == IR_ATTR_BOOL ? a->b : otherwise;
}

const char *ir_get_str(const IrOp *op, const char *name, const char *otherwise) {
  const IrAttr *a = ir_attr(op, name);
  return a && a->kind == IR_ATTR_STR ? a->s : otherwise;
}

bool attr_is_ints(const IrAttr *a) {
  if (!a || a->kind == IR_ATTR_INT) return a != NULL;
  if (a->kind != IR_ATTR_ARRAY) return false;
  for (size_t i = 0; i < a->array.n; i++)
    if (a->array.items[i]->kind != IR_ATTR_INT) return false;
  return true;
}

int ir_get_ints(const IrOp *op, const char *name, int64_t *out, int max) {
  const IrAttr *a = ir_attr(op, name);
  if (!attr_is_ints(a) || max < 1) return 0;
  if (a->kind == IR_ATTR_INT) {
    out[0] = a->i;
    return 1;
  }
  int n = 0;
  for (size_t i = 0; i < a->array.n && n < max; i++) out[n++] = a->array.items[i]->i;
  return n;
}
