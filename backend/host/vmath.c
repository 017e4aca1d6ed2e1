/* The special functions: the ISA defines each as a straight line of basic operations on 32-bit
 * values, which is expanded here on vectors. Nothing else is shared with the machine. */
#include "backend/host/host_internal.h"
#include "isa/isa.h"

static const struct {
  IrOpKind op;
  IsaVopKind vop;
} functions[] = {{IR_OP_EXP, VOP_EXP_F}, {IR_OP_LOG, VOP_LOG_F}, {IR_OP_TANH, VOP_TANH_F},
                 {IR_OP_ERF, VOP_ERF_F}, {IR_OP_SIN, VOP_SIN_F}, {IR_OP_COS, VOP_COS_F}};

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

static LLVMValueRef float_op(const Vm *m, IsaVopKind op, LLVMValueRef a, LLVMValueRef b) {
  LLVMBuilderRef x = m->g->b;
  switch (op) {
  case VOP_ADD_F: return LLVMBuildFAdd(x, a, b, "");
  case VOP_SUB_F: return LLVMBuildFSub(x, a, b, "");
  case VOP_MUL_F: return LLVMBuildFMul(x, a, b, "");
  case VOP_DIV_F: return LLVMBuildFDiv(x, a, b, "");
  case VOP_MIN_F: return host_emit_extreme(m->g, false, true, a, b);
  case VOP_MAX_F: return host_emit_extreme(m->g, true, true, a, b);
  case VOP_EQ_F: return mask(m, LLVMBuildFCmp(x, LLVMRealOEQ, a, b, ""));
  case VOP_NE_F: return mask(m, LLVMBuildFCmp(x, LLVMRealUNE, a, b, ""));
  case VOP_LT_F: return mask(m, LLVMBuildFCmp(x, LLVMRealOLT, a, b, ""));
  case VOP_LE_F: return mask(m, LLVMBuildFCmp(x, LLVMRealOLE, a, b, ""));
  case VOP_FLOOR_F: return host_intrinsic(m->g, "llvm.floor", a);
  case VOP_RNE_F: return host_intrinsic(m->g, "llvm.roundeven", a);
  case VOP_SQRT_F: return host_intrinsic(m->g, "llvm.sqrt", a);
  case VOP_CVT_IF: return host_round_s32(m->g, a);
  default: return NULL;
  }
}

static LLVMValueRef reciprocal(const Vm *m, IsaVopKind op, LLVMValueRef a) {
  LLVMValueRef one = host_splat(m->g, LLVMConstReal(m->g->f32, 1), m->lanes);
  if (op == VOP_RSQRT_F) a = host_intrinsic(m->g, "llvm.sqrt", a);
  return LLVMBuildFDiv(m->g->b, one, a, "");
}

static LLVMValueRef int_extreme(const Vm *m, LLVMIntPredicate p, LLVMValueRef a, LLVMValueRef b) {
  return LLVMBuildSelect(m->g->b, LLVMBuildICmp(m->g->b, p, a, b, ""), a, b, "");
}

static LLVMValueRef int_op(const Vm *m, IsaVopKind op, LLVMValueRef a, LLVMValueRef b,
                           LLVMValueRef c) {
  LLVMBuilderRef x = m->g->b;
  LLVMValueRef zero = int_const(m, 0);
  switch (op) {
  case VOP_MOV: return a;
  case VOP_ADD_I: return LLVMBuildAdd(x, a, b, "");
  case VOP_SUB_I: return LLVMBuildSub(x, a, b, "");
  case VOP_MUL_I: return LLVMBuildMul(x, a, b, "");
  case VOP_MIN_I: return int_extreme(m, LLVMIntSLT, a, b);
  case VOP_MAX_I: return int_extreme(m, LLVMIntSGT, a, b);
  case VOP_ABS_I: return int_extreme(m, LLVMIntSGT, a, LLVMBuildNeg(x, a, ""));
  case VOP_AND_I: return LLVMBuildAnd(x, a, b, "");
  case VOP_OR_I: return LLVMBuildOr(x, a, b, "");
  case VOP_XOR_I: return LLVMBuildXor(x, a, b, "");
  case VOP_SHL_I: return LLVMBuildShl(x, a, LLVMBuildAnd(x, b, int_const(m, 31), ""), "");
  case VOP_SHR_I: return LLVMBuildAShr(x, a, LLVMBuildAnd(x, b, int_const(m, 31), ""), "");
  case VOP_EQ_I: return mask(m, LLVMBuildICmp(x, LLVMIntEQ, a, b, ""));
  case VOP_NE_I: return mask(m, LLVMBuildICmp(x, LLVMIntNE, a, b, ""));
  case VOP_LT_I: return mask(m, LLVMBuildICmp(x, LLVMIntSLT, a, b, ""));
  case VOP_LE_I: return mask(m, LLVMBuildICmp(x, LLVMIntSLE, a, b, ""));
  case VOP_ABS_F: return LLVMBuildAnd(x, a, int_const(m, INT32_MAX), "");
  case VOP_NEG_F: return LLVMBuildXor(x, a, int_const(m, INT32_MIN), "");
  case VOP_CVT_FI: return LLVMBuildSIToFP(x, a, m->f, "");
  case VOP_SEL: return LLVMBuildSelect(x, LLVMBuildICmp(x, LLVMIntNE, c, zero, ""), a, b, "");
  default: return NULL;
  }
}

/* Values are kept as integers' bits between steps. NULL for an operation no function may use. */
static LLVMValueRef emit_step(const Vm *m, const VmathStep *s, const LLVMValueRef *v) {
  LLVMValueRef imm = int_const(m, (int32_t)s->imm);
  LLVMValueRef a = s->a == VMATH_IMM ? imm : v[s->a], b = s->b == VMATH_IMM ? imm : v[s->b];
  LLVMValueRef c = s->c == VMATH_IMM ? imm : v[s->c];
  LLVMValueRef r = int_op(m, (IsaVopKind)s->op, a, b, c);
  if (r) return as(m, r, m->i);
  LLVMValueRef fa = as(m, a, m->f), fb = as(m, b, m->f);
  if (s->op == VOP_RECIP_F || s->op == VOP_RSQRT_F)
    return as(m, reciprocal(m, (IsaVopKind)s->op, fa), m->i);
  if (s->op == VOP_CVT_BF) {
    LLVMValueRef h = LLVMBuildZExt(m->g->b, host_round_bf16(m->g, fa), m->i, "");
    return LLVMBuildShl(m->g->b, h, int_const(m, 16), "");
  }
  r = float_op(m, (IsaVopKind)s->op, fa, fb);
  return r ? as(m, r, m->i) : NULL;
}

LLVMValueRef host_emit_vmath(HostGen *g, IrOpKind kind, LLVMValueRef x) {
  const VmathFn *fn = NULL;
  for (size_t i = 0; i < NPU_COUNTOF(functions); i++)
    if (functions[i].op == kind) fn = vmath_fn(functions[i].vop);
  LLVMTypeRef t = LLVMTypeOf(x);
  bool vector = LLVMGetTypeKind(t) == LLVMVectorTypeKind;
  Vm m = {.g = g, .f = t, .i = g->i32, .lanes = vector ? (int)LLVMGetVectorSize(t) : 1};
  if (vector) m.i = LLVMVectorType(g->i32, (unsigned)m.lanes);
  LLVMValueRef v[256] = {as(&m, x, m.i)};
  for (int i = 0; i < fn->nsteps; i++) v[i + 1] = emit_step(&m, &fn->steps[i], v);
  return as(&m, v[fn->nsteps], m.f);
}
