/* The binary's sections, shared by writer and reader; described in isa/README.md, "container". */
#ifndef NPU_ISA_CONTAINER_H
#define NPU_ISA_CONTAINER_H
#include "isa/isa_internal.h"

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__,
               "records are copied as they are in memory");

/* SECTION(enum, name): in file order; .data last, so that constants go out without a copy. */
#define CONTAINER_SECTIONS(X)                                                                      \
  X(NOTE, ".note.npucc")                                                                           \
  X(SUM, ".npu.sum")                                                                               \
  X(MACHINE, ".npu.machine")                                                                       \
  X(PROGRAM, ".npu.program")                                                                       \
  X(TEXT, ".text")                                                                                 \
  X(DESC, ".npu.desc")                                                                             \
  X(VPROG, ".npu.vprog")                                                                           \
  X(IO, ".npu.io")                                                                                 \
  X(SEG, ".npu.seg")                                                                               \
  X(SRCMAP, ".npu.srcmap")                                                                         \
  X(SYMTAB, ".symtab")                                                                             \
  X(STRTAB, ".strtab")                                                                             \
  X(SHSTRTAB, ".shstrtab")                                                                         \
  X(DATA, ".data")
typedef enum {
#define X(e, n) SEC_##e,
  CONTAINER_SECTIONS(X)
#undef X
      SEC_COUNT
} ContainerSection;

enum {
  NPU_ELF_MACHINE = 0x4e50 /* "NP" */,
  NOTE_TYPE_VERSION = 1,
  DATA_ALIGN = 64,
  MAX_SECTIONS = 64
};
#define NPU_NOTE_NAME "npucc"

typedef struct {
  uint32_t namesz, descsz, type;
  char name[8]; /* "npucc", NUL padded */
  uint32_t major, minor;
} NoteRecord;
typedef struct {
  uint64_t dram_bytes;
  double macs_s8, macs_bf16, dram_traffic;
} ProgramRecord;
typedef struct {
  uint32_t role, dtype, rank, name; /* name: offset in .strtab */
  uint64_t addr;
  int64_t shape[8];
} IoRecord;
typedef struct {
  uint32_t name, zero;
  uint64_t addr, size, offset; /* offset in .data */
} SegRecord;
typedef struct {
  uint32_t insn, line, col, file, op, zero;
  double macs;
} SrcMapRecord;
typedef struct {
  uint32_t n, zero; /* followed by n micro-operations of 8 bytes */
} VprogRecord;
_Static_assert(sizeof(NoteRecord) == 28 && sizeof(ProgramRecord) == 32 && sizeof(IoRecord) == 88 &&
                   sizeof(SegRecord) == 32 && sizeof(SrcMapRecord) == 32,
               "records have no padding");
#endif
