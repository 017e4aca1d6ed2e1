/* What instructions cost. The one place with these formulas; isa/README.md states them in words. */
#include "isa/isa_internal.h"
#include <math.h>
#include <string.h>

enum { VX_START_CYCLES = 8 };

/* ---- DMA ---- */

/* First and last + 1 box index along axis a that lies inside the tensor. */
static void box_inside(const IsaDesc *d, unsigned a, int64_t *lo, int64_t *hi) {
  int64_t c = d->dma.coord[a], e = d->dma.extent[a], n = d->dma.size[a];
  *lo = c >= 0 ? 0 : c <= -n ? n : -c;
  uint64_t left = c < e ? (uint64_t)e - (uint64_t)c : 0; /* exact even where e - c overflows */
  *hi = left < (uint64_t)n ? (int64_t)left : n;
  if (e <= 0 || *hi < *lo) *hi = *lo;
}

typedef struct {
  IsaDramRuns dram; /* contiguous in DRAM, whole bursts */
  double runs;
  double pieces;   /* contiguous in DRAM and SPM */
  double elements; /* moved */
} DmaShape;

/* Merges axes from the innermost out while they continue the run before them. In a gather, axis 0
 * jumps and never merges. */
static DmaShape dma_shape(const IsaDesc *d, bool clip, bool list, const MachineDesc *m) {
  DmaShape s = {.elements = 1, .runs = 1, .pieces = 1};
  double run = 1, piece = 1, el = d->elsize;
  bool run_open = true, piece_open = true;
  for (unsigned i = d->rank; i-- > 0;) {
    int64_t lo = 0, hi = d->dma.size[i];
    bool jumps = list && i == 0;
    if (clip && !jumps) box_inside(d, i, &lo, &hi);
    double n = (double)(hi - lo);
    s.elements *= n;
    /* One element along an axis neither continues nor breaks a run. */
    if (n != 1) {
      run_open = run_open && !jumps && (double)d->dma.dstride[i] == run * el;
      piece_open = piece_open && run_open && (double)d->dma.sstride[i] == piece * el;
    }
    if (piece_open) piece *= n;
    if (run_open) {
      run *= n;
    } else if (n != 1 || jumps) {
      s.dram.count[s.dram.n] = n;
      s.dram.stride[s.dram.n++] = (double)d->dma.dstride[i];
    }
  }
  if (s.elements == 0) return (DmaShape){0};
  s.runs = s.elements / run;
  s.pieces = s.elements / piece;
  s.dram.bytes = ceil(run * el / (double)m->dram_burst) * (double)m->dram_burst;
  s.dram.irregular = list && s.dram.n > 0;
  s.dram.reach = list ? (double)d->dma.extent[0] * fabs((double)d->dma.dstride[0]) : 0;
  return s;
}

static void cost_dma(IsaInsnKind kind, const IsaDesc *d, const MachineDesc *m, IsaCost *c) {
  bool store = kind == INSN_ST || kind == INSN_ST_CLIP || kind == INSN_ST_SCATTER;
  bool list = kind == INSN_LD0_GATHER || kind == INSN_LD1_GATHER || kind == INSN_ST_SCATTER;
  bool clip = kind == INSN_LD0_FILL || kind == INSN_LD1_FILL || kind == INSN_ST_CLIP || list;
  c->latency = machine_dram_latency_cycles(m);
  DmaShape s = dma_shape(d, clip, list, m);
  double bytes = s.runs * s.dram.bytes;
  if (store)
    c->dram_write = bytes;
  else
    c->dram_read = bytes;
  double box = d->elsize;
  for (unsigned i = 0; i < d->rank; i++) box *= (double)d->dma.size[i];
  c->spm_bytes = store ? s.elements * d->elsize : box; /* fill writes outside elements too */
  if (list) c->spm_bytes += 4.0 * (double)d->dma.size[0];
  c->runs = s.runs;
  c->dram_cycles = isa_dram_cycles(m, &s.dram);
  c->activations = isa_dram_activations(m, &s.dram);
  c->cycles = fmax(1, s.pieces);
}

/* ---- matrix unit ---- */

static double product3(const uint32_t *v) {
  return (double)v[0] * (double)v[1] * (double)v[2];
}

static void cost_mm_load(const IsaDesc *d, const MachineDesc *m, IsaCost *c) {
  double k = product3(d->plane.k);
  c->cycles = fmax(1, ceil(k / (double)m->mxu_load_rate));
  c->spm_bytes = k * (double)d->plane.n * (double)dtype_size((DType)d->dtype);
}

/* Contiguous pieces of the K elements of one row. */
static double k_runs(const IsaDesc *d) {
  double run = 1, el = (double)dtype_size((DType)d->dtype), k = product3(d->rows.k);
  for (unsigned i = 3; i-- > 0;) {
    if (d->rows.k[i] == 1) continue;
    if ((double)d->rows.kstride[i] != run * el) break;
    run *= (double)d->rows.k[i];
  }
  return k / run;
}

static void cost_mm_mul(IsaInsnKind kind, const IsaDesc *d, const MachineDesc *m, IsaCost *c) {
  double rows = product3(d->rows.m), k = product3(d->rows.k);
  bool bf16 = d->dtype == DT_BF16, acc = kind == INSN_MM_MUL_ACC || kind == INSN_MM_MUL_POP_ACC;
  if (rows == 0 || k == 0) {
    c->cycles = 1;
    return;
  }
  c->cycles = fmax(1, rows * k_runs(d) * (bf16 ? (double)m->mxu_bf16_slowdown : 1));
  c->spm_bytes = rows * k * (double)dtype_size((DType)d->dtype);
  c->acc_bytes = rows * (double)m->mxu_cols * 4 * (acc ? 2 : 1);
  c->macs = rows * k * (double)m->mxu_cols;
}

/* ---- vector unit ---- */

/* Slots one chunk of a pass (or one group of row operations) needs. */
typedef struct {
  double all, loads, stores, sfu;
} Slots;

static void slots_add(Slots *s, const IsaVop *v, double times) {
  s->all += times;
  switch (isa_vop_info((IsaVopKind)v->op)->unit) {
  case UNIT_LOAD: s->loads += times; break;
  case UNIT_STORE: s->stores += times; break;
  case UNIT_SFU: s->sfu += times; break;
  default: break;
  }
}

static double slots_cycles(const Slots *s, const MachineDesc *m) {
  double c = fmax(ceil(s->all / (double)m->vpu_issue), ceil(s->loads / (double)m->vpu_loads));
  c = fmax(c, ceil(s->stores / (double)m->vpu_stores));
  c = fmax(c, ceil(s->sfu / (double)m->vpu_sfu));
  return fmax(c, 1);
}

/* Energy in additions of 32 bits: float sums add in binary64. */
static double lane_operations(IsaVopKind op) {
  return op == VOP_RSUM_F || op == VOP_SUM_F ? 2 : 1;
}

/* Bytes ld or st v moves per row: `times` iterations of `n` elements; a stream that stands still
 * along the vector loop moves one element. */
static void stream_bytes(const IsaDesc *d, const IsaVop *v, double times, double n, double rows,
                         IsaCost *c) {
  unsigned unit = isa_vop_info((IsaVopKind)v->op)->unit;
  if ((unit != UNIT_LOAD && unit != UNIT_STORE) || v->stream >= ISA_STREAMS) return;
  if (d->vec.stream[v->stream].stride[VLOOP_V] == 0) n = fmin(n, 1);
  double bytes = rows * times * n * (double)dtype_size((DType)d->vec.stream[v->stream].dtype);
  if (d->vec.stream[v->stream].space == SPACE_ACC)
    c->acc_bytes += bytes;
  else
    c->spm_bytes += bytes;
}

static void cost_vx(const IsaDesc *d, const IsaVprog *vp, const MachineDesc *m, IsaCost *c) {
  const uint32_t *n = d->vec.count;
  double rows = (double)n[VLOOP_O0] * (double)n[VLOOP_O1],
         red = (double)n[VLOOP_R0] * (double)n[VLOOP_R1];
  double width = (double)n[VLOOP_V], chunks = ceil(width / (double)m->vpu_lanes);
  double per_row = 0;
  bool in_vec = false, in_red = false;
  Slots s = {0};
  for (int i = 0; i < vp->n; i++) {
    const IsaVop *v = &vp->ops[i];
    switch (v->op) {
    case VOP_VEC:
      if (s.all > 0) per_row += slots_cycles(&s, m); /* the row operations before it */
      s = (Slots){0};
      in_vec = true;
      continue;
    case VOP_ENDV:
      per_row += chunks * slots_cycles(&s, m);
      s = (Slots){0};
      in_vec = false;
      continue;
    case VOP_RED: in_red = true; continue;
    case VOP_ENDR: in_red = false; continue;
    default: break;
    }
    double times = in_red ? red : 1, elements = in_vec ? width : 1;
    slots_add(&s, v, times);
    c->vpu_ops += rows * times * elements * lane_operations((IsaVopKind)v->op);
    if (isa_vop_info((IsaVopKind)v->op)->unit == UNIT_SFU) c->sfu_ops += rows * times * elements;
    stream_bytes(d, v, times, elements, rows, c);
  }
  if (s.all > 0) per_row += slots_cycles(&s, m);
  c->cycles = VX_START_CYCLES + rows * per_row;
}

IsaCost isa_cost(const IsaInsn *in, const IsaDesc *d, const IsaVprog *vp, const MachineDesc *m) {
  IsaCost c = {.cycles = 1};
  switch (isa_insn_cost_fn(in->kind)) {
  case ISA_cost_seq:
  case ISA_cost_sync: break;
  case ISA_cost_seq_spm: c.spm_bytes = 4; break;
  case ISA_cost_seq_dram:
    c.dram_read = (double)round_up(4, m->dram_burst);
    c.activations = m->dram_channels > 0;
    c.latency = machine_dram_latency_cycles(m);
    break;
  case ISA_cost_dma:
    if (d && d->kind == DESC_DMA) cost_dma(in->kind, d, m, &c);
    break;
  case ISA_cost_mm_load:
    if (d && d->kind == DESC_PLANE) cost_mm_load(d, m, &c);
    break;
  case ISA_cost_mm_mul:
    if (d && d->kind == DESC_ROWS) cost_mm_mul(in->kind, d, m, &c);
    break;
  case ISA_cost_vx:
    if (d && vp && d->kind == DESC_VECTOR) cost_vx(d, vp, m, &c);
    break;
  }
  return c;
}
