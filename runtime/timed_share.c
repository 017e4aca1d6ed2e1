/* What limits several engines together. A resource serves those that want bytes of it in equal
 * parts; an instruction has ended when its cycles have passed and its bytes are served. Transfers
 * go to the DRAM request by request, the one that may go first next, in turns where several may. */
#include "runtime/timed_internal.h"
#include <math.h>

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

void share_start(Sim *s, Engine *g, const IsaCost *c) {
  double bytes = c->dram_read + c->dram_write;
  g->data = 0;
  g->from = s->now + c->setup;
  g->need[RES_DRAM] = s->dram ? 0 : bytes;
  g->need[RES_SPM] = c->spm_bytes;
  g->need[RES_ACC] = c->acc_rows;
  for (int r = 0; r < RES_COUNT; r++)
    if (g->need[r] <= s->capacity[r] * least_time) g->need[r] = 0;
  s->m->walk = s->dram && bytes > 0 ? &g->walk : NULL;
}

void share_started(Sim *s, Engine *g, const IsaCost *c) {
  g->moving = s->m->walk && dma_walk_more(&g->walk);
  s->m->walk = NULL;
  if (!g->moving) return;
  g->request = g->from;
  g->pace = (c->cycles - c->setup) / c->runs;
}

bool share_served(const Engine *g) {
  for (int r = 0; r < RES_COUNT; r++)
    if (g->need[r] > timed_epsilon) return false;
  return !g->moving;
}

static bool wants(const Sim *s, const Engine *g, Resource r) {
  return g->state == E_BUSY && g->need[r] > 0 && g->from <= s->now + timed_epsilon;
}

static double rate(const Sim *s, Resource r) {
  int n = 0;
  for (int e = ENGINE_LD0; e < ENGINE_COUNT; e++) n += wants(s, &s->eng[e], r);
  return n ? s->capacity[r] / n : s->capacity[r];
}

/* ---- requests ---- */

/* The engine whose request goes next, or -1; those that may go at the same time in turn. */
static int next_request(const Sim *s, double *at) {
  int best = -1;
  for (int i = 1; i <= ENGINE_ST + 1; i++) {
    int e = (s->served + i) % (ENGINE_ST + 1);
    const Engine *g = &s->eng[e];
    if (!g->moving) continue;
    double when = fmax(g->request, dram_accepts(s->dram));
    if (best >= 0 && when >= *at) continue;
    best = e;
    *at = when;
  }
  return best;
}

/* Makes the requests of before `until`; the end of the first transfer that has made its last, or
 * `until`. */
static double make_requests(Sim *s, double until) {
  for (;;) {
    double at;
    int e = next_request(s, &at);
    if (e < 0 || at > until) return until;
    Engine *g = &s->eng[e];
    uint64_t addr;
    uint32_t bytes = dma_walk_next(&g->walk, s->dram, &addr);
    DramAnswer a = dram_request(s->dram, at, addr, bytes, e == ENGINE_ST);
    profile_rows_opened(s->m, g->pc, a.opened);
    g->data = fmax(g->data, a.done);
    s->served = e;
    if (g->walk.left == 0) g->request += g->pace;
    if (dma_walk_more(&g->walk)) continue;
    g->moving = false;
    g->end = fmax(g->end, a.accepted);
    return fmin(until, fmax(g->end, s->now));
  }
}

/* ---- time ---- */

double share_next(Sim *s, double t) {
  for (int e = ENGINE_LD0; e < ENGINE_COUNT; e++)
    if (s->eng[e].state == E_BUSY && s->eng[e].from > s->now + timed_epsilon)
      t = fmin(t, s->eng[e].from);
  for (int r = 0; r < RES_COUNT; r++) {
    s->part[r] = rate(s, (Resource)r);
    /* a change of the sharing is an event of its own, whatever the occupancy */
    for (int e = ENGINE_LD0; e < ENGINE_COUNT; e++)
      if (wants(s, &s->eng[e], (Resource)r)) t = fmin(t, s->now + s->eng[e].need[r] / s->part[r]);
  }
  return s->dram ? make_requests(s, t) : t;
}

void share_pass(Sim *s, double to) {
  double dt = to - s->now;
  for (int r = 0; r < RES_COUNT; r++)
    for (int e = ENGINE_LD0; e < ENGINE_COUNT; e++) {
      Engine *g = &s->eng[e];
      if (!wants(s, g, (Resource)r)) continue;
      g->need[r] -= dt * s->part[r];
      /* less than the clock's rounding: done, or time could stand still */
      if (g->need[r] < s->part[r] * fmax(least_time, s->now * 1e-12)) g->need[r] = 0;
    }
  s->now = to;
}
