/* What limits several engines together. A resource serves those that want bytes of it in equal
 * parts; an instruction has ended when its cycles have passed and its bytes are served. Transfers
 * go to the DRAM request by request, the one that may go first next, in turns where several may. */
#include "runtime/timed_internal.h"

static const double least_time = 1e-7; /* cycles; less is rounding */

void share_init(Sim *s) {
  const MachineDesc *m = &s->m->img.machine;
  s->capacity[RES_DRAM] = machine_dram_bytes_per_cycle(m);
  s->capacity[RES_SPM] = (double)m->spm_bytes_per_cycle;
  s->capacity[RES_ACC] = m->acc_rows_per_cycle;
  s->dram = dram_new(m);
}

void share_free(Sim *s) {
  for (int e = ENGINE_LD0; e < ENGINE_COUNT; e++) mem_free(s->eng[e].walk.list);
  dram_free(s->dram);
}

static void include(uint8_t *set, int e) {
  *set = (uint8_t)(*set | 1 << e);
}
static void exclude(uint8_t *set, int e) {
  *set = (uint8_t)(*set & ~(1 << e));
}

/* What engine e wants, it wants from now on. */
static void join(Sim *s, int e) {
  exclude(&s->setting_up, e);
  for (int r = 0; r < RES_COUNT; r++)
    if (s->eng[e].need[r] > s->capacity[r] * least_time) include(&s->wanting[r], e);
}

void share_start(Sim *s, IsaEngine e, const IsaCost *c) {
  Engine *g = &s->eng[e];
  double bytes = c->dram_read + c->dram_write;
  g->data = 0;
  g->from = s->now + c->setup;
  g->need[RES_DRAM] = s->dram ? 0 : bytes;
  g->need[RES_SPM] = c->spm_bytes;
  g->need[RES_ACC] = c->acc_rows;
  if (c->setup > 0)
    include(&s->setting_up, (int)e);
  else
    join(s, (int)e);
  s->m->walk = s->dram && bytes > 0 ? &g->walk : NULL;
}

void share_started(Sim *s, IsaEngine e, const IsaCost *c) {
  Engine *g = &s->eng[e];
  if (s->m->walk && dma_walk_more(&g->walk)) {
    include(&s->moving, (int)e);
    g->request = g->from;
    g->pace = (c->cycles - c->setup) / c->runs;
  }
  s->m->walk = NULL;
}

/* Loop over the engines of a set. */
#define ENGINES_OF(set, e)                                                                         \
  for (int e = 0, rest_ = (set); rest_; e++, rest_ >>= 1)                                          \
    if (rest_ & 1)

/* ---- requests ---- */

/* The engine whose request goes next, or -1; those that may go at the same time in turn. */
static int next_request(const Sim *s, double *at) {
  int best = -1, turn = ENGINE_COUNT;
  double accepts = dram_accepts(s->dram);
  ENGINES_OF(s->moving, e) {
    double when = later(s->eng[e].request, accepts);
    int after = e > s->served ? e - s->served : e - s->served + ENGINE_COUNT;
    if (best >= 0 && (when > *at || (when == *at && after > turn))) continue;
    best = e;
    turn = after;
    *at = when;
  }
  return best;
}

/* Makes the requests of before `until`; the end of the first transfer that has made its last, or
 * `until`. */
static double make_requests(Sim *s, double until) {
  while (s->moving) {
    double at = 0;
    int e = next_request(s, &at);
    if (at > until) return until;
    Engine *g = &s->eng[e];
    uint64_t addr;
    uint32_t bytes = dma_walk_next(&g->walk, s->dram, &addr);
    DramAnswer a = dram_request(s->dram, at, addr, bytes, e == ENGINE_ST);
    g->opened += a.opened;
    g->data = later(g->data, a.done);
    s->served = e;
    if (g->walk.left == 0) g->request += g->pace;
    if (dma_walk_more(&g->walk)) continue;
    exclude(&s->moving, e);
    profile_rows_opened(s->m, g->pc, g->opened);
    g->opened = 0;
    g->end = later(g->end, a.accepted);
    return sooner(until, later(g->end, s->now));
  }
  return until;
}

/* ---- time ---- */

double share_next(Sim *s, double t) {
  ENGINES_OF(s->setting_up, e) t = sooner(t, s->eng[e].from);
  for (int r = 0; r < RES_COUNT; r++) {
    uint8_t set = s->wanting[r];
    if (!set) continue;
    bool alone = (set & (set - 1)) == 0;
    s->part[r] = s->capacity[r] / __builtin_popcount(set);
    /* A change of the sharing is an event of its own, whatever the occupancy; who wants something
     * alone changes nothing for others. */
    ENGINES_OF(set, e) {
      const Engine *g = &s->eng[e];
      double served = s->now + g->need[r] / s->part[r];
      if (!alone || served > g->end) t = sooner(t, served);
    }
  }
  return s->dram ? make_requests(s, t) : t;
}

void share_pass(Sim *s, double to) {
  double dt = to - s->now;
  /* less than the clock's rounding: done, or time could stand still */
  double least = later(least_time, s->now * 1e-12);
  for (int r = 0; r < RES_COUNT; r++) ENGINES_OF(s->wanting[r], e) {
      double *need = &s->eng[e].need[r];
      *need -= dt * s->part[r];
      if (*need < s->part[r] * least) exclude(&s->wanting[r], e);
    }
  s->now = to;
  ENGINES_OF(s->setting_up, e) {
    if (s->eng[e].from <= to + timed_epsilon) join(s, e);
  }
}
