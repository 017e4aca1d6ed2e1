/* support: memory, strings, diagnostics, files, numbers, element types. */
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/dtype.h"
#include "support/support.h"

/* ---- memory ---- */

static void arena_blocks_are_zero_aligned_and_apart(void **state) {
  (void)state;
  Arena *a = arena_new();
  for (int round = 0; round < 3; round++) {
    unsigned char *previous = NULL;
    for (size_t n = 0; n < 70000; n = n * 3 + 1) {
      unsigned char *p = arena_alloc(a, n);
      assert_int_equal((uintptr_t)p % 16, 0);
      for (size_t i = 0; i < n; i++) assert_int_equal(p[i], 0);
      memset(p, 0xab, n);
      if (previous) assert_int_equal(previous[0], 0xab);
      previous = n ? p : previous;
    }
    arena_reset(a); /* the next round must see zeros again */
    assert_int_equal(arena_bytes(a), 0);
  }
  char *big = arena_alloc(a, 64 << 20);
  assert_int_equal(big[(64 << 20) - 1], 0);
  assert_string_equal(arena_printf(a, "%d-%s", 7, "x"), "7-x");
  assert_string_equal(arena_strndup(a, "abcdef", 3), "abc");
  arena_free(a);
}

/* Rounded up to the alignment they would be 0. */
static void arena_refuses_what_wraps(void **state) {
  (void)state;
  Arena *a = arena_new();
  assert_null(arena_try_alloc(a, SIZE_MAX));
  assert_null(arena_try_alloc(a, SIZE_MAX - 14));
  assert_null(arena_try_alloc(a, SIZE_MAX / 2 + 1));
  assert_int_equal(arena_bytes(a), 0);
  arena_free(a);
}

static void interned_strings_are_one_pointer(void **state) {
  (void)state;
  StrTable *t = str_table_new();
  char name[16];
  const char *first[2000];
  for (int i = 0; i < 2000; i++) {
    snprintf(name, sizeof name, "v%d", i);
    first[i] = str_intern(t, name);
  }
  for (int i = 0; i < 2000; i++) {
    snprintf(name, sizeof name, "v%d", i);
    assert_ptr_equal(str_intern(t, name), first[i]);
    assert_string_equal(first[i], name);
  }
  assert_ptr_equal(str_intern_n(t, "v12345", 3), first[12]);
  assert_string_equal(str_intern(t, ""), "");
  str_table_free(t);
}

/* ---- strings ---- */

static void quoting_escapes(void **state) {
  (void)state;
  StrBuf b = {0};
  strbuf_quote(&b, "a\"b\\c\n\t\x01é");
  assert_string_equal(b.data, "\"a\\\"b\\\\c\\n\\t\\x01é\"");
  strbuf_free(&b);
}

static void floats_print_shortest_and_exact(void **state) {
  (void)state;
  static const struct {
    float f;
    const char *text;
  } cases[] = {{1, "1.0"},        {0.1f, "0.1"},       {-0.0f, "-0.0"}, {1e10f, "1e+10"},
               {INFINITY, "inf"}, {-INFINITY, "-inf"}, {NAN, "nan"},    {1024, "1024.0"}};
  for (size_t i = 0; i < NPU_COUNTOF(cases); i++) {
    StrBuf b = {0};
    strbuf_float(&b, cases[i].f);
    assert_string_equal(b.data, cases[i].text);
    strbuf_free(&b);
  }
  Rng r;
  rng_seed(&r, 1);
  for (int i = 0; i < 20000; i++) {
    uint32_t bits = (uint32_t)rng_u64(&r);
    uint64_t wide = rng_u64(&r);
    float f, back;
    double d, dback;
    memcpy(&f, &bits, 4);
    memcpy(&d, &wide, 8);
    if (!isfinite(f) || !isfinite(d)) continue;
    StrBuf b = {0};
    strbuf_float(&b, f);
    back = strtof(b.data, NULL);
    assert_memory_equal(&back, &f, 4);
    assert_non_null(strpbrk(b.data, ".e"));
    b.len = 0;
    strbuf_double(&b, d);
    dback = strtod(b.data, NULL);
    assert_memory_equal(&dback, &d, 8);
    strbuf_free(&b);
  }
}

static void distance_counts_edits(void **state) {
  (void)state;
  assert_int_equal(str_distance("", "abc"), 3);
  assert_int_equal(str_distance("kitten", "sitting"), 3);
  assert_int_equal(str_distance("relu", "rleu"), 1); /* a swap is one edit */
  assert_int_equal(str_distance("same", "same"), 0);
}

static void nearest_suggests_only_what_is_near(void **state) {
  (void)state;
  static const char *const names[] = {"relu", "softmax", "conv2d", "sigmoid"};
  assert_string_equal(str_nearest("sofmax", names, 4), "softmax");
  assert_string_equal(str_nearest("con2d", names, 4), "conv2d");
  assert_null(str_nearest("transpose", names, 4));
  static const char *const words[] = {"pow", "max", "a", "axis"};
  assert_null(str_nearest("foo", words, 4));
  assert_null(str_nearest("m", words, 4));
  assert_string_equal(str_nearest("mx", words, 4), "max");
  assert_string_equal(str_nearest("aa", words, 4), "a");
  assert_string_equal(str_nearest("axes", words, 4), "axis");
  assert_true(str_ends_with("a.npz", ".npz"));
  assert_false(str_ends_with("npz", ".npz"));
}

/* ---- diagnostics ---- */

static void diagnostics_show_line_and_caret(void **state) {
  (void)state;
  DiagEngine *d = diag_new();
  diag_add_source(d, "m.mdl", "first\n\tx = a @ b\n", 17);
  SrcLoc loc = {.file = "m.mdl", .line = 2, .col = 6, .end_line = 2, .end_col = 11};
  diag_error(d, loc, "E-shape", "got %s", "f32[2]");
  diag_note(d, SRC_LOC_NONE, "look here");
  diag_warning(d, (SrcLoc){.file = "m.mdl", .line = 99, .col = 1}, "W-x", "beyond the end");
  assert_int_equal(diag_errors(d), 1);
  assert_int_equal(diag_count(d), 3);
  StrBuf b = {0};
  for (size_t i = 0; i < 3; i++) diag_format(d, diag_get(d, i), false, &b);
  assert_string_equal(b.data, "m.mdl:2:6: error: got f32[2] [E-shape]\n"
                              "  \tx = a @ b\n"
                              "  \t    ^~~~~\n"
                              "note: look here\n"
                              "m.mdl:99:1: warning: beyond the end [W-x]\n");
  strbuf_free(&b);
  diag_free(d);
}

/* A long line is shown near the caret; what could act on a terminal is not passed on. */
static void diagnostics_of_hostile_text(void **state) {
  (void)state;
  char line[1001];
  memset(line, 'a', 1000);
  line[500] = 'B';
  line[1000] = 0;
  DiagEngine *d = diag_new();
  diag_add_source(d, "m.mdl", line, 1000);
  SrcLoc middle = {.file = "m.mdl", .line = 1, .col = 501, .end_line = 1, .end_col = 503};
  diag_error(d, middle, "E-x", "no\n\x1b[31m");
  diag_error(d, (SrcLoc){.file = "m.mdl", .line = 1, .col = 1}, "E-x", "%s%s", line, line);
  StrBuf b = {0};
  diag_format(d, diag_get(d, 0), false, &b);
  line[560] = 0;
  char want[1000];
  snprintf(want, sizeof want, "m.mdl:1:501: error: no??[31m [E-x]\n  ...%.60sB%.99s...\n%65s^~\n",
           line, line, "");
  assert_string_equal(b.data, want);
  b.len = 0;
  diag_format(d, diag_get(d, 1), false, &b);
  assert_non_null(strstr(b.data, "a... [E-x]\n  aaa"));
  assert_non_null(strstr(b.data, "a...\n  ^\n"));
  strbuf_free(&b);
  diag_free(d);
}

static void count_sink(void *user, const DiagEngine *d, const Diag *diag) {
  (void)d;
  *(int *)user += diag->severity == DIAG_ERROR;
}

static void sink_sees_each_diagnostic(void **state) {
  (void)state;
  DiagEngine *d = diag_new();
  int n = 0;
  diag_set_sink(d, count_sink, &n);
  diag_error(d, SRC_LOC_NONE, "E-a", "a");
  diag_note(d, SRC_LOC_NONE, "b");
  assert_int_equal(n, 1);
  diag_free(d);
}

/* ---- files ---- */

static char *work_dir(void) {
  char *dir = strdup("/tmp/npucc-test-XXXXXX");
  assert_non_null(mkdtemp(dir));
  return dir;
}

static size_t files_in(const char *dir) {
  char command[256];
  snprintf(command, sizeof command, "ls -A %s | wc -l", dir);
  FILE *p = popen(command, "r");
  size_t n = 0;
  assert_int_equal(fscanf(p, "%zu", &n), 1);
  pclose(p);
  return n;
}

static void atomic_write_replaces_or_leaves_alone(void **state) {
  (void)state;
  char *dir = work_dir(), path[128], link[128];
  const char *why = NULL;
  FileMap m;
  snprintf(path, sizeof path, "%s/out", dir);
  snprintf(link, sizeof link, "%s/link", dir);
  assert_true(file_write_atomic(path, "one", 3, &why));
  AtomicFile *f = atomic_file_begin(path, &why);
  fputs("half", atomic_file_stream(f));
  fflush(atomic_file_stream(f));
  int fd = open(dir, O_TMPFILE | O_WRONLY, 0600);
  assert_true(fd < 0 || files_in(dir) == 1); /* killed now, nothing would be left behind */
  close(fd);
  atomic_file_abort(f);
  assert_true(file_map(path, &m, &why));
  assert_int_equal(m.size, 3);
  assert_memory_equal(m.data, "one", 3);
  file_unmap(&m);
  assert_int_equal(symlink("out", link), 0); /* writing through a link keeps the link */
  assert_true(file_write_atomic(link, "two!", 4, &why));
  assert_true(file_map(path, &m, &why));
  assert_int_equal(m.size, 4);
  file_unmap(&m);
  assert_int_equal(files_in(dir), 2); /* no temporaries are left */
  assert_true(file_write_atomic(path, "", 0, &why));
  assert_true(file_map(path, &m, &why));
  assert_int_equal(m.size, 0);
  assert_non_null(m.data);
  file_unmap(&m);
  snprintf(link, sizeof link, "rm -r %s", dir);
  assert_int_equal(system(link), 0);
  free(dir);
}

static void file_errors_say_why(void **state) {
  (void)state;
  const char *why = NULL;
  FileMap m;
  assert_false(file_map("/nonexistent/x", &m, &why));
  assert_string_equal(why, "No such file or directory");
  assert_false(file_map("/tmp", &m, &why));
  assert_string_equal(why, "Is a directory");
  assert_false(file_map("/dev/zero", &m, &why));
  assert_string_equal(why, "It gives data without end");
  assert_false(file_write_atomic("/nonexistent/x", "a", 1, &why));
  assert_string_equal(why, "No such file or directory");
  assert_false(file_write_atomic("/tmp", "a", 1, &why));
  assert_false(file_write_atomic("/dev/full", "a", 1, &why)); /* the disk is full */
  assert_string_equal(why, "No space left on device");
  assert_true(file_write_atomic("/dev/null", "a", 1, &why));
  struct stat st;
  assert_int_equal(stat("/dev/null", &st), 0);
  assert_true(S_ISCHR(st.st_mode)); /* was not renamed over */
}

static void paths_join_beside(void **state) {
  (void)state;
  Arena *a = arena_new();
  assert_string_equal(path_beside(a, "models/x.mdl", "w.npz"), "models/w.npz");
  assert_string_equal(path_beside(a, "x.mdl", "w.npz"), "w.npz");
  assert_string_equal(path_beside(a, "models/x.mdl", "/w.npz"), "/w.npz");
  arena_free(a);
}

/* ---- numbers ---- */

static void bf16_rounds_to_nearest_even(void **state) {
  (void)state;
  assert_int_equal(f32_to_bf16(1.0f), 0x3f80);
  assert_int_equal(f32_to_bf16(0x1.01p0f), 0x3f80);       /* tie, even below */
  assert_int_equal(f32_to_bf16(0x1.03p0f), 0x3f82);       /* tie, even above */
  assert_int_equal(f32_to_bf16(0x1.010002p0f), 0x3f81);   /* just over the tie */
  assert_int_equal(f32_to_bf16(0x1.fffffep127f), 0x7f80); /* overflows to infinity */
  assert_int_equal(f32_to_bf16(-0.0f), 0x8000);
  assert_true(isnan(bf16_to_f32(f32_to_bf16(NAN))));
  for (uint32_t h = 0; h < 0x10000; h++)
    if (!isnan(bf16_to_f32((uint16_t)h)))
      assert_int_equal(f32_to_bf16(bf16_to_f32((uint16_t)h)), h);
}

static void f16_matches_the_compiler(void **state) {
  (void)state;
#ifdef __FLT16_MAX__
  __extension__ typedef _Float16 Half;
  for (uint32_t h = 0; h < 0x10000; h++) {
    uint16_t bits = (uint16_t)h, back;
    Half f;
    memcpy(&f, &bits, 2);
    float got = f16_to_f32(bits), want = (float)f;
    assert_int_equal(isnan(got), isnan(want));
    if (isnan(want)) continue;
    assert_memory_equal(&got, &want, 4);
    dtype_set(DT_F16, &back, 0, (double)want);
    assert_int_equal(back, bits);
    /* between this and the next one */
    double between = (double)want * (1 + 0x1p-11 + 0x1p-30);
    Half rounded = (Half)between;
    dtype_set(DT_F16, &back, 0, between);
    assert_memory_equal(&back, &rounded, 2);
  }
#else
  assert_float_equal(f16_to_f32(0x3555), 0x1.554p-2f, 0);
  assert_float_equal(f16_to_f32(0x0001), 0x1p-24f, 0);
#endif
}

static void rounding_is_half_to_even(void **state) {
  (void)state;
  static const float in[] = {0.5f, 1.5f, 2.5f, -0.5f, -1.5f, 0.49999997f, 8388607.5f, 3e9f};
  static const float out[] = {0, 2, 2, -0.0f, -2, 0, 8388608, 3e9f};
  for (size_t i = 0; i < NPU_COUNTOF(in); i++) {
    float r = f32_rne(in[i]);
    assert_memory_equal(&r, &out[i], 4);
  }
  assert_int_equal(f32_to_s32_sat(3e9f), INT32_MAX);
  assert_int_equal(f32_to_s32_sat(-3e9f), INT32_MIN);
  assert_int_equal(f32_to_s32_sat(NAN), 0);
  assert_int_equal(f32_to_s32_sat(-2147483648.0f), INT32_MIN);
  assert_int_equal(f32_to_s32_sat(-2.5f), -2);
}

static void integers_parse_whole_or_not(void **state) {
  (void)state;
  int64_t i;
  double d;
  assert_true(parse_i64("-42", &i) && i == -42);
  assert_true(parse_i64("0x10", &i) && i == 16);
  assert_true(parse_i64("010", &i) && i == 10);
  assert_true(parse_i64("9223372036854775807", &i) && i == INT64_MAX);
  assert_false(parse_i64("9223372036854775808", &i));
  assert_false(parse_i64("12x", &i));
  assert_false(parse_i64(" 1", &i));
  assert_false(parse_i64("", &i));
  assert_true(parse_f64("1e-320", &d) && d > 0);
  assert_true(parse_f64("-inf", &d) && isinf(d));
  assert_false(parse_f64("1e999", &d));
  assert_false(parse_f64("1.5f", &d));
  assert_false(mul_i64(INT64_MAX, 2, &i));
  assert_true(mul_i64(1 << 20, 1 << 20, &i) && i == (int64_t)1 << 40);
  assert_false(add_i64(INT64_MAX, 1, &i));
  assert_int_equal(round_up(17, 16), 32);
}

/* First outputs of SplitMix64 from seed 0 are published; xoshiro256** from state {1, 2, 3, 4} gives
 * 11520 first. */
static void rng_is_the_published_one(void **state) {
  (void)state;
  Rng r;
  rng_seed(&r, 0);
  assert_true(r.s[0] == 0xe220a8397b1dcdaf);
  assert_true(r.s[1] == 0x6e789e6aa1b965f4);
  r = (Rng){{1, 2, 3, 4}};
  static const uint64_t want[] = {11520, 0, 1509978240, 1215971899390074240};
  for (size_t i = 0; i < 4; i++) assert_true(rng_u64(&r) == want[i]);
}

static void rng_distributions(void **state) {
  (void)state;
  Rng r;
  rng_seed(&r, 5);
  double sum = 0, squares = 0;
  enum { N = 100000 };
  for (int i = 0; i < N; i++) {
    double x = rng_normal(&r);
    sum += x;
    squares += x * x;
    double u = rng_uniform(&r);
    assert_true(u >= 0 && u < 1);
    int64_t k = rng_range(&r, -3, 4);
    assert_in_range(k + 3, 0, 7);
  }
  assert_true(fabs(sum / N) < 0.02); /* six standard errors */
  assert_true(fabs(squares / N - 1) < 0.03);
  assert_int_equal(rng_range(&r, 9, 9), 9);
  rng_range(&r, INT64_MIN, INT64_MAX); /* must not divide by zero */
}

/* Many at once are those drawn one by one, and the tails hold what they should. */
static void rng_many_normals(void **state) {
  (void)state;
  enum { N = 100003 };
  double *x = malloc(N * sizeof *x);
  Rng one, many;
  rng_seed(&one, 7);
  rng_seed(&many, 7);
  rng_normals(&many, x, N);
  int beyond[4] = {0};
  for (int i = 0; i < N; i++) {
    assert_true(x[i] == rng_normal(&one));
    for (int k = 0; k < 4; k++) beyond[k] += fabs(x[i]) > k;
  }
  assert_memory_equal(&one, &many, sizeof one);
  free(x);
  static const double part[] = {1, 0.3173105, 0.0455003, 0.0026998}; /* of a normal distribution */
  for (int k = 1; k < 4; k++) assert_true(fabs(beyond[k] - N * part[k]) < 5 * sqrt(N * part[k]));
}

/* ---- element types ---- */

static void many_convert_like_one(void **state) {
  (void)state;
  enum { N = 4096 };
  static float in[N];
  int8_t many[N];
  for (int i = 0; i < N; i++) in[i] = (float)(i - N / 2) / 8; /* -256 to 256, with all ties */
  const float odd[] = {NAN, INFINITY, -INFINITY, 1e30f, -1e30f, -0.0f, 0.49999997f, 127.49999f};
  memcpy(in, odd, sizeof odd);
  dtype_convert(DT_S8, many, DT_F32, in, N);
  for (int i = 0; i < N; i++) {
    int8_t one;
    dtype_set(DT_S8, &one, 0, (double)in[i]);
    assert_int_equal(many[i], one);
  }
}

static void conversions_saturate_and_round(void **state) {
  (void)state;
  const float in[] = {300, -300, 2.5f, 3.5f, -0.5f, NAN};
  const int8_t want[] = {127, -128, 2, 4, 0, 0};
  int8_t s8[6];
  dtype_convert(DT_S8, s8, DT_F32, in, 6);
  assert_memory_equal(s8, want, 6);
  const int64_t wide[] = {INT64_MAX, INT64_MIN, 7};
  int32_t s32[3];
  dtype_convert(DT_S32, s32, DT_S64, wide, 3);
  assert_int_equal(s32[0], INT32_MAX);
  assert_int_equal(s32[1], INT32_MIN);
  assert_int_equal(s32[2], 7);
  /* One rounding only: through f32 this would become the tie 0x1.01p0 and fall to 1. */
  double d = 0x1.0100000001p0;
  uint16_t h;
  dtype_convert(DT_BF16, &h, DT_F64, &d, 1);
  assert_int_equal(h, 0x3f81);
  d = -0x1.00fffffffp0;
  dtype_convert(DT_BF16, &h, DT_F64, &d, 1);
  assert_int_equal(h, 0xbf80);
  char unaligned[9];
  memcpy(unaligned + 1, &d, 8);
  assert_true(dtype_get(DT_F64, unaligned + 1, 0) == d);
}

static void names_round_trip(void **state) {
  (void)state;
  for (int t = 0; t < DT_COUNT; t++) {
    DType back;
    assert_true(dtype_parse(dtype_name((DType)t), &back));
    assert_int_equal(back, t);
  }
  DType t;
  assert_false(dtype_parse("float32", &t));
  assert_int_equal(dtype_size(DT_BF16), 2);
  assert_true(dtype_is_float(DT_BF16));
  assert_false(dtype_is_float(DT_S32));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(arena_blocks_are_zero_aligned_and_apart),
      cmocka_unit_test(arena_refuses_what_wraps),
      cmocka_unit_test(interned_strings_are_one_pointer),
      cmocka_unit_test(quoting_escapes),
      cmocka_unit_test(floats_print_shortest_and_exact),
      cmocka_unit_test(distance_counts_edits),
      cmocka_unit_test(nearest_suggests_only_what_is_near),
      cmocka_unit_test(diagnostics_show_line_and_caret),
      cmocka_unit_test(diagnostics_of_hostile_text),
      cmocka_unit_test(sink_sees_each_diagnostic),
      cmocka_unit_test(atomic_write_replaces_or_leaves_alone),
      cmocka_unit_test(file_errors_say_why),
      cmocka_unit_test(paths_join_beside),
      cmocka_unit_test(bf16_rounds_to_nearest_even),
      cmocka_unit_test(f16_matches_the_compiler),
      cmocka_unit_test(rounding_is_half_to_even),
      cmocka_unit_test(integers_parse_whole_or_not),
      cmocka_unit_test(rng_is_the_published_one),
      cmocka_unit_test(rng_distributions),
      cmocka_unit_test(rng_many_normals),
      cmocka_unit_test(many_convert_like_one),
      cmocka_unit_test(conversions_saturate_and_round),
      cmocka_unit_test(names_round_trip),
  };
  return cmocka_run_group_tests_name("support", tests, NULL, NULL);
}
