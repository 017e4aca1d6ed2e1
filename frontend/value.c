/* Arithmetic on compile-time values. Integers are checked; division rounds down, as % goes with it.
 */
#include "frontend/value.h"

#include <math.h>
#include <string.h>

Value value_poison(void) {
  return (Value){.kind = VALUE_POISON};
}
Value value_int(int64_t i) {
  return (Value){.kind = VALUE_INT, .i = i};
}
Value value_real(double r) {
  return (Value){.kind = VALUE_REAL, .r = r};
}
Value value_bool(bool b) {
  return (Value){.kind = VALUE_BOOL, .b = b};
}
Value value_tensor(IrValue *t, SrcLoc from) {
  return (Value){.kind = VALUE_TENSOR, .from = from, .tensor = t};
}

bool value_is_number(Value v) {
  return v.kind == VALUE_INT || v.kind == VALUE_REAL;
}
double value_number(Value v) {
  return v.kind == VALUE_INT ? (double)v.i : v.r;
}
bool value_is_const(Value v) {
  return v.kind >= VALUE_INT && v.kind <= VALUE_LIST;
}

void value_describe(StrBuf *b, Value v) {
  switch (v.kind) {
  case VALUE_POISON: strbuf_puts(b, "nothing"); break;
  case VALUE_INT: strbuf_printf(b, "the number %lld", (long long)v.i); break;
  case VALUE_REAL:
    strbuf_puts(b, "the number ");
    strbuf_double(b, v.r);
    break;
  case VALUE_BOOL: strbuf_puts(b, v.b ? "true" : "false"); break;
  case VALUE_TEXT:
    strbuf_puts(b, "the text ");
    strbuf_quote(b, v.s);
    break;
  case VALUE_DTYPE: strbuf_printf(b, "the type %s", dtype_name(v.dtype)); break;
  case VALUE_LIST: strbuf_printf(b, "a list of %zu", v.list.n); break;
  case VALUE_TENSOR:
    strbuf_puts(b, "a tensor ");
    ir_type_print(b, v.tensor->type);
    break;
  case VALUE_TUPLE: strbuf_printf(b, "%zu results", v.list.n); break;
  }
}

static bool fail(ValueError *why, const char *code, const char *message) {
  *why = (ValueError){code, message};
  return false;
}

static const char overflow[] = "this integer expression leaves the range of 64 bits";

bool value_unary(Operator op, Value a, Value *out, ValueError *why) {
  if (op == OP_NOT) {
    if (a.kind != VALUE_BOOL) return fail(why, "E-const", "`not` is for booleans");
    *out = value_bool(!a.b);
    return true;
  }
  if (a.kind == VALUE_REAL)
    *out = value_real(-a.r);
  else if (a.kind != VALUE_INT)
    return fail(why, "E-const", "`-` is for numbers and tensors");
  else if (a.i == INT64_MIN)
    return fail(why, "E-const", overflow);
  else
    *out = value_int(-a.i);
  return true;
}

static bool int_arith(Operator op, int64_t a, int64_t b, Value *out, ValueError *why) {
  int64_t r = 0;
  bool ok = true;
  switch (op) {
  case OP_ADD: ok = add_i64(a, b, &r); break;
  case OP_SUB: ok = !__builtin_sub_overflow(a, b, &r); break;
  case OP_MUL: ok = mul_i64(a, b, &r); break;
  default: /* OP_DIV, OP_MOD */
    if (b == 0) return fail(why, "E-const", "division by zero");
    if (a == INT64_MIN && b == -1) {
      ok = op == OP_MOD;
      break;
    }
    r = op == OP_DIV ? a / b : a % b;
    if (a % b != 0 && (a < 0) != (b < 0)) r += op == OP_DIV ? -1 : b;
  }
  if (!ok) return fail(why, "E-const", overflow);
  *out = value_int(r);
  return true;
}

/* A real that was computed from others. An infinite one may only come from an infinite one. */
static bool take_real(double r, bool from_infinite, Value *out, ValueError *why) {
  if (isnan(r)) return fail(why, "E-const", "this real expression has no value (NaN)");
  if (isinf(r) && !from_infinite) return fail(why, "E-const", "this real expression overflows");
  *out = value_real(r);
  return true;
}

static bool real_arith(Operator op, double a, double b, Value *out, ValueError *why) {
  double r = 0;
  switch (op) {
  case OP_ADD: r = a + b; break;
  case OP_SUB: r = a - b; break;
  case OP_MUL: r = a * b; break;
  default:
    if (b == 0) return fail(why, "E-const", "division by zero");
    r = op == OP_DIV ? a / b : a - b * floor(a / b);
  }
  return take_real(r, isinf(a) || isinf(b), out, why);
}

/* -1, 0, 1; 2 when they cannot be compared. */
static int compare(Value a, Value b) {
  if (a.kind == VALUE_INT && b.kind == VALUE_INT) return (a.i > b.i) - (a.i < b.i);
  if (value_is_number(a) && value_is_number(b)) {
    double x = value_number(a), y = value_number(b);
    return (x > y) - (x < y);
  }
  if (a.kind != b.kind) return 2;
  if (a.kind == VALUE_BOOL) return (int)a.b - (int)b.b;
  if (a.kind == VALUE_DTYPE) return (int)a.dtype - (int)b.dtype;
  if (a.kind == VALUE_TEXT) {
    int c = strcmp(a.s, b.s);
    return (c > 0) - (c < 0);
  }
  return 2;
}

static bool list_equal(Value a, Value b) {
  if (a.kind != VALUE_LIST || b.kind != VALUE_LIST) return compare(a, b) == 0;
  if (a.list.n != b.list.n) return false;
  for (size_t i = 0; i < a.list.n; i++)
    if (!list_equal(a.list.items[i], b.list.items[i])) return false;
  return true;
}

static bool comparison(Operator op, Value a, Value b, Value *out, ValueError *why) {
  bool lists = a.kind == VALUE_LIST && b.kind == VALUE_LIST && (op == OP_EQ || op == OP_NE);
  int c = lists ? !list_equal(a, b) : compare(a, b);
  if (c == 2) return fail(why, "E-const", "values of different kinds cannot be compared");
  bool ordered = value_is_number(a) || a.kind == VALUE_TEXT;
  switch (op) {
  case OP_EQ: *out = value_bool(c == 0); return true;
  case OP_NE: *out = value_bool(c != 0); return true;
  case OP_LT: *out = value_bool(c < 0); break;
  case OP_LE: *out = value_bool(c <= 0); break;
  case OP_GT: *out = value_bool(c > 0); break;
  default: *out = value_bool(c >= 0); break;
  }
  return ordered || fail(why, "E-const", "only numbers and texts have an order");
}

static bool join(Arena *arena, Value a, Value b, Value *out) {
  if (a.kind == VALUE_TEXT) {
    *out = (Value){.kind = VALUE_TEXT, .s = arena_printf(arena, "%s%s", a.s, b.s)};
    return true;
  }
  size_t n = a.list.n + b.list.n;
  Value *items = ARENA_ARRAY(arena, Value, n + 1);
  if (a.list.n) memcpy(items, a.list.items, a.list.n * sizeof *items);
  if (b.list.n) memcpy(items + a.list.n, b.list.items, b.list.n * sizeof *items);
  *out = (Value){.kind = VALUE_LIST, .list = {items, n}};
  return true;
}

bool value_binary(Arena *arena, Operator op, Value a, Value b, Value *out, ValueError *why) {
  if (op >= OP_EQ && op <= OP_GE) return comparison(op, a, b, out, why);
  if (op == OP_AND || op == OP_OR) {
    if (a.kind != VALUE_BOOL || b.kind != VALUE_BOOL)
      return fail(why, "E-const", "`and` and `or` are for booleans");
    *out = value_bool(op == OP_AND ? a.b && b.b : a.b || b.b);
    return true;
  }
  if (op == OP_ADD && a.kind == b.kind && (a.kind == VALUE_TEXT || a.kind == VALUE_LIST))
    return join(arena, a, b, out);
  if (op == OP_MATMUL || !value_is_number(a) || !value_is_number(b))
    return fail(why, "E-const", "this operator does not go with such values");
  if (a.kind == VALUE_INT && b.kind == VALUE_INT) return int_arith(op, a.i, b.i, out, why);
  return real_arith(op, value_number(a), value_number(b), out, why);
}

NumberFunction value_function(const char *name, const Value *args, size_t n, Value *out,
                              ValueError *why) {
  static const struct {
    const char *name;
    double (*f)(double);
  } real1[] = {{"sqrt", sqrt}, {"exp", exp}, {"log", log},
               {"sin", sin},   {"cos", cos}, {"floor", floor}};
  bool infinite = false;
  for (size_t i = 0; i < n; i++) {
    if (!value_is_number(args[i])) return NUMBER_NO_FUNCTION;
    infinite |= isinf(value_number(args[i]));
  }
  if (n == 1 && strcmp(name, "abs") == 0) {
    *out = args[0].kind == VALUE_REAL ? value_real(fabs(args[0].r)) : args[0];
    if (out->kind == VALUE_REAL || out->i >= 0) return NUMBER_DONE;
    return value_unary(OP_SUB, *out, out, why) ? NUMBER_DONE : NUMBER_FAILED;
  }
  for (size_t i = 0; n == 1 && i < NPU_COUNTOF(real1); i++)
    if (strcmp(name, real1[i].name) == 0)
      return take_real(real1[i].f(value_number(args[0])), infinite, out, why) ? NUMBER_DONE
                                                                              : NUMBER_FAILED;
  if (n != 2) return NUMBER_NO_FUNCTION;
  bool first_less = compare(args[0], args[1]) < 0;
  if (strcmp(name, "min") == 0)
    *out = args[first_less ? 0 : 1];
  else if (strcmp(name, "max") == 0)
    *out = args[first_less ? 1 : 0];
  else if (strcmp(name, "pow") == 0)
    return take_real(pow(value_number(args[0]), value_number(args[1])), infinite, out, why)
               ? NUMBER_DONE
               : NUMBER_FAILED;
  else
    return NUMBER_NO_FUNCTION;
  return NUMBER_DONE;
}
