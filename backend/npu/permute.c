/* Constants from row-major order into the order a layout stores them in. */
#include "backend/npu/permute.h"

#include <string.h>

#include "ir/ir.h"

enum { BLOCK = 64, MAX_SIZE = 4 };

/* One axis of a transposition: how far apart its elements are, in bytes. */
typedef struct {
  int64_t n, from, to;
} Axis;

/* to[k] = from[k * stride]; inlined with a constant size. */
static inline void gather_row(uint8_t *to, const uint8_t *from, int64_t stride, int64_t n,
                              size_t size) {
  for (int64_t k = 0; k < n; k++) memcpy(to + (size_t)k * size, from + k * stride, size);
}

/* nr rows that lie together in `from` along c become nc rows that lie together in `to` along r. By
 * way of a buffer: every line of memory is read and written once, in one piece. */
static void transpose_block(const Axis *r, const Axis *c, int64_t nr, int64_t nc, size_t size,
                            const uint8_t *from, uint8_t *to) {
  uint8_t rows[BLOCK * BLOCK * MAX_SIZE];
  int64_t width = nc * (int64_t)size;
  for (int64_t i = 0; i < nr; i++) memcpy(rows + i * width, from + i * r->from, (size_t)width);
  for (int64_t j = 0; j < nc; j++) {
    uint8_t *row = to + j * c->to;
    const uint8_t *column = rows + j * (int64_t)size;
    switch (size) {
    case 1: gather_row(row, column, width, nr, 1); break;
    case 2: gather_row(row, column, width, nr, 2); break;
    default: gather_row(row, column, width, nr, 4); break;
    }
  }
}

static void transpose(const Axis *r, const Axis *c, size_t size, const uint8_t *from, uint8_t *to) {
  for (int64_t i = 0; i < r->n; i += BLOCK)
    for (int64_t j = 0; j < c->n; j += BLOCK) {
      int64_t nr = r->n - i < BLOCK ? r->n - i : BLOCK, nc = c->n - j < BLOCK ? c->n - j : BLOCK;
      transpose_block(r, c, nr, nc, size, from + i * r->from + j * c->from,
                      to + i * r->to + j * c->to);
    }
}

void permute_elements(size_t size, int rank, const int64_t *shape, const int64_t *layout,
                      const uint8_t *from, uint8_t *to) {
  Axis axes[IR_MAX_RANK]; /* in storage order */
  int64_t stride[IR_MAX_RANK], step = (int64_t)size;
  for (int i = rank - 1; i >= 0; i--) stride[i] = step, step *= shape[i];
  int64_t total = step, index[IR_MAX_RANK] = {0};
  step = (int64_t)size;
  int dense = rank - 1; /* whose elements lie together in `from` */
  for (int i = rank - 1; i >= 0; i--) {
    axes[i] = (Axis){shape[layout[i]], stride[layout[i]], step};
    step *= axes[i].n;
    if (layout[i] == rank - 1) dense = i;
  }
  const Axis *last = &axes[rank - 1];
  int64_t inside = dense == rank - 1 ? last->n : last->n * axes[dense].n; /* elements per round */
  for (int64_t done = 0; done < total; done += inside * (int64_t)size) {
    int64_t at = 0, out = 0;
    for (int i = 0; i < rank - 1; i++) at += index[i] * axes[i].from, out += index[i] * axes[i].to;
    if (dense == rank - 1)
      memcpy(to + out, from + at, (size_t)last->n * size);
    else
      transpose(last, &axes[dense], size, from + at, to + out);
    for (int i = rank - 2; i >= 0; i--) {
      if (i == dense) continue;
      if (++index[i] < axes[i].n) break;
      index[i] = 0;
    }
  }
}
