/* An index out of range stops the run, on the host and in every mode of the simulator, with a
 * message that names the index, the range and the source line; the run after it, with good indices,
 * is right. */
#include "tests/e2e/diff.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

enum { ROWS = 11, N = 70, WIDTH = 13 };
static const char model[] = "model m(x: f32[11, 13], i: s32[70]) -> (y: f32[70, 13])\n"
                            "{\n"
                            "  return gather(x, i, axis = 0)\n"
                            "}\n";

typedef struct {
  char dir[32], mdl[64], bin[64];
  DiagEngine *diag;
  Npucc *c;
  float x[ROWS * WIDTH], y[N * WIDTH];
  int32_t index[N];
} Fixture;

static int set_up(void **state) {
  Fixture *f = mem_alloc(sizeof *f);
  strcpy(f->dir, "/tmp/npucc-traps-XXXXXX");
  if (!mkdtemp(f->dir)) return -1;
  snprintf(f->mdl, sizeof f->mdl, "%s/gather.mdl", f->dir);
  snprintf(f->bin, sizeof f->bin, "%s/gather.bin", f->dir);
  const char *why;
  if (!file_write_atomic(f->mdl, model, sizeof model - 1, &why)) return -1;
  f->diag = diag_new();
  NpuccOptions o;
  npucc_options_init(&o);
  o.quantize = false;
  f->c = npucc_new(&o, f->diag);
  for (int i = 0; i < ROWS * WIDTH; i++) f->x[i] = (float)i;
  for (int i = 0; i < N; i++) f->index[i] = i * 7 % ROWS;
  *state = f;
  return f->c && npucc_read(f->c, f->mdl) ? 0 : -1;
}

static int tear_down(void **state) {
  Fixture *f = *state;
  npucc_free(f->c);
  diag_free(f->diag);
  unlink(f->mdl);
  unlink(f->bin);
  rmdir(f->dir);
  mem_free(f);
  return 0;
}

static void expect_right(const Fixture *f) {
  for (int i = 0; i < N * WIDTH; i++)
    assert_true(f->y[i] == f->x[f->index[i / WIDTH] * WIDTH + i % WIDTH]);
}

static void expect_message(const DiagEngine *diag, size_t at, const char *index) {
  assert_int_equal(diag_errors(diag), at + 1);
  const Diag *d = diag_get(diag, at);
  assert_string_equal(d->code, "E-index");
  assert_int_equal(d->loc.line, 3);
  assert_non_null(strstr(d->message, index));
  assert_non_null(strstr(d->message, "0..10"));
}

static const struct {
  int32_t value;
  const char *text;
} bad[] = {{ROWS, "index 11"}, {-1, "index -1"}, {INT32_MIN, "index -2147483648"}};

static void test_host(void **state) {
  Fixture *f = *state;
  HostProgram *p = npucc_host(f->c);
  assert_non_null(p);
  const void *in[] = {f->x, f->index};
  void *out[] = {f->y};
  for (size_t k = 0; k < NPU_COUNTOF(bad); k++) {
    f->index[N - 3] = bad[k].value;
    assert_false(host_run(p, in, out, f->diag));
    expect_message(f->diag, k, bad[k].text);
  }
  f->index[N - 3] = 5;
  assert_true(host_run(p, in, out, f->diag));
  expect_right(f);
  host_free(p);
}

static bool simulate(Fixture *f, NpurtModel *m) {
  memcpy(npurt_io_data(m, npurt_find_io(m, IO_INPUT, "x")), f->x, sizeof f->x);
  memcpy(npurt_io_data(m, npurt_find_io(m, IO_INPUT, "i")), f->index, sizeof f->index);
  bool ok = npurt_run(m, f->diag);
  memcpy(f->y, npurt_io_data(m, npurt_find_io(m, IO_OUTPUT, "y")), sizeof f->y);
  return ok;
}

static void test_simulator(void **state) {
  Fixture *f = *state;
  IsaImage image = {0};
  assert_true(npucc_run_passes(f->c, IR_PROGRAM));
  assert_true(npucc_emit_image(f->c, &image));
  assert_true(isa_image_write(&image, f->bin, f->diag));
  isa_image_free(&image);
  size_t errors = 0;
  for (int mode = NPURT_FAST; mode <= NPURT_CHECK; mode++) {
    NpurtOptions o = {.mode = (NpurtMode)mode};
    NpurtModel *m = npurt_load(f->bin, &o, f->diag);
    assert_non_null(m);
    for (size_t k = 0; k < NPU_COUNTOF(bad); k++) {
      f->index[N - 3] = bad[k].value;
      assert_false(simulate(f, m));
      expect_message(f->diag, errors++, bad[k].text);
    }
    f->index[N - 3] = 5;
    assert_true(simulate(f, m));
    expect_right(f);
    npurt_free(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_setup_teardown(test_host, set_up, tear_down),
      cmocka_unit_test_setup_teardown(test_simulator, set_up, tear_down)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
