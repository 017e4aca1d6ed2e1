/* Compute of one grid step: planes and rows for the array, vector instructions for everything else.
 */
#include "passes/pipeline.h"
#include <string.h>

/* Count field of a loop in this tile: mult times what is left of dimension edge, at most tile. */
static void write_edge_count(Writer *w, IrBuilder *b, IrValue *desc, const char *field, int edge,
                             int64_t mult) {
  IrValue *t = prog_reg(b);
  INSN_(b, "li", pv(t), pi(w->ki.k.extent[edge]));
  INSN_(b, "sub", pv(t), pv(t), pv(w->iv[edge]));
  INSN_(b, "mini", pv(t), pv(t), pi(sched_tile(&w->ki, &w->s, edge)));
  if (mult != 1) INSN_(b, "muli", pv(t), pv(t), pi(mult));
  if (desc) INSN_(b, "dset", pv(desc), pf(field), pv(t));
}

/* Register that is zero in the first step of the tiled reductions; NULL when there are none. */
static IrValue *write_reduction_position(Writer *w, IrBuilder *b) {
  IrValue *r = NULL;
  for (int i = 0; i < w->s.norder; i++) {
    int d = w->s.order[i];
    if (!(w->ki.tileable_red >> d & 1)) continue;
    if (!r) {
      r = prog_reg(b);
      INSN_(b, "mov", pv(r), pv(w->iv[d]));
    } else {
      INSN_(b, "add", pv(r), pv(r), pv(w->iv[d]));
    }
  }
  return r;
}

/* ---- the array ---- */

typedef struct {
  IrValue *x, *w, *acc; /* addresses of the current plane's rows, weights and accumulators */
  IrValue *started;     /* zero until the accumulators hold something; NULL: always overwrite */
  IrValue *position;    /* of the tiled reductions; NULL: none */
} Cursor;

static void write_product(Writer *w, IrBuilder *b, const Cursor *c) {
  INSN_(b, "dset", pv(w->desc_w), pf("spm"), pv(c->w));
  INSN_(b, w->mxu.transposed ? "mm.load.t" : "mm.load", pv(w->desc_w));
  INSN_(b, "dset", pv(w->desc_x), pf("spm"), pv(c->x));
  INSN_(b, "dset", pv(w->desc_x), pf("acc"), pv(c->acc));
  if (!c->started) {
    INSN_(b, "mm.mul.pop", pv(w->desc_x));
    return;
  }
  IrBuilder first = prog_if(b, c->started, "eq", w->zero);
  INSN_(&first, "mm.mul.pop", pv(w->desc_x));
  IrBuilder later = prog_if(b, c->started, "ne", w->zero);
  INSN_(&later, "mm.mul.pop.acc", pv(w->desc_x));
  INSN_(b, "li", pv(c->started), pi(1));
}

static IrValue *moving(IrBuilder *b, IrValue *from, int64_t step) {
  if (!step) return from;
  IrValue *r = prog_reg(b);
  INSN_(b, "mov", pv(r), pv(from));
  return r;
}

static void restart(IrBuilder *b, const Cursor *c) {
  if (c->position)
    INSN_(b, "mov", pv(c->started), pv(c->position));
  else
    INSN_(b, "li", pv(c->started), pi(0));
}

static void write_loops(Writer *w, IrBuilder *b, int level, const Cursor *c) {
  const Mxu *mx = &w->mxu;
  bool contraction = level == mx->nloops || mx->loop[level].reduction;
  if (c->started && contraction && (level == 0 || !mx->loop[level - 1].reduction)) restart(b, c);
  if (level == mx->nloops) {
    write_product(w, b, c);
    return;
  }
  Cursor in = *c;
  IrValue *counter = prog_reg(b);
  in.x = moving(b, c->x, mx->loop[level].x);
  in.w = moving(b, c->w, mx->loop[level].w);
  in.acc = moving(b, c->acc, mx->loop[level].acc);
  IrBuilder body = prog_for(b, counter, mx->loop[level].trip, NULL, 1);
  write_loops(w, &body, level + 1, &in);
  if (mx->loop[level].x) INSN_(&body, "addi", pv(in.x), pv(in.x), pi(mx->loop[level].x));
  if (mx->loop[level].w) INSN_(&body, "addi", pv(in.w), pv(in.w), pi(mx->loop[level].w));
  if (mx->loop[level].acc) INSN_(&body, "addi", pv(in.acc), pv(in.acc), pi(mx->loop[level].acc));
}

void write_mxu(Writer *w, IrBuilder *b) {
  const Mxu *mx = &w->mxu;
  Cursor c = {.position = write_reduction_position(w, b)};
  bool reduces = c.position != NULL;
  for (int i = 0; i < mx->nloops; i++) reduces = reduces || mx->loop[i].reduction;
  for (int i = 0; i < mx->nm; i++)
    if (mx->m[i].edge >= 0)
      write_edge_count(w, b, w->desc_x, prog_field(b, "m", 3 - mx->nm + i), mx->m[i].edge,
                       mx->m[i].mult);
  c.x = prog_reg(b), c.w = prog_reg(b), c.acc = prog_reg(b);
  write_slot_address(w, b, &w->home[mx->x], c.x, mx->x_first);
  write_slot_address(w, b, &w->home[mx->w], c.w, mx->w_first);
  write_slot_address(w, b, &w->home[w->ki.step[w->ki.mxu_step].store[0]], c.acc, 0);
  if (reduces) c.started = prog_reg(b);
  write_loops(w, b, 0, &c);
}

/* ---- the vector unit ---- */

/* Address of each stream that moves with a slot or an outer loop; the others stand in the
 * descriptor. */
static void write_bases(Writer *w, IrBuilder *b, int step, IrValue *const counter[IR_MAX_DIMS]) {
  const Vec *v = &w->step[step].vec;
  for (int k = 0; k < v->nstreams; k++) {
    const Home *h = &w->home[v->stream[k].store];
    bool acc = w->ki.store[v->stream[k].store].kind == STORE_ACC;
    bool outer = false;
    for (int i = 0; i < v->nouter; i++) outer = outer || v->outer[i].stride[k] != 0;
    if (!h->slot && !outer) continue;
    IrValue *t = prog_reg(b);
    if (acc) { /* ACC slots count rows, streams count words */
      if (h->slot)
        INSN_(b, "addi", pv(t), pv(h->slot), pa(h->buffer, 0));
      else
        INSN_(b, "li", pv(t), pa(h->buffer, 0));
      INSN_(b, "muli", pv(t), pv(t), pi(w->machine->mxu_cols));
    } else {
      write_slot_address(w, b, h, t, v->stream[k].first);
    }
    for (int i = 0; i < v->nouter; i++) {
      if (!v->outer[i].stride[k]) continue;
      IrValue *u = prog_reg(b);
      INSN_(b, "muli", pv(u), pv(counter[i]), pi(v->outer[i].stride[k]));
      INSN_(b, "add", pv(t), pv(t), pv(u));
    }
    INSN_(b, "dset", pv(w->step[step].desc), pf(prog_field(b, "base", k)), pv(t));
  }
}

static void write_vx(Writer *w, IrBuilder *b, int step, IrValue *position) {
  IrValue *desc = w->step[step].desc;
  if (!w->step[step].again) {
    INSN_(b, "vx", pv(w->step[step].first), pv(desc));
    return;
  }
  IrBuilder first = prog_if(b, position, "eq", w->zero);
  INSN_(&first, "vx", pv(w->step[step].first), pv(desc));
  IrBuilder later = prog_if(b, position, "ne", w->zero);
  INSN_(&later, "vx", pv(w->step[step].again), pv(desc));
}

void write_vector(Writer *w, IrBuilder *b, int step) {
  static const char *const count_names[5] = {"count.0", "count.1", "count.2", "count.3", "count.4"};
  const Vec *v = &w->step[step].vec;
  IrValue *counter[IR_MAX_DIMS] = {NULL};
  IrBuilder inner = *b;
  for (int i = 0; i < 5; i++)
    if (v->loop[i].edge >= 0)
      write_edge_count(w, b, w->step[step].desc, ir_str(w->m, count_names[i]), v->loop[i].edge,
                       v->loop[i].mult);
  IrValue *position = w->step[step].again ? write_reduction_position(w, b) : NULL;
  for (int i = 0; i < v->nouter; i++) {
    IrValue *bound = NULL;
    int e = v->outer[i].edge;
    if (e >= 0) {
      bound = prog_reg(&inner);
      INSN_(&inner, "li", pv(bound), pi(w->ki.k.extent[e]));
      INSN_(&inner, "sub", pv(bound), pv(bound), pv(w->iv[e]));
      INSN_(&inner, "mini", pv(bound), pv(bound), pi(sched_tile(&w->ki, &w->s, e)));
      if (v->outer[i].mult != 1) INSN_(&inner, "muli", pv(bound), pv(bound), pi(v->outer[i].mult));
    }
    counter[i] = prog_reg(&inner);
    inner = prog_for(&inner, counter[i], v->outer[i].len, bound, 1);
  }
  write_bases(w, &inner, step, counter);
  write_vx(w, &inner, step, position);
}
