/* Copies that prepare operands: padding, other storage orders. */
#include "backend/host/host_internal.h"
#include <string.h>

int64_t host_copy_bytes(const HostCopy *c) {
  int64_t n = (int64_t)c->elsize;
  for (int i = 0; i < c->rank; i++) n *= c->size[i];
  return n;
}

static void fill(const HostCopy *c, uint8_t *dst, int64_t n) {
  if (n == 0) return;
  bool same = true;
  for (size_t i = 1; i < c->elsize; i++) same = same && c->fill[i] == c->fill[0];
  if (same) {
    memset(dst, c->fill[0], (size_t)n * c->elsize);
    return;
  }
  for (int64_t i = 0; i < n; i++) memcpy(dst + (size_t)i * c->elsize, c->fill, c->elsize);
}

static void copy_strided(uint8_t *dst, const uint8_t *src, int64_t n, int64_t stride,
                         size_t elsize) {
  if (stride == 1) {
    memcpy(dst, src, (size_t)n * elsize);
    return;
  }
  int64_t step = stride * (int64_t)elsize;
  switch (elsize) {
  case 1:
    for (int64_t i = 0; i < n; i++) dst[i] = src[i * step];
    return;
  case 2:
    for (int64_t i = 0; i < n; i++) memcpy(dst + i * 2, src + i * step, 2);
    return;
  default:
    for (int64_t i = 0; i < n; i++) memcpy(dst + i * 4, src + i * step, 4);
    return;
  }
}

/* Writes the block of dst under axis from element `at` of src; returns its end. */
static uint8_t *copy_axis(const HostCopy *c, int axis, uint8_t *dst, const uint8_t *src,
                          int64_t at) {
  int64_t elsize = (int64_t)c->elsize;
  if (axis == c->rank) {
    memcpy(dst, src + at * elsize, c->elsize);
    return dst + elsize;
  }
  int64_t block = 1; /* elements of dst per coordinate */
  for (int i = axis + 1; i < c->rank; i++) block *= c->size[i];
  int64_t n = c->size[axis], lo = c->lo[axis], hi = c->hi[axis], stride = c->stride[axis];
  fill(c, dst, lo * block);
  uint8_t *d = dst + lo * block * elsize;
  if (axis == c->rank - 1) {
    if (hi > lo) copy_strided(d, src + (at + lo * stride) * elsize, hi - lo, stride, c->elsize);
    d += (hi - lo) * elsize;
  } else {
    for (int64_t i = lo; i < hi; i++) d = copy_axis(c, axis + 1, d, src, at + i * stride);
  }
  fill(c, d, (n - hi) * block);
  return dst + n * block * elsize;
}

void host_copy_run(const HostCopy *c, void *dst, const void *src) {
  copy_axis(c, 0, dst, src, c->offset);
}
