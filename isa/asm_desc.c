/* .desc and .vprog. */
#include "isa/asm_internal.h"
#include <string.h>

static bool dtype_value(Asm *a, uint8_t *out) {
  DType t;
  if (a->tok.kind != TOK_WORD || !dtype_parse(a->tok.text, &t) || t >= DT_MACHINE_COUNT)
    return asm_error(a, "expected s8, bf16, f32 or s32, found '%s'", a->tok.text);
  *out = (uint8_t)t;
  asm_next(a);
  return true;
}

static bool set_field(Asm *a, IsaDesc *d, uint8_t field) {
  int64_t v;
  SrcLoc loc = asm_loc(a);
  char buf[24];
  if (!asm_int(a, INT64_MIN, INT64_MAX, "a field value", &v)) return false;
  return isa_field_set(d, field, v) || asm_error_at(a, loc, "%lld does not fit field '%s'",
                                                    (long long)v, isa_field_name(field, buf));
}

/* [v, v, ...] into consecutive fields. */
static bool set_list(Asm *a, IsaDesc *d, uint8_t first, unsigned count) {
  for (unsigned i = 0; !asm_accept(a, ']'); i++) {
    if (i && !asm_expect(a, ',')) return false;
    if (i == count) return asm_error(a, "the list has more than %u elements", count);
    if (!set_field(a, d, (uint8_t)(first + i))) return false;
  }
  return true;
}

/* acc:s32@128[64,0,0,0,1] */
static bool stream_value(Asm *a, IsaDesc *d, unsigned s) {
  char name[24];
  uint8_t base, stride;
  if (asm_is_word(a, "acc"))
    d->vec.stream[s].space = SPACE_ACC;
  else if (!asm_is_word(a, "spm"))
    return asm_error(a, "expected spm or acc, found '%s'", a->tok.text);
  asm_next(a);
  if (s >= d->nstreams) d->nstreams = (uint8_t)(s + 1);
  snprintf(name, sizeof name, "base.%u", s);
  isa_field_by_name(DESC_VECTOR, name, &base);
  snprintf(name, sizeof name, "stride.%u", 5 * s);
  isa_field_by_name(DESC_VECTOR, name, &stride);
  return asm_expect(a, ':') && dtype_value(a, &d->vec.stream[s].dtype) && asm_expect(a, '@') &&
         set_field(a, d, base) && asm_expect(a, '[') && set_list(a, d, stride, 5);
}

static bool small_value(Asm *a, uint8_t *out) {
  int64_t v;
  if (!asm_int(a, 0, 255, "a small number", &v)) return false;
  *out = (uint8_t)v;
  return true;
}

static bool field_value(Asm *a, IsaDesc *d, const char *key, SrcLoc loc) {
  uint8_t f;
  char first[40];
  if (isa_field_by_name(d->kind, key, &f)) return set_field(a, d, f);
  snprintf(first, sizeof first, "%.30s.0", key);
  IsaField info;
  if (!isa_field_by_name(d->kind, first, &f) || !isa_field_info(f, d->kind, &info))
    return asm_error_at(a, loc, "a %s descriptor has no field '%s'; isa/README.md lists them",
                        isa_desc_kind_name(d->kind), key);
  return asm_expect(a, '[') && set_list(a, d, f, info.count);
}

typedef struct {
  const char *key[64]; /* more than there are fields */
  unsigned n;
} Given;

static bool key_value(Asm *a, IsaDesc *d, Given *given) {
  SrcLoc loc = asm_loc(a);
  if (a->tok.kind != TOK_WORD) return asm_error(a, "expected field=value");
  const char *key = a->tok.text;
  for (unsigned i = 0; i < given->n; i++)
    if (strcmp(given->key[i], key) == 0) return asm_error(a, "field '%s' is given twice", key);
  if (given->n < NPU_COUNTOF(given->key)) given->key[given->n++] = key;
  asm_next(a);
  if (!asm_expect(a, '=')) return false;
  bool mxu = d->kind == DESC_PLANE || d->kind == DESC_ROWS;
  if (d->kind == DESC_DMA && strcmp(key, "rank") == 0) return small_value(a, &d->rank);
  if (d->kind == DESC_DMA && strcmp(key, "elsize") == 0) return small_value(a, &d->elsize);
  if (mxu && strcmp(key, "dtype") == 0) return dtype_value(a, &d->dtype);
  if (d->kind == DESC_ROWS && strcmp(key, "wdtype") == 0) return dtype_value(a, &d->wdtype);
  if (d->kind == DESC_VECTOR && key[0] == 's' && key[1] >= '0' && key[1] < '0' + ISA_STREAMS &&
      key[2] == 0)
    return stream_value(a, d, (unsigned)(key[1] - '0'));
  return field_value(a, d, key, loc);
}

static bool next_number(Asm *a, uint32_t expected, const char *what) {
  int64_t n;
  SrcLoc loc = asm_loc(a);
  if (!asm_int(a, 0, UINT32_MAX, "a number", &n)) return false;
  return n == expected ||
         asm_error_at(a, loc, "%s are numbered in order: this one is %u", what, expected);
}

bool asm_desc(Asm *a) {
  IsaDesc d = {0};
  Given given = {0};
  IsaDescKind kind;
  const char *why = "";
  SrcLoc loc = asm_loc(a);
  bool ok = next_number(a, ASM_COUNT(a->descs, IsaDesc), "descriptors");
  if (ok && (a->tok.kind != TOK_WORD || !isa_desc_kind_by_name(a->tok.text, &kind)))
    ok = asm_error(a, "expected dma, plane, rows or vector, found '%s'", a->tok.text);
  if (ok) {
    d.kind = (uint8_t)kind;
    asm_next(a);
    while (ok && a->tok.kind != TOK_END) ok = key_value(a, &d, &given);
    if (ok && !isa_desc_check(&d, &a->img->machine, &why)) ok = asm_error_at(a, loc, "%s", why);
  }
  ASM_PUSH(a->descs, d); /* also after an error, so that later numbers make sense */
  return ok;
}

/* Adds the micro-operations of one line; *closed when '}' was seen. */
static bool vprog_line(Asm *a, IsaVprog *p, bool *closed) {
  char why[160];
  SrcLoc loc = asm_loc(a);
  size_t len;
  const char *s = asm_rest(a, &len), *end = s + len;
  const char *close = memchr(s, '}', len);
  if (close) {
    *closed = true;
    for (const char *q = close + 1; q < end; q++)
      if (*q != ' ' && *q != '\t' && *q != '\r')
        return asm_error_at(a, loc, "unexpected text after '}'");
    end = close;
  }
  while (s < end) {
    const char *semi = memchr(s, ';', (size_t)(end - s));
    const char *stop = semi ? semi : end;
    const char *from = s;
    while (from < stop && (*from == ' ' || *from == '\t' || *from == '\r')) from++;
    loc.col = (uint32_t)(from - a->line_text) + 1;
    loc.end_col = (uint32_t)(stop - a->line_text) + 1;
    if (from < stop) {
      if (p->n == ISA_VPROG_MAX)
        return asm_error_at(a, loc, "a vector program has at most 64 micro-operations");
      if (!isa_vop_parse(from, (size_t)(stop - from), &p->ops[p->n], why))
        return asm_error_at(a, loc, "%s", why);
      p->n++;
    }
    s = stop + 1;
  }
  return true;
}

bool asm_vprog(Asm *a) {
  IsaVprog p = {0};
  const char *why = "";
  SrcLoc loc = asm_loc(a);
  bool closed = false;
  bool ok = next_number(a, ASM_COUNT(a->vprogs, IsaVprog), "vector programs");
  if (!asm_expect(a, '{'))
    ok = false;
  else {
    ok = vprog_line(a, &p, &closed) && ok;
    while (!closed && asm_next_line(a)) ok = vprog_line(a, &p, &closed) && ok;
    if (!closed) ok = asm_error_at(a, loc, "the vector program is not closed with '}'");
  }
  if (ok && !isa_vprog_check(&p, ISA_STREAMS, &why)) ok = asm_error_at(a, loc, "%s", why);
  ASM_PUSH(a->vprogs, p);
  return ok;
}
