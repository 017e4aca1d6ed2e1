/* Whether the addresses a nest carries keep its tensors apart. The pass `plan` sees to that; text
 * may say otherwise. Inputs, constants, states and outputs are there all the time, a temporary from
 * the kernel that writes it to the last that reads it. */
#include "passes/pipeline.h"
#include <stdlib.h>
#include <string.h>

#define uthash_malloc(size) mem_alloc(size)
#define uthash_free(p, size) mem_free(p)
#include <uthash.h>

typedef struct {
  const IrValue *value;
  const char *what;
  SrcLoc loc;
  int64_t lo, hi;
  int from, to; /* positions of ops */
  UT_hash_handle hh;
} Spot;

typedef struct {
  PassContext *pc;
  IrFunc *f;
  Spot *spots, *by_value;
  Spot **fixed, **temps, **alive; /* fixed by address, temps by position */
  int n, nfixed, ntemps, nalive;
} Spots;

static const char *name_of(const Spot *s) {
  return s->value->name ? s->value->name : "";
}

/* Two ops may read one state. */
static bool same_state(const Spot *a, const Spot *b) {
  const IrOp *x = a->value->def, *y = b->value->def;
  return ir_is(x, IR_OP_STATE) && ir_is(y, IR_OP_STATE) && a->lo == b->lo &&
         !strcmp(ir_get_str(x, "name", ""), ir_get_str(y, "name", ""));
}

static bool apart(Spots *p, const Spot *a, const Spot *b) {
  if (a->lo >= b->hi || b->lo >= a->hi || same_state(a, b)) return true;
  diag_error(
      p->pc->diag, a->loc, "E-pipeline",
      "%s%s%s at DRAM bytes %lld..%lld overlaps %s%s%s at %lld..%lld, which is needed at the "
      "same time: leave the addresses out and run the pass 'plan'",
      a->what, name_of(a)[0] ? " %" : "", name_of(a), (long long)a->lo, (long long)a->hi - 1,
      b->what, name_of(b)[0] ? " %" : "", name_of(b), (long long)b->lo, (long long)b->hi - 1);
  return false;
}

static bool add_spot(Spots *p, const IrValue *v, const char *what, SrcLoc loc, int64_t addr,
                     int from) {
  int64_t bytes = ir_type_bytes(v->type), end;
  if (addr < 0 || !add_i64(addr, bytes, &end)) {
    diag_error(p->pc->diag, loc, "E-pipeline", "%s has no place at address %lld", what,
               (long long)addr);
    return false;
  }
  Spot *s = &p->spots[p->n++];
  *s =
      (Spot){.value = v, .what = what, .loc = loc, .lo = addr, .hi = end, .from = from, .to = from};
  if (from < 0)
    p->fixed[p->nfixed++] = s;
  else
    p->temps[p->ntemps++] = s;
  HASH_ADD_PTR(p->by_value, value, s);
  return true;
}

static bool is_output(const IrFunc *f, const IrValue *v) {
  const IrOp *ret = f->body->last;
  for (int i = 0; i < ret->noperands; i++)
    if (sched_storage(ir_operand(ret, i)) == v) return true;
  return false;
}

/* The state a kernel's result is written to, behind reshapes; NULL when there is none. */
static const IrOp *state_written(const IrValue *v) {
  for (const IrUse *u = v->uses; u; u = u->next) {
    if (u->op->kind == IR_OP_STATE_WRITE) return u->op;
    const IrOp *behind = ir_is(u->op, IR_OP_RESHAPE) ? state_written(&u->op->results[0]) : NULL;
    if (behind) return behind;
  }
  return NULL;
}

static bool add_results(Spots *p, const IrOp *k, int at) {
  int64_t *addrs = ARENA_ARRAY(p->pc->scratch, int64_t, k->nresults + 1);
  if (ir_get_ints(k, "addrs", addrs, k->nresults + 1) != k->nresults) return true; /* said later */
  for (int i = 0; i < k->nresults; i++) {
    const IrValue *v = &k->results[i];
    const IrOp *state = state_written(v);
    if (state && ir_get_int(state, "addr", -1) != addrs[i]) {
      diag_error(
          p->pc->diag, k->loc, "E-pipeline",
          "a result of this kernel is the state `%s` and must be at its address %lld, not at "
          "%lld",
          ir_get_str(state, "name", ""), (long long)ir_get_int(state, "addr", -1),
          (long long)addrs[i]);
      return false;
    }
    if (state) continue;
    bool output = is_output(p->f, v);
    if (!add_spot(p, v, output ? "the output" : "the temporary", k->loc, addrs[i],
                  output ? -1 : at))
      return false;
  }
  return true;
}

static bool add_all(Spots *p) {
  const IrBlock *b = p->f->body;
  const IrAttr *args = ir_attr(b->last, "arg_addrs");
  for (int i = 0; i < b->nargs; i++)
    if (!add_spot(p, b->args[i], "the input", p->f->loc, args->array.items[i]->i, -1)) return false;
  int at = 0;
  for (const IrOp *op = b->first; op; op = op->next, at++) {
    for (int i = 0; i < op->noperands; i++) {
      Spot *s;
      const IrValue *v = sched_storage(ir_operand(op, i));
      HASH_FIND_PTR(p->by_value, &v, s);
      if (s) s->to = at;
    }
    bool constant = op->kind == IR_OP_CONSTANT || op->kind == IR_OP_WEIGHT;
    if (op->kind == IR_OP_KERNEL && !add_results(p, op, at)) return false;
    if ((constant && ir_attr(op, "addr")) || op->kind == IR_OP_STATE)
      if (!add_spot(p, &op->results[0], constant ? "the constant" : "the state", op->loc,
                    ir_get_int(op, "addr", -1), -1))
        return false;
  }
  return true;
}

static int by_address(const void *x, const void *y) {
  const Spot *a = *(Spot *const *)x, *b = *(Spot *const *)y;
  if (a->lo != b->lo) return a->lo < b->lo ? -1 : 1;
  return a->hi < b->hi ? -1 : a->hi > b->hi;
}

/* Against the fixed ones, which are apart from each other and sorted. */
static bool apart_from_fixed(Spots *p, const Spot *t) {
  int lo = 0, hi = p->nfixed;
  while (lo < hi) { /* the first that ends beyond the start of t */
    int mid = (lo + hi) / 2;
    if (p->fixed[mid]->hi > t->lo)
      hi = mid;
    else
      lo = mid + 1;
  }
  return lo == p->nfixed || apart(p, t, p->fixed[lo]);
}

static bool all_apart(Spots *p) {
  qsort(p->fixed, (size_t)p->nfixed, sizeof *p->fixed, by_address);
  for (int i = 1; i < p->nfixed; i++)
    if (!apart(p, p->fixed[i], p->fixed[i - 1])) return false;
  for (int i = 0; i < p->ntemps; i++) {
    Spot *t = p->temps[i];
    int n = 0;
    for (int k = 0; k < p->nalive; k++)
      if (p->alive[k]->to >= t->from) p->alive[n++] = p->alive[k];
    p->nalive = n;
    if (!apart_from_fixed(p, t)) return false;
    for (int k = 0; k < n; k++)
      if (!apart(p, t, p->alive[k])) return false;
    p->alive[p->nalive++] = t;
  }
  return true;
}

bool plan_check(PassContext *pc, IrFunc *f) {
  const IrAttr *args = ir_attr(f->body->last, "arg_addrs");
  int n = f->body->nargs;
  if (n && (!args || args->kind != IR_ATTR_ARRAY || args->array.n != (size_t)n)) {
    diag_error(pc->diag, f->body->last->loc, "E-pipeline",
               "arg_addrs must hold an address for each of the %d inputs: run the pass 'plan'", n);
    return false;
  }
  for (const IrOp *op = f->body->first; op; op = op->next) n += op->nresults;
  Spots p = {.pc = pc,
             .f = f,
             .spots = ARENA_ARRAY(pc->scratch, Spot, n + 1),
             .fixed = ARENA_ARRAY(pc->scratch, Spot *, n + 1),
             .temps = ARENA_ARRAY(pc->scratch, Spot *, n + 1),
             .alive = ARENA_ARRAY(pc->scratch, Spot *, n + 1)};
  bool ok = add_all(&p) && all_apart(&p);
  HASH_CLEAR(hh, p.by_value);
  return ok;
}
