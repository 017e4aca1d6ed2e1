/* A nest-level function as buffers and steps: where each value lies, what is copied, which kernels
 * run. */
#include "backend/host/host_internal.h"
#include <string.h>
#define uthash_malloc(n) mem_alloc(n)
#define uthash_free(p, n) mem_free(p)
#include <uthash.h>

/* ---- buffers and steps ---- */

int host_buf_new(HostProgram *p, HostBufKind kind, int index, const void *data, int64_t bytes) {
  if (p->nbufs == p->cap_bufs) {
    p->cap_bufs = p->cap_bufs ? p->cap_bufs * 2 : 32;
    p->bufs = mem_realloc(p->bufs, sizeof *p->bufs * (size_t)p->cap_bufs);
  }
  p->bufs[p->nbufs] = (HostBuf){.kind = kind,
                                .index = index,
                                .data = data,
                                .bytes = bytes,
                                .first = p->nsteps,
                                .last = p->nsteps};
  return p->nbufs++;
}

int host_buf_temp(HostProgram *p, int64_t bytes) {
  return host_buf_new(p, BUF_ARENA, 0, NULL, bytes);
}

void host_buf_use(HostProgram *p, int buf) {
  p->bufs[buf].last = p->nsteps;
}

HostStep *host_step_new(HostProgram *p, HostStepKind kind, SrcLoc loc) {
  if (p->nsteps == p->cap_steps) {
    p->cap_steps = p->cap_steps ? p->cap_steps * 2 : 32;
    p->steps = mem_realloc(p->steps, sizeof *p->steps * (size_t)p->cap_steps);
  }
  HostStep *s = &p->steps[p->nsteps++];
  *s = (HostStep){.kind = kind, .loc = loc};
  return s;
}

static void order_strides(const IrType *t, const int *order, int64_t stride[IR_MAX_RANK]) {
  int64_t s = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    stride[order[i]] = s;
    s *= t->shape[order[i]];
  }
}

static void dense_strides(const IrType *t, int64_t stride[IR_MAX_RANK]) {
  int order[IR_MAX_RANK];
  for (int i = 0; i < t->rank; i++) order[i] = i;
  order_strides(t, order, stride);
}

void host_strides(const IrValue *v, int64_t stride[IR_MAX_RANK]) {
  int order[IR_MAX_RANK];
  ir_layout(v, order);
  order_strides(v->type, order, stride);
}

/* ---- places of values ---- */

typedef struct {
  const IrValue *value;
  HostOperand at;
  UT_hash_handle hh;
} Place;

/* A value that others are made of which become integers. */
typedef struct {
  const IrValue *value;
  UT_hash_handle hh;
} Integral;

typedef struct {
  HostProgram *p;
  IrFunc *f;
  DiagEngine *diag;
  Arena *scratch;
  Place *places;
  Integral *integral;
  HostKernel **kernels;
  int nkernels;
} Lower;

static HostOperand *place_of(Lower *l, const IrValue *v) {
  Place *found;
  HASH_FIND_PTR(l->places, &v, found);
  return found ? &found->at : NULL;
}

static HostOperand *place_new(Lower *l, const IrValue *v, int buf) {
  Place *n = ARENA_NEW(l->scratch, Place);
  n->value = v;
  n->at = (HostOperand){.buf = buf, .type = v->type};
  host_strides(v, n->at.stride);
  HASH_ADD_PTR(l->places, value, n);
  return &n->at;
}

static bool row_major(const IrType *t, const int64_t *stride) {
  int64_t want = 1;
  for (int i = t->rank - 1; i >= 0; i--) {
    if (t->shape[i] != 1 && stride[i] != want) return false;
    want *= t->shape[i];
  }
  return true;
}

/* Copy of a value into a dense buffer of shape t, whose element strides in the source are given. */
static void copy_dense(Lower *l, SrcLoc loc, int src, int dst, const IrType *t,
                       const int64_t *stride, const int *order) {
  HostCopy *c = ARENA_NEW(l->p->arena, HostCopy);
  c->rank = t->rank;
  c->elsize = dtype_size(t->dtype);
  for (int i = 0; i < t->rank; i++) {
    int a = order ? order[i] : i;
    c->size[i] = c->hi[i] = t->shape[a];
    c->stride[i] = stride[a];
  }
  host_buf_use(l->p, src);
  host_buf_use(l->p, dst);
  HostStep *s = host_step_new(l->p, STEP_COPY, loc);
  s->src = src;
  s->dst = dst;
  s->copy = c;
}

/* A buffer holding the value row-major: its own when it is stored so. */
static int row_major_buf(Lower *l, SrcLoc loc, const HostOperand *at) {
  if (row_major(at->type, at->stride)) return at->buf;
  int buf = host_buf_temp(l->p, ir_type_bytes(at->type));
  copy_dense(l, loc, at->buf, buf, at->type, at->stride, NULL);
  return buf;
}

/* ---- constants and states ---- */

/* One element stands for a constant whose elements are all equal. */
static bool lower_constant(Lower *l, IrOp *op) {
  IrValue *v = ir_result(op, 0);
  double splat;
  if (op->kind == IR_OP_CONSTANT && ir_constant_splat(v, &splat)) {
    void *one = arena_alloc(l->p->arena, 16);
    dtype_set(v->type->dtype, one, 0, splat);
    HostOperand *at =
        place_new(l, v, host_buf_new(l->p, BUF_CONST, 0, one, (int64_t)dtype_size(v->type->dtype)));
    memset(at->stride, 0, sizeof at->stride);
    at->splat = true;
    at->constant = one;
    return true;
  }
  const IrData *data = ir_constant_data(v);
  if (!data) {
    diag_error(l->diag, op->loc, "E-host-data",
               "the constant has no data; load its weight file or give it an initializer");
    return false;
  }
  HostOperand *at =
      place_new(l, v, host_buf_new(l->p, BUF_CONST, 0, data->bytes, ir_type_bytes(v->type)));
  dense_strides(v->type, at->stride); /* data is row-major whatever layout the machine wants */
  at->constant = data->bytes;
  return true;
}

static int state_number(HostProgram *p, const char *name) {
  for (int i = 0; i < p->nstates; i++)
    if (!strcmp(p->states[i].name, name)) return i;
  return -1;
}

static int state_buf(HostProgram *p, int state) {
  for (int i = 0; i < p->nbufs; i++)
    if (p->bufs[i].kind == BUF_STATE && p->bufs[i].index == state) return i;
  return host_buf_new(p, BUF_STATE, state, NULL, ir_type_bytes(p->states[state].type));
}

static int state_add(HostProgram *p, const char *name, const IrType *type, const IrAttr *data) {
  int n = state_number(p, name);
  if (n < 0) {
    n = p->nstates++;
    p->states = mem_realloc(p->states, sizeof *p->states * (size_t)p->nstates);
    p->states[n] = (HostState){.name = arena_strdup(p->arena, name), .type = type};
  }
  if (data && data->kind == IR_ATTR_DATA) p->states[n].data = data->data;
  return n;
}

static void lower_state(Lower *l, IrOp *op) {
  IrValue *v = ir_result(op, 0);
  int n = state_add(l->p, ir_get_str(op, "name", ""), v->type, ir_attr(op, "data"));
  HostOperand *at = place_new(l, v, state_buf(l->p, n));
  dense_strides(v->type, at->stride);
}

/* ---- what becomes integers ---- */

/* Where a number becomes an integer, its last place may become a whole step: sums on the way there
 * are rounded no more than once, as the machine's are. */

static bool is_integral(const Lower *l, const IrValue *v) {
  Integral *found;
  HASH_FIND_PTR(l->integral, &v, found);
  return found != NULL;
}

static void note_integral(Lower *l, const IrValue *v) {
  if (is_integral(l, v)) return;
  Integral *n = ARENA_NEW(l->scratch, Integral);
  n->value = v;
  HASH_ADD_PTR(l->integral, value, n);
}

static bool rounds_to_integers(const IrOp *kernel) {
  for (const IrOp *o = kernel->region->first; o; o = o->next)
    if (o->kind == IR_OP_CAST && dtype_is_float(ir_operand(o, 0)->type->dtype) &&
        !dtype_is_float(ir_result(o, 0)->type->dtype))
      return true;
  return false;
}

static bool makes_integral(const Lower *l, const IrOp *op) {
  if (op->kind == IR_OP_KERNEL && rounds_to_integers(op)) return true;
  for (int i = 0; i < op->nresults; i++)
    if (is_integral(l, ir_result(op, i))) return true;
  return false;
}

/* From the last op to the first; a second time when a state does, for what is written to states. */
static void find_integral(Lower *l) {
  bool states = false, again = false;
  do {
    again = false;
    for (const IrOp *op = l->f->body->last; op; op = op->prev) {
      if (!makes_integral(l, op) && !(op->kind == IR_OP_STATE_WRITE && states)) continue;
      again = again || (op->kind == IR_OP_STATE && !states);
      for (int i = 0; i < op->noperands; i++) note_integral(l, ir_operand(op, i));
    }
    states = true;
  } while (again);
}

/* ---- ops ---- */

/* Number of a function result that is v, perhaps reshaped, when the kernel can write it there; -1.
 */
static int returned_as(const IrValue *v) {
  int64_t stride[IR_MAX_RANK];
  host_strides(v, stride);
  if (!row_major(v->type, stride)) return -1;
  int first = -1; /* uses come in no particular order: the smallest number, to be deterministic */
  for (const IrUse *u = v->uses; u; u = u->next) {
    int n = u->op->kind == IR_OP_RETURN    ? u->index
            : u->op->kind == IR_OP_RESHAPE ? returned_as(ir_result(u->op, 0))
                                           : -1;
    if (n >= 0 && (first < 0 || n < first)) first = n;
  }
  return first;
}

static int output_buf(HostProgram *p, int result) {
  for (int i = 0; i < p->nbufs; i++)
    if (p->bufs[i].kind == BUF_OUTPUT && p->bufs[i].index == result) return i;
  return host_buf_new(p, BUF_OUTPUT, result, NULL, 0);
}

static bool lower_kernel(Lower *l, IrOp *op) {
  HostOperand *operands = ARENA_ARRAY(l->scratch, HostOperand, op->noperands + 1);
  int *results = ARENA_ARRAY(l->scratch, int, op->nresults);
  for (int i = 0; i < op->noperands; i++) operands[i] = *place_of(l, ir_operand(op, i));
  for (int i = 0; i < op->nresults; i++) {
    IrValue *v = ir_result(op, i);
    int out = returned_as(v);
    results[i] = out >= 0 ? output_buf(l->p, out) : host_buf_temp(l->p, ir_type_bytes(v->type));
    place_new(l, v, results[i]);
  }
  HostKernel *k = host_kernel_build(l->p, op, operands, results, makes_integral(l, op), l->diag);
  if (!k) return false;
  char *symbol = arena_printf(l->p->arena, "kernel%d", l->nkernels++);
  host_step_new(l->p, STEP_KERNEL, op->loc)->symbol = symbol;
  host_emit_kernel(host_jit_gen(l->p->jit), k, symbol, l->scratch);
  return true;
}

/* The same bytes under another shape, unless either side is stored otherwise than row-major. */
static void lower_reshape(Lower *l, IrOp *op) {
  HostOperand *from = place_of(l, ir_operand(op, 0));
  IrValue *v = ir_result(op, 0);
  if (from->splat) {
    HostOperand copy = *from;
    HostOperand *to = place_new(l, v, copy.buf);
    memset(to->stride, 0, sizeof to->stride);
    to->splat = true;
    to->constant = copy.constant;
    return;
  }
  const void *constant = from->constant;
  int buf = row_major_buf(l, op->loc, from), order[IR_MAX_RANK];
  HostOperand *to = place_new(l, v, buf);
  if (constant) to->constant = constant;
  if (row_major(v->type, to->stride)) return;
  int64_t dense[IR_MAX_RANK];
  dense_strides(v->type, dense);
  if (constant) { /* constants stay row-major */
    memcpy(to->stride, dense, sizeof dense);
    return;
  }
  ir_layout(v, order);
  to->buf = host_buf_temp(l->p, ir_type_bytes(v->type));
  copy_dense(l, op->loc, buf, to->buf, v->type, dense, order);
}

static void lower_return(Lower *l, IrOp *op) {
  for (int i = 0; i < op->noperands; i++) {
    HostOperand *at = place_of(l, ir_operand(op, i));
    int out = output_buf(l->p, i);
    if (at->buf != out) copy_dense(l, op->loc, at->buf, out, at->type, at->stride, NULL);
  }
}

/* New states are written when everything has been read: first aside those whose new value lies in
 * the old value of a state, then each in its place. */
static void lower_state_writes(Lower *l) {
  HostProgram *p = l->p;
  for (IrOp *op = l->f->body->first; op; op = op->next) {
    if (op->kind != IR_OP_STATE_WRITE) continue;
    HostOperand *at = place_of(l, ir_operand(op, 0));
    if (p->bufs[at->buf].kind != BUF_STATE) continue;
    int aside = host_buf_temp(p, ir_type_bytes(at->type));
    copy_dense(l, op->loc, at->buf, aside, at->type, at->stride, NULL);
    /* The value keeps its place; only this write reads the copy. */
    HostOperand moved = *at;
    moved.buf = aside;
    *at = moved;
  }
  for (IrOp *op = l->f->body->first; op; op = op->next) {
    if (op->kind != IR_OP_STATE_WRITE) continue;
    HostOperand *at = place_of(l, ir_operand(op, 0));
    int n = state_add(p, ir_get_str(op, "name", ""), at->type, NULL);
    copy_dense(l, op->loc, at->buf, state_buf(p, n), at->type, at->stride, NULL);
  }
}

static bool lower_op(Lower *l, IrOp *op) {
  switch (op->kind) {
  case IR_OP_KERNEL: return lower_kernel(l, op);
  case IR_OP_RESHAPE: lower_reshape(l, op); return true;
  case IR_OP_WEIGHT:
  case IR_OP_CONSTANT: return lower_constant(l, op);
  case IR_OP_STATE: lower_state(l, op); return true;
  case IR_OP_STATE_WRITE: return true; /* at the end */
  case IR_OP_RETURN: lower_return(l, op); return true;
  default:
    diag_error(l->diag, op->loc, "E-host-op",
               "the host reference runs functions at nest level; lower `%s` first",
               ir_op_info(op->kind)->name);
    return false;
  }
}

/* ---- memory ---- */

static bool overlap_in_time(const HostBuf *a, const HostBuf *b) {
  return a->first <= b->last && b->first <= a->last;
}

/* First fit in order of creation: the lowest offset free as long as the buffer lives. */
static void place_arena(HostProgram *p) {
  for (int i = 0; i < p->nbufs; i++) {
    HostBuf *b = &p->bufs[i];
    if (b->kind != BUF_ARENA) continue;
    int64_t at = 0;
    for (bool moved = true; moved;) {
      moved = false;
      for (int j = 0; j < i; j++) {
        const HostBuf *o = &p->bufs[j];
        if (o->kind != BUF_ARENA || !overlap_in_time(b, o)) continue;
        if (at < o->offset + o->bytes && o->offset - at < b->bytes) {
          at = round_up(o->offset + o->bytes, 64);
          moved = true;
        }
      }
    }
    b->offset = at;
    int64_t end;
    if (!add_i64(at, b->bytes, &end) || end > INT64_MAX - 64) {
      p->arena_bytes = -1;
      return;
    }
    if (end > p->arena_bytes) p->arena_bytes = end;
  }
}

bool host_lower(HostProgram *p, IrFunc *f, DiagEngine *diag) {
  Lower l = {.p = p, .f = f, .diag = diag, .scratch = arena_new()};
  p->ninputs = f->body->nargs;
  p->noutputs = f->nresults;
  for (int i = 0; i < f->body->nargs; i++)
    place_new(&l, f->body->args[i], host_buf_new(p, BUF_INPUT, i, NULL, 0));
  find_integral(&l);
  bool ok = true;
  for (IrOp *op = f->body->first; op && ok; op = op->next) ok = lower_op(&l, op);
  if (ok) lower_state_writes(&l);
  if (ok) place_arena(p);
  HASH_CLEAR(hh, l.places);
  HASH_CLEAR(hh, l.integral);
  arena_free(l.scratch);
  return ok;
}
