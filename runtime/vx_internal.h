/* Shared by the files that compile vector programs. */
#ifndef VX_INTERNAL_H
#define VX_INTERNAL_H
#include "runtime/runtime_internal.h"
#include <llvm-c/Core.h>

/* What a compiled function is specialised on: program, and per stream the type and the kind of
 * vector stride. */
typedef struct {
  uint32_t vp;
  uint8_t dtype[ISA_STREAMS], kind[ISA_STREAMS]; /* kind: VX_UNIT... */
} VxKey;

typedef struct {
  LLVMContextRef cx;
  LLVMModuleRef mod;
  LLVMBuilderRef b;
  int level; /* host vector level the code may use */
  LLVMTypeRef i8, i16, i32, i64, f32, f64, ptr, v32, vf32, vf64;
} VxGen;

/* i32 or <16 x i32>, f32 or <16 x f32>: the shape follows `wide`. */
LLVMValueRef vx_const(VxGen *g, bool wide, uint32_t bits);
/* An ALU or SFU operation on 32-bit lanes, operands and result as integers; special functions are
 * expanded into the steps isa defines. */
LLVMValueRef vx_emit_op(VxGen *g, IsaVopKind op, LLVMValueRef a, LLVMValueRef b, LLVMValueRef c);
/* Lanes of f32 bits as binary64, and those rounded back to f32 bits. */
LLVMValueRef vx_emit_double(VxGen *g, LLVMValueRef lanes);
LLVMValueRef vx_emit_single(VxGen *g, LLVMValueRef doubles);
/* Lanes of 32 bits from and to the stored type: the element value is an i8, i16 or i32 (or a vector
 * of them). */
LLVMTypeRef vx_stored_type(VxGen *g, DType t, bool wide);
LLVMValueRef vx_emit_widen(VxGen *g, DType t, LLVMValueRef stored);
LLVMValueRef vx_emit_narrow(VxGen *g, DType t, LLVMValueRef lanes);
/* Adds the function `name` for a program to the module. */
void vx_emit_program(VxGen *g, const IsaVprog *p, const VxKey *key, const char *name);
#endif
