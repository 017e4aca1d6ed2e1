/* The runs of a transfer in DRAM one after the other, for the timing model. They are those isa_cost
 * counts: merged from the innermost axis out while they continue, each whole bursts. */
#include "runtime/runtime_internal.h"
#include <string.h>

void dma_walk_start(DmaWalk *w, const DmaBox *b, int64_t burst) {
  w->n = 0;
  w->burst = (uint64_t)burst;
  w->left = 0;
  w->ended = b->empty;
  if (b->empty) return;
  uint64_t at = (uint64_t)b->dram; /* checked; parts may wrap */
  int64_t run = b->elsize;
  bool open = true;
  for (int a = b->rank; a-- > 0;) {
    bool listed = b->indexed && a == 0;
    int64_t count = b->hi[a] - b->lo[a];
    if (!listed) at += (uint64_t)b->lo[a] * (uint64_t)b->dstride[a];
    if (count == 1 && !listed) continue;
    open = open && !listed && b->dstride[a] == run;
    if (open) {
      run *= count;
    } else {
      w->count[w->n] = count;
      w->index[w->n] = 0;
      w->stride[w->n++] = b->dstride[a];
    }
  }
  w->start = at;
  w->run = (uint64_t)run;
  w->listed = b->indexed;
  if (!b->indexed) return;
  size_t entries = (size_t)b->size[0];
  if (entries > w->list_cap) {
    w->list_cap = entries;
    w->list = mem_realloc(w->list, entries * sizeof *w->list);
  }
  memcpy(w->list, b->list, entries * sizeof *w->list);
}

/* The next run's first and one past its last byte, in whole bursts. Loops are innermost first; the
 * list's is the outermost. */
static void next_run(DmaWalk *w) {
  uint64_t at = w->start;
  for (int i = 0; i < w->n; i++) {
    bool listed = w->listed && i == w->n - 1;
    int64_t step = listed ? w->list[w->index[i]] : w->index[i];
    at += (uint64_t)step * (uint64_t)w->stride[i];
  }
  w->at = at - at % w->burst;
  w->left = (w->run + w->burst - 1) / w->burst * w->burst;
  int i = 0;
  while (i < w->n && ++w->index[i] == w->count[i]) w->index[i++] = 0;
  w->ended = i == w->n;
}

bool dma_walk_more(const DmaWalk *w) {
  return w->left > 0 || !w->ended;
}

uint32_t dma_walk_next(DmaWalk *w, const Dram *d, uint64_t *addr) {
  if (w->left == 0) next_run(w);
  uint64_t rest = dram_block_rest(d, w->at), bytes = w->left < rest ? w->left : rest;
  *addr = w->at;
  w->at += bytes;
  w->left -= bytes;
  return (uint32_t)bytes;
}
