/* `tensor` ops to segments, signature and roofline. */
#include <string.h>

#include "backend/npu/emit_internal.h"
#include "backend/npu/permute.h"

typedef struct {
  const IrOp *op;
  DType dtype;
  int rank;
  int64_t shape[IR_MAX_RANK], bytes, addr;
  const char *role, *name;
} Tensor;

static bool read_tensor(Emitter *e, const IrOp *op, Tensor *t) {
  const IrAttr *type = ir_attr(op, "type");
  bool ok = type && type->kind == IR_ATTR_ARRAY && type->array.n == 2 &&
            type->array.items[0]->kind == IR_ATTR_DTYPE &&
            type->array.items[1]->kind == IR_ATTR_ARRAY &&
            type->array.items[1]->array.n <= IR_MAX_RANK;
  memset(t, 0, sizeof *t);
  if (!ok) {
    emit_fail(e, op->loc, "a tensor without a type");
    return false;
  }
  t->op = op;
  t->dtype = type->array.items[0]->dtype;
  t->rank = (int)type->array.items[1]->array.n;
  t->bytes = (int64_t)dtype_size(t->dtype);
  for (int i = 0; i < t->rank; i++) {
    t->shape[i] = type->array.items[1]->array.items[i]->i;
    if (t->shape[i] < 1 || !mul_i64(t->bytes, t->shape[i], &t->bytes)) {
      emit_fail(e, op->loc, "a tensor whose size is not a number of bytes");
      return false;
    }
  }
  t->addr = ir_get_int(op, "addr", -1);
  t->role = ir_get_str(op, "role", "");
  t->name = ir_get_str(op, "name", "");
  if (t->addr < 0) emit_fail(e, op->loc, "a tensor without an address: run the pass 'plan'");
  return t->addr >= 0;
}

static const void *stored_bytes(Emitter *e, const Tensor *t, const IrData *d) {
  int64_t layout[IR_MAX_RANK];
  int n = ir_get_ints(t->op, "layout", layout, IR_MAX_RANK);
  bool plain = true;
  for (int i = 0; i < n; i++) plain = plain && layout[i] == i;
  if (n != t->rank || plain) return d->bytes;
  uint8_t *out = arena_alloc(e->img->arena, (size_t)t->bytes);
  permute_elements(dtype_size(t->dtype), t->rank, t->shape, layout, d->bytes, out);
  return out;
}

static void add_io(IsaImage *img, const Tensor *t, IsaIoRole role) {
  IsaIo *io = &img->io[img->nio++];
  *io = (IsaIo){.role = role,
                .name = arena_strdup(img->arena, t->name),
                .dtype = t->dtype,
                .rank = t->rank,
                .addr = (uint64_t)t->addr};
  memcpy(io->shape, t->shape, sizeof(int64_t) * (size_t)t->rank);
}

void emit_tensors(Emitter *e) {
  IsaImage *img = e->img;
  const IrOp *ret = e->f->body->last;
  uint32_t n = 0;
  for (const IrOp *op = e->f->body->first; op; op = op->next) n += op->kind == IR_OP_TENSOR;
  img->io = ARENA_ARRAY(img->arena, IsaIo, n + 1);
  img->segments = ARENA_ARRAY(img->arena, IsaSegment, n + 1);
  img->dram_bytes = (uint64_t)ir_get_int(ret, "dram_bytes", 0);
  img->ideal_macs_s8 = ir_get_float(ret, "macs_s8", 0);
  img->ideal_macs_bf16 = ir_get_float(ret, "macs_bf16", 0);
  img->ideal_dram_bytes = ir_get_float(ret, "model_bytes", 0);
  for (const IrOp *op = e->f->body->first; op && !e->failed; op = op->next) {
    Tensor t;
    const IrAttr *data = op->kind == IR_OP_TENSOR ? ir_attr(op, "data") : NULL;
    if (op->kind != IR_OP_TENSOR || !read_tensor(e, op, &t)) continue;
    uint64_t end = (uint64_t)t.addr + (uint64_t)t.bytes;
    if (end > img->dram_bytes) img->dram_bytes = end;
    if (!strcmp(t.role, "input"))
      add_io(img, &t, IO_INPUT);
    else if (!strcmp(t.role, "output"))
      add_io(img, &t, IO_OUTPUT);
    else if (!strcmp(t.role, "state"))
      add_io(img, &t, IO_STATE);
    if (data && data->kind == IR_ATTR_DATA) {
      if (ir_type_bytes(data->data->type) != t.bytes) {
        emit_fail(e, op->loc, "a constant whose data has another size than its type");
        return;
      }
      img->segments[img->nsegments++] =
          (IsaSegment){arena_strdup(img->arena, t.name), (uint64_t)t.addr, (uint64_t)t.bytes,
                       stored_bytes(e, &t, data->data)};
    }
  }
}
