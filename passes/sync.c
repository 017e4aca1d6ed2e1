/* sync: who may use which slot becomes semaphores. For every buffer and every engine that reads
 * what another wrote there are two: `full` counts slots written and not yet read, `empty` slots
 * free to write (as many as there are slots at first). Acquiring to write takes empty, releasing
 * gives full; acquiring to read takes full, releasing gives empty. Takes join the engine's next
 * instruction and gives its previous one where one stands in the same block; elsewhere a sync
 * instruction carries them. When a section ends every semaphore is back at zero. Level: program.
 * Needs: pipeline. Terminates: one walk. */
#include "passes/sched.h"
#include <string.h>

typedef struct {
  const IrValue *buffer;
  const char *writer; /* engine names */
  const char *reader;
  IrValue *full, *empty;
} Edge;

typedef struct {
  PassContext *pc;
  Edge *edges;
  int n, max;
} Sync;

static bool is_reader(const IrOp *op) {
  return op->kind == IR_OP_ACQUIRE && !ir_get_bool(op, "write", false);
}

static void walk(IrBlock *b, void (*visit)(void *, IrOp *), void *user) {
  for (IrOp *op = b->first, *next; op; op = next) {
    next = op->next;
    if (op->region) walk(op->region, visit, user);
    visit(user, op);
  }
}

static Edge *edge_of(Sync *s, const IrValue *buffer, const char *reader) {
  for (int i = 0; i < s->n; i++)
    if (s->edges[i].buffer == buffer && s->edges[i].reader == reader) return &s->edges[i];
  return NULL;
}

static void find_edge(void *user, IrOp *op) {
  Sync *s = user;
  if (!is_reader(op)) return;
  const char *reader = ir_get_str(op, "engine", "");
  if (edge_of(s, ir_operand(op, 0), reader) || s->n == s->max) return;
  s->edges[s->n++] = (Edge){.buffer = ir_operand(op, 0), .reader = reader};
}

/* The semaphore ops of a buffer, right after it; empty starts with all slots. */
static IrValue *make_sem(IrBuilder *b, int64_t init) {
  const IrType *t = ir_type_token(b->m, "sem");
  IrOp *op = ir_build_typed(b, IR_OP_SEM, 0, NULL, 1, &t, 1,
                            &(IrAttrInit){"init", ir_attr_int(b->m, init)});
  return ir_result(op, 0);
}

static const IrAttr *with_ref(IrModule *m, const IrAttr *old, int operand, int64_t count) {
  const IrAttr *items[8];
  size_t n = old ? old->array.n : 0;
  for (size_t i = 0; i < n; i++) items[i] = old->array.items[i];
  items[n++] = ir_attr_ints(m, (int64_t[]){operand, count}, 2);
  return ir_attr_array(m, items, n);
}
static size_t ref_count(const IrOp *op, const char *list) {
  const IrAttr *a = ir_attr(op, list);
  return a && a->kind == IR_ATTR_ARRAY ? a->array.n : 0;
}
static void add_ref(IrOp *insn, const char *list, IrValue *sem, int64_t count) {
  const IrAttr *old = ref_count(insn, list) ? ir_attr(insn, list) : NULL;
  int operand = insn->noperands;
  ir_add_operand(insn, sem);
  ir_set_attr(insn, list, with_ref(ir_op_module(insn), old, operand, count));
}

static IrOp *new_insn(IrBuilder *b, const char *mnemonic) {
  IrAttrInit attrs[] = {{"op", ir_attr_str(b->m, mnemonic)},
                        {"args", ir_attr_array(b->m, NULL, 0)}};
  return ir_build_typed(b, IR_OP_INSN, 0, NULL, 0, NULL, 2, attrs);
}

static void sequencer(IrBuilder *b, const char *mnemonic, const char *list, IrValue *sem,
                      int64_t count) {
  for (; count > 0; count -= ISA_SEM_COUNT_MAX)
    add_ref(new_insn(b, mnemonic), list, sem,
            count < ISA_SEM_COUNT_MAX ? count : ISA_SEM_COUNT_MAX);
}

static const char *engine_of(const IrOp *op) {
  IsaInsnKind kind;
  if (op->kind != IR_OP_INSN || !isa_insn_by_name(ir_get_str(op, "op", ""), &kind)) return NULL;
  return isa_engine_name(isa_insn_info(kind)->engine);
}

/* The engine's neighbouring instruction in this block that can still carry a reference; nothing
 * with a region between. */
static IrOp *neighbour(IrOp *at, const char *engine, bool forward, const char *list) {
  for (IrOp *op = forward ? at->next : at->prev; op; op = forward ? op->next : op->prev) {
    if (op->region) return NULL;
    const char *e = engine_of(op);
    bool other = (op->kind == IR_OP_ACQUIRE || op->kind == IR_OP_RELEASE) &&
                 !strcmp(ir_get_str(op, "engine", ""), engine);
    if (other && (op->kind == IR_OP_ACQUIRE) != forward)
      return NULL; /* keep the order of hand-overs */
    if (e && !strcmp(e, engine)) return ref_count(op, list) < 2 ? op : NULL;
  }
  return NULL;
}

static void attach(Sync *s, IrOp *at, const char *engine, bool take, IrValue *sem) {
  const char *list = take ? "take" : "give";
  IrOp *carrier = neighbour(at, engine, take, list);
  if (!carrier) {
    char name[16] = "sync.";
    for (int i = 0; engine[i] && i < 8; i++)
      name[5 + i] = (char)(engine[i] >= 'A' && engine[i] <= 'Z' ? engine[i] + 32 : engine[i]),
               name[6 + i] = 0;
    IrBuilder b = ir_builder_before(at);
    carrier = new_insn(&b, ir_str(b.m, name));
    pass_count(s->pc, "sync instructions", 1);
  }
  add_ref(carrier, list, sem, 1);
}

static void hand_over(void *user, IrOp *op) {
  Sync *s = user;
  if (op->kind != IR_OP_ACQUIRE && op->kind != IR_OP_RELEASE) return;
  const char *engine = ir_get_str(op, "engine", "");
  bool write = ir_get_bool(op, "write", false), take = op->kind == IR_OP_ACQUIRE;
  for (int i = 0; i < s->n; i++) {
    Edge *e = &s->edges[i];
    if (e->buffer != ir_operand(op, 0) || (!write && e->reader != engine)) continue;
    attach(s, op, engine, take, take == write ? e->empty : e->full);
  }
  ir_op_erase(op);
}

static PassStatus sync_section(PassContext *pc, IrOp *section) {
  Sync s = {.pc = pc, .max = 256};
  s.edges = ARENA_ARRAY(pc->scratch, Edge, s.max);
  walk(section->region, find_edge, &s);
  if (2 * s.n > ISA_SEMS) {
    diag_error(pc->diag, section->loc, "E-sync",
               "this kernel needs %d semaphores, the machine has %d: compile it with tile{slots=1} "
               "or split the operation",
               2 * s.n, ISA_SEMS);
    return PASS_FAILED;
  }
  for (int i = 0; i < s.n; i++) {
    Edge *e = &s.edges[i];
    int64_t slots = ir_get_int(e->buffer->def, "slots", 1);
    IrBuilder b = ir_builder_after(e->buffer->def);
    e->full = make_sem(&b, 0);
    e->empty = make_sem(&b, slots);
    sequencer(&b, "give", "give", e->empty, slots);
  }
  walk(section->region, hand_over, &s);
  IrBuilder end = ir_builder_at_end(section->region, section->loc);
  for (int i = 0; i < s.n; i++)
    sequencer(&end, "take", "take", s.edges[i].empty,
              ir_get_int(s.edges[i].buffer->def, "slots", 1));
  pass_count(pc, "semaphores", 2 * s.n);
  return PASS_OK;
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  for (IrOp *op = f->body->first; op; op = op->next)
    if (op->kind == IR_OP_SECTION && sync_section(pc, op) != PASS_OK) return PASS_FAILED;
  return PASS_OK;
}

const Pass pass_sync = {.abi = NPU_PASS_ABI,
                        .size = sizeof(Pass),
                        .name = "sync",
                        .help = "semaphores from who writes and who reads each buffer",
                        .from = IR_PROGRAM,
                        .to = IR_PROGRAM,
                        .options = NULL,
                        .run = run};
