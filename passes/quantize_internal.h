/* quantize: what its files share. */
#ifndef NPU_PASSES_QUANTIZE_INTERNAL_H
#define NPU_PASSES_QUANTIZE_INTERNAL_H
#include "ir/ir.h"
#include "passes/passes.h"

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
 * quantize. */
void settle_quantize(PassContext *pc, IrFunc *f);

/* quantize_store.c: floats that stay between ops are kept as bf16. */
void store_as_bf16(PassContext *pc, IrFunc *f);
#endif
