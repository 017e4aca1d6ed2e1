/* Matrix kernels for AVX-512 with VNNI. */
#include "runtime/runtime_internal.h"
#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512vnni")))

enum { BLOCK = 4, NB = 4 }; /* rows and 16-column vectors of a register block */

/* vpdpbusd multiplies unsigned by signed: activations enter as a + 128, and 128 times the column
 * sum of the weights leaves again at the end. Exact modulo 2^32. Bytes beyond k meet weights of 0.
 */
TARGET static void s8_block(const int8_t *w, const int32_t *colsum, uint32_t npad, uint32_t k,
                            const int8_t *a, ptrdiff_t lda, int32_t *c, ptrdiff_t ldc, size_t rows,
                            uint32_t live, bool acc) {
  __m512i sum[BLOCK][NB];
  __mmask16 mask[NB];
  bool any[NB];
  for (uint32_t j = 0; j < NB; j++) {
    uint32_t left = live > 16 * j ? live - 16 * j : 0;
    any[j] = left > 0;
    mask[j] = (__mmask16)(left >= 16 ? 0xffff : (1u << left) - 1);
    __m512i bias =
        any[j] ? _mm512_slli_epi32(_mm512_loadu_si512(colsum + 16 * j), 7) : _mm512_setzero_si512();
    for (size_t r = 0; r < BLOCK; r++) {
      __m512i start = acc && r < rows
                          ? _mm512_maskz_loadu_epi32(mask[j], c + (ptrdiff_t)r * ldc + 16 * j)
                          : _mm512_setzero_si512();
      sum[r][j] = _mm512_sub_epi32(start, bias);
    }
  }
  const int8_t *x[BLOCK];
  for (size_t r = 0; r < BLOCK; r++) x[r] = a + (r < rows ? (ptrdiff_t)r * lda : 0);
  for (uint32_t g = 0; 4 * g < k; g++) {
    const int8_t *row = w + (size_t)g * npad * 4;
    __m512i b[NB];
    for (uint32_t j = 0; j < NB; j++)
      b[j] = any[j] ? _mm512_loadu_si512(row + 64 * j) : _mm512_setzero_si512();
    for (size_t r = 0; r < BLOCK; r++) {
      uint32_t q;
      memcpy(&q, x[r] + 4 * g, 4);
      __m512i v = _mm512_set1_epi32((int)(q ^ 0x80808080u));
      for (uint32_t j = 0; j < NB; j++) sum[r][j] = _mm512_dpbusd_epi32(sum[r][j], v, b[j]);
    }
  }
  for (size_t r = 0; r < rows; r++)
    for (uint32_t j = 0; j < NB; j++)
      _mm512_mask_storeu_epi32(c + (ptrdiff_t)r * ldc + 16 * j, mask[j], sum[r][j]);
}

/* After the shared layout, the sums of the columns. */
TARGET static void s8_pack(const RtPlane *p, void *out) {
  mxu_vnni_pack(p, out);
  uint32_t npad = mxu_npad(p->n), groups = (p->k + 63) / 64 * 16;
  int8_t *w = out;
  int32_t *colsum = (int32_t *)(void *)(w + (size_t)groups * npad * 4);
  const __m512i ones = _mm512_set1_epi8(1);
  for (uint32_t n = 0; n < npad; n += 16) {
    __m512i sum = _mm512_setzero_si512();
    for (uint32_t g = 0; g < groups; g++)
      sum = _mm512_dpbusd_epi32(sum, ones, _mm512_loadu_si512(w + ((size_t)g * npad + n) * 4));
    _mm512_storeu_si512(colsum + n, sum);
  }
}

static void s8_mul(const RtPlane *p, const int8_t *a, ptrdiff_t lda, int32_t *c, ptrdiff_t ldc,
                   size_t m, bool acc) {
  uint32_t npad = mxu_npad(p->n);
  const int8_t *w = p->s8;
  const int32_t *colsum =
      (const int32_t *)(const void *)(w + (size_t)((p->k + 63) / 64 * 16) * npad * 4);
  for (uint32_t n = 0; n < p->n; n += 16 * NB)
    for (size_t i = 0; i < m; i += BLOCK)
      s8_block(w + (size_t)n * 4, colsum + n, npad, p->k, a + (ptrdiff_t)i * lda, lda,
               c + (ptrdiff_t)i * ldc + n, ldc, m - i < BLOCK ? m - i : BLOCK, p->n - n, acc);
}

TARGET static __m512 canonical(__m512 x) {
  __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
  return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), nan);
}

TARGET static void f32_block(const float *w, uint32_t npad, uint32_t k, const uint16_t *a,
                             ptrdiff_t lda, float *c, ptrdiff_t ldc, size_t rows, uint32_t live,
                             bool acc) {
  __m512 sum[BLOCK][NB];
  __mmask16 mask[NB];
  bool any[NB];
  for (uint32_t j = 0; j < NB; j++) {
    uint32_t left = live > 16 * j ? live - 16 * j : 0;
    any[j] = left > 0;
    mask[j] = (__mmask16)(left >= 16 ? 0xffff : (1u << left) - 1);
    for (size_t r = 0; r < BLOCK; r++)
      sum[r][j] = acc && r < rows ? _mm512_maskz_loadu_ps(mask[j], c + (ptrdiff_t)r * ldc + 16 * j)
                                  : _mm512_setzero_ps();
  }
  const char *x[BLOCK];
  for (size_t r = 0; r < BLOCK; r++) x[r] = (const char *)a + (r < rows ? (ptrdiff_t)r * lda : 0);
  for (uint32_t i = 0; i < k; i++) {
    const float *row = w + (size_t)i * npad;
    __m512 b[NB];
    for (uint32_t j = 0; j < NB; j++)
      b[j] = any[j] ? _mm512_loadu_ps(row + 16 * j) : _mm512_setzero_ps();
    for (size_t r = 0; r < BLOCK; r++) {
      uint16_t h;
      memcpy(&h, x[r] + 2 * i, 2);
      __m512 v = _mm512_castsi512_ps(_mm512_set1_epi32((int)((uint32_t)h << 16)));
      for (uint32_t j = 0; j < NB; j++) sum[r][j] = _mm512_fmadd_ps(v, b[j], sum[r][j]);
    }
  }
  for (size_t r = 0; r < rows; r++)
    for (uint32_t j = 0; j < NB; j++)
      _mm512_mask_storeu_ps(c + (ptrdiff_t)r * ldc + 16 * j, mask[j], canonical(sum[r][j]));
}

void mxu_f32_mul_avx512(const RtPlane *p, const uint16_t *a, ptrdiff_t lda, float *c, ptrdiff_t ldc,
                        size_t m, bool acc) {
  uint32_t npad = mxu_npad(p->n);
  for (uint32_t n = 0; n < p->n; n += 16 * NB)
    for (size_t i = 0; i < m; i += BLOCK)
      f32_block(p->f32 + n, npad, p->k,
                (const uint16_t *)(const void *)((const char *)a + (ptrdiff_t)i * lda), lda,
                c + (ptrdiff_t)i * ldc + n, ldc, m - i < BLOCK ? m - i : BLOCK, p->n - n, acc);
}

const MxuKernels mxu_kernels_avx512 = {"avx512-vnni", mxu_vnni_bytes, s8_pack, s8_mul,
                                       mxu_f32_mul_avx512};
#endif
