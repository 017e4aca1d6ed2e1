/* pipeline: nests to program. Every kernel becomes one section: grid loops in schedule order; each
 * operand's load sits in the innermost loop that moves its block, so what did not move is not
 * loaded again; with two slots it is issued one step ahead, across all enclosing loops, so that the
 * load of the next block overlaps this step's compute; results are stored when the parallel loops
 * move on. Who may touch which slot when is written as acquire and release, which the sync pass
 * turns into semaphores.
 *
 *   for oc {                      # w depends on oc alone
 *     load w for the next oc      # one step ahead
 *     for oh {
 *       load x for the next step  # (oc, oh) + 1
 *       mm.load, mm.mul ...       # this step
 *       vx, st
 *
 * Level: nest to program. Needs: lower, legalize, tile, plan. */
#include "passes/pipeline.h"
#include "passes/kernel_edit.h"
#include <string.h>

/* ---- one kernel ---- */

static void make_home(Writer *w, IrBuilder *b, int store, const char *space, int64_t bytes,
                      int slots) {
  Home *h = &w->home[store];
  static const char *const names[] = {"x", "t", "acc", "y", "c"};
  const Store *st = &w->ki.store[store];
  char name[24];
  h->size = st->kind == STORE_ACC ? bytes : round_up(bytes, 64);
  snprintf(name, sizeof name, "%s%d", names[st->kind], st->index >= 0 ? st->index : store);
  h->buffer = prog_buffer(b, space, h->size, slots, name);
  if (slots > 1) {
    h->slot = prog_reg(b);
    INSN_(b, "li", pv(h->slot), pi(0));
  }
}

static bool dma_home(Writer *w, IrBuilder *b, int store, double pad, IrValue *tensor,
                     const char **why) {
  Home *h = &w->home[store];
  IsaDesc d;
  PAddrField addrs[3] = {
      {"dram", tensor, h->block.dram.cst}, {"spm", h->buffer, 0}, {"index", NULL, 0}};
  if (!sched_dma_desc(&h->block, w->ki.store[store].dtype, pad, w->machine, &d, why)) return false;
  h->tensor = tensor;
  if (h->block.gather >= 0) addrs[2].base = w->home[h->block.gather].buffer;
  h->desc = prog_desc(b, &d, h->block.gather >= 0 ? 3 : 2, addrs);
  return true;
}

static bool operand_home(Writer *w, IrBuilder *b, int i, const Places *places, const char **why) {
  KernelInfo *ki = &w->ki;
  Home *h = &w->home[i];
  double pad = 0;
  if (!sched_operand_block(ki, &w->s, i, &h->block, why)) return false;
  make_home(w, b, i, "spm", h->block.bytes, sched_operand_slots(ki, &w->s, i));
  if (!ir_kernel_pad(ki->op, i, &pad)) pad = 0;
  h->dma = sched_load_queue(ki, i);
  if (h->block.gather >= 0) ki->store[h->block.gather].readers |= 1u << ENGINE_LD1;
  return dma_home(w, b, i, pad, pipeline_place_of(places, ir_operand(ki->op, i)), why);
}

static bool make_homes(Writer *w, IrBuilder *b, const Places *places, const char **why) {
  KernelInfo *ki = &w->ki;
  for (int i = 0; i < ki->nstores; i++) {
    const Store *st = &ki->store[i];
    Home *h = &w->home[i];
    switch (st->kind) {
    case STORE_OPERAND:
      if (!operand_home(w, b, i, places, why)) return false;
      break;
    case STORE_RESULT:
      if (!sched_result_block(ki, &w->s, st->index, &h->block, why)) return false;
      make_home(w, b, i, "spm", h->block.bytes, sched_result_slots(ki, &w->s));
      if (!dma_home(w, b, i, 0, pipeline_place_of(places, &ki->op->results[st->index]), why))
        return false;
      break;
    case STORE_STAGE:
    case STORE_CARRY:
      if (st->kind == STORE_CARRY && !sched_accumulates(ki, &w->s, ki->red)) break;
      if (!sched_stage_block(ki, &w->s, i, &h->block, why)) return false;
      make_home(w, b, i, "spm", h->block.bytes, 1);
      break;
    case STORE_ACC:
      make_home(w, b, i, "acc", w->mxu.acc_rows, sched_result_slots(ki, &w->s));
      break;
    }
  }
  return true;
}

/* The descriptors of the array's step, whose geometry is in w->mxu. */
static bool make_product(Writer *w, IrBuilder *b, const char **why) {
  IsaDesc plane, rows;
  if (!sched_plane_desc(&w->ki, &w->mxu, w->machine, &plane, why) ||
      !sched_rows_desc(&w->ki, &w->mxu, w->machine, &rows, why))
    return false;
  w->desc_w = prog_desc(b, &plane, 0, NULL);
  w->desc_x = prog_desc(b, &rows, 0, NULL);
  return true;
}

static bool make_steps(Writer *w, IrBuilder *b, const char **why) {
  for (int i = 0; i < w->ki.nsteps; i++) {
    Vec *v = &w->step[i].vec;
    IsaDesc d;
    StrBuf text = {0};
    PAddrField addrs[ISA_STREAMS];
    if (w->ki.step[i].mxu) continue;
    if (!sched_vec(&w->ki, &w->s, i, w->machine, v, why)) return false;
    if (!sched_vec_desc(&w->ki, v, w->machine, &d, why)) return false;
    int naddrs = 0;
    for (int k = 0; k < v->nstreams; k++) {
      const Home *h = &w->home[v->stream[k].store];
      bool scaled = w->ki.store[v->stream[k].store].kind == STORE_ACC;
      if (!scaled)
        addrs[naddrs++] = (PAddrField){prog_field(b, "base", k), h->buffer, v->stream[k].first};
      /* an ACC buffer's address counts rows; with one slot it stands in the descriptor as words */
      else if (!h->slot)
        addrs[naddrs++] = (PAddrField){prog_field(b, "base", k), h->buffer, 0};
    }
    w->step[i].desc = prog_desc(b, &d, naddrs, addrs);
    bool ok = sched_vprog(&w->ki, i, v, false, &text, why);
    if (ok) w->step[i].first = prog_vprog(b, text.data);
    if (ok && v->accumulates) {
      text.len = 0;
      ok = sched_vprog(&w->ki, i, v, true, &text, why);
      if (ok) w->step[i].again = prog_vprog(b, text.data);
    }
    strbuf_free(&text);
    if (!ok) return false;
  }
  return true;
}

static int operand_depth(const Writer *w, int operand) {
  return sched_depth(&w->ki, &w->s, sched_operand_dims(&w->ki, operand));
}

static void acquire_readers(Writer *w, IrBuilder *b, int store) {
  for (int e = 0; e < ENGINE_COUNT; e++)
    if (w->ki.store[store].readers >> e & 1 && e != ENGINE_LD1) /* LD1: see load_at_depth */
      prog_acquire(b, w->home[store].buffer, (IsaEngine)e, false);
}
static void release_readers(Writer *w, IrBuilder *b, int store) {
  for (int e = 0; e < ENGINE_COUNT; e++)
    if (w->ki.store[store].readers >> e & 1)
      prog_release(b, w->home[store].buffer, (IsaEngine)e, false);
}

static void toggle(IrBuilder *b, const Home *h) {
  if (!h->slot) return;
  IrValue *t = prog_reg(b);
  INSN_(b, "li", pv(t), pi(h->size));
  INSN_(b, "sub", pv(h->slot), pv(t), pv(h->slot));
}

/* Starts of the grid step after this one in the loops 0..depth-1; the register returned is zero
 * after the last. */
static IrValue *next_step(Writer *w, IrBuilder *b, int depth, IrValue *next[IR_MAX_DIMS]) {
  IrValue *more = prog_reg(b), *end = prog_reg(b);
  memset(next, 0, sizeof(IrValue *) * IR_MAX_DIMS);
  INSN_(b, "li", pv(more), pi(1));
  IrBuilder at = *b;
  for (int i = 0; i < depth; i++) {
    int d = w->s.order[i];
    next[d] = prog_reg(b);
    INSN_(b, "mov", pv(next[d]), pv(w->iv[d]));
  }
  at = *b;
  for (int i = depth - 1; i >= 0; i--) { /* carry from the innermost outwards */
    int d = w->s.order[i];
    INSN_(&at, "addi", pv(next[d]), pv(next[d]), pi(sched_tile(&w->ki, &w->s, d)));
    INSN_(&at, "li", pv(end), pi(w->ki.k.extent[d]));
    IrBuilder carry = prog_if(&at, next[d], "ge", end);
    INSN_(&carry, "li", pv(next[d]), pi(0));
    if (i == 0) INSN_(&carry, "li", pv(more), pi(0));
    at = carry;
  }
  return more;
}

static void load_at_depth(Writer *w, IrBuilder *b, int depth) {
  IrValue *next[IR_MAX_DIMS], *more = NULL;
  IrBuilder ahead = *b;
  for (int i = 0; i < w->ki.k.nin; i++) {
    if (operand_depth(w, i) != depth) continue;
    if (!w->home[i].slot) {
      write_load(w, b, i, w->iv, false);
      /* a gather that follows reads this list */
      if (w->ki.store[i].readers >> ENGINE_LD1 & 1)
        prog_acquire(b, w->home[i].buffer, ENGINE_LD1, false);
      continue;
    }
    if (!more) {
      more = next_step(w, b, depth, next);
      ahead = prog_if(b, more, "ne", w->zero);
    }
    write_load(w, &ahead, i, next, true);
  }
}

static void body_steps(Writer *w, IrBuilder *b, bool epilogue) {
  for (int i = 0; i < w->ki.nsteps; i++) {
    if (w->ki.step[i].mxu && !epilogue)
      write_mxu(w, b);
    else if (!w->ki.step[i].mxu && w->ki.step[i].epilogue == epilogue)
      write_vector(w, b, i);
  }
}

static void finish_tile(Writer *w, IrBuilder *b) {
  int acc = w->ki.mxu_step >= 0 ? w->ki.step[w->ki.mxu_step].store[0] : -1;
  if (acc >= 0) {
    prog_release(b, w->home[acc].buffer, ENGINE_MXM, true);
    prog_acquire(b, w->home[acc].buffer, ENGINE_VPU, false);
  }
  body_steps(w, b, true);
  if (acc >= 0) {
    prog_release(b, w->home[acc].buffer, ENGINE_VPU, false);
    toggle(b, &w->home[acc]);
  }
  for (int i = w->ki.k.nin; i < w->ki.k.nin + w->ki.k.nout; i++) {
    prog_release(b, w->home[i].buffer, ENGINE_VPU, true);
    write_store(w, b, i);
    toggle(b, &w->home[i]);
  }
}

static void write_level(Writer *w, IrBuilder *b, int depth) {
  int par_depth = sched_par_depth(&w->ki, &w->s);
  load_at_depth(w, b, depth);
  for (int i = 0; i < w->ki.k.nin; i++)
    if (operand_depth(w, i) == depth) acquire_readers(w, b, i);
  if (depth == par_depth) {
    if (w->ki.mxu_step >= 0)
      prog_acquire(b, w->home[w->ki.step[w->ki.mxu_step].store[0]].buffer, ENGINE_MXM, true);
    for (int i = w->ki.k.nin; i < w->ki.k.nin + w->ki.k.nout; i++)
      prog_acquire(b, w->home[i].buffer, ENGINE_VPU, true);
  }
  if (depth < w->s.norder) {
    int d = w->s.order[depth];
    w->iv[d] = prog_reg(b);
    IrBuilder body = prog_for(b, w->iv[d], w->ki.k.extent[d], NULL, sched_tile(&w->ki, &w->s, d));
    write_level(w, &body, depth + 1);
    w->iv[d] = NULL;
  } else {
    body_steps(w, b, false);
  }
  if (depth == par_depth) finish_tile(w, b);
  for (int i = 0; i < w->ki.k.nin; i++) {
    if (operand_depth(w, i) != depth) continue;
    release_readers(w, b, i);
    toggle(b, &w->home[i]);
  }
}

static bool write_kernel(PassContext *pc, IrOp *k, const Places *places, Bound *bound,
                         IrBuilder *out) {
  Writer *w = ARENA_NEW(pc->scratch, Writer);
  Predicted predicted;
  const char *why = NULL;
  bool present;
  w->pc = pc, w->m = pc->module, w->machine = pc->machine;
  sched_read(k, &w->s, &present);
  if (!present) {
    diag_error(pc->diag, k->loc, "E-pipeline",
               "a kernel has no schedule: run the pass 'tile' before 'pipeline'");
    return false;
  }
  if (!sched_analyze(k, &w->ki, &why) || !sched_valid(&w->ki, &w->s, &why) ||
      !sched_predict(&w->ki, &w->s, pc->machine, &predicted, &why)) {
    diag_error(pc->diag, k->loc, "E-pipeline",
               "the kernel's schedule does not fit machine '%s': it needs %s; take its attribute "
               "'tile' away and run the pass 'tile' again",
               pc->machine->name, why);
    return false;
  }
  IrBuilder at = *out;
  at.loc = k->loc;
  const char *name = kernel_name(k) ? kernel_name(k) : "kernel";
  IrOp *section = ir_build_typed(&at, IR_OP_SECTION, 0, NULL, 0, NULL, 1,
                                 &(IrAttrInit){"name", ir_attr_str(w->m, name)});
  IrBuilder b = ir_builder_at_end(ir_op_add_region(section), k->loc);
  if (w->ki.mxu_step >= 0) {
    sched_mxu(&w->ki, &w->s, w->machine, &w->mxu, &why);
    w->ki.store[w->mxu.x].readers |= 1u << ENGINE_MXM;
    w->ki.store[w->mxu.w].readers |= 1u << ENGINE_MXW;
  }
  if (!make_homes(w, &b, places, &why) || !make_steps(w, &b, &why) ||
      (w->ki.mxu_step >= 0 && !make_product(w, &b, &why))) {
    diag_error(pc->diag, k->loc, "E-pipeline",
               "this operation cannot be written as a program: it needs %s",
               why ? why : "more than there is");
    return false;
  }
  w->zero = prog_reg(&b);
  INSN_(&b, "li", pv(w->zero), pi(0));
  for (int i = 0; i < w->ki.k.nin; i++) /* what is loaded ahead starts with its first block */
    if (w->home[i].slot) write_load(w, &b, i, w->iv, false);
  write_level(w, &b, 0);
  prog_insn(&b, "fence", 0, NULL);
  bound_kernel(bound, places, k, section);
  return true;
}

/* ---- the pass ---- */

static bool write_all(PassContext *pc, Places *p, IrOp *const *old, int n) {
  IrBuilder out = ir_builder_before(p->f->body->last);
  Bound bound = {0};
  bool ok = pipeline_place_all(p);
  for (int i = 0; i < n && ok; i++) {
    if (old[i]->kind != IR_OP_KERNEL) continue;
    ok = write_kernel(pc, old[i], p, &bound, &out);
    if (ok) pass_count(pc, "kernels", 1);
  }
  bound_finish(&bound, p->f);
  return ok;
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  Places p = {.pc = pc, .f = f};
  IrOp *first = f->body->first, *ret = f->body->last;
  int n = 0, nold = 0;
  for (IrOp *op = first; op != ret; op = op->next) n++;
  IrOp **old = ARENA_ARRAY(pc->scratch, IrOp *, n + 1);
  for (IrOp *op = first; op != ret; op = op->next) old[nold++] = op;
  p.top = ir_builder_before(first);
  p.top.loc = f->loc;
  bool ok = write_all(pc, &p, old, nold);
  pipeline_places_free(&p);
  if (!ok) return PASS_FAILED;
  while (ret->noperands) ir_remove_operand(ret, ret->noperands - 1);
  ir_set_attr(ret, "arg_addrs", NULL);
  f->nresults = 0;
  for (int i = nold - 1; i >= 0; i--) ir_op_erase(old[i]);
  for (int i = f->body->nargs - 1; i >= 0; i--) ir_block_remove_arg(f->body, i);
  return PASS_OK;
}

const Pass pass_pipeline = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(Pass),
    .name = "pipeline",
    .help = "loops, loads ahead of time, compute and stores as engine instructions",
    .from = IR_NEST,
    .to = IR_PROGRAM,
    .options = NULL,
    .run = run};
