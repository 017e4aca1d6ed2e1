/* Splitting a kernel after its first reductions: what tile does when rows do not fit the
 * scratchpad. The first kernel returns the reductions as tensors, the second reads them as
 * operands; both can then be cut along the reduced dimensions. */
#include "passes/kernel_edit.h"
#include "passes/sched.h"
#include <string.h>

enum { MAX_SPLIT = 8, MAX_OPERANDS = 64 };

/* Copies of a kernel's body share its arguments' order; from[i] became to[i]. */
typedef struct {
  IrValue **from, **to;
  int n;
} Renaming;

static IrValue *renamed(void *user, IrValue *old) {
  Renaming *r = user;
  for (int i = 0; i < r->n; i++)
    if (r->from[i] == old) return r->to[i];
  return old;
}

static void copy_body(PassContext *pc, const IrOp *from, IrOp *to, Renaming *r) {
  int max = from->region->nargs;
  for (IrOp *op = from->region->first; op; op = op->next) max += op->nresults;
  r->from = ARENA_ARRAY(pc->scratch, IrValue *, max + 1);
  r->to = ARENA_ARRAY(pc->scratch, IrValue *, max + 1);
  r->n = 0;
  for (int i = 0; i < from->region->nargs; i++) {
    r->from[r->n] = from->region->args[i];
    r->to[r->n++] = to->region->args[i];
  }
  for (IrOp *op = from->region->first; op && op->kind != IR_OP_YIELD; op = op->next) {
    IrOp *copy = ir_op_clone(pc->module, op, renamed, r);
    ir_op_append(to->region, copy);
    r->from[r->n] = ir_result(op, 0);
    r->to[r->n++] = ir_result(copy, 0);
  }
}

static void yield(IrOp *kernel, SrcLoc loc, int n, IrValue *const *values) {
  IrBuilder b = ir_builder_at_end(kernel->region, loc);
  ir_build_typed(&b, IR_OP_YIELD, n, values, 0, NULL, 0, NULL);
}

/* The first reductions of a kernel, as results of a kernel of their own. */
typedef struct {
  int n;
  IrValue *reduced[MAX_SPLIT];
  const IrType *types[MAX_SPLIT];
  IrMap maps[MAX_SPLIT];
} Cut;

/* Nothing would be left for the second kernel. */
static bool only_reductions(const KernelInfo *ki) {
  const IrOp *y = ki->op->region->last;
  for (int i = 0; i < y->noperands; i++) {
    const IrValue *v = ir_operand(y, i);
    if (!ir_is(v->def, IR_OP_REDUCE) || ki->scalar[sched_scalar(ki, v)].phase != 1) return false;
  }
  return true;
}

static bool find_cut(PassContext *pc, const KernelInfo *ki, Cut *cut) {
  for (IrOp *op = ki->op->region->first; op; op = op->next) {
    int i = op->kind == IR_OP_REDUCE ? sched_scalar(ki, ir_result(op, 0)) : -1, rank = 0;
    int64_t shape[IR_MAX_RANK];
    if (i < 0 || ki->scalar[i].phase != 1) continue;
    if (cut->n == MAX_SPLIT || __builtin_popcount(ki->scalar[i].dims) > IR_MAX_RANK) return false;
    IrMap *map = &cut->maps[cut->n];
    *map = ir_map_zero(__builtin_popcount(ki->scalar[i].dims));
    for (int d = 0; d < ki->k.ndims; d++) {
      if (!(ki->scalar[i].dims >> d & 1)) continue;
      ir_map_dim(map, rank, d, 1);
      shape[rank++] = ki->k.extent[d];
    }
    cut->reduced[cut->n] = ir_result(op, 0);
    cut->types[cut->n++] = ir_type_tensor(pc->module, op->results[0].type->dtype, rank, shape);
  }
  return cut->n > 0 && !only_reductions(ki);
}

/* Operands of a kernel being built. */
typedef struct {
  int n;
  IrValue *in[MAX_OPERANDS];
  IrMap maps[MAX_OPERANDS];
  const IrAttr *pads[MAX_OPERANDS];
} Inputs;

static void add_input(Inputs *in, IrValue *v, const IrMap *map, const IrAttr *pad) {
  in->in[in->n] = v;
  in->maps[in->n] = *map;
  in->pads[in->n++] = pad;
}

static IrOp *build_first(PassContext *pc, IrOp *k, const IrKernel *info, const Inputs *in,
                         const Cut *cut) {
  IrBuilder b = ir_builder_before(k);
  Renaming r;
  IrValue *out[MAX_SPLIT];
  IrOp *first = ir_kernel_new(&b, info->ndims, info->name, info->extent, in->n, in->in, in->maps,
                              in->pads, cut->n, cut->types, cut->maps);
  copy_body(pc, k, first, &r);
  for (int i = 0; i < cut->n; i++) out[i] = renamed(&r, cut->reduced[i]);
  yield(first, k->loc, cut->n, out);
  return first;
}

static IrOp *build_rest(PassContext *pc, IrOp *k, const IrKernel *info, const Inputs *in,
                        const Cut *cut) {
  IrBuilder b = ir_builder_before(k);
  Renaming r;
  const IrType **types = ARENA_ARRAY(pc->scratch, const IrType *, k->nresults + 1);
  IrMap *maps = ARENA_ARRAY(pc->scratch, IrMap, k->nresults + 1);
  IrValue **out = ARENA_ARRAY(pc->scratch, IrValue *, k->nresults + 1);
  for (int i = 0; i < k->nresults; i++) {
    types[i] = k->results[i].type;
    maps[i] = *ir_kernel_out_map(k, i);
  }
  IrOp *rest = ir_kernel_new(&b, info->ndims, info->name, info->extent, in->n, in->in, in->maps,
                             in->pads, k->nresults, types, maps);
  copy_body(pc, k, rest, &r);
  for (int i = 0; i < k->nresults; i++) out[i] = renamed(&r, ir_operand(k->region->last, i));
  yield(rest, k->loc, k->nresults, out);
  for (int i = 0; i < cut->n; i++)
    ir_replace_all_uses(renamed(&r, cut->reduced[i]), rest->region->args[in->n - cut->n + i]);
  if (ir_attr(k, "layout")) ir_set_attr(rest, "layout", ir_attr(k, "layout"));
  return rest;
}

bool sched_split(PassContext *pc, IrOp *k, IrOp **first, IrOp **rest) {
  KernelInfo ki;
  IrKernel info;
  Inputs *in = ARENA_NEW(pc->scratch, Inputs);
  Cut *cut = ARENA_NEW(pc->scratch, Cut);
  const char *why;
  const IrAttr *pads = ir_attr(k, "pads");
  if (!sched_analyze(k, &ki, &why) || !find_cut(pc, &ki, cut) ||
      k->noperands + cut->n > MAX_OPERANDS)
    return false;
  ir_kernel_read(k, &info);
  for (int i = 0; i < k->noperands; i++)
    add_input(in, ir_operand(k, i), ir_kernel_in_map(k, i), pads->array.items[i]);
  *first = build_first(pc, k, &info, in, cut);
  for (int i = 0; i < cut->n; i++)
    add_input(in, ir_result(*first, i), &cut->maps[i], ir_attr_str(pc->module, "none"));
  *rest = build_rest(pc, k, &info, in, cut);
  for (int i = 0; i < k->nresults; i++) ir_replace_all_uses(ir_result(k, i), ir_result(*rest, i));
  kernel_set_name(*first, kernel_name(k));
  kernel_set_name(*rest, kernel_name(k));
  ir_op_erase(k);
  *first = kernel_simplify(*first);
  *rest = kernel_simplify(*rest);
  return true;
}
