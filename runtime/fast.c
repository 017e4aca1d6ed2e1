/* Fast mode: program order, every instruction to its completion before the next. */
#include "runtime/runtime_internal.h"

static bool take_now(NpurtModel *m, const IsaInsn *in) {
  for (int i = 0; i < 2; i++) {
    const IsaSemRef *t = &in->take[i];
    if (m->dev.sem[t->sem] < t->count)
      return rt_trap(m, "E-deadlock",
                     "semaphore %u holds %llu, the instruction takes %u: in program order nothing "
                     "gives the rest "
                     "before it. Run with --mode timed, or give earlier in the program",
                     t->sem, (unsigned long long)m->dev.sem[t->sem], t->count);
    m->dev.sem[t->sem] -= t->count;
  }
  return true;
}

static bool fifo_now(NpurtModel *m, const IsaInsn *in) {
  const char *why;
  if (rt_plane_ready(m, in, &why)) return true;
  return rt_trap(
      m, "E-deadlock",
      "%s: in program order nothing before it changes that. Run with --mode timed, or move the "
      "instruction in the program",
      why);
}

static bool run_one(NpurtModel *m) {
  const IsaInsn *in = &m->insns[m->pc];
  const IsaDesc *d = rt_desc(m, in);
  m->next_pc = m->pc + 1;
  if (!rt_desc_check(m, in, d) || !take_now(m, in) || !fifo_now(m, in)) return false;
  if (!d && !rt_step(m, 0)) return false; /* work is counted where it is known */
  IsaEngine e = isa_insn_info(in->kind)->engine;
  profile_count(m, m->pc);
  if (e != ENGINE_SEQ || in->kind == INSN_LDS || in->kind == INSN_LDD) {
    const IsaVprog *vp = in->kind == INSN_VX ? &m->img.vprogs[in->vp] : NULL;
    IsaCost c = isa_cost(in, d, vp, &m->img.machine);
    profile_work(m, m->pc, &c, d);
  }
  if (!rt_execute(m, in, d)) return false;
  for (int i = 0; i < 2; i++) m->dev.sem[in->give[i].sem] += in->give[i].count;
  return true;
}

bool run_fast(NpurtModel *m) {
  while (!m->halted) {
    if (m->pc >= m->img.ninsns)
      return rt_trap(m, "E-trap", "the program runs past its last instruction; end it with halt");
    if (!run_one(m)) return false;
    m->pc = m->next_pc;
  }
  return true;
}
