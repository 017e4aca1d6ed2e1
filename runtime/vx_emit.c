/* One vector program as an LLVM function: the loop nest o0, o1, passes over v in chunks of 16
 * lanes, reduction loops inside them. Chunks are loaded whole, beyond the row's end too (the
 * memories have readable slack), and stored by element where they are not full. Registers are
 * allocas that mem2reg promotes. */
#include "runtime/vx_internal.h"
#include <stdint.h>
#include <stdio.h>

typedef struct {
  VxGen *g;
  const IsaVprog *p;
  const VxKey *key;
  LLVMValueRef fn;
  LLVMValueRef base[ISA_STREAMS], stride[ISA_STREAMS][5], count[5];
  LLVMValueRef vreg[ISA_VREGS], rreg[ISA_RREGS], acc[ISA_VPROG_MAX], buffer;
  LLVMValueRef row[ISA_STREAMS]; /* pointer to the row's first element */
  LLVMValueRef iv[5];            /* loop counters, NULL outside their loop */
  LLVMValueRef left, full, mask; /* of the chunk: elements, whether >= 16, lanes alive */
} Emit;

typedef struct {
  LLVMBasicBlockRef head, exit;
  LLVMValueRef phi;
  int64_t step;
} Loop;

static LLVMValueRef i64(Emit *e, int64_t v) {
  return LLVMConstInt(e->g->i64, (uint64_t)v, true);
}

static LLVMBasicBlockRef block(Emit *e, const char *name) {
  return LLVMAppendBasicBlockInContext(e->g->cx, e->fn, name);
}

static Loop loop_begin(Emit *e, LLVMValueRef limit, int64_t step) {
  LLVMBuilderRef b = e->g->b;
  LLVMBasicBlockRef before = LLVMGetInsertBlock(b), body = block(e, "body");
  Loop l = {.head = block(e, "head"), .exit = block(e, "exit"), .step = step};
  LLVMBuildBr(b, l.head);
  LLVMPositionBuilderAtEnd(b, l.head);
  l.phi = LLVMBuildPhi(b, e->g->i64, "i");
  LLVMValueRef zero = i64(e, 0);
  LLVMAddIncoming(l.phi, &zero, &before, 1);
  LLVMBuildCondBr(b, LLVMBuildICmp(b, LLVMIntSLT, l.phi, limit, ""), body, l.exit);
  LLVMPositionBuilderAtEnd(b, body);
  return l;
}

static void loop_end(Emit *e, const Loop *l) {
  LLVMBuilderRef b = e->g->b;
  LLVMValueRef next = LLVMBuildAdd(b, l->phi, i64(e, l->step), "");
  LLVMBasicBlockRef here = LLVMGetInsertBlock(b);
  LLVMBuildBr(b, l->head);
  LLVMAddIncoming(l->phi, &next, &here, 1);
  LLVMPositionBuilderAtEnd(b, l->exit);
}

/* ---- memory ---- */

static LLVMValueRef advance(Emit *e, LLVMValueRef p, LLVMValueRef bytes) {
  return LLVMBuildGEP2(e->g->b, e->g->i8, p, &bytes, 1, "");
}

static LLVMValueRef advance_loop(Emit *e, LLVMValueRef p, int s, int loop) {
  if (!e->iv[loop]) return p;
  return advance(e, p, LLVMBuildMul(e->g->b, e->iv[loop], e->stride[s][loop], ""));
}

/* Where stream s stands now: the row, the reduction iteration, the chunk. */
static LLVMValueRef place(Emit *e, int s) {
  LLVMValueRef p = advance_loop(e, e->row[s], s, VLOOP_R0);
  p = advance_loop(e, p, s, VLOOP_R1);
  if (!e->iv[VLOOP_V] || e->key->kind[s] == VX_ZERO) return p;
  if (e->key->kind[s] == VX_STRIDED) return advance_loop(e, p, s, VLOOP_V);
  int64_t es = (int64_t)dtype_size((DType)e->key->dtype[s]);
  return advance(e, p, LLVMBuildMul(e->g->b, e->iv[VLOOP_V], i64(e, es), ""));
}

static LLVMValueRef load_at(Emit *e, LLVMValueRef p, LLVMTypeRef t) {
  LLVMBuilderRef b = e->g->b;
  LLVMValueRef v = LLVMBuildLoad2(b, t, LLVMBuildBitCast(b, p, LLVMPointerType(t, 0), ""), "");
  LLVMSetAlignment(v, 1);
  return v;
}

static void store_at(Emit *e, LLVMValueRef p, LLVMValueRef v) {
  LLVMBuilderRef b = e->g->b;
  LLVMValueRef s =
      LLVMBuildStore(b, v, LLVMBuildBitCast(b, p, LLVMPointerType(LLVMTypeOf(v), 0), ""));
  LLVMSetAlignment(s, 1);
}

/* Calls vx_load_lanes or vx_store_lanes on the buffer. */
static void call_lanes(Emit *e, uintptr_t address, LLVMValueRef p, LLVMValueRef stride,
                       LLVMValueRef n, DType t) {
  VxGen *g = e->g;
  LLVMTypeRef params[5] = {g->ptr, g->i64, g->i64, g->ptr, g->i32};
  LLVMTypeRef ft = LLVMFunctionType(LLVMVoidTypeInContext(g->cx), params, 5, false);
  LLVMValueRef fn = LLVMConstIntToPtr(LLVMConstInt(g->i64, address, false), LLVMPointerType(ft, 0));
  LLVMValueRef args[5] = {p, stride, n, LLVMBuildBitCast(g->b, e->buffer, g->ptr, ""),
                          LLVMConstInt(g->i32, (unsigned)t, false)};
  LLVMBuildCall2(g->b, ft, fn, args, 5, "");
}

static LLVMValueRef lanes_left(Emit *e) {
  return LLVMBuildSelect(e->g->b, e->full, i64(e, 16), e->left, "");
}

static LLVMValueRef stride_v(Emit *e, int s) {
  if (e->key->kind[s] == VX_UNIT) return i64(e, (int64_t)dtype_size((DType)e->key->dtype[s]));
  return e->stride[s][VLOOP_V];
}

static LLVMValueRef splat(Emit *e, LLVMValueRef scalar) {
  VxGen *g = e->g;
  LLVMValueRef undef = LLVMGetUndef(g->v32);
  LLVMValueRef one =
      LLVMBuildInsertElement(g->b, undef, scalar, LLVMConstInt(g->i32, 0, false), "");
  return LLVMBuildShuffleVector(g->b, one, undef, vx_const(g, true, 0), "");
}

static LLVMValueRef emit_load(Emit *e, int s) {
  VxGen *g = e->g;
  DType t = (DType)e->key->dtype[s];
  LLVMValueRef p = place(e, s);
  bool wide = e->iv[VLOOP_V] != NULL;
  if (!wide || e->key->kind[s] == VX_ZERO) {
    LLVMValueRef v = vx_emit_widen(g, t, load_at(e, p, vx_stored_type(g, t, false)));
    return wide ? splat(e, v) : v;
  }
  if (e->key->kind[s] == VX_UNIT)
    return vx_emit_widen(g, t, load_at(e, p, vx_stored_type(g, t, true)));
  call_lanes(e, (uintptr_t)vx_load_lanes, p, stride_v(e, s), lanes_left(e), t);
  return load_at(e, e->buffer, g->v32);
}

static void emit_store(Emit *e, int s, LLVMValueRef v) {
  VxGen *g = e->g;
  DType t = (DType)e->key->dtype[s];
  LLVMValueRef p = place(e, s);
  if (!e->iv[VLOOP_V]) {
    store_at(e, p, vx_emit_narrow(g, t, v));
    return;
  }
  LLVMBasicBlockRef done = NULL;
  if (e->key->kind[s] == VX_UNIT) {
    LLVMBasicBlockRef whole = block(e, "whole"), part = block(e, "part");
    done = block(e, "stored");
    LLVMBuildCondBr(g->b, e->full, whole, part);
    LLVMPositionBuilderAtEnd(g->b, whole);
    store_at(e, p, vx_emit_narrow(g, t, v));
    LLVMBuildBr(g->b, done);
    LLVMPositionBuilderAtEnd(g->b, part);
  }
  store_at(e, e->buffer, v);
  call_lanes(e, (uintptr_t)vx_store_lanes, p, stride_v(e, s), lanes_left(e), t);
  if (!done) return;
  LLVMBuildBr(g->b, done);
  LLVMPositionBuilderAtEnd(g->b, done);
}

/* ---- registers ---- */

static LLVMValueRef read_arg(Emit *e, const IsaVop *v, uint8_t a) {
  VxGen *g = e->g;
  bool wide = e->iv[VLOOP_V] != NULL;
  if (a < ISA_VREGS) return LLVMBuildLoad2(g->b, g->v32, e->vreg[a], "");
  if (a >= VARG_R0 && a < VARG_R0 + ISA_RREGS) {
    LLVMValueRef r = LLVMBuildLoad2(g->b, g->i32, e->rreg[a - VARG_R0], "");
    return wide ? splat(e, r) : r;
  }
  return vx_const(g, wide, v->imm);
}

static void write_reg(Emit *e, uint8_t dst, LLVMValueRef v) {
  LLVMBuildStore(e->g->b, v, dst < ISA_VREGS ? e->vreg[dst] : e->rreg[dst - VARG_R0]);
}

/* Number of the loop's current iteration; in a chunk of v, of each lane. */
static LLVMValueRef emit_iota(Emit *e, int loop) {
  VxGen *g = e->g;
  bool wide = e->iv[VLOOP_V] != NULL;
  if (!e->iv[loop]) return vx_const(g, wide, 0);
  LLVMValueRef n = LLVMBuildTrunc(g->b, e->iv[loop], g->i32, "");
  if (!wide) return n;
  n = splat(e, n);
  if (loop != VLOOP_V) return n;
  LLVMValueRef lanes[16];
  for (unsigned i = 0; i < 16; i++) lanes[i] = LLVMConstInt(g->i32, i, false);
  return LLVMBuildAdd(g->b, n, LLVMConstVector(lanes, 16), "");
}

/* ---- reductions: of rows in 16 partials, then folds of 8, 4, 2, 1; of loops in a lane ---- */

/* What a reduction starts from and how it goes on. Float sums are kept in binary64. */
typedef struct {
  bool sums;
  uint32_t start;
  IsaVopKind combine;
} Reduction;
#define REDUCTION_RSUM_F                                                                           \
  { .sums = true }
#define REDUCTION_SUM_F                                                                            \
  { .sums = true }
#define REDUCTION_RMAX_F                                                                           \
  { .start = 0xff800000u, .combine = VOP_MAX_F }
#define REDUCTION_RMIN_F                                                                           \
  { .start = 0x7f800000u, .combine = VOP_MIN_F }
#define REDUCTION_RSUM_I                                                                           \
  { .start = 0, .combine = VOP_ADD_I }
#define REDUCTION_RMAX_I                                                                           \
  { .start = 0x80000000u, .combine = VOP_MAX_I }
#define REDUCTION_RMIN_I                                                                           \
  { .start = 0x7fffffffu, .combine = VOP_MIN_I }
/* Every row of the units RED and SUM; one without its line above does not compile. */
static const Reduction reductions[VOP_COUNT] = {
#define ROW_ALU(e)
#define ROW_SFU(e)
#define ROW_DIV(e)
#define ROW_EXP(e)
#define ROW_SIN(e)
#define ROW_LOAD(e)
#define ROW_STORE(e)
#define ROW_CTL(e)
#define ROW_RED(e) [VOP_##e] = REDUCTION_##e,
#define ROW_SUM(e) [VOP_##e] = REDUCTION_##e,
#define VOP(e, mnemonic, code, operands, unit, doc) ROW_##unit(e)
#include "isa/vops.def"
#undef VOP
};

static bool is_sum(IsaVopKind op) {
  return reductions[op].sums;
}

static bool of_loops(const IsaVop *v) {
  return isa_vop_info((IsaVopKind)v->op)->unit == UNIT_SUM;
}

static bool collects(const IsaVop *v) {
  unsigned unit = isa_vop_info((IsaVopKind)v->op)->unit;
  return unit == UNIT_RED || unit == UNIT_SUM;
}

static LLVMTypeRef partials_type(Emit *e, IsaVopKind op) {
  return is_sum(op) ? e->g->vf64 : e->g->v32;
}

static void start_partials(Emit *e, int at) {
  IsaVopKind op = (IsaVopKind)e->p->ops[at].op;
  LLVMValueRef start =
      is_sum(op) ? LLVMConstNull(e->g->vf64) : vx_const(e->g, true, reductions[op].start);
  LLVMBuildStore(e->g->b, start, e->acc[at]);
}

static LLVMValueRef combine(Emit *e, IsaVopKind op, LLVMValueRef a, LLVMValueRef b) {
  return is_sum(op) ? LLVMBuildFAdd(e->g->b, a, b, "")
                    : vx_emit_op(e->g, reductions[op].combine, a, b, b);
}

static void collect(Emit *e, int at) {
  VxGen *g = e->g;
  const IsaVop *v = &e->p->ops[at];
  IsaVopKind op = (IsaVopKind)v->op;
  LLVMValueRef old = LLVMBuildLoad2(g->b, partials_type(e, op), e->acc[at], "");
  LLVMValueRef x = read_arg(e, v, v->a);
  LLVMValueRef next = combine(e, op, old, is_sum(op) ? vx_emit_double(g, x) : x);
  LLVMBuildStore(g->b, LLVMBuildSelect(g->b, e->mask, next, old, ""), e->acc[at]);
}

static void finish_reduce(Emit *e, int at) {
  VxGen *g = e->g;
  const IsaVop *v = &e->p->ops[at];
  IsaVopKind op = (IsaVopKind)v->op;
  LLVMTypeRef type = partials_type(e, op);
  LLVMValueRef x = LLVMBuildLoad2(g->b, type, e->acc[at], "");
  for (unsigned half = 8; half; half /= 2) {
    LLVMValueRef lanes[16];
    for (unsigned i = 0; i < 16; i++) lanes[i] = LLVMConstInt(g->i32, (i + half) % 16, false);
    LLVMValueRef y =
        LLVMBuildShuffleVector(g->b, x, LLVMGetUndef(type), LLVMConstVector(lanes, 16), "");
    x = combine(e, op, x, y);
  }
  x = LLVMBuildExtractElement(g->b, x, LLVMConstInt(g->i32, 0, false), "");
  write_reg(e, v->dst, is_sum(op) ? vx_emit_single(g, x) : x);
}

static void finish_sum(Emit *e, int at) {
  LLVMValueRef sum = LLVMBuildLoad2(e->g->b, e->g->vf64, e->acc[at], "");
  write_reg(e, e->p->ops[at].dst, vx_emit_single(e->g, sum));
}

/* ---- sections ---- */

static int section_end(const IsaVprog *p, int at, IsaVopKind end) {
  while (at < p->n && p->ops[at].op != end) at++;
  return at;
}

static void emit_plain(Emit *e, int at) {
  const IsaVop *v = &e->p->ops[at];
  IsaVopKind op = (IsaVopKind)v->op;
  switch (op) {
  case VOP_LD: write_reg(e, v->dst, emit_load(e, v->stream)); return;
  case VOP_ST: emit_store(e, v->stream, read_arg(e, v, v->a)); return;
  case VOP_IOTA: write_reg(e, v->dst, emit_iota(e, VLOOP_V)); return;
  case VOP_IOTA0: write_reg(e, v->dst, emit_iota(e, VLOOP_R0)); return;
  case VOP_IOTA1: write_reg(e, v->dst, emit_iota(e, VLOOP_R1)); return;
  case VOP_IOTAO0: write_reg(e, v->dst, emit_iota(e, VLOOP_O0)); return;
  case VOP_IOTAO1: write_reg(e, v->dst, emit_iota(e, VLOOP_O1)); return;
  default: break;
  }
  if (collects(v)) {
    collect(e, at);
    return;
  }
  write_reg(e, v->dst,
            vx_emit_op(e->g, op, read_arg(e, v, v->a), read_arg(e, v, v->b), read_arg(e, v, v->c)));
}

static void begin_chunk(Emit *e, LLVMValueRef i) {
  VxGen *g = e->g;
  e->iv[VLOOP_V] = i;
  e->left = LLVMBuildSub(g->b, e->count[VLOOP_V], i, "");
  e->full = LLVMBuildICmp(g->b, LLVMIntSGE, e->left, i64(e, 16), "");
  LLVMValueRef lanes[16], alive = splat(e, LLVMBuildTrunc(g->b, lanes_left(e), g->i32, ""));
  for (unsigned k = 0; k < 16; k++) lanes[k] = LLVMConstInt(g->i32, k, false);
  e->mask = LLVMBuildICmp(g->b, LLVMIntULT, LLVMConstVector(lanes, 16), alive, "");
}

/* Loops r0 and r1 around what stands between red and endr, the operations at and end. */
static void emit_reduction_loops(Emit *e, int at, int end) {
  for (int i = at; i < end; i++)
    if (of_loops(&e->p->ops[i])) start_partials(e, i);
  Loop r0 = loop_begin(e, e->count[VLOOP_R0], 1);
  e->iv[VLOOP_R0] = r0.phi;
  Loop r1 = loop_begin(e, e->count[VLOOP_R1], 1);
  e->iv[VLOOP_R1] = r1.phi;
  for (int i = at + 1; i < end; i++) emit_plain(e, i);
  loop_end(e, &r1);
  loop_end(e, &r0);
  e->iv[VLOOP_R0] = e->iv[VLOOP_R1] = NULL;
  for (int i = at; i < end; i++)
    if (of_loops(&e->p->ops[i])) finish_sum(e, i);
}

/* vec .. endv; returns the index of endv. */
static int emit_pass(Emit *e, int at) {
  VxGen *g = e->g;
  int end = section_end(e->p, at, VOP_ENDV);
  for (int i = at; i < end; i++)
    if (isa_vop_info((IsaVopKind)e->p->ops[i].op)->unit == UNIT_RED) start_partials(e, i);
  for (int i = 0; i < ISA_VREGS; i++) LLVMBuildStore(g->b, vx_const(g, true, 0), e->vreg[i]);
  Loop v = loop_begin(e, e->count[VLOOP_V], 16);
  begin_chunk(e, v.phi);
  for (int i = at + 1; i < end; i++) {
    if (e->p->ops[i].op != VOP_RED) {
      emit_plain(e, i);
      continue;
    }
    int endr = section_end(e->p, i, VOP_ENDR);
    emit_reduction_loops(e, i, endr);
    i = endr;
  }
  loop_end(e, &v);
  e->iv[VLOOP_V] = NULL;
  for (int i = at; i < end; i++)
    if (isa_vop_info((IsaVopKind)e->p->ops[i].op)->unit == UNIT_RED) finish_reduce(e, i);
  return end;
}

static LLVMValueRef alloca_of(Emit *e, LLVMTypeRef t) {
  LLVMValueRef a = LLVMBuildAlloca(e->g->b, t, "");
  return a;
}

/* Reads VxArgs, whose members are all eight bytes wide, by word number. */
static LLVMValueRef arg_word(Emit *e, LLVMValueRef args, size_t byte, LLVMTypeRef t) {
  return load_at(e, advance(e, args, i64(e, (int64_t)byte)), t);
}

static void emit_prologue(Emit *e) {
  VxGen *g = e->g;
  LLVMValueRef args = LLVMGetParam(e->fn, 0);
  for (int s = 0; s < ISA_STREAMS; s++) {
    e->base[s] = arg_word(e, args, offsetof(VxArgs, base) + 8 * (size_t)s, g->ptr);
    for (int j = 0; j < 5; j++)
      e->stride[s][j] =
          arg_word(e, args, offsetof(VxArgs, stride) + 8 * (size_t)(5 * s + j), g->i64);
  }
  for (int j = 0; j < 5; j++)
    e->count[j] = arg_word(e, args, offsetof(VxArgs, count) + 8 * (size_t)j, g->i64);
  for (int i = 0; i < ISA_VREGS; i++) e->vreg[i] = alloca_of(e, g->v32);
  for (int i = 0; i < ISA_RREGS; i++) e->rreg[i] = alloca_of(e, g->i32);
  for (int i = 0; i < e->p->n; i++)
    if (collects(&e->p->ops[i]))
      e->acc[i] = alloca_of(e, partials_type(e, (IsaVopKind)e->p->ops[i].op));
  e->buffer = alloca_of(e, g->v32);
}

void vx_emit_program(VxGen *g, const IsaVprog *p, const VxKey *key, const char *name) {
  Emit e = {.g = g, .p = p, .key = key};
  LLVMTypeRef ft = LLVMFunctionType(LLVMVoidTypeInContext(g->cx), &g->ptr, 1, false);
  e.fn = LLVMAddFunction(g->mod, name, ft);
  LLVMPositionBuilderAtEnd(g->b, block(&e, "entry"));
  emit_prologue(&e);
  Loop o0 = loop_begin(&e, e.count[VLOOP_O0], 1);
  e.iv[VLOOP_O0] = o0.phi;
  Loop o1 = loop_begin(&e, e.count[VLOOP_O1], 1);
  e.iv[VLOOP_O1] = o1.phi;
  for (int s = 0; s < ISA_STREAMS; s++)
    e.row[s] = advance_loop(&e, advance_loop(&e, e.base[s], s, VLOOP_O0), s, VLOOP_O1);
  for (int i = 0; i < p->n; i++) {
    if (p->ops[i].op == VOP_VEC)
      i = emit_pass(&e, i);
    else
      emit_plain(&e, i);
  }
  loop_end(&e, &o1);
  loop_end(&e, &o0);
  LLVMBuildRetVoid(g->b);
}
