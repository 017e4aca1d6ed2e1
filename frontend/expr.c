/* Evaluation of expressions: names, operators, types. What is known at compile time is computed,
 * the rest becomes ops. */
#include <math.h>
#include <string.h>

#include "frontend/lower.h"

/* ---- names ---- */

static void suggest_name(Lower *l, const Node *n) {
  const char **names;
  size_t count = 0, cap = HASH_COUNT(l->scope->names) + HASH_COUNT(l->program->globals) + DT_COUNT;
  names = ARENA_ARRAY(l->arena, const char *, cap + 1);
  for (Binding *b = l->scope->names; b; b = b->hh.next) names[count++] = b->name;
  for (Global *g = l->program->globals; g; g = g->hh.next)
    if (g->decl->kind == NODE_CONST) names[count++] = g->name;
  for (int t = 0; t < DT_MACHINE_COUNT; t++) names[count++] = dtype_name((DType)t);
  const char *near = str_nearest(n->name, names, count);
  if (near)
    lower_error(l, n->loc, "E-name", "`%s` is not defined; did you mean `%s`?", n->name, near);
  else
    lower_error(l, n->loc, "E-name", "`%s` is not defined", n->name);
}

static Value undefined(Lower *l, const Node *n) {
  if (program_may_define(l->program, n->name))
    return value_poison(); /* perhaps defined in a text that could not be parsed */
  const Global *g = program_find(l->program, n->name);
  if (g) {
    lower_error(l, n->loc, "E-name", "`%s` is a %s, not a value", n->name,
                g->decl->kind == NODE_FN ? "function: call it with ()" : "model");
    lower_note(l, g->decl->name_loc, "defined here");
    return value_poison();
  }
  IrOpKind kind;
  if (callable_op(n->name, &kind)) {
    StrBuf b = {0};
    op_signature(&b, kind);
    lower_error(l, n->loc, "E-name", "`%s` is an operator, not a value: call it as %s", n->name,
                b.data);
    strbuf_free(&b);
    return value_poison();
  }
  suggest_name(l, n);
  /* A model's names are not visible in the functions it calls. */
  for (const Scope *s = l->scope->caller; s; s = s->caller) {
    const Binding *b = scope_find(s, n->name);
    if (!b) continue;
    lower_note(l, b->loc, "this `%s` is not visible inside `%s`: pass it as an argument", n->name,
               l->scope->decl ? l->scope->decl->name : "a constant");
    break;
  }
  return value_poison();
}

Value eval_global(Lower *l, Global *g) {
  if (g->evaluated) return g->value;
  if (g->evaluating) {
    lower_error(l, g->decl->loc, "E-const", "the constant `%s` is defined by itself", g->name);
    g->evaluated = true;
    return g->value = value_poison();
  }
  Scope scope;
  g->evaluating = true;
  scope_push(l, &scope, NULL, g->decl->loc);
  Value v = eval_one(l, g->decl->a);
  scope_pop(l);
  if (v.kind == VALUE_TENSOR) {
    lower_error(l, g->decl->a->loc, "E-const",
                "the constant `%s` is a tensor; constants are numbers, booleans, texts and lists",
                g->name);
    v = value_poison();
  }
  v.from = g->decl->name_loc;
  g->evaluated = true;
  return g->value = v;
}

static Value eval_name(Lower *l, const Node *n) {
  Binding *b = scope_find(l->scope, n->name);
  if (b && b->kind == BIND_STATE) return value_tensor(b->state->current, b->loc);
  if (b) return b->value;
  Global *g = program_find(l->program, n->name);
  if (g && g->decl->kind == NODE_CONST) return eval_global(l, g);
  if (strcmp(n->name, "inf") == 0) return value_real(HUGE_VAL);
  DType dtype;
  if (dtype_parse(n->name, &dtype)) {
    if (dtype < DT_MACHINE_COUNT)
      return (Value){.kind = VALUE_DTYPE, .from = n->loc, .dtype = dtype};
    lower_error(l, n->loc, "E-dtype",
                "%s exists only in files; the machine has s8, bf16, f32 and s32", n->name);
    return value_poison();
  }
  return undefined(l, n);
}

/* ---- texts and lists ---- */

static Value eval_text(Lower *l, const Node *n) {
  StrBuf b = {0};
  bool ok = true;
  NODE_EACH(part, n->list) {
    if (part->kind == NODE_TEXT_PART) {
      strbuf_puts(&b, part->name);
      continue;
    }
    Value v = eval_one(l, part);
    switch (v.kind) {
    case VALUE_INT: strbuf_printf(&b, "%lld", (long long)v.i); break;
    case VALUE_REAL: strbuf_double(&b, v.r); break;
    case VALUE_BOOL: strbuf_puts(&b, v.b ? "true" : "false"); break;
    case VALUE_TEXT: strbuf_puts(&b, v.s); break;
    case VALUE_DTYPE: strbuf_puts(&b, dtype_name(v.dtype)); break;
    case VALUE_POISON: ok = false; break;
    default:
      lower_error(l, part->loc, "E-const",
                  "only compile-time numbers, booleans and texts go into a text");
      ok = false;
    }
  }
  Value v = {.kind = VALUE_TEXT, .from = n->loc, .s = arena_strdup(l->arena, b.data ? b.data : "")};
  strbuf_free(&b);
  return ok ? v : value_poison();
}

static Value eval_list(Lower *l, const Node *n) {
  Value v = {
      .kind = VALUE_LIST, .from = n->loc, .list = {ARENA_ARRAY(l->arena, Value, n->list.n + 1), 0}};
  bool ok = true;
  NODE_EACH(item, n->list) {
    Value e = eval_one(l, item);
    if (e.kind == VALUE_POISON)
      ok = false;
    else if (e.kind == VALUE_TENSOR) {
      lower_error(l, item->loc, "E-const",
                  "a list holds compile-time values; to join tensors use concat(a, b, axis = ...)");
      ok = false;
    }
    v.list.items[v.list.n++] = e;
  }
  return ok ? v : value_poison();
}

/* ---- operators ---- */

static const IrOpKind op_kinds[] = {
    [OP_ADD] = IR_OP_ADD, [OP_SUB] = IR_OP_SUB, [OP_MUL] = IR_OP_MUL, [OP_DIV] = IR_OP_DIV,
    [OP_EQ] = IR_OP_EQ,   [OP_NE] = IR_OP_NE,   [OP_LT] = IR_OP_LT,   [OP_LE] = IR_OP_LE,
    [OP_GT] = IR_OP_GT,   [OP_GE] = IR_OP_GE};

static Value const_binary(Lower *l, Operator op, Value a, Value b, SrcLoc loc) {
  ValueError why;
  Value out;
  if (value_binary(l->arena, op, a, b, &out, &why)) {
    out.from = loc;
    return out;
  }
  StrBuf x = {0}, y = {0};
  value_describe(&x, a);
  value_describe(&y, b);
  lower_error(l, loc, why.code, "%s: %s `%s` %s", why.message, x.data, operator_spelling(op),
              y.data);
  strbuf_free(&x);
  strbuf_free(&y);
  return value_poison();
}

static bool whole_number(Value v) {
  return v.kind == VALUE_INT || (v.kind == VALUE_TENSOR && !dtype_is_float(v.tensor->type->dtype));
}

static Value eval_binary_values(Lower *l, Operator op, Value a, Value b, SrcLoc loc) {
  if (a.kind == VALUE_POISON || b.kind == VALUE_POISON || l->stopped) return value_poison();
  if (value_is_const(a) && value_is_const(b)) return const_binary(l, op, a, b, loc);
  Value operands[2] = {a, b};
  if (op == OP_AND || op == OP_OR || op == OP_MOD) {
    lower_error(l, loc, "E-arg", "`%s` computes at compile time only; for tensors %s",
                operator_spelling(op),
                op == OP_AND  ? "of comparisons use min(a, b)"
                : op == OP_OR ? "of comparisons use max(a, b)"
                : whole_number(a) && whole_number(b)
                    ? "write a - cast(floor(cast(a, f32) / cast(b, f32)), s32) * b"
                    : "write a - floor(a / b) * b");
    return value_poison();
  }
  if (op == OP_MATMUL) {
    const Value *number = value_is_const(a) ? &a : value_is_const(b) ? &b : NULL;
    if (number) {
      StrBuf s = {0};
      value_describe(&s, *number);
      lower_error(l, loc, "E-arg", "`@` multiplies matrices, found %s; write `*` to scale", s.data);
      strbuf_free(&s);
      return value_poison();
    }
    return lower_results(lower_op(l, loc, IR_OP_MATMUL, 2, operands, 0, NULL), loc, l->arena);
  }
  if (!literal_adapt(l, operands, 2, 0, loc)) return value_poison();
  return lower_results(lower_op(l, loc, op_kinds[op], 2, operands, 0, NULL), loc, l->arena);
}

static Value transpose(Lower *l, Value x, SrcLoc loc) {
  if (x.kind == VALUE_POISON) return x;
  if (x.kind != VALUE_TENSOR || x.tensor->type->rank < 2) {
    StrBuf b = {0};
    value_describe(&b, x);
    lower_error(l, loc, "E-shape", "`'` transposes the last two axes; %s has fewer than two",
                b.data);
    strbuf_free(&b);
    return value_poison();
  }
  int rank = x.tensor->type->rank;
  int64_t perm[IR_MAX_RANK];
  for (int i = 0; i < rank; i++) perm[i] = i;
  perm[rank - 1] = rank - 2;
  perm[rank - 2] = rank - 1;
  IrAttrInit attr = {"perm", ir_attr_ints(l->m, perm, (size_t)rank)};
  return lower_op1(l, loc, IR_OP_TRANSPOSE, x, 1, &attr);
}

/* An operand of `@` where it can be used transposed in place: without its `'`. */
static Value matmul_operand(Lower *l, const Node *n, bool *transposed) {
  *transposed = false;
  if (n->kind != NODE_TRANSPOSE) return eval_one(l, n);
  Value v = eval_one(l, n->a);
  if (v.kind == VALUE_TENSOR && v.tensor->type->rank >= 2)
    *transposed = true;
  else
    v = transpose(l, v, n->loc);
  return v;
}

static Value matmul(Lower *l, const Node *n, Value a, bool ta) {
  bool tb;
  Value b = matmul_operand(l, n->b, &tb);
  if (a.kind != VALUE_TENSOR || b.kind != VALUE_TENSOR)
    return eval_binary_values(l, OP_MATMUL, a, b, n->loc);
  /* A vector has nothing to transpose, and beside one the flag's meaning is the op's affair. */
  if (ta && b.tensor->type->rank < 2) a = transpose(l, a, n->a->loc), ta = false;
  if (tb && a.kind == VALUE_TENSOR && a.tensor->type->rank < 2)
    b = transpose(l, b, n->b->loc), tb = false;
  if (a.kind == VALUE_POISON || b.kind == VALUE_POISON) return value_poison();
  IrAttrInit attrs[2];
  size_t nattrs = 0;
  if (ta) attrs[nattrs++] = (IrAttrInit){"transpose_a", ir_attr_bool(l->m, true)};
  if (tb) attrs[nattrs++] = (IrAttrInit){"transpose_b", ir_attr_bool(l->m, true)};
  Value operands[2] = {a, b};
  return lower_results(lower_op(l, n->loc, IR_OP_MATMUL, 2, operands, nattrs, attrs), n->loc,
                       l->arena);
}

/* `and`, `or`: the right side is not looked at when the left one decides. */
static Value logical(Lower *l, const Node *n, Value a) {
  if (a.kind == VALUE_BOOL && a.b == (n->op == OP_OR)) return a;
  return eval_binary_values(l, n->op, a, eval_one(l, n->b), n->loc);
}

/* Long sums lean to the left; their spine is walked without recursion. */
static Value eval_binary(Lower *l, const Node *n) {
  size_t count = 0;
  for (const Node *s = n; s->kind == NODE_BINARY; s = s->a) count++;
  const Node **spine = ARENA_ARRAY(l->arena, const Node *, count);
  size_t i = count;
  const Node *s = n;
  for (; s->kind == NODE_BINARY; s = s->a) spine[--i] = s;
  bool transposed = false;
  Value v = spine[0]->op == OP_MATMUL ? matmul_operand(l, s, &transposed) : eval_one(l, s);
  for (i = 0; i < count && !l->stopped; i++) {
    const Node *b = spine[i];
    if (b->op == OP_MATMUL)
      v = matmul(l, b, v, i == 0 && transposed);
    else if (b->op == OP_AND || b->op == OP_OR)
      v = logical(l, b, v);
    else
      v = eval_binary_values(l, b->op, v, eval_one(l, b->b), b->loc);
  }
  return v;
}

static Value eval_unary(Lower *l, const Node *n) {
  Value a = eval_one(l, n->a), out;
  ValueError why;
  if (a.kind == VALUE_POISON) return a;
  if (a.kind == VALUE_TENSOR && n->op == OP_NEG) return lower_op1(l, n->loc, IR_OP_NEG, a, 0, NULL);
  if (a.kind == VALUE_TENSOR) {
    lower_error(l, n->loc, "E-arg",
                "`not` computes at compile time only; for a tensor of comparisons write x == 0");
    return value_poison();
  }
  if (value_unary(n->op, a, &out, &why)) {
    out.from = n->loc;
    return out;
  }
  StrBuf b = {0};
  value_describe(&b, a);
  lower_error(l, n->loc, why.code, "%s, found %s", why.message, b.data);
  strbuf_free(&b);
  return value_poison();
}

/* ---- dispatch ---- */

static Value eval_kind(Lower *l, const Node *n) {
  Value v = {.from = n->loc};
  switch (n->kind) {
  case NODE_INT: v.kind = VALUE_INT, v.i = n->i; return v;
  case NODE_REAL: v.kind = VALUE_REAL, v.r = n->r; return v;
  case NODE_BOOL: v.kind = VALUE_BOOL, v.b = n->i != 0; return v;
  case NODE_TEXT: return eval_text(l, n);
  case NODE_NAME: return eval_name(l, n);
  case NODE_LIST: return eval_list(l, n);
  case NODE_UNARY: return eval_unary(l, n);
  case NODE_BINARY: return eval_binary(l, n);
  case NODE_TRANSPOSE: return transpose(l, eval_one(l, n->a), n->loc);
  case NODE_CALL: return eval_call(l, n);
  case NODE_INDEX: return eval_index(l, n);
  case NODE_ARG:
    lower_error(l, n->loc, "E-arg", "`name = value` is for the arguments of calls");
    return value_poison();
  default: return value_poison(); /* BROKEN: reported by the parser */
  }
}

Value eval(Lower *l, const Node *n) {
  if (!lower_enter(l, n->loc)) return value_poison();
  Value v = eval_kind(l, n);
  l->depth--;
  return l->stopped ? value_poison() : v;
}

Value eval_one(Lower *l, const Node *n) {
  Value v = eval(l, n);
  if (v.kind != VALUE_TUPLE) return v;
  lower_error(l, n->loc, "E-arg",
              "this call gives %zu results; assign them to names first: a, b = ...", v.list.n);
  return value_poison();
}

bool eval_int(Lower *l, const Node *n, const char *what, int64_t *out) {
  Value v = eval_one(l, n);
  if (v.kind == VALUE_INT) {
    *out = v.i;
    return true;
  }
  if (v.kind == VALUE_POISON) return false;
  StrBuf b = {0};
  value_describe(&b, v);
  lower_error(l, n->loc, "E-const", "%s is a compile-time integer, found %s", what, b.data);
  strbuf_free(&b);
  return false;
}

static bool eval_dtype(Lower *l, const Node *type, DType *out) {
  SrcLoc loc = type->name_loc;
  if (!dtype_parse(type->name, out)) {
    const char *names[DT_MACHINE_COUNT];
    for (int t = 0; t < DT_MACHINE_COUNT; t++) names[t] = dtype_name((DType)t);
    const char *near = str_nearest(type->name, names, DT_MACHINE_COUNT);
    if (near)
      lower_error(l, loc, "E-dtype", "`%s` is not an element type; did you mean `%s`?", type->name,
                  near);
    else
      lower_error(l, loc, "E-dtype", "`%s` is not an element type; there are s8, bf16, f32 and s32",
                  type->name);
    return false;
  }
  if (*out < DT_MACHINE_COUNT) return true;
  lower_error(l, loc, "E-dtype", "%s exists only in files; the machine has s8, bf16, f32 and s32",
              type->name);
  return false;
}

const IrType *eval_type(Lower *l, const Node *type, const char *of) {
  DType dtype;
  int64_t shape[IR_MAX_RANK], bytes;
  int rank = 0;
  bool ok = eval_dtype(l, type, &dtype);
  if (type->list.n > IR_MAX_RANK) {
    lower_error(l, type->loc, "E-shape", "`%s` has %zu axes; at most %d are possible", of,
                type->list.n, IR_MAX_RANK);
    return NULL;
  }
  bytes = ok ? (int64_t)dtype_size(dtype) : 1;
  NODE_EACH(dim, type->list) {
    int64_t d;
    if (!eval_int(l, dim, "a dimension", &d))
      ok = false;
    else if (d < 1) {
      lower_error(l, dim->loc, "E-shape", "axis %d of `%s` is %lld; every axis is at least 1", rank,
                  of, (long long)d);
      ok = false;
    } else if (ok && !mul_i64(bytes, d, &bytes)) {
      lower_error(l, type->loc, "E-shape",
                  "`%s` is too large: its size in bytes does not fit 63 bits", of);
      return NULL;
    } else {
      shape[rank] = d;
    }
    rank++;
  }
  return ok ? ir_type_tensor(l->m, dtype, rank, shape) : NULL;
}
