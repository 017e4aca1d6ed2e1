/* kernel_edit: looking at kernels and copying them into new ones. See kernel_edit.h. */
#include "passes/kernel_edit.h"
#include "support/ptrmap.h"
#include <string.h>

/* ---- looking ---- */

int axis_dim(const IrAffine *a) {
  if (a->index >= 0 || a->cst != 0) return AXIS_OTHER;
  int dim = NEST_NO_DIM;
  for (int d = 0; d < IR_MAX_DIMS; d++) {
    if (a->coef[d] == 0) continue;
    if (a->coef[d] != 1 || dim != NEST_NO_DIM) return AXIS_OTHER;
    dim = d;
  }
  return dim;
}

bool kernel_has_reduce(const IrOp *kernel) {
  for (const IrOp *op = kernel->region->first; op; op = op->next)
    if (op->kind == IR_OP_REDUCE) return true;
  return false;
}

/* The operand a factor reads, through casts; -1 when it is computed. */
static int factor_operand(const IrOp *kernel, const IrValue *v) {
  while (v->def && v->def->kind == IR_OP_CAST) v = ir_operand(v->def, 0);
  return !v->def && v->block == kernel->region ? v->index : -1;
}

bool kernel_contraction_factors(const IrOp *kernel, int factors[2]) {
  for (const IrOp *op = kernel->region->first; op; op = op->next) {
    if (op->kind != IR_OP_REDUCE || strcmp(ir_get_str(op, "op", ""), "sum") != 0) continue;
    const IrOp *mul = ir_operand(op, 0)->def;
    if (!ir_is(mul, IR_OP_MUL)) continue;
    factors[0] = factor_operand(kernel, ir_operand(mul, 0));
    factors[1] = factor_operand(kernel, ir_operand(mul, 1));
    if (factors[0] >= 0 && factors[1] >= 0 && factors[0] != factors[1]) return true;
  }
  return false;
}

bool kernel_is_contraction(const IrOp *kernel) {
  int factors[2];
  return kernel_contraction_factors(kernel, factors);
}

bool kernel_operand_is_index(const IrOp *kernel, int operand) {
  for (int i = 0; i < kernel->noperands; i++) {
    const IrMap *m = ir_kernel_in_map(kernel, i);
    for (int a = 0; a < m->rank; a++)
      if (m->axis[a].index == operand) return true;
  }
  return false;
}

const IrAttr *kernel_pad_attr(const IrOp *kernel, int operand) {
  double value;
  if (!ir_kernel_pad(kernel, operand, &value)) return NULL;
  return ir_attr(kernel, "pads")->array.items[operand];
}

int kernel_body_cost(const IrOp *kernel) {
  int cost = kernel->noperands;
  for (const IrOp *op = kernel->region->first; op; op = op->next)
    cost += op->kind == IR_OP_YIELD ? op->noperands : op->kind != IR_OP_CONSTANT;
  return cost;
}

/* From where to where a scalar is held: op numbers in the body. */
typedef struct {
  int from, to;
} Range;

/* An operand is loaded at its first use, anything else held from where it is made. */
static Range range_of(PtrMap *number, const IrValue *v, int from) {
  Range r = {from, from};
  for (const IrUse *u = v->uses; u; u = u->next) {
    int at = (int)ptr_map_get_int(number, u->op);
    if (at > r.to) r.to = at;
    if (r.from == 0 || (!v->def && at < r.from)) r.from = at;
  }
  return r;
}

int kernel_body_live(const IrOp *kernel) {
  PtrMap *number = NULL; /* of every op, from 1 */
  int n = 0, most = 0, live = 0;
  for (const IrOp *op = kernel->region->first; op; op = op->next)
    ptr_map_put_int(&number, op, (uintptr_t)++n);
  int *change = mem_alloc(sizeof *change * (size_t)(n + 2));
  for (int i = 0; i < kernel->region->nargs; i++) {
    Range r = range_of(number, kernel->region->args[i], 0);
    change[r.from]++, change[r.to]--;
  }
  n = 0;
  for (const IrOp *op = kernel->region->first; op; op = op->next) {
    n++;
    if (op->kind == IR_OP_CONSTANT || op->nresults == 0) continue;
    Range r = range_of(number, &op->results[0], n);
    change[r.from]++, change[r.to]--;
  }
  for (int i = 0; i <= n; i++) {
    live += change[i];
    if (live > most) most = live;
  }
  ptr_map_free(&number);
  mem_free(change);
  return most;
}

const char *kernel_name(const IrOp *kernel) {
  return ir_get_str(kernel, "name", NULL);
}

void kernel_set_name(IrOp *kernel, const char *name) {
  ir_set_attr(kernel, "name", name ? ir_attr_str(ir_op_module(kernel), name) : NULL);
}

void kernel_join_names(IrOp *kernel, const IrOp *first, const IrOp *second) {
  const char *a = kernel_name(first), *b = kernel_name(second);
  char both[128];
  if (!a || !strcmp(a, "cast")) a = b, b = NULL;
  if (a && b && strcmp(b, "cast") != 0 && strlen(a) + strlen(b) + 2 <= 48) {
    snprintf(both, sizeof both, "%s_%s", a, b);
    a = both;
  }
  kernel_set_name(kernel, a);
}

/* ---- writing ---- */

/* False when a number of the result leaves 64 bits. */
static bool affine_substitute(const IrAffine *a, const DimImage *images, IrAffine *r) {
  *r = (IrAffine){.cst = a->cst, .index = a->index};
  for (int d = 0; d < IR_MAX_DIMS && a->index < 0; d++) {
    int64_t t;
    if (a->coef[d] == 0) continue;
    for (int e = 0; e < IR_MAX_DIMS; e++)
      if (!mul_i64(a->coef[d], images[d].coef[e], &t) || !add_i64(r->coef[e], t, &r->coef[e]))
        return false;
    if (!mul_i64(a->coef[d], images[d].cst, &t) || !add_i64(r->cst, t, &r->cst)) return false;
  }
  return true;
}

static bool same_map(const IrMap *a, const IrMap *b) {
  if (a->rank != b->rank) return false;
  for (int i = 0; i < a->rank; i++) {
    const IrAffine *x = &a->axis[i], *y = &b->axis[i];
    if (x->cst != y->cst || x->index != y->index) return false;
    if (x->index < 0 && memcmp(x->coef, y->coef, sizeof x->coef) != 0) return false;
  }
  return true;
}

int nest_add_operand(Nest *n, const IrOp *kernel, int operand, const DimImage *images,
                     const int *new_number) {
  const IrMap *old = ir_kernel_in_map(kernel, operand);
  IrMap map = ir_map_zero(old->rank);
  for (int i = 0; i < map.rank; i++) {
    if (!affine_substitute(&old->axis[i], images, &map.axis[i])) return -1;
    if (map.axis[i].index >= 0) map.axis[i].index = new_number[map.axis[i].index];
  }
  const IrAttr *pad = kernel_pad_attr(kernel, operand);
  IrValue *v = ir_operand(kernel, operand);
  for (int i = 0; i < n->nin; i++)
    if (n->in[i] == v && n->pads[i] == pad && same_map(&n->in_maps[i], &map)) return i;
  return n->slots[nest_in(n, v, &map, pad)].arg;
}

void nest_copy_dims(Nest *n, const IrOp *kernel) {
  IrKernel k;
  ir_kernel_read(kernel, &k);
  n->ndims = k.ndims;
  for (int d = 0; d < k.ndims; d++) {
    n->names[d] = k.name[d];
    n->extents[d] = k.extent[d];
  }
}

typedef struct {
  const IrValue *from;
  IrValue *to;
} Pair;
typedef struct {
  Pair *pairs;
  int n;
} BodyMap;

static IrValue *body_lookup(void *user, IrValue *old) {
  BodyMap *m = user;
  for (int i = m->n; i-- > 0;)
    if (m->pairs[i].from == old) return m->pairs[i].to;
  return old;
}

/* The position along an old dimension, from positions along the new ones. */
static IrValue *copy_index(Nest *n, const IrOp *op, const DimImage *images) {
  const DimImage *image = &images[ir_get_int(op, "dim", 0)];
  IrValue *sum = NULL;
  for (int d = 0; d < n->ndims; d++) {
    if (image->coef[d] == 0) continue;
    IrValue *term = nest_index(n, d);
    if (image->coef[d] != 1) term = nest_bin_const(n, IR_OP_MUL, term, (double)image->coef[d]);
    sum = sum ? nest_bin(n, IR_OP_ADD, sum, term) : term;
  }
  if (!sum) return nest_const(n, DT_S32, (double)image->cst);
  return image->cst ? nest_bin_const(n, IR_OP_ADD, sum, (double)image->cst) : sum;
}

static void retarget_reduce(IrOp *copy, const DimImage *images) {
  int64_t over[IR_MAX_DIMS], mapped[IR_MAX_DIMS];
  int n = ir_get_ints(copy, "over", over, IR_MAX_DIMS);
  size_t nmapped = 0;
  for (int d = 0; d < IR_MAX_DIMS; d++)
    for (int i = 0; i < n; i++)
      if (images[over[i]].coef[d] != 0) {
        mapped[nmapped++] = d;
        break;
      }
  ir_set_attr(copy, "over", ir_attr_ints(ir_op_module(copy), mapped, nmapped));
}

void nest_copy_body(Nest *n, const IrOp *kernel, const DimImage *images, IrValue *const *args,
                    IrValue **yielded) {
  int count = kernel->region->nargs;
  for (const IrOp *op = kernel->region->first; op; op = op->next) count++;
  BodyMap map = {.pairs = mem_alloc(sizeof(Pair) * (size_t)count)};
  for (int i = 0; i < kernel->region->nargs; i++)
    map.pairs[map.n++] = (Pair){kernel->region->args[i], args[i]};
  for (const IrOp *op = kernel->region->first; op; op = op->next) {
    if (op->kind == IR_OP_YIELD) {
      for (int i = 0; i < op->noperands; i++) yielded[i] = body_lookup(&map, ir_operand(op, i));
      continue;
    }
    IrValue *value;
    if (op->kind == IR_OP_INDEX) {
      value = copy_index(n, op, images);
    } else {
      IrOp *copy = ir_op_clone(n->body.m, op, body_lookup, &map);
      if (copy->kind == IR_OP_REDUCE) retarget_reduce(copy, images);
      ir_op_append(n->body.block, copy);
      value = ir_result(copy, 0);
    }
    map.pairs[map.n++] = (Pair){&op->results[0], value};
  }
  mem_free(map.pairs);
}
