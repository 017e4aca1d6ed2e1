/* ld and st: boxes of up to five axes between DRAM and SPM. Elements move in row-major order of the
 * box. */
#include "runtime/runtime_internal.h"
#include <string.h>

typedef enum { DMA_PLAIN, DMA_CLIP, DMA_INDEX } DmaMode; /* clip: fill on loads */

/* ---- checking addresses ---- */

static bool check_spm(NpurtModel *m, const DmaBox *b) {
  int64_t lo, hi, size = (int64_t)m->dev.spm_size;
  if (!rt_range(b->spm, b->rank, b->size, b->sstride, &lo, &hi) || lo < 0 || hi > size - b->elsize)
    return rt_trap(m, "E-bounds",
                   "the box does not lie inside the scratchpad of %lld bytes: it starts at %lld "
                   "and reaches from "
                   "%lld to %lld",
                   (long long)size, (long long)b->spm, (long long)lo, (long long)hi);
  if (!b->store) device_touch_spm(m, hi + b->elsize);
  return true;
}

/* Splits axis a into inside and outside; false after a trap when the mode forbids an outside. */
static bool check_axis(NpurtModel *m, const IsaDesc *d, DmaMode mode, DmaBox *b, int a) {
  int64_t coord = d->dma.coord[a], extent = d->dma.extent[a], end;
  if (extent < 0 || !add_i64(coord, b->size[a], &end))
    return rt_trap(m, "E-bounds", "axis %d: coordinate %lld with extent %lld is not usable", a,
                   (long long)coord, (long long)extent);
  bool inside = coord >= 0 && end <= extent;
  if (!inside && mode == DMA_PLAIN)
    return rt_trap(
        m, "E-bounds",
        "axis %d: elements %lld..%lld are outside the tensor's %lld; use %s where that is meant", a,
        (long long)coord, (long long)(end - 1), (long long)extent,
        b->store ? "st.clip" : "ld.fill");
  b->whole = b->whole && inside;
  if (coord >= extent || end <= 0) {
    b->empty = true;
    return true;
  }
  b->lo[a] = coord < 0 ? -coord : 0;
  b->hi[a] = end > extent ? extent - coord : b->size[a];
  return true;
}

/* The DRAM range of the part inside the tensor, axis 0 at coordinates first..last when indexed. */
static bool check_dram(NpurtModel *m, const DmaBox *b, int64_t first, int64_t last) {
  int64_t count[5], start = b->dram, lo, hi, size = (int64_t)m->dev.dram_size;
  bool ok = true;
  for (int a = 0; a < b->rank; a++) {
    int64_t from = b->indexed && a == 0 ? first : b->lo[a], step;
    count[a] = b->indexed && a == 0 ? last - first + 1 : b->hi[a] - b->lo[a];
    ok = ok && mul_i64(from, b->dstride[a], &step) && add_i64(start, step, &start);
  }
  lo = hi = start;
  ok = ok && rt_range(start, b->rank, count, b->dstride, &lo, &hi);
  if (ok && lo >= 0 && hi <= size - b->elsize) return true;
  return rt_trap(m, "E-bounds",
                 "the box does not lie inside the program's %lld bytes of DRAM%s: it reaches from "
                 "%lld to %lld",
                 (long long)size, ok ? "" : " (the address overflows)", (long long)lo,
                 (long long)hi);
}

/* Copies the list and checks every entry and every address it leads to. */
static bool check_index(NpurtModel *m, const IsaDesc *d, DmaBox *b) {
  int64_t size = (int64_t)m->dev.spm_size, first = 0, last = 0;
  b->index = d->dma.index;
  if (b->index > size || b->size[0] > (size - b->index) / 4)
    return rt_trap(m, "E-bounds",
                   "the index list of %lld entries at %lld does not lie inside the scratchpad",
                   (long long)b->size[0], (long long)b->index);
  if (m->check) check_access(m->check, RT_SPM, b->index, 4 * b->size[0], false);
  int64_t extent = d->dma.extent[0] > 0 ? d->dma.extent[0] : 0;
  /* A copy: the load may overwrite its own list. */
  if ((size_t)b->size[0] > m->list_cap) {
    m->list_cap = (size_t)b->size[0];
    m->list = mem_realloc(m->list, m->list_cap * sizeof(int32_t));
  }
  memcpy(m->list, m->dev.spm + b->index, (size_t)b->size[0] * 4);
  b->list = m->list;
  for (int64_t i = 0; i < b->size[0]; i++) {
    int32_t c = m->list[i];
    if (c < 0 || c >= extent)
      return rt_trap(m, "E-index", "index %d (entry %lld of the list) is outside 0..%lld", c,
                     (long long)i, (long long)extent - 1);
    if (i == 0 || c < first) first = c;
    if (i == 0 || c > last) last = c;
  }
  return b->empty || check_dram(m, b, first, last);
}

static bool dma_prepare(NpurtModel *m, const IsaDesc *d, bool store, DmaMode mode, DmaBox *b) {
  *b = (DmaBox){.rank = d->rank,
                .elsize = d->elsize,
                .fill = d->dma.fill,
                .spm = d->dma.spm,
                .dram = d->dma.dram,
                .store = store,
                .whole = true,
                .indexed = mode == DMA_INDEX};
  double elements = 1;
  for (int a = 0; a < b->rank; a++) {
    b->size[a] = d->dma.size[a];
    b->dstride[a] = d->dma.dstride[a];
    b->sstride[a] = d->dma.sstride[a];
    elements *= (double)b->size[a];
  }
  if (!rt_step(m, elements)) return false;
  if (elements == 0) {
    b->size[0] = 0;
    b->empty = true;
    b->whole = false;
    return true;
  }
  if (!check_spm(m, b)) return false;
  for (int a = b->indexed ? 1 : 0; a < b->rank; a++) {
    int64_t offset;
    if (!check_axis(m, d, mode, b, a)) return false;
    if (b->empty) continue;
    if (!mul_i64(d->dma.coord[a], b->dstride[a], &offset) || !add_i64(b->dram, offset, &b->dram))
      return rt_trap(m, "E-bounds", "axis %d: the DRAM address overflows", a);
  }
  if (b->indexed) {
    b->lo[0] = 0;
    b->hi[0] = b->size[0];
    return check_index(m, d, b);
  }
  return b->empty || check_dram(m, b, 0, 0);
}

/* ---- moving ---- */

typedef struct {
  int n;
  int64_t count[5], ds[5], ss[5];
} Loops;

/* The loops of the box from axis `from`, those of one iteration dropped and neighbours that
 * continue each other merged. */
static Loops loops_of(const DmaBox *b, int from) {
  Loops l = {0};
  for (int a = from; a < b->rank; a++) {
    int64_t count = b->hi[a] - b->lo[a];
    if (count == 1) continue;
    int p = l.n - 1;
    int64_t dspan, sspan;
    bool fits = mul_i64(count, b->dstride[a], &dspan) && mul_i64(count, b->sstride[a], &sspan);
    if (p >= 0 && fits && l.ds[p] == dspan && l.ss[p] == sspan) {
      l.count[p] *= count;
      l.ds[p] = b->dstride[a];
      l.ss[p] = b->sstride[a];
    } else {
      l.count[l.n] = count;
      l.ds[l.n] = b->dstride[a];
      l.ss[l.n++] = b->sstride[a];
    }
  }
  return l;
}

static void move_run(uint8_t *dst, int64_t dstep, const uint8_t *src, int64_t sstep, int64_t n,
                     uint32_t elsize) {
  if (dstep == elsize && sstep == elsize) {
    memcpy(dst, src, (size_t)(n * elsize));
    return;
  }
  switch (elsize) {
  case 1:
    for (int64_t i = 0; i < n; i++, dst += dstep, src += sstep) *dst = *src;
    return;
  case 2:
    for (int64_t i = 0; i < n; i++, dst += dstep, src += sstep) memcpy(dst, src, 2);
    return;
  default:
    for (int64_t i = 0; i < n; i++, dst += dstep, src += sstep) memcpy(dst, src, 4);
    return;
  }
}

static void move_loops(const Loops *l, int level, uint8_t *dram, uint8_t *spm, bool store,
                       uint32_t elsize) {
  if (l->n == 0) {
    memcpy(store ? dram : spm, store ? spm : dram, elsize);
    return;
  }
  if (level == l->n - 1) {
    if (store)
      move_run(dram, l->ds[level], spm, l->ss[level], l->count[level], elsize);
    else
      move_run(spm, l->ss[level], dram, l->ds[level], l->count[level], elsize);
    return;
  }
  for (int64_t i = 0; i < l->count[level]; i++)
    move_loops(l, level + 1, dram + i * l->ds[level], spm + i * l->ss[level], store, elsize);
}

static void fill_run(uint8_t *p, int64_t step, int64_t n, const DmaBox *b) {
  if (b->elsize == 1 && step == 1) {
    memset(p, (int)(b->fill & 255), (size_t)n);
    return;
  }
  for (int64_t i = 0; i < n; i++) memcpy(p + i * step, &b->fill, b->elsize);
}

/* Fills the elements of the box from `axis` inwards that are outside the tensor; all of them when
 * `outside`. */
static void fill_box(const DmaBox *b, int axis, uint8_t *spm, bool outside) {
  int64_t step = b->sstride[axis], size = b->size[axis];
  int64_t lo = outside ? size : b->lo[axis], hi = outside ? size : b->hi[axis];
  if (axis == b->rank - 1) {
    fill_run(spm, step, lo, b);
    if (hi < size) fill_run(spm + hi * step, step, size - hi, b);
    return;
  }
  for (int64_t i = 0; i < size; i++) fill_box(b, axis + 1, spm + i * step, i < lo || i >= hi);
}

static void dma_move(NpurtModel *m, const DmaBox *b) {
  if (!b->store && !b->whole && b->size[0]) fill_box(b, 0, m->dev.spm + b->spm, b->empty);
  if (b->empty) return;
  int64_t dram = b->dram, spm = b->spm;
  for (int a = 0; a < b->rank; a++) {
    if (b->indexed && a == 0) continue;
    dram += b->lo[a] * b->dstride[a];
    spm += b->lo[a] * b->sstride[a];
  }
  Loops l = loops_of(b, b->indexed ? 1 : 0);
  if (!b->indexed) {
    move_loops(&l, 0, m->dev.dram + dram, m->dev.spm + spm, b->store, b->elsize);
    return;
  }
  for (int64_t i = 0; i < b->size[0]; i++) {
    /* the sum was checked; its parts may wrap */
    uint64_t at = (uint64_t)dram + (uint64_t)(int64_t)b->list[i] * (uint64_t)b->dstride[0];
    move_loops(&l, 0, m->dev.dram + at, m->dev.spm + (spm + i * b->sstride[0]), b->store,
               b->elsize);
  }
}

static bool dma(NpurtModel *m, const IsaDesc *d, bool store, DmaMode mode) {
  DmaBox b;
  if (!dma_prepare(m, d, store, mode, &b)) return false;
  if (m->check) check_dma(m->check, &b);
  if (m->walk) dma_walk_start(m->walk, &b, m->img.machine.dram_burst);
  dma_move(m, &b);
  return true;
}

#define ARGS NpurtModel *m, const IsaInsn *in, const IsaDesc *d
bool sem_LD0(ARGS) {
  return (void)in, dma(m, d, false, DMA_PLAIN);
}
bool sem_LD0_FILL(ARGS) {
  return (void)in, dma(m, d, false, DMA_CLIP);
}
bool sem_LD0_GATHER(ARGS) {
  return (void)in, dma(m, d, false, DMA_INDEX);
}
bool sem_LD1(ARGS) {
  return (void)in, dma(m, d, false, DMA_PLAIN);
}
bool sem_LD1_FILL(ARGS) {
  return (void)in, dma(m, d, false, DMA_CLIP);
}
bool sem_LD1_GATHER(ARGS) {
  return (void)in, dma(m, d, false, DMA_INDEX);
}
bool sem_ST(ARGS) {
  return (void)in, dma(m, d, true, DMA_PLAIN);
}
bool sem_ST_CLIP(ARGS) {
  return (void)in, dma(m, d, true, DMA_CLIP);
}
bool sem_ST_SCATTER(ARGS) {
  return (void)in, dma(m, d, true, DMA_INDEX);
}
