/* Writing nest-level functions in tests. */
#include "tests/unit/host_model.h"
#include "tests/support/compare.h"
#include <ctype.h>
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- making functions ---- */

Model model_new(void) {
  Model t = {.diag = diag_new()};
  t.m = ir_module_new(t.diag);
  t.f = ir_func_new(t.m, "test", IR_NEST);
  t.at = ir_builder_at_end(t.f->body, (SrcLoc){.file = "test.mdl", .line = 3, .col = 5});
  return t;
}

void model_free(Model *t) {
  ir_module_free(t->m);
  diag_free(t->diag);
}

const IrType *tensor(Model *t, DType dtype, int rank, ...) {
  int64_t shape[IR_MAX_RANK];
  va_list ap;
  va_start(ap, rank);
  for (int i = 0; i < rank; i++) shape[i] = va_arg(ap, int);
  va_end(ap);
  return ir_type_tensor(t->m, dtype, rank, shape);
}

IrValue *input(Model *t, const IrType *type) {
  return ir_block_add_arg(t->f->body, type, NULL);
}

/* "m=5 n=7": the dimensions of the next kernel. */
void dims(Model *t, const char *text) {
  t->ndims = 0;
  char *copy = arena_strdup(t->m->arena, text), *save = NULL;
  for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
    char *eq = strchr(w, '=');
    *eq = '\0';
    t->names[t->ndims] = ir_str(t->m, w);
    t->extents[t->ndims++] = strtoll(eq + 1, NULL, 10);
  }
}

static int dim(const Model *t, const char *name, size_t len) {
  for (int d = 0; d < t->ndims; d++)
    if (strlen(t->names[d]) == len && !strncmp(t->names[d], name, len)) return d;
  abort();
}

/* "n, oh*2+kh-1, @1, 0": one expression per axis; @1 is the value of operand 1. */
static IrMap map(const Model *t, const char *s) {
  IrMap m = ir_map_zero(0);
  while (*s) {
    m.axis[m.rank].index = -1;
    for (; *s && *s != ','; s += *s == '+') {
      while (*s == ' ') s++;
      if (*s == '@') {
        m.axis[m.rank].index = (int)strtol(s + 1, (char **)(uintptr_t)&s, 10);
      } else if (isalpha((unsigned char)*s)) {
        size_t len = 0;
        while (isalnum((unsigned char)s[len])) len++;
        int d = dim(t, s, len);
        s += len;
        m.axis[m.rank].coef[d] = *s == '*' ? strtoll(s + 1, (char **)(uintptr_t)&s, 10) : 1;
      } else {
        m.axis[m.rank].cst += strtoll(s, (char **)(uintptr_t)&s, 10);
      }
    }
    m.rank++;
    if (*s) s++;
  }
  return m;
}

void kernel(Model *t, int nin, const In *in, int nout, const Out *out) {
  IrValue *values[8];
  IrMap in_maps[8], out_maps[8];
  const IrAttr *pads[8];
  const IrType *types[8];
  for (int i = 0; i < nin; i++) {
    values[i] = in[i].value;
    in_maps[i] = map(t, in[i].map);
    pads[i] = in[i].pad ? ir_attr_float(t->m, strtod(in[i].pad, NULL)) : NULL;
  }
  for (int i = 0; i < nout; i++) {
    types[i] = out[i].type;
    out_maps[i] = map(t, out[i].map);
  }
  t->kernel = ir_kernel_new(&t->at, t->ndims, t->names, t->extents, nin, values, in_maps, pads,
                            nout, types, out_maps);
  t->body = ir_builder_at_end(t->kernel->region, t->at.loc);
}

IrValue *arg(Model *t, int i, DType as) {
  return ir_build_cast(&t->body, t->kernel->region->args[i], as);
}
IrValue *un(Model *t, IrOpKind k, IrValue *x) {
  return ir_build1(&t->body, k, x);
}
IrValue *bin(Model *t, IrOpKind k, IrValue *a, IrValue *b) {
  return ir_build2(&t->body, k, a, b);
}
IrValue *num(Model *t, DType d, double v) {
  return ir_build_scalar(&t->body, d, v);
}
IrValue *reduce(Model *t, const char *op, IrValue *x, const char *over) {
  int64_t d[IR_MAX_DIMS];
  int n = 0;
  for (const char *s = over; *s; s += *s == ' ') {
    size_t len = strcspn(s, " ");
    d[n++] = dim(t, s, len);
    s += len;
  }
  IrAttrInit attrs[] = {{"op", ir_attr_str(t->m, op)}, {"over", ir_attr_ints(t->m, d, (size_t)n)}};
  return ir_result(ir_build(&t->body, IR_OP_REDUCE, 1, &x, 2, attrs), 0);
}
IrValue *index_of(Model *t, const char *d) {
  IrAttrInit a = {"dim", ir_attr_int(t->m, dim(t, d, strlen(d)))};
  return ir_result(ir_build(&t->body, IR_OP_INDEX, 0, NULL, 1, &a), 0);
}
IrValue *where(Model *t, IrValue *c, IrValue *a, IrValue *b) {
  IrValue *v[] = {c, a, b};
  return ir_result(ir_build(&t->body, IR_OP_WHERE, 3, v, 0, NULL), 0);
}
void yield(Model *t, int n, IrValue *const *v) {
  ir_build_typed(&t->body, IR_OP_YIELD, n, v, 0, NULL, 0, NULL);
}
void yield1(Model *t, IrValue *v) {
  yield(t, 1, &v);
}

void returns(Model *t, int n, IrValue *const *v) {
  ir_build_typed(&t->at, IR_OP_RETURN, n, v, 0, NULL, 0, NULL);
  t->f->nresults = n;
  t->f->result_names = ARENA_ARRAY(t->m->arena, const char *, n);
  for (int i = 0; i < n; i++) t->f->result_names[i] = "r";
}

HostProgram *compile(Model *t) {
  HostProgram *p = host_compile(t->f, t->diag);
  if (!p) diag_print_all(t->diag, stderr, false);
  assert_non_null(p);
  return p;
}

/* Compiles and runs once. */
void run(Model *t, const void *const *in, void *const *out) {
  HostProgram *p = compile(t);
  assert_true(host_run(p, in, out, t->diag));
  host_free(p);
}

void returns_kernel(Model *t) {
  IrValue *v[8] = {0};
  for (int i = 0; i < t->kernel->nresults; i++) v[i] = ir_result(t->kernel, i);
  returns(t, t->kernel->nresults, v);
}

/* ---- data ---- */

float *floats(Rng *r, size_t n) {
  float *x = mem_alloc(n * sizeof *x);
  for (size_t i = 0; i < n; i++) x[i] = (float)rng_normal(r);
  return x;
}
int8_t *bytes(Rng *r, size_t n) {
  int8_t *x = mem_alloc(n);
  for (size_t i = 0; i < n; i++) x[i] = (int8_t)rng_range(r, -128, 127);
  return x;
}
void near(double got, double want, double bound, size_t at) {
  if (number_near(got, want, bound)) return;
  fail_msg("element %zu is %.9g, want %.9g within %.3g", at, got, want, bound);
}
