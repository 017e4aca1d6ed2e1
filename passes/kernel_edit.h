/* kernel_edit: what the nest -> nest passes share: looking at kernels, merging two, tidying bodies.
 */
#ifndef NPU_PASSES_KERNEL_EDIT_H
#define NPU_PASSES_KERNEL_EDIT_H
#include "passes/nest.h"

/* What a dimension of an old kernel is in the new one: sum over d of coef[d] * dimension d, plus
 * cst. */
typedef struct {
  int64_t coef[IR_MAX_DIMS];
  int64_t cst;
} DimImage;

/* ---- looking ---- */

/* The dimension a pure axis runs along: coefficient 1, no constant, not indirect. NEST_NO_DIM when
 * the axis is constant 0; -2 for any other form. */
int axis_dim(const IrAffine *a);
#define AXIS_OTHER (-2)
bool kernel_has_reduce(const IrOp *kernel);
/* reduce{sum}(mul(arg, arg)), casts aside: the form of matrix products and convolutions. */
bool kernel_is_contraction(const IrOp *kernel);
/* Operand numbers of the product's two factors. */
bool kernel_contraction_factors(const IrOp *kernel, int factors[2]);
/* Whether an operand is the index list of another operand's indirect axis. */
bool kernel_operand_is_index(const IrOp *kernel, int operand);
/* The pad attribute of an operand, NULL for "none". */
const IrAttr *kernel_pad_attr(const IrOp *kernel, int operand);
/* Body operations that cost a slot of the vector unit, loads and stores included. */
int kernel_body_cost(const IrOp *kernel);
/* Most values alive at once between two body operations. */
int kernel_body_live(const IrOp *kernel);

/* The graph ops a kernel computes, joined with '_': what reports, labels and traces call it. NULL:
 * not said. */
const char *kernel_name(const IrOp *kernel);
void kernel_set_name(IrOp *kernel, const char *name);
/* Names a kernel after the two it was made of, casts and overlong tails left out. */
void kernel_join_names(IrOp *kernel, const IrOp *first, const IrOp *second);

/* ---- writing ---- */

/* Adds operand `operand` of `kernel` to n, its map rewritten; the same read added before is shared.
 * Returns the operand number in n, or -1 when the map's numbers leave 64 bits. new_number[i]: where
 * kernel's operand i went (for indirect axes). */
int nest_add_operand(Nest *n, const IrOp *kernel, int operand, const DimImage *images,
                     const int *new_number);
/* Copies kernel's body to n's. args[i] stands for operand i; yielded[] receives the scalars
 * yielded. */
void nest_copy_body(Nest *n, const IrOp *kernel, const DimImage *images, IrValue *const *args,
                    IrValue **yielded);
/* Dimensions of n from those of kernel, in order; extents of 1 are kept. */
void nest_copy_dims(Nest *n, const IrOp *kernel);

/* Same results from fewer body ops, operands and dimensions: merges equal reads and scalars, drops
 * casts there and back and reductions of one and the same element, removes what no result needs.
 * Returns the kernel, or the one that replaces it. */
IrOp *kernel_simplify(IrOp *kernel);
#endif
