/* Naming a tensor in a file; see tensorspec.h. */
#include "tools/tensorspec.h"

#include <string.h>

/* A bound of a range; empty is the default. */
static bool parse_bound(const char *text, int64_t dflt, int64_t *out) {
  *out = dflt;
  return *text == 0 || (parse_i64(text, out) && *out >= 0);
}

/* Takes "[begin:end]" off the end of path. */
static void take_range(Arena *a, char *path, TensorSpec *spec) {
  size_t len = strlen(path);
  char *open = strrchr(path, '[');
  if (!open || path[len - 1] != ']') return;
  path[len - 1] = 0;
  *open = 0;
  spec->range = open + 1;
  char *begin = arena_strdup(a, spec->range), *colon = strchr(begin, ':');
  if (colon) *colon = 0;
  if (!colon || !parse_bound(begin, 0, &spec->begin) ||
      !parse_bound(colon + 1, INT64_MAX, &spec->end))
    spec->begin = spec->end = 0;
}

TensorSpec tensor_spec_parse(Arena *a, const char *text) {
  char *path = arena_strdup(a, text);
  TensorSpec spec = {.path = path};
  if (file_exists(path)) return spec;
  take_range(a, path, &spec);
  char *colon = strrchr(path, ':');
  if (!colon || file_exists(path)) return spec;
  *colon = 0;
  spec.tensor = colon + 1;
  return spec;
}

size_t tensor_spec_name(const char *text) {
  size_t len = strcspn(text, "=/");
  if (text[len] != '=') return 0;
  Arena *a = arena_new();
  bool file = file_exists(tensor_spec_parse(a, text).path);
  arena_free(a);
  return file ? 0 : len;
}

bool tensor_spec_cut(const TensorSpec *spec, TensorEntry *t, size_t *first, DiagEngine *diag) {
  *first = 0;
  if (!spec->range) return true;
  int64_t rows = t->rank ? t->shape[0] : 0;
  int64_t end = spec->end == INT64_MAX ? rows : spec->end;
  if (t->rank == 0 || spec->begin >= end || end > rows) {
    diag_error(diag, SRC_LOC_NONE, "E-input",
               "'%s' has no rows [%s]%s%s%s: its first axis has %lld (write [FIRST:END], "
               "END not included)",
               spec->path, spec->range, *t->name ? " of tensor '" : "", t->name,
               *t->name ? "'" : "", (long long)rows);
    return false;
  }
  size_t row = t->bytes / (size_t)rows;
  *first = (size_t)spec->begin * row;
  t->shape[0] = end - spec->begin;
  t->bytes = (size_t)t->shape[0] * row;
  return true;
}
