/* Timeline of a timed run as Chrome trace events (chrome://tracing, Perfetto): one track per
 * engine. */
#include "runtime/runtime_internal.h"

void trace_add(NpurtModel *m, uint32_t pc, IsaEngine e, bool wait, double start, double end) {
  if (!m->opt.trace) return;
  if (m->ntrace == m->trace_cap) {
    m->trace_cap = m->trace_cap ? 2 * m->trace_cap : 1024;
    m->trace = mem_realloc(m->trace, m->trace_cap * sizeof *m->trace);
  }
  double base = m->profile.cycles; /* earlier runs come first */
  m->trace[m->ntrace++] = (TraceSpan){pc, (uint8_t)e, wait, base + start, base + end};
}

static void put_escaped(StrBuf *b, const char *s) {
  strbuf_putc(b, '"');
  for (; *s; s++) {
    unsigned char c = (unsigned char)*s;
    if (c == '"' || c == '\\')
      strbuf_printf(b, "\\%c", c);
    else if (c < 0x20)
      strbuf_printf(b, "\\u%04x", c);
    else
      strbuf_putc(b, (char)c);
  }
  strbuf_putc(b, '"');
}

static void put_span(const NpurtModel *m, const TraceSpan *t, StrBuf *b) {
  double us = 1e-3 / m->img.machine.clock_ghz; /* microseconds per cycle */
  const char *op = m->ops[m->op_of[t->pc]].op;
  const IsaInsn *in = &m->insns[t->pc];
  StrBuf text = {0};
  isa_insn_print(in, &m->img, &text);
  strbuf_puts(b, ",\n{\"name\":");
  put_escaped(b, t->wait ? "wait" : op && op[0] ? op : isa_insn_info(in->kind)->mnemonic);
  strbuf_printf(b,
                ",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":0,\"tid\":%u,\"ts\":%.6f,\"dur\":%.6f,"
                "\"args\":{\"pc\":%u,\"cycle\":%.3f,"
                "\"cycles\":%.3f,\"instruction\":",
                t->wait ? "wait" : "busy", t->engine, t->start * us, (t->end - t->start) * us,
                t->pc, t->start, t->end - t->start);
  put_escaped(b, text.data ? text.data : "");
  strbuf_puts(b, "}}");
  strbuf_free(&text);
}

bool npurt_trace_write(const NpurtModel *m, const char *path, DiagEngine *diag) {
  StrBuf b = {0};
  strbuf_puts(&b,
              "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n"
              "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":0,\"args\":{\"name\":\"core 0\"}}");
  for (int e = ENGINE_LD0; e < ENGINE_NET; e++)
    strbuf_printf(&b,
                  ",\n{\"name\":\"thread_name\",\"ph\":\"M\",\"pid\":0,\"tid\":%d,\"args\":{"
                  "\"name\":\"%s\"}}",
                  e, isa_engine_name((IsaEngine)e));
  for (size_t i = 0; i < m->ntrace; i++) put_span(m, &m->trace[i], &b);
  strbuf_puts(&b, "\n]}\n");
  const char *why;
  bool ok = file_write_atomic(path, b.data, b.len, &why);
  if (!ok) diag_error(diag, (SrcLoc){.file = path}, "E-file", "cannot write the trace: %s", why);
  strbuf_free(&b);
  return ok;
}
