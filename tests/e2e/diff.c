/* Compiles, runs on the host before and after the graph passes, simulates in every mode. */
#include "tests/e2e/diff.h"
#include <string.h>

static const char *const mode_names[] = {"fast", "timed", "check"};

void diff_init(Diff *d) {
  *d = (Diff){.runs = 1, .arena = arena_new()};
  npucc_options_init(&d->options);
  d->options.run.verify_each = true;
}

void diff_free(Diff *d) {
  strbuf_free(&d->why);
  arena_free(d->arena);
}

/* ---- tensors ---- */

static DiffTensor tensor_new(Diff *d, const char *name, const IrType *type) {
  DiffTensor t = {.name = arena_strdup(d->arena, name), .dtype = type->dtype, .rank = type->rank};
  memcpy(t.shape, type->shape, sizeof t.shape);
  t.n = (size_t)ir_type_elements(type);
  t.bytes = (size_t)ir_type_bytes(type);
  t.data = arena_alloc(d->arena, t.bytes + 64);
  return t;
}

static DiffTensor *tensors_like(Diff *d, const DiffTensor *like, int n) {
  DiffTensor *t = ARENA_ARRAY(d->arena, DiffTensor, n + 1);
  for (int i = 0; i < n; i++) {
    t[i] = like[i];
    t[i].data = arena_alloc(d->arena, t[i].bytes + 64);
  }
  return t;
}

/* The model's inputs, filled, and room for its results, per run. */
static void make_tensors(Diff *d, const IrFunc *f) {
  d->nin = f->body->nargs;
  d->nout = f->nresults;
  d->in = ARENA_ARRAY(d->arena, DiffTensor, d->runs * d->nin + 1);
  d->as_read = ARENA_ARRAY(d->arena, DiffTensor, d->runs * d->nout + 1);
  for (int r = 0; r < d->runs; r++) {
    for (int i = 0; i < d->nin; i++) {
      const IrValue *v = f->body->args[i];
      d->in[r * d->nin + i] = tensor_new(d, v->name ? v->name : "", v->type);
      d->fill(d->user, r, &d->in[r * d->nin + i]);
    }
    for (int i = 0; i < d->nout; i++)
      d->as_read[r * d->nout + i] =
          tensor_new(d, f->result_names[i], ir_operand(f->body->last, i)->type);
  }
  d->optimized = tensors_like(d, d->as_read, d->runs * d->nout);
  d->simulated = tensors_like(d, d->as_read, d->runs * d->nout);
}

/* ---- roads ---- */

static bool fail(Diff *d, const char *phase, DiagEngine *diag) {
  strbuf_printf(&d->why, "%s:\n", phase);
  for (size_t i = 0; diag && i < diag_count(diag); i++)
    diag_format(diag, diag_get(diag, i), false, &d->why);
  return false;
}

static bool run_host(Diff *d, HostProgram *p, DiffTensor *out, DiagEngine *diag) {
  const void **inputs = ARENA_ARRAY(d->arena, const void *, d->nin + 1);
  void **outputs = ARENA_ARRAY(d->arena, void *, d->nout + 1);
  bool ok = p != NULL;
  for (int r = 0; r < d->runs && ok; r++) {
    for (int i = 0; i < d->nin; i++) inputs[i] = d->in[r * d->nin + i].data;
    for (int i = 0; i < d->nout; i++) outputs[i] = out[r * d->nout + i].data;
    ok = host_run(p, inputs, outputs, diag);
  }
  host_free(p);
  return ok;
}

static bool simulate_run(Diff *d, NpurtModel *m, int r, DiffTensor *out, DiagEngine *diag) {
  for (int i = 0; i < d->nin; i++) {
    const DiffTensor *t = &d->in[r * d->nin + i];
    const IsaIo *io = npurt_find_io(m, IO_INPUT, t->name);
    if (!io || io->dtype != t->dtype || io->rank != t->rank) return false;
    memcpy(npurt_io_data(m, io), t->data, t->bytes);
  }
  if (!npurt_run(m, diag)) return false;
  for (int i = 0; i < d->nout; i++) {
    DiffTensor *t = &out[r * d->nout + i];
    const IsaIo *io = npurt_find_io(m, IO_OUTPUT, t->name);
    if (!io || io->dtype != t->dtype || io->rank != t->rank) return false;
    memcpy(t->data, npurt_io_data(m, io), t->bytes);
  }
  return true;
}

/* No program takes less time, or moves fewer bytes, than its model needs. */
static bool within_bound(Diff *d, const NpurtProfile *p) {
  d->cycles = p->cycles;
  if (p->bound <= p->cycles && p->bound_bytes <= p->dram_read + p->dram_write) return true;
  strbuf_printf(&d->why, "%.1f cycles and %.0f bytes, but the bound is %.1f and %.0f\n", p->cycles,
                p->dram_read + p->dram_write, p->bound, p->bound_bytes);
  return false;
}

static bool simulate(Diff *d, const char *binary, NpurtMode mode, DiffTensor *out,
                     DiagEngine *diag) {
  NpurtOptions o = {.mode = mode};
  NpurtModel *m = npurt_load(binary, &o, diag);
  bool ok = m != NULL;
  for (int r = 0; r < d->runs && ok; r++) ok = simulate_run(d, m, r, out, diag);
  if (ok && mode == NPURT_TIMED) ok = within_bound(d, npurt_profile(m));
  npurt_free(m);
  return ok;
}

/* The first element at which two modes differ goes into why. */
static bool same_bytes(Diff *d, NpurtMode mode, const DiffTensor *a, const DiffTensor *b) {
  if (!memcmp(a->data, b->data, a->bytes)) return true;
  size_t i = 0, size = dtype_size(a->dtype);
  while (!memcmp((char *)a->data + i * size, (char *)b->data + i * size, size)) i++;
  strbuf_printf(&d->why, "%s[%zu] is %.9g in mode fast, %.9g in mode %s\n", a->name, i,
                dtype_get(a->dtype, a->data, i), dtype_get(b->dtype, b->data, i), mode_names[mode]);
  return false;
}

static bool simulate_all(Diff *d, const char *binary, DiagEngine *diag) {
  char phase[32];
  for (int mode = NPURT_FAST; mode <= NPURT_CHECK; mode++) {
    DiffTensor *out =
        mode == NPURT_FAST ? d->simulated : tensors_like(d, d->as_read, d->runs * d->nout);
    snprintf(phase, sizeof phase, "simulating (%s)", mode_names[mode]);
    if (!simulate(d, binary, (NpurtMode)mode, out, diag))
      return d->why.len ? false : fail(d, phase, diag);
    for (int i = 0; i < d->runs * d->nout; i++)
      if (!same_bytes(d, (NpurtMode)mode, &d->simulated[i], &out[i])) return false;
  }
  return true;
}

static bool write_binary(Npucc *c, const char *path, DiagEngine *diag) {
  IsaImage image = {0};
  bool ok = npucc_emit_image(c, &image) && isa_image_write(&image, path, diag);
  isa_image_free(&image);
  return ok;
}

static bool run_all(Diff *d, Npucc *c, DiagEngine *diag) {
  if (!npucc_read(c, d->path)) return fail(d, "reading", diag);
  make_tensors(d, npucc_module(c)->funcs[0]);
  if (!run_host(d, npucc_host(c), d->as_read, diag)) return fail(d, "host, as read", diag);
  if (d->host_only) return true;
  if (!npucc_run_passes(c, IR_GRAPH)) return fail(d, "graph passes", diag);
  if (!run_host(d, npucc_host(c), d->optimized, diag)) return fail(d, "host, optimized", diag);
  if (!npucc_run_passes(c, IR_PROGRAM)) return fail(d, "passes", diag);
  const char *binary = arena_printf(d->arena, "%s/model.bin", d->dir);
  if (!write_binary(c, binary, diag)) return fail(d, "emitting", diag);
  return simulate_all(d, binary, diag);
}

bool diff_run(Diff *d) {
  DiagEngine *diag = diag_new();
  Npucc *c = npucc_new(&d->options, diag);
  bool ok = c ? run_all(d, c, diag) : fail(d, "options", diag);
  npucc_free(c);
  diag_free(diag);
  return ok;
}
