/* quantize: what its files share. */
#ifndef NPU_PASSES_QUANTIZE_INTERNAL_H
#define NPU_PASSES_QUANTIZE_INTERNAL_H
#include "ir/ir.h"
#include "passes/passes.h"

/* quantize_facts.c: what is known about values, while they are what they were when it was found. */
typedef struct Facts Facts;
/* Of f as the model has it: which ops are its own, not made by this pass. */
Facts *facts_new(PassContext *pc, IrFunc *f);
void facts_free(Facts *k);
/* Whether the model had op's integers itself. */
bool is_own(Facts *k, const IrOp *op);
/* Whether the product's factors come from the model's integers and its sum becomes integers again,
 * with no other product of weights between: integers it is then, and the bytes of the model as it
 * stands. */
bool in_integer_region(Facts *k, const IrOp *product);
/* Whether op, as facts_new saw it, is a product of squares whose sum must be exact. */
bool sums_squares_exactly(Facts *k, const IrOp *op);
/* What is needed of the values of f; asked again after f has changed. */
void facts_find_needs(Facts *k, IrFunc *f);
/* Whether nothing made of v suffers from a relative error of 2^-9 in it. */
bool may_be_rounded(Facts *k, const IrValue *v);
bool is_activation(Facts *k, const IrValue *v);
void set_activation(Facts *k, const IrValue *v);
/* A product's result whose bias went into integers. bias: may be NULL. */
void note_offset(Facts *k, const IrValue *product, const IrValue *bias);
/* A power, or the product of a value with itself, scaled or not, whatever its shape. */
bool is_square(const IrOp *op);
/* A flag an op was given by the model's author. */
bool hint(const IrOp *op, const char *name);

/* A matrix product or convolution of floats with a constant weight. The weight's elements are seen
 * as [outer, k, inner]: sums run over k, and each (outer, inner) is an output channel. */
typedef struct {
  IrOp *op;
  IrOp *last; /* the addition of a constant per channel behind op, whose operand is then bias; else
                 op */
  IrValue *x, *w, *bias; /* bias NULL when there is none */
  bool transposed;       /* matmul: w was found behind a transpose, so transpose_b flips */
  int64_t outer, k, inner;
  int rank; /* of a tensor with one element per channel that broadcasts to the result */
  int64_t shape[IR_MAX_RANK];
  int axis; /* of the result along which channels lie; -1 when there are several (batched weights)
             */
  bool depthwise; /* one channel in, one out: not a product for the matrix unit */
} Product;
/* False when op is none, or its weight is not known. */
bool product_match(IrOp *op, Product *p);

/* A weight in 8 bits: w = q * scale of its channel. */
typedef struct {
  const IrAttr *q; /* s8, the weight's shape; NULL when it holds an infinity, which has no scale */
  IrValue *constant; /* of q, once an op uses it */
  float *scales;     /* outer * inner of them, scratch memory */
  const IrValue *of; /* the weight, for reuse between ops */
  int64_t k, inner;
} QuantWeight;
/* Symmetric, scale = largest magnitude / 127 (1 for channels of zeros). False after a diagnostic
 * (NaN). */
bool weight_quantize(PassContext *pc, const Product *p, QuantWeight *out);
/* sums[c]: sum of q over k, per channel. */
void weight_channel_sums(const Product *p, const int8_t *q, int64_t *sums);
/* The constant behind v as a tensor of bf16; cached by the caller. */
const IrAttr *constant_as_bf16(IrModule *m, const IrValue *v);

/* quantize_product.c. The product_to_ functions return the value that took the result's place. */
IrValue *product_to_weight_only(PassContext *pc, Product *p, QuantWeight *w);
/* The constant of w, made when first asked for, beside the weight it replaces. */
IrValue *weight_constant(const Product *p, QuantWeight *w);
IrValue *product_to_bf16(PassContext *pc, Product *p);
/* Builds op's kind again with other operands and its attributes, `other` (may be NULL) in place of
 * one of them. */
IrValue *rebuild(IrBuilder *b, const IrOp *op, int noperands, IrValue *const *operands,
                 const IrAttrInit *other);
/* The product over p's x and weight, or what stands for them. */
IrValue *rebuild_product(IrBuilder *b, const Product *p, int noperands, IrValue *const *operands);
/* The product built again from op gives the sum of bf16 products as f32. */
void keep_sum_wide(IrOp *op);
/* Replaces last's result by v, converted to its type, and removes op and last; returns what
 * replaced it. */
IrValue *replace_product(Product *p, IrBuilder *b, IrValue *v);
/* x as bf16, without a step up and down again. */
IrValue *as_bf16(IrBuilder *b, IrValue *x);

/* quantize_static.c */
typedef struct {
  float scale;
  int zero_point;
} QuantRange;
QuantRange range_of(float lo, float hi);
/* xq: x quantized by range. */
IrValue *product_to_static(PassContext *pc, Product *p, QuantWeight *w, IrValue *xq,
                           QuantRange range);
/* Moves quantize ops up through data movement and max pooling, then joins dequantize -> clamp ->
 * quantize. The model's own stay where they are: joining rounds once where the model rounds twice.
 */
void settle_quantize(PassContext *pc, IrFunc *f, Facts *k);

/* quantize_store.c: floats that stay between ops are kept as bf16. */
void store_as_bf16(PassContext *pc, IrFunc *f, Facts *k);
#endif
