/* Tensor files (.safetensors, .npy, .npz): never crashes, whatever the bytes; what is accepted can
 * be read to the last element; what is refused has a diagnostic. */
#include "support/tensorfile.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  DiagEngine *diag = diag_new();
  TensorFile *f = tensor_file_open_memory(data, size, "fuzz", diag);
  double sum = 0;
  for (size_t i = 0; f && i < tensor_file_count(f); i++) {
    const TensorEntry *t = tensor_file_at(f, i);
    size_t n = t->bytes / dtype_size(t->dtype);
    if (tensor_file_find(f, t->name) == NULL) abort();
    for (size_t k = 0; k < n && k < 4096; k++) sum += dtype_get(t->dtype, t->data, k);
    if (n) sum += dtype_get(t->dtype, t->data, n - 1);
  }
  if (!f && diag_errors(diag) == 0) abort();
  volatile double keep = sum;
  (void)keep;
  if (f) tensor_file_close(f);
  diag_free(diag);
  return 0;
}
