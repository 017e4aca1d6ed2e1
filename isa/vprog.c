/* Vector micro-operations: table, 8-byte encoding, structure check.
 *
 * Encoding, a little-endian 64-bit word: bits 0..7 code | 8..12 destination | 13..18 a | 19..24 b |
 * 25..30 c, or the stream of ld and st | 31 zero | 32..63 immediate. */
#include "isa/isa_internal.h"
#include <string.h>

static const IsaVopInfo vops[VOP_COUNT] = {
#define VOP(e, name, code, operands, unit, doc)                                                    \
  [VOP_##e] = {name, code, operands, UNIT_##unit, doc},
#include "isa/vops.def"
#undef VOP
};

const IsaVopInfo *isa_vop_info(IsaVopKind k) {
  return k < VOP_COUNT ? &vops[k] : NULL;
}

bool isa_vop_by_name(const char *name, IsaVopKind *out) {
  for (unsigned k = 0; k < VOP_COUNT; k++)
    if (strcmp(vops[k].mnemonic, name) == 0) {
      *out = (IsaVopKind)k;
      return true;
    }
  return false;
}

const char *isa_vop_letters(IsaVopKind k, char buf[8]) {
  size_t n = 0;
  for (const char *s = vops[k].operands; *s && n < 7; s++)
    if (*s != ',' && *s != ' ') buf[n++] = *s;
  buf[n] = 0;
  return buf;
}

IsaImmType isa_vop_imm_type(IsaVopKind k) {
  if (k == VOP_CVT_IF || k == VOP_CVT_BF) return IMM_FLOAT;
  if (k == VOP_CVT_FI) return IMM_INT;
  if (str_ends_with(vops[k].mnemonic, ".f")) return IMM_FLOAT;
  if (str_ends_with(vops[k].mnemonic, ".i")) return IMM_INT;
  return IMM_ANY;
}

static bool is_vreg(uint8_t a) {
  return a < ISA_VREGS;
}
static bool is_rreg(uint8_t a) {
  return a >= VARG_R0 && a < VARG_R0 + ISA_RREGS;
}

void isa_vop_encode(const IsaVop *v, uint8_t out[8]) {
  char buf[8];
  const char *l = isa_vop_letters((IsaVopKind)v->op, buf);
  uint64_t w = vops[v->op].code;
  bool imm = false;
  for (; *l; l++) {
    uint64_t a = *l == 'a' ? v->a : *l == 'b' ? v->b : *l == 'c' ? v->c : 0;
    imm = imm || a == VARG_IMM;
    switch (*l) {
    case 'd': w |= (uint64_t)(v->dst & 31) << 8; break;
    case 'a': w |= (a & 63) << 13; break;
    case 'b': w |= (a & 63) << 19; break;
    case 'c': w |= (a & 63) << 25; break;
    case 's': w |= (uint64_t)(v->stream & 7) << 25; break;
    default: break;
    }
  }
  if (imm) w |= (uint64_t)v->imm << 32;
  for (unsigned i = 0; i < 8; i++) out[i] = (uint8_t)(w >> (8 * i));
}

bool isa_vop_decode(const uint8_t in[8], IsaVop *out) {
  uint64_t w = 0;
  for (unsigned i = 0; i < 8; i++) w |= (uint64_t)in[i] << (8 * i);
  memset(out, 0, sizeof *out);
  unsigned k = 0;
  while (k < VOP_COUNT && vops[k].code != (w & 255)) k++;
  if (k == VOP_COUNT) return false;
  out->op = (uint8_t)k;
  char buf[8];
  bool imm = false;
  for (const char *l = isa_vop_letters((IsaVopKind)k, buf); *l; l++) {
    unsigned shift = *l == 'a' ? 13 : *l == 'b' ? 19 : 25;
    uint8_t v = (uint8_t)(w >> shift & 63);
    switch (*l) {
    case 'd':
      out->dst = (uint8_t)(w >> 8 & 31);
      if (out->dst >= VARG_R0 + ISA_RREGS) return false;
      continue;
    case 's':
      if (v >= ISA_STREAMS) return false;
      out->stream = v;
      continue;
    case 'a': out->a = v; break;
    case 'b': out->b = v; break;
    default: out->c = v; break;
    }
    if (!is_vreg(v) && !is_rreg(v) && v != VARG_IMM) return false;
    imm = imm || v == VARG_IMM;
  }
  if (imm) out->imm = (uint32_t)(w >> 32);
  uint8_t again[8];
  isa_vop_encode(out, again); /* unused bits must be zero */
  return memcmp(again, in, 8) == 0;
}

/* ---- structure ---- */

/* Sections and streams have their meaning in walks: here, in cost.c, and in
 * vx_use.c, vx_emit.c and check_access.c of runtime/. Another row of these units needs its place in
 * each. */
enum {
#define ROW_ALU
#define ROW_SFU
#define ROW_DIV
#define ROW_EXP
#define ROW_SIN
#define ROW_RED
#define ROW_SUM
#define ROW_LOAD +1
#define ROW_STORE +1
#define ROW_CTL +1
  WALKED = 0
#define VOP(e, mnemonic, code, operands, unit, doc) ROW_##unit
#include "isa/vops.def"
#undef VOP
};
_Static_assert(WALKED == 6, "vec endv red endr ld st: walks know no other section or stream");

typedef struct {
  bool in_vec, in_red, red_done;
  uint32_t v_known;   /* v registers written in this pass */
  uint32_t v_pending; /* v registers this red section sums into, complete at endr */
  uint32_t r_known;   /* r registers written so far in the row */
  uint32_t r_pending; /* r registers this pass reduces into, complete at endv */
  int nstreams;
} CheckState;

static bool refuse(const char **why, const char *text) {
  if (why) *why = text;
  return false;
}

static bool check_source(const CheckState *s, uint8_t a, const char **why) {
  if (a == VARG_IMM) return true;
  if (is_rreg(a)) {
    uint32_t bit = 1u << (a - VARG_R0);
    if (s->r_pending & bit)
      return refuse(why,
                    "a row reduction's result is read before its pass ends; read it after endv");
    if (!(s->r_known & bit)) return refuse(why, "an r register is read before it is written");
    return true;
  }
  if (!is_vreg(a)) return refuse(why, "an operand is not a register or an immediate");
  if (!s->in_vec) return refuse(why, "a v register is read outside vec..endv");
  if (s->v_pending >> a & 1)
    return refuse(why, "a sum over the reduction loops is read before its red section ends; read "
                       "it after endr");
  if (!(s->v_known >> a & 1))
    return refuse(why, "a v register is read before it is written in its pass");
  return true;
}

/* Destinations of reductions have their value where the section ends. */
static bool check_row_reduction(CheckState *s, const IsaVop *v, const char **why) {
  if (!s->in_vec) return refuse(why, "a row reduction stands outside vec..endv");
  if (!is_rreg(v->dst)) return refuse(why, "a row reduction's destination is an r register");
  uint32_t bit = 1u << (v->dst - VARG_R0);
  if (s->r_pending & bit)
    return refuse(why, "two row reductions of one pass have the same destination");
  s->r_pending |= bit;
  return true;
}

static bool check_loop_sum(CheckState *s, const IsaVop *v, const char **why) {
  if (!s->in_red) return refuse(why, "a sum over the reduction loops stands outside red..endr");
  if (!is_vreg(v->dst))
    return refuse(why, "the destination of a sum over the reduction loops is a v register");
  if (s->v_pending >> v->dst & 1)
    return refuse(why, "two sums of one red section have the same destination");
  s->v_pending |= 1u << v->dst;
  return true;
}

static bool check_dest(CheckState *s, const IsaVop *v, const char **why) {
  if (vops[v->op].unit == UNIT_RED) return check_row_reduction(s, v, why);
  if (vops[v->op].unit == UNIT_SUM) return check_loop_sum(s, v, why);
  if (s->in_vec) {
    if (!is_vreg(v->dst)) return refuse(why, "inside vec..endv a destination is a v register");
    if (s->v_pending >> v->dst & 1)
      return refuse(why,
                    "the destination of a sum over the reduction loops is written before endr");
    s->v_known |= 1u << v->dst;
  } else {
    if (!is_rreg(v->dst)) return refuse(why, "outside vec..endv a destination is an r register");
    s->r_known |= 1u << (v->dst - VARG_R0);
  }
  return true;
}

static bool check_section(CheckState *s, IsaVopKind op, const char **why) {
  switch (op) {
  case VOP_VEC:
    if (s->in_vec) return refuse(why, "vec inside vec");
    s->in_vec = true;
    s->red_done = false;
    s->v_known = 0;
    return true;
  case VOP_ENDV:
    if (!s->in_vec || s->in_red) return refuse(why, "endv without vec, or inside red");
    s->in_vec = false;
    s->r_known |= s->r_pending;
    s->r_pending = 0;
    return true;
  case VOP_RED:
    if (!s->in_vec || s->in_red) return refuse(why, "red outside vec, or inside red");
    if (s->red_done) return refuse(why, "a pass has at most one red section");
    s->in_red = true;
    return true;
  default:
    if (!s->in_red) return refuse(why, "endr without red");
    s->in_red = false;
    s->red_done = true;
    s->v_known |= s->v_pending;
    s->v_pending = 0;
    return true;
  }
}

static bool check_op(CheckState *s, const IsaVop *v, const char **why) {
  if (v->op >= VOP_COUNT) return refuse(why, "unknown micro-operation");
  if (vops[v->op].unit == UNIT_CTL) return check_section(s, (IsaVopKind)v->op, why);
  char buf[8];
  const char *letters = isa_vop_letters((IsaVopKind)v->op, buf);
  for (const char *l = letters; *l; l++) {
    if (*l == 's' && v->stream >= s->nstreams)
      return refuse(why, "a stream number is not below the descriptor's stream count");
    if ((*l == 'a' && !check_source(s, v->a, why)) || (*l == 'b' && !check_source(s, v->b, why)) ||
        (*l == 'c' && !check_source(s, v->c, why)))
      return false;
  }
  return strchr(letters, 'd') == NULL || check_dest(s, v, why);
}

bool isa_vprog_check(const IsaVprog *p, int nstreams, const char **why) {
  if (p->n < 1 || p->n > ISA_VPROG_MAX)
    return refuse(why, "a vector program has 1..64 micro-operations");
  CheckState s = {.nstreams = nstreams};
  for (int i = 0; i < p->n; i++)
    if (!check_op(&s, &p->ops[i], why)) return false;
  if (s.in_vec) return refuse(why, "vec without endv");
  return true;
}
