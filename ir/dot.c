/* A function's dataflow as a Graphviz graph. */
#include "ir/internal.h"

static void print_label(StrBuf *b, const char *s) {
  for (; *s; s++) {
    if (*s == '"' || *s == '\\') strbuf_putc(b, '\\');
    strbuf_putc(b, *s == '\n' ? ' ' : *s);
  }
}

/* A node per op; its id is its number in ids. */
static void print_nodes(StrBuf *b, const IrBlock *block, PtrMap **ids, uintptr_t *next) {
  for (int i = 0; i < block->nargs && !block->owner; i++) {
    ptr_map_put(ids, block->args[i], (void *)++*next);
    strbuf_printf(b, "    n%zu [shape=oval, label=\"", (size_t)*next);
    print_label(b, block->args[i]->name ? block->args[i]->name : "argument");
    strbuf_puts(b, "\\n");
    ir_type_print(b, block->args[i]->type);
    strbuf_puts(b, "\"];\n");
  }
  for (const IrOp *op = block->first; op; op = op->next) {
    ptr_map_put(ids, op, (void *)++*next);
    strbuf_printf(b, "    n%zu [label=\"%s", (size_t)*next, ir_op_info(op->kind)->name);
    for (int i = 0; i < op->nresults; i++) {
      strbuf_puts(b, "\\n");
      if (op->results[i].name) print_label(b, op->results[i].name);
      strbuf_puts(b, op->results[i].name ? ": " : "");
      ir_type_print(b, op->results[i].type);
    }
    strbuf_puts(b, "\"];\n");
    if (op->region && op->kind != IR_OP_KERNEL) print_nodes(b, op->region, ids, next);
  }
}

static void print_edges(StrBuf *b, const IrBlock *block, PtrMap *ids) {
  for (const IrOp *op = block->first; op; op = op->next) {
    size_t to = (size_t)(uintptr_t)ptr_map_get(ids, op);
    for (int i = 0; i < op->noperands; i++) {
      const IrValue *v = ir_operand(op, i);
      if (!v) continue;
      size_t from = (size_t)(uintptr_t)ptr_map_get(ids, v->def ? (const void *)v->def : v);
      if (from) strbuf_printf(b, "    n%zu -> n%zu;\n", from, to);
    }
    if (op->region && op->kind != IR_OP_KERNEL) print_edges(b, op->region, ids);
  }
}

void ir_print_dot(const IrModule *m, StrBuf *out) {
  uintptr_t next = 0;
  strbuf_puts(out, "digraph model {\n  node [shape=box, fontname=\"sans-serif\"];\n");
  for (int i = 0; i < m->nfuncs; i++) {
    PtrMap *ids = NULL;
    strbuf_printf(out, "  subgraph cluster_%d {\n    label=\"", i);
    print_label(out, m->funcs[i]->name);
    strbuf_puts(out, "\";\n");
    print_nodes(out, m->funcs[i]->body, &ids, &next);
    print_edges(out, m->funcs[i]->body, ids);
    strbuf_puts(out, "  }\n");
    ptr_map_free(&ids);
  }
  strbuf_puts(out, "}\n");
}
