/* Failures of the running program as diagnostics: instruction, source op, reason. */
#include "runtime/runtime_internal.h"

static const IsaSrcMap *source_of(const NpurtModel *m, uint32_t pc) {
  size_t lo = 0, hi = m->img.nsrcmap;
  while (lo < hi) { /* the last entry at or before pc */
    size_t mid = (lo + hi) / 2;
    if (m->img.srcmap[mid].insn <= pc)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo ? &m->img.srcmap[lo - 1] : NULL;
}

SrcLoc rt_loc(const NpurtModel *m, uint32_t pc) {
  const IsaSrcMap *s = source_of(m, pc);
  if (!s || !s->file || !s->line) return (SrcLoc){.file = m->label};
  return (SrcLoc){.file = s->file, .line = s->line, .col = s->col};
}

void rt_describe(const NpurtModel *m, uint32_t pc, StrBuf *out) {
  strbuf_printf(out, "pc %u", pc);
  if (pc < m->img.ninsns) {
    strbuf_puts(out, " `");
    isa_insn_print(&m->insns[pc], &m->img, out);
    strbuf_puts(out, "`");
  }
  const IsaSrcMap *s = source_of(m, pc);
  if (s && s->op && s->op[0]) strbuf_printf(out, " (op %s)", s->op);
}

bool rt_trap(NpurtModel *m, const char *code, const char *fmt, ...) {
  StrBuf b = {0};
  rt_describe(m, m->pc, &b);
  strbuf_puts(&b, ": ");
  va_list ap;
  va_start(ap, fmt);
  strbuf_vprintf(&b, fmt, ap);
  va_end(ap);
  diag_error(m->diag, rt_loc(m, m->pc), code, "%s", b.data);
  strbuf_free(&b);
  return false;
}

/* An instruction may do the work of many: every 4096 elements count as one more step, so that a
 * limit bounds time. */
bool rt_step(NpurtModel *m, double elements) {
  if (m->ntrace > TRACE_MAX)
    return rt_trap(m, "E-limit",
                   "the trace has more than %d entries; trace fewer samples, or stop early with a "
                   "limit of instructions",
                   TRACE_MAX);
  if (!m->opt.max_instructions) return true;
  double limit = (double)m->opt.max_instructions, extra = elements / 4096;
  if ((double)m->steps + 1 + extra <= limit) {
    m->steps += 1 + (uint64_t)extra;
    return true;
  }
  return rt_trap(m, "E-limit",
                 "the limit of %llu steps is reached (one per instruction and one per 4096 "
                 "elements it handles); "
                 "raise the limit if the program is meant to run this long",
                 (unsigned long long)m->opt.max_instructions);
}
