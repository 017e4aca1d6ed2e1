/* Micro-operations as LLVM IR on scalars or 16 lanes. No fast-math flag is ever set: every
 * operation is the IEEE or integer operation vops.def names. */
#include "runtime/vx_internal.h"
#include <string.h>

static bool is_wide(LLVMValueRef v) {
  return LLVMGetTypeKind(LLVMTypeOf(v)) == LLVMVectorTypeKind;
}

LLVMValueRef vx_const(VxGen *g, bool wide, uint32_t bits) {
  LLVMValueRef c = LLVMConstInt(g->i32, bits, false), lanes[16];
  if (!wide) return c;
  for (int i = 0; i < 16; i++) lanes[i] = c;
  return LLVMConstVector(lanes, 16);
}

static LLVMValueRef as_float(VxGen *g, LLVMValueRef v) {
  return LLVMBuildBitCast(g->b, v, is_wide(v) ? g->vf32 : g->f32, "");
}

static LLVMValueRef as_int(VxGen *g, LLVMValueRef v) {
  return LLVMBuildBitCast(g->b, v, is_wide(v) ? g->v32 : g->i32, "");
}

static LLVMValueRef const_f(VxGen *g, bool wide, float f) {
  uint32_t bits;
  memcpy(&bits, &f, 4);
  return as_float(g, vx_const(g, wide, bits));
}

static LLVMValueRef intrinsic(VxGen *g, const char *name, LLVMValueRef x) {
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMTypeRef t = LLVMTypeOf(x);
  LLVMValueRef fn = LLVMGetIntrinsicDeclaration(g->mod, id, &t, 1);
  return LLVMBuildCall2(g->b, LLVMIntrinsicGetType(g->cx, id, &t, 1), fn, &x, 1, "");
}

/* Truth as s32 0 or 1. */
static LLVMValueRef truth(VxGen *g, LLVMValueRef cond) {
  bool wide = is_wide(cond);
  return LLVMBuildZExt(g->b, cond, wide ? g->v32 : g->i32, "");
}

static LLVMValueRef fcmp(VxGen *g, LLVMRealPredicate p, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildFCmp(g->b, p, a, b, "");
}
static LLVMValueRef icmp(VxGen *g, LLVMIntPredicate p, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildICmp(g->b, p, a, b, "");
}
static LLVMValueRef pick(VxGen *g, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildSelect(g->b, c, a, b, "");
}

/* Ties to even. Without a rounding instruction: adding and subtracting 2^23 rounds magnitudes below
 * it; the sign is put back so that -0.3 gives -0. */
static LLVMValueRef emit_rne(VxGen *g, LLVMValueRef a) {
  if (g->level > 0) return intrinsic(g, "llvm.rint", a);
  bool w = is_wide(a);
  LLVMValueRef bits = as_int(g, a),
               sign = LLVMBuildAnd(g->b, bits, vx_const(g, w, 0x80000000u), "");
  LLVMValueRef mag = as_float(g, LLVMBuildAnd(g->b, bits, vx_const(g, w, 0x7fffffffu), ""));
  LLVMValueRef big = const_f(g, w, 8388608.0f);
  LLVMValueRef r = LLVMBuildFSub(g->b, LLVMBuildFAdd(g->b, mag, big, ""), big, "");
  LLVMValueRef rounded = as_float(g, LLVMBuildOr(g->b, as_int(g, r), sign, ""));
  return pick(g, fcmp(g, LLVMRealOLT, mag, big), rounded, a);
}

static LLVMValueRef emit_floor(VxGen *g, LLVMValueRef a) {
  if (g->level > 0) return intrinsic(g, "llvm.floor", a);
  LLVMValueRef r = emit_rne(g, a);
  LLVMValueRef less = LLVMBuildFSub(g->b, r, const_f(g, is_wide(a), 1.0f), "");
  return pick(g, fcmp(g, LLVMRealOGT, r, a), less, r);
}

static LLVMValueRef emit_f32_to_s32(VxGen *g, LLVMValueRef a) {
  bool w = is_wide(a);
  LLVMValueRef r = emit_rne(g, a), top = const_f(g, w, 2147483648.0f),
               bottom = const_f(g, w, -2147483648.0f);
  LLVMValueRef high = fcmp(g, LLVMRealOGE, r, top), low = fcmp(g, LLVMRealOLT, r, bottom);
  LLVMValueRef out =
      LLVMBuildOr(g->b, LLVMBuildOr(g->b, high, low, ""), fcmp(g, LLVMRealUNO, r, r), "");
  LLVMValueRef safe = pick(g, out, const_f(g, w, 0.0f), r);
  LLVMValueRef i = LLVMBuildFPToSI(g->b, safe, w ? g->v32 : g->i32, "");
  i = pick(g, high, vx_const(g, w, 0x7fffffffu), i);
  return pick(g, low, vx_const(g, w, 0x80000000u), i);
}

/* f32 bits rounded to bf16, in the upper half; NaN stays a quiet NaN. */
static LLVMValueRef emit_round_bf16(VxGen *g, LLVMValueRef bits) {
  bool w = is_wide(bits);
  LLVMValueRef lsb =
      LLVMBuildAnd(g->b, LLVMBuildLShr(g->b, bits, vx_const(g, w, 16), ""), vx_const(g, w, 1), "");
  LLVMValueRef sum =
      LLVMBuildAdd(g->b, bits, LLVMBuildAdd(g->b, lsb, vx_const(g, w, 0x7fff), ""), "");
  LLVMValueRef f = as_float(g, bits);
  LLVMValueRef quiet = LLVMBuildOr(g->b, bits, vx_const(g, w, 0x00400000u), "");
  LLVMValueRef r = pick(g, fcmp(g, LLVMRealUNO, f, f), quiet, sum);
  return LLVMBuildAnd(g->b, r, vx_const(g, w, 0xffff0000u), "");
}

static LLVMValueRef emit_special(VxGen *g, const VmathFn *fn, LLVMValueRef x) {
  LLVMValueRef step[256] = {x};
  bool w = is_wide(x);
  int n = fn->nsteps < 255 ? fn->nsteps : 255;
  for (int i = 0; i < n; i++) {
    const VmathStep *s = &fn->steps[i];
    const uint8_t arg[3] = {s->a, s->b, s->c};
    LLVMValueRef v[3];
    for (int k = 0; k < 3; k++)
      v[k] = arg[k] == VMATH_IMM ? vx_const(g, w, s->imm) : step[arg[k] <= i ? arg[k] : 0];
    step[i + 1] = vx_emit_op(g, (IsaVopKind)s->op, v[0], v[1], v[2]);
  }
  return step[n];
}

/* b when it is NaN, for it compares false; a when that is. Of two zeros the sign of a decides. */
static LLVMValueRef emit_extreme(VxGen *g, bool max, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef sign =
      icmp(g, max ? LLVMIntSGE : LLVMIntSLT, as_int(g, a), vx_const(g, is_wide(a), 0));
  LLVMValueRef ties = LLVMBuildAnd(g->b, fcmp(g, LLVMRealOEQ, a, b), sign, "");
  LLVMValueRef first = LLVMBuildOr(g->b, fcmp(g, max ? LLVMRealOGT : LLVMRealOLT, a, b), ties, "");
  return pick(g, fcmp(g, LLVMRealUNO, a, a), a, pick(g, first, a, b));
}

/* Operands and result as integers' bits or as floats, whichever is handy. */
static LLVMValueRef emit_computing(VxGen *g, IsaVopKind op, LLVMValueRef a, LLVMValueRef b,
                                   LLVMValueRef c) {
  bool w = is_wide(a);
  LLVMValueRef zero = vx_const(g, w, 0), one = const_f(g, w, 1.0f);
  LLVMValueRef x = as_float(g, a), y = as_float(g, b);
  switch (op) {
  case VOP_MOV: return a;
  case VOP_ADD_F: return LLVMBuildFAdd(g->b, x, y, "");
  case VOP_SUB_F: return LLVMBuildFSub(g->b, x, y, "");
  case VOP_MUL_F: return LLVMBuildFMul(g->b, x, y, "");
  case VOP_MIN_F: return emit_extreme(g, false, x, y);
  case VOP_MAX_F: return emit_extreme(g, true, x, y);
  case VOP_ABS_F: return LLVMBuildAnd(g->b, a, vx_const(g, w, 0x7fffffffu), "");
  case VOP_NEG_F: return LLVMBuildXor(g->b, a, vx_const(g, w, 0x80000000u), "");
  case VOP_FLOOR_F: return emit_floor(g, x);
  case VOP_RNE_F: return emit_rne(g, x);
  case VOP_EQ_F: return truth(g, fcmp(g, LLVMRealOEQ, x, y));
  case VOP_LT_F: return truth(g, fcmp(g, LLVMRealOLT, x, y));
  case VOP_LE_F: return truth(g, fcmp(g, LLVMRealOLE, x, y));
  case VOP_NE_F: return truth(g, fcmp(g, LLVMRealUNE, x, y));
  case VOP_ADD_I: return LLVMBuildAdd(g->b, a, b, "");
  case VOP_SUB_I: return LLVMBuildSub(g->b, a, b, "");
  case VOP_MUL_I: return LLVMBuildMul(g->b, a, b, "");
  case VOP_MIN_I: return pick(g, icmp(g, LLVMIntSLT, a, b), a, b);
  case VOP_MAX_I: return pick(g, icmp(g, LLVMIntSGT, a, b), a, b);
  case VOP_ABS_I: return pick(g, icmp(g, LLVMIntSLT, a, zero), LLVMBuildSub(g->b, zero, a, ""), a);
  case VOP_AND_I: return LLVMBuildAnd(g->b, a, b, "");
  case VOP_OR_I: return LLVMBuildOr(g->b, a, b, "");
  case VOP_XOR_I: return LLVMBuildXor(g->b, a, b, "");
  case VOP_SHL_I: return LLVMBuildShl(g->b, a, LLVMBuildAnd(g->b, b, vx_const(g, w, 31), ""), "");
  case VOP_SHR_I: return LLVMBuildAShr(g->b, a, LLVMBuildAnd(g->b, b, vx_const(g, w, 31), ""), "");
  case VOP_EQ_I: return truth(g, icmp(g, LLVMIntEQ, a, b));
  case VOP_LT_I: return truth(g, icmp(g, LLVMIntSLT, a, b));
  case VOP_LE_I: return truth(g, icmp(g, LLVMIntSLE, a, b));
  case VOP_NE_I: return truth(g, icmp(g, LLVMIntNE, a, b));
  case VOP_SEL: return pick(g, icmp(g, LLVMIntNE, c, zero), a, b);
  case VOP_CVT_FI: return LLVMBuildSIToFP(g->b, a, w ? g->vf32 : g->f32, "");
  case VOP_CVT_IF: return emit_f32_to_s32(g, x);
  case VOP_CVT_BF: return emit_round_bf16(g, a);
  case VOP_DIV_F: return LLVMBuildFDiv(g->b, x, y, "");
  case VOP_SQRT_F: return intrinsic(g, "llvm.sqrt", x);
  case VOP_RECIP_F: return LLVMBuildFDiv(g->b, one, x, "");
  case VOP_RSQRT_F: return LLVMBuildFDiv(g->b, one, intrinsic(g, "llvm.sqrt", x), "");
#define X(f, name, max_ulp) case VOP_##f##_F:
    ISA_VMATH(X)
#undef X
    return emit_special(g, vmath_fn(op), a);
  case VOP_IOTA: /* by the place, see vx_emit.c */
  case VOP_IOTA0:
  case VOP_IOTA1:
  case VOP_IOTAO0:
  case VOP_IOTAO1:
#define VOP ISA_CASES_NOT_COMPUTING
#include "isa/vops.def"
#undef VOP
  case VOP_COUNT: break;
  }
  return zero; /* not reached: vx_emit.c asks for what computes */
}

LLVMValueRef vx_emit_op(VxGen *g, IsaVopKind op, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c) {
  return as_int(g, emit_computing(g, op, a, b, c));
}

LLVMValueRef vx_emit_double(VxGen *g, LLVMValueRef v) {
  return LLVMBuildFPExt(g->b, as_float(g, v), is_wide(v) ? g->vf64 : g->f64, "");
}

LLVMValueRef vx_emit_single(VxGen *g, LLVMValueRef v) {
  return as_int(g, LLVMBuildFPTrunc(g->b, v, is_wide(v) ? g->vf32 : g->f32, ""));
}

/* ---- stored forms ---- */

_Static_assert(DT_MACHINE_COUNT == 4, "another element type of the machine needs its stored form");

LLVMTypeRef vx_stored_type(VxGen *g, DType t, bool wide) {
  LLVMTypeRef e = t == DT_S8 ? g->i8 : t == DT_BF16 ? g->i16 : g->i32;
  return wide ? LLVMVectorType(e, 16) : e;
}

LLVMValueRef vx_emit_widen(VxGen *g, DType t, LLVMValueRef v) {
  bool w = is_wide(v);
  LLVMTypeRef i = w ? g->v32 : g->i32;
  if (t == DT_S8) return LLVMBuildSExt(g->b, v, i, "");
  if (t == DT_BF16)
    return LLVMBuildShl(g->b, LLVMBuildZExt(g->b, v, i, ""), vx_const(g, w, 16), "");
  return v;
}

LLVMValueRef vx_emit_narrow(VxGen *g, DType t, LLVMValueRef v) {
  bool w = is_wide(v);
  if (t == DT_BF16) {
    v = LLVMBuildLShr(g->b, emit_round_bf16(g, v), vx_const(g, w, 16), "");
    return LLVMBuildTrunc(g->b, v, vx_stored_type(g, t, w), "");
  }
  if (t != DT_S8) return v;
  LLVMValueRef lo = vx_const(g, w, (uint32_t)-128), hi = vx_const(g, w, 127);
  v = pick(g, icmp(g, LLVMIntSLT, v, lo), lo, v);
  v = pick(g, icmp(g, LLVMIntSGT, v, hi), hi, v);
  return LLVMBuildTrunc(g->b, v, vx_stored_type(g, t, w), "");
}
