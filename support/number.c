/* Numbers: narrow floats, rounding that ignores the FP environment, checked integers, random
 * numbers. */
#include "support/support.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint32_t f32_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, sizeof u);
  return u;
}

static float f32_of_bits(uint32_t u) {
  float f;
  memcpy(&f, &u, sizeof f);
  return f;
}

float bf16_to_f32(uint16_t h) {
  return f32_of_bits((uint32_t)h << 16);
}

uint16_t f32_to_bf16(float f) {
  uint32_t u = f32_bits(f);
  if ((u & 0x7fffffff) > 0x7f800000) return (uint16_t)(u >> 16 | 0x40);
  /* Adding just under half, plus one when the kept part is odd, rounds ties to even. */
  return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}

float f16_to_f32(uint16_t h) {
  uint32_t sign = (uint32_t)(h & 0x8000) << 16, exponent = h >> 10 & 31, fraction = h & 0x3ff;
  if (exponent == 31) return f32_of_bits(sign | 0x7f800000 | fraction << 13);
  if (exponent == 0) { /* zero or subnormal: fraction units of 2^-24, exact */
    float magnitude = (float)fraction * 0x1p-24f;
    return sign ? -magnitude : magnitude;
  }
  return f32_of_bits(sign | (exponent + 112) << 23 | fraction << 13);
}

float f32_rne(float f) {
  if (!(fabsf(f) < 0x1p23f)) return f;  /* integral already, infinite or NaN */
  int32_t whole = (int32_t)f;           /* towards zero */
  float rest = fabsf(f - (float)whole); /* exact */
  if (rest > 0.5f || (rest == 0.5f && (whole & 1))) whole += f < 0 ? -1 : 1;
  return copysignf((float)whole, f); /* -0.25 rounds to -0 */
}

int32_t f32_to_s32_sat(float f) {
  if (isnan(f)) return 0;
  float r = f32_rne(f);
  if (r >= 0x1p31f) return INT32_MAX;
  if (r < -0x1p31f) return INT32_MIN;
  return (int32_t)r;
}

bool mul_i64(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_mul_overflow(a, b, out);
}

bool add_i64(int64_t a, int64_t b, int64_t *out) {
  return !__builtin_add_overflow(a, b, out);
}

/* strtoll and strtod skip leading blanks; a number does not start with one. */
static bool number_starts(char c) {
  return (c >= '0' && c <= '9') || (c && strchr("+-.infINF", c) != NULL);
}

bool parse_i64(const char *s, int64_t *out) {
  if (!number_starts(*s)) return false;
  const char *digits = s + (*s == '-' || *s == '+');
  bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
  char *end;
  errno = 0;
  long long v = strtoll(s, &end, hex ? 16 : 10);
  if (errno || end == s || *end) return false;
  *out = v;
  return true;
}

bool parse_f64(const char *s, double *out) {
  if (!number_starts(*s)) return false;
  char *end;
  errno = 0;
  double v = strtod(s, &end);
  /* ERANGE is also set for subnormal results, which are fine. */
  if (end == s || *end || (errno == ERANGE && isinf(v))) return false;
  *out = v;
  return true;
}

bool number_too_large(const char *s, bool integer) {
  int64_t i;
  double d;
  if (!number_starts(*s)) return false;
  if (integer) { /* digits beyond what fits */
    const char *digits = s + (*s == '-' || *s == '+');
    bool hex = digits[0] == '0' && (digits[1] == 'x' || digits[1] == 'X');
    digits += hex ? 2 : 0;
    const char *set = hex ? "0123456789abcdefABCDEF" : "0123456789";
    return *digits && !digits[strspn(digits, set)] && !parse_i64(s, &i);
  }
  char *end;
  d = strtod(s, &end);
  return end != s && !*end && isinf(d) && !parse_f64(s, &d);
}

/* ---- random numbers ---- */

/* SplitMix64 (Steele, Lea, Flood 2014) spreads the seed; xoshiro256** (Blackman, Vigna 2018) runs.
 */
static uint64_t splitmix64(uint64_t *state) {
  uint64_t z = (*state += 0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

void rng_seed(Rng *r, uint64_t seed) {
  for (int i = 0; i < 4; i++) r->s[i] = splitmix64(&seed);
}

enum { RNG_BLOCK = 512 };

static uint64_t rotl(uint64_t x, int k) {
  return x << k | x >> (64 - k);
}

uint64_t rng_u64(Rng *r) {
  uint64_t result = rotl(r->s[1] * 5, 7) * 9, t = r->s[1] << 17;
  r->s[2] ^= r->s[0];
  r->s[3] ^= r->s[1];
  r->s[1] ^= r->s[2];
  r->s[0] ^= r->s[3];
  r->s[2] ^= t;
  r->s[3] = rotl(r->s[3], 45);
  return result;
}

double rng_uniform(Rng *r) {
  return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

/* Standard normal quantile of 0 < p < 1, about 7 digits: M. J. Wichura, Algorithm AS 241 (PPND7),
 * Applied Statistics 37(3), 1988. One formula serves the middle, where |p - 0.5| <= 0.425. */
static double quantile_of_middle(double p) {
  double q = p - 0.5, r = 0.180625 - q * q;
  return q * (((59.109374720 * r + 159.29113202) * r + 50.434271938) * r + 3.3871327179) /
         (((67.187563600 * r + 78.757757664) * r + 17.895169469) * r + 1);
}

static double quantile_of_tail(double p) {
  double r = sqrt(-log(p < 0.5 ? p : 1 - p)), z;
  if (r <= 5) {
    r -= 1.6;
    z = (((0.17023821103 * r + 1.3067284816) * r + 2.7568153900) * r + 1.4234372777) /
        ((0.12021132975 * r + 0.73700164250) * r + 1);
  } else {
    r -= 5;
    z = (((0.017337203997 * r + 0.42868294337) * r + 3.0812263860) * r + 6.6579051150) /
        ((0.012258202635 * r + 0.24197894225) * r + 1);
  }
  return p < 0.5 ? -z : z;
}

/* The middle formula is computed for all, which takes vectors; then the tails are put right. */
static void normal_block(Rng *r, double *out, size_t n) {
  double p[RNG_BLOCK];
  uint32_t tail[RNG_BLOCK];
  size_t ntail = 0;
  for (size_t i = 0; i < n; i++)
    p[i] = ((double)(rng_u64(r) >> 11) + 0.5) * 0x1p-53; /* never 0 or 1 */
  for (size_t i = 0; i < n; i++) out[i] = quantile_of_middle(p[i]);
  for (size_t i = 0; i < n; i++) {
    tail[ntail] = (uint32_t)i;
    ntail += fabs(p[i] - 0.5) > 0.425;
  }
  for (size_t i = 0; i < ntail; i++) out[tail[i]] = quantile_of_tail(p[tail[i]]);
}

void rng_normals(Rng *r, double *out, size_t n) {
  for (size_t at = 0; at < n; at += RNG_BLOCK)
    normal_block(r, out + at, n - at < RNG_BLOCK ? n - at : RNG_BLOCK);
}

double rng_normal(Rng *r) {
  double x;
  rng_normals(r, &x, 1);
  return x;
}

int64_t rng_range(Rng *r, int64_t lo, int64_t hi) {
  uint64_t span = (uint64_t)hi - (uint64_t)lo + 1; /* 0: all 2^64 */
  if (span == 0) return (int64_t)rng_u64(r);
  uint64_t unfair = (0 - span) % span, x; /* 2^64 mod span values would be drawn once too often */
  do x = rng_u64(r);
  while (x < unfair);
  return (int64_t)((uint64_t)lo + x % span);
}
