/* What the readers of the three formats share; does not leave support/. */
#ifndef NPU_TENSORFILE_INTERNAL_H
#define NPU_TENSORFILE_INTERNAL_H
#include "support/tensorfile.h"

/* A tensor that is there but cannot be used, and why ("has element type complex64, ..."). */
typedef struct {
  const char *name, *why;
} SkippedTensor;

/* Where the elements of an entry are. */
typedef struct {
  const uint8_t *member; /* what holds them: the file, or a stored member of the archive; NULL when
                            it is compressed */
  size_t skip;           /* bytes of it before the elements */
  bool fortran;          /* column-major */
  bool unchecked;        /* a stored member whose checksum has not been compared */
  uint32_t crc;
  uint64_t directory_at, number; /* of the compressed member in the archive's directory */
  const void *whole;             /* the elements, once all were asked for */
} TensorSource;

struct TensorFile {
  Arena *arena;
  DiagEngine *diag; /* of the call that is running, and its place */
  SrcLoc loc;
  const char *path;
  FileMap map; /* of an opened path */
  const uint8_t *data;
  size_t size;
  TensorEntry *entries;
  TensorSource *sources; /* of the entries */
  size_t nentries, cap;
  SkippedTensor *skipped;
  size_t nskipped;
  struct NameSet *names; /* of all tensors, used or skipped */
  void **owned;          /* inflated and transposed tensors */
  size_t nowned;
  size_t stored; /* bytes of members, against archives that claim too much */
};

/* Reports E-tensor-file for the file (what starts after "PATH: "); always false. */
bool tensor_file_error(TensorFile *f, const char *fmt, ...) NPU_PRINTF(2, 3);
/* Adds an entry; the name is copied. False, reported, on a name seen before. */
bool tensor_file_add(TensorFile *f, const TensorEntry *e, const TensorSource *s);
bool tensor_file_skip(TensorFile *f, const char *name, const char *fmt, ...) NPU_PRINTF(3, 4);
/* A heap block that lives as long as the file; NULL after a report when there is not that much
 * memory. */
void *tensor_file_own(TensorFile *f, size_t bytes);
/* Bytes of a shape; false on overflow. */
bool tensor_shape_bytes(const int64_t *shape, int rank, DType dtype, size_t *out);

/* Each reads the whole of its format into entries; false after a report. */
bool safetensors_read(TensorFile *f);
bool npz_read(TensorFile *f);
bool npy_is(const uint8_t *data, size_t size);
/* Bytes before the elements of an .npy image of `size` bytes, from its first NPY_PREFIX (or all, if
 * fewer); 0 after a report. */
enum { NPY_PREFIX = 12 };
size_t npy_header_size(TensorFile *f, const char *name, const uint8_t *start, size_t size);
/* Adds the array of an .npy image of `size` bytes that starts with header, of which s->skip bytes
 * are there. What this library cannot represent is skipped, with its reason. */
bool npy_read(TensorFile *f, const char *name, const uint8_t *header, size_t size, TensorSource *s);
/* dst (e->bytes): the elements of src, which are column-major, row-major. */
void npy_transpose(const TensorEntry *e, const uint8_t *src, uint8_t *dst);
/* Inflates a member's bytes from skip on; with `to_end`, its checksum is compared. */
bool npz_inflate(TensorFile *f, const TensorEntry *e, const TensorSource *s, size_t skip,
                 size_t bytes, bool to_end, uint8_t *out);
/* Compares the checksum of a stored member. */
bool npz_check(TensorFile *f, const TensorEntry *e, TensorSource *s);
#endif
