/* The promises about an image, whoever made it: writer, reader and assembler call this. */
#include "isa/isa_internal.h"
#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#define uthash_malloc(n) mem_alloc(n)
#define uthash_free(p, n) mem_free(p)
#include <uthash.h>

typedef struct {
  const IsaImage *img;
  const char *label;
  const IsaPlaces *places; /* or NULL */
  DiagEngine *diag;
} Check;

static SrcLoc io_place(const Check *c, uint32_t i) {
  return c->places ? c->places->io[i] : (SrcLoc){.file = c->label};
}
static SrcLoc segment_place(const Check *c, uint32_t i) {
  return c->places ? c->places->segments[i] : (SrcLoc){.file = c->label};
}

static bool bad_at(const Check *c, SrcLoc loc, const char *fmt, va_list ap) {
  diag_report(c->diag, DIAG_ERROR, loc, "E-image", fmt, ap);
  return false;
}
static bool bad(const Check *c, const char *fmt, ...) NPU_PRINTF(2, 3);
static bool bad(const Check *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  bad_at(c, (SrcLoc){.file = c->label}, fmt, ap);
  va_end(ap);
  return false;
}
static bool bad_io(const Check *c, uint32_t i, const char *fmt, ...) NPU_PRINTF(3, 4);
static bool bad_io(const Check *c, uint32_t i, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  bad_at(c, io_place(c, i), fmt, ap);
  va_end(ap);
  return false;
}
static bool bad_segment(const Check *c, uint32_t i, const char *fmt, ...) NPU_PRINTF(3, 4);
static bool bad_segment(const Check *c, uint32_t i, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  bad_at(c, segment_place(c, i), fmt, ap);
  va_end(ap);
  return false;
}

static bool check_insn(const Check *c, uint32_t i, IsaInsn *in) {
  const IsaImage *img = c->img;
  const char *why = "";
  if (!isa_decode(img->code + (size_t)i * ISA_INSN_BYTES, in, &why))
    return bad(c, "instruction %u: %s; compile or assemble the program again", i, why);
  IsaArgs args = isa_insn_args(in->kind);
  for (int a = 0; a < args.n; a++) {
    if (args.arg[a] == ARG_TGT && in->target >= img->ninsns)
      return bad(c, "instruction %u (%s): jump target %u is outside the program of %u instructions",
                 i, isa_insn_info(in->kind)->mnemonic, in->target, img->ninsns);
    if (args.arg[a] == ARG_IDX && in->target >= img->ndescs)
      return bad(c, "instruction %u (dload): descriptor %u does not exist, there are %u", i,
                 in->target, img->ndescs);
    if (args.arg[a] == ARG_VP && in->vp >= img->nvprogs)
      return bad(c, "instruction %u (vx): vector program %u does not exist, there are %u", i,
                 (unsigned)in->vp, img->nvprogs);
  }
  return true;
}

static bool check_code(const Check *c) {
  const IsaImage *img = c->img;
  IsaInsn in = {0};
  if (img->ninsns == 0) return bad(c, "the program has no instructions; it needs at least 'halt'");
  if (img->nvprogs > UINT16_MAX + 1u) return bad(c, "more than 65536 vector programs");
  for (uint32_t i = 0; i < img->ninsns; i++)
    if (!check_insn(c, i, &in)) return false;
  if (in.kind != INSN_HALT && in.kind != INSN_JMP)
    return bad(
        c, "the last instruction is '%s': the program would run off its end; finish it with 'halt'",
        isa_insn_info(in.kind)->mnemonic);
  return true;
}

static bool check_tables(const Check *c) {
  const IsaImage *img = c->img;
  const char *why = "";
  for (uint32_t i = 0; i < img->ndescs; i++)
    if (!isa_desc_check(&img->descs[i], &img->machine, &why))
      return bad(c, "descriptor %u: %s", i, why);
  for (uint32_t i = 0; i < img->nvprogs; i++)
    if (!isa_vprog_check(&img->vprogs[i], ISA_STREAMS, &why))
      return bad(c, "vector program %u: %s", i, why);
  return true;
}

static bool check_memory(const Check *c) {
  const IsaImage *img = c->img;
  if (img->dram_bytes > (uint64_t)img->machine.dram_bytes)
    return bad(c,
               "the program needs %llu bytes of DRAM, machine '%s' has %llu; use a machine with "
               "more dram_bytes",
               (unsigned long long)img->dram_bytes, img->machine.name,
               (unsigned long long)img->machine.dram_bytes);
  uint64_t end = 0;
  for (uint32_t i = 0; i < img->nsegments; i++) {
    const IsaSegment *s = &img->segments[i];
    if (s->size == 0)
      return bad_segment(c, i, "segment %u '%s' is empty; leave it out", i, s->name ? s->name : "");
    if (s->addr < end)
      return bad_segment(
          c, i, "segment %u '%s' at %llu overlaps the one before it, which ends at %llu", i,
          s->name ? s->name : "", (unsigned long long)s->addr, (unsigned long long)end);
    if (s->size > img->dram_bytes || s->addr > img->dram_bytes - s->size)
      return bad_segment(
          c, i, "segment %u '%s' (%llu bytes at %llu) lies outside the %llu bytes of DRAM in use",
          i, s->name ? s->name : "", (unsigned long long)s->size, (unsigned long long)s->addr,
          (unsigned long long)img->dram_bytes);
    end = s->addr + s->size;
  }
  return true;
}

static bool check_io(const Check *c, uint32_t i) {
  const IsaImage *img = c->img;
  const IsaIo *io = &img->io[i];
  if (!io->name || !*io->name) return bad_io(c, i, "input/output %u has no name", i);
  if (io->role > IO_STATE)
    return bad_io(c, i, "'%s': unknown role %u", io->name, (unsigned)io->role);
  if (io->dtype >= DT_MACHINE_COUNT)
    return bad_io(c, i, "'%s': dtype is not s8, bf16, f32 or s32", io->name);
  if (io->rank < 0 || io->rank > 8)
    return bad_io(c, i, "'%s': rank %d is not 0..8", io->name, io->rank);
  int64_t bytes = (int64_t)dtype_size(io->dtype);
  for (int a = 0; a < io->rank; a++)
    if (io->shape[a] < 1 || !mul_i64(bytes, io->shape[a], &bytes))
      return bad_io(
          c, i, "'%s': axis %d has size %lld, which is not positive or makes the tensor too large",
          io->name, a, (long long)io->shape[a]);
  if (io->addr % dtype_size(io->dtype) != 0)
    return bad_io(c, i, "'%s': address %llu is not a multiple of the element size", io->name,
                  (unsigned long long)io->addr);
  if ((uint64_t)bytes > img->dram_bytes || io->addr > img->dram_bytes - (uint64_t)bytes)
    return bad_io(c, i, "'%s' (%lld bytes at %llu) lies outside the %llu bytes of DRAM in use",
                  io->name, (long long)bytes, (unsigned long long)io->addr,
                  (unsigned long long)img->dram_bytes);
  return true;
}

/* ---- overlaps ---- */

typedef struct {
  uint64_t lo, hi;
  uint32_t io;
} Range;

static int range_order(const void *x, const void *y) {
  const Range *a = x, *b = y;
  if (a->lo != b->lo) return a->lo < b->lo ? -1 : 1;
  return a->io < b->io ? -1 : a->io > b->io;
}

static const char *role_name(const IsaIo *io) {
  static const char *const names[] = {"input", "output", "state"};
  return names[io->role];
}

static bool tensors_overlap(const Check *c, uint32_t a, uint32_t b, uint64_t from) {
  const IsaIo *x = &c->img->io[a > b ? a : b], *y = &c->img->io[a > b ? b : a];
  bad_io(c, a > b ? a : b,
         "%s '%s' overlaps %s '%s' at byte %llu of DRAM; give each its own bytes (what is read and "
         "written in place is a state)",
         role_name(x), x->name, role_name(y), y->name, (unsigned long long)from);
  diag_note(c->diag, io_place(c, a > b ? b : a), "'%s' is here", y->name);
  return false;
}

static bool segment_overlaps(const Check *c, uint32_t segment, uint32_t io) {
  const IsaSegment *s = &c->img->segments[segment];
  const IsaIo *t = &c->img->io[io];
  bad_segment(c, segment,
              t->role == IO_STATE
                  ? "segment '%s' lies partly outside %s '%s', whose first value it is"
                  : "segment '%s' overlaps %s '%s'; only a state has a value before the run",
              s->name ? s->name : "", role_name(t), t->name);
  diag_note(c->diag, io_place(c, io), "'%s' is here", t->name);
  return false;
}

static bool ranges_apart(const Check *c, const Range *r, uint32_t n) {
  const IsaImage *img = c->img;
  for (uint32_t i = 1; i < n; i++)
    if (r[i].lo < r[i - 1].hi) return tensors_overlap(c, r[i].io, r[i - 1].io, r[i].lo);
  uint32_t i = 0;
  for (uint32_t k = 0; k < img->nsegments; k++) { /* by address, as the ranges */
    uint64_t lo = img->segments[k].addr, hi = lo + img->segments[k].size;
    while (i < n && r[i].hi <= lo) i++;
    if (i == n || r[i].lo >= hi) continue;
    if (img->io[r[i].io].role != IO_STATE || lo < r[i].lo || hi > r[i].hi)
      return segment_overlaps(c, k, r[i].io);
  }
  return true;
}

static bool check_overlaps(const Check *c) {
  const IsaImage *img = c->img;
  Range *r = mem_alloc((img->nio + 1) * sizeof *r);
  for (uint32_t i = 0; i < img->nio; i++) {
    const IsaIo *io = &img->io[i];
    uint64_t bytes = dtype_size(io->dtype);
    for (int a = 0; a < io->rank; a++) bytes *= (uint64_t)io->shape[a];
    r[i] = (Range){io->addr, io->addr + bytes, i};
  }
  qsort(r, img->nio, sizeof *r, range_order);
  bool ok = ranges_apart(c, r, img->nio);
  mem_free(r);
  return ok;
}

/* ---- names ---- */

typedef struct {
  UT_hash_handle hh;
} Name;

/* The first name that occurs twice among n of them, or NULL; `name` returns NULL for those that do
 * not count. */
static const char *repeated(const char *(*name)(const IsaImage *, uint32_t, int),
                            const IsaImage *img, uint32_t n, int what) {
  Arena *a = arena_new();
  Name *all = NULL, *found;
  const char *twice = NULL;
  for (uint32_t i = 0; i < n && !twice; i++) {
    const char *s = name(img, i, what);
    if (!s) continue;
    HASH_FIND_STR(all, s, found);
    if (found) {
      twice = s;
    } else {
      Name *k = ARENA_NEW(a, Name);
      HASH_ADD_KEYPTR(hh, all, s, strlen(s), k);
    }
  }
  HASH_CLEAR(hh, all);
  arena_free(a);
  return twice;
}
static const char *io_name(const IsaImage *img, uint32_t i, int role) {
  return (int)img->io[i].role == role ? img->io[i].name : NULL;
}
static const char *symbol_name(const IsaImage *img, uint32_t i, int unused) {
  (void)unused;
  return img->symbols[i].name;
}

static bool check_names(const Check *c) {
  const IsaImage *img = c->img;
  for (uint32_t i = 0; i < img->nio; i++)
    if (!check_io(c, i)) return false;
  for (uint32_t i = 0; i < img->nsymbols; i++) {
    const IsaSymbol *s = &img->symbols[i];
    if (!s->name || !*s->name) return bad(c, "label %u has no name", i);
    if (i && s->insn < img->symbols[i - 1].insn)
      return bad(c, "label '%s' is not in the order of the instructions", s->name);
    if (s->insn > img->ninsns)
      return bad(c, "label '%s' stands at instruction %u of %u", s->name, s->insn, img->ninsns);
  }
  const char *twice = repeated(symbol_name, img, img->nsymbols, 0);
  if (twice) return bad(c, "label '%s' is defined twice", twice);
  for (int role = IO_INPUT; role <= IO_STATE; role++) {
    twice = repeated(io_name, img, img->nio, role);
    if (twice) return bad(c, "'%s' names two tensors of one role", twice);
  }
  for (uint32_t i = 0; i < img->nsrcmap; i++) {
    uint32_t at = img->srcmap[i].insn;
    if (at >= img->ninsns || (i && at < img->srcmap[i - 1].insn))
      return bad(c, "source map entry %u (instruction %u) is out of order or outside the program",
                 i, at);
  }
  return true;
}

static bool check_figures(const Check *c) {
  const IsaImage *img = c->img;
  double v[] = {img->ideal_macs_s8, img->ideal_macs_bf16, img->ideal_dram_bytes};
  for (size_t i = 0; i < NPU_COUNTOF(v); i++)
    if (!isfinite(v[i]) || v[i] < 0) return bad(c, "a roofline figure is negative or not finite");
  for (uint32_t i = 0; i < img->nsrcmap; i++)
    if (!isfinite(img->srcmap[i].macs) || img->srcmap[i].macs < 0)
      return bad(c, "the multiply-accumulates of source map entry %u are negative or not finite",
                 i);
  return true;
}

bool isa_image_check_text(const IsaImage *img, const char *label, const IsaPlaces *places,
                          DiagEngine *diag) {
  Check c = {img, label, places, diag};
  return check_memory(&c) && check_tables(&c) && check_code(&c) && check_names(&c) &&
         check_overlaps(&c) && check_figures(&c);
}

bool isa_image_check(const IsaImage *img, const char *label, DiagEngine *diag) {
  return isa_image_check_text(img, label, NULL, diag);
}
