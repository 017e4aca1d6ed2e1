/* Predicted time of a schedule: every instruction the pipeline would write is priced by isa_cost at
 * the size of a full tile, multiplied by how often it runs, and engines that overlap count by the
 * slowest. */
#include "passes/sched.h"
#include <math.h>
#include <string.h>

/* A descriptor while its fields are written: each through the table of fields, by its type. */
typedef struct {
  IsaDesc *d;
  bool fits;
} Fields;

static Fields fields_of(IsaDesc *d, IsaDescKind kind) {
  memset(d, 0, sizeof *d);
  d->kind = (uint8_t)kind;
  return (Fields){d, true};
}
static void put(Fields *f, unsigned field, int64_t v) {
  f->fits = isa_field_set(f->d, field, v) && f->fits;
}
static bool finished(const Fields *f, const MachineDesc *m, const char **why) {
  *why = "a number that no field of a descriptor holds";
  return f->fits && isa_desc_fits(f->d, m, why);
}

bool sched_dma_desc(const Block *b, DType dtype, double pad, const MachineDesc *m, IsaDesc *d,
                    const char **why) {
  uint8_t bits[8] = {0};
  Fields f = fields_of(d, DESC_DMA);
  d->rank = (uint8_t)b->rank;
  d->elsize = (uint8_t)dtype_size(dtype);
  dtype_set(dtype, bits, 0, pad);
  memcpy(&d->dma.fill, bits, sizeof d->dma.fill);
  for (unsigned i = 0; i < (unsigned)b->rank; i++) {
    put(&f, ISA_FIELD_SIZE + i, b->len[i]);
    put(&f, ISA_FIELD_DSTRIDE + i, b->dstride[i]);
    put(&f, ISA_FIELD_SSTRIDE + i, b->sstride[i]);
    put(&f, ISA_FIELD_EXTENT + i, b->extent[i]);
    put(&f, ISA_FIELD_COORD + i, b->coord[i].cst);
  }
  return finished(&f, m, why);
}

bool sched_plane_desc(const KernelInfo *ki, const Mxu *mx, const MachineDesc *m, IsaDesc *d,
                      const char **why) {
  Fields f = fields_of(d, DESC_PLANE);
  d->dtype = (uint8_t)ki->store[mx->w].dtype;
  for (int i = 0; i < 3; i++) {
    const int at = i - (3 - mx->nk);
    put(&f, ISA_FIELD_KCOUNT + (unsigned)i, at < 0 ? 1 : mx->k[at].len);
    put(&f, ISA_FIELD_KSTRIDE + (unsigned)i, at < 0 ? 0 : mx->k[at].w);
  }
  put(&f, ISA_FIELD_NCOUNT, mx->nb);
  put(&f, ISA_FIELD_NSTRIDE, mx->nstride);
  return finished(&f, m, why);
}

bool sched_rows_desc(const KernelInfo *ki, const Mxu *mx, const MachineDesc *m, IsaDesc *d,
                     const char **why) {
  Fields f = fields_of(d, DESC_ROWS);
  d->dtype = (uint8_t)ki->store[mx->x].dtype;
  d->wdtype = (uint8_t)ki->store[mx->w].dtype;
  for (int i = 0; i < 3; i++) {
    const int k = i - (3 - mx->nk), row = i - (3 - mx->nm);
    put(&f, ISA_FIELD_KCOUNT + (unsigned)i, k < 0 ? 1 : mx->k[k].len);
    put(&f, ISA_FIELD_KSTRIDE + (unsigned)i, k < 0 ? 0 : mx->k[k].x);
    put(&f, ISA_FIELD_MCOUNT + (unsigned)i, row < 0 ? 1 : mx->m[row].len);
    put(&f, ISA_FIELD_MSTRIDE + (unsigned)i, row < 0 ? 0 : mx->m[row].x);
    put(&f, ISA_FIELD_ASTRIDE + (unsigned)i, row < 0 ? 0 : mx->m[row].acc);
  }
  return finished(&f, m, why);
}

bool sched_vec_desc(const KernelInfo *ki, const Vec *v, const MachineDesc *m, IsaDesc *d,
                    const char **why) {
  Fields f = fields_of(d, DESC_VECTOR);
  d->nstreams = (uint8_t)v->nstreams;
  for (unsigned j = 0; j < 5; j++) put(&f, ISA_FIELD_COUNT + j, v->loop[j].len);
  for (unsigned k = 0; k < (unsigned)v->nstreams; k++) {
    const Store *st = &ki->store[v->stream[k].store];
    d->vec.stream[k].space = st->kind == STORE_ACC ? SPACE_ACC : SPACE_SPM;
    d->vec.stream[k].dtype = (uint8_t)st->dtype;
    for (unsigned j = 0; j < 5; j++) put(&f, ISA_FIELD_STRIDE + 5 * k + j, v->loop[j].stride[k]);
  }
  return finished(&f, m, why);
}

bool sched_in_gather(const KernelInfo *ki, int operand, bool *is_list) {
  bool gathered = false;
  *is_list = false;
  for (int i = 0; i < ki->k.nin; i++) {
    const IrMap *map = ir_kernel_in_map(ki->op, i);
    for (int a = 0; a < map->rank; a++) {
      if (map->axis[a].index < 0) continue;
      gathered = gathered || i == operand;
      *is_list = *is_list || map->axis[a].index == operand;
    }
  }
  return gathered || *is_list;
}

int sched_operand_slots(const KernelInfo *ki, const Schedule *s, int operand) {
  bool is_list;
  if (sched_in_gather(ki, operand, &is_list)) return 1;
  return sched_depth(ki, s, sched_operand_dims(ki, operand)) > 0 ? s->slots : 1;
}

IsaEngine sched_load_queue(const KernelInfo *ki, int operand) {
  const IrMap *map = ir_kernel_in_map(ki->op, operand);
  bool is_list;
  for (int a = 0; a < map->rank; a++)
    if (map->axis[a].index >= 0) return ENGINE_LD1;
  if (sched_in_gather(ki, operand, &is_list)) return ENGINE_LD0;
  return operand & 1 ? ENGINE_LD1 : ENGINE_LD0;
}

int sched_par_depth(const KernelInfo *ki, const Schedule *s) {
  int n = 0;
  while (n < s->norder && !(ki->red >> s->order[n] & 1)) n++;
  return n;
}

int sched_result_slots(const KernelInfo *ki, const Schedule *s) {
  return sched_par_depth(ki, s) > 0 ? s->slots : 1;
}

/* Grid steps down to a depth, and the part of a full tile that a dimension set's tiles hold on
 * average. */
static double steps_to(const KernelInfo *ki, const Schedule *s, int depth) {
  double n = 1;
  for (int i = 0; i < depth; i++) n *= (double)sched_tiles(ki, s, s->order[i]);
  return n;
}
static double coverage(const KernelInfo *ki, const Schedule *s, uint32_t dims) {
  double c = 1;
  for (int i = 0; i < s->norder; i++) {
    int d = s->order[i];
    if (dims >> d & 1)
      c *= (double)ki->k.extent[d] / (double)(sched_tiles(ki, s, d) * sched_tile(ki, s, d));
  }
  return c;
}
typedef struct {
  const KernelInfo *ki;
  const Schedule *s;
  const MachineDesc *m;
  Predicted *p;
  double first_load, last_store, ld[ENGINE_COUNT];
  /* What one slot makes wait for each other: a step's lists, then what they gather, which is
   * computed on before its slot is filled again, while the next lists arrive. */
  double lists, list_waits, gathers, waits;
  double written;   /* bytes */
  double drain;     /* cycles from the array's last row to its results */
  double epilogues; /* of vpu, cycles after the array's results */
  double loads;     /* of the operand loaded most often */
  double turning;   /* cycles the operand or result takes whose slots come round most slowly */
  double step_mxu, step_vpu; /* one grid step's compute */
  int vector_regs; /* the most a vector step holds: counters and bounds around it, four more */
  const char **why;
} Pricing;

/* The descriptor of a transfer as most of them are: a box that moves is priced where it lies inside
 * its tensor, not at its first place, which may be in a border. */
static bool typical_desc(const Pricing *pr, const Block *b, DType dtype, IsaDesc *d) {
  if (!sched_dma_desc(b, dtype, 0, pr->m, d, pr->why)) return false;
  for (int i = 0; i < b->rank; i++)
    for (int k = 0; k < IR_MAX_DIMS; k++)
      if (b->coord[i].coef[k]) d->dma.coord[i] = 0;
  return true;
}

/* A part of a gather: all of its kind follow one another in their queue, and their latencies
 * overlap. False for any other operand. */
static bool price_one_slot(Pricing *pr, int operand, double cycles, double latency) {
  bool is_list;
  if (!sched_in_gather(pr->ki, operand, &is_list)) return false;
  if (sched_load_queue(pr->ki, operand) == ENGINE_LD1) {
    pr->gathers += cycles;
    pr->waits = fmax(pr->waits, latency);
  } else {
    pr->lists += cycles;
    pr->list_waits = fmax(pr->list_waits, latency);
  }
  return true;
}

/* What `times` such instructions take of the ports that all engines share. */
static void share_ports(Pricing *pr, const IsaCost *c, double times) {
  pr->p->spm += times * c->spm_bytes / (double)pr->m->spm_bytes_per_cycle;
  pr->p->acc += times * c->acc_rows / pr->m->acc_rows_per_cycle;
}

static double data_latency(const MachineDesc *m) {
  return machine_dram_latency_cycles(m) + machine_dram_open_cycles(m);
}

static bool price_operands(Pricing *pr) {
  for (int i = 0; i < pr->ki->k.nin; i++) {
    Block b;
    IsaDesc d;
    uint32_t dims = sched_operand_dims(pr->ki, i);
    if (!sched_operand_block(pr->ki, pr->s, i, &b, pr->why)) return false;
    if (!typical_desc(pr, &b, pr->ki->store[i].dtype, &d)) return false;
    IsaInsn in = {.kind = b.gather >= 0 ? INSN_LD1_GATHER : b.fill ? INSN_LD0_FILL : INSN_LD0};
    IsaCost c = isa_cost(&in, &d, NULL, pr->m);
    double times = steps_to(pr->ki, pr->s, sched_depth(pr->ki, pr->s, dims)),
           part = coverage(pr->ki, pr->s, dims);
    double dram = c.dram_cycles, cycles = isa_alone(&c, pr->m);
    pr->p->dram += dram * times * part;
    share_ports(pr, &c, times * part);
    pr->ld[sched_load_queue(pr->ki, i)] += (c.setup + (cycles - c.setup) * part) * times;
    double latency = c.latency + fmax(0, machine_dram_open_cycles(pr->m) - dram);
    if (!price_one_slot(pr, i, cycles * times * part, latency * times)) pr->first_load += cycles;
    pr->turning = fmax(pr->turning, (cycles + latency) * times);
    pr->loads = fmax(pr->loads, times);
    pr->p->seq += times * (8 + 4 * b.rank);
    pr->p->spm_bytes += round_up(b.bytes, 64) * sched_operand_slots(pr->ki, pr->s, i);
  }
  if (pr->gathers == 0) pr->first_load += data_latency(pr->m);
  return true;
}

static bool price_results(Pricing *pr) {
  for (int r = 0; r < pr->ki->k.nout; r++) {
    Block b;
    IsaDesc d;
    if (!sched_result_block(pr->ki, pr->s, r, &b, pr->why)) return false;
    if (!typical_desc(pr, &b, pr->ki->op->results[r].type->dtype, &d)) return false;
    IsaCost c = isa_cost(&(IsaInsn){.kind = b.fill ? INSN_ST_CLIP : INSN_ST}, &d, NULL, pr->m);
    int depth = sched_par_depth(pr->ki, pr->s);
    double times = steps_to(pr->ki, pr->s, depth), part = coverage(pr->ki, pr->s, pr->ki->par);
    double cycles = isa_alone(&c, pr->m);
    pr->p->dram += c.dram_cycles * times * part;
    share_ports(pr, &c, times * part);
    pr->p->st += (c.setup + (cycles - c.setup) * part) * times;
    pr->turning = fmax(pr->turning, (cycles + c.latency) * times);
    pr->written += c.dram_write * times * part;
    pr->last_store += cycles;
    pr->p->seq += times * (8 + 4 * b.rank);
    pr->p->spm_bytes += round_up(b.bytes, 64) * sched_result_slots(pr->ki, pr->s);
  }
  pr->last_store += machine_dram_latency_cycles(pr->m);
  return true;
}

static bool price_mxu(Pricing *pr) {
  Mxu mx;
  IsaDesc d;
  if (pr->ki->mxu_step < 0) return true;
  if (!sched_mxu(pr->ki, pr->s, pr->m, &mx, pr->why)) return false;
  if (!sched_plane_desc(pr->ki, &mx, pr->m, &d, pr->why)) return false;
  IsaCost load = isa_cost(&(IsaInsn){.kind = INSN_MM_LOAD}, &d, NULL, pr->m);
  if (!sched_rows_desc(pr->ki, &mx, pr->m, &d, pr->why)) return false;
  IsaCost mul = isa_cost(&(IsaInsn){.kind = INSN_MM_MUL_POP_ACC}, &d, NULL, pr->m);
  double planes = 1, rows = 1, seq = 0;
  for (int i = 0; i < mx.nloops; i++) planes *= (double)mx.loop[i].trip, seq += planes * 6;
  for (int i = 0; i < mx.nm; i++)
    if (mx.m[i].edge >= 0) rows *= coverage(pr->ki, pr->s, 1u << mx.m[i].edge);
  double steps = steps_to(pr->ki, pr->s, pr->s->norder);
  double loading = isa_alone(&load, pr->m), multiplying = isa_alone(&mul, pr->m);
  pr->step_mxu = planes * fmax(loading, multiplying) + loading + mul.latency;
  pr->p->mxw += planes * steps * loading;
  pr->p->mxm += planes * steps * fmax(multiplying * rows, 1);
  pr->drain = mul.latency;
  share_ports(pr, &load, planes * steps);
  share_ports(pr, &mul, planes * steps * rows);
  pr->p->seq += steps * (seq + planes * 8 + 12);
  pr->p->acc_rows = mx.acc_rows * sched_result_slots(pr->ki, pr->s);
  *pr->why = "more accumulator rows than the machine has";
  return pr->p->acc_rows <= pr->m->acc_rows;
}

static const IsaVprog *step_vprog(Pricing *pr, int step, const Vec *v, IsaVprog *own) {
  VprogCache *c = pr->ki->cache;
  for (int i = 0; c && i < c->n; i++)
    if (c->entry[i].step == step && c->entry[i].nred == v->nred &&
        c->entry[i].v_reduces == v->v_reduces && c->entry[i].accumulates == v->accumulates)
      return &c->entry[i].vprog;
  StrBuf text = {0};
  char message[160];
  bool ok = sched_vprog(pr->ki, step, v, v->accumulates, &text, pr->why);
  if (ok && !isa_vprog_parse(text.data, own, message)) {
    *pr->why = "a vector program the machine would not accept";
    ok = false;
  }
  strbuf_free(&text);
  if (!ok) return NULL;
  if (c && c->n < (int)NPU_COUNTOF(c->entry)) {
    c->entry[c->n].step = step, c->entry[c->n].nred = v->nred;
    c->entry[c->n].v_reduces = v->v_reduces, c->entry[c->n].accumulates = v->accumulates;
    c->entry[c->n++].vprog = *own;
  }
  return own;
}

/* The part of a full tile's cycles that a step's tiles take on average. A short tile along the
 * vector loop takes whole chunks of lanes. */
static double vector_part(const Pricing *pr, uint32_t dims, const VecLoop *lanes) {
  const KernelInfo *ki = pr->ki;
  if (lanes->edge < 0) return coverage(ki, pr->s, dims);
  int64_t tiles = sched_tiles(ki, pr->s, lanes->edge);
  int64_t rest = ki->k.extent[lanes->edge] - (tiles - 1) * sched_tile(ki, pr->s, lanes->edge);
  double full = (double)ceil_div(lanes->len, pr->m->vpu_lanes),
         last = (double)ceil_div(rest * lanes->mult, pr->m->vpu_lanes);
  return coverage(ki, pr->s, dims & ~(1u << lanes->edge)) *
         (1 - (full - last) / (full * (double)tiles));
}

static bool price_vector(Pricing *pr) {
  double par_steps = steps_to(pr->ki, pr->s, sched_par_depth(pr->ki, pr->s)),
         steps = steps_to(pr->ki, pr->s, pr->s->norder);
  for (int i = 0; i < pr->ki->nsteps; i++) {
    const Step *st = &pr->ki->step[i];
    Vec v;
    IsaVprog own;
    IsaDesc d;
    if (st->mxu) continue;
    if (!sched_vec(pr->ki, pr->s, i, pr->m, &v, pr->why)) return false;
    const IsaVprog *vp = step_vprog(pr, i, &v, &own);
    if (!vp) return false;
    if (!sched_vec_desc(pr->ki, &v, pr->m, &d, pr->why)) return false;
    IsaCost c = isa_cost(&(IsaInsn){.kind = INSN_VX}, &d, vp, pr->m);
    if (2 * v.nouter + 4 > pr->vector_regs) pr->vector_regs = 2 * v.nouter + 4;
    double around = 1, times = st->epilogue ? par_steps : steps;
    for (int j = 0; j < v.nouter; j++) around *= (double)v.outer[j].len;
    double cycles = isa_alone(&c, pr->m) * around,
           part = vector_part(pr, st->par | st->red, &v.loop[VLOOP_V]);
    pr->p->vpu += cycles * times * part;
    share_ports(pr, &c, around * times * part);
    pr->step_vpu += cycles;
    if (st->epilogue) pr->epilogues += cycles * times * part;
    pr->p->seq += times * (12 + around * (4 + 3 * v.nstreams));
  }
  bool carries = sched_accumulates(pr->ki, pr->s, pr->ki->red);
  for (int i = 0; i < pr->ki->nstores; i++) {
    Block b;
    StoreKind kind = pr->ki->store[i].kind;
    if (kind != STORE_STAGE && !(kind == STORE_CARRY && carries)) continue;
    if (!sched_stage_block(pr->ki, pr->s, i, &b, pr->why)) return false;
    pr->p->spm_bytes += round_up(b.bytes, 64);
  }
  return true;
}

/* Scalar registers the pipeline will hold at once: counters and slots, and beside them the most of
 * loading ahead (a start per loop and four more), the array (position, first or not, three
 * addresses and one more) and a vector step. */
static int count_regs(const Pricing *pr) {
  int held = 1 + pr->s->norder + pr->ki->k.nin + pr->ki->k.nout + 1, array = 0;
  int ahead = pr->s->norder + 4, most;
  Mxu mx;
  const char *why;
  if (pr->ki->mxu_step >= 0 && sched_mxu(pr->ki, pr->s, pr->m, &mx, &why)) {
    array = 6;
    for (int i = 0; i < mx.nloops; i++)
      array += 1 + (mx.loop[i].x != 0) + (mx.loop[i].w != 0) + (mx.loop[i].acc != 0);
  }
  most = ahead > array ? ahead : array;
  return held + (most > pr->vector_regs ? most : pr->vector_regs);
}

/* The steps of a gather one after the other, the first one's loads among them. Results of the step
 * before leave while it gathers, and share DRAM with it. */
static double one_slot(const Pricing *pr, double moving, double compute) {
  return fmax(moving, pr->gathers) + pr->waits + fmax(compute, pr->lists + pr->list_waits);
}

/* A kernel begins with fetching its descriptors: one for each transfer and vector program, two for
 * the array. */
static double fetching(const KernelInfo *ki, const MachineDesc *m) {
  if (m->dload_ns == 0) return 0;
  int n = ki->k.nin + ki->k.nout + ki->nsteps + (ki->mxu_step >= 0);
  return n * (double)sizeof(IsaDesc) / machine_dram_bytes_per_cycle(m) + m->dload_ns * m->clock_ghz;
}

bool sched_predict(const KernelInfo *ki, const Schedule *s, const MachineDesc *m, Predicted *out,
                   const char **why) {
  Pricing pr = {.ki = ki, .s = s, .m = m, .p = out, .why = why};
  memset(out, 0, sizeof *out);
  if (!price_operands(&pr) || !price_results(&pr) || !price_mxu(&pr) || !price_vector(&pr))
    return false;
  *why = "more scratchpad than the machine has";
  if (out->spm_bytes > m->spm_bytes) return false;
  out->seq /= m->seq_ipc;
  out->regs = count_regs(&pr);
  *why = "more scalar registers than the sequencer has";
  if (out->regs > ISA_REGS - 1) return false; /* the backend keeps one */
  out->ld = fmax(pr.ld[ENGINE_LD0], pr.ld[ENGINE_LD1]);
  out->fill = pr.first_load + pr.last_store + fetching(ki, m);
  out->dram = isa_dram_together(m, out->dram, pr.written, 0);
  double moving = fmax(out->dram, fmax(out->ld, out->st));
  if (s->slots > 1) {
    /* A slot is filled, computed on, and filled again: with few slots latency bounds the rate of
     * loads, which share the DRAM. */
    double compute = fmax(fmax(fmax(out->mxw, out->mxm), out->vpu), fmax(out->spm, out->acc)),
           turns = fmax(pr.turning, out->dram + pr.loads * data_latency(m)),
           turning = (turns + compute) / s->slots,
           busiest = fmax(fmax(moving, compute), fmax(turning, out->seq));
    /* Accumulators are filled, drained and read before they are filled again. */
    double results = steps_to(ki, s, sched_par_depth(ki, s));
    if (ki->mxu_step >= 0)
      busiest = fmax(busiest, (out->mxm + pr.epilogues + results * pr.drain) / s->slots);
    if (pr.gathers > 0) busiest = fmax(busiest, one_slot(&pr, moving, compute));
    out->total = busiest + out->fill + pr.step_vpu + (busiest > out->mxm ? pr.step_mxu : 0);
  } else {
    double steps = steps_to(ki, s, s->norder),
           serial = fmax(moving, pr.turning) + out->mxw + out->mxm + out->vpu + steps * pr.drain;
    if (pr.gathers > 0)
      serial = fmax(serial, one_slot(&pr, moving, out->mxw + out->mxm + out->vpu));
    out->total = fmax(serial, out->seq) + out->fill;
  }
  return true;
}
