/* Text forms of program ops: what stands between the mnemonic and the attributes. An op whose
 * attributes do not have the shape its form needs is written like every other op, as a list of
 * operands and attributes; parse_form.c reads both. Grammar: ir/README.md. */
#include "ir/print.h"

#include <string.h>

/* ---- attributes by kind ---- */

static const IrAttr *attr_of(const IrOp *op, const char *name, IrAttrKind kind) {
  const IrAttr *a = ir_attr(op, name);
  return a && a->kind == kind ? a : NULL;
}

static const char *word_of(const IrOp *op, const char *name) {
  const IrAttr *a = attr_of(op, name, IR_ATTR_STR);
  return a && text_is_word(a->s) ? a->s : NULL;
}

static bool is_list(const IrAttr *a, size_t least, size_t most) {
  return a && a->kind == IR_ATTR_ARRAY && a->array.n >= least && a->array.n <= most;
}

static bool is_int_at(const IrAttr *list, size_t i) {
  return list->array.items[i]->kind == IR_ATTR_INT;
}

static void shown(FormText *f, const char *name) {
  f->shown[f->nshown++] = name;
}

static void print_int(Printer *p, int64_t v) {
  strbuf_printf(p->out, "%lld", (long long)v);
}

/* ---- operands named by attributes ---- */

/* Whether item's entry `at` names an operand; marks it. */
static bool names_operand(const IrOp *op, const IrAttr *item, size_t at, uint64_t *used) {
  if (!is_int_at(item, at)) return false;
  int64_t i = item->array.items[at]->i;
  if (i < 0 || i >= op->noperands || !ir_operand(op, (int)i)) return false;
  *used |= 1ull << i;
  return true;
}

/* Every operand must be named, or the form would lose it. */
static bool all_named(const IrOp *op, uint64_t used) {
  return op->noperands < 64 && used == (1ull << op->noperands) - 1;
}

static void print_offset(Printer *p, int64_t cst) {
  uint64_t magnitude = cst < 0 ? 0 - (uint64_t)cst : (uint64_t)cst;
  strbuf_printf(p->out, " %c %llu", cst < 0 ? '-' : '+', (unsigned long long)magnitude);
}

static void print_operand(Printer *p, const IrOp *op, const IrAttr *item, size_t at) {
  print_value(p, ir_operand(op, (int)item->array.items[at]->i));
}

/* ---- insn ---- */

static bool arg_fits(const IrOp *op, const IrAttr *a, uint64_t *used) {
  if (a->kind == IR_ATTR_INT || a->kind == IR_ATTR_STR) return true;
  return is_list(a, 1, 2) && names_operand(op, a, 0, used) && (a->array.n == 1 || is_int_at(a, 1));
}

static bool sems_fit(const IrOp *op, const char *list, uint64_t *used) {
  const IrAttr *a = ir_attr(op, list);
  if (!a) return true;
  if (!is_list(a, 1, SIZE_MAX)) return false;
  for (size_t i = 0; i < a->array.n; i++) {
    const IrAttr *item = a->array.items[i];
    if (!is_list(item, 2, 2) || !names_operand(op, item, 0, used) || !is_int_at(item, 1))
      return false;
  }
  return true;
}

static void print_arg(Printer *p, const IrOp *op, const IrAttr *a) {
  if (a->kind == IR_ATTR_INT) {
    print_int(p, a->i);
  } else if (a->kind == IR_ATTR_STR) {
    print_word(p->out, a->s);
  } else {
    print_operand(p, op, a, 0);
    if (a->array.n == 2) print_offset(p, a->array.items[1]->i);
  }
}

static void print_sems(Printer *p, const IrOp *op, const char *list) {
  const IrAttr *a = ir_attr(op, list);
  if (!a) return;
  strbuf_printf(p->out, " %s ", list);
  for (size_t i = 0; i < a->array.n; i++) {
    if (i) strbuf_puts(p->out, ", ");
    print_operand(p, op, a->array.items[i], 0);
    strbuf_putc(p->out, ':');
    print_int(p, a->array.items[i]->array.items[1]->i);
  }
}

/* insn addi(%a, %b, %buffer + 64) take %s:1 give %t:1, %u:2 */
static bool insn_form(Printer *p, const IrOp *op, FormText *f) {
  const IrAttr *args = attr_of(op, "args", IR_ATTR_ARRAY);
  const char *mnemonic = word_of(op, "op");
  uint64_t used = 0;
  bool fits = mnemonic && args && op->noperands < 64;
  for (size_t i = 0; fits && i < args->array.n; i++)
    fits = arg_fits(op, args->array.items[i], &used);
  if (!fits || !sems_fit(op, "take", &used) || !sems_fit(op, "give", &used) || !all_named(op, used))
    return false;
  strbuf_printf(p->out, " %s(", mnemonic);
  for (size_t i = 0; i < args->array.n; i++) {
    if (i) strbuf_puts(p->out, ", ");
    print_arg(p, op, args->array.items[i]);
  }
  strbuf_putc(p->out, ')');
  print_sems(p, op, "take");
  print_sems(p, op, "give");
  shown(f, "op"), shown(f, "args"), shown(f, "take"), shown(f, "give");
  return true;
}

/* ---- desc ---- */

static bool field_fits(const IrOp *op, const IrAttr *a, uint64_t *used) {
  if (!is_list(a, 2, 4) || a->array.items[0]->kind != IR_ATTR_STR || !is_int_at(a, 1)) return false;
  const IrAttr **item = a->array.items;
  if (a->array.n == 2) return true;
  if (a->array.n == 3) return names_operand(op, a, 1, used) && is_int_at(a, 2);
  return !strcmp(item[0]->s, "stream") && item[2]->kind == IR_ATTR_STR &&
         text_is_word(item[2]->s) && item[3]->kind == IR_ATTR_DTYPE;
}

static void print_field(Printer *p, const IrOp *op, const IrAttr *a) {
  const IrAttr **item = a->array.items;
  print_word(p->out, item[0]->s);
  if (a->array.n == 4) {
    strbuf_printf(p->out, " %lld = %s %s", (long long)item[1]->i, item[2]->s,
                  dtype_name(item[3]->dtype));
    return;
  }
  strbuf_puts(p->out, " = ");
  if (a->array.n == 2) {
    print_int(p, item[1]->i);
  } else {
    print_operand(p, op, a, 1);
    print_offset(p, item[2]->i);
  }
}

/* desc dma(rank = 2, len.0 = 64, stream 0 = spm s8, dram = %x + 128) */
static bool desc_form(Printer *p, const IrOp *op, FormText *f) {
  const IrAttr *fields = attr_of(op, "fields", IR_ATTR_ARRAY);
  const char *kind = word_of(op, "kind");
  uint64_t used = 0;
  bool fits = kind && fields && op->noperands < 64;
  for (size_t i = 0; fits && i < fields->array.n; i++)
    fits = field_fits(op, fields->array.items[i], &used);
  if (!fits || !all_named(op, used)) return false;
  strbuf_printf(p->out, " %s(", kind);
  for (size_t i = 0; i < fields->array.n; i++) {
    if (i) strbuf_puts(p->out, ", ");
    print_field(p, op, fields->array.items[i]);
  }
  strbuf_putc(p->out, ')');
  shown(f, "kind"), shown(f, "fields");
  return true;
}

/* ---- places ---- */

/* The name, when there is one, in quotes. */
static void print_name(Printer *p, const IrOp *op, FormText *f) {
  const IrAttr *name = attr_of(op, "name", IR_ATTR_STR);
  if (!name || is_default(op, "name", name)) return;
  strbuf_putc(p->out, ' ');
  strbuf_quote(p->out, name->s);
  shown(f, "name");
}

/* buffer spm 768 x 2 "x" */
static bool buffer_form(Printer *p, const IrOp *op, FormText *f) {
  const char *space = word_of(op, "space");
  const IrAttr *bytes = attr_of(op, "bytes", IR_ATTR_INT),
               *slots = attr_of(op, "slots", IR_ATTR_INT);
  if (!space || !bytes || op->noperands) return false;
  strbuf_printf(p->out, " %s %lld", space, (long long)bytes->i);
  shown(f, "space"), shown(f, "bytes");
  if (slots && !is_default(op, "slots", slots)) {
    strbuf_printf(p->out, " x %lld", (long long)slots->i);
    shown(f, "slots");
  }
  print_name(p, op, f);
  return true;
}

/* tensor input f32[1,784] "image" */
static bool tensor_form(Printer *p, const IrOp *op, FormText *f) {
  const IrAttr *type = attr_of(op, "type", IR_ATTR_ARRAY);
  const char *role = word_of(op, "role");
  IrType t = {.kind = IR_TYPE_TENSOR};
  if (!role || op->noperands || !is_list(type, 2, 2) ||
      type->array.items[0]->kind != IR_ATTR_DTYPE || !is_list(type->array.items[1], 0, IR_MAX_RANK))
    return false;
  const IrAttr *shape = type->array.items[1];
  int64_t count = 1;
  t.dtype = type->array.items[0]->dtype;
  for (size_t i = 0; i < shape->array.n; i++) {
    if (!is_int_at(shape, i) || shape->array.items[i]->i < 1 ||
        !mul_i64(count, shape->array.items[i]->i, &count) || count > IR_MAX_ELEMENTS)
      return false;
    t.shape[t.rank++] = shape->array.items[i]->i;
  }
  strbuf_printf(p->out, " %s ", role);
  ir_type_print(p->out, &t);
  shown(f, "type"), shown(f, "role");
  print_name(p, op, f);
  return true;
}

/* sem init 2 */
static bool sem_form(Printer *p, const IrOp *op, FormText *f) {
  const IrAttr *init = attr_of(op, "init", IR_ATTR_INT);
  if (op->noperands) return false;
  if (!init || is_default(op, "init", init)) return true;
  strbuf_printf(p->out, " init %lld", (long long)init->i);
  shown(f, "init");
  return true;
}

/* vprog "ld v0, 0; ..." */
static bool vprog_form(Printer *p, const IrOp *op, FormText *f) {
  const IrAttr *text = attr_of(op, "text", IR_ATTR_STR);
  if (!text || op->noperands) return false;
  strbuf_putc(p->out, ' ');
  strbuf_quote(p->out, text->s);
  shown(f, "text");
  return true;
}

/* ---- control ---- */

static bool plain_region(const IrOp *op) {
  return op->region && !op->region->nargs;
}

/* for %i = 0 to 256 step 64 {, for %i = 0 to %bound step 64 { */
static bool for_form(Printer *p, const IrOp *op, FormText *f) {
  const IrAttr *lo = attr_of(op, "lo", IR_ATTR_INT), *hi = attr_of(op, "hi", IR_ATTR_INT),
               *step = attr_of(op, "step", IR_ATTR_INT);
  if (!lo || !hi || !step || !plain_region(op) || op->noperands < 1 || op->noperands > 2 ||
      (op->noperands == 2 && hi->i))
    return false;
  strbuf_putc(p->out, ' ');
  print_value(p, ir_operand(op, 0));
  strbuf_printf(p->out, " = %lld to ", (long long)lo->i);
  if (op->noperands == 2)
    print_value(p, ir_operand(op, 1));
  else
    print_int(p, hi->i);
  strbuf_printf(p->out, " step %lld", (long long)step->i);
  shown(f, "lo"), shown(f, "hi"), shown(f, "step");
  return true;
}

/* if %a ne %b { */
static bool if_form(Printer *p, const IrOp *op, FormText *f) {
  const char *cond = word_of(op, "cond");
  if (!cond || op->noperands != 2 || !plain_region(op)) return false;
  strbuf_putc(p->out, ' ');
  print_value(p, ir_operand(op, 0));
  strbuf_printf(p->out, " %s ", cond);
  print_value(p, ir_operand(op, 1));
  shown(f, "cond");
  return true;
}

/* section "kernel 3" { */
static bool section_form(Printer *p, const IrOp *op, FormText *f) {
  if (op->noperands || !plain_region(op) || !attr_of(op, "name", IR_ATTR_STR)) return false;
  print_name(p, op, f);
  return true;
}

/* acquire %b write LD0 */
static bool hand_over_form(Printer *p, const IrOp *op, FormText *f) {
  const IrAttr *write = attr_of(op, "write", IR_ATTR_BOOL);
  const char *engine = word_of(op, "engine");
  if (!write || !engine || op->noperands != 1) return false;
  strbuf_putc(p->out, ' ');
  print_value(p, ir_operand(op, 0));
  strbuf_printf(p->out, " %s %s", write->b ? "write" : "read", engine);
  shown(f, "engine"), shown(f, "write");
  return true;
}

bool print_form(Printer *p, const IrOp *op, FormText *f) {
  switch (op->kind) {
  case IR_OP_INSN: return insn_form(p, op, f);
  case IR_OP_DESC: return desc_form(p, op, f);
  case IR_OP_BUFFER: return buffer_form(p, op, f);
  case IR_OP_TENSOR: return tensor_form(p, op, f);
  case IR_OP_SEM: return sem_form(p, op, f);
  case IR_OP_VPROG: return vprog_form(p, op, f);
  case IR_OP_FOR: return for_form(p, op, f);
  case IR_OP_IF: return if_form(p, op, f);
  case IR_OP_SECTION: return section_form(p, op, f);
  case IR_OP_ACQUIRE:
  case IR_OP_RELEASE: return hand_over_form(p, op, f);
  case IR_OP_REG: return !op->noperands;
  /* Elsewhere the next op's results could be taken for its operands. */
  case IR_OP_RETURN: return !op->noperands && !op->next;
  default: return false;
  }
}

const char *form_result(IrOpKind kind) {
  switch (kind) {
  case IR_OP_REG: return "reg";
  case IR_OP_BUFFER: return "buf";
  case IR_OP_SEM: return "sem";
  case IR_OP_DESC: return "desc";
  case IR_OP_VPROG: return "vprog";
  case IR_OP_TENSOR: return "addr";
  default: return NULL;
  }
}
