/* What operators mean, in plain double-precision loops: written from the operators' definitions,
 * sharing nothing with the compiler, so that a wrong lowering is found although the host reference
 * and the simulator both contain it. */
#ifndef TESTS_E2E_ORACLE_H
#define TESTS_E2E_ORACLE_H
#include "support/support.h"

enum { ORACLE_RANK = 8, ORACLE_TENSORS = 8 };

typedef struct {
  const char *name;
  int rank;
  int64_t shape[ORACLE_RANK], n;
  double *v;
  double
      *mag; /* results: sum of the magnitudes of what was added up, so errors are relative to it */
} Ora;

typedef struct {
  const char *name;
  int64_t value;
} OracleDef;

typedef struct OracleCall {
  Arena *arena;
  int nin, nout, ndefs;
  Ora in[ORACLE_TENSORS]; /* inputs and weights */
  Ora out[ORACLE_TENSORS];
  OracleDef defs[24];
  const struct OracleCall *before; /* the run before, for states; NULL in the first */
  double terms; /* longest sum; 0: elementwise, each result element rounds a few times */
  double (*unary)(double);
  double (*binary)(double, double);
} OracleCall;

typedef void OracleFn(OracleCall *c);
OracleFn oracle_unary, oracle_binary, oracle_pow, oracle_where, oracle_clip, oracle_leaky_relu,
    oracle_cast_s32, oracle_cast_s8, oracle_cast_bf16;
OracleFn oracle_matmul, oracle_matmul_ta, oracle_matmul_tb, oracle_linear, oracle_conv2d,
    oracle_conv1d, oracle_conv_transpose2d;
OracleFn oracle_max_pool, oracle_avg_pool, oracle_avg_pool_count, oracle_global_avg_pool;
OracleFn oracle_sum, oracle_mean, oracle_reduce_max, oracle_reduce_min, oracle_argmax, oracle_nan,
    oracle_softmax, oracle_batch_norm, oracle_layer_norm, oracle_rms_norm;
OracleFn oracle_copy, oracle_transpose, oracle_concat, oracle_split, oracle_slice, oracle_pad,
    oracle_broadcast, oracle_gather, oracle_embed, oracle_update, oracle_accumulate, oracle_turn;

/* For oracle_unary and oracle_binary. ora_eq compares whole parts. */
double ora_neg(double), ora_relu(double), ora_relu6(double), ora_sigmoid(double), ora_gelu(double),
    ora_gelu_tanh(double), ora_silu(double), ora_hard_sigmoid(double), ora_hard_swish(double),
    ora_rsqrt(double), ora_recip(double), ora_add(double, double), ora_sub(double, double),
    ora_mul(double, double), ora_div(double, double), ora_eq(double, double),
    ora_ne(double, double), ora_lt(double, double), ora_le(double, double), ora_gt(double, double),
    ora_ge(double, double), ora_pow_halves(double, double), ora_nan_clip(double, double);

/* The tensor or parameter of that name; aborts when the case table does not have it. */
const Ora *ora_in(const OracleCall *c, const char *name);
int64_t ora_def(const OracleCall *c, const char *name);
Ora *ora_out(OracleCall *c, int rank, const int64_t *shape);
#endif
