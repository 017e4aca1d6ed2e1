/* What DMA and the matrix unit do, against values computed here element by element. */
#include "runtime_util.h"
#include <math.h>
#include <stdio.h>

static const int modes[] = {NPURT_FAST, NPURT_TIMED, NPURT_CHECK};

/* ---- DMA: a load of a box and a store of the scratchpad to "spm", against plain loops ---- */

typedef struct {
  int rank;
  int elsize;
  int64_t dram, spm, size[5], dstride[5], sstride[5], coord[5], extent[5];
  uint32_t fill;
} Box;

static void box_print(const Box *b, int n, StrBuf *out) {
  const int64_t *list[] = {b->size, b->dstride, b->sstride, b->coord, b->extent};
  static const char *const names[] = {"size", "dstride", "sstride", "coord", "extent"};
  strbuf_printf(out, ".desc %d dma rank=%d elsize=%d dram=%lld spm=%lld fill=%u", n, b->rank,
                b->elsize, (long long)b->dram, (long long)b->spm, b->fill);
  for (size_t i = 0; i < 5; i++) {
    strbuf_printf(out, " %s=[", names[i]);
    for (int a = 0; a < b->rank; a++)
      strbuf_printf(out, "%s%lld", a ? "," : "", (long long)list[i][a]);
    strbuf_puts(out, "]");
  }
  strbuf_puts(out, "\n");
}

/* The definition: every element of the box in row-major order. */
static void box_load(const Box *b, const uint8_t *dram, uint8_t *spm) {
  int64_t i[5] = {0};
  for (;;) {
    int64_t from = b->dram, to = b->spm;
    bool inside = true;
    for (int a = 0; a < b->rank; a++) {
      int64_t c = b->coord[a] + i[a];
      inside = inside && c >= 0 && c < b->extent[a];
      from += c * b->dstride[a];
      to += i[a] * b->sstride[a];
    }
    memcpy(spm + to, inside ? (const void *)(dram + from) : &b->fill, (size_t)b->elsize);
    int a = b->rank;
    while (a-- > 0 && ++i[a] == b->size[a]) i[a] = 0;
    if (a < 0) return;
  }
}

enum { AREA = 8192 };

static void box_case(const Box *b, const char *insn) {
  StrBuf t = {0};
  strbuf_printf(&t, ".dram %d\n.io input \"x\" s8[%d] 0\n.io output \"y\" s8[%d] %d\n", 2 * AREA,
                AREA, AREA, AREA);
  box_print(b, 0, &t);
  /* the whole area is cleared first, so that nothing uninitialised is stored */
  strbuf_printf(
      &t, ".desc 1 dma rank=1 elsize=1 dram=%d size=[%d] dstride=[1] sstride=[1] extent=[%d]\n",
      AREA, AREA, AREA);
  strbuf_printf(&t,
                ".desc 2 vector count=[1,1,1,1,%d] s0=spm:s8@0[0,0,0,0,1]\n.vprog 0 { vec; st s0, "
                "0; endv }\n",
                AREA);
  strbuf_printf(&t,
                "dload d0, 0\ndload d1, 1\ndload d2, 2\nvx p0, d2 give s2\n%s d0 take s2 give "
                "s0\nst d1 take s0\nhalt\n",
                insn);
  for (size_t k = 0; k < NPU_COUNTOF(modes); k++) {
    Run r = load_text(t.data, (NpurtMode)modes[k]);
    uint8_t *x = io_bytes(&r, IO_INPUT, "x"), *y = io_bytes(&r, IO_OUTPUT, "y"), want[AREA] = {0};
    for (int i = 0; i < AREA; i++) x[i] = (uint8_t)(i * 7 + i / 256 + 1);
    box_load(b, x, want);
    run_ok(&r);
    assert_memory_equal(y, want, AREA);
    run_free(&r);
  }
  strbuf_free(&t);
}

static void dma_boxes(void **state) {
  (void)state;
  box_case(&(Box){.rank = 1,
                  .elsize = 1,
                  .dram = 3,
                  .spm = 5,
                  .size = {100},
                  .dstride = {1},
                  .sstride = {1},
                  .extent = {100}},
           "ld0");
  /* transpose */
  box_case(&(Box){.rank = 2,
                  .elsize = 2,
                  .size = {8, 12},
                  .dstride = {24, 2},
                  .sstride = {2, 16},
                  .extent = {8, 12}},
           "ld1");
  /* broken rows that merge, broken rows that do not, five axes, backwards */
  box_case(&(Box){.rank = 3,
                  .elsize = 4,
                  .dram = 64,
                  .size = {2, 3, 4},
                  .dstride = {48, 16, 4},
                  .sstride = {48, 16, 4},
                  .extent = {2, 3, 4}},
           "ld0");
  box_case(&(Box){.rank = 5,
                  .elsize = 1,
                  .size = {2, 3, 2, 3, 2},
                  .dstride = {500, 100, 30, 5, 2},
                  .sstride = {36, 12, 6, 2, 1},
                  .coord = {1, 0, 2, 1, 0},
                  .extent = {4, 3, 6, 4, 2}},
           "ld0");
  box_case(&(Box){.rank = 1,
                  .elsize = 4,
                  .dram = 400,
                  .spm = 0,
                  .size = {9},
                  .dstride = {-4},
                  .sstride = {8},
                  .extent = {9}},
           "ld0");
  /* broadcast: stride 0 in memory */
  box_case(&(Box){.rank = 2,
                  .elsize = 1,
                  .dram = 9,
                  .size = {6, 4},
                  .dstride = {0, 1},
                  .sstride = {4, 1},
                  .extent = {6, 4}},
           "ld1");
}

static void dma_fill(void **state) {
  (void)state;
  for (int64_t y = -5; y <= 8; y += 1)
    for (int64_t x = -4; x <= 9; x += 3)
      box_case(&(Box){.rank = 3,
                      .elsize = 2,
                      .dram = 100,
                      .spm = 32,
                      .size = {4, 5, 3},
                      .dstride = {60, 6, 2},
                      .sstride = {30, 6, 2},
                      .coord = {y, x, 0},
                      .extent = {6, 8, 3},
                      .fill = 0xbeef},
               "ld0.fill");
  box_case(&(Box){.rank = 1,
                  .elsize = 1,
                  .size = {300},
                  .dstride = {1},
                  .sstride = {1},
                  .coord = {-100},
                  .extent = {120},
                  .fill = 0x80},
           "ld1.fill");
}

static void dma_gather(void **state) {
  (void)state;
  /* rows 3, 0, 3, 1 of a table of four rows of five s32; then scattered to rows 2, 0, 3, 1 of the
   * output */
  const char *text =
      ".dram 4096\n.io input \"x\" s32[4,5] 0\n.io input \"i\" s32[8] 128\n.io output \"y\" "
      "s32[4,5] 256\n"
      ".desc 0 dma rank=1 elsize=4 dram=128 spm=1024 size=[8] dstride=[4] sstride=[4] extent=[8]\n"
      ".desc 1 dma rank=2 elsize=4 dram=0 spm=0 index=1024 size=[4,5] dstride=[20,4] "
      "sstride=[20,4] extent=[4,5]\n"
      ".desc 2 dma rank=2 elsize=4 dram=256 spm=0 index=1040 size=[4,5] dstride=[20,4] "
      "sstride=[20,4] extent=[4,5]\n"
      "dload d0, 0\ndload d1, 1\ndload d2, 2\nld0 d0 give s0\nld0.gather d1 take s0 give "
      "s1\nst.scatter d2 take s1\nhalt\n";
  static const int32_t index[8] = {3, 0, 3, 1, 2, 0, 3, 1};
  for (size_t k = 0; k < NPU_COUNTOF(modes); k++) {
    Run r = load_text(text, (NpurtMode)modes[k]);
    int32_t *x = io_bytes(&r, IO_INPUT, "x"), *i = io_bytes(&r, IO_INPUT, "i"),
            *y = io_bytes(&r, IO_OUTPUT, "y");
    for (int32_t n = 0; n < 20; n++) x[n] = 1000 + n;
    memcpy(i, index, sizeof index);
    run_ok(&r);
    for (int32_t n = 0; n < 4; n++)
      for (int32_t c = 0; c < 5; c++)
        assert_int_equal(y[5 * index[4 + n] + c], 1000 + 5 * index[n] + c);
    i[2] = 4;
    expect_fail(&r, "E-index", "index 4 (entry 2 of the list) is outside 0..3");
    i[2] = -1;
    expect_fail(&r, "E-index", "index -1");
    run_free(&r);
  }
}

/* Rows 2, 0 of a 3x4 table, columns 2..5: the last two do not exist and are filled. */
static void dma_gather_fill(void **state) {
  (void)state;
  const char *text =
      ".dram 256\n.io input \"x\" s8[3,4] 0\n.io input \"i\" s32[2] 16\n.io output \"y\" s8[2,4] "
      "32\n"
      ".desc 0 dma rank=1 elsize=4 dram=16 spm=64 size=[2] dstride=[4] sstride=[4] extent=[2]\n"
      ".desc 1 dma rank=2 elsize=1 spm=0 index=64 size=[2,4] dstride=[4,1] sstride=[4,1] "
      "coord=[0,2] extent=[3,4] fill=9\n"
      ".desc 2 dma rank=1 elsize=1 dram=32 spm=0 size=[8] dstride=[1] sstride=[1] extent=[8]\n"
      "dload d0, 0\ndload d1, 1\ndload d2, 2\nld0 d0 give s0\nld1.gather d1 take s0 give s1\nst d2 "
      "take s1\nhalt\n";
  for (size_t k = 0; k < NPU_COUNTOF(modes); k++) {
    Run r = load_text(text, (NpurtMode)modes[k]);
    uint8_t *x = io_bytes(&r, IO_INPUT, "x");
    int32_t *i = io_bytes(&r, IO_INPUT, "i");
    static const uint8_t want[8] = {102, 103, 9, 9, 100 - 18, 100 - 17, 9, 9};
    for (uint8_t n = 0; n < 12; n++) x[n] = (uint8_t)(n < 4 ? 80 + n : n < 8 ? n : 92 + n);
    i[0] = 2, i[1] = 0;
    run_ok(&r);
    assert_memory_equal(io_bytes(&r, IO_OUTPUT, "y"), want, 8);
    run_free(&r);
  }
}

static void dma_clip(void **state) {
  (void)state;
  /* a 4x4 box at (2, -1) of a 3x3 tensor: only (2,0) (2,1) (2,2) are written */
  const char *text =
      ".dram 256\n.io input \"x\" s8[16] 0\n.io output \"y\" s8[3,3] 64\n"
      ".desc 0 dma rank=1 elsize=1 spm=0 size=[16] dstride=[1] sstride=[1] extent=[16]\n"
      ".desc 1 dma rank=2 elsize=1 dram=64 spm=0 size=[4,4] dstride=[3,1] sstride=[4,1] "
      "coord=[2,-1] extent=[3,3]\n"
      "dload d0, 0\ndload d1, 1\nld0 d0 give s0\nst.clip d1 take s0\nhalt\n";
  for (size_t k = 0; k < NPU_COUNTOF(modes); k++) {
    Run r = load_text(text, (NpurtMode)modes[k]);
    uint8_t *x = io_bytes(&r, IO_INPUT, "x"), *y = io_bytes(&r, IO_OUTPUT, "y");
    static const uint8_t want[9] = {0, 0, 0, 0, 0, 0, 2, 3, 4};
    for (uint8_t i = 0; i < 16; i++) x[i] = (uint8_t)(i + 1);
    run_ok(&r);
    assert_memory_equal(y, want, 9);
    run_free(&r);
  }
}

/* ---- matrix unit ---- */

typedef struct {
  int64_t m, n, k1, k2; /* K = k1 runs of k2 */
  const char *x, *w;    /* dtypes */
  int64_t rows, cols;   /* of the array; 0: 64 */
  bool transposed, accumulate, strided_rows,
      repeat; /* repeat: every row lands in one accumulator row */
} MulCase;

static int64_t columns(const MulCase *c) {
  return c->cols ? c->cols : 64;
}

static int mul_text(const MulCase *c, StrBuf *t) {
  int64_t xs = strcmp(c->x, "s8") ? 2 : 1, ws = strcmp(c->w, "s8") ? 2 : 1, k = c->k1 * c->k2;
  int64_t row = k * xs + 6, wbytes = k * c->n * ws, xbytes = c->m * row;
  int64_t at_x = 65536, at_y = at_x + 262144;
  int64_t words =
      c->m * columns(c); /* all accumulator columns are stored, to see that the others keep still */
  MachineDesc machine = *plain_machine();
  if (c->rows) machine.mxu_rows = c->rows;
  machine.mxu_cols = columns(c);
  strbuf_puts(t, ".machine {\n");
  machine_print(&machine, t);
  strbuf_puts(t, "}\n");
  strbuf_printf(t,
                ".dram %lld\n.io input \"w\" s8[%lld] 0\n.io input \"x\" s8[%lld] %lld\n.io output "
                "\"y\" s32[%lld] %lld\n",
                (long long)(at_y + 4 * words), (long long)wbytes, (long long)xbytes,
                (long long)at_x, (long long)words, (long long)at_y);
  strbuf_printf(
      t, ".desc 0 dma rank=1 elsize=1 spm=0 size=[%lld] dstride=[1] sstride=[1] extent=[%lld]\n",
      (long long)wbytes, (long long)wbytes);
  strbuf_printf(t,
                ".desc 1 dma rank=1 elsize=1 dram=%lld spm=65536 size=[%lld] dstride=[1] "
                "sstride=[1] extent=[%lld]\n",
                (long long)at_x, (long long)xbytes, (long long)xbytes);
  int64_t ks = c->transposed ? ws : c->n * ws, ns = c->transposed ? k * ws : ws;
  strbuf_printf(
      t, ".desc 2 plane dtype=%s spm=0 k=[1,1,%lld] kstride=[0,0,%lld] n=%lld nstride=%lld\n", c->w,
      (long long)k, (long long)ks, (long long)c->n, (long long)ns);
  /* rows read backwards through K's outer loop when there is one, so that K is not one run */
  int64_t base = 65536 + (c->k1 - 1) * c->k2 * xs;
  int64_t m1 = c->strided_rows && c->m % 3 == 0 ? 3 : 1;
  strbuf_printf(t,
                ".desc 3 rows dtype=%s wdtype=%s spm=%lld k=[1,%lld,%lld] kstride=[0,%lld,%lld] "
                "m=[1,%lld,%lld] mstride=[0,%lld,%lld] acc=0 astride=[0,%lld,%lld]\n",
                c->x, c->w, (long long)base, (long long)c->k1, (long long)c->k2,
                (long long)(-c->k2 * xs), (long long)xs, (long long)m1, (long long)(c->m / m1),
                (long long)row, (long long)(m1 * row), (long long)(c->repeat ? 0 : 1),
                (long long)(c->repeat ? 0 : m1));
  strbuf_printf(
      t,
      ".desc 4 vector count=[1,1,1,1,%lld] s0=acc:s32@0[0,0,0,0,1] s1=spm:s32@524288[0,0,0,0,4]\n",
      (long long)words);
  strbuf_puts(t,
              ".vprog 0 { vec; ld v0, s0; st s1, v0; endv }\n.vprog 1 { vec; st s0, 7; endv }\n");
  strbuf_printf(t,
                ".desc 5 dma rank=1 elsize=4 dram=%lld spm=524288 size=[%lld] dstride=[4] "
                "sstride=[4] extent=[%lld]\n",
                (long long)at_y, (long long)words, (long long)words);
  strbuf_puts(t, "dload d0, 0\ndload d1, 1\ndload d2, 2\ndload d3, 3\ndload d4, 4\ndload d5, "
                 "5\nld0 d0 give s0\nld1 d1 give s1\n");
  strbuf_printf(t, "%s d2 take s0\nvx p1, d4 give s4\n", c->transposed ? "mm.load.t" : "mm.load");
  strbuf_printf(
      t, "mm.mul.pop%s d3 take s1, s4 give s2\nvx p0, d4 take s2 give s3\nst d5 take s3\nhalt\n",
      c->accumulate ? ".acc" : "");
  return (int)row;
}

static float as_float(uint32_t u) {
  float f;
  memcpy(&f, &u, 4);
  return f;
}

static uint32_t as_bits(float f) {
  uint32_t u;
  memcpy(&u, &f, 4);
  return u;
}

static float element(const uint8_t *p, int64_t i, const char *dtype) {
  uint16_t h;
  if (strcmp(dtype, "s8") == 0) return (int8_t)p[i];
  memcpy(&h, p + 2 * i, 2);
  return bf16_to_f32(h);
}

static void mul_want(const MulCase *c, const uint8_t *x, int row, const uint8_t *w, uint32_t *y) {
  int64_t k = c->k1 * c->k2;
  bool ints = strcmp(c->x, "s8") == 0;
  for (int64_t i = 0; i < c->m * columns(c); i++) y[i] = 7;
  for (int64_t m = 0; m < c->m; m++)
    for (int64_t n = 0; n < c->n; n++) {
      uint32_t *out = y + (c->repeat ? 0 : m) * columns(c) + n;
      uint32_t s = c->accumulate ? *out : 0;
      float f = c->accumulate ? as_float(*out) : 0;
      for (int64_t a = 0; a < c->k1; a++)
        for (int64_t b = 0; b < c->k2; b++) {
          int64_t ki = a * c->k2 + b, xi = (c->k1 - 1 - a) * c->k2 + b;
          float wv = element(w, c->transposed ? n * k + ki : ki * c->n + n, c->w),
                xv = element(x + m * row, xi, c->x);
          s += (uint32_t)((int32_t)xv * (int32_t)wv);
          f = fmaf(xv, wv, f);
        }
      *out = ints ? s : as_bits(f);
    }
}

static void fill_random(uint8_t *p, int64_t bytes, bool bf16, Rng *g) {
  for (int64_t i = 0; i < bytes; i++) p[i] = (uint8_t)rng_u64(g);
  for (int64_t i = 0; bf16 && i + 2 <= bytes; i += 2) {
    uint16_t h = f32_to_bf16((float)rng_normal(g));
    memcpy(p + i, &h, 2);
  }
}

static void mul_case(MulCase c, uint64_t seed) {
  StrBuf t = {0};
  int row = mul_text(&c, &t);
  uint32_t *want = malloc((size_t)(c.m * columns(&c)) * 4);
  for (int host = NPURT_HOST_PORTABLE; host <= NPURT_HOST_AMX; host++)
    for (size_t mode = 0; mode < NPU_COUNTOF(modes); mode++) {
      Run r = load_with(t.data,
                        (NpurtOptions){.mode = (NpurtMode)modes[mode], .host = (NpurtHost)host});
      uint8_t *x = io_bytes(&r, IO_INPUT, "x"), *w = io_bytes(&r, IO_INPUT, "w");
      Rng g;
      rng_seed(&g, seed);
      bool xf = strcmp(c.x, "s8") != 0, wf = strcmp(c.w, "s8") != 0;
      for (int64_t m = 0; m < c.m; m++) fill_random(x + m * row, row, xf, &g);
      fill_random(w, c.k1 * c.k2 * c.n * (wf ? 2 : 1), wf, &g);
      mul_want(&c, x, row, w, want);
      run_ok(&r);
      assert_memory_equal(io_bytes(&r, IO_OUTPUT, "y"), want, (size_t)(c.m * columns(&c)) * 4);
      run_free(&r);
    }
  free(want);
  strbuf_free(&t);
}

static void multiply_shapes(void **state) {
  (void)state;
  static const char *const types[][2] = {{"s8", "s8"}, {"bf16", "bf16"}, {"bf16", "s8"}};
  for (size_t t = 0; t < 3; t++) {
    const char *x = types[t][0], *w = types[t][1];
    mul_case((MulCase){.m = 64, .n = 64, .k1 = 1, .k2 = 64, .x = x, .w = w}, 1);
    mul_case((MulCase){.m = 33, .n = 48, .k1 = 1, .k2 = 64, .x = x, .w = w, .accumulate = true}, 2);
    mul_case((MulCase){.m = 1, .n = 1, .k1 = 1, .k2 = 1, .x = x, .w = w}, 3);
    mul_case((MulCase){.m = 7, .n = 13, .k1 = 1, .k2 = 37, .x = x, .w = w, .transposed = true}, 4);
    mul_case((MulCase){.m = 17, .n = 64, .k1 = 9, .k2 = 7, .x = x, .w = w, .accumulate = true}, 5);
    mul_case((MulCase){.m = 63,
                       .n = 29,
                       .k1 = 4,
                       .k2 = 16,
                       .x = x,
                       .w = w,
                       .strided_rows = true,
                       .transposed = true},
             6);
    mul_case((MulCase){.m = 120, .n = 64, .k1 = 1, .k2 = 50, .x = x, .w = w, .strided_rows = true},
             7);
    mul_case((MulCase){.m = 21,
                       .n = 20,
                       .k1 = 1,
                       .k2 = 30,
                       .x = x,
                       .w = w,
                       .repeat = true,
                       .accumulate = true},
             8);
  }
}

/* Arrays that are not 64 by 64: several steps of K, column counts that fill no vector. */
static void multiply_other_arrays(void **state) {
  (void)state;
  static const char *const types[][2] = {{"s8", "s8"}, {"bf16", "s8"}};
  for (size_t t = 0; t < 2; t++) {
    MulCase c = {.x = types[t][0],
                 .w = types[t][1],
                 .rows = 128,
                 .cols = 128,
                 .m = 40,
                 .n = 128,
                 .k1 = 1,
                 .k2 = 128};
    mul_case(c, 20);
    c.k2 = 100, c.n = 70, c.accumulate = true, c.transposed = true;
    mul_case(c, 21);
    c = (MulCase){.x = types[t][0],
                  .w = types[t][1],
                  .rows = 300,
                  .cols = 100,
                  .m = 18,
                  .n = 100,
                  .k1 = 1,
                  .k2 = 300};
    mul_case(c, 22);
    c.k1 = 3, c.k2 = 67, c.n = 33, c.accumulate = true;
    mul_case(c, 23);
    c = (MulCase){
        .x = types[t][0], .w = types[t][1], .rows = 5, .cols = 3, .m = 9, .n = 3, .k1 = 1, .k2 = 5};
    mul_case(c, 24);
  }
}

/* Products reach -128 * -128 and sums wrap; infinities and NaN give the same bytes on every host.
 */
static void multiply_extremes(void **state) {
  (void)state;
  MulCase c = {.m = 18, .n = 32, .k1 = 1, .k2 = 64, .x = "s8", .w = "s8", .accumulate = true};
  StrBuf t = {0};
  int row = mul_text(&c, &t);
  for (int host = NPURT_HOST_PORTABLE; host <= NPURT_HOST_AMX; host++) {
    Run r = load_with(t.data, (NpurtOptions){.mode = NPURT_FAST, .host = (NpurtHost)host});
    memset(io_bytes(&r, IO_INPUT, "x"), 0x80, (size_t)(18 * row));
    memset(io_bytes(&r, IO_INPUT, "w"), 0x80, 64 * 32);
    run_ok(&r);
    int32_t *y = io_bytes(&r, IO_OUTPUT, "y");
    assert_int_equal(y[0], 7 + 64 * 128 * 128);
    assert_int_equal(y[17 * 64 + 31], 7 + 64 * 128 * 128);
    assert_int_equal(y[32], 7);
    run_free(&r);
  }
  strbuf_free(&t);
  t = (StrBuf){0};
  c = (MulCase){.m = 5, .n = 20, .k1 = 1, .k2 = 8, .x = "bf16", .w = "bf16"};
  row = mul_text(&c, &t);
  for (int host = NPURT_HOST_PORTABLE; host <= NPURT_HOST_AMX; host++) {
    Run r = load_with(t.data, (NpurtOptions){.mode = NPURT_FAST, .host = (NpurtHost)host});
    uint16_t *x = io_bytes(&r, IO_INPUT, "x"), *w = io_bytes(&r, IO_INPUT, "w");
    for (int i = 0; i < 5 * row / 2; i++)
      x[i] = i < row / 2 ? 0x7f80 : 0x3f80; /* row 0 infinite, the others 1 */
    for (int i = 0; i < 8 * 20; i++) w[i] = i % 20 == 0 ? 0 : i % 20 == 1 ? 0xffc1 : 0x3f80;
    run_ok(&r);
    uint32_t *y = io_bytes(&r, IO_OUTPUT, "y");
    assert_int_equal(y[0], 0x7fc00000);      /* inf * 0 */
    assert_int_equal(y[2], 0x7f800000);      /* inf */
    assert_int_equal(y[64 + 1], 0x7fc00000); /* NaN of any kind */
    assert_int_equal(y[64 + 2], 0x41000000); /* 8.0 */
    run_free(&r);
  }
  strbuf_free(&t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(dma_boxes),
                                     cmocka_unit_test(dma_fill),
                                     cmocka_unit_test(dma_gather),
                                     cmocka_unit_test(dma_gather_fill),
                                     cmocka_unit_test(dma_clip),
                                     cmocka_unit_test(multiply_shapes),
                                     cmocka_unit_test(multiply_other_arrays),
                                     cmocka_unit_test(multiply_extremes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
