/* libnpucc: what is encoded is verified first, whoever wrote it. */
#include "tools/compile.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char text[] = "func @f(%x: f32[4]) -> (y: f32[4]) level graph {\n"
                           "  %0 = relu %x : (f32[4]) -> f32[4]\n"
                           "  return %0 : (f32[4]) -> ()\n"
                           "}\n";

static bool reported(const DiagEngine *diag, const char *code) {
  for (size_t i = 0; i < diag_count(diag); i++)
    if (diag_get(diag, i)->code && !strcmp(diag_get(diag, i)->code, code)) return true;
  return false;
}

static void test_verified_before_emission(void **state) {
  (void)state;
  for (int broken = 0; broken < 2; broken++) {
    DiagEngine *diag = diag_new();
    NpuccOptions options;
    npucc_options_init(&options);
    Npucc *c = npucc_new(&options, diag);
    assert_true(npucc_read_ir(c, text, strlen(text), "test.ir") && npucc_run_passes(c, IR_PROGRAM));
    if (broken) ir_op_unlink(npucc_module(c)->funcs[0]->body->first); /* a tensor others name */
    IsaImage image = {0};
    assert_int_equal(npucc_emit_image(c, &image), !broken);
    assert_int_equal(reported(diag, "E-scope"), broken);
    assert_int_equal(reported(diag, "E-internal"), broken); /* not what was given is wrong */
    isa_image_free(&image);
    npucc_free(c);
    diag_free(diag);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_verified_before_emission)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
