/* Timing of the simulator against cycle counts worked by hand, traps, limits, agreement of the
 * modes.
 *
 * Machine `edge`: 1 GHz, DRAM 32 bytes per cycle, latency 100 cycles, array 64x64, plane rows one
 * per cycle, FIFO of two planes, queues of 16. An instruction issued in cycle t reaches its queue
 * at t + 1. */
#include "runtime_util.h"
#include "tests/support/compare.h"

static void same(double got, double want) {
  if (!number_near(got, want, 1e-6)) fail_msg("%.9f, expected %.9f", got, want);
}

static const NpurtProfile *profile_of(const char *text) {
  static Run r; /* kept until the next call */
  if (r.m) run_free(&r);
  r = load_text(text, NPURT_TIMED);
  run_ok(&r);
  const NpurtProfile *p = npurt_profile(r.m);
  for (int e = 0; e < ENGINE_COUNT; e++) /* every cycle of every engine is accounted for */
    same(p->engine[e].busy + p->engine[e].stall_take + p->engine[e].stall_queue + p->engine[e].idle,
         p->cycles);
  const NpurtOpProfile *ops;
  double sum = 0;
  size_t n = npurt_op_profile(r.m, &ops);
  for (size_t i = 0; i < n; i++) sum += ops[i].cycles;
  same(sum, p->cycles);
  return p;
}
#define CYCLES(x, want) same(x, want)

/* 3200 bytes in one run: 100 cycles of DRAM. */
#define DMA_3200(n, spm)                                                                           \
  ".desc " #n " dma rank=1 elsize=1 spm=" #spm                                                     \
  " size=[3200] dstride=[1] sstride=[1] extent=[3200]\n"
/* 640 elements copied: 10 chunks of 64 lanes, one cycle each, and 8 to start. */
#define VX_18(n)                                                                                   \
  ".desc " #n " vector count=[1,1,1,1,640] s0=spm:s8@0[0,0,0,0,1] s1=spm:s8@8192[0,0,0,0,1]\n"
#define COPY ".vprog 0 { vec; ld v0, s0; st s1, v0; endv }\n"

static void one_load(void **state) {
  (void)state;
  /* dload 0..1, ld0 1..2; LD0 2..102, data at 202; halt 202..203 */
  const NpurtProfile *p = profile_of(".dram 4096\n" DMA_3200(0, 0) "dload d0, 0\nld0 d0\nhalt\n");
  CYCLES(p->cycles, 203);
  CYCLES(p->engine[ENGINE_LD0].busy, 100);
  CYCLES(p->engine[ENGINE_SEQ].busy, 3);
  CYCLES(p->dram_read, 3200);
}

static void shared_dram(void **state) {
  (void)state;
  /* LD0 starts at 3 alone: 32 bytes until 4. Then 16 bytes per cycle each: LD0's other 3168 take
   * 198, to 202. LD1 has moved 3168 too and finishes its last 32 alone, at 203; data at 303; halt.
   * Alone it would have ended at 104. */
  const NpurtProfile *p = profile_of(".dram 4096\n" DMA_3200(0, 0) DMA_3200(
      1, 4096) "dload d0, 0\ndload d1, 1\nld0 d0\nld1 d1\nhalt\n");
  CYCLES(p->cycles, 304);
  CYCLES(p->engine[ENGINE_LD0].busy, 199);
  CYCLES(p->engine[ENGINE_LD1].busy, 199);
}

static void overlap(void **state) {
  (void)state;
  /* LD0 2..102; VPU 4..22 meanwhile: as long as the load alone. */
  const NpurtProfile *p = profile_of(".dram 4096\n" DMA_3200(0, 4096) VX_18(1) COPY
                                     "dload d0, 0\nld0 d0\ndload d1, 1\nvx p0, d1\nhalt\n");
  CYCLES(p->cycles, 203);
  CYCLES(p->engine[ENGINE_VPU].busy, 18);
}

static void semaphore_bottleneck(void **state) {
  (void)state;
  /* LD0 3..103..203..303 gives at 203, 303, 403; the VPU works 18 cycles after each: 421, halt 422.
   */
  const NpurtProfile *p = profile_of(".dram 4096\n" DMA_3200(0, 0) VX_18(1) COPY
                                     "dload d0, 0\ndload d1, 1\n"
                                     "ld0 d0 give s0\nvx p0, d1 take s0\nld0 d0 give s0\nvx p0, d1 "
                                     "take s0\nld0 d0 give s0\nvx p0, d1 take s0\nhalt\n");
  CYCLES(p->cycles, 422);
  CYCLES(p->engine[ENGINE_VPU].busy, 54);
  CYCLES(p->engine[ENGINE_VPU].stall_take, 199 + 82 + 82); /* from 4, 221, 321 */
  CYCLES(p->engine[ENGINE_VPU].idle, 5);
  CYCLES(p->engine[ENGINE_LD0].busy, 300);
}

static void queue_full(void **state) {
  (void)state;
  MachineDesc m = *plain_machine();
  StrBuf b = {0};
  m.queue_depth = 2;
  strbuf_puts(&b, ".machine {\n");
  machine_print(&m, &b);
  strbuf_puts(&b, "}\n.dram 4096\n" DMA_3200(
                      0, 0) "dload d0, 0\nld0 d0\nld0 d0\nld0 d0\nld0 d0\nld0 d0\nhalt\n");
  const NpurtProfile *p = profile_of(b.data);
  strbuf_free(&b);
  /* The first starts at 2, two wait; the fourth cannot be issued from 4 until 102, the fifth from
   * 103 until 202. LD0 ends at 502, data at 602, halt. */
  CYCLES(p->cycles, 603);
  CYCLES(p->engine[ENGINE_SEQ].stall_queue, 98 + 99);
  CYCLES(p->engine[ENGINE_SEQ].busy, 7);
  CYCLES(p->engine[ENGINE_SEQ].idle, 602 - 203);
}

#define PLANE(n) ".desc " #n " plane dtype=s8 k=[1,1,64] kstride=[0,0,64] n=64 nstride=1\n"
#define ROWS(n, m)                                                                                 \
  ".desc " #n " rows dtype=s8 wdtype=s8 k=[1,1,64] kstride=[0,0,1] m=[1,1," #m                     \
  "] mstride=[0,0,64] astride=[0,0,1]\n"

static void plane_fifo(void **state) {
  (void)state;
  /* Planes arrive at 67, 131, 195 (64 cycles each from 3). Multiplying takes
   * 200: 67..267..467..667..867. The fourth load needs room: two planes wait until 267. */
  const NpurtProfile *p = profile_of(PLANE(0) ROWS(
      1, 200) "dload d0, 0\ndload d1, 1\nmm.load d0\nmm.load d0\nmm.load d0\nmm.load d0\n"
              "mm.mul.pop d1\nmm.mul.pop d1\nmm.mul.pop d1\nmm.mul.pop d1\nhalt\n");
  CYCLES(p->cycles, 868);
  CYCLES(p->engine[ENGINE_MXW].busy, 256);
  CYCLES(p->engine[ENGINE_MXW].stall_queue, 267 - 195);
  CYCLES(p->engine[ENGINE_MXM].busy, 800);
  CYCLES(p->engine[ENGINE_MXM].stall_queue, 67 - 7); /* issued at 6..7 */
  CYCLES(p->macs_s8, 4.0 * 200 * 64 * 64);
}

static void sequencer_waits(void **state) {
  (void)state;
  /* LD0 2..102, its give at 202: the sequencer takes at 202..203, gives at 204, halt 205. ldd: one
   * cycle and the latency. */
  const NpurtProfile *p = profile_of(
      ".dram 4096\n" DMA_3200(0, 0) "dload d0, 0\nld0 d0 give s1\ntake s1\ngive s2\nhalt\n");
  CYCLES(p->cycles, 205);
  CYCLES(p->engine[ENGINE_SEQ].stall_take, 200);
  p = profile_of(".dram 4096\nldd r1, [r0 + 8]\nhalt\n");
  CYCLES(p->cycles, 1 + 100 + 1);
}

static void loop_runs(void **state) {
  (void)state;
  /* li, then ten times (ld0 of 32 bytes, addi, bne). LD0: 2 + 3i each, one cycle; the last 29..30,
   * data at 130, halt. */
  const NpurtProfile *p = profile_of(
      ".dram 4096\n.desc 0 dma rank=1 elsize=1 size=[32] dstride=[1] sstride=[1] extent=[32]\n"
      "dload d0, 0\nli r2, 10\nagain: ld0 d0\naddi r1, r1, 1\nbne r1, r2, again\nhalt\n");
  CYCLES(p->cycles, 2 + 27 + 1 + 1 + 100 + 1);
  assert_int_equal(p->engine[ENGINE_LD0].instructions, 10);
  assert_int_equal(p->instructions, 2 + 30 + 1);
}

/* ---- traps ---- */

static void expect_trap(const char *text, const char *code, const char *message) {
  for (int mode = NPURT_FAST; mode <= NPURT_CHECK; mode++) {
    Run r = load_text(text, (NpurtMode)mode);
    expect_fail(&r, code, message);
    run_free(&r);
  }
}

static void traps(void **state) {
  (void)state;
#define D(fields, code) ".dram 4096\n.desc 0 dma " fields "\ndload d0, 0\n" code "\nhalt\n"
  expect_trap(
      D("rank=1 elsize=4 spm=2097150 size=[1] dstride=[4] sstride=[4] extent=[1]", "ld0 d0"),
      "E-bounds", "scratchpad");
  expect_trap(D("rank=1 elsize=4 size=[3] dstride=[4] sstride=[-4] extent=[3]", "ld0 d0"),
              "E-bounds", "scratchpad");
  expect_trap(
      D("rank=1 elsize=1 dram=4000 size=[97] dstride=[1] sstride=[1] extent=[97]", "ld0 d0"),
      "E-bounds", "4096 bytes of DRAM");
  expect_trap(D("rank=1 elsize=1 dram=-1 size=[2] dstride=[1] sstride=[1] extent=[2]", "st d0"),
              "E-bounds", "DRAM");
  expect_trap(
      D("rank=1 elsize=1 size=[2] dstride=[9223372036854775807] sstride=[1] coord=[3] extent=[9]",
        "ld0 d0"),
      "E-bounds", "overflows");
  expect_trap(D("rank=2 elsize=1 size=[2,4] dstride=[4,1] sstride=[4,1] coord=[0,1] extent=[2,4]",
                "ld0 d0"),
              "E-bounds", "axis 1");
  expect_trap(D("rank=1 elsize=1 size=[2] dstride=[1] sstride=[1] extent=[2]", "mm.load d0"),
              "E-desc", "a DMA descriptor");
  expect_trap(D("rank=1 elsize=1 size=[2] dstride=[1] sstride=[1] extent=[2]",
                "li r1, -1\ndset d0.size.0, r1"),
              "E-desc", "does not fit");
  expect_trap(D("rank=1 elsize=1 size=[2] dstride=[1] sstride=[1] extent=[2]", "dseti d0.acc, 1"),
              "E-desc", "`acc`");
  expect_trap("ld0 d3\nhalt\n", "E-desc", "d3");
  expect_trap("lds r1, [r0 - 4]\nhalt\n", "E-bounds", "scratchpad");
  expect_trap("li r1, 1\nshl r1, r1, 63\nldd r2, [r1 - 4]\nhalt\n", "E-bounds", "DRAM");
  expect_trap("arg r1, 64\nhalt\n", "E-bounds", "host arguments");
  expect_trap(ROWS(0, 1) "dload d0, 0\nmm.mul d0\nhalt\n", "E-plane", "no plane");
  expect_trap(
      PLANE(0) ".desc 1 rows dtype=s8 wdtype=s8 k=[1,1,32] kstride=[0,0,1] m=[1,1,1] "
               "astride=[0,0,1]\ndload d0, 0\ndload d1, 1\nmm.load d0\nmm.mul.pop d1\nhalt\n",
      "E-plane", "32 elements of K, the plane 64");
  expect_trap(
      PLANE(0) ".desc 1 rows dtype=s8 wdtype=s8 k=[1,1,64] kstride=[0,0,1] m=[1,1,1025] "
               "astride=[0,0,1]\ndload d0, 0\ndload d1, 1\nmm.load d0\nmm.mul.pop d1\nhalt\n",
      "E-bounds", "accumulator rows");
  /* a descriptor that was good is looked at again when a size has changed */
  expect_trap(PLANE(0) "dload d0, 0\nmm.load d0\ndseti d0.n, 65\nmm.load d0\nhalt\n", "E-desc",
              "refused");
  expect_trap(COPY ".desc 0 vector count=[1,1,1,1,64] s0=spm:s8@0[0,0,0,0,1] "
                   "s1=acc:f32@65500[0,0,0,0,1]\ndload d0, 0\nvx p0, d0\nhalt\n",
              "E-bounds", "stream 1");
  expect_trap(
      COPY
      ".desc 0 vector count=[1,1,1,1,64] s0=spm:s8@0[0,0,0,0,1]\ndload d0, 0\nvx p0, d0\nhalt\n",
      "E-desc", "streams");
  expect_trap("take s3:2\nhalt\n", "E-deadlock", "");
#undef D
}

static void trap_names_source(void **state) {
  (void)state;
  Run r = load_text(".loc \"m.mdl\" 7 3 \"conv1\"\nli r1, 5\n.loc \"m.mdl\" 9 1 \"pool\"\nlds r1, "
                    "[r0 - 1]\nhalt\n",
                    NPURT_TIMED);
  expect_fail(&r, "E-bounds", "pc 1 `lds r1, [r0 - 1]` (op pool)");
  const Diag *d = diag_get(r.diag, 0);
  assert_string_equal(d->loc.file, "m.mdl");
  assert_int_equal(d->loc.line, 9);
  run_free(&r);
}

static void limits(void **state) {
  (void)state;
  for (int mode = NPURT_FAST; mode <= NPURT_CHECK; mode++) {
    Run r = load_with("again: jmp again\n",
                      (NpurtOptions){.mode = (NpurtMode)mode, .max_instructions = 100000});
    expect_fail(&r, "E-limit", "100000");
    run_free(&r);
    /* One instruction that would work for ever, also when its innermost loop is empty. */
    for (int empty = 0; empty < 2; empty++) {
      StrBuf t = {0};
      strbuf_printf(&t,
                    ".vprog 0 { vec; mov v0, 1.0; endv }\n.desc 0 vector count=[%s]\ndload d0, "
                    "0\nvx p0, d0\nhalt\n",
                    empty ? "2147483648,2147483648,1,0,1" : "65536,65536,1,1,1");
      r = load_with(t.data, (NpurtOptions){.mode = (NpurtMode)mode, .max_instructions = 100000});
      strbuf_free(&t);
      expect_fail(&r, "E-limit", "vx p0, d0");
      run_free(&r);
    }
  }
}

static void deadlocks(void **state) {
  (void)state;
  const char *text = ".dram 4096\n" DMA_3200(0, 0) COPY VX_18(
      1) "dload d0, 0\ndload d1, 1\nld0 d0 take s4 give s5\nvx p0, d1 take s5 give s4\nhalt\n";
  Run r = load_text(text, NPURT_TIMED);
  expect_fail(&r, "E-deadlock", "deadlock");
  assert_true(has_diag(
      &r, NULL, "LD0: pc 2 `ld0 d0 take s4:1 give s5:1` waits for semaphore 4 (takes 1, holds 0)"));
  assert_true(has_diag(&r, NULL, "VPU: pc 3"));
  assert_true(has_diag(&r, NULL, "SEQ: pc 4 `halt` waits for all engines"));
  run_free(&r);
  /* Valid in time, not in program order: the give comes later in the text. */
  text = ".dram 4096\n" DMA_3200(0, 0)
      COPY VX_18(1) "dload d0, 0\ndload d1, 1\nvx p0, d1 take s5\nld0 d0 give s5\nhalt\n";
  r = load_text(text, NPURT_TIMED);
  run_ok(&r);
  run_free(&r);
  r = load_text(text, NPURT_FAST);
  expect_fail(&r, "E-deadlock", "program order");
  run_free(&r);
  text = PLANE(0) "dload d0, 0\nmm.load d0\nmm.load d0\nmm.load d0\nhalt\n";
  r = load_text(text, NPURT_FAST);
  expect_fail(&r, "E-deadlock", "FIFO is full");
  run_free(&r);
  r = load_text(text, NPURT_TIMED);
  expect_fail(&r, "E-deadlock", "deadlock");
  assert_true(has_diag(&r, NULL, "FIFO is full"));
  run_free(&r);
}

/* ---- the model as the host sees it ---- */

static const char *const counter = /* y = x copied; state counts runs through ldd */
    ".dram 1024\n.io input \"x\" s32[4] 0\n.io output \"y\" s32[4] 64\n.io state \"n\" s32[1] 128\n"
    ".segment \"init\" 128 4\n.s32 41\n.end\n"
    ".desc 0 dma rank=1 elsize=4 dram=0 spm=0 size=[4] dstride=[4] sstride=[4] extent=[4]\n"
    ".desc 1 dma rank=1 elsize=4 dram=64 spm=0 size=[4] dstride=[4] sstride=[4] extent=[4]\n"
    ".desc 2 dma rank=1 elsize=4 dram=128 spm=64 size=[1] dstride=[4] sstride=[4] extent=[1]\n"
    ".desc 3 vector count=[1,1,1,1,1] s0=spm:s32@64[0,0,0,0,4]\n"
    ".vprog 0 { vec; ld v0, s0; add.i v0, v0, 1; st s0, v0; endv }\n"
    "dload d0, 0\ndload d1, 1\ndload d2, 2\ndload d3, 3\n"
    "ld0 d0 give s0\nst d1 take s0\nld1 d2 give s1\nvx p0, d3 take s1 give s2\nst d2 take "
    "s2\nhalt\n";

static void host_access(void **state) {
  (void)state;
  for (int mode = NPURT_FAST; mode <= NPURT_CHECK; mode++) {
    Run r = load_text(counter, (NpurtMode)mode);
    int32_t *x = io_bytes(&r, IO_INPUT, "x"), *y = io_bytes(&r, IO_OUTPUT, "y"),
            *n = io_bytes(&r, IO_STATE, "n");
    assert_null(npurt_find_io(r.m, IO_INPUT, "y"));
    for (int32_t i = 0; i < 3; i++) {
      for (int32_t k = 0; k < 4; k++) x[k] = 100 * i + k;
      run_ok(&r);
      assert_memory_equal(x, y, 16);
      assert_int_equal(*n, 42 + i);
    }
    npurt_reset(r.m);
    assert_int_equal(*n, 41);
    assert_int_equal(y[1], 0);
    run_ok(&r);
    assert_int_equal(*n, 42);
    const NpurtProfile *p = npurt_profile(r.m);
    assert_int_equal(p->runs, 4);
    assert_int_equal(p->instructions, 4 * 10);
    StrBuf b = {0};
    npurt_report(r.m, &b);
    assert_non_null(strstr(b.data, mode == NPURT_FAST ? "not counted" : "cycles"));
    strbuf_free(&b);
    npurt_clear_profile(r.m);
    assert_int_equal(p->runs, 0);
    run_free(&r);
  }
}

static void other_machine(void **state) {
  (void)state;
  MachineDesc m = *plain_machine();
  m.spm_bytes *= 2;
  Run r = {.diag = diag_new()};
  IsaImage img;
  assemble("halt\n", &img);
  const char *path = "/tmp/npurt-test-machine.bin";
  assert_true(isa_image_write(&img, path, r.diag));
  assert_null(npurt_load(path, &(NpurtOptions){.machine = &m}, r.diag));
  assert_true(has_diag(&r, "E-machine", "spm_bytes"));
  /* Other times are another matter: `ldd` waits twice as long. */
  isa_image_free(&img);
  assemble(".dram 4096\nldd r1, [r0 + 8]\nhalt\n", &img);
  assert_true(isa_image_write(&img, path, r.diag));
  for (int latency = 100; latency <= 200; latency += 100) {
    m = *plain_machine();
    m.dram_latency_ns = latency;
    r.m = npurt_load(path, &(NpurtOptions){.mode = NPURT_TIMED, .machine = &m}, r.diag);
    assert_non_null(r.m);
    run_ok(&r);
    CYCLES(npurt_profile(r.m)->cycles, latency + 2);
    npurt_free(r.m);
  }
  unlink(path);
  isa_image_free(&img);
  diag_free(r.diag);
}

static void trace_file(void **state) {
  (void)state;
  Run r = load_with(".dram 4096\n" DMA_3200(
                        0, 0) ".loc \"a.mdl\" 1 1 \"say \\\"hi\\\"\"\ndload d0, 0\nld0 d0\nhalt\n",
                    (NpurtOptions){.mode = NPURT_TIMED, .trace = true});
  run_ok(&r);
  const char *path = "/tmp/npurt-test-trace.json", *why;
  assert_true(npurt_trace_write(r.m, path, r.diag));
  FileMap f;
  assert_true(file_map(path, &f, &why));
  char *text = strndup((const char *)f.data, f.size);
  /* LD0 busy from cycle 2 for 100 cycles: 0.002 us for 0.1 us */
  assert_non_null(strstr(text, "\"tid\":1,\"ts\":0.002000,\"dur\":0.100000"));
  assert_non_null(strstr(text, "say \\\"hi\\\""));
  free(text);
  file_unmap(&f);
  unlink(path);
  run_free(&r);
}

/* A program that never ends stops where its trace gets too long to keep. */
static void endless_trace(void **state) {
  (void)state;
  Run r = load_with(".dram 4096\n" DMA_3200(0, 0) "dload d0, 0\nagain: ld0 d0\njmp again\n",
                    (NpurtOptions){.mode = NPURT_TIMED, .trace = true});
  expect_fail(&r, "E-limit", "trace fewer samples");
  run_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_load),        cmocka_unit_test(shared_dram),
      cmocka_unit_test(overlap),         cmocka_unit_test(semaphore_bottleneck),
      cmocka_unit_test(queue_full),      cmocka_unit_test(plane_fifo),
      cmocka_unit_test(sequencer_waits), cmocka_unit_test(loop_runs),
      cmocka_unit_test(traps),           cmocka_unit_test(trap_names_source),
      cmocka_unit_test(limits),          cmocka_unit_test(deadlocks),
      cmocka_unit_test(host_access),     cmocka_unit_test(other_machine),
      cmocka_unit_test(trace_file),      cmocka_unit_test(endless_trace)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
