/* A module with one graph-level function, for the tests of ir/. */
#ifndef NPU_TESTS_IR_FIXTURE_H
#define NPU_TESTS_IR_FIXTURE_H
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <string.h>

#include "ir/ir.h"

typedef struct {
  DiagEngine *diag;
  IrModule *m;
  IrFunc *f;
  IrBuilder b;
} Fixture;

static inline int setup(void **state) {
  Fixture *t = mem_alloc(sizeof *t);
  t->diag = diag_new();
  t->m = ir_module_new(t->diag);
  t->f = ir_func_new(t->m, "f", IR_GRAPH);
  t->b = ir_builder_at_end(t->f->body, SRC_LOC_NONE);
  *state = t;
  return 0;
}

static inline int teardown(void **state) {
  Fixture *t = *state;
  ir_module_free(t->m);
  diag_free(t->diag);
  mem_free(t);
  return 0;
}

static inline IrValue *arg(Fixture *t, const char *name, DType dtype, int rank,
                           const int64_t *shape) {
  return ir_block_add_arg(t->f->body, ir_type_tensor(t->m, dtype, rank, shape), name);
}

static inline IrValue *vector(Fixture *t, const char *name) {
  return arg(t, name, DT_F32, 1, (int64_t[]){4});
}

static inline void finish(Fixture *t, IrValue *v) {
  ir_build(&t->b, IR_OP_RETURN, 1, &v, 0, NULL);
  t->f->nresults = 1;
  t->f->result_names = arena_copy(t->m->arena, &(const char *){ir_str(t->m, "y")}, sizeof(char *));
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#endif
