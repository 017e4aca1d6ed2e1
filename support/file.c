/* Files: mapping whole files for reading, atomic replacement for writing. */
#include "support/support.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* FileMap.base: NULL for an empty file, equal to data for a mapping, else a heap block owning data.
 */

/* Bytes: /dev/zero never ends, nor need a pipe. */
static const size_t device_max = (size_t)1 << 26, pipe_max = (size_t)1 << 32;

static bool read_stream(int fd, const struct stat *st, FileMap *out, const char **why) {
  size_t most = S_ISCHR(st->st_mode) || S_ISBLK(st->st_mode) ? device_max : pipe_max;
  size_t len = 0, cap = 1 << 16;
  uint8_t *data = mem_alloc(cap);
  for (;;) {
    ssize_t n = read(fd, data + len, cap - len);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) break;
    if (n > 0) len += (size_t)n;
    if (n < 0 || len > most) {
      *why = n < 0 ? strerror(errno) : "It gives data without end";
      mem_free(data);
      return false;
    }
    if (len == cap) data = mem_realloc(data, cap *= 2);
  }
  /* One byte of distance marks the block as read, not mapped. */
  data = mem_realloc(data, len + 1);
  memmove(data + 1, data, len);
  *out = (FileMap){.data = data + 1, .size = len, .base = data};
  return true;
}

static bool map_regular(int fd, size_t size, FileMap *out, const char **why) {
  *out = (FileMap){.data = (const uint8_t *)"", .size = 0, .base = NULL};
  if (size == 0) return true;
  void *p = mmap(NULL, size, PROT_READ, MAP_PRIVATE, fd, 0);
  if (p == MAP_FAILED) {
    *why = strerror(errno);
    return false;
  }
  *out = (FileMap){.data = p, .size = size, .base = p};
  return true;
}

bool file_map(const char *path, FileMap *out, const char **why) {
  *out = (FileMap){0};
  struct stat st;
  bool standard = strcmp(path, "-") == 0;
  int fd = standard ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3) : open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) != 0) {
    *why = strerror(errno);
    if (fd >= 0) close(fd);
    return false;
  }
  bool ok;
  if (S_ISDIR(st.st_mode)) {
    *why = strerror(EISDIR);
    ok = false;
  } else if (S_ISREG(st.st_mode) && !standard) {
    ok = map_regular(fd, (size_t)st.st_size, out, why);
  } else {
    ok = read_stream(fd, &st, out, why); /* cannot be mapped, or is read from where it stands */
  }
  close(fd);
  return ok;
}

bool file_is_mapped(const FileMap *m) {
  return m->base && m->base == (const void *)m->data;
}

void file_unmap(FileMap *m) {
  if (file_is_mapped(m))
    munmap(m->base, m->size);
  else
    mem_free(m->base);
  *m = (FileMap){0};
}

/* Whether a line of /proc/self/maps is of the mapping that holds `at`: "begin-end perms ... path".
 */
static bool holds(const char *line, uintptr_t at) {
  char *end;
  uintptr_t begin = strtoull(line, &end, 16);
  return *end == '-' && at >= begin && at < strtoull(end + 1, NULL, 16);
}

/* The text of /proc/self/maps, as much as there is room for. Usable in a handler of signals. */
static char *memory_maps(void) {
  static char text[1 << 16];
  size_t len = 0;
  int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  for (ssize_t n = 1; fd >= 0 && n > 0 && len + 1 < sizeof text; len += n > 0 ? (size_t)n : 0)
    n = read(fd, text + len, sizeof text - 1 - len);
  text[len] = 0;
  return text;
}

char *file_mapped_at(const void *at) {
  for (char *line = memory_maps(), *next; *line; line = next) {
    next = line + strcspn(line, "\n");
    if (*next) *next++ = 0;
    char *path = strchr(line, '/');
    if (path && holds(line, (uintptr_t)at)) return path;
  }
  return NULL;
}

/* ---- atomic writing ---- */

/* Regular targets: a temporary in the same directory, renamed at the end; where the file system
 * can, it has no name until then, so that a process that is killed leaves nothing behind. Standard
 * output, pipes and devices, which cannot be renamed over: collected in memory and written at the
 * end. */
struct AtomicFile {
  FILE *stream;
  char *target, *temporary; /* temporary NULL: in memory */
  bool unnamed;
  int fd, error; /* of the temporary; error: errno of the first write that failed */
  char *text;    /* of the memory stream */
  size_t len;
};

static void atomic_free(AtomicFile *f) {
  free(f->text); /* open_memstream's own block */
  mem_free(f->target);
  mem_free(f->temporary);
  mem_free(f);
}

static char *copy_text(const char *s) {
  size_t n = strlen(s) + 1;
  return memcpy(mem_alloc(n), s, n);
}

/* Where path leads when it is a symbolic link to something that exists; the link itself must
 * survive. */
static char *resolve(const char *path) {
  char *real = realpath(path, NULL);
  char *copy = copy_text(real ? real : path);
  free(real);
  return copy;
}

/* The folder's part of target, with its slash. */
static int folder_length(const char *target) {
  const char *slash = strrchr(target, '/');
  return slash ? (int)(slash - target + 1) : 0;
}

/* Calls make(f) with new names for the temporary until one is free. */
static int with_new_name(AtomicFile *f, int (*make)(const AtomicFile *f, mode_t mode),
                         mode_t mode) {
  int folder = folder_length(f->target), result = -1;
  size_t cap = (size_t)folder + 64;
  f->temporary = mem_alloc(cap);
  for (int attempt = 0; attempt < 100; attempt++) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(f->temporary, cap, "%.*s.npucc-%ld-%ld-%d.tmp", folder, f->target, (long)getpid(),
             now.tv_nsec, attempt);
    result = make(f, mode);
    if (result >= 0 || errno != EEXIST) break;
  }
  return result;
}

static int create_named(const AtomicFile *f, mode_t mode) {
  return open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
}

static int name_unnamed(const AtomicFile *f, mode_t mode) {
  (void)mode;
  char self[40];
  snprintf(self, sizeof self, "/proc/self/fd/%d", f->fd);
  return linkat(AT_FDCWD, self, AT_FDCWD, f->temporary, AT_SYMLINK_FOLLOW);
}

static int create_unnamed(const AtomicFile *f, mode_t mode) {
  if (access("/proc/self/fd", X_OK) != 0) return -1; /* it could not be named */
  char *folder = copy_text(f->target);
  folder[folder_length(f->target)] = 0;
  int fd = open(*folder ? folder : ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
  mem_free(folder);
  return fd;
}

/* The stream on the temporary: stdio forgets why a write failed before the stream is closed. */
static ssize_t stream_write(void *cookie, const char *data, size_t size) {
  AtomicFile *f = cookie;
  size_t done = 0;
  while (done < size) {
    ssize_t n = write(f->fd, data + done, size - done);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && !f->error) f->error = errno;
    if (n < 0) break;
    done += (size_t)n;
  }
  return (ssize_t)done; /* short: an error to stdio */
}

static int stream_seek(void *cookie, off64_t *offset, int whence) {
  AtomicFile *f = cookie;
  off_t at = lseek(f->fd, *offset, whence);
  if (at < 0) return -1;
  *offset = at;
  return 0;
}

static int stream_close(void *cookie) {
  AtomicFile *f = cookie;
  int failed = close(f->fd);
  if (failed && !f->error) f->error = errno;
  return failed;
}

static bool open_temporary(AtomicFile *f, mode_t mode) {
  int fd = create_unnamed(f, mode);
  f->unnamed = fd >= 0;
  if (fd < 0) fd = with_new_name(f, create_named, mode);
  if (fd < 0) return false;
  f->fd = fd;
  f->stream =
      fopencookie(f, "wb", (cookie_io_functions_t){NULL, stream_write, stream_seek, stream_close});
  return f->stream != NULL;
}

AtomicFile *atomic_file_begin(const char *path, const char **why) {
  AtomicFile *f = mem_alloc(sizeof *f);
  struct stat st;
  bool standard = strcmp(path, "-") == 0;
  bool exists = !standard && stat(path, &st) == 0;
  bool opened;
  f->target = standard ? copy_text(path) : resolve(path);
  if (exists && S_ISDIR(st.st_mode)) {
    errno = EISDIR;
    opened = false;
  } else if (standard || (exists && !S_ISREG(st.st_mode))) {
    f->stream = open_memstream(&f->text, &f->len);
    opened = f->stream != NULL;
  } else if (exists && access(path, W_OK) != 0) {
    opened = false; /* a rename would replace a file its owner protected */
  } else {
    opened = open_temporary(f, exists ? st.st_mode & 0777 : 0666);
  }
  if (opened) return f;
  *why = strerror(errno);
  atomic_free(f);
  return NULL;
}

FILE *atomic_file_stream(AtomicFile *f) {
  return f->stream;
}

const char *atomic_file_error(const AtomicFile *f) {
  return strerror(f->error ? f->error : errno ? errno : EIO);
}

static bool copy_to_target(const AtomicFile *f) {
  bool standard = strcmp(f->target, "-") == 0;
  FILE *out = standard ? stdout : fopen(f->target, "wb");
  if (!out) return false;
  bool ok = fwrite(f->text, 1, f->len, out) == f->len;
  ok = (standard ? fflush(out) : fclose(out)) == 0 && ok;
  return ok;
}

bool atomic_file_commit(AtomicFile *f, const char **why) {
  errno = 0;
  bool ok = !ferror(f->stream);
  if (f->unnamed) ok = fflush(f->stream) == 0 && ok && with_new_name(f, name_unnamed, 0) == 0;
  ok = fclose(f->stream) == 0 && ok;
  if (ok) ok = f->temporary ? rename(f->temporary, f->target) == 0 : copy_to_target(f);
  if (!ok) *why = atomic_file_error(f);
  if (!ok && f->temporary) unlink(f->temporary);
  atomic_free(f);
  return ok;
}

void atomic_file_abort(AtomicFile *f) {
  if (!f) return;
  fclose(f->stream);
  if (f->temporary) unlink(f->temporary);
  atomic_free(f);
}

bool file_write_atomic(const char *path, const void *data, size_t size, const char **why) {
  AtomicFile *f = atomic_file_begin(path, why);
  if (!f) return false;
  if (size) fwrite(data, 1, size, f->stream); /* a short write shows in ferror at commit */
  return atomic_file_commit(f, why);
}

bool file_can_write(const char *path, const char **why) {
  AtomicFile *f = atomic_file_begin(path, why);
  atomic_file_abort(f);
  return f != NULL;
}

bool file_is_pipe(const char *path) {
  struct stat st;
  if ((strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, &st) : stat(path, &st)) != 0) return false;
  return S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode);
}

bool file_exists(const char *path) {
  struct stat st;
  return stat(path, &st) == 0;
}

char *path_beside(Arena *a, const char *path, const char *name) {
  const char *slash = strrchr(path, '/');
  if (name[0] == '/' || !slash) return arena_strdup(a, name);
  return arena_printf(a, "%.*s%s", (int)(slash - path + 1), path, name);
}

void strbuf_mapped_path(StrBuf *b, const PathMaps *maps, const char *path) {
  for (size_t i = maps ? maps->n : 0; i-- > 0;) {
    size_t len = strlen(maps->items[i].from);
    if (strncmp(path, maps->items[i].from, len) != 0) continue;
    strbuf_puts(b, maps->items[i].to);
    path += len;
    break;
  }
  strbuf_puts(b, path);
}

char *path_real(Arena *a, const char *path) {
  char *real = realpath(path, NULL);
  char *copy = real ? arena_strdup(a, real) : NULL;
  free(real);
  return copy;
}
