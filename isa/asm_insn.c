/* One instruction: mnemonic, operands, take and give. */
#include "isa/asm_internal.h"
#include <ctype.h>
#include <string.h>

static bool numbered(const char *text, char prefix, unsigned limit, uint8_t *out) {
  if (text[0] != prefix || !isdigit((unsigned char)text[1]) || (text[1] == '0' && text[2]))
    return false;
  int64_t v;
  if (!parse_i64(text + 1, &v) || v < 0 || v >= limit) return false;
  *out = (uint8_t)v;
  return true;
}

static bool reg(Asm *a, char prefix, unsigned limit, const char *what, uint8_t *out) {
  if (a->tok.kind != TOK_WORD || !numbered(a->tok.text, prefix, limit, out))
    return asm_error(a, "expected %s, found '%s'", what, a->tok.text);
  asm_next(a);
  return true;
}

static bool field_of(Asm *a, IsaInsn *in, const char *name) {
  if (isa_field_by_name(DESC_NONE, name, &in->field)) return true;
  char buf[24];
  static const size_t max = 256;
  const char *all[256];
  Arena *s = a->scratch;
  size_t n = isa_field_count();
  for (size_t i = 0; i < n && i < max; i++)
    all[i] = arena_strdup(s, isa_field_name((uint8_t)i, buf));
  const char *near = str_nearest(name, all, n);
  return asm_error(a, "unknown descriptor field '%s'%s%s%s", name, near ? ", did you mean '" : "",
                   near ? near : "", near ? "'?" : "");
}

/* d3, or d3.coord.1 when a field is wanted. */
static bool desc_operand(Asm *a, IsaInsn *in, bool with_field) {
  const char *what =
      with_field ? "a descriptor field such as d3.size.0" : "a descriptor register d0..d63";
  if (a->tok.kind != TOK_WORD) return asm_error(a, "expected %s", what);
  char name[8] = {0};
  const char *dot = strchr(a->tok.text, '.');
  size_t len = dot ? (size_t)(dot - a->tok.text) : a->tok.len;
  if (len < sizeof name) memcpy(name, a->tok.text, len);
  if (!numbered(name, 'd', ISA_DESCS, &in->dn) || (dot != NULL) != with_field)
    return asm_error(a, "expected %s, found '%s'", what, a->tok.text);
  if (with_field && !field_of(a, in, dot + 1)) return false;
  asm_next(a);
  return true;
}

/* A label, or @N for instruction number N. */
static bool target_operand(Asm *a, AsmInsn *out) {
  int64_t v;
  if (asm_accept(a, '@')) {
    if (!asm_int(a, 0, UINT32_MAX, "an instruction number", &v)) return false;
    out->in.target = (uint32_t)v;
    return true;
  }
  if (a->tok.kind != TOK_WORD && a->tok.kind != TOK_STRING)
    return asm_error(a, "expected a label, or @ and an instruction number");
  out->label = a->tok.text;
  asm_next(a);
  return true;
}

/* [r2 + 16], [r2 - 4], [r2] */
static bool mem_operand(Asm *a, IsaInsn *in) {
  if (!asm_expect(a, '[') || !reg(a, 'r', ISA_REGS, "a scalar register r0..r31", &in->rs))
    return false;
  bool minus = false;
  if (!asm_accept(a, '+')) minus = asm_accept(a, '-');
  if (a->tok.kind == TOK_NUMBER) {
    if (!asm_int(a, INT32_MIN, INT32_MAX, "an offset", &in->imm)) return false;
    if (minus) in->imm = -in->imm;
  }
  return asm_expect(a, ']');
}

static bool operand(Asm *a, IsaArg arg, bool with_field, AsmInsn *out) {
  IsaInsn *in = &out->in;
  int64_t v = 0;
  uint8_t *r = arg == ARG_RD ? &in->rd : arg == ARG_RS ? &in->rs : &in->rt;
  switch (arg) {
  case ARG_RD:
  case ARG_RS:
  case ARG_RT: return reg(a, 'r', ISA_REGS, "a scalar register r0..r31", r);
  case ARG_DN: return desc_operand(a, in, with_field);
  case ARG_FLD: return true; /* read with the register */
  case ARG_IMM:
    return asm_int(a, -((int64_t)1 << 47), ((int64_t)1 << 47) - 1, "an immediate", &in->imm);
  case ARG_TGT: return target_operand(a, out);
  case ARG_MEM: return mem_operand(a, in);
  case ARG_IDX:
    if (!asm_int(a, 0, UINT32_MAX, "a descriptor number", &v)) return false;
    in->target = (uint32_t)v;
    return true;
  case ARG_VP:
    if (a->tok.kind != TOK_WORD || a->tok.text[0] != 'p' ||
        !isdigit((unsigned char)a->tok.text[1]) || !parse_i64(a->tok.text + 1, &v) ||
        v > UINT16_MAX)
      return asm_error(a, "expected a vector program p0..p65535, found '%s'", a->tok.text);
    in->vp = (uint16_t)v;
    asm_next(a);
    return true;
  }
  return false;
}

/* s1:2, s4 (count 1) */
static bool sem_list(Asm *a, IsaSemRef refs[2], const char *what) {
  for (int i = 0;; i++) {
    int64_t count = 1;
    if (i == 2) return asm_error(a, "an instruction can %s at most two semaphores", what);
    if (!reg(a, 's', ISA_SEMS, "a semaphore s0..s63", &refs[i].sem)) return false;
    if (asm_accept(a, ':') && !asm_int(a, 1, ISA_SEM_COUNT_MAX, "a semaphore count", &count))
      return false;
    refs[i].count = (uint8_t)count;
    if (!asm_accept(a, ',')) return true;
  }
}

static bool clauses(Asm *a, IsaInsn *in) {
  while (a->tok.kind == TOK_WORD) {
    bool take = asm_is_word(a, "take");
    if (!take && !asm_is_word(a, "give")) break;
    IsaSemRef *refs = take ? in->take : in->give;
    if (refs[0].count) return asm_error(a, "'%s' is written twice", a->tok.text);
    asm_next(a);
    if (!sem_list(a, refs, take ? "take" : "give")) return false;
  }
  return asm_expect_end(a);
}

static bool unknown(Asm *a) {
  static const char *const directives[] = {".machine", ".dram", ".roofline", ".io",
                                           ".segment", ".desc", ".vprog",    ".loc"};
  const char *all[INSN_COUNT + NPU_COUNTOF(directives)];
  size_t n = 0;
  for (; n < INSN_COUNT; n++) all[n] = isa_insn_info((IsaInsnKind)n)->mnemonic;
  for (size_t i = 0; i < NPU_COUNTOF(directives); i++) all[n++] = directives[i];
  const char *near = str_nearest(a->tok.text, all, n);
  return asm_error(a, "unknown %s '%s'%s%s%s", a->tok.text[0] == '.' ? "directive" : "instruction",
                   a->tok.text, near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

bool asm_instruction(Asm *a) {
  AsmInsn out = {.loc = asm_loc(a)};
  if (a->tok.kind != TOK_WORD || !isa_insn_by_name(a->tok.text, &out.in.kind)) return unknown(a);
  /* The sequencer's own take and give: the mnemonic is the clause. */
  bool is_clause = out.in.kind == INSN_TAKE || out.in.kind == INSN_GIVE;
  if (!is_clause) asm_next(a);
  IsaArgs args = isa_insn_args(out.in.kind);
  for (int i = 0; i < args.n; i++) {
    bool with_field = i + 1 < args.n && args.arg[i + 1] == ARG_FLD;
    if (i > 0 && args.arg[i] != ARG_FLD && !asm_expect(a, ',')) return false;
    if (!operand(a, args.arg[i], with_field, &out)) return false;
  }
  if (!clauses(a, &out.in)) return false;
  uint8_t bytes[ISA_INSN_BYTES];
  const char *why = "";
  if (!isa_encode(&out.in, bytes, &why))
    return asm_error_at(a, out.loc, "%s: %s", isa_insn_info(out.in.kind)->mnemonic, why);
  ASM_PUSH(a->insns, out);
  return true;
}
