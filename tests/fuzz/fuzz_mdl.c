/* Fuzzes the reader of model files: any text gives a valid module or at least one error, and never
 * more. */
#include <stdlib.h>

#include "frontend/frontend.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  DiagEngine *diag = diag_new();
  IrModule *m = mdl_read_text((const char *)data, size, "fuzz.mdl", NULL, diag);
  if (!m == (diag_errors(diag) == 0)) abort(); /* an error and no module, or a module and none */
  if (m && !ir_verify(m)) abort();
  StrBuf text = {0};
  for (size_t i = 0; i < diag_count(diag); i++) diag_format(diag, diag_get(diag, i), false, &text);
  strbuf_free(&text);
  ir_module_free(m);
  diag_free(diag);
  return 0;
}
