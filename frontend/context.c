/* What all of lowering stands on: diagnostics without repetitions, scopes, and the making of ops.
 */
#include <string.h>

#include "frontend/lower.h"

/* ---- diagnostics ---- */

static bool same_place(SrcLoc a, SrcLoc b) {
  if (a.line != b.line || a.col != b.col) return false;
  return a.file == b.file || (a.file && b.file && strcmp(a.file, b.file) == 0);
}

/* The statement of the model that led here through function calls. */
static SrcLoc outermost_call(const Lower *l) {
  SrcLoc loc = SRC_LOC_NONE;
  for (const Scope *s = l->scope; s && s->caller; s = s->caller) loc = s->call_loc;
  return loc;
}

static uint64_t hash_text(const char *s) {
  uint64_t h = 0xcbf29ce484222325u;
  while (*s) h = (h ^ (unsigned char)*s++) * 0x100000001b3u;
  return h;
}

/* In a loop or a function one mistake shows as often as it is run, in other words perhaps; a
 * function that is wrong by itself, in the same words for every call. */
static bool repeated(Lower *l, const Diag *d) {
  SrcLoc call = outermost_call(l);
  const char *code = d->code ? d->code : "";
  uint64_t message = hash_text(d->message);
  bool runs_again = l->loops || (l->scope && l->scope->caller);
  for (int i = 0; i < l->nreported; i++) {
    const Reported *r = &l->reported[i];
    if (same_place(r->loc, d->loc) && strcmp(r->code, code) == 0 &&
        (r->message == message || (runs_again && same_place(r->call, call))))
      return true;
  }
  Reported *r = &l->reported[l->nreported++];
  r->loc = d->loc;
  r->call = call;
  r->message = message;
  snprintf(r->code, sizeof r->code, "%s", code);
  return false;
}

static void note_calls(Lower *l) {
  int shown = 0;
  for (const Scope *s = l->scope; s && s->caller; s = s->caller) {
    if (!s->decl) continue;
    if (++shown > 4) break;
    diag_note(l->outer, s->call_loc, "in the call of `%s` here", s->decl->name);
  }
}

void lower_forward(void *lower, const DiagEngine *d, const Diag *diag) {
  Lower *l = lower;
  (void)d;
  if (diag->severity == DIAG_NOTE) {
    if (!l->muted && !l->stopped) diag_note(l->outer, diag->loc, "%s", diag->message);
    return;
  }
  if (l->stopped) return;
  l->muted = repeated(l, diag);
  if (l->muted) return;
  if (diag->severity == DIAG_WARNING)
    diag_warning(l->outer, diag->loc, diag->code, "%s", diag->message);
  else
    diag_error(l->outer, diag->loc, diag->code, "%s", diag->message);
  note_calls(l);
  if (l->nreported == MAX_ERRORS) {
    diag_error(l->outer, SRC_LOC_NONE, "E-limit", "more than %d problems; the rest is not shown",
               MAX_ERRORS);
    l->stopped = true;
  }
}

void lower_error(Lower *l, SrcLoc loc, const char *code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_report(l->m->diag, DIAG_ERROR, loc, code, fmt, ap);
  va_end(ap);
}

void lower_warning(Lower *l, SrcLoc loc, const char *code, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_report(l->m->diag, DIAG_WARNING, loc, code, fmt, ap);
  va_end(ap);
}

void lower_note(Lower *l, SrcLoc loc, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_report(l->m->diag, DIAG_NOTE, loc, NULL, fmt, ap);
  va_end(ap);
}

void lower_stop(Lower *l, SrcLoc loc, const char *fmt, ...) {
  if (l->stopped) return;
  va_list ap;
  va_start(ap, fmt);
  diag_report(l->m->diag, DIAG_ERROR, loc, "E-limit", fmt, ap);
  va_end(ap);
  l->stopped = true;
}

bool lower_enter(Lower *l, SrcLoc loc) {
  if (l->stopped) return false;
  if (l->depth >= MAX_DEPTH) {
    lower_stop(l, loc, "expressions, blocks and calls are nested more than %d deep here",
               MAX_DEPTH);
    return false;
  }
  if (arena_bytes(l->arena) - l->tree_bytes > MAX_BYTES) {
    lower_stop(l, loc,
               "the compile-time values of this model take more than %d MiB; build shorter lists "
               "and texts, or run fewer statements",
               MAX_BYTES >> 20);
    return false;
  }
  l->depth++;
  return true;
}

/* ---- scopes ---- */

void scope_push(Lower *l, Scope *s, const Node *decl, SrcLoc call_loc) {
  *s = (Scope){.decl = decl, .caller = l->scope, .call_loc = call_loc};
  l->scope = s;
}

void scope_pop(Lower *l) {
  Scope *s = l->scope;
  HASH_CLEAR(hh, s->names);
  l->scope = s->caller;
}

Binding *scope_find(const Scope *s, const char *name) {
  Binding *b = NULL;
  HASH_FIND_PTR(s->names, &name, b);
  return b;
}

Binding *scope_bind(Lower *l, const char *name, BindKind kind, Value v, SrcLoc loc,
                    const Node *decl) {
  Binding *b = scope_find(l->scope, name);
  if (!b) {
    b = ARENA_NEW(l->arena, Binding);
    b->name = name;
    HASH_ADD_PTR(l->scope->names, name, b);
  }
  b->kind = kind;
  b->value = v;
  b->loc = loc;
  b->decl = decl;
  b->state = NULL;
  if (v.kind == VALUE_TENSOR && !v.tensor->name) v.tensor->name = ir_str(l->m, name);
  return b;
}

/* ---- ops ---- */

/* After a failed op: where its operands come from, when that is another line. */
static void note_operands(Lower *l, SrcLoc loc, size_t n, const Value *operands) {
  for (size_t i = 0; i < n && i < 3; i++) {
    SrcLoc from = operands[i].from;
    bool here = from.file && loc.file && strcmp(from.file, loc.file) == 0 &&
                from.line >= loc.line && from.line <= loc.end_line;
    for (size_t j = 0; j < i; j++) here |= same_place(from, operands[j].from);
    if (from.line == 0 || here) continue;
    const IrValue *t = operands[i].tensor;
    StrBuf type = {0};
    ir_type_print(&type, t->type);
    if (t->name)
      lower_note(l, from, "`%s` is %s", t->name, type.data);
    else
      lower_note(l, from, "operand %zu is %s", i + 1, type.data);
    strbuf_free(&type);
  }
}

static bool type_fits(const IrType *t) {
  int64_t bytes = (int64_t)dtype_size(t->dtype);
  if (t->kind != IR_TYPE_TENSOR) return true;
  for (int i = 0; i < t->rank; i++)
    if (!mul_i64(bytes, t->shape[i], &bytes)) return false;
  return true;
}

IrOp *lower_op(Lower *l, SrcLoc loc, IrOpKind kind, size_t n, const Value *operands, size_t nattrs,
               const IrAttrInit *attrs) {
  IrValue *few[8], **values = n <= NPU_COUNTOF(few) ? few : ARENA_ARRAY(l->arena, IrValue *, n);
  if (l->stopped) return NULL;
  if (l->ops++ >= MAX_OPS) {
    lower_stop(l, loc, "the model has more than %d operations", MAX_OPS);
    return NULL;
  }
  for (size_t i = 0; i < n; i++) values[i] = operands[i].tensor;
  IrBuilder b = ir_builder_at_end(l->func->body, loc);
  unsigned before = diag_errors(l->m->diag);
  IrOp *op = ir_build(&b, kind, (int)n, values, (int)nattrs, attrs);
  const char *name = ir_op_info(kind)->name;
  if (!op && diag_errors(l->m->diag) == before)
    lower_error(l, loc, "E-shape", "`%s` does not go with these operands", name);
  for (int i = 0; op && i < op->nresults; i++)
    if (!type_fits(op->results[i].type)) {
      lower_error(l, loc, "E-shape",
                  "the result of `%s` is too large: its size in bytes does not fit 63 bits", name);
      op = NULL;
    }
  if (!op) {
    note_operands(l, loc, n, operands);
    return NULL;
  }
  hints_attach(l, op);
  return op;
}

Value lower_results(IrOp *op, SrcLoc loc, Arena *arena) {
  if (!op) return value_poison();
  if (op->nresults == 1) return value_tensor(ir_result(op, 0), loc);
  size_t n = (size_t)op->nresults;
  Value v = {.kind = VALUE_TUPLE, .from = loc, .list = {ARENA_ARRAY(arena, Value, n), n}};
  for (size_t i = 0; i < n; i++) v.list.items[i] = value_tensor(ir_result(op, (int)i), loc);
  return v;
}

Value lower_op1(Lower *l, SrcLoc loc, IrOpKind kind, Value x, size_t nattrs,
                const IrAttrInit *attrs) {
  return lower_results(lower_op(l, loc, kind, 1, &x, nattrs, attrs), loc, l->arena);
}

const IrAttr *lower_attr(Lower *l, Value v) {
  switch (v.kind) {
  case VALUE_INT: return ir_attr_int(l->m, v.i);
  case VALUE_REAL: return ir_attr_float(l->m, v.r);
  case VALUE_BOOL: return ir_attr_bool(l->m, v.b);
  case VALUE_TEXT: return ir_attr_str(l->m, v.s);
  case VALUE_DTYPE: return ir_attr_dtype(l->m, v.dtype);
  case VALUE_LIST: {
    const IrAttr **items = ARENA_ARRAY(l->arena, const IrAttr *, v.list.n + 1);
    for (size_t i = 0; i < v.list.n; i++)
      if (!(items[i] = lower_attr(l, v.list.items[i]))) return NULL;
    return ir_attr_array(l->m, items, v.list.n);
  }
  default: return NULL;
  }
}
