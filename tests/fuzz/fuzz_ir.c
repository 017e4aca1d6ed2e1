/* IR text: never crashes; what is accepted prints to text that is accepted and prints the same,
 * valid or not; the verifier refuses nothing without a message. */
#include "backend/npu/npu.h"
#include "ir/ir.h"

#include <stdlib.h>
#include <string.h>

/* What the verifier lets through at program level becomes an image or a message. */
static void emit(const IrModule *m, DiagEngine *diag) {
  for (int i = 0; i < m->nfuncs; i++) {
    IsaImage img;
    if (m->funcs[i]->level != IR_PROGRAM) continue;
    unsigned errors = diag_errors(diag);
    if (npu_emit(m->funcs[i], machine_default(), &img, diag))
      isa_image_free(&img);
    else if (diag_errors(diag) == errors)
      abort(); /* refused without a word */
  }
}

/* Parses text and prints it, with places; false when it is refused. */
static bool reprint(const char *text, size_t len, StrBuf *out, bool *valid) {
  DiagEngine *diag = diag_new();
  IrModule *m = ir_parse(text, len, "fuzz.ir", diag);
  if (!m && diag_errors(diag) == 0) abort(); /* refused without a word */
  if (m) {
    StrBuf other = {0};
    ir_print(m, out, true);
    *valid = ir_verify(m);
    if (*valid != (diag_errors(diag) == 0)) abort();
    if (*valid) emit(m, diag);
    ir_print_dot(m, &other);
    strbuf_free(&other);
    for (int i = 0; i < m->nfuncs; i++) ir_func_clone(m->funcs[i], "copy", NULL, NULL), m->nfuncs--;
    ir_module_free(m);
  }
  diag_free(diag);
  return m != NULL;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  StrBuf once = {0}, twice = {0};
  bool valid, again;
  if (memmem(data, size, "file", 4)) return 0; /* would open whatever files the fuzzer thinks of */
  if (reprint((const char *)data, size, &once, &valid)) {
    if (!reprint(once.len ? once.data : "", once.len, &twice, &again)) abort();
    if (valid != again) abort();
    if (once.len != twice.len || (once.len && memcmp(once.data, twice.data, once.len))) abort();
  }
  strbuf_free(&once);
  strbuf_free(&twice);
  return 0;
}
