/* s8 matrix kernel for AMX-INT8. The weights stay in tile registers while rows stream past them, as
 * in the array that is simulated. Floats use AVX-512: AMX's bf16 sums two products at a time, which
 * is not the order the ISA defines. */
#include "runtime/runtime_internal.h"
#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("amx-tile,amx-int8")))

/* Palette 1: every tile 16 rows of 64 bytes. */
typedef struct {
  uint8_t palette, start_row, reserved[14];
  uint16_t colsb[16];
  uint8_t rows[16];
} TileConfig;

/* Tiles: 0..3 weights, 4 and 5 activations, 6 and 7 results. Weights of one K step (64) and four
 * column tiles, or of two K steps and two column tiles; `ldw` is the bytes between K groups of the
 * packed plane. */
#define COLUMN(w, c, a)                                                                            \
  do {                                                                                             \
    if (acc)                                                                                       \
      _tile_loadd(6, c, (size_t)ldc * 4);                                                          \
    else                                                                                           \
      _tile_zero(6);                                                                               \
    _tile_dpbssd(6, a, w);                                                                         \
    _tile_stored(6, c, (size_t)ldc * 4);                                                           \
  } while (0)

TARGET static void rows_k1(const int8_t *w, size_t ldw, int tiles, const int8_t *a, ptrdiff_t lda,
                           int32_t *c, ptrdiff_t ldc, size_t m16, bool acc) {
  _tile_loadd(0, w, ldw);
  if (tiles > 1) _tile_loadd(1, w + 64, ldw);
  if (tiles > 2) _tile_loadd(2, w + 128, ldw);
  if (tiles > 3) _tile_loadd(3, w + 192, ldw);
  for (size_t i = 0; i < m16; i++, a += 16 * lda, c += 16 * ldc) {
    _tile_loadd(4, a, (size_t)lda);
    COLUMN(0, c, 4);
    if (tiles > 1) COLUMN(1, c + 16, 4);
    if (tiles > 2) COLUMN(2, c + 32, 4);
    if (tiles > 3) COLUMN(3, c + 48, 4);
  }
}

TARGET static void rows_k2(const int8_t *w, size_t ldw, int tiles, const int8_t *a, ptrdiff_t lda,
                           int32_t *c, ptrdiff_t ldc, size_t m16, bool acc) {
  _tile_loadd(0, w, ldw);
  _tile_loadd(1, w + 16 * ldw, ldw);
  if (tiles > 1) {
    _tile_loadd(2, w + 64, ldw);
    _tile_loadd(3, w + 16 * ldw + 64, ldw);
  }
  for (size_t i = 0; i < m16; i++, a += 16 * lda, c += 16 * ldc) {
    _tile_loadd(4, a, (size_t)lda);
    _tile_loadd(5, a + 64, (size_t)lda);
    if (acc)
      _tile_loadd(6, c, (size_t)ldc * 4);
    else
      _tile_zero(6);
    _tile_dpbssd(6, 4, 0);
    _tile_dpbssd(6, 5, 1);
    _tile_stored(6, c, (size_t)ldc * 4);
    if (tiles == 1) continue;
    if (acc)
      _tile_loadd(7, c + 16, (size_t)ldc * 4);
    else
      _tile_zero(7);
    _tile_dpbssd(7, 4, 2);
    _tile_dpbssd(7, 5, 3);
    _tile_stored(7, c + 16, (size_t)ldc * 4);
  }
}

/* All of the plane for 16 * m16 rows. */
static void mul_blocks(const RtPlane *p, uint32_t tiles, const int8_t *a, ptrdiff_t lda, int32_t *c,
                       ptrdiff_t ldc, size_t m16, bool acc) {
  const int8_t *w = p->s8;
  size_t ldw = (size_t)mxu_npad(p->n) * 4;
  uint32_t steps = (p->k + 63) / 64;
  for (uint32_t s = 0; s < steps;) {
    bool two = s + 1 < steps;
    uint32_t width = two ? 2 : 4;
    for (uint32_t t = 0; t < tiles; t += width) {
      const int8_t *wt = w + 16 * ldw * s + (size_t)64 * t;
      int n = (int)(tiles - t < width ? tiles - t : width);
      if (two)
        rows_k2(wt, ldw, n, a + 64 * s, lda, c + 16 * t, ldc, m16, acc || s > 0);
      else
        rows_k1(wt, ldw, n, a + 64 * s, lda, c + 16 * t, ldc, m16, acc || s > 0);
    }
    s += width == 2 ? 2 : 1;
  }
}

/* Rows that do not fill 16, or columns that do not fill a tile, pass through a block of their own.
 */
static void mul_edge(const RtPlane *p, const int8_t *a, ptrdiff_t lda, int32_t *c, ptrdiff_t ldc,
                     size_t rows, bool acc) {
  uint32_t npad = mxu_npad(p->n), kpad = (p->k + 63) & ~63u;
  _Alignas(64) int8_t ta[16 * 1024];
  _Alignas(64) int32_t tc[16 * 1024];
  for (size_t r = 0; r < 16; r++) {
    if (r < rows)
      memcpy(ta + r * kpad, a + (ptrdiff_t)r * lda, p->k);
    else
      memset(ta + r * kpad, 0, p->k);
    memset(ta + r * kpad + p->k, 0, kpad - p->k);
    if (acc && r < rows) memcpy(tc + r * npad, c + (ptrdiff_t)r * ldc, p->n * sizeof(int32_t));
  }
  mul_blocks(p, npad / 16, ta, (ptrdiff_t)kpad, tc, (ptrdiff_t)npad, 1, acc);
  for (size_t r = 0; r < rows; r++)
    memcpy(c + (ptrdiff_t)r * ldc, tc + r * npad, p->n * sizeof(int32_t));
}

TARGET static void s8_mul(const RtPlane *p, const int8_t *a, ptrdiff_t lda, int32_t *c,
                          ptrdiff_t ldc, size_t m, bool acc) {
  _Alignas(64) TileConfig cfg = {.palette = 1};
  for (unsigned t = 0; t < 8; t++) {
    cfg.colsb[t] = 64;
    cfg.rows[t] = 16;
  }
  _tile_loadconfig(&cfg);
  size_t whole = p->n % 16 == 0 ? m / 16 : 0;
  if (whole) mul_blocks(p, p->n / 16, a, lda, c, ldc, whole, acc);
  for (size_t i = whole * 16; i < m; i += 16)
    mul_edge(p, a + (ptrdiff_t)i * lda, lda, c + (ptrdiff_t)i * ldc, ldc, m - i < 16 ? m - i : 16,
             acc);
  _tile_release();
}

const MxuKernels mxu_kernels_amx = {"amx-int8", mxu_vnni_bytes, mxu_vnni_pack, s8_mul,
                                    mxu_f32_mul_avx512};
#endif
