/* Model inputs from tensor files: batches, conversion, and what is refused. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tools/samples.h"

static char dir[] = "/tmp/npucc-test-XXXXXX";
static char path[64], spec[96];

static int make_dir(void **state) {
  (void)state;
  if (!mkdtemp(dir)) return -1;
  snprintf(path, sizeof path, "%s/t.npz", dir);
  return 0;
}

static int remove_dir(void **state) {
  (void)state;
  unlink(path);
  return rmdir(dir);
}

static const float rows5[5][2] = {{0, 1}, {10, 11}, {20, 21}, {30, 31}, {40, 41}};
static const uint8_t bytes4[4] = {0, 1, 254, 255};

/* Writes the tensors every test chooses from. */
static void write_tensors(void) {
  static const float vector[3] = {7, 8, 9}, masks[2] = {1, -INFINITY};
  static const int64_t wide[2] = {-5, (int64_t)1 << 31}, fits[2] = {-5, INT32_MAX};
  static const double doubles[2] = {0.1, 1e300};
  const TensorEntry t[] = {
      {"x", DT_F32, 2, {5, 2}, rows5, sizeof rows5},
      {"two", DT_F32, 2, {2, 2}, rows5, 16},
      {"row", DT_F32, 1, {2}, rows5, 8},
      {"v", DT_F32, 1, {3}, vector, sizeof vector},
      {"masks", DT_F32, 1, {2}, masks, sizeof masks},
      {"bytes", DT_U8, 1, {4}, bytes4, sizeof bytes4},
      {"wide", DT_S64, 1, {2}, wide, sizeof wide},
      {"fits", DT_S64, 1, {2}, fits, sizeof fits},
      {"doubles", DT_F64, 1, {2}, doubles, sizeof doubles},
      {"none", DT_F32, 2, {0, 2}, NULL, 0},
  };
  DiagEngine *d = diag_new();
  assert_true(tensor_file_write(path, t, NPU_COUNTOF(t), d));
  diag_free(d);
}

static const char *tensor_spec(const char *input, const char *tensor) {
  snprintf(spec, sizeof spec, "%s=%s:%s", input, path, tensor);
  return spec;
}

static void batches_cover_every_row_once(void **state) {
  (void)state;
  write_tensors();
  for (int64_t n = 1; n <= 7; n++) {
    if (n == 5) continue; /* the declared shape itself: no batches */
    const ModelPort ports[] = {{"x", DT_F32, 2, {n, 2}}, {"v", DT_F32, 1, {3}}};
    DiagEngine *d = diag_new();
    SampleSet *s = samples_new(ports, n == 3 ? 1 : 2, d);
    assert_true(samples_add(s, path)); /* by tensor names */
    assert_true(samples_finish(s));
    assert_int_equal(samples_rows(s, n), 5);
    assert_int_equal(samples_rows(s, 8), 0);
    assert_int_equal(samples_part(s), 5 % n ? n : 0);
    assert_int_equal(samples_runs(s), (5 + n - 1) / n);
    for (int64_t run = 0; run < samples_runs(s); run++) {
      const void *const *in = samples_load(s, run);
      const float *x = in[0];
      int64_t left = 5 - run * n, whole = left < n ? left : n;
      for (int64_t k = 0; k < n; k++) /* the last batch repeats its own samples */
        assert_memory_equal(x + 2 * k, rows5[run * n + k % whole], sizeof rows5[0]);
      if (n != 3) assert_float_equal(((const float *)in[1])[2], 9, 0);
    }
    samples_free(s);
    assert_int_equal(diag_errors(d), 0);
    diag_free(d);
  }
}

/* Binds one input and loads its first batch; NULL, or the converted bytes (to be freed). */
static void *load_one(ModelPort port, const char *tensor, int64_t *rows, char message[256]) {
  DiagEngine *d = diag_new();
  SampleSet *s = samples_new(&port, 1, d);
  const void *const *in = NULL;
  if (samples_add(s, tensor_spec(port.name, tensor)) && samples_finish(s)) in = samples_load(s, 0);
  void *copy = NULL;
  if (in) {
    copy = malloc(port_bytes(&port));
    memcpy(copy, in[0], port_bytes(&port));
    *rows = samples_rows(s, port.shape[0]);
  } else {
    assert_int_equal(diag_errors(d), 1);
    snprintf(message, 256, "%s", diag_get(d, 0)->message);
  }
  samples_free(s);
  diag_free(d);
  return copy;
}

static void accepted(ModelPort port, const char *tensor, const void *want, int64_t want_rows) {
  char message[256] = "";
  int64_t rows = -1;
  void *got = load_one(port, tensor, &rows, message);
  if (!got) fail_msg("%s: %s", tensor, message);
  assert_memory_equal(got, want, port_bytes(&port));
  assert_int_equal(rows, want_rows);
  free(got);
}

static void refused(ModelPort port, const char *tensor, const char *what) {
  char message[256] = "";
  int64_t rows;
  void *got = load_one(port, tensor, &rows, message);
  assert_null(got);
  if (!strstr(message, what)) fail_msg("expected \"%s\" in: %s", what, message);
}

static void values_convert_when_nothing_is_lost(void **state) {
  (void)state;
  const float floats[4] = {0, 1, 254, 255};
  const uint16_t halves[4] = {0, 0x3f80, 0x437e, 0x437f};
  const int32_t ints[2] = {-5, INT32_MAX}, four[4] = {0, 1, 254, 255};
  const float mask[2] = {1, -INFINITY};
  accepted((ModelPort){"x", DT_F32, 1, {2}}, "masks", mask, 0);
  accepted((ModelPort){"x", DT_F32, 1, {4}}, "bytes", floats, 0);
  accepted((ModelPort){"x", DT_BF16, 1, {4}}, "bytes", halves, 0);
  accepted((ModelPort){"x", DT_S32, 1, {4}}, "bytes", four, 0);
  accepted((ModelPort){"x", DT_S32, 1, {2}}, "fits", ints, 0);
  accepted((ModelPort){"x", DT_F32, 2, {1, 2}}, "row", rows5[0],
           0); /* one sample without its axis */
  refused((ModelPort){"x", DT_S8, 1, {4}}, "bytes", "254, which does not fit");
  refused((ModelPort){"x", DT_S32, 1, {2}}, "wide", "does not fit");
  refused((ModelPort){"x", DT_S32, 1, {3}}, "v", "integer type");
  refused((ModelPort){"x", DT_F32, 1, {2}}, "doubles", "too large");
}

static void wrong_shapes_are_refused(void **state) {
  (void)state;
  refused((ModelPort){"x", DT_F32, 2, {4, 3}}, "x", "declared f32[4,3]");
  refused((ModelPort){"x", DT_F32, 3, {5, 2, 1}}, "x", "f32[5,2]");
  refused((ModelPort){"x", DT_F32, 0, {0}}, "v", "a scalar is wanted");
  refused((ModelPort){"x", DT_F32, 2, {4, 2}}, "none", "no samples");
  refused((ModelPort){"x", DT_F32, 2, {4, 2}}, "nothing", "has no tensor 'nothing'");
}

static void inputs_of_different_length_are_refused(void **state) {
  (void)state;
  const ModelPort ports[] = {{"x", DT_F32, 2, {2, 2}}, {"two", DT_F32, 2, {2, 2}}};
  DiagEngine *d = diag_new();
  SampleSet *s = samples_new(ports, 2, d);
  assert_true(samples_add(s, path)); /* five rows of x, two of two */
  assert_false(samples_finish(s));
  assert_non_null(strstr(diag_get(d, 0)->message,
                         "'x' has 5 samples at 2 a run (2.5 runs), 'two' has 2 samples at 2 a run "
                         "(1 run)"));
  samples_free(s);
  diag_free(d);
}

/* Binds x of `nx` a run to 6 rows, s of `ns` to `rows` rows of [1,2] and t, a scalar, to one value.
 * Returns the runs, 0 after a message. */
static int64_t runs_of(int64_t nx, int64_t ns, int64_t rows, char message[256]) {
  static const float zeros[64];
  const float one = 3;
  const ModelPort ports[] = {
      {"x", DT_F32, 2, {nx, 4}}, {"s", DT_F32, 3, {ns, 1, 2}}, {"t", DT_F32, 0, {0}}};
  const TensorEntry t[] = {{"x", DT_F32, 2, {6, 4}, zeros, 96},
                           {"s", DT_F32, 3, {rows, 1, 2}, zeros, (size_t)rows * 8},
                           {"t", DT_F32, 0, {0}, &one, 4}};
  DiagEngine *d = diag_new();
  assert_true(tensor_file_write(path, t, NPU_COUNTOF(t), d));
  SampleSet *s = samples_new(ports, 3, d);
  assert_true(samples_add(s, path));
  int64_t runs = samples_finish(s) ? samples_runs(s) : 0;
  for (int64_t run = 0; run < runs; run++)
    assert_float_equal(*(const float *)samples_load(s, run)[2], 3, 0);
  if (runs > 1 && nx != 6) assert_int_equal(samples_rows(s, nx), 6);
  if (runs > 1 && ns != rows && ns != nx) assert_int_equal(samples_rows(s, ns), rows);
  snprintf(message, 256, "%s", diag_count(d) ? diag_get(d, 0)->message : "");
  samples_free(s);
  diag_free(d);
  return runs;
}

static void inputs_fill_the_same_runs(void **state) {
  (void)state;
  char m[256];
  assert_int_equal(runs_of(2, 2, 6, m), 3);
  assert_int_equal(runs_of(1, 2, 12, m), 6); /* each with its own number a run */
  assert_int_equal(runs_of(2, 4, 12, m), 3);
  assert_int_equal(runs_of(4, 2, 3, m), 2); /* one and a half runs of both */
  assert_int_equal(runs_of(2, 1, 1, m), 3); /* one run's worth is given to every run */
  assert_int_equal(runs_of(2, 5, 5, m), 3);
  assert_int_equal(runs_of(1, 1, 1, m), 6); /* one sample stands for all */
  assert_int_equal(runs_of(6, 2, 8, m), 4);
  assert_int_equal(runs_of(6, 2, 2, m), 1);
  assert_int_equal(runs_of(1, 2, 11, m), 0); /* six runs of x, five and a half of s */
  assert_non_null(
      strstr(m, "'x' has 6 samples at 1 a run (6 runs), 's' has 11 samples at 2 a run (5.5 runs)"));
  assert_int_equal(runs_of(4, 2, 4, m), 0); /* one and a half, two */
  assert_int_equal(runs_of(3, 3, 3, m), 0); /* too short: x takes 3 a run too, and has more */
  assert_non_null(
      strstr(m, "'x' has 6 samples at 3 a run (2 runs), 's' has 3 samples at 3 a run (1 run)"));
  write_tensors();
}

/* What cannot be converted is found before the first run, whichever run it is of. */
static void later_values_are_checked_first(void **state) {
  (void)state;
  static double values[2500];
  const ModelPort port = {"x", DT_F32, 1, {1}};
  const TensorEntry t = {"x", DT_F64, 1, {2500}, values, sizeof values};
  for (int at = 0; at < 2500; at += 2499) {
    DiagEngine *d = diag_new();
    values[at] = 1e300;
    assert_true(tensor_file_write(path, &t, 1, d));
    SampleSet *s = samples_new(&port, 1, d);
    assert_true(samples_add(s, path) && samples_finish(s));
    assert_int_equal(samples_runs(s), 2500);
    assert_null(samples_load(s, 0));
    assert_non_null(strstr(diag_get(d, 0)->message, "1e+300, which is too large"));
    values[at] = 0;
    samples_free(s);
    diag_free(d);
  }
  write_tensors();
}

static void names_are_checked(void **state) {
  (void)state;
  const ModelPort ports[] = {{"p", DT_F32, 2, {1, 2}}, {"q", DT_S32, 1, {4}}};
  DiagEngine *d = diag_new();
  SampleSet *s = samples_new(ports, 2, d);
  assert_false(samples_add(s, "z=t.npz"));
  assert_non_null(strstr(diag_get(d, 0)->message, "no input 'z'; it has p: f32[1,2], q: s32[4]"));
  assert_false(samples_add(s, path)); /* no tensor is called p or q */
  assert_true(samples_add(s, tensor_spec("p", "x")));
  assert_false(samples_add(s, tensor_spec("p", "x")));
  assert_non_null(strstr(diag_get(d, 2)->message, "given twice"));
  assert_false(samples_finish(s)); /* q is missing */
  assert_non_null(strstr(diag_get(d, 3)->message, "input 'q' (s32[4]) is not given"));
  samples_free(s);
  diag_free(d);
}

static void ranges_take_rows(void **state) {
  (void)state;
  const ModelPort two = {"x", DT_F32, 2, {2, 2}}, one = {"x", DT_F32, 2, {1, 2}};
  accepted(two, "x[1:3]", rows5[1], 0); /* exactly the declared shape */
  accepted(two, "x[2:]", rows5[2], 3);
  accepted(two, "x[:3]", rows5[0], 3);
  accepted(one, "x[4:5]", rows5[4], 0);
  accepted(one, "x[:]", rows5[0], 5);
  refused(one, "x[0:6]", "has no rows [0:6] of tensor 'x': its first axis has 5");
  refused(one, "x[5:]", "no rows [5:]");
  refused(one, "x[3:3]", "no rows [3:3]");
  refused(one, "x[-1:3]", "no rows [-1:3]");
  refused(one, "x[3]", "no rows [3]");
}

static void random_inputs_repeat_by_seed(void **state) {
  (void)state;
  const ModelPort ports[] = {{"f", DT_F32, 1, {100}}, {"i", DT_S32, 1, {4}}, {"b", DT_S8, 1, {50}}};
  float first[100];
  for (int round = 0; round < 2; round++) {
    DiagEngine *d = diag_new();
    SampleSet *s = samples_new(ports, 3, d);
    samples_random(s, 11, 2);
    assert_true(samples_finish(s));
    assert_int_equal(samples_runs(s), 2);
    const void *const *in = samples_load(s, 0);
    if (round == 0)
      memcpy(first, in[0], sizeof first);
    else
      assert_memory_equal(first, in[0], sizeof first);
    for (int k = 0; k < 4; k++) assert_int_equal(((const int32_t *)in[1])[k], 0);
    in = samples_load(s, 1);
    assert_memory_not_equal(first, in[0], sizeof first);
    assert_memory_equal(first, samples_load(s, 0)[0], sizeof first); /* begins again */
    samples_free(s);
    diag_free(d);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(batches_cover_every_row_once),
      cmocka_unit_test(values_convert_when_nothing_is_lost),
      cmocka_unit_test(wrong_shapes_are_refused),
      cmocka_unit_test(inputs_of_different_length_are_refused),
      cmocka_unit_test(inputs_fill_the_same_runs),
      cmocka_unit_test(later_values_are_checked_first),
      cmocka_unit_test(names_are_checked),
      cmocka_unit_test(ranges_take_rows),
      cmocka_unit_test(random_inputs_repeat_by_seed),
  };
  return cmocka_run_group_tests_name("samples", tests, make_dir, remove_dir);
}
