/* What text tests expect, and that what expects nothing by mistake fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tests/support/textcheck.h"

/* Compares with the output "one\ntwo\ntwo\nthree\n"; why is to be in the report. */
static void check(const char *text, bool passes, const char *why) {
  TextCase c = {.path = "t", .text = text, .len = strlen(text)};
  StrBuf report = {0};
  int checks = 0;
  bool ok = textcheck_output(&c, "one\ntwo\ntwo\nthree\n", &report, &checks);
  if (ok != passes || (why && !strstr(report.data ? report.data : "", why)))
    fail_msg("%s: %s, %s", text, ok ? "passes" : "fails", report.data ? report.data : "no report");
  strbuf_free(&report);
}

static void directives_mean_what_they_say(void **state) {
  (void)state;
  check("# CHECK: one\n# CHECK-NEXT: two", true, NULL);
  check("// CHECK: two\n// CHECK-NEXT: three", false, "t:2: not on the next line: three");
  check("# CHECK-COUNT-2: two\n# CHECK-NOT: two\n# CHECK: three", true, NULL);
  check("# CHECK-COUNT-3: two", false, "not found");
  check("# CHECK: one\n# CHECK-NOT: two\n# CHECK: three", false, "must not be there");
  check("# what CHECK says, and CHECK", true, NULL);
  check("x = 1 # RUN: a,b", true, NULL);
  check("a: f32 # Note: this", true, NULL);
}

static void unknown_directives_fail(void **state) {
  (void)state;
  static const char *const unknown[] = {
      "CHECK-SAME: one",     "CHECKNEXT: one",    "CHECK-NEXT one",  "CHECK-DAG: one",
      "CHECK-: one",         "CHECK-NOT : three", "CHECK-next: one", "CHECK : one",
      "CHECKS: one",         "CHECK-COUNT: 2",    "CHECK-COUNT-: x", "CHECK-COUNT-0: x",
      "CHECK-COUNT-2x: two", "CHECK-NEXT-2: one"};
  for (size_t i = 0; i < NPU_COUNTOF(unknown); i++) {
    char text[64];
    for (int slashes = 0; slashes < 2; slashes++) {
      snprintf(text, sizeof text, "x %s %s\n", slashes ? "//" : "#", unknown[i]);
      check(text, false, "t:1: there are CHECK:, CHECK-NEXT:, CHECK-NOT: and CHECK-COUNT-n:");
    }
  }
  check("# CHEK: one\n", false, "t:1: no directive is called so: # CHEK: one");
  check("x // RNU: dce\n", false, "no directive is called so");
}

static void nots_are_counted(void **state) {
  (void)state;
  StrBuf text = {0};
  for (int i = 0; i < 33; i++) strbuf_puts(&text, "# CHECK-NOT: four\n");
  check(text.data, false, "one CHECK-NOT too many");
  strbuf_free(&text);
}

/* Of a text about which there is one note, at its line 1. */
static void expect(const char *text, bool passes, const char *why) {
  TextCase c = {.path = "t", .text = text, .len = strlen(text)};
  DiagEngine *diag = diag_new();
  StrBuf report = {0};
  int checks = 0;
  diag_note(diag, (SrcLoc){.file = "t", .line = 1}, "so it is");
  bool ok = textcheck_diagnostics(&c, diag, &report, &checks);
  if (ok != passes || (why && !strstr(report.data ? report.data : "", why)))
    fail_msg("%s: %s, %s", text, ok ? "passes" : "fails", report.data ? report.data : "no report");
  strbuf_free(&report);
  diag_free(diag);
}

static void expectations_are_spelt_right(void **state) {
  (void)state;
  expect("x", true, NULL);
  expect("# expected-note {{so it is}}", true, NULL);
  expect("# expected-note@+0 {{so it is}}", true, NULL);
  expect("# expected-note {{not so}}", false, "t:1: no such note: not so");
  static const char *const wrong[] = {
      "expected-not {{so it is}}", "expected-notes {{so it is}}", "expected-note@here {{so it is}}",
      "expected-note {{so it is}", "expected-note so it is",      "expected-Note {{so it is}}"};
  for (size_t i = 0; i < NPU_COUNTOF(wrong); i++)
    expect(wrong[i], false, "t:1: an expectation is written expected-error, -warning or -note");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(directives_mean_what_they_say),
      cmocka_unit_test(unknown_directives_fail),
      cmocka_unit_test(nots_are_counted),
      cmocka_unit_test(expectations_are_spelt_right),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
