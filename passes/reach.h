/* reach: which elements of a tensor are needed, and how many products a kernel cannot do without.
 * Everything is a count that is exact where it is known and never too large: what has no simple
 * form is left out. */
#ifndef NPU_PASSES_REACH_H
#define NPU_PASSES_REACH_H
#include "ir/ir.h"

/* Indices along one axis: first + sum over the levels of 0..count-1 times stride. Strides grow, and
 * each is larger than all below it together, so that every index is there once. */
enum { REACH_LEVELS = 4 };
typedef struct {
  int64_t first;
  int n;
  struct {
    int64_t count, stride;
  } level[REACH_LEVELS];
} IndexSet;
IndexSet index_set_range(int64_t count); /* 0..count-1 */
double index_set_count(const IndexSet *s);
int64_t index_set_last(const IndexSet *s);
/* Adds 0..count-1 times stride to every index; false when that does not fit 64 bits. */
bool index_set_spread(IndexSet *s, int64_t count, int64_t stride);
/* Takes away what lies outside 0..size-1; false when nothing is left. */
bool index_set_clip(IndexSet *s, int64_t size);

/* One index set per axis. */
typedef struct {
  int rank;
  bool anywhere; /* so many elements, but at places that are no box or that only the run knows */
  IndexSet axis[IR_MAX_RANK];
} ReachBox;
ReachBox reach_all(const IrType *t);
double reach_box_count(const ReachBox *b);
/* The same elements of a tensor of the same number of elements and another shape; false when they
 * are no box there. */
bool reach_reshape(const ReachBox *b, const IrType *from, const IrType *to, ReachBox *out);

/* Needed elements of one tensor as a union of boxes. */
enum { REACH_BOXES = 8 };
typedef struct {
  ReachBox *box[REACH_BOXES];
  int n;
} Reach;
void reach_add(Arena *a, Reach *r, const ReachBox *b);
double reach_count(const Reach *r);
/* The sum of measure(user, box) over boxes of r that have no element in common. */
double reach_sum(const Reach *r, double (*measure)(void *user, const ReachBox *b), void *user);

/* What elements `b` of result `result` need of operand `operand`; false when it is nothing. */
bool reach_operand(const IrOp *kernel, int result, const ReachBox *b, int operand, ReachBox *out);
/* Multiplications that elements `b` of the first result need in sums of products of two different
 * operands; those with a factor read outside of its tensor do not count. s8 (may be NULL): whether
 * both factors are s8. */
double reach_macs(const IrOp *kernel, const ReachBox *b, bool *s8);
/* How many of the tuples (i, j, ...) with 0 <= i < count give a sum of first + i * stride + ... in
 * 0..size-1. 0 when that takes too long to find out. */
double reach_tuples_inside(int n, const int64_t (*terms)[2], int64_t first, int64_t size);
#endif
