/* support: arenas, interned strings, diagnostics, string building, files, numbers.
 * The ground floor: knows nothing about neural networks and includes only libc. */
#ifndef NPU_SUPPORT_H
#define NPU_SUPPORT_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Around a header's declarations: C++ programs link what C compiled. */
#ifdef __cplusplus
#define NPU_C_BEGIN extern "C" {
#define NPU_C_END }
#else
#define NPU_C_BEGIN
#define NPU_C_END
#endif
NPU_C_BEGIN

#define NPU_PRINTF(fmt, args) __attribute__((format(printf, fmt, args)))
#define NPU_COUNTOF(a) (sizeof(a) / sizeof((a)[0]))

/* ---- memory ------------------------------------------------------------------------------- */

/* malloc family that does not return on exhaustion (see mem_exhausted); the only allocator outside
 * arenas. Every block returned is released with mem_free. */
void *mem_alloc(size_t bytes); /* zeroed */
void *mem_realloc(void *p, size_t bytes);
/* For sizes that users control: zeroed, or NULL when there is not that much memory. */
void *mem_try_alloc(size_t bytes);
void mem_free(void *p);
/* Where there is no memory left: a message and abort, or what a program has set instead (never a
 * library); that does not return. bytes: what was asked for. */
__attribute__((noreturn)) void mem_exhausted(size_t bytes);
void mem_set_exhausted(void (*handler)(size_t bytes));

/* Bump allocator. Everything allocated from an arena lives until the arena is reset or freed. */
typedef struct Arena Arena;
Arena *arena_new(void);
void arena_free(Arena *a);                     /* NULL is fine */
void arena_reset(Arena *a);                    /* forget all, keep the memory */
void *arena_alloc(Arena *a, size_t bytes);     /* zeroed, aligned to 16 */
void *arena_try_alloc(Arena *a, size_t bytes); /* NULL when there is not that much memory */
void *arena_copy(Arena *a, const void *src, size_t bytes);
char *arena_strdup(Arena *a, const char *s);
char *arena_strndup(Arena *a, const char *s, size_t len);
char *arena_printf(Arena *a, const char *fmt, ...) NPU_PRINTF(2, 3);
size_t arena_bytes(const Arena *a); /* bytes handed out so far */
#define ARENA_NEW(a, T) ((T *)arena_alloc((a), sizeof(T)))
#define ARENA_ARRAY(a, T, n) ((T *)arena_alloc((a), sizeof(T) * (size_t)(n)))

/* Interned strings: equal strings from one table are the same pointer. */
typedef struct StrTable StrTable;
StrTable *str_table_new(void);
void str_table_free(StrTable *t);
const char *str_intern(StrTable *t, const char *s);
const char *str_intern_n(StrTable *t, const char *s, size_t len);

/* ---- growing strings ------------------------------------------------------------------------ */

typedef struct {
  char *data; /* always NUL-terminated once something was written; NULL before */
  size_t len, cap;
} StrBuf;
void strbuf_free(StrBuf *b);
void strbuf_putc(StrBuf *b, char c);
void strbuf_puts(StrBuf *b, const char *s);
void strbuf_write(StrBuf *b, const void *bytes, size_t len);
void strbuf_printf(StrBuf *b, const char *fmt, ...) NPU_PRINTF(2, 3);
void strbuf_vprintf(StrBuf *b, const char *fmt, va_list ap);
/* Writes s as a double-quoted literal with \" \\ \n \t \xHH escapes. */
void strbuf_quote(StrBuf *b, const char *s);
/* Shortest text that reads back to exactly the same float, always recognisable as a real
 * ("1.0", "0x1.8p-6", "inf", "-inf", "nan"). */
void strbuf_float(StrBuf *b, float f);
void strbuf_double(StrBuf *b, double d);

/* Edit distance (Damerau-Levenshtein, adjacent swaps count once) for "did you mean". */
unsigned str_distance(const char *a, const char *b);
/* The nearest candidate to word, at most a third of the longer one away, or NULL. */
const char *str_nearest(const char *word, const char *const *candidates, size_t n);
bool str_ends_with(const char *s, const char *suffix);

/* ---- source places and diagnostics ----------------------------------------------------------- */

/* A place in a source text; line and col count from 1, line 0 means "no place". end_col is one past
 * the last column of the range (0: unknown). file is interned or outlives the user. */
typedef struct {
  const char *file;
  uint32_t line, col;
  uint32_t end_line, end_col;
} SrcLoc;
#define SRC_LOC_NONE ((SrcLoc){0})

typedef enum { DIAG_NOTE, DIAG_WARNING, DIAG_ERROR } DiagSeverity;

typedef struct {
  DiagSeverity severity;
  SrcLoc loc;
  const char *code;    /* stable, e.g. "E-shape"; NULL on notes */
  const char *message; /* one line: what was expected, what was found, and the way out */
} Diag;

/* Collects diagnostics; prints nothing by itself. A note belongs to the error or warning before it.
 */
typedef struct DiagEngine DiagEngine;
DiagEngine *diag_new(void);
void diag_free(DiagEngine *d);
/* Registers text so that carets can be shown; both are copied. */
void diag_add_source(DiagEngine *d, const char *file, const char *text, size_t len);
void diag_error(DiagEngine *d, SrcLoc loc, const char *code, const char *fmt, ...) NPU_PRINTF(4, 5);
void diag_warning(DiagEngine *d, SrcLoc loc, const char *code, const char *fmt, ...)
    NPU_PRINTF(4, 5);
void diag_note(DiagEngine *d, SrcLoc loc, const char *fmt, ...) NPU_PRINTF(3, 4);
void diag_report(DiagEngine *d, DiagSeverity s, SrcLoc loc, const char *code, const char *fmt,
                 va_list ap);
size_t diag_count(const DiagEngine *d);
const Diag *diag_get(const DiagEngine *d, size_t i);
unsigned diag_errors(const DiagEngine *d);
/* Called for every diagnostic as it is reported (a tool's live printing); user is passed through.
 */
void diag_set_sink(DiagEngine *d, void (*sink)(void *user, const DiagEngine *d, const Diag *diag),
                   void *user);
/* "file:3:14: error: message [E-shape]", then the source line and a caret range when known. */
void diag_format(const DiagEngine *d, const Diag *diag, bool color, StrBuf *out);
void diag_print_all(const DiagEngine *d, FILE *out, bool color);

/* ---- files ---- */

/* A read-only memory mapping of a whole file. On failure returns false and *why is a static or
 * strerror text. An empty file maps to data="" and size 0. */
typedef struct {
  const uint8_t *data;
  size_t size;
  void *base; /* private */
} FileMap;
/* A file that is cut short while it is mapped raises SIGBUS where it is read (the commands report
 * it). */
bool file_map(const char *path, FileMap *out, const char **why);
void file_unmap(FileMap *m);
/* Writes to a temporary beside path and renames it over path, so path is never half-written, not
 * even by a process that is killed.
 * path "-" writes to standard output. */
bool file_write_atomic(const char *path, const void *data, size_t size, const char **why);
/* An atomic write in pieces: begin opens the temporary; commit renames; abort removes it. */
typedef struct AtomicFile AtomicFile;
AtomicFile *atomic_file_begin(const char *path, const char **why);
FILE *atomic_file_stream(AtomicFile *f);
const char *atomic_file_error(const AtomicFile *f);       /* why a write to the stream failed */
bool atomic_file_commit(AtomicFile *f, const char **why); /* frees f in any case */
void atomic_file_abort(AtomicFile *f);
/* Whether a write to path can begin; nothing is left behind. */
bool file_can_write(const char *path, const char **why);
bool file_exists(const char *path);
/* What can be read but once: a pipe or socket, standard input ("-") included. */
bool file_is_pipe(const char *path);
/* Path of the file that is mapped at an address, NULL for other memory. For handlers of signals:
 * allocates nothing; the text is overwritten by the next call. */
char *file_mapped_at(const void *at);
/* Whether m is a mapping of a file, not a copy of what was read from one. */
bool file_is_mapped(const FileMap *m);
/* Directory part of path joined with name (name as it is when absolute). */
char *path_beside(Arena *a, const char *path, const char *name);
/* Absolute path without links and dots, the same for every way of naming a file; NULL when there is
 * none. */
char *path_real(Arena *a, const char *path);

/* What names of files become in results, so that these do not depend on where the files are: a name
 * that begins with `from` begins with `to`; of several maps that fit, the last counts (as GCC's
 * -ffile-prefix-map). */
typedef struct {
  const char *from, *to;
} PathMap;
typedef struct {
  const PathMap *items;
  size_t n;
} PathMaps;
void strbuf_mapped_path(StrBuf *b, const PathMaps *maps, const char *path); /* maps may be NULL */

/* ---- files of a command ---- */

/* What is read and written on behalf of a DiagEngine, so that no result overwrites what it is made
 * of. Commands ask for it; without it the functions below allow everything. */
typedef struct FileTrack FileTrack;
FileTrack *file_track_new(void);
void file_track_free(FileTrack *t);
void diag_track_files(DiagEngine *d); /* from here on */
/* Files of d count as outer's, which outlives it: for an engine that stands before another. */
void diag_track_with(DiagEngine *d, const DiagEngine *outer);
FileTrack *diag_track(const DiagEngine *d); /* NULL: not asked for; d may be NULL */
/* To be called before a file is read: false when it is one to be written; *why lives as long as d.
 */
bool diag_reads(DiagEngine *d, const char *path, const char **why);
/* file_map of a file so announced: how libraries read what users name. A pipe is read
 * once and what it gave kept as long as d, for whoever names it again. */
bool diag_map_file(DiagEngine *d, const char *path, FileMap *out, const char **why);
/* To be called for each file to be written, as soon as its name is known; `what` is the option that
 * names it ("--output") and outlives d. False after a diagnostic (E-file) when it is read, or
 * written by another option. Standard output, devices and pipes are always allowed. */
bool diag_writes(DiagEngine *d, const char *what, const char *path);

/* ---- numbers ---- */

float bf16_to_f32(uint16_t h);
uint16_t f32_to_bf16(float f); /* round to nearest even; NaN stays a quiet NaN */
float f16_to_f32(uint16_t h);
float f32_rne(float f); /* round to an integral value, ties to even, whatever the FP environment */
int32_t f32_to_s32_sat(float f); /* round half even, saturate; NaN gives 0 */
/* Checked arithmetic: false on overflow. */
bool mul_i64(int64_t a, int64_t b, int64_t *out);
bool add_i64(int64_t a, int64_t b, int64_t *out);
/* Whole-string parses; false on junk or range. */
bool parse_i64(const char *s, int64_t *out);
bool parse_f64(const char *s, double *out);
/* Greatest common divisor of two numbers of which neither is negative; of a and 0, a. */
static inline int64_t gcd_i64(int64_t a, int64_t b) {
  while (b) {
    int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}
/* Why parse_i64 or parse_f64 refused s: true when it is a number, but too large. */
bool number_too_large(const char *s, bool integer);
static inline int64_t ceil_div(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
static inline int64_t round_up(int64_t a, int64_t b) {
  return ceil_div(a, b) * b;
}

/* SplitMix64-seeded xoshiro256**: one generator for initializers, tests and random inputs. */
typedef struct {
  uint64_t s[4];
} Rng;
void rng_seed(Rng *r, uint64_t seed);
uint64_t rng_u64(Rng *r);
double rng_uniform(Rng *r); /* [0, 1) */
double rng_normal(Rng *r);  /* mean 0, standard deviation 1 (by the inverse of its distribution) */
void rng_normals(Rng *r, double *out, size_t n);   /* n of them, as rng_normal would draw them */
int64_t rng_range(Rng *r, int64_t lo, int64_t hi); /* lo <= x <= hi */

NPU_C_END
#endif
