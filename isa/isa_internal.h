/* Shared inside isa/ (and by its tests and fuzzers); never installed. */
#ifndef NPU_ISA_INTERNAL_H
#define NPU_ISA_INTERNAL_H
#include "isa/isa.h"

/* ---- operand kinds of the instruction table ---- */
typedef enum {
  ARG_RD,
  ARG_RS,
  ARG_RT,
  ARG_DN,
  ARG_FLD,
  ARG_IMM,
  ARG_TGT,
  ARG_VP,
  ARG_MEM,
  ARG_IDX
} IsaArg;
enum { ISA_MAX_ARGS = 3 };
typedef struct {
  int n;
  IsaArg arg[ISA_MAX_ARGS];
} IsaArgs;
/* The operand string of a row, split. */
IsaArgs isa_insn_args(IsaInsnKind k);
/* Bits operand a takes in the encoding. */
unsigned isa_arg_bits(IsaArg a);
/* Which cost function a row names. */
typedef enum {
  ISA_cost_seq,
  ISA_cost_seq_spm,
  ISA_cost_seq_dram,
  ISA_cost_dma,
  ISA_cost_mm_load,
  ISA_cost_mm_mul,
  ISA_cost_vx,
  ISA_cost_sync
} IsaCostFn;
IsaCostFn isa_insn_cost_fn(IsaInsnKind k);

/* Greatest common divisor of whole numbers; a when b is 0. */
double isa_common_divisor(double a, double b);

/* machine.def: no ideal value. No field may be negative. */
#define NONE (-1.0)

/* ---- machine text with a line offset (the .machine block of an assembly file) ---- */
bool machine_parse_at(const char *text, size_t len, const char *label, uint32_t first_line,
                      MachineDesc *out, DiagEngine *diag);

/* ---- images ---- */
/* Everything the container reader and the assembler promise about an image; reports what is wrong
 * under `label`. */
bool isa_image_check(const IsaImage *img, const char *label, DiagEngine *diag);
/* The same, with places in a text for what is wrong with tensors and segments. */
typedef struct {
  const SrcLoc *io, *segments; /* one for each */
} IsaPlaces;
bool isa_image_check_text(const IsaImage *img, const char *label, const IsaPlaces *places,
                          DiagEngine *diag);
/* The container's bytes, appended to out. */
bool isa_image_serialize(const IsaImage *img, StrBuf *out, DiagEngine *diag);
/* Puts the right checksum into a container in memory (fuzzers and tests that change bytes). False
 * when the checksum section cannot be found. */
bool isa_image_seal(uint8_t *data, size_t size);

/* ---- descriptors ---- */
const char *isa_desc_kind_name(IsaDescKind k); /* dma plane rows vector */
bool isa_desc_kind_by_name(const char *name, IsaDescKind *out);
/* Fixed place of field f in the record: byte offset, size 4 or 8, signedness. */
typedef struct {
  const char *name;
  unsigned kinds;         /* bit per IsaDescKind */
  uint8_t element, count; /* element number in an array of `count`, 1 for plain fields */
  uint16_t offset;
  uint8_t size;
  bool is_signed;
  const char *doc;
} IsaField;
bool isa_field_info(unsigned field, IsaDescKind kind, IsaField *out);

/* ---- vector micro-operations ---- */
typedef enum { IMM_ANY, IMM_FLOAT, IMM_INT } IsaImmType;
IsaImmType isa_vop_imm_type(IsaVopKind k);
/* Operand letters in order, e.g. "dab", "ds", "sa". */
const char *isa_vop_letters(IsaVopKind k, char buf[8]);
/* One micro-operation from text (no separator); appends nothing on failure. */
bool isa_vop_parse(const char *text, size_t len, IsaVop *out, char why[160]);
void isa_vop_print(const IsaVop *v, StrBuf *out);
/* Mnemonic lookup. */
bool isa_vop_by_name(const char *name, IsaVopKind *out);
#endif
