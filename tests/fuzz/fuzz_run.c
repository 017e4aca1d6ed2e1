/* The simulator: whatever a well-formed container holds, a run ends, in success or in a diagnostic,
 * in every mode, and never touches memory outside the simulated ones (they stand between pages that
 * trap). The checksum is made right first. */
#include "isa/isa_internal.h"
#include "runtime/npurt.h"
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  uint8_t *copy = mem_alloc(size + 1);
  memcpy(copy, data, size);
  isa_image_seal(copy, size);
  for (int mode = NPURT_FAST; mode <= NPURT_CHECK; mode++) {
    DiagEngine *diag = diag_new();
    NpurtOptions o = {.mode = (NpurtMode)mode, .max_instructions = 2000};
    NpurtModel *m = npurt_load_memory(copy, size, &o, diag);
    bool ok = m && npurt_run(m, diag);
    if (ok == (diag_errors(diag) > 0)) abort();
    npurt_free(m);
    diag_free(diag);
  }
  mem_free(copy);
  return 0;
}
