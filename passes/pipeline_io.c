/* Loads and stores of one grid step: descriptor fields from tile starts. */
#include "passes/pipeline.h"

void write_slot_address(Writer *w, IrBuilder *b, const Home *h, IrValue *r, int64_t cst) {
  (void)w;
  if (h->slot)
    INSN_(b, "addi", pv(r), pv(h->slot), pa(h->buffer, cst));
  else
    INSN_(b, "li", pv(r), pa(h->buffer, cst));
}

static bool moves(const IrAffine *a, IrValue *const start[IR_MAX_DIMS]) {
  for (int d = 0; d < IR_MAX_DIMS; d++)
    if (a->coef[d] && start[d]) return true;
  return false;
}

/* Coordinates and DRAM address of the box at the given tile starts. The descriptor as loaded holds
 * those of the first tile, so what never moves is never written. */
static void write_place(IrBuilder *b, const Home *h, IrValue *const start[IR_MAX_DIMS]) {
  for (int i = 0; i < h->block.rank; i++) {
    const IrAffine *c = &h->block.coord[i];
    if (!moves(c, start)) continue;
    IrValue *t = prog_reg(b);
    prog_affine(b, t, c, start);
    INSN_(b, "dset", pv(h->desc), pf(prog_field(b, "coord", i)), pv(t));
  }
  if (moves(&h->block.dram, start)) {
    IrValue *t = prog_reg(b);
    IrAffine a = h->block.dram;
    a.cst = 0;
    prog_affine(b, t, &a, start);
    INSN_(b, "addi", pv(t), pv(t), pa(h->tensor, h->block.dram.cst));
    INSN_(b, "dset", pv(h->desc), pf("dram"), pv(t));
  }
}

void write_load(Writer *w, IrBuilder *b, int operand, IrValue *const start[IR_MAX_DIMS],
                bool other_slot) {
  Home *h = &w->home[operand];
  const Block *bl = &h->block;
  write_place(b, h, start);
  if (h->slot) {
    IrValue *t = prog_reg(b);
    if (other_slot) {
      INSN_(b, "li", pv(t), pi(h->size));
      INSN_(b, "sub", pv(t), pv(t), pv(h->slot));
      INSN_(b, "addi", pv(t), pv(t), pa(h->buffer, 0));
    } else {
      write_slot_address(w, b, h, t, 0);
    }
    INSN_(b, "dset", pv(h->desc), pf("spm"), pv(t));
  }
  prog_acquire(b, h->buffer, h->dma, true);
  if (h->dma == ENGINE_LD0)
    INSN_(b, bl->gather >= 0 ? "ld0.gather" : bl->fill ? "ld0.fill" : "ld0", pv(h->desc));
  else
    INSN_(b, bl->gather >= 0 ? "ld1.gather" : bl->fill ? "ld1.fill" : "ld1", pv(h->desc));
  prog_release(b, h->buffer, h->dma, true);
}

void write_store(Writer *w, IrBuilder *b, int store) {
  Home *h = &w->home[store];
  write_place(b, h, w->iv);
  if (h->slot) {
    IrValue *t = prog_reg(b);
    write_slot_address(w, b, h, t, 0);
    INSN_(b, "dset", pv(h->desc), pf("spm"), pv(t));
  }
  prog_acquire(b, h->buffer, ENGINE_ST, false);
  INSN_(b, h->block.fill ? "st.clip" : "st", pv(h->desc));
  prog_release(b, h->buffer, ENGINE_ST, false);
}
