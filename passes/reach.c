/* Sets of indices and boxes of them; see reach.h. */
#include "passes/reach.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- one axis ---- */

IndexSet index_set_range(int64_t count) {
  IndexSet s = {0};
  if (count > 1) s.level[s.n].count = count, s.level[s.n++].stride = 1;
  return s;
}

double index_set_count(const IndexSet *s) {
  double n = 1;
  for (int i = 0; i < s->n; i++) n *= (double)s->level[i].count;
  return n;
}

/* Last index of the levels below n, counted from the first. */
static int64_t span(const IndexSet *s, int n) {
  int64_t sum = 0;
  for (int i = 0; i < n; i++) sum += (s->level[i].count - 1) * s->level[i].stride;
  return sum;
}

int64_t index_set_last(const IndexSet *s) {
  return s->first + span(s, s->n);
}

/* Appends a level of a stride not below the others'. Where sums would meet, the larger of both
 * stays. */
static void push_level(IndexSet *s, int64_t count, int64_t stride) {
  if (s->n) {
    int64_t below = s->level[s->n - 1].stride, n = s->level[s->n - 1].count;
    if (stride % below == 0 && stride / below <= n) {
      s->level[s->n - 1].count += (count - 1) * (stride / below);
      return;
    }
    if (stride <= span(s, s->n) || s->n == REACH_LEVELS) {
      if ((double)count <= index_set_count(s)) return;
      s->n = 0;
    }
  }
  s->level[s->n].count = count;
  s->level[s->n++].stride = stride;
}

bool index_set_spread(IndexSet *s, int64_t count, int64_t stride) {
  int64_t reach, end;
  if (count <= 1 || stride == 0) return true;
  if (stride == INT64_MIN || !mul_i64(count - 1, stride, &reach) ||
      !add_i64(index_set_last(s), reach, &end) || !add_i64(s->first, reach, &end))
    return false;
  if (stride < 0) s->first += reach, stride = -stride;
  IndexSet old = *s;
  bool done = false;
  s->n = 0;
  for (int i = 0; i < old.n; i++) {
    if (!done && stride < old.level[i].stride) push_level(s, count, stride), done = true;
    push_level(s, old.level[i].count, old.level[i].stride);
  }
  if (!done) push_level(s, count, stride);
  return true;
}

/* Cuts the outermost level to the positions 0..count-1 from..to. */
static void keep_outer(IndexSet *s, int64_t from, int64_t to) {
  s->first += from * s->level[s->n - 1].stride;
  s->level[s->n - 1].count = to - from + 1;
  if (to == from) s->n--;
}

bool index_set_clip(IndexSet *s, int64_t size) {
  while (s->first < 0 || index_set_last(s) >= size) {
    if (s->n == 0) return false;
    int64_t count = s->level[s->n - 1].count, stride = s->level[s->n - 1].stride;
    int64_t below = span(s, s->n - 1);
    /* whole blocks inside; a single level has blocks of one index */
    int64_t from = s->first < 0 ? (-s->first - 1) / stride + 1 : 0;
    int64_t room = size - 1 - below - s->first;
    int64_t to = room < 0 ? -1 : room / stride;
    if (to > count - 1) to = count - 1;
    if (from <= to) {
      keep_outer(s, from, to);
    } else { /* part of one block, if any */
      int64_t at = s->first + below < 0 ? (-s->first - below - 1) / stride + 1 : 0;
      if (at >= count) return false;
      keep_outer(s, at, at);
    }
  }
  return true;
}

static bool same_set(const IndexSet *a, const IndexSet *b) {
  if (a->first != b->first || a->n != b->n) return false;
  for (int i = 0; i < a->n; i++)
    if (a->level[i].count != b->level[i].count || a->level[i].stride != b->level[i].stride)
      return false;
  return true;
}

/* Whether a, of one level at most, is known to have all of b. */
static bool contains(const IndexSet *a, const IndexSet *b) {
  if (same_set(a, b)) return true;
  if (a->n != 1 || b->first < a->first || index_set_last(b) > index_set_last(a)) return false;
  int64_t stride = a->level[0].stride;
  for (int i = 0; i < b->n; i++)
    if (b->level[i].stride % stride) return false;
  return (b->first - a->first) % stride == 0;
}

static bool apart(const IndexSet *a, const IndexSet *b) {
  if (index_set_last(a) < b->first || index_set_last(b) < a->first) return true;
  int64_t g = 0;
  for (int k = 0; k < 2; k++) {
    const IndexSet *s = k ? b : a;
    for (int i = 0; i < s->n; i++) g = gcd_i64(g, s->level[i].stride);
  }
  return g > 1 && (a->first - b->first) % g != 0;
}

/* a or b, when that is a set of this form; a begins first. */
static bool join_sets(const IndexSet *a, const IndexSet *b, IndexSet *out) {
  if (b->first < a->first) return join_sets(b, a, out);
  if (contains(a, b)) return *out = *a, true;
  if (contains(b, a)) return *out = *b, true;
  int64_t distance = b->first - a->first;
  int outer = a->n - 1;
  if (a->n && a->n == b->n && a->level[outer].stride == b->level[outer].stride &&
      a->level[outer].count == b->level[outer].count && distance < a->level[outer].stride) {
    IndexSet inner_a = *a, inner_b = *b;
    inner_a.n = inner_b.n = outer;
    if (join_sets(&inner_a, &inner_b, out) && span(out, out->n) < a->level[outer].stride)
      return index_set_spread(out, a->level[outer].count, a->level[outer].stride);
  }
  if (a->n > 1 || b->n > 1) return false;
  int64_t stride = a->n ? a->level[0].stride : b->n ? b->level[0].stride : distance;
  if ((b->n && b->level[0].stride != stride) || distance % stride ||
      b->first > index_set_last(a) + stride)
    return false;
  int64_t last = index_set_last(a) > index_set_last(b) ? index_set_last(a) : index_set_last(b);
  *out = (IndexSet){.first = a->first};
  push_level(out, (last - a->first) / stride + 1, stride);
  return true;
}

/* ---- boxes ---- */

ReachBox reach_all(const IrType *t) {
  ReachBox b = {.rank = t->rank};
  for (int i = 0; i < t->rank; i++) b.axis[i] = index_set_range(t->shape[i]);
  return b;
}

double reach_box_count(const ReachBox *b) {
  double n = 1;
  for (int i = 0; i < b->rank; i++) n *= index_set_count(&b->axis[i]);
  return n;
}

/* Grows the last axes' sets to one of positions in row-major order. */
static bool flatten(const ReachBox *b, const IrType *from, IndexSet *flat) {
  int64_t stride = 1;
  *flat = (IndexSet){0};
  for (int a = b->rank - 1; a >= 0; a--) {
    const IndexSet *s = &b->axis[a];
    flat->first += s->first * stride;
    double want = index_set_count(flat) * index_set_count(s);
    for (int i = 0; i < s->n; i++)
      if (!index_set_spread(flat, s->level[i].count, s->level[i].stride * stride)) return false;
    if (index_set_count(flat) != want) return false; /* more levels than there is room for */
    stride *= from->shape[a];
  }
  return true;
}

/* Cuts a level that crosses a multiple of size in two; false when it does so unevenly. */
static bool split_level(const IndexSet *s, int i, int64_t size, int64_t *inner, int64_t *outer) {
  int64_t count = s->level[i].count, stride = s->level[i].stride;
  *inner = count, *outer = 1;
  if (stride >= size || count * stride <= size) return true;
  if (size % stride || (count * stride) % size) return false;
  *inner = size / stride;
  *outer = count * stride / size;
  return true;
}

bool reach_reshape(const ReachBox *b, const IrType *from, const IrType *to, ReachBox *out) {
  IndexSet flat;
  *out = (ReachBox){.rank = to->rank, .anywhere = b->anywhere};
  if (!flatten(b, from, &flat)) return false;
  for (int a = to->rank - 1; a >= 0; a--) {
    int64_t size = to->shape[a];
    IndexSet rest = {.first = flat.first / size}, *axis = &out->axis[a];
    axis->first = flat.first % size;
    for (int i = 0; i < flat.n; i++) {
      int64_t inner, outer, stride = flat.level[i].stride;
      if (!split_level(&flat, i, size, &inner, &outer)) return false;
      if (stride >= size) {
        if (stride % size) return false;
        index_set_spread(&rest, inner, stride / size);
      } else {
        index_set_spread(axis, inner, stride);
        index_set_spread(&rest, outer, 1);
      }
    }
    if (index_set_last(axis) >= size) return false;
    flat = rest;
  }
  return reach_box_count(out) == reach_box_count(b);
}

static bool box_contains(const ReachBox *a, const ReachBox *b) {
  for (int i = 0; i < a->rank; i++)
    if (!contains(&a->axis[i], &b->axis[i])) return false;
  return true;
}

static bool boxes_apart(const ReachBox *a, const ReachBox *b) {
  for (int i = 0; i < a->rank; i++)
    if (apart(&a->axis[i], &b->axis[i])) return true;
  return false;
}

/* Puts a and b into a when both are one box: they differ along one axis at most. */
static bool join_boxes(ReachBox *a, const ReachBox *b) {
  int differ = -1;
  if (box_contains(a, b)) return true;
  if (box_contains(b, a)) return *a = *b, true;
  for (int i = 0; i < a->rank; i++) {
    if (same_set(&a->axis[i], &b->axis[i])) continue;
    if (differ >= 0) return false;
    differ = i;
  }
  IndexSet joined;
  if (!join_sets(&a->axis[differ], &b->axis[differ], &joined)) return false;
  a->axis[differ] = joined;
  return true;
}

void reach_add(Arena *a, Reach *r, const ReachBox *b) {
  ReachBox *more = arena_copy(a, b, sizeof *b);
  for (int i = 0; i < r->n; i++) {
    if (r->box[i]->anywhere || more->anywhere || !join_boxes(more, r->box[i])) continue;
    r->box[i] = r->box[--r->n];
    i = -1; /* what has grown may join the others */
  }
  if (r->n < REACH_BOXES) {
    r->box[r->n++] = more;
    return;
  }
  int least = 0;
  for (int i = 1; i < r->n; i++)
    if (reach_box_count(r->box[i]) < reach_box_count(r->box[least])) least = i;
  if (reach_box_count(r->box[least]) < reach_box_count(more)) r->box[least] = more;
}

static double measure_count(void *user, const ReachBox *b) {
  (void)user;
  return reach_box_count(b);
}

double reach_count(const Reach *r) {
  return reach_sum(r, measure_count, NULL);
}

double reach_sum(const Reach *r, double (*measure)(void *, const ReachBox *), void *user) {
  bool taken[REACH_BOXES] = {false};
  double sum = 0, anywhere = 0;
  for (;;) { /* the largest first, of those that share nothing with the ones before */
    int best = -1;
    double most = 0;
    for (int i = 0; i < r->n; i++) {
      bool free = !taken[i] && !r->box[i]->anywhere;
      for (int k = 0; free && k < r->n; k++) free = !taken[k] || boxes_apart(r->box[i], r->box[k]);
      double m = free || r->box[i]->anywhere ? measure(user, r->box[i]) : 0;
      if (r->box[i]->anywhere) anywhere = fmax(anywhere, m);
      if (free && m > most) best = i, most = m;
    }
    if (best < 0) return fmax(sum, anywhere);
    taken[best] = true;
    sum += most;
  }
}
