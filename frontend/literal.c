/* Numbers and lists of numbers where tensors are expected. */
#include <math.h>

#include "frontend/lower.h"

/* Shape of a (nested) list of numbers; false when it is ragged or holds something else. */
static bool list_shape(Value v, int depth, int *rank, int64_t *shape) {
  if (v.kind != VALUE_LIST) {
    if (!value_is_number(v)) return false;
    if (*rank < 0) *rank = depth;
    return *rank == depth;
  }
  if (depth >= IR_MAX_RANK || v.list.n == 0) return false;
  int64_t n = (int64_t)v.list.n;
  if (shape[depth] == 0) shape[depth] = n;
  if (shape[depth] != n) return false;
  for (size_t i = 0; i < v.list.n; i++)
    if (!list_shape(v.list.items[i], depth + 1, rank, shape)) return false;
  return true;
}

static bool has_real(Value v) {
  if (v.kind != VALUE_LIST) return v.kind == VALUE_REAL;
  for (size_t i = 0; i < v.list.n; i++)
    if (has_real(v.list.items[i])) return true;
  return false;
}

static bool in_range(Value v, DType dtype) {
  if (v.kind == VALUE_LIST) {
    for (size_t i = 0; i < v.list.n; i++)
      if (!in_range(v.list.items[i], dtype)) return false;
    return true;
  }
  double x = value_number(v);
  if (dtype == DT_S8) return x >= -128 && x <= 127;
  if (dtype == DT_S32) return x >= INT32_MIN && x <= INT32_MAX;
  uint32_t element = 0; /* infinity is a value; becoming it by rounding is not */
  dtype_set(dtype, &element, 0, x);
  return isinf(x) || isfinite(dtype_get(dtype, &element, 0));
}

static void fill(Value v, DType dtype, void *bytes, size_t *at) {
  if (v.kind != VALUE_LIST) {
    dtype_set(dtype, bytes, (*at)++, value_number(v));
    return;
  }
  for (size_t i = 0; i < v.list.n; i++) fill(v.list.items[i], dtype, bytes, at);
}

static bool check_number(Lower *l, Value v, DType dtype, SrcLoc loc) {
  if (!dtype_is_float(dtype) && has_real(v)) {
    lower_error(l, loc, "E-dtype",
                "a real number does not go with a tensor of %s; cast the tensor to f32, or write a "
                "whole number",
                dtype_name(dtype));
    return false;
  }
  if (in_range(v, dtype)) return true;
  StrBuf b = {0};
  value_describe(&b, v);
  lower_error(l, loc, "E-const", "%s does not fit the element type %s", b.data, dtype_name(dtype));
  strbuf_free(&b);
  return false;
}

Value literal_tensor(Lower *l, Value v, DType dtype, SrcLoc loc) {
  if (v.kind == VALUE_TENSOR || v.kind == VALUE_POISON || l->stopped)
    return l->stopped ? value_poison() : v;
  int rank = -1;
  int64_t shape[IR_MAX_RANK] = {0};
  if (v.kind == VALUE_BOOL) v = value_int(v.b);
  if (!list_shape(v, 0, &rank, shape)) {
    StrBuf b = {0};
    value_describe(&b, v);
    if (v.kind == VALUE_LIST)
      lower_error(l, loc, "E-const", "a list used as a tensor holds numbers, as many in every row");
    else
      lower_error(l, loc, "E-arg", "expected a tensor or a number, found %s", b.data ? b.data : "");
    strbuf_free(&b);
    return value_poison();
  }
  if (!check_number(l, v, dtype, loc)) return value_poison();
  if (l->ops++ >= MAX_OPS) {
    lower_stop(l, loc, "the model has more than %d operations", MAX_OPS);
    return value_poison();
  }
  IrBuilder b = ir_builder_at_end(l->func->body, loc);
  const IrType *type = ir_type_tensor(l->m, dtype, rank, shape);
  IrValue *tensor;
  if (rank == 0) {
    tensor = ir_build_splat(&b, type, value_number(v));
  } else {
    void *bytes;
    size_t at = 0;
    const IrAttr *data = ir_attr_data_new(l->m, type, &bytes);
    fill(v, dtype, bytes, &at);
    tensor = ir_build_constant(&b, data);
  }
  return tensor ? value_tensor(tensor, loc) : value_poison();
}

bool literal_adapt(Lower *l, Value *operands, size_t n, size_t first, SrcLoc loc) {
  DType dtype = DT_F32;
  for (size_t i = first; i < n; i++)
    if (operands[i].kind == VALUE_TENSOR) {
      dtype = operands[i].tensor->type->dtype;
      break;
    }
  for (size_t i = 0; i < n; i++) {
    if (operands[i].kind == VALUE_POISON) return false;
    DType t = dtype;
    /* A condition is s8; a whole number too large for s8 computes in s32, as s8 with s32 does. */
    if (i < first)
      t = DT_S8;
    else if (dtype == DT_S8 && value_is_number(operands[i]) && !in_range(operands[i], DT_S8))
      t = DT_S32;
    if (i >= first && operands[i].kind == VALUE_BOOL) {
      lower_error(l, loc, "E-arg",
                  "a boolean cannot be computed with tensors; booleans decide at compile time");
      return false;
    }
    operands[i] = literal_tensor(l, operands[i], t, loc);
    if (operands[i].kind == VALUE_POISON) return false;
  }
  return true;
}
