/* The op table as markdown, for the manual. */
#include "ir/internal.h"

static void print_cell(StrBuf *b, const char *s) {
  for (; *s; s++) {
    if (*s == '|') strbuf_putc(b, '\\');
    strbuf_putc(b, *s);
  }
}

static void print_levels(StrBuf *b, unsigned levels) {
  static const struct {
    unsigned bit;
    const char *name;
  } names[] = {{IR_GRAPH, "graph"}, {IR_NEST, "nest"}, {IR_BODY, "body"}, {IR_PROGRAM, "program"}};
  bool first = true;
  for (size_t i = 0; i < NPU_COUNTOF(names); i++) {
    if (!(levels & names[i].bit)) continue;
    strbuf_printf(b, "%s%s", first ? "" : ", ", names[i].name);
    first = false;
  }
}

static void print_params(StrBuf *b, IrOpKind kind, bool operands) {
  const IrParam *p;
  int n = ir_op_params(kind, &p);
  bool first = true;
  for (int i = 0; i < n; i++) {
    if (p[i].is_operand != operands) continue;
    strbuf_printf(b, "%s`%s", first ? "" : ", ", p[i].name);
    first = false;
    if (operands)
      strbuf_puts(b, p[i].variadic ? "..." : p[i].optional ? "?" : "");
    else
      strbuf_printf(b, ": %s%s%s", p[i].type, p[i].dflt ? " = " : "", p[i].dflt ? p[i].dflt : "");
    strbuf_putc(b, '`');
  }
}

void ir_manual(StrBuf *out) {
  strbuf_puts(out, "| op | levels | operands | attributes | meaning |\n|---|---|---|---|---|\n");
  for (int k = 0; k < IR_OP_COUNT; k++) {
    const IrOpInfo *info = ir_op_info((IrOpKind)k);
    strbuf_printf(out, "| `%s` | ", info->name);
    print_levels(out, info->levels);
    strbuf_puts(out, " | ");
    print_params(out, (IrOpKind)k, true);
    strbuf_puts(out, " | ");
    print_params(out, (IrOpKind)k, false);
    strbuf_puts(out, " | ");
    print_cell(out, info->doc);
    strbuf_puts(out, " |\n");
  }
}
