/* One graph op at a time: built, lowered, compiled for the host and compared with a plain
 * definition of it. */
#ifndef TESTS_PASSES_LOWER_UTIL_H
#define TESTS_PASSES_LOWER_UTIL_H
#include "ir/ir.h"

enum { MAX_INPUTS = 6, MAX_RESULTS = 8 };

/* A tensor in doubles. */
typedef struct {
  const IrType *type;
  double *v;
} Tensor;
double tensor_at(const Tensor *t, const int64_t *index);
/* Element of t broadcast to the shape of `to` (aligned at the last axis). */
double tensor_broadcast(const Tensor *t, const IrType *to, const int64_t *index);

/* An attribute: 'i' ints (one or a list), 'f' float, 's' string, 'b' bool, 'd' dtype, 'p' pairs of
 * ints, 'o' one int. */
typedef struct {
  const char *name;
  char kind;
  int n;
  int64_t ints[16];
  double f;
  const char *s;
} AttrSpec;
#define INTS(name, ...)                                                                            \
  { name, 'i', (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}, 0, NULL }
#define PAIRS(name, ...)                                                                           \
  { name, 'p', (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)), {__VA_ARGS__}, 0, NULL }
#define INT(name, v)                                                                               \
  { name, 'o', 1, {v}, 0, NULL }
#define REAL(name, v)                                                                              \
  { name, 'f', 0, {0}, v, NULL }
#define TEXT(name, v)                                                                              \
  { name, 's', 0, {0}, 0, v }
#define FLAG(name, v)                                                                              \
  { name, 'b', 1, {v}, 0, NULL }
#define DTYPE(name, v)                                                                             \
  { name, 'd', 1, {v}, 0, NULL }

typedef struct Case Case;
/* Element `index` of result `result`, from the inputs: the definition. */
typedef double RefFn(const IrOp *op, const Tensor *in, int result, const int64_t *index);
struct Case {
  IrOpKind kind;
  RefFn *ref;
  const char *inputs; /* "f32[2,3] s8[3]": function arguments; "=0.5" a splat constant of the type
                         before it; "lo:hi" the range of the values of the type before it */
  AttrSpec attrs[6];
  double tolerance; /* relative to 1 + |expected|; 0: exact */
};
/* Runs the cases; returns how many failed, after printing why. */
int run_cases(const Case *cases, int n);
#endif
