/* Which files a command reads and which it writes: the same file in both, or twice in the second,
 * is an error before anything is lost. Files are compared by device and inode, so that links and
 * other spellings of a path make no difference. */
#include "support/support.h"

#include <string.h>
#include <sys/stat.h>

/* A file that exists, or, with a name, one to be made in the folder that dev and ino are of. */
typedef struct {
  dev_t dev;
  ino_t ino;
  const char *name;
} FileId;

typedef struct {
  FileId id;
  const char *path, *what; /* what: the option that writes it; NULL: it is read */
} Tracked;

typedef struct {
  FileId id;
  FileMap all;
} ReadPipe;

struct FileTrack {
  Arena *arena;
  Tracked *files;
  size_t n;
  ReadPipe *pipes;
  size_t npipes;
};

FileTrack *file_track_new(void) {
  FileTrack *t = mem_alloc(sizeof *t);
  t->arena = arena_new();
  return t;
}

void file_track_free(FileTrack *t) {
  if (!t) return;
  arena_free(t->arena);
  mem_free(t->files);
  for (size_t i = 0; i < t->npipes; i++) file_unmap(&t->pipes[i].all);
  mem_free(t->pipes);
  mem_free(t);
}

/* False for what cannot be overwritten: standard streams, devices, pipes, folders there are not. */
static bool identify(Arena *a, const char *path, FileId *out) {
  struct stat st;
  if (strcmp(path, "-") == 0) return false;
  if (stat(path, &st) == 0) {
    *out = (FileId){st.st_dev, st.st_ino, NULL};
    return S_ISREG(st.st_mode);
  }
  const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
  const char *folder = slash ? arena_strndup(a, path, (size_t)(slash - path + 1)) : ".";
  if (stat(folder, &st) != 0) return false;
  *out = (FileId){st.st_dev, st.st_ino, arena_strdup(a, name)};
  return true;
}

static bool same_file(const FileId *a, const FileId *b) {
  return a->dev == b->dev && a->ino == b->ino && !a->name == !b->name &&
         (!a->name || strcmp(a->name, b->name) == 0);
}

/* The option as a subject: "--output './x'". */
static const char *overwrites(FileTrack *t, const Tracked *output, const char *read_as) {
  const char *as =
      strcmp(output->path, read_as) == 0 ? "" : arena_printf(t->arena, ", '%s'", read_as);
  return arena_printf(t->arena, "%s '%s' would overwrite the file that is read%s; give another",
                      output->what, output->path, as);
}

static const char *conflict(FileTrack *t, const Tracked *old, const Tracked *added) {
  if (old->what && added->what)
    return arena_printf(t->arena, "%s '%s' and %s '%s' are one file; give two", old->what,
                        old->path, added->what, added->path);
  return added->what ? overwrites(t, added, old->path) : overwrites(t, old, added->path);
}

/* What stands against adding the file; NULL when it was added. */
static const char *track(FileTrack *t, const char *path, const char *what) {
  Tracked added = {.path = arena_strdup(t->arena, path), .what = what};
  if (!identify(t->arena, path, &added.id)) return NULL;
  for (size_t i = 0; i < t->n; i++)
    if ((t->files[i].what || what) && same_file(&t->files[i].id, &added.id))
      return conflict(t, &t->files[i], &added);
  t->files = mem_realloc(t->files, (t->n + 1) * sizeof *t->files);
  t->files[t->n++] = added;
  return NULL;
}

bool diag_reads(DiagEngine *d, const char *path, const char **why) {
  FileTrack *t = diag_track(d);
  return !t || !(*why = track(t, path, NULL));
}

bool diag_writes(DiagEngine *d, const char *what, const char *path) {
  FileTrack *t = diag_track(d);
  const char *problem = t ? track(t, path, what) : NULL;
  if (problem) diag_error(d, SRC_LOC_NONE, "E-file", "%s", problem);
  return !problem;
}

/* What came out of a pipe, which gives it but once; lives as long as the track. */
static bool map_pipe(FileTrack *t, const char *path, FileMap *out, const char **why) {
  struct stat st = {0};
  if ((strcmp(path, "-") == 0 ? fstat(0, &st) : stat(path, &st)) != 0) return false;
  FileId id = {st.st_dev, st.st_ino, NULL};
  size_t i = 0;
  while (i < t->npipes && !same_file(&t->pipes[i].id, &id)) i++;
  if (i == t->npipes) {
    FileMap all;
    if (!file_map(path, &all, why)) return false;
    t->pipes = mem_realloc(t->pipes, (t->npipes + 1) * sizeof *t->pipes);
    t->pipes[t->npipes++] = (ReadPipe){id, all};
  }
  *out = (FileMap){.data = t->pipes[i].all.data, .size = t->pipes[i].all.size};
  return true;
}

bool diag_map_file(DiagEngine *d, const char *path, FileMap *out, const char **why) {
  FileTrack *t = diag_track(d);
  *out = (FileMap){0};
  if (!diag_reads(d, path, why)) return false;
  return t && file_is_pipe(path) ? map_pipe(t, path, out, why) : file_map(path, out, why);
}
