/* `dload` does not wait: the register is there when the descriptor has come from memory, at once
 * when it is among those kept on chip. Fetches follow one another at the DRAM's bandwidth, beside
 * the transfers. */
#include "runtime/timed_internal.h"

void fetch_init(Sim *s) {
  FetchCache *c = &s->cache;
  c->first = c->last = FETCH_NONE;
  if (s->m->img.machine.dload_ns > 0)
    c->at = mem_alloc(((size_t)s->m->img.ndescs + 1) * sizeof *c->at);
}

void fetch_free_all(Sim *s) {
  mem_free(s->cache.at);
}

static void take_out(FetchCache *c, uint32_t i) {
  uint32_t before = c->at[i].before, after = c->at[i].after;
  *(before == FETCH_NONE ? &c->first : &c->at[before].after) = after;
  *(after == FETCH_NONE ? &c->last : &c->at[after].before) = before;
  c->at[i].kept = false;
  c->count--;
}

static void append(FetchCache *c, uint32_t i) {
  c->at[i].before = c->last;
  c->at[i].after = FETCH_NONE;
  c->at[i].kept = true;
  *(c->last == FETCH_NONE ? &c->first : &c->at[c->last].after) = i;
  c->last = i;
  c->count++;
}

void fetch_start(Sim *s, const IsaInsn *in, double at) {
  const MachineDesc *m = &s->m->img.machine;
  FetchCache *c = &s->cache;
  s->desc_ready[in->dn] = at;
  if (!c->at) return;
  bool hit = c->at[in->target].kept;
  if (hit) take_out(c, in->target);
  append(c, in->target);
  if (hit) return;
  if (c->count > m->desc_cache) take_out(c, c->first);
  s->fetch_free = later(s->fetch_free, at) + sizeof(IsaDesc) / machine_dram_bytes_per_cycle(m);
  s->desc_ready[in->dn] = s->fetch_free + m->dload_ns * m->clock_ghz;
  IsaCost cost = {.dram_read = sizeof(IsaDesc)};
  profile_work(s->m, s->m->pc, &cost, NULL);
}

double fetch_ready(const Sim *s, const IsaInsn *in) {
  return s->m->names_desc[in->kind] ? s->desc_ready[in->dn] : 0;
}
