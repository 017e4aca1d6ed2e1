/* Every figure of the profile, the report and the trace against values worked by hand. Machine
 * `edge`: 1 GHz, DRAM 32 bytes per cycle in bursts of 32, latency 100 cycles, array 64x64, bf16 at
 * half speed, 64 lanes; pJ: MAC 0.1 and 0.59 (bf16), lane operation 0.85, bytes 0.29
 * (accumulators), 2.8 (scratchpad), 40 (DRAM), 20 a cycle. */
#include "runtime_util.h"
#include <math.h>

static void same(double got, double want) {
  if (fabs(got - want) > 1e-6) fail_msg("%.9f, expected %.9f", got, want);
}

/* Three loads of 3200 bytes and three copies of 640 elements, each after its load. In one run LD0
 * works 3..103..203..303, its data is there 100 later; the VPU is there at 4 and works 203..221,
 * 303..321, 403..421; halt at 422. */
static const char *const waits =
    ".dram 4096\n.roofline macs_s8=409600 macs_bf16=20480 dram_bytes=6400\n"
    ".desc 0 dma rank=1 elsize=1 size=[3200] dstride=[1] sstride=[1] extent=[3200]\n"
    ".desc 1 vector count=[1,1,1,1,640] s0=spm:s8@0[0,0,0,0,1] s1=spm:s8@8192[0,0,0,0,1]\n"
    ".vprog 0 { vec; ld v0, s0; st s1, v0; endv }\n"
    "dload d0, 0\ndload d1, 1\n"
    ".loc \"dir/m.mdl\" 3 1 \"read\" macs=1500\nld0 d0 give s0\n"
    ".loc \"dir/m.mdl\" 4 1 \"copy\"\nvx p0, d1 take s0\n"
    ".loc \"dir/m.mdl\" 3 1 \"read\"\nld0 d0 give s0\n"
    ".loc \"dir/m.mdl\" 4 1 \"copy\"\nvx p0, d1 take s0\n"
    ".loc \"dir/m.mdl\" 3 1 \"read\" macs=500\nld0 d0 give s0\n"
    ".loc \"dir/m.mdl\" 4 1 \"copy\"\nvx p0, d1 take s0\nhalt\n";

/* Of two runs. DRAM: 6 * 3200. Lane operations: 6 * 640 * 2. Compute: 409600 / 4096 + 20480 / 2048
 * = 110 a run, DRAM 6400 / 32 = 200. Scratchpad: 6 * (3200 + 2 * 640) bytes. Of each run's cycles,
 * 0 to 2 are of the program, 2 to 203 and 221 to 303 of read, half of 203 to 221 of each, the rest
 * of copy; LD0 works 291, the VPU 45, in 86 neither does. pJ: LD0 582 * 20 + 19200 * (40 + 2.8),
 * VPU 90 * 20 + 7680 * (.85 + 2.8), SEQ 172 * 20; read 584 * 20 and what LD0 moved, copy 256 * 20
 * and what the VPU did, program 4 * 20.
 */
static const char *const report_of_waits =
    "machine       edge+, 1 GHz, array 64x64, DRAM 32 GB/s\n"
    "runs          2\n"
    "instructions  18\n"
    "cycles        844 (0.844 us)\n"
    "  per run     422 (0.422 us)\n"
    "\n"
    "engine  instructions    busy cycles   busy %   wait sem %   wait queue/plane %   idle %  "
    "       energy\n"
    "SEQ                6             18      2.1          0.0                  0.0     97.9  "
    "     3.440 nJ\n"
    "LD0                6            600     71.1          0.0                  0.0     28.9  "
    "   833.400 nJ\n"
    "LD1                0              0      0.0          0.0                  0.0    100.0  "
    "     0.000 nJ\n"
    "ST                 0              0      0.0          0.0                  0.0    100.0  "
    "     0.000 nJ\n"
    "MXW                0              0      0.0          0.0                  0.0    100.0  "
    "     0.000 nJ\n"
    "MXM                0              0      0.0          0.0                  0.0    100.0  "
    "     0.000 nJ\n"
    "VPU                6            108     12.8         86.0                  0.0      1.2  "
    "    29.832 nJ\n"
    "\n"
    "DRAM read          19.20 kB\n"
    "DRAM written       0.000 B\n"
    "DRAM rows opened   0.000 \n"
    "scratchpad         26.88 kB\n"
    "accumulators       0.000 B\n"
    "vector lane ops    7.680 k\n"
    "  special          0.000 \n"
    "array s8 MACs      0.000 , useful   0.000 \n"
    "array bf16 MACs    0.000 , useful   0.000 \n"
    "\n"
    "roofline       compute 220 cycles, DRAM 400 cycles: bound by DRAM\n"
    "               47.4 % of the bound (400 of 844 cycles)\n"
    "  compute         860.2 k MACs of the model, at the machine's peak\n"
    "  DRAM            12.80 kB of inputs, states, weights and outputs, each byte once\n"
    "\n"
    "energy                866.672 nJ\n"
    "  MACs                  0.000 nJ    0.0 %\n"
    "  vector unit           6.528 nJ    0.8 %\n"
    "  special functions     0.000 nJ    0.0 %\n"
    "  accumulators          0.000 nJ    0.0 %\n"
    "  scratchpad           75.264 nJ    8.7 %\n"
    "  DRAM transfers      768.000 nJ   88.6 %\n"
    "  DRAM rows opened      0.000 nJ    0.0 %\n"
    "  instructions          0.000 nJ    0.0 %\n"
    "  leakage              16.880 nJ    1.9 %\n"
    "  DRAM standby          0.000 nJ    0.0 %\n"
    "\n"
    "source op                     place                          cycles      %        MACs  array "
    "MACs   DRAM bytes    SPM bytes    ACC bytes         energy\n"
    "(no source)                                                       4    0.5     0.000       "
    "0.000       0.000 B      0.000 B      0.000 B        0.080 nJ\n"
    "read                          m.mdl:3                           584   69.2     4.000 k     "
    "0.000       19.20 kB     19.20 kB     0.000 B      833.440 nJ\n"
    "copy                          m.mdl:4                           256   30.3     0.000       "
    "0.000       0.000 B      7.680 kB     0.000 B       33.152 nJ\n";

/* Lines without blanks at their end, so that the columns' width is all that is compared. */
static void expect_lines(const char *got, const char *want) {
  for (int line = 1; *got || *want; line++) {
    size_t g = strcspn(got, "\n"), w = strcspn(want, "\n");
    size_t gl = g, wl = w;
    while (gl && got[gl - 1] == ' ') gl--;
    while (wl && want[wl - 1] == ' ') wl--;
    if (gl != wl || memcmp(got, want, gl) != 0)
      fail_msg("line %d is\n%.*s\nexpected\n%.*s", line, (int)g, got, (int)w, want);
    got += g + (got[g] != 0);
    want += w + (want[w] != 0);
  }
}

static void whole_report(void **state) {
  (void)state;
  Run r = load_text(waits, NPURT_TIMED);
  StrBuf b = {0};
  run_ok(&r);
  run_ok(&r);
  npurt_report(r.m, &b);
  expect_lines(b.data, report_of_waits);
  b.len = 0;
  npurt_summary(r.m, &b);
  assert_string_equal(b.data, "844 cycles, 0.844 us, 0.867 uJ in 2 runs\n");
  strbuf_free(&b);
  run_free(&r);
}

/* Fast runs take no cycles to have shares of. */
static void report_without_time(void **state) {
  (void)state;
  Run r = load_text(waits, NPURT_FAST);
  StrBuf b = {0};
  run_ok(&r);
  npurt_report(r.m, &b);
  assert_non_null(strstr(b.data, "runs          1\n"));
  assert_null(strstr(b.data, "engine"));
  assert_null(strstr(b.data, "bound"));
  strbuf_free(&b);
  run_free(&r);
}

static void runs_add_up(void **state) {
  (void)state;
  Run r = load_text(waits, NPURT_TIMED);
  const NpurtProfile *p = npurt_profile(r.m);
  const NpurtOpProfile *ops;
  size_t n = npurt_op_profile(r.m, &ops);
  assert_int_equal(n, 3);
  for (int run = 1; run <= 3; run++) {
    run_ok(&r);
    assert_int_equal(p->runs, run);
    same(p->cycles, 422.0 * run);
    same(p->seconds * 1e9, 422.0 * run);
    same(p->energy.leakage, 422.0 * 20 * run);
    same(p->bound_compute, 110.0 * run);
    same(p->bound_dram, 200.0 * run);
    same(p->bound, 200.0 * run);
    same(p->bound_bytes, 6400.0 * run);
    same(p->macs, 430080.0 * run);
    same(p->energy.dram, 9600.0 * 40 * run);
    same(p->energy.vpu, 3840.0 * 0.85 * run);
    same(p->spm_bytes, 3.0 * (3200 + 1280) * run);
    same(p->energy.spm, 3.0 * (3200 + 1280) * 2.8 * run);
    same(p->energy.total, p->energy.dram + p->energy.vpu + p->energy.spm + p->energy.leakage);
    same(p->engine[ENGINE_VPU].stall_take, (199 + 82 + 82) * run);
    same(ops[1].cycles, 292.0 * run);
    same(ops[1].macs, 2000.0 * run);
    same(ops[1].dram_bytes, 9600.0 * run);
    same(ops[1].spm_bytes, 9600.0 * run);
    same(ops[1].energy, (9600 * 42.8 + 292 * 20) * run);
    assert_int_equal(ops[1].instructions, 3 * run);
    assert_int_equal(ops[2].instructions, 4 * run);
    assert_int_equal(ops[2].line, 4);
  }
  npurt_clear_profile(r.m);
  assert_int_equal(p->runs, 0);
  same(p->cycles + p->bound + p->macs + p->energy.total + ops[1].cycles + ops[1].energy, 0);
  run_ok(&r);
  same(p->energy.leakage, 422.0 * 20);
  same(ops[1].macs, 2000);
  run_free(&r);
}

/* s8 rows on a plane of 64 columns and bf16 rows on one of 48, both s8; a store of 100 bytes, four
 * bursts; a word of DRAM for the sequencer, one burst. What counts as bf16 is the streamed rows. */
static const char *const mixed =
    ".dram 4096\n"
    ".desc 0 plane dtype=s8 k=[1,1,64] kstride=[0,0,64] n=64 nstride=1\n"
    ".desc 1 rows dtype=s8 wdtype=s8 k=[1,1,64] kstride=[0,0,1] m=[1,1,10] mstride=[0,0,64] "
    "astride=[0,0,1]\n"
    ".desc 2 rows dtype=bf16 wdtype=s8 k=[1,1,64] kstride=[0,0,2] m=[1,1,6] mstride=[0,0,128] "
    "astride=[0,0,1]\n"
    ".desc 3 dma rank=1 elsize=1 size=[100] dstride=[1] sstride=[1] extent=[100]\n"
    "dload d0, 0\ndload d1, 1\ndload d2, 2\ndload d3, 3\nmm.load d0\nmm.mul.pop d1\n"
    "dseti d0.n, 48\nmm.load d0\nmm.mul.pop d2\nst d3\nldd r1, [r0 + 8]\nhalt\n";

static void mixed_types(void **state) {
  (void)state;
  for (int mode = NPURT_FAST; mode <= NPURT_TIMED; mode++) {
    Run r = load_text(mixed, (NpurtMode)mode);
    const NpurtProfile *p = npurt_profile(r.m);
    run_ok(&r);
    same(p->macs_s8, 10 * 64 * 64);
    same(p->macs_bf16, 6 * 64 * 64);
    same(p->energy.mac, 40960 * 0.1 + 24576 * 0.59);
    same(p->useful_s8, 10 * 64 * 64);
    same(p->useful_bf16, 6 * 64 * 48);
    same(p->acc_bytes, 16 * 64 * 4);
    same(p->energy.acc, 16 * 64 * 4 * 0.29);
    same(p->spm_bytes, 64 * 64 + 64 * 48 + 10 * 64 + 6 * 64 * 2 + 100);
    same(p->energy.spm, p->spm_bytes * 2.8);
    same(p->energy.vpu + p->vpu_ops, 0);
    same(p->dram_write, 128);
    same(p->dram_read, 32);
    same(p->energy.dram, 160 * 40);
    same(p->energy.total - p->energy.leakage,
         p->energy.mac + p->energy.acc + p->energy.spm + p->energy.dram);
    same(p->macs + p->bound, 0); /* the text states nothing */
    run_free(&r);
  }
}

/* ---- energy ---- */

static Run load_on(const char *text, NpurtMode mode, const char *machine) {
  static MachineDesc m;
  DiagEngine *d = diag_new();
  assert_true(machine_load(machine, &m, d));
  diag_free(d);
  return load_with(text, (NpurtOptions){.mode = mode, .machine = &m});
}

static void expect_sums(const Run *r) {
  const NpurtProfile *p = npurt_profile(r->m);
  const NpurtOpProfile *ops;
  size_t n = npurt_op_profile(r->m, &ops);
  double of_ops = 0, of_engines = 0;
  for (size_t i = 0; i < n; i++) of_ops += ops[i].energy;
  for (int e = 0; e < ENGINE_COUNT; e++) of_engines += p->engine[e].energy;
  same(of_ops, p->energy.total);
  same(of_engines, p->energy.total);
}

/* 200 elements: loaded, converted, exp, stored. 4 instructions, two of them dload. Issued 2, works
 * 3..3 + 8 + 4 chunks; halt at 16. Both dloads run in one go, so their cycles are of exp. */
static const char *const special =
    ".dram 4096\n"
    ".desc 0 vector count=[1,2,1,1,100] s0=spm:s8@0[0,100,0,0,1] s1=spm:f32@8192[0,400,0,0,4]\n"
    ".desc 1 dma rank=1 elsize=1 size=[1] dstride=[1] sstride=[1] extent=[1]\n"
    ".vprog 0 { vec; ld v0, s0; cvt.fi v0, v0; exp.f v0, v0; st s1, v0; endv }\n"
    "dload d1, 1\n.loc \"m.mdl\" 3 1 \"exp\"\ndload d0, 0\nvx p0, d0\nhalt\n";

static void energy_of_parameters(void **state) {
  (void)state;
  const struct {
    const char *change;
    double fast, timed; /* pJ that it adds in all; in timed mode */
    double of_op;       /* and to exp, timed */
  } part[] = {{"pj_sfu_op=2", 200 * 2, 200 * 2, 200 * 2},
              {"pj_instruction=3", 4 * 3, 4 * 3, 3 * 3},
              {"pj_descriptor=50", 2 * 50, 2 * 50, 50},
              {"pj_dram_static_cycle=7", 0, 16 * 7, 16 * 7}};
  for (int mode = NPURT_FAST; mode <= NPURT_TIMED; mode++) {
    Run plain = load_text(special, (NpurtMode)mode);
    const NpurtProfile *p = npurt_profile(plain.m);
    const NpurtOpProfile *before, *after;
    run_ok(&plain);
    same(p->sfu_ops, 200);
    same(p->energy.sfu + p->energy.control + p->energy.standby + p->energy.activate, 0);
    same(p->energy.total, 800 * .85 + 1000 * 2.8 + (mode == NPURT_TIMED ? 16 * 20 : 0));
    npurt_op_profile(plain.m, &before);
    for (size_t i = 0; i < NPU_COUNTOF(part); i++) {
      char machine[80];
      snprintf(machine, sizeof machine, "edge,ideal,dram_latency_ns=100,%s", part[i].change);
      Run r = load_on(special, (NpurtMode)mode, machine);
      run_ok(&r);
      same(npurt_profile(r.m)->energy.total - p->energy.total,
           mode == NPURT_FAST ? part[i].fast : part[i].timed);
      npurt_op_profile(r.m, &after);
      if (mode == NPURT_TIMED) same(after[1].energy - before[1].energy, part[i].of_op);
      expect_sums(&r);
      run_free(&r);
    }
    run_free(&plain);
  }
}

/* Loads or stores of 64 bytes, `count` of them every `stride`. */
static Run rows_run(const char *insn, int count, int stride, NpurtMode mode) {
  char text[500];
  snprintf(text, sizeof text,
           ".dram 1048576\n.desc 0 dma rank=2 elsize=1 size=[%d,64] dstride=[%d,1] sstride=[64,1] "
           "extent=[%d,64]\ndload d0, 0\n.loc \"m.mdl\" 3 1 \"move\"\n%s d0\n"
           ".loc \"m.mdl\" 4 1 \"end\"\nhalt\n",
           count, stride, count, insn);
  Run r = load_on(text, mode,
                  "edge,pj_spm_byte=0,pj_dram_byte=0,pj_static_cycle=0,pj_instruction=0,"
                  "pj_descriptor=0,pj_dram_static_cycle=0,pj_dram_activate=10");
  run_ok(&r);
  return r;
}

/* edge: 4 channels, blocks of 256 bytes, rows of 2048 bytes. Every 8192 bytes is another row, by
 * address and in closed form. Every 128 bytes: 12736 bytes lie in 13 blocks of a channel, in two
 * rows of all four; in closed form in 12736 / 2048 rows. Stores wait in buffers of 16 to the
 * channel, and what they still hold belongs to the end. */
static void rows_opened(void **state) {
  (void)state;
  const struct {
    const char *insn;
    int count, stride;
    double fast, timed, of_move;
  } cases[] = {{"ld0", 100, 8192, 100, 100, 100},
               {"ld1", 100, 128, 12736 / 2048.0, 8, 8},
               {"st", 10, 8192, 10, 10, 0}};
  for (size_t i = 0; i < NPU_COUNTOF(cases); i++)
    for (int mode = NPURT_FAST; mode <= NPURT_TIMED; mode++) {
      Run r = rows_run(cases[i].insn, cases[i].count, cases[i].stride, (NpurtMode)mode);
      const NpurtProfile *p = npurt_profile(r.m);
      const NpurtOpProfile *ops;
      npurt_op_profile(r.m, &ops);
      bool fast = mode == NPURT_FAST;
      double rows = fast ? cases[i].fast : cases[i].timed, of_move = fast ? rows : cases[i].of_move;
      same(p->dram_rows, rows);
      same(p->energy.activate, rows * 10);
      same(p->energy.total, rows * 10);
      same(ops[1].energy, of_move * 10);
      same(ops[2].energy, (rows - of_move) * 10);
      same(p->engine[ENGINE_SEQ].energy, (rows - of_move) * 10);
      run_free(&r);
    }
}

/* All parameters at once: what ops and engines took is what the run took. */
static void energy_sums(void **state) {
  (void)state;
  const char *const texts[] = {waits, mixed, special};
  for (size_t i = 0; i < NPU_COUNTOF(texts); i++)
    for (int mode = NPURT_FAST; mode <= NPURT_CHECK; mode++) {
      Run r = load_on(texts[i], (NpurtMode)mode, "edge");
      (void)npurt_run(r.m, r.diag); /* check mode finds fault with bytes nothing wrote */
      const IsaEnergy *e = &npurt_profile(r.m)->energy;
      same(e->total, e->mac + e->vpu + e->sfu + e->acc + e->spm + e->dram + e->activate +
                         e->control + e->leakage + e->standby);
      assert_true(e->control > 0 && e->spm > 0 && (mode == NPURT_FAST || e->standby > 0));
      expect_sums(&r);
      run_free(&r);
    }
}

/* Planes arrive at 67, 131, 195; four products of 200 rows each, 67..267..467..667..867; the fourth
 * load waits for room from 195 to 267, the first product for its plane from 7 to 67. MXW has 64
 * cycles alone and 192 with MXM: 160 * 20 pJ, 4 * 4096 bytes of SPM; MXM 704 * 20, 800 * 4096 MACs,
 * 51200 bytes of SPM, 204800 of ACC. */
static void plane_waits(void **state) {
  (void)state;
  Run r = load_text(
      ".desc 0 plane dtype=s8 k=[1,1,64] kstride=[0,0,64] n=64 nstride=1\n"
      ".desc 1 rows dtype=s8 wdtype=s8 k=[1,1,64] kstride=[0,0,1] m=[1,1,200] mstride=[0,0,64] "
      "astride=[0,0,1]\n"
      "dload d0, 0\ndload d1, 1\nmm.load d0\nmm.load d0\nmm.load d0\nmm.load d0\n"
      "mm.mul.pop d1\nmm.mul.pop d1\nmm.mul.pop d1\nmm.mul.pop d1\nhalt\n",
      NPURT_TIMED);
  StrBuf b = {0};
  run_ok(&r);
  npurt_report(r.m, &b);
  assert_non_null(strstr(
      b.data,
      "\nMXW                4            256     29.5          0.0                  8.3     "
      "62.2      49.075 nJ\n"
      "MXM                4            800     92.2          0.0                  6.9      0.9     "
      "544.512 nJ\n"));
  assert_non_null(strstr(b.data, "\narray s8 MACs      3.277 M, useful   3.277 M (100.0 %)\n"
                                 "array bf16 MACs    0.000 , useful   0.000 \n"));
  assert_non_null(strstr(b.data, "\nroofline       nothing stated"));
  strbuf_free(&b);
  run_free(&r);
}

/* 3168 bytes at 64 a cycle take 49.5: issued 0..2, loaded to 51.5, there at 151.5, halt. */
static void halves_round_up(void **state) {
  (void)state;
  MachineDesc m = *plain_machine();
  StrBuf b = {0};
  m.dram_gbs = 64;
  strbuf_puts(&b, ".machine {\n");
  machine_print(&m, &b);
  strbuf_puts(&b, "}\n.dram 4096\n.roofline macs_s8=10240 dram_bytes=160\n"
                  ".desc 0 dma rank=1 elsize=1 size=[3168] dstride=[1] sstride=[1] extent=[3168]\n"
                  "dload d0, 0\nld0 d0\nhalt\n");
  Run r = load_text(b.data, NPURT_TIMED);
  run_ok(&r);
  same(npurt_profile(r.m)->cycles, 152.5);
  b.len = 0;
  npurt_summary(r.m, &b);
  assert_non_null(strstr(b.data, "153 cycles, 0.153 us, "));
  b.len = 0;
  npurt_report(r.m, &b);
  assert_non_null(strstr(b.data, "\ncycles        153 (0.153 us)\n"));
  assert_non_null(strstr(b.data, "\nLD0                1             50     32.5 "));
  assert_non_null(strstr(b.data,
                         "\nroofline       compute 3 cycles, DRAM 3 cycles: bound by compute\n"
                         "               1.6 % of the bound (3 of 153 cycles)\n"));
  strbuf_free(&b);
  run_free(&r);
}

/* ---- the trace ---- */

/* Name, track, start and length in microseconds of every span of one run of `waits`. */
static const struct {
  const char *name;
  int tid, pc;
  double start, end; /* cycles */
} spans[] = {{"wait", 6, 3, 4, 203},   {"read", 1, 2, 3, 103},   {"read", 1, 4, 103, 203},
             {"copy", 6, 3, 203, 221}, {"read", 1, 6, 203, 303}, {"wait", 6, 5, 221, 303},
             {"copy", 6, 5, 303, 321}, {"wait", 6, 7, 321, 403}, {"copy", 6, 7, 403, 421}};

static void spans_of_trace(void **state) {
  (void)state;
  Run r = load_with(waits, (NpurtOptions){.mode = NPURT_TIMED, .trace = true});
  run_ok(&r);
  run_ok(&r);
  const char *path = "/tmp/npurt-test-figures.json", *why;
  assert_true(npurt_trace_write(r.m, path, r.diag));
  FileMap f;
  assert_true(file_map(path, &f, &why));
  char *text = strndup((const char *)f.data, f.size);
  for (size_t i = 0; i < NPU_COUNTOF(spans); i++)
    for (int run = 0; run < 2; run++) {
      bool wait = strcmp(spans[i].name, "wait") == 0;
      double start = spans[i].start + 422 * run, length = spans[i].end - spans[i].start;
      char want[300];
      snprintf(want, sizeof want,
               "{\"name\":\"%s\",\"cat\":\"%s\",\"ph\":\"X\",\"pid\":0,\"tid\":%d,\"ts\":%.6f,"
               "\"dur\":%.6f,\"args\":{\"pc\":%d,\"cycle\":%.3f,\"cycles\":%.3f,",
               spans[i].name, wait ? "wait" : "busy", spans[i].tid, start / 1000, length / 1000,
               spans[i].pc, start, length);
      if (!strstr(text, want)) fail_msg("no span %s\n%s", want, text);
    }
  size_t n = 0;
  for (const char *p = text; (p = strstr(p, "\"ph\":\"X\"")); p++) n++;
  assert_int_equal(n, 2 * NPU_COUNTOF(spans));
  free(text);
  file_unmap(&f);
  unlink(path);
  run_free(&r);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(whole_report),         cmocka_unit_test(runs_add_up),
      cmocka_unit_test(mixed_types),          cmocka_unit_test(plane_waits),
      cmocka_unit_test(energy_of_parameters), cmocka_unit_test(rows_opened),
      cmocka_unit_test(energy_sums),          cmocka_unit_test(halves_round_up),
      cmocka_unit_test(report_without_time),  cmocka_unit_test(spans_of_trace)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
