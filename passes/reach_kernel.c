/* What kernels need of their operands, and how often they multiply; see reach.h. */
#include "passes/reach.h"
#include <string.h>

/* Operands a scalar of the body depends on: one walk from the scalar's op to the start. */
static uint64_t args_below(const IrValue *v) {
  enum { OPS_MAX = 512 };
  const IrOp *needed[OPS_MAX];
  int n = 0;
  uint64_t args = 0;
  if (!v->def) return v->index < 64 ? 1ull << v->index : 0;
  for (const IrOp *op = v->def; op; op = op->prev) {
    bool used = op == v->def;
    for (int r = 0; r < op->nresults && !used; r++)
      for (const IrUse *u = op->results[r].uses; u && !used; u = u->next)
        for (int i = 0; i < n && !used; i++) used = needed[i] == u->op;
    if (!used) continue;
    if (n == OPS_MAX) return 0;
    needed[n++] = op;
    for (int i = 0; i < op->noperands; i++) {
      const IrValue *x = ir_operand(op, i);
      if (!x->def && x->index < 64) args |= 1ull << x->index;
    }
  }
  return args;
}

/* Index lists count as used where what they index is. */
static uint64_t with_lists(const IrOp *kernel, uint64_t args) {
  for (int i = kernel->noperands < 64 ? kernel->noperands - 1 : 63; i >= 0; i--) {
    const IrMap *map = ir_kernel_in_map(kernel, i);
    for (int a = 0; args >> i & 1 && a < map->rank; a++)
      if (map->axis[a].index >= 0) args |= 1ull << map->axis[a].index;
  }
  return args;
}

/* The points of every dimension that the box of a result asks for. */
static void dims_of(const IrOp *kernel, int result, const ReachBox *b, IndexSet *dims) {
  IrKernel k;
  ir_kernel_read(kernel, &k);
  const IrMap *map = ir_kernel_out_map(kernel, result);
  memset(dims, 0, IR_MAX_DIMS * sizeof *dims);
  for (int d = 0; d < k.ndims; d++) dims[d] = index_set_range(k.extent[d]);
  for (int a = 0; a < map->rank; a++)
    for (int d = 0; d < k.ndims; d++)
      if (map->axis[a].coef[d] == 1) dims[d] = b->axis[a];
}

/* Indices that an affine expression takes; false when they are beyond reason. */
static bool image(const IrAffine *e, const IndexSet *dims, IndexSet *out) {
  *out = (IndexSet){.first = e->cst};
  for (int d = 0; d < IR_MAX_DIMS; d++) {
    int64_t start;
    if (e->coef[d] == 0) continue;
    if (!mul_i64(e->coef[d], dims[d].first, &start) || !add_i64(out->first, start, &out->first))
      return false;
    for (int i = 0; i < dims[d].n; i++) {
      int64_t stride;
      if (!mul_i64(e->coef[d], dims[d].level[i].stride, &stride) ||
          !index_set_spread(out, dims[d].level[i].count, stride))
        return false;
    }
  }
  const int64_t far = (int64_t)1 << 61;
  return out->first > -far && index_set_last(out) < far;
}

/* ---- index lists ---- */

/* Places in a constant list, and which indices were found there. */
typedef struct {
  const IrData *list;
  int64_t terms[IR_MAX_RANK * REACH_LEVELS][2]; /* count, stride in elements */
  int n;
  int64_t add, size; /* index + add is in 0..size-1 */
  uint8_t *seen;
  int64_t distinct;
} ListWalk;

static void look_up(ListWalk *w, int n, int64_t at) {
  if (n > 0) {
    for (int64_t i = 0; i < w->terms[n - 1][0]; i++) look_up(w, n - 1, at + i * w->terms[n - 1][1]);
    return;
  }
  int64_t index = (int64_t)dtype_get(w->list->type->dtype, w->list->bytes, (size_t)at) + w->add;
  if (index < 0 || index >= w->size || w->seen[index]) return;
  w->seen[index] = 1;
  w->distinct++;
}

/* The places of the list that are asked for; false when some are not in it. */
static bool list_places(const IrOp *kernel, int list, const IndexSet *dims, ListWalk *w,
                        int64_t *first) {
  const IrMap *map = ir_kernel_in_map(kernel, list);
  const IrType *t = ir_operand(kernel, list)->type;
  int64_t stride = 1;
  *first = 0;
  for (int a = map->rank - 1; a >= 0; a--) {
    IndexSet s;
    if (map->axis[a].index >= 0 || !image(&map->axis[a], dims, &s)) return false;
    if (s.first < 0 || index_set_last(&s) >= t->shape[a]) return false;
    *first += s.first * stride;
    for (int i = 0; i < s.n; i++, w->n++) {
      w->terms[w->n][0] = s.level[i].count;
      w->terms[w->n][1] = s.level[i].stride * stride;
    }
    stride *= t->shape[a];
  }
  return true;
}

/* How many of `size` places a list asks for: 1 when only the run knows, for all its indices may be
 * the same one. */
static int64_t distinct_indices(const IrOp *kernel, const IrAffine *e, const IndexSet *dims,
                                int64_t size) {
  const IrValue *v = ir_operand(kernel, e->index);
  ListWalk w = {.add = e->cst, .size = size};
  double splat;
  int64_t first;
  if (ir_constant_splat(v, &splat) || !list_places(kernel, e->index, dims, &w, &first)) return 1;
  w.list = ir_constant_data(v);
  if (!w.list) return 1;
  w.seen = mem_try_alloc((size_t)size);
  if (!w.seen) return 1;
  look_up(&w, w.n, first);
  mem_free(w.seen);
  return w.distinct > 1 ? w.distinct : 1;
}

bool reach_operand(const IrOp *kernel, int result, const ReachBox *b, int operand, ReachBox *out) {
  const IrValue *y = ir_operand(kernel->region->last, result);
  const IrMap *map = ir_kernel_in_map(kernel, operand);
  const IrType *t = ir_operand(kernel, operand)->type;
  IndexSet dims[IR_MAX_DIMS];
  double pad;
  if (operand >= 64 || !(with_lists(kernel, args_below(y)) >> operand & 1)) return false;
  dims_of(kernel, result, b, dims);
  *out = (ReachBox){.rank = map->rank, .anywhere = b->anywhere};
  for (int a = 0; a < map->rank; a++) {
    IndexSet *s = &out->axis[a];
    if (map->axis[a].index >= 0) {
      *s = index_set_range(
          b->anywhere ? 1 : distinct_indices(kernel, &map->axis[a], dims, t->shape[a]));
      out->anywhere = true;
      continue;
    }
    if (!image(&map->axis[a], dims, s)) return false;
    bool outside = s->first < 0 || index_set_last(s) >= t->shape[a];
    if (outside && (b->anywhere || !ir_kernel_pad(kernel, operand, &pad))) return false;
    if (outside && !index_set_clip(s, t->shape[a])) return false;
  }
  return true;
}

/* ---- products ---- */

enum { TERMS_MAX = 16, TUPLES_MAX = 1 << 20 };

static double inside_one(int64_t count, int64_t stride, int64_t first, int64_t size) {
  if (count == 1 || stride == 0) return first >= 0 && first < size ? (double)count : 0;
  if (stride < 0) { /* the same from the other end */
    first += (count - 1) * stride;
    stride = -stride;
  }
  int64_t from = first < 0 ? (-first - 1) / stride + 1 : 0;
  int64_t to = size - 1 - first < 0 ? -1 : (size - 1 - first) / stride;
  if (to > count - 1) to = count - 1;
  return from <= to ? (double)(to - from + 1) : 0;
}

/* The first n terms, term `last` in closed form. */
static double inside(int n, int last, const int64_t (*terms)[2], int64_t first, int64_t size) {
  if (n == 0) return inside_one(terms[last][0], terms[last][1], first, size);
  if (n - 1 == last) return inside(n - 1, last, terms, first, size);
  double sum = 0;
  for (int64_t i = 0; i < terms[n - 1][0]; i++)
    sum += inside(n - 1, last, terms, first + i * terms[n - 1][1], size);
  return sum;
}

double reach_tuples_inside(int n, const int64_t (*terms)[2], int64_t first, int64_t size) {
  int longest = 0;
  double steps = 1;
  if (n == 0) return first >= 0 && first < size ? 1 : 0;
  for (int i = 1; i < n; i++)
    if (terms[i][0] > terms[longest][0]) longest = i;
  for (int i = 0; i < n; i++)
    if (i != longest) steps *= (double)terms[i][0];
  return steps <= TUPLES_MAX ? inside(n, longest, terms, first, size) : 0;
}

/* Of the points of the dimensions on one axis, those whose element exists. */
static double points_inside(const IrAffine *e, const IndexSet *dims, int64_t size) {
  int64_t terms[TERMS_MAX][2], first = e->cst;
  int n = 0;
  for (int d = 0; d < IR_MAX_DIMS; d++) {
    if (e->coef[d] == 0) continue;
    first += e->coef[d] * dims[d].first;
    for (int i = 0; i < dims[d].n; i++, n++) {
      if (n == TERMS_MAX) return 0;
      terms[n][0] = dims[d].level[i].count;
      terms[n][1] = e->coef[d] * dims[d].level[i].stride;
    }
  }
  return reach_tuples_inside(n, (const int64_t(*)[2])terms, first, size);
}

/* What is left of `count` points when those with operand `i` outside of its tensor are gone. An
 * axis that shares a dimension with one before is met by taking all of its misses away. */
static double points_left(const IrOp *kernel, int i, const IndexSet *dims, uint32_t *seen,
                          double count) {
  const IrMap *map = ir_kernel_in_map(kernel, i);
  const IrType *t = ir_operand(kernel, i)->type;
  for (int a = 0; a < map->rank; a++) {
    const IrAffine *e = &map->axis[a];
    IndexSet s;
    uint32_t own = 0;
    double points = 1;
    if (e->index >= 0) continue;
    if (!image(e, dims, &s)) return 0;
    if (s.first >= 0 && index_set_last(&s) < t->shape[a]) continue;
    for (int d = 0; d < IR_MAX_DIMS; d++)
      if (e->coef[d]) own |= 1u << d, points *= index_set_count(&dims[d]);
    double in = points_inside(e, dims, t->shape[a]);
    count = *seen & own ? count - count / points * (points - in) : count / points * in;
    *seen |= own;
  }
  return count > 0 ? count : 0;
}

static bool is_s8(const IrValue *factor) {
  while (ir_is(factor->def, IR_OP_CAST)) factor = ir_operand(factor->def, 0);
  return factor->type->dtype == DT_S8;
}

double reach_macs(const IrOp *kernel, const ReachBox *b, bool *s8) {
  IndexSet dims[IR_MAX_DIMS];
  double sum = 0;
  dims_of(kernel, 0, b, dims);
  for (const IrOp *op = kernel->region->first; op; op = op->next) {
    const IrOp *mul = op->kind == IR_OP_REDUCE ? ir_operand(op, 0)->def : NULL;
    if (!ir_is(mul, IR_OP_MUL) || strcmp(ir_get_str(op, "op", ""), "sum") != 0) continue;
    uint64_t a = args_below(ir_operand(mul, 0)), w = args_below(ir_operand(mul, 1));
    if (!a || !w || a == w) continue;
    uint32_t over = ir_scalar_dims(kernel, &mul->results[0]), seen = 0;
    double count = 1;
    for (int d = 0; d < IR_MAX_DIMS; d++)
      if (over >> d & 1) count *= index_set_count(&dims[d]);
    for (int i = 0; i < kernel->noperands && i < 64; i++)
      if ((a | w) >> i & 1) count = points_left(kernel, i, dims, &seen, count);
    if (s8) *s8 = is_s8(ir_operand(mul, 0)) && is_s8(ir_operand(mul, 1));
    sum += count;
  }
  return sum;
}
