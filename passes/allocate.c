/* allocate: numbers for everything symbolic in a section: scratchpad and ACC addresses, scalar
 * registers (by last use in the block that makes them), descriptor registers, semaphores. Level:
 * program. Adds addr on buffers, id on registers, descriptors and semaphores. Needs: pipeline,
 * sync. */
#include "passes/sched.h"
#include "support/ptrmap.h"
#include <string.h>

enum { USABLE_REGS = ISA_REGS - 1 }; /* the last one is the backend's scratch */

typedef struct {
  PassContext *pc;
  IrOp *section;
  uint32_t free_regs;
  int64_t spm, acc;
  int descs, sems;
  PtrMap *last_use; /* of a register op */
  bool failed;
} Alloc;

static void set_int(IrOp *op, const char *name, int64_t v) {
  ir_set_attr(op, name, ir_attr_int(ir_op_module(op), v));
}

static void run_out(Alloc *a, IrOp *op, const char *what, int64_t has) {
  if (!a->failed)
    diag_error(a->pc->diag, op->loc.line ? op->loc : a->section->loc, "E-allocate",
               "this kernel's program needs more than the %lld %s of machine '%s'", (long long)has,
               what, a->pc->machine->name);
  a->failed = true;
}

/* Notes, for every register, the last op of its own block in which it is used, at any depth. */
static void find_last_uses(Alloc *a, const IrBlock *b) {
  for (const IrOp *op = b->first; op; op = op->next) {
    for (int i = 0; i < op->noperands; i++) {
      const IrOp *def = ir_operand(op, i)->def, *user = op;
      if (!ir_is(def, IR_OP_REG)) continue;
      while (user->parent != def->parent) user = user->parent->owner;
      ptr_map_put(&a->last_use, def, (void *)(uintptr_t)user);
    }
    if (op->region) find_last_uses(a, op->region);
  }
}

static void place(Alloc *a, IrOp *op) {
  const MachineDesc *m = a->pc->machine;
  switch (op->kind) {
  case IR_OP_BUFFER: {
    int64_t bytes = ir_get_int(op, "bytes", 0) * ir_get_int(op, "slots", 1);
    bool acc = !strcmp(ir_get_str(op, "space", ""), "acc");
    int64_t *top = acc ? &a->acc : &a->spm;
    int64_t align = acc ? 1 : ir_get_int(op, "align", 64);
    *top = round_up(*top, align > 0 ? align : 1);
    set_int(op, "addr", *top);
    *top += bytes;
    if (*top > (acc ? m->acc_rows : m->spm_bytes))
      run_out(a, op, acc ? "accumulator rows" : "scratchpad bytes",
              acc ? m->acc_rows : m->spm_bytes);
    break;
  }
  case IR_OP_DESC:
    set_int(op, "id", a->descs++);
    if (a->descs > ISA_DESCS) run_out(a, op, "descriptor registers", ISA_DESCS);
    break;
  case IR_OP_SEM:
    set_int(op, "id", a->sems++);
    if (a->sems > ISA_SEMS) run_out(a, op, "semaphores", ISA_SEMS);
    break;
  case IR_OP_REG: {
    int r = 0;
    while (r < USABLE_REGS && !(a->free_regs >> r & 1)) r++;
    if (r == USABLE_REGS) {
      run_out(a, op, "scalar registers", USABLE_REGS);
      r = 0;
    }
    a->free_regs &= ~(1u << r);
    set_int(op, "id", r);
    break;
  }
  default: break;
  }
}

static void allocate_block(Alloc *a, IrBlock *b) {
  enum { MAX_LIVE = ISA_REGS };
  struct {
    IrOp *reg;
    const IrOp *last;
  } live[MAX_LIVE];
  int n = 0;
  for (IrOp *op = b->first; op && !a->failed; op = op->next) {
    place(a, op);
    if (op->kind == IR_OP_REG && n < MAX_LIVE && !a->failed) {
      const IrOp *last = ptr_map_get(a->last_use, op);
      live[n].reg = op;
      live[n++].last = last ? last : op;
    }
    if (op->region) allocate_block(a, op->region);
    for (int i = 0; i < n;) {
      if (live[i].last != op) {
        i++;
        continue;
      }
      a->free_regs |= 1u << ir_get_int(live[i].reg, "id", 0);
      live[i] = live[--n];
    }
  }
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  for (IrOp *op = f->body->first; op; op = op->next) {
    if (op->kind != IR_OP_SECTION) continue;
    Alloc a = {.pc = pc, .section = op, .free_regs = (1u << USABLE_REGS) - 1};
    find_last_uses(&a, op->region);
    allocate_block(&a, op->region);
    ptr_map_free(&a.last_use);
    if (a.failed) return PASS_FAILED;
  }
  return PASS_OK;
}

const Pass pass_allocate = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(Pass),
    .name = "allocate",
    .help = "scratchpad addresses, registers, descriptors and semaphores by number",
    .from = IR_PROGRAM,
    .to = IR_PROGRAM,
    .options = NULL,
    .run = run};
