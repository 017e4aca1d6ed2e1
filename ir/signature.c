/* Checking an op against its row's signature. */
#include "ir/internal.h"

#include <string.h>

static bool is_same_word(const IrAttr *a, const char *word) {
  return a->kind == IR_ATTR_STR && !strcmp(a->s, word);
}

static bool all_maps(const IrAttr *a) {
  if (a->kind != IR_ATTR_ARRAY) return false;
  for (size_t i = 0; i < a->array.n; i++)
    if (a->array.items[i]->kind != IR_ATTR_MAP) return false;
  return true;
}

/* Whether a fits the signature's type word; *wanted says in words what would. */
static bool attr_fits(const char *type, const IrAttr *a, const char **wanted) {
  IrAttrKind k = a->kind;
  *wanted = "something else"; /* "any" accepts everything */
  if (!strcmp(type, "int")) return *wanted = "a whole number", k == IR_ATTR_INT;
  if (!strcmp(type, "float")) return *wanted = "a number", k == IR_ATTR_FLOAT || k == IR_ATTR_INT;
  if (!strcmp(type, "bool")) return *wanted = "true or false", k == IR_ATTR_BOOL;
  if (!strcmp(type, "str")) return *wanted = "text in quotes", k == IR_ATTR_STR;
  if (!strcmp(type, "dtype")) return *wanted = "an element type such as f32", k == IR_ATTR_DTYPE;
  if (!strcmp(type, "data")) return *wanted = "tensor data", k == IR_ATTR_DATA;
  if (!strcmp(type, "map")) return *wanted = "an affine map", k == IR_ATTR_MAP;
  if (!strcmp(type, "maps")) return *wanted = "a list of affine maps", all_maps(a);
  if (!strcmp(type, "ints"))
    return *wanted = "a whole number or a list of whole numbers", attr_is_ints(a);
  if (!strcmp(type, "pads"))
    return *wanted = "a whole number, a list of whole numbers or \"same\"",
           attr_is_ints(a) || is_same_word(a, "same");
  if (!strcmp(type, "axes"))
    return *wanted = "an axis, a list of axes or \"all\"",
           attr_is_ints(a) || is_same_word(a, "all");
  return true;
}

static bool check_operands(IrModule *m, IrOpKind kind, SrcLoc loc, int noperands) {
  const IrParam *p;
  int n = ir_op_params(kind, &p), least = 0, most = 0;
  bool variadic = false;
  StrBuf list = {0};
  for (int i = 0; i < n; i++) {
    if (!p[i].is_operand) continue;
    strbuf_printf(&list, "%s%s%s", list.len ? ", " : "", p[i].name,
                  p[i].variadic   ? "..."
                  : p[i].optional ? "?"
                                  : "");
    if (p[i].variadic)
      variadic = true;
    else
      most++;
    if (!p[i].variadic && !p[i].optional) least++;
  }
  if (kind == IR_OP_CONCAT) least = 1;
  bool ok = noperands >= least && (variadic || noperands <= most);
  if (!ok)
    diag_error(m->diag, loc, "E-operands", "`%s` takes %s%d operand%s (%s), found %d",
               ir_op_info(kind)->name,
               variadic        ? "at least "
               : least != most ? "up to "
                               : "",
               variadic ? least : most, (variadic ? least : most) == 1 ? "" : "s",
               list.len ? list.data : "none", noperands);
  strbuf_free(&list);
  return ok;
}

static bool wrong_value(IrModule *m, IrOpKind kind, SrcLoc loc, const char *name, const IrAttr *a,
                        const char *wanted) {
  StrBuf text = {0};
  ir_attr_print(&text, m, a);
  diag_error(m->diag, loc, "E-attr", "`%s` of `%s` must be %s, found %s", name,
             ir_op_info(kind)->name, wanted, text.data);
  strbuf_free(&text);
  return false;
}

/* A note of the compiler's own. */
static bool check_hint(IrModule *m, IrOpKind kind, SrcLoc loc, const IrNamedAttr *a) {
  const IrHint *h = hint_find(a->name);
  const char *wanted;
  if (!h) return hint_unknown(m, loc, a->name);
  return attr_fits(h->type, a->value, &wanted) ||
         wrong_value(m, kind, loc, a->name, a->value, wanted);
}

/* An attribute is one of the signature, `layout`, which stands on any op, or a note, whose name has
 * a dot in it: nobody declared it, and it cannot be a slip of a declared name. Those of the
 * compiler's own prefix are declared. */
static bool check_declared(IrModule *m, IrOpKind kind, SrcLoc loc, const IrNamedAttr *attr) {
  const char *name = attr->name;
  const IrParam *p;
  int n = ir_op_params(kind, &p);
  size_t nnames = 0;
  if (is_hint(name)) return check_hint(m, kind, loc, attr);
  if (strchr(name, '.') || !strcmp(name, "layout")) return true;
  const char **names = mem_alloc(sizeof *names * (size_t)(n + 1));
  bool found = false;
  for (int i = 0; i < n; i++) {
    if (p[i].is_operand) continue;
    names[nnames++] = p[i].name;
    found = found || !strcmp(p[i].name, name);
  }
  const char *near = found ? NULL : str_nearest(name, names, nnames);
  mem_free(names);
  if (near)
    diag_error(m->diag, loc, "E-attr", "`%s` has no attribute `%.60s`; did you mean `%s`?",
               ir_op_info(kind)->name, name, near);
  else if (!found)
    diag_error(m->diag, loc, "E-attr",
               "`%s` has no attribute `%.60s`; a note of your own has a dot in its name, such as "
               "`my.%.60s`",
               ir_op_info(kind)->name, name, name);
  return found;
}

bool signature_check(IrModule *m, IrOpKind kind, SrcLoc loc, int noperands,
                     const IrNamedAttr *attrs, int nattrs) {
  const IrParam *p;
  int n = ir_op_params(kind, &p);
  bool ok = check_operands(m, kind, loc, noperands);
  for (int i = 0; i < nattrs; i++) ok &= check_declared(m, kind, loc, &attrs[i]);
  for (int i = 0; i < n; i++) {
    if (p[i].is_operand) continue;
    const IrAttr *a = attrs_find(attrs, nattrs, p[i].name);
    const char *wanted;
    if (!a && !p[i].dflt) {
      diag_error(m->diag, loc, "E-attr", "`%s` needs the attribute `%s`; add %s = ...",
                 ir_op_info(kind)->name, p[i].name, p[i].name);
      ok = false;
    } else if (a && !attr_fits(p[i].type, a, &wanted)) {
      ok = wrong_value(m, kind, loc, p[i].name, a, wanted);
    }
  }
  return ok;
}
