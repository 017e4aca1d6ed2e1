/* Tensor files are read as far as they are asked: a small archive with a member of 256 MiB of zeros
 * costs no memory until all of that member is wanted. Memory is the process's peak. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>
#include <zip.h>

#include "frontend/frontend.h"
#include "support/tensorfile.h"
#include "tools/samples.h"

enum { ROWS = 65536, COLUMNS = 1024, FEW_KIB = 32 << 10 };
static const float last_row = 7.5f;

static char path[] = "/tmp/npucc-test-XXXXXX.npz";

static void member(zipFile zip, const char *name, const char *header) {
  char text[128];
  zip_fileinfo info = {0};
  assert_int_equal(zipOpenNewFileInZip64(zip, name, &info, NULL, 0, NULL, 0, NULL, 8, 1, 0),
                   ZIP_OK);
  int n = snprintf(text, sizeof text, "\x93NUMPY\1%c%c%c%s", 0, (char)strlen(header), 0, header);
  assert_int_equal(zipWriteInFileInZip(zip, text, (unsigned)n), ZIP_OK);
}

/* Zeros, but for the last element. */
static void big(zipFile zip, const char *name, const char *header) {
  enum { BLOCK = 1 << 20 };
  char *zeros = calloc(1, BLOCK);
  assert_non_null(zeros);
  member(zip, name, header);
  for (size_t i = 0; i < (size_t)ROWS * COLUMNS * 4 / BLOCK; i++) {
    if (i + 1 == (size_t)ROWS * COLUMNS * 4 / BLOCK)
      memcpy(zeros + BLOCK - 4, &last_row, sizeof last_row);
    assert_int_equal(zipWriteInFileInZip(zip, zeros, BLOCK), ZIP_OK);
  }
  free(zeros);
  assert_int_equal(zipCloseFileInZip(zip), ZIP_OK);
}

static int write_archive(void **state) {
  (void)state;
  int fd = mkstemps(path, 4);
  assert_true(fd >= 0);
  close(fd);
  zipFile zip = zipOpen64(path, APPEND_STATUS_CREATE);
  assert_non_null(zip);
  big(zip, "big.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (65536, 1024), }");
  static const float x[4] = {1, 2, 3, 4};
  member(zip, "x.npy", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), }");
  assert_int_equal(zipWriteInFileInZip(zip, x, sizeof x), ZIP_OK);
  assert_int_equal(zipCloseFileInZip(zip), ZIP_OK);
  assert_int_equal(zipClose(zip, NULL), ZIP_OK);
  return 0;
}

static int remove_archive(void **state) {
  (void)state;
  return unlink(path);
}

static long peak_kib(void) {
  struct rusage u;
  getrusage(RUSAGE_SELF, &u);
  return u.ru_maxrss;
}

static void what_nobody_asks_for_is_not_inflated(void **state) {
  (void)state;
  long before = peak_kib();
  DiagEngine *d = diag_new();
  TensorFile *f = tensor_file_open(path, d, SRC_LOC_NONE);
  assert_non_null(f);
  const TensorEntry *e = tensor_file_find(f, "big");
  assert_int_equal(e->shape[0], ROWS);
  assert_null(e->data);
  const float *x = tensor_file_data(f, tensor_file_find(f, "x"), d, SRC_LOC_NONE);
  assert_true(x[0] == 1 && x[3] == 4);
  tensor_file_close(f);
  diag_free(d);
  assert_true(peak_kib() - before < FEW_KIB);
}

static void a_part_costs_a_part(void **state) {
  (void)state;
  const ModelPort port = {"x", DT_F32, 2, {3, COLUMNS}};
  char spec[64];
  long before = peak_kib();
  DiagEngine *d = diag_new();
  SampleSet *s = samples_new(&port, 1, d);
  snprintf(spec, sizeof spec, "x=%s:big[%d:%d]", path, ROWS - 3, ROWS);
  assert_true(samples_add(s, spec));
  assert_true(samples_finish(s));
  const void *const *in = samples_load(s, 0);
  assert_non_null(in);
  const float *x = in[0];
  for (int i = 0; i + 1 < 3 * COLUMNS; i++) assert_true(x[i] == 0);
  assert_true(x[3 * COLUMNS - 1] == last_row);
  samples_free(s);
  diag_free(d);
  assert_true(peak_kib() - before < FEW_KIB);
}

static void an_input_of_another_shape_or_type_is_refused_unread(void **state) {
  (void)state;
  static const ModelPort ports[] = {{"big", DT_F32, 2, {8, COLUMNS + 1}},
                                    {"big", DT_F32, 3, {8, 8, 8}},
                                    {"big", DT_S32, 2, {8, COLUMNS}}};
  long before = peak_kib();
  for (size_t i = 0; i < NPU_COUNTOF(ports); i++) {
    DiagEngine *d = diag_new();
    SampleSet *s = samples_new(&ports[i], 1, d);
    char spec[64];
    snprintf(spec, sizeof spec, "big=%s:big", path);
    assert_true(samples_add(s, spec));
    assert_false(samples_finish(s));
    assert_string_equal(diag_get(d, 0)->code, "E-input");
    samples_free(s);
    diag_free(d);
  }
  assert_true(peak_kib() - before < FEW_KIB);
}

static void a_weight_of_another_shape_is_refused_unread(void **state) {
  (void)state;
  static const char *const texts[] = {
      "model m(x: f32[2, 5]) -> (y: f32[2, 5]) {\n  return x @ weight(\"big\")\n}\n",
      "model m(x: f32[2, 2]) -> (y: f32[2, 2]) {\n  return x @ weight(\"x\")\n}\n",
  };
  const char *files[] = {path};
  MdlOptions o = {.weight_files = files, .nweight_files = 1};
  long before = peak_kib();
  for (size_t i = 0; i < 2; i++) {
    DiagEngine *d = diag_new();
    IrModule *m = mdl_read_text(texts[i], strlen(texts[i]), "t.mdl", &o, d);
    assert_int_equal(m != NULL, i == 1);
    if (!m) assert_string_equal(diag_get(d, 0)->code, "E-shape");
    ir_module_free(m);
    diag_free(d);
  }
  assert_true(peak_kib() - before < FEW_KIB);
}

/* That all of it does cost what it holds shows that the others measure something. */
static void the_whole_is_read_when_it_is_wanted(void **state) {
  (void)state;
  long before = peak_kib();
  DiagEngine *d = diag_new();
  TensorFile *f = tensor_file_open(path, d, SRC_LOC_NONE);
  const TensorEntry *e = tensor_file_find(f, "big");
  const float *x = tensor_file_data(f, e, d, SRC_LOC_NONE);
  assert_non_null(x);
  assert_true(x[(size_t)ROWS * COLUMNS - 1] == last_row);
  assert_ptr_equal(tensor_file_data(f, e, d, SRC_LOC_NONE), x);
  assert_ptr_equal(tensor_file_part(f, e, 4096, 8, d, SRC_LOC_NONE), x + 1024);
  tensor_file_close(f);
  diag_free(d);
  assert_true(peak_kib() - before > 200 << 10);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(what_nobody_asks_for_is_not_inflated),
      cmocka_unit_test(a_part_costs_a_part),
      cmocka_unit_test(an_input_of_another_shape_or_type_is_refused_unread),
      cmocka_unit_test(a_weight_of_another_shape_is_refused_unread),
      cmocka_unit_test(the_whole_is_read_when_it_is_wanted),
  };
  return cmocka_run_group_tests(tests, write_archive, remove_archive);
}
