/* One model to one graph function: parameters, inputs, body, outputs; and the entry points of
 * frontend.h. */
#include <string.h>

#include "frontend/lower.h"

/* ---- declared tensors ---- */

static void report_declared(Lower *l, Value v, const Node *decl, const IrType *type,
                            const char *what, SrcLoc loc) {
  StrBuf want = {0}, found = {0};
  ir_type_print(&want, type);
  value_describe(&found, v);
  bool tensor = v.kind == VALUE_TENSOR;
  bool same_shape = tensor && ir_type_with_dtype(l->m, v.tensor->type, type->dtype) == type;
  if (!tensor)
    lower_error(l, loc, "E-arg", "%s `%s` is declared %s, found %s", what, decl->name, want.data,
                found.data);
  else if (same_shape)
    lower_error(l, loc, "E-dtype", "%s `%s` is declared %s, found %s; write cast(..., %s)", what,
                decl->name, want.data, found.data, dtype_name(type->dtype));
  else
    lower_error(l, loc, "E-shape", "%s `%s` is declared %s, found %s", what, decl->name, want.data,
                found.data);
  lower_note(l, decl->loc, "`%s` is declared here", decl->name);
  if (v.from.line && v.from.line != loc.line) lower_note(l, v.from, "the value comes from here");
  strbuf_free(&want);
  strbuf_free(&found);
}

Value check_declared(Lower *l, Value v, const Node *decl, const IrType *type, const char *what,
                     SrcLoc loc) {
  if (v.kind == VALUE_POISON || l->stopped) return v;
  if (value_is_number(v) || v.kind == VALUE_LIST) {
    SrcLoc from = v.from;
    v = literal_tensor(l, v, type->dtype, loc);
    v.from = from;
  }
  if (v.kind == VALUE_POISON || (v.kind == VALUE_TENSOR && v.tensor->type == type)) return v;
  report_declared(l, v, decl, type, what, loc);
  return value_poison();
}

/* ---- inputs and outputs ---- */

static void bind_inputs(Lower *l, const Node *model) {
  NODE_EACH(in, model->args) {
    Binding *old = scope_find(l->scope, in->name);
    if (old) {
      lower_error(l, in->loc, "E-duplicate", "`%s` is defined twice", in->name);
      lower_note(l, old->loc, "first defined here");
      old->value = value_poison();
      continue;
    }
    if (!in->a) lower_error(l, in->loc, "E-parse", "an input has a type: %s: f32[1, 4]", in->name);
    const IrType *type = in->a ? eval_type(l, in->a, in->name) : NULL;
    Value v = value_poison();
    if (type)
      v = value_tensor(ir_block_add_arg(l->func->body, type, ir_str(l->m, in->name)), in->loc);
    scope_bind(l, in->name, BIND_INPUT, v, in->loc, in);
  }
}

/* Types of the outputs, in the scope of the parameters. types[i] NULL: reported. */
static void output_types(Lower *l, const Node *model, const IrType **types) {
  size_t i = 0;
  PtrMap *declared = NULL; /* by name */
  if (model->outs.n == 0)
    lower_error(l, model->loc, "E-parse", "a model declares its outputs: -> (y: f32[1, 2])");
  NODE_EACH(out, model->outs) {
    const Node *first = ptr_map_get(declared, out->name);
    if (first) {
      lower_error(l, out->loc, "E-duplicate", "the output `%s` is declared twice", out->name);
      lower_note(l, first->loc, "first declared here");
    } else {
      ptr_map_put(&declared, out->name, (void *)(uintptr_t)out);
    }
    if (!out->a)
      lower_error(l, out->loc, "E-parse", "an output has a type: %s: f32[1, 2]", out->name);
    types[i++] = out->a ? eval_type(l, out->a, out->name) : NULL;
  }
  ptr_map_free(&declared);
}

static bool collect_results(Lower *l, const Node *model, const IrType **types, Value *results) {
  Scope *s = l->scope;
  if (l->stopped || model->outs.n == 0) return false;
  if (!s->returned) {
    if (!l->program->failed)
      lower_error(l, model->loc, "E-return", "the model `%s` returns nothing", model->name);
    return false;
  }
  Value v = s->result;
  if (v.kind == VALUE_POISON) return false;
  Value *items = v.kind == VALUE_TUPLE ? v.list.items : &v;
  size_t n = v.kind == VALUE_TUPLE ? v.list.n : 1, i = 0;
  if (n != model->outs.n) {
    lower_error(l, s->return_stmt->loc, "E-return",
                "the model `%s` declares %zu output%s, this returns %zu", model->name,
                model->outs.n, model->outs.n == 1 ? "" : "s", n);
    lower_note(l, model->loc, "the model is declared here");
    return false;
  }
  bool ok = true;
  const Node *next = s->return_stmt->list.first;
  NODE_EACH(out, model->outs) {
    SrcLoc place = return_place(s, &next);
    results[i] =
        types[i] ? check_declared(l, items[i], out, types[i], "output", place) : value_poison();
    ok &= results[i].kind == VALUE_TENSOR;
    i++;
  }
  return ok;
}

static void finish(Lower *l, const Node *model, const Value *results) {
  size_t n = model->outs.n, i = 0;
  l->hints = NULL;
  for (StateVar *st = l->states; st; st = st->next) {
    if (!st->written) continue;
    Value v = value_tensor(st->current, st->loc);
    IrAttrInit name = {"name", ir_attr_str(l->m, st->name)};
    lower_op(l, st->written->loc, IR_OP_STATE_WRITE, 1, &v, 1, &name);
  }
  lower_op(l, l->scope->return_stmt->loc, IR_OP_RETURN, n, results, 0, NULL);
  l->func->result_names = ARENA_ARRAY(l->m->arena, const char *, n);
  NODE_EACH(out, model->outs) l->func->result_names[i++] = ir_str(l->m, out->name);
  l->func->nresults = (int)n;
}

/* ---- the model ---- */

static bool plain(const Node *text) {
  return text->list.n == 1 && text->list.first->kind == NODE_TEXT_PART;
}

static void open_weights(Lower *l, const Node *model, const MdlOptions *o) {
  for (size_t i = 0; o && i < o->nweight_files; i++)
    weights_open(l, o->weight_files[i], SRC_LOC_NONE);
  l->weights.given = o && o->nweight_files > 0;
  NODE_EACH(n, model->list) if (n->kind == NODE_WEIGHTS && plain(n->a)) weights_statement(l, n);
  NODE_EACH(n, l->program->weights) weights_statement(l, n);
}

static void lower_model(Lower *l, const Node *model, const MdlOptions *o) {
  Scope scope;
  size_t n = model->outs.n;
  const IrType **types = ARENA_ARRAY(l->arena, const IrType *, n + 1);
  Value *results = ARENA_ARRAY(l->arena, Value, n + 1);
  l->func = ir_func_new(l->m, ir_str(l->m, model->name), IR_GRAPH);
  l->func->loc = model->loc;
  scope_push(l, &scope, model, model->loc);
  for (Global *g = l->program->globals; g; g = g->hh.next)
    if (g->decl->kind == NODE_CONST) eval_global(l, g);
  params_bind(l, model, o);
  bind_inputs(l, model);
  output_types(l, model, types);
  open_weights(l, model, o);
  exec_block(l, model->list);
  if (collect_results(l, model, types, results) && diag_errors(l->m->diag) == 0) {
    finish(l, model, results);
    weights_read(l, NULL);
  }
  scope_pop(l);
}

static IrModule *lower_program(Program *p, IrModule *m, const MdlOptions *o, DiagEngine *diag) {
  program_check_recursion(p);
  const Node *model = program_model(p, o ? o->model : NULL);
  if (!model || model->i) return NULL;
  Lower *l = mem_alloc(sizeof *l);
  l->m = m;
  l->arena = p->arena;
  l->tree_bytes = arena_bytes(p->arena);
  l->program = p;
  l->outer = diag;
  l->last_state = &l->states;
  /* Everything ir reports comes by here too, so that a loop or a function called often complains
   * once. */
  m->diag = diag_new();
  diag_set_sink(m->diag, lower_forward, l);
  diag_track_with(m->diag, diag);
  lower_model(l, model, o);
  diag_free(m->diag);
  m->diag = diag;
  weights_free(l);
  mem_free(l);
  return m;
}

static IrModule *read_model(const char *path, const char *text, size_t len, const MdlOptions *o,
                            DiagEngine *diag) {
  IrModule *m = ir_module_new(diag);
  unsigned before = diag_errors(diag);
  Program p = {.arena = arena_new(), .strings = m->strings, .diag = diag};
  program_load(&p, path, text, len);
  IrModule *result = p.main_file ? lower_program(&p, m, o, diag) : NULL;
  program_free(&p);
  arena_free(p.arena);
  if (result && diag_errors(diag) == before) return result;
  ir_module_free(m);
  return NULL;
}

IrModule *mdl_read(const char *path, const MdlOptions *options, DiagEngine *diag) {
  return read_model(path, NULL, 0, options, diag);
}

IrModule *mdl_read_text(const char *text, size_t len, const char *label, const MdlOptions *options,
                        DiagEngine *diag) {
  return read_model(label, text, len, options, diag);
}
