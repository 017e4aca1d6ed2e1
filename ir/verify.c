/* The verifier: structure, use lists, scoping, levels, signatures, types, states. Kernels:
 * verify_kernel.c. */
#include "ir/verify.h"

#include <string.h>

bool verify_fail(Verifier *v, const IrOp *op, const char *code, const char *fmt, ...) {
  StrBuf text = {0};
  va_list ap;
  va_start(ap, fmt);
  strbuf_vprintf(&text, fmt, ap);
  va_end(ap);
  diag_error(v->m->diag, op->loc, code, "`%s`: %s", ir_op_info(op->kind)->name, text.data);
  strbuf_free(&text);
  v->ok = false;
  return false;
}

static void func_fail(Verifier *v, const char *code, const char *fmt, ...) NPU_PRINTF(3, 4);
static void func_fail(Verifier *v, const char *code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_report(v->m->diag, DIAG_ERROR, v->f->loc, code, fmt, ap);
  va_end(ap);
  v->ok = false;
}

const char *verify_type_text(Verifier *v, const IrType *t) {
  StrBuf b = {0};
  ir_type_print(&b, t);
  const char *copy = arena_strdup(v->m->arena, b.data);
  strbuf_free(&b);
  return copy;
}

/* ---- types and places ---- */

/* NULL when t may be the type of a value at this level, otherwise what is wrong with it. */
static const char *type_problem(const IrType *t, IrLevel level) {
  if (t->kind == IR_TYPE_TOKEN)
    return level == IR_PROGRAM ? NULL : "tokens exist at program level only";
  if (t->dtype >= DT_MACHINE_COUNT)
    return "only files have this element type; use s8, bf16, f32, s32";
  if (t->kind == IR_TYPE_SCALAR)
    return level == IR_BODY ? NULL
                            : "scalars exist inside kernels only; a tensor of rank 0 is f32[]";
  if (level == IR_BODY) return "tensors cannot be touched inside a kernel; read them through a map";
  int64_t count = 1;
  if (t->rank < 0 || t->rank > IR_MAX_RANK) return "too many axes";
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] < 1 || !mul_i64(count, t->shape[i], &count) || count > IR_MAX_ELEMENTS)
      return "axes must be at least 1 and the whole at most 2^40 elements";
  return NULL;
}

static const char *level_text(unsigned levels) {
  return levels & IR_GRAPH     ? (levels & IR_NEST ? "graph and nest" : "graph")
         : levels & IR_NEST    ? "nest"
         : levels & IR_PROGRAM ? "program"
                               : "kernel body";
}

static void check_level(Verifier *v, const IrOp *op) {
  unsigned levels = ir_op_info(op->kind)->levels;
  if (levels & v->level) return;
  verify_fail(v, op, "E-level", "belongs to the %s level%s, but this is %s%s", level_text(levels),
              levels & IR_BODY && levels != IR_BODY ? " and to kernel bodies" : "",
              v->level == IR_BODY ? "a kernel body" : level_text(v->level),
              v->level == IR_NEST && levels & IR_GRAPH ? "; run the pass `lower` first" : "");
}

/* ---- use lists ---- */

static bool slot_ok(const IrOp *op, int i) {
  const IrUse *u = &op->operands[i];
  if (u->op != op || u->index != i) return false;
  return u->prev ? u->prev->next == u : u->value->uses == u;
}

static bool in_func(const IrOp *op, const IrFunc *f) {
  return op->parent && ir_block_func(op->parent) == f;
}

/* Every entry of the use list is an operand slot, holding this value, of an op in this function. */
static void check_uses(Verifier *v, const IrValue *value, const IrOp *at) {
  bool head = !value->uses || !value->uses->prev; /* a list that bites its tail has no head */
  for (const IrUse *u = value->uses; u; u = u->next) {
    bool slot = u->op && u->index >= 0 && u->index < u->op->noperands &&
                &u->op->operands[u->index] == u && u->value == value &&
                (!u->next || u->next->prev == u) && head;
    if (slot && in_func(u->op, v->f)) continue;
    const char *why = slot ? "is used by an op outside the function; erase ops no longer wanted"
                           : "has a broken use list; set operands through ir_set_operand";
    if (at)
      verify_fail(v, at, "E-uses", "its result %d %s", value->index, why);
    else
      func_fail(v, "E-uses", "argument %d of @%s %s", value->index, v->f->name, why);
    return;
  }
}

/* ---- one op ---- */

static bool check_operands(Verifier *v, const IrOp *op) {
  for (int i = 0; i < op->noperands; i++) {
    const IrValue *x = ir_operand(op, i);
    if (!x) return verify_fail(v, op, "E-operands", "operand %d is missing", i);
    if (!slot_ok(op, i))
      return verify_fail(v, op, "E-uses",
                         "operand %d is not in its value's use list; set operands "
                         "through ir_set_operand",
                         i);
    if (ptr_map_get(v->visible, x)) continue;
    bool removed = x->def && !x->def->parent, later = x->def && x->def->parent == op->parent;
    return verify_fail(
        v, op, "E-scope", "operand %d%s%s is %s", i, x->name ? " %" : "", x->name ? x->name : "",
        removed               ? "the result of an op that was taken out; replace its uses first"
        : later               ? "defined after its use; move the definition up"
        : v->level == IR_BODY ? "defined outside the kernel; make it an operand of the kernel"
                              : "defined in another region; only enclosing regions can be seen");
  }
  return true;
}

/* Constants of one value and states without data: the type is given, not inferred. */
static void check_given_type(Verifier *v, const IrOp *op) {
  if (op->kind == IR_OP_KERNEL) return;
  if (op->nresults != 1) {
    verify_fail(v, op, "E-operands", "has %d results, expected 1", op->nresults);
    return;
  }
  const IrType *t = op->results[0].type;
  const IrAttr *value = op->kind == IR_OP_CONSTANT ? ir_attr(op, "value") : NULL;
  if (!value || t->kind == IR_TYPE_TOKEN || dtype_is_float(t->dtype)) return;
  double wanted = ir_get_float(op, "value", 0);
  if (value->kind == IR_ATTR_FLOAT)
    verify_fail(v, op, "E-dtype",
                "the value is a real number but the type is %s; write a whole number",
                verify_type_text(v, t));
  else if (!dtype_holds(t->dtype, wanted))
    verify_fail(v, op, "E-dtype", "%g is not a value of %s", wanted, dtype_name(t->dtype));
}

/* False when the op does not fit its signature. */
static bool check_types(Verifier *v, const IrOp *op) {
  const IrType *types[IR_MAX_RESULTS];
  IrValue *operands[IR_MAX_RESULTS] = {0}, **list = operands;
  int n;
  if (op->noperands > IR_MAX_RESULTS) list = mem_alloc(sizeof *list * (size_t)op->noperands);
  for (int i = 0; i < op->noperands; i++) list[i] = ir_operand(op, i);
  bool inferred =
      ir_infer(v->m, op->kind, op->loc, op->noperands, list, op->nattrs, op->attrs, types, &n);
  if (list != operands) mem_free(list);
  if (!inferred) return v->ok = false;
  if (n < 0) {
    check_given_type(v, op);
    return true;
  }
  if (n != op->nresults) {
    return verify_fail(v, op, "E-operands", "has %d result%s, expected %d", op->nresults,
                       op->nresults == 1 ? "" : "s", n);
  }
  for (int i = 0; i < n; i++)
    if (types[i] != op->results[i].type)
      verify_fail(v, op, "E-shape", "result %d is written as %s, but these operands give %s", i,
                  verify_type_text(v, op->results[i].type), verify_type_text(v, types[i]));
  return true;
}

static void check_block(Verifier *v, const IrBlock *b);

/* typed: the op fits its signature, so that a kernel's attributes can be read. */
static void check_region(Verifier *v, const IrOp *op, bool typed) {
  if (!ir_has_trait(op, IR_HAS_REGION)) {
    if (op->region) verify_fail(v, op, "E-region", "must not have a region");
    return;
  }
  if (!op->region) {
    verify_fail(v, op, "E-region", "needs a region: { ^(...): ... }");
    return;
  }
  if (op->region->owner != op) {
    verify_fail(v, op, "E-region", "its region belongs to another op");
    return;
  }
  Verifier inner = *v;
  inner.ok = true; /* of this region alone */
  if (op->kind == IR_OP_KERNEL) {
    inner.level = IR_BODY;
    inner.visible = NULL;
    check_block(&inner, op->region);
    ptr_map_free(&inner.visible);
    if (inner.ok && typed) verify_kernel(&inner, op);
  } else {
    if (op->region->nargs) verify_fail(v, op, "E-region", "takes no block arguments");
    check_block(&inner, op->region);
    v->visible = inner.visible;
  }
  v->ok &= inner.ok;
  v->broken |= inner.broken;
}

/* What printing and signatures rely on; nothing else of the op may be looked at before. */
static bool check_form(Verifier *v, const IrOp *op) {
  if ((unsigned)op->kind >= IR_OP_COUNT) {
    diag_error(v->m->diag, op->loc, "E-op", "%u is not the number of an op", (unsigned)op->kind);
    return v->ok = false;
  }
  for (int i = 0; i < op->nattrs; i++)
    if (!op->attrs[i].name || !op->attrs[i].value)
      return verify_fail(v, op, "E-attr", "attribute %s has no %s",
                         op->attrs[i].name ? op->attrs[i].name : "?",
                         op->attrs[i].name ? "value" : "name");
  for (int i = 0; i < op->nresults; i++)
    if (op->results[i].def != op || op->results[i].index != i)
      return verify_fail(v, op, "E-uses", "its result %d says another op makes it", i);
    else if (!op->results[i].type)
      return verify_fail(v, op, "E-type", "its result %d has no type", i);
  return true;
}

static void check_op(Verifier *v, const IrOp *op) {
  check_level(v, op);
  bool last = !op->next, terminator = ir_has_trait(op, IR_TERMINATOR);
  if (terminator && (!last || (op->kind == IR_OP_RETURN) != !op->parent->owner))
    verify_fail(v, op, "E-terminator", "must be the last op of %s",
                op->kind == IR_OP_RETURN ? "a function" : "a kernel body");
  for (int i = 0; i < op->nresults; i++) {
    const char *why = type_problem(op->results[i].type, v->level);
    if (why)
      verify_fail(v, op, "E-type", "result %d is %s: %s", i,
                  verify_type_text(v, op->results[i].type), why);
    check_uses(v, &op->results[i], op);
  }
  if (!check_operands(v, op)) return;
  bool typed = check_types(v, op);
  if (v->level == IR_PROGRAM && typed) verify_program_op(v, op);
  verify_layout(v, op);
  check_region(v, op, typed);
}

static void set_visible(Verifier *v, const IrValue *x, bool visible) {
  ptr_map_put(&v->visible, x, visible ? v : NULL);
}

/* Values defined in b are visible from their definition to its end. */
static void check_block(Verifier *v, const IrBlock *b) {
  const IrOp *before = NULL;
  for (int i = 0; i < b->nargs; i++) set_visible(v, b->args[i], true);
  for (const IrOp *op = b->first; op; before = op, op = op->next) {
    if (op->parent != b || op->prev != before) {
      verify_fail(v, op, "E-uses",
                  "is linked wrongly into its block; move ops with ir_op_unlink and "
                  "ir_op_insert_*");
      v->broken = true;
      return;
    }
    if (!check_form(v, op)) {
      v->broken = true;
      return;
    }
    check_op(v, op);
    for (int i = 0; i < op->nresults; i++) set_visible(v, &op->results[i], true);
  }
  const IrOp *last = b->last;
  if (last != before) {
    func_fail(v, "E-uses", "the last op of a block of @%s is not what ends its list", v->f->name);
    v->broken = true;
    return;
  }
  bool needs = !b->owner || b->owner->kind == IR_OP_KERNEL;
  if (needs && (!last || !ir_has_trait(last, IR_TERMINATOR))) {
    if (b->owner)
      verify_fail(v, b->owner, "E-terminator", "its body must end in `yield`");
    else
      func_fail(v, "E-terminator", "@%s must end in `return`", v->f->name);
  }
  for (int i = 0; i < b->nargs; i++) set_visible(v, b->args[i], false);
  for (const IrOp *op = b->first; op; op = op->next)
    for (int i = 0; i < op->nresults; i++) set_visible(v, &op->results[i], false);
}

/* ---- functions ---- */

static void check_notes(Verifier *v) {
  for (int i = 0; i < v->f->nattrs; i++)
    if (is_hint(v->f->attrs[i].name))
      func_fail(v, "E-attr", "@%s carries `%s`, but hints are for ops, where passes look for them",
                v->f->name, v->f->attrs[i].name);
}

static void check_args(Verifier *v) {
  PtrMap *seen = NULL;
  const IrBlock *b = v->f->body;
  for (int i = 0; i < b->nargs; i++) {
    const IrValue *a = b->args[i];
    if (a->def || a->index != i || !a->type) {
      func_fail(v, "E-uses", "argument %d of @%s has no type, or says an op makes it", i,
                v->f->name);
      v->broken = true;
      break;
    }
    const char *why = type_problem(a->type, v->level);
    if (why)
      func_fail(v, "E-type", "argument %d of @%s is %s: %s", i, v->f->name,
                verify_type_text(v, a->type), why);
    if (a->name && ptr_map_get(seen, a->name))
      func_fail(v, "E-name", "@%s has two arguments called `%s`; rename one", v->f->name, a->name);
    if (a->name) ptr_map_put(&seen, a->name, v);
    check_uses(v, a, NULL);
  }
  ptr_map_free(&seen);
}

static void check_results(Verifier *v) {
  const IrFunc *f = v->f;
  const IrOp *ret = f->body->last;
  PtrMap *seen = NULL;
  if (!ret || ret->kind != IR_OP_RETURN) return;
  if (ret->noperands != f->nresults)
    verify_fail(v, ret, "E-operands", "returns %d value%s, but @%s declares %d result%s",
                ret->noperands, ret->noperands == 1 ? "" : "s", f->name, f->nresults,
                f->nresults == 1 ? "" : "s");
  for (int i = 0; i < f->nresults; i++) {
    const char *name = f->result_names[i] ? ir_str(v->m, f->result_names[i]) : NULL;
    if (!name)
      func_fail(v, "E-name", "result %d of @%s has no name", i, f->name);
    else if (ptr_map_get(seen, name))
      func_fail(v, "E-name", "@%s has two results called `%s`; rename one", f->name, name);
    if (name) ptr_map_put(&seen, name, v);
  }
  ptr_map_free(&seen);
}

/* One read and one write per state name, of one type. */
static void check_states(Verifier *v) {
  PtrMap *reads = NULL, *writes = NULL;
  for (const IrOp *op = v->f->body->first; op; op = op->next) {
    if ((op->kind != IR_OP_STATE && op->kind != IR_OP_STATE_WRITE) || !ir_get_str(op, "name", NULL))
      continue;
    PtrMap **same = op->kind == IR_OP_STATE ? &reads : &writes;
    const char *name = ir_get_str(op, "name", NULL);
    const IrOp *other = ptr_map_get(*same, name);
    if (other) {
      verify_fail(v, op, "E-state", "the state `%s` is %s twice; %s", name,
                  op->kind == IR_OP_STATE ? "read" : "written",
                  op->kind == IR_OP_STATE ? "use the value of the first read"
                                          : "write once, at the end, what it is to be");
      diag_note(v->m->diag, other->loc, "first here");
    }
    ptr_map_put(same, name, (IrOp *)(uintptr_t)op);
  }
  for (PtrMap *e = writes; e; e = e->hh.next) {
    const IrOp *write = e->value, *read = ptr_map_get(reads, e->key);
    if (!read || !read->nresults || !write->noperands || !ir_operand(write, 0)) continue;
    if (read->results[0].type != ir_operand(write, 0)->type)
      verify_fail(v, write, "E-state", "the state `%s` is %s but %s is written to it",
                  (const char *)e->key, verify_type_text(v, read->results[0].type),
                  verify_type_text(v, ir_operand(write, 0)->type));
  }
  ptr_map_free(&reads);
  ptr_map_free(&writes);
}

static bool verify_func(IrModule *m, const IrFunc *f) {
  Verifier v = {.m = m, .f = f, .level = f->level, .ok = true};
  if (f->level != IR_GRAPH && f->level != IR_NEST && f->level != IR_PROGRAM) {
    func_fail(&v, "E-level", "@%s has no level", f->name);
    return false;
  }
  if (!f->body) {
    func_fail(&v, "E-region", "@%s has no body", f->name);
    return false;
  }
  if (f->level == IR_PROGRAM && (f->body->nargs || f->nresults))
    func_fail(&v, "E-level",
              "@%s has arguments or results, but at the program level `tensor` ops stand for them",
              f->name);
  check_notes(&v);
  check_args(&v);
  if (!v.broken) check_block(&v, f->body);
  if (!v.broken) check_results(&v);
  if (!v.broken) check_states(&v);
  ptr_map_free(&v.visible);
  return v.ok;
}

bool ir_verify(IrModule *m) {
  bool ok = true;
  for (int i = 0; i < m->nfuncs; i++) {
    for (int j = 0; j < i; j++) {
      if (m->funcs[i]->name != m->funcs[j]->name) continue;
      diag_error(m->diag, m->funcs[i]->loc, "E-name", "there are two functions @%s; rename one",
                 m->funcs[i]->name);
      ok = false;
    }
    ok &= verify_func(m, m->funcs[i]);
  }
  return ok;
}
