/* Matrix kernels for AVX2 and FMA. */
#include "runtime/runtime_internal.h"
#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define TARGET __attribute__((target("avx2,fma")))

/* Packed form: [ceil(k/2)][npad][2] 16-bit values, so that madd sums two neighbours of K. */
static size_t s8_bytes(uint32_t k, uint32_t n) {
  return (size_t)((k + 1) / 2) * mxu_npad(n) * 4;
}

static void s8_pack(const RtPlane *p, void *out) {
  uint32_t npad = mxu_npad(p->n);
  int16_t *w = out;
  memset(w, 0, s8_bytes(p->k, p->n));
  for (uint32_t k = 0; k < p->k; k++)
    for (uint32_t n = 0; n < p->n; n++)
      w[((size_t)(k / 2) * npad + n) * 2 + k % 2] =
          (int8_t)p->raw[p->kmajor ? (size_t)n * p->k + k : (size_t)k * p->n + n];
}

TARGET static __m256i lane_mask(uint32_t live, uint32_t first) {
  const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)live),
                            _mm256_add_epi32(lane, _mm256_set1_epi32((int)first)));
}

enum { BLOCK = 4 };

/* rows <= BLOCK rows by 16 columns. */
TARGET static void s8_block(const int16_t *w, uint32_t npad, uint32_t k, const int8_t *a,
                            ptrdiff_t lda, int32_t *c, ptrdiff_t ldc, size_t rows, uint32_t live,
                            bool acc) {
  __m256i sum[BLOCK][2], m0 = lane_mask(live, 0), m1 = lane_mask(live, 8);
  for (size_t r = 0; r < BLOCK; r++) {
    bool take = acc && r < rows;
    sum[r][0] = take ? _mm256_maskload_epi32(c + (ptrdiff_t)r * ldc, m0) : _mm256_setzero_si256();
    sum[r][1] =
        take ? _mm256_maskload_epi32(c + (ptrdiff_t)r * ldc + 8, m1) : _mm256_setzero_si256();
  }
  for (uint32_t g = 0; 2 * g < k; g++) {
    const __m256i *row = (const __m256i *)(const void *)(w + (size_t)g * npad * 2);
    __m256i w0 = _mm256_loadu_si256(row), w1 = _mm256_loadu_si256(row + 1);
    for (size_t r = 0; r < BLOCK; r++) {
      const int8_t *x = a + (r < rows ? (ptrdiff_t)r * lda : 0) + 2 * g;
      /* beyond an odd k the weight is 0, whatever byte follows */
      uint32_t pair = (uint16_t)(int16_t)x[0] | (uint32_t)(uint16_t)(int16_t)x[1] << 16;
      __m256i v = _mm256_set1_epi32((int)pair);
      sum[r][0] = _mm256_add_epi32(sum[r][0], _mm256_madd_epi16(v, w0));
      sum[r][1] = _mm256_add_epi32(sum[r][1], _mm256_madd_epi16(v, w1));
    }
  }
  for (size_t r = 0; r < rows; r++) {
    _mm256_maskstore_epi32(c + (ptrdiff_t)r * ldc, m0, sum[r][0]);
    _mm256_maskstore_epi32(c + (ptrdiff_t)r * ldc + 8, m1, sum[r][1]);
  }
}

static void s8_mul(const RtPlane *p, const int8_t *a, ptrdiff_t lda, int32_t *c, ptrdiff_t ldc,
                   size_t m, bool acc) {
  uint32_t npad = mxu_npad(p->n);
  const int16_t *w = p->s8;
  for (size_t i = 0; i < m; i += BLOCK)
    for (uint32_t n = 0; n < p->n; n += 16)
      s8_block(w + (size_t)n * 2, npad, p->k, a + (ptrdiff_t)i * lda, lda,
               c + (ptrdiff_t)i * ldc + n, ldc, m - i < BLOCK ? m - i : BLOCK,
               p->n - n < 16 ? p->n - n : 16, acc);
}

TARGET static __m256 canonical(__m256 x) {
  __m256 nan = _mm256_castsi256_ps(_mm256_set1_epi32(0x7fc00000));
  return _mm256_blendv_ps(x, nan, _mm256_cmp_ps(x, x, _CMP_UNORD_Q));
}

static float bf16_at(const uint16_t *a, size_t k) {
  uint16_t h;
  memcpy(&h, a + k, 2);
  return bf16_to_f32(h);
}

TARGET static void f32_block(const float *w, uint32_t npad, uint32_t k, const uint16_t *a,
                             ptrdiff_t lda, float *c, ptrdiff_t ldc, size_t rows, uint32_t live,
                             bool acc) {
  __m256 sum[BLOCK][2];
  __m256i m0 = lane_mask(live, 0), m1 = lane_mask(live, 8);
  for (size_t r = 0; r < BLOCK; r++) {
    bool take = acc && r < rows;
    sum[r][0] = take ? _mm256_maskload_ps(c + (ptrdiff_t)r * ldc, m0) : _mm256_setzero_ps();
    sum[r][1] = take ? _mm256_maskload_ps(c + (ptrdiff_t)r * ldc + 8, m1) : _mm256_setzero_ps();
  }
  const uint16_t *x[BLOCK];
  for (size_t r = 0; r < BLOCK; r++)
    x[r] = (const uint16_t *)(const void *)((const char *)a + (r < rows ? (ptrdiff_t)r * lda : 0));
  for (uint32_t i = 0; i < k; i++) {
    __m256 w0 = _mm256_loadu_ps(w + (size_t)i * npad),
           w1 = _mm256_loadu_ps(w + (size_t)i * npad + 8);
    for (size_t r = 0; r < BLOCK; r++) {
      __m256 v = _mm256_set1_ps(bf16_at(x[r], i));
      sum[r][0] = _mm256_fmadd_ps(v, w0, sum[r][0]);
      sum[r][1] = _mm256_fmadd_ps(v, w1, sum[r][1]);
    }
  }
  for (size_t r = 0; r < rows; r++) {
    _mm256_maskstore_ps(c + (ptrdiff_t)r * ldc, m0, canonical(sum[r][0]));
    _mm256_maskstore_ps(c + (ptrdiff_t)r * ldc + 8, m1, canonical(sum[r][1]));
  }
}

static void f32_mul(const RtPlane *p, const uint16_t *a, ptrdiff_t lda, float *c, ptrdiff_t ldc,
                    size_t m, bool acc) {
  uint32_t npad = mxu_npad(p->n);
  for (size_t i = 0; i < m; i += BLOCK)
    for (uint32_t n = 0; n < p->n; n += 16)
      f32_block(p->f32 + n, npad, p->k,
                (const uint16_t *)(const void *)((const char *)a + (ptrdiff_t)i * lda), lda,
                c + (ptrdiff_t)i * ldc + n, ldc, m - i < BLOCK ? m - i : BLOCK,
                p->n - n < 16 ? p->n - n : 16, acc);
}

const MxuKernels mxu_kernels_avx2 = {"avx2", s8_bytes, s8_pack, s8_mul, f32_mul};
#endif
