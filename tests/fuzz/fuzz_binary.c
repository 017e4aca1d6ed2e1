/* Containers: never crashes, whatever the bytes. The checksum is made right first, so that the
 * fuzzer reaches what lies behind it. What is accepted writes itself back. */
#include "isa/isa.h"
#include "isa/isa_internal.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = mem_alloc(size + 1);
  memcpy(copy, data, size);
  isa_image_seal(copy, size);
  DiagEngine *diag = diag_new();
  IsaImage img, again;
  StrBuf text = {0}, bytes = {0};
  if (isa_image_read_memory(copy, size, "fuzz.bin", &img, diag)) {
    isa_disassemble(&img, &text);
    if (!isa_image_serialize(&img, &bytes, diag)) abort();
    if (!isa_image_read_memory(bytes.data, bytes.len, "again.bin", &again, diag)) abort();
    isa_image_free(&again);
    isa_image_free(&img);
  } else if (diag_errors(diag) == 0) {
    abort();
  }
  strbuf_free(&text);
  strbuf_free(&bytes);
  diag_free(diag);
  mem_free(copy);
  return 0;
}
