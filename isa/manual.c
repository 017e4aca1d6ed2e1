/* Writes isa/README.md: tables from the .def files, prose from manual_text.c. */
#include "isa/isa_internal.h"
#include "isa/manual_text.h"
#include <stdlib.h>
#include <string.h>

static void heading(StrBuf *out, const char *title) {
  strbuf_printf(out, "\n## %s\n\n", title);
}

/* A table cell: '|' would end it. */
static void cell(StrBuf *out, const char *s) {
  for (; *s; s++) {
    if (*s == '|') strbuf_putc(out, '\\');
    strbuf_putc(out, *s);
  }
}

static const char *cost_name(IsaCostFn f) {
  static const char *const names[] = {
      [ISA_cost_seq] = "seq",   [ISA_cost_seq_spm] = "seq spm", [ISA_cost_seq_dram] = "seq dram",
      [ISA_cost_dma] = "dma",   [ISA_cost_mm_load] = "plane",   [ISA_cost_mm_mul] = "rows",
      [ISA_cost_vx] = "vector", [ISA_cost_sync] = "sync"};
  return names[f];
}

static void instructions(StrBuf *out) {
  for (unsigned e = 0; e < ENGINE_COUNT; e++) {
    bool any = false;
    for (unsigned k = 0; k < INSN_COUNT; k++) {
      const IsaInsnInfo *in = isa_insn_info((IsaInsnKind)k);
      if (in->engine != e) continue;
      if (!any)
        strbuf_printf(out,
                      "\n### %s\n\n| instruction | operands | opcode | flags | cost | meaning "
                      "|\n|---|---|---|---|---|---|\n",
                      isa_engine_name((IsaEngine)e));
      any = true;
      strbuf_printf(out, "| `%s` | %s | 0x%02x | %u | %s | ", in->mnemonic, in->operands,
                    (unsigned)in->opcode, (unsigned)in->flags,
                    cost_name(isa_insn_cost_fn((IsaInsnKind)k)));
      cell(out, in->doc);
      strbuf_puts(out, " |\n");
    }
  }
}

/* Number range, byte offset, type and meaning of each field of a kind. */
static void desc_kind(StrBuf *out, IsaDescKind kind) {
  strbuf_printf(
      out, "\n### %s\n\n%s\n\n| field | number | byte | type | meaning |\n|---|---|---|---|---|\n",
      isa_desc_kind_name(kind), manual_desc_text(kind));
  for (unsigned f = 0; f < isa_field_count();) {
    IsaField i;
    isa_field_info(f, DESC_NONE, &i);
    unsigned first = f, count = i.count;
    f += count;
    if (!isa_field_in_kind((uint8_t)first, kind)) continue;
    isa_field_info(first, kind, &i);
    strbuf_printf(out, "| `%s` | %u", i.name, first);
    if (count > 1) strbuf_printf(out, "..%u", first + count - 1);
    strbuf_printf(out, " | %u | %c%d", (unsigned)i.offset, i.is_signed ? 's' : 'u', i.size * 8);
    if (count > 1) strbuf_printf(out, "[%u]", count);
    if (strcmp(i.name, "base") == 0) strbuf_puts(out, ", one every 28 bytes");
    if (strcmp(i.name, "stride") == 0) strbuf_puts(out, ", five every 28 bytes");
    strbuf_puts(out, " | ");
    cell(out, i.doc);
    strbuf_puts(out, " |\n");
  }
}

static const char *unit_name(unsigned unit) {
  static const char *const names[] = {
      [UNIT_ALU] = "alu",       [UNIT_LOAD] = "load",     [UNIT_STORE] = "store",
      [UNIT_SFU] = "sfu",       [UNIT_DIV] = "sfu (div)", [UNIT_EXP] = "sfu (exp)",
      [UNIT_SIN] = "sfu (sin)", [UNIT_RED] = "reduce",    [UNIT_SUM] = "reduce",
      [UNIT_CTL] = "-"};
  return names[unit];
}

static void micro_operations(StrBuf *out) {
  strbuf_puts(out,
              "\n| micro-operation | operands | code | slot | meaning |\n|---|---|---|---|---|\n");
  for (unsigned k = 0; k < VOP_COUNT; k++) {
    const IsaVopInfo *v = isa_vop_info((IsaVopKind)k);
    strbuf_printf(out, "| `%s` | %s | 0x%02x | %s | ", v->mnemonic, v->operands, (unsigned)v->code,
                  unit_name(v->unit));
    cell(out, v->doc);
    strbuf_puts(out, " |\n");
  }
}

static void special_functions(StrBuf *out) {
  strbuf_puts(out, "\n| function | steps | largest error, ulp |\n|---|---|---|\n");
  for (unsigned k = 0; k < VOP_COUNT; k++) {
    const VmathFn *f = vmath_fn((IsaVopKind)k);
    if (f)
      strbuf_printf(out, "| `%s` | %d | %g |\n", isa_vop_info((IsaVopKind)k)->mnemonic, f->nsteps,
                    f->max_ulp);
  }
}

static void machine_field(StrBuf *out, const char *key, const char *type, const char *class,
                          double ideal, double min, double max) {
  strbuf_printf(out, "| `%s` | %s | %s | %.15g | %.15g |", key,
                strcmp(type, "double") == 0 ? "real" : "integer", class, min, max);
  if (ideal < 0)
    strbuf_puts(out, " |");
  else
    strbuf_printf(out, " %.15g |", ideal);
}

static void machine_fields(StrBuf *out) {
  static const char *const shown[] = {"edge", "cloud"};
  MachineDesc m[NPU_COUNTOF(shown)];
  DiagEngine *diag = diag_new();
  strbuf_puts(out, "\n| key | type | class | least | most | ideal |");
  for (size_t i = 0; i < NPU_COUNTOF(shown); i++) {
    if (!machine_load(shown[i], &m[i], diag)) abort(); /* they are built in */
    strbuf_printf(out, " %s |", shown[i]);
  }
  strbuf_puts(out, " unit and meaning |\n|---|---|---|---|---|---|");
  for (size_t i = 0; i < NPU_COUNTOF(shown); i++) strbuf_puts(out, "---|");
  strbuf_puts(out, "---|\n");
#define MFIELD(member, type, key, class, ideal, min, max, doc)                                     \
  machine_field(out, key, #type, #class, ideal, (double)(min), (double)(max));                     \
  for (size_t i = 0; i < NPU_COUNTOF(shown); i++)                                                  \
    strbuf_printf(out, " %.15g |", (double)m[i].member);                                           \
  strbuf_puts(out, " " doc " |\n");
#include "isa/machine.def"
#undef MFIELD
  diag_free(diag);
}

void isa_manual(StrBuf *out) {
  strbuf_puts(out, manual_intro);
  heading(out, "Encoding of instructions");
  strbuf_puts(out, manual_encoding);
  heading(out, "Instructions");
  strbuf_puts(out, manual_instructions);
  instructions(out);
  heading(out, "Order");
  strbuf_puts(out, manual_order);
  heading(out, "Descriptors");
  strbuf_puts(out, manual_descriptors);
  for (unsigned k = DESC_DMA; k <= DESC_VECTOR; k++) desc_kind(out, (IsaDescKind)k);
  heading(out, "Transfers");
  strbuf_puts(out, manual_transfers);
  heading(out, "The matrix unit");
  strbuf_puts(out, manual_matrix);
  heading(out, "Vector programs");
  strbuf_puts(out, manual_vector);
  micro_operations(out);
  heading(out, "Special functions");
  strbuf_puts(out, manual_vmath);
  special_functions(out);
  heading(out, "Machine description");
  strbuf_puts(out, manual_machine);
  machine_fields(out);
  heading(out, "Time");
  strbuf_puts(out, manual_cost);
  heading(out, "DRAM");
  strbuf_puts(out, manual_dram);
  heading(out, "Energy");
  strbuf_puts(out, manual_energy);
  heading(out, "Roofline");
  strbuf_puts(out, manual_roofline);
  heading(out, "Container");
  strbuf_puts(out, manual_container);
  heading(out, "Assembly text");
  strbuf_puts(out, manual_assembly);
  heading(out, "Reserved");
  strbuf_puts(out, manual_reserved);
  heading(out, "Adding an instruction");
  strbuf_puts(out, manual_recipe);
}
