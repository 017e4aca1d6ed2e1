/* Shared by the files of the runtime; does not leave this folder. */
#ifndef RUNTIME_INTERNAL_H
#define RUNTIME_INTERNAL_H
#include "runtime/dram.h"
#include "runtime/npurt.h"

enum { RT_ARGS = 64, RT_SLACK = 4096, RT_MAX_FINDINGS = 32 };

/* ---- planes and matrix kernels (mxu_*.c) ---- */

/* A weight plane in the FIFO. raw holds the elements as loaded; the packed forms are made when a
 * multiply first needs them, because only the multiply knows the type of the activations. */
typedef struct {
  DType dtype; /* DT_S8 or DT_BF16 */
  uint32_t k, n;
  bool kmajor; /* raw is [n][k], else [k][n] */
  uint8_t *raw;
  bool has_s8, has_f32;
  void *s8;   /* layout private to the kernel set */
  float *f32; /* [k][npad], npad = n rounded up to 16, padding zero */
} RtPlane;

/* One matrix kernel set per host vector level. `a` rows are k contiguous elements, `lda` bytes
 * apart, readable up to 64 bytes beyond k; `c` rows are `ldc` words apart. All sets give the same
 * bytes. */
typedef struct {
  const char *name;
  size_t (*s8_bytes)(uint32_t k, uint32_t n);
  void (*s8_pack)(const RtPlane *p, void *out);
  void (*s8_mul)(const RtPlane *p, const int8_t *a, ptrdiff_t lda, int32_t *c, ptrdiff_t ldc,
                 size_t m, bool acc);
  /* acc = fma(a_k, w_k, acc), k ascending, from 0 or from c; NaN results become the quiet NaN
   * 0x7fc00000. */
  void (*f32_mul)(const RtPlane *p, const uint16_t *a, ptrdiff_t lda, float *c, ptrdiff_t ldc,
                  size_t m, bool acc);
} MxuKernels;

enum { MXU_PORTABLE, MXU_AVX2, MXU_AVX512, MXU_AMX };
int rt_host_level(void);                  /* best level this host offers */
const MxuKernels *mxu_kernels(int level); /* level at most rt_host_level() */
extern const MxuKernels mxu_kernels_portable;
#if defined(__x86_64__)
extern const MxuKernels mxu_kernels_avx2, mxu_kernels_avx512, mxu_kernels_amx;
/* The layout AVX-512 and AMX share: [k/4 groups padded to 16][npad][4] bytes; then room for npad
 * sums of 32 bits. */
size_t mxu_vnni_bytes(uint32_t k, uint32_t n);
void mxu_vnni_pack(const RtPlane *p, void *out);
void mxu_f32_mul_avx512(const RtPlane *p, const uint16_t *a, ptrdiff_t lda, float *c, ptrdiff_t ldc,
                        size_t m, bool acc);
#endif
static inline uint32_t mxu_npad(uint32_t n) {
  return (n + 15) & ~15u;
}
void mxu_f32_pack(RtPlane *p);

/* ---- vector programs (vx_*.c) ---- */

enum { VX_UNIT, VX_ZERO, VX_STRIDED };

/* Argument block of a compiled vector program; strides in bytes. */
typedef struct {
  uint8_t *base[ISA_STREAMS];
  int64_t stride[ISA_STREAMS][5];
  int64_t count[5];
} VxArgs;
typedef void (*VxFn)(const VxArgs *);
/* Where a program uses each stream. */
typedef struct {
  uint8_t load[ISA_STREAMS], store[ISA_STREAMS];
} VxUse;
enum { VX_USE_ROW = 1, VX_USE_PASS = 2, VX_USE_RED = 4 };
void vx_use(const IsaVprog *p, VxUse *out);
typedef struct VxCache VxCache;
VxCache *vx_cache_new(const IsaImage *img, const IsaInsn *insns, int level);
void vx_cache_free(VxCache *c);
const VxUse *vx_cache_use(const VxCache *c, uint32_t vp);
/* The native code of a program for streams of these types and strides; NULL with *why when LLVM
 * fails. */
VxFn vx_cache_get(VxCache *c, uint32_t vp, const IsaDesc *d, double elements, char why[256]);
/* Out-of-line element moves of compiled programs: n <= 16 elements, stride in bytes, lanes of 32
 * bits. */
void vx_load_lanes(const uint8_t *p, int64_t stride, int64_t n, uint32_t *lanes, int32_t dtype);
void vx_store_lanes(uint8_t *p, int64_t stride, int64_t n, const uint32_t *lanes, int32_t dtype);

/* ---- resolved instructions ---- */

/* A DMA instruction with every address checked. Axis 0 is outermost; the box of elements inside the
 * tensor is [lo, hi) per axis. DRAM address of box element i: dram + sum i*dstride (dram already
 * holds the coordinates). */
typedef struct {
  int rank;
  uint32_t elsize, fill;
  int64_t size[5], lo[5], hi[5];
  int64_t dstride[5], sstride[5];
  int64_t dram, spm;
  bool store, whole, empty; /* whole: nothing lies outside the tensor; empty: everything does */
  bool indexed;             /* axis 0 comes from the list; dram then excludes axis 0 */
  int64_t index;            /* SPM address of the list */
  const int32_t *list;      /* its checked entries */
} DmaBox;

/* The runs of a transfer in DRAM, one after the other (dma_walk.c). */
typedef struct {
  int n; /* loops, innermost first; with `listed` the last one goes through the list */
  int64_t count[5], stride[5], index[5];
  uint64_t start, run, burst; /* first element inside; bytes of a run; of a burst */
  uint64_t at, left;          /* of the current run */
  bool listed, ended;         /* ended: the current run is the last */
  int32_t *list;              /* own, freed with mem_free */
  size_t list_cap;
} DmaWalk;
/* Starts again with a box; keeps the list's memory. */
void dma_walk_start(DmaWalk *w, const DmaBox *b, int64_t burst);
bool dma_walk_more(const DmaWalk *w);
/* The next bytes, all of one interleave block. */
uint32_t dma_walk_next(DmaWalk *w, const Dram *d, uint64_t *addr);

/* Rows of a multiply, or a plane, with every address checked; loops of one iteration removed and
 * contiguous ones merged. */
typedef struct {
  int64_t spm;
  int64_t k[3], kstride[3];
  int64_t m[3], mstride[3], astride[3]; /* astride in ACC words */
  int64_t acc;                          /* ACC word */
  int64_t ktotal, mtotal;
  bool distinct; /* no ACC row is named twice */
} RowsView;

/* ---- checking (check.c) ---- */

typedef struct Check Check;
typedef enum { RT_SPM, RT_ACC, RT_DRAM, RT_SPACES } RtSpace;

/* ---- the device ---- */

typedef struct {
  uint8_t *dram, *spm, *acc;            /* mappings with RT_SLACK readable bytes beyond */
  size_t dram_size, spm_size, acc_size; /* bytes a program may use */
  size_t spm_dirty, acc_dirty;          /* bytes from 0 that may be nonzero */
  int64_t regs[ISA_REGS];
  IsaDesc desc[ISA_DESCS];
  bool desc_checked[ISA_DESCS]; /* obeys the machine's rules as it stands */
  uint64_t sem[ISA_SEMS];
  RtPlane *planes;                  /* ring of nplanes: the FIFO, and the current plane */
  uint32_t nplanes, first, waiting; /* first: oldest waiting plane */
  uint32_t current;                 /* index of the current plane, UINT32_MAX: none */
  int64_t args[RT_ARGS];
} Device;

typedef struct {
  uint32_t pc;
  uint8_t engine;
  bool wait;
  double start, end;
} TraceSpan;
enum { TRACE_MAX = 10000000 }; /* spans; as text they are more than viewers show */

/* What has a price by the piece, counted while a run goes on and priced at its end. */
typedef struct {
  double instructions, descriptors, cycles;
} RtTally;

struct NpurtModel {
  IsaImage img;
  NpurtOptions opt;
  const char *label;
  IsaInsn *insns;              /* decoded code */
  bool desc_used[INSN_COUNT];  /* issues a copy of the descriptor it names */
  bool names_desc[INSN_COUNT]; /* reads or changes the register it names: all but `dload` */
  bool size_field[256];        /* descriptor fields isa_desc_check depends on */
  uint8_t *vprog_streams;      /* per vector program, streams it needs */
  uint32_t *op_of;             /* instruction -> ops[] */
  double *op_macs;             /* of one run, parallel to ops */
  RtTally *op_tally, engine_tally[ENGINE_COUNT]; /* of the present run; parallel to ops */
  NpurtOpProfile *ops;
  size_t nops;
  Device dev;
  int level;
  const MxuKernels *mxu;
  uint8_t *tmp_a; /* packed rows of a multiply */
  int32_t *tmp_c; /* their results */
  int32_t *list;  /* entries of an index list */
  size_t list_cap;
  VxCache *vx;
  NpurtProfile profile;
  TraceSpan *trace;
  size_t ntrace, trace_cap;
  Check *check;  /* in check mode */
  DmaWalk *walk; /* where the next transfer leaves its runs, or NULL */
  /* of the run */
  DiagEngine *diag;
  uint32_t pc, next_pc; /* instruction being executed; sequencer's next */
  bool halted;
  uint64_t steps;
  Arena *arena;
};

enum { RT_TMP_ROWS = 64 };

uint64_t rt_io_bytes(const IsaIo *io);

/* device.c */
bool device_init(NpurtModel *m, const char *path, const char **why);
void device_free(NpurtModel *m);
/* Zero bytes that cost nothing until touched, RT_SLACK more behind them, guard pages around; NULL
 * on failure. */
void *device_map(size_t bytes);
void device_unmap(void *p, size_t bytes); /* p may be NULL */
void device_start(NpurtModel *m); /* before a run: registers, semaphores, SPM, ACC, planes */
void device_reload_dram(NpurtModel *m);
void device_touch_spm(NpurtModel *m, int64_t end);
void device_touch_acc(NpurtModel *m, int64_t end_word);

/* trap.c: report a failure of the instruction at m->pc; always returns false. */
bool rt_trap(NpurtModel *m, const char *code, const char *fmt, ...) NPU_PRINTF(3, 4);
SrcLoc rt_loc(const NpurtModel *m, uint32_t pc);
/* "pc 12 `ld0 d3` (op conv1)" appended. */
void rt_describe(const NpurtModel *m, uint32_t pc, StrBuf *out);

/* Counts an instruction and its work (elements) against max_instructions; false after a diagnostic.
 */
bool rt_step(NpurtModel *m, double elements);

/* exec.c: one function per row of isa.def; the effect of an instruction whose takes are satisfied.
 * d is the captured descriptor (NULL when the row has none). False after a trap. */
bool rt_execute(NpurtModel *m, const IsaInsn *in, const IsaDesc *d);
const IsaDesc *rt_desc(const NpurtModel *m,
                       const IsaInsn *in); /* the register an engine instruction names, or NULL */
/* Before issue: the descriptor is of the instruction's kind and obeys the machine, the vector
 * program fits it. */
bool rt_desc_check(NpurtModel *m, const IsaInsn *in, const IsaDesc *d);
#define INSN(e, ...) bool sem_##e(NpurtModel *m, const IsaInsn *in, const IsaDesc *d);
#include "isa/isa.def"
#undef INSN
/* Planes: whether the FIFO rules let an instruction start now. */
bool rt_plane_ready(const NpurtModel *m, const IsaInsn *in, const char **why);
bool rt_is_plane_load(IsaInsnKind k);
bool rt_is_plane_pop(IsaInsnKind k);

/* run modes */
bool run_fast(NpurtModel *m);
bool run_timed(NpurtModel *m);

/* profile.c */
void profile_count(NpurtModel *m, uint32_t pc);
void profile_work(NpurtModel *m, uint32_t pc, const IsaCost *c, const IsaDesc *d);
/* The timed mode counts them as they are opened, not by isa_cost. */
void profile_rows_opened(NpurtModel *m, uint32_t pc, uint64_t rows);
/* Multiply-accumulates of the instruction being executed in columns that its plane has. */
void profile_useful(NpurtModel *m, double macs, bool bf16);
/* A part of the run's time that belongs to an engine and to the op of the instruction at pc. */
void profile_time(NpurtModel *m, uint32_t pc, IsaEngine by, double cycles);
/* Prices what has been counted, also of a run that failed. */
void profile_finish_run(NpurtModel *m, double cycles);
void profile_init(NpurtModel *m);
void trace_add(NpurtModel *m, uint32_t pc, IsaEngine e, bool wait, double start, double end);

/* check.c: races and what is read before it is written. For one engine instruction: check_issue
 * when the sequencer issues it, check_begin when it starts (its accesses follow), check_give when
 * it has finished; check_fence before the event of a fence; check_finish when the run has ended,
 * however it did. */
Check *check_new(NpurtModel *m);
void check_free(Check *c);
void check_start_run(Check *c);
/* The sequencer's last event. */
uint32_t check_issue(const Check *c);
/* *event: the number of what begins, not 0. */
bool check_begin(Check *c, IsaEngine e, uint32_t pc, uint32_t issue, uint32_t *event);
void check_give(Check *c, uint32_t event);
void check_fence(Check *c);
/* How many findings are errors. ended: the program came to its halt. */
unsigned check_finish(Check *c, bool ended);
/* check_access.c: the accesses of the instruction begun last. */
void check_access(Check *c, RtSpace space, int64_t addr, int64_t bytes, bool write);
/* A write of bytes the instruction begun last must not have written already. */
void check_write_once(Check *c, RtSpace space, int64_t addr, int64_t bytes);
/* Two elements of one pass of a vx have no order, and `other` loads or stores what `one` stores. */
void check_pass_clash(Check *c, RtSpace space, int64_t addr, int64_t bytes, int64_t one,
                      int64_t other, bool stores);
void check_dma(Check *c, const DmaBox *box);
/* Elements of three loops from addr. */
void check_three(Check *c, RtSpace space, int64_t addr, const int64_t n[3], const int64_t stride[3],
                 int64_t elsize, bool write);
void check_plane(Check *c, const RowsView *v, int64_t n, int64_t nstride, int64_t elsize);
void check_rows(Check *c, const RowsView *v, int64_t elsize, int64_t n, bool acc);
/* Around an accumulating s8 multiply: sums that wrap. */
void check_sums_before(Check *c, const RowsView *v, int64_t n);
void check_sums_after(Check *c, const RowsView *v, int64_t n);
/* check_vx.c */
void check_vx(Check *c, const IsaVprog *p, const IsaDesc *d);

/* Overflow-safe extremes of base + sum over loops of i*stride, 0 <= i < count (counts >= 1); false
 * when it overflows. */
bool rt_range(int64_t base, int n, const int64_t *count, const int64_t *stride, int64_t *lo,
              int64_t *hi);
#endif
