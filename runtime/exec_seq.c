/* Sequencer instructions and the dispatch table. Semaphores and fences are the run modes' business;
 * here is what an instruction does once it may. */
#include "runtime/runtime_internal.h"
#include <string.h>

typedef bool (*Sem)(NpurtModel *, const IsaInsn *, const IsaDesc *);
static const Sem sems[INSN_COUNT] = {
#define INSN(e, ...) [INSN_##e] = sem_##e,
#include "isa/isa.def"
#undef INSN
};

bool rt_execute(NpurtModel *m, const IsaInsn *in, const IsaDesc *d) {
  return sems[in->kind](m, in, d);
}

static IsaDescKind desc_kind_of(IsaInsnKind k) {
  switch (isa_insn_info(k)->engine) {
  case ENGINE_LD0:
  case ENGINE_LD1:
  case ENGINE_ST: return DESC_DMA;
  case ENGINE_MXW: return DESC_PLANE;
  case ENGINE_MXM: return DESC_ROWS;
  case ENGINE_VPU: return DESC_VECTOR;
  case ENGINE_SEQ:
  case ENGINE_NET:
  case ENGINE_COUNT: break;
  }
  return DESC_NONE;
}

const IsaDesc *rt_desc(const NpurtModel *m, const IsaInsn *in) {
  return m->desc_used[in->kind] ? &m->dev.desc[in->dn] : NULL;
}

bool rt_desc_check(NpurtModel *m, const IsaInsn *in, const IsaDesc *d) {
  static const char *const names[] = {"no", "a DMA", "a plane", "a rows", "a vector"};
  const char *why;
  if (!d) return true;
  IsaDescKind want = desc_kind_of(in->kind);
  if (d->kind != want)
    return rt_trap(
        m, "E-desc",
        "descriptor register d%u holds %s descriptor, the instruction needs %s descriptor", in->dn,
        names[d->kind], names[want]);
  if (!m->dev.desc_checked[in->dn] && !isa_desc_check(d, &m->img.machine, &why))
    return rt_trap(m, "E-desc", "the descriptor is refused: %s", why);
  m->dev.desc_checked[in->dn] = true;
  if (in->kind != INSN_VX) return true;
  if (in->vp >= m->img.nvprogs)
    return rt_trap(m, "E-bounds", "vector program %u is not among the binary's %u", in->vp,
                   m->img.nvprogs);
  if (m->vprog_streams[in->vp] > d->nstreams)
    return rt_trap(m, "E-desc", "vector program %u uses %u streams, the descriptor has %u", in->vp,
                   m->vprog_streams[in->vp], d->nstreams);
  return true;
}

#define ARGS NpurtModel *m, const IsaInsn *in, const IsaDesc *d
#define UNUSED ((void)m, (void)in, (void)d)
#define R(n) (m->dev.regs[n])

/* Arithmetic wraps at 64 bits. */
static bool set(NpurtModel *m, const IsaInsn *in, uint64_t value) {
  R(in->rd) = (int64_t)value;
  return true;
}
#define U(n) ((uint64_t)R(n))
#define SCALAR(name, value)                                                                        \
  bool sem_##name(ARGS) {                                                                          \
    (void)d;                                                                                       \
    return set(m, in, (uint64_t)(value));                                                          \
  }
SCALAR(LI, in->imm)
SCALAR(MOV, U(in->rs))
SCALAR(ADD, U(in->rs) + U(in->rt))
SCALAR(ADDI, U(in->rs) + (uint64_t)in->imm)
SCALAR(SUB, U(in->rs) - U(in->rt))
SCALAR(MUL, U(in->rs) * U(in->rt))
SCALAR(MULI, U(in->rs) * (uint64_t)in->imm)
SCALAR(SHL, U(in->rs) << (in->imm & 63))
SCALAR(SHR, R(in->rs) >> (in->imm & 63))
SCALAR(AND, U(in->rs) & U(in->rt))
SCALAR(OR, U(in->rs) | U(in->rt))
SCALAR(MINR, R(in->rs) < R(in->rt) ? R(in->rs) : R(in->rt))
SCALAR(MINI, R(in->rs) < in->imm ? R(in->rs) : in->imm)
SCALAR(MAXR, R(in->rs) > R(in->rt) ? R(in->rs) : R(in->rt))
SCALAR(MAXI, R(in->rs) > in->imm ? R(in->rs) : in->imm)
SCALAR(CORE, 0)

static bool jump(NpurtModel *m, const IsaInsn *in, bool taken) {
  if (taken) m->next_pc = in->target;
  return true;
}
#define BRANCH(name, condition)                                                                    \
  bool sem_##name(ARGS) {                                                                          \
    (void)d;                                                                                       \
    return jump(m, in, condition);                                                                 \
  }
BRANCH(JMP, true)
BRANCH(BEQ, R(in->rs) == R(in->rt))
BRANCH(BNE, R(in->rs) != R(in->rt))
BRANCH(BLT, R(in->rs) < R(in->rt))
BRANCH(BGE, R(in->rs) >= R(in->rt))

static bool load_word(NpurtModel *m, const IsaInsn *in, RtSpace space, const uint8_t *mem,
                      size_t size, const char *name) {
  int64_t addr;
  if (!add_i64(R(in->rs), in->imm, &addr) || addr < 0 || (uint64_t)addr + 4 > size)
    return rt_trap(m, "E-bounds", "the address %lld + %lld is outside %s (%zu bytes)",
                   (long long)R(in->rs), (long long)in->imm, name, size);
  if (m->check) check_access(m->check, space, addr, 4, false);
  int32_t v;
  memcpy(&v, mem + addr, 4);
  R(in->rd) = v;
  return true;
}

bool sem_LDS(ARGS) {
  (void)d;
  return load_word(m, in, RT_SPM, m->dev.spm, m->dev.spm_size, "the scratchpad");
}

bool sem_LDD(ARGS) {
  (void)d;
  return load_word(m, in, RT_DRAM, m->dev.dram, m->dev.dram_size, "the program's DRAM");
}

bool sem_ARG(ARGS) {
  (void)d;
  if (in->imm < 0 || in->imm >= RT_ARGS)
    return rt_trap(m, "E-bounds", "there are host arguments 0..%d, not %lld", RT_ARGS - 1,
                   (long long)in->imm);
  return set(m, in, (uint64_t)m->dev.args[in->imm]);
}

bool sem_TAKE(ARGS) {
  return UNUSED, true;
}
bool sem_GIVE(ARGS) {
  return UNUSED, true;
}
bool sem_FENCE(ARGS) {
  return UNUSED, true;
}
bool sem_HALT(ARGS) {
  UNUSED;
  m->halted = true;
  return true;
}

/* ---- descriptors ---- */

bool sem_DLOAD(ARGS) {
  (void)d;
  if (in->target >= m->img.ndescs)
    return rt_trap(m, "E-bounds", "descriptor %u is not among the binary's %u", in->target,
                   m->img.ndescs);
  m->dev.desc[in->dn] = m->img.descs[in->target];
  m->dev.desc_checked[in->dn] = false;
  return true;
}

static bool field_set(NpurtModel *m, const IsaInsn *in, bool add, int64_t value) {
  IsaDesc *r = &m->dev.desc[in->dn];
  char name[24];
  if (!isa_field_in_kind(in->field, (IsaDescKind)r->kind))
    return rt_trap(m, "E-desc", "descriptor register d%u holds no descriptor with a field `%s`",
                   in->dn, isa_field_name(in->field, name));
  if (add) value = (int64_t)((uint64_t)value + (uint64_t)isa_field_get(r, in->field));
  if (!isa_field_set(r, in->field, value))
    return rt_trap(m, "E-desc", "%lld does not fit descriptor field `%s`", (long long)value,
                   isa_field_name(in->field, name));
  if (m->size_field[in->field]) m->dev.desc_checked[in->dn] = false;
  return true;
}

bool sem_DSET(ARGS) {
  return (void)d, field_set(m, in, false, R(in->rs));
}
bool sem_DSETI(ARGS) {
  return (void)d, field_set(m, in, false, in->imm);
}
bool sem_DADD(ARGS) {
  return (void)d, field_set(m, in, true, R(in->rs));
}
bool sem_DADDI(ARGS) {
  return (void)d, field_set(m, in, true, in->imm);
}

bool sem_SYNC_LD0(ARGS) {
  return UNUSED, true;
}
bool sem_SYNC_LD1(ARGS) {
  return UNUSED, true;
}
bool sem_SYNC_ST(ARGS) {
  return UNUSED, true;
}
bool sem_SYNC_MXW(ARGS) {
  return UNUSED, true;
}
bool sem_SYNC_MXM(ARGS) {
  return UNUSED, true;
}
bool sem_SYNC_VPU(ARGS) {
  return UNUSED, true;
}
