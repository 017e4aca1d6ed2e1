/* The assembler: lines of directives, labels and instructions to an image. The text form is
 * described in isa/README.md. Errors are reported line by line, up to twenty. */
#include "isa/asm_internal.h"
#include <stdlib.h>
#include <string.h>
#define uthash_malloc(n) mem_alloc(n)
#define uthash_free(p, n) mem_free(p)
#include <uthash.h>

/* ---- directives ---- */

/* .machine { key = value lines } or .machine NAME. */
static bool read_machine(Asm *a) {
  if (!asm_accept(a, '{')) {
    const char *name = a->tok.text;
    SrcLoc loc = asm_loc(a);
    if (a->tok.kind != TOK_WORD)
      return asm_error(a, "expected '{' or the name of a built-in machine");
    asm_next(a);
    for (size_t i = 0; i < machine_builtin_count(); i++)
      if (strcmp(machine_builtin_name(i), name) == 0)
        return machine_load(name, &a->img->machine, a->diag) && asm_expect_end(a);
    return asm_error_at(a, loc, "'%s' is not a built-in machine; write its description in braces",
                        name);
  }
  if (!asm_expect_end(a)) return false;
  SrcLoc open = asm_loc(a);
  const char *start = NULL;
  uint32_t first = a->line + 1;
  while (asm_next_line(a)) {
    if (!start) start = a->line_text;
    if (a->tok.kind == TOK_PUNCT && a->tok.punct == '}') {
      asm_next(a);
      size_t len = (size_t)(a->line_text - start);
      if (machine_parse_at(start, len, a->label, first, &a->img->machine, a->diag))
        return asm_expect_end(a);
      a->img->machine = *machine_default(); /* so that later checks do not repeat the trouble */
      a->errors++;
      return false;
    }
  }
  return asm_error_at(a, open, "the machine description is not closed with '}'");
}

static bool dir_machine(Asm *a) {
  SrcLoc loc = asm_loc(a);
  bool again = a->have_machine;
  a->have_machine = true;
  return read_machine(a) && (!again || asm_error_at(a, loc, ".machine is given twice"));
}

static bool dir_dram(Asm *a) {
  int64_t v;
  if (a->have_dram) return asm_error(a, ".dram is given twice");
  if (!asm_int(a, 0, INT64_MAX, "the bytes of DRAM in use", &v)) return false;
  a->img->dram_bytes = (uint64_t)v;
  a->have_dram = true;
  return asm_expect_end(a);
}

static bool dir_roofline(Asm *a) {
  static const char *const keys[] = {"macs_s8", "macs_bf16", "dram_bytes"};
  if (a->have_roofline) return asm_error(a, ".roofline is given twice");
  a->have_roofline = true;
  bool have[NPU_COUNTOF(keys)] = {false};
  double *values[] = {&a->img->ideal_macs_s8, &a->img->ideal_macs_bf16, &a->img->ideal_dram_bytes};
  while (a->tok.kind != TOK_END) {
    size_t i = 0;
    while (i < NPU_COUNTOF(keys) && !asm_is_word(a, keys[i])) i++;
    if (i == NPU_COUNTOF(keys))
      return asm_error(a, "expected macs_s8=, macs_bf16= or dram_bytes=, found '%s'", a->tok.text);
    if (have[i]) return asm_error(a, "%s is given twice", keys[i]);
    have[i] = true;
    asm_next(a);
    if (!asm_expect(a, '=') || !asm_real(a, "a figure", values[i])) return false;
  }
  return true;
}

/* .io input "x" f32[1,28,28] 4096 */
static bool dir_io(Asm *a) {
  static const char *const roles[] = {"input", "output", "state"};
  IsaIo io = {0};
  SrcLoc loc = asm_loc(a);
  unsigned role = 0;
  while (role < NPU_COUNTOF(roles) && !asm_is_word(a, roles[role])) role++;
  if (role == NPU_COUNTOF(roles))
    return asm_error(a, "expected input, output or state, found '%s'", a->tok.text);
  io.role = (IsaIoRole)role;
  asm_next(a);
  if (!asm_string(a, "a name", &io.name)) return false;
  if (a->tok.kind != TOK_WORD || !dtype_parse(a->tok.text, &io.dtype))
    return asm_error(a, "expected a dtype, found '%s'", a->tok.text);
  asm_next(a);
  if (!asm_expect(a, '[')) return false;
  while (!asm_accept(a, ']')) {
    if (io.rank && !asm_expect(a, ',')) return false;
    if (io.rank == 8) return asm_error(a, "a tensor has at most 8 axes");
    if (!asm_int(a, 1, INT64_MAX, "an axis size", &io.shape[io.rank])) return false;
    io.rank++;
  }
  int64_t addr;
  if (!asm_int(a, 0, INT64_MAX, "a DRAM address", &addr)) return false;
  io.addr = (uint64_t)addr;
  if (!asm_expect_end(a)) return false;
  ASM_PUSH(a->io, io);
  ASM_PUSH(a->io_places, loc);
  return true;
}

/* .loc "file" line col "op" */
static bool dir_loc(Asm *a) {
  IsaSrcMap m = {.insn = ASM_COUNT(a->insns, AsmInsn)};
  int64_t line, col;
  if (!asm_string(a, "a file name", &m.file) || !asm_int(a, 0, UINT32_MAX, "a line", &line) ||
      !asm_int(a, 0, UINT32_MAX, "a column", &col) || !asm_string(a, "an op name", &m.op))
    return false;
  if (asm_is_word(a, "macs")) {
    asm_next(a);
    if (!asm_expect(a, '=') || !asm_real(a, "a number of multiply-accumulates", &m.macs))
      return false;
  }
  if (!asm_expect_end(a)) return false;
  m.line = (uint32_t)line;
  m.col = (uint32_t)col;
  ASM_PUSH(a->srcmap, m);
  return true;
}

static const struct {
  const char *name;
  bool (*run)(Asm *a);
} directives[] = {{".machine", dir_machine}, {".dram", dir_dram},      {".roofline", dir_roofline},
                  {".io", dir_io},           {".loc", dir_loc},        {".desc", asm_desc},
                  {".vprog", asm_vprog},     {".segment", asm_segment}};

/* ---- lines ---- */

struct AsmLabel {
  uint32_t insn;
  UT_hash_handle hh;
};

static AsmLabel *find_label(const Asm *a, const char *name) {
  AsmLabel *l;
  HASH_FIND_STR(a->labels, name, l);
  return l;
}

static void add_label(Asm *a) {
  IsaSymbol s = {.name = arena_strdup(a->arena, a->tok.text), .insn = ASM_COUNT(a->insns, AsmInsn)};
  if (find_label(a, s.name)) {
    asm_error(a, "label '%s' is defined twice", s.name);
    return;
  }
  AsmLabel *l = ARENA_NEW(a->scratch, AsmLabel);
  l->insn = s.insn;
  HASH_ADD_KEYPTR(hh, a->labels, s.name, strlen(s.name), l);
  ASM_PUSH(a->symbols, s);
}

/* Label definitions at the start of the line. A word or a string is one when ':' follows. */
static void labels(Asm *a) {
  while (a->tok.kind == TOK_WORD || a->tok.kind == TOK_STRING) {
    const char *after = a->pos;
    while (after < a->end && (*after == ' ' || *after == '\t')) after++;
    if (after >= a->end || *after != ':') return;
    add_label(a);
    asm_next(a);
    asm_next(a);
  }
}

static void statement(Asm *a) {
  labels(a);
  if (a->tok.kind == TOK_END) return;
  if (a->tok.kind == TOK_WORD)
    for (size_t i = 0; i < NPU_COUNTOF(directives); i++)
      if (strcmp(directives[i].name, a->tok.text) == 0) {
        asm_next(a);
        directives[i].run(a);
        return;
      }
  asm_instruction(a);
}

/* ---- finishing ---- */

static void bad_label(Asm *a, const AsmInsn *in) {
  uint32_t n = ASM_COUNT(a->symbols, IsaSymbol);
  const IsaSymbol *s = (const IsaSymbol *)(void *)a->symbols.data;
  const char **all = ARENA_ARRAY(a->scratch, const char *, n + 1);
  for (uint32_t i = 0; i < n; i++) all[i] = s[i].name;
  const char *near = str_nearest(in->label, all, n);
  asm_error_at(a, in->loc, "label '%s' is not defined%s%s%s", in->label,
               near ? ", did you mean '" : "", near ? near : "", near ? "'?" : "");
}

static void resolve(Asm *a) {
  uint32_t n = ASM_COUNT(a->insns, AsmInsn);
  AsmInsn *in = (AsmInsn *)(void *)a->insns.data;
  a->img->code = arena_alloc(a->arena, (size_t)n * ISA_INSN_BYTES + 1);
  for (uint32_t i = 0; i < n; i++) {
    if (in[i].label) {
      const AsmLabel *found = find_label(a, in[i].label);
      if (found)
        in[i].in.target = found->insn;
      else
        bad_label(a, &in[i]);
    }
    const char *why = "";
    IsaInsnKind k = in[i].in.kind;
    if (k == INSN_DLOAD && in[i].in.target >= a->img->ndescs)
      asm_error_at(a, in[i].loc, "descriptor %u does not exist, there are %u", in[i].in.target,
                   a->img->ndescs);
    if (k == INSN_VX && in[i].in.vp >= a->img->nvprogs)
      asm_error_at(a, in[i].loc, "vector program %u does not exist, there are %u",
                   (unsigned)in[i].in.vp, a->img->nvprogs);
    isa_encode(&in[i].in, a->img->code + (size_t)i * ISA_INSN_BYTES, &why);
  }
  a->img->ninsns = n;
  HASH_CLEAR(hh, a->labels);
}

static int by_address(const void *x, const void *y) {
  const AsmSegment *p = x, *q = y;
  if (p->segment.addr != q->segment.addr) return p->segment.addr < q->segment.addr ? -1 : 1;
  return p->loc.line < q->loc.line ? -1 : p->loc.line > q->loc.line;
}

/* The segments by address, and their places. */
static SrcLoc *sort_segments(Asm *a) {
  uint32_t n = ASM_COUNT(a->segments, AsmSegment);
  AsmSegment *s = (AsmSegment *)(void *)a->segments.data;
  SrcLoc *places = ARENA_ARRAY(a->scratch, SrcLoc, n + 1);
  if (n) qsort(s, n, sizeof *s, by_address);
  a->img->segments = ARENA_ARRAY(a->arena, IsaSegment, n + 1);
  a->img->nsegments = n;
  for (uint32_t i = 0; i < n; i++) {
    a->img->segments[i] = s[i].segment;
    places[i] = s[i].loc;
  }
  strbuf_free(&a->segments);
  return places;
}

static void *keep(Asm *a, StrBuf *b) {
  void *p = b->len ? arena_copy(a->arena, b->data, b->len) : NULL;
  strbuf_free(b);
  return p;
}

/* DRAM in use when the text does not say: up to the end of the last segment or tensor. */
static void default_dram(IsaImage *img) {
  uint64_t end = 0;
  for (uint32_t i = 0; i < img->nsegments; i++) {
    uint64_t e = img->segments[i].addr + img->segments[i].size;
    if (e > end) end = e;
  }
  for (uint32_t i = 0; i < img->nio; i++) {
    int64_t bytes = (int64_t)dtype_size(img->io[i].dtype);
    for (int k = 0; k < img->io[i].rank; k++)
      if (!mul_i64(bytes, img->io[i].shape[k], &bytes)) return;
    if (img->io[i].addr + (uint64_t)bytes > end) end = img->io[i].addr + (uint64_t)bytes;
  }
  img->dram_bytes = end;
}

/* What can be meant, but hardly is. */
static void warn_of_gaps(const Asm *a, const SrcLoc *io) {
  if (!a->have_machine)
    diag_warning(a->diag, (SrcLoc){.file = a->label}, "W-machine",
                 "no .machine: the program is for the machine '%s'; write '.machine %s' to say so",
                 a->img->machine.name, a->img->machine.name);
  for (uint32_t i = 0; i < a->img->ninsns; i++) {
    IsaInsn in;
    const char *why;
    if (!isa_decode(a->img->code + (size_t)i * ISA_INSN_BYTES, &in, &why)) return;
    if (isa_insn_info(in.kind)->engine == ENGINE_ST && isa_insn_args(in.kind).n > 0) return;
  }
  for (uint32_t i = 0; i < a->img->nio; i++)
    if (a->img->io[i].role == IO_OUTPUT)
      diag_warning(a->diag, io[i], "W-unwritten",
                   "no instruction writes output '%s': the program has no store",
                   a->img->io[i].name);
}

static bool finish(Asm *a) {
  IsaImage *img = a->img;
  img->ndescs = ASM_COUNT(a->descs, IsaDesc);
  img->nvprogs = ASM_COUNT(a->vprogs, IsaVprog);
  resolve(a);
  img->nio = ASM_COUNT(a->io, IsaIo);
  img->nsymbols = ASM_COUNT(a->symbols, IsaSymbol);
  img->nsrcmap = ASM_COUNT(a->srcmap, IsaSrcMap);
  strbuf_free(&a->insns);
  img->descs = keep(a, &a->descs);
  img->vprogs = keep(a, &a->vprogs);
  IsaPlaces places = {.io = (const SrcLoc *)(const void *)a->io_places.data,
                      .segments = sort_segments(a)};
  img->io = keep(a, &a->io);
  img->symbols = keep(a, &a->symbols);
  img->srcmap = keep(a, &a->srcmap);
  if (!a->have_dram) default_dram(img);
  if (a->errors > ASM_MAX_ERRORS) {
    diag_error(a->diag, (SrcLoc){.file = a->label}, "E-asm", "%u more errors are not shown",
               a->errors - ASM_MAX_ERRORS);
    return false;
  }
  bool ok = a->errors == 0 && isa_image_check_text(img, a->label, &places, a->diag);
  if (ok) warn_of_gaps(a, places.io);
  return ok;
}

bool isa_assemble(const char *text, size_t len, const char *label, IsaImage *out,
                  DiagEngine *diag) {
  isa_image_init(out);
  diag_add_source(diag, label, text, len);
  Asm a = {.pos = text,
           .end = text + len,
           .line_text = text,
           .label = label,
           .diag = diag,
           .arena = out->arena,
           .img = out,
           .scratch = arena_new()};
  while (asm_next_line(&a)) statement(&a);
  bool ok = finish(&a);
  strbuf_free(&a.io_places);
  arena_free(a.scratch);
  if (!ok) isa_image_free(out);
  return ok;
}
