/* When nothing can proceed: who waits for what. */
#include "runtime/timed_internal.h"

static void describe_wait(Sim *s, uint32_t pc, StrBuf *b) {
  const IsaInsn *in = &s->m->insns[pc];
  const char *why = NULL;
  rt_describe(s->m, pc, b);
  if (!timed_can_take(s, in)) {
    for (int i = 0; i < 2; i++)
      if (in->take[i].count)
        strbuf_printf(b, "%s semaphore %u (takes %u, holds %llu)",
                      i && in->take[0].count ? " and" : " waits for", in->take[i].sem,
                      in->take[i].count, (unsigned long long)s->m->dev.sem[in->take[i].sem]);
  } else if (!rt_plane_ready(s->m, in, &why)) {
    strbuf_printf(b, " waits because %s", why);
  }
}

bool timed_deadlock(Sim *s) {
  NpurtModel *m = s->m;
  uint32_t pc = m->pc < m->img.ninsns ? m->pc : m->img.ninsns - 1;
  diag_error(m->diag, rt_loc(m, pc), "E-deadlock",
             "deadlock at cycle %.0f: nothing can proceed; something never gives what the "
             "following wait for",
             s->now);
  for (int e = ENGINE_LD0; e < ENGINE_COUNT; e++) {
    const Engine *g = &s->eng[e];
    if (!g->count) continue;
    StrBuf b = {0};
    describe_wait(s, g->queue[g->head].pc, &b);
    diag_note(m->diag, rt_loc(m, g->queue[g->head].pc), "%s: %s", isa_engine_name((IsaEngine)e),
              b.data);
    strbuf_free(&b);
  }
  StrBuf b = {0};
  if (s->seq == S_TAKE) {
    describe_wait(s, pc, &b);
  } else {
    rt_describe(m, pc, &b);
    strbuf_puts(&b, s->seq == S_QUEUE ? " waits for room in its queue"
                                      : " waits for all engines to finish");
  }
  diag_note(m->diag, rt_loc(m, pc), "SEQ: %s", b.data);
  strbuf_free(&b);
  return false;
}
