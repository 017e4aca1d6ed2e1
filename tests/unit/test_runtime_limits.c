/* The limits of a machine in time, worked by hand: `edge` with all of them ideal (32 bytes of DRAM
 * a cycle, data 100 cycles later), but one. */
#include <math.h>

#include "runtime_util.h"

#define LOAD_3200                                                                                  \
  ".desc 0 dma rank=1 elsize=1 spm=4096 size=[3200] dstride=[1] sstride=[1] extent=[3200]\n"
#define COPY_640                                                                                   \
  ".desc 1 vector count=[1,1,1,1,640] s0=spm:s8@0[0,0,0,0,1] s1=spm:s8@16384[0,0,0,0,1]\n"         \
  ".vprog 0 { vec; ld v0, s0; st s1, v0; endv }\n"

static NpurtProfile profile_with(const char *limit, const char *text) {
  char spec[200];
  MachineDesc m;
  DiagEngine *d = diag_new();
  snprintf(spec, sizeof spec, "edge,ideal,dram_latency_ns=100,%s", limit);
  bool ok = machine_load(spec, &m, d);
  if (!ok) show(d);
  assert_true(ok);
  diag_free(d);
  Run r = load_with(text, (NpurtOptions){.mode = NPURT_TIMED, .machine = &m});
  run_ok(&r);
  run_ok(&r); /* a run leaves nothing behind */
  NpurtProfile p = *npurt_profile(r.m);
  for (int e = 0; e < ENGINE_COUNT; e++) {
    double all =
        p.engine[e].busy + p.engine[e].stall_take + p.engine[e].stall_queue + p.engine[e].idle;
    assert_true(fabs(all - p.cycles) < 1e-6);
  }
  run_free(&r);
  return p;
}

/* Of one of the two runs. */
static void each(double got, double want) {
  if (fabs(got / 2 - want) > 1e-6) fail_msg("%.9f, expected %.9f", got / 2, want);
}

static void scratchpad_is_shared(void **state) {
  (void)state;
  /* 40 bytes a cycle. LD0 (3200 bytes) from 2 alone, 80 until 4; then both have 20: the copy's 1280
   * take 64 cycles, to 68, LD0 has 1840 left and 40 a cycle: to 114, data at 214, halt. */
  const char *text =
      ".dram 4096\n" LOAD_3200 COPY_640 "dload d0, 0\nld0 d0\ndload d1, 1\nvx p0, d1\nhalt\n";
  NpurtProfile p = profile_with("spm_bytes_per_cycle=40", text);
  each(p.engine[ENGINE_VPU].busy, 64);
  each(p.engine[ENGINE_LD0].busy, 112);
  each(p.cycles, 215);
  p = profile_with("spm_bytes_per_cycle=100000", text);
  each(p.engine[ENGINE_VPU].busy, 18);
  each(p.engine[ENGINE_LD0].busy, 100);
}

static const char *const product =
    ".desc 0 plane dtype=s8 k=[1,1,64] kstride=[0,0,64] n=64 nstride=1\n"
    ".desc 1 rows dtype=s8 wdtype=s8 k=[1,1,64] kstride=[0,0,1] m=[1,1,200] mstride=[0,0,64] "
    "astride=[0,0,1]\n"
    ".desc 2 vector count=[1,1,1,1,640] s0=acc:s32@0[0,0,0,0,1] s1=spm:s8@16384[0,0,0,0,1]\n"
    ".vprog 0 { vec; ld v0, s0; st s1, v0; endv }\n"
    "dload d0, 0\ndload d1, 1\ndload d2, 2\nmm.load d0\nmm.mul.pop.acc d1 give s1\nvx p0, d2 take "
    "s1\nhalt\n";

static void array_drains(void **state) {
  (void)state;
  /* The plane is there at 4 + 64; 200 rows to 268, results at 394; the vector program takes 18;
   * halt. */
  NpurtProfile p = profile_with("mxu_latency=126", product);
  each(p.engine[ENGINE_MXM].busy, 200);
  each(p.cycles, 68 + 200 + 126 + 18 + 1);
  each(profile_with("mxu_latency=0", product).cycles, 68 + 200 + 18 + 1);
}

static void accumulator_ports(void **state) {
  (void)state;
  /* 400 rows read and written; then 10 rows of 64 words. */
  NpurtProfile p = profile_with("acc_rows_per_cycle=1", product);
  each(p.engine[ENGINE_MXM].busy, 400);
  each(p.engine[ENGINE_VPU].busy, 18);
  p = profile_with("acc_rows_per_cycle=0.25", product);
  each(p.engine[ENGINE_MXM].busy, 1600);
  each(p.engine[ENGINE_VPU].busy, 40);
}

static void sequencer_rate(void **state) {
  (void)state;
  /* Three instructions of 2 cycles, issued 6..8; LD0 from then on, data at 208, halt 2. */
  NpurtProfile p = profile_with("seq_ipc=0.5", ".dram 4096\n" LOAD_3200
                                               "li r1, 1\nli r2, 2\ndload d0, 0\nld0 d0\nhalt\n");
  each(p.engine[ENGINE_LD0].busy, 100);
  each(p.cycles, 8 + 100 + 100 + 2);
  each(p.engine[ENGINE_SEQ].busy, 5 * 2);
}

static void transfer_set_up(void **state) {
  (void)state;
  /* LD0 2..18 set up, bytes 18..118. */
  NpurtProfile p =
      profile_with("dma_setup=16", ".dram 4096\n" LOAD_3200 "dload d0, 0\nld0 d0\nhalt\n");
  each(p.engine[ENGINE_LD0].busy, 116);
  each(p.cycles, 219);
}

static void descriptors_are_fetched(void **state) {
  (void)state;
  /* dload 0..1; 256 bytes at 32 a cycle, 1..9, and 50 ns: there at 59. ld0 is issued 59..60, loads
   * to 160; data; halt. */
  NpurtProfile p =
      profile_with("dload_ns=50", ".dram 4096\n" LOAD_3200 "dload d0, 0\nld0 d0\nhalt\n");
  each(p.cycles, 261);
  each(p.engine[ENGINE_SEQ].stall_queue, 58);
  each(p.dram_read, 3200 + 256);
  /* Two fetches follow one another: the second is there at 17 + 50; the first is not waited for
   * again. */
  const char *two =
      ".dram 4096\n" LOAD_3200 COPY_640 "dload d0, 0\ndload d1, 1\nvx p0, d1\ndload d2, 0\n"
      "dadd d2.spm, r0\nhalt\n";
  p = profile_with("dload_ns=50", two);
  each(p.cycles, 67 + 1 + 18 + 1);
  each(p.dram_read, 2 * 256);
  /* Room for one: descriptor 0 was given up for 1; fetched again from 69 on it is there at 127;
   * dadd, halt. */
  p = profile_with("dload_ns=50,desc_cache=1", two);
  each(p.dram_read, 3 * 256);
  each(p.cycles, 127 + 1 + 1);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(scratchpad_is_shared), cmocka_unit_test(array_drains),
      cmocka_unit_test(accumulator_ports),    cmocka_unit_test(sequencer_rate),
      cmocka_unit_test(transfer_set_up),      cmocka_unit_test(descriptors_are_fetched)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
