/* Body operations on scalars and vectors of lanes. f32 operations are emitted as written: no
 * fast-math flag is ever set, so LLVM neither contracts nor reorders them. */
#include "backend/host/host_internal.h"
#include <math.h>
#include <string.h>

_Static_assert(DT_MACHINE_COUNT == 4,
               "another element type of the machine needs its conversions here");

/* ---- types and constants ---- */

LLVMTypeRef host_llvm_type(const HostGen *g, DType t, int lanes) {
  LLVMTypeRef type = t == DT_F32 ? g->f32 : t == DT_S32 ? g->i32 : t == DT_BF16 ? g->i16 : g->i8;
  return lanes > 1 ? LLVMVectorType(type, (unsigned)lanes) : type;
}

static int lanes_of(LLVMValueRef v) {
  LLVMTypeRef t = LLVMTypeOf(v);
  return LLVMGetTypeKind(t) == LLVMVectorTypeKind ? (int)LLVMGetVectorSize(t) : 1;
}

LLVMValueRef host_splat(HostGen *g, LLVMValueRef v, int lanes) {
  if (lanes == 1 || lanes_of(v) > 1) return v;
  if (LLVMIsConstant(v)) {
    LLVMValueRef all[HOST_LANES];
    for (int i = 0; i < lanes; i++) all[i] = v;
    return LLVMConstVector(all, (unsigned)lanes);
  }
  LLVMTypeRef type = LLVMVectorType(LLVMTypeOf(v), (unsigned)lanes);
  LLVMValueRef zero = LLVMConstInt(g->i32, 0, 0);
  LLVMValueRef one = LLVMBuildInsertElement(g->b, LLVMGetUndef(type), v, zero, "");
  LLVMTypeRef picks = LLVMVectorType(g->i32, (unsigned)lanes);
  return LLVMBuildShuffleVector(g->b, one, LLVMGetUndef(type), LLVMConstNull(picks), "");
}

/* Both to the same number of lanes. */
static void match(HostGen *g, LLVMValueRef *a, LLVMValueRef *b) {
  int lanes = lanes_of(*a) > lanes_of(*b) ? lanes_of(*a) : lanes_of(*b);
  *a = host_splat(g, *a, lanes);
  *b = host_splat(g, *b, lanes);
}

LLVMValueRef host_int(const HostGen *g, int64_t v) {
  return LLVMConstInt(g->i64, (unsigned long long)v, 1);
}

static LLVMTypeRef like(LLVMTypeRef element, LLVMValueRef v) {
  int lanes = lanes_of(v);
  return lanes > 1 ? LLVMVectorType(element, (unsigned)lanes) : element;
}

/* An integer or float constant with the lanes of `as`. */
static LLVMValueRef int_like(HostGen *g, LLVMTypeRef element, int64_t c, LLVMValueRef as) {
  return host_splat(g, LLVMConstInt(element, (unsigned long long)c, 1), lanes_of(as));
}

static LLVMValueRef float_like(HostGen *g, double c, LLVMValueRef as) {
  return host_splat(g, LLVMConstReal(g->f32, c), lanes_of(as));
}

LLVMValueRef host_const(const HostGen *g, DType t, double value) {
  if (t == DT_F32) return LLVMConstReal(g->f32, (double)(float)value);
  union {
    int8_t s8;
    uint16_t bf16;
    int32_t s32;
  } x = {0};
  dtype_set(t, &x, 0, value);
  int64_t bits = t == DT_S8 ? x.s8 : t == DT_BF16 ? x.bf16 : x.s32;
  return LLVMConstInt(host_llvm_type(g, t, 1), (unsigned long long)bits, 1);
}

LLVMValueRef host_intrinsic(HostGen *g, const char *name, LLVMValueRef x) {
  LLVMTypeRef type = LLVMTypeOf(x);
  unsigned id = LLVMLookupIntrinsicID(name, strlen(name));
  LLVMValueRef fn = LLVMGetIntrinsicDeclaration(g->mod, id, &type, 1);
  return LLVMBuildCall2(g->b, LLVMIntrinsicGetType(g->ctx, id, &type, 1), fn, &x, 1, "");
}

LLVMValueRef host_value(HostGen *g, HostVal v) {
  return v.mask ? LLVMBuildZExt(g->b, v.v, like(g->i8, v.v), "") : v.v;
}

static LLVMValueRef bitcast(HostGen *g, LLVMValueRef v, LLVMTypeRef element) {
  return LLVMBuildBitCast(g->b, v, like(element, v), "");
}

/* ---- conversions ---- */

LLVMValueRef host_round_bf16(HostGen *g, LLVMValueRef x) {
  LLVMValueRef bits = bitcast(g, x, g->i32);
  LLVMValueRef shifted = LLVMBuildLShr(g->b, bits, int_like(g, g->i32, 16, x), "");
  LLVMValueRef odd = LLVMBuildAnd(g->b, shifted, int_like(g, g->i32, 1, x), "");
  LLVMValueRef up = LLVMBuildAdd(g->b, bits, int_like(g, g->i32, 0x7fff, x), "");
  up = LLVMBuildLShr(g->b, LLVMBuildAdd(g->b, up, odd, ""), int_like(g, g->i32, 16, x), "");
  LLVMValueRef nan = LLVMBuildFCmp(g->b, LLVMRealUNO, x, x, "");
  LLVMValueRef quiet = LLVMBuildOr(g->b, shifted, int_like(g, g->i32, 0x40, x), "");
  return LLVMBuildTrunc(g->b, LLVMBuildSelect(g->b, nan, quiet, up, ""), like(g->i16, x), "");
}

static LLVMValueRef from_bf16(HostGen *g, LLVMValueRef x) {
  LLVMValueRef bits = LLVMBuildZExt(g->b, x, like(g->i32, x), "");
  return bitcast(g, LLVMBuildShl(g->b, bits, int_like(g, g->i32, 16, x), ""), g->f32);
}

static LLVMValueRef pick(HostGen *g, LLVMRealPredicate p, LLVMValueRef a, LLVMValueRef b,
                         LLVMValueRef yes, LLVMValueRef no) {
  return LLVMBuildSelect(g->b, LLVMBuildFCmp(g->b, p, a, b, ""), yes, no, "");
}

LLVMValueRef host_round_s32(HostGen *g, LLVMValueRef x) {
  LLVMValueRef r = host_intrinsic(g, "llvm.roundeven", x);
  LLVMValueRef high = float_like(g, 2147483648.0, x), low = float_like(g, -2147483648.0, x);
  LLVMValueRef zero = float_like(g, 0, x);
  /* The conversion is defined only in range; what is out of range converts 0 and is replaced. */
  LLVMValueRef safe = pick(g, LLVMRealOLT, r, high, r, zero);
  safe = pick(g, LLVMRealOGE, r, low, safe, zero);
  LLVMValueRef i = LLVMBuildFPToSI(g->b, safe, like(g->i32, x), "");
  i = pick(g, LLVMRealOGE, r, high, int_like(g, g->i32, INT32_MAX, x), i);
  return pick(g, LLVMRealOLT, r, low, int_like(g, g->i32, INT32_MIN, x), i);
}

static LLVMValueRef f32_to_s8(HostGen *g, LLVMValueRef x) {
  LLVMValueRef r = host_intrinsic(g, "llvm.roundeven", x);
  r = pick(g, LLVMRealUNO, x, x, float_like(g, 0, x), r);
  r = pick(g, LLVMRealOLT, r, float_like(g, 127, x), r, float_like(g, 127, x));
  r = pick(g, LLVMRealOGT, r, float_like(g, -128, x), r, float_like(g, -128, x));
  LLVMValueRef i = LLVMBuildFPToSI(g->b, r, like(g->i32, x), "");
  return LLVMBuildTrunc(g->b, i, like(g->i8, x), "");
}

static LLVMValueRef s32_to_s8(HostGen *g, LLVMValueRef x) {
  LLVMValueRef high = int_like(g, g->i32, 127, x), low = int_like(g, g->i32, -128, x);
  x = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntSGT, x, high, ""), high, x, "");
  x = LLVMBuildSelect(g->b, LLVMBuildICmp(g->b, LLVMIntSLT, x, low, ""), low, x, "");
  return LLVMBuildTrunc(g->b, x, like(g->i8, x), "");
}

static HostVal emit_cast(HostGen *g, DType from, DType to, HostVal x) {
  if (from == to) return x;
  if (x.mask && to == DT_S32)
    return (HostVal){.v = LLVMBuildZExt(g->b, x.v, like(g->i32, x.v), "")};
  LLVMValueRef v = host_value(g, x);
  if (from == DT_BF16) { /* everything from bf16 goes through f32, which holds it exactly */
    v = from_bf16(g, v);
    from = DT_F32;
  }
  if (from == DT_S8) v = LLVMBuildSExt(g->b, v, like(g->i32, v), "");
  bool is_float = from == DT_F32;
  if (to == DT_S8) v = is_float ? f32_to_s8(g, v) : s32_to_s8(g, v);
  if (to == DT_S32) v = is_float ? host_round_s32(g, v) : v;
  if (dtype_is_float(to) && !is_float) v = LLVMBuildSIToFP(g->b, v, like(g->f32, v), "");
  if (to == DT_BF16) v = host_round_bf16(g, v);
  return (HostVal){.v = v};
}

/* ---- operations ---- */

static LLVMValueRef emit_compare(HostGen *g, bool is_float, LLVMRealPredicate real,
                                 LLVMIntPredicate integer, LLVMValueRef a, LLVMValueRef b) {
  return is_float ? LLVMBuildFCmp(g->b, real, a, b, "") : LLVMBuildICmp(g->b, integer, a, b, "");
}

static LLVMValueRef choose(HostGen *g, LLVMValueRef c, LLVMValueRef a, LLVMValueRef b) {
  match(g, &a, &b);
  if (lanes_of(c) > 1) {
    a = host_splat(g, a, lanes_of(c));
    b = host_splat(g, b, lanes_of(c));
  }
  return LLVMBuildSelect(g->b, c, a, b, "");
}

/* IEEE 754-2019 minimum and maximum: of two zeros the sign of the first decides; a NaN is both. */
static LLVMValueRef float_extreme(HostGen *g, bool max, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef bits = bitcast(g, a, g->i32), zero = int_like(g, g->i32, 0, a);
  LLVMValueRef ties =
      LLVMBuildAnd(g->b, LLVMBuildFCmp(g->b, LLVMRealOEQ, a, b, ""),
                   LLVMBuildICmp(g->b, max ? LLVMIntSGE : LLVMIntSLT, bits, zero, ""), "");
  LLVMValueRef first = LLVMBuildFCmp(g->b, max ? LLVMRealOGT : LLVMRealOLT, a, b, "");
  first = LLVMBuildOr(g->b, first, ties, "");
  return pick(g, LLVMRealUNO, a, a, a, LLVMBuildSelect(g->b, first, a, b, ""));
}

LLVMValueRef host_emit_extreme(HostGen *g, bool max, bool is_float, LLVMValueRef a,
                               LLVMValueRef b) {
  match(g, &a, &b);
  if (is_float) return float_extreme(g, max, a, b);
  LLVMValueRef first = LLVMBuildICmp(g->b, max ? LLVMIntSGT : LLVMIntSLT, a, b, "");
  return LLVMBuildSelect(g->b, first, a, b, "");
}

static LLVMValueRef flip_sign(HostGen *g, LLVMValueRef x, bool clear) {
  LLVMValueRef bits = bitcast(g, x, g->i32);
  bits = clear ? LLVMBuildAnd(g->b, bits, int_like(g, g->i32, 0x7fffffff, x), "")
               : LLVMBuildXor(g->b, bits, int_like(g, g->i32, INT32_MIN, x), "");
  return bitcast(g, bits, g->f32);
}

static LLVMValueRef integer_abs(HostGen *g, LLVMValueRef x) {
  LLVMValueRef zero = LLVMConstNull(LLVMTypeOf(x));
  LLVMValueRef negative = LLVMBuildICmp(g->b, LLVMIntSLT, x, zero, "");
  return LLVMBuildSelect(g->b, negative, LLVMBuildNeg(g->b, x, ""), x, "");
}

/* b: NULL for ops of one operand. real: floats, as the ops without a form for integers have always.
 * NULL for what is no arithmetic on scalars. */
static LLVMValueRef emit_arith(HostGen *g, IrBodyKind kind, bool real, LLVMValueRef a,
                               LLVMValueRef b) {
  LLVMBuilderRef l = g->b;
  if (b) match(g, &a, &b);
  switch (kind) {
  case IR_BODY_ADD: return real ? LLVMBuildFAdd(l, a, b, "") : LLVMBuildAdd(l, a, b, "");
  case IR_BODY_SUB: return real ? LLVMBuildFSub(l, a, b, "") : LLVMBuildSub(l, a, b, "");
  case IR_BODY_MUL: return real ? LLVMBuildFMul(l, a, b, "") : LLVMBuildMul(l, a, b, "");
  case IR_BODY_DIV: return LLVMBuildFDiv(l, a, b, "");
  case IR_BODY_MIN: return host_emit_extreme(g, false, real, a, b);
  case IR_BODY_MAX: return host_emit_extreme(g, true, real, a, b);
  case IR_BODY_EQ: return emit_compare(g, real, LLVMRealOEQ, LLVMIntEQ, a, b);
  case IR_BODY_NE: return emit_compare(g, real, LLVMRealUNE, LLVMIntNE, a, b);
  case IR_BODY_LT: return emit_compare(g, real, LLVMRealOLT, LLVMIntSLT, a, b);
  case IR_BODY_LE: return emit_compare(g, real, LLVMRealOLE, LLVMIntSLE, a, b);
  case IR_BODY_GT: return emit_compare(g, real, LLVMRealOGT, LLVMIntSGT, a, b);
  case IR_BODY_GE: return emit_compare(g, real, LLVMRealOGE, LLVMIntSGE, a, b);
  case IR_BODY_NEG: return real ? flip_sign(g, a, false) : LLVMBuildNeg(l, a, "");
  case IR_BODY_ABS: return real ? flip_sign(g, a, true) : integer_abs(g, a);
  case IR_BODY_FLOOR: return host_intrinsic(g, "llvm.floor", a);
  case IR_BODY_ROUND: return host_intrinsic(g, "llvm.roundeven", a);
  case IR_BODY_SQRT: return host_intrinsic(g, "llvm.sqrt", a);
  case IR_BODY_RSQRT:
    return LLVMBuildFDiv(l, float_like(g, 1, a), host_intrinsic(g, "llvm.sqrt", a), "");
  case IR_BODY_RECIP: return LLVMBuildFDiv(l, float_like(g, 1, a), a, "");
  case IR_BODY_EXP: return host_emit_vmath(g, VOP_EXP_F, a);
  case IR_BODY_LOG: return host_emit_vmath(g, VOP_LOG_F, a);
  case IR_BODY_ERF: return host_emit_vmath(g, VOP_ERF_F, a);
  case IR_BODY_TANH: return host_emit_vmath(g, VOP_TANH_F, a);
  case IR_BODY_SIN: return host_emit_vmath(g, VOP_SIN_F, a);
  case IR_BODY_COS: return host_emit_vmath(g, VOP_COS_F, a);
  case IR_BODY_CAST: /* in host_emit_op */
  case IR_BODY_WHERE:
  case IR_BODY_CONSTANT: /* in emit.c */
  case IR_BODY_REDUCE:
  case IR_BODY_INDEX:
  case IR_BODY_YIELD: break;
  }
  return NULL;
}

static bool is_comparison(const IrOp *op) {
  return op->kind == IR_OP_EQ || op->kind == IR_OP_NE || op->kind == IR_OP_LT ||
         op->kind == IR_OP_LE || op->kind == IR_OP_GT || op->kind == IR_OP_GE;
}

static LLVMValueRef emit_where(HostGen *g, HostVal c, LLVMValueRef a, LLVMValueRef b) {
  LLVMValueRef cond = c.v;
  if (!c.mask) cond = LLVMBuildICmp(g->b, LLVMIntNE, cond, LLVMConstNull(LLVMTypeOf(cond)), "");
  return choose(g, cond, a, b);
}

/* bf16 values compute as f32; the result is rounded where it is bf16. */
HostVal host_emit_op(HostGen *g, const IrOp *op, DType from, DType to, int narg,
                     const HostVal *arg) {
  if (op->kind == IR_OP_CAST) return emit_cast(g, from, to, arg[0]);
  if (op->kind == IR_OP_WHERE)
    return (HostVal){.v = emit_where(g, arg[0], host_value(g, arg[1]), host_value(g, arg[2]))};
  LLVMValueRef a = host_value(g, arg[0]), b = narg > 1 ? host_value(g, arg[1]) : NULL;
  if (from == DT_BF16) {
    a = from_bf16(g, a);
    if (b) b = from_bf16(g, b);
  }
  LLVMValueRef v = emit_arith(g, (IrBodyKind)op->kind, dtype_is_float(from), a, b);
  if (is_comparison(op)) return (HostVal){.v = v, .mask = true};
  if (to == DT_BF16 && from == DT_BF16) v = host_round_bf16(g, v);
  return (HostVal){.v = v};
}

/* ---- reductions ---- */

static bool is_float_sum(const char *op, DType t) {
  return dtype_is_float(t) && strcmp(op, "sum") == 0;
}

LLVMValueRef host_to_accumulator(HostGen *g, const char *op, DType t, LLVMValueRef x) {
  if (!is_float_sum(op, t)) return x;
  if (t == DT_BF16) x = from_bf16(g, x);
  return LLVMBuildFPExt(g->b, x, like(g->f64, x), "");
}

LLVMValueRef host_from_accumulator(HostGen *g, const char *op, DType t, LLVMValueRef x) {
  if (!is_float_sum(op, t)) return x;
  x = LLVMBuildFPTrunc(g->b, x, like(g->f32, x), "");
  return t == DT_BF16 ? host_round_bf16(g, x) : x;
}

LLVMValueRef host_emit_combine(HostGen *g, const char *op, DType t, LLVMValueRef a,
                               LLVMValueRef b) {
  IrBodyKind kind = !strcmp(op, "sum")   ? IR_BODY_ADD
                    : !strcmp(op, "max") ? IR_BODY_MAX
                                         : IR_BODY_MIN;
  if (t == DT_BF16 && kind != IR_BODY_ADD)
    return host_round_bf16(g, emit_arith(g, kind, true, from_bf16(g, a), from_bf16(g, b)));
  return emit_arith(g, kind, dtype_is_float(t), a, b);
}

LLVMValueRef host_identity(const HostGen *g, const char *op, DType t) {
  if (is_float_sum(op, t)) return LLVMConstNull(g->f64);
  if (!strcmp(op, "sum")) return LLVMConstNull(host_llvm_type(g, t, 1));
  bool max = !strcmp(op, "max");
  if (t == DT_S32 || t == DT_S8) {
    int bits = t == DT_S32 ? 31 : 7;
    int64_t least = -((int64_t)1 << bits);
    return LLVMConstInt(host_llvm_type(g, t, 1), (unsigned long long)(max ? least : -least - 1), 1);
  }
  return host_const(g, t, max ? -HUGE_VAL : HUGE_VAL);
}
