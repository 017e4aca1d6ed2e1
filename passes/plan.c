/* plan: a DRAM address for every tensor. Inputs, outputs, states and constants have their own;
 * temporaries share by liveness (first fit over the order of kernels, as in linear-scan register
 * allocation). Level: nest. Adds addr on constants, weights and states, addrs on kernels, arg_addrs
 * and dram_bytes on the return. Needs: legalize (every returned or written value is a kernel's own
 * result). */
#include "passes/sched.h"
#include <stdlib.h>
#include <string.h>

#define uthash_malloc(size) mem_alloc(size)
#define uthash_free(p, size) mem_free(p)
#include <uthash.h>

enum { ALIGN = 64 };

typedef struct {
  const IrValue *value; /* kernel result */
  int64_t addr, bytes;
  int from, to; /* op positions */
} Temp;

typedef struct {
  const char *what, *name;
  int64_t bytes;
  SrcLoc loc;
} Item;

typedef struct Position {
  const IrOp *op;
  int at;
  UT_hash_handle hh;
} Position;

typedef struct {
  PassContext *pc;
  IrFunc *f;
  Position *positions; /* of every op, by op */
  int64_t top;         /* first address above the fixed tensors */
  int64_t end;         /* first address above everything */
  Temp *temps;
  int ntemps;
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

static IrOp *state_op(Plan *p, const char *name, const IrOp *before) {
  for (IrOp *op = p->f->body->first; op != before; op = op->next)
    if (op->kind == IR_OP_STATE && !strcmp(ir_get_str(op, "name", ""), name)) return op;
  return NULL;
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
      IrOp *first = state_op(p, name, op);
      set_addr(p, op,
               first ? ir_get_int(first, "addr", 0)
                     : place_fixed(p, "state", name, ir_type_bytes(op->results[0].type), op->loc));
    }
  }
}

/* Numbers the function's ops in their order. */
static void number_ops(Plan *p, int n) {
  Position *at = ARENA_ARRAY(p->pc->scratch, Position, n + 1);
  int i = 0;
  for (const IrOp *op = p->f->body->first; op; op = op->next, i++) {
    at[i].op = op;
    at[i].at = i;
    HASH_ADD_PTR(p->positions, op, &at[i]);
  }
}

static int position_of(const Plan *p, const IrOp *op) {
  Position *found;
  HASH_FIND_PTR(p->positions, &op, found);
  return found ? found->at : 0;
}

static int last_use(const Plan *p, const IrValue *v) {
  int last = position_of(p, v->def);
  for (const IrUse *u = v->uses; u; u = u->next) {
    int at = ir_is(u->op, IR_OP_RESHAPE) ? last_use(p, &u->op->results[0]) : position_of(p, u->op);
    if (at > last) last = at;
  }
  return last;
}

/* Lowest address where the temporary overlaps no other that lives at the same time. */
static int64_t first_fit(const Plan *p, const Temp *t) {
  int64_t addr = p->top;
  for (bool moved = true; moved;) {
    moved = false;
    for (int i = 0; i < p->ntemps; i++) {
      const Temp *o = &p->temps[i];
      bool alive = o->from <= t->to && t->from <= o->to;
      if (alive && addr < o->addr + o->bytes && o->addr < addr + t->bytes)
        addr = o->addr + o->bytes, moved = true;
    }
  }
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
  IrOp *state = state_op(p, name, NULL);
  *addr = state ? ir_get_int(state, "addr", 0) : place_fixed(p, "state", name, bytes, u->op->loc);
  set_addr(p, u->op, *addr);
  return true;
}

static void place_results(Plan *p) {
  IrBlock *b = p->f->body;
  /* fixed ones first: temporaries lie above them */
  for (int pass = 0; pass < 2; pass++)
    for (IrOp *op = b->first; op; op = op->next) {
      if (op->kind != IR_OP_KERNEL) continue;
      int64_t addrs[16] = {0};
      int n = op->nresults < 16 ? op->nresults : 16;
      if (pass == 1) ir_get_ints(op, "addrs", addrs, 16);
      for (int r = 0; r < n; r++) {
        if (pass == 0) {
          if (!fixed_result(p, &op->results[r], &addrs[r])) addrs[r] = -1;
        } else if (addrs[r] < 0) {
          Temp t = {.value = &op->results[r],
                    .bytes = round_up(ir_type_bytes(op->results[r].type), ALIGN),
                    .from = position_of(p, op),
                    .to = last_use(p, &op->results[r])};
          addrs[r] = t.addr = first_fit(p, &t);
          if (t.addr + t.bytes > p->end) p->end = t.addr + t.bytes;
          p->temps[p->ntemps++] = t;
          p->items[p->nitems++] =
              (Item){"temporary", op->results[r].name ? op->results[r].name : "", t.bytes, op->loc};
        }
      }
      ir_set_attr(op, "addrs", ir_attr_ints(p->pc->module, addrs, (size_t)n));
    }
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
  p.temps = ARENA_ARRAY(pc->scratch, Temp, n + 1);
  p.items = ARENA_ARRAY(pc->scratch, Item, n + 1);
  number_ops(&p, n);
  place_inputs_constants_states(&p);
  place_results(&p);
  HASH_CLEAR(hh, p.positions);
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
