/* The parts of backend/host. A nest-level function becomes a list of steps over numbered buffers:
 * one native function per kernel, and plain copies around them where an operand has to be
 * rearranged or checked, or is better padded, first. The way of a kernel:
 * - kernel.c: body and maps to nodes, accesses, stages (what is computed from what);
 * - schedule.c: stages to loops (vector dimension, register and cache tiles);
 * - emit.c: loops to LLVM, guard.c reads that may lie outside; scalar.c and vmath.c the body's
 * operations on vectors;
 * - jit.c: LLVM module to native code;
 * - steps.c: the function around the kernels (buffers, liveness, steps); copy.c the copies. */
#ifndef HOST_INTERNAL_H
#define HOST_INTERNAL_H
#include "backend/host/host.h"
#include "isa/isa.h"
#include <llvm-c/Core.h>
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>

/* Lanes of 32 bits in a vector. Fixed, whatever the processor has, so that the order of float sums,
 * and with it every bit of a result, is the same everywhere. */
enum { HOST_LANES = 16, HOST_MAX_COMBOS = 16, HOST_MAX_UNROLL = 2 };

/* ---- buffers and steps ---- */

typedef enum { BUF_INPUT, BUF_OUTPUT, BUF_CONST, BUF_STATE, BUF_ARENA } HostBufKind;
typedef struct {
  HostBufKind kind;
  int index;        /* argument, result or state number */
  const void *data; /* BUF_CONST; perhaps unaligned */
  int64_t bytes;
  int64_t offset;  /* BUF_ARENA */
  int first, last; /* steps between which an arena buffer is live */
} HostBuf;

/* dst[c] = src[map(c)] inside the box lo..hi of dst's coordinates, fill outside. Axes outermost
 * first; dst is dense, strides of src are in elements. */
typedef struct {
  int rank;
  int64_t size[IR_MAX_RANK], lo[IR_MAX_RANK], hi[IR_MAX_RANK];
  int64_t stride[IR_MAX_RANK], offset;
  size_t elsize;
  uint8_t fill[4];
} HostCopy;
void host_copy_run(const HostCopy *c, void *dst, const void *src);
int64_t host_copy_bytes(const HostCopy *c); /* of dst */

/* An axis on which a read may lie outside: 0 <= cst + coef . dimensions < size is inside. */
typedef struct {
  int64_t cst, coef[IR_MAX_DIMS], size;
} HostGuard;

/* Where an element of a tensor or temporary lies, from the kernel's dimensions. In elements, modulo
 * 2^64: what lies inside the tensor is exact, whatever the steps that lead there. */
typedef struct {
  int buf;
  DType dtype;
  int64_t offset, stride[IR_MAX_DIMS];
  int nindirect;
  struct {
    int operand; /* kernel operand whose value is the coordinate */
    int64_t stride;
  } indirect[IR_MAX_RANK];
  uint32_t dims; /* dimensions it moves with, those of indirect coordinates included */
  bool relative; /* a temporary: addressed from the start of the group's tile */
  int nguards;
  HostGuard *guard;
  double pad; /* the value outside */
} HostAccess;
/* Whether all guarded axes of x are inside at a point of the kernel's dimensions. */
bool host_guard_inside(const HostAccess *x, const int64_t *at);
static inline int64_t host_wrap_mul(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a * (uint64_t)b);
}
static inline int64_t host_wrap_add(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

/* Reads every value of an index operand before the kernel runs. */
typedef struct {
  const HostAccess *access; /* the kernel's accesses */
  const int64_t *extent;    /* of the kernel's dimensions */
  int operand, of, axis;    /* index operand, the operand it addresses, and on which axis */
  int64_t cst, size;        /* 0 <= value + cst < size */
} HostCheck;

typedef enum { STEP_KERNEL, STEP_COPY, STEP_ZERO, STEP_CHECK } HostStepKind;
typedef struct {
  HostStepKind kind;
  SrcLoc loc;
  int src, dst;  /* buffers: COPY, ZERO (dst) */
  int64_t bytes; /* ZERO */
  const HostCopy *copy;
  const HostCheck *check;
  void (*run)(void *const *bufs);
  const char *symbol;
} HostStep;

typedef struct {
  const char *name;
  const IrType *type;
  const IrData *data; /* NULL: zeros */
  void *bytes;
} HostState;

typedef struct HostJit HostJit;
struct HostProgram {
  Arena *arena;
  HostJit *jit;
  int nbufs, cap_bufs;
  HostBuf *bufs;
  int nsteps, cap_steps;
  HostStep *steps;
  int nstates;
  HostState *states;
  int ninputs, noutputs;
  int64_t arena_bytes; /* -1: more than 63 bits */
  uint8_t *memory;     /* of arena buffers */
  void **pointers;     /* per buffer, for the run */
};
int host_buf_new(HostProgram *p, HostBufKind kind, int index, const void *data, int64_t bytes);
int host_buf_temp(HostProgram *p, int64_t bytes); /* live from and until the step added next */
void host_buf_use(HostProgram *p, int buf);       /* the step added next reads or writes it */
HostStep *host_step_new(HostProgram *p, HostStepKind kind, SrcLoc loc);

/* Fills in buffers and steps; the kernels' code goes to the jit's module. */
bool host_lower(HostProgram *p, IrFunc *f, DiagEngine *diag);

/* Element strides of a value's storage order. */
void host_strides(const IrValue *v, int64_t stride[IR_MAX_RANK]);

/* ---- kernels ---- */

typedef struct {
  const IrOp *op; /* NULL: the kernel operand of the same number */
  int narg, arg[3];
  uint32_t dims;
  DType dtype;
  int access; /* operands and reductions: where the value is read; -1 otherwise */
} HostNode;

typedef struct {
  int dim;
  int64_t extent, step,
      trips; /* the last step starts at extent - step: it may overlap the one before */
} HostLoop;

/* One loop nest: computes one reduction into a temporary, or those results that share dimensions.
 */
typedef struct {
  int reduce; /* node, or -1 */
  int nresults, *results;
  uint32_t par, red;
  bool *needed; /* per node: evaluated here */
  int vdim, lanes;
  int nunroll;
  struct {
    int dim;
    int64_t count, unit; /* copies, and distance between them */
  } unroll[HOST_MAX_UNROLL];
  int nloops, npar;
  HostLoop loops[IR_MAX_DIMS];
  int block_level;     /* the loops from here on, block_trips of this one at a time, are added up */
  int64_t block_trips; /* as f32 before they are widened; 0: every term is widened */
} HostStage;

typedef struct {
  const IrOp *op;
  IrKernel info;
  int nnodes;
  HostNode *nodes;
  int naccess;
  HostAccess *access; /* operands, results, temporaries of reductions */
  int *yield;         /* node of each result */
  int nstages;
  HostStage *stages;
  int rank[IR_MAX_DIMS]; /* position in the order of storage of the first result; others after it */
  uint32_t group;        /* dimensions of the loops around all stages */
  int64_t tile[IR_MAX_DIMS]; /* extents the stages see */
  int ngroup;
  HostLoop group_loops[IR_MAX_DIMS];
  int scratch;    /* buffer of the temporaries, or -1 */
  bool wide_sums; /* every term of a sum is widened: a result ends in integers */
} HostKernel;

/* Where an operand of the kernel stands. */
typedef struct {
  int buf;
  const void *constant; /* bytes when known at compile time */
  bool splat;           /* the buffer is one element, standing for all */
  const IrType *type;
  int64_t stride[IR_MAX_RANK];
} HostOperand;

/* Analyses a kernel; adds the steps that prepare its operands. results: buffers. wide_sums: widen
 * every term. NULL after a diagnostic. */
HostKernel *host_kernel_build(HostProgram *p, const IrOp *op, const HostOperand *operands,
                              const int *results, bool wide_sums, DiagEngine *diag);
/* Loops around all stages, and the extents the stages see inside them. */
void host_schedule_group(HostKernel *k);
/* Vector dimension of the stage: the one that makes most accesses contiguous. packable[access *
 * IR_MAX_DIMS + dim]: a strided access can be made contiguous along dim beforehand. */
void host_stage_choose_vector(const HostKernel *k, HostStage *s, const bool *packable);
/* Register tile and loops of the stage. */
void host_schedule_stage(const HostKernel *k, HostStage *s);
static inline bool host_has_dim(uint32_t dims, int d) {
  return (dims >> d & 1) != 0;
}

/* ---- emission ---- */

/* What LLVM needs to be told while a function is written. */
typedef struct {
  LLVMContextRef ctx;
  LLVMModuleRef mod;
  LLVMBuilderRef b;
  LLVMValueRef fn;
  LLVMTypeRef i1, i8, i16, i32, i64, f32, f64;
} HostGen;

/* A body scalar of one or several lanes. mask: of i1, the result of a comparison. */
typedef struct {
  LLVMValueRef v;
  bool mask;
} HostVal;

LLVMTypeRef host_llvm_type(const HostGen *g, DType t, int lanes);
LLVMValueRef host_splat(HostGen *g, LLVMValueRef v,
                        int lanes);                 /* v itself when it is a vector already */
LLVMValueRef host_int(const HostGen *g, int64_t v); /* i64 */
LLVMValueRef host_const(const HostGen *g, DType t, double value);
LLVMValueRef host_intrinsic(HostGen *g, const char *name, LLVMValueRef x);
/* As its element type, masks become s8 0 or 1. */
LLVMValueRef host_value(HostGen *g, HostVal v);
/* Elementwise body op on values of the given types. */
HostVal host_emit_op(HostGen *g, const IrOp *op, DType from, DType to, int narg,
                     const HostVal *arg);
/* The larger or smaller of two numbers, b when they are equal; NaN when either is. */
LLVMValueRef host_emit_extreme(HostGen *g, bool max, bool is_float, LLVMValueRef a, LLVMValueRef b);
/* Reductions collect in the accumulator's form of a value: binary64 for float sums, whose rounding
 * then does not show however long they are; the value itself for others. Products of two tensors,
 * where no result becomes an integer, are first added up as f32, eight at a time: that is off by at
 * most 8 2^-24 of the sum of their magnitudes, and no more the more there are. To that form and
 * back; sum, max or min of two; what changes nothing. */
LLVMValueRef host_to_accumulator(HostGen *g, const char *op, DType t, LLVMValueRef x);
LLVMValueRef host_from_accumulator(HostGen *g, const char *op, DType t, LLVMValueRef x);
LLVMValueRef host_emit_combine(HostGen *g, const char *op, DType t, LLVMValueRef a, LLVMValueRef b);
LLVMValueRef host_identity(const HostGen *g, const char *op, DType t);
/* The ISA's definition of a special function, expanded. */
LLVMValueRef host_emit_vmath(HostGen *g, IsaVopKind function, LLVMValueRef x);
LLVMValueRef host_round_s32(HostGen *g,
                            LLVMValueRef x); /* f32 to s32, half to even, saturating, NaN 0 */
LLVMValueRef host_round_bf16(HostGen *g, LLVMValueRef x); /* f32 to the 16 bits */

/* A read of `lanes` elements that may lie outside. offset: bytes from base to the first lane;
 * per_lane: bytes to add in each, or NULL; coord: of the guarded axes, in the first lane. */
typedef struct {
  LLVMValueRef base, offset, per_lane, coord[IR_MAX_RANK];
  int lanes, vdim;
  int64_t lane_bytes; /* from lane to lane along vdim */
} HostRead;
LLVMValueRef host_emit_guarded(HostGen *g, const HostAccess *x, const HostRead *r);
/* Adds `void symbol(void **bufs)` to the module. */
void host_emit_kernel(HostGen *g, const HostKernel *k, const char *symbol, Arena *arena);

/* ---- jit ---- */

HostJit *host_jit_new(DiagEngine *diag, SrcLoc loc);
void host_jit_free(HostJit *j);
HostGen *host_jit_gen(HostJit *j);
bool host_jit_compile(HostJit *j, DiagEngine *diag, SrcLoc loc);
void *host_jit_lookup(HostJit *j, const char *symbol, DiagEngine *diag, SrcLoc loc);
void host_jit_print(const HostJit *j, StrBuf *out);
#endif
