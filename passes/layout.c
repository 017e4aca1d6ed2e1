/* layout: the storage order of intermediate tensors and constants. A matrix product wants what it
 * sums over innermost in its activations (images become NHWC) and outermost in its weights; what it
 * writes has the weights' own dimension innermost; other kernels keep the order of what they read.
 * Function arguments, results, states and both ends of a reshape stay row-major. Level: nest ->
 * nest. Needs: kernels. Keeps: everything but `layout` attributes; constants that two kernels want
 * in different orders are duplicated. Terminates: one walk. */
#include "passes/kernel_edit.h"
#include "passes/passes.h"
#include <string.h>

/* ---- which values may choose ---- */

static bool all_uses_are_kernels(const IrValue *v) {
  for (const IrUse *u = v->uses; u; u = u->next)
    if (u->op->kind != IR_OP_KERNEL) return false;
  return true;
}

static bool is_constant(const IrValue *v) {
  return v->def && (v->def->kind == IR_OP_WEIGHT || v->def->kind == IR_OP_CONSTANT);
}

static bool is_free(const IrValue *v) {
  if (v->type->rank < 2 || !v->def) return false;
  return (v->def->kind == IR_OP_KERNEL || is_constant(v)) && all_uses_are_kernels(v);
}

/* ---- roles of dimensions and axes ---- */

/* A kernel's product: dimensions by the factors they occur in. */
typedef struct {
  bool matrix; /* a product with columns: some dimension belongs to the weights alone */
  int x, w;    /* operand numbers */
  uint32_t red, x_only, w_only;
} Roles;

static uint32_t reduced_dims(const IrOp *kernel) {
  uint32_t dims = 0;
  for (const IrOp *op = kernel->region->first; op; op = op->next) {
    if (op->kind != IR_OP_REDUCE) continue;
    int64_t over[IR_MAX_DIMS];
    int n = ir_get_ints(op, "over", over, IR_MAX_DIMS);
    for (int i = 0; i < n; i++) dims |= 1u << over[i];
  }
  return dims;
}

static Roles roles_of(const IrOp *kernel) {
  Roles r = {.red = reduced_dims(kernel)};
  int factors[2];
  if (!kernel_contraction_factors(kernel, factors)) return r;
  r.x = factors[0], r.w = factors[1];
  uint32_t dx = ir_map_dims(ir_kernel_in_map(kernel, r.x));
  uint32_t dw = ir_map_dims(ir_kernel_in_map(kernel, r.w));
  r.x_only = dx & ~dw & ~r.red;
  r.w_only = dw & ~dx & ~r.red;
  r.matrix = r.w_only != 0;
  return r;
}

/* Whether an axis is walked through by reduced dimensions alone, or by them within blocks of the
 * others (groups); a window (oh * stride + kh) is not. */
static bool sums_along(const IrAffine *a, uint32_t red, const IrKernel *k) {
  int64_t span = 1;
  bool any = false;
  if (a->index >= 0) return false;
  for (int d = 0; d < k->ndims; d++) {
    if (!(red >> d & 1) || a->coef[d] == 0) continue;
    span += a->coef[d] * (k->extent[d] - 1);
    any = true;
  }
  for (int d = 0; d < k->ndims && any; d++)
    if (!(red >> d & 1) && a->coef[d] != 0 && a->coef[d] < span) return false;
  return any;
}

static uint32_t axis_dims(const IrAffine *a) {
  uint32_t dims = 0;
  for (int d = 0; d < IR_MAX_DIMS && a->index < 0; d++)
    if (a->coef[d] != 0) dims |= 1u << d;
  return dims;
}

/* Axes 0..rank-1 sorted by key, equal keys in the order given. */
static void order_by_key(int rank, const int *key, int *order) {
  for (int i = 1; i < rank; i++) {
    int axis = order[i], j = i;
    for (; j > 0 && key[order[j - 1]] > key[axis]; j--) order[j] = order[j - 1];
    order[j] = axis;
  }
}

static void identity(int *order) {
  for (int i = 0; i < IR_MAX_RANK; i++) order[i] = i;
}

/* ---- wishes ---- */

/* Activations: summed axes last. */
static void wish_x(const IrOp *kernel, int operand, uint32_t red, int *order) {
  IrKernel k;
  ir_kernel_read(kernel, &k);
  const IrMap *map = ir_kernel_in_map(kernel, operand);
  int key[IR_MAX_RANK];
  for (int a = 0; a < map->rank; a++) key[a] = sums_along(&map->axis[a], red, &k);
  order_by_key(map->rank, key, order);
}

/* Place in x's storage of the innermost axis that runs along any of dims; 0 when none does. */
static int place_in(const IrOp *kernel, int operand, uint32_t dims) {
  int order[IR_MAX_RANK], place = 0;
  const IrMap *map = ir_kernel_in_map(kernel, operand);
  ir_layout(ir_operand(kernel, operand), order);
  for (int i = 0; i < map->rank; i++)
    if (axis_dims(&map->axis[order[i]]) & dims) place = i + 1;
  return place;
}

/* Weights: dimensions shared with the result's other axes, then summed ones as x stores them, then
 * their own. */
static void wish_w(const IrOp *kernel, const Roles *r, int *order) {
  const IrMap *map = ir_kernel_in_map(kernel, r->w);
  int key[IR_MAX_RANK];
  for (int a = 0; a < map->rank; a++) {
    uint32_t dims = axis_dims(&map->axis[a]);
    if (dims & r->w_only)
      key[a] = 100;
    else if (dims & r->red)
      key[a] = 1 + place_in(kernel, r->x, dims & r->red);
    else
      key[a] = 0;
  }
  order_by_key(map->rank, key, order);
}

/* A constant beside elementwise work: as the result is stored, reduced axes first. */
static void wish_beside(const IrOp *kernel, int operand, int *order) {
  const IrMap *map = ir_kernel_in_map(kernel, operand), *out = ir_kernel_out_map(kernel, 0);
  int stored[IR_MAX_RANK], key[IR_MAX_RANK];
  ir_layout(&kernel->results[0], stored);
  for (int a = 0; a < map->rank; a++) {
    key[a] = 0;
    uint32_t dims = axis_dims(&map->axis[a]);
    for (int i = 0; i < out->rank; i++)
      if (axis_dims(&out->axis[stored[i]]) & dims) key[a] = i + 1;
  }
  order_by_key(map->rank, key, order);
}

/* What a kernel writes most easily. */
static void wish_result(const IrOp *kernel, const Roles *r, int *order) {
  const IrMap *out = ir_kernel_out_map(kernel, 0);
  int key[IR_MAX_RANK];
  identity(order);
  if (r->matrix) {
    for (int a = 0; a < out->rank; a++) {
      uint32_t dims = axis_dims(&out->axis[a]);
      key[a] = dims & r->w_only ? 2 : dims & r->x_only ? 1 : 0;
    }
    order_by_key(out->rank, key, order);
    return;
  }
  int largest = -1;
  for (int i = 0; i < kernel->noperands; i++)
    if (largest < 0 || ir_type_elements(ir_operand(kernel, i)->type) >
                           ir_type_elements(ir_operand(kernel, largest)->type))
      largest = i;
  if (largest < 0) return;
  for (int a = 0; a < out->rank; a++) key[a] = place_in(kernel, largest, axis_dims(&out->axis[a]));
  order_by_key(out->rank, key, order);
}

/* ---- the walk ---- */

/* Whether the axes of more than one element keep their order; where the others stand changes
 * nothing. */
static bool is_row_major(const IrType *t, const int *order) {
  int last = -1;
  for (int i = 0; i < t->rank; i++) {
    if (t->shape[order[i]] == 1) continue;
    if (order[i] < last) return false;
    last = order[i];
  }
  return true;
}

static void set_order(PassContext *pc, IrValue *v, const int *order) {
  if (is_row_major(v->type, order) && !ir_attr(v->def, "layout")) return;
  ir_set_layout(v, order);
  pass_count(pc, "tensors reordered", 1);
}

/* The first kernel that sums over the value's elements as activations decides; otherwise the
 * maker's wish stands. */
static void choose_result(PassContext *pc, IrOp *kernel, const Roles *r) {
  if (kernel->nresults != 1 || !is_free(&kernel->results[0])) return;
  IrValue *v = &kernel->results[0];
  int order[IR_MAX_RANK];
  wish_result(kernel, r, order);
  for (const IrUse *u = v->uses; u; u = u->next) {
    Roles reader = roles_of(u->op);
    if (!reader.matrix || reader.x != u->index) continue;
    wish_x(u->op, u->index, reader.red, order);
    break;
  }
  set_order(pc, v, order);
}

/* A constant's order is the wish of its first reader; a reader that differs gets a copy. */
static void choose_constant(PassContext *pc, IrOp *kernel, int operand, const Roles *r) {
  IrValue *v = ir_operand(kernel, operand);
  int order[IR_MAX_RANK], current[IR_MAX_RANK];
  identity(order);
  if (r->matrix && operand == r->w)
    wish_w(kernel, r, order);
  else if (r->matrix && operand == r->x)
    wish_x(kernel, operand, r->red, order);
  else
    wish_beside(kernel, operand, order);
  ir_layout(v, current);
  if (memcmp(order, current, sizeof(int) * (size_t)v->type->rank) == 0) {
    ir_set_layout(v, order); /* marks it as chosen */
    return;
  }
  if (ir_attr(v->def, "layout")) {
    IrOp *copy = ir_op_clone(pc->module, v->def, NULL, NULL);
    ir_op_insert_after(v->def, copy);
    ir_set_operand(kernel, operand, &copy->results[0]);
    v = &copy->results[0];
    pass_count(pc, "constants duplicated", 1);
  }
  set_order(pc, v, order);
}

/* Row-major orders were noted on constants only to tell "chosen" from "not yet". */
static void drop_identity(IrFunc *f) {
  for (IrOp *op = f->body->first; op; op = op->next) {
    int order[IR_MAX_RANK];
    if (op->nresults != 1 || !is_constant(&op->results[0])) continue;
    ir_layout(&op->results[0], order);
    if (is_row_major(op->results[0].type, order)) ir_set_attr(op, "layout", NULL);
  }
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  for (IrOp *op = f->body->first; op; op = op->next) {
    if (op->kind != IR_OP_KERNEL || op->nresults == 0) continue;
    Roles r = roles_of(op);
    choose_result(pc, op, &r);
    for (int i = 0; i < op->noperands; i++)
      if (is_constant(ir_operand(op, i)) && is_free(ir_operand(op, i)))
        choose_constant(pc, op, i, &r);
  }
  drop_identity(f);
  return PASS_OK;
}

const Pass pass_layout = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(Pass),
    .name = "layout",
    .help = "choose the storage order of intermediate tensors and constants",
    .from = IR_NEST,
    .to = IR_NEST,
    .options = NULL,
    .run = run,
};
