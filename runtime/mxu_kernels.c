/* Choice of the host's matrix kernels, the portable set, and the packing shared by several. */
#include "runtime/runtime_internal.h"
#include <math.h>
#include <string.h>
#if defined(__x86_64__)
#include <cpuid.h>
#include <emmintrin.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

/* ---- what the host offers ---- */

#if defined(__x86_64__)
/* AMX needs the processor, an operating system that saves tile registers, and permission for this
 * process (Linux arch_prctl, ARCH_REQ_XCOMP_PERM for XTILEDATA). */
static bool host_has_amx(void) {
  unsigned a, b, c, d;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d)) return false;
  if (!(d >> 24 & 1) || !(d >> 25 & 1)) return false;                  /* AMX-TILE, AMX-INT8 */
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c >> 27 & 1)) return false; /* OSXSAVE */
  uint32_t lo, hi;
  __asm__("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
  if ((lo >> 17 & 3) != 3) return false;
  const long arch_req_xcomp_perm = 0x1023, xtiledata = 18;
  return syscall(SYS_arch_prctl, arch_req_xcomp_perm, xtiledata) == 0;
}
#endif

int rt_host_level(void) {
#if defined(__x86_64__)
  __builtin_cpu_init();
  if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) return MXU_PORTABLE;
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw") ||
      !__builtin_cpu_supports("avx512vl") || !__builtin_cpu_supports("avx512dq") ||
      !__builtin_cpu_supports("avx512cd") || !__builtin_cpu_supports("avx512vnni"))
    return MXU_AVX2;
  return host_has_amx() ? MXU_AMX : MXU_AVX512;
#else
  return MXU_PORTABLE;
#endif
}

const MxuKernels *mxu_kernels(int level) {
#if defined(__x86_64__)
  switch (level) {
  case MXU_AVX2: return &mxu_kernels_avx2;
  case MXU_AVX512: return &mxu_kernels_avx512;
  case MXU_AMX: return &mxu_kernels_amx;
  default: break;
  }
#endif
  (void)level;
  return &mxu_kernels_portable;
}

/* ---- packing ---- */

void mxu_f32_pack(RtPlane *p) {
  uint32_t npad = mxu_npad(p->n);
  memset(p->f32, 0, (size_t)p->k * npad * sizeof(float));
  size_t ks = p->kmajor ? 1 : p->n, ns = p->kmajor ? p->k : 1;
  for (uint32_t k = 0; k < p->k; k++)
    for (uint32_t n = 0; n < p->n; n++) {
      size_t at = k * ks + n * ns;
      uint16_t h = 0;
      if (p->dtype == DT_BF16) memcpy(&h, p->raw + 2 * at, 2);
      p->f32[(size_t)k * npad + n] =
          p->dtype == DT_BF16 ? bf16_to_f32(h) : (float)(int8_t)p->raw[at];
    }
  p->has_f32 = true;
}

#if defined(__x86_64__)
static uint32_t vnni_groups(uint32_t k) {
  return (k + 63) / 64 * 16;
}

size_t mxu_vnni_bytes(uint32_t k, uint32_t n) {
  return (size_t)vnni_groups(k) * mxu_npad(n) * 4 + (size_t)mxu_npad(n) * 4;
}

/* Four rows of 16 columns become 16 groups of four. SSE2 is part of x86-64. */
static void interleave4(const uint8_t *src, size_t row, uint8_t *dst) {
  __m128i a = _mm_loadu_si128((const __m128i *)(const void *)src);
  __m128i b = _mm_loadu_si128((const __m128i *)(const void *)(src + row));
  __m128i c = _mm_loadu_si128((const __m128i *)(const void *)(src + 2 * row));
  __m128i d = _mm_loadu_si128((const __m128i *)(const void *)(src + 3 * row));
  __m128i ab0 = _mm_unpacklo_epi8(a, b), ab1 = _mm_unpackhi_epi8(a, b);
  __m128i cd0 = _mm_unpacklo_epi8(c, d), cd1 = _mm_unpackhi_epi8(c, d);
  __m128i *out = (__m128i *)(void *)dst;
  _mm_storeu_si128(out, _mm_unpacklo_epi16(ab0, cd0));
  _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(ab0, cd0));
  _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(ab1, cd1));
  _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(ab1, cd1));
}

static void pack_element(const RtPlane *p, uint8_t *w, uint32_t k, uint32_t n) {
  size_t from = p->kmajor ? (size_t)n * p->k + k : (size_t)k * p->n + n;
  w[((size_t)(k / 4) * mxu_npad(p->n) + n) * 4 + k % 4] = p->raw[from];
}

void mxu_vnni_pack(const RtPlane *p, void *out) {
  uint32_t npad = mxu_npad(p->n), k4 = p->k & ~3u, n16 = p->kmajor ? p->n : p->n & ~15u;
  uint8_t *w = out;
  if (p->k % 64 || p->n % 16) memset(w, 0, (size_t)vnni_groups(p->k) * npad * 4);
  for (uint32_t k = 0; k < k4; k += 4) {
    uint8_t *row = w + (size_t)k * npad;
    if (p->kmajor)
      for (uint32_t n = 0; n < p->n; n++)
        memcpy(row + 4 * (size_t)n, p->raw + (size_t)n * p->k + k, 4);
    else
      for (uint32_t n = 0; n < n16; n += 16)
        interleave4(p->raw + (size_t)k * p->n + n, p->n, row + 4 * (size_t)n);
  }
  for (uint32_t k = 0; k < p->k; k++)
    for (uint32_t n = k < k4 ? n16 : 0; n < p->n; n++) pack_element(p, w, k, n);
}
#endif

/* ---- the portable set ---- */

/* Packed form: [k][npad] bytes. */
static size_t s8_bytes(uint32_t k, uint32_t n) {
  return (size_t)k * mxu_npad(n);
}

static void s8_pack(const RtPlane *p, void *out) {
  uint32_t npad = mxu_npad(p->n);
  int8_t *w = out;
  memset(w, 0, s8_bytes(p->k, p->n));
  for (uint32_t k = 0; k < p->k; k++)
    for (uint32_t n = 0; n < p->n; n++)
      w[(size_t)k * npad + n] =
          (int8_t)p->raw[p->kmajor ? (size_t)n * p->k + k : (size_t)k * p->n + n];
}

static void s8_mul(const RtPlane *p, const int8_t *a, ptrdiff_t lda, int32_t *c, ptrdiff_t ldc,
                   size_t m, bool acc) {
  uint32_t npad = mxu_npad(p->n);
  const int8_t *w = p->s8;
  for (size_t i = 0; i < m; i++, a += lda, c += ldc)
    for (uint32_t n0 = 0; n0 < p->n; n0 += 16) {
      uint32_t live = p->n - n0 < 16 ? p->n - n0 : 16, sum[16] = {0};
      if (acc)
        for (uint32_t n = 0; n < live; n++) sum[n] = (uint32_t)c[n0 + n];
      for (uint32_t k = 0; k < p->k; k++)
        for (uint32_t n = 0; n < 16; n++) sum[n] += (uint32_t)(a[k] * w[(size_t)k * npad + n0 + n]);
      memcpy(c + n0, sum, live * sizeof(int32_t));
    }
}

static float canonical_nan(float x) {
  return x != x ? __builtin_nanf("") : x;
}

static void f32_mul(const RtPlane *p, const uint16_t *a, ptrdiff_t lda, float *c, ptrdiff_t ldc,
                    size_t m, bool acc) {
  uint32_t npad = mxu_npad(p->n);
  for (size_t i = 0; i < m;
       i++, a = (const uint16_t *)(const void *)((const char *)a + lda), c += ldc)
    for (uint32_t n0 = 0; n0 < p->n; n0 += 16) {
      uint32_t live = p->n - n0 < 16 ? p->n - n0 : 16;
      float sum[16] = {0};
      if (acc) memcpy(sum, c + n0, live * sizeof(float));
      for (uint32_t k = 0; k < p->k; k++) {
        uint16_t h;
        memcpy(&h, a + k, 2);
        float x = bf16_to_f32(h);
        for (uint32_t n = 0; n < 16; n++)
          sum[n] = fmaf(x, p->f32[(size_t)k * npad + n0 + n], sum[n]);
      }
      for (uint32_t n = 0; n < live; n++) c[n0 + n] = canonical_nan(sum[n]);
    }
}

const MxuKernels mxu_kernels_portable = {"portable", s8_bytes, s8_pack, s8_mul, f32_mul};
