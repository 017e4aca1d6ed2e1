/* `desc` ops to descriptor records. */
#include "backend/npu/emit_internal.h"
#include <string.h>

static bool kind_by_name(const char *name, uint8_t *out) {
  static const struct {
    const char *name;
    IsaDescKind kind;
  } kinds[] = {
      {"dma", DESC_DMA}, {"plane", DESC_PLANE}, {"rows", DESC_ROWS}, {"vector", DESC_VECTOR}};
  for (size_t i = 0; i < NPU_COUNTOF(kinds); i++)
    if (!strcmp(kinds[i].name, name)) {
      *out = (uint8_t)kinds[i].kind;
      return true;
    }
  return false;
}

static bool set_header(IsaDesc *d, const char *name, int64_t v) {
  struct {
    const char *name;
    uint8_t *at;
  } head[] = {{"rank", &d->rank},
              {"elsize", &d->elsize},
              {"dtype", &d->dtype},
              {"wdtype", &d->wdtype},
              {"nstreams", &d->nstreams}};
  for (size_t i = 0; i < NPU_COUNTOF(head); i++)
    if (!strcmp(head[i].name, name)) {
      *head[i].at = (uint8_t)v;
      return v >= 0 && v < 256;
    }
  return false;
}

/* ["stream", k, "spm"|"acc", dtype] */
static bool set_stream(IsaDesc *d, const IrAttr *item) {
  const IrAttr **a = item->array.items;
  if (item->array.n != 4 || a[1]->kind != IR_ATTR_INT || a[2]->kind != IR_ATTR_STR ||
      a[3]->kind != IR_ATTR_DTYPE || a[1]->i < 0 || a[1]->i >= ISA_STREAMS)
    return false;
  d->vec.stream[a[1]->i].space = !strcmp(a[2]->s, "acc") ? SPACE_ACC : SPACE_SPM;
  d->vec.stream[a[1]->i].dtype = (uint8_t)a[3]->dtype;
  return true;
}

/* ["field", operand, constant]: an address. Streams over accumulators count words, buffers rows. */
static bool address_field(Emitter *e, const IrOp *op, const IrAttr *item, int64_t *out) {
  const IrAttr **a = item->array.items;
  if (a[1]->kind != IR_ATTR_INT || a[2]->kind != IR_ATTR_INT || a[1]->i < 0 ||
      a[1]->i >= op->noperands)
    return false;
  const IrValue *base = ir_operand(op, (int)a[1]->i);
  bool words = ir_is(base->def, IR_OP_BUFFER) &&
               !strcmp(ir_get_str(base->def, "space", ""), "acc") && !strncmp(a[0]->s, "base.", 5);
  *out = emit_address(e, base, words ? e->machine->mxu_cols : 1, a[2]->i);
  return true;
}

static bool set_item(Emitter *e, const IrOp *op, const IrAttr *item, IsaDesc *d) {
  if (item->kind != IR_ATTR_ARRAY || item->array.n < 2 || item->array.items[0]->kind != IR_ATTR_STR)
    return false;
  const char *name = item->array.items[0]->s;
  const IrAttr *value = item->array.items[1];
  uint8_t field;
  int64_t v;
  if (!strcmp(name, "stream")) return set_stream(d, item);
  if (item->array.n == 2 && value->kind == IR_ATTR_INT && set_header(d, name, value->i))
    return true;
  if (!isa_field_by_name((IsaDescKind)d->kind, name, &field)) return false;
  if (item->array.n == 3) {
    if (!address_field(e, op, item, &v)) return false;
  } else if (item->array.n == 2 && value->kind == IR_ATTR_INT) {
    v = value->i;
  } else {
    return false;
  }
  return isa_field_set(d, field, v);
}

bool emit_desc(Emitter *e, const IrOp *op, IsaDesc *d) {
  const IrAttr *fields = ir_attr(op, "fields");
  const char *why;
  memset(d, 0, sizeof *d);
  if (!kind_by_name(ir_get_str(op, "kind", ""), &d->kind) || !fields ||
      fields->kind != IR_ATTR_ARRAY) {
    emit_fail(e, op->loc, "a descriptor without a kind or fields");
    return false;
  }
  for (size_t i = 0; i < fields->array.n; i++) {
    if (set_item(e, op, fields->array.items[i], d)) continue;
    StrBuf b = {0};
    ir_attr_print(&b, e->f->module, fields->array.items[i]);
    emit_fail(e, op->loc, "descriptor field %s does not exist or does not fit", b.data);
    strbuf_free(&b);
    return false;
  }
  if (isa_desc_check(d, e->machine, &why)) return true;
  emit_fail(e, op->loc, "descriptor is not one machine '%s' accepts: %s", e->machine->name, why);
  return false;
}
