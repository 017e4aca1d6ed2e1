/* Writing program IR: private to pipeline*.c. */
#ifndef NPU_PASSES_PIPELINE_H
#define NPU_PASSES_PIPELINE_H
#include "passes/reach.h"
#include "passes/sched.h"
#include "support/ptrmap.h"

#define uthash_malloc(size) mem_alloc(size)
#define uthash_free(p, size) mem_free(p)
#include <uthash.h>

/* Instruction operands, in the order of the assembly syntax. Registers, descriptors, programs and
 * buffers are IR values; `addr` is the address of a buffer or tensor plus a constant. */
typedef struct {
  enum { ARG_VALUE, ARG_IMM, ARG_FIELD, ARG_ADDR } kind;
  IrValue *value;
  int64_t imm;
  const char *field;
} PArg;
static inline PArg pv(IrValue *v) {
  return (PArg){.kind = ARG_VALUE, .value = v};
}
static inline PArg pi(int64_t i) {
  return (PArg){.kind = ARG_IMM, .imm = i};
}
static inline PArg pf(const char *field) {
  return (PArg){.kind = ARG_FIELD, .field = field};
}
static inline PArg pa(IrValue *v, int64_t cst) {
  return (PArg){.kind = ARG_ADDR, .value = v, .imm = cst};
}

void prog_insn(IrBuilder *b, const char *op, int nargs, const PArg *args);
#define INSN_(b, op, ...)                                                                          \
  prog_insn(b, op, (int)(sizeof((PArg[]){__VA_ARGS__}) / sizeof(PArg)), (PArg[]){__VA_ARGS__})
IrValue *prog_reg(IrBuilder *b);
IrValue *prog_buffer(IrBuilder *b, const char *space, int64_t bytes, int slots, const char *name);
IrValue *prog_vprog(IrBuilder *b, const char *text);
/* A descriptor register holding `d`; address fields may refer to buffers and tensors. */
typedef struct {
  const char *field;
  IrValue *base;
  int64_t cst;
} PAddrField;
IrValue *prog_desc(IrBuilder *b, const IsaDesc *d, int naddrs, const PAddrField *addrs);
/* for (counter = 0; counter < hi, or < bound when given; counter += step); b moves inside until
 * prog_end. */
IrBuilder prog_for(IrBuilder *b, IrValue *counter, int64_t hi, IrValue *bound, int64_t step);
/* Runs what is written through the returned builder when a cond b ("eq", "ne", "lt", "ge"). */
IrBuilder prog_if(IrBuilder *b, IrValue *a, const char *cond, IrValue *other);
void prog_acquire(IrBuilder *b, IrValue *buffer, IsaEngine e, bool write);
void prog_release(IrBuilder *b, IrValue *buffer, IsaEngine e, bool write);
/* dst = cst + sum of coef[d] * reg[d]; registers NULL count as zero. */
void prog_affine(IrBuilder *b, IrValue *dst, const IrAffine *a, IrValue *const reg[IR_MAX_DIMS]);
const char *prog_field(IrBuilder *b, const char *name,
                       int element); /* "coord", 1 -> interned "coord.1" */

/* Where nest-level values live: one `tensor` op per place. */
typedef struct {
  PassContext *pc;
  IrFunc *f;
  PtrMap *placed; /* value to the tensor op's result */
  PtrMap *states; /* names of the states that have a place */
  IrBuilder top;  /* where tensor ops go */
} Places;
/* Whether the addresses on f keep apart what is needed at the same time; false after a diagnostic.
 */
bool plan_check(PassContext *pc, IrFunc *f);
/* Makes a `tensor` op for every argument, constant, state and kernel result of f; false after a
 * diagnostic. */
bool pipeline_place_all(Places *p);
void pipeline_places_free(Places *p);
/* The place of a nest-level value, through reshapes; NULL when it has none. */
IrValue *pipeline_place_of(const Places *p, const IrValue *v);
/* What kernels multiply and read, for the bound in reports. */
typedef struct {
  const IrValue *tensor;
  size_t element; /* bytes */
  Reach reach;
  UT_hash_handle hh;
} TensorReads;
typedef struct {
  double macs_s8, macs_other;
  TensorReads *reads;
} Bound;
/* Adds a kernel and notes its multiplications on its section. */
void bound_kernel(Bound *b, const Places *p, const IrOp *kernel, IrOp *section);
/* Notes the bound on f's return; to be called once, which also frees b's table. */
void bound_finish(Bound *b, IrFunc *f);

/* A block's home while a kernel's program is written. */
typedef struct {
  IrValue *buffer;
  IrValue *slot; /* register: byte (ACC: row) offset of the current slot; NULL with one slot */
  int64_t size;  /* of one slot */
  Block block;   /* geometry (operands and results) */
  IrValue *desc; /* DMA descriptor */
  IrValue *tensor;
  IsaEngine dma;
} Home;

typedef struct {
  PassContext *pc;
  IrModule *m;
  const MachineDesc *machine;
  KernelInfo ki;
  Schedule s;
  Home home[SCHED_MAX_STORES];
  IrValue *iv[IR_MAX_DIMS]; /* start of the current tile per dimension; NULL: always 0 */
  IrValue *zero;            /* register holding 0, when needed */
  Mxu mxu;
  IrValue *desc_w, *desc_x;
  struct {
    Vec vec;
    IrValue *desc, *first, *again;
  } step[SCHED_MAX_STEPS];
} Writer;

/* Names of the places of one DMA queue: LD0, LD1 or ST. */
void write_load(Writer *w, IrBuilder *b, int operand, IrValue *const start[IR_MAX_DIMS],
                bool other_slot);
void write_store(Writer *w, IrBuilder *b, int store);
void write_mxu(Writer *w, IrBuilder *b);
void write_vector(Writer *w, IrBuilder *b, int step);
/* r = slot offset + address of the buffer + cst */
void write_slot_address(Writer *w, IrBuilder *b, const Home *h, IrValue *r, int64_t cst);
#endif
