/* Element types: names, sizes, conversion. Data may be unaligned, so every access is a memcpy. */
#include "support/dtype.h"

#include "support/support.h"

#include <math.h>
#include <string.h>

static const struct {
  const char *name;
  uint8_t size, is_float;
} dtypes[] = {
#define X(e, n, b, f) {n, b, f},
    NPU_DTYPES(X)
#undef X
};

const char *dtype_name(DType t) {
  return dtypes[t].name;
}

size_t dtype_size(DType t) {
  return dtypes[t].size;
}

bool dtype_is_float(DType t) {
  return dtypes[t].is_float;
}

bool dtype_parse(const char *name, DType *out) {
  for (int t = 0; t < DT_COUNT; t++)
    if (strcmp(dtypes[t].name, name) == 0) {
      *out = (DType)t;
      return true;
    }
  return false;
}

/* load_T and store_T: element i of a possibly unaligned array. */
#define ACCESS(T)                                                                                  \
  static T load_##T(const void *p, size_t i) {                                                     \
    T v;                                                                                           \
    memcpy(&v, (const char *)p + i * sizeof v, sizeof v);                                          \
    return v;                                                                                      \
  }                                                                                                \
  static void store_##T(void *p, size_t i, T v) {                                                  \
    memcpy((char *)p + i * sizeof v, &v, sizeof v);                                                \
  }
ACCESS(int8_t)
ACCESS(uint8_t)
ACCESS(int16_t)
ACCESS(uint16_t)
ACCESS(int32_t)
ACCESS(int64_t)
ACCESS(float)
ACCESS(double)

double dtype_get(DType t, const void *data, size_t i) {
  switch (t) {
  case DT_S8: return load_int8_t(data, i);
  case DT_BF16: return (double)bf16_to_f32(load_uint16_t(data, i));
  case DT_F32: return (double)load_float(data, i);
  case DT_S32: return load_int32_t(data, i);
  case DT_U8: return load_uint8_t(data, i);
  case DT_S16: return load_int16_t(data, i);
  case DT_S64: return (double)load_int64_t(data, i);
  case DT_F16: return (double)f16_to_f32(load_uint16_t(data, i));
  case DT_F64: return load_double(data, i);
  case DT_BOOL: return load_uint8_t(data, i) != 0;
  case DT_COUNT: break;
  }
  return 0;
}

/* Round half to even, whatever the FP environment. */
static double f64_rne(double v) {
  if (!(fabs(v) < 0x1p52)) return v;
  int64_t whole = (int64_t)v;
  double rest = fabs(v - (double)whole);
  if (rest > 0.5 || (rest == 0.5 && (whole & 1))) whole += v < 0 ? -1 : 1;
  return copysign((double)whole, v);
}

/* Rounds to an integer of [lo, hi]; NaN gives 0. */
static int64_t f64_to_int_sat(double v, int64_t lo, int64_t hi) {
  if (isnan(v)) return 0;
  double r = f64_rne(v);
  if (r <= (double)lo) return lo;
  if (r >= (double)hi) return hi; /* (double)INT64_MAX is 2^63: also caught here */
  return (int64_t)r;
}

/* To bf16 in one rounding: the step to f32 rounds to odd, which keeps what decides the second step.
 */
static uint16_t f64_to_bf16(double v) {
  float f = (float)v;
  if ((double)f != v && isfinite(f)) {
    uint32_t u;
    memcpy(&u, &f, sizeof u);
    if (!(u & 1)) f = nextafterf(f, (double)f < v ? INFINITY : -INFINITY);
  } else if (isinf(f) && isfinite(v)) {
    f = copysignf(0x1.fffffep127f, f); /* rounds to infinity from there, as it should */
  }
  return f32_to_bf16(f);
}

static uint16_t f64_to_f16(double v) {
  uint16_t sign = signbit(v) ? 0x8000 : 0;
  double m = fabs(v);
  if (isnan(v)) return sign | 0x7e00;
  if (m == 0) return sign; /* frexp gives zero no useful exponent */
  int e;
  frexp(m, &e); /* m = x 2^e, x in [0.5, 1) */
  if (e < -13) e = -13;
  double units = isinf(m) ? 0 : f64_rne(ldexp(m, 11 - e)); /* in steps of 2^(e-11) */
  if (isinf(m) || ldexp(units, e - 11) >= 65520.0) return sign | 0x7c00;
  /* Adding the exponent to units, whose leading bit is 1024, also serves subnormals and carries. */
  return (uint16_t)(sign | (uint16_t)((e + 13) * 1024 + (int)units));
}

void dtype_set(DType t, void *data, size_t i, double v) {
  switch (t) {
  case DT_S8: store_int8_t(data, i, (int8_t)f64_to_int_sat(v, INT8_MIN, INT8_MAX)); break;
  case DT_BF16: store_uint16_t(data, i, f64_to_bf16(v)); break;
  case DT_F32: store_float(data, i, (float)v); break;
  case DT_S32: store_int32_t(data, i, (int32_t)f64_to_int_sat(v, INT32_MIN, INT32_MAX)); break;
  case DT_U8: store_uint8_t(data, i, (uint8_t)f64_to_int_sat(v, 0, UINT8_MAX)); break;
  case DT_S16: store_int16_t(data, i, (int16_t)f64_to_int_sat(v, INT16_MIN, INT16_MAX)); break;
  case DT_S64: store_int64_t(data, i, f64_to_int_sat(v, INT64_MIN, INT64_MAX)); break;
  case DT_F16: store_uint16_t(data, i, f64_to_f16(v)); break;
  case DT_F64: store_double(data, i, v); break;
  case DT_BOOL: store_uint8_t(data, i, v != 0); break;
  case DT_COUNT: break;
  }
}

bool dtype_holds(DType t, double v) {
  uint64_t element = 0;
  dtype_set(t, &element, 0, v);
  return dtype_get(t, &element, 0) == v;
}

/* Like dtype_set, without branches the compiler cannot vectorize: adding 1.5 x 2^23 leaves the
 * nearest integer, ties to even, in the low bits. */
static int8_t f32_to_s8(float v) {
  float c = v < -128 ? -128 : v;
  c = c > 127 ? 127 : c;
  c = c == c ? c : 0;
  c += 0x1.8p23f;
  uint32_t bits;
  memcpy(&bits, &c, sizeof bits);
  return (int8_t)(uint8_t)(bits & 0xff);
}

void dtype_convert(DType to, void *dst, DType from, const void *src, size_t n) {
  if (n == 0) return;
  if (to == from) {
    memcpy(dst, src, n * dtype_size(to));
  } else if (to == DT_BF16 && from == DT_F32) { /* the common ones, quickly */
    for (size_t i = 0; i < n; i++) store_uint16_t(dst, i, f32_to_bf16(load_float(src, i)));
  } else if (to == DT_F32 && from == DT_BF16) {
    for (size_t i = 0; i < n; i++) store_float(dst, i, bf16_to_f32(load_uint16_t(src, i)));
  } else if (to == DT_F32 && from == DT_U8) {
    for (size_t i = 0; i < n; i++) store_float(dst, i, load_uint8_t(src, i));
  } else if (to == DT_S8 && from == DT_F32) {
    for (size_t i = 0; i < n; i++) store_int8_t(dst, i, f32_to_s8(load_float(src, i)));
  } else if (to == DT_F32 && from == DT_F64) {
    for (size_t i = 0; i < n; i++) store_float(dst, i, (float)load_double(src, i));
  } else {
    for (size_t i = 0; i < n; i++) dtype_set(to, dst, i, dtype_get(from, src, i));
  }
}
