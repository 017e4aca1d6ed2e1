/* Tensor files: .safetensors, .npy and .npz, read through a memory mapping, written atomically.
 * Opening reads the headers alone; a tensor's elements are read, and a compressed member of an .npz
 * inflated, when they are asked for. Readers trust nothing: every offset, size and shape is
 * checked.
 */
#ifndef NPU_TENSORFILE_H
#define NPU_TENSORFILE_H
#include "support/dtype.h"
#include "support/support.h"

NPU_C_BEGIN

#define TENSOR_MAX_RANK 8

typedef struct {
  const char *name; /* "" for the one array of an .npy file */
  DType dtype;
  int rank;
  int64_t shape[TENSOR_MAX_RANK];
  const void *data; /* to write: row-major, little endian. Of a file's entries NULL: see
                       tensor_file_data */
  size_t bytes;
} TensorEntry;

typedef struct TensorFile TensorFile;
/* Opens by content (magic), not by name. Returns NULL after reporting to diag at loc
 * (codes E-file, E-tensor-file). */
TensorFile *tensor_file_open(const char *path, DiagEngine *diag, SrcLoc loc);
/* data is not copied and must outlive the file. */
TensorFile *tensor_file_open_memory(const void *data, size_t size, const char *label,
                                    DiagEngine *diag);
void tensor_file_close(TensorFile *f);
const char *tensor_file_path(const TensorFile *f);
size_t tensor_file_count(const TensorFile *f);
const TensorEntry *tensor_file_at(const TensorFile *f, size_t i);
const TensorEntry *tensor_file_find(const TensorFile *f, const char *name); /* NULL when absent */
/* The elements of one of f's entries, or of them `bytes` from byte `first` on: row-major, little
 * endian, possibly unaligned; they live as long as the file. Mapped ones are used in place; of a
 * compressed member only what is asked for is kept. NULL after reporting to diag at loc
 * (E-tensor-file: damaged; E-memory). */
const void *tensor_file_data(TensorFile *f, const TensorEntry *e, DiagEngine *diag, SrcLoc loc);
const void *tensor_file_part(TensorFile *f, const TensorEntry *e, size_t first, size_t bytes,
                             DiagEngine *diag, SrcLoc loc);
/* Tensors of types this library does not know are left out of the list. For such a name, what is
 * the matter with it
 * ("has element type 'C64', ..."), to follow the tensor's name in a message; NULL for all other
 * names. */
const char *tensor_file_why_unusable(const TensorFile *f, const char *name);

/* Writes by the ending of path: .npy (exactly one tensor), .npz, .safetensors. bf16 has no numpy
 * type and is an error for .npy/.npz that says to use .safetensors. */
bool tensor_file_write(const char *path, const TensorEntry *tensors, size_t n, DiagEngine *diag);
NPU_C_END
#endif
