/* .npz: a zip archive of .npy members. Stored members are used in place, deflated ones inflated
 * when their elements are asked for. The archive is read by minizip from the memory mapping. */
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

static unzFile zip_open(TensorFile *f, Stream *stream) {
  *stream = (Stream){.data = f->data, .size = f->size};
  zlib_filefunc64_def io = {
      .zopen64_file = stream_open,
      .zread_file = stream_read,
      .ztell64_file = stream_tell,
      .zseek64_file = stream_seek,
      .zclose_file = stream_close,
      .zerror_file = stream_error,
      .opaque = stream,
  };
  return unzOpen2_64(f->path, &io);
}

static bool cannot_inflate(TensorFile *f, const char *name) {
  return tensor_file_error(f, "member '%s' cannot be inflated; the archive is damaged", name);
}

/* The next bytes of the open member; out NULL: they are thrown away. */
static bool inflate_next(unzFile zip, uint8_t *out, size_t bytes) {
  uint8_t waste[1 << 14];
  while (bytes > 0) {
    size_t most = out ? (size_t)1 << 30 : sizeof waste;
    int n = unzReadCurrentFile(zip, out ? out : waste, (unsigned)(bytes < most ? bytes : most));
    if (n <= 0) return false;
    if (out) out += n;
    bytes -= (size_t)n;
  }
  return true;
}

bool npz_inflate(TensorFile *f, const TensorEntry *e, const TensorSource *s, size_t skip,
                 size_t bytes, bool to_end, uint8_t *out) {
  Stream stream;
  unzFile zip = zip_open(f, &stream);
  unz64_file_pos at = {s->directory_at, s->number};
  bool ok = zip && unzGoToFilePos64(zip, &at) == UNZ_OK && unzOpenCurrentFile(zip) == UNZ_OK &&
            inflate_next(zip, NULL, skip) && inflate_next(zip, out, bytes);
  if (zip) {
    int rc = unzCloseCurrentFile(zip); /* compares the checksum when everything was read */
    ok = ok && (!to_end || rc == UNZ_OK);
    unzClose(zip);
  }
  return ok || cannot_inflate(f, e->name);
}

bool npz_check(TensorFile *f, const TensorEntry *e, TensorSource *s) {
  s->unchecked = false;
  if (crc32_z(0, s->member, s->skip + e->bytes) == s->crc) return true;
  s->unchecked = true;
  return tensor_file_error(f, "member '%s' does not match its checksum; the archive is damaged",
                           e->name);
}

/* ---- the directory ---- */

static bool find_stored(TensorFile *f, unzFile zip, const unz_file_info64 *info, const char *name,
                        TensorSource *s) {
  ZPOS64_T at = unzGetCurrentFileZStreamPos64(zip);
  size_t size = info->uncompressed_size;
  if (info->compressed_size != size || at > f->size || size > f->size - at)
    return tensor_file_error(
        f, "member '%s' reaches over the end; the archive is truncated or damaged", name);
  f->stored += size;
  if (f->stored > f->size)
    return tensor_file_error(f, "member '%s' overlaps others; the archive is damaged", name);
  s->member = f->data + at;
  s->crc = (uint32_t)info->crc;
  s->unchecked = true;
  return true;
}

static bool find_deflated(TensorFile *f, unzFile zip, const unz_file_info64 *info, const char *name,
                          TensorSource *s) {
  size_t size = info->uncompressed_size, packed = info->compressed_size;
  /* No honest member inflates to more than the format's greatest ratio. */
  if (packed > f->size || size > (packed + 1) * DEFLATE_MAX_RATIO)
    return tensor_file_error(f, "member '%s' claims %zu bytes, more than the archive can hold",
                             name, size);
  unz64_file_pos at;
  if (unzGetFilePos64(zip, &at) != UNZ_OK)
    return tensor_file_error(f, "the archive's directory is damaged");
  s->directory_at = at.pos_in_zip_directory;
  s->number = at.num_of_file;
  return true;
}

/* Reads the member's header, the elements not. */
static bool read_header(TensorFile *f, unzFile zip, char *name, size_t size, TensorSource *s) {
  uint8_t start[NPY_PREFIX] = {0};
  size_t first = size < sizeof start ? size : sizeof start;
  if (s->member)
    memcpy(start, s->member, first);
  else if (!inflate_next(zip, start, first))
    return cannot_inflate(f, name);
  if (!npy_is(start, size)) return tensor_file_error(f, "member '%s' is not a .npy array", name);
  name[strlen(name) - strlen(".npy")] = 0;
  s->skip = npy_header_size(f, name, start, size);
  if (!s->skip || s->member) return s->skip && npy_read(f, name, s->member, size, s);
  uint8_t *header = mem_alloc(s->skip + sizeof start);
  memcpy(header, start, first);
  bool ok = s->skip <= first || inflate_next(zip, header + first, s->skip - first);
  ok = ok ? npy_read(f, name, header, size, s) : cannot_inflate(f, name);
  mem_free(header);
  return ok;
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
  TensorSource s = {0};
  bool ok = info.compression_method == STORED ? find_stored(f, zip, &info, name, &s)
                                              : find_deflated(f, zip, &info, name, &s);
  ok = ok && read_header(f, zip, name, info.uncompressed_size, &s);
  unzCloseCurrentFile(zip);
  return ok;
}

bool npz_read(TensorFile *f) {
  Stream stream;
  unzFile zip = zip_open(f, &stream);
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
