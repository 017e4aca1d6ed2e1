/* Speed of the simulator: a 1024x1024x1024 s8 product in fast and timed mode, against oneDNN's
 * dnnl_gemm_s8s8s32 on one thread in the same process. The program is the binary named on the
 * command line (inputs x and w, output y: matmul_s8.mdl compiled), else one scheduled by hand for
 * `edge`. The three take turns; figures are medians of processor time. Results are compared. */
#include "runtime/npurt.h"
#include <oneapi/dnnl/dnnl.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { N = 1024, HALF = 512, TILE = 64, ROUNDS = 21 };
enum { X_DRAM = 0, W_DRAM = N * N, Y_DRAM = 2 * N * N };
enum { X_SPM = 0, W_SPM = N * N, Y_SPM = N * N + 2 * N * TILE };

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Strips of 64 columns of w, two halves of 512 rows in the accumulators, both double-buffered.
 * Semaphores: s0 strip there, s1 strip free, s2 x there, s3 half done, s4 half free, s5 output
 * buffer there, s6 output buffer free. */
static void program(StrBuf *t) {
  strbuf_printf(t, ".machine edge\n.dram %d\n.roofline macs_s8=%.0f dram_bytes=%d\n", 6 * N * N,
                (double)N * N * N, 6 * N * N);
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

typedef struct {
  int8_t *x, *w;
  int32_t *y[3];
  double seconds[3][ROUNDS];
} Bench;
enum { DNNL, FAST, TIMED };

static bool assemble(const char *path, DiagEngine *d) {
  StrBuf text = {0};
  IsaImage img;
  program(&text);
  bool ok = isa_assemble(text.data, text.len, "bench", &img, d) && isa_image_write(&img, path, d);
  isa_image_free(&img);
  strbuf_free(&text);
  return ok;
}

static NpurtModel *load(const char *path, NpurtMode mode, const Bench *b, DiagEngine *d) {
  const NpurtOptions o = {.mode = mode};
  NpurtModel *m = npurt_load(path, &o, d);
  if (!m) return NULL;
  const IsaIo *x = npurt_find_io(m, IO_INPUT, "x"), *w = npurt_find_io(m, IO_INPUT, "w");
  if (!x || !w || !npurt_find_io(m, IO_OUTPUT, "y")) {
    npurt_free(m);
    return NULL;
  }
  memcpy(npurt_io_data(m, x), b->x, (size_t)N * N);
  memcpy(npurt_io_data(m, w), b->w, (size_t)N * N);
  return m;
}

static bool run_model(NpurtModel *m, int which, int round, Bench *b, DiagEngine *d) {
  double start = now();
  npurt_clear_profile(m);
  if (!npurt_run(m, d)) return false;
  b->seconds[which][round] = now() - start;
  memcpy(b->y[which], npurt_io_data(m, npurt_find_io(m, IO_OUTPUT, "y")), (size_t)N * N * 4);
  return true;
}

static void run_dnnl(int round, Bench *b) {
  const int32_t co = 0;
  double start = now();
  dnnl_gemm_s8s8s32('N', 'N', 'F', N, N, N, 1.0f, b->x, N, 0, b->w, N, 0, 0.0f, b->y[DNNL], N, &co);
  b->seconds[DNNL][round] = now() - start;
}

/* Round -1 warms up: code is generated, pages are touched. */
static bool run_rounds(NpurtModel *fast, NpurtModel *timed, Bench *b, DiagEngine *d) {
  for (int round = -1; round < ROUNDS; round++) {
    int r = round < 0 ? 0 : round;
    run_dnnl(r, b);
    if (!run_model(fast, FAST, r, b, d) || !run_model(timed, TIMED, r, b, d)) return false;
  }
  return true;
}

static int compare_doubles(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

/* Median; with `over`, of the quotients round by round. */
static double median(const double *v, const double *over) {
  double s[ROUNDS];
  for (int i = 0; i < ROUNDS; i++) s[i] = over ? v[i] / over[i] : v[i];
  qsort(s, ROUNDS, sizeof *s, compare_doubles);
  return s[ROUNDS / 2];
}

static void print_results(const Bench *b, const NpurtModel *timed) {
  static const char *const names[] = {"dnnl_gemm_s8s8s32", "fast mode", "timed mode"};
  for (int i = DNNL; i <= TIMED; i++) {
    double t = median(b->seconds[i], NULL);
    printf("  %-18s %8.3f ms %8.1f GMAC/s", names[i], t * 1e3, (double)N * N * N / 1e9 / t);
    if (i == FAST) printf("  %.2f of dnnl's speed", median(b->seconds[DNNL], b->seconds[FAST]));
    if (i == TIMED)
      printf("  %.2f of fast mode's time", median(b->seconds[TIMED], b->seconds[FAST]));
    printf("\n");
  }
  const NpurtProfile *p = npurt_profile(timed);
  printf("  simulated cycles %.0f, bound %.0f, %.3f times the bound\n", p->cycles, p->bound,
         p->cycles / p->bound);
}

static bool same_results(const Bench *b) {
  for (int i = FAST; i <= TIMED; i++)
    if (memcmp(b->y[i], b->y[DNNL], (size_t)N * N * 4) != 0) return false;
  return true;
}

static bool bench(const char *path, Bench *b, DiagEngine *d) {
  Rng g;
  rng_seed(&g, 1);
  for (int i = 0; i < N * N; i++) {
    b->x[i] = (int8_t)rng_u64(&g);
    b->w[i] = (int8_t)rng_u64(&g);
  }
  NpurtModel *fast = load(path, NPURT_FAST, b, d), *timed = load(path, NPURT_TIMED, b, d);
  bool ok = fast && timed && run_rounds(fast, timed, b, d);
  if (ok) print_results(b, timed);
  ok = ok && same_results(b);
  printf("  results %s\n", ok ? "equal" : "DIFFER");
  npurt_free(fast);
  npurt_free(timed);
  return ok;
}

int main(int argc, char **argv) {
  if (!getenv("OMP_NUM_THREADS")) { /* read when the library is loaded */
    setenv("OMP_NUM_THREADS", "1", 1);
    execv("/proc/self/exe", argv);
  }
  DiagEngine *d = diag_new();
  char path[] = "/tmp/npucc-bench-XXXXXX";
  int fd = argc > 1 ? -1 : mkstemp(path);
  if (fd >= 0) close(fd);
  Bench b = {.x = mem_alloc((size_t)N * N), .w = mem_alloc((size_t)N * N)};
  for (int i = 0; i < 3; i++) b.y[i] = mem_alloc((size_t)N * N * 4);
  printf("1024^3 s8 matmul, %s, median of %d\n", argc > 1 ? argv[1] : "scheduled by hand", ROUNDS);
  bool ok = (argc > 1 || assemble(path, d)) && bench(argc > 1 ? argv[1] : path, &b, d);
  diag_print_all(d, stderr, false);
  if (fd >= 0) unlink(path);
  for (int i = 0; i < 3; i++) mem_free(b.y[i]);
  mem_free(b.x);
  mem_free(b.w);
  diag_free(d);
  return ok ? 0 : 1;
}
