/* The meaning of the basic micro-operations on 32-bit values. */
#include "isa/isa_internal.h"
#include <math.h>
#include <string.h>

static float as_f(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static uint32_t as_u(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

/* IEEE 754-2019 minimum and maximum: of two zeros -0 is the smaller; a NaN is both. */
static uint32_t extreme(bool max, float a, float b) {
  if (a == b) return max ? as_u(a) & as_u(b) : as_u(a) | as_u(b); /* equal bits, but for zeros */
  return as_u((max ? a > b : a < b) || isnan(a) ? a : b);
}

uint32_t isa_vop_eval(IsaVopKind op, uint32_t a, uint32_t b, uint32_t c) {
  int32_t sa = (int32_t)a, sb = (int32_t)b;
  float x = as_f(a), y = as_f(b);
  switch (op) {
  case VOP_MOV: return a;
  case VOP_ADD_F: return as_u(x + y);
  case VOP_SUB_F: return as_u(x - y);
  case VOP_MUL_F: return as_u(x * y);
  case VOP_MIN_F: return extreme(false, x, y);
  case VOP_MAX_F: return extreme(true, x, y);
  case VOP_ABS_F: return a & 0x7fffffffu;
  case VOP_NEG_F: return a ^ 0x80000000u;
  case VOP_FLOOR_F: return as_u(floorf(x));
  case VOP_RNE_F: return as_u(f32_rne(x));
  case VOP_EQ_F: return x == y;
  case VOP_LT_F: return x < y;
  case VOP_LE_F: return x <= y;
  case VOP_NE_F: return x != y;
  case VOP_ADD_I: return a + b;
  case VOP_SUB_I: return a - b;
  case VOP_MUL_I: return a * b;
  case VOP_MIN_I: return sa < sb ? a : b;
  case VOP_MAX_I: return sa > sb ? a : b;
  case VOP_ABS_I: return sa < 0 ? 0u - a : a;
  case VOP_AND_I: return a & b;
  case VOP_OR_I: return a | b;
  case VOP_XOR_I: return a ^ b;
  case VOP_SHL_I: return a << (b & 31);
  case VOP_SHR_I: return (uint32_t)(sa >> (b & 31));
  case VOP_EQ_I: return a == b;
  case VOP_LT_I: return sa < sb;
  case VOP_LE_I: return sa <= sb;
  case VOP_NE_I: return a != b;
  case VOP_SEL: return c ? a : b;
  case VOP_CVT_FI: return as_u((float)sa);
  case VOP_CVT_IF: return (uint32_t)f32_to_s32_sat(x);
  case VOP_CVT_BF: return (uint32_t)f32_to_bf16(x) << 16;
  case VOP_DIV_F: return as_u(x / y);
  case VOP_SQRT_F: return as_u(sqrtf(x));
  case VOP_RECIP_F: return as_u(1.0f / x);
  case VOP_RSQRT_F: return as_u(1.0f / sqrtf(x));
#define X(f, name, max_ulp) case VOP_##f##_F:
    ISA_VMATH(X)
#undef X
    return as_u(vmath_eval(op, x));
  case VOP_IOTA: /* these depend on the place, not on values */
  case VOP_IOTA0:
  case VOP_IOTA1:
  case VOP_IOTAO0:
  case VOP_IOTAO1:
#define VOP ISA_CASES_NOT_COMPUTING
#include "isa/vops.def"
#undef VOP
  case VOP_COUNT: break;
  }
  return 0;
}
