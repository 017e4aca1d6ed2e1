/* What each limit of a machine costs, worked out by hand: `edge` (64 x 64 array, 64 lanes, 4
 * micro-operations a cycle) with every limit ideal but the one in question. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "isa/isa.h"
#include "tests/support/compare.h"

static void near(double got, double want) {
  if (!number_near(got, want, 1e-9 * fabs(want))) fail_msg("%.12g, expected %.12g", got, want);
}

static IsaCost cost(const char *limit, IsaInsnKind k, const IsaDesc *d, const char *program) {
  IsaVprog vp = {0};
  char why[160], spec[200];
  MachineDesc m;
  DiagEngine *diag = diag_new();
  snprintf(spec, sizeof spec, "edge,ideal,%s", limit);
  assert_true(machine_load(spec, &m, diag));
  diag_free(diag);
  if (program && !isa_vprog_parse(program, &vp, why)) fail_msg("%s", why);
  IsaInsn in = {.kind = k};
  return isa_cost(&in, d, program ? &vp : NULL, &m);
}

static void sequencer(void **state) {
  (void)state;
  near(cost("seq_ipc=0.5", INSN_ADD, NULL, NULL).cycles, 2);
  near(cost("seq_ipc=4", INSN_ADD, NULL, NULL).cycles, 0.25);
}

static void transfer(void **state) {
  (void)state;
  IsaDesc d = {
      .kind = DESC_DMA,
      .rank = 2,
      .elsize = 1,
      .dma = {.size = {4, 100}, .dstride = {256, 1}, .sstride = {100, 1}, .extent = {10, 256}}};
  IsaCost c = cost("dma_setup=16", INSN_LD0, &d, NULL);
  near(c.setup, 16);
  near(c.cycles, 16 + 4); /* four pieces */
  /* Alone: 4 * 128 bytes at 32 a cycle; with 10 bytes of scratchpad a cycle, 400 of them. */
  MachineDesc m;
  DiagEngine *diag = diag_new();
  assert_true(machine_load("edge,ideal,dma_setup=16", &m, diag));
  near(isa_alone(&c, &m), 16 + 16);
  assert_true(machine_load("edge,ideal,dma_setup=16,spm_bytes_per_cycle=10", &m, diag));
  near(isa_alone(&c, &m), 16 + 40);
  diag_free(diag);
}

static void array(void **state) {
  (void)state;
  IsaDesc d = {
      .kind = DESC_ROWS,
      .dtype = DT_S8,
      .wdtype = DT_S8,
      .rows = {.k = {1, 1, 64}, .kstride = {0, 0, 1}, .m = {1, 1, 100}, .mstride = {0, 0, 64}}};
  IsaCost c = cost("mxu_latency=126", INSN_MM_MUL, &d, NULL);
  near(c.cycles, 100);
  near(c.latency, 126);
  near(c.acc_rows, 100);
  near(cost("mxu_latency=126", INSN_MM_MUL_ACC, &d, NULL).acc_rows, 200); /* read and written */
  MachineDesc m;
  DiagEngine *diag = diag_new();
  c = cost("mxu_latency=0", INSN_MM_MUL_ACC, &d, NULL);
  assert_true(machine_load("edge,ideal,acc_rows_per_cycle=1", &m, diag));
  near(isa_alone(&c, &m), 200);
  assert_true(machine_load("edge,ideal,acc_rows_per_cycle=2", &m, diag));
  near(isa_alone(&c, &m), 100);
  diag_free(diag);
}

static void vector_unit(void **state) {
  (void)state;
  IsaDesc d = {.kind = DESC_VECTOR, .nstreams = 1, .vec = {.count = {1, 6, 1, 1, 100}}};
  d.vec.stream[0].dtype = DT_F32;
  d.vec.stream[0].stride[VLOOP_V] = 4;
  near(cost("vpu_start=20", INSN_VX, &d, "vec; ld v0, s0; endv").cycles, 20 + 6 * 2);
  /* 64 lanes at 16 a cycle: 4; the second chunk of 36 counts as a whole one. */
  const char *e = "vec; ld v0, s0; exp.f v0, v0; endv",
             *v = "vec; ld v0, s0; div.f v0, v0, v0; endv",
             *s = "vec; ld v0, s0; sin.f v0, v0; endv", *r = "vec; ld v0, s0; rsqrt.f v0, v0; endv",
             *q = "vec; ld v0, s0; sqrt.f v0, v0; endv";
  near(cost("vpu_sfu_rate=16", INSN_VX, &d, e).cycles, 8 + 6 * 2 * 4);
  near(cost("vpu_exp_passes=3", INSN_VX, &d, e).cycles, 8 + 6 * 2 * 3);
  near(cost("vpu_exp_passes=3", INSN_VX, &d, v).cycles, 8 + 6 * 2);
  near(cost("vpu_div_passes=2,vpu_sfu_rate=16", INSN_VX, &d, v).cycles, 8 + 6 * 2 * 8);
  near(cost("vpu_div_passes=2", INSN_VX, &d, q).cycles, 8 + 6 * 2 * 2);
  near(cost("vpu_div_passes=2,vpu_exp_passes=2,vpu_sin_passes=5", INSN_VX, &d, r).cycles,
       8 + 6 * 2);
  near(cost("vpu_sin_passes=5", INSN_VX, &d, s).cycles, 8 + 6 * 2 * 5);
  /* Row operations are of one element. */
  near(cost("vpu_sfu_rate=16", INSN_VX, &d, "vec; ld v0, s0; rmax.f r0, v0; endv; exp.f r0, r0")
           .cycles,
       8 + 6 * (2 + 1));
  /* A tree over 64 lanes has 6 levels, over 10 lanes 4; a sum over loops needs none. */
  const char *sum = "vec; ld v0, s0; rsum.f r0, v0; endv";
  near(cost("vpu_reduce_step=2", INSN_VX, &d, sum).cycles, 8 + 6 * (2 + 12));
  near(cost("vpu_reduce_step=2", INSN_VX, &d, "vec; red; ld v0, s0; sum.f v1, v0; endr; endv")
           .cycles,
       8 + 6 * 2);
  d.vec.count[VLOOP_V] = 10;
  near(cost("vpu_reduce_step=2", INSN_VX, &d, sum).cycles, 8 + 6 * (1 + 8));
  d.vec.count[VLOOP_V] = 1;
  near(cost("vpu_reduce_step=2", INSN_VX, &d, sum).cycles, 8 + 6);
}

/* 64 banks of 8 bytes. */
#define BANKS "spm_bytes_per_cycle=512,spm_word=8"

static void strided_streams(void **state) {
  (void)state;
  const struct {
    int stride;
    double cycles, bytes;       /* of a chunk of 64; per element */
  } cases[] = {{4, 1, 4},       /* neighbours */
               {0, 1, 4. / 64}, /* one element */
               {8, 1, 8},       /* a word each, every bank once */
               {12, 1, 8},      /* no multiple of a word: spread */
               {16, 2, 8},      /* every other bank */
               {-64, 8, 8},     /* every eighth */
               {512, 64, 8},    /* one bank */
               {520, 1, 8}};    /* the next bank each time */
  for (size_t i = 0; i < NPU_COUNTOF(cases); i++) {
    IsaDesc d = {.kind = DESC_VECTOR, .nstreams = 1, .vec = {.count = {1, 1, 1, 1, 64}}};
    d.vec.stream[0].dtype = DT_F32;
    d.vec.stream[0].stride[VLOOP_V] = cases[i].stride;
    IsaCost c = cost(BANKS ",vpu_start=0,vpu_loads=1", INSN_VX, &d, "vec; ld v0, s0; endv");
    near(c.cycles, cases[i].cycles);
    near(c.spm_bytes, 64 * cases[i].bytes);
    c = cost("vpu_start=0", INSN_VX, &d, "vec; ld v0, s0; endv");
    near(c.cycles, 1);
    near(c.spm_bytes, cases[i].stride ? 256 : 4);
  }
}

static void accumulator_streams(void **state) {
  (void)state;
  IsaDesc d = {.kind = DESC_VECTOR, .nstreams = 1, .vec = {.count = {1, 3, 1, 1, 128}}};
  d.vec.stream[0].dtype = DT_S32;
  d.vec.stream[0].space = SPACE_ACC;
  d.vec.stream[0].stride[VLOOP_V] = 1;
  const char *p = "vec; ld v0, s0; endv";
  near(cost("vpu_start=0", INSN_VX, &d, p).acc_rows, 3 * 2); /* 128 words of rows of 64 */
  d.vec.stream[0].stride[VLOOP_V] = 64;
  near(cost("vpu_start=0", INSN_VX, &d, p).acc_rows, 3 * 128); /* down a column */
  near(cost("vpu_start=0", INSN_VX, &d, p).acc_bytes, 3 * 128 * 4);
}

static void planes(void **state) {
  (void)state;
  IsaDesc d = {.kind = DESC_PLANE,
               .dtype = DT_S8,
               .plane = {.k = {1, 1, 64}, .kstride = {0, 0, 64}, .n = 64, .nstride = 1}};
  near(cost(BANKS, INSN_MM_LOAD, &d, NULL).cycles, 64);
  near(cost(BANKS ",mxu_load_rate=4", INSN_MM_LOAD, &d, NULL).cycles, 16);
  /* Four rows a cycle, all in the same eight banks. */
  d.plane.kstride[2] = 512;
  near(cost(BANKS ",mxu_load_rate=4", INSN_MM_LOAD, &d, NULL).cycles, 16 * 4);
  near(cost("mxu_load_rate=4", INSN_MM_LOAD, &d, NULL).cycles, 16);
  /* Transposed: column by column, each contiguous. */
  d.plane.kstride[2] = 1;
  d.plane.nstride = 64;
  IsaCost c = cost(BANKS ",mxu_load_rate=4", INSN_MM_LOAD_T, &d, NULL);
  near(c.cycles, 16);
  near(c.spm_bytes, 4096);
  d.plane.nstride = 512;
  near(cost(BANKS ",mxu_load_rate=4", INSN_MM_LOAD_T, &d, NULL).cycles, 16 * 4);
  /* Neither: 64 elements a cycle, 16 words apart: four banks have them. */
  d.plane.kstride[2] = 2;
  d.plane.nstride = 128;
  c = cost(BANKS, INSN_MM_LOAD, &d, NULL);
  near(c.cycles, 64 * 16);
  near(c.spm_bytes, 4096 * 8);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sequencer),       cmocka_unit_test(transfer),
      cmocka_unit_test(array),           cmocka_unit_test(vector_unit),
      cmocka_unit_test(strided_streams), cmocka_unit_test(accumulator_streams),
      cmocka_unit_test(planes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
