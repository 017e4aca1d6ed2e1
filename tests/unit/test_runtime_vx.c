/* Compiled vector programs against an interpreter of vops.def written here on isa_vop_eval: every
 * operation, random programs, all stream types and strides, every host vector level. */
#include "runtime_util.h"
#include <math.h>
#include <stdio.h>

/* ---- the interpreter: one row at a time, one element at a time ---- */

typedef struct {
  const IsaVprog *p;
  const IsaDesc *d;
  uint8_t *space[2]; /* SPM, ACC */
  uint32_t o0, o1;
} Row;

static uint8_t *where(const Row *w, int s, uint32_t r0, uint32_t r1, uint32_t v) {
  const int32_t *st = w->d->vec.stream[s].stride;
  int64_t unit = w->d->vec.stream[s].space == SPACE_ACC ? 4 : 1;
  return w->space[w->d->vec.stream[s].space] +
         unit *
             ((int64_t)w->d->vec.stream[s].base + (int64_t)w->o0 * st[0] + (int64_t)w->o1 * st[1] +
              (int64_t)r0 * st[2] + (int64_t)r1 * st[3] + (int64_t)v * st[4]);
}

static uint32_t fetch(const Row *w, int s, uint32_t r0, uint32_t r1, uint32_t v) {
  const uint8_t *p = where(w, s, r0, r1, v);
  uint32_t u = 0;
  uint16_t h;
  switch ((DType)w->d->vec.stream[s].dtype) {
  case DT_S8: return (uint32_t)(int32_t)(int8_t)*p;
  case DT_BF16: memcpy(&h, p, 2); return (uint32_t)h << 16;
  default: memcpy(&u, p, 4); return u;
  }
}

static void put(const Row *w, int s, uint32_t r0, uint32_t r1, uint32_t v, uint32_t value) {
  uint8_t *p = where(w, s, r0, r1, v);
  float f;
  uint16_t h;
  int32_t i = (int32_t)value;
  memcpy(&f, &value, 4);
  switch ((DType)w->d->vec.stream[s].dtype) {
  case DT_S8: *p = (uint8_t)(i > 127 ? 127 : i < -128 ? -128 : i); return;
  case DT_BF16:
    h = f32_to_bf16(f);
    memcpy(p, &h, 2);
    return;
  default: memcpy(p, &value, 4); return;
  }
}

typedef struct {
  uint32_t r[ISA_RREGS], v[ISA_VREGS], part[ISA_VPROG_MAX][16];
  double sum[ISA_VPROG_MAX][16]; /* of rsum.f; of sum.f the first */
} Regs;

static uint32_t arg(const Regs *g, const IsaVop *o, uint8_t a) {
  return a < 16 ? g->v[a] : a < 24 ? g->r[a - 16] : o->imm;
}

static const struct {
  IsaVopKind red, with;
  uint32_t start;
} reductions[] = {{VOP_RMAX_F, VOP_MAX_F, 0xff800000u},
                  {VOP_RMIN_F, VOP_MIN_F, 0x7f800000u},
                  {VOP_RSUM_I, VOP_ADD_I, 0},
                  {VOP_RMAX_I, VOP_MAX_I, 0x80000000u},
                  {VOP_RMIN_I, VOP_MIN_I, 0x7fffffffu}};

static int reduction_of(uint8_t op) {
  for (int i = 0; i < (int)NPU_COUNTOF(reductions); i++)
    if (reductions[i].red == (IsaVopKind)op) return i;
  return -1;
}

static float as_float(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}
static uint32_t as_bits(double d) {
  float f = (float)d;
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static void step(const Row *w, Regs *g, int at, uint32_t r0, uint32_t r1, uint32_t v) {
  const IsaVop *o = &w->p->ops[at];
  uint32_t x, *dst = o->dst < 16 ? &g->v[o->dst] : &g->r[o->dst - 16];
  int red = reduction_of(o->op);
  if (o->op == VOP_RSUM_F || o->op == VOP_SUM_F) {
    g->sum[at][o->op == VOP_RSUM_F ? v % 16 : 0] += (double)as_float(arg(g, o, o->a));
    return;
  }
  if (red >= 0) {
    x = arg(g, o, o->a);
    g->part[at][v % 16] = isa_vop_eval(reductions[red].with, g->part[at][v % 16], x, 0);
    return;
  }
  switch ((IsaVopKind)o->op) {
  case VOP_LD: *dst = fetch(w, o->stream, r0, r1, v); return;
  case VOP_ST: put(w, o->stream, r0, r1, v, arg(g, o, o->a)); return;
  case VOP_IOTA: *dst = v; return;
  case VOP_IOTA0: *dst = r0; return;
  case VOP_IOTA1: *dst = r1; return;
  case VOP_IOTAO0: *dst = w->o0; return;
  case VOP_IOTAO1: *dst = w->o1; return;
  default:
    *dst = isa_vop_eval((IsaVopKind)o->op, arg(g, o, o->a), arg(g, o, o->b), arg(g, o, o->c));
    return;
  }
}

static void loops(const Row *w, Regs *g, int from, int to, uint32_t v) {
  for (int k = from; k < to; k++) g->sum[k][0] = w->p->ops[k].op == VOP_SUM_F ? 0 : g->sum[k][0];
  for (uint32_t r0 = 0; r0 < w->d->vec.count[VLOOP_R0]; r0++)
    for (uint32_t r1 = 0; r1 < w->d->vec.count[VLOOP_R1]; r1++)
      for (int k = from; k < to; k++) step(w, g, k, r0, r1, v);
  for (int k = from; k < to; k++)
    if (w->p->ops[k].op == VOP_SUM_F) g->v[w->p->ops[k].dst] = as_bits(g->sum[k][0]);
}

static void finish(const IsaVop *o, Regs *g, int at) {
  int red = reduction_of(o->op);
  uint32_t *part = g->part[at];
  double *sum = g->sum[at];
  for (int half = 8; half; half /= 2)
    for (int k = 0; k < half; k++) {
      if (red >= 0) part[k] = isa_vop_eval(reductions[red].with, part[k], part[k + half], 0);
      sum[k] += sum[k + half];
    }
  g->r[o->dst - 16] = red >= 0 ? part[0] : as_bits(sum[0]);
}

static int pass(const Row *w, Regs *g, int at) {
  int end = at;
  while (w->p->ops[end].op != VOP_ENDV) end++;
  memset(g->sum, 0, sizeof g->sum);
  for (int i = at; i < end; i++)
    for (int k = 0; k < 16 && reduction_of(w->p->ops[i].op) >= 0; k++)
      g->part[i][k] = reductions[reduction_of(w->p->ops[i].op)].start;
  for (uint32_t v = 0; v < w->d->vec.count[VLOOP_V]; v++)
    for (int i = at + 1; i < end; i++) {
      if (w->p->ops[i].op != VOP_RED) {
        step(w, g, i, 0, 0, v);
        continue;
      }
      int close = i;
      while (w->p->ops[close].op != VOP_ENDR) close++;
      loops(w, g, i + 1, close, v);
      i = close;
    }
  for (int i = at; i < end; i++)
    if (isa_vop_info((IsaVopKind)w->p->ops[i].op)->unit == UNIT_RED) finish(&w->p->ops[i], g, i);
  return end;
}

static void interpret(const IsaVprog *p, const IsaDesc *d, uint8_t *spm, uint8_t *acc) {
  for (uint32_t o0 = 0; o0 < d->vec.count[0]; o0++)
    for (uint32_t o1 = 0; o1 < d->vec.count[1]; o1++) {
      Row w = {p, d, {spm, acc}, o0, o1};
      Regs g;
      memset(&g, 0, sizeof g);
      for (int i = 0; i < p->n; i++) {
        if (p->ops[i].op == VOP_VEC)
          i = pass(&w, &g, i);
        else
          step(&w, &g, i, 0, 0, 0);
      }
    }
}

/* ---- the machine runs the same ---- */

enum { AREA = 32768 };

/* Two NaNs are the same value: which one survives an operation is not defined. */
static bool same_bytes(const uint8_t *a, const uint8_t *b, size_t *at) {
  for (size_t i = 0; i < AREA; i += 4) {
    float x, y;
    if (memcmp(a + i, b + i, 4) == 0) continue;
    memcpy(&x, a + i, 4);
    memcpy(&y, b + i, 4);
    *at = i;
    if (!(isnan(x) && isnan(y))) return false;
  }
  return true;
}

static void fill_area(uint8_t *p, uint64_t seed, bool floats) {
  static const float special[] = {
      0.0f,          -0.0f, 1.0f,       -1.0f,       0.5f,          1.5f,
      2.5f,          -2.5f, 1e-40f,     3e38f,       -3e38f,        INFINITY,
      -INFINITY,     NAN,   8388607.5f, -8388608.0f, 2147483648.0f, -2147483648.0f,
      2147483520.0f, 88.7f, -103.9f,    127.5f};
  Rng g;
  rng_seed(&g, seed);
  for (size_t i = 0; i < AREA; i += 4) {
    float f = (float)(rng_normal(&g) * 4);
    if (rng_u64(&g) % 8 == 0) f = special[rng_u64(&g) % NPU_COUNTOF(special)];
    uint32_t u = (uint32_t)rng_u64(&g);
    memcpy(p + i, floats ? (const void *)&f : &u, 4);
  }
}

/* Loads the area, runs the program args[0] times, stores the area. */
static void program_text(const char *desc, const char *prog, StrBuf *t) {
  strbuf_printf(t, ".dram %d\n.io input \"x\" s8[%d] 0\n.io output \"y\" s8[%d] %d\n", 2 * AREA,
                AREA, AREA, AREA);
  strbuf_printf(t, ".desc 0 dma rank=1 elsize=1 size=[%d] dstride=[1] sstride=[1] extent=[%d]\n",
                AREA, AREA);
  strbuf_printf(
      t, ".desc 1 dma rank=1 elsize=1 dram=%d size=[%d] dstride=[1] sstride=[1] extent=[%d]\n",
      AREA, AREA, AREA);
  strbuf_printf(t, ".desc 2 %s\n.vprog 0 { %s }\n", desc, prog);
  strbuf_puts(t, "dload d0, 0\ndload d1, 1\ndload d2, 2\nld0 d0\nfence\narg r1, 0\n"
                 "again: vx p0, d2\naddi r2, r2, 1\nbne r2, r1, again\nfence\nst d1\nhalt\n");
}

static void expect_area(Run *r, const uint8_t *want, const char *what, NpurtHost host) {
  size_t at = 0;
  const uint8_t *y = io_bytes(r, IO_OUTPUT, "y");
  if (same_bytes(y, want, &at)) return;
  uint32_t got, expected;
  memcpy(&got, y + at, 4);
  memcpy(&expected, want + at, 4);
  fail_msg("host %d, %s: byte %zu holds %08x, expected %08x", (int)host, what, at, got, expected);
}

/* Programs give the same when they run again, and, tried once, once they have been compiled with
 * optimization (after 2^25 lane operations). */
static void compare(const char *desc, const char *prog, uint64_t seed, bool floats) {
  StrBuf t = {0};
  char why[160];
  IsaVprog p;
  if (!isa_vprog_parse(prog, &p, why)) fail_msg("%s: %s", prog, why);
  program_text(desc, prog, &t);
  uint8_t *spm = malloc(AREA), *acc = calloc(1, AREA);
  static const NpurtHost hosts[] = {NPURT_HOST_PORTABLE, NPURT_HOST_AVX2, NPURT_HOST_BEST};
  for (size_t h = 0; h < NPU_COUNTOF(hosts); h++) {
    Run r = load_with(t.data, (NpurtOptions){.mode = NPURT_FAST, .host = hosts[h]});
    const IsaDesc *d = &npurt_image(r.m)->descs[2];
    fill_area(spm, seed, floats);
    memset(acc, 0, AREA);
    memcpy(io_bytes(&r, IO_INPUT, "x"), spm, AREA);
    interpret(&p, d, spm, acc);
    npurt_set_arg(r.m, 0, 1);
    run_ok(&r);
    expect_area(&r, spm, t.data, hosts[h]);
    double work = p.n;
    for (int j = 0; j < 5; j++) work *= d->vec.count[j];
    if (hosts[h] == NPURT_HOST_BEST && work > 0) {
      npurt_set_arg(r.m, 0, (int64_t)((1 << 25) / work) + 2);
      run_ok(&r);
      expect_area(&r, spm, t.data, hosts[h]);
    }
    run_free(&r);
  }
  free(spm);
  free(acc);
  strbuf_free(&t);
}

#define ROWS                                                                                       \
  "vector count=[2,3,1,1,37] s0=spm:f32@0[3000,1000,0,0,4] s1=spm:f32@8192[3000,1000,0,0,4] "      \
  "s2=spm:f32@16384[3000,1000,0,0,4]"

static void every_operation(void **state) {
  (void)state;
  for (unsigned k = 0; k < VOP_COUNT; k++) {
    const IsaVopInfo *i = isa_vop_info((IsaVopKind)k);
    if ((i->unit != UNIT_ALU && (i->unit < UNIT_SFU || i->unit > UNIT_SIN)) || k == VOP_IOTA ||
        (k >= VOP_IOTA0 && k <= VOP_IOTAO1))
      continue;
    const char *tail = strstr(i->operands, "c")   ? "v2, v0, v1"
                       : strstr(i->operands, "b") ? "v0, v1"
                                                  : "v0";
    char prog[200];
    snprintf(prog, sizeof prog,
             "vec; ld v0, s0; ld v1, s1; and.i v2, v0, 1; %s v3, %s; st s2, v3; endv", i->mnemonic,
             tail);
    compare(ROWS, prog, k,
            strcmp(i->mnemonic + strlen(i->mnemonic) - 2, ".i") != 0 && k != VOP_CVT_FI);
    /* the same once per row */
    tail = strstr(i->operands, "c") ? "r2, r0, r1" : strstr(i->operands, "b") ? "r0, r1" : "r0";
    snprintf(prog, sizeof prog, "ld r0, s0; ld r1, s1; and.i r2, r0, 1; %s r3, %s; st s2, r3",
             i->mnemonic, tail);
    compare(ROWS, prog, k, true);
  }
}

static void streams(void **state) {
  (void)state;
  static const char *const types[] = {"s8", "bf16", "f32", "s32"};
  for (int from = 0; from < 4; from++)
    for (int to = 0; to < 4; to++)
      for (int stride = 0; stride < 4; stride++) {
        static const int bytes[] = {1, 2, 4, 4};
        char desc[400];
        int sf = stride == 0   ? bytes[from]
                 : stride == 1 ? 0
                 : stride == 2 ? 3 * bytes[from]
                               : -bytes[from];
        int st = stride == 3 ? 0 : stride == 2 ? 5 * bytes[to] : bytes[to];
        snprintf(
            desc, sizeof desc,
            "vector count=[1,4,1,1,53] s0=spm:%s@%d[0,1500,0,0,%d] s1=spm:%s@12000[0,1500,0,0,%d]",
            types[from], sf < 0 ? 1000 : 0, sf, types[to], st);
        const char *convert = from < 1 || from > 2 ? (to < 1 || to > 2 ? "mov" : "cvt.fi")
                                                   : (to < 1 || to > 2 ? "cvt.if" : "mov");
        char prog[120];
        snprintf(prog, sizeof prog, "vec; ld v0, s0; %s v1, v0; st s1, v1; endv", convert);
        compare(desc, prog, (uint64_t)(from * 16 + to), from == 2);
      }
  compare("vector count=[1,2,1,1,100] s0=acc:f32@64[0,128,0,0,1] s1=spm:f32@0[0,512,0,0,4] "
          "s2=spm:f32@4096[0,512,0,0,4]",
          "vec; ld v0, s1; st s0, v0; endv; vec; ld v1, s0; add.f v1, v1, 1.0; st s2, v1; endv", 5,
          true);
}

static void reductions_and_loops(void **state) {
  (void)state;
  static const int widths[] = {1, 7, 15, 16, 17, 64, 200};
  for (size_t i = 0; i < NPU_COUNTOF(widths); i++) {
    char d[400];
    snprintf(d, sizeof d,
             "vector count=[1,5,1,1,%d] s0=spm:f32@0[0,800,0,0,4] s1=spm:f32@8192[0,800,0,0,4] "
             "s2=spm:f32@16384[0,4,0,0,0]",
             widths[i]);
    /* softmax, in place in its last pass */
    compare(d,
            "vec; ld v0, s0; rmax.f r0, v0; endv; vec; ld v0, s0; sub.f v0, v0, r0; exp.f v0, v0; "
            "st s1, v0; rsum.f r1, v0; endv; "
            "recip.f r2, r1; st s2, r2; vec; ld v0, s1; mul.f v0, v0, r2; st s1, v0; endv",
            11, true);
    compare(d,
            "vec; ld v0, s0; rsum.i r0, v0; rmax.i r1, v0; rmin.i r2, v0; rmin.f r3, v0; endv; "
            "add.i r0, r0, r1; add.i r0, r0, r2; xor.i r0, r0, r3; st s2, r0",
            12, false);
    compare(d, "vec; iota v0; iota.o1 v1; add.i v0, v0, v1; st s1, v0; endv; iota.o1 r0; st s2, r0",
            13, false);
  }
  /* a 3x3 max pool over channels, an average, and the position of the largest */
  const char *pool = "vector count=[3,4,3,3,24] s0=spm:f32@0[2304,192,1152,96,4] "
                     "s1=spm:f32@16384[400,100,0,0,4] s2=spm:s32@24576[400,100,0,0,4]";
  compare(pool, "vec; mov v0, -inf; red; ld v1, s0; max.f v0, v0, v1; endr; st s1, v0; endv", 14,
          true);
  compare(pool,
          "vec; mov v0, 0.0; red; ld v1, s0; add.f v0, v0, v1; endr; mul.f v0, v0, 0.111; st s1, "
          "v0; endv",
          15, true);
  compare(pool,
          "vec; mov v0, -inf; mov v2, 0; red; ld v1, s0; lt.f v3, v0, v1; max.f v0, v0, v1; "
          "iota.r0 v4; mul.i v4, v4, 3; iota.r1 v5; add.i v4, v4, v5; "
          "sel v2, v3, v4, v2; endr; st s2, v2; endv",
          16, true);
  compare("vector count=[1,1,0,3,20] s0=spm:f32@0[0,0,0,0,4] s1=spm:f32@8192[0,0,0,0,4]",
          "vec; mov v0, 2.0; red; ld v1, s0; add.f v0, v0, v1; endr; st s1, v0; endv", 17, true);
  /* sums in lanes, over loops that may be empty, and of a row by way of the loops */
  compare("vector count=[2,3,0,3,21] s0=spm:f32@0[0,84,0,0,4] s1=spm:f32@8192[0,84,0,0,4]",
          "vec; red; ld v1, s0; sum.f v0, v1; endr; st s1, v0; endv", 19, true);
  compare(pool,
          "vec; red; ld v1, s0; sum.f v0, v1; sum.f v2, 0.1; endr; sub.f v0, v0, v2; st s1, "
          "v0; endv",
          20, true);
  compare("vector count=[3,4,3,3,24] s0=spm:f32@0[2304,192,1152,96,4] "
          "s1=spm:f32@16384[400,100,0,0,4] s2=spm:f32@24576[400,100,0,0,0]",
          "vec; red; ld v1, s0; rsum.f r0, v1; rmax.f r1, v1; sum.f v2, v1; endr; st s1, v2; endv; "
          "add.f r0, r0, r1; st s2, r0",
          21, true);
  compare("vector count=[1,2,1,1,0] s0=spm:f32@0[0,4,0,0,4]",
          "vec; mov v0, 1.0; rmax.f r0, v0; endv; st s0, r0", 18, true);
}

/* ---- random programs, of integers or of floats alone: the bits of a NaN never matter ---- */

static bool op_allowed(IsaVopKind op, bool floats) {
  bool shared = op == VOP_MOV || op == VOP_SEL;
  bool f = (op >= VOP_ADD_F && op <= VOP_NE_F) || op == VOP_CVT_BF ||
           (op >= VOP_DIV_F && op <= VOP_RSQRT_F);
  bool i = (op >= VOP_ADD_I && op <= VOP_NE_I) || op == VOP_CVT_FI;
  return shared || (floats ? f : i);
}

/* A red section: something loaded, changed, and collected in lanes (v6, v7) and in row scalars. */
static void random_red(Rng *g, bool floats, unsigned *reduced, StrBuf *p) {
  strbuf_printf(p, "; red; ld v8, s%d", (int)rng_range(g, 0, 1));
  if (rng_range(g, 0, 1)) strbuf_puts(p, floats ? "; mul.f v8, v8, 1.5" : "; add.i v8, v8, 7");
  if (floats) strbuf_puts(p, "; sum.f v6, v8; sum.f v7, 0.1");
  for (unsigned r = 4; r < 6; r++) {
    static const char *const reds[2][2] = {{"rsum.i", "rmin.i"}, {"rsum.f", "rsum.f"}};
    strbuf_printf(p, "; %s r%u, v8", reds[floats][rng_range(g, 0, 1)], r);
    *reduced |= 1u << r;
  }
  strbuf_puts(p, floats ? "; endr; add.f v6, v6, v7; st s2, v6" : "; endr");
}

static void random_program(Rng *g, bool floats, StrBuf *p) {
  int passes = (int)rng_range(g, 1, 3), ops = 0;
  unsigned r_known = 0;
  for (int k = 0; k < passes; k++) {
    unsigned known = 0, reduced = 0;
    strbuf_puts(p, k ? "; vec" : "vec");
    if (rng_range(g, 0, 2) == 0) random_red(g, floats, &reduced, p), ops += 8;
    int n = (int)rng_range(g, 3, 14);
    for (int i = 0; i < n && ops < 50; i++, ops++) {
      unsigned dst = (unsigned)rng_range(g, 0, 5);
      unsigned pick = (unsigned)rng_range(g, 0, 9);
      if (pick < 2 || known == 0) {
        strbuf_printf(p, "; ld v%u, s%d", dst, (int)rng_range(g, 0, 1));
        known |= 1u << dst;
        continue;
      }
      unsigned v[3];
      for (int a = 0; a < 3; a++) do
          v[a] = (unsigned)rng_range(g, 0, 5);
        while (!(known >> v[a] & 1));
      if (pick == 2) {
        strbuf_printf(p, "; st s2, v%u", v[0]);
      } else if (pick == 3) {
        static const char *const reds[] = {"rsum.f", "rsum.i", "rmax.i", "rmin.i"};
        unsigned r = (unsigned)rng_range(g, 0, 3);
        if (reduced >> r & 1) continue;
        reduced |= 1u << r;
        strbuf_printf(p, "; %s r%u, v%u", floats ? reds[0] : reds[rng_range(g, 1, 3)], r, v[0]);
      } else {
        IsaVopKind op;
        do op = (IsaVopKind)rng_range(g, VOP_MOV, VOP_RSQRT_F);
        while (!op_allowed(op, floats));
        const IsaVopInfo *f = isa_vop_info(op);
        strbuf_printf(p, "; %s v%u, v%u", f->mnemonic, dst, v[0]);
        unsigned usable = r_known & ~reduced;
        if (strchr(f->operands, 'b')) {
          if (usable && rng_u64(g) % 3 == 0)
            strbuf_printf(p, ", r%d", __builtin_ctz(usable));
          else
            strbuf_printf(p, ", v%u", v[1]);
        }
        if (strchr(f->operands, 'c')) strbuf_printf(p, ", v%u", v[2]);
        known |= 1u << dst;
      }
    }
    strbuf_puts(p, "; endv");
    r_known |= reduced;
  }
}

static void random_programs(void **state) {
  (void)state;
  Rng g;
  rng_seed(&g, 2024);
  for (uint64_t i = 0; i < 60; i++) {
    StrBuf p = {0};
    char d[400];
    bool floats = i % 2;
    random_program(&g, floats, &p);
    snprintf(d, sizeof d,
             "vector count=[%d,%d,%d,%d,%d] s0=spm:f32@0[600,100,16,4,%d] "
             "s1=spm:%s@4096[800,%d,-8,12,4] s2=spm:f32@16384[2048,512,0,0,4]",
             (int)rng_range(&g, 1, 3), (int)rng_range(&g, 1, 4), (int)rng_range(&g, 0, 3),
             (int)rng_range(&g, 0, 3), (int)rng_range(&g, 1, 90), (int)rng_range(&g, 0, 2) * 4,
             floats ? "f32" : "s32", (int)rng_range(&g, 0, 100) * 4);
    compare(d, p.data, i, floats);
    strbuf_free(&p);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_operation), cmocka_unit_test(streams),
                                     cmocka_unit_test(reductions_and_loops),
                                     cmocka_unit_test(random_programs)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
