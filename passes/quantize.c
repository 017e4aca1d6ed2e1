/* quantize: products with constant weights in 8 bits.
 * Without calibration: weights s8 per output channel, activations bf16, sums f32, scales and bias
 * applied in f32. With calibration: activations s8 too, with a scale and a zero point per tensor
 * from the values seen, sums s32; where only clamps lie between two products, sums become the next
 * product's 8-bit input directly. Products of two activations are bf16, their sums f32; what is
 * kept between ops is bf16 where that does no harm; everything else stays as it was, and so does a
 * product between integers of the model's own. Hints on an op decide for it: hint.bf16 keeps
 * weights and activations in bf16, hint.f32 all as it was, hint.int8 quantizes what would be left
 * alone. Level: graph. Needs: shapes. Keeps: types of arguments, results and states. Terminates:
 * one walk per step, as many of the needs as states wait for each other. */
#include "passes/expand.h"
#include "passes/quantize_internal.h"
#include <math.h>

/* What computes in f32 as the model has it: where asked to, and, unless asked otherwise, between
 * the model's own integers and for sums of squares whose rounding would do harm. */
static bool stays_f32(Facts *facts, const IrOp *op) {
  if (hint(op, "hint.f32")) return true;
  if (hint(op, "hint.bf16") || hint(op, "hint.int8")) return false;
  return in_integer_region(facts, op) || sums_squares_exactly(facts, op);
}

/* Ops of both inputs known only at run time, and embedding tables. */
static void quantize_other(PassContext *pc, IrOp *op, Facts *facts) {
  if ((op->kind != IR_OP_EMBED && op->kind != IR_OP_MATMUL) || stays_f32(facts, op)) return;
  IrBuilder b = ir_builder_before(op);
  if (op->kind == IR_OP_EMBED && ir_constant_data(ir_operand(op, 1)) &&
      ir_operand(op, 1)->type->dtype == DT_F32) {
    IrValue *table = ir_build_constant(&b, constant_as_bf16(b.m, ir_operand(op, 1)));
    table->name = ir_operand(op, 1)->name;
    IrValue *operands[2] = {ir_operand(op, 0), table};
    Product p = {.op = op, .last = op};
    replace_product(&p, &b, rebuild(&b, op, 2, operands, NULL));
    pass_count(pc, "embeddings in bf16", 1);
  }
  if (op->kind == IR_OP_MATMUL && ir_operand(op, 0)->type->dtype == DT_F32 &&
      ir_operand(op, 1)->type->dtype == DT_F32) {
    IrValue *operands[2] = {as_bf16(&b, ir_operand(op, 0)), as_bf16(&b, ir_operand(op, 1))};
    keep_sum_wide(op);
    Product p = {.op = op, .last = op};
    replace_product(&p, &b, rebuild(&b, op, 2, operands, NULL));
    pass_count(pc, "products bf16 x bf16", 1);
  }
}

/* ---- the products of a function, and what was observed of their inputs ---- */

typedef struct {
  Product *p;
  int n;
  IrValue **x; /* distinct inputs to quantize */
  float *lo, *hi;
  IrValue **xq; /* made on demand */
  int nx;
  QuantWeight *w; /* weights done, for reuse */
  int nw;
} Work;

/* What a convolution reads outside of its input. */
static float outside(const Product *p) {
  return (float)ir_get_float(p->op, "pad_value", 0);
}

static bool wants_static(const Product *p) {
  return p->axis >= 0 && !hint(p->op, "hint.bf16") && isfinite(outside(p));
}

static Work collect(PassContext *pc, IrFunc *f, Facts *facts) {
  Work k = {0};
  int count = 0;
  for (IrOp *op = f->body->first; op; op = op->next) count++;
  k.p = ARENA_ARRAY(pc->scratch, Product, count);
  k.x = ARENA_ARRAY(pc->scratch, IrValue *, count);
  k.xq = ARENA_ARRAY(pc->scratch, IrValue *, count);
  k.w = ARENA_ARRAY(pc->scratch, QuantWeight, count);
  for (IrOp *op = f->body->first; op; op = op->next)
    if (!stays_f32(facts, op) && product_match(op, &k.p[k.n])) k.n++;
  return k;
}

static int find_input(const Work *k, const IrValue *x) {
  for (int i = 0; i < k->nx; i++)
    if (k->x[i] == x) return i;
  return -1;
}

/* What is read beside an input is quantized like it. */
static void widen_ranges(Work *k) {
  for (int i = 0; i < k->n; i++) {
    int x = find_input(k, k->p[i].x);
    if (x < 0 || !wants_static(&k->p[i])) continue;
    k->lo[x] = fminf(k->lo[x], outside(&k->p[i]));
    k->hi[x] = fmaxf(k->hi[x], outside(&k->p[i]));
  }
}

static void warn_product(PassContext *pc, const IrValue *x, const char *code, const char *what) {
  diag_warning(pc->diag, x->def ? x->def->loc : SRC_LOC_NONE, code, "the input%s%s of a product %s",
               x->name ? " " : "", x->name ? x->name : "", what);
}

/* Infinity has no place in a range, and clamping it would change what it masks. */
static void warn_ranges(PassContext *pc, const Work *k) {
  for (int i = 0; i < k->nx; i++)
    if (!isfinite(k->lo[i]) || !isfinite(k->hi[i]))
      warn_product(pc, k->x[i], "W-range", "was infinite on the calibration data: it stays bf16");
    else if (k->lo[i] == 0 && k->hi[i] == 0)
      warn_product(pc, k->x[i], "W-calibrate",
                   "was never other than 0 or NaN on the calibration data: its range is not known");
}

/* Why a product under `@int8` is not computed in 8 bits, or NULL. p: NULL when op is no product
 * with a constant weight. */
static const char *why_not_int8(const Product *p, bool calibrated) {
  if (!p)
    return "`@int8` has no effect: 8 bits are for products with a constant of reals as their "
           "second factor";
  if (!calibrated && !p->depthwise) /* whose weights stay as they are unless it is asked for */
    return "`@int8` asks for 8-bit activations, which need ranges: give --calibrate";
  if (calibrated && p->axis < 0)
    return "`@int8` has no effect on the activations of a product with a batch of constant "
           "matrices: they stay bf16";
  if (calibrated && !wants_static(p))
    return "`@int8` has no effect on the activations of what is padded with an infinity: they "
           "stay bf16";
  return NULL;
}

static void warn_int8(PassContext *pc, const IrFunc *f, const Work *k, bool calibrated) {
  uint32_t line = 0; /* a line makes one complaint */
  int next = 0;
  for (const IrOp *op = f->body->first; op; op = op->next) {
    const Product *p = next < k->n && k->p[next].op == op ? &k->p[next++] : NULL;
    bool asked = hint(op, "hint.int8") && !hint(op, "hint.bf16") && !hint(op, "hint.f32");
    if (!asked || !ir_has_trait(op, IR_PRODUCT) || (line && op->loc.line == line)) continue;
    const char *why = why_not_int8(p, calibrated);
    if (!why) continue;
    line = op->loc.line;
    diag_warning(pc->diag, op->loc, "W-hint", "%s", why);
  }
}

static bool observe(PassContext *pc, IrFunc *f, Work *k, const char *calibration) {
  for (int i = 0; i < k->n; i++)
    if (wants_static(&k->p[i]) && find_input(k, k->p[i].x) < 0) k->x[k->nx++] = k->p[i].x;
  k->lo = ARENA_ARRAY(pc->scratch, float, k->nx + 1);
  k->hi = ARENA_ARRAY(pc->scratch, float, k->nx + 1);
  if (k->nx == 0) return true;
  if (!pc->observe) {
    diag_error(
        pc->diag, f->loc, "E-calibrate",
        "calibration runs the model, and this tool has no host backend; leave out `calibrate`");
    return false;
  }
  unsigned errors = diag_errors(pc->diag);
  if (pc->observe(pc->host, f, calibration, k->nx, k->x, k->lo, k->hi)) {
    warn_ranges(pc, k);
    widen_ranges(k);
    return true;
  }
  if (diag_errors(pc->diag) == errors)
    diag_error(pc->diag, f->loc, "E-calibrate", "calibration with %s failed", calibration);
  return false;
}

/* Several ops may share a weight; two layouts of it (transposed or not) do not. */
static QuantWeight *quantized_weight(PassContext *pc, Work *k, const Product *p) {
  for (int i = 0; i < k->nw; i++)
    if (k->w[i].of == p->w && k->w[i].k == p->k && k->w[i].inner == p->inner) return &k->w[i];
  return weight_quantize(pc, p, &k->w[k->nw]) ? &k->w[k->nw++] : NULL;
}

static IrValue *quantized_input(Work *k, const Product *p, QuantRange *range) {
  int i = find_input(k, p->x);
  *range = range_of(k->lo[i], k->hi[i]);
  if (k->xq[i]) return k->xq[i];
  /* Right after its definition, so that every reader comes later. */
  IrOp *def = p->x->def;
  IrBuilder b = def ? ir_builder_after(def) : ir_builder_before(p->x->block->first);
  b.loc = def ? def->loc : p->op->loc;
  IrAttrInit attrs[2] = {{"scale", ir_attr_float(b.m, (double)range->scale)},
                         {"zero_point", ir_attr_int(b.m, range->zero_point)}};
  k->xq[i] = ir_result(ir_build(&b, IR_OP_QUANTIZE, 1, &p->x, 2, attrs), 0);
  k->xq[i]->name = p->x->name;
  return k->xq[i];
}

/* An earlier product's result may be a later one's input: the table follows the replacement. */
static void follow(Work *k, const IrValue *old, IrValue *new) {
  for (int i = 0; i < k->n; i++)
    if (k->p[i].x == old) k->p[i].x = new;
  for (int i = 0; i < k->nx; i++)
    if (k->x[i] == old) k->x[i] = new;
}

/* Of a product whose weight goes into 8 bits: its input does, too. */
static bool is_static(const Work *k, const Product *p) {
  int i = find_input(k, p->x);
  return i >= 0 && wants_static(p) && isfinite(k->lo[i]) && isfinite(k->hi[i]);
}

static bool quantize_product(PassContext *pc, Work *k, Product *p, Facts *facts, bool use_static) {
  const IrValue *old = &p->last->results[0], *bias = p->bias;
  bool whole = use_static && is_static(k, p), bf16 = hint(p->op, "hint.bf16");
  if (!bf16 && !whole && p->depthwise && !hint(p->op, "hint.int8")) return true;
  QuantWeight *w = bf16 ? NULL : quantized_weight(pc, k, p);
  if (!bf16 && !w) return false;
  IrValue *new;
  if (bf16 || !w->q) {
    new = product_to_bf16(pc, p);
  } else if (whole) {
    QuantRange range;
    IrValue *xq = quantized_input(k, p, &range);
    new = product_to_static(pc, p, w, xq, range);
  } else {
    new = product_to_weight_only(pc, p, w);
  }
  note_offset(facts, new, bias);
  follow(k, old, new);
  return true;
}

static void drop_unused_constants(IrFunc *f) {
  for (IrOp *op = f->body->last, *prev; op; op = prev) {
    prev = op->prev;
    bool movement = ir_has_trait(op, IR_DATA_MOVEMENT) && op->nresults == 1;
    if (!ir_has_trait(op, IR_CONSTANT) && !movement) continue;
    if (!op->results[0].uses) ir_op_erase(op);
  }
}

static bool quantize_products(PassContext *pc, IrFunc *f, Facts *facts, const char *calibration) {
  bool use_static = calibration && calibration[0];
  Work k = collect(pc, f, facts);
  warn_int8(pc, f, &k, use_static);
  if (use_static && !observe(pc, f, &k, calibration)) return false;
  for (int i = 0; i < k.n; i++)
    if (!quantize_product(pc, &k, &k.p[i], facts, use_static)) return false;
  return true;
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  const char *calibration = pass_option_str(pc, "calibrate");
  for (IrOp *op = f->body->first, *next; op; op = next) {
    next = op->next;
    expand_op(op);
  }
  Facts *facts = facts_new(pc, f);
  bool ok = quantize_products(pc, f, facts, calibration);
  for (IrOp *op = f->body->first, *next; ok && op; op = next) {
    next = op->next;
    quantize_other(pc, op, facts);
  }
  if (ok) {
    settle_quantize(pc, f, facts);
    store_as_bf16(pc, f, facts);
    drop_unused_constants(f);
  }
  facts_free(facts);
  return ok ? PASS_OK : PASS_FAILED;
}

static const PassOption options[] = {
    {"calibrate", "str", "",
     "tensor file of inputs, or random: 8-bit activations with ranges seen on them"},
    {0},
};

const Pass pass_quantize = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(Pass),
    .name = "quantize",
    .help = "8-bit weights; activations bf16, or 8-bit with calibration data",
    .from = IR_GRAPH,
    .to = IR_GRAPH,
    .options = options,
    .run = run,
};
