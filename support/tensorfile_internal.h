/* What the readers of the three formats share; does not leave support/. */
#ifndef NPU_TENSORFILE_INTERNAL_H
#define NPU_TENSORFILE_INTERNAL_H
#include "support/tensorfile.h"

/* A tensor that is there but cannot be used, and why ("has element type complex64, ..."). */
typedef struct {
  const char *name, *why;
} SkippedTensor;

struct TensorFile {
  Arena *arena;
  DiagEngine *diag;
  SrcLoc loc;
  const char *path;
  FileMap map; /* of an opened path */
  const uint8_t *data;
  size_t size;
  TensorEntry *entries;
  size_t nentries, cap;
  SkippedTensor *skipped;
  size_t nskipped;
  struct NameSet *names; /* of all tensors, used or skipped */
  void **owned;          /* inflated and transposed tensors */
  size_t nowned;
  size_t inflated, stored; /* bytes of members, against archives that claim too much */
};

/* Reports E-tensor-file for the file (what starts after "PATH: "); always false. */
bool tensor_file_error(TensorFile *f, const char *fmt, ...) NPU_PRINTF(2, 3);
/* Adds an entry; the name is copied. False, reported, on a name seen before. */
bool tensor_file_add(TensorFile *f, const TensorEntry *e);
bool tensor_file_skip(TensorFile *f, const char *name, const char *fmt, ...) NPU_PRINTF(3, 4);
/* A heap block that lives as long as the file. */
void *tensor_file_own(TensorFile *f, size_t bytes);
/* Bytes of a shape; false on overflow. */
bool tensor_shape_bytes(const int64_t *shape, int rank, DType dtype, size_t *out);

/* Each reads the whole of its format into entries; false after a report. */
bool safetensors_read(TensorFile *f);
bool npz_read(TensorFile *f);
/* One .npy image. What this library cannot represent is skipped, with its reason. */
bool npy_read(TensorFile *f, const char *name, const uint8_t *data, size_t size);
bool npy_is(const uint8_t *data, size_t size);
#endif
