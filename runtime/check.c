/* Check mode: races by happens-before, reads of bytes nobody wrote, accumulator overflow.
 *
 * Every engine has a clock that counts its instructions, and a vector clock of what it knows to be
 * finished elsewhere. Knowledge travels with issue (sequencer to engine), with semaphore tokens (a
 * token carries the giver's knowledge; tokens are taken first in, first out), with planes and the
 * room they leave in the FIFO, and with fences. Two accesses of which one writes are a race when
 * neither is known to the other's engine when it starts. An engine's own instructions are in order,
 * except that a load queue does not know its own data to have arrived: see engine_knows. After
 * Lamport 1978 and the vector-clock detectors (Djit+, Pozniansky and Schuster 2003). */
#include "runtime/runtime_internal.h"
#include "runtime/shadow.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
  uint32_t pc, clock;
  uint8_t engine;
} Instance;

typedef struct {
  VClock clock;
  uint64_t count;
} Token;
typedef struct {
  Token *ring;
  uint32_t head, count, cap;
} TokenQueue;

typedef struct {
  uint32_t pc_a, pc_b;
  uint8_t kind;
} Finding;
enum { FIND_RACE, FIND_UNINIT, FIND_OVERFLOW };

typedef struct {
  size_t lo, hi;
} Range;

struct Check {
  NpurtModel *m;
  Shadow written[RT_SPACES], read[RT_SPACES][ENGINE_COUNT];
  VClock know[ENGINE_COUNT]; /* finished instructions each engine knows of */
  uint32_t clock[ENGINE_COUNT];
  TokenQueue sem[ISA_SEMS];
  TokenQueue planes, room; /* of the plane FIFO */
  Instance *instances;     /* by access number; 0 is nobody */
  uint32_t ninstances, cap;
  uint32_t now; /* access number of the instruction begun last */
  Finding found[RT_MAX_FINDINGS];
  unsigned nfound, errors;
  Range *loaded; /* DRAM bytes that hold something at start, sorted, disjoint */
  size_t nloaded;
  int32_t *sums; /* accumulators before a multiply; a lazy mapping, only its rows are touched */
};

unsigned check_findings(const Check *c) {
  return c->errors;
}

/* ---- clocks ---- */

static void join(VClock *into, const VClock *from) {
  for (int e = 0; e < ENGINE_COUNT; e++)
    if (from->at[e] > into->at[e]) into->at[e] = from->at[e];
}

static void queue_push(TokenQueue *q, const VClock *clock, uint64_t count) {
  if (q->count == q->cap) {
    uint32_t cap = q->cap ? 2 * q->cap : 4;
    Token *ring = mem_alloc(cap * sizeof *ring);
    for (uint32_t i = 0; i < q->count; i++) ring[i] = q->ring[(q->head + i) % q->cap];
    mem_free(q->ring);
    *q = (TokenQueue){.ring = ring, .count = q->count, .cap = cap};
  }
  q->ring[(q->head + q->count++) % q->cap] = (Token){*clock, count};
}

static void queue_pop(TokenQueue *q, uint64_t count, VClock *into) {
  while (count && q->count) {
    Token *t = &q->ring[q->head];
    uint64_t n = t->count < count ? t->count : count;
    join(into, &t->clock);
    t->count -= n;
    count -= n;
    if (t->count) continue;
    q->head = (q->head + 1) % q->cap;
    q->count--;
  }
}

VClock check_issue(const Check *c) {
  return c->know[ENGINE_SEQ];
}
void check_join_issue(Check *c, IsaEngine e, const VClock *issued) {
  join(&c->know[e], issued);
}

void check_take(Check *c, IsaEngine e, const IsaSemRef *take) {
  for (int i = 0; i < 2; i++) queue_pop(&c->sem[take[i].sem], take[i].count, &c->know[e]);
}

void check_give(Check *c, const IsaSemRef *give, const VClock *clock) {
  for (int i = 0; i < 2; i++)
    if (give[i].count) queue_push(&c->sem[give[i].sem], clock, give[i].count);
}

/* Order at the FIFO: a load knows the multiply that made room for it to have started. */
void check_plane_load(Check *c) {
  queue_pop(&c->room, 1, &c->know[ENGINE_MXW]);
}

void check_plane_pop(Check *c) {
  queue_push(&c->room, &c->know[ENGINE_MXM], 1);
  queue_pop(&c->planes, 1, &c->know[ENGINE_MXM]);
}

VClock check_end_clock(const Check *c, IsaEngine e) {
  VClock k = c->know[e];
  k.at[e] = c->clock[e];
  return k;
}

void check_fence(Check *c) {
  for (int e = 0; e < ENGINE_COUNT; e++) {
    VClock k = check_end_clock(c, (IsaEngine)e);
    join(&c->know[ENGINE_SEQ], &k);
  }
}

static bool is_load(unsigned e) {
  return e == ENGINE_LD0 || e == ENGINE_LD1;
}

bool check_begin(Check *c, IsaEngine e, uint32_t pc) {
  if (c->ninstances == SHADOW_SPLIT - 1)
    return rt_trap(c->m, "E-limit", "check mode follows at most %u engine instructions of a run",
                   SHADOW_SPLIT - 1);
  if (c->ninstances >= c->cap) {
    c->cap = c->cap ? 2 * c->cap : 1024;
    c->instances = mem_realloc(c->instances, (size_t)c->cap * sizeof *c->instances);
  }
  c->now = c->ninstances++;
  c->instances[c->now] = (Instance){.pc = pc, .clock = ++c->clock[e], .engine = (uint8_t)e};
  if (!is_load(e)) c->know[e].at[e] = c->clock[e];
  const IsaInsnKind k = c->m->insns[pc].kind;
  if (rt_is_plane_load(k)) {
    VClock done = check_end_clock(c, e);
    queue_push(&c->planes, &done, 1);
  }
  return true;
}

/* ---- findings ---- */

static bool new_finding(Check *c, uint8_t kind, uint32_t a, uint32_t b) {
  for (unsigned i = 0; i < c->nfound; i++)
    if (c->found[i].kind == kind && c->found[i].pc_a == a && c->found[i].pc_b == b) return false;
  if (c->nfound == RT_MAX_FINDINGS) return false;
  c->found[c->nfound++] = (Finding){a, b, kind};
  if (kind != FIND_OVERFLOW) c->errors++;
  return true;
}

static void print_range(RtSpace space, size_t lo, size_t hi, StrBuf *b) {
  if (space == RT_ACC)
    strbuf_printf(b, "accumulator words %zu..%zu", lo / 4, (hi - 1) / 4);
  else
    strbuf_printf(b, "%s bytes %zu..%zu", space == RT_SPM ? "scratchpad" : "DRAM", lo, hi - 1);
}

typedef struct {
  Check *c;
  RtSpace space;
  bool write, other_write;
} Visit;

static void report_race(const Visit *v, size_t lo, size_t hi, const Instance *other) {
  NpurtModel *m = v->c->m;
  const Instance *me = &v->c->instances[v->c->now];
  if (!new_finding(v->c, FIND_RACE, other->pc, me->pc)) return;
  StrBuf b = {0};
  rt_describe(m, me->pc, &b);
  strbuf_printf(&b, " %s ", v->write ? "writes" : "reads");
  print_range(v->space, lo, hi, &b);
  strbuf_printf(&b, ", which %s's ", isa_engine_name((IsaEngine)other->engine));
  rt_describe(m, other->pc, &b);
  strbuf_printf(&b, " %s; no semaphore, plane or fence orders the two",
                v->other_write ? "writes" : "reads");
  diag_error(m->diag, rt_loc(m, me->pc), "E-race", "race: %s", b.data);
  diag_note(m->diag, rt_loc(m, other->pc), "the other instruction is pc %u", other->pc);
  strbuf_free(&b);
}

/* Whether the instruction begun last knows `other` to be finished. An engine runs its instructions
 * in order; but a load queue starts the next transfer before the data of the one before has
 * arrived, so reading its own data (an index list) needs a token like anybody else's. */
static bool knows(const Check *c, const Instance *other, bool reads_written) {
  unsigned e = c->instances[c->now].engine;
  if (other->engine == e && !(is_load(e) && reads_written)) return true;
  return c->know[e].at[other->engine] >= other->clock;
}

static size_t loaded_end(const Check *c, size_t lo, size_t hi, size_t *start);

static void report_uninit(const Visit *v, size_t lo, size_t hi) {
  NpurtModel *m = v->c->m;
  uint32_t pc = v->c->instances[v->c->now].pc;
  if (v->space == RT_DRAM) { /* what the image and the host put there is initialised */
    size_t start = lo, end = loaded_end(v->c, lo, hi, &start);
    while (start <= lo && end > lo) {
      lo = end;
      if (lo >= hi) return;
      start = lo;
      end = loaded_end(v->c, lo, hi, &start);
    }
    if (start < hi && start > lo) hi = start;
  }
  if (!new_finding(v->c, FIND_UNINIT, pc, (uint32_t)v->space)) return;
  StrBuf b = {0};
  rt_describe(m, pc, &b);
  strbuf_puts(&b, " reads ");
  print_range(v->space, lo, hi, &b);
  strbuf_puts(&b, ", which nothing has written in this run");
  diag_error(m->diag, rt_loc(m, pc), "E-uninit", "uninitialised read: %s", b.data);
  strbuf_free(&b);
}

static void visit_run(void *user, size_t lo, size_t hi, uint32_t id) {
  Visit *v = user;
  if (id == 0) {
    if (!v->write && v->other_write) report_uninit(v, lo, hi);
    return;
  }
  if (id == v->c->now) return;
  const Instance *other = &v->c->instances[id];
  if (!knows(v->c, other, !v->write && v->other_write)) report_race(v, lo, hi, other);
}

void check_access(Check *c, RtSpace space, int64_t addr, int64_t bytes, bool write) {
  Visit v = {.c = c, .space = space, .write = write, .other_write = true};
  size_t at = (size_t)addr, n = (size_t)bytes;
  if (n == 0) return;
  shadow_visit(&c->written[space], at, n, visit_run, &v);
  if (!write) {
    shadow_set(&c->read[space][c->instances[c->now].engine], at, n, c->now);
    return;
  }
  v.other_write = false;
  for (int e = 0; e < ENGINE_COUNT; e++)
    if (c->read[space][e].used) shadow_visit(&c->read[space][e], at, n, visit_run, &v);
  shadow_set(&c->written[space], at, n, c->now);
}

/* Calls visit for the first accumulator word of every row, until it says to stop. */
static void each_row(Check *c, const RowsView *v, int64_t n,
                     bool (*visit)(Check *, int64_t, int64_t)) {
  for (int64_t i = 0; i < v->m[0]; i++)
    for (int64_t j = 0; j < v->m[1]; j++)
      for (int64_t k = 0; k < v->m[2]; k++)
        if (!visit(c, v->acc + i * v->astride[0] + j * v->astride[1] + k * v->astride[2], n))
          return;
}

static bool row_save(Check *c, int64_t word, int64_t n) {
  memcpy(c->sums + word, c->m->dev.acc + 4 * word, (size_t)n * sizeof(int32_t));
  return true;
}

/* |sum of one plane| < 2^31, so a wrap shows as a change against the sign of the difference. */
static bool row_compare(Check *c, int64_t word, int64_t n) {
  NpurtModel *m = c->m;
  const int32_t *after = (const int32_t *)(const void *)m->dev.acc, *before = c->sums;
  uint32_t pc = c->instances[c->now].pc;
  for (int64_t x = word; x < word + n; x++) {
    int32_t delta = (int32_t)((uint32_t)after[x] - (uint32_t)before[x]);
    if ((delta >= 0) == (after[x] >= before[x])) continue;
    if (!new_finding(c, FIND_OVERFLOW, pc, 0)) return false;
    StrBuf b = {0};
    rt_describe(m, pc, &b);
    diag_warning(m->diag, rt_loc(m, pc), "W-overflow",
                 "%s: accumulator word %lld overflows 32 bits (%d plus %d wraps to %d)", b.data,
                 (long long)x, before[x], delta, after[x]);
    strbuf_free(&b);
    return false;
  }
  return true;
}

void check_sums_before(Check *c, const RowsView *v, int64_t n) {
  each_row(c, v, n, row_save);
}
void check_sums_after(Check *c, const RowsView *v, int64_t n) {
  each_row(c, v, n, row_compare);
}

/* ---- what DRAM holds at start ---- */

/* End of the loaded range that contains lo, or lo when none does; *start is where the next range
 * begins. */
static size_t loaded_end(const Check *c, size_t lo, size_t hi, size_t *start) {
  *start = hi;
  size_t a = 0, b = c->nloaded;
  while (a < b) { /* first range that ends beyond lo */
    size_t mid = (a + b) / 2;
    if (c->loaded[mid].hi > lo)
      b = mid;
    else
      a = mid + 1;
  }
  if (a == c->nloaded) return lo;
  *start = c->loaded[a].lo;
  return c->loaded[a].lo <= lo ? c->loaded[a].hi : lo;
}

static int range_order(const void *x, const void *y) {
  const Range *a = x, *b = y;
  return a->lo < b->lo ? -1 : a->lo > b->lo;
}

static void find_loaded(Check *c) {
  const IsaImage *img = &c->m->img;
  c->loaded = mem_alloc((img->nsegments + img->nio + 1) * sizeof *c->loaded);
  for (uint32_t i = 0; i < img->nsegments; i++)
    c->loaded[c->nloaded++] =
        (Range){img->segments[i].addr, img->segments[i].addr + img->segments[i].size};
  for (uint32_t i = 0; i < img->nio; i++)
    if (img->io[i].role != IO_OUTPUT)
      c->loaded[c->nloaded++] =
          (Range){img->io[i].addr, img->io[i].addr + rt_io_bytes(&img->io[i])};
  qsort(c->loaded, c->nloaded, sizeof *c->loaded, range_order);
  size_t n = 0;
  for (size_t i = 0; i < c->nloaded; i++) {
    if (n && c->loaded[i].lo <= c->loaded[n - 1].hi) {
      if (c->loaded[i].hi > c->loaded[n - 1].hi) c->loaded[n - 1].hi = c->loaded[i].hi;
    } else {
      c->loaded[n++] = c->loaded[i];
    }
  }
  c->nloaded = n;
}

/* ---- life ---- */

Check *check_new(NpurtModel *m) {
  Check *c = mem_alloc(sizeof *c);
  c->m = m;
  const size_t size[RT_SPACES] = {
      [RT_SPM] = m->dev.spm_size, [RT_ACC] = m->dev.acc_size, [RT_DRAM] = m->dev.dram_size};
  bool ok = true;
  for (int s = 0; s < RT_SPACES; s++) {
    ok = shadow_init(&c->written[s], size[s]) && ok;
    for (int e = 0; e < ENGINE_COUNT; e++) ok = shadow_init(&c->read[s][e], size[s]) && ok;
  }
  c->sums = device_map(m->dev.acc_size);
  find_loaded(c);
  if (ok && c->sums) return c;
  check_free(c);
  return NULL;
}

void check_free(Check *c) {
  if (!c) return;
  for (int s = 0; s < RT_SPACES; s++) {
    shadow_free(&c->written[s]);
    for (int e = 0; e < ENGINE_COUNT; e++) shadow_free(&c->read[s][e]);
  }
  for (int i = 0; i < ISA_SEMS; i++) mem_free(c->sem[i].ring);
  mem_free(c->planes.ring);
  mem_free(c->room.ring);
  mem_free(c->instances);
  mem_free(c->loaded);
  device_unmap(c->sums, c->m->dev.acc_size);
  mem_free(c);
}

static void queue_clear(TokenQueue *q) {
  q->head = q->count = 0;
}

void check_start_run(Check *c) {
  for (int s = 0; s < RT_SPACES; s++) {
    shadow_clear(&c->written[s]);
    for (int e = 0; e < ENGINE_COUNT; e++) shadow_clear(&c->read[s][e]);
  }
  memset(c->know, 0, sizeof c->know);
  memset(c->clock, 0, sizeof c->clock);
  for (int i = 0; i < ISA_SEMS; i++) queue_clear(&c->sem[i]);
  queue_clear(&c->planes);
  queue_clear(&c->room);
  VClock nothing = {{0}};
  queue_push(&c->room, &nothing, (uint64_t)c->m->img.machine.mxu_planes);
  c->ninstances = 1;
  c->nfound = c->errors = 0;
}
