/* The kinds of operators random models are made of: X(name, how often relative to the others). */
#ifndef TESTS_FUZZ_GRAPH_OPS_H
#define TESTS_FUZZ_GRAPH_OPS_H
#include "tests/fuzz/graph_gen.h"

/* clang-format off */
#define GEN_OPS(X) \
  X(unary, 20) X(step, 4) X(far_mean, 3) X(binary, 18) X(cast, 6) X(compare, 2) X(matmul, 8) X(self_product, 3) \
  X(integer_product, 6) X(linear, 8) X(conv, 12) X(pool, 8) X(reduce, 8) X(argmax, 3) X(norm, 8) \
  X(reshape, 6) X(transpose, 6) X(concat, 5) X(slice, 5) X(pad, 4) X(broadcast, 3) X(gather, 4) \
  X(state, 2) X(mask, 3) X(embed, 2) X(split, 3) X(update, 3) X(gather_computed, 3) X(conv1d, 3) \
  X(conv_transpose, 3) X(integer_conv, 4) X(quantize, 4) X(bf16, 3) X(bf16_product, 3) \
  X(integer_region, 4) X(integer_layer, 5) X(covariance, 6) X(there_and_back, 4) X(shared_weight, 2) \
  X(full_constant, 2) X(wide_integer, 2) X(turned, 4) X(padded_conv, 3) X(turned_state, 2) X(zeros, 4) X(special, 4)
/* clang-format on */

#define X(name, weight) bool gen_make_##name(Gen *g);
GEN_OPS(X)
#undef X

/* Deviation of weights that keep a sum of k products about as large as its terms. */
double gen_fan(int64_t k);
DType gen_any_dtype(Gen *g);
#endif
