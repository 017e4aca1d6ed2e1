/* Writers of tensor files: .npy, .npz (members stored, so that they can be mapped) and
 * .safetensors. */
#include "support/tensorfile.h"

#include <cjson/cJSON.h>
#include <string.h>
#include <zip.h>

static bool write_error(DiagEngine *diag, const char *path, const char *why) {
  diag_error(diag, SRC_LOC_NONE, "E-file", "cannot write '%s': %s", path, why);
  return false;
}

/* ---- .npy ---- */

/* numpy's code for a type; NULL for bf16. */
static const char *numpy_code(DType t) {
  static const char *const codes[DT_COUNT] = {
      [DT_S8] = "|i1",  [DT_F32] = "<f4", [DT_S32] = "<i4", [DT_U8] = "|u1",   [DT_S16] = "<i2",
      [DT_S64] = "<i8", [DT_F16] = "<f2", [DT_F64] = "<f8", [DT_BOOL] = "|b1",
  };
  return codes[t];
}

/* Version 1.0 header, padded so that the elements start at a multiple of 64. */
static void npy_header(const TensorEntry *e, StrBuf *out) {
  StrBuf dict = {0};
  strbuf_printf(&dict, "{'descr': '%s', 'fortran_order': False, 'shape': (", numpy_code(e->dtype));
  for (int i = 0; i < e->rank; i++)
    strbuf_printf(&dict,
                  i + 1 < e->rank ? "%lld, "
                  : e->rank == 1  ? "%lld,"
                                  : "%lld",
                  (long long)e->shape[i]);
  strbuf_puts(&dict, "), }");
  while ((10 + dict.len + 1) % 64) strbuf_putc(&dict, ' ');
  strbuf_putc(&dict, '\n');
  strbuf_write(out, "\x93NUMPY\1\0", 8);
  strbuf_putc(out, (char)(dict.len & 255));
  strbuf_putc(out, (char)(dict.len >> 8));
  strbuf_write(out, dict.data, dict.len);
  strbuf_free(&dict);
}

static void write_npy(FILE *out, const TensorEntry *e) {
  StrBuf header = {0};
  npy_header(e, &header);
  fwrite(header.data, 1, header.len, out);
  if (e->bytes) fwrite(e->data, 1, e->bytes, out);
  strbuf_free(&header);
}

/* ---- .npz ---- */

static voidpf zip_open(voidpf opaque, const void *name, int mode) {
  (void)name;
  (void)mode;
  return opaque;
}

static uLong zip_write(voidpf opaque, voidpf stream, const void *data, uLong n) {
  (void)opaque;
  return fwrite(data, 1, n, stream);
}

static uLong zip_read(voidpf opaque, voidpf stream, void *data, uLong n) {
  (void)opaque;
  return fread(data, 1, n, stream);
}

static ZPOS64_T zip_tell(voidpf opaque, voidpf stream) {
  (void)opaque;
  return (ZPOS64_T)ftello(stream);
}

static long zip_seek(voidpf opaque, voidpf stream, ZPOS64_T offset, int origin) {
  (void)opaque;
  int whence = origin == ZLIB_FILEFUNC_SEEK_CUR   ? SEEK_CUR
               : origin == ZLIB_FILEFUNC_SEEK_END ? SEEK_END
                                                  : SEEK_SET;
  return fseeko(stream, (off_t)offset, whence);
}

static int zip_flush(voidpf opaque, voidpf stream) { /* the stream is closed by its owner */
  (void)opaque;
  return fflush(stream);
}

static int zip_error(voidpf opaque, voidpf stream) {
  (void)opaque;
  return ferror(stream);
}

static bool zip_member(zipFile zip, const TensorEntry *e) {
  StrBuf name = {0}, header = {0};
  strbuf_printf(&name, "%s.npy", e->name);
  npy_header(e, &header);
  zip_fileinfo info = {.tmz_date = {.tm_mday = 1, .tm_year = 1980}}; /* same bytes every time */
  bool ok = zipOpenNewFileInZip64(zip, name.data, &info, NULL, 0, NULL, 0, NULL, 0, 0,
                                  e->bytes >= 0xffff0000u) == ZIP_OK;
  ok = ok && zipWriteInFileInZip(zip, header.data, (unsigned)header.len) == ZIP_OK;
  const char *data = e->data;
  for (size_t left = e->bytes; ok && left;) {
    unsigned n = left < 1u << 30 ? (unsigned)left : 1u << 30;
    ok = zipWriteInFileInZip(zip, data, n) == ZIP_OK;
    data += n;
    left -= n;
  }
  ok = ok && zipCloseFileInZip(zip) == ZIP_OK;
  strbuf_free(&name);
  strbuf_free(&header);
  return ok;
}

static bool write_npz(FILE *out, const TensorEntry *tensors, size_t n) {
  zlib_filefunc64_def io = {
      .zopen64_file = zip_open,
      .zread_file = zip_read,
      .zwrite_file = zip_write,
      .ztell64_file = zip_tell,
      .zseek64_file = zip_seek,
      .zclose_file = zip_flush,
      .zerror_file = zip_error,
      .opaque = out,
  };
  zipFile zip = zipOpen2_64("", APPEND_STATUS_CREATE, NULL, &io);
  bool ok = zip != NULL;
  for (size_t i = 0; ok && i < n; i++) ok = zip_member(zip, &tensors[i]);
  if (zip) ok = zipClose(zip, NULL) == ZIP_OK && ok;
  return ok;
}

/* ---- .safetensors ---- */

static const char *const safetensors_types[DT_COUNT] = {
    [DT_S8] = "I8",   [DT_BF16] = "BF16", [DT_F32] = "F32", [DT_S32] = "I32", [DT_U8] = "U8",
    [DT_S16] = "I16", [DT_S64] = "I64",   [DT_F16] = "F16", [DT_F64] = "F64", [DT_BOOL] = "BOOL",
};

static void write_safetensors(FILE *out, const TensorEntry *tensors, size_t n) {
  cJSON *root = cJSON_CreateObject();
  size_t at = 0;
  for (size_t i = 0; i < n; i++) {
    const TensorEntry *e = &tensors[i];
    cJSON *item = cJSON_AddObjectToObject(root, e->name);
    cJSON_AddStringToObject(item, "dtype", safetensors_types[e->dtype]);
    cJSON *shape = cJSON_AddArrayToObject(item, "shape");
    for (int d = 0; d < e->rank; d++)
      cJSON_AddItemToArray(shape, cJSON_CreateNumber((double)e->shape[d]));
    cJSON *offsets = cJSON_AddArrayToObject(item, "data_offsets");
    cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)at));
    cJSON_AddItemToArray(offsets, cJSON_CreateNumber((double)(at += e->bytes)));
  }
  char *text = cJSON_PrintUnformatted(root);
  size_t len = strlen(text), padded = (len + 7) / 8 * 8;
  for (int i = 0; i < 8; i++) fputc((int)(padded >> 8 * i & 255), out);
  fprintf(out, "%s%*s", text, (int)(padded - len), "");
  for (size_t i = 0; i < n; i++)
    if (tensors[i].bytes) fwrite(tensors[i].data, 1, tensors[i].bytes, out);
  cJSON_free(text);
  cJSON_Delete(root);
}

/* ---- all ---- */

static bool check_tensors(const char *path, const TensorEntry *tensors, size_t n, bool numpy,
                          DiagEngine *diag) {
  for (size_t i = 0; i < n; i++) {
    if (numpy && !numpy_code(tensors[i].dtype)) {
      diag_error(
          diag, SRC_LOC_NONE, "E-tensor-file",
          "cannot write tensor '%s' to '%s': numpy has no %s type; write a .safetensors file",
          tensors[i].name, path, dtype_name(tensors[i].dtype));
      return false;
    }
    for (size_t j = 0; j < i; j++)
      if (strcmp(tensors[i].name, tensors[j].name) == 0) {
        diag_error(diag, SRC_LOC_NONE, "E-tensor-file",
                   "cannot write '%s': two tensors are named '%s'", path, tensors[i].name);
        return false;
      }
  }
  return true;
}

bool tensor_file_write(const char *path, const TensorEntry *tensors, size_t n, DiagEngine *diag) {
  bool npy = str_ends_with(path, ".npy"), npz = str_ends_with(path, ".npz");
  if (!npy && !npz && !str_ends_with(path, ".safetensors")) {
    diag_error(diag, SRC_LOC_NONE, "E-tensor-file",
               "cannot write '%s': the name must end in .npy, .npz or .safetensors", path);
    return false;
  }
  if (npy && n != 1) {
    diag_error(diag, SRC_LOC_NONE, "E-tensor-file",
               "cannot write %zu tensors to '%s': .npy holds one; use .npz or .safetensors", n,
               path);
    return false;
  }
  if (!check_tensors(path, tensors, n, npy || npz, diag)) return false;
  const char *why;
  AtomicFile *f = atomic_file_begin(path, &why);
  if (!f) return write_error(diag, path, why);
  FILE *out = atomic_file_stream(f);
  bool ok = true;
  if (npy)
    write_npy(out, &tensors[0]);
  else if (npz)
    ok = write_npz(out, tensors, n);
  else
    write_safetensors(out, tensors, n);
  if (ok) return atomic_file_commit(f, &why) || write_error(diag, path, why);
  why = atomic_file_error(f);
  atomic_file_abort(f);
  return write_error(diag, path, why);
}
