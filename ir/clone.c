/* Deep copies of ops and functions. */
#include "ir/internal.h"

typedef struct {
  IrModule *m;
  PtrMap *values; /* old value to copy */
  IrValue *(*outer)(void *user, IrValue *old);
  void *user;
} Cloner;

static IrValue *mapped(Cloner *c, IrValue *old) {
  IrValue *copy = ptr_map_get(c->values, old);
  if (!copy && c->outer) copy = c->outer(c->user, old);
  return copy ? copy : old;
}

static IrOp *clone_op(Cloner *c, const IrOp *op);

static void clone_block(Cloner *c, const IrBlock *from, IrBlock *to) {
  for (int i = 0; i < from->nargs; i++)
    ptr_map_put(&c->values, from->args[i],
                ir_block_add_arg(to, from->args[i]->type, from->args[i]->name));
  for (const IrOp *op = from->first; op; op = op->next) ir_op_append(to, clone_op(c, op));
}

static IrOp *clone_op(Cloner *c, const IrOp *op) {
  IrOp *copy = ir_op_new(c->m, op->kind, op->loc, 0, NULL, 0, NULL);
  copy->nresults = op->nresults;
  copy->results = op->nresults ? ARENA_ARRAY(c->m->arena, IrValue, op->nresults) : NULL;
  for (int i = 0; i < op->nresults; i++) {
    IrValue *old = &op->results[i];
    copy->results[i] = (IrValue){.type = old->type, .def = copy, .index = i, .name = old->name};
    ptr_map_put(&c->values, old, &copy->results[i]);
  }
  for (int i = 0; i < op->noperands; i++) ir_add_operand(copy, mapped(c, ir_operand(op, i)));
  for (int i = 0; i < op->nattrs; i++) ir_set_attr(copy, op->attrs[i].name, op->attrs[i].value);
  if (op->region) clone_block(c, op->region, ir_op_add_region(copy));
  return copy;
}

IrOp *ir_op_clone(IrModule *m, const IrOp *op, IrValue *(*map)(void *user, IrValue *old),
                  void *user) {
  Cloner c = {.m = m, .outer = map, .user = user};
  IrOp *copy = clone_op(&c, op);
  ptr_map_free(&c.values);
  return copy;
}

static void report_values(Cloner *c, const IrBlock *b,
                          void (*value_map)(void *, const IrValue *, IrValue *), void *user) {
  for (int i = 0; i < b->nargs; i++)
    value_map(user, b->args[i], ptr_map_get(c->values, b->args[i]));
  for (const IrOp *op = b->first; op; op = op->next) {
    for (int i = 0; i < op->nresults; i++)
      value_map(user, &op->results[i], ptr_map_get(c->values, &op->results[i]));
    if (op->region) report_values(c, op->region, value_map, user);
  }
}

IrFunc *ir_func_clone(const IrFunc *f, const char *name,
                      void (*value_map)(void *user, const IrValue *old, IrValue *copy),
                      void *user) {
  IrModule *m = f->module;
  Cloner c = {.m = m};
  IrFunc *copy = ir_func_new(m, name, f->level);
  copy->loc = f->loc;
  copy->nresults = f->nresults;
  copy->result_names = f->nresults ? arena_copy(m->arena, f->result_names,
                                                sizeof *f->result_names * (size_t)f->nresults)
                                   : NULL;
  for (int i = 0; i < f->nattrs; i++) ir_set_func_attr(copy, f->attrs[i].name, f->attrs[i].value);
  clone_block(&c, f->body, copy->body);
  if (value_map) report_values(&c, f->body, value_map, user);
  ptr_map_free(&c.values);
  return copy;
}
