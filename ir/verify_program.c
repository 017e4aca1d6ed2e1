/* The verifier: attributes of program ops, as the passes and the backend read them. */
#include "ir/verify.h"

#include <string.h>

#define SEMS_OF_INSN 2 /* taken, and given, by one instruction */

static const IrAttr *need_list(Verifier *v, const IrOp *op, const char *name) {
  const IrAttr *a = ir_attr(op, name);
  if (!a || a->kind == IR_ATTR_ARRAY) return a;
  verify_fail(v, op, "E-attr", "%s must be a list", name);
  return NULL;
}

static bool is_int(const IrAttr *a) {
  return a->kind == IR_ATTR_INT;
}

static bool is_token(const IrValue *x, const char *token) {
  return x->type->kind == IR_TYPE_TOKEN && !strcmp(x->type->token, token);
}

static bool need_token(Verifier *v, const IrOp *op, int i, const char *token) {
  const IrValue *x = ir_operand(op, i);
  if (is_token(x, token)) return true;
  return verify_fail(v, op, "E-type", "operand %d is %s, expected !%s", i,
                     verify_type_text(v, x->type), token);
}

/* The operand that `number` names, entry i of the list called name; -1 after an error. */
static int named_operand(Verifier *v, const IrOp *op, const char *name, size_t i,
                         const IrAttr *number, bool *named) {
  if (!is_int(number) || number->i < 0 || number->i >= op->noperands) {
    StrBuf text = {0};
    ir_attr_print(&text, v->m, number);
    verify_fail(v, op, "E-attr", "entry %zu of %s names operand %s, but there are %d operands", i,
                name, text.data, op->noperands);
    strbuf_free(&text);
    return -1;
  }
  named[number->i] = true;
  return (int)number->i;
}

/* Only buffers and tensors have addresses to add a constant to. */
static bool need_address(Verifier *v, const IrOp *op, const char *name, size_t i, int operand) {
  const IrValue *x = ir_operand(op, operand);
  if (is_token(x, "buf") || is_token(x, "addr")) return true;
  return verify_fail(v, op, "E-type",
                     "entry %zu of %s adds to operand %d, which is %s; only !buf and !addr have an "
                     "address",
                     i, name, operand, verify_type_text(v, x->type));
}

static bool check_arg(Verifier *v, const IrOp *op, size_t i, const IrAttr *a, bool *named) {
  if (is_int(a) || a->kind == IR_ATTR_STR) return true;
  if (a->kind != IR_ATTR_ARRAY || a->array.n < 1 || a->array.n > 2)
    return verify_fail(v, op, "E-attr",
                       "entry %zu of args must be a number, a field name, [operand] or [operand, "
                       "offset]",
                       i);
  int operand = named_operand(v, op, "args", i, a->array.items[0], named);
  if (operand < 0 || a->array.n == 1) return operand >= 0;
  if (!is_int(a->array.items[1]))
    return verify_fail(v, op, "E-attr", "the offset of entry %zu of args must be a whole number",
                       i);
  return need_address(v, op, "args", i, operand);
}

static bool check_sems(Verifier *v, const IrOp *op, const char *name, bool *named) {
  const IrAttr *list = need_list(v, op, name);
  if (!list) return ir_attr(op, name) == NULL;
  if (list->array.n > SEMS_OF_INSN)
    return verify_fail(v, op, "E-attr", "%s names %zu semaphores; an instruction has room for %d",
                       name, list->array.n, SEMS_OF_INSN);
  for (size_t i = 0; i < list->array.n; i++) {
    const IrAttr *a = list->array.items[i];
    if (a->kind != IR_ATTR_ARRAY || a->array.n != 2 || !is_int(a->array.items[1]) ||
        a->array.items[1]->i < 1)
      return verify_fail(v, op, "E-attr",
                         "entry %zu of %s must be a semaphore and a count of at least 1", i, name);
    int operand = named_operand(v, op, name, i, a->array.items[0], named);
    if (operand < 0 || !need_token(v, op, operand, "sem")) return false;
  }
  return true;
}

/* An operand nothing names would be lost on the way to an instruction. */
static void check_named(Verifier *v, const IrOp *op, const char *where, const bool *named) {
  for (int i = 0; i < op->noperands; i++)
    if (!named[i]) verify_fail(v, op, "E-operands", "operand %d is not used by %s", i, where);
}

static void check_insn(Verifier *v, const IrOp *op, bool *named) {
  const IrAttr *args = need_list(v, op, "args");
  if (!args && ir_attr(op, "args")) return;
  for (size_t i = 0; args && i < args->array.n; i++)
    if (!check_arg(v, op, i, args->array.items[i], named)) return;
  if (check_sems(v, op, "take", named) && check_sems(v, op, "give", named))
    check_named(v, op, "args, take or give", named);
}

static bool check_field(Verifier *v, const IrOp *op, size_t i, const IrAttr *a, bool *named) {
  const IrAttr **item = a->array.items;
  bool form = a->kind == IR_ATTR_ARRAY && a->array.n >= 2 && a->array.n <= 4 &&
              item[0]->kind == IR_ATTR_STR && is_int(item[1]);
  if (form && a->array.n == 3 && is_int(item[2])) {
    int operand = named_operand(v, op, "fields", i, item[1], named);
    return operand >= 0 && need_address(v, op, "fields", i, operand);
  }
  if (form && (a->array.n == 2 || (a->array.n == 4 && !strcmp(item[0]->s, "stream") &&
                                   item[2]->kind == IR_ATTR_STR && item[3]->kind == IR_ATTR_DTYPE)))
    return true;
  return verify_fail(v, op, "E-attr",
                     "entry %zu of fields must be [field, number], [field, operand, offset] or "
                     "[\"stream\", number, space, element type]",
                     i);
}

static void check_desc(Verifier *v, const IrOp *op, bool *named) {
  const IrAttr *fields = need_list(v, op, "fields");
  if (!fields) return;
  for (size_t i = 0; i < fields->array.n; i++)
    if (!check_field(v, op, i, fields->array.items[i], named)) return;
  check_named(v, op, "a field", named);
}

static void check_buffer(Verifier *v, const IrOp *op) {
  int64_t bytes = ir_get_int(op, "bytes", 0), slots = ir_get_int(op, "slots", 1),
          align = ir_get_int(op, "align", 1), total;
  const char *space = ir_get_str(op, "space", "");
  if (strcmp(space, "spm") && strcmp(space, "acc"))
    verify_fail(v, op, "E-attr", "space = \"%s\" is not spm or acc", space);
  if (bytes < 1 || slots < 1 || !mul_i64(bytes, slots, &total) || total > IR_MAX_ELEMENTS)
    verify_fail(v, op, "E-attr", "bytes and slots must be at least 1, together at most 2^40");
  if (align < 1 || align > IR_MAX_ELEMENTS || (align & (align - 1)))
    verify_fail(v, op, "E-attr", "align must be a power of two");
}

/* type = [element type, [axis, ...]], layout = an order of the axes, outermost first. */
static void check_tensor(Verifier *v, const IrOp *op) {
  const IrAttr *type = ir_attr(op, "type"), *data = ir_attr(op, "data");
  bool form = type->kind == IR_ATTR_ARRAY && type->array.n == 2 &&
              type->array.items[0]->kind == IR_ATTR_DTYPE &&
              type->array.items[1]->kind == IR_ATTR_ARRAY &&
              type->array.items[1]->array.n <= IR_MAX_RANK && attr_is_ints(type->array.items[1]);
  int64_t layout[IR_MAX_RANK], shape[IR_MAX_RANK], count = 1;
  int rank = form ? (int)type->array.items[1]->array.n : 0,
      n = ir_get_ints(op, "layout", layout, IR_MAX_RANK);
  for (int i = 0; form && i < rank; i++) {
    shape[i] = type->array.items[1]->array.items[i]->i;
    form = shape[i] >= 1 && mul_i64(count, shape[i], &count) && count <= IR_MAX_ELEMENTS;
  }
  if (!form) {
    verify_fail(v, op, "E-attr",
                "type must be [element type, [axis, ...]], axes at least 1, together at most 2^40");
    return;
  }
  uint32_t seen = 0;
  for (int i = 0; i < n; i++)
    if (layout[i] >= 0 && layout[i] < rank) seen |= 1u << layout[i];
  if (n && (n != rank || seen != (1u << rank) - 1))
    verify_fail(v, op, "E-attr", "the layout must name each of the %d axes once", rank);
  const IrType *want = ir_type_tensor(v->m, type->array.items[0]->dtype, rank, shape);
  if (data && data->kind == IR_ATTR_DATA && data->data->type != want)
    verify_fail(v, op, "E-type", "the data is %s, not %s", verify_type_text(v, data->data->type),
                verify_type_text(v, want));
  if (ir_get_int(op, "addr", -1) > IR_MAX_ELEMENTS)
    verify_fail(v, op, "E-attr", "addr lies beyond 2^40");
}

static void check_if(Verifier *v, const IrOp *op) {
  static const char *const conds[] = {"eq", "ne", "lt", "ge"};
  const char *cond = ir_get_str(op, "cond", "");
  for (size_t i = 0; i < NPU_COUNTOF(conds); i++)
    if (!strcmp(cond, conds[i])) return;
  verify_fail(v, op, "E-attr", "cond = \"%s\" is not eq, ne, lt or ge", cond);
}

void verify_program_op(Verifier *v, const IrOp *op) {
  bool *named = mem_alloc(sizeof *named * (size_t)(op->noperands + 1));
  for (int i = 0; i < op->noperands && (op->kind == IR_OP_FOR || op->kind == IR_OP_IF); i++)
    need_token(v, op, i, "reg");
  switch (op->kind) {
  case IR_OP_INSN: check_insn(v, op, named); break;
  case IR_OP_DESC: check_desc(v, op, named); break;
  case IR_OP_BUFFER: check_buffer(v, op); break;
  case IR_OP_TENSOR: check_tensor(v, op); break;
  case IR_OP_IF: check_if(v, op); break;
  case IR_OP_FOR:
    if (ir_get_int(op, "step", 0) == 0) verify_fail(v, op, "E-attr", "step must not be 0");
    break;
  case IR_OP_SEM:
    if (ir_get_int(op, "init", 0) < 0) verify_fail(v, op, "E-attr", "init must not be negative");
    break;
  case IR_OP_ACQUIRE:
  case IR_OP_RELEASE: need_token(v, op, 0, "buf"); break;
  default: break;
  }
  mem_free(named);
}
