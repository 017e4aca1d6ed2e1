/* quantize, weights: per-channel 8-bit values of a constant. One pass for the largest magnitudes,
 * one that rounds. */
#include "passes/quantize_internal.h"
#include <math.h>
#include <string.h>

enum { INFINITE = 0x7f800000 }; /* magnitude of infinity; those of NaN are larger */

static float load_f32(const char *p) {
  float v;
  memcpy(&v, p, sizeof v); /* mapped files need not be aligned */
  return v;
}

/* Bits of |x| compare as integers; those of NaN and infinity are the largest. */
static int32_t magnitude(const char *p) {
  int32_t bits;
  memcpy(&bits, p, sizeof bits);
  return bits & 0x7fffffff;
}

static int32_t row_magnitude(const char *row, int64_t n) {
  int32_t most = 0;
  for (int64_t i = 0; i < n; i++) {
    int32_t m = magnitude(row + 4 * i);
    most = m > most ? m : most;
  }
  return most;
}

static void column_magnitudes(const char *row, int64_t n, int32_t *most) {
  for (int64_t i = 0; i < n; i++) {
    int32_t m = magnitude(row + 4 * i);
    most[i] = m > most[i] ? m : most[i];
  }
}

/* round half to even of x / scale, for |x / scale| < 2^22: adding 1.5 * 2^23 leaves the integer in
 * the low bits. */
static int8_t round_quotient(float x, float scale) {
  float shifted = x / scale + 12582912.0f;
  int32_t bits;
  memcpy(&bits, &shifted, sizeof bits);
  return (int8_t)(bits - 0x4b400000);
}

static void round_row(const char *row, int64_t n, float scale, int8_t *q) {
  for (int64_t i = 0; i < n; i++) q[i] = round_quotient(load_f32(row + 4 * i), scale);
}

static void round_columns(const char *row, int64_t n, const float *scales, int8_t *q) {
  for (int64_t i = 0; i < n; i++) q[i] = round_quotient(load_f32(row + 4 * i), scales[i]);
}

/* A subnormal scale would lose the channel's largest value to rounding of the scale itself. */
static float scale_of(int32_t magnitude_bits) {
  float largest;
  memcpy(&largest, &magnitude_bits, sizeof largest);
  float scale = largest / 127.0f;
  return scale >= 1.17549435e-38f ? scale : 1.0f;
}

/* The weight's elements as f32: its own bytes, or a converted copy in scratch memory. */
static const char *f32_bytes(PassContext *pc, const IrData *d) {
  if (d->type->dtype == DT_F32) return d->bytes;
  size_t n = (size_t)ir_type_elements(d->type);
  float *copy = ARENA_ARRAY(pc->scratch, float, n);
  dtype_convert(DT_F32, copy, d->type->dtype, d->bytes, n);
  return (const char *)copy;
}

static bool find_scales(PassContext *pc, const Product *p, const char *data, float *scales,
                        bool *infinite) {
  int64_t channels = p->outer * p->inner;
  int32_t *most = ARENA_ARRAY(pc->scratch, int32_t, channels);
  for (int64_t o = 0; o < p->outer; o++) {
    const char *block = data + 4 * o * p->k * p->inner;
    if (p->inner == 1)
      most[o] = row_magnitude(block, p->k);
    else
      for (int64_t k = 0; k < p->k; k++)
        column_magnitudes(block + 4 * k * p->inner, p->inner, most + o * p->inner);
  }
  for (int64_t c = 0; c < channels; c++) {
    if (most[c] > INFINITE) {
      diag_error(pc->diag, p->w->def->loc, "E-weight",
                 "weight%s%s holds a NaN in output channel %lld; repair the weight file",
                 p->w->name ? " " : "", p->w->name ? p->w->name : "", (long long)c);
      return false;
    }
    scales[c] = scale_of(most[c]);
    *infinite |= most[c] == INFINITE;
  }
  return true;
}

bool weight_quantize(PassContext *pc, const Product *p, QuantWeight *out) {
  const IrData *d = ir_constant_data(p->w);
  const char *data = f32_bytes(pc, d);
  out->scales = ARENA_ARRAY(pc->scratch, float, p->outer * p->inner);
  out->of = p->w;
  out->k = p->k;
  out->inner = p->inner;
  bool infinite = false;
  if (!find_scales(pc, p, data, out->scales, &infinite)) return false;
  out->q = NULL;
  if (infinite) {
    diag_warning(pc->diag, p->w->def->loc, "W-weight",
                 "weight%s%s holds an infinity, which 8 bits cannot: it stays bf16",
                 p->w->name ? " " : "", p->w->name ? p->w->name : "");
    return true;
  }
  void *bytes;
  out->q = ir_attr_data_new(pc->module, ir_type_with_dtype(pc->module, d->type, DT_S8), &bytes);
  int8_t *q = bytes;
  for (int64_t o = 0; o < p->outer; o++) {
    int64_t at = o * p->k * p->inner;
    if (p->inner == 1)
      round_row(data + 4 * at, p->k, out->scales[o], q + at);
    else
      for (int64_t k = 0; k < p->k; k++)
        round_columns(data + 4 * (at + k * p->inner), p->inner, out->scales + o * p->inner,
                      q + at + k * p->inner);
  }
  pass_count(pc, "weights in 8 bits", ir_type_elements(d->type));
  return true;
}

void weight_channel_sums(const Product *p, const int8_t *q, int64_t *sums) {
  memset(sums, 0, sizeof *sums * (size_t)(p->outer * p->inner));
  for (int64_t o = 0; o < p->outer; o++)
    for (int64_t k = 0; k < p->k; k++)
      for (int64_t i = 0; i < p->inner; i++)
        sums[o * p->inner + i] += q[(o * p->k + k) * p->inner + i];
}

const IrAttr *constant_as_bf16(IrModule *m, const IrValue *v) {
  const IrData *d = ir_constant_data(v);
  void *bytes;
  const IrAttr *attr = ir_attr_data_new(m, ir_type_with_dtype(m, d->type, DT_BF16), &bytes);
  dtype_convert(DT_BF16, bytes, d->type->dtype, d->bytes, (size_t)ir_type_elements(d->type));
  return attr;
}
