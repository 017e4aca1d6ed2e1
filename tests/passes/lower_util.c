/* Running one-op graphs for test_lower. */
#include "tests/passes/lower_util.h"
#include "backend/host/host.h"
#include "passes/passes.h"
#include "tests/support/compare.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

double tensor_at(const Tensor *t, const int64_t *index) {
  int64_t at = 0;
  for (int i = 0; i < t->type->rank; i++) at = at * t->type->shape[i] + index[i];
  return t->v[at];
}

double tensor_broadcast(const Tensor *t, const IrType *to, const int64_t *index) {
  int64_t own[IR_MAX_RANK];
  for (int i = 0; i < t->type->rank; i++)
    own[i] = t->type->shape[i] == 1 ? 0 : index[to->rank - t->type->rank + i];
  return tensor_at(t, own);
}

/* ---- building ---- */

typedef struct {
  DiagEngine *diag;
  IrModule *m;
  IrFunc *f;
  IrOp *op;
  int nin;
  IrValue *in[MAX_INPUTS];
  Tensor t[MAX_INPUTS];
  void *data[MAX_INPUTS]; /* as the machine stores them; NULL for constants */
  int nresults;
  const IrType *types[MAX_RESULTS]; /* of the results */
  double *want[MAX_RESULTS];
  Arena *arena;
} Run;

static const IrAttr *attr_of(IrModule *m, const AttrSpec *a) {
  const IrAttr *pairs[8];
  switch (a->kind) {
  case 'i': return ir_attr_ints(m, a->ints, (size_t)a->n);
  case 'o': return ir_attr_int(m, a->ints[0]);
  case 'f': return ir_attr_float(m, a->f);
  case 's': return ir_attr_str(m, a->s);
  case 'b': return ir_attr_bool(m, a->ints[0] != 0);
  case 'd': return ir_attr_dtype(m, (DType)a->ints[0]);
  default:
    for (int i = 0; i < a->n / 2; i++) pairs[i] = ir_attr_ints(m, &a->ints[2 * i], 2);
    return ir_attr_array(m, pairs, (size_t)(a->n / 2));
  }
}

static const IrType *parse_type(IrModule *m, const char *s) {
  const char *bracket = strchr(s, '[');
  char name[8] = {0};
  memcpy(name, s, (size_t)(bracket - s));
  DType dtype = DT_F32;
  dtype_parse(name, &dtype);
  int64_t shape[IR_MAX_RANK];
  int rank = 0;
  for (const char *p = bracket + 1; *p && *p != ']';) {
    char *end;
    shape[rank++] = strtoll(p, &end, 10);
    p = *end == ',' ? end + 1 : end;
  }
  return ir_type_tensor(m, dtype, rank, shape);
}

/* Values a machine type holds exactly, so that the reference sees what the kernel reads. */
static void fill(Run *r, int i, Rng *rng, double lo, double hi) {
  const IrType *t = r->t[i].type;
  size_t n = (size_t)ir_type_elements(t);
  r->data[i] = arena_alloc(r->arena, n * dtype_size(t->dtype) + 1);
  for (size_t k = 0; k < n; k++) {
    double v = dtype_is_float(t->dtype) ? lo + (hi - lo) * rng_uniform(rng)
                                        : (double)rng_range(rng, (int64_t)lo, (int64_t)hi);
    dtype_set(t->dtype, r->data[i], k, v);
    r->t[i].v[k] = dtype_get(t->dtype, r->data[i], k);
  }
}

static void make_inputs(Run *r, const Case *c, Rng *rng) {
  char *copy = arena_strdup(r->arena, c->inputs), *save = NULL;
  double lo[MAX_INPUTS], hi[MAX_INPUTS], splat[MAX_INPUTS];
  bool is_splat[MAX_INPUTS] = {0};
  const IrType *types[MAX_INPUTS];
  for (char *w = strtok_r(copy, " ", &save); w; w = strtok_r(NULL, " ", &save)) {
    char *colon = strchr(w, ':');
    if (*w == '=') {
      splat[r->nin - 1] = strtod(w + 1, NULL);
      is_splat[r->nin - 1] = true;
    } else if (colon) {
      lo[r->nin - 1] = strtod(w, NULL);
      hi[r->nin - 1] = strtod(colon + 1, NULL);
    } else {
      types[r->nin] = parse_type(r->m, w);
      bool real = dtype_is_float(types[r->nin]->dtype);
      lo[r->nin] = real ? -2 : -100;
      hi[r->nin++] = real ? 2 : 100;
    }
  }
  for (int i = 0; i < r->nin; i++) {
    r->t[i].type = types[i];
    size_t n = (size_t)ir_type_elements(types[i]);
    r->t[i].v = ARENA_ARRAY(r->arena, double, n);
    if (is_splat[i]) {
      IrBuilder b = ir_builder_at_end(r->f->body, SRC_LOC_NONE);
      r->in[i] = ir_build_splat(&b, types[i], splat[i]);
      for (size_t k = 0; k < n; k++) r->t[i].v[k] = splat[i];
    } else {
      r->in[i] = ir_block_add_arg(r->f->body, types[i], NULL);
      fill(r, i, rng, lo[i], hi[i]);
    }
  }
}

static bool build(Run *r, const Case *c, Rng *rng) {
  r->f = ir_func_new(r->m, "test", IR_GRAPH);
  make_inputs(r, c, rng);
  IrBuilder b = ir_builder_at_end(r->f->body, SRC_LOC_NONE);
  IrAttrInit attrs[6];
  int n = 0;
  for (; n < 6 && c->attrs[n].name; n++)
    attrs[n] = (IrAttrInit){c->attrs[n].name, attr_of(r->m, &c->attrs[n])};
  r->op = ir_build(&b, c->kind, r->nin, r->in, n, attrs);
  if (!r->op) return false;
  IrValue *results[MAX_RESULTS];
  r->f->nresults = r->op->nresults;
  r->f->result_names = ARENA_ARRAY(r->m->arena, const char *, r->op->nresults);
  for (int i = 0; i < r->op->nresults; i++) {
    results[i] = &r->op->results[i];
    r->f->result_names[i] = ir_str(r->m, arena_printf(r->arena, "r%d", i));
  }
  ir_build_typed(&b, IR_OP_RETURN, r->op->nresults, results, 0, NULL, 0, NULL);
  return true;
}

/* ---- running ---- */

static bool lower(Run *r) {
  PassManager *pm = pass_manager_new(r->m, machine_default());
  PassRunOptions options = {.verify_each = true, .stop_after = -1};
  for (const Pass *const *p = builtin_passes; *p; p++) pass_manager_register(pm, *p);
  bool ok = pass_manager_add_pipeline(pm, "lower") && pass_manager_run(pm, &options);
  pass_manager_free(pm);
  return ok;
}

/* By the definition, before lowering erases the op. */
static void expect(Run *r, const Case *c) {
  for (int k = 0; k < r->op->nresults; k++) {
    const IrType *t = r->op->results[k].type;
    int64_t n = ir_type_elements(t), index[IR_MAX_RANK] = {0};
    r->types[k] = t;
    r->want[k] = ARENA_ARRAY(r->arena, double, n);
    for (int64_t i = 0; i < n; i++) {
      int64_t rest = i;
      for (int a = t->rank; a-- > 0; rest /= t->shape[a]) index[a] = rest % t->shape[a];
      r->want[k][i] = c->ref(r->op, r->t, k, index);
    }
  }
  r->nresults = r->op->nresults;
}

static bool compare(const Run *r, const Case *c, int result, const void *out) {
  for (int64_t i = 0; i < ir_type_elements(r->types[result]); i++) {
    double got = dtype_get(r->types[result]->dtype, out, (size_t)i), want = r->want[result][i];
    if (number_near(got, want, c->tolerance * (1 + fabs(want)))) continue;
    printf("result %d element %lld is %.9g, expected %.9g\n", result, (long long)i, got, want);
    return false;
  }
  return true;
}

static bool run_lowered(Run *r, const Case *c) {
  const void *inputs[MAX_INPUTS];
  void *outputs[MAX_RESULTS];
  int ninputs = 0;
  for (int i = 0; i < r->nin; i++)
    if (r->data[i]) inputs[ninputs++] = r->data[i];
  for (int i = 0; i < r->nresults; i++)
    outputs[i] = arena_alloc(r->arena, (size_t)ir_type_bytes(r->types[i]) + 1);
  HostProgram *p = host_compile(r->f, r->diag);
  bool ok = p && host_run(p, inputs, outputs, r->diag);
  for (int i = 0; i < r->nresults && ok; i++) ok = compare(r, c, i, outputs[i]);
  host_free(p);
  return ok;
}

static bool run_case(const Case *c, Rng *rng) {
  Run r = {.diag = diag_new(), .arena = arena_new()};
  r.m = ir_module_new(r.diag);
  bool ok = build(&r, c, rng);
  if (ok) expect(&r, c);
  ok = ok && lower(&r) && run_lowered(&r, c);
  diag_print_all(r.diag, stdout, false);
  ir_module_free(r.m);
  arena_free(r.arena);
  diag_free(r.diag);
  return ok;
}

int run_cases(const Case *cases, int n) {
  int failed = 0;
  for (int i = 0; i < n; i++) {
    Rng rng;
    rng_seed(&rng, (uint64_t)i + 1);
    if (run_case(&cases[i], &rng)) continue;
    printf("case %d: %s %s failed\n", i, ir_op_info(cases[i].kind)->name, cases[i].inputs);
    failed++;
  }
  printf("%d of %d cases pass\n", n - failed, n);
  return failed;
}
