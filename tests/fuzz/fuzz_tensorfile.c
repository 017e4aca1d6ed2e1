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
    /* Little of what claims much: the elements are inflated. */
    size_t width = dtype_size(t->dtype), some = n < 4096 ? n : 4096;
    const void *end = tensor_file_part(f, t, (n - some) * width, some * width, diag, SRC_LOC_NONE);
    const void *all = t->bytes < 1 << 24 ? tensor_file_data(f, t, diag, SRC_LOC_NONE) : NULL;
    if ((!end || (!all && t->bytes < 1 << 24)) && diag_errors(diag) == 0) abort();
    for (size_t k = 0; all && k < n; k++) sum += dtype_get(t->dtype, all, k);
    for (size_t k = 0; end && k < some; k++) sum += dtype_get(t->dtype, end, k);
  }
  if (!f && diag_errors(diag) == 0) abort();
  volatile double keep = sum;
  (void)keep;
  if (f) tensor_file_close(f);
  diag_free(diag);
  return 0;
}
