/* `dload` does not wait: the register is there when the descriptor has come from memory, at once
 * when it is among those kept on chip. Fetches follow one another at the DRAM's bandwidth, beside
 * the transfers. */
#include "runtime/timed_internal.h"

void fetch_init(Sim *s) {
  if (s->m->img.machine.dload_ns > 0)
    s->cached = mem_alloc(((size_t)s->m->img.ndescs + 1) * sizeof *s->cached);
}

void fetch_free_all(Sim *s) {
  mem_free(s->cached);
}

/* Gives up what was loaded longest ago. */
static void evict(Sim *s) {
  uint32_t oldest = UINT32_MAX;
  for (uint32_t i = 0; i < s->m->img.ndescs; i++)
    if (s->cached[i] && (oldest == UINT32_MAX || s->cached[i] < s->cached[oldest])) oldest = i;
  s->cached[oldest] = 0;
  s->ncached--;
}

void fetch_start(Sim *s, const IsaInsn *in, double at) {
  const MachineDesc *m = &s->m->img.machine;
  s->desc_ready[in->dn] = at;
  if (!s->cached) return;
  s->dloads++;
  bool hit = s->cached[in->target] != 0;
  s->cached[in->target] = s->dloads;
  if (hit) return;
  if (++s->ncached > m->desc_cache) evict(s);
  s->fetch_free = later(s->fetch_free, at) + sizeof(IsaDesc) / machine_dram_bytes_per_cycle(m);
  s->desc_ready[in->dn] = s->fetch_free + m->dload_ns * m->clock_ghz;
  IsaCost c = {.dram_read = sizeof(IsaDesc)};
  profile_work(s->m, s->m->pc, &c, NULL);
}

double fetch_ready(const Sim *s, const IsaInsn *in) {
  return s->m->names_desc[in->kind] ? s->desc_ready[in->dn] : 0;
}
