/* The instruction table and the 16-byte encoding. The layout is described at the top of isa.def. */
#include "isa/isa_internal.h"
#include <string.h>

enum { SEM_BITS = 10, SEM_BASE = 16, ARG_BASE = 56 };

static const IsaInsnInfo insns[INSN_COUNT] = {
#define INSN(e, name, engine, opcode, flags, mask, operands, cost, doc)                            \
  [INSN_##e] = {name, ENGINE_##engine, opcode, flags, mask, operands, doc},
#include "isa/isa.def"
#undef INSN
};
static const IsaCostFn cost_fns[INSN_COUNT] = {
#define INSN(e, name, engine, opcode, flags, mask, operands, cost, doc) [INSN_##e] = ISA_##cost,
#include "isa/isa.def"
#undef INSN
};
static const struct {
  const char *name;
  unsigned bits;
} arg_kinds[] = {[ARG_RD] = {"rd", 5},    [ARG_RS] = {"rs", 5},   [ARG_RT] = {"rt", 5},
                 [ARG_DN] = {"dn", 6},    [ARG_FLD] = {"fld", 8}, [ARG_IMM] = {"imm", 48},
                 [ARG_TGT] = {"tgt", 32}, [ARG_VP] = {"vp", 16},  [ARG_MEM] = {"mem", 37},
                 [ARG_IDX] = {"idx", 32}};

const char *isa_engine_name(IsaEngine e) {
  static const char *const names[] = {
#define X(en, n) [ENGINE_##en] = n,
      ISA_ENGINES(X)
#undef X
  };
  return e < ENGINE_COUNT ? names[e] : "?";
}

const IsaInsnInfo *isa_insn_info(IsaInsnKind k) {
  return k < INSN_COUNT ? &insns[k] : NULL;
}
IsaCostFn isa_insn_cost_fn(IsaInsnKind k) {
  return cost_fns[k];
}
unsigned isa_arg_bits(IsaArg a) {
  return arg_kinds[a].bits;
}

bool isa_insn_by_name(const char *mnemonic, IsaInsnKind *out) {
  for (unsigned k = 0; k < INSN_COUNT; k++)
    if (strcmp(insns[k].mnemonic, mnemonic) == 0) {
      *out = (IsaInsnKind)k;
      return true;
    }
  return false;
}

IsaArgs isa_insn_args(IsaInsnKind k) {
  IsaArgs r = {0};
  const char *s = insns[k].operands;
  while (*s && r.n < ISA_MAX_ARGS) {
    size_t len = strcspn(s, ", ");
    for (unsigned a = 0; a < NPU_COUNTOF(arg_kinds); a++)
      if (strlen(arg_kinds[a].name) == len && memcmp(arg_kinds[a].name, s, len) == 0)
        r.arg[r.n++] = (IsaArg)a;
    s += len;
    s += strspn(s, ", ");
  }
  return r;
}

static void put_bits(uint8_t *p, unsigned pos, unsigned width, uint64_t v) {
  for (unsigned i = 0; i < width; i++)
    if (v >> i & 1) p[(pos + i) / 8] = (uint8_t)(p[(pos + i) / 8] | 1u << (pos + i) % 8);
}
static uint64_t get_bits(const uint8_t *p, unsigned pos, unsigned width) {
  uint64_t v = 0;
  for (unsigned i = 0; i < width; i++) v |= (uint64_t)(p[(pos + i) / 8] >> (pos + i) % 8 & 1) << i;
  return v;
}
static int64_t sign_extend(uint64_t v, unsigned width) {
  uint64_t top = (uint64_t)1 << (width - 1);
  return (int64_t)((v ^ top) - top);
}
static bool fits_signed(int64_t v, unsigned width) {
  return v >= -((int64_t)1 << (width - 1)) && v < (int64_t)1 << (width - 1);
}
static bool refuse(const char **why, const char *text) {
  if (why) *why = text;
  return false;
}

/* Which semaphore references a row may carry: engine instructions all four, of the sequencer's only
 * take (takes) and give (gives). */
static bool may_take(IsaInsnKind k) {
  return insns[k].engine != ENGINE_SEQ || k == INSN_TAKE;
}
static bool may_give(IsaInsnKind k) {
  return insns[k].engine != ENGINE_SEQ || k == INSN_GIVE;
}

/* Rules on operand values beyond their width; shared by encoder and decoder. */
static bool check_values(const IsaInsn *in, const char **why) {
  if ((in->kind == INSN_SHL || in->kind == INSN_SHR) && (in->imm < 0 || in->imm > 63))
    return refuse(why, "imm: a shift amount is 0..63");
  switch (in->kind) {
  case INSN_DSET:
  case INSN_DSETI:
  case INSN_DADD:
  case INSN_DADDI:
    if (in->field >= isa_field_count()) return refuse(why, "fld: no such descriptor field");
    break;
  default: break;
  }
  const IsaSemRef *refs[2] = {in->take, in->give};
  for (int g = 0; g < 2; g++) {
    bool used = refs[g][0].count || refs[g][1].count;
    if (used && !(g ? may_give(in->kind) : may_take(in->kind)))
      return refuse(why, g ? "give: this sequencer instruction gives nothing"
                           : "take: this sequencer instruction takes nothing");
  }
  return true;
}

static bool encode_arg(const IsaInsn *in, IsaArg a, uint8_t *out, unsigned pos, const char **why) {
  unsigned width = arg_kinds[a].bits;
  switch (a) {
  case ARG_RD:
  case ARG_RS:
  case ARG_RT: {
    uint8_t r = a == ARG_RD ? in->rd : a == ARG_RS ? in->rs : in->rt;
    if (r >= ISA_REGS)
      return refuse(why, a == ARG_RD   ? "rd: registers are r0..r31"
                         : a == ARG_RS ? "rs: registers are r0..r31"
                                       : "rt: registers are r0..r31");
    put_bits(out, pos, width, r);
    return true;
  }
  case ARG_DN:
    if (in->dn >= ISA_DESCS) return refuse(why, "dn: descriptor registers are d0..d63");
    put_bits(out, pos, width, in->dn);
    return true;
  case ARG_FLD: put_bits(out, pos, width, in->field); return true;
  case ARG_IMM:
    if (!fits_signed(in->imm, 48)) return refuse(why, "imm: does not fit in 48 signed bits");
    put_bits(out, pos, width, (uint64_t)in->imm);
    return true;
  case ARG_TGT:
  case ARG_IDX: put_bits(out, pos, width, in->target); return true;
  case ARG_VP: put_bits(out, pos, width, in->vp); return true;
  case ARG_MEM:
    if (in->rs >= ISA_REGS) return refuse(why, "rs: registers are r0..r31");
    if (!fits_signed(in->imm, 32)) return refuse(why, "mem: offset does not fit in 32 signed bits");
    put_bits(out, pos, 5, in->rs);
    put_bits(out, pos + 5, 32, (uint64_t)in->imm);
    return true;
  }
  return false;
}

/* Semaphore references are stored without holes: the first used one comes first. */
static bool encode_sems(const IsaInsn *in, uint8_t *out, const char **why) {
  for (unsigned g = 0; g < 2; g++) {
    const IsaSemRef *ref = g ? in->give : in->take;
    unsigned slot = 2 * g;
    for (unsigned i = 0; i < 2; i++) {
      if (ref[i].count == 0) continue;
      if (ref[i].sem >= ISA_SEMS) return refuse(why, "semaphores are s0..s63");
      if (ref[i].count > ISA_SEM_COUNT_MAX)
        return refuse(why, "a semaphore count of one instruction is at most 15");
      put_bits(out, SEM_BASE + SEM_BITS * slot++, SEM_BITS,
               ref[i].sem | (uint64_t)ref[i].count << 6);
    }
  }
  return true;
}

bool isa_encode(const IsaInsn *in, uint8_t out[16], const char **why) {
  memset(out, 0, ISA_INSN_BYTES);
  if (in->kind >= INSN_COUNT) return refuse(why, "no such instruction");
  if (!check_values(in, why)) return false;
  out[0] = insns[in->kind].opcode;
  out[1] = insns[in->kind].flags;
  if (!encode_sems(in, out, why)) return false;
  IsaArgs args = isa_insn_args(in->kind);
  unsigned pos = ARG_BASE;
  for (int i = 0; i < args.n; i++) {
    if (!encode_arg(in, args.arg[i], out, pos, why)) return false;
    pos += arg_kinds[args.arg[i]].bits;
  }
  return true;
}

static bool decode_sems(const uint8_t *in, IsaInsn *out, const char **why) {
  for (unsigned i = 0; i < 4; i++) {
    uint64_t v = get_bits(in, SEM_BASE + SEM_BITS * i, SEM_BITS);
    IsaSemRef *ref = i < 2 ? &out->take[i] : &out->give[i - 2];
    ref->sem = (uint8_t)(v & 63);
    ref->count = (uint8_t)(v >> 6);
    if (ref->count == 0 && ref->sem != 0)
      return refuse(why, "a semaphore reference without a count names a semaphore");
    if (i % 2 == 1 && ref->count != 0 && ref[-1].count == 0)
      return refuse(why, "the second semaphore reference is used but not the first");
  }
  return true;
}

static void decode_arg(const uint8_t *in, IsaArg a, unsigned pos, IsaInsn *out) {
  uint64_t v = get_bits(in, pos, arg_kinds[a].bits);
  switch (a) {
  case ARG_RD: out->rd = (uint8_t)v; break;
  case ARG_RS: out->rs = (uint8_t)v; break;
  case ARG_RT: out->rt = (uint8_t)v; break;
  case ARG_DN: out->dn = (uint8_t)v; break;
  case ARG_FLD: out->field = (uint8_t)v; break;
  case ARG_IMM: out->imm = sign_extend(v, 48); break;
  case ARG_TGT:
  case ARG_IDX: out->target = (uint32_t)v; break;
  case ARG_VP: out->vp = (uint16_t)v; break;
  case ARG_MEM:
    out->rs = (uint8_t)(v & 31);
    out->imm = sign_extend(v >> 5, 32);
    break;
  }
}

bool isa_decode(const uint8_t in[16], IsaInsn *out, const char **why) {
  memset(out, 0, sizeof *out);
  unsigned k = 0;
  bool opcode_known = false;
  for (; k < INSN_COUNT; k++) {
    if (insns[k].opcode != in[0]) continue;
    opcode_known = true;
    if ((in[1] & insns[k].flags_mask) == insns[k].flags && (in[1] & ~insns[k].flags_mask) == 0)
      break;
  }
  if (k == INSN_COUNT)
    return refuse(why, opcode_known ? "unknown flags for this opcode" : "unknown opcode");
  out->kind = (IsaInsnKind)k;
  if (!decode_sems(in, out, why)) return false;
  IsaArgs args = isa_insn_args(out->kind);
  unsigned pos = ARG_BASE;
  for (int i = 0; i < args.n; i++) {
    decode_arg(in, args.arg[i], pos, out);
    pos += arg_kinds[args.arg[i]].bits;
  }
  for (; pos < 128; pos++)
    if (in[pos / 8] >> pos % 8 & 1) return refuse(why, "bits after the operands are not zero");
  return check_values(out, why);
}
