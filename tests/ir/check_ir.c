/* Runs the cases of an .ir file, separated by lines "// -----": parses, prints and parses back (the
 * two texts must be equal), verifies. A comment  expected-error {{text}}  beside a line asks for an
 * error at that line containing the text; all errors must be asked for, and all asked for must
 * come. */
#include "ir/ir.h"

#include <string.h>

typedef struct {
  uint32_t line;
  const char *text;
  size_t len;
  bool met;
} Expected;

static size_t find_expected(const char *text, size_t len, Expected *out, size_t max) {
  static const char key[] = "expected-error {{";
  size_t n = 0;
  uint32_t line = 1;
  for (size_t i = 0; i < len; i++) {
    if (text[i] == '\n') line++;
    if (len - i < sizeof key || memcmp(text + i, key, sizeof key - 1) || n == max) continue;
    const char *start = text + i + sizeof key - 1,
               *end = memmem(start, len - i - sizeof key + 1, "}}", 2);
    if (end) out[n++] = (Expected){line, start, (size_t)(end - start), false};
  }
  return n;
}

static bool meets(Expected *list, size_t n, const Diag *d) {
  for (size_t i = 0; i < n; i++) {
    StrBuf whole = {0}; /* a case may ask for the code as well */
    strbuf_printf(&whole, "%s [%s]", d->message, d->code);
    bool same = !list[i].met && list[i].line == d->loc.line &&
                memmem(whole.data, whole.len, list[i].text, list[i].len);
    strbuf_free(&whole);
    if (same) return list[i].met = true;
  }
  return false;
}

/* print(parse(print(m))) = print(m), with and without places. */
static bool round_trips(const IrModule *m, const char *label, bool locations) {
  StrBuf once = {0}, twice = {0};
  DiagEngine *diag = diag_new();
  ir_print(m, &once, locations);
  IrModule *again = ir_parse(once.len ? once.data : "", once.len, label, diag);
  if (again) ir_print(again, &twice, locations);
  bool ok = again && once.len == twice.len && !memcmp(once.data, twice.data, once.len);
  if (!ok) {
    printf("%s: printing is not lossless:\n%s--- became:\n%s\n", label, once.data,
           twice.len ? twice.data : "");
    diag_print_all(diag, stdout, false);
  }
  if (again) ir_module_free(again);
  diag_free(diag);
  strbuf_free(&once);
  strbuf_free(&twice);
  return ok;
}

/* The case text[from, to); lines before it are kept as empty ones, so that numbers are those of the
 * file. */
static bool run_case(const char *label, const char *text, size_t from, size_t to) {
  StrBuf b = {0};
  for (size_t i = 0; i < from; i++)
    if (text[i] == '\n') strbuf_putc(&b, '\n');
  strbuf_write(&b, text + from, to - from);
  Expected expected[256];
  size_t n = find_expected(b.data, b.len, expected, NPU_COUNTOF(expected));
  DiagEngine *diag = diag_new();
  IrModule *m = ir_parse(b.data, b.len, label, diag);
  bool ok = true;
  if (m) {
    ok = round_trips(m, label, false) && round_trips(m, label, true);
    bool valid = ir_verify(m);
    if (valid != (diag_errors(diag) == 0))
      ok = printf("%s: verdict and errors disagree\n", label) < 0;
    ir_module_free(m);
  }
  for (size_t i = 0; i < diag_count(diag); i++) {
    const Diag *d = diag_get(diag, i);
    if (d->severity == DIAG_NOTE || meets(expected, n, d)) continue;
    StrBuf shown = {0};
    diag_format(diag, d, false, &shown);
    printf("not expected: %s", shown.data);
    strbuf_free(&shown);
    ok = false;
  }
  for (size_t i = 0; i < n; i++)
    if (!expected[i].met)
      ok = printf("%s:%u: expected and did not come: %.*s\n", label, expected[i].line,
                  (int)expected[i].len, expected[i].text) < 0;
  diag_free(diag);
  strbuf_free(&b);
  return ok;
}

int main(int argc, char **argv) {
  FileMap f;
  const char *why;
  if (argc != 2 || !file_map(argv[1], &f, &why)) return printf("usage: check_ir FILE\n"), 2;
  const char *text = (const char *)f.data;
  bool ok = true;
  int cases = 0;
  for (size_t from = 0; from < f.size;) {
    const char *cut = memmem(text + from, f.size - from, "\n// -----\n", 10);
    size_t to = cut ? (size_t)(cut - text) + 1 : f.size;
    ok &= run_case(argv[1], text, from, to);
    cases++;
    from = cut ? to + 9 : f.size;
  }
  printf("%d cases: %s\n", cases, ok ? "passed" : "FAILED");
  file_unmap(&f);
  return !ok;
}
