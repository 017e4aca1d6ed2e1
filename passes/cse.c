/* cse: one op where several compute the same: same kind, operands and attributes (operands of
 * commutative ops in any order). Level: graph. Needs: SSA, pure ops. Keeps: everything. Terminates:
 * one walk; every merge removes an op. */
#include "passes/passes.h"
#define uthash_malloc(size) mem_alloc(size)
#define uthash_free(p, size) mem_free(p)
#include <string.h>
#include <uthash.h>

/* The key is an array of pointers and numbers; two ops are the same when their keys are. */
typedef struct {
  UT_hash_handle hh;
  IrOp *op;
} Seen;

typedef struct {
  uintptr_t *words;
  size_t n;
} Key;

static Key key_of(Arena *a, const IrOp *op) {
  size_t n = 3 + (size_t)op->noperands + 2 * (size_t)op->nattrs;
  Key k = {ARENA_ARRAY(a, uintptr_t, n), 0};
  k.words[k.n++] = (uintptr_t)op->kind;
  k.words[k.n++] = (uintptr_t)op->noperands;
  k.words[k.n++] = (uintptr_t)op->results[0].type;
  uintptr_t *operands = &k.words[k.n];
  for (int i = 0; i < op->noperands; i++) k.words[k.n++] = (uintptr_t)ir_operand(op, i);
  if (ir_has_trait(op, IR_COMMUTATIVE) && op->noperands == 2 && operands[0] > operands[1]) {
    uintptr_t t = operands[0];
    operands[0] = operands[1];
    operands[1] = t;
  }
  for (int i = 0; i < op->nattrs; i++) {
    k.words[k.n++] = (uintptr_t)op->attrs[i].name;
    k.words[k.n++] = (uintptr_t)op->attrs[i].value;
  }
  return k;
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  Seen *table = NULL;
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    if (!ir_has_trait(op, IR_PURE) || op->nresults == 0 || op->region) continue;
    Key k = key_of(pc->scratch, op);
    Seen *seen = NULL;
    HASH_FIND(hh, table, k.words, k.n * sizeof(uintptr_t), seen);
    if (!seen) {
      seen = ARENA_NEW(pc->scratch, Seen);
      seen->op = op;
      HASH_ADD_KEYPTR(hh, table, k.words, k.n * sizeof(uintptr_t), seen);
      continue;
    }
    for (int i = 0; i < op->nresults; i++)
      ir_replace_all_uses(&op->results[i], &seen->op->results[i]);
    ir_op_erase(op);
    pass_count(pc, "ops merged", 1);
  }
  HASH_CLEAR(hh, table);
  return PASS_OK;
}

const Pass pass_cse = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(Pass),
    .name = "cse",
    .help = "merge ops that compute the same",
    .from = IR_GRAPH,
    .to = IR_GRAPH,
    .options = NULL,
    .run = run,
};
