/* Check mode's order: which instructions are certain to have finished when another one starts, in
 * every timing and not only in the one that is run.
 *
 * The run is recorded as events: every engine instruction, and what the sequencer does that others
 * can see. At a fence, which everything before it precedes and everything after it follows, the
 * events since the last one are solved: know[x].at[e] is how many instructions of engine e have
 * finished, at least, when x starts. It is the largest of
 *   - what the event before x in its queue knew at its start, and that event itself (a load queue
 *     starts a transfer before the data of the one before has arrived: not itself),
 *   - what the sequencer had done before it issued x,
 *   - for a pop, the end of the plane's load; for a plane load, the start of the pop that made
 * room,
 *   - for a take that brings the demand on a semaphore to C tokens: the C-th smallest, engine by
 *     engine, of what the gives on that semaphore carry (a give carries what its instruction knew,
 *     and itself), gives that came later in this run included. Fewer than C tokens can be there
 *     without all those a C-th smallest one stands for.
 * C counts the takes of x's own engine up to x, and of other engines those that have finished for
 * certain. Tokens are counted from the last fence; those that were there then are certain.
 *
 * With one engine taking from each semaphore the result is exact: no token can be taken away, so
 * running everything but one engine as far as it goes gives the earliest start of every event, and
 * the recurrence is the earliest event times of Petri nets without conflict (Ramchandani 1974;
 * Landweber and Robertson 1978). Where engines compete for tokens it is a lower bound, so that no
 * race is missed; to decide that exactly is NP-hard (Netzer and Miller 1990). The recurrence is
 * solved from above, from "never", in the order of the run, which is one in which everything can
 * happen: that gives the largest solution, and every solution is a lower bound. */
#include "runtime/check_internal.h"
#include <string.h>

/* What one engine gave to, or took from, one semaphore since the last fence, in its order. */
typedef struct {
  uint32_t event, clock;
  uint64_t total; /* tokens up to here */
} Hand;
typedef struct {
  Hand *v;
  uint32_t n, cap;
} Hands;

/* Planes, or the room they leave: events in a ring. */
typedef struct {
  uint32_t *ring;
  uint32_t head, n, cap;
} EventQueue;

struct Order {
  const NpurtModel *m;
  Event *events; /* since the last fence; events[0] has the number first */
  uint32_t first, n, cap;
  uint32_t clock[ENGINE_COUNT], last[ENGINE_COUNT];
  VClock base; /* everything before the last fence */
  Hands gives[ISA_SEMS][ENGINE_COUNT], takes[ISA_SEMS][ENGINE_COUNT];
  uint64_t left[ISA_SEMS]; /* tokens at the last fence */
  EventQueue planes, room;
};

bool order_is_load(unsigned engine) {
  return engine == ENGINE_LD0 || engine == ENGINE_LD1;
}

/* ---- recording ---- */

static void hand(Hands *h, uint32_t event, uint32_t clock, uint64_t count) {
  if (h->n == h->cap) {
    h->cap = h->cap ? 2 * h->cap : 8;
    h->v = mem_realloc(h->v, h->cap * sizeof *h->v);
  }
  uint64_t before = h->n ? h->v[h->n - 1].total : 0;
  h->v[h->n++] = (Hand){.event = event, .clock = clock, .total = before + count};
}

static void queue_push(EventQueue *q, uint32_t event) {
  if (q->n == q->cap) {
    uint32_t cap = q->cap ? 2 * q->cap : 8;
    uint32_t *ring = mem_alloc(cap * sizeof *ring);
    for (uint32_t i = 0; i < q->n; i++) ring[i] = q->ring[(q->head + i) % q->cap];
    mem_free(q->ring);
    *q = (EventQueue){.ring = ring, .n = q->n, .cap = cap};
  }
  q->ring[(q->head + q->n++) % q->cap] = event;
}

static uint32_t queue_pop(EventQueue *q) {
  if (!q->n) return 0;
  uint32_t event = q->ring[q->head];
  q->head = (q->head + 1) % q->cap;
  q->n--;
  return event;
}

uint32_t order_issue(const Order *o) {
  return o->last[ENGINE_SEQ];
}

uint32_t order_begin(Order *o, IsaEngine e, uint32_t pc, uint32_t issue) {
  if (o->n == o->cap) {
    o->cap = o->cap ? 2 * o->cap : 1024;
    o->events = mem_realloc(o->events, (size_t)o->cap * sizeof *o->events);
  }
  const IsaInsn *in = &o->m->insns[pc];
  uint32_t id = o->first + o->n, plane = 0;
  if (rt_is_plane_load(in->kind)) {
    plane = queue_pop(&o->room);
    queue_push(&o->planes, id);
  } else if (rt_is_plane_pop(in->kind)) {
    plane = queue_pop(&o->planes);
    queue_push(&o->room, id);
  }
  uint32_t clock = ++o->clock[e];
  o->events[o->n++] = (Event){.pc = pc,
                              .clock = clock,
                              .engine = (uint8_t)e,
                              .previous = o->last[e],
                              .issue = issue,
                              .plane = plane};
  o->last[e] = id;
  for (int i = 0; i < 2; i++)
    if (in->take[i].count) hand(&o->takes[in->take[i].sem][e], id, clock, in->take[i].count);
  return id;
}

void order_give(Order *o, uint32_t id) {
  const Event *x = &o->events[id - o->first];
  const IsaInsn *in = &o->m->insns[x->pc];
  for (int i = 0; i < 2; i++)
    if (in->give[i].count)
      hand(&o->gives[in->give[i].sem][x->engine], id, x->clock, in->give[i].count);
}

const Event *order_event(const Order *o, uint32_t id) {
  return id < o->first ? NULL : &o->events[id - o->first];
}

/* ---- solving ---- */

static void join(VClock *into, const VClock *from) {
  for (int e = 0; e < ENGINE_COUNT; e++)
    if (from->at[e] > into->at[e]) into->at[e] = from->at[e];
}

/* What is known when the event has finished, of one engine and of all. */
static uint32_t end_at(const Event *x, int engine) {
  return engine == x->engine && x->know.at[engine] != UINT32_MAX ? x->clock : x->know.at[engine];
}
static void join_end(VClock *into, const Event *x) {
  for (int e = 0; e < ENGINE_COUNT; e++)
    if (end_at(x, e) > into->at[e]) into->at[e] = end_at(x, e);
}

/* Tokens taken by the engine's instructions up to the clock. */
static uint64_t taken(const Hands *h, uint32_t clock) {
  uint32_t lo = 0, hi = h->n;
  while (lo < hi) {
    uint32_t mid = lo + (hi - lo) / 2;
    if (h->v[mid].clock <= clock)
      lo = mid + 1;
    else
      hi = mid;
  }
  return lo ? h->v[lo - 1].total : 0;
}

/* Tokens of gives that need at most `most` finished instructions of the engine. An engine's gives
 * carry ever more. */
static uint64_t given(const Order *o, int sem, int engine, uint32_t most) {
  uint64_t sum = 0;
  for (int g = 0; g < ENGINE_COUNT; g++) {
    const Hands *h = &o->gives[sem][g];
    uint32_t lo = 0, hi = h->n;
    while (lo < hi) {
      uint32_t mid = lo + (hi - lo) / 2;
      if (end_at(order_event(o, h->v[mid].event), engine) <= most)
        lo = mid + 1;
      else
        hi = mid;
    }
    if (lo) sum += h->v[lo - 1].total;
  }
  return sum;
}

/* Raises what is known to what `tokens` given tokens imply. */
static void join_tokens(const Order *o, int sem, uint64_t tokens, VClock *know) {
  for (int e = 0; e < ENGINE_COUNT; e++) {
    uint32_t lo = know->at[e], hi = o->clock[e];
    if (lo >= hi || given(o, sem, e, lo) >= tokens) continue;
    while (lo + 1 < hi) { /* too few at lo; enough at hi */
      uint32_t mid = lo + (hi - lo) / 2;
      if (given(o, sem, e, mid) >= tokens)
        hi = mid;
      else
        lo = mid;
    }
    know->at[e] = hi;
  }
}

/* Tokens that have been taken from the semaphore when x has started. */
static uint64_t demand(const Order *o, const Event *x, int sem, const VClock *know) {
  uint64_t sum = 0;
  for (int e = 0; e < ENGINE_COUNT; e++)
    sum += taken(&o->takes[sem][e], e == x->engine ? x->clock : know->at[e]);
  return sum;
}

static void join_takes(const Order *o, const Event *x, VClock *know) {
  const IsaSemRef *take = o->m->insns[x->pc].take;
  if (!take[0].count && !take[1].count) return;
  VClock before;
  do { /* what is known may raise the demand, and that what is known */
    before = *know;
    for (int i = 0; i < 2; i++) {
      if (!take[i].count) continue;
      uint64_t tokens = demand(o, x, take[i].sem, know), left = o->left[take[i].sem];
      if (tokens > left) join_tokens(o, take[i].sem, tokens - left, know);
    }
  } while (memcmp(&before, know, sizeof before) != 0);
}

static VClock start_of(const Order *o, const Event *x) {
  VClock know = o->base;
  const Event *previous = order_event(o, x->previous), *issue = order_event(o, x->issue);
  const Event *plane = order_event(o, x->plane);
  if (previous) {
    join(&know, &previous->know);
    if (!order_is_load(x->engine)) join_end(&know, previous);
  }
  if (issue) join_end(&know, issue);
  if (plane && plane->engine == ENGINE_MXM) join(&know, &plane->know);
  if (plane && plane->engine == ENGINE_MXW) join_end(&know, plane);
  join_takes(o, x, &know);
  return know;
}

void order_solve(Order *o) {
  for (uint32_t i = 0; i < o->n; i++) memset(&o->events[i].know, 0xff, sizeof(VClock));
  for (bool changed = o->n > 0; changed;) {
    changed = false;
    for (uint32_t i = 0; i < o->n; i++) {
      VClock know = start_of(o, &o->events[i]);
      if (memcmp(&know, &o->events[i].know, sizeof know) == 0) continue;
      o->events[i].know = know;
      changed = true;
    }
  }
}

bool order_knows(const Order *o, uint32_t later, uint32_t earlier) {
  const Event *x = order_event(o, later), *y = order_event(o, earlier);
  return !y || x->know.at[y->engine] >= y->clock;
}

/* ---- life ---- */

static void forget_hands(Order *o) {
  for (int s = 0; s < ISA_SEMS; s++)
    for (int e = 0; e < ENGINE_COUNT; e++) o->gives[s][e].n = o->takes[s][e].n = 0;
}

void order_fence(Order *o) {
  o->first += o->n;
  o->n = 0;
  memcpy(o->base.at, o->clock, sizeof o->base.at);
  memcpy(o->left, o->m->dev.sem, sizeof o->left);
  forget_hands(o);
}

void order_start_run(Order *o) {
  o->first = 1;
  o->n = 0;
  memset(o->clock, 0, sizeof o->clock);
  memset(o->last, 0, sizeof o->last);
  memset(&o->base, 0, sizeof o->base);
  memset(o->left, 0, sizeof o->left);
  forget_hands(o);
  o->planes.n = o->room.n = 0;
  for (int64_t i = 0; i < o->m->img.machine.mxu_planes; i++) queue_push(&o->room, 0);
}

Order *order_new(const NpurtModel *m) {
  Order *o = mem_alloc(sizeof *o);
  o->m = m;
  return o;
}

void order_free(Order *o) {
  if (!o) return;
  for (int s = 0; s < ISA_SEMS; s++)
    for (int e = 0; e < ENGINE_COUNT; e++) {
      mem_free(o->gives[s][e].v);
      mem_free(o->takes[s][e].v);
    }
  mem_free(o->planes.ring);
  mem_free(o->room.ring);
  mem_free(o->events);
  mem_free(o);
}
