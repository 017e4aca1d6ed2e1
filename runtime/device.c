/* Device state: memories as lazily populated mappings (DRAM that is never touched costs nothing),
 * registers, semaphores, the plane FIFO. */
#include "runtime/runtime_internal.h"
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Zero pages with RT_SLACK bytes beyond, between pages that trap: a bug of ours ends there, not in
 * other data. */
enum { GUARD = 1 << 16 };

static size_t mapped(size_t bytes) {
  return (bytes + RT_SLACK + GUARD - 1) / GUARD * GUARD;
}

void *device_map(size_t bytes) {
  size_t size = mapped(bytes);
  uint8_t *p =
      mmap(NULL, size + 2 * GUARD, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) return NULL;
  if (mprotect(p + GUARD, size, PROT_READ | PROT_WRITE) == 0) return p + GUARD;
  munmap(p, size + 2 * GUARD);
  return NULL;
}

void device_unmap(void *p, size_t bytes) {
  if (p) munmap((uint8_t *)p - GUARD, mapped(bytes) + 2 * GUARD);
}

/* A large segment that lies in the file as it lies in DRAM, page by page, is mapped copy-on-write
 * over the DRAM image. Returns the bytes at its start that are mapped (a whole number of pages), 0
 * when it must be copied. */
static size_t map_segment(NpurtModel *m, const IsaSegment *s, int fd) {
  const size_t page = (size_t)sysconf(_SC_PAGESIZE), worth = (size_t)1 << 20;
  const uint8_t *base = m->img.map.data, *data = s->data;
  if (fd < 0 || s->size < worth || data < base || data >= base + m->img.map.size) return 0;
  size_t offset = (size_t)(data - base), whole = s->size / page * page;
  if (offset % page || s->addr % page) return 0;
  void *p = mmap(m->dev.dram + s->addr, whole, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd,
                 (off_t)offset);
  return p == MAP_FAILED ? 0 : whole;
}

static void load_segments(NpurtModel *m, int fd) {
  for (uint32_t i = 0; i < m->img.nsegments; i++) {
    const IsaSegment *s = &m->img.segments[i];
    size_t done = map_segment(m, s, fd);
    if (s->size > done)
      memcpy(m->dev.dram + s->addr + done, (const uint8_t *)s->data + done, s->size - done);
  }
}

void device_reload_dram(NpurtModel *m) {
  /* Private pages drop their changes: anonymous ones read as zero again, file pages as the file. */
  madvise(m->dev.dram, m->dev.dram_size + RT_SLACK, MADV_DONTNEED);
  for (uint32_t i = 0; i < m->img.nsegments; i++) {
    const IsaSegment *s = &m->img.segments[i];
    if (s->size && memcmp(m->dev.dram + s->addr, s->data, s->size) != 0)
      memcpy(m->dev.dram + s->addr, s->data, s->size);
  }
}

bool device_init(NpurtModel *m, const char *path, const char **why) {
  Device *d = &m->dev;
  const MachineDesc *mc = &m->img.machine;
  *why = "out of address space for the simulated memories";
  d->dram_size = (size_t)m->img.dram_bytes;
  d->spm_size = (size_t)mc->spm_bytes;
  d->acc_size = (size_t)(mc->acc_rows * mc->mxu_cols) * 4;
  d->dram = device_map(d->dram_size);
  d->spm = device_map(d->spm_size);
  d->acc = device_map(d->acc_size);
  if (!d->dram || !d->spm || !d->acc) return false;
  d->nplanes = (uint32_t)mc->mxu_planes + 1;
  d->planes = mem_alloc(d->nplanes * sizeof(RtPlane));
  size_t rows = (size_t)mc->mxu_rows, cols = (size_t)mc->mxu_cols, npad = mxu_npad((uint32_t)cols);
  for (uint32_t i = 0; i < d->nplanes; i++) {
    d->planes[i].raw = mem_alloc(rows * cols * 2);
    d->planes[i].s8 = mem_alloc(m->mxu->s8_bytes((uint32_t)rows, (uint32_t)cols) + 64);
    d->planes[i].f32 = mem_alloc(rows * npad * sizeof(float));
  }
  int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  load_segments(m, fd);
  if (fd >= 0) close(fd);
  return true;
}

void device_free(NpurtModel *m) {
  Device *d = &m->dev;
  device_unmap(d->dram, d->dram_size);
  device_unmap(d->spm, d->spm_size);
  device_unmap(d->acc, d->acc_size);
  for (uint32_t i = 0; d->planes && i < d->nplanes; i++) {
    mem_free(d->planes[i].raw);
    mem_free(d->planes[i].s8);
    mem_free(d->planes[i].f32);
  }
  mem_free(d->planes);
  *d = (Device){0};
}

void device_start(NpurtModel *m) {
  Device *d = &m->dev;
  memset(d->spm, 0, d->spm_dirty);
  memset(d->acc, 0, d->acc_dirty);
  d->spm_dirty = d->acc_dirty = 0;
  memset(d->regs, 0, sizeof d->regs);
  memset(d->desc, 0, sizeof d->desc);
  memset(d->desc_checked, 0, sizeof d->desc_checked);
  memset(d->sem, 0, sizeof d->sem);
  d->first = d->waiting = 0;
  d->current = UINT32_MAX;
  m->pc = m->next_pc = 0;
  m->halted = false;
  m->steps = 0;
}

void device_touch_spm(NpurtModel *m, int64_t end) {
  if ((size_t)end > m->dev.spm_dirty) m->dev.spm_dirty = (size_t)end;
}

void device_touch_acc(NpurtModel *m, int64_t end_word) {
  if ((size_t)end_word * 4 > m->dev.acc_dirty) m->dev.acc_dirty = (size_t)end_word * 4;
}

bool rt_range(int64_t base, int n, const int64_t *count, const int64_t *stride, int64_t *lo,
              int64_t *hi) {
  *lo = *hi = base;
  for (int i = 0; i < n; i++) {
    int64_t span;
    if (!mul_i64(count[i] - 1, stride[i], &span)) return false;
    if (!add_i64(span < 0 ? *lo : *hi, span, span < 0 ? lo : hi)) return false;
  }
  return true;
}
