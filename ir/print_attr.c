/* Text form of attributes: numbers, lists, affine maps, tensor data. */
#include "ir/print.h"

#include <string.h>

bool is_default(const IrOp *op, const char *name, const IrAttr *value) {
  const IrParam *p;
  int n = ir_op_params(op->kind, &p);
  for (int i = 0; i < n; i++)
    if (!p[i].is_operand && !strcmp(p[i].name, name))
      return param_default(op->module, &p[i], op->attrs, op->nattrs) == value;
  return false;
}

/* ---- affine maps ---- */

static void print_term(StrBuf *b, int64_t coef, int d, bool first, int ndims,
                       const char *const *dims) {
  uint64_t magnitude = coef < 0 ? 0 - (uint64_t)coef : (uint64_t)coef;
  strbuf_puts(b, coef < 0 ? (first ? "-" : " - ") : (first ? "" : " + "));
  if (ndims > d)
    strbuf_puts(b, dims[d]);
  else
    strbuf_printf(b, "d%d", d);
  if (magnitude != 1) strbuf_printf(b, "*%llu", (unsigned long long)magnitude);
}

static void print_affine(StrBuf *b, const IrAffine *a, int ndims, const char *const *dims) {
  bool first = true;
  if (a->index >= 0) {
    strbuf_printf(b, "@%d", a->index);
    first = false;
  }
  for (int d = 0; d < IR_MAX_DIMS && a->index < 0; d++) {
    if (!a->coef[d]) continue;
    print_term(b, a->coef[d], d, first, ndims, dims);
    first = false;
  }
  if (first)
    strbuf_printf(b, "%lld", (long long)a->cst);
  else if (a->cst)
    strbuf_printf(b, " %c %llu", a->cst < 0 ? '-' : '+',
                  (unsigned long long)(a->cst < 0 ? 0 - (uint64_t)a->cst : (uint64_t)a->cst));
}

/* ---- data ---- */

/* Whether every one of the first n elements survives being written as a number. 64-bit integers
 * pass through doubles and are therefore always written in hex. */
static bool numbers_exact(const IrData *d, size_t n) {
  size_t size = dtype_size(d->type->dtype);
  if (d->type->dtype == DT_S64) return false;
  for (size_t i = 0; i < n; i++) {
    uint64_t back = 0;
    dtype_set(d->type->dtype, &back, 0, dtype_get(d->type->dtype, d->bytes, i));
    if (memcmp(&back, (const char *)d->bytes + i * size, size)) return false;
  }
  return true;
}

static void print_number(StrBuf *b, const IrData *d, size_t i) {
  double v = dtype_get(d->type->dtype, d->bytes, i), back;
  if (!dtype_is_float(d->type->dtype)) {
    strbuf_printf(b, "%lld", (long long)v);
    return;
  }
  /* The shorter digits of the float, when they also lead to it through a double. */
  size_t start = b->len;
  if (d->type->dtype != DT_F64) {
    strbuf_float(b, (float)v);
    if (parse_f64(b->data + start, &back) && (double)(float)back == v) return;
    b->len = start;
  }
  strbuf_double(b, v);
}

static bool all_equal(const IrData *d) {
  size_t size = dtype_size(d->type->dtype), total = (size_t)ir_type_bytes(d->type);
  const char *bytes = d->bytes;
  return total <= TEXT_SPLAT_BYTES && !memcmp(bytes, bytes + size, total - size);
}

void print_path(StrBuf *b, const PathMaps *paths, const char *path) {
  StrBuf mapped = {0};
  strbuf_mapped_path(&mapped, paths, path);
  strbuf_quote(b, mapped.data ? mapped.data : "");
  strbuf_free(&mapped);
}

/* "file("w.safetensors", "fc1.weight", offset)"; false when the bytes are not inside that tensor.
 */
static bool print_file_data(StrBuf *b, const AttrStyle *style, const IrData *d) {
  const IrModule *m = style->m;
  TensorFile *f = d->file && d->name ? ir_module_file((IrModule *)(uintptr_t)m, d->file) : NULL;
  const TensorEntry *e = f ? tensor_file_find(f, d->name) : NULL;
  if (!e) return false;
  uintptr_t at = (uintptr_t)d->bytes,
            start = (uintptr_t)tensor_file_data(f, e, m->diag, SRC_LOC_NONE);
  size_t bytes = (size_t)ir_type_bytes(d->type);
  if (e->dtype != d->type->dtype || at < start || at - start > e->bytes ||
      bytes > e->bytes - (at - start))
    return false;
  strbuf_puts(b, "file(");
  print_path(b, style->paths, d->file);
  strbuf_puts(b, ", ");
  strbuf_quote(b, d->name);
  if (at != start) strbuf_printf(b, ", %zu", (size_t)(at - start));
  strbuf_putc(b, ')');
  return true;
}

static void print_hex(StrBuf *b, const IrData *d) {
  static const char digits[] = "0123456789abcdef";
  const uint8_t *bytes = d->bytes;
  int64_t n = ir_type_bytes(d->type);
  strbuf_puts(b, "hex(\"");
  for (int64_t i = 0; i < n; i++) {
    strbuf_putc(b, digits[bytes[i] >> 4]);
    strbuf_putc(b, digits[bytes[i] & 15]);
  }
  strbuf_puts(b, "\")");
}

static void print_data(StrBuf *b, const AttrStyle *style, const IrData *d) {
  size_t n = (size_t)ir_type_elements(d->type);
  strbuf_puts(b, "data<");
  ir_type_print(b, d->type);
  strbuf_puts(b, ", ");
  if (print_file_data(b, style, d)) {
  } else if (n > 1 && all_equal(d) && numbers_exact(d, 1)) {
    strbuf_puts(b, "splat(");
    print_number(b, d, 0);
    strbuf_putc(b, ')');
  } else if (style->elide_data > 0 && n > (uint64_t)style->elide_data) {
    strbuf_puts(b, "elided");
  } else if (n <= TEXT_LIST_ELEMENTS && numbers_exact(d, n)) {
    for (size_t i = 0; i < n; i++) {
      strbuf_puts(b, i ? ", " : "[");
      print_number(b, d, i);
    }
    strbuf_putc(b, ']');
  } else {
    print_hex(b, d);
  }
  strbuf_putc(b, '>');
}

void print_attr(StrBuf *b, const AttrStyle *style, const IrAttr *a) {
  switch (a->kind) {
  case IR_ATTR_INT: strbuf_printf(b, "%lld", (long long)a->i); break;
  case IR_ATTR_FLOAT: strbuf_double(b, a->f); break;
  case IR_ATTR_BOOL: strbuf_puts(b, a->b ? "true" : "false"); break;
  case IR_ATTR_STR: strbuf_quote(b, a->s); break;
  case IR_ATTR_DTYPE: strbuf_puts(b, dtype_name(a->dtype)); break;
  case IR_ATTR_DATA: print_data(b, style, a->data); break;
  case IR_ATTR_ARRAY:
    strbuf_putc(b, '[');
    for (size_t i = 0; i < a->array.n; i++) {
      if (i) strbuf_puts(b, ", ");
      print_attr(b, style, a->array.items[i]);
    }
    strbuf_putc(b, ']');
    break;
  case IR_ATTR_MAP:
    strbuf_putc(b, '(');
    for (int i = 0; i < a->map->rank; i++) {
      if (i) strbuf_puts(b, ", ");
      print_affine(b, &a->map->axis[i], style->ndims, style->dims);
    }
    strbuf_putc(b, ')');
    break;
  }
}

void ir_attr_print(StrBuf *b, const IrModule *m, const IrAttr *a) {
  print_attr(b, &(AttrStyle){.m = m, .ndims = -1}, a);
}
