/* Inside the assembler. */
#ifndef NPU_ISA_ASM_INTERNAL_H
#define NPU_ISA_ASM_INTERNAL_H
#include "isa/isa_internal.h"

typedef enum { TOK_END, TOK_WORD, TOK_NUMBER, TOK_STRING, TOK_PUNCT } TokKind;
typedef struct {
  TokKind kind;
  uint32_t col, end_col;
  char punct;
  const char *text; /* word, number or unescaped string: NUL-terminated, until the next line */
  size_t len;
} Tok;

/* An instruction before labels are resolved. */
typedef struct {
  IsaInsn in;
  const char *label; /* jump target by name, or NULL */
  SrcLoc loc;
} AsmInsn;

typedef struct {
  IsaSegment segment;
  SrcLoc loc;
} AsmSegment;

typedef struct AsmLabel AsmLabel;
typedef struct {
  const char *pos, *end; /* text not yet read */
  const char *line_text; /* the current line */
  uint32_t line;
  const char *label; /* name of the text */
  DiagEngine *diag;
  unsigned errors;
  Tok tok;      /* the current token */
  Arena *arena; /* of the image */
  IsaImage *img;
  Arena *scratch; /* token text and names of jump targets */
  StrBuf insns, descs, vprogs, segments /* AsmSegment */, io, symbols,
      srcmap;              /* arrays of their records */
  struct AsmLabel *labels; /* uthash */
  StrBuf io_places;        /* SrcLoc of each .io */
  bool have_machine, have_dram, have_roofline;
} Asm;

enum { ASM_MAX_ERRORS = 20 };
enum {
  ASM_ZERO_MAX = 1 << 20
}; /* bytes of one .zero line, so that text cannot ask for memory it does not pay for */
#define ASM_PUSH(buf, record) strbuf_write(&(buf), &(record), sizeof(record))
#define ASM_COUNT(buf, T) ((uint32_t)((buf).len / sizeof(T)))

/* Lexer. next_line makes the first token of the following line current; false at the end of the
 * text. */
bool asm_next_line(Asm *a);
void asm_next(Asm *a);
/* The current line from the current token on, without comment; moves to its end. */
const char *asm_rest(Asm *a, size_t *len);
SrcLoc asm_loc(const Asm *a);
/* Reports at the current token; always false. */
bool asm_error(Asm *a, const char *fmt, ...) NPU_PRINTF(2, 3);
bool asm_error_at(Asm *a, SrcLoc loc, const char *fmt, ...) NPU_PRINTF(3, 4);
bool asm_is_word(const Asm *a, const char *word);
bool asm_accept(Asm *a, char punct);
/* These report what they expected. */
bool asm_expect(Asm *a, char punct);
bool asm_int(Asm *a, int64_t lo, int64_t hi, const char *what, int64_t *out);
bool asm_real(Asm *a, const char *what, double *out);
bool asm_string(Asm *a, const char *what, const char **out); /* kept in the image's arena */
bool asm_expect_end(Asm *a);

bool asm_instruction(Asm *a); /* asm_insn.c; the current token is the mnemonic */
bool asm_desc(Asm *a);        /* asm_desc.c; after ".desc" */
bool asm_vprog(Asm *a);       /* asm_desc.c; after ".vprog" */
bool asm_segment(Asm *a);     /* asm_data.c; after ".segment" */
#endif
