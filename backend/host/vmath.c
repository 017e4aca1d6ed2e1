/* The special functions: the ISA defines each as a straight line of basic operations on 32-bit
 * values, which is expanded here on vectors. Nothing else is shared with the machine. */
#include "backend/host/host_internal.h"
#include "isa/isa.h"

/* A step's value, in the type last needed: LLVM sees through the casts between. */
typedef struct {
  HostGen *g;
  LLVMTypeRef f, i; /* float and integer type of the lanes */
  int lanes;
} Vm;

static LLVMValueRef as(const Vm *m, LLVMValueRef v, LLVMTypeRef t) {
  return LLVMBuildBitCast(m->g->b, v, t, "");
}

static LLVMValueRef int_const(const Vm *m, int64_t c) {
  return host_splat(m->g, LLVMConstInt(m->g->i32, (unsigned long long)c, 1), m->lanes);
}

static LLVMValueRef mask(const Vm *m, LLVMValueRef c) {
  return LLVMBuildZExt(m->g->b, c, m->i, "");
}

static LLVMValueRef int_extreme(const Vm *m, LLVMIntPredicate p, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildSelect(m->g->b, LLVMBuildICmp(m->g->b, p, a, b, ""), a, b, "");
}

static LLVMValueRef reciprocal(const Vm *m, LLVMValueRef a) {
  LLVMValueRef one = host_splat(m->g, LLVMConstReal(m->g->f32, 1), m->lanes);
  return LLVMBuildFDiv(m->g->b, one, a, "");
}

/* a, b, c: bits. NULL for what no function may use: what depends on the place, other functions. */
static LLVMValueRef step_value(const Vm *m, IsaVopKind op, LLVMValueRef a, LLVMValueRef b,
                               LLVMValueRef c) {
  LLVMBuilderRef l = m->g->b;
  LLVMValueRef x = as(m, a, m->f), y = as(m, b, m->f), zero = int_const(m, 0);
  switch (op) {
  case VOP_MOV: return a;
  case VOP_ADD_F: return LLVMBuildFAdd(l, x, y, "");
  case VOP_SUB_F: return LLVMBuildFSub(l, x, y, "");
  case VOP_MUL_F: return LLVMBuildFMul(l, x, y, "");
  case VOP_MIN_F: return host_emit_extreme(m->g, false, true, x, y);
  case VOP_MAX_F: return host_emit_extreme(m->g, true, true, x, y);
  case VOP_ABS_F: return LLVMBuildAnd(l, a, int_const(m, INT32_MAX), "");
  case VOP_NEG_F: return LLVMBuildXor(l, a, int_const(m, INT32_MIN), "");
  case VOP_FLOOR_F: return host_intrinsic(m->g, "llvm.floor", x);
  case VOP_RNE_F: return host_intrinsic(m->g, "llvm.roundeven", x);
  case VOP_EQ_F: return mask(m, LLVMBuildFCmp(l, LLVMRealOEQ, x, y, ""));
  case VOP_LT_F: return mask(m, LLVMBuildFCmp(l, LLVMRealOLT, x, y, ""));
  case VOP_LE_F: return mask(m, LLVMBuildFCmp(l, LLVMRealOLE, x, y, ""));
  case VOP_NE_F: return mask(m, LLVMBuildFCmp(l, LLVMRealUNE, x, y, ""));
  case VOP_ADD_I: return LLVMBuildAdd(l, a, b, "");
  case VOP_SUB_I: return LLVMBuildSub(l, a, b, "");
  case VOP_MUL_I: return LLVMBuildMul(l, a, b, "");
  case VOP_MIN_I: return int_extreme(m, LLVMIntSLT, a, b);
  case VOP_MAX_I: return int_extreme(m, LLVMIntSGT, a, b);
  case VOP_ABS_I: return int_extreme(m, LLVMIntSGT, a, LLVMBuildNeg(l, a, ""));
  case VOP_AND_I: return LLVMBuildAnd(l, a, b, "");
  case VOP_OR_I: return LLVMBuildOr(l, a, b, "");
  case VOP_XOR_I: return LLVMBuildXor(l, a, b, "");
  case VOP_SHL_I: return LLVMBuildShl(l, a, LLVMBuildAnd(l, b, int_const(m, 31), ""), "");
  case VOP_SHR_I: return LLVMBuildAShr(l, a, LLVMBuildAnd(l, b, int_const(m, 31), ""), "");
  case VOP_EQ_I: return mask(m, LLVMBuildICmp(l, LLVMIntEQ, a, b, ""));
  case VOP_LT_I: return mask(m, LLVMBuildICmp(l, LLVMIntSLT, a, b, ""));
  case VOP_LE_I: return mask(m, LLVMBuildICmp(l, LLVMIntSLE, a, b, ""));
  case VOP_NE_I: return mask(m, LLVMBuildICmp(l, LLVMIntNE, a, b, ""));
  case VOP_SEL: return LLVMBuildSelect(l, LLVMBuildICmp(l, LLVMIntNE, c, zero, ""), a, b, "");
  case VOP_CVT_FI: return LLVMBuildSIToFP(l, a, m->f, "");
  case VOP_CVT_IF: return host_round_s32(m->g, x);
  case VOP_CVT_BF:
    return LLVMBuildShl(l, LLVMBuildZExt(l, host_round_bf16(m->g, x), m->i, ""), int_const(m, 16),
                        "");
  case VOP_DIV_F: return LLVMBuildFDiv(l, x, y, "");
  case VOP_SQRT_F: return host_intrinsic(m->g, "llvm.sqrt", x);
  case VOP_RECIP_F: return reciprocal(m, x);
  case VOP_RSQRT_F: return reciprocal(m, host_intrinsic(m->g, "llvm.sqrt", x));
#define X(f, name, max_ulp) case VOP_##f##_F:
    ISA_VMATH(X)
#undef X
  case VOP_IOTA:
  case VOP_IOTA0:
  case VOP_IOTA1:
  case VOP_IOTAO0:
  case VOP_IOTAO1:
#define VOP ISA_CASES_NOT_COMPUTING
#include "isa/vops.def"
#undef VOP
  case VOP_COUNT: break;
  }
  return NULL;
}

/* Values are kept as integers' bits between steps. */
static LLVMValueRef emit_step(const Vm *m, const VmathStep *s, const LLVMValueRef *v) {
  LLVMValueRef imm = int_const(m, (int32_t)s->imm);
  LLVMValueRef a = s->a == VMATH_IMM ? imm : v[s->a], b = s->b == VMATH_IMM ? imm : v[s->b];
  LLVMValueRef c = s->c == VMATH_IMM ? imm : v[s->c];
  return as(m, step_value(m, (IsaVopKind)s->op, a, b, c), m->i);
}

LLVMValueRef host_emit_vmath(HostGen *g, IsaVopKind function, LLVMValueRef x) {
  const VmathFn *fn = vmath_fn(function);
  LLVMTypeRef t = LLVMTypeOf(x);
  bool vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
  Vm m = {.g = g, .f = t, .i = g->i32, .lanes = vector ? (int)LLVMGetVectorSize(t) : 1};
  if (vector) m.i = LLVMVectorType(g->i32, (unsigned)m.lanes);
  LLVMValueRef v[256] = {as(&m, x, m.i)};
  for (int i = 0; i < fn->nsteps; i++) v[i + 1] = emit_step(&m, &fn->steps[i], v);
  return as(&m, v[fn->nsteps], m.f);
}
