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

enum { DEVICE_MAX = 1 << 26 }; /* bytes; /dev/zero never ends */

static bool read_stream(int fd, size_t most, FileMap *out, const char **why) {
  size_t len = 0, cap = 1 << 16;
  uint8_t *data = mem_alloc(cap);
  for (;;) {
    ssize_t n = read(fd, data + len, cap - len);
    if (n < 0 && errno == EINTR) continue;
    if (n == 0) break;
    if (n > 0) len += (size_t)n;
    if (n < 0 || len > most) {
      *why = n < 0 ? strerror(errno) : "The device gives data without end";
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
  if (strcmp(path, "-") == 0) return read_stream(STDIN_FILENO, SIZE_MAX, out, why);
  int fd = open(path, O_RDONLY | O_CLOEXEC);
  struct stat st;
  if (fd < 0 || fstat(fd, &st) != 0) {
    *why = strerror(errno);
    if (fd >= 0) close(fd);
    return false;
  }
  bool ok;
  if (S_ISDIR(st.st_mode)) {
    *why = strerror(EISDIR);
    ok = false;
  } else if (S_ISREG(st.st_mode)) {
    ok = map_regular(fd, (size_t)st.st_size, out, why);
  } else {
    bool device = S_ISCHR(st.st_mode) || S_ISBLK(st.st_mode);
    ok = read_stream(fd, device ? DEVICE_MAX : SIZE_MAX, out, why); /* these cannot be mapped */
  }
  close(fd);
  return ok;
}

void file_unmap(FileMap *m) {
  if (m->base && m->base == (const void *)m->data)
    munmap(m->base, m->size);
  else
    mem_free(m->base);
  *m = (FileMap){0};
}

/* ---- atomic writing ---- */

/* Regular targets: a temporary in the same directory, renamed at the end. Standard output, pipes
 * and devices, which cannot be renamed over: collected in memory and written at the end. */
struct AtomicFile {
  FILE *stream;
  char *target, *temporary; /* temporary NULL: in memory */
  char *text;               /* of the memory stream */
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

static bool open_temporary(AtomicFile *f, mode_t mode) {
  const char *slash = strrchr(f->target, '/');
  int dir = slash ? (int)(slash - f->target + 1) : 0;
  size_t cap = (size_t)dir + 64;
  f->temporary = mem_alloc(cap);
  for (int attempt = 0; attempt < 100; attempt++) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    snprintf(f->temporary, cap, "%.*s.npucc-%ld-%ld-%d.tmp", dir, f->target, (long)getpid(),
             now.tv_nsec, attempt);
    int fd = open(f->temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (fd >= 0) {
      f->stream = fdopen(fd, "wb");
      return f->stream != NULL;
    }
    if (errno != EEXIST) return false;
  }
  return false;
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
  ok = fclose(f->stream) == 0 && ok;
  if (ok) ok = f->temporary ? rename(f->temporary, f->target) == 0 : copy_to_target(f);
  if (!ok) *why = errno ? strerror(errno) : "write error";
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

bool file_exists(const char *path) {
  struct stat st;
  return stat(path, &st) == 0;
}

char *path_beside(Arena *a, const char *path, const char *name) {
  const char *slash = strrchr(path, '/');
  if (name[0] == '/' || !slash) return arena_strdup(a, name);
  return arena_printf(a, "%.*s%s", (int)(slash - path + 1), path, name);
}

char *path_real(Arena *a, const char *path) {
  char *real = realpath(path, NULL);
  char *copy = real ? arena_strdup(a, real) : NULL;
  free(real);
  return copy;
}
