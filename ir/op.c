/* Ops, values, uses and blocks: the doubly linked structure every pass edits. */
#include "ir/internal.h"

#include <assert.h>
#include <string.h>

/* ---- use lists ---- */

static void use_link(IrUse *u, IrValue *v) {
  u->value = v;
  u->prev = NULL;
  u->next = v ? v->uses : NULL;
  if (u->next) u->next->prev = u;
  if (v) v->uses = u;
}

static void use_unlink(IrUse *u) {
  if (!u->value) return;
  if (u->prev)
    u->prev->next = u->next;
  else
    u->value->uses = u->next;
  if (u->next) u->next->prev = u->prev;
  u->prev = u->next = NULL;
  u->value = NULL;
}

/* Moves a linked slot in memory without changing its place in the list. */
static void use_move(IrUse *to, IrUse *from) {
  *to = *from;
  if (!to->value) return;
  if (to->prev)
    to->prev->next = to;
  else
    to->value->uses = to;
  if (to->next) to->next->prev = to;
}

void ir_set_operand(IrOp *op, int i, IrValue *v) {
  assert(i >= 0 && i < op->noperands);
  use_unlink(&op->operands[i]);
  use_link(&op->operands[i], v);
}

void ir_add_operand(IrOp *op, IrValue *v) {
  int n = op->noperands;
  if (!op->operands || n + 1 > capacity_for(n)) {
    IrUse *grown = ARENA_ARRAY(op->module->arena, IrUse, capacity_for(n + 1));
    for (int i = 0; i < n; i++) use_move(&grown[i], &op->operands[i]);
    op->operands = grown;
  }
  op->operands[n] = (IrUse){.op = op, .index = n};
  op->noperands = n + 1;
  use_link(&op->operands[n], v);
}

void ir_remove_operand(IrOp *op, int i) {
  assert(i >= 0 && i < op->noperands);
  use_unlink(&op->operands[i]);
  for (int j = i + 1; j < op->noperands; j++) {
    use_move(&op->operands[j - 1], &op->operands[j]);
    op->operands[j - 1].index = j - 1;
  }
  op->noperands--;
}

void ir_replace_all_uses(IrValue *from, IrValue *to) {
  if (from == to) return;
  while (from->uses) ir_set_operand(from->uses->op, from->uses->index, to);
}

bool ir_has_one_use(const IrValue *v) {
  return v->uses && !v->uses->next;
}

int ir_use_count(const IrValue *v) {
  int n = 0;
  for (const IrUse *u = v->uses; u; u = u->next) n++;
  return n;
}

/* ---- blocks ---- */

IrBlock *block_new(IrModule *m, IrFunc *f, IrOp *owner) {
  IrBlock *b = ARENA_NEW(m->arena, IrBlock);
  b->func = f;
  b->owner = owner;
  return b;
}

IrFunc *ir_block_func(const IrBlock *b) {
  while (b && b->owner) b = b->owner->parent;
  return b ? b->func : NULL;
}

IrModule *block_module(const IrBlock *b) {
  return b->owner ? b->owner->module : b->func->module;
}

IrValue *ir_block_add_arg(IrBlock *b, const IrType *type, const char *name) {
  IrModule *m = block_module(b);
  if (!b->args || b->nargs + 1 > capacity_for(b->nargs)) {
    IrValue **grown = ARENA_ARRAY(m->arena, IrValue *, capacity_for(b->nargs + 1));
    if (b->nargs) memcpy(grown, b->args, sizeof *grown * (size_t)b->nargs);
    b->args = grown;
  }
  IrValue *v = ARENA_NEW(m->arena, IrValue);
  v->type = type;
  v->block = b;
  v->index = b->nargs;
  v->name = name ? ir_str(m, name) : NULL;
  b->args[b->nargs++] = v;
  return v;
}

void ir_block_remove_arg(IrBlock *b, int index) {
  assert(index >= 0 && index < b->nargs && !b->args[index]->uses);
  for (int i = index + 1; i < b->nargs; i++) {
    b->args[i - 1] = b->args[i];
    b->args[i - 1]->index = i - 1;
  }
  b->nargs--;
}

/* ---- ops ---- */

IrOp *ir_op_new(IrModule *m, IrOpKind kind, SrcLoc loc, int noperands, IrValue *const *operands,
                int nresults, const IrType *const *result_types) {
  IrOp *op = ARENA_NEW(m->arena, IrOp);
  op->kind = kind;
  op->loc = loc;
  op->module = m;
  op->noperands = noperands;
  op->nresults = nresults;
  op->operands = noperands ? ARENA_ARRAY(m->arena, IrUse, capacity_for(noperands)) : NULL;
  for (int i = 0; i < noperands; i++) {
    op->operands[i] = (IrUse){.op = op, .index = i};
    use_link(&op->operands[i], operands[i]);
  }
  op->results = nresults ? ARENA_ARRAY(m->arena, IrValue, nresults) : NULL;
  for (int i = 0; i < nresults; i++)
    op->results[i] = (IrValue){.type = result_types[i], .def = op, .index = i};
  return op;
}

IrModule *ir_op_module(const IrOp *op) {
  return op->module;
}

IrBlock *ir_op_add_region(IrOp *op) {
  if (!op->region) op->region = block_new(op->module, NULL, op);
  return op->region;
}

/* Links op into b between prev and next. */
static void op_link(IrBlock *b, IrOp *op, IrOp *prev, IrOp *next) {
  assert(!op->parent);
  op->parent = b;
  op->prev = prev;
  op->next = next;
  if (prev)
    prev->next = op;
  else
    b->first = op;
  if (next)
    next->prev = op;
  else
    b->last = op;
}

void ir_op_append(IrBlock *b, IrOp *op) {
  op_link(b, op, b->last, NULL);
}

void ir_op_insert_before(IrOp *pos, IrOp *op) {
  op_link(pos->parent, op, pos->prev, pos);
}

void ir_op_insert_after(IrOp *pos, IrOp *op) {
  op_link(pos->parent, op, pos, pos->next);
}

void ir_op_unlink(IrOp *op) {
  IrBlock *b = op->parent;
  if (!b) return;
  if (op->prev)
    op->prev->next = op->next;
  else
    b->first = op->next;
  if (op->next)
    op->next->prev = op->prev;
  else
    b->last = op->prev;
  op->parent = NULL;
  op->prev = op->next = NULL;
}

void ir_op_erase(IrOp *op) {
  for (int i = 0; i < op->nresults; i++) assert(!op->results[i].uses);
  if (op->region)
    while (op->region->last) ir_op_erase(op->region->last);
  ir_op_unlink(op);
  for (int i = 0; i < op->noperands; i++) use_unlink(&op->operands[i]);
}

bool ir_same_attrs(const IrOp *a, const IrOp *b) {
  if (a->nattrs != b->nattrs) return false;
  for (int i = 0; i < a->nattrs; i++)
    if (a->attrs[i].name != b->attrs[i].name || a->attrs[i].value != b->attrs[i].value)
      return false;
  return true;
}
