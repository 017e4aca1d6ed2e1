/* Check mode: races by happens-before, reads of bytes nobody wrote, accumulator overflow.
 *
 * Two accesses of which one writes are a race unless the one that comes first in this run has
 * finished in every timing when the other starts; what is certain in every timing is worked out in
 * check_order.c. Shadow memory knows, for every byte, the last write and each engine's last read;
 * what an access meets there is kept as a pair until the next fence, when the order of the
 * instructions since the last one can be known: a give may come later in this run, and earlier in
 * another, than the take it could serve. An engine's own instructions are in order, except that a
 * load queue does not know its own data to have arrived. After Lamport 1978 and the vector-clock
 * detectors (Djit+, Pozniansky and Schuster 2003), with must-order in place of observed order. */
#include "runtime/check_internal.h"
#include "runtime/shadow.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
  uint32_t pc_a, pc_b;
  uint8_t kind;
} Finding;
enum { FIND_RACE, FIND_UNINIT, FIND_OVERFLOW, FIND_TWICE, FIND_PASS };

typedef struct {
  size_t lo, hi;
} Range;

/* An access that meets one of another instruction, one of them writing. */
typedef struct {
  uint32_t earlier, later; /* events */
  size_t lo, hi;
  uint8_t space;
  bool write, other_write; /* later's, earlier's */
} Pair;

struct Check {
  NpurtModel *m;
  Order *order;
  Shadow written[RT_SPACES], read[RT_SPACES][ENGINE_COUNT];
  uint32_t now;                        /* event of the instruction begun last */
  Pair *pairs;                         /* since the last fence, by `later` */
  size_t npairs, pairs_cap, first_now; /* first_now: where those of `now` begin */
  Finding found[RT_MAX_FINDINGS];
  unsigned nfound, errors;
  Range *loaded; /* DRAM bytes that hold something at start, sorted, disjoint */
  size_t nloaded;
  int32_t *sums; /* accumulators before a multiply; a lazy mapping, only its rows are touched */
};

/* ---- events ---- */

uint32_t check_issue(const Check *c) {
  return order_issue(c->order);
}

void check_give(Check *c, uint32_t event) {
  order_give(c->order, event);
}

bool check_begin(Check *c, IsaEngine e, uint32_t pc, uint32_t issue, uint32_t *event) {
  if (c->now == SHADOW_SPLIT - 1)
    return rt_trap(c->m, "E-limit", "check mode follows at most %u engine instructions of a run",
                   SHADOW_SPLIT - 1);
  *event = c->now = order_begin(c->order, e, pc, issue);
  c->first_now = c->npairs;
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

static void report_race(Check *c, const Pair *p) {
  NpurtModel *m = c->m;
  const Event *me = order_event(c->order, p->later), *other = order_event(c->order, p->earlier);
  if (!new_finding(c, FIND_RACE, other->pc, me->pc)) return;
  StrBuf b = {0};
  rt_describe(m, me->pc, &b);
  strbuf_printf(&b, " %s ", p->write ? "writes" : "reads");
  print_range((RtSpace)p->space, p->lo, p->hi, &b);
  strbuf_printf(&b, ", which %s's ", isa_engine_name((IsaEngine)other->engine));
  rt_describe(m, other->pc, &b);
  strbuf_printf(&b, " %s; no semaphore, plane or fence orders the two in every timing",
                p->other_write ? "writes" : "reads");
  diag_error(m->diag, rt_loc(m, me->pc), "E-race", "race: %s", b.data);
  diag_note(m->diag, rt_loc(m, other->pc), "the other instruction is pc %u", other->pc);
  strbuf_free(&b);
}

/* Decides the pairs since the last fence. */
static void resolve(Check *c) {
  if (c->npairs) order_solve(c->order);
  for (size_t i = 0; i < c->npairs; i++)
    if (!order_knows(c->order, c->pairs[i].later, c->pairs[i].earlier))
      report_race(c, &c->pairs[i]);
  c->npairs = c->first_now = 0;
}

void check_fence(Check *c) {
  resolve(c);
  order_fence(c->order);
}

typedef struct {
  Check *c;
  RtSpace space;
  bool write, other_write, once;
} Visit;

/* An engine runs its instructions in order; but a load queue starts the next transfer before the
 * data of the one before has arrived, so reading its own data (an index list) needs a token like
 * anybody else's. What was before the last fence is in order. */
static void meet(const Visit *v, size_t lo, size_t hi, uint32_t id) {
  Check *c = v->c;
  const Event *other = order_event(c->order, id), *me = order_event(c->order, c->now);
  if (!other || id == c->now) return;
  bool own_data = !v->write && v->other_write && order_is_load(me->engine);
  if (other->engine == me->engine && !own_data) return;
  enum { LOOK_BACK = 16 }; /* an access comes in many pieces: most repeat what was just met */
  for (size_t i = c->npairs, n = 0; i-- > c->first_now && n < LOOK_BACK; n++)
    if (c->pairs[i].earlier == id) return;
  if (c->npairs == c->pairs_cap) {
    c->pairs_cap = c->pairs_cap ? 2 * c->pairs_cap : 1024;
    c->pairs = mem_realloc(c->pairs, c->pairs_cap * sizeof *c->pairs);
  }
  c->pairs[c->npairs++] = (Pair){.earlier = id,
                                 .later = c->now,
                                 .lo = lo,
                                 .hi = hi,
                                 .space = (uint8_t)v->space,
                                 .write = v->write,
                                 .other_write = v->other_write};
}

static size_t loaded_end(const Check *c, size_t lo, size_t hi, size_t *start);

/* Cuts [*lo, *hi) of DRAM that nothing has written to its first part that the image and the host
 * have not filled either; false when there is none. */
static bool uninit_part(const Check *c, size_t *lo, size_t *hi) {
  size_t start, end = loaded_end(c, *lo, *hi, &start);
  while (start <= *lo && end > *lo) {
    *lo = end;
    if (*lo >= *hi) return false;
    end = loaded_end(c, *lo, *hi, &start);
  }
  if (start < *hi && start > *lo) *hi = start;
  return true;
}

static void report_uninit(const Visit *v, size_t lo, size_t hi) {
  NpurtModel *m = v->c->m;
  uint32_t pc = order_event(v->c->order, v->c->now)->pc;
  if (v->space == RT_DRAM && !uninit_part(v->c, &lo, &hi)) return;
  if (!new_finding(v->c, FIND_UNINIT, pc, (uint32_t)v->space)) return;
  StrBuf b = {0};
  rt_describe(m, pc, &b);
  strbuf_puts(&b, " reads ");
  print_range(v->space, lo, hi, &b);
  strbuf_puts(&b, ", which nothing has written in this run");
  diag_error(m->diag, rt_loc(m, pc), "E-uninit", "uninitialised read: %s", b.data);
  strbuf_free(&b);
}

static void report_twice(const Visit *v, size_t lo, size_t hi) {
  Check *c = v->c;
  NpurtModel *m = c->m;
  uint32_t pc = order_event(c->order, c->now)->pc;
  if (!new_finding(c, FIND_TWICE, pc, 0)) return;
  StrBuf b = {0};
  rt_describe(m, pc, &b);
  strbuf_puts(&b, " writes several elements to ");
  print_range(v->space, lo, hi, &b);
  diag_error(m->diag, rt_loc(m, pc), "E-overlap",
             "%s; the elements of a transfer have no order, so which one stays is not defined",
             b.data);
  strbuf_free(&b);
}

static void visit_run(void *user, size_t lo, size_t hi, uint32_t id) {
  Visit *v = user;
  if (id == 0) {
    if (!v->write && v->other_write) report_uninit(v, lo, hi);
    return;
  }
  if (id == v->c->now && v->once) report_twice(v, lo, hi);
  meet(v, lo, hi, id);
}

static void access(Visit *v, int64_t addr, int64_t bytes) {
  Check *c = v->c;
  size_t at = (size_t)addr, n = (size_t)bytes;
  if (n == 0) return;
  v->other_write = true;
  shadow_visit(&c->written[v->space], at, n, visit_run, v);
  if (!v->write) {
    shadow_set(&c->read[v->space][order_event(c->order, c->now)->engine], at, n, c->now);
    return;
  }
  v->other_write = v->once = false;
  for (int e = 0; e < ENGINE_COUNT; e++)
    if (c->read[v->space][e].used) shadow_visit(&c->read[v->space][e], at, n, visit_run, v);
  shadow_set(&c->written[v->space], at, n, c->now);
}

void check_access(Check *c, RtSpace space, int64_t addr, int64_t bytes, bool write) {
  access(&(Visit){.c = c, .space = space, .write = write}, addr, bytes);
}

void check_write_once(Check *c, RtSpace space, int64_t addr, int64_t bytes) {
  access(&(Visit){.c = c, .space = space, .write = true, .once = true}, addr, bytes);
}

/* ---- elements without an order ---- */

void check_pass_clash(Check *c, RtSpace space, int64_t addr, int64_t bytes, int64_t one,
                      int64_t other, bool stores) {
  NpurtModel *m = c->m;
  uint32_t pc = order_event(c->order, c->now)->pc;
  if (!new_finding(c, FIND_PASS, pc, 0)) return;
  StrBuf b = {0};
  rt_describe(m, pc, &b);
  strbuf_printf(&b, ": in one pass element %lld stores to ", (long long)one);
  print_range(space, (size_t)addr, (size_t)(addr + bytes), &b);
  diag_error(
      m->diag, rt_loc(m, pc), "E-overlap",
      "%s, which element %lld %s; the elements of a pass have no order: store to the element "
      "that was loaded or to another place, or use two passes",
      b.data, (long long)other, stores ? "stores to as well" : "loads");
  strbuf_free(&b);
}

/* ---- sums ---- */

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
  uint32_t pc = order_event(c->order, c->now)->pc;
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

/* ---- at the end ---- */

typedef struct {
  const Check *c;
  size_t lo, hi, bytes; /* the first part nobody wrote; bytes: of all such parts */
} Unwritten;

static void add_unwritten(void *user, size_t lo, size_t hi, uint32_t id) {
  Unwritten *u = user;
  for (size_t end = hi; !id && lo < hi && uninit_part(u->c, &lo, &end); lo = end, end = hi) {
    if (!u->bytes) u->lo = lo, u->hi = end;
    u->bytes += end - lo;
  }
}

/* What the host would read of an output that the run has not stored. */
static void check_output(Check *c, const IsaIo *io) {
  Unwritten u = {.c = c};
  size_t at = (size_t)io->addr, n = (size_t)rt_io_bytes(io);
  SrcLoc loc = {.file = c->m->label};
  shadow_visit(&c->written[RT_DRAM], at, n, add_unwritten, &u);
  if (u.bytes == n) {
    c->errors++;
    diag_error(c->m->diag, loc, "E-uninit", "output `%s`: no instruction wrote it in this run",
               io->name);
  } else if (u.bytes) {
    diag_warning(c->m->diag, loc, "W-unwritten",
                 "output `%s`: no instruction wrote %zu of its %zu bytes in this run, first of all "
                 "bytes %zu..%zu; they hold what was there before",
                 io->name, u.bytes, n, u.lo - at, u.hi - 1 - at);
  }
}

static void leftover_tokens(Check *c, int sem) {
  NpurtModel *m = c->m;
  uint32_t pc = 0;
  for (uint32_t i = 0; i < m->img.ninsns; i++)
    for (int g = 0; g < 2; g++)
      if (m->insns[i].give[g].count && m->insns[i].give[g].sem == sem) pc = i;
  StrBuf b = {0};
  rt_describe(m, pc, &b);
  diag_warning(m->diag, rt_loc(m, pc), "W-tokens",
               "semaphore %d holds %llu when the program ends: something is given that nothing "
               "takes; the last to give is %s",
               sem, (unsigned long long)m->dev.sem[sem], b.data);
  strbuf_free(&b);
}

/* What a program that has ended should not leave behind. */
static void check_leftovers(Check *c) {
  NpurtModel *m = c->m;
  for (uint32_t i = 0; i < m->img.nio; i++)
    if (m->img.io[i].role == IO_OUTPUT) check_output(c, &m->img.io[i]);
  for (int s = 0; s < ISA_SEMS; s++)
    if (m->dev.sem[s]) leftover_tokens(c, s);
  if (m->dev.waiting)
    diag_warning(m->diag, rt_loc(m, m->pc), "W-planes",
                 "%u weight plane%s in the FIFO when the program ends: loaded and never multiplied "
                 "with",
                 m->dev.waiting, m->dev.waiting == 1 ? " is" : "s are");
}

unsigned check_finish(Check *c, bool ended) {
  resolve(c);
  if (ended) check_leftovers(c);
  return c->errors;
}

/* ---- life ---- */

Check *check_new(NpurtModel *m) {
  Check *c = mem_alloc(sizeof *c);
  c->m = m;
  c->order = order_new(m);
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
  order_free(c->order);
  mem_free(c->pairs);
  mem_free(c->loaded);
  device_unmap(c->sums, c->m->dev.acc_size);
  mem_free(c);
}

void check_start_run(Check *c) {
  for (int s = 0; s < RT_SPACES; s++) {
    shadow_clear(&c->written[s]);
    for (int e = 0; e < ENGINE_COUNT; e++) shadow_clear(&c->read[s][e]);
  }
  order_start_run(c->order);
  c->now = 0;
  c->npairs = c->first_now = 0;
  c->nfound = c->errors = 0;
}
