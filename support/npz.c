/* .npz: a zip archive of .npy members. Stored members are used in place, deflated ones inflated.
 * The archive is read by minizip from the memory mapping. */
#include "support/tensorfile_internal.h"

#include <string.h>
#include <unzip.h>
#include <zlib.h>

/* ---- a read-only stream over memory ---- */

typedef struct {
  const uint8_t *data;
  size_t size, at;
  bool short_read; /* minizip takes an end of file for zeros unless the stream reports an error */
} Stream;

static voidpf stream_open(voidpf opaque, const void *name, int mode) {
  (void)name;
  (void)mode;
  return opaque;
}

static uLong stream_read(voidpf opaque, voidpf stream, void *to, uLong n) {
  (void)opaque;
  Stream *s = stream;
  size_t left = s->size - s->at;
  if (n > left) {
    n = left;
    s->short_read = true;
  }
  memcpy(to, s->data + s->at, n);
  s->at += n;
  return n;
}

static ZPOS64_T stream_tell(voidpf opaque, voidpf stream) {
  (void)opaque;
  return ((Stream *)stream)->at;
}

static long stream_seek(voidpf opaque, voidpf stream, ZPOS64_T offset, int origin) {
  (void)opaque;
  Stream *s = stream;
  ZPOS64_T base = origin == ZLIB_FILEFUNC_SEEK_CUR   ? s->at
                  : origin == ZLIB_FILEFUNC_SEEK_END ? s->size
                                                     : 0;
  if (offset > s->size - base) return -1;
  s->at = base + offset;
  return 0;
}

static int stream_close(voidpf opaque, voidpf stream) {
  (void)opaque;
  (void)stream;
  return 0;
}

static int stream_error(voidpf opaque, voidpf stream) {
  (void)opaque;
  return ((Stream *)stream)->short_read;
}

/* ---- members ---- */

enum { STORED = 0, DEFLATED = 8, DEFLATE_MAX_RATIO = 1032, ENCRYPTED = 1 };

/* The member's bytes, used in place. NULL after a report. */
static const uint8_t *member_stored(TensorFile *f, unzFile zip, const unz_file_info64 *info,
                                    const char *name) {
  ZPOS64_T at = unzGetCurrentFileZStreamPos64(zip);
  size_t size = info->uncompressed_size;
  if (info->compressed_size != size || at > f->size || size > f->size - at) {
    tensor_file_error(f, "member '%s' reaches over the end; the archive is truncated or damaged",
                      name);
    return NULL;
  }
  f->stored += size;
  if (f->stored > f->size) {
    tensor_file_error(f, "member '%s' overlaps others; the archive is damaged", name);
    return NULL;
  }
  const uint8_t *data = f->data + at;
  if (crc32_z(0, data, size) != info->crc) {
    tensor_file_error(f, "member '%s' does not match its checksum; the archive is damaged", name);
    return NULL;
  }
  return data;
}

static const uint8_t *member_deflated(TensorFile *f, unzFile zip, const unz_file_info64 *info,
                                      const char *name) {
  size_t size = info->uncompressed_size;
  /* No honest archive inflates to more than the format's greatest ratio. */
  if (size > SIZE_MAX / 2 || f->inflated + size > f->size * DEFLATE_MAX_RATIO) {
    tensor_file_error(f, "member '%s' claims %zu bytes, more than the archive can hold", name,
                      size);
    return NULL;
  }
  f->inflated += size;
  uint8_t *data = tensor_file_own(f, size);
  size_t got = 0;
  while (got < size) {
    unsigned want = size - got < 1u << 30 ? (unsigned)(size - got) : 1u << 30;
    int n = unzReadCurrentFile(zip, data + got, want);
    if (n <= 0) break;
    got += (size_t)n;
  }
  if (got == size && unzCloseCurrentFile(zip) == UNZ_OK) return data;
  tensor_file_error(f, "member '%s' cannot be inflated; the archive is damaged", name);
  return NULL;
}

static bool read_member(TensorFile *f, unzFile zip) {
  char name[1024];
  unz_file_info64 info;
  if (unzGetCurrentFileInfo64(zip, &info, name, sizeof name, NULL, 0, NULL, 0) != UNZ_OK)
    return tensor_file_error(f, "the archive's directory is damaged");
  if (info.size_filename >= sizeof name || strlen(name) != info.size_filename)
    return tensor_file_error(f, "the archive has a member with an unusable name");
  if (!str_ends_with(name, ".npy")) return true; /* numpy ignores these too */
  if (info.flag & ENCRYPTED)
    return tensor_file_error(f, "member '%s' is encrypted; save the file without a password", name);
  if (info.compression_method != STORED && info.compression_method != DEFLATED)
    return tensor_file_error(
        f, "member '%s' uses compression method %lu; use numpy.savez or numpy.savez_compressed",
        name, info.compression_method);
  if (unzOpenCurrentFile(zip) != UNZ_OK)
    return tensor_file_error(f, "member '%s' cannot be read; the archive is damaged", name);
  const uint8_t *data = info.compression_method == STORED ? member_stored(f, zip, &info, name)
                                                          : member_deflated(f, zip, &info, name);
  unzCloseCurrentFile(zip);
  if (!data) return false;
  if (!npy_is(data, info.uncompressed_size))
    return tensor_file_error(f, "member '%s' is not a .npy array", name);
  name[strlen(name) - strlen(".npy")] = 0;
  return npy_read(f, name, data, info.uncompressed_size);
}

bool npz_read(TensorFile *f) {
  Stream stream = {.data = f->data, .size = f->size};
  zlib_filefunc64_def io = {
      .zopen64_file = stream_open,
      .zread_file = stream_read,
      .ztell64_file = stream_tell,
      .zseek64_file = stream_seek,
      .zclose_file = stream_close,
      .zerror_file = stream_error,
      .opaque = &stream,
  };
  unzFile zip = unzOpen2_64(f->path, &io);
  if (!zip)
    return tensor_file_error(f, "the archive's directory is missing; the file is truncated");
  bool ok = true;
  int rc = unzGoToFirstFile(zip);
  unz_global_info64 global;
  if (unzGetGlobalInfo64(zip, &global) == UNZ_OK && global.number_entry == 0)
    rc = UNZ_END_OF_LIST_OF_FILE;
  for (; ok && rc == UNZ_OK; rc = unzGoToNextFile(zip)) ok = read_member(f, zip);
  if (ok && rc != UNZ_END_OF_LIST_OF_FILE)
    ok = tensor_file_error(f, "the archive's directory is damaged");
  unzClose(zip);
  return ok;
}
