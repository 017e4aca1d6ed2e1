/* The op table: rows from ops.def, their signatures parsed once. */
#include "ir/internal.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define OP(e, name, levels, ...)                                                                   \
  _Static_assert(!((levels)&IR_BODY), name ": an op of kernel bodies is a BODY_OP row");
#define BODY_OP(e, name, levels, ...)                                                              \
  _Static_assert((levels)&IR_BODY, name ": no op of kernel bodies, so an OP row");
#include "ir/ops.def"
#undef OP

#define OP(e, name, levels, traits, nresults, signature, shape, doc)                               \
  {IR_OP_##e, name, levels, traits, signature, nresults, doc},
static const IrOpInfo op_rows[] = {
#include "ir/ops.def"
};
#undef OP

/* The only data of ir/ outside a module: written once, by whichever thread comes first, and
 * constant after. */
static struct {
  IrParam params[320];
  int nparams;
  int first[IR_OP_COUNT], count[IR_OP_COUNT];
  char text[8192];
  size_t used;
} table;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static const char *keep(const char *s, size_t len) {
  while (len && *s == ' ') s++, len--;
  while (len && s[len - 1] == ' ') len--;
  if (table.used + len + 1 > sizeof table.text) abort(); /* a row was added: make room above */
  char *copy = table.text + table.used;
  memcpy(copy, s, len);
  table.used += len + 1;
  return copy;
}

/* One comma-separated item: "x", "bias?", "x..." or "name:type=default". */
static void add_param(const char *s, size_t len, bool is_operand) {
  while (len && *s == ' ') s++, len--;
  while (len && s[len - 1] == ' ') len--;
  if (!len) return;
  if (table.nparams == (int)NPU_COUNTOF(table.params)) abort();
  IrParam *p = &table.params[table.nparams++];
  p->is_operand = is_operand;
  if (is_operand) {
    p->optional = s[len - 1] == '?';
    p->variadic = len > 3 && !memcmp(s + len - 3, "...", 3);
    p->name = keep(s, len - (p->optional ? 1 : p->variadic ? 3 : 0));
    return;
  }
  const char *colon = memchr(s, ':', len), *equals = memchr(s, '=', len), *end = s + len;
  assert(colon);
  p->name = keep(s, (size_t)(colon - s));
  p->type = keep(colon + 1, (size_t)((equals ? equals : end) - colon - 1));
  p->dflt = equals ? keep(equals + 1, (size_t)(end - equals - 1)) : NULL;
}

static void parse_signatures(void) {
  for (int k = 0; k < IR_OP_COUNT; k++) {
    bool is_operand = true;
    table.first[k] = table.nparams;
    for (const char *s = op_rows[k].signature;;) {
      size_t len = strcspn(s, ",|");
      add_param(s, len, is_operand);
      if (s[len] == '|') is_operand = false;
      if (!s[len]) break;
      s += len + 1;
    }
    table.count[k] = table.nparams - table.first[k];
  }
}

const IrOpInfo *ir_op_info(IrOpKind kind) {
  return &op_rows[kind];
}

bool ir_op_by_name(const char *name, IrOpKind *out) {
  for (int k = 0; k < IR_OP_COUNT; k++) {
    if (strcmp(op_rows[k].name, name)) continue;
    *out = (IrOpKind)k;
    return true;
  }
  return false;
}

int ir_op_params(IrOpKind kind, const IrParam **out) {
  pthread_once(&table_once, parse_signatures);
  *out = &table.params[table.first[kind]];
  return table.count[kind];
}

bool ir_has_trait(const IrOp *op, unsigned traits) {
  return (op_rows[op->kind].traits & traits) == traits;
}

const IrAttr *param_default(IrModule *m, const IrParam *p, const IrNamedAttr *attrs, int nattrs) {
  int64_t i;
  double f;
  DType dtype;
  if (!p->dflt || !strcmp(p->dflt, "none")) return NULL;
  if (!strcmp(p->type, "float")) return parse_f64(p->dflt, &f) ? ir_attr_float(m, f) : NULL;
  if (!strcmp(p->type, "bool")) return ir_attr_bool(m, !strcmp(p->dflt, "true"));
  if (!strcmp(p->type, "str")) return ir_attr_str(m, p->dflt);
  if (!strcmp(p->type, "dtype"))
    return dtype_parse(p->dflt, &dtype) ? ir_attr_dtype(m, dtype) : NULL;
  if (parse_i64(p->dflt, &i)) return ir_attr_int(m, i);
  if (!strcmp(p->type, "axes")) return ir_attr_str(m, p->dflt);
  return attrs_find(attrs, nattrs, p->dflt);
}

void fill_defaults(IrOp *op) {
  const IrParam *p;
  int n = ir_op_params(op->kind, &p);
  for (int i = 0; i < n; i++) {
    if (p[i].is_operand) continue;
    const IrAttr *a = ir_attr(op, p[i].name), *wanted = a;
    if (!a)
      wanted = param_default(op->module, &p[i], op->attrs, op->nattrs);
    else if (!strcmp(p[i].type, "float") && a->kind == IR_ATTR_INT)
      wanted = ir_attr_float(op->module, (double)a->i);
    if (wanted != a) ir_set_attr(op, p[i].name, wanted);
  }
}
