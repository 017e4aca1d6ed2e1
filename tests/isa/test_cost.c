/* Costs worked out by hand on small descriptions. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "isa/isa.h"
#include "tests/support/compare.h"

/* `edge` without the limits that have an ideal value, data 100 cycles after the request. */
static const MachineDesc *plain_machine(void) {
  static MachineDesc m;
  DiagEngine *d = diag_new();
  assert_true(machine_load("edge,ideal,dram_latency_ns=100", &m, d));
  diag_free(d);
  return &m;
}

static IsaCost cost(IsaInsnKind k, const IsaDesc *d, const char *program) {
  IsaVprog vp = {0};
  char why[160];
  if (program && !isa_vprog_parse(program, &vp, why)) fail_msg("%s", why);
  IsaInsn in = {.kind = k};
  return isa_cost(&in, d, program ? &vp : NULL, plain_machine());
}
static void near(double got, double want) {
  if (!number_near(got, want, 1e-9 * fabs(want))) fail_msg("%.12g, expected %.12g", got, want);
}

static void test_sequencer(void **state) {
  (void)state;
  near(cost(INSN_ADD, NULL, NULL).cycles, 1);
  near(cost(INSN_SYNC_VPU, NULL, NULL).cycles, 1);
  IsaCost c = cost(INSN_LDD, NULL, NULL);
  near(c.latency, 100);  /* 100 ns at 1 GHz */
  near(c.dram_read, 32); /* one burst of edge */
}

static void test_dma(void **state) {
  (void)state;
  /* 4 rows of 100 bytes out of rows of 256, packed in SPM: 4 pieces; 100 bytes are 4 bursts of 32
   */
  IsaDesc d = {
      .kind = DESC_DMA,
      .rank = 2,
      .elsize = 1,
      .dma = {.size = {4, 100}, .dstride = {256, 1}, .sstride = {100, 1}, .extent = {10, 256}}};
  IsaCost c = cost(INSN_LD0, &d, NULL);
  near(c.cycles, 4);
  near(c.dram_read, 4 * 128);
  near(c.dram_write, 0);
  near(c.spm_bytes, 400);
  near(c.latency, 100);
  c = cost(INSN_ST, &d, NULL);
  near(c.dram_write, 4 * 128);
  near(c.dram_read, 0);
  /* contiguous on both sides: one piece of 400 bytes, 13 bursts */
  d.dma.dstride[0] = 100;
  c = cost(INSN_LD0, &d, NULL);
  near(c.cycles, 1);
  near(c.dram_read, 13 * 32);
  /* transposed in SPM: every element a piece, DRAM still one run */
  d.dma.sstride[0] = 1;
  d.dma.sstride[1] = 4;
  c = cost(INSN_LD0, &d, NULL);
  near(c.cycles, 400);
  near(c.dram_read, 13 * 32);
  /* an axis of one element does not interrupt: 3 x 1 x 8 f32 = 96 bytes in one run */
  IsaDesc e = {
      .kind = DESC_DMA,
      .rank = 3,
      .elsize = 4,
      .dma = {
          .size = {3, 1, 8}, .dstride = {32, 999, 4}, .sstride = {32, 7, 4}, .extent = {3, 1, 8}}};
  c = cost(INSN_LD1, &e, NULL);
  near(c.cycles, 1);
  near(c.dram_read, 96);
  /* nothing to do */
  e.dma.size[0] = 0;
  c = cost(INSN_LD1, &e, NULL);
  near(c.cycles, 1);
  near(c.dram_read, 0);
}

static void test_dma_modes(void **state) {
  (void)state;
  /* a 3 x 64 box starting at row -1, column -2 of a 5 x 60 tensor: rows 0, 1 and columns 0..59 are
   * inside */
  IsaDesc d = {.kind = DESC_DMA,
               .rank = 2,
               .elsize = 2,
               .dma = {.size = {3, 64},
                       .dstride = {200, 2},
                       .sstride = {128, 2},
                       .coord = {-1, -2},
                       .extent = {5, 60}}};
  IsaCost c = cost(INSN_LD0_FILL, &d, NULL);
  near(c.cycles, 2);
  near(c.dram_read, 2 * 128); /* 120 bytes: 4 bursts */
  near(c.spm_bytes, 3 * 128); /* filled elements are written too */
  c = cost(INSN_ST_CLIP, &d, NULL);
  near(c.dram_write, 2 * 128);
  near(c.spm_bytes, 240);
  d.dma.coord[0] = 5; /* wholly outside */
  c = cost(INSN_LD0_FILL, &d, NULL);
  near(c.cycles, 1);
  near(c.dram_read, 0);
  near(c.spm_bytes, 3 * 128);
  d.dma.coord[0] = INT64_MAX;
  near(cost(INSN_LD0_FILL, &d, NULL).dram_read, 0);
  d.dma.coord[0] = INT64_MIN;
  near(cost(INSN_LD0_FILL, &d, NULL).dram_read, 0);
  /* gather of 5 rows of 64 bytes: never merged along axis 0, 20 bytes of list */
  IsaDesc g = {
      .kind = DESC_DMA,
      .rank = 2,
      .elsize = 1,
      .dma = {.size = {5, 64}, .dstride = {64, 1}, .sstride = {64, 1}, .extent = {1000, 64}}};
  c = cost(INSN_LD0_GATHER, &g, NULL);
  near(c.cycles, 5);
  near(c.dram_read, 320);
  near(c.spm_bytes, 340);
  near(cost(INSN_ST_SCATTER, &g, NULL).dram_write, 320);
}

static void test_matrix(void **state) {
  (void)state;
  IsaDesc p = {.kind = DESC_PLANE, .dtype = DT_BF16, .plane = {.k = {1, 6, 9}, .n = 32}};
  IsaCost c = cost(INSN_MM_LOAD, &p, NULL);
  near(c.cycles, 54);
  near(c.spm_bytes, 54 * 32 * 2);
  /* s8, 2 x 5 rows, K = 3 taps x 16 contiguous channels: 3 runs a row */
  IsaDesc r = {.kind = DESC_ROWS,
               .dtype = DT_S8,
               .wdtype = DT_S8,
               .rows = {.k = {1, 3, 16}, .kstride = {0, 100, 1}, .m = {1, 2, 5}}};
  c = cost(INSN_MM_MUL, &r, NULL);
  near(c.cycles, 30);
  near(c.macs, 10 * 48 * 64);
  near(c.acc_bytes, 10 * 64 * 4);
  near(c.spm_bytes, 480);
  near(cost(INSN_MM_MUL_POP_ACC, &r, NULL).acc_bytes, 10 * 64 * 8);
  r.rows.kstride[1] = 16; /* the taps continue each other: one run */
  near(cost(INSN_MM_MUL, &r, NULL).cycles, 10);
  r.rows.kstride[2] = 2; /* strided channels: 48 runs */
  near(cost(INSN_MM_MUL, &r, NULL).cycles, 480);
  r.dtype = DT_BF16; /* 2-byte elements at stride 2 are contiguous; taps at stride 16 are not; twice
                        the cycles */
  c = cost(INSN_MM_MUL, &r, NULL);
  near(c.cycles, 10 * 3 * 2);
  near(c.spm_bytes, 960);
}

static void test_vector(void **state) {
  (void)state;
  IsaDesc d = {.kind = DESC_VECTOR, .nstreams = 2, .vec = {.count = {2, 3, 1, 1, 100}}};
  d.vec.stream[0].dtype = DT_S32;
  d.vec.stream[0].space = SPACE_ACC;
  d.vec.stream[0].stride[VLOOP_V] = 1;
  d.vec.stream[1].dtype = DT_BF16;
  d.vec.stream[1].stride[VLOOP_V] = 2;
  /* 4 operations: one cycle a chunk, 2 chunks of 64 lanes, 6 rows */
  IsaCost c =
      cost(INSN_VX, &d, "vec; ld v0, s0; cvt.fi v0, v0; max.f v0, v0, 0.0; st s1, v0; endv");
  near(c.cycles, 8 + 6 * 2);
  near(c.vpu_ops, 4 * 600);
  near(c.acc_bytes, 600 * 4);
  near(c.spm_bytes, 600 * 2);
  /* 5 operations: two cycles a chunk */
  near(cost(INSN_VX, &d,
            "vec; ld v0, s0; cvt.fi v0, v0; max.f v0, v0, 0.0; min.f v0, v0, 6.0; st s1, v0; endv")
           .cycles,
       8 + 6 * 4);
  /* two stores: two cycles; three special functions: three */
  near(cost(INSN_VX, &d, "vec; ld v0, s0; st s1, v0; st s1, v0; endv").cycles, 8 + 6 * 4);
  near(cost(INSN_VX, &d, "vec; ld v0, s0; exp.f v0, v0; exp.f v0, v0; sqrt.f v0, v0; endv").cycles,
       8 + 6 * 6);
  /* two passes and a row operation between them: 2 + 1 + 2 cycles a row */
  c = cost(INSN_VX, &d,
           "vec; ld v0, s0; rsum.f r0, v0; endv; recip.f r0, r0; vec; ld v0, s0; mul.f v0, v0, r0; "
           "st s1, v0; endv");
  near(c.cycles, 8 + 6 * 5);
  near(c.vpu_ops, 6 * 600 + 6); /* rsum.f counts two */
  near(c.sfu_ops, 6);
  /* reduction loops 3 x 2: 3 operations six times and one outside: 19 slots, 5 cycles */
  d.vec.count[VLOOP_R0] = 3;
  d.vec.count[VLOOP_R1] = 2;
  c = cost(INSN_VX, &d,
           "vec; mov v1, 0; red; ld v0, s0; add.i v1, v1, v0; max.i v1, v1, v0; endr; endv");
  near(c.cycles, 8 + 6 * 2 * 5);
  near(c.acc_bytes, 6.0 * 6 * 100 * 4);
  /* a sum takes a slot and two lane operations: 12 slots, 3 cycles */
  c = cost(INSN_VX, &d, "vec; red; ld v0, s0; sum.f v1, v0; endr; endv");
  near(c.cycles, 8 + 6 * 2 * 3);
  near(c.vpu_ops, 6.0 * 6 * 100 * 3);
  /* a broadcast stream moves one element */
  d.vec.stream[0].stride[VLOOP_V] = 0;
  near(cost(INSN_VX, &d, "vec; ld v0, s0; endv").acc_bytes, 6 * 4);
}

/* edge: 4 channels, blocks of 256, rows of 2048 bytes, 8 banks, tRC 60 and tACT 10 of what refresh
 * (.085) leaves, 32 bytes a cycle. */
static void test_dram(void **state) {
  (void)state;
  const MachineDesc *m = machine_default();
  const double left = 1 - 0.085;
  /* One run: rows of 2048 bytes. */
  IsaDramRuns r = {.bytes = 8192};
  near(isa_dram_activations(m, &r), 4);
  near(isa_dram_cycles(m, &r), 256);
  /* A row for each of 100 far runs of 64 bytes: activations take longer than 200 cycles of the bus.
   */
  r = (IsaDramRuns){.bytes = 64, .n = 1, .count = {100}, .stride = {4096}};
  near(isa_dram_activations(m, &r), 100);
  near(isa_dram_cycles(m, &r), 25 * 10 / left);
  /* Neighbours: 16 runs share a row, of 100 * 128 bytes. */
  r.stride[0] = 128;
  near(isa_dram_activations(m, &r), (64 + 99 * 128) / 2048.0);
  /* 512 bytes every 6272 = 49 * 128: 1 + (512 - 128) / 256 blocks each. On the bus 1600 cycles, and
   * of 2.5 * 25 rows opened in each channel .14 * tRC / banks. */
  r = (IsaDramRuns){.bytes = 512, .n = 1, .count = {100}, .stride = {6272}};
  near(isa_dram_activations(m, &r), 250);
  near(isa_dram_cycles(m, &r), 1600 + 62.5 * .14 * 60 / left / 8);
  /* The same at any places among 65536 bytes, which is what the open rows hold: half are open,
   * of 2.75 a run. */
  r.irregular = true;
  r.reach = 65536 - 512;
  near(isa_dram_activations(m, &r), 137.5);
  near(isa_dram_cycles(m, &r), 1600 + 137.5 / 4 * .28 * 60 / left / 8);
  /* Together: 1.05 times; 40960 bytes written, 1024 of a channel at a time: ten turns of 1.25 * 20.
   */
  near(isa_dram_together(m, 1000, 40960, 0), 1050 + 10 * 25 / left);
  near(isa_dram_together(m, 1000, 40960, 8192), 1050 + 5 * 25 / left);
  near(isa_dram_cycles(plain_machine(), &r), 1600);
  near(isa_dram_together(plain_machine(), 1000, 40960, 0), 1000);
}

/* What a transfer asks the DRAM for, through its descriptor. */
static void test_dram_of_transfer(void **state) {
  (void)state;
  IsaDesc d = {.kind = DESC_DMA,
               .rank = 3,
               .elsize = 4,
               .dma = {.size = {5, 20, 16},
                       .dstride = {65536, 4096, 4},
                       .sstride = {1280, 64, 4},
                       .extent = {5, 20, 16}}};
  IsaInsn in = {.kind = INSN_LD0};
  IsaCost c = isa_cost(&in, &d, NULL, machine_default());
  near(c.runs, 100);
  near(c.activations, 100);
  near(c.dram_cycles, 25 * 10 / (1 - 0.085));
  near(isa_cost(&in, &d, NULL, plain_machine()).dram_cycles, 200);
  near(isa_cost(&in, &d, NULL, plain_machine()).activations, 0);
  in.kind = INSN_LDD;
  near(isa_cost(&in, NULL, NULL, machine_default()).activations, 1);
}

static void test_energy(void **state) {
  (void)state;
  MachineDesc m = *machine_default();
  m.pj_mac_s8 = 2;
  m.pj_mac_bf16 = 3;
  m.pj_vpu_op = 5;
  m.pj_spm_byte = 7;
  m.pj_acc_byte = 11;
  m.pj_dram_byte = 13;
  m.pj_sfu_op = 17;
  m.pj_dram_activate = 19;
  m.pj_instruction = 23;
  m.pj_descriptor = 29;
  m.pj_static_cycle = 31;
  m.pj_dram_static_cycle = 37;
  IsaCost c = {.dram_read = 1,
               .dram_write = 2,
               .spm_bytes = 4,
               .acc_bytes = 8,
               .macs = 16,
               .vpu_ops = 32,
               .sfu_ops = 3,
               .activations = 2};
  IsaEnergy e = isa_energy(&c, false, &m);
  near(e.total, 16 * 2 + 32 * 5 + 4 * 7 + 8 * 11 + 3 * 13 + 3 * 17 + 2 * 19);
  near(e.sfu, 51);
  near(e.activate, 38);
  near(isa_energy(&c, true, &m).mac, 48);
  near(isa_energy_control(1, 0, &m).total, 23);
  near(isa_energy_control(1, 1, &m).control, 52);
  IsaEnergy t = isa_energy_time(2, &m);
  near(t.leakage, 62);
  near(t.standby, 74);
  near(t.total, 136);
  isa_energy_add(&e, &t);
  near(e.total, 32 + 160 + 28 + 88 + 39 + 51 + 38 + 136);
  near(e.leakage, 62);
  near(e.mac, 32);
  /* Without the refinements an operation costs what its bytes and multiplications do. */
  machine_idealize(&m);
  near(isa_energy(&c, false, &m).total, 16 * 2 + 32 * 5 + 4 * 7 + 8 * 11 + 3 * 13);
  near(isa_energy_control(1, 1, &m).total, 0);
  near(isa_energy_time(2, &m).total, 62);
}

static void test_roofline(void **state) {
  (void)state;
  IsaImage img;
  isa_image_init(&img);
  img.ideal_macs_s8 = 1024.0 * 1024 * 1024;
  img.ideal_dram_bytes = 3.0 * 1024 * 1024;
  IsaRoofline r = isa_roofline(&img);
  near(r.compute, 262144);
  near(r.dram, 98304);
  near(r.bound, 262144);
  img.ideal_macs_bf16 = 4096;
  near(isa_roofline(&img).compute, 262146);
  /* An array of 8 by 8 multiplies 64 a cycle, bf16 32; 64 lanes of 4 slots could do 256. */
  img.machine.mxu_rows = img.machine.mxu_cols = 8;
  near(isa_roofline(&img).compute, (1024.0 * 1024 * 1024 + 4096) / 256);
  isa_image_free(&img);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_sequencer),        cmocka_unit_test(test_dram),
      cmocka_unit_test(test_dram_of_transfer), cmocka_unit_test(test_dma),
      cmocka_unit_test(test_dma_modes),        cmocka_unit_test(test_matrix),
      cmocka_unit_test(test_vector),           cmocka_unit_test(test_energy),
      cmocka_unit_test(test_roofline)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
