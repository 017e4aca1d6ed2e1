/* Check mode: each finding from a program with exactly that fault, and the same program without it
 * clean. */
#include "runtime_util.h"
#include <stdio.h>

static void clean(const char *text) {
  Run r = load_text(text, NPURT_CHECK);
  run_ok(&r);
  if (diag_count(r.diag)) show(r.diag);
  assert_int_equal(diag_count(r.diag), 0);
  run_ok(&r); /* and again: nothing is left over from the first run */
  run_free(&r);
}

/* Exactly one error, of this code, with this text. */
static void finds(const char *text, const char *code, const char *message) {
  Run r = load_text(text, NPURT_CHECK);
  expect_fail(&r, code, message);
  if (diag_errors(r.diag) != 1) show(r.diag);
  assert_int_equal(diag_errors(r.diag), 1);
  run_free(&r);
}

#define HEAD                                                                                       \
  ".dram 4096\n.io input \"x\" s8[256] 0\n"                                                        \
  ".desc 0 dma rank=1 elsize=1 spm=0 size=[256] dstride=[1] sstride=[1] extent=[256]\n"            \
  ".desc 1 dma rank=1 elsize=1 dram=1024 spm=512 size=[256] dstride=[1] sstride=[1] "              \
  "extent=[256]\n"                                                                                 \
  ".desc 2 vector count=[1,1,1,1,256] s0=spm:s8@0[0,0,0,0,1] s1=spm:s8@512[0,0,0,0,1]\n"           \
  ".vprog 0 { vec; ld v0, s0; st s1, v0; endv }\n"                                                 \
  "dload d0, 0\ndload d1, 1\ndload d2, 2\n"

static void races(void **state) {
  (void)state;
  clean(HEAD "ld0 d0 give s0\nvx p0, d2 take s0 give s1\nst d1 take s1\nhalt\n");
  /* The VPU reads what the load writes, unordered; in this timing the load happens to come first.
   */
  finds(
      HEAD "ld0 d0\nvx p0, d2 give s1\nst d1 take s1\nhalt\n", "E-race",
      "pc 4 `vx p0, d2 give s1:1` reads scratchpad bytes 0..255, which LD0's pc 3 `ld0 d0` writes");
  /* The next load into the buffer waits for the data, not for its reader. */
  finds(HEAD "ld0 d0 give s0, s3\nvx p0, d2 take s0 give s1\nst d1 take s1\nld1 d0 take s3\nhalt\n",
        "E-race",
        "pc 4 `vx p0, d2 take s0:1 give s1:1` reads scratchpad bytes 0..255, which LD1's pc 6 `ld1 "
        "d0 "
        "take s3:1` writes");
  /* Only part of the range is touched by the second load. */
  finds(
      HEAD
      "ld0 d0 give s0\ndseti d0.spm, 200\nld0 d0\nvx p0, d2 take s0 give s1\nst d1 take s1\nhalt\n",
      "E-race", "reads scratchpad bytes 200..255, which LD0's pc 5");
}

/* Knowledge that travels through other engines, the sequencer, fences and the FIFO. */
static void orderings(void **state) {
  (void)state;
  clean(HEAD "ld0 d0\nfence\nvx p0, d2\nfence\nst d1\nhalt\n");
  clean(HEAD "ld0 d0 give s0\ntake s0\nvx p0, d2 give s1\ntake s1\nst d1\nhalt\n");
  /* LD0 -> ST (sync) -> VPU */
  clean(
      HEAD
      "ld0 d0 give s0\nsync.st take s0 give s1\nvx p0, d2 take s1 give s2\nst d1 take s2\nhalt\n");
  /* a sync in the load's queue comes after the load's data */
  clean(HEAD "ld0 d0\nsync.ld0 give s0\nvx p0, d2 take s0 give s2\nst d1 take s2\nhalt\n");
  /* two tokens of one semaphore are taken in the order they were given: the second taker may read
   * the second buffer */
  clean(HEAD "ld0 d0 give s0\ndseti d0.spm, 1024\nld0 d0 give s0\nvx p0, d2 take s0 give s1\nst d1 "
             "take s1 give s3\n"
             "dseti d2.base.0, 1024\nvx p0, d2 take s0, s3 give s1\nst d1 take s1\nhalt\n");
  finds(HEAD "ld0 d0 give s0\ndseti d0.spm, 1024\nld0 d0 give s0\ndseti d2.base.0, 1024\nvx p0, d2 "
             "take s0 give s1\nst d1 take s1\nhalt\n",
        "E-race", "scratchpad bytes 1024..1279");
  /* a load queue does not see its own data arrive: the index list needs a token */
#define GATHER                                                                                     \
  ".dram 4096\n.io input \"i\" s32[4] 0\n.io input \"t\" s8[64] 64\n"                              \
  ".desc 0 dma rank=1 elsize=4 spm=0 size=[4] dstride=[4] sstride=[4] extent=[4]\n"                \
  ".desc 1 dma rank=2 elsize=1 dram=64 spm=64 index=0 size=[4,16] dstride=[16,1] sstride=[16,1] "  \
  "extent=[4,16]\n"                                                                                \
  "dload d0, 0\ndload d1, 1\n"
  clean(GATHER "ld0 d0 give s0\nld0.gather d1 take s0\nhalt\n");
  finds(GATHER "ld0 d0\nld0.gather d1\nhalt\n", "E-race",
        "reads scratchpad bytes 0..15, which LD0's pc 2");
  /* but may overwrite what it wrote before */
  clean(GATHER "ld0 d0\nld0 d0\nhalt\n");
}

/* The vector unit takes one of two tokens; which load gave it depends on their sizes. */
static void two_givers(void **state) {
  (void)state;
  static const int small = 1, large = 256;
  for (int i = 0; i < 4; i++) {
    char sizes[128], text[2048];
    snprintf(sizes, sizeof sizes, "dload d3, 1\ndseti d3.dram, 0\ndseti d3.size.0, %d\n",
             i & 1 ? large : small);
    const char *order =
        i & 2 ? "ld1 d3 give s1:1\nld0 d0 give s1:1\n" : "ld0 d0 give s1:1\nld1 d3 give s1:1\n";
    snprintf(text, sizeof text, HEAD "dseti d2.base.1, 1024\n%s%svx p0, d2 take s1:1\nhalt\n",
             sizes, order);
    finds(text, "E-race", "reads scratchpad bytes 0..255, which LD0's pc");
    /* with both tokens taken nothing can be missing */
    snprintf(text, sizeof text, HEAD "dseti d2.base.1, 1024\n%s%svx p0, d2 take s1:2\nhalt\n",
             sizes, order);
    clean(text);
  }
  /* a token handed to each of two engines by one give */
  clean(HEAD "dseti d1.spm, 0\nld0 d0 give s1:2\ndseti d2.base.1, 1024\nvx p0, d2 take s1\nst d1 "
             "take s1\nhalt\n");
  /* ... by two gives is the first one's for either */
  finds(HEAD "dseti d1.spm, 0\nld0 d0 give s1\nsync.ld1 give s1\ndseti d2.base.1, 1024\nvx p0, d2 "
             "take s1 give s2\nst d1 take s1, s2\nhalt\n",
        "E-race", "reads scratchpad bytes 0..255, which LD0's pc");
}

#define MXU                                                                                        \
  ".dram 8192\n.io input \"w\" s8[4096] 0\n.io input \"x\" s8[64] 4096\n"                          \
  ".desc 0 dma rank=1 elsize=1 spm=0 size=[4096] dstride=[1] sstride=[1] extent=[4096]\n"          \
  ".desc 1 dma rank=1 elsize=1 dram=4096 spm=4096 size=[64] dstride=[1] sstride=[1] extent=[64]\n" \
  ".desc 2 plane dtype=s8 k=[1,1,64] kstride=[0,0,64] n=64 nstride=1\n"                            \
  ".desc 3 rows dtype=s8 wdtype=s8 spm=4096 k=[1,1,64] kstride=[0,0,1] m=[1,1,1] "                 \
  "mstride=[0,0,64] astride=[0,0,1]\n"                                                             \
  ".desc 4 vector count=[1,1,1,1,64] s0=acc:s32@0[0,0,0,0,1] s1=spm:s32@8192[0,0,0,0,4]\n"         \
  ".vprog 0 { vec; ld v0, s0; st s1, v0; endv }\n"                                                 \
  "dload d0, 0\ndload d1, 1\ndload d2, 2\ndload d3, 3\ndload d4, 4\n"

static void planes(void **state) {
  (void)state;
  clean(MXU "ld0 d0 give s0\nld1 d1 give s1\nmm.load d2 take s0\nmm.mul.pop d3 take s1 give s2\nvx "
            "p0, d4 take s2\nhalt\n");
  /* The load of the weights is known to the multiply through the plane: LD0 may reuse its buffer
   * after it. */
  clean(MXU "ld0 d0 give s0\nld1 d1 give s1\nmm.load d2 take s0\nmm.mul.pop d3 take s1 give "
            "s2\nld0 d0 take s2\nhalt\n");
  /* Room alone orders the third load: the pop that makes it starts after LD1's token is taken. */
#define THIRD(take)                                                                                \
  MXU "ld0 d0 give s0\nld1 d1 give s1\nmm.load d2 take s0\nmm.load d2\ndseti d0.spm, 8192\nld1 "   \
      "d0 "                                                                                        \
      "give s2\n" take "mm.mul.pop d3 take s1\ndseti d2.spm, 8192\nmm.load d2\nmm.mul.pop "        \
      "d3\nmm.mul.pop d3\n"
  clean(THIRD("sync.mxm take s2\n") "halt\n");
  finds(THIRD("") "sync.mxm take s2\nhalt\n", "E-race",
        "reads scratchpad bytes 8192..8255, which LD1's pc");
  finds(MXU "ld0 d0 give s0\nld1 d1\nmm.load d2 take s0\nmm.mul.pop d3 give s2\nvx p0, d4 take "
            "s2\nhalt\n",
        "E-race", "reads scratchpad bytes 4096..4159, which LD1's pc 6");
  /* The reader is not ordered and starts first: it reads nothing, and the writer comes too late. */
  Run r = load_text(MXU "ld0 d0 give s0\nld1 d1 give s1\nmm.load d2 take s0\nmm.mul.pop d3 take "
                        "s1\nvx p0, d4\nhalt\n",
                    NPURT_CHECK);
  expect_fail(&r, "E-race",
              "pc 8 `mm.mul.pop d3 take s1:1` writes accumulator words 0..63, which VPU's pc 9 `vx "
              "p0, d4` reads");
  assert_true(has_diag(&r, "E-uninit", "pc 9 `vx p0, d4` reads accumulator words 0..63"));
  run_free(&r);
  finds(MXU "ld0 d0 give s0\nld1 d1 give s1\nmm.load d2 take s0\nmm.mul.pop.acc d3 take s1\nhalt\n",
        "E-uninit", "accumulator words 0..63");
  finds(MXU "ld0 d0 give s0\nld1 d1 give s1\nmm.load d2 take s0\nmm.mul.pop d3 take s1 give s2\n"
            "dseti d4.base.0, 1\nvx p0, d4 take s2\nhalt\n",
        "E-uninit", "accumulator words 64..64");
}

static void uninitialised(void **state) {
  (void)state;
  finds(HEAD "vx p0, d2 give s1\nst d1 take s1\nhalt\n", "E-uninit",
        "reads scratchpad bytes 0..255, which nothing has written");
  /* the load covers 0..99 and 200..255: exactly the hole is reported */
  finds(HEAD "dseti d0.size.0, 100\nld0 d0\ndseti d0.size.0, 56\ndseti d0.spm, 200\nld0 d0 give "
             "s0\nvx p0, d2 take s0 give s1\nst d1 take s1\nhalt\n",
        "E-uninit", "scratchpad bytes 100..199");
  /* what was filled is written */
  clean(HEAD "dseti d0.extent.0, 10\nld0.fill d0 give s0\nvx p0, d2 take s0 give s1\nst d1 take "
             "s1\nhalt\n");
  /* DRAM: inputs hold something, temporaries until written do not */
  finds(HEAD "dseti d0.dram, 100\nld0 d0 give s0\nvx p0, d2 take s0 give s1\nst d1 take s1\nhalt\n",
        "E-uninit", "DRAM bytes 256..355");
  clean(HEAD "ld0 d0 give s0\nvx p0, d2 take s0 give s1\nst d1 take s1 give s2\ndseti d0.dram, "
             "1024\nld0 d0 take s2\nhalt\n");
  finds(HEAD "lds r1, [r0 + 64]\nhalt\n", "E-uninit", "scratchpad bytes 64..67");
  clean(HEAD "ld0 d0 give s0\ntake s0\nlds r1, [r0 + 64]\nldd r2, [r0 + 8]\nhalt\n");
  finds(HEAD "ldd r1, [r0 + 2048]\nhalt\n", "E-uninit", "DRAM bytes 2048..2051");
  /* A strided box over a strided store: every second byte is written, and only those are read. */
  clean(".dram 4096\n.io input \"x\" s8[256] 0\n.desc 0 dma rank=1 elsize=1 spm=0 size=[256] "
        "dstride=[1] sstride=[1] extent=[256]\n"
        ".desc 1 dma rank=1 elsize=1 dram=2048 spm=0 size=[100] dstride=[2] sstride=[1] "
        "extent=[100]\n"
        "dload d0, 0\ndload d1, 1\nld0 d0 give s0\nst d1 take s0 give s1\nld0 d1 take s1\nhalt\n");
  finds(".dram 4096\n.io input \"x\" s8[256] 0\n.desc 0 dma rank=1 elsize=1 spm=0 size=[256] "
        "dstride=[1] sstride=[1] extent=[256]\n"
        ".desc 1 dma rank=1 elsize=1 dram=2048 spm=0 size=[100] dstride=[2] sstride=[1] "
        "extent=[100]\n"
        "dload d0, 0\ndload d1, 1\nld0 d0 give s0\nst d1 take s0 give s1\ndseti d1.dram, 2046\nld0 "
        "d1 take s1\nhalt\n",
        "E-uninit", "DRAM bytes 2046..2046");
  /* a program's own temporary: stored in its first pass, read in its second */
  clean(HEAD ".vprog 1 { vec; ld v0, s0; st s1, v0; endv; vec; ld v1, s1; st s0, v1; endv }\n"
             "ld0 d0 give s0\nvx p1, d2 take s0 give s1\nst d1 take s1\nhalt\n");
  finds(HEAD ".vprog 1 { vec; ld v1, s1; st s1, v1; endv }\n"
             "ld0 d0 give s0\nvx p1, d2 take s0 give s1\nst d1 take s1\nhalt\n",
        "E-uninit", "scratchpad bytes 512..767");
}

static void overflow(void **state) {
  (void)state;
  /* The accumulator starts at 2147483000 and gains 64 * 16384. */
  const char *text = MXU ".desc 5 vector count=[1,1,1,1,64] s0=acc:s32@0[0,0,0,0,1]\n.vprog 1 { "
                         "vec; st s0, 2147483000; endv }\n"
                         ".loc \"a.mdl\" 3 1 \"fc1\"\ndload d5, 5\nvx p1, d5 give s3\nld0 d0 give "
                         "s0\nld1 d1 give s1\nmm.load d2 take s0\n"
                         "mm.mul.pop.acc d3 take s1, s3 give s2\nvx p0, d4 take s2\nhalt\n";
  for (int positive = 0; positive < 2; positive++) {
    Run r = load_text(text, NPURT_CHECK);
    memset(io_bytes(&r, IO_INPUT, "w"), 0x80, 4096);
    memset(io_bytes(&r, IO_INPUT, "x"), positive ? 0x80 : 0x7f, 64);
    run_ok(&r); /* a warning: the wrap is what the machine does */
    assert_int_equal(
        has_diag(&r, "W-overflow",
                 "(op fc1): accumulator word 0 overflows 32 bits (2147483000 plus 1048576"),
        positive);
    run_free(&r);
  }
}

/* No error, and exactly one warning, of this code with this text. */
static void warns(const char *text, const char *code, const char *message) {
  Run r = load_text(text, NPURT_CHECK);
  run_ok(&r);
  if (!has_diag(&r, code, message) || diag_count(r.diag) != 1) show(r.diag);
  assert_int_equal(diag_count(r.diag), 1);
  assert_true(has_diag(&r, code, message));
  run_free(&r);
}

#define OUTPUT ".io output \"y\" s8[256] 1024\n"

/* What a program leaves behind. */
static void leftovers(void **state) {
  (void)state;
  clean(HEAD OUTPUT "ld0 d0 give s0\nvx p0, d2 take s0 give s1\nst d1 take s1\nhalt\n");
  finds(HEAD OUTPUT "ld0 d0 give s0\nvx p0, d2 take s0\nhalt\n", "E-uninit",
        "output `y`: no instruction wrote it");
  /* bytes 100..199 are missing; and in two stores none is */
  warns(HEAD OUTPUT "dseti d1.size.0, 100\nld0 d0 give s0\nvx p0, d2 take s0 give s1\nst d1 take "
                    "s1\ndseti d1.size.0, 56\ndseti d1.dram, 1224\nst d1\nhalt\n",
        "W-unwritten", "100 of its 256 bytes in this run, first of all bytes 100..199");
  clean(HEAD OUTPUT "dseti d1.size.0, 100\nld0 d0 give s0\nvx p0, d2 take s0 give s1\nst d1 take "
                    "s1\ndseti d1.size.0, 156\ndseti d1.dram, 1124\nst d1\nhalt\n");
  /* a state may stay as it was */
  clean(HEAD ".io state \"y\" s8[256] 1024\nld0 d0\nhalt\n");
  warns(
      HEAD "ld0 d0 give s5:3\ntake s5:2\nhalt\n", "W-tokens",
      "semaphore 5 holds 1 when the program ends: something is given that nothing takes; the last "
      "to give is pc 3 `ld0 d0 give s5:3`");
  warns(MXU "ld0 d0 give s0\nmm.load d2 take s0\nhalt\n", "W-planes", "1 weight plane is");
}

#define PASS(streams, count, program)                                                              \
  ".dram 4096\n.io input \"x\" s8[1024] 0\n"                                                       \
  ".desc 0 dma rank=1 elsize=1 spm=0 size=[1024] dstride=[1] sstride=[1] extent=[1024]\n"          \
  ".desc 1 vector count=" count " " streams "\n.vprog 0 { " program " }\n"                         \
  "dload d0, 0\ndload d1, 1\nld0 d0 give s0\nvx p0, d1 take s0\nhalt\n"
#define MOVE "vec; ld v0, s0; st s1, v0; endv"

/* The elements of a pass, and of a transfer, have no order. */
static void overlaps(void **state) {
  (void)state;
  /* in place, apart, interleaved, and an element of another size over itself */
  clean(PASS("s0=spm:f32@0[0,0,0,0,4] s1=spm:f32@0[0,0,0,0,4]", "[1,1,1,1,16]", MOVE));
  clean(PASS("s0=spm:f32@0[0,0,0,0,4] s1=spm:f32@64[0,0,0,0,4]", "[1,1,1,1,16]", MOVE));
  clean(PASS("s0=spm:f32@0[0,0,0,0,8] s1=spm:f32@4[0,0,0,0,8]", "[1,1,1,1,16]", MOVE));
  clean(PASS("s0=spm:f32@0[0,0,0,0,4] s1=spm:bf16@2[0,0,0,0,4]", "[1,1,1,1,16]", MOVE));
  /* shifted by one element up and down, and by a byte */
  finds(PASS("s0=spm:f32@0[0,0,0,0,4] s1=spm:f32@4[0,0,0,0,4]", "[1,1,1,1,16]", MOVE), "E-overlap",
        "in one pass element 0 stores to scratchpad bytes 4..7, which element 1 loads");
  finds(PASS("s0=spm:f32@4[0,0,0,0,4] s1=spm:f32@0[0,0,0,0,4]", "[1,1,1,1,16]", MOVE), "E-overlap",
        "element 1 stores to scratchpad bytes 4..7, which element 0 loads");
  finds(PASS("s0=spm:f32@0[0,0,0,0,4] s1=spm:f32@1[0,0,0,0,4]", "[1,1,1,1,16]", MOVE), "E-overlap",
        "element 0 stores to scratchpad bytes 1..4, which element 1 loads");
  /* narrower elements over wider ones: element 2 stores bytes 4..5, of element 1 */
  finds(PASS("s0=spm:f32@0[0,0,0,0,4] s1=spm:bf16@0[0,0,0,0,2]", "[1,1,1,1,16]", MOVE), "E-overlap",
        "element 1 stores to scratchpad bytes 2..3, which element 0 loads");
  /* backwards over forwards; the middle of three is its own */
  finds(PASS("s0=spm:s8@0[0,0,0,0,1] s1=spm:s8@2[0,0,0,0,-1]", "[1,1,1,1,3]", MOVE), "E-overlap",
        "element 0 stores to scratchpad bytes 2..2, which element 2 loads");
  clean(PASS("s0=spm:s8@0[0,0,0,0,1] s1=spm:s8@0[0,0,0,0,-1]", "[1,1,1,1,1]", MOVE));
  /* rows follow one another: each reads what the one before stored */
  clean(PASS("s0=spm:f32@0[0,64,0,0,4] s1=spm:f32@64[0,64,0,0,4]", "[1,4,1,1,16]", MOVE));
  /* all to one place; one element may */
  finds(PASS("s0=spm:f32@0[0,0,0,0,4] s1=spm:f32@512[0,0,0,0,0]", "[1,1,1,1,16]", MOVE),
        "E-overlap", "which element 1 stores to as well");
  clean(PASS("s0=spm:f32@0[0,0,0,0,4] s1=spm:f32@512[0,0,0,0,0]", "[1,1,1,1,1]", MOVE));
  /* one element loaded by all, and stored by one of them */
  finds(PASS("s0=spm:f32@8[0,0,0,0,0] s1=spm:f32@0[0,0,0,0,4]", "[1,1,1,1,4]", MOVE), "E-overlap",
        "element 2 stores to scratchpad bytes 8..11, which element 0 loads");
  /* two passes: the second may load anything the first stored */
  clean(PASS("s0=spm:f32@0[0,0,0,0,4] s1=spm:f32@64[0,0,0,0,4] s2=spm:f32@68[0,0,0,0,4] "
             "s3=spm:f32@256[0,0,0,0,4]",
             "[1,1,1,1,15]", "vec; ld v0, s0; st s1, v0; endv; vec; ld v0, s2; st s3, v0; endv"));
  /* a window of four loads what the next element stores */
  finds(PASS("s0=spm:f32@0[0,0,0,4,4] s1=spm:f32@0[0,0,0,0,4]", "[1,1,1,4,8]",
             "vec; mov v1, 0.0; red; ld v0, s0; add.f v1, v1, v0; endr; st s1, v1; endv"),
        "E-overlap", "element 1 stores to scratchpad bytes 4..7, which element 0 loads");
  /* accumulator words */
  finds(PASS("s0=spm:f32@0[0,0,0,0,4] s1=acc:f32@8[0,0,0,0,1] s2=acc:f32@9[0,0,0,0,1]",
             "[1,1,1,1,16]", "vec; ld v0, s0; st s1, v0; st s2, v0; endv"),
        "E-overlap", "element 1 stores to accumulator words 9..9, which element 0 stores to");
  /* a transfer whose elements fall together, in the scratchpad and in DRAM */
  finds(HEAD "dseti d0.sstride.0, 0\nld0 d0\nhalt\n", "E-overlap",
        "writes several elements to scratchpad bytes 0..0");
  finds(HEAD "ld0 d0 give s0\nvx p0, d2 take s0 give s1\ndseti d1.dstride.0, 0\nst d1 take "
             "s1\nhalt\n",
        "E-overlap", "writes several elements to DRAM bytes 1024..1024");
  clean(HEAD "dseti d0.dstride.0, 0\nld0 d0\nhalt\n"); /* one element read often */
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(races),         cmocka_unit_test(orderings),
                                     cmocka_unit_test(two_givers),    cmocka_unit_test(planes),
                                     cmocka_unit_test(uninitialised), cmocka_unit_test(overflow),
                                     cmocka_unit_test(leftovers),     cmocka_unit_test(overlaps)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
