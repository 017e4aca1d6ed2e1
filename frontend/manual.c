/* The operator reference, written from the op table. */
#include <string.h>

#include "frontend/lower.h"

static void put_cell(StrBuf *out, const char *s) {
  for (; *s; s++) {
    if (*s == '|') strbuf_putc(out, '\\');
    strbuf_putc(out, *s);
  }
}

static void put_types(StrBuf *out, IrOpKind kind) {
  const IrParam *params;
  int n = ir_op_params(kind, &params), shown = 0;
  for (int i = 0; i < n; i++) {
    if (params[i].is_operand) continue;
    strbuf_printf(out, "%s`%s` %s", shown++ ? ", " : "", params[i].name, params[i].type);
  }
}

void mdl_manual(StrBuf *out) {
  strbuf_puts(out, "| call | attributes | meaning |\n|---|---|---|\n");
  for (int k = 0; k < IR_OP_COUNT; k++) {
    IrOpKind kind, wanted = (IrOpKind)k;
    const IrOpInfo *info = ir_op_info(wanted);
    if (!callable_op(info->name, &kind) || kind != wanted) continue;
    StrBuf signature = {0};
    op_signature(&signature, kind);
    strbuf_puts(out, "| `");
    put_cell(out, signature.data);
    strbuf_puts(out, "` | ");
    put_types(out, kind);
    strbuf_puts(out, " | ");
    put_cell(out, info->doc);
    strbuf_puts(out, " |\n");
    strbuf_free(&signature);
  }
}
