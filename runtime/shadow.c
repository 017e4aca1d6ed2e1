#include "runtime/shadow.h"
#include "support/support.h"
#include <string.h>
#include <sys/mman.h>

bool shadow_init(Shadow *s, size_t bytes) {
  *s = (Shadow){.granules = bytes / SHADOW_GRANULE + 1};
  void *p = mmap(NULL, s->granules * sizeof(uint32_t), PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  s->cell = p == MAP_FAILED ? NULL : p;
  return s->cell != NULL;
}

void shadow_free(Shadow *s) {
  if (s->cell) munmap(s->cell, s->granules * sizeof(uint32_t));
  mem_free(s->split);
  *s = (Shadow){0};
}

void shadow_clear(Shadow *s) {
  if (s->used)
    madvise(s->cell, s->granules * sizeof(uint32_t),
            MADV_DONTNEED); /* private pages read as zero again */
  s->nsplit = s->free_list = 0;
  s->used = false;
}

static uint32_t split_new(Shadow *s) {
  if (s->free_list) {
    uint32_t at = s->free_list - 1;
    s->free_list = s->split[at][0];
    return at;
  }
  if (s->nsplit == s->cap) {
    s->cap = s->cap ? 2 * s->cap : 64;
    s->split = mem_realloc(s->split, s->cap * sizeof *s->split);
  }
  return s->nsplit++;
}

static void granule_set_all(Shadow *s, size_t g, uint32_t id) {
  uint32_t c = s->cell[g];
  if (c >= SHADOW_SPLIT) {
    s->split[c - SHADOW_SPLIT][0] = s->free_list;
    s->free_list = c - SHADOW_SPLIT + 1;
  }
  s->cell[g] = id;
}

static void granule_set_part(Shadow *s, size_t g, size_t from, size_t to, uint32_t id) {
  uint32_t c = s->cell[g];
  if (c == id) return;
  if (c < SHADOW_SPLIT) {
    uint32_t at = split_new(s);
    for (size_t i = 0; i < SHADOW_GRANULE; i++) s->split[at][i] = c;
    s->cell[g] = c = SHADOW_SPLIT + at;
  }
  uint32_t *bytes = s->split[c - SHADOW_SPLIT];
  for (size_t i = from; i < to; i++) bytes[i] = id;
  for (size_t i = 0; i < SHADOW_GRANULE; i++)
    if (bytes[i] != id) return;
  granule_set_all(s, g, id);
}

void shadow_set(Shadow *s, size_t addr, size_t bytes, uint32_t id) {
  s->used = true;
  for (size_t end = addr + bytes; addr < end;) {
    size_t g = addr / SHADOW_GRANULE, start = g * SHADOW_GRANULE, from = addr - start;
    size_t to = end - start < SHADOW_GRANULE ? end - start : SHADOW_GRANULE;
    if (to - from == SHADOW_GRANULE)
      granule_set_all(s, g, id);
    else
      granule_set_part(s, g, from, to, id);
    addr = start + to;
  }
}

typedef struct {
  void (*visit)(void *, size_t, size_t, uint32_t);
  void *user;
  size_t lo, hi;
  uint32_t id;
} Run;

/* Extends the run in hand or delivers it and starts another. */
static void run_add(Run *r, size_t lo, size_t hi, uint32_t id) {
  if (r->hi == lo && r->id == id) {
    r->hi = hi;
    return;
  }
  if (r->hi > r->lo) r->visit(r->user, r->lo, r->hi, r->id);
  r->lo = lo;
  r->hi = hi;
  r->id = id;
}

void shadow_visit(const Shadow *s, size_t addr, size_t bytes,
                  void (*visit)(void *, size_t, size_t, uint32_t), void *user) {
  Run r = {.visit = visit, .user = user, .lo = addr, .hi = addr};
  for (size_t end = addr + bytes; addr < end;) {
    size_t g = addr / SHADOW_GRANULE, stop = (g + 1) * SHADOW_GRANULE;
    if (stop > end) stop = end;
    uint32_t c = s->cell[g];
    if (c < SHADOW_SPLIT) {
      run_add(&r, addr, stop, c);
    } else {
      const uint32_t *b = s->split[c - SHADOW_SPLIT];
      for (size_t i = addr; i < stop; i++) run_add(&r, i, i + 1, b[i % SHADOW_GRANULE]);
    }
    addr = stop;
  }
  if (r.hi > r.lo) visit(user, r.lo, r.hi, r.id);
}
