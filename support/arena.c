/* Memory: the checked malloc family and bump arenas. The only file that calls malloc. */
#include "support/support.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void (*exhausted)(size_t bytes); /* of the process, as memory is */

void mem_set_exhausted(void (*handler)(size_t bytes)) {
  exhausted = handler;
}

void mem_exhausted(size_t bytes) {
  if (exhausted) exhausted(bytes);
  fprintf(stderr, "npucc: out of memory (asked for %zu bytes)\n", bytes);
  abort();
}

/* More than all the memory of the machine: the system might promise it, and end the process when it
 * is used. */
static bool too_much(size_t bytes) {
  if (bytes < (size_t)1 << 30) return false;
  long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
  return pages > 0 && size > 0 && bytes / (size_t)size >= (size_t)pages;
}

void *mem_try_alloc(size_t bytes) {
  return too_much(bytes) ? NULL : calloc(1, bytes ? bytes : 1);
}

void *mem_alloc(size_t bytes) {
  void *p = mem_try_alloc(bytes);
  if (!p) mem_exhausted(bytes);
  return p;
}

void *mem_realloc(void *p, size_t bytes) {
  void *q = too_much(bytes) ? NULL : realloc(p, bytes ? bytes : 1);
  if (!q) mem_exhausted(bytes);
  return q;
}

void mem_free(void *p) {
  free(p);
}

enum { ARENA_ALIGN = 16, ARENA_FIRST = 16 << 10, ARENA_LARGEST = 4 << 20, LARGE_PAGE = 2 << 20 };

typedef struct ArenaBlock {
  struct ArenaBlock *next;
  size_t cap, used;
  size_t dirty; /* bytes before this offset may hold old contents */
} ArenaBlock;

/* The payload starts behind the header, at a multiple of ARENA_ALIGN. */
enum { ARENA_HEADER = (sizeof(ArenaBlock) + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN };

struct Arena {
  ArenaBlock *first, *current;
  size_t next_cap, bytes;
};

Arena *arena_new(void) {
  Arena *a = mem_alloc(sizeof *a);
  a->next_cap = ARENA_FIRST;
  return a;
}

void arena_free(Arena *a) {
  if (!a) return;
  for (ArenaBlock *b = a->first, *next; b; b = next) {
    next = b->next;
    mem_free(b);
  }
  mem_free(a);
}

void arena_reset(Arena *a) {
  for (ArenaBlock *b = a->first; b; b = b->next) {
    if (b->used > b->dirty) b->dirty = b->used;
    b->used = 0;
  }
  a->current = a->first;
  a->bytes = 0;
}

/* Asks for large pages under a large block: page by page, touching the data of a big weight takes
 * as long as computing it. Advice only. */
static void want_large_pages(void *block, size_t bytes) {
  uintptr_t begin = ((uintptr_t)block + LARGE_PAGE - 1) / LARGE_PAGE * LARGE_PAGE;
  uintptr_t end = ((uintptr_t)block + bytes) / LARGE_PAGE * LARGE_PAGE;
  if (begin < end) madvise((void *)begin, end - begin, MADV_HUGEPAGE);
}

/* Makes a block with room for bytes current: a kept one after a reset, else a new one. NULL without
 * memory. */
static ArenaBlock *block_with_room(Arena *a, size_t bytes) {
  while (a->current && a->current->next) {
    a->current = a->current->next;
    if (a->current->cap >= bytes) return a->current;
  }
  size_t cap = a->next_cap > bytes ? a->next_cap : bytes;
  /* calloc: large blocks come as fresh zero pages, which cost nothing until touched. */
  ArenaBlock *b = mem_try_alloc(ARENA_HEADER + cap);
  if (!b) return NULL;
  if (a->next_cap < ARENA_LARGEST) a->next_cap *= 2;
  b->cap = cap;
  if (cap > ARENA_LARGEST) want_large_pages(b, ARENA_HEADER + cap);
  if (a->current)
    a->current->next = b;
  else
    a->first = b;
  a->current = b;
  return b;
}

void *arena_alloc(Arena *a, size_t bytes) {
  void *p = arena_try_alloc(a, bytes);
  if (!p) mem_exhausted(bytes);
  return p;
}

void *arena_try_alloc(Arena *a, size_t bytes) {
  if (bytes > SIZE_MAX / 2) return NULL;
  size_t need = (bytes + ARENA_ALIGN - 1) / ARENA_ALIGN * ARENA_ALIGN;
  if (need == 0) need = ARENA_ALIGN;
  ArenaBlock *b = a->current;
  if (!b || b->cap - b->used < need) b = block_with_room(a, need);
  if (!b) return NULL;
  char *p = (char *)b + ARENA_HEADER + b->used;
  if (b->used < b->dirty) {
    size_t old = b->dirty - b->used;
    memset(p, 0, old < need ? old : need);
  }
  b->used += need;
  a->bytes += need;
  return p;
}

void *arena_copy(Arena *a, const void *src, size_t bytes) {
  void *p = arena_alloc(a, bytes);
  if (bytes) memcpy(p, src, bytes);
  return p;
}

char *arena_strndup(Arena *a, const char *s, size_t len) {
  char *p = arena_alloc(a, len + 1);
  if (len) memcpy(p, s, len);
  return p;
}

char *arena_strdup(Arena *a, const char *s) {
  return arena_strndup(a, s, strlen(s));
}

char *arena_printf(Arena *a, const char *fmt, ...) {
  va_list ap, again;
  va_start(ap, fmt);
  va_copy(again, ap);
  int len = vsnprintf(NULL, 0, fmt, ap);
  va_end(ap);
  char *p = arena_alloc(a, (size_t)(len < 0 ? 0 : len) + 1);
  if (len > 0) vsnprintf(p, (size_t)len + 1, fmt, again);
  va_end(again);
  return p;
}

size_t arena_bytes(const Arena *a) {
  return a->bytes;
}
