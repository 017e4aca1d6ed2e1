/* Check mode against an exhaustive search: small random programs of loads, stores, plane loads and
 * tokens, run with small and large boxes, must show a race exactly when some interleaving of the
 * engines does. The search knows the manual's section Order and nothing of the runtime. */
#include "runtime_util.h"
#include <stdio.h>

enum { MAX_INSNS = 10, SEMS = 3, REGIONS = 3, VARIANTS = 3, ENGINES = 6, MAX_PLANES = 2 };
typedef enum { SEQ, LD0, LD1, ST, MXW, VPU } Engine;

typedef struct {
  Engine engine;
  int take_sem, take, give_sem[2], give[2]; /* counts, 0: none */
  int region;                               /* -1: touches nothing (sequencer, sync) */
  bool writes, fence;
} Insn;
typedef struct {
  Insn v[MAX_INSNS];
  int n;
} Program;

/* ---- random programs ---- */

static uint64_t seed;
static int pick(int n) { /* xorshift64* (Vigna 2016) */
  seed ^= seed >> 12;
  seed ^= seed << 25;
  seed ^= seed >> 27;
  return (int)((seed * UINT64_C(0x2545f4914f6cdd1d) >> 33) % (uint64_t)n);
}

/* Every program is possible in program order. With taker != NULL a semaphore is taken from by one
 * engine alone. */
static void draw_tokens(Insn *in, int *tokens, const Engine *taker) {
  int s = pick(SEMS);
  if (pick(3) > 0 && tokens[s] > 0 && (!taker || taker[s] == in->engine)) {
    in->take_sem = s;
    in->take = 1 + pick(tokens[s] < 3 ? tokens[s] : 3);
    tokens[s] -= in->take;
    if (in->engine == SEQ) return; /* it takes or gives */
  }
  for (int i = 0; i < 2; i++) {
    if (pick(i ? 4 : 2) > 0) continue;
    in->give_sem[i] = i ? (in->give_sem[0] + 1) % SEMS : pick(SEMS);
    in->give[i] = 1 + (pick(4) == 0);
    tokens[in->give_sem[i]] += in->give[i];
  }
}

static Program draw(bool one_taker) {
  Program p = {.n = 4 + pick(MAX_INSNS - 3)};
  Engine taker[SEMS];
  int tokens[SEMS] = {0}, planes = 0;
  for (int s = 0; s < SEMS; s++) taker[s] = (Engine)pick(ENGINES);
  for (int i = 0; i < p.n; i++) {
    Insn *in = &p.v[i];
    *in = (Insn){.engine = (Engine)pick(ENGINES), .region = -1};
    if (in->engine == SEQ && pick(6) == 0) {
      in->fence = true;
      continue;
    }
    if (in->engine == MXW && planes++ >= MAX_PLANES) in->engine = LD0;
    if (in->engine != SEQ && in->engine != VPU) in->region = pick(REGIONS);
    in->writes = in->engine == LD0 || in->engine == LD1;
    draw_tokens(in, tokens, one_taker ? taker : NULL);
  }
  return p;
}

/* ---- the search ---- */

typedef struct {
  int at;                              /* sequencer */
  int started[ENGINES], done[ENGINES]; /* of the engines' own instructions */
} State;
typedef struct {
  const Program *p;
  int nth[ENGINES][MAX_INSNS], count[ENGINES]; /* instructions of each engine */
  bool early[MAX_INSNS][MAX_INSNS]; /* the first may start before the second has finished */
  bool stuck;
  uint8_t *seen;
} Search;

static int tokens_in(const Search *s, const State *t, int sem) {
  int sum = 0;
  for (int e = 1; e < ENGINES; e++)
    for (int i = 0; i < t->started[e]; i++) {
      const Insn *in = &s->p->v[s->nth[e][i]];
      if (in->take_sem == sem) sum -= in->take;
      for (int g = 0; g < 2 && i < t->done[e]; g++)
        if (in->give_sem[g] == sem) sum += in->give[g];
    }
  for (int i = 0; i < t->at; i++) {
    const Insn *in = &s->p->v[i];
    if (in->engine != SEQ) continue;
    if (in->take_sem == sem) sum -= in->take;
    for (int g = 0; g < 2; g++)
      if (in->give_sem[g] == sem) sum += in->give[g];
  }
  return sum;
}

static bool conflict(const Insn *a, const Insn *b) {
  return a->region >= 0 && a->region == b->region && (a->writes || b->writes) &&
         a->engine != b->engine;
}

static void note_start(Search *s, const State *t, int i) {
  for (int e = 1; e < ENGINES; e++)
    for (int k = t->done[e]; k < s->count[e]; k++)
      if (conflict(&s->p->v[i], &s->p->v[s->nth[e][k]])) s->early[i][s->nth[e][k]] = true;
}

static size_t number_of(const Search *s, const State *t) {
  size_t n = (size_t)t->at;
  for (int e = 1; e < ENGINES; e++) {
    size_t radix = (size_t)s->count[e] + 1;
    n = (n * radix + (size_t)t->started[e]) * radix + (size_t)t->done[e];
  }
  return n;
}

static void explore(Search *s, State t);

static bool sequencer_steps(Search *s, State t) {
  if (t.at == s->p->n) return false;
  const Insn *in = &s->p->v[t.at];
  if (in->engine == SEQ && in->take && tokens_in(s, &t, in->take_sem) < in->take) return false;
  for (int e = 1; e < ENGINES && in->fence; e++)
    for (int k = t.done[e]; k < s->count[e]; k++)
      if (s->nth[e][k] < t.at) return false;
  t.at++; /* done, or issued: then the takes are its engine's */
  explore(s, t);
  return true;
}

static bool engine_steps(Search *s, State t, int e) {
  bool any = false, transfer = e == LD0 || e == LD1 || e == ST;
  if (t.done[e] < t.started[e]) {
    State next = t;
    next.done[e]++;
    explore(s, next);
    any = true;
  }
  if (t.started[e] == s->count[e] || (!transfer && t.done[e] < t.started[e])) return any;
  int i = s->nth[e][t.started[e]];
  const Insn *in = &s->p->v[i];
  if (i >= t.at || (in->take && tokens_in(s, &t, in->take_sem) < in->take)) return any;
  note_start(s, &t, i);
  t.started[e]++;
  explore(s, t);
  return true;
}

static void explore(Search *s, State t) {
  uint8_t *seen = &s->seen[number_of(s, &t)];
  if (*seen) return;
  *seen = 1;
  bool any = sequencer_steps(s, t);
  for (int e = 1; e < ENGINES; e++) any = engine_steps(s, t, e) || any;
  bool finished = t.at == s->p->n;
  for (int e = 1; e < ENGINES; e++) finished = finished && t.done[e] == s->count[e];
  if (!any && !finished) s->stuck = true;
}

typedef struct {
  bool race, stuck;
} Truth;

static Truth search(const Program *p) {
  Search s = {.p = p};
  for (int i = 0; i < p->n; i++) s.nth[p->v[i].engine][s.count[p->v[i].engine]++] = i;
  size_t states = (size_t)p->n + 1;
  for (int e = 1; e < ENGINES; e++) states *= (size_t)(s.count[e] + 1) * (size_t)(s.count[e] + 1);
  s.seen = calloc(states, 1);
  assert_non_null(s.seen);
  explore(&s, (State){0});
  free(s.seen);
  Truth truth = {.stuck = s.stuck};
  for (int i = 0; i < p->n; i++)
    for (int j = 0; j < i; j++) truth.race = truth.race || (s.early[i][j] && s.early[j][i]);
  return truth;
}

/* ---- the same program for the runtime ---- */

static const int sizes[] = {16, 3000, 65536};

static void write_tokens(StrBuf *b, const Insn *in) {
  if (in->take) strbuf_printf(b, " take s%d:%d", in->take_sem, in->take);
  const char *word = " give";
  for (int g = 0; g < 2; g++) {
    if (!in->give[g]) continue;
    strbuf_printf(b, "%s s%d:%d", word, in->give_sem[g], in->give[g]);
    word = ",";
  }
}

static void write_program(StrBuf *b, const Program *p) {
  strbuf_puts(b, ".dram 131072\n.io input \"x\" s8[65536] 0\n.io output \"y\" s8[65536] 65536\n");
  for (int r = 0; r < REGIONS; r++) {
    strbuf_printf(b,
                  ".desc %d dma rank=1 elsize=1 spm=%d size=[16] dstride=[1] sstride=[1] "
                  "extent=[65536]\n",
                  2 * r, 131072 * r);
    strbuf_printf(b, ".desc %d plane dtype=s8 spm=%d k=[1,1,1] kstride=[0,0,16] n=16 nstride=1\n",
                  2 * r + 1, 131072 * r);
    strbuf_printf(b, "dload d%d, %d\ndload d%d, %d\n", 2 * r, 2 * r, 2 * r + 1, 2 * r + 1);
  }
  static const char *const names[] = {"", "ld0", "ld1", "st", "mm.load", "sync.vpu"};
  for (int i = 0; i < p->n; i++) {
    const Insn *in = &p->v[i];
    int transfer = in->engine == LD0 || in->engine == LD1 || in->engine == ST;
    if (transfer)
      strbuf_printf(b, "dseti d%d.size.0, %d\ndseti d%d.dram, %d\n", 2 * in->region,
                    sizes[pick(NPU_COUNTOF(sizes))], 2 * in->region, in->engine == ST ? 65536 : 0);
    if (in->fence) {
      strbuf_puts(b, "fence\n");
      continue;
    }
    if (in->engine == SEQ && !in->take && !in->give[0] && !in->give[1]) continue;
    strbuf_puts(b, names[in->engine]);
    if (in->region >= 0) strbuf_printf(b, " d%d", 2 * in->region + (in->engine == MXW));
    write_tokens(b, in);
    strbuf_puts(b, "\n");
  }
  strbuf_puts(b, "halt\n");
}

typedef enum { CLEAN, RACE, DEADLOCK } Verdict;

static Verdict verdict(const char *text) {
  Run r = load_text(text, NPURT_CHECK);
  npurt_run(r.m, r.diag);
  Verdict v = has_diag(&r, "E-deadlock", "") ? DEADLOCK : has_diag(&r, "E-race", "") ? RACE : CLEAN;
  run_free(&r);
  return v;
}

/* ---- the comparison ---- */

typedef struct {
  int races, clean, stuck, deadlocks, missed, alarms;
} Tally;

static void judge(const Program *p, Tally *tally) {
  Truth truth = search(p);
  tally->races += truth.race;
  tally->clean += !truth.race;
  tally->stuck += truth.stuck;
  for (int v = 0; v < VARIANTS; v++) {
    StrBuf b = {0};
    write_program(&b, p);
    Verdict got = verdict(b.data);
    bool wrong = got != DEADLOCK && (got == RACE) != truth.race;
    if (wrong) fprintf(stderr, "the search says %s:\n%s\n", truth.race ? "race" : "none", b.data);
    tally->deadlocks += got == DEADLOCK;
    tally->missed += wrong && truth.race;
    tally->alarms += wrong && !truth.race;
    strbuf_free(&b);
  }
}

static Tally judge_many(bool one_taker, int n) {
  Tally t = {0};
  seed = one_taker ? 12345 : 54321;
  for (int i = 0; i < n; i++) {
    Program p = draw(one_taker);
    judge(&p, &t);
  }
  fprintf(stderr,
          "%d with races, %d without, %d can get stuck; %d of %d runs do; "
          "%d missed, %d alarms\n",
          t.races, t.clean, t.stuck, t.deadlocks, VARIANTS * n, t.missed, t.alarms);
  return t;
}

static void one_taker(void **state) {
  (void)state;
  Tally t = judge_many(true, 400);
  assert_int_equal(t.stuck, 0);
  assert_int_equal(t.deadlocks, 0);
  assert_int_equal(t.missed, 0);
  assert_int_equal(t.alarms, 0);
  assert_true(t.races > 100 && t.clean > 100);
}

static void several_takers(void **state) {
  (void)state;
  Tally t = judge_many(false, 400);
  assert_int_equal(t.missed, 0);
  assert_true(t.alarms <= VARIANTS); /* of cases too deep for it: one program in thousands */
  assert_true(t.races > 100 && t.clean > 100);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_taker), cmocka_unit_test(several_takers)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
