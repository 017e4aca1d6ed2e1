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

static uint32_t eval_float(IsaVopKind op, float a, float b) {
  switch (op) {
  case VOP_ADD_F: return as_u(a + b);
  case VOP_SUB_F: return as_u(a - b);
  case VOP_MUL_F: return as_u(a * b);
  case VOP_MIN_F: return extreme(false, a, b);
  case VOP_MAX_F: return extreme(true, a, b);
  case VOP_ABS_F: return as_u(a) & 0x7fffffffu;
  case VOP_NEG_F: return as_u(a) ^ 0x80000000u;
  case VOP_FLOOR_F: return as_u(floorf(a));
  case VOP_RNE_F: return as_u(f32_rne(a));
  case VOP_EQ_F: return a == b;
  case VOP_LT_F: return a < b;
  case VOP_LE_F: return a <= b;
  case VOP_NE_F: return a != b;
  case VOP_CVT_IF: return (uint32_t)f32_to_s32_sat(a);
  case VOP_CVT_BF: return (uint32_t)f32_to_bf16(a) << 16;
  case VOP_DIV_F: return as_u(a / b);
  case VOP_SQRT_F: return as_u(sqrtf(a));
  case VOP_RECIP_F: return as_u(1.0f / a);
  case VOP_RSQRT_F: return as_u(1.0f / sqrtf(a));
  default: return as_u(vmath_eval(op, a));
  }
}

uint32_t isa_vop_eval(IsaVopKind op, uint32_t a, uint32_t b, uint32_t c) {
  int32_t sa = (int32_t)a, sb = (int32_t)b;
  switch (op) {
  case VOP_MOV: return a;
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
  default:
    if (isa_vop_info(op)->unit != UNIT_ALU && isa_vop_info(op)->unit != UNIT_SFU) return 0;
    if (op >= VOP_IOTA && op <= VOP_IOTAO1) return 0; /* depends on the place, not on values */
    return eval_float(op, as_f(a), as_f(b));
  }
}
