/* Element types, shared by tensor files, the IR and the ISA. */
#ifndef NPU_DTYPE_H
#define NPU_DTYPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "support/support.h"

NPU_C_BEGIN
/* X(ENUM, name, bytes, is_float). The first four are what the machine computes with; the others
 * exist only in files and are converted at the door. */
#define NPU_DTYPES(X)                                                                              \
  X(S8, "s8", 1, 0)                                                                                \
  X(BF16, "bf16", 2, 1)                                                                            \
  X(F32, "f32", 4, 1)                                                                              \
  X(S32, "s32", 4, 0)                                                                              \
  X(U8, "u8", 1, 0)                                                                                \
  X(S16, "s16", 2, 0)                                                                              \
  X(S64, "s64", 8, 0)                                                                              \
  X(F16, "f16", 2, 1)                                                                              \
  X(F64, "f64", 8, 1)                                                                              \
  X(BOOL, "bool", 1, 0)
typedef enum {
#define X(e, n, b, f) DT_##e,
  NPU_DTYPES(X)
#undef X
      DT_COUNT
} DType;
#define DT_MACHINE_COUNT (DT_S32 + 1) /* dtypes below this are machine types */
const char *dtype_name(DType t);
size_t dtype_size(DType t);
bool dtype_is_float(DType t);
bool dtype_parse(const char *name, DType *out);
/* Converts n elements; s8 saturates, integers from reals round half even, bf16 rounds to nearest
 * even. dst and src do not overlap. */
void dtype_convert(DType to, void *dst, DType from, const void *src, size_t n);
double dtype_get(DType t, const void *data, size_t i);
void dtype_set(DType t, void *data, size_t i, double v);
/* Whether v is a value of t: stored and read again, it is the same. */
bool dtype_holds(DType t, double v);
NPU_C_END
#endif
