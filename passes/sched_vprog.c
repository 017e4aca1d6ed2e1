/* Writes the vector program of a step: the expressions of its targets over streams, with reductions
 * collected in registers. Registers are handed out in evaluation order and returned after the last
 * use. */
#include "passes/sched.h"
#include <math.h>
#include <string.h>

typedef struct {
  const KernelInfo *ki;
  const Step *st;
  const Vec *v;
  StrBuf *out;
  int8_t reg[SCHED_MAX_SCALARS];   /* register holding a scalar, or -1 */
  int16_t uses[SCHED_MAX_SCALARS]; /* still to come in this program */
  uint16_t free;                   /* v registers */
  int nops;
  const char *why; /* set on failure */
} Gen;

static void fail(Gen *g, const char *why) {
  if (!g->why) g->why = why;
}

static int reg_take(Gen *g) {
  for (int r = 0; r < ISA_VREGS; r++)
    if (g->free >> r & 1) {
      g->free &= (uint16_t) ~(1u << r);
      return r;
    }
  fail(g, "a vector program of more than sixteen registers");
  return 0;
}
static void reg_give(Gen *g, int r) {
  g->free |= (uint16_t)(1u << r);
}

static void emit(Gen *g, const char *fmt, ...) NPU_PRINTF(2, 3);
static void emit(Gen *g, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  if (g->nops++) strbuf_puts(g->out, "; ");
  strbuf_vprintf(g->out, fmt, ap);
  va_end(ap);
  if (g->nops > ISA_VPROG_MAX) fail(g, "a vector program longer than 64 micro-operations");
}

static bool is_real(const IrValue *v) {
  return dtype_is_float(v->type->dtype);
}

/* ---- free casts ---- */

static bool only_stored(const IrValue *v) {
  return v->uses && ir_has_one_use(v) && v->uses->op->kind == IR_OP_YIELD;
}

/* A cast that changes nothing in the register is its operand. */
static bool cast_is_free(const IrOp *op) {
  DType from = ir_operand(op, 0)->type->dtype, to = op->results[0].type->dtype;
  if (dtype_is_float(from) != dtype_is_float(to)) return false;
  return from == to || (from == DT_BF16 && to == DT_F32) || (from == DT_S8 && to == DT_S32) ||
         only_stored(&op->results[0]);
}

/* The scalar whose register holds v: free casts share their operand's. */
static const IrValue *canonical(const KernelInfo *ki, const IrValue *v) {
  while (ir_is(v->def, IR_OP_CAST) && cast_is_free(v->def) && sched_store_of(ki, v) < 0)
    v = ir_operand(v->def, 0);
  return v;
}

/* ---- operands ---- */

typedef struct {
  char text[40];
  bool imm;
} Arg;

static void constant_text(const IrValue *v, bool real, Arg *a) {
  StrBuf b = {0};
  double x = ir_get_float(v->def, "value", 0);
  if (real)
    strbuf_float(&b, (float)x);
  else
    strbuf_printf(&b, "%lld", (long long)x);
  snprintf(a->text, sizeof a->text, "%s", b.data);
  a->imm = true;
  strbuf_free(&b);
}

static int evaluate(Gen *g, const IrValue *v, bool top);

/* Text of an operand; its register, if any, is released when this was the last use. */
static Arg argument(Gen *g, const IrValue *v) {
  Arg a = {.imm = false};
  v = canonical(g->ki, v);
  if (ir_is(v->def, IR_OP_CONSTANT)) {
    constant_text(v, is_real(v), &a);
    return a;
  }
  snprintf(a.text, sizeof a.text, "v%d", evaluate(g, v, false));
  return a;
}
static void used(Gen *g, const IrValue *v) {
  v = canonical(g->ki, v);
  int k = sched_scalar(g->ki, v);
  if (ir_is(v->def, IR_OP_CONSTANT) && g->reg[k] < 0) return;
  if (--g->uses[k] == 0) reg_give(g, g->reg[k]), g->reg[k] = -1;
}

/* A micro-operation has one immediate: all but the first different one move to a register first. */
static void one_immediate(Gen *g, Arg *a, int n, int *temps, int *ntemps) {
  const char *kept = NULL;
  for (int i = 0; i < n; i++) {
    if (!a[i].imm) continue;
    if (!kept)
      kept = a[i].text;
    else if (strcmp(kept, a[i].text) != 0) {
      int r = reg_take(g);
      emit(g, "mov v%d, %s", r, a[i].text);
      snprintf(a[i].text, sizeof a[i].text, "v%d", r);
      a[i].imm = false;
      temps[(*ntemps)++] = r;
    }
  }
}

/* ---- operations ---- */

/* A body op as micro-operation: names for floats and integers, NULL where there is none; swap:
 * operands exchanged. */
typedef struct {
  const char *real, *integer;
  bool swap;
} VopRow;

static VopRow vop_row(IrBodyKind kind) {
  switch (kind) {
  case IR_BODY_ADD: return (VopRow){"add.f", "add.i", false};
  case IR_BODY_SUB: return (VopRow){"sub.f", "sub.i", false};
  case IR_BODY_MUL: return (VopRow){"mul.f", "mul.i", false};
  case IR_BODY_DIV: return (VopRow){"div.f", NULL, false};
  case IR_BODY_MIN: return (VopRow){"min.f", "min.i", false};
  case IR_BODY_MAX: return (VopRow){"max.f", "max.i", false};
  case IR_BODY_EQ: return (VopRow){"eq.f", "eq.i", false};
  case IR_BODY_NE: return (VopRow){"ne.f", "ne.i", false};
  case IR_BODY_LT: return (VopRow){"lt.f", "lt.i", false};
  case IR_BODY_LE: return (VopRow){"le.f", "le.i", false};
  case IR_BODY_GT: return (VopRow){"lt.f", "lt.i", true};
  case IR_BODY_GE: return (VopRow){"le.f", "le.i", true};
  case IR_BODY_ABS: return (VopRow){"abs.f", "abs.i", false};
  case IR_BODY_NEG: return (VopRow){"neg.f", NULL, false}; /* of integers in emit_op */
  case IR_BODY_FLOOR: return (VopRow){"floor.f", NULL, false};
  case IR_BODY_ROUND: return (VopRow){"rne.f", NULL, false};
  case IR_BODY_EXP: return (VopRow){"exp.f", NULL, false};
  case IR_BODY_LOG: return (VopRow){"log.f", NULL, false};
  case IR_BODY_SQRT: return (VopRow){"sqrt.f", NULL, false};
  case IR_BODY_RSQRT: return (VopRow){"rsqrt.f", NULL, false};
  case IR_BODY_RECIP: return (VopRow){"recip.f", NULL, false};
  case IR_BODY_ERF: return (VopRow){"erf.f", NULL, false};
  case IR_BODY_TANH: return (VopRow){"tanh.f", NULL, false};
  case IR_BODY_SIN: return (VopRow){"sin.f", NULL, false};
  case IR_BODY_COS: return (VopRow){"cos.f", NULL, false};
  case IR_BODY_WHERE: return (VopRow){"sel", "sel", false};
  case IR_BODY_CAST: /* written elsewhere in this file */
  case IR_BODY_CONSTANT:
  case IR_BODY_REDUCE:
  case IR_BODY_INDEX: /* an operand of its own, see legalize.c */
  case IR_BODY_YIELD: break;
  }
  return (VopRow){0};
}

static const char *vop_name(const IrOp *op, bool *swap) {
  VopRow row = vop_row((IrBodyKind)op->kind);
  *swap = row.swap;
  return is_real(ir_operand(op, op->noperands - 1)) ? row.real : row.integer;
}

/* Conversions round and saturate in the register unless the store, which does the same, is all that
 * follows. */
static void emit_cast(Gen *g, const IrOp *op, int d, const char *src) {
  DType from = ir_operand(op, 0)->type->dtype, to = op->results[0].type->dtype;
  bool from_real = dtype_is_float(from), stored = only_stored(&op->results[0]);
  char name[8];
  snprintf(name, sizeof name, "v%d", d);
  if (!dtype_is_float(to)) {
    if (from_real)
      emit(g, "cvt.if %s, %s", name, src), src = name;
    else if (to != DT_S8 || from == DT_S8 || stored)
      emit(g, "mov %s, %s", name, src), src = name;
    if (to == DT_S8 && from != DT_S8 && !stored) {
      emit(g, "min.i %s, %s, 127", name, src);
      emit(g, "max.i %s, %s, -128", name, name);
    }
    return;
  }
  if (!from_real) emit(g, "cvt.fi %s, %s", name, src), src = name;
  bool narrow = to == DT_BF16 && from != DT_BF16 && from != DT_S8 && !stored;
  if (narrow)
    emit(g, "cvt.bf %s, %s", name, src);
  else if (from_real)
    emit(g, "mov %s, %s", name, src);
}

static void emit_op(Gen *g, const IrOp *op, int k) {
  Arg a[3];
  int temps[3], ntemps = 0, n = op->noperands;
  bool swap;
  for (int i = 0; i < n; i++) a[i] = argument(g, ir_operand(op, i));
  one_immediate(g, a, n, temps, &ntemps);
  for (int i = 0; i < n; i++) used(g, ir_operand(op, i));
  int d = reg_take(g);
  g->reg[k] = (int8_t)d;
  if (op->kind == IR_OP_CAST)
    emit_cast(g, op, d, a[0].text);
  else if (op->kind == IR_OP_NEG && !is_real(&op->results[0]))
    emit(g, "sub.i v%d, 0, %s", d, a[0].text);
  else {
    const char *name = vop_name(op, &swap);
    if (!name)
      fail(g, "an operation the vector unit does not have");
    else if (n == 1)
      emit(g, "%s v%d, %s", name, d, a[0].text);
    else if (n == 2)
      emit(g, "%s v%d, %s, %s", name, d, a[swap].text, a[!swap].text);
    else
      emit(g, "%s v%d, %s, %s, %s", name, d, a[0].text, a[1].text, a[2].text);
  }
  for (int i = 0; i < ntemps; i++) reg_give(g, temps[i]);
}

static int stream_of(const Gen *g, int store, bool write) {
  for (int i = 0; i < g->v->nstreams; i++)
    if (g->v->stream[i].store == store && g->v->stream[i].write == write) return i;
  return 0;
}

/* top: compute it even though it has a store (it is what this step stores). */
static int evaluate(Gen *g, const IrValue *v, bool top) {
  if (v != canonical(g->ki, v)) v = canonical(g->ki, v), top = false;
  int k = sched_scalar(g->ki, v);
  if (g->reg[k] >= 0) return g->reg[k];
  int store = top && v->def ? -1 : sched_store_of(g->ki, v);
  if (store >= 0) {
    g->reg[k] = (int8_t)reg_take(g);
    emit(g, "ld v%d, s%d", g->reg[k], stream_of(g, store, false));
  } else if (ir_is(v->def, IR_OP_CONSTANT)) {
    Arg a;
    constant_text(v, is_real(v), &a);
    g->reg[k] = (int8_t)reg_take(g);
    emit(g, "mov v%d, %s", g->reg[k], a.text);
  } else {
    emit_op(g, v->def, k);
  }
  return g->reg[k];
}

/* ---- uses ---- */

static void count_uses(Gen *g, const IrValue *v, bool top) {
  if (v != canonical(g->ki, v)) v = canonical(g->ki, v), top = false;
  int k = sched_scalar(g->ki, v);
  if (g->uses[k]++ > 0) return;
  if (!(top && v->def) && sched_store_of(g->ki, v) >= 0) return;
  for (int i = 0; v->def && i < v->def->noperands; i++) count_uses(g, ir_operand(v->def, i), false);
}

static bool computes(const Gen *g, int t) {
  const IrValue *v = g->st->target[t];
  return !ir_is(v->def, IR_OP_REDUCE) || sched_store_of(g->ki, v) == g->st->store[t];
}
static bool reduces(const Gen *g, int t) {
  return ir_is(g->st->target[t]->def, IR_OP_REDUCE) && computes(g, t);
}

/* ---- sections ---- */

/* Reduces over a row; adds two values to one. */
static const char *combine_name(const IrOp *reduce, bool row) {
  bool real = is_real(&reduce->results[0]);
  const char *op = ir_get_str(reduce, "op", "sum");
  if (!strcmp(op, "max")) return real ? (row ? "rmax.f" : "max.f") : (row ? "rmax.i" : "max.i");
  if (!strcmp(op, "min")) return real ? (row ? "rmin.f" : "min.f") : (row ? "rmin.i" : "min.i");
  return real ? (row ? "rsum.f" : "add.f") : (row ? "rsum.i" : "add.i");
}
static const char *identity_text(const IrOp *reduce) {
  bool real = is_real(&reduce->results[0]);
  const char *op = ir_get_str(reduce, "op", "sum");
  if (!strcmp(op, "max")) return real ? "-inf" : "-2147483648";
  if (!strcmp(op, "min")) return real ? "inf" : "2147483647";
  return "0"; /* float sums start by themselves */
}

/* Value of a target in a register, computed in the innermost loop. */
static int target_value(Gen *g, int t) {
  const IrValue *v = g->st->target[t];
  return evaluate(g, reduces(g, t) ? ir_operand(v->def, 0) : v, !reduces(g, t) && computes(g, t));
}

/* Collects register r of the innermost loop in acc: an r register when the vector loop reduces. */
static void collect(Gen *g, const IrOp *reduce, int acc, int r) {
  bool sum = sched_is_float_sum(reduce);
  if (g->v->v_reduces)
    emit(g, "%s r%d, v%d", combine_name(reduce, true), acc, r);
  else if (g->v->nred && sum)
    emit(g, "sum.f v%d, v%d", acc, r);
  else if (g->v->nred)
    emit(g, "%s v%d, v%d, v%d", combine_name(reduce, false), acc, acc, r);
  else if (sum) /* a sum starts from +0, also of one element */
    emit(g, "add.f v%d, v%d, 0.0", acc, r);
  else
    emit(g, "mov v%d, v%d", acc, r);
}

static void body(Gen *g, const int *acc) {
  for (int t = 0; t < g->st->ntargets; t++) {
    const IrValue *v = g->st->target[t];
    int r = target_value(g, t);
    if (reduces(g, t))
      collect(g, v->def, acc[t], r);
    else
      emit(g, "st s%d, v%d", stream_of(g, g->st->store[t], true), r);
    used(g, reduces(g, t) ? ir_operand(v->def, 0) : v);
  }
}

/* Adds register acc to what earlier grid steps left in stream sum, and keeps what rounding lost in
 * stream carry, so that the number of steps does not show in the error: W. Kahan, Further remarks
 * on reducing truncation errors, CACM 8 (1965). A carry that is not finite says only that the sum
 * is not; it becomes 0. */
static void add_carried(Gen *g, char file, int acc, const int temp[2], int sum, int carry) {
  char x[8], old[8], next[8];
  snprintf(x, sizeof x, "%c%d", file, acc);
  snprintf(old, sizeof old, "%c%d", file, temp[0]);
  snprintf(next, sizeof next, "%c%d", file, temp[1]);
  emit(g, "ld %s, s%d", old, carry);
  emit(g, "add.f %s, %s, %s", x, x, old);
  emit(g, "ld %s, s%d", old, sum);
  emit(g, "add.f %s, %s, %s", next, old, x);
  emit(g, "st s%d, %s", sum, next);
  emit(g, "sub.f %s, %s, %s", old, next, old);
  emit(g, "sub.f %s, %s, %s", old, x, old);
  emit(g, "abs.f %s, %s", x, old);
  emit(g, "lt.f %s, %s, inf", x, x);
  emit(g, "sel %s, %s, %s, 0.0", old, x, old);
  emit(g, "st s%d, %s", carry, old);
}

/* What was collected, with what was there before (again), out. */
static void write_out(Gen *g, int t, char file, int acc, const int temp[2], bool again) {
  const IrOp *reduce = g->st->target[t]->def;
  int out = stream_of(g, g->st->store[t], true), carry = g->ki->store[g->st->store[t]].carry;
  if (again && carry >= 0) {
    add_carried(g, file, acc, temp, out, stream_of(g, carry, true));
    return;
  }
  if (again) {
    emit(g, "ld %c%d, s%d", file, temp[0], out);
    emit(g, "%s %c%d, %c%d, %c%d", combine_name(reduce, false), file, acc, file, temp[0], file,
         acc);
  }
  emit(g, "st s%d, %c%d", out, file, acc);
  if (carry >= 0 && g->v->accumulates) emit(g, "st s%d, 0.0", stream_of(g, carry, true));
}

/* After the reduction loops, in lanes. */
static void lane_results(Gen *g, const int *acc, bool again) {
  int temp[2] = {0};
  for (int i = 0; i < 2 && again; i++) temp[i] = reg_take(g);
  for (int t = 0; t < g->st->ntargets; t++)
    if (reduces(g, t)) write_out(g, t, 'v', acc[t], temp, again);
  for (int i = 0; i < 2 && again; i++) reg_give(g, temp[i]);
}

/* After the pass, in row scalars. */
static void row_results(Gen *g, const int *acc, bool again) {
  static const int temp[2] = {ISA_RREGS - 1, ISA_RREGS - 2};
  for (int t = 0; t < g->st->ntargets; t++)
    if (reduces(g, t)) write_out(g, t, 'r', acc[t], temp, again);
}

/* Registers of the reductions: row scalars, or lanes with what the reduction starts from. */
static void start_reductions(Gen *g, int *acc, bool again) {
  int rows = 0;
  for (int t = 0; t < g->st->ntargets; t++) {
    if (!reduces(g, t)) continue;
    const IrOp *reduce = g->st->target[t]->def;
    acc[t] = g->v->v_reduces ? rows++ : reg_take(g);
    if (g->v->nred && !g->v->v_reduces && !sched_is_float_sum(reduce))
      emit(g, "mov v%d, %s", acc[t], identity_text(reduce));
  }
  if (rows > ISA_RREGS - (again ? 2 : 0))
    fail(g, "more row reductions in one vector program than r registers");
}

bool sched_vprog(const KernelInfo *ki, int step, const Vec *v, bool again, StrBuf *out,
                 const char **why) {
  Gen g = {.ki = ki, .st = &ki->step[step], .v = v, .out = out, .free = 0xffff};
  int acc[SCHED_MAX_TARGETS] = {0};
  memset(g.reg, -1, sizeof g.reg);
  for (int t = 0; t < g.st->ntargets; t++) {
    const IrValue *x = g.st->target[t];
    if (reduces(&g, t))
      count_uses(&g, ir_operand(x->def, 0), false);
    else
      count_uses(&g, x, computes(&g, t));
  }
  emit(&g, "vec");
  start_reductions(&g, acc, again);
  if (v->nred) emit(&g, "red");
  body(&g, acc);
  if (v->nred) emit(&g, "endr");
  if (!v->v_reduces) lane_results(&g, acc, again);
  emit(&g, "endv");
  if (v->v_reduces) row_results(&g, acc, again);
  *why = g.why;
  return !g.why;
}
