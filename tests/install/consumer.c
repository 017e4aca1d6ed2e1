/* consumer MODEL.mdl OUT.bin: compiles with libnpucc, runs with libnpurt, checks y = 2 max(x, 0).
 */
#include <stdio.h>

#include "runtime/npurt.h"
#include "tools/compile.h"

static bool compile(const char *model, const char *binary, DiagEngine *diag) {
  NpuccOptions options;
  npucc_options_init(&options);
  Npucc *c = npucc_new(&options, diag);
  IsaImage image = {0};
  bool ok = c && npucc_read(c, model) && npucc_run_passes(c, IR_PROGRAM) &&
            npucc_emit_image(c, &image) && isa_image_write(&image, binary, diag);
  isa_image_free(&image);
  npucc_free(c);
  return ok;
}

static bool run(const char *binary, DiagEngine *diag) {
  static const float x[4] = {-1, 0.5f, 3, -0.25f}, want[4] = {0, 1, 6, 0};
  NpurtOptions options = {.mode = NPURT_FAST};
  NpurtModel *m = npurt_load(binary, &options, diag);
  bool ok = m != NULL;
  if (ok) {
    float *in = npurt_io_data(m, npurt_find_io(m, IO_INPUT, "x"));
    const float *out = npurt_io_data(m, npurt_find_io(m, IO_OUTPUT, "y"));
    for (int i = 0; i < 4; i++) in[i] = x[i];
    ok = npurt_run(m, diag);
    for (int i = 0; ok && i < 4; i++)
      if (out[i] != want[i]) {
        printf("y[%d] is %g, not %g\n", i, (double)out[i], (double)want[i]);
        ok = false;
      }
  }
  npurt_free(m);
  return ok;
}

int main(int argc, char **argv) {
  if (argc != 3) return 2;
  DiagEngine *diag = diag_new();
  bool ok = compile(argv[1], argv[2], diag) && run(argv[2], diag);
  diag_print_all(diag, stderr, false);
  diag_free(diag);
  return ok ? 0 : 1;
}
