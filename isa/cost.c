/* What instructions cost. The one place with these formulas; isa/README.md states them in words. */
#include "isa/isa_internal.h"
#include <math.h>
#include <string.h>

/* ---- scratchpad ---- */

/* Cycles in which the banks give `n` runs of `bytes` bytes whose starts lie `stride` bytes apart.
 * Neighbouring words are in neighbouring banks. */
static double bank_cycles(const MachineDesc *m, double n, double bytes, double stride) {
  double word = (double)m->spm_word, banks = floor((double)m->spm_bytes_per_cycle / word);
  double words = ceil(bytes / word), apart = fabs(stride);
  if (apart < word) return fmax(1, ceil(n * apart / word / banks)); /* several in a word */
  bool whole = fmod(apart, word) == 0;
  double each = whole ? fmax(words, isa_common_divisor(banks, apart / word)) : words;
  return fmax(1, ceil(n * each / banks));
}

/* Bytes of words that `n` single elements take which lie `stride` bytes apart. */
static double element_bytes(const MachineDesc *m, double n, double size, double stride) {
  return n * fmax(size, fmin(fabs(stride), (double)m->spm_word));
}

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
  c->setup = (double)m->dma_setup;
  c->cycles = c->setup + fmax(1, s.pieces);
}

/* ---- matrix unit ---- */

static double product3(const uint32_t *v) {
  return (double)v[0] * (double)v[1] * (double)v[2];
}

/* The array takes mxu_load_rate rows of a plane a cycle; of a transposed one, which lies column by
 * column, as many columns at a time. */
static void cost_mm_load(const IsaDesc *d, const MachineDesc *m, IsaCost *c) {
  double k = product3(d->plane.k), n = (double)d->plane.n, rate = (double)m->mxu_load_rate,
         el = (double)dtype_size((DType)d->dtype), inner = 0;
  for (unsigned i = 3; i-- > 0 && inner == 0;)
    if (d->plane.k[i] > 1) inner = d->plane.kstride[i];
  double across = d->plane.nstride, banks = 1;
  c->spm_bytes = k * n * el;
  if (across == el || n == 1) {
    banks = bank_cycles(m, fmin(rate, k), n * el, inner);
  } else if (inner == el || k == 1) {
    banks = bank_cycles(m, fmin(rate, n), k * el, across);
  } else {
    banks = bank_cycles(m, fmin(rate, k) * n, el, across);
    c->spm_bytes = element_bytes(m, k * n, el, across);
  }
  c->cycles = fmax(1, ceil(k / rate) * banks);
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
  c->acc_rows = rows * (acc ? 2 : 1);
  c->acc_bytes = c->acc_rows * (double)m->mxu_cols * 4;
  c->latency = (double)m->mxu_latency;
  c->macs = rows * k * (double)m->mxu_cols;
}

/* ---- vector unit ---- */

int64_t isa_vop_sfu_passes(IsaVopKind k, const MachineDesc *m) {
  switch (isa_vop_info(k)->unit) {
  case UNIT_SFU: return 1;
  case UNIT_DIV: return m->vpu_div_passes;
  case UNIT_EXP: return m->vpu_exp_passes;
  case UNIT_SIN: return m->vpu_sin_passes;
  case UNIT_ALU:
  case UNIT_LOAD:
  case UNIT_STORE:
  case UNIT_RED:
  case UNIT_SUM:
  case UNIT_CTL: break;
  }
  return 0;
}

/* What one `vx` is made of while its program is gone through. */
typedef struct {
  const IsaDesc *d;
  const MachineDesc *m;
  IsaCost *c;
  double rows, red,
      width; /* rows; iterations of the reduction loops; elements of the vector loop */
  bool in_vec, in_red;
  bool reduces; /* the pass has row reductions */
  double all, loads, stores,
      sfu; /* slots of one chunk of a pass, or of a group of row operations */
} Vx;

/* Bytes and slots of `ld` and `st`. A stream that stands still along the vector loop moves one
 * element; an element each of other places takes a bank's word, or an accumulator row. */
static double stream_slots(Vx *x, const IsaVop *v, double times) {
  if (v->stream >= ISA_STREAMS) return 1;
  double size = (double)dtype_size((DType)x->d->vec.stream[v->stream].dtype),
         stride = (double)x->d->vec.stream[v->stream].stride[VLOOP_V],
         n = x->in_vec ? (stride == 0 ? fmin(x->width, 1) : x->width) : 1,
         all = x->rows * times * n;
  double chunk = fmin(n, (double)x->m->vpu_lanes);
  if (x->d->vec.stream[v->stream].space == SPACE_ACC) {
    double words = fmin(fmax(1, fabs(stride)), (double)x->m->mxu_cols);
    x->c->acc_bytes += all * size;
    x->c->acc_rows += all * words / (double)x->m->mxu_cols;
    return 1;
  }
  bool dense = n <= 1 || stride == size;
  x->c->spm_bytes += dense ? all * size : element_bytes(x->m, all, size, stride);
  return dense ? 1 : bank_cycles(x->m, chunk, size, stride);
}

static void add_slots(Vx *x, const IsaVop *v) {
  double times = x->in_red ? x->red : 1, elements = x->in_vec ? x->width : 1;
  IsaVopKind op = (IsaVopKind)v->op;
  x->all += times;
  /* Energy in additions of 32 bits: float sums add in binary64. */
  double work = op == VOP_RSUM_F || op == VOP_SUM_F ? 2 : 1;
  x->c->vpu_ops += x->rows * times * elements * work;
  if (isa_vop_sfu_passes(op, x->m)) x->c->sfu_ops += x->rows * times * elements;
  double chunk = fmin(elements, (double)x->m->vpu_lanes);
  x->sfu += times * (double)isa_vop_sfu_passes(op, x->m) * ceil(chunk / (double)x->m->vpu_sfu_rate);
  switch (isa_vop_info(op)->unit) {
  case UNIT_LOAD: x->loads += times * stream_slots(x, v, times); break;
  case UNIT_STORE: x->stores += times * stream_slots(x, v, times); break;
  case UNIT_RED: x->reduces = true; break;
  case UNIT_ALU:
  case UNIT_SFU:
  case UNIT_DIV:
  case UNIT_EXP:
  case UNIT_SIN:
  case UNIT_SUM:
  case UNIT_CTL: break;
  }
}

/* Cycles of the slots gathered so far, which start anew. */
static double take_slots(Vx *x) {
  const MachineDesc *m = x->m;
  double c = fmax(ceil(x->all / (double)m->vpu_issue), ceil(x->loads / (double)m->vpu_loads));
  c = fmax(c, ceil(x->stores / (double)m->vpu_stores));
  c = fmax(c, ceil(x->sfu / (double)m->vpu_sfu));
  x->all = x->loads = x->stores = x->sfu = 0;
  return fmax(c, 1);
}

static void cost_vx(const IsaDesc *d, const IsaVprog *vp, const MachineDesc *m, IsaCost *c) {
  const uint32_t *n = d->vec.count;
  Vx x = {.d = d,
          .m = m,
          .c = c,
          .rows = (double)n[VLOOP_O0] * (double)n[VLOOP_O1],
          .red = (double)n[VLOOP_R0] * (double)n[VLOOP_R1],
          .width = (double)n[VLOOP_V]};
  double chunks = ceil(x.width / (double)m->vpu_lanes), per_row = 0;
  double levels = ceil(log2(fmax(1, fmin(x.width, (double)m->vpu_lanes))));
  for (int i = 0; i < vp->n; i++) {
    switch (vp->ops[i].op) {
    case VOP_VEC:
      if (x.all > 0) per_row += take_slots(&x); /* the row operations before it */
      x.in_vec = true;
      continue;
    case VOP_ENDV:
      per_row += chunks * take_slots(&x) + (x.reduces ? levels * (double)m->vpu_reduce_step : 0);
      x.in_vec = x.reduces = false;
      continue;
    case VOP_RED: x.in_red = true; continue;
    case VOP_ENDR: x.in_red = false; continue;
    default: break;
    }
    add_slots(&x, &vp->ops[i]);
  }
  if (x.all > 0) per_row += take_slots(&x);
  c->cycles = (double)m->vpu_start + x.rows * per_row;
}

IsaCost isa_cost(const IsaInsn *in, const IsaDesc *d, const IsaVprog *vp, const MachineDesc *m) {
  IsaCost c = {.cycles = 1};
  if (isa_insn_info(in->kind)->engine == ENGINE_SEQ) c.cycles = machine_seq_cycles(m);
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

double isa_alone(const IsaCost *c, const MachineDesc *m) {
  double moving = fmax(fmax(c->cycles - c->setup, c->dram_cycles),
                       c->spm_bytes / (double)m->spm_bytes_per_cycle);
  return c->setup + fmax(moving, c->acc_rows / m->acc_rows_per_cycle);
}
