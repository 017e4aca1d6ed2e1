/* .safetensors: eight bytes of header length, a JSON header, one buffer of tensor bytes.
 * https://github.com/huggingface/safetensors#format */
#include "support/tensorfile_internal.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

enum { HEADER_MAX = 100000000 }; /* the limit of the reference implementation */

static const struct {
  const char *name;
  DType dtype;
} type_names[] = {
    {"BOOL", DT_BOOL}, {"U8", DT_U8},   {"I8", DT_S8},     {"I16", DT_S16}, {"I32", DT_S32},
    {"I64", DT_S64},   {"F16", DT_F16}, {"BF16", DT_BF16}, {"F32", DT_F32}, {"F64", DT_F64},
};

/* A JSON number that is a whole number of bytes or elements. */
static bool whole_number(const cJSON *v, int64_t *out) {
  if (!cJSON_IsNumber(v) || !(v->valuedouble >= 0 && v->valuedouble <= 0x1p53)) return false;
  *out = (int64_t)v->valuedouble;
  return (double)*out == v->valuedouble;
}

typedef struct {
  int64_t begin, end;
  const char *name;
} Extent;

static bool read_shape(TensorFile *f, const cJSON *shape, TensorEntry *e) {
  if (!cJSON_IsArray(shape))
    return tensor_file_error(f, "tensor '%s' has no \"shape\" list in the header", e->name);
  const cJSON *v;
  cJSON_ArrayForEach(v, shape) {
    if (e->rank == TENSOR_MAX_RANK)
      return tensor_file_error(f, "tensor '%s' has more than %d dimensions", e->name,
                               TENSOR_MAX_RANK);
    if (!whole_number(v, &e->shape[e->rank++]))
      return tensor_file_error(f, "dimension %d of tensor '%s' is not a whole number", e->rank - 1,
                               e->name);
  }
  return true;
}

static bool read_offsets(TensorFile *f, const cJSON *offsets, const char *name, int64_t size,
                         Extent *out) {
  if (!cJSON_IsArray(offsets) || cJSON_GetArraySize(offsets) != 2 ||
      !whole_number(offsets->child, &out->begin) || !whole_number(offsets->child->next, &out->end))
    return tensor_file_error(f, "tensor '%s' has no \"data_offsets\" pair in the header", name);
  if (out->begin > out->end || out->end > size)
    return tensor_file_error(
        f,
        "tensor '%s' claims bytes %lld to %lld of a buffer of %lld; the file is "
        "truncated or damaged",
        name, (long long)out->begin, (long long)out->end, (long long)size);
  out->name = name;
  return true;
}

static bool read_tensor(TensorFile *f, const cJSON *item, const uint8_t *buffer, int64_t size,
                        Extent *extent) {
  TensorEntry e = {.name = item->string, .dtype = DT_COUNT};
  if (!cJSON_IsObject(item))
    return tensor_file_error(f, "the header's entry for '%s' is not an object", e.name);
  const char *type = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "dtype"));
  if (!type) return tensor_file_error(f, "tensor '%s' has no \"dtype\" in the header", e.name);
  if (!read_shape(f, cJSON_GetObjectItemCaseSensitive(item, "shape"), &e) ||
      !read_offsets(f, cJSON_GetObjectItemCaseSensitive(item, "data_offsets"), e.name, size,
                    extent))
    return false;
  for (size_t i = 0; i < NPU_COUNTOF(type_names); i++)
    if (strcmp(type_names[i].name, type) == 0) e.dtype = type_names[i].dtype;
  if (e.dtype == DT_COUNT)
    return tensor_file_skip(f, e.name,
                            "has element type '%s', which is not supported; convert it to %s "
                            "when writing the file",
                            type, type[0] == 'U' ? "I64" : "F32, BF16 or F16");
  if (!tensor_shape_bytes(e.shape, e.rank, e.dtype, &e.bytes))
    return tensor_file_error(f, "the shape of tensor '%s' has more elements than fit 63 bits",
                             e.name);
  if ((int64_t)e.bytes != extent->end - extent->begin)
    return tensor_file_error(f,
                             "tensor '%s' has %lld bytes in the file, but its shape and type need "
                             "%zu; the file is damaged",
                             e.name, (long long)(extent->end - extent->begin), e.bytes);
  TensorSource s = {.member = buffer, .skip = (size_t)extent->begin};
  return tensor_file_add(f, &e, &s);
}

static int by_begin(const void *a, const void *b) {
  const Extent *x = a, *y = b;
  if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
  return x->end < y->end ? -1 : x->end > y->end;
}

/* The format asks for a buffer without holes and overlaps. */
static bool check_cover(TensorFile *f, Extent *extents, size_t n, int64_t size) {
  if (n) qsort(extents, n, sizeof *extents, by_begin);
  int64_t at = 0;
  for (size_t i = 0; i < n; i++) {
    if (extents[i].begin < at)
      return tensor_file_error(f, "the bytes of tensors '%s' and '%s' overlap; the file is damaged",
                               extents[i - 1].name, extents[i].name);
    if (extents[i].begin > at)
      return tensor_file_error(f, "%lld bytes before tensor '%s' belong to no tensor",
                               (long long)(extents[i].begin - at), extents[i].name);
    at = extents[i].end;
  }
  return at == size ||
         tensor_file_error(f, "%lld bytes at the end belong to no tensor", (long long)(size - at));
}

static bool read_entries(TensorFile *f, const cJSON *root, const uint8_t *buffer, int64_t size) {
  size_t n = 0;
  const cJSON *item;
  Extent *extents = mem_alloc((size_t)cJSON_GetArraySize(root) * sizeof *extents);
  bool ok = true;
  cJSON_ArrayForEach(item, root) {
    if (strcmp(item->string, "__metadata__") == 0) continue;
    ok = read_tensor(f, item, buffer, size, &extents[n++]);
    if (!ok) break;
  }
  ok = ok && check_cover(f, extents, n, size);
  mem_free(extents);
  return ok;
}

bool safetensors_read(TensorFile *f) {
  uint64_t length = 0;
  for (int i = 0; i < 8; i++) length |= (uint64_t)f->data[i] << 8 * i;
  if (length > HEADER_MAX || length > f->size - 8)
    return tensor_file_error(f,
                             "the header should have %llu bytes, but the file has only %zu; it is "
                             "truncated or no .safetensors file",
                             (unsigned long long)length, f->size);
  const char *text = (const char *)f->data + 8, *end = NULL;
  if (memmem(text, (size_t)length, "\\u0000", 6))
    return tensor_file_error(f, "the header has a name with a NUL character; rename the tensor");
  cJSON *root = cJSON_ParseWithLengthOpts(text, (size_t)length, &end, false);
  bool ok;
  size_t used = root ? (size_t)(end - text) : 0;
  while (root && used < length && text[used] == ' ') used++; /* padding */
  if (!root || !cJSON_IsObject(root) || used != length)
    ok = tensor_file_error(f, "the header is not a JSON object; the file is damaged");
  else
    ok = read_entries(f, root, f->data + 8 + length, (int64_t)(f->size - 8 - (size_t)length));
  cJSON_Delete(root);
  return ok;
}
