/* plan: a DRAM address for every tensor. Inputs, outputs, states and constants have their own;
 * temporaries share by liveness (first fit over the order of kernels, as in linear-scan register
 * allocation). Level: nest. Adds addr on constants, weights and states, addrs on kernels, arg_addrs
 * and dram_bytes on the return. Needs: legalize (every returned or written value is a kernel's own
 * result). */
#include "passes/sched.h"
#include "support/ptrmap.h"
#include <stdlib.h>
#include <string.h>

enum { ALIGN = 64 };

/* Memory in use by a temporary, or not in use, from begin to end. */
typedef struct Range {
  int64_t begin, end;
  struct Range *next; /* of those that are freed at the same time */
} Range;

typedef struct {
  const char *what, *name;
  int64_t bytes;
  SrcLoc loc;
} Item;

typedef struct {
  PassContext *pc;
  IrFunc *f;
  PtrMap *positions; /* of every op, from 1 */
  PtrMap *states;    /* the first state op of a name, by name */
  int64_t top;       /* first address above the fixed tensors */
  int64_t end;       /* first address above everything */
  Range *gaps;       /* free memory above top, by address; the last one has no end */
  int ngaps;
  Range **read_last; /* temporaries by the position of the last op that reads them */
  Item *items;
  int nitems;
} Plan;

static int64_t place_fixed(Plan *p, const char *what, const char *name, int64_t bytes, SrcLoc loc) {
  int64_t addr = p->top;
  p->items[p->nitems++] = (Item){what, name ? name : "", bytes, loc};
  p->top += round_up(bytes, ALIGN);
  if (p->top > p->end) p->end = p->top;
  return addr;
}

static void set_addr(Plan *p, IrOp *op, int64_t addr) {
  ir_set_attr(op, "addr", ir_attr_int(p->pc->module, addr));
}

static const char *constant_name(const IrOp *op) {
  const IrData *d = ir_attr(op, "data") ? ir_attr(op, "data")->data : NULL;
  return d && d->name ? d->name : op->results[0].name;
}

static void place_inputs_constants_states(Plan *p) {
  IrBlock *b = p->f->body;
  IrModule *m = p->pc->module;
  int64_t *addrs = ARENA_ARRAY(p->pc->scratch, int64_t, b->nargs + 1);
  for (int i = 0; i < b->nargs; i++)
    addrs[i] =
        place_fixed(p, "input", b->args[i]->name, ir_type_bytes(b->args[i]->type), p->f->loc);
  ir_set_attr(b->last, "arg_addrs", ir_attr_ints(m, addrs, (size_t)b->nargs));
  for (IrOp *op = b->first; op; op = op->next) {
    if (op->kind == IR_OP_CONSTANT || op->kind == IR_OP_WEIGHT) {
      if (op->results[0].uses)
        set_addr(p, op,
                 place_fixed(p, "weight", constant_name(op), ir_type_bytes(op->results[0].type),
                             op->loc));
    } else if (op->kind == IR_OP_STATE) {
      const char *name = ir_get_str(op, "name", "");
      IrOp *first = ptr_map_get(p->states, name);
      set_addr(p, op,
               first ? ir_get_int(first, "addr", 0)
                     : place_fixed(p, "state", name, ir_type_bytes(op->results[0].type), op->loc));
      if (!first) ptr_map_put(&p->states, name, op);
    }
  }
}

static void number_ops(Plan *p) {
  uintptr_t at = 0;
  for (const IrOp *op = p->f->body->first; op; op = op->next)
    ptr_map_put_int(&p->positions, op, ++at);
}

static uintptr_t last_use(const Plan *p, const IrValue *v) {
  uintptr_t last = ptr_map_get_int(p->positions, v->def);
  for (const IrUse *u = v->uses; u; u = u->next) {
    uintptr_t at = ir_is(u->op, IR_OP_RESHAPE) ? last_use(p, &u->op->results[0])
                                               : ptr_map_get_int(p->positions, u->op);
    if (at > last) last = at;
  }
  return last;
}

/* Makes a range free, joined with the gaps beside it. */
static void give_back(Plan *p, const Range *r) {
  int low = 0, high = p->ngaps; /* the first gap above r */
  while (low < high) {
    int middle = low + (high - low) / 2;
    if (p->gaps[middle].begin < r->begin)
      low = middle + 1;
    else
      high = middle;
  }
  bool below = low > 0 && p->gaps[low - 1].end == r->begin, above = p->gaps[low].begin == r->end;
  if (below && above) {
    p->gaps[low - 1].end = p->gaps[low].end;
    memmove(&p->gaps[low], &p->gaps[low + 1], sizeof *p->gaps * (size_t)(--p->ngaps - low));
  } else if (below) {
    p->gaps[low - 1].end = r->end;
  } else if (above) {
    p->gaps[low].begin = r->begin;
  } else {
    memmove(&p->gaps[low + 1], &p->gaps[low], sizeof *p->gaps * (size_t)(p->ngaps++ - low));
    p->gaps[low] = *r;
  }
}

/* Takes the lowest free range of so many bytes. */
static int64_t first_fit(Plan *p, int64_t bytes) {
  int i = 0;
  while (p->gaps[i].end - p->gaps[i].begin < bytes) i++;
  int64_t addr = p->gaps[i].begin;
  p->gaps[i].begin += bytes;
  if (p->gaps[i].begin == p->gaps[i].end)
    memmove(&p->gaps[i], &p->gaps[i + 1], sizeof *p->gaps * (size_t)(--p->ngaps - i));
  return addr;
}

/* Where v is returned or written to a state, also behind reshapes; NULL for a temporary. */
static const IrUse *fixed_use(const IrValue *v) {
  for (const IrUse *u = v->uses; u; u = u->next) {
    if (u->op->kind == IR_OP_STATE_WRITE || u->op->kind == IR_OP_RETURN) return u;
    const IrUse *behind = ir_is(u->op, IR_OP_RESHAPE) ? fixed_use(&u->op->results[0]) : NULL;
    if (behind) return behind;
  }
  return NULL;
}

/* Places the output or written state a kernel result is; false for a temporary. */
static bool fixed_result(Plan *p, const IrValue *v, int64_t *addr) {
  const IrUse *u = fixed_use(v);
  if (!u) return false;
  int64_t bytes = ir_type_bytes(v->type);
  if (u->op->kind == IR_OP_RETURN) {
    const char *name = u->index < p->f->nresults ? p->f->result_names[u->index] : NULL;
    *addr = place_fixed(p, "output", name, bytes, v->def->loc);
    return true;
  }
  const char *name = ir_get_str(u->op, "name", "");
  IrOp *state = ptr_map_get(p->states, name);
  *addr = state ? ir_get_int(state, "addr", 0) : place_fixed(p, "state", name, bytes, u->op->loc);
  set_addr(p, u->op, *addr);
  return true;
}

static int64_t place_temporary(Plan *p, const IrValue *v) {
  int64_t bytes = round_up(ir_type_bytes(v->type), ALIGN), addr = first_fit(p, bytes);
  uintptr_t last = last_use(p, v);
  Range *r = ARENA_NEW(p->pc->scratch, Range);
  *r = (Range){addr, addr + bytes, p->read_last[last]};
  p->read_last[last] = r;
  if (addr + bytes > p->end) p->end = addr + bytes;
  p->items[p->nitems++] = (Item){"temporary", v->name ? v->name : "", bytes, v->def->loc};
  return addr;
}

/* The results that have an address of their own: outputs and states. *fixed: 1 + address by value.
 */
static void place_fixed_results(Plan *p, PtrMap **fixed) {
  for (IrOp *op = p->f->body->first; op; op = op->next)
    for (int r = 0; r < op->nresults && op->kind == IR_OP_KERNEL; r++) {
      int64_t addr;
      if (fixed_result(p, &op->results[r], &addr))
        ptr_map_put_int(fixed, &op->results[r], (uintptr_t)addr + 1);
    }
}

/* Temporaries lie above what is fixed. What an op reads last is in use while it writes. */
static void place_results(Plan *p) {
  PtrMap *fixed = NULL;
  uintptr_t at = 0, freed = 0;
  place_fixed_results(p, &fixed);
  p->gaps[p->ngaps++] = (Range){.begin = p->top, .end = INT64_MAX};
  for (IrOp *op = p->f->body->first; op; op = op->next, at++) {
    if (op->kind != IR_OP_KERNEL) continue;
    for (; freed <= at; freed++)
      for (const Range *r = p->read_last[freed]; r; r = r->next) give_back(p, r);
    int64_t *addrs = ARENA_ARRAY(p->pc->scratch, int64_t, op->nresults);
    for (int r = 0; r < op->nresults; r++) {
      uintptr_t known = ptr_map_get_int(fixed, &op->results[r]);
      addrs[r] = known ? (int64_t)(known - 1) : place_temporary(p, &op->results[r]);
    }
    ir_set_attr(op, "addrs", ir_attr_ints(p->pc->module, addrs, (size_t)op->nresults));
  }
  ptr_map_free(&fixed);
}

static int by_bytes(const void *a, const void *b) {
  const Item *x = a, *y = b;
  return x->bytes < y->bytes ? 1 : x->bytes > y->bytes ? -1 : 0;
}

static PassStatus too_large(Plan *p) {
  enum { SHOWN = 24 };
  int64_t rest = 0;
  diag_error(p->pc->diag, p->f->loc, "E-dram",
             "the model needs %lld bytes of DRAM, machine '%s' has %lld: use a smaller model or "
             "batch, or a machine with more dram_bytes",
             (long long)p->end, p->pc->machine->name, (long long)p->pc->machine->dram_bytes);
  qsort(p->items, (size_t)p->nitems, sizeof *p->items, by_bytes);
  for (int i = 0; i < p->nitems; i++) {
    if (i < SHOWN)
      diag_note(p->pc->diag, p->items[i].loc, "%s%s%s: %lld bytes", p->items[i].what,
                p->items[i].name[0] ? " " : "", p->items[i].name, (long long)p->items[i].bytes);
    else
      rest += p->items[i].bytes;
  }
  if (rest)
    diag_note(p->pc->diag, SRC_LOC_NONE, "%d further tensors: %lld bytes", p->nitems - SHOWN,
              (long long)rest);
  return PASS_FAILED;
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  Plan p = {.pc = pc, .f = f};
  const IrOp *shared = legalize_missing(pc, f);
  if (shared) {
    diag_error(pc->diag, shared->loc, "E-plan",
               "what is %s has no storage of its own: run the pass 'legalize' before 'plan'",
               shared->kind == IR_OP_RETURN ? "returned" : "written to a state");
    return PASS_FAILED;
  }
  int n = f->body->nargs;
  for (IrOp *op = f->body->first; op; op = op->next) n += op->nresults + 1;
  p.gaps = ARENA_ARRAY(pc->scratch, Range, n + 2);
  p.read_last = ARENA_ARRAY(pc->scratch, Range *, n + 2);
  p.items = ARENA_ARRAY(pc->scratch, Item, n + 1);
  number_ops(&p);
  place_inputs_constants_states(&p);
  place_results(&p);
  ptr_map_free(&p.positions);
  ptr_map_free(&p.states);
  ir_set_attr(f->body->last, "dram_bytes", ir_attr_int(pc->module, p.end));
  pass_count(pc, "DRAM bytes", p.end);
  return p.end > pc->machine->dram_bytes ? too_large(&p) : PASS_OK;
}

const Pass pass_plan = {.abi = NPU_PASS_ABI,
                        .size = sizeof(Pass),
                        .name = "plan",
                        .help = "DRAM addresses, temporaries shared by liveness",
                        .from = IR_NEST,
                        .to = IR_NEST,
                        .options = NULL,
                        .run = run};
