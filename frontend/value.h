/* Values of expressions: compile-time ones, and tensors. */
#ifndef NPU_FRONTEND_VALUE_H
#define NPU_FRONTEND_VALUE_H
#include "frontend/ast.h"
#include "ir/ir.h"

typedef enum {
  VALUE_POISON, /* of something already reported: silences whatever uses it */
  VALUE_INT,
  VALUE_REAL,
  VALUE_BOOL,
  VALUE_TEXT,
  VALUE_DTYPE,
  VALUE_LIST,
  VALUE_TENSOR,
  VALUE_TUPLE, /* several results of a call */
} ValueKind;

typedef struct Value {
  ValueKind kind;
  SrcLoc from; /* where it was declared or computed, for notes */
  union {
    int64_t i;
    double r;
    bool b;
    const char *s;
    DType dtype;
    struct {
      struct Value *items;
      size_t n;
    } list; /* and TUPLE */
    IrValue *tensor;
  };
} Value;

Value value_poison(void);
Value value_int(int64_t i);
Value value_real(double r);
Value value_bool(bool b);
Value value_tensor(IrValue *t, SrcLoc from);
bool value_is_number(Value v);
double value_number(Value v); /* of an INT or REAL */
bool value_is_const(Value v); /* known at compile time */
/* "the number 3", "a tensor f32[1,2]", ... */
void value_describe(StrBuf *b, Value v);

/* Why a compile-time operation has no value: code and message, for the caller to report. */
typedef struct {
  const char *code, *message;
} ValueError;
bool value_unary(Operator op, Value a, Value *out, ValueError *why);
bool value_binary(Arena *arena, Operator op, Value a, Value b, Value *out, ValueError *why);
/* Compile-time functions of numbers: min, max, abs, sqrt, ... */
typedef enum {
  NUMBER_DONE,
  NUMBER_NO_FUNCTION /* name is none of them */,
  NUMBER_FAILED
} NumberFunction;
NumberFunction value_function(const char *name, const Value *args, size_t n, Value *out,
                              ValueError *why);
#endif
