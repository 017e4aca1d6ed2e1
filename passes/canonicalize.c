/* canonicalize: the plainest of equal graphs: no operations without effect, no two rearrangements
 * where one does, transposes as flags of products, batch normalisation as scaled weights. Level:
 * graph. Needs: shapes. Keeps: values (batch normalisation with constant parameters is rounded
 * differently). Terminates: every rewrite removes an op, or replaces one by ops no rewrite turns
 * back (see MAX_ROUNDS). */
#include "passes/canonicalize_internal.h"
#include "passes/expand.h"

/* A guard against a pair of rewrites undoing each other: real graphs settle in two or three rounds.
 */
#define MAX_ROUNDS 64

bool replace_with(IrOp *op, IrValue *v) {
  if (!v->name) v->name = op->results[0].name;
  ir_replace_all_uses(&op->results[0], v);
  ir_op_erase(op);
  return true;
}

static bool expand(IrOp *op) {
  return expand_op(op) != NULL;
}

static const struct {
  RewriteFn *rewrite;
  const char *what; /* for --stats */
} rewrites[] = {
    {simplify_arith, "arithmetic without effect"},
    {simplify_cast, "casts removed"},
    {simplify_repeated, "repetitions removed"},
    {simplify_reshape, "reshapes merged"},
    {sink_reshape, "reshapes moved behind elementwise ops"},
    {simplify_transpose, "transposes merged"},
    {simplify_slice, "slices merged"},
    {simplify_no_move, "rearrangements without effect"},
    {simplify_argmax, "searches among equals"},
    {expand, "ops expanded"},
    {absorb_transpose, "transposes made flags"},
    {absorb_batch_norm, "normalisations made weights"},
    {expand_batch_norm, "normalisations made scales"},
};

static bool rewrite_op(PassContext *pc, IrOp *op) {
  for (size_t i = 0; i < NPU_COUNTOF(rewrites); i++) {
    if (!rewrites[i].rewrite(op)) continue;
    pass_count(pc, rewrites[i].what, 1);
    return true;
  }
  return false;
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  bool changed = true;
  for (int round = 0; changed && round < MAX_ROUNDS; round++) {
    changed = false;
    for (IrOp *op = f->body->first, *next; op; op = next) {
      next = op->next;
      changed |= rewrite_op(pc, op);
    }
  }
  return PASS_OK;
}

const Pass pass_canonicalize = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(Pass),
    .name = "canonicalize",
    .help = "rewrite to the plainest equal ops",
    .from = IR_GRAPH,
    .to = IR_GRAPH,
    .options = NULL,
    .run = run,
};
