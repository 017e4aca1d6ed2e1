/* Hints: the notes on ops that the compiler itself knows. */
#include "ir/internal.h"

#include <string.h>

#define ROW(word) .name = word, .attr = IR_HINT_PREFIX word
const IrHint ir_hints[IR_HINT_COUNT] = {
    {ROW("bf16"), .type = "bool", .effective = true, .numerics = true},
    {ROW("f32"), .type = "bool", .effective = true, .numerics = true},
    {ROW("int8"), .type = "bool", .effective = true, .numerics = true, .products = true},
    {ROW("bits"), .type = "float", .argument = "bits"},
    {ROW("shard"), .type = "int", .argument = "axis"},
    {ROW("stage"), .type = "int", .argument = "stage"},
    {ROW("keep"), .type = "bool"},
};
#undef ROW

bool is_hint(const char *attr) {
  return !strncmp(attr, IR_HINT_PREFIX, strlen(IR_HINT_PREFIX));
}

const IrHint *hint_find(const char *attr) {
  for (size_t i = 0; i < IR_HINT_COUNT; i++)
    if (!strcmp(ir_hints[i].attr, attr)) return &ir_hints[i];
  return NULL;
}

void ir_copy_hints(IrOp *to, const IrOp *from) {
  for (int i = 0; i < from->nattrs; i++)
    if (is_hint(from->attrs[i].name)) ir_set_attr(to, from->attrs[i].name, from->attrs[i].value);
}

bool hint_unknown(IrModule *m, SrcLoc loc, const char *attr) {
  const char *names[IR_HINT_COUNT];
  StrBuf list = {0};
  for (size_t i = 0; i < IR_HINT_COUNT; i++) {
    names[i] = ir_hints[i].attr;
    strbuf_printf(&list, "%s`%s`", i == 0 ? "" : i + 1 < IR_HINT_COUNT ? ", " : " and ", names[i]);
  }
  const char *near = str_nearest(attr, names, IR_HINT_COUNT);
  diag_error(m->diag, loc, "E-attr", "there is no hint `%.60s`%s%s%s; there are %s", attr,
             near ? ", did you mean `" : "", near ? near : "", near ? "`?" : "", list.data);
  strbuf_free(&list);
  return false;
}
