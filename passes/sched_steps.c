/* Splits a kernel's body into steps: what one instruction (the array, or one vector program)
 * computes over a set of dimensions. A reduction ends a step; what lies between reductions is
 * computed where it is used, except values that would cost a special function twice, which are kept
 * in scratchpad. */
#include "passes/sched.h"
#include <string.h>

int sched_scalar(const KernelInfo *ki, const IrValue *scalar) {
  for (int i = 0; i < ki->nscalars; i++)
    if (ki->scalar[i].value == scalar) return i;
  return -1;
}

int sched_store_of(const KernelInfo *ki, const IrValue *scalar) {
  for (int i = 0; i < ki->nstores; i++)
    if (ki->store[i].scalar == scalar && ki->store[i].kind != STORE_RESULT) return i;
  for (int i = 0; i < ki->nstores; i++) /* a reduction collected in its result's block */
    if (ki->store[i].scalar == scalar && ir_is(scalar->def, IR_OP_REDUCE)) return i;
  return -1;
}

static bool is_sfu(const IrOp *op) {
  switch ((IrBodyKind)op->kind) {
  case IR_BODY_DIV:
  case IR_BODY_EXP:
  case IR_BODY_LOG:
  case IR_BODY_SQRT:
  case IR_BODY_RSQRT:
  case IR_BODY_RECIP:
  case IR_BODY_ERF:
  case IR_BODY_TANH:
  case IR_BODY_SIN:
  case IR_BODY_COS: return true;
  case IR_BODY_ADD:
  case IR_BODY_SUB:
  case IR_BODY_MUL:
  case IR_BODY_MIN:
  case IR_BODY_MAX:
  case IR_BODY_EQ:
  case IR_BODY_NE:
  case IR_BODY_LT:
  case IR_BODY_LE:
  case IR_BODY_GT:
  case IR_BODY_GE:
  case IR_BODY_WHERE:
  case IR_BODY_NEG:
  case IR_BODY_ABS:
  case IR_BODY_FLOOR:
  case IR_BODY_ROUND:
  case IR_BODY_CAST:
  case IR_BODY_CONSTANT:
  case IR_BODY_REDUCE:
  case IR_BODY_INDEX:
  case IR_BODY_YIELD: break;
  }
  return false;
}

static uint32_t reduce_over(const IrOp *reduce) {
  int64_t over[IR_MAX_DIMS];
  int n = ir_get_ints(reduce, "over", over, IR_MAX_DIMS);
  uint32_t set = 0;
  for (int i = 0; i < n; i++) set |= 1u << over[i];
  return set;
}

/* Phase in which a use of the value by op happens: a reduction reads in its operand's phase. */
static int use_phase(const KernelInfo *ki, const IrOp *op) {
  int phase = 0;
  for (int i = 0; i < op->noperands; i++) {
    int k = sched_scalar(ki, ir_operand(op, i));
    if (k >= 0 && ki->scalar[k].phase > phase) phase = ki->scalar[k].phase;
  }
  return phase;
}

static bool used_later(const KernelInfo *ki, const IrValue *v, int phase) {
  for (const IrUse *u = v->uses; u; u = u->next)
    if (u->op->kind != IR_OP_YIELD && use_phase(ki, u->op) > phase) return true;
  return false;
}

static int add_store(KernelInfo *ki, StoreKind kind, int index, const IrValue *scalar, DType dtype,
                     uint32_t dims) {
  if (ki->nstores == SCHED_MAX_STORES) return -1;
  ki->store[ki->nstores] = (Store){
      .kind = kind, .index = index, .scalar = scalar, .dtype = dtype, .dims = dims, .carry = -1};
  return ki->nstores++;
}

static bool add_scalar(KernelInfo *ki, const IrValue *v, uint32_t dims, int phase, bool sfu) {
  if (ki->nscalars == SCHED_MAX_SCALARS) return false;
  ki->scalar[ki->nscalars].value = v;
  ki->scalar[ki->nscalars].dims = dims;
  ki->scalar[ki->nscalars].phase = phase;
  ki->scalar[ki->nscalars++].sfu = sfu;
  return true;
}

/* Dimensions, phase and inline cost of every scalar; reduction results and expensive values used in
 * a later phase get a stage store. */
static bool read_scalars(KernelInfo *ki) {
  IrBlock *body = ki->op->region;
  for (int i = 0; i < body->nargs; i++)
    if (!add_scalar(ki, body->args[i], sched_operand_dims(ki, i), 0, false)) return false;
  for (const IrOp *op = body->first; op && op->kind != IR_OP_YIELD; op = op->next) {
    uint32_t dims = 0;
    bool sfu = is_sfu(op);
    for (int i = 0; i < op->noperands; i++) {
      int k = sched_scalar(ki, ir_operand(op, i));
      if (k < 0) return false;
      dims |= ki->scalar[k].dims;
      sfu = sfu || ki->scalar[k].sfu;
    }
    int phase = use_phase(ki, op);
    if (op->kind == IR_OP_REDUCE) dims &= ~reduce_over(op), phase++, sfu = false;
    if (!add_scalar(ki, ir_result(op, 0), dims, phase, sfu)) return false;
  }
  return true;
}

static bool keep_scalars(KernelInfo *ki) {
  bool kept[SCHED_MAX_SCALARS] = {false};
  for (int i = 0; i < ki->nscalars; i++) {
    const IrValue *v = ki->scalar[i].value;
    if (!v->def) continue;
    if (v->def->kind != IR_OP_REDUCE) { /* an operand that is kept no longer costs */
      bool sfu = is_sfu(v->def);
      for (int j = 0; j < v->def->noperands; j++) {
        int k = sched_scalar(ki, ir_operand(v->def, j));
        sfu = sfu || (ki->scalar[k].sfu && !kept[k]);
      }
      ki->scalar[i].sfu = sfu;
      kept[i] = sfu && used_later(ki, v, ki->scalar[i].phase);
      if (kept[i] && add_store(ki, STORE_STAGE, -1, v, v->type->dtype, ki->scalar[i].dims) < 0)
        return false;
    }
  }
  return true;
}

static const IrValue *strip_cast(const IrValue *v) {
  return v->def && v->def->kind == IR_OP_CAST ? ir_operand(v->def, 0) : v;
}

static bool map_is_affine(const IrMap *map) {
  for (int a = 0; a < map->rank; a++)
    if (map->axis[a].index >= 0) return false;
  return true;
}

/* Is this reduction a product the array can do? Then the operand numbers of its factors. */
static bool match_product(const KernelInfo *ki, const IrOp *reduce, int factor[2]) {
  const IrValue *p = ir_operand(reduce, 0);
  if (strcmp(ir_get_str(reduce, "op", ""), "sum") != 0 || !p->def || p->def->kind != IR_OP_MUL ||
      !ir_has_one_use(p))
    return false;
  DType t[2];
  for (int i = 0; i < 2; i++) {
    const IrValue *a = strip_cast(ir_operand(p->def, i));
    if (a->def || !map_is_affine(ir_kernel_in_map(ki->op, a->index))) return false;
    factor[i] = a->index;
    t[i] = a->type->dtype;
  }
  if (factor[0] == factor[1]) return false;
  bool integer = p->type->dtype == DT_S32 && t[0] == DT_S8 && t[1] == DT_S8;
  bool real = p->type->dtype == DT_F32 && (t[0] == DT_BF16 || t[1] == DT_BF16) &&
              (t[0] == DT_BF16 || t[0] == DT_S8) && (t[1] == DT_BF16 || t[1] == DT_S8);
  uint32_t d0 = sched_operand_dims(ki, factor[0]), d1 = sched_operand_dims(ki, factor[1]);
  uint32_t over = reduce_over(reduce);
  /* every contraction dimension must be in both factors */
  return (integer || real) && (over & ~(d0 & d1)) == 0;
}

/* The step a target joins: same phase, same dimensions, and at most one set of reduced dimensions.
 */
static Step *step_for(KernelInfo *ki, const int *phase_of_step, int phase, uint32_t par,
                      uint32_t red) {
  for (int i = 0; i < ki->nsteps; i++) {
    Step *s = &ki->step[i];
    if (s->mxu || phase_of_step[i] != phase || s->ntargets == SCHED_MAX_TARGETS) continue;
    if ((s->par | s->red) == (par | red) && (s->red == red || !s->red || !red)) return s;
  }
  return NULL;
}

static bool add_target(KernelInfo *ki, int *phase_of_step, int phase, uint32_t par, uint32_t red,
                       const IrValue *v, int store) {
  Step *s = step_for(ki, phase_of_step, phase, par, red);
  if (!s) {
    if (ki->nsteps == SCHED_MAX_STEPS) return false;
    phase_of_step[ki->nsteps] = phase;
    s = &ki->step[ki->nsteps++];
    *s = (Step){.par = par, .red = red, .epilogue = phase > 0};
  } else if (red) {
    s->par = par, s->red = red;
  }
  s->target[s->ntargets] = v;
  s->store[s->ntargets++] = store;
  return true;
}

/* A reduction that is a result as it stands is collected in the result's block; not when the result
 * repeats it along a further dimension. */
static int direct_result(const KernelInfo *ki, const IrValue *reduced, uint32_t dims) {
  for (const IrUse *u = reduced->uses; u; u = u->next)
    if (u->op->kind == IR_OP_YIELD) {
      for (int i = 0; i < ki->nstores; i++)
        if (ki->store[i].kind == STORE_RESULT && ki->store[i].index == u->index &&
            ki->store[i].dims == dims)
          return i;
    }
  return -1;
}

bool sched_is_float_sum(const IrOp *reduce) {
  return dtype_is_float(reduce->results[0].type->dtype) &&
         strcmp(ir_get_str(reduce, "op", "sum"), "sum") == 0;
}

static bool place_reduce(KernelInfo *ki, int *phase_of_step, int i, bool allow_mxu) {
  const IrValue *v = ki->scalar[i].value;
  int phase = ki->scalar[i].phase - 1, factor[2];
  uint32_t red = reduce_over(v->def), par = ki->scalar[i].dims;
  bool integer = v->type->dtype == DT_S32;
  if (allow_mxu && ki->mxu_step < 0 && phase == 0 && match_product(ki, v->def, factor)) {
    int store = add_store(ki, STORE_ACC, -1, v, integer ? DT_S32 : DT_F32, par);
    if (store < 0 || ki->nsteps == SCHED_MAX_STEPS) return false;
    ki->mxu_step = ki->nsteps;
    phase_of_step[ki->nsteps] = 0;
    ki->step[ki->nsteps++] = (Step){.mxu = true,
                                    .par = par,
                                    .red = red,
                                    .ntargets = 1,
                                    .target = {v},
                                    .store = {store},
                                    .factor = {factor[0], factor[1]}};
    return true;
  }
  int store = direct_result(ki, v, par);
  if (store < 0) store = add_store(ki, STORE_STAGE, -1, v, v->type->dtype, par);
  if (store < 0) return false;
  if (sched_is_float_sum(v->def)) {
    ki->store[store].carry = add_store(ki, STORE_CARRY, -1, NULL, DT_F32, par);
    if (ki->store[store].carry < 0) return false;
  }
  return add_target(ki, phase_of_step, phase, par, red, v, store);
}

static bool build_steps(KernelInfo *ki, bool allow_mxu) {
  int phase_of_step[SCHED_MAX_STEPS];
  const IrOp *yield = ki->op->region->last;
  for (int phase = 0; phase < ki->phases; phase++) {
    for (int i = 0; i < ki->nscalars; i++) {
      const IrValue *v = ki->scalar[i].value;
      bool reduce = ir_is(v->def, IR_OP_REDUCE);
      if (reduce && ki->scalar[i].phase == phase + 1 &&
          !place_reduce(ki, phase_of_step, i, allow_mxu))
        return false;
      if (reduce || ki->scalar[i].phase != phase) continue;
      int store = sched_store_of(ki, v);
      if (store >= 0 && ki->store[store].kind == STORE_STAGE &&
          !add_target(ki, phase_of_step, phase, ki->scalar[i].dims, 0, v, store))
        return false;
    }
    for (int r = 0; r < yield->noperands; r++) {
      const IrValue *v = ir_operand(yield, r);
      int k = sched_scalar(ki, v), store = ki->k.nin + r;
      if (ki->scalar[k].phase != phase) continue;
      if (ir_is(v->def, IR_OP_REDUCE) && sched_store_of(ki, v) == store)
        continue; /* already there */
      if (!add_target(ki, phase_of_step, phase, ki->store[store].dims, 0, v, store)) return false;
    }
  }
  return true;
}

static void visit_reads(const KernelInfo *ki, const IrValue *v, bool top, uint64_t seen[],
                        void (*visit)(void *, int), void *user) {
  int k = sched_scalar(ki, v);
  if (seen[k / 64] >> (k % 64) & 1) return;
  seen[k / 64] |= 1ull << (k % 64);
  int store = top && v->def ? -1 : sched_store_of(ki, v);
  if (store >= 0) {
    visit(user, store);
    return;
  }
  for (int i = 0; v->def && i < v->def->noperands; i++)
    visit_reads(ki, ir_operand(v->def, i), false, seen, visit, user);
}

void sched_step_reads(const KernelInfo *ki, const Step *st, void (*visit)(void *, int),
                      void *user) {
  uint64_t seen[(SCHED_MAX_SCALARS + 63) / 64] = {0};
  for (int t = 0; t < st->ntargets; t++) {
    /* a kept reduction that is stored again is read from its store */
    const IrValue *v = st->target[t];
    bool computes = !ir_is(v->def, IR_OP_REDUCE) || sched_store_of(ki, v) == st->store[t];
    visit_reads(ki, v, computes, seen, visit, user);
  }
}

typedef struct {
  KernelInfo *ki;
  IsaEngine engine;
} Marking;
static void mark_reader(void *user, int store) {
  Marking *m = user;
  m->ki->store[store].readers |= (uint8_t)(1u << m->engine);
}

/* Which dimensions may be cut over grid steps. Dimensions nothing varies over count as one element.
 */
static void classify_dims(KernelInfo *ki) {
  ki->all = 0;
  for (int i = 0; i < ki->nscalars; i++) ki->all |= ki->scalar[i].dims;
  for (int r = 0; r < ki->k.nout; r++) ki->all |= ir_map_dims(ir_kernel_out_map(ki->op, r));
  for (int i = 0; i < ki->nsteps; i++) ki->all |= ki->step[i].red;
  for (int d = 0; d < ki->k.ndims; d++)
    if (!(ki->all >> d & 1)) ki->k.extent[d] = 1;
  uint32_t in_results = 0, reduced = 0, everywhere = ki->all, later = 0;
  for (int r = 0; r < ki->k.nout; r++) in_results |= ir_map_dims(ir_kernel_out_map(ki->op, r));
  for (int i = 0; i < ki->nscalars; i++) {
    const IrValue *v = ki->scalar[i].value;
    if (ki->scalar[i].phase > 0) later |= ki->scalar[i].dims;
    if (!ir_is(v->def, IR_OP_REDUCE)) continue;
    uint32_t over = reduce_over(v->def);
    reduced |= over;
    if (ki->scalar[i].phase == 1)
      everywhere &= over;
    else
      later |= over;
  }
  ki->red = reduced & ~in_results;
  ki->par = ki->all & ~ki->red;
  ki->tileable_red = ki->red & everywhere & ~later;
  ki->whole = reduced & ~ki->tileable_red;
}

bool sched_analyze(const IrOp *kernel, KernelInfo *ki, const char **why) {
  bool array = strcmp(ir_get_str(kernel, "engine", ""), "vpu") != 0;
  memset(ki, 0, sizeof *ki);
  ki->op = kernel;
  ki->mxu_step = -1;
  ir_kernel_read(kernel, &ki->k);
  *why = "a body of more values than a schedule holds";
  for (int i = 0; i < ki->k.nin; i++)
    if (add_store(ki, STORE_OPERAND, i, kernel->region->args[i], ir_operand(kernel, i)->type->dtype,
                  sched_operand_dims(ki, i)) < 0)
      return false;
  for (int r = 0; r < ki->k.nout; r++)
    if (add_store(ki, STORE_RESULT, r, ir_operand(kernel->region->last, r),
                  kernel->results[r].type->dtype, ir_map_dims(ir_kernel_out_map(kernel, r))) < 0)
      return false;
  if (!read_scalars(ki) || !keep_scalars(ki)) return false;
  ki->phases = 1;
  for (int i = 0; i < ki->nscalars; i++)
    if (ki->scalar[i].phase + 1 > ki->phases) ki->phases = ki->scalar[i].phase + 1;
  if (!build_steps(ki, array)) return false;
  classify_dims(ki);
  for (int i = 0; i < ki->nsteps; i++) {
    Step *st = &ki->step[i];
    if (!st->mxu) sched_step_reads(ki, st, mark_reader, &(Marking){ki, ENGINE_VPU});
  }
  *why = NULL;
  return true;
}

uint32_t sched_operand_dims(const KernelInfo *ki, int operand) {
  const IrMap *map = ir_kernel_in_map(ki->op, operand);
  uint32_t dims = ir_map_dims(map);
  for (int a = 0; a < map->rank; a++)
    if (map->axis[a].index >= 0) dims |= sched_operand_dims(ki, map->axis[a].index);
  return dims;
}
