/* Private to ir/shape*.c: what a shape rule sees and says. */
#ifndef NPU_IR_SHAPE_H
#define NPU_IR_SHAPE_H
#include "ir/internal.h"

/* One inference. A rule reads operand types and attributes (defaults filled in, kinds already
 * checked against the signature) and calls result() per result; it returns false after shape_fail.
 */
typedef struct {
  IrModule *m;
  IrOpKind kind;
  const char *name; /* of the op */
  SrcLoc loc;
  int n;                           /* operands */
  const IrType *x[IR_MAX_RESULTS]; /* their types; only the first this many of a variadic op */
  IrValue *const *operands;
  const IrOp *op; /* carries the attributes and nothing else */
  bool body;      /* scalars: inside a kernel */
  const IrType **out;
  int nout; /* -1: the rule leaves result types to whoever builds the op */
} Shape;

/* Reports and returns false. */
bool shape_fail(Shape *s, const char *code, const char *fmt, ...) NPU_PRINTF(3, 4);
/* "f32[1,3,28,28]" in module memory, for messages. */
const char *type_text(Shape *s, const IrType *t);
const char *dims_text(Shape *s, int rank, const int64_t *shape);

/* Adds a result. result_shape checks dims, rank and element count. */
bool result(Shape *s, const IrType *t);
bool result_shape(Shape *s, DType dtype, int rank, const int64_t *shape);
/* x's shape (or scalar-ness) with another element type. */
bool result_like(Shape *s, const IrType *x, DType dtype);

/* Element type two operands compute in: s8 and s8 keep s8 here; floats with integers report
 * E-dtype. */
bool promote(Shape *s, const IrType *a, const IrType *b, DType *out);
DType widened(DType t); /* s8 to s32, others as they are */
bool need_float(Shape *s, const IrType *t, const char *what);
bool need_rank(Shape *s, int operand, int rank, const char *axes);
/* Operand `operand`, a vector of `extent` elements, one per `of`. */
bool need_vector(Shape *s, int operand, int64_t extent, const char *of);
bool need_s32(Shape *s, int operand);
const char *operand_name(Shape *s, int operand);
/* Attribute `name` as a valid axis of a rank-`rank` tensor; reports when it is not. */
bool need_axis(Shape *s, const char *name, int rank, int *axis);
/* Integer list attribute: one number stands for all of `n`. Each must lie in lo..hi. */
bool need_ints(Shape *s, const char *name, int n, int64_t lo, int64_t hi, int64_t *out);
/* Attributes lo and hi, when given, as a range that is not empty; lo is 0 by default. */
bool need_range(Shape *s, double default_hi);
/* Attribute `name` as a border of elements t: for integers it must be one of theirs. */
bool need_border(Shape *s, const char *name, DType t);

/* Convolutions and pooling: top, left, bottom, right from `pad`; window positions along both axes.
 */
#define MAX_EXTENT                                                                                 \
  (1ll << 31) /* of strides, dilations and pads, so that products stay inside 63 bits */
bool need_pads(Shape *s, const int64_t in[2], const int64_t k[2], int64_t tlbr[4]);
bool window_outputs(Shape *s, const int64_t in[2], const int64_t k[2], const int64_t stride[2],
                    const int64_t dilation[2], const int64_t tlbr[4], int64_t out[2]);

/* The rules, named by the rows of the op table. */
#define OP(e, name, levels, traits, nresults, signature, shape, doc) bool shape_##shape(Shape *s);
#include "ir/ops.def"
#undef OP
#endif
