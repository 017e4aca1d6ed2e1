/* Compiling and running a program on the host. */
#include "backend/host/host_internal.h"
#include <string.h>

static bool link_kernels(HostProgram *p, IrFunc *f, DiagEngine *diag) {
  if (!host_jit_compile(p->jit, diag, f->loc)) return false;
  for (int i = 0; i < p->nsteps; i++) {
    if (p->steps[i].kind != STEP_KERNEL) continue;
    void *at = host_jit_lookup(p->jit, p->steps[i].symbol, diag, f->loc);
    if (!at) return false;
    memcpy(&p->steps[i].run, &at, sizeof at); /* C has no cast from data to function pointer */
  }
  return true;
}

/* The step that makes the largest value kept in memory. */
static SrcLoc largest_place(const HostProgram *p, const IrFunc *f, int64_t *bytes) {
  SrcLoc loc = f->loc;
  for (int i = 0; i < p->nbufs; i++) {
    const HostBuf *b = &p->bufs[i];
    if ((b->kind != BUF_ARENA && b->kind != BUF_STATE) || b->bytes <= *bytes) continue;
    *bytes = b->bytes;
    if (b->first < p->nsteps) loc = p->steps[b->first].loc;
  }
  return loc;
}

static bool take_memory(HostProgram *p, const IrFunc *f, DiagEngine *diag) {
  int64_t total = p->arena_bytes, largest = 0;
  for (int i = 0; i < p->nstates && total >= 0; i++)
    if (!add_i64(total, ir_type_bytes(p->states[i].type), &total)) total = -1;
  bool fits = total >= 0 && total <= INT64_MAX - 64;
  if (fits) p->memory = mem_try_alloc((size_t)p->arena_bytes + 64);
  for (int i = 0; i < p->nstates && fits && p->memory; i++) {
    p->states[i].bytes = mem_try_alloc((size_t)ir_type_bytes(p->states[i].type));
    fits = p->states[i].bytes != NULL;
  }
  if (fits && p->memory) return true;
  SrcLoc loc = largest_place(p, f, &largest);
  if (total < 0)
    diag_error(diag, loc, "E-memory",
               "the values the host would keep have more bytes in all than fit 63 bits");
  else
    diag_error(diag, loc, "E-memory",
               "the host has no memory for the %lld bytes of what it keeps at a time, of which "
               "%lld belong to one value that is made or read here; run smaller shapes",
               (long long)total, (long long)largest);
  return false;
}

HostProgram *host_compile(IrFunc *f, DiagEngine *diag) {
  HostProgram *p = mem_alloc(sizeof *p);
  p->arena = arena_new();
  p->jit = host_jit_new(diag, f->loc);
  if (!p->jit || !host_lower(p, f, diag) || !link_kernels(p, f, diag) || !take_memory(p, f, diag)) {
    host_free(p);
    return NULL;
  }
  p->pointers = mem_alloc(sizeof *p->pointers * (size_t)(p->nbufs + 1));
  host_reset_states(p);
  return p;
}

void host_free(HostProgram *p) {
  if (!p) return;
  host_jit_free(p->jit);
  for (int i = 0; i < p->nstates; i++) mem_free(p->states[i].bytes);
  mem_free(p->states);
  mem_free(p->bufs);
  mem_free(p->steps);
  mem_free(p->memory);
  mem_free(p->pointers);
  arena_free(p->arena);
  mem_free(p);
}

void host_reset_states(HostProgram *p) {
  for (int i = 0; i < p->nstates; i++) {
    HostState *s = &p->states[i];
    size_t bytes = (size_t)ir_type_bytes(s->type);
    if (s->data)
      memcpy(s->bytes, s->data->bytes, bytes);
    else
      memset(s->bytes, 0, bytes);
  }
}

void host_print_llvm(const HostProgram *p, StrBuf *out) {
  host_jit_print(p->jit, out);
}

/* ---- index checks ---- */

static int32_t read_index(const HostProgram *p, const HostCheck *c, int operand,
                          const int64_t *at) {
  const HostAccess *x = &c->access[operand];
  int64_t offset = x->offset;
  for (int d = 0; d < IR_MAX_DIMS; d++)
    offset = host_wrap_add(offset, host_wrap_mul(x->stride[d], at[d]));
  for (int i = 0; i < x->nindirect; i++)
    offset += x->indirect[i].stride * read_index(p, c, x->indirect[i].operand, at);
  int32_t v;
  dtype_set(DT_S32, &v, 0, x->pad);
  if (!host_guard_inside(x, at)) return v;
  memcpy(&v, (const uint8_t *)p->pointers[x->buf] + offset * (int64_t)sizeof v, sizeof v);
  return v;
}

/* Steps `at` through the dimensions the operand moves with; false after the last. */
static bool next_point(const HostCheck *c, int64_t *at) {
  for (int d = IR_MAX_DIMS - 1; d >= 0; d--) {
    if (!host_has_dim(c->access[c->operand].dims, d)) continue;
    if (++at[d] < c->extent[d]) return true;
    at[d] = 0;
  }
  return false;
}

static bool run_check(const HostProgram *p, const HostStep *s, DiagEngine *diag) {
  const HostCheck *c = s->check;
  int64_t at[IR_MAX_DIMS] = {0};
  do {
    int64_t v = read_index(p, c, c->operand, at);
    if (v + c->cst >= 0 && v + c->cst < c->size) continue;
    diag_error(diag, s->loc, "E-index",
               "index %lld is outside %lld..%lld, the range of axis %d of the indexed tensor",
               (long long)v, (long long)-c->cst, (long long)(c->size - 1 - c->cst), c->axis);
    return false;
  } while (next_point(c, at));
  return true;
}

/* ---- running ---- */

static void bind(HostProgram *p, const void *const *inputs, void *const *outputs) {
  uintptr_t base = ((uintptr_t)p->memory + 63) & ~(uintptr_t)63;
  for (int i = 0; i < p->nbufs; i++) {
    const HostBuf *b = &p->bufs[i];
    const void *at = NULL;
    switch (b->kind) {
    case BUF_INPUT: at = inputs[b->index]; break;
    case BUF_OUTPUT: at = outputs[b->index]; break;
    case BUF_CONST: at = b->data; break;
    case BUF_STATE: at = p->states[b->index].bytes; break;
    case BUF_ARENA: at = (const void *)(base + (uintptr_t)b->offset); break;
    }
    memcpy(&p->pointers[i], &at, sizeof at); /* one table for what is read and what is written */
  }
}

bool host_run(HostProgram *p, const void *const *inputs, void *const *outputs, DiagEngine *diag) {
  bind(p, inputs, outputs);
  for (int i = 0; i < p->nsteps; i++) {
    const HostStep *s = &p->steps[i];
    switch (s->kind) {
    case STEP_KERNEL: s->run(p->pointers); break;
    case STEP_COPY: host_copy_run(s->copy, p->pointers[s->dst], p->pointers[s->src]); break;
    case STEP_ZERO: memset(p->pointers[s->dst], 0, (size_t)s->bytes); break;
    case STEP_CHECK:
      if (!run_check(p, s, diag)) return false;
      break;
    }
  }
  return true;
}
