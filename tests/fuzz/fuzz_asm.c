/* Assembly text: never crashes; what it accepts disassembles to text that gives the same bytes. */
#include "isa/isa.h"
#include "isa/isa_internal.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  DiagEngine *diag = diag_new();
  IsaImage img, again;
  StrBuf text = {0}, a = {0}, b = {0};
  if (isa_assemble((const char *)data, size, "fuzz.s", &img, diag)) {
    isa_disassemble(&img, &text);
    if (!isa_image_serialize(&img, &a, diag)) abort();
    if (!isa_assemble(text.data, text.len, "dis.s", &again, diag)) abort();
    if (!isa_image_serialize(&again, &b, diag)) abort();
    if (a.len != b.len || memcmp(a.data, b.data, a.len) != 0) abort();
    isa_image_free(&again);
    isa_image_free(&img);
  } else if (diag_errors(diag) == 0) {
    abort(); /* refused without a word */
  }
  strbuf_free(&text);
  strbuf_free(&a);
  strbuf_free(&b);
  diag_free(diag);
  return 0;
}
