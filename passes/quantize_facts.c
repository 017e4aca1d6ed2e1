/* quantize, facts: what is done with values, and so which of them may be rounded to bf16.
 *
 * Needs go backwards from readers to what they read.
 * - A reader of the IR_PASSES_ERROR kind (*, max, relu, sums, rearrangements, ...) makes of a small
 *   relative error about as small a one: it needs of its operands what is needed of its result.
 *   Factors of quantized products are rounded there anyway: nothing is needed of them.
 * - A difference leaves the errors of what cancels. When both sides are made of one value, as in
 *   mean(x * x) - mean(x) * mean(x) or x - mean(x), rounding that value moves both sides alike;
 * only what lies between it and the difference must be exact. That value is the difference's
 * dominator in the graph of what is made of what. Where a large number was added to the value, or
 * the other side is a constant, it must be exact as well. x + y is a difference when one of the two
 * is known to be the negative of something.
 * - Other readers (exp, log, powers, softmax, roundings to integers, ...) may make much of little:
 *   they need exactly what they read and what it is made of. For roots, quotients, comparisons and
 *   argmax it is enough that what they read is not rounded itself.
 * Hints decide for their ops. */
#include "passes/quantize_internal.h"
#include <limits.h>
#include <math.h>
#define uthash_malloc(size) mem_alloc(size)
#define uthash_free(p, size) mem_free(p)
#include <uthash.h>

/* A value's need: exact are the values on the way back from its readers to the dominator of depth
 * `above`, that one not included. */
typedef int Need;
enum {
  NEED_ALL = -1,           /* down to the factors of products */
  NEED_KEPT = INT_MAX - 1, /* a result of the model or a state: not rounded itself, though its
                              operands may be */
  NEED_NONE = INT_MAX,
};

typedef enum { SIGN_UNKNOWN, SIGN_PLUS, SIGN_MINUS, SIGN_NEGATED } Sign; /* NEGATED: -(unknown) */

typedef struct Fact {
  const void *key; /* a value, an op, or a state's name */
  Need need;
  Sign sign;
  bool offset;             /* a large constant was added on the way */
  int depth;               /* in the tree of dominators; 0: a constant */
  struct Fact *over, *far; /* the dominator, and one much further up */
  bool own, activation;
  bool from_integers, to_integers; /* with no product of weights between */
  UT_hash_handle hh;
} Fact;

struct Facts {
  Arena *arena;
  Fact *table;
  bool products_round; /* the factors of all products will be rounded */
};

static Fact *fact(Facts *k, const void *key) {
  Fact *found = NULL;
  HASH_FIND_PTR(k->table, &key, found);
  if (found) return found;
  found = ARENA_NEW(k->arena, Fact);
  found->key = key;
  found->need = NEED_NONE;
  HASH_ADD_PTR(k->table, key, found);
  return found;
}

bool hint(const IrOp *op, const char *name) {
  return ir_get_bool(op, name, false);
}

static bool is_product(const IrOp *op) {
  return ir_has_trait(op, IR_PRODUCT);
}

static bool is_constant(const IrValue *v) {
  return v->def && ir_has_trait(v->def, IR_CONSTANT);
}

/* Made of constants alone, computed already or not. */
static bool is_known(Facts *k, const IrValue *v) {
  return fact(k, v)->depth == 0;
}

static bool is_float(const IrValue *v) {
  return dtype_is_float(v->type->dtype);
}

/* ---- the model's own integers ---- */

/* By division or by multiplication. */
static bool quantizes(const IrOp *op) {
  return op->kind == IR_OP_QUANTIZE ||
         (op->kind == IR_OP_REQUANTIZE && is_float(ir_operand(op, 0)));
}

static bool makes_integers(const IrOp *op) {
  return quantizes(op) || (op->kind == IR_OP_CAST && !is_float(ir_result(op, 0)));
}

static bool all_from_integers(Facts *k, const IrOp *op) {
  bool some = false;
  for (int i = 0; i < op->noperands; i++) {
    const IrValue *v = ir_operand(op, i);
    if (is_known(k, v)) continue;
    if (is_float(v) && !fact(k, v)->from_integers) return false;
    some = true;
  }
  return some;
}

static bool has_weights(Facts *k, const IrOp *op) {
  return is_product(op) && (is_known(k, ir_operand(op, 0)) || is_known(k, ir_operand(op, 1)));
}

/* Whether op's floats are more than its operands rearranged and computed with: sums of many
 * weights, rows of a table. */
static bool draws_on_weights(Facts *k, const IrOp *op) {
  return has_weights(k, op) || op->kind == IR_OP_EMBED ||
         (op->kind == IR_OP_GATHER && is_known(k, ir_operand(op, 0)));
}

static void find_from_integers(Facts *k, const IrFunc *f) {
  for (const IrOp *op = f->body->first; op; op = op->next) {
    bool integers = !draws_on_weights(k, op) && all_from_integers(k, op);
    for (int i = 0; i < op->nresults; i++)
      fact(k, ir_result(op, i))->from_integers = integers && is_float(ir_result(op, i));
  }
}

static void find_to_integers(Facts *k, const IrFunc *f) {
  for (const IrOp *op = f->body->last; op; op = op->prev) {
    bool integers = makes_integers(op);
    for (int i = 0; i < op->nresults; i++)
      integers = integers || fact(k, ir_result(op, i))->to_integers;
    for (int i = 0; i < op->noperands && integers && !has_weights(k, op); i++)
      if (is_float(ir_operand(op, i))) fact(k, ir_operand(op, i))->to_integers = true;
  }
}

bool in_integer_region(Facts *k, const IrOp *product) {
  return is_product(product) && all_from_integers(k, product) &&
         fact(k, ir_result(product, 0))->to_integers;
}

void facts_free(Facts *k) {
  HASH_CLEAR(hh, k->table);
}

bool is_own(Facts *k, const IrOp *op) {
  return fact(k, op)->own;
}

/* ---- signs ---- */

static Sign sign_of_data(const IrValue *v) {
  const IrData *d = ir_constant_data(v);
  bool plus = d != NULL, minus = d != NULL;
  double splat;
  if (ir_constant_splat(v, &splat)) return splat >= 0 ? SIGN_PLUS : SIGN_MINUS;
  for (size_t i = 0; (plus || minus) && i < (size_t)ir_type_elements(d->type); i++) {
    double x = dtype_get(d->type->dtype, d->bytes, i);
    plus = plus && x >= 0;
    minus = minus && x <= 0;
  }
  return plus ? SIGN_PLUS : minus ? SIGN_MINUS : SIGN_UNKNOWN;
}

static Sign negated(Sign s) {
  switch (s) {
  case SIGN_UNKNOWN: return SIGN_NEGATED;
  case SIGN_PLUS: return SIGN_MINUS;
  case SIGN_MINUS: return SIGN_PLUS;
  case SIGN_NEGATED: return SIGN_UNKNOWN;
  }
  return SIGN_UNKNOWN;
}

static Sign sign_of_product(Sign a, Sign b) {
  if (a == SIGN_PLUS) return b;
  if (b == SIGN_PLUS) return a;
  if (a == SIGN_MINUS) return negated(b);
  return b == SIGN_MINUS ? negated(a) : SIGN_UNKNOWN;
}

/* The sign all of op's operands have. */
static Sign common_sign(Facts *k, const IrOp *op) {
  Sign s = op->noperands > 0 ? fact(k, ir_operand(op, 0))->sign : SIGN_UNKNOWN;
  for (int i = 1; i < op->noperands; i++)
    if (is_float(ir_operand(op, i)) && fact(k, ir_operand(op, i))->sign != s) return SIGN_UNKNOWN;
  return s;
}

static bool is_never_negative(const IrOp *op) {
  return op->kind == IR_OP_RELU || op->kind == IR_OP_RELU6 || op->kind == IR_OP_ABS ||
         op->kind == IR_OP_EXP || op->kind == IR_OP_SQRT || op->kind == IR_OP_RSQRT ||
         op->kind == IR_OP_SIGMOID || op->kind == IR_OP_HARD_SIGMOID || op->kind == IR_OP_SOFTMAX;
}

static bool keeps_common_sign(const IrOp *op) {
  return ir_has_trait(op, IR_DATA_MOVEMENT) || op->kind == IR_OP_ADD || op->kind == IR_OP_CAST ||
         op->kind == IR_OP_SUM || op->kind == IR_OP_MEAN || op->kind == IR_OP_AVG_POOL ||
         op->kind == IR_OP_GLOBAL_AVG_POOL;
}

static bool has_sign_of_product(const IrOp *op) {
  return op->kind == IR_OP_MUL || op->kind == IR_OP_DIV || (is_product(op) && op->noperands == 2);
}

static Sign sign_of(Facts *k, const IrOp *op) {
  if (ir_has_trait(op, IR_CONSTANT)) return sign_of_data(ir_result(op, 0));
  if (is_never_negative(op)) return SIGN_PLUS;
  if (op->kind == IR_OP_MUL && ir_operand(op, 0) == ir_operand(op, 1)) return SIGN_PLUS;
  if (op->kind == IR_OP_NEG) return negated(fact(k, ir_operand(op, 0))->sign);
  if (has_sign_of_product(op))
    return sign_of_product(fact(k, ir_operand(op, 0))->sign, fact(k, ir_operand(op, 1))->sign);
  return keeps_common_sign(op) ? common_sign(k, op) : SIGN_UNKNOWN;
}

static void find_signs(Facts *k, const IrFunc *f) {
  for (const IrOp *op = f->body->first; op; op = op->next)
    for (int i = 0; i < op->nresults; i++)
      if (is_float(ir_result(op, i))) fact(k, ir_result(op, i))->sign = sign_of(k, op);
}

/* ---- dominators ---- */

/* The nearest common ancestor; skipping by jump pointers (Myers, "An applicative random-access
 * stack", 1983) takes logarithmic time. NULL: there is none. */
static Fact *common_dominator(Fact *a, Fact *b) {
  if (a->depth < b->depth) {
    Fact *t = a;
    a = b, b = t;
  }
  while (a->depth > b->depth) a = a->far && a->far->depth >= b->depth ? a->far : a->over;
  while (a != b) {
    bool far = a->far != b->far;
    a = far ? a->far : a->over;
    b = far ? b->far : b->over;
  }
  return a;
}

/* What everything op reads is made of: an operand when that is the only one, NULL when there is
 * nothing. Constants are left aside. */
static Fact *dominator_of(Facts *k, const IrOp *op) {
  Fact *d = NULL;
  bool first = true;
  for (int i = 0; i < op->noperands; i++) {
    Fact *v = fact(k, ir_operand(op, i));
    if (v->depth == 0) continue;
    if (!first && !d) return NULL;
    d = first ? v : common_dominator(d, v);
    first = false;
  }
  return d;
}

static void hang(Fact *v, Fact *over) {
  Fact *far = over ? over->far : NULL;
  v->over = over;
  v->depth = over ? over->depth + 1 : 1;
  bool even = over && far && far->far && over->depth - far->depth == far->depth - far->far->depth;
  v->far = even ? far->far : over;
}

static bool all_constant(Facts *k, const IrOp *op) {
  for (int i = 0; i < op->noperands; i++)
    if (fact(k, ir_operand(op, i))->depth > 0) return false;
  return op->noperands > 0 || ir_has_trait(op, IR_CONSTANT);
}

static void find_dominators(Facts *k, const IrFunc *f) {
  for (int i = 0; i < f->body->nargs; i++) hang(fact(k, f->body->args[i]), NULL);
  for (const IrOp *op = f->body->first; op; op = op->next)
    for (int i = 0; i < op->nresults && !all_constant(k, op); i++)
      hang(fact(k, ir_result(op, i)), dominator_of(k, op));
}

/* ---- large constants added ---- */

#define LARGE 8.0 /* beside activations, which normalisation keeps near 1 */

static bool is_large(const IrValue *v) {
  const IrData *d = ir_constant_data(v);
  for (size_t i = 0; d && i < (size_t)ir_type_elements(d->type); i++)
    if (fabs(dtype_get(d->type->dtype, d->bytes, i)) > LARGE) return true;
  return false;
}

static bool forgets_offset(const IrOp *op) {
  return is_product(op) || op->kind == IR_OP_RMS_NORM || op->kind == IR_OP_LAYER_NORM ||
         op->kind == IR_OP_BATCH_NORM;
}

void note_offset(Facts *k, const IrValue *product, const IrValue *bias) {
  fact(k, product)->offset = bias && is_large(bias);
}

static bool has_offset(Facts *k, const IrOp *op) {
  if (!ir_has_trait(op, IR_PASSES_ERROR)) return false;
  if (forgets_offset(op)) return op->noperands == 3 && is_large(ir_operand(op, 2));
  for (int i = 0; i < op->noperands; i++)
    if (fact(k, ir_operand(op, i))->offset) return true;
  return op->kind == IR_OP_ADD && (is_large(ir_operand(op, 0)) || is_large(ir_operand(op, 1)));
}

static void find_offsets(Facts *k, const IrFunc *f) {
  for (const IrOp *op = f->body->first; op; op = op->next)
    for (int i = 0; i < op->nresults; i++)
      if (has_offset(k, op)) fact(k, ir_result(op, i))->offset = true;
}

/* ---- needs ---- */

static bool is_difference(Facts *k, const IrOp *op) {
  if (op->kind == IR_OP_SUB) return true;
  if (op->kind != IR_OP_ADD) return false;
  Sign a = fact(k, ir_operand(op, 0))->sign, b = fact(k, ir_operand(op, 1))->sign;
  return (a == SIGN_MINUS || a == SIGN_NEGATED) != (b == SIGN_MINUS || b == SIGN_NEGATED);
}

static bool is_exact(const Fact *v) {
  return v->depth > v->need;
}

static Need less(Need a, Need b) {
  return a < b ? a : b;
}

static Need difference_need(Facts *k, const IrOp *op) {
  if (fact(k, ir_operand(op, 0))->depth == 0 || fact(k, ir_operand(op, 1))->depth == 0)
    return NEED_ALL;
  const Fact *d = dominator_of(k, op);
  return !d || d->offset ? NEED_ALL : d->depth;
}

/* x / constant, and x to a small known power: x * x written otherwise. */
static bool is_scale_or_power(Facts *k, const IrOp *op) {
  if ((op->kind != IR_OP_DIV && op->kind != IR_OP_POW) || fact(k, ir_operand(op, 1))->depth > 0)
    return false;
  double exponent = 1;
  return op->kind == IR_OP_DIV ||
         (ir_constant_splat(ir_operand(op, 1), &exponent) && fabs(exponent) <= 4);
}

/* It is a matter of an order, or the relative error does not grow: noise in what the operand is
 * made of does no more than that of products does. */
static bool needs_operand_only(const IrOp *op) {
  switch (op->kind) {
  case IR_OP_EQ:
  case IR_OP_NE:
  case IR_OP_LT:
  case IR_OP_LE:
  case IR_OP_GT:
  case IR_OP_GE:
  case IR_OP_ARGMAX:
  case IR_OP_DIV:
  case IR_OP_SQRT:
  case IR_OP_RSQRT:
  case IR_OP_RECIP: return true;
  default: return false;
  }
}

static Need cast_need(const IrOp *op, Need of_result) {
  DType to = op->results[0].type->dtype;
  return to == DT_BF16 ? NEED_NONE : dtype_is_float(to) ? of_result : NEED_ALL;
}

/* What is needed of operand i of op. */
static Need reader_need(Facts *k, const IrOp *op, int i, Need of_result) {
  if (hint(op, "hint.bf16")) return NEED_NONE;
  if (hint(op, "hint.f32")) return NEED_ALL;
  if (op->kind == IR_OP_RETURN) return NEED_KEPT;
  if (op->kind == IR_OP_STATE_WRITE) return fact(k, ir_get_str(op, "name", ""))->need;
  if (op->kind == IR_OP_CAST) return cast_need(op, of_result);
  if (quantizes(op) && !is_own(k, op)) return NEED_NONE;
  if (k->products_round && is_product(op) && i < 2) return NEED_NONE;
  if (ir_has_trait(op, IR_DATA_MOVEMENT)) return of_result;
  if (of_result == NEED_KEPT) of_result = NEED_NONE;
  if (is_difference(k, op)) return less(of_result, difference_need(k, op));
  if (ir_has_trait(op, IR_PASSES_ERROR) || is_scale_or_power(k, op)) return of_result;
  if (!needs_operand_only(op)) return NEED_ALL;
  return less(of_result, fact(k, ir_operand(op, i))->depth - 1);
}

/* One walk from the last op to the first. True when more is needed of a state than the walk knew
 * where it was written. */
static bool walk(Facts *k, IrFunc *f) {
  bool again = false;
  for (const IrOp *op = f->body->last; op; op = op->prev) {
    Need need = NEED_NONE;
    for (int i = 0; i < op->nresults; i++) {
      const Fact *v = fact(k, ir_result(op, i));
      if (is_exact(v) || v->need == NEED_KEPT) need = less(need, v->need);
    }
    for (int i = 0; i < op->noperands; i++) {
      Fact *v = fact(k, ir_operand(op, i));
      if (is_float(ir_operand(op, i))) v->need = less(v->need, reader_need(k, op, i, need));
    }
    if (op->kind != IR_OP_STATE) continue;
    Fact *state = fact(k, ir_get_str(op, "name", ""));
    if (!is_exact(fact(k, ir_result(op, 0))) || state->need == NEED_ALL) continue;
    state->need = NEED_ALL;
    again = true;
  }
  return again;
}

static void find_needs(Facts *k, IrFunc *f, bool products_round) {
  k->products_round = products_round;
  for (const IrOp *op = f->body->first; op; op = op->next) {
    if (op->kind == IR_OP_STATE) fact(k, ir_get_str(op, "name", ""))->need = NEED_KEPT;
    for (int i = 0; i < op->nresults; i++) fact(k, ir_result(op, i))->need = NEED_NONE;
  }
  find_signs(k, f);
  find_dominators(k, f);
  find_offsets(k, f);
  while (walk(k, f)) {
  }
}

void facts_find_needs(Facts *k, IrFunc *f) {
  find_needs(k, f, false);
}

static bool is_kept_itself(const IrValue *v) {
  for (const IrUse *u = v->uses; u; u = u->next)
    if (u->op->kind == IR_OP_RETURN || u->op->kind == IR_OP_STATE_WRITE) return true;
  return false;
}

bool may_be_rounded(Facts *k, const IrValue *v) {
  if (v->def && hint(v->def, "hint.f32")) return false;
  if (v->def && hint(v->def, "hint.bf16")) return !is_kept_itself(v);
  const Fact *known = fact(k, v);
  return known->need != NEED_KEPT && !is_exact(known);
}

/* ---- activations and squares ---- */

bool is_activation(Facts *k, const IrValue *v) {
  return fact(k, v)->activation;
}

void set_activation(Facts *k, const IrValue *v) {
  fact(k, v)->activation = true;
}

/* What v is, but for its sign, its scale and its shape. */
static const IrValue *behind_scale(const IrValue *v) {
  for (;;) {
    const IrOp *op = v->def;
    if (!op || op->noperands == 0) return v;
    int of = 0;
    if (op->kind == IR_OP_MUL && is_constant(ir_operand(op, 0)))
      of = 1;
    else if (op->kind == IR_OP_MUL && !is_constant(ir_operand(op, 1)))
      return v;
    bool same = op->kind == IR_OP_MUL || op->kind == IR_OP_NEG || op->kind == IR_OP_ABS ||
                op->kind == IR_OP_CAST || op->kind == IR_OP_RESHAPE || op->kind == IR_OP_FLATTEN ||
                op->kind == IR_OP_TRANSPOSE || op->kind == IR_OP_BROADCAST;
    if (!same) return v;
    v = ir_operand(op, of);
  }
}

bool is_square(const IrOp *op) {
  if (op->kind == IR_OP_POW) return true;
  if (op->kind != IR_OP_MUL) return false;
  return behind_scale(ir_operand(op, 0)) == behind_scale(ir_operand(op, 1));
}

bool sums_squares_exactly(Facts *k, const IrOp *op) {
  if (!is_product(op) || !is_exact(fact(k, ir_result(op, 0)))) return false;
  const IrOp *factor = behind_scale(ir_operand(op, 0))->def;
  return factor && is_square(factor);
}

Facts *facts_new(PassContext *pc, IrFunc *f) {
  Facts *k = ARENA_NEW(pc->scratch, Facts);
  k->arena = pc->scratch;
  for (const IrOp *op = f->body->first; op; op = op->next) fact(k, op)->own = true;
  find_dominators(k, f);
  find_from_integers(k, f);
  find_to_integers(k, f);
  find_needs(k, f, true);
  return k;
}
