/* Weights: the model's files, tensors looked up by name, and `weight w: type = initializer`. */
#include <limits.h>
#include <math.h>
#include <string.h>

#include "frontend/lower.h"

/* ---- files ---- */

void weights_open(Lower *l, const char *path, SrcLoc loc) {
  Weights *w = &l->weights;
  TensorFile *f = ir_module_file(l->m, path);
  if (!f) {
    f = tensor_file_open(path, l->m->diag, loc);
    if (!f) {
      w->incomplete = true;
      return;
    }
    f = ir_module_attach(l->m, f);
  }
  for (size_t i = 0; i < w->nfiles; i++)
    if (w->files[i] == f) return;
  TensorFile **files = ARENA_ARRAY(l->arena, TensorFile *, w->nfiles + 1);
  if (w->nfiles) memcpy(files, w->files, w->nfiles * sizeof *files);
  files[w->nfiles++] = f;
  w->files = files;
}

void weights_statement(Lower *l, const Node *n) {
  Value name = eval_one(l, n->a);
  if (name.kind != VALUE_TEXT) {
    l->weights.incomplete = true;
    return;
  }
  bool beside = n->loc.file && strcmp(n->loc.file, "<stdin>") != 0;
  const char *path = beside ? path_beside(l->arena, n->loc.file, name.s) : name.s;
  Weights *w = &l->weights;
  if (!w->given || file_exists(path)) {
    weights_open(l, path, n->a->loc);
  } else if (!w->absent) {
    w->absent = path;
    w->absent_loc = n->a->loc;
  }
}

void weights_free(Lower *l) {
  HASH_CLEAR(hh, l->weights.uses);
}

/* ---- values ---- */

/* First element from `at` on whose magnitude's bits are at least `least`, n when there is none: NaN
 * and, below it, infinity have the largest. */
static size_t find_large32(const unsigned char *bytes, size_t at, size_t n, uint32_t least) {
  enum { BLOCK = 1024 };
  for (; at < n; at += BLOCK) {
    size_t stop = n - at < BLOCK ? n - at : BLOCK;
    uint32_t found = 0;
    for (size_t i = 0; i < stop; i++) {
      uint32_t x;
      memcpy(&x, bytes + (at + i) * 4, 4);
      found |= (x & 0x7fffffffu) >= least;
    }
    for (size_t i = 0; found && i < stop; i++) {
      uint32_t x;
      memcpy(&x, bytes + (at + i) * 4, 4);
      if ((x & 0x7fffffffu) >= least) return at + i;
    }
  }
  return n;
}

static size_t find_large16(const unsigned char *bytes, size_t at, size_t n, uint16_t least) {
  enum { BLOCK = 1024 };
  for (; at < n; at += BLOCK) {
    size_t stop = n - at < BLOCK ? n - at : BLOCK;
    uint16_t found = 0;
    for (size_t i = 0; i < stop; i++) {
      uint16_t x;
      memcpy(&x, bytes + (at + i) * 2, 2);
      found |= (uint16_t)((x & 0x7fffu) >= least);
    }
    for (size_t i = 0; found && i < stop; i++) {
      uint16_t x;
      memcpy(&x, bytes + (at + i) * 2, 2);
      if ((x & 0x7fffu) >= least) return at + i;
    }
  }
  return n;
}

static size_t find_infinite_or_nan(DType dtype, const void *bytes, size_t n) {
  if (dtype == DT_F32) return find_large32(bytes, 0, n, 0x7f800000u);
  if (dtype == DT_BF16) return find_large16(bytes, 0, n, 0x7f80u);
  return n;
}

static size_t find_nan(DType dtype, const void *bytes, size_t at, size_t n) {
  if (dtype == DT_F32) return find_large32(bytes, at, n, 0x7f800001u);
  if (dtype == DT_BF16) return find_large16(bytes, at, n, 0x7f81u);
  return n;
}

/* What a file's element type is in the module. */
static DType machine_dtype(DType t) {
  switch (t) {
  case DT_F16:
  case DT_F64: return DT_F32;
  case DT_U8:
  case DT_S16:
  case DT_S64: return DT_S32;
  case DT_BOOL: return DT_S8;
  case DT_S8:
  case DT_BF16:
  case DT_F32:
  case DT_S32:
  case DT_COUNT: break;
  }
  return t;
}

static void describe_position(StrBuf *b, const TensorEntry *e, size_t flat) {
  int64_t index[TENSOR_MAX_RANK];
  size_t rest = flat;
  for (int a = e->rank - 1; a >= 0; a--) {
    index[a] = (int64_t)(rest % (size_t)e->shape[a]);
    rest /= (size_t)e->shape[a];
  }
  strbuf_putc(b, '[');
  for (int a = 0; a < e->rank; a++) strbuf_printf(b, "%s%lld", a ? ", " : "", (long long)index[a]);
  strbuf_putc(b, ']');
}

/* What a tensor is called: the one array of an .npy file as the file, without folder and ending. */
static const char *entry_name(const Lower *l, const TensorEntry *e, const char *path) {
  if (e->name[0]) return e->name;
  const char *slash = strrchr(path, '/'), *base = slash ? slash + 1 : path;
  size_t len = strlen(base) - (str_ends_with(base, ".npy") ? 4 : 0);
  return arena_strndup(l->arena, base, len);
}

/* NaN is refused. Infinity is a value, as masks have it; in what was trained it is a bad sign. */
static bool check_values(Lower *l, const TensorEntry *e, const char *path, DType dtype,
                         const void *bytes, size_t n, SrcLoc loc) {
  size_t infinite = find_infinite_or_nan(dtype, bytes, n);
  if (infinite == n) return true;
  size_t nan = find_nan(dtype, bytes, infinite, n), at = nan < n ? nan : infinite;
  StrBuf b = {0};
  describe_position(&b, e, at);
  if (nan < n)
    lower_error(l, loc, "E-weight",
                "tensor `%s` of %s: element %s is NaN; retrain or repair the file",
                entry_name(l, e, path), path, b.data);
  else
    lower_warning(l, loc, "W-weight",
                  "tensor `%s` of %s: element %s is %s; right in a mask, but a trained weight is "
                  "finite",
                  entry_name(l, e, path), path, b.data,
                  dtype_get(dtype, bytes, at) > 0 ? "inf" : "-inf");
  strbuf_free(&b);
  return nan == n;
}

/* Elements of wider types that became infinite by the conversion. */
static bool check_f64(Lower *l, const TensorEntry *e, const char *path, const void *data,
                      const float *bytes, SrcLoc loc) {
  if (e->dtype != DT_F64) return true;
  size_t n = e->bytes / 8;
  for (size_t i = 0; i < n; i++) {
    if (!isinf(bytes[i])) continue;
    double x = dtype_get(DT_F64, data, i);
    if (isinf(x)) continue;
    StrBuf b = {0};
    describe_position(&b, e, i);
    lower_error(l, loc, "E-weight", "tensor `%s` of %s: element %s is %g, which does not fit f32",
                entry_name(l, e, path), path, b.data, x);
    strbuf_free(&b);
    return false;
  }
  return true;
}

static bool check_s64(Lower *l, const TensorEntry *e, const char *path, const void *data,
                      SrcLoc loc) {
  if (e->dtype != DT_S64) return true;
  for (size_t i = 0; i < e->bytes / 8; i++) {
    int64_t x;
    memcpy(&x, (const unsigned char *)data + i * 8, 8);
    if (x >= INT32_MIN && x <= INT32_MAX) continue;
    StrBuf b = {0};
    describe_position(&b, e, i);
    lower_error(l, loc, "E-weight", "tensor `%s` of %s: element %s is %lld, which does not fit s32",
                entry_name(l, e, path), path, b.data, (long long)x);
    strbuf_free(&b);
    return false;
  }
  return true;
}

static bool usable_shape(Lower *l, const TensorEntry *e, const char *path, SrcLoc loc) {
  if (e->rank > IR_MAX_RANK) {
    lower_error(l, loc, "E-weight", "tensor `%s` of %s has %d axes; at most %d are possible",
                entry_name(l, e, path), path, e->rank, IR_MAX_RANK);
    return false;
  }
  for (int a = 0; a < e->rank; a++)
    if (e->shape[a] < 1) {
      lower_error(l, loc, "E-weight", "tensor `%s` of %s is empty: axis %d is %lld",
                  entry_name(l, e, path), path, a, (long long)e->shape[a]);
      return false;
    }
  return true;
}

/* The tensor as constant data: mapped where the machine knows its element type, else converted.
 * NULL after a report. */
static const IrAttr *entry_data(Lower *l, const WeightUse *use) {
  const TensorEntry *e = use->entry;
  const char *path = tensor_file_path(use->file);
  const void *data = tensor_file_data(use->file, e, l->m->diag, use->loc);
  if (!data || !check_s64(l, e, path, data, use->loc)) return NULL;
  const IrType *type = use->op->results[0].type;
  size_t n = (size_t)ir_type_elements(type);
  if (type->dtype == e->dtype)
    return check_values(l, e, path, type->dtype, data, n, use->loc)
               ? ir_attr_data_file(l->m, type, data, path, e->name)
               : NULL;
  void *bytes;
  const IrAttr *attr = ir_attr_data_new(l->m, type, &bytes);
  dtype_convert(type->dtype, bytes, e->dtype, data, n);
  bool ok = check_f64(l, e, path, data, bytes, use->loc) &&
            check_values(l, e, path, type->dtype, bytes, n, use->loc);
  return ok ? attr : NULL;
}

void weights_read(Lower *l, const IrValue *v) {
  for (WeightUse *use = l->weights.uses; use; use = use->hh.next) {
    if (use->read || !use->op || (v && v->def != use->op)) continue;
    use->read = true;
    const IrAttr *data = entry_data(l, use);
    if (data) ir_set_attr(use->op, "data", data);
  }
}

/* ---- lookup ---- */

static const TensorEntry *find_entry(const Lower *l, const char *name, TensorFile **file) {
  for (size_t i = 0; i < l->weights.nfiles; i++) {
    *file = l->weights.files[i];
    const TensorEntry *e = tensor_file_find(*file, name);
    const TensorEntry *only = tensor_file_count(*file) == 1 ? tensor_file_at(*file, 0) : NULL;
    if (!e && only && strcmp(name, entry_name(l, only, tensor_file_path(*file))) == 0) e = only;
    if (e) return e;
  }
  return NULL;
}

/* The file has it, in a form this compiler does not read. */
static bool report_unusable(Lower *l, const char *name, SrcLoc loc) {
  for (size_t i = 0; i < l->weights.nfiles; i++) {
    const char *why = tensor_file_why_unusable(l->weights.files[i], name);
    if (!why) continue;
    lower_error(l, loc, "E-weight", "tensor `%s` of %s %s", name,
                tensor_file_path(l->weights.files[i]), why);
    return true;
  }
  return false;
}

static void report_missing(Lower *l, const char *name, SrcLoc loc) {
  Weights *w = &l->weights;
  if (w->absent) {
    weights_open(l, w->absent, w->absent_loc);
    w->absent = NULL;
  }
  if (w->incomplete || (w->nfiles == 0 && l->program->failed))
    return; /* the file that could not be opened is the problem */
  if (w->nfiles == 0) {
    lower_error(
        l, loc, "E-weight",
        "there is no weight file to find `%s` in; name one with: weights \"file.safetensors\"",
        name);
    return;
  }
  size_t n = 0, count = 0;
  for (size_t i = 0; i < w->nfiles; i++) n += tensor_file_count(w->files[i]);
  const char **names = ARENA_ARRAY(l->arena, const char *, n + 1);
  StrBuf where = {0};
  for (size_t i = 0; i < w->nfiles; i++) {
    strbuf_printf(&where, "%s%s", i ? ", " : "", tensor_file_path(w->files[i]));
    for (size_t j = 0; j < tensor_file_count(w->files[i]); j++)
      names[count++] = entry_name(l, tensor_file_at(w->files[i], j), tensor_file_path(w->files[i]));
  }
  const char *near = str_nearest(name, names, count);
  if (near)
    lower_error(l, loc, "E-weight", "there is no tensor `%s` in %s; did you mean `%s`?", name,
                where.data, near);
  else
    lower_error(l, loc, "E-weight", "there is no tensor `%s` among the %zu of %s", name, count,
                where.data);
  strbuf_free(&where);
}

/* The weight op of a tensor, whose bytes are still to be read. */
static void make_weight(Lower *l, WeightUse *use, const char *name) {
  const TensorEntry *e = use->entry;
  const char *path = tensor_file_path(use->file);
  if (!usable_shape(l, e, path, use->loc)) return;
  const IrType *type = ir_type_tensor(l->m, machine_dtype(e->dtype), e->rank, e->shape);
  IrAttrInit attr = {"data", ir_attr_data_file(l->m, type, NULL, path, e->name)};
  use->op = lower_op(l, use->loc, IR_OP_WEIGHT, 0, NULL, 1, &attr);
  use->value = lower_results(use->op, use->loc, l->arena);
  if (use->op) use->value.tensor->name = ir_str(l->m, name);
}

Value weight_lookup(Lower *l, const char *name, SrcLoc loc) {
  TensorFile *file = NULL;
  const TensorEntry *e = find_entry(l, name, &file);
  if (!e) {
    if (!report_unusable(l, name, loc)) report_missing(l, name, loc);
    return value_poison();
  }
  WeightUse *use = NULL;
  HASH_FIND_PTR(l->weights.uses, &e, use);
  if (use) return use->value;
  use = ARENA_NEW(l->arena, WeightUse);
  *use = (WeightUse){.entry = e, .file = file, .loc = loc, .value = value_poison()};
  make_weight(l, use, name);
  HASH_ADD_PTR(l->weights.uses, entry, use);
  return use->value;
}

/* ---- initializers ---- */

static const struct {
  const char *name;
  const char *args[3]; /* attributes of the weight op */
} initializers[] = {{"normal", {"seed", "std", "mean"}},
                    {"uniform", {"seed", "lo", "hi"}},
                    {"zeros", {NULL}},
                    {"ones", {NULL}}};

#define INITIALIZER_MAX 1e37 /* the normal generator goes up to some nine deviations */

static int find_initializer(Lower *l, const Node *init) {
  const char *names[NPU_COUNTOF(initializers)];
  for (size_t k = 0; k < NPU_COUNTOF(initializers); k++) {
    names[k] = initializers[k].name;
    if (init->name && strcmp(names[k], init->name) == 0) return (int)k;
  }
  const char *near = init->name ? str_nearest(init->name, names, NPU_COUNTOF(names)) : NULL;
  if (near)
    lower_error(l, init->loc, "E-weight", "`%s` is no initializer; did you mean `%s`?", init->name,
                near);
  else
    lower_error(l, init->loc, "E-weight",
                "expected an initializer: normal(seed, std, mean), uniform(seed, lo, hi), zeros() "
                "or ones()");
  return -1;
}

static bool initializer_arg(Lower *l, int k, const Node *arg, IrAttrInit *out) {
  Value v = eval_one(l, arg->a);
  const char *name = NULL, *const *known = initializers[k].args;
  size_t nknown = 0;
  while (nknown < 3 && known[nknown]) nknown++;
  for (size_t i = 0; i < nknown; i++)
    if (arg->name && strcmp(arg->name, known[i]) == 0) name = known[i];
  if (!name) {
    const char *near = arg->name ? str_nearest(arg->name, known, nknown) : NULL;
    if (!arg->name)
      lower_error(l, arg->loc, "E-arg", "the arguments of an initializer are named: seed = 1");
    else if (near)
      lower_error(l, arg->name_loc, "E-arg", "`%s` has no argument `%s`; did you mean `%s`?",
                  initializers[k].name, arg->name, near);
    else
      lower_error(l, arg->name_loc, "E-arg", "`%s` has no argument `%s`", initializers[k].name,
                  arg->name);
    return false;
  }
  if (v.kind == VALUE_POISON) return false;
  bool seed = strcmp(name, "seed") == 0;
  if (seed ? v.kind != VALUE_INT : !value_is_number(v)) {
    lower_error(l, arg->a->loc, "E-arg", "`%s` is %s", name, seed ? "an integer" : "a number");
    return false;
  }
  if (!seed && !(fabs(value_number(v)) <= INITIALIZER_MAX)) {
    lower_error(l, arg->a->loc, "E-arg",
                "`%s` is at most %g: a weight must be finite, also the rare large ones", name,
                INITIALIZER_MAX);
    return false;
  }
  *out = (IrAttrInit){name, seed ? ir_attr_int(l->m, v.i) : ir_attr_float(l->m, value_number(v))};
  return true;
}

static bool takes_seed(int k) {
  return initializers[k].args[0] && strcmp(initializers[k].args[0], "seed") == 0;
}

static bool has_seed(const IrAttrInit *attrs, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(attrs[i].name, "seed") == 0) return true;
  return false;
}

static Value initialized(Lower *l, const Node *n, const IrType *type) {
  const Node *init = n->b;
  IrAttrInit attrs[8];
  size_t count = 0;
  if (init->kind != NODE_CALL && init->kind != NODE_NAME) {
    if (init->kind == NODE_BROKEN) return value_poison();
    Node unnamed = *init;
    unnamed.name = NULL;
    find_initializer(l, &unnamed);
    return value_poison();
  }
  int k = find_initializer(l, init);
  if (k < 0) return value_poison();
  bool ok = true;
  NODE_EACH(arg, init->list) {
    IrAttrInit a = {0};
    if (!initializer_arg(l, k, arg, &a)) ok = false;
    for (size_t i = 0; ok && i < count; i++)
      if (strcmp(attrs[i].name, a.name) == 0) {
        lower_error(l, arg->loc, "E-arg", "argument `%s` is given twice", a.name);
        ok = false;
      }
    if (!ok) continue;
    attrs[count++] = a;
  }
  if (!ok || !type) return value_poison();
  int64_t number = l->initializers++;
  if (takes_seed(k) && !has_seed(attrs, count))
    attrs[count++] = (IrAttrInit){"seed", ir_attr_int(l->m, number)};
  StrBuf text = {0};
  ir_type_print(&text, type);
  attrs[count++] = (IrAttrInit){"type", ir_attr_str(l->m, text.data)};
  attrs[count++] = (IrAttrInit){"init", ir_attr_str(l->m, initializers[k].name)};
  strbuf_free(&text);
  return lower_results(lower_op(l, n->loc, IR_OP_WEIGHT, 0, NULL, count, attrs), n->loc, l->arena);
}

void exec_weight(Lower *l, const Node *n) {
  Binding *old = scope_find(l->scope, n->name);
  if (old && old->decl != n) {
    lower_error(l, n->name_loc, "E-duplicate", "`%s` is defined twice", n->name);
    lower_note(l, old->loc, "first defined here");
    return;
  }
  const IrType *type = eval_type(l, n->a, n->name);
  Value v = initialized(l, n, type);
  scope_bind(l, n->name, BIND_VARIABLE, v, n->loc, n);
}
