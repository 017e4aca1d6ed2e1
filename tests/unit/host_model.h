/* Writing nest-level functions in tests: kernels from short texts, compiled and run on the host. */
#ifndef TESTS_UNIT_HOST_MODEL_H
#define TESTS_UNIT_HOST_MODEL_H
#include "backend/host/host.h"

typedef struct {
  DiagEngine *diag;
  IrModule *m;
  IrFunc *f;
  IrOp *kernel;
  IrBuilder at, body;
  int ndims;
  const char *names[IR_MAX_DIMS];
  int64_t extents[IR_MAX_DIMS];
} Model;

typedef struct {
  IrValue *value;
  const char *map, *pad; /* pad: NULL for none */
} In;
typedef struct {
  const IrType *type;
  const char *map;
} Out;

/* A module with one empty nest-level function. */
Model model_new(void);
void model_free(Model *t);
/* rank shape entries of type int follow. */
const IrType *tensor(Model *t, DType dtype, int rank, ...);
IrValue *input(Model *t, const IrType *type);
/* "m=5 n=7": the dimensions of the next kernel. */
void dims(Model *t, const char *text);
/* Opens a kernel; what follows is its body, until yield. Maps: "n, oh*2+kh-1, @1, 0". */
void kernel(Model *t, int nin, const In *in, int nout, const Out *out);
/* Operand i of the kernel, cast. */
IrValue *arg(Model *t, int i, DType as);
IrValue *un(Model *t, IrOpKind k, IrValue *x);
IrValue *bin(Model *t, IrOpKind k, IrValue *a, IrValue *b);
IrValue *num(Model *t, DType d, double v);
IrValue *reduce(Model *t, const char *op, IrValue *x, const char *over);
IrValue *index_of(Model *t, const char *d);
IrValue *where(Model *t, IrValue *c, IrValue *a, IrValue *b);
void yield(Model *t, int n, IrValue *const *v);
void yield1(Model *t, IrValue *v);
/* The function's results; returns_kernel: all of the last kernel's. */
void returns(Model *t, int n, IrValue *const *v);
/* Fail the test when they fail. run compiles and runs once. */
HostProgram *compile(Model *t);
void run(Model *t, const void *const *in, void *const *out);
void returns_kernel(Model *t);
/* Random data, released with mem_free. */
float *floats(Rng *r, size_t n);
int8_t *bytes(Rng *r, size_t n);
/* Fails unless |got - want| <= bound. */
void near(double got, double want, double bound, size_t at);
#endif
