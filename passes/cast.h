/* cast: which conversions lose nothing. */
#ifndef NPU_PASSES_CAST_H
#define NPU_PASSES_CAST_H
#include "support/dtype.h"
/* Every value of `from` is also one of `to` (machine types). */
static inline bool cast_is_exact(DType from, DType to) {
  if (from == DT_BF16) return to == DT_BF16 || to == DT_F32;
  return from == DT_S8 || from == to;
}
#endif
