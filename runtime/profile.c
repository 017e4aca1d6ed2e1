/* What the runs cost: totals, per source op, roofline. */
#include "runtime/runtime_internal.h"
#include <math.h>
#include <string.h>

#define uthash_malloc(size) mem_alloc(size)
#define uthash_free(p, size) mem_free(p)
#include <uthash.h>

/* The row of a place, by its text. */
typedef struct {
  uint32_t row;
  UT_hash_handle hh;
} Known;

static IsaEngine engine_of(const NpurtModel *m, uint32_t pc) {
  return isa_insn_info(m->insns[pc].kind)->engine;
}

/* One row per distinct (op, place), in program order; op_of maps instructions to rows. */
void profile_init(NpurtModel *m) {
  const IsaImage *img = &m->img;
  m->ops = mem_alloc((img->nsrcmap + 1) * sizeof *m->ops);
  m->op_macs = mem_alloc((img->nsrcmap + 1) * sizeof *m->op_macs);
  m->op_tally = mem_alloc((img->nsrcmap + 1) * sizeof *m->op_tally);
  m->op_of = mem_alloc((img->ninsns + 1) * sizeof *m->op_of);
  uint32_t *row = mem_alloc((img->nsrcmap + 1) * sizeof *row);
  m->ops[0] = (NpurtOpProfile){.op = "(no source)", .file = ""};
  m->nops = 1;
  Known *rows = NULL, *known;
  for (uint32_t i = 0; i < img->nsrcmap; i++) {
    const IsaSrcMap *s = &img->srcmap[i];
    const char *op = s->op ? s->op : "", *file = s->file ? s->file : "";
    char *text = arena_printf(m->arena, "%s:%u:%u:%s", file, s->line, s->col, op);
    HASH_FIND_STR(rows, text, known);
    if (!known) {
      known = ARENA_NEW(m->arena, Known);
      known->row = (uint32_t)m->nops;
      HASH_ADD_KEYPTR(hh, rows, text, strlen(text), known);
      m->ops[m->nops++] = (NpurtOpProfile){.op = op, .file = file, .line = s->line, .col = s->col};
    }
    row[i] = known->row;
    m->op_macs[known->row] += s->macs;
  }
  HASH_CLEAR(hh, rows);
  for (uint32_t pc = 0, at = 0; pc < img->ninsns; pc++) {
    while (at < img->nsrcmap && img->srcmap[at].insn <= pc) at++;
    m->op_of[pc] = at ? row[at - 1] : 0;
  }
  mem_free(row);
}

/* What the instruction at pc took, in all accounts. */
static void spend(NpurtModel *m, uint32_t pc, IsaEngine by, IsaEnergy e) {
  isa_energy_add(&m->profile.energy, &e);
  m->profile.engine[by].energy += e.total;
  m->ops[m->op_of[pc]].energy += e.total;
}

void profile_count(NpurtModel *m, uint32_t pc) {
  IsaEngine e = engine_of(m, pc);
  uint32_t row = m->op_of[pc];
  bool descriptor = m->insns[pc].kind == INSN_DLOAD;
  m->profile.instructions++;
  m->profile.engine[e].instructions++;
  m->ops[row].instructions++;
  m->op_tally[row].instructions++;
  m->engine_tally[e].instructions++;
  m->op_tally[row].descriptors += descriptor;
  m->engine_tally[e].descriptors += descriptor;
}

void profile_work(NpurtModel *m, uint32_t pc, const IsaCost *c, const IsaDesc *d) {
  NpurtProfile *p = &m->profile;
  NpurtOpProfile *op = &m->ops[m->op_of[pc]];
  bool bf16 = d && d->kind == DESC_ROWS && d->dtype == DT_BF16;
  p->dram_read += c->dram_read;
  p->dram_write += c->dram_write;
  p->dram_rows += c->activations;
  p->spm_bytes += c->spm_bytes;
  p->acc_bytes += c->acc_bytes;
  if (bf16)
    p->macs_bf16 += c->macs;
  else
    p->macs_s8 += c->macs;
  p->vpu_ops += c->vpu_ops;
  p->sfu_ops += c->sfu_ops;
  op->array_macs += c->macs;
  op->dram_bytes += c->dram_read + c->dram_write;
  op->spm_bytes += c->spm_bytes;
  op->acc_bytes += c->acc_bytes;
  spend(m, pc, engine_of(m, pc), isa_energy(c, bf16, &m->img.machine));
}

void profile_rows_opened(NpurtModel *m, uint32_t pc, uint64_t rows) {
  if (rows) profile_work(m, pc, &(IsaCost){.activations = (double)rows}, NULL);
}

void profile_useful(NpurtModel *m, double macs, bool bf16) {
  *(bf16 ? &m->profile.useful_bf16 : &m->profile.useful_s8) += macs;
  m->ops[m->op_of[m->pc]].useful_macs += macs;
}

void profile_time(NpurtModel *m, uint32_t pc, IsaEngine by, double cycles) {
  uint32_t row = m->op_of[pc];
  m->ops[row].cycles += cycles;
  m->op_tally[row].cycles += cycles;
  m->engine_tally[by].cycles += cycles;
}

/* The energy of a tally, which starts anew. */
static IsaEnergy price(RtTally *t, const MachineDesc *m) {
  IsaEnergy e = isa_energy_control(t->instructions, t->descriptors, m),
            time = isa_energy_time(t->cycles, m);
  isa_energy_add(&e, &time);
  *t = (RtTally){0};
  return e;
}

static void price_tallies(NpurtModel *m) {
  const MachineDesc *mc = &m->img.machine;
  for (size_t i = 0; i < m->nops; i++) m->ops[i].energy += price(&m->op_tally[i], mc).total;
  for (int e = 0; e < ENGINE_COUNT; e++) {
    IsaEnergy energy = price(&m->engine_tally[e], mc);
    isa_energy_add(&m->profile.energy, &energy);
    m->profile.engine[e].energy += energy.total;
  }
}

/* Bounds of `runs` runs of the model by what it asks for at least, whatever the tiling. */
void profile_finish_run(NpurtModel *m, double cycles) {
  NpurtProfile *p = &m->profile;
  const MachineDesc *mc = &m->img.machine;
  IsaRoofline r = isa_roofline(&m->img);
  price_tallies(m);
  p->runs++;
  p->cycles += cycles;
  p->seconds = p->cycles / (mc->clock_ghz * 1e9);
  p->macs += m->img.ideal_macs_s8 + m->img.ideal_macs_bf16;
  p->bound_bytes += m->img.ideal_dram_bytes;
  for (size_t i = 0; i < m->nops; i++) m->ops[i].macs += m->op_macs[i];
  p->bound_compute = r.compute * (double)p->runs;
  p->bound_dram = r.dram * (double)p->runs;
  p->bound = r.bound * (double)p->runs;
}

const NpurtProfile *npurt_profile(const NpurtModel *m) {
  return &m->profile;
}

void npurt_clear_profile(NpurtModel *m) {
  memset(&m->profile, 0, sizeof m->profile);
  m->ntrace = 0;
  for (size_t i = 0; i < m->nops; i++) {
    const NpurtOpProfile *o = &m->ops[i];
    m->ops[i] = (NpurtOpProfile){.op = o->op, .file = o->file, .line = o->line, .col = o->col};
  }
}

size_t npurt_op_profile(const NpurtModel *m, const NpurtOpProfile **out) {
  *out = m->ops;
  return m->nops;
}
