/* Tensor files: opening by content, the list of entries, lookup. The formats are in their own
 * files. */
#include "support/tensorfile.h"

#include "support/tensorfile_internal.h"

#include <string.h>

#define uthash_malloc(n) mem_alloc(n)
#define uthash_free(p, n) mem_free(p)
#include <uthash.h>

struct NameSet {
  UT_hash_handle hh;
  const char *name;
  size_t index; /* of the entry; SKIPPED + index for a skipped one */
};
static const size_t SKIPPED = SIZE_MAX / 2;

bool tensor_file_error(TensorFile *f, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  StrBuf text = {0};
  strbuf_vprintf(&text, fmt, ap);
  va_end(ap);
  diag_error(f->diag, f->loc, "E-tensor-file", "'%s': %s", f->path, text.data);
  strbuf_free(&text);
  return false;
}

static bool name_add(TensorFile *f, const char *name, size_t index) {
  struct NameSet *n;
  HASH_FIND_STR(f->names, name, n);
  if (n) return tensor_file_error(f, "tensor '%s' is there twice; every name must be unique", name);
  n = arena_alloc(f->arena, sizeof *n);
  n->name = name;
  n->index = index;
  HASH_ADD_KEYPTR(hh, f->names, n->name, strlen(n->name), n);
  return true;
}

bool tensor_file_add(TensorFile *f, const TensorEntry *e, const TensorSource *s) {
  if (f->nentries == f->cap) {
    f->cap = f->cap ? 2 * f->cap : 16;
    f->entries = mem_realloc(f->entries, f->cap * sizeof *f->entries);
    f->sources = mem_realloc(f->sources, f->cap * sizeof *f->sources);
  }
  f->sources[f->nentries] = *s;
  TensorEntry *copy = &f->entries[f->nentries];
  *copy = *e;
  copy->name = arena_strdup(f->arena, e->name);
  return name_add(f, copy->name, f->nentries++);
}

bool tensor_file_skip(TensorFile *f, const char *name, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  StrBuf text = {0};
  strbuf_vprintf(&text, fmt, ap);
  va_end(ap);
  f->skipped = mem_realloc(f->skipped, (f->nskipped + 1) * sizeof *f->skipped);
  SkippedTensor s = {arena_strdup(f->arena, name), arena_strndup(f->arena, text.data, text.len)};
  strbuf_free(&text);
  f->skipped[f->nskipped] = s;
  return name_add(f, s.name, SKIPPED + f->nskipped++);
}

void *tensor_file_own(TensorFile *f, size_t bytes) {
  void *block = mem_try_alloc(bytes);
  if (!block) {
    diag_error(f->diag, f->loc, "E-memory",
               "'%s': there is no memory for %zu bytes of elements of one of its tensors", f->path,
               bytes);
    return NULL;
  }
  f->owned = mem_realloc(f->owned, (f->nowned + 1) * sizeof *f->owned);
  return f->owned[f->nowned++] = block;
}

bool tensor_shape_bytes(const int64_t *shape, int rank, DType dtype, size_t *out) {
  int64_t n = (int64_t)dtype_size(dtype);
  bool empty = false;
  for (int i = 0; i < rank; i++) {
    if (shape[i] < 0) return false;
    if (shape[i] == 0)
      empty = true;
    else if (!mul_i64(n, shape[i], &n))
      return false;
  }
  *out = empty ? 0 : (size_t)n;
  return true;
}

static bool zip_is(const uint8_t *d, size_t size) {
  return size >= 4 && (memcmp(d, "PK\3\4", 4) == 0 || memcmp(d, "PK\5\6", 4) == 0);
}

static bool read_any(TensorFile *f) {
  if (npy_is(f->data, f->size)) {
    TensorSource s = {.member = f->data, .skip = npy_header_size(f, "", f->data, f->size)};
    if (!s.skip || !npy_read(f, "", f->data, f->size, &s)) return false;
    return f->nskipped == 0 || tensor_file_error(f, "the array %s", f->skipped[0].why);
  }
  if (zip_is(f->data, f->size)) return npz_read(f);
  if (f->size > 8 && f->data[8] == '{') return safetensors_read(f);
  return tensor_file_error(
      f, f->size == 0
             ? "the file is empty; expected .safetensors, .npy or .npz"
             : "this is no tensor file: neither .safetensors, .npy nor .npz starts like this");
}

static TensorFile *file_new(const char *path, DiagEngine *diag, SrcLoc loc) {
  TensorFile *f = mem_alloc(sizeof *f);
  f->arena = arena_new();
  f->path = arena_strdup(f->arena, path);
  f->diag = diag;
  f->loc = loc;
  return f;
}

static TensorFile *file_finish(TensorFile *f) {
  if (read_any(f)) return f;
  tensor_file_close(f);
  return NULL;
}

TensorFile *tensor_file_open(const char *path, DiagEngine *diag, SrcLoc loc) {
  TensorFile *f = file_new(path, diag, loc);
  const char *why;
  if (!diag_map_file(diag, path, &f->map, &why)) {
    diag_error(diag, loc, "E-file", "cannot open tensor file '%s': %s", path, why);
    tensor_file_close(f);
    return NULL;
  }
  f->data = f->map.data;
  f->size = f->map.size;
  return file_finish(f);
}

TensorFile *tensor_file_open_memory(const void *data, size_t size, const char *label,
                                    DiagEngine *diag) {
  TensorFile *f = file_new(label, diag, SRC_LOC_NONE);
  f->data = data;
  f->size = size;
  return file_finish(f);
}

void tensor_file_close(TensorFile *f) {
  if (!f) return;
  HASH_CLEAR(hh, f->names);
  for (size_t i = 0; i < f->nowned; i++) mem_free(f->owned[i]);
  mem_free(f->owned);
  mem_free(f->entries);
  mem_free(f->sources);
  mem_free(f->skipped);
  file_unmap(&f->map);
  arena_free(f->arena);
  mem_free(f);
}

const char *tensor_file_path(const TensorFile *f) {
  return f->path;
}

size_t tensor_file_count(const TensorFile *f) {
  return f->nentries;
}

const TensorEntry *tensor_file_at(const TensorFile *f, size_t i) {
  return &f->entries[i];
}

const TensorEntry *tensor_file_find(const TensorFile *f, const char *name) {
  struct NameSet *n;
  HASH_FIND_STR(f->names, name, n);
  return n && n->index < SKIPPED ? &f->entries[n->index] : NULL;
}

/* All elements in row-major order, of a tensor that is not so in the file. */
static const void *make_whole(TensorFile *f, const TensorEntry *e, TensorSource *s) {
  const uint8_t *stored = s->member ? s->member + s->skip : NULL;
  uint8_t *inflated = NULL;
  if (!stored) {
    inflated = tensor_file_own(f, e->bytes);
    if (!inflated || !npz_inflate(f, e, s, s->skip, e->bytes, true, inflated)) return NULL;
    stored = inflated;
  }
  if (!s->fortran) return stored;
  uint8_t *whole = tensor_file_own(f, e->bytes);
  if (whole) npy_transpose(e, stored, whole);
  if (inflated && whole) { /* the last but one that was made */
    mem_free(inflated);
    f->owned[f->nowned - 2] = whole;
    f->nowned--;
  }
  return whole;
}

const void *tensor_file_data(TensorFile *f, const TensorEntry *e, DiagEngine *diag, SrcLoc loc) {
  TensorSource *s = &f->sources[e - f->entries];
  f->diag = diag;
  f->loc = loc;
  if (s->unchecked && !npz_check(f, e, s)) return NULL;
  if (!s->whole) s->whole = e->bytes ? make_whole(f, e, s) : "";
  return s->whole;
}

const void *tensor_file_part(TensorFile *f, const TensorEntry *e, size_t first, size_t bytes,
                             DiagEngine *diag, SrcLoc loc) {
  TensorSource *s = &f->sources[e - f->entries];
  f->diag = diag;
  f->loc = loc;
  if (s->whole || s->fortran || bytes == e->bytes) {
    const char *whole = tensor_file_data(f, e, diag, loc);
    return whole ? whole + first : NULL;
  }
  if (s->member) return s->member + s->skip + first;
  uint8_t *part = tensor_file_own(f, bytes);
  bool ok = part && npz_inflate(f, e, s, s->skip + first, bytes, first + bytes == e->bytes, part);
  return ok ? part : NULL;
}

const char *tensor_file_why_unusable(const TensorFile *f, const char *name) {
  struct NameSet *n;
  HASH_FIND_STR(f->names, name, n);
  return n && n->index >= SKIPPED ? f->skipped[n->index - SKIPPED].why : NULL;
}
