/* legalize: gives every result and written state storage of its own, and turns what the machine has
 * no instruction for into operands.
 *   - a returned or state-written value that is an argument, constant, state, alias of another
 * result, or not row-major gets a copy kernel; states are written last, after everything that reads
 * them
 *   - `index` in a body becomes an operand that reads a table 0, 1, 2, ...
 * Level: nest. Keeps: everything. Terminates: each rewrite removes one such use. */
#include "passes/kernel_edit.h"
#include "passes/sched.h"
#include "support/ptrmap.h"
#include <stdlib.h>
#include <string.h>

static bool row_major(const IrValue *v) {
  int order[IR_MAX_RANK];
  ir_layout(v, order);
  for (int i = 0; i < v->type->rank; i++)
    if (order[i] != i) return false;
  return true;
}

static IrValue *copy_before(IrOp *pos, IrValue *v) {
  static const char *const names[IR_MAX_RANK] = {"i0", "i1", "i2", "i3", "i4", "i5", "i6", "i7"};
  IrBuilder b = ir_builder_before(pos);
  IrMap map = ir_map_zero(v->type->rank);
  for (int i = 0; i < v->type->rank; i++) ir_map_dim(&map, i, i, 1);
  if (v->def) b.loc = v->def->loc;
  IrOp *k =
      ir_kernel_new(&b, v->type->rank, names, v->type->shape, 1, &v, &map, NULL, 1, &v->type, &map);
  IrBuilder body = ir_builder_at_end(k->region, b.loc);
  IrValue *arg = k->region->args[0];
  ir_build_typed(&body, IR_OP_YIELD, 1, &arg, 0, NULL, 0, NULL);
  kernel_set_name(k, "copy");
  return ir_result(k, 0);
}

/* ---- results and states ---- */

typedef struct {
  PassContext *pc;
  IrFunc *f;
  PtrMap *claimed;   /* kernel results that are the storage of a result or state */
  PtrMap *positions; /* of every op, from 1 */
  PtrMap *read;      /* position of the last op that reads a state, by the state's name */
} Owning;

/* A value at root can live where its kernel writes it. */
static bool owns_storage(const Owning *o, const IrValue *root) {
  return ir_is(root->def, IR_OP_KERNEL) && !ptr_map_get(o->claimed, root) && row_major(root);
}

static void claim(Owning *o, IrValue *root) {
  ptr_map_put(&o->claimed, root, root);
}

/* Where every op stands and every state is read last. */
static void find_reads(Owning *o) {
  uintptr_t at = 0;
  for (const IrOp *op = o->f->body->first; op; op = op->next) {
    ptr_map_put_int(&o->positions, op, ++at);
    for (int i = 0; i < op->noperands && op->kind != IR_OP_RESHAPE; i++) {
      const IrValue *r = sched_storage(ir_operand(op, i));
      if (ir_is(r->def, IR_OP_STATE)) ptr_map_put_int(&o->read, ir_get_str(r->def, "name", ""), at);
    }
  }
}

/* Does the producer of root, or anything after it, still read the state's old value? */
static bool state_read_from(const Owning *o, const char *name, const IrOp *producer) {
  return ptr_map_get_int(o->read, name) >= ptr_map_get_int(o->positions, producer);
}

static void owning_free(Owning *o) {
  ptr_map_free(&o->claimed);
  ptr_map_free(&o->positions);
  ptr_map_free(&o->read);
}

/* Moves a state_write to the function's end, through a copy unless its value's kernel may write the
 * state itself. The kernel result that becomes the state's storage is claimed. */
static void write_last(Owning *o, IrOp *op) {
  IrValue *v = ir_operand(op, 0), *root = sched_storage(v);
  IrOp *ret = o->f->body->last;
  if (!owns_storage(o, root) || state_read_from(o, ir_get_str(op, "name", ""), root->def)) {
    root = copy_before(ret, v);
    ir_set_operand(op, 0, root);
    pass_count(o->pc, "copies", 1);
  }
  ir_op_unlink(op);
  ir_op_insert_before(ret, op);
  claim(o, root);
}

static void own_storage(PassContext *pc, IrFunc *f) {
  Owning o = {.pc = pc, .f = f};
  IrOp *ret = f->body->last;
  for (int i = 0; i < ret->noperands; i++) {
    IrValue *v = ir_operand(ret, i), *root = sched_storage(v);
    if (!owns_storage(&o, root)) {
      root = copy_before(ret, v);
      ir_set_operand(ret, i, root);
      pass_count(pc, "copies", 1);
    }
    claim(&o, root);
  }
  /* First make every written value independent of the states' storage, then write. */
  int nwrites = 0;
  for (IrOp *op = f->body->first; op; op = op->next) {
    if (op->kind != IR_OP_STATE_WRITE) continue;
    IrValue *root = sched_storage(ir_operand(op, 0));
    if (ir_is(root->def, IR_OP_STATE)) ir_set_operand(op, 0, copy_before(op, ir_operand(op, 0)));
    nwrites++;
  }
  find_reads(&o);
  IrOp **writes = ARENA_ARRAY(pc->scratch, IrOp *, nwrites + 1);
  nwrites = 0;
  for (IrOp *op = f->body->first; op; op = op->next)
    if (op->kind == IR_OP_STATE_WRITE) writes[nwrites++] = op;
  for (int i = 0; i < nwrites; i++) write_last(&o, writes[i]);
  owning_free(&o);
}

const IrOp *legalize_missing(PassContext *pc, IrFunc *f) {
  Owning o = {.pc = pc, .f = f};
  IrOp *ret = f->body->last, *missing = NULL;
  for (int i = 0; i < ret->noperands && !missing; i++) {
    IrValue *root = sched_storage(ir_operand(ret, i));
    if (!owns_storage(&o, root)) missing = ret;
    claim(&o, root);
  }
  find_reads(&o);
  for (IrOp *op = f->body->first; op && !missing; op = op->next) {
    if (op->kind != IR_OP_STATE_WRITE) continue;
    IrValue *root = sched_storage(ir_operand(op, 0));
    if (!owns_storage(&o, root) || state_read_from(&o, ir_get_str(op, "name", ""), root->def))
      missing = op;
    claim(&o, root);
  }
  owning_free(&o);
  return missing;
}

/* ---- index ---- */

/* The table 0, 1, 2, ... that every position of f is read from: as long as the longest dimension
 * asks for, NULL when no body asks. False, with an error, when the machine has no room for it. */
static bool iota_table(PassContext *pc, IrFunc *f, IrValue **table) {
  const IrOp *longest = NULL;
  int64_t n = 0;
  for (IrOp *k = f->body->first; k; k = k->next) {
    IrKernel info;
    if (k->kind != IR_OP_KERNEL) continue;
    ir_kernel_read(k, &info);
    for (IrOp *op = k->region->first; op; op = op->next) {
      if (op->kind != IR_OP_INDEX) continue;
      int64_t extent = info.extent[ir_get_int(op, "dim", 0)];
      if (extent > n) n = extent, longest = k;
    }
  }
  *table = NULL;
  if (n == 0) return true;
  if (n > pc->machine->dram_bytes / (int64_t)sizeof(int32_t) || n > INT32_MAX) {
    diag_error(
        pc->diag, longest->loc, "E-dram",
        "a table of %lld positions does not fit the %lld bytes of DRAM of machine '%s'; look "
        "for the position along a shorter axis, or in parts of it",
        (long long)n, (long long)pc->machine->dram_bytes, pc->machine->name);
    return false;
  }
  IrBuilder b = ir_builder_before(f->body->first);
  void *bytes;
  const IrAttr *data = ir_attr_data_new(b.m, ir_type_tensor(b.m, DT_S32, 1, &n), &bytes);
  for (int64_t i = 0; i < n; i++) ((int32_t *)bytes)[i] = (int32_t)i;
  *table = ir_build_constant(&b, data);
  return true;
}

/* Appends an operand with its map and pad to a kernel; the new block argument is returned. */
static IrValue *add_kernel_operand(PassContext *pc, IrOp *k, IrValue *v, const IrMap *map) {
  IrModule *m = ir_op_module(k);
  static const char *const lists[] = {"in_maps", "pads"};
  for (int i = 0; i < 2; i++) {
    const IrAttr *old = ir_attr(k, lists[i]);
    size_t n = old->array.n;
    const IrAttr **items = ARENA_ARRAY(pc->scratch, const IrAttr *, n + 1);
    memcpy(items, old->array.items, n * sizeof *items);
    items[n++] = i == 0 ? ir_attr_map(m, map) : ir_attr_str(m, "none");
    ir_set_attr(k, lists[i], ir_attr_array(m, items, n));
  }
  ir_add_operand(k, v);
  return ir_block_add_arg(k->region, ir_type_scalar(m, v->type->dtype), NULL);
}

static void index_to_operand(PassContext *pc, IrOp *k, IrValue *table) {
  IrValue *arg_of[IR_MAX_DIMS] = {NULL};
  for (IrOp *op = k->region->first, *next; op; op = next) {
    next = op->next;
    if (op->kind != IR_OP_INDEX) continue;
    int64_t dim = ir_get_int(op, "dim", 0);
    if (!arg_of[dim]) {
      IrMap map = ir_map_zero(1);
      ir_map_dim(&map, 0, (int)dim, 1);
      arg_of[dim] = add_kernel_operand(pc, k, table, &map);
    }
    ir_replace_all_uses(ir_result(op, 0), arg_of[dim]);
    ir_op_erase(op);
    pass_count(pc, "indices", 1);
  }
}

static PassStatus run(PassContext *pc, IrFunc *f) {
  IrValue *table;
  if (!iota_table(pc, f, &table)) return PASS_FAILED;
  for (IrOp *op = f->body->first; op && table; op = op->next)
    if (op->kind == IR_OP_KERNEL) index_to_operand(pc, op, table);
  own_storage(pc, f);
  return PASS_OK;
}

const Pass pass_legalize = {.abi = NPU_PASS_ABI,
                            .size = sizeof(Pass),
                            .name = "legalize",
                            .help = "storage for results and states, tables for indices",
                            .from = IR_NEST,
                            .to = IR_NEST,
                            .options = NULL,
                            .run = run};
