/* Reads that may lie outside of their tensor: the value there is the operand's pad value, and no
 * byte outside is touched. Where all lanes of a vector lie inside, they are read at once. */
#include "backend/host/host_internal.h"
#include <string.h>

bool host_guard_inside(const HostAccess *x, const int64_t *at) {
  for (int i = 0; i < x->nguards; i++) {
    const HostGuard *a = &x->guard[i];
    int64_t c = a->cst;
    for (int d = 0; d < IR_MAX_DIMS; d++) c += a->coef[d] * at[d];
    if (c < 0 || c >= a->size) return false;
  }
  return true;
}

static LLVMValueRef both(HostGen *g, LLVMValueRef a, LLVMValueRef b) {
  return a ? LLVMBuildAnd(g->b, a, b, "") : b;
}

/* Whether a lane's coordinates all lie inside: one unsigned comparison each. */
static LLVMValueRef lane_inside(HostGen *g, const HostAccess *x, const HostRead *r, int lane) {
  LLVMValueRef all = NULL;
  for (int i = 0; i < x->nguards; i++) {
    LLVMValueRef c = r->coord[i];
    int64_t shift = r->lanes > 1 ? x->guard[i].coef[r->vdim] * lane : 0;
    if (shift) c = LLVMBuildAdd(g->b, c, host_int(g, shift), "");
    all = both(g, all, LLVMBuildICmp(g->b, LLVMIntULT, c, host_int(g, x->guard[i].size), ""));
  }
  return all;
}

static LLVMValueRef load_at(HostGen *g, LLVMTypeRef type, LLVMValueRef base, LLVMValueRef offset) {
  LLVMValueRef p = LLVMBuildGEP2(g->b, g->i8, base, &offset, 1, "");
  p = LLVMBuildBitCast(g->b, p, LLVMPointerType(type, 0), "");
  LLVMValueRef v = LLVMBuildLoad2(g->b, type, p, "");
  LLVMSetAlignment(v, 1);
  return v;
}

/* One lane: outside, the tensor's first element is read and dropped. */
static LLVMValueRef read_lane(HostGen *g, const HostAccess *x, const HostRead *r, int lane) {
  LLVMTypeRef type = host_llvm_type(g, x->dtype, 1);
  LLVMValueRef offset = r->offset, at = LLVMConstInt(g->i32, (unsigned long long)lane, 0);
  if (r->per_lane)
    offset = LLVMBuildAdd(g->b, offset, LLVMBuildExtractElement(g->b, r->per_lane, at, ""), "");
  int64_t shift = r->lanes > 1 ? host_wrap_mul(r->lane_bytes, lane) : 0;
  if (shift) offset = LLVMBuildAdd(g->b, offset, host_int(g, shift), "");
  LLVMValueRef inside = lane_inside(g, x, r, lane);
  offset = LLVMBuildSelect(g->b, inside, offset, host_int(g, 0), "");
  LLVMValueRef v = load_at(g, type, r->base, offset);
  return LLVMBuildSelect(g->b, inside, v, host_const(g, x->dtype, x->pad), "");
}

static LLVMValueRef read_lanes(HostGen *g, const HostAccess *x, const HostRead *r) {
  LLVMValueRef v = LLVMGetUndef(host_llvm_type(g, x->dtype, r->lanes));
  for (int i = 0; i < r->lanes; i++)
    v = LLVMBuildInsertElement(g->b, v, read_lane(g, x, r, i),
                               LLVMConstInt(g->i32, (unsigned long long)i, 0), "");
  return v;
}

/* Coordinates move one way along the lanes: between two that are inside all are. */
static LLVMValueRef read_vector(HostGen *g, const HostAccess *x, const HostRead *r) {
  LLVMTypeRef type = host_llvm_type(g, x->dtype, r->lanes);
  LLVMBasicBlockRef whole = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "inside");
  LLVMBasicBlockRef edge = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "edge");
  LLVMBasicBlockRef done = LLVMAppendBasicBlockInContext(g->ctx, g->fn, "");
  LLVMValueRef inside = both(g, lane_inside(g, x, r, 0), lane_inside(g, x, r, r->lanes - 1));
  LLVMBuildCondBr(g->b, inside, whole, edge);
  LLVMPositionBuilderAtEnd(g->b, whole);
  LLVMValueRef v[2] = {load_at(g, type, r->base, r->offset)};
  LLVMBuildBr(g->b, done);
  LLVMPositionBuilderAtEnd(g->b, edge);
  v[1] = read_lanes(g, x, r);
  LLVMBuildBr(g->b, done);
  LLVMPositionBuilderAtEnd(g->b, done);
  LLVMValueRef phi = LLVMBuildPhi(g->b, type, "");
  LLVMBasicBlockRef from[2] = {whole, edge};
  LLVMAddIncoming(phi, v, from, 2);
  return phi;
}

LLVMValueRef host_emit_guarded(HostGen *g, const HostAccess *x, const HostRead *r) {
  if (r->lanes == 1) return read_lane(g, x, r, 0);
  bool dense = !r->per_lane && r->lane_bytes == (int64_t)dtype_size(x->dtype);
  return dense ? read_vector(g, x, r) : read_lanes(g, x, r);
}
