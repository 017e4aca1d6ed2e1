/* How the commands name a tensor in a file: FILE, FILE:TENSOR, and after either a range of the
 * tensor's first axis: digits.npz:images[0:256]. */
#ifndef NPU_TENSORSPEC_H
#define NPU_TENSORSPEC_H
#include "support/support.h"
#include "support/tensorfile.h"

typedef struct {
  const char *path;
  const char *tensor; /* NULL: not named */
  const char *range;  /* its text, "0:256"; NULL: all rows */
  int64_t begin, end; /* end is INT64_MAX when it was left out; both 0 when the text is no range */
} TensorSpec;

/* The length of NAME in NAME=FILE; 0 when the text names a file alone: one that exists, or one in a
 * folder whose path holds the `=` (./a=b.npz). */
size_t tensor_spec_name(const char *text);
/* Reads a spec; strings live in the arena. A text that is the path of a file is that file, whatever
 * it looks like. */
TensorSpec tensor_spec_parse(Arena *a, const char *text);
/* Reduces *t to the rows of the range, of which *first is the first byte. False after a diagnostic
 * (E-input) when the tensor does not have them. */
bool tensor_spec_cut(const TensorSpec *spec, TensorEntry *t, size_t *first, DiagEngine *diag);
#endif
