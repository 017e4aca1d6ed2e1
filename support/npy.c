/* .npy: magic, version, a header that is a Python dictionary literal, the elements.
 * https://numpy.org/doc/stable/reference/generated/numpy.lib.format.html */
#include "support/tensorfile_internal.h"

#include <string.h>

bool npy_is(const uint8_t *data, size_t size) {
  return size >= 6 && memcmp(data, "\x93NUMPY", 6) == 0;
}

/* ---- the header's text ---- */

typedef struct {
  const char *p, *end;
} Scan;

static void skip_blanks(Scan *s) {
  while (s->p < s->end && (*s->p == ' ' || *s->p == '\n' || *s->p == '\t')) s->p++;
}

static bool accept(Scan *s, const char *word) {
  skip_blanks(s);
  size_t n = strlen(word);
  if ((size_t)(s->end - s->p) < n || memcmp(s->p, word, n) != 0) return false;
  s->p += n;
  return true;
}

/* A string literal without escapes. */
static bool scan_string(Scan *s, char *out, size_t cap) {
  skip_blanks(s);
  if (s->p == s->end || (*s->p != '\'' && *s->p != '"')) return false;
  char quote = *s->p++;
  size_t n = 0;
  while (s->p < s->end && *s->p != quote) {
    if (n + 1 == cap || *s->p == '\\') return false;
    out[n++] = *s->p++;
  }
  out[n] = 0;
  return accept(s, quote == '"' ? "\"" : "'");
}

static bool scan_dim(Scan *s, int64_t *out) {
  skip_blanks(s);
  int64_t v = 0;
  const char *start = s->p;
  for (; s->p < s->end && *s->p >= '0' && *s->p <= '9'; s->p++)
    if (!mul_i64(v, 10, &v) || !add_i64(v, *s->p - '0', &v)) return false;
  accept(s, "L"); /* Python 2 wrote 3L */
  *out = v;
  return s->p > start;
}

typedef struct {
  char descr[32];
  bool structured; /* descr is a list of fields */
  bool fortran;
  int rank;
  int64_t shape[TENSOR_MAX_RANK];
} NpyHeader;

static bool scan_shape(Scan *s, NpyHeader *h) {
  if (!accept(s, "(")) return false;
  while (!accept(s, ")")) {
    int64_t d;
    if (!scan_dim(s, &d) || h->rank == TENSOR_MAX_RANK) return false;
    h->shape[h->rank++] = d;
    if (!accept(s, ",") && (skip_blanks(s), s->p == s->end || *s->p != ')')) return false;
  }
  return true;
}

static bool scan_header(Scan *s, NpyHeader *h) {
  bool descr = false, order = false, shape = false;
  if (!accept(s, "{")) return false;
  while (!accept(s, "}")) {
    char key[32];
    if (!scan_string(s, key, sizeof key) || !accept(s, ":")) return false;
    if (strcmp(key, "descr") == 0 && !descr) {
      descr = true;
      if (accept(s, "[")) return h->structured = true;
      if (!scan_string(s, h->descr, sizeof h->descr)) return false;
    } else if (strcmp(key, "fortran_order") == 0 && !order) {
      order = true;
      h->fortran = accept(s, "True");
      if (!h->fortran && !accept(s, "False")) return false;
    } else if (strcmp(key, "shape") == 0 && !shape) {
      shape = true;
      if (!scan_shape(s, h)) return false;
    } else {
      return false;
    }
    if (!accept(s, ",") && (skip_blanks(s), s->p == s->end || *s->p != '}')) return false;
  }
  return descr && order && shape;
}

/* ---- the elements ---- */

static bool dtype_of_descr(const char *descr, DType *out) {
  static const struct {
    const char *code;
    DType dtype;
  } codes[] = {
      {"b1", DT_BOOL}, {"u1", DT_U8},  {"i1", DT_S8},  {"i2", DT_S16}, {"i4", DT_S32},
      {"i8", DT_S64},  {"f2", DT_F16}, {"f4", DT_F32}, {"f8", DT_F64},
  };
  const char *code = strchr("<|=>", descr[0]) && descr[0] ? descr + 1 : descr;
  for (size_t i = 0; i < NPU_COUNTOF(codes); i++)
    if (strcmp(codes[i].code, code) == 0) {
      *out = codes[i].dtype;
      return descr[0] != '>' || dtype_size(*out) == 1;
    }
  return false;
}

void npy_transpose(const TensorEntry *e, const uint8_t *src, uint8_t *dst) {
  size_t size = dtype_size(e->dtype), n = e->bytes / size, stride[TENSOR_MAX_RANK], step = size;
  int64_t index[TENSOR_MAX_RANK] = {0};
  for (int i = 0; i < e->rank; i++) {
    stride[i] = step;
    step *= (size_t)e->shape[i];
  }
  size_t from = 0;
  for (size_t i = 0; i < n; i++) {
    memcpy(dst + i * size, src + from, size);
    for (int d = e->rank - 1; d >= 0; d--) {
      from += stride[d];
      if (++index[d] < e->shape[d]) break;
      from -= stride[d] * (size_t)e->shape[d];
      index[d] = 0;
    }
  }
}

static const char *shown(const char *name) {
  return *name ? name : "the array";
}

static bool skip_type(TensorFile *f, const char *name, const NpyHeader *h) {
  if (h->structured)
    return tensor_file_skip(f, name, "is a structured array; save one plain array per field");
  if (h->descr[0] == '>')
    return tensor_file_skip(
        f, name, "is big-endian ('%s'); save it with .astype(a.dtype.newbyteorder('<'))", h->descr);
  if (h->descr[0] == '|' && h->descr[1] == 'V')
    return tensor_file_skip(
        f, name, "has the opaque type '%s'; numpy has no bf16, use .safetensors for it", h->descr);
  const char *code = h->descr[0] == '<' || h->descr[0] == '=' ? h->descr + 1 : h->descr;
  return tensor_file_skip(
      f, name, "has element type '%s', which is not supported; convert it with .astype('%s')",
      h->descr, code[0] == 'u' ? "int64" : "float32");
}

enum { HEADER_MAX = 1 << 20 }; /* numpy's own limit is 10000 characters */

size_t npy_header_size(TensorFile *f, const char *name, const uint8_t *start, size_t size) {
  bool cut = size < 10;
  size_t prefix = cut || start[6] == 1 ? 10 : NPY_PREFIX, length = 0;
  if (!cut) length = start[8] | (size_t)start[9] << 8;
  if (!cut && (start[6] < 1 || start[6] > 3))
    return (size_t)tensor_file_error(f, "%s has .npy version %u; versions 1 to 3 are known",
                                     shown(name), start[6]);
  if (prefix == NPY_PREFIX && size >= NPY_PREFIX)
    length |= (size_t)start[10] << 16 | (size_t)start[11] << 24;
  if (size < prefix || length > size - prefix)
    return (size_t)tensor_file_error(f, "%s is cut off inside its header", shown(name));
  if (length > HEADER_MAX)
    return (size_t)tensor_file_error(f, "%s has a header of %zu bytes; the file is damaged",
                                     shown(name), length);
  return prefix + length;
}

bool npy_read(TensorFile *f, const char *name, const uint8_t *header, size_t size,
              TensorSource *source) {
  size_t prefix = header[6] == 1 ? 10 : NPY_PREFIX, there = size - source->skip;
  NpyHeader h = {0};
  Scan s = {(const char *)header + prefix, (const char *)header + source->skip};
  if (!scan_header(&s, &h))
    return tensor_file_error(f,
                             "%s has a damaged .npy header (expected descr, fortran_order and a "
                             "shape of at most %d dimensions)",
                             shown(name), TENSOR_MAX_RANK);
  TensorEntry e = {.name = name, .rank = h.rank};
  memcpy(e.shape, h.shape, sizeof e.shape);
  if (h.structured || !dtype_of_descr(h.descr, &e.dtype)) return skip_type(f, name, &h);
  if (!tensor_shape_bytes(e.shape, e.rank, e.dtype, &e.bytes))
    return tensor_file_error(f, "the shape of %s has more elements than fit 63 bits", shown(name));
  if (there != e.bytes)
    return tensor_file_error(
        f, "%s needs %zu bytes of elements, but %zu are there; the file is %s", shown(name),
        e.bytes, there, there < e.bytes ? "truncated" : "damaged or holds more than one array");
  source->fortran = h.fortran && h.rank > 1 && e.bytes;
  return tensor_file_add(f, &e, source);
}
