/* Machine files: the built-in ones, round trip, and errors with their line. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "isa/isa.h"

#ifndef MACHINES_DIR
#error "MACHINES_DIR is the folder isa/machines"
#endif

/* The constants the build made of each file are what the reader makes of it. */
static void test_builtin(void **state) {
  (void)state;
  DiagEngine *d = diag_new();
  assert_int_equal(machine_builtin_count(), 8);
  for (size_t i = 0; i < machine_builtin_count(); i++) {
    MachineDesc a, b;
    char path[512];
    snprintf(path, sizeof path, "%s/%s.txt", MACHINES_DIR, machine_builtin_name(i));
    assert_true(machine_load(machine_builtin_name(i), &a, d));
    assert_true(machine_load(path, &b, d));
    assert_null(machine_difference(&a, &b));
    assert_string_equal(a.name, machine_builtin_name(i));
  }
  assert_int_equal(diag_count(d), 0);
  diag_free(d);
  const MachineDesc *e = machine_default();
  assert_string_equal(e->name, "edge");
  assert_int_equal(e->mxu_rows, 64);
  assert_int_equal(e->spm_bytes, 2 << 20);
  assert_true(machine_dram_bytes_per_cycle(e) == 32);
}

/* Of machines after published ones, what is published: operations a second of s8 and bf16 in
 * tera, two to a multiply-accumulate, and bytes of scratchpad and DRAM. */
static void test_published(void **state) {
  (void)state;
  const struct {
    const char *name;
    double s8, bf16, spm, dram;
  } known[] = {{"tpuv4i", 138, 138, 128 * 1048576.0, 8589934592.0},
               {"ethos_u85", 4, 2, 512 * 1024.0, 2147483648.0},
               {"gemmini", .512, .256, 256 * 1024.0, 2147483648.0},
               {"h100", 1979, 989, 132 * 228 * 1024.0, 85899345920.0},
               {"blackhole", 774, 387, 210 * 1048576.0, 34359738368.0}};
  DiagEngine *d = diag_new();
  for (size_t i = 0; i < NPU_COUNTOF(known); i++) {
    MachineDesc m;
    assert_true(machine_load(known[i].name, &m, d));
    double tera = 2e-3 * (double)m.mxu_rows * (double)m.mxu_cols * m.clock_ghz;
    assert_true(fabs(tera / known[i].s8 - 1) < .03);
    assert_true(fabs(tera / (double)m.mxu_bf16_slowdown / known[i].bf16 - 1) < .03);
    assert_true((double)m.spm_bytes == known[i].spm && (double)m.dram_bytes == known[i].dram);
  }
  diag_free(d);
}

static void test_print(void **state) {
  (void)state;
  MachineDesc m = *machine_default(), back;
  m.clock_ghz = 1.0 / 3;
  m.spm_bytes = 4294967296;
  StrBuf b = {0};
  machine_print(&m, &b);
  DiagEngine *d = diag_new();
  assert_true(machine_parse(b.data, b.len, "m.txt", &back, d));
  assert_null(machine_difference(&m, &back));
  back.vpu_sfu++;
  assert_string_equal(machine_difference(&m, &back), "vpu_sfu");
  strcpy(back.name, "other");
  assert_string_equal(machine_difference(&m, &back), "name");
  strbuf_free(&b);
  diag_free(d);
}

/* The edge file with one line replaced (NULL: removed); expects an error at the line (0: none). */
static void expect_error(const char *key, const char *line, uint32_t at, const char *part) {
  StrBuf good = {0}, text = {0};
  machine_print(machine_default(), &good);
  for (char *s = good.data; *s;) {
    size_t n = strcspn(s, "\n") + 1;
    size_t k = strlen(key);
    if (strncmp(s, key, k) == 0 && s[k] == ' ')
      strbuf_puts(&text, line);
    else
      strbuf_write(&text, s, n);
    s += n;
  }
  DiagEngine *d = diag_new();
  MachineDesc m;
  assert_false(machine_parse(text.data, text.len, "m.txt", &m, d));
  const Diag *g = diag_get(d, 0);
  if (g->loc.line != at || !strstr(g->message, part))
    fail_msg("line %u '%s', expected %u '%s'", g->loc.line, g->message, at, part);
  diag_free(d);
  strbuf_free(&good);
  strbuf_free(&text);
}

static void test_errors(void **state) {
  (void)state;
  expect_error("cores", "", 0, "'cores' is missing: a machine states every");
  expect_error("name", "", 0, "no name");
  expect_error("cores", "cores = 0\n", 3, "out of range: allowed are 1 to 1024");
  expect_error("cores", "cores = 1.5\n", 3, "not an integer");
  expect_error("cores", "cores = many\n", 3, "not an integer");
  expect_error("cores", "cores = 1\ncores = 2\n", 4, "given twice");
  expect_error("cores", "coers = 1\n", 3, "did you mean 'cores'");
  expect_error("clock_ghz", "clock_ghz = nan\n", 4, "not a finite number");
  expect_error("clock_ghz", "# note\n\nclock_ghz = 1e9\n", 6, "out of range");
  expect_error("cores", "cores\n", 3, "expected 'key = value'");
  expect_error("name", "name = two words\n", 1, "without spaces");
  DiagEngine *d = diag_new();
  MachineDesc m;
  assert_false(machine_load("egde", &m, d));
  assert_non_null(strstr(diag_get(d, 0)->message, "edge, cloud, pod8, tpuv4i, "));
  diag_free(d);
}

static void test_changes(void **state) {
  (void)state;
  DiagEngine *d = diag_new();
  MachineDesc m;
  assert_true(machine_load("edge,queue_depth=3,dram_gbs=12.5", &m, d));
  assert_string_equal(m.name, "edge+");
  assert_int_equal(m.queue_depth, 3);
  assert_true(m.dram_gbs == 12.5);
  assert_int_equal(m.mxu_rows, 64);
  assert_string_equal(machine_difference(machine_default(), &m), "name");
  assert_null(machine_size_difference(machine_default(), &m));
  assert_true(machine_load("edge,spm_bytes=1048576", &m, d));
  assert_string_equal(machine_size_difference(machine_default(), &m), "spm_bytes");
  assert_int_equal(diag_count(d), 0);
  const struct {
    const char *spec, *part;
  } bad[] = {{"edge,queue_depht=3", "did you mean 'queue_depth'"},
             {"edge,queue_depth=0", "out of range"},
             {"edge,queue_depth=", "not an integer"},
             {"edge,fast", "'fast' changes nothing"},
             {"edge,", "'' changes nothing"},
             {"edge,dram_banks=12", "not a power of two"},
             {"edge,dram_row_bytes=2000", "not a power of two"},
             {"edge,dram_row_bytes=128", "less than dram_interleave"},
             {"edge,spm_bytes_per_cycle=4", "there is no bank"},
             {"egde,queue_depth=3", "edge, cloud, pod8, tpuv4i, "}};
  for (size_t i = 0; i < NPU_COUNTOF(bad); i++) {
    assert_false(machine_load(bad[i].spec, &m, d));
    if (diag_count(d) != i + 1 || !strstr(diag_get(d, i)->message, bad[i].part))
      fail_msg("%s: %s", bad[i].spec, diag_get(d, i)->message);
  }
  diag_free(d);
}

/* A machine from before fields existed: one message names them. */
static void test_missing(void **state) {
  (void)state;
  DiagEngine *d = diag_new();
  MachineDesc m;
  const char *old = "name = old\nchips = 1\n";
  assert_false(machine_parse(old, strlen(old), "m.txt", &m, d));
  assert_int_equal(diag_count(d), 1);
  const char *message = diag_get(d, 0)->message;
  assert_non_null(strstr(message, "'cores', 'clock_ghz', "));
  assert_non_null(strstr(message, "'pj_static_cycle'"));
  assert_null(strstr(message, "'chips'"));
  diag_free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_builtin), cmocka_unit_test(test_published),
      cmocka_unit_test(test_print),   cmocka_unit_test(test_errors),
      cmocka_unit_test(test_changes), cmocka_unit_test(test_missing)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
