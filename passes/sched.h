/* The schedule of one kernel: what tile, order and slots mean for its blocks and steps. Private to
 * passes/.
 *
 *   body ──► steps (sched_steps.c) ──► stores: operand blocks, stage values, accumulators, result
 * blocks tile sizes + maps ──► block geometry (sched_block.c) ──► predicted time (sched_cost.c) ──►
 * tile.c's search the same geometry ──► pipeline*.c, which writes the program
 *
 * Everything here is derived from the kernel op and a Schedule; nothing knows which operator the
 * kernel was. */
#ifndef NPU_PASSES_SCHED_H
#define NPU_PASSES_SCHED_H
#include "ir/ir.h"
#include "isa/isa.h"

enum {
  SCHED_MAX_STEPS = 16,
  SCHED_MAX_STORES = 40,
  SCHED_MAX_TARGETS = 8,
  SCHED_MAX_SCALARS = 160
};

/* What tile.c decides and writes on the kernel as attributes tile, order, slots, block, stream. */
typedef struct {
  int64_t tile[IR_MAX_DIMS]; /* elements per grid step; >= extent means the dimension is whole */
  int norder;
  int order[IR_MAX_DIMS]; /* dimensions with more than one tile, outermost first; reductions
                             innermost */
  int slots; /* copies of every operand, accumulator and result block: 1, or 2 to overlap */
  int64_t block[IR_MAX_DIMS]; /* elements of one weight plane along contraction and column
                                 dimensions; else 0 */
  int stream;                 /* which factor of the product streams: 0 or 1 */
} Schedule;

/* A place a step reads or writes. */
typedef enum { STORE_OPERAND, STORE_STAGE, STORE_ACC, STORE_RESULT, STORE_CARRY } StoreKind;
typedef struct {
  StoreKind kind;
  int index;             /* operand or result number */
  const IrValue *scalar; /* block argument, or the scalar kept */
  DType dtype;
  uint32_t dims;   /* kernel dimensions it varies over */
  uint8_t readers; /* bit set of IsaEngine that read it */
  int carry; /* of a float sum: the STORE_CARRY of what rounding lost of it between grid steps;
                else -1 */
} Store;

/* One pass over a set of dimensions: a product on the MXU, or a vector program. */
typedef struct {
  bool mxu;
  uint32_t par, red; /* dimensions looped over; red is empty for a pure map */
  bool epilogue;     /* runs once the tiled reductions are complete */
  int ntargets;
  const IrValue *target[SCHED_MAX_TARGETS]; /* scalars computed: reduce results, kept values,
                                               yielded scalars */
  int store[SCHED_MAX_TARGETS];             /* where each goes */
  int factor[2];                            /* mxu: operand numbers of the product's two factors */
} Step;

typedef struct {
  const IrOp *op;
  IrKernel k;
  uint32_t all, par, red; /* dimension sets; red: reduced somewhere and in no result */
  uint32_t tileable_red;  /* reductions that may be cut over grid steps */
  uint32_t whole;         /* dimensions every tile must hold whole */
  int phases;             /* 1 + depth of nested reductions */
  int nsteps;
  Step step[SCHED_MAX_STEPS];
  int nstores;
  Store store[SCHED_MAX_STORES];
  int mxu_step;             /* index, or -1 */
  struct VprogCache *cache; /* of the search, or NULL */
  int nscalars;
  struct {
    const IrValue *value;
    uint32_t dims;
    int phase; /* nesting depth of reductions above it; block arguments 0 */
    bool sfu;  /* computing it inline costs a special function */
  } scalar[SCHED_MAX_SCALARS];
} KernelInfo;

/* Splits the body into steps. False, with *why, when the body exceeds a fixed limit. */
bool sched_analyze(const IrOp *kernel, KernelInfo *out, const char **why);
/* Store holding a scalar, or -1. */
int sched_store_of(const KernelInfo *ki, const IrValue *scalar);
/* Does the reduction add floats? The vector unit keeps such a sum more exactly than one f32. */
bool sched_is_float_sum(const IrOp *reduce);
/* Index in ki->scalar, or -1. */
int sched_scalar(const KernelInfo *ki, const IrValue *scalar);
/* Calls visit for each store a step reads, in a fixed order. */
void sched_step_reads(const KernelInfo *ki, const Step *st, void (*visit)(void *user, int store),
                      void *user);

/* Geometry of a block in scratchpad for given tile sizes. Axis numbers are box axes, outermost
 * first. */
typedef struct {
  int rank;                        /* box axes, at most 5 */
  int64_t len[5];                  /* elements per box axis */
  int64_t dstride[5];              /* bytes in DRAM */
  int64_t sstride[5];              /* bytes in SPM */
  int64_t extent[5];               /* tensor elements per axis, for bounds */
  IrAffine coord[5];               /* first coordinate, from the tile's start in every dimension */
  IrAffine dram;                   /* bytes from the tensor's start to coordinate 0, likewise */
  bool fill;                       /* some element may lie outside the tensor */
  int gather;                      /* operand number of the index list of box axis 0, or -1 */
  int64_t bytes;                   /* of one slot */
  int64_t dim_stride[IR_MAX_DIMS]; /* bytes (ACC: words) between neighbours along each kernel
                                      dimension */
  int64_t
      first; /* bytes from the slot's start to the element of local index 0 in every dimension */
} Block;

/* False, with *why, when the block has no descriptor (too many axes). */
bool sched_operand_block(const KernelInfo *ki, const Schedule *s, int operand, Block *out,
                         const char **why);
bool sched_result_block(const KernelInfo *ki, const Schedule *s, int result, Block *out,
                        const char **why);
/* Stage values and carries: dense over their dimensions, in dimension order, unless they live in a
 * result block. */
bool sched_stage_block(const KernelInfo *ki, const Schedule *s, int store, Block *out,
                       const char **why);

/* The product of a kernel, cut for the array. Loops of one instruction are outermost first. */
typedef struct {
  int x, w;              /* operand numbers: streamed, and loaded as planes */
  bool bf16, transposed; /* activations are bf16; planes have K contiguous */
  int n;                 /* dimension along the columns, or -1 */
  int64_t nb, nblocks,
      nstride; /* columns per plane, planes side by side in a tile, bytes between columns */
  int nm, nk;
  struct {
    int64_t len, mult, x, acc;
    int edge;
  } m[3]; /* acc: ACC rows between neighbours; edge, mult: as VecLoop */
  struct {
    int64_t len, x, w;
  } k[3];
  int64_t x_first, w_first; /* bytes to local index 0, see Block */
  int nloops; /* loops around, outermost first: batch, further columns, column blocks, contraction
                 blocks */
  struct {
    int64_t trip, x, w, acc;
    bool reduction;
  } loop[IR_MAX_DIMS + 1];
  int64_t acc_stride[IR_MAX_DIMS]; /* ACC rows between neighbours along each dimension but n */
  int64_t acc_rows;                /* of one slot */
} Mxu;
bool sched_mxu(const KernelInfo *ki, const Schedule *s, const MachineDesc *m, Mxu *out,
               const char **why);
/* ACC as a block: dim_stride in 32-bit words. */
void sched_acc_block(const Mxu *mx, const MachineDesc *m, Block *out);
/* Whether an axis is walked by contraction dimensions of the array's step, and by no others. */
bool sched_contracts(const KernelInfo *ki, const IrAffine *axis);
/* Whether tiles and planes may reach past the end of a contraction dimension: one factor must read
 * as zero there and the other as something finite. */
bool sched_may_round(const KernelInfo *ki, int dim);
/* Sets s->block, the contraction and column elements of one plane: inner contraction dimensions
 * first, further ones while inner ones are whole, so that a plane's rows stay contiguous in the
 * streamed block. s->stream is set. */
void sched_set_blocks(const KernelInfo *ki, const MachineDesc *m, Schedule *s);
/* Blocks that stream fewer runs than those of sched_set_blocks, which leave much of the array empty
 * where two dimensions together are too large for it and one is small. False: there are none. */
bool sched_fewer_runs(const KernelInfo *ki, const MachineDesc *m, Schedule *s);
/* Column dimension for a choice of streamed factor, or -1. */
int sched_column_dim(const KernelInfo *ki, int stream);

/* `len` counts elements, those of merged neighbours together; in edge tiles it is `mult` times what
 * is left of dimension `edge` (-1: never an edge). */
typedef struct {
  int dim; /* -1: not used */
  int64_t len, mult;
  int edge;
  int64_t stride[ISA_STREAMS];
} VecLoop;

/* A vector step, cut for the VPU's loops. */
typedef struct {
  int nstreams;
  struct {
    int store;
    bool write;
    int64_t first;
  } stream[ISA_STREAMS]; /* first: see Block */
  /* loops o0 o1 r0 r1 v, and the sequencer loops around */
  VecLoop loop[5], outer[IR_MAX_DIMS];
  int nouter;
  int nred;         /* reduction loops r0, r1 in use */
  bool v_reduces;   /* the vector loop is a reduction: row scalars collect it */
  bool accumulates; /* adds to what earlier grid steps left, read from the stream written */
} Vec;
/* Vector program of a step; again: the variant that adds to what earlier grid steps left. False,
 * with *why, when it needs more registers or micro-operations than there are. */
bool sched_vprog(const KernelInfo *ki, int step, const Vec *v, bool again, StrBuf *out,
                 const char **why);
bool sched_vec(const KernelInfo *ki, const Schedule *s, int step, const MachineDesc *m, Vec *out,
               const char **why);

int64_t sched_tile(const KernelInfo *ki, const Schedule *s,
                   int dim); /* elements, at least 1: min(tile, extent) or rounded up for planes */
int64_t sched_tiles(const KernelInfo *ki, const Schedule *s, int dim);
/* Do grid steps add to what earlier ones left of a reduction? Only then do carries exist. */
bool sched_accumulates(const KernelInfo *ki, const Schedule *s, uint32_t reduced);
/* Grid loops an operand's block depends on, as the depth after the innermost of them; 0: loaded
 * once. */
int sched_depth(const KernelInfo *ki, const Schedule *s, uint32_t dims);
uint32_t sched_operand_dims(const KernelInfo *ki, int operand);

/* Descriptors with everything but addresses in place; a full tile at the tensor's start. False,
 * with *why, when a number does not fit its field: smaller tiles may. */
bool sched_dma_desc(const Block *b, DType dtype, double pad, const MachineDesc *m, IsaDesc *out,
                    const char **why);
bool sched_plane_desc(const KernelInfo *ki, const Mxu *mx, const MachineDesc *m, IsaDesc *out,
                      const char **why);
bool sched_rows_desc(const KernelInfo *ki, const Mxu *mx, const MachineDesc *m, IsaDesc *out,
                     const char **why);
bool sched_vec_desc(const KernelInfo *ki, const Vec *v, const MachineDesc *m, IsaDesc *out,
                    const char **why);

/* Vector programs already written for a kernel during a search, by shape. */
typedef struct VprogCache {
  int n;
  struct {
    int step;
    int nred;
    bool v_reduces, accumulates;
    IsaVprog vprog;
  } entry[48];
} VprogCache;

/* Predicted cycles of the kernel, engine by engine; false, with *why, when the schedule does not
 * fit the machine. */
typedef struct {
  double total;
  double dram, ld, st, mxw, mxm, vpu, seq; /* busy cycles over the whole kernel */
  double spm, acc;                         /* of the ports that the engines share */
  double fill; /* descriptors, first loads, last step and last store, which overlap nothing */
  int64_t spm_bytes, acc_rows;
  int regs;
} Predicted;
bool sched_predict(const KernelInfo *ki, const Schedule *s, const MachineDesc *m, Predicted *out,
                   const char **why);
/* Copies of an operand's block: s->slots when it is loaded ahead; 1 when it is loaded once, or is
 * part of a gather, whose list must have arrived first. */
int sched_operand_slots(const KernelInfo *ki, const Schedule *s, int operand);
/* Grid loops around a result's block (those over parallel dimensions), and its copies. */
int sched_par_depth(const KernelInfo *ki, const Schedule *s);
int sched_result_slots(const KernelInfo *ki, const Schedule *s);
/* The queue that loads an operand. */
IsaEngine sched_load_queue(const KernelInfo *ki, int operand);
/* Is the operand gathered, or the list of a gather? */
bool sched_in_gather(const KernelInfo *ki, int operand, bool *is_list);

/* The value whose storage v shares: v itself, or what it is a reshape of. */
IrValue *sched_storage(const IrValue *v);

/* The first returned or state-written value's user for which legalize would still make storage,
 * NULL when all have theirs. */
const IrOp *legalize_missing(PassContext *pc, IrFunc *f);

/* Splits kernel k after its first reductions into two that replace it; false when it has none to
 * split at. */
bool sched_split(PassContext *pc, IrOp *k, IrOp **first, IrOp **rest);

void sched_read(const IrOp *kernel, Schedule *out, bool *present);
/* Whether a schedule read from text is one tile could have written: order names each dimension with
 * several tiles once, reductions innermost; slots 1 or 2; sizes positive. */
bool sched_valid(const KernelInfo *ki, const Schedule *s, const char **why);
void sched_write(IrOp *kernel, const Schedule *s, int ndims);
#endif
