/* Tensors at program level: one `tensor` op per place in DRAM. */
#include "passes/pipeline.h"
#include <string.h>

static IrValue *place(Places *p, const IrValue *v, const IrType *type, const char *role,
                      const char *name, int64_t addr, const IrAttr *data) {
  IrModule *m = p->pc->module;
  int order[IR_MAX_RANK];
  int64_t layout[IR_MAX_RANK], shape[IR_MAX_RANK];
  for (int i = 0; i < type->rank; i++) order[i] = i;
  if (v) ir_layout(v, order);
  for (int i = 0; i < type->rank; i++) layout[i] = order[i], shape[i] = type->shape[i];
  const IrAttr *t = ir_attr_array(
      m,
      (const IrAttr *[]){ir_attr_dtype(m, type->dtype), ir_attr_ints(m, shape, (size_t)type->rank)},
      2);
  IrAttrInit attrs[] = {{"type", t},
                        {"role", ir_attr_str(m, role)},
                        {"name", ir_attr_str(m, name ? name : "")},
                        {"layout", ir_attr_ints(m, layout, (size_t)type->rank)},
                        {"addr", ir_attr_int(m, addr)},
                        {"data", data}};
  const IrType *token = ir_type_token(m, "addr");
  IrOp *op = ir_build_typed(&p->top, IR_OP_TENSOR, 0, NULL, 1, &token, data ? 6 : 5, attrs);
  if (v) ptr_map_put(&p->placed, v, ir_result(op, 0));
  return ir_result(op, 0);
}

IrValue *pipeline_place_of(const Places *p, const IrValue *v) {
  return ptr_map_get(p->placed, sched_storage(v));
}

void pipeline_places_free(Places *p) {
  ptr_map_free(&p->placed);
  ptr_map_free(&p->states);
}

/* Address of result i of a kernel, which `plan` chose. */
static bool result_addr(const Places *p, const IrOp *kernel, int i, int64_t *addr) {
  const IrAttr *a = ir_attr(kernel, "addrs");
  bool ok = a && a->kind == IR_ATTR_ARRAY && a->array.n == (size_t)kernel->nresults &&
            a->array.items[i]->kind == IR_ATTR_INT;
  if (ok)
    *addr = a->array.items[i]->i;
  else
    diag_error(p->pc->diag, kernel->loc, "E-pipeline",
               "a kernel has no addresses: run the pass 'plan' after 'tile'");
  return ok;
}

static void place_state(Places *p, IrOp *op, const IrValue *v, const IrType *type,
                        const IrAttr *data) {
  const char *name = ir_get_str(op, "name", "");
  IrValue *tensor = place(p, v, type, "state", name, ir_get_int(op, "addr", 0), data);
  ptr_map_put(&p->states, name, tensor);
}

/* In the order of the function's results, which is the order in which a program shows them. */
static bool place_outputs(Places *p) {
  const IrOp *ret = p->f->body->last;
  for (int i = 0; i < ret->noperands; i++) {
    const IrValue *r = ir_operand(ret, i), *v = sched_storage(r);
    int64_t addr;
    if (!ir_is(v->def, IR_OP_KERNEL)) continue;
    if (!result_addr(p, v->def, v->index, &addr)) return false;
    /* An alias has the declared shape, the kernel's result the layout. */
    IrValue *tensor =
        place(p, r == v ? v : NULL, r->type, "output", p->f->result_names[i], addr, NULL);
    if (r != v) ptr_map_put(&p->placed, v, tensor);
  }
  return true;
}

bool pipeline_place_all(Places *p) {
  IrBlock *b = p->f->body;
  IrModule *m = p->pc->module;
  if (!ir_attr(b->last, "dram_bytes")) {
    diag_error(p->pc->diag, p->f->loc, "E-pipeline",
               "tensors have no addresses: run the pass 'plan' before 'pipeline'");
    return false;
  }
  if (!plan_check(p->pc, p->f)) return false;
  const IrAttr *args = ir_attr(b->last, "arg_addrs");
  for (int i = 0; i < b->nargs; i++)
    place(p, b->args[i], b->args[i]->type, "input", b->args[i]->name, args->array.items[i]->i,
          NULL);
  if (!place_outputs(p)) return false;
  for (IrOp *op = b->first; op; op = op->next) {
    const IrValue *r = op->nresults ? &op->results[0] : NULL;
    if ((op->kind == IR_OP_CONSTANT || op->kind == IR_OP_WEIGHT) && ir_attr(op, "addr")) {
      const IrData *d = ir_constant_data(r);
      if (!d) return false;
      const IrAttr *attr = ir_attr(op, "data");
      if (!attr || attr->data != d) attr = ir_attr_data_of(m, d);
      place(p, r, r->type, "const", r->name, ir_get_int(op, "addr", 0), attr);
    } else if (op->kind == IR_OP_STATE) {
      place_state(p, op, r, r->type, ir_attr(op, "data"));
    } else if (op->kind == IR_OP_KERNEL) {
      for (int i = 0; i < op->nresults; i++) {
        int64_t addr;
        if (!result_addr(p, op, i, &addr)) return false;
        if (!pipeline_place_of(p, &op->results[i]))
          place(p, &op->results[i], op->results[i].type, "temp", op->results[i].name, addr, NULL);
      }
    } else if (op->kind == IR_OP_STATE_WRITE &&
               !ptr_map_get(p->states, ir_get_str(op, "name", ""))) {
      place_state(p, op, NULL, ir_operand(op, 0)->type, NULL);
    }
  }
  return true;
}
