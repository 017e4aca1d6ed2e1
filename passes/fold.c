/* fold: ops whose operands are all known become constants. Reshapes, transposes and casts are done
 * here; everything else is gathered in one function and run on the host reference once. Level:
 * graph. Needs: SSA. Keeps: values. Terminates: one walk. Results much larger than what they are
 * made from stay computed: memory is dearer than arithmetic. */
#include "passes/passes.h"
#define uthash_malloc(size) mem_alloc(size)
#define uthash_free(p, size) mem_free(p)
#include <string.h>
#include <uthash.h>

enum { ALWAYS_FOLD_BYTES = 4096, MAX_GROWTH = 2 };

static bool is_constant(const IrValue *v) {
  return v->def && ir_has_trait(v->def, IR_CONSTANT);
}

static bool grows_too_much(const IrOp *op) {
  int64_t in = 0, out = 0;
  for (int i = 0; i < op->noperands; i++) in += ir_type_bytes(ir_operand(op, i)->type);
  for (int i = 0; i < op->nresults; i++) out += ir_type_bytes(op->results[i].type);
  return out > ALWAYS_FOLD_BYTES && out > MAX_GROWTH * in;
}

/* ---- done here ---- */

/* out[i...] = in, axes permuted: a walk over the result with a carried source offset. */
static void transpose_bytes(const IrType *from, const int64_t *perm, const char *in, char *out) {
  int rank = from->rank;
  int64_t stride[IR_MAX_RANK], step[IR_MAX_RANK], extent[IR_MAX_RANK], at[IR_MAX_RANK] = {0};
  size_t size = dtype_size(from->dtype);
  int64_t s = (int64_t)size;
  for (int i = rank; i-- > 0; s *= from->shape[i]) stride[i] = s;
  for (int i = 0; i < rank; i++) {
    step[i] = stride[perm[i]];
    extent[i] = from->shape[perm[i]];
  }
  int64_t rows = ir_type_elements(from) / extent[rank - 1];
  for (int64_t r = 0; r < rows; r++) {
    for (int64_t i = 0; i < extent[rank - 1]; i++, out += size)
      memcpy(out, in + i * step[rank - 1], size);
    for (int i = rank - 2; i >= 0; i--) {
      in += step[i];
      if (++at[i] < extent[i]) break;
      in -= step[i] * extent[i];
      at[i] = 0;
    }
  }
}

/* s32 becomes bf16 by way of f32 wherever it is computed, rounded twice; dtype_convert rounds once.
 */
static bool rounds_once(const IrOp *cast) {
  return ir_operand(cast, 0)->type->dtype != DT_S32 || cast->results[0].type->dtype != DT_BF16;
}

static bool is_local(const IrOp *op) {
  return op->kind == IR_OP_RESHAPE || op->kind == IR_OP_FLATTEN ||
         (op->kind == IR_OP_CAST && rounds_once(op)) ||
         (op->kind == IR_OP_TRANSPOSE && op->results[0].type->rank > 0);
}

static void fold_locally(IrOp *op) {
  IrBuilder b = ir_builder_before(op);
  const IrData *d = ir_constant_data(ir_operand(op, 0));
  const IrType *t = op->results[0].type;
  void *bytes;
  const IrAttr *attr = ir_attr_data_new(b.m, t, &bytes);
  if (op->kind == IR_OP_CAST) {
    dtype_convert(t->dtype, bytes, d->type->dtype, d->bytes, (size_t)ir_type_elements(t));
  } else if (op->kind == IR_OP_TRANSPOSE) {
    int64_t perm[IR_MAX_RANK] = {0};
    ir_get_ints(op, "perm", perm, IR_MAX_RANK);
    transpose_bytes(d->type, perm, d->bytes, bytes);
  } else {
    memcpy(bytes, d->bytes, (size_t)ir_type_bytes(t));
  }
  IrValue *v = ir_build_constant(&b, attr);
  v->name = op->results[0].name;
  ir_replace_all_uses(&op->results[0], v);
  ir_op_erase(op);
}

/* ---- done on the host ---- */

typedef struct {
  const IrValue *old;
  IrValue *copy;
  UT_hash_handle hh;
} Copied;

typedef struct {
  PassContext *pc;
  IrFunc *f; /* the function to run */
  Copied *copies;
  IrOp **ops; /* ops to fold */
  int nops;
  IrValue **wanted; /* their results that others read */
  int nwanted;
} Batch;

static IrValue *copied(void *user, IrValue *old) {
  Batch *b = user;
  Copied *c = NULL;
  HASH_FIND_PTR(b->copies, &old, c);
  if (c) return c->copy;
  return old;
}

static void copy_op(Batch *b, const IrOp *op) {
  IrOp *copy = ir_op_clone(b->pc->module, op, copied, b);
  ir_op_append(b->f->body, copy);
  for (int i = 0; i < op->nresults; i++) {
    Copied *c = ARENA_NEW(b->pc->scratch, Copied);
    c->old = &op->results[i];
    c->copy = &copy->results[i];
    HASH_ADD_PTR(b->copies, old, c);
  }
}

static bool in_batch(Batch *b, IrValue *v) {
  return copied(b, v) != v;
}

static bool can_fold(Batch *b, const IrOp *op) {
  if (!ir_has_trait(op, IR_PURE) || ir_has_trait(op, IR_CONSTANT)) return false;
  if (op->noperands == 0 || op->nresults == 0 || op->region || grows_too_much(op)) return false;
  for (int i = 0; i < op->noperands; i++)
    if (!is_constant(ir_operand(op, i)) && !in_batch(b, ir_operand(op, i))) return false;
  return true;
}

static void add_to_batch(Batch *b, IrOp *op) {
  for (int i = 0; i < op->noperands; i++)
    if (!in_batch(b, ir_operand(op, i))) copy_op(b, ir_operand(op, i)->def);
  copy_op(b, op);
  b->ops[b->nops++] = op;
}

static bool read_outside(Batch *b, const IrValue *v) {
  for (const IrUse *u = v->uses; u; u = u->next) {
    bool inside = false;
    for (int i = 0; i < u->op->nresults; i++) inside |= in_batch(b, &u->op->results[i]);
    if (!inside) return true;
  }
  return false;
}

static void finish_function(Batch *b, SrcLoc loc) {
  IrValue **results = ARENA_ARRAY(b->pc->scratch, IrValue *, b->nwanted);
  for (int i = 0; i < b->nwanted; i++) results[i] = copied(b, b->wanted[i]);
  IrBuilder at = ir_builder_at_end(b->f->body, loc);
  ir_build_typed(&at, IR_OP_RETURN, b->nwanted, results, 0, NULL, 0, NULL);
  b->f->nresults = b->nwanted;
  b->f->result_names = ARENA_ARRAY(b->pc->module->arena, const char *, b->nwanted);
  for (int i = 0; i < b->nwanted; i++)
    b->f->result_names[i] = ir_str(b->pc->module, arena_printf(b->pc->scratch, "r%d", i));
}

static void replace_by_constants(Batch *b, const IrAttr **data) {
  for (int i = 0; i < b->nwanted; i++) {
    IrValue *v = b->wanted[i];
    IrBuilder at = ir_builder_before(v->def);
    IrValue *known = ir_build_constant(&at, data[i]);
    known->name = v->name;
    ir_replace_all_uses(v, known);
  }
  for (int i = b->nops; i-- > 0;) {
    bool used = false;
    for (int r = 0; r < b->ops[i]->nresults; r++) used |= b->ops[i]->results[r].uses != NULL;
    if (!used) ir_op_erase(b->ops[i]);
  }
}

/* False after a diagnostic. */
static bool fold_on_host(PassContext *pc, IrFunc *f) {
  int count = 0;
  for (IrOp *op = f->body->first; op; op = op->next) count++;
  Batch b = {.pc = pc};
  unsigned errors = diag_errors(pc->diag);
  b.ops = ARENA_ARRAY(pc->scratch, IrOp *, count);
  b.f = ir_func_new(pc->module, "fold.constants", IR_GRAPH);
  for (IrOp *op = f->body->first; op; op = op->next)
    if (can_fold(&b, op)) add_to_batch(&b, op);
  b.wanted = ARENA_ARRAY(pc->scratch, IrValue *, 64 * (size_t)b.nops + 1);
  for (int i = 0; i < b.nops; i++)
    for (int r = 0; r < b.ops[i]->nresults; r++)
      if (read_outside(&b, &b.ops[i]->results[r])) b.wanted[b.nwanted++] = &b.ops[i]->results[r];
  if (b.nwanted > 0) {
    finish_function(&b, f->loc);
    const IrAttr **data = ARENA_ARRAY(pc->scratch, const IrAttr *, b.nwanted);
    if (pc->evaluate(pc->host, b.f, data)) {
      pass_count(pc, "ops run at compile time", b.nops);
      replace_by_constants(&b, data);
    }
  }
  HASH_CLEAR(hh, b.copies);
  ir_func_erase(b.f);
  return diag_errors(pc->diag) == errors;
}

/* ---- the pass ---- */

static PassStatus run(PassContext *pc, IrFunc *f) {
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    if (!is_local(op) || !is_constant(ir_operand(op, 0)) || grows_too_much(op)) continue;
    fold_locally(op);
    pass_count(pc, "constants rearranged", 1);
  }
  return !pc->evaluate || fold_on_host(pc, f) ? PASS_OK : PASS_FAILED;
}

const Pass pass_fold = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(Pass),
    .name = "fold",
    .help = "compute what is known at compile time",
    .from = IR_GRAPH,
    .to = IR_GRAPH,
    .options = NULL,
    .run = run,
};
