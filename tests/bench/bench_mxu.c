/* Speed of the simulator's matrix unit: a 1024x1024x1024 s8 product as a hand-scheduled program for
 * `edge`, in fast and timed mode, against oneDNN's dnnl_gemm_s8s8s32 on one thread in the same
 * process. Results are compared. */
#include "runtime/npurt.h"
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N = 1024, HALF = 512, TILE = 64, RUNS = 7 };
enum { X_DRAM = 0, W_DRAM = N * N, Y_DRAM = 2 * N * N };
enum { X_SPM = 0, W_SPM = N * N, Y_SPM = N * N + 2 * N * TILE };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Strips of 64 columns of w, two halves of 512 rows in the accumulators, both double-buffered.
 * Semaphores: s0 strip there, s1 strip free, s2 x there, s3 half done, s4 half free, s5 output
 * buffer there, s6 output buffer free. */
static void program(StrBuf *t) {
  strbuf_printf(t, ".dram %d\n.roofline macs_s8=%.0f dram_bytes=%d\n", 6 * N * N, (double)N * N * N,
                6 * N * N);
  strbuf_printf(t,
                ".io input \"x\" s8[%d,%d] %d\n.io input \"w\" s8[%d,%d] %d\n.io output \"y\" "
                "s32[%d,%d] %d\n",
                N, N, X_DRAM, N, N, W_DRAM, N, N, Y_DRAM);
  strbuf_printf(
      t,
      ".desc 0 dma rank=1 elsize=1 dram=%d spm=%d size=[%d] dstride=[1] sstride=[1] extent=[%d]\n",
      X_DRAM, X_SPM, N * N, N * N);
  strbuf_printf(t,
                ".desc 1 dma rank=2 elsize=1 dram=%d spm=%d size=[%d,%d] dstride=[%d,1] "
                "sstride=[%d,1] extent=[%d,%d]\n",
                W_DRAM, W_SPM, N, TILE, N, TILE, N, N);
  strbuf_printf(t, ".desc 2 plane dtype=s8 k=[1,1,%d] kstride=[0,0,%d] n=%d nstride=1\n", TILE,
                TILE, TILE);
  strbuf_printf(t,
                ".desc 3 rows dtype=s8 wdtype=s8 k=[1,1,%d] kstride=[0,0,1] m=[1,1,%d] "
                "mstride=[0,0,%d] astride=[0,0,1]\n",
                TILE, HALF, N);
  strbuf_printf(
      t, ".desc 4 vector count=[1,1,1,1,%d] s0=acc:s32@0[0,0,0,0,1] s1=spm:s32@0[0,0,0,0,4]\n",
      HALF * TILE);
  strbuf_printf(t,
                ".desc 5 dma rank=2 elsize=4 dram=%d size=[%d,%d] dstride=[%d,4] sstride=[%d,4] "
                "extent=[%d,%d]\n",
                Y_DRAM, HALF, TILE, 4 * N, 4 * TILE, N, N);
  strbuf_puts(t, ".vprog 0 { vec; ld v0, s0; st s1, v0; endv }\n");
  for (int i = 0; i < 6; i++) strbuf_printf(t, "dload d%d, %d\n", i, i);
  strbuf_puts(t, "give s1:2\ngive s4:2\ngive s6:2\nld1 d0 give s2\n");
  for (int n = 0; n < N / TILE; n++) {
    strbuf_printf(t, "dseti d1.spm, %d\ndseti d1.coord.1, %d\nld0 d1 take s1 give s0\n",
                  W_SPM + n % 2 * N * TILE, n * TILE);
    for (int h = 0; h < 2; h++) {
      for (int k = 0; k < N / TILE; k++) {
        bool first = k == 0, last = k == N / TILE - 1;
        strbuf_printf(t, "dseti d2.spm, %d\nmm.load d2%s%s\n",
                      W_SPM + n % 2 * N * TILE + k * TILE * TILE, first && h == 0 ? " take s0" : "",
                      last && h == 1 ? " give s1" : "");
        strbuf_printf(t, "dseti d3.spm, %d\ndseti d3.acc, %d\nmm.mul.pop%s d3%s%s\n",
                      X_SPM + h * HALF * N + k * TILE, h * HALF, first ? "" : ".acc",
                      n == 0 && h == 0 && first ? " take s2, s4"
                      : first                   ? " take s4"
                                                : "",
                      last ? " give s3" : "");
      }
      strbuf_printf(t,
                    "dseti d4.base.0, %d\ndseti d4.base.1, %d\nvx p0, d4 take s3, s6 give s4, s5\n",
                    h * HALF * TILE, Y_SPM + h * HALF * TILE * 4);
      strbuf_printf(
          t,
          "dseti d5.spm, %d\ndseti d5.coord.0, %d\ndseti d5.coord.1, %d\nst d5 take s5 give s6\n",
          Y_SPM + h * HALF * TILE * 4, h * HALF, n * TILE);
    }
  }
  strbuf_puts(t, "halt\n");
}

/* Best time of a mode in seconds; the model is left for inspection. */
static double run_mode(const char *path, NpurtMode mode, const int8_t *x, const int8_t *w,
                       int32_t *y, StrBuf *report) {
  DiagEngine *d = diag_new();
  NpurtOptions o = {.mode = mode, .isa_level = -1};
  NpurtModel *m = npurt_load(path, &o, d);
  double best = 1e9;
  if (m) {
    memcpy(npurt_io_data(m, npurt_find_io(m, IO_INPUT, "x")), x, (size_t)N * N);
    memcpy(npurt_io_data(m, npurt_find_io(m, IO_INPUT, "w")), w, (size_t)N * N);
  }
  for (int i = 0; m && i < RUNS; i++) {
    double t = now();
    npurt_clear_profile(m);
    if (!npurt_run(m, d)) break;
    t = now() - t;
    if (t < best) best = t;
  }
  if (m) {
    memcpy(y, npurt_io_data(m, npurt_find_io(m, IO_OUTPUT, "y")), (size_t)N * N * 4);
    npurt_report(m, report);
  }
  diag_print_all(d, stderr, false);
  npurt_free(m);
  diag_free(d);
  return best;
}

int main(int argc, char **argv) {
  (void)argc;
  if (!getenv("OMP_NUM_THREADS")) { /* read when the library is loaded */
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
  }
  StrBuf t = {0}, report = {0};
  program(&t);
  DiagEngine *d = diag_new();
  IsaImage img;
  const char *path = "/tmp/bench_mxu.bin";
  bool ok = isa_assemble(t.data, t.len, "bench", &img, d) && isa_image_write(&img, path, d);
  diag_print_all(d, stderr, false);
  if (!ok) return 1;
  int8_t *x = mem_alloc((size_t)N * N), *w = mem_alloc((size_t)N * N);
  int32_t *fast = mem_alloc((size_t)N * N * 4), *timed = mem_alloc((size_t)N * N * 4),
          *ref = mem_alloc((size_t)N * N * 4);
  Rng g;
  rng_seed(&g, 1);
  for (int i = 0; i < N * N; i++) {
    x[i] = (int8_t)rng_u64(&g);
    w[i] = (int8_t)rng_u64(&g);
  }
  double tf = run_mode(path, NPURT_FAST, x, w, fast, &report);
  report.len = 0;
  double tt = run_mode(path, NPURT_TIMED, x, w, timed, &report), td = 1e9;
  for (int i = 0; i < RUNS; i++) {
    const int32_t co = 0;
    double s = now();
    dnnl_gemm_s8s8s32('N', 'N', 'F', N, N, N, 1.0f, x, N, 0, w, N, 0, 0.0f, ref, N, &co);
    s = now() - s;
    if (s < td) td = s;
  }
  double gmac = (double)N * N * N / 1e9;
  printf("%s\n1024^3 s8 matmul, best of %d\n", report.data, RUNS);
  printf("  dnnl_gemm_s8s8s32  %7.3f ms  %7.1f GMAC/s\n", td * 1e3, gmac / td);
  printf("  fast mode          %7.3f ms  %7.1f GMAC/s  %.2f of dnnl\n", tf * 1e3, gmac / tf,
         td / tf);
  printf("  timed mode         %7.3f ms  %7.1f GMAC/s  %.2f of fast\n", tt * 1e3, gmac / tt,
         tf / tt);
  printf("  results %s\n",
         memcmp(fast, ref, (size_t)N * N * 4) || memcmp(timed, ref, (size_t)N * N * 4) ? "DIFFER"
                                                                                       : "equal");
  unlink(path);
  return 0;
}
