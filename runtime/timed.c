/* Timed mode: the sequencer runs ahead in order and issues into bounded queues; engines start the
 * head of their queue when its takes (and the plane FIFO) allow. Time jumps from event to event. An
 * instruction's effect happens when it starts: a give fires at the end, so in a synchronised
 * program every instruction that depends on another starts after it, and any such order gives the
 * bytes of program order. */
#include "runtime/timed_internal.h"
#include <math.h>

/* ---- accounting ---- */

static void engine_enter(Sim *s, IsaEngine e, EngineState state) {
  Engine *g = &s->eng[e];
  double dt = s->now - g->since;
  NpurtProfile *p = &s->m->profile;
  switch (g->state) {
  case E_IDLE: p->engine[e].idle += dt; break;
  case E_TAKE: p->engine[e].stall_take += dt; break;
  case E_PLANE: p->engine[e].stall_queue += dt; break;
  case E_BUSY: p->engine[e].busy += dt; break;
  }
  if ((g->state == E_TAKE || g->state == E_PLANE) && g->count && dt > 0)
    trace_add(s->m, g->queue[g->head].pc, e, true, g->since, s->now);
  g->state = state;
  g->since = s->now;
}

static void seq_enter(Sim *s, SeqState state) {
  double dt = s->now - s->seq_since;
  NpurtProfile *p = &s->m->profile;
  switch (s->seq) {
  case S_RUN: p->engine[ENGINE_SEQ].busy += dt; break;
  case S_TAKE: p->engine[ENGINE_SEQ].stall_take += dt; break;
  case S_QUEUE:
  case S_DESC: p->engine[ENGINE_SEQ].stall_queue += dt; break;
  default: p->engine[ENGINE_SEQ].idle += dt; break;
  }
  s->seq = state;
  s->seq_since = s->now;
}

/* A stretch of time belongs in equal parts to the ops whose instructions are running; when none is,
 * to the op of the instruction the sequencer executes (of several in one go, the last) or waits at.
 * The parts sum to the total. */
static void attribute(Sim *s, double dt) {
  int running = 0;
  for (int e = ENGINE_LD0; e < ENGINE_COUNT; e++) running += s->eng[e].state == E_BUSY;
  if (!running) {
    uint32_t pc = s->seq == S_RUN ? s->seq_pc : s->m->pc;
    profile_time(s->m, pc, ENGINE_SEQ, dt);
    return;
  }
  for (int e = ENGINE_LD0; e < ENGINE_COUNT; e++)
    if (s->eng[e].state == E_BUSY) profile_time(s->m, s->eng[e].pc, (IsaEngine)e, dt / running);
}

/* ---- semaphores ---- */

bool timed_can_take(const Sim *s, const IsaInsn *in) {
  const uint64_t *sem = s->m->dev.sem;
  if (in->take[0].sem == in->take[1].sem)
    return sem[in->take[0].sem] >= (uint64_t)in->take[0].count + in->take[1].count;
  return sem[in->take[0].sem] >= in->take[0].count && sem[in->take[1].sem] >= in->take[1].count;
}

static void take(Sim *s, const IsaInsn *in) {
  for (int i = 0; i < 2; i++) s->m->dev.sem[in->take[i].sem] -= in->take[i].count;
}

static void give(Sim *s, const IsaInsn *in, uint32_t event) {
  for (int i = 0; i < 2; i++) s->m->dev.sem[in->give[i].sem] += in->give[i].count;
  if (s->m->check) check_give(s->m->check, event);
}

/* ---- engines ---- */

static void done_push(Engine *g, Done d) {
  if (g->done_count == g->done_cap) {
    uint32_t cap = g->done_cap ? 2 * g->done_cap : 8;
    Done *ring = mem_alloc(cap * sizeof *ring);
    for (uint32_t i = 0; i < g->done_count; i++)
      ring[i] = g->done[(g->done_head + i) % g->done_cap];
    mem_free(g->done);
    g->done = ring;
    g->done_head = 0;
    g->done_cap = cap;
  }
  g->done[(g->done_head + g->done_count++) % g->done_cap] = d;
}

/* Occupancy ends; the gives follow after the latency, in the order of the queue. */
static void engine_finish(Sim *s, IsaEngine e) {
  Engine *g = &s->eng[e];
  double at = later(later(s->now, g->data) + g->latency, g->last_done);
  g->last_done = at;
  trace_add(s->m, g->pc, e, false, g->start, s->now);
  engine_enter(s, e, E_IDLE);
  done_push(g, (Done){.at = at, .pc = g->pc, .event = g->event});
}

static bool engine_run(Sim *s, IsaEngine e, Entry *n) {
  NpurtModel *m = s->m;
  Engine *g = &s->eng[e];
  const IsaInsn *in = &m->insns[n->pc];
  uint32_t seq_pc = m->pc, seq_next = m->next_pc;
  m->pc = n->pc;
  bool ok = !m->check || check_begin(m->check, e, n->pc, n->issue, &g->event);
  ok = ok && rt_execute(m, in, n->has_desc ? &n->desc : NULL);
  if (ok) {
    m->pc = seq_pc;
    m->next_pc = seq_next;
  }
  return ok;
}

/* Starts the head of the queue when it may. */
static bool engine_start(Sim *s, IsaEngine e) {
  Engine *g = &s->eng[e];
  if (g->state == E_BUSY || g->count == 0) return false;
  Entry *n = &g->queue[g->head];
  const IsaInsn *in = &s->m->insns[n->pc];
  const char *why;
  if (n->visible > s->now + timed_epsilon) return false;
  if (!timed_can_take(s, in)) {
    if (g->state != E_TAKE) engine_enter(s, e, E_TAKE);
    return false;
  }
  if (!rt_plane_ready(s->m, in, &why)) {
    if (g->state != E_PLANE) engine_enter(s, e, E_PLANE);
    return false;
  }
  engine_enter(s, e, E_BUSY);
  take(s, in);
  g->pc = n->pc;
  g->start = s->now;
  g->end = s->now + n->cost.cycles;
  g->latency = n->cost.latency;
  share_start(s, e, &n->cost);
  s->failed = !engine_run(s, e, n);
  share_started(s, e, &n->cost);
  g->head = (g->head + 1) % s->depth;
  g->count--;
  return true;
}

/* Planes arrive when their load ends; a multiply that pops must wait for that. rt_plane_ready sees
 * planes from the start of their load, so the newest one is hidden while it is being loaded. */
static bool plane_arriving(const Sim *s, const IsaInsn *in) {
  const Engine *w = &s->eng[ENGINE_MXW];
  return rt_is_plane_pop(in->kind) && w->state == E_BUSY &&
         rt_is_plane_load(s->m->insns[w->pc].kind) && s->m->dev.waiting == 1;
}

/* ---- sequencer ---- */

static bool seq_private(IsaInsnKind k) {
  switch (k) {
  case INSN_LDS:
  case INSN_LDD:
  case INSN_TAKE:
  case INSN_GIVE:
  case INSN_FENCE:
  case INSN_HALT: return false;
  default: return isa_insn_info(k)->engine == ENGINE_SEQ;
  }
}

static bool seq_trap(Sim *s) {
  s->failed = true;
  return false;
}

static bool seq_execute(Sim *s, const IsaInsn *in) {
  NpurtModel *m = s->m;
  m->next_pc = m->pc + 1;
  if (!rt_step(m, 0) || !rt_execute(m, in, NULL)) return seq_trap(s);
  profile_count(m, m->pc);
  s->seq_pc = m->pc;
  m->pc = m->next_pc;
  return true;
}

static bool all_quiet(const Sim *s) {
  for (int e = ENGINE_LD0; e < ENGINE_COUNT; e++)
    if (s->eng[e].count || s->eng[e].state == E_BUSY || s->eng[e].done_count) return false;
  return true;
}

static void seq_busy(Sim *s, double cycles) {
  seq_enter(s, S_RUN);
  s->seq_ready = s->now + cycles;
}

/* The descriptor register it names is not there yet at `at`: the sequencer waits. */
static bool waits_for_desc(Sim *s, const IsaInsn *in, double at) {
  double ready = fetch_ready(s, in);
  if (ready <= at + timed_epsilon) return false;
  seq_enter(s, S_DESC);
  s->seq_ready = ready;
  return true;
}

static bool seq_issue(Sim *s, const IsaInsn *in, IsaEngine e) {
  NpurtModel *m = s->m;
  Engine *g = &s->eng[e];
  if (g->count == s->depth) {
    if (s->seq != S_QUEUE) seq_enter(s, S_QUEUE);
    return false;
  }
  if (waits_for_desc(s, in, s->now)) return false;
  const IsaDesc *d = rt_desc(m, in);
  if (!rt_desc_check(m, in, d)) return seq_trap(s);
  if (!d && !rt_step(m, 0)) return seq_trap(s);
  Entry *n = &g->queue[(g->head + g->count++) % s->depth];
  n->pc = m->pc;
  n->has_desc = d != NULL;
  if (d) n->desc = *d;
  n->cost = isa_cost(in, d, in->kind == INSN_VX ? &m->img.vprogs[in->vp] : NULL, &m->img.machine);
  n->visible = s->now + machine_seq_cycles(&m->img.machine);
  if (m->check) n->issue = check_issue(m->check);
  IsaCost work = n->cost;
  if (s->dram) work.activations = 0;
  profile_work(m, m->pc, &work, d);
  profile_count(m, m->pc);
  seq_busy(s, machine_seq_cycles(&m->img.machine));
  s->seq_pc = m->pc++;
  return true;
}

/* The program ends when its last bytes are written, those in the DRAM's write buffers too. */
static bool drained(Sim *s, const IsaInsn *in) {
  if (in->kind != INSN_HALT || !s->dram) return true;
  if (s->drained == 0) {
    uint64_t opened = dram_activations(s->dram);
    s->drained = dram_drain(s->dram, s->now);
    profile_rows_opened(s->m, s->m->pc, dram_activations(s->dram) - opened);
  }
  return s->drained <= s->now + timed_epsilon;
}

/* An instruction that others can see. False when it has to wait. */
static bool seq_visible(Sim *s, const IsaInsn *in) {
  NpurtModel *m = s->m;
  IsaEngine e = isa_insn_info(in->kind)->engine;
  if (e != ENGINE_SEQ) return seq_issue(s, in, e);
  bool fence = in->kind == INSN_FENCE || in->kind == INSN_HALT;
  if (fence && !(all_quiet(s) && drained(s, in))) {
    if (s->seq != S_FENCE) seq_enter(s, S_FENCE);
    return false;
  }
  if (!timed_can_take(s, in)) {
    if (s->seq != S_TAKE) seq_enter(s, S_TAKE);
    return false;
  }
  take(s, in);
  if (m->check && fence) check_fence(m->check);
  if (m->check && !check_begin(m->check, ENGINE_SEQ, m->pc, 0, &s->give_event)) return seq_trap(s);
  IsaCost c = isa_cost(in, NULL, NULL, &m->img.machine);
  profile_work(m, m->pc, &c, NULL);
  s->seq_give = in->give[0].count || in->give[1].count;
  s->give_pc = m->pc;
  if (!seq_execute(s, in)) return false;
  seq_busy(s, c.cycles + c.latency);
  return true;
}

/* Runs instructions nobody else can see in one go; stops before a visible one. */
static bool seq_advance(Sim *s) {
  NpurtModel *m = s->m;
  if (s->seq == S_END || s->seq_ready > s->now + timed_epsilon) return false;
  if (s->seq_give) {
    s->seq_give = false;
    give(s, &m->insns[s->give_pc], s->give_event);
    return true;
  }
  if (m->halted) {
    seq_enter(s, S_END);
    return true;
  }
  double cycles = 0, each = machine_seq_cycles(&m->img.machine);
  enum { BATCH = 4096 };
  for (int i = 0; i < BATCH; i++) {
    if (m->pc >= m->img.ninsns) {
      rt_trap(m, "E-trap", "the program runs past its last instruction; end it with halt");
      return seq_trap(s);
    }
    const IsaInsn *in = &m->insns[m->pc];
    if (!seq_private(in->kind)) {
      if (cycles > 0) break;
      return seq_visible(s, in);
    }
    if (fetch_ready(s, in) > s->now + cycles + timed_epsilon) {
      if (cycles > 0) break;
      return waits_for_desc(s, in, s->now);
    }
    if (!seq_execute(s, in)) return false;
    cycles += each;
    if (in->kind == INSN_DLOAD) fetch_start(s, in, s->now + cycles);
  }
  seq_busy(s, cycles);
  return true;
}

/* ---- time ---- */

/* Everything that can happen now; false when nothing changed. */
static bool settle(Sim *s) {
  bool any = false;
  for (int e = ENGINE_LD0; e < ENGINE_COUNT && !s->failed; e++) {
    Engine *g = &s->eng[e];
    if (g->state == E_BUSY && g->end <= s->now + timed_epsilon && share_served(s, (IsaEngine)e)) {
      engine_finish(s, (IsaEngine)e);
      any = true;
    }
    while (g->done_count && g->done[g->done_head].at <= s->now + timed_epsilon) {
      Done *d = &g->done[g->done_head];
      give(s, &s->m->insns[d->pc], d->event);
      g->done_head = (g->done_head + 1) % g->done_cap;
      g->done_count--;
      any = true;
    }
  }
  for (int e = ENGINE_LD0; e < ENGINE_COUNT && !s->failed; e++) {
    Engine *g = &s->eng[e];
    if (g->count && g->state != E_BUSY && g->queue[g->head].visible <= s->now + timed_epsilon &&
        plane_arriving(s, &s->m->insns[g->queue[g->head].pc])) {
      if (g->state != E_PLANE) engine_enter(s, (IsaEngine)e, E_PLANE);
      continue;
    }
    any = engine_start(s, (IsaEngine)e) || any;
  }
  if (!s->failed) any = seq_advance(s) || any;
  return any && !s->failed;
}

/* The next moment something ends, or infinity. */
static double next_event(Sim *s) {
  double t = INFINITY;
  if ((s->seq == S_RUN || s->seq == S_DESC) && s->seq_ready > s->now) t = s->seq_ready;
  if (s->seq == S_FENCE && s->drained > s->now) t = s->drained;
  for (int e = ENGINE_LD0; e < ENGINE_COUNT; e++) {
    const Engine *g = &s->eng[e];
    if (g->done_count) t = sooner(t, g->done[g->done_head].at);
    if (g->state != E_BUSY) continue;
    if (share_served(s, (IsaEngine)e) || g->end > s->now) t = sooner(t, later(g->end, s->now));
  }
  return share_next(s, t);
}

/* ---- the run ---- */

static bool simulate(Sim *s) {
  while (s->seq != S_END) {
    while (settle(s)) {
    }
    if (s->failed) return false;
    if (s->seq == S_END) break;
    double t = next_event(s);
    if (isinf(t)) return timed_deadlock(s);
    attribute(s, t - s->now);
    share_pass(s, t);
  }
  return true;
}

bool run_timed(NpurtModel *m) {
  Sim *s = mem_alloc(sizeof *s);
  s->m = m;
  s->depth = (uint32_t)m->img.machine.queue_depth;
  s->seq = S_RUN;
  share_init(s);
  fetch_init(s);
  for (int e = ENGINE_LD0; e < ENGINE_COUNT; e++)
    s->eng[e].queue = mem_alloc(s->depth * sizeof(Entry));
  bool ok = simulate(s);
  seq_enter(s, S_END);
  for (int e = ENGINE_LD0; e < ENGINE_COUNT; e++) {
    engine_enter(s, (IsaEngine)e, E_IDLE);
    mem_free(s->eng[e].queue);
    mem_free(s->eng[e].done);
  }
  profile_finish_run(m, s->now);
  share_free(s);
  fetch_free_all(s);
  mem_free(s);
  return ok;
}
