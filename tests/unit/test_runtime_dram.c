/* The DRAM's time, worked by hand. Two channels of 16 bytes a cycle in all, so that 64 bytes take 8
 * cycles of theirs; blocks of 256 bytes, two banks, rows of 512 bytes; 60 cycles between
 * activations of a bank, 10 of a channel, 30 from activation to data, 20 to turn round; 4 requests
 * wait, 2 writes are held back. Channel of an address: block number modulo 2, exclusive or the
 * digits of the number above; in a channel 512 bytes a row, then the other bank. */
#include "runtime/dram.h"
#include "runtime_util.h"
#include <math.h>

#define SMALL                                                                                      \
  "edge,dram_gbs=16,dram_latency_ns=0,dram_channels=2,dram_banks=2,dram_row_bytes=512,dram_trc_"   \
  "ns=60,dram_tact_ns=10,"                                                                         \
  "dram_topen_ns=30,dram_turn_ns=20,dram_refresh=0,dram_queue=4,dram_write_queue=2"

static MachineDesc machine_of(const char *spec) {
  MachineDesc m;
  DiagEngine *d = diag_new();
  bool ok = machine_load(spec, &m, d);
  if (!ok) show(d);
  assert_true(ok);
  diag_free(d);
  return m;
}

static Dram *small(void) {
  MachineDesc m = machine_of(SMALL);
  return dram_new(&m);
}

static void near(double got, double want) {
  if (fabs(got - want) > 1e-9) fail_msg("%.12g, expected %.12g", got, want);
}

static void reads(void **state) {
  (void)state;
  Dram *d = small();
  /* The row opens in 30, then 64 bytes in 8. */
  near(dram_request(d, 0, 0, 64, false).done, 30 + 8);
  /* The same row: its data is not there before 30, the bus is free from 8. */
  near(dram_request(d, 0, 64, 64, false).done, 38);
  near(dram_request(d, 0, 128, 64, false).done, 38);
  assert_int_equal(dram_activations(d), 1);
  /* Block 1 is the other channel. */
  near(dram_request(d, 0, 256, 64, false).done, 38);
  assert_int_equal(dram_activations(d), 2);
  /* Later everything is open and idle. */
  near(dram_request(d, 100, 192, 64, false).done, 108);
  near(dram_accepts(d), 100);
  dram_free(d);
}

static void bank_conflict(void **state) {
  (void)state;
  Dram *d = small();
  /* 512 bytes of a row are blocks 0, and 3 (block 2 and 3 swap channels: the number above is 1).
   * Two banks are 1024 bytes of a channel, 2048 of both; row 1 swaps the banks, so that bank 0's
   * next row is at 2048 + 1024. */
  near(dram_request(d, 0, 0, 64, false).done, 38);
  near(dram_request(d, 0, 768, 64, false).done, 38);
  assert_int_equal(dram_activations(d), 1);
  /* Bank 0 activated at 0: again at 60. Its first block above: 3072 / 256 = 12, above it 6 = 110b:
   * digits xor to 0. */
  near(dram_request(d, 0, 3072, 64, false).done, 60 + 30 + 8);
  assert_int_equal(dram_activations(d), 2);
  dram_free(d);
}

static void full_queue(void **state) {
  (void)state;
  Dram *d = small();
  for (int i = 0; i < 4; i++) near(dram_request(d, 0, 64 * (uint64_t)i, 64, false).accepted, 0);
  near(dram_accepts(d), 0);
  /* A fifth waits in the other row of the channel (block 3), and with it the queue is over: the
   * first is done at 38. A sixth is accepted then. */
  near(dram_request(d, 0, 768, 64, false).accepted, 0);
  near(dram_accepts(d), 38);
  near(dram_request(d, 0, 832, 64, false).accepted, 38);
  dram_free(d);
}

static void writes(void **state) {
  (void)state;
  Dram *d = small();
  near(dram_request(d, 0, 0, 64, false).done, 38);
  /* Held back; a write is done when it is accepted. */
  near(dram_request(d, 50, 1024, 64, true).done, 50);
  assert_int_equal(dram_activations(d), 1);
  /* The second goes with the first: block 4, above it 2 = 10b, channel 1. */
  near(dram_request(d, 50, 1088, 64, true).done, 50);
  assert_int_equal(dram_activations(d), 2);
  /* Channel 1 turned at 50 + 20; the row activated at 70 + 10 (the turn counts as an activation),
   * data from 110: both are there at 110 + 8. */
  near(dram_drain(d, 60), 118);
  /* A read there turns again, from 86 where the bus became free: 60 is past. */
  near(dram_request(d, 200, 1152, 64, false).done, 200 + 20 + 8);
  dram_free(d);
}

static void refresh(void **state) {
  (void)state;
  MachineDesc m = machine_of(SMALL ",dram_refresh=0.2");
  Dram *d = dram_new(&m);
  /* Times stretch by 1 / 0.8; the bandwidth is what is left already. */
  near(dram_request(d, 0, 0, 64, false).done, 37.5 + 8);
  dram_free(d);
  m.dram_channels = 0;
  assert_null(dram_new(&m));
}

/* A transfer: two runs of 64 bytes in one row. */
static void program(void **state) {
  (void)state;
  const char *text =
      ".dram 8192\n.desc 0 dma rank=2 elsize=1 size=[2,64] dstride=[128,1] sstride=[64,1] "
      "extent=[2,64]\ndload d0, 0\nld0 d0\nhalt\n";
  MachineDesc m = machine_of(SMALL);
  machine_idealize(&m);
  m.dram_channels = 2, m.dram_trc_ns = 60, m.dram_tact_ns = 10, m.dram_topen_ns = 30,
  m.dram_turn_ns = 20;
  Run r = load_with(text, (NpurtOptions){.mode = NPURT_TIMED, .machine = &m});
  for (int run = 1; run <= 2; run++) {
    run_ok(&r);
    /* LD0 from 2: requests at 2 and 3, accepted; busy 2 cycles for two runs; data at 2 + 30 + 8;
     * halt. */
    near(npurt_profile(r.m)->cycles, run * 41);
    near(npurt_profile(r.m)->engine[ENGINE_LD0].busy, run * 2);
  }
  run_free(&r);
  /* The same bytes in DRAM that is flat: 128 bytes in 8 cycles. */
  m.dram_channels = 0;
  r = load_with(text, (NpurtOptions){.mode = NPURT_TIMED, .machine = &m});
  run_ok(&r);
  near(npurt_profile(r.m)->cycles, 2 + 8 + 1);
  run_free(&r);
}

/* What the buffers hold is written before the end. */
static void program_writes(void **state) {
  (void)state;
  MachineDesc m = machine_of(SMALL);
  machine_idealize(&m);
  m.dram_channels = 2, m.dram_trc_ns = 60, m.dram_tact_ns = 10, m.dram_topen_ns = 30,
  m.dram_turn_ns = 20;
  Run r = load_with(
      ".dram 8192\n.desc 0 dma rank=1 elsize=1 size=[64] dstride=[1] sstride=[1] extent=[64]\n"
      "dload d0, 0\nst d0\nhalt\n",
      (NpurtOptions){.mode = NPURT_TIMED, .machine = &m});
  run_ok(&r);
  /* ST from 2, accepted at once, over at 3 with its piece's cycle; the drain from 3: 23 the channel
   * has turned, 33 the row is activated, 63 open, 71 written; halt. */
  near(npurt_profile(r.m)->cycles, 72);
  near(npurt_profile(r.m)->engine[ENGINE_ST].busy, 1);
  run_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(reads),         cmocka_unit_test(bank_conflict),
      cmocka_unit_test(full_queue),    cmocka_unit_test(writes),
      cmocka_unit_test(refresh),       cmocka_unit_test(program),
      cmocka_unit_test(program_writes)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
