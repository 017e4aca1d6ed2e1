/* isa: the contract between compiler and machine. Instruction table, encoder, decoder, assembler,
 * disassembler, descriptors, vector programs, machine description, instruction costs, the binary
 * container, and the definitions of the special functions. */
#ifndef NPU_ISA_H
#define NPU_ISA_H
#include "support/dtype.h"
#include "support/support.h"

NPU_C_BEGIN

/* ---- machine description ---- */

/* Every field is a row of isa/machine.def: reader, writer, comparison and the manual are driven by
 * it. */
typedef struct MachineDesc {
  char name[32];
#define MFIELD(member, type, ...) type member;
#include "isa/machine.def"
#undef MFIELD
} MachineDesc;
const MachineDesc *machine_default(void); /* edge, compiled in */
/* A built-in name (compiled in from isa/machines/) or a path to a file in the
 * same form, then changes: `edge,queue_depth=8,ideal`, where `ideal` sets every field that has an
 * ideal value to it. A changed machine's name ends in '+'. Unknown keys, missing values,
 * out-of-range values are diagnosed with place; false on error. */
bool machine_load(const char *spec, MachineDesc *out, DiagEngine *diag);
bool machine_parse(const char *text, size_t len, const char *label, MachineDesc *out,
                   DiagEngine *diag);
void machine_print(const MachineDesc *m, StrBuf *out);
/* Key of the first field that differs, or NULL when equal. */
const char *machine_difference(const MachineDesc *a, const MachineDesc *b);
/* The same of the fields that programs are compiled for: with none, a's programs run on b. */
const char *machine_size_difference(const MachineDesc *a, const MachineDesc *b);
/* Sets every field that has an ideal value to it. */
void machine_idealize(MachineDesc *m);
size_t machine_builtin_count(void);
const char *machine_builtin_name(size_t i);
double machine_seq_cycles(const MachineDesc *m);           /* of an instruction of the sequencer */
double machine_dram_bytes_per_cycle(const MachineDesc *m); /* of one chip */
double
machine_dram_latency_cycles(const MachineDesc *m); /* from a transfer's last byte to its gives */
double machine_dram_open_cycles(const MachineDesc *m); /* from a request to its data, row closed */

/* ---- engines and instructions ---- */

#define ISA_ENGINES(X)                                                                             \
  X(SEQ, "SEQ")                                                                                    \
  X(LD0, "LD0") X(LD1, "LD1") X(ST, "ST") X(MXW, "MXW") X(MXM, "MXM") X(VPU, "VPU") X(NET, "NET")
typedef enum {
#define X(e, n) ENGINE_##e,
  ISA_ENGINES(X)
#undef X
      ENGINE_COUNT
} IsaEngine;
const char *isa_engine_name(IsaEngine e);

typedef enum {
#define INSN(e, ...) INSN_##e,
#include "isa/isa.def"
#undef INSN
  INSN_COUNT
} IsaInsnKind;

enum {
  ISA_REGS = 32,
  ISA_DESCS = 64,
  ISA_SEMS = 64,
  ISA_STREAMS = 8,
  ISA_VREGS = 16,
  ISA_RREGS = 8,
  ISA_VPROG_MAX = 64,
  ISA_SEM_COUNT_MAX = 15,
  ISA_INSN_BYTES = 16
};

typedef struct {
  uint8_t sem, count;
} IsaSemRef; /* count 0: none */
/* A decoded instruction. Fields a row does not use are zero. */
typedef struct {
  IsaInsnKind kind;
  IsaSemRef take[2], give[2];
  uint8_t rd, rs, rt, dn;
  uint8_t field; /* descriptor field number */
  uint16_t vp;
  uint32_t target; /* jump target or descriptor index */
  int64_t imm;     /* imm (48 bits) or mem offset (32 bits) */
} IsaInsn;

typedef struct {
  const char *mnemonic;
  IsaEngine engine;
  uint8_t opcode, flags, flags_mask;
  const char *operands; /* "rd, rs, imm" */
  const char *doc;
} IsaInsnInfo;
const IsaInsnInfo *isa_insn_info(IsaInsnKind k);
bool isa_insn_by_name(const char *mnemonic, IsaInsnKind *out);
/* False when a field does not fit; *why names it. A reference of count 0 before one that is used is
 * closed up. */
bool isa_encode(const IsaInsn *in, uint8_t out[16], const char **why);
/* False for an unknown opcode or flags, or nonzero unused bits. */
bool isa_decode(const uint8_t in[16], IsaInsn *out, const char **why);

/* ---- descriptors ---- */

typedef enum { DESC_NONE, DESC_DMA, DESC_PLANE, DESC_ROWS, DESC_VECTOR } IsaDescKind;
typedef enum { SPACE_SPM, SPACE_ACC } IsaSpace;

/* 256 bytes in the binary, little endian, in this layout (static-asserted). Sizes and strides: see
 * isa/descfields.def. The box of a DMA descriptor has `rank` axes (1..5), axis 0 outermost. */
typedef struct {
  uint8_t kind;     /* IsaDescKind */
  uint8_t rank;     /* DMA: axes */
  uint8_t elsize;   /* DMA: 1, 2 or 4 bytes */
  uint8_t dtype;    /* PLANE, ROWS: DT_S8 or DT_BF16 */
  uint8_t wdtype;   /* ROWS: dtype of the plane it expects */
  uint8_t nstreams; /* VECTOR */
  uint8_t reserved[2];
  union {
    struct {
      int64_t dram;
      uint32_t spm, fill, index, size[5];
      int64_t dstride[5], coord[5], extent[5];
      int32_t sstride[5];
    } dma;
    struct {
      uint32_t spm, k[3];
      int32_t kstride[3];
      uint32_t n;
      int32_t nstride;
    } plane;
    struct {
      uint32_t spm, k[3];
      int32_t kstride[3];
      uint32_t m[3];
      int32_t mstride[3];
      uint32_t acc;
      int32_t astride[3];
    } rows;
    struct {
      uint32_t count[5];
      struct {
        uint8_t space, dtype;
        uint16_t reserved;
        uint32_t base;
        int32_t stride[5];
      } stream[8];
    } vec;
    uint8_t bytes[248];
  };
} IsaDesc;
/* count[] order of vector loops */
enum { VLOOP_O0, VLOOP_O1, VLOOP_R0, VLOOP_R1, VLOOP_V };

/* Field numbers: element e of an array is ISA_FIELD_x + e, its last one ISA_FIELD_END_x. */
typedef enum {
#define FIELD(e, name, kinds, type, count, doc)                                                    \
  ISA_FIELD_##e, ISA_FIELD_END_##e = ISA_FIELD_##e + (count)-1,
#include "isa/descfields.def"
#undef FIELD
  ISA_FIELDS
} IsaFieldNumber;
/* Field number by name ("size.2", "base.0", "spm"); false when unknown or not of this kind. */
bool isa_field_by_name(IsaDescKind kind, const char *name, uint8_t *out);
const char *isa_field_name(unsigned field, char buf[24]);
unsigned isa_field_count(void);
bool isa_field_in_kind(unsigned field, IsaDescKind kind);
int64_t isa_field_get(const IsaDesc *d, unsigned field);
/* False when the value does not fit the field or the field is not of the descriptor's kind. The one
 * way from a 64-bit number into a descriptor. */
bool isa_field_set(IsaDesc *d, unsigned field, int64_t value);
/* Machine-independent and machine-dependent rules (ranks, element sizes, K and N against the array,
 * dtypes). */
bool isa_desc_check(const IsaDesc *d, const MachineDesc *m, const char **why);
/* Of these, the rules on products of counts, for a descriptor that is well-formed. */
bool isa_desc_fits(const IsaDesc *d, const MachineDesc *m, const char **why);

/* ---- vector programs ---- */

typedef enum {
#define VOP(e, ...) VOP_##e,
#include "isa/vops.def"
#undef VOP
  VOP_COUNT
} IsaVopKind;
/* For switches over micro-operations that compute: `#define VOP ISA_CASES_NOT_COMPUTING` and the
 * table give a case for every row of another unit, so that one left out does not compile. */
#define ISA_CASES_NOT_COMPUTING(e, mnemonic, code, operands, unit, doc) ISA_CASE_##unit(VOP_##e)
#define ISA_CASE_ALU(vop)
#define ISA_CASE_SFU(vop)
#define ISA_CASE_DIV(vop)
#define ISA_CASE_EXP(vop)
#define ISA_CASE_SIN(vop)
#define ISA_CASE_LOAD(vop) case vop:
#define ISA_CASE_STORE(vop) case vop:
#define ISA_CASE_RED(vop) case vop:
#define ISA_CASE_SUM(vop) case vop:
#define ISA_CASE_CTL(vop) case vop:
/* Operand: 0..15 v register, 16..23 r register, 63 the micro-operation's immediate. */
enum { VARG_V0 = 0, VARG_R0 = 16, VARG_IMM = 63 };
typedef struct {
  uint8_t op;  /* IsaVopKind; encoded by its code */
  uint8_t dst; /* register operand number */
  uint8_t a, b, c;
  uint8_t stream;
  uint32_t imm; /* bits of the one immediate, f32 or s32 by the operation */
} IsaVop;
typedef struct {
  int n;
  IsaVop ops[ISA_VPROG_MAX];
} IsaVprog;
typedef struct {
  const char *mnemonic;
  uint8_t code;
  const char *operands;
  enum {
    UNIT_ALU,
    UNIT_LOAD,
    UNIT_STORE,
    UNIT_SFU, /* special functions: this one and the next three */
    UNIT_DIV,
    UNIT_EXP,
    UNIT_SIN,
    UNIT_RED,
    UNIT_SUM,
    UNIT_CTL
  } unit;
  const char *doc;
} IsaVopInfo;
const IsaVopInfo *isa_vop_info(IsaVopKind k);
/* Passes of an operation through a special-function slot; 0: it is no special function. */
int64_t isa_vop_sfu_passes(IsaVopKind k, const MachineDesc *m);
/* "vec; ld v0, s0; max.f v0, v0, 0.0; st s1, v0; endv". At most one immediate (or equal ones) per
 * micro-operation. */
bool isa_vprog_parse(const char *text, IsaVprog *out, char why[160]);
void isa_vprog_print(const IsaVprog *p, const char *separator, StrBuf *out);
/* Structure (sections nest and close), destinations legal for their section, streams < nstreams. */
bool isa_vprog_check(const IsaVprog *p, int nstreams, const char **why);
void isa_vop_encode(const IsaVop *v, uint8_t out[8]);
bool isa_vop_decode(const uint8_t in[8], IsaVop *out);

/* ---- special functions ---- */

/* A special function *is* a straight-line program of basic micro-operations on f32 bits: the
 * interpreter, the simulator's compiler and the host reference all expand the same steps. Operands
 * number earlier steps; 0 is the argument x, step i writes value i + 1; VMATH_IMM means the step's
 * immediate. */
/* X(part of the enumerators, name, max_ulp): the largest error against libm's double functions over
 * every 523rd float, rounded up a little; tests/isa/test_vmath.c measures again. sin and cos: for
 * |x|
 * <= 10^4. */
#define ISA_VMATH(X)                                                                               \
  X(EXP, "exp", 1.0)                                                                               \
  X(LOG, "log", 0.9) X(TANH, "tanh", 1.35) X(ERF, "erf", 1.2) X(SIN, "sin", 2.4) X(COS, "cos", 2.4)
enum { VMATH_IMM = 255 };
typedef struct {
  uint8_t op;
  uint8_t a, b, c;
  uint32_t imm;
} VmathStep; /* op: IsaVopKind of an ALU or IEEE SFU operation */
typedef struct {
  const char *name;
  IsaVopKind vop;
  int nsteps;
  const VmathStep *steps;
  double max_ulp; /* measured against libm over all floats or a dense sample */
} VmathFn;
/* EXP_F LOG_F TANH_F ERF_F SIN_F COS_F; NULL for others. */
const VmathFn *vmath_fn(IsaVopKind vop);
float vmath_eval(IsaVopKind vop, float x); /* the interpreter, for tests and scalars */
/* Result of a basic ALU/SFU micro-operation on 32-bit values, as defined; the interpreter's kernel.
 */
uint32_t isa_vop_eval(IsaVopKind op, uint32_t a, uint32_t b, uint32_t c);

/* ---- costs ---- */

/* What one instruction costs on a machine: the one place with these formulas (documented in
 * isa/README.md), used by the compiler's search and by the timed simulator. Cycles the engine is
 * occupied when nothing it shares holds it up; isa_alone has those limits as well. Time in the DRAM
 * is left to the resource model, dram_cycles foretells it. */
typedef struct {
  double cycles;                /* engine occupancy, at least 1 */
  double dram_read, dram_write; /* bytes on the DRAM bus, whole bursts: each contiguous run is
                                   rounded up to dram_burst */
  double runs;                  /* contiguous in DRAM */
  double
      dram_cycles; /* that the bytes keep the DRAM busy, in closed form, no other transfer about */
  double setup;    /* of the cycles, those before a transfer's first request */
  double spm_bytes, acc_bytes; /* traffic; whole words of banks where single elements are taken */
  double acc_rows;             /* accumulator rows read and written */
  double
      macs; /* multiply-accumulates of all mxu_cols columns; the plane's n / mxu_cols are useful */
  double vpu_ops, sfu_ops; /* lane operations; of which special functions */
  double activations;      /* rows of DRAM opened, in closed form */
  double latency; /* cycles after occupancy until gives fire: from DRAM, through the array */
} IsaCost;
/* Bytes of a request, the unit of dram_queue and dram_write_queue. */
enum { ISA_DRAM_REQUEST = 64 };
/* Runs of `bytes` bytes each, whole bursts, over n loops, innermost first; strides in bytes. With
 * `irregular` the outermost loop goes to any places among `reach` bytes. */
typedef struct {
  double bytes;
  int n;
  double count[5], stride[5];
  bool irregular;
  double reach;
} IsaDramRuns;
/* In closed form (cost_dram.c): rows opened, and cycles that moving the runs keeps the DRAM busy.
 */
double isa_dram_activations(const MachineDesc *m, const IsaDramRuns *r);
double isa_dram_cycles(const MachineDesc *m, const IsaDramRuns *r);
/* Cycles that several streams keep the DRAM busy which take `cycles` one after the other, when
 * `written` bytes are writes among reads, `group` of them at a time. */
double isa_dram_together(const MachineDesc *m, double cycles, double written, double group);
IsaCost isa_cost(const IsaInsn *in, const IsaDesc *d, const IsaVprog *vp, const MachineDesc *m);
/* Cycles of the instruction when it has the DRAM, the scratchpad's and the accumulators' ports for
 * itself. */
double isa_alone(const IsaCost *c, const MachineDesc *m);
/* Where energy goes: X(member, name in reports). */
#define ISA_ENERGIES(X)                                                                            \
  X(mac, "MACs")                                                                                   \
  X(vpu, "vector unit")                                                                            \
  X(sfu, "special functions")                                                                      \
  X(acc, "accumulators")                                                                           \
  X(spm, "scratchpad")                                                                             \
  X(dram, "DRAM transfers")                                                                        \
  X(activate, "DRAM rows opened")                                                                  \
  X(control, "instructions")                                                                       \
  X(leakage, "leakage")                                                                            \
  X(standby, "DRAM standby")
/* Picojoules. */
typedef struct {
#define X(member, name) double member;
  ISA_ENERGIES(X)
#undef X
  double total;
} IsaEnergy;
/* Of a cost; of fetching and issuing instructions, and of the descriptors that `dload`s among them
 * fetch; of time that passes on one core and its chip's DRAM. */
IsaEnergy isa_energy(const IsaCost *c, bool bf16, const MachineDesc *m);
IsaEnergy isa_energy_control(double instructions, double descriptors, const MachineDesc *m);
IsaEnergy isa_energy_time(double cycles, const MachineDesc *m);
void isa_energy_add(IsaEnergy *sum, const IsaEnergy *e);

/* ---- binary container ---- */

#define ISA_VERSION_MAJOR 2
#define ISA_VERSION_MINOR 0

typedef enum { IO_INPUT, IO_OUTPUT, IO_STATE } IsaIoRole;
typedef struct {
  IsaIoRole role;
  const char *name;
  DType dtype;
  int rank;
  int64_t shape[8];
  uint64_t addr; /* DRAM byte address, row-major */
} IsaIo;
/* Initialised DRAM contents; bytes beyond the last segment up to dram_bytes are zero at start. */
typedef struct {
  const char *name;
  uint64_t addr;
  uint64_t size;
  const void *data;
} IsaSegment;
typedef struct {
  const char *name;
  uint32_t insn;
} IsaSymbol; /* label */
typedef struct {
  uint32_t insn;
  uint32_t line, col;
  const char *file, *op;
  double macs; /* multiply-accumulates of the op, whatever unit does them */
} IsaSrcMap;   /* from insn up to the next entry */
typedef struct IsaImage {
  MachineDesc machine;
  uint8_t *code;
  uint32_t ninsns;
  IsaDesc *descs;
  uint32_t ndescs;
  IsaVprog *vprogs;
  uint32_t nvprogs;
  IsaSegment *segments;
  uint32_t nsegments;
  IsaIo *io;
  uint32_t nio;
  IsaSymbol *symbols;
  uint32_t nsymbols;
  IsaSrcMap *srcmap;
  uint32_t nsrcmap;
  uint64_t dram_bytes; /* DRAM the program uses, from address 0 */
  double ideal_macs_s8, ideal_macs_bf16,
      ideal_dram_bytes; /* of the model, knowing nothing of tiling: see isa/README.md, "roofline" */
  Arena *arena;
  FileMap map; /* owners of what the pointers reach */
} IsaImage;
/* The time no schedule can beat, in cycles of one core of img->machine, from the model's own work
 * (the ideal_* figures): compute, the multiplications at the machine's peak for their type; dram =
 * dram_bytes / (bytes per cycle); bound is the larger. */
typedef struct {
  double compute, dram, bound;
} IsaRoofline;
IsaRoofline isa_roofline(const IsaImage *img);
void isa_image_init(IsaImage *img); /* empty, with an arena */
void isa_image_free(IsaImage *img);
/* ELF64 through libelf; atomic. */
bool isa_image_write(const IsaImage *img, const char *path, DiagEngine *diag);
/* Checks checksum, version, every offset, size and count, every instruction, descriptor kind and
 * vector program. */
/* These and isa_assemble initialise *out themselves (do not call isa_image_init first: its arena
 * would be lost). After false *out is empty; freeing it is harmless. */
bool isa_image_read(const char *path, IsaImage *out, DiagEngine *diag);
/* Segment contents are not copied: data must live as long as the image. */
bool isa_image_read_memory(const void *data, size_t size, const char *label, IsaImage *out,
                           DiagEngine *diag);

/* ---- assembler ---- */

/* Whole images as text: .machine, .desc, .vprog, .segment, .io, labels, .loc and instructions; see
 * isa/README.md. isa_assemble(isa_disassemble(x)) writes the same bytes as x. */
bool isa_assemble(const char *text, size_t len, const char *label, IsaImage *out, DiagEngine *diag);
void isa_disassemble(const IsaImage *img, StrBuf *out);
void isa_insn_print(const IsaInsn *in, const IsaImage *img,
                    StrBuf *out);                   /* one line, labels when img is given */
void isa_desc_print(const IsaDesc *d, StrBuf *out); /* "dma rank=2 elsize=1 ..." */
/* The manual, generated from the tables (markdown). */
void isa_manual(StrBuf *out);
NPU_C_END
#endif
