/* Reads the container. Nothing in the file is believed: sizes are compared with the file before
 * anything is allocated, and the finished image passes isa_image_check. Constants stay where they
 * are in the file. */
#include "isa/container.h"
#include <gelf.h>
#include <libelf.h>
#include <stdarg.h>
#include <string.h>
#include <zlib.h>

typedef struct {
  const uint8_t *data;
  size_t size;
  const char *label;
  DiagEngine *diag;
  IsaImage *img;
  struct {
    const uint8_t *data;
    size_t size;
    bool seen;
  } sec[SEC_COUNT];
} Reader;

static const char *const names[SEC_COUNT] = {
#define X(e, n) n,
    CONTAINER_SECTIONS(X)
#undef X
};

static bool refuse(const Reader *r, const char *code, const char *fmt, ...) NPU_PRINTF(3, 4);
static bool refuse(const Reader *r, const char *code, const char *fmt, ...) {
  StrBuf b = {0};
  va_list ap;
  va_start(ap, fmt);
  strbuf_vprintf(&b, fmt, ap);
  va_end(ap);
  diag_error(r->diag, (SrcLoc){.file = r->label}, code, "%s", b.data);
  strbuf_free(&b);
  return false;
}
static bool damaged(const Reader *r, const char *what) {
  return refuse(r, "E-image",
                "the file is damaged: %s; compile the model again or copy the file again", what);
}

/* ---- finding the sections ---- */

/* The raw ELF header, so that libelf is only shown section tables that lie inside the file. */
static bool check_header(const Reader *r) {
  Elf64_Ehdr e;
  if (r->size < SELFMAG || memcmp(r->data, ELFMAG, SELFMAG) != 0)
    return refuse(r, "E-image",
                  "not a model binary (no ELF magic); give a file written by npucc or npu-as");
  if (r->size < sizeof e) return damaged(r, "it ends inside the ELF header");
  memcpy(&e, r->data, sizeof e);
  if (e.e_ident[EI_CLASS] != ELFCLASS64 || e.e_ident[EI_DATA] != ELFDATA2LSB ||
      e.e_machine != NPU_ELF_MACHINE)
    return refuse(r, "E-image",
                  "an ELF file, but not for this machine; give a file written by npucc or npu-as");
  if (e.e_shnum == 0 || e.e_shnum > MAX_SECTIONS || e.e_shentsize != sizeof(Elf64_Shdr) ||
      e.e_phnum != 0 || e.e_shstrndx >= e.e_shnum || e.e_version != EV_CURRENT ||
      e.e_ehsize != sizeof e)
    return damaged(r, "its ELF header makes no sense");
  uint64_t bytes = (uint64_t)e.e_shnum * sizeof(Elf64_Shdr);
  if (e.e_shoff > r->size || bytes > r->size - e.e_shoff)
    return damaged(r, "its section headers lie outside the file (truncated?)");
  return true;
}

static bool note_section(Reader *r, const char *name, const GElf_Shdr *h) {
  for (int s = 0; s < SEC_COUNT; s++) {
    if (strcmp(names[s], name) != 0) continue;
    if (r->sec[s].seen) return damaged(r, "a section occurs twice");
    if (h->sh_type == SHT_NOBITS || h->sh_offset > r->size || h->sh_size > r->size - h->sh_offset)
      return damaged(r, "a section lies outside the file (truncated?)");
    r->sec[s].seen = true;
    r->sec[s].data = r->data + h->sh_offset;
    r->sec[s].size = h->sh_size;
    return true;
  }
  return true; /* sections of later minor versions are none of our business */
}

static bool find_sections(Reader *r) {
  elf_version(EV_CURRENT);
  Elf *elf = elf_memory((char *)(uintptr_t)r->data,
                        r->size); /* read only: nothing is written through it */
  if (!elf) return damaged(r, "libelf cannot read it");
  size_t strndx = 0;
  bool ok = elf_kind(elf) == ELF_K_ELF && elf_getshdrstrndx(elf, &strndx) == 0;
  if (!ok) damaged(r, "libelf cannot read it");
  for (Elf_Scn *scn = NULL; ok && (scn = elf_nextscn(elf, scn)) != NULL;) {
    GElf_Shdr h; /* a copy: in the file it may be unaligned */
    const char *name = gelf_getshdr(scn, &h) ? elf_strptr(elf, strndx, h.sh_name) : NULL;
    ok = name ? note_section(r, name, &h) : damaged(r, "a section has no name");
  }
  elf_end(elf);
  for (int s = 0; ok && s < SEC_COUNT; s++)
    if (!r->sec[s].seen)
      ok = refuse(r, "E-image", "section '%s' is missing; compile the model again", names[s]);
  return ok;
}

static bool check_version(const Reader *r) {
  NoteRecord n;
  if (r->sec[SEC_NOTE].size != sizeof n) return damaged(r, "its version note has the wrong size");
  memcpy(&n, r->sec[SEC_NOTE].data, sizeof n);
  if (n.type != NOTE_TYPE_VERSION || n.namesz != sizeof NPU_NOTE_NAME || n.descsz != 8 ||
      memcmp(n.name, NPU_NOTE_NAME "\0\0", sizeof n.name) != 0)
    return damaged(r, "its version note makes no sense");
  if (n.major != ISA_VERSION_MAJOR)
    return refuse(r, "E-version",
                  "format version %u.%u, but this program understands version %d; compile the "
                  "model again with this release",
                  n.major, n.minor, ISA_VERSION_MAJOR);
  return true;
}

/* Sum over the whole file with the four bytes of the sum taken as zero. */
static uint32_t file_sum(const uint8_t *data, size_t size, size_t at) {
  static const uint8_t zero[4];
  uLong crc = crc32_z(0, data, at);
  crc = crc32_z(crc, zero, 4);
  return (uint32_t)crc32_z(crc, data + at + 4, size - at - 4);
}

static bool check_sum(const Reader *r) {
  uint32_t want;
  if (r->sec[SEC_SUM].size != 4) return damaged(r, "its checksum section has the wrong size");
  memcpy(&want, r->sec[SEC_SUM].data, 4);
  uint32_t got = file_sum(r->data, r->size, (size_t)(r->sec[SEC_SUM].data - r->data));
  if (got != want) {
    char text[80];
    snprintf(text, sizeof text, "checksum %08x, expected %08x", got, want);
    return damaged(r, text);
  }
  return true;
}

bool isa_image_seal(uint8_t *data, size_t size) {
  DiagEngine *diag = diag_new();
  Reader r = {.data = data, .size = size, .label = "", .diag = diag};
  bool ok = check_header(&r) && find_sections(&r) && r.sec[SEC_SUM].size == 4;
  if (ok) {
    size_t at = (size_t)(r.sec[SEC_SUM].data - r.data);
    uint32_t sum = file_sum(data, size, at);
    memcpy(data + at, &sum, 4);
  }
  diag_free(diag);
  return ok;
}

/* ---- contents ---- */

/* Number of records in a section; false when a piece of one is left over. */
static bool count_records(const Reader *r, ContainerSection s, size_t record, uint32_t *n) {
  size_t size = r->sec[s].size;
  if (size % record != 0 || size / record > UINT32_MAX)
    return refuse(r, "E-image",
                  "the file is damaged: the size of section '%s' is no multiple of %zu", names[s],
                  record);
  *n = (uint32_t)(size / record);
  return true;
}

/* A NUL-terminated string of .strtab. */
static const char *string_at(const Reader *r, uint32_t offset) {
  size_t size = r->sec[SEC_STRTAB].size;
  const char *s = (const char *)r->sec[SEC_STRTAB].data;
  if (offset >= size || !memchr(s + offset, 0, size - offset)) return NULL;
  return s + offset;
}

static bool read_program(Reader *r) {
  ProgramRecord p;
  if (r->sec[SEC_PROGRAM].size != sizeof p)
    return damaged(r, "section .npu.program has the wrong size");
  memcpy(&p, r->sec[SEC_PROGRAM].data, sizeof p);
  r->img->dram_bytes = p.dram_bytes;
  r->img->ideal_macs_s8 = p.macs_s8;
  r->img->ideal_macs_bf16 = p.macs_bf16;
  r->img->ideal_dram_bytes = p.dram_traffic;
  return machine_parse((const char *)r->sec[SEC_MACHINE].data, r->sec[SEC_MACHINE].size, r->label,
                       &r->img->machine, r->diag);
}

static bool read_code(Reader *r) {
  IsaImage *img = r->img;
  if (!count_records(r, SEC_TEXT, ISA_INSN_BYTES, &img->ninsns) ||
      !count_records(r, SEC_DESC, sizeof(IsaDesc), &img->ndescs))
    return false;
  img->code = arena_copy(img->arena, r->sec[SEC_TEXT].data, r->sec[SEC_TEXT].size);
  img->descs = arena_copy(img->arena, r->sec[SEC_DESC].data, r->sec[SEC_DESC].size);
  return true;
}

/* Walks the vector programs; fills out when it is not NULL. */
static bool walk_vprogs(const Reader *r, uint32_t *count, IsaVprog *out) {
  const uint8_t *p = r->sec[SEC_VPROG].data, *end = p + r->sec[SEC_VPROG].size;
  *count = 0;
  while (p < end) {
    VprogRecord v;
    if ((size_t)(end - p) < sizeof v) return damaged(r, "a vector program is cut off");
    memcpy(&v, p, sizeof v);
    p += sizeof v;
    if (v.n < 1 || v.n > ISA_VPROG_MAX || v.zero != 0 || (size_t)(end - p) < v.n * 8u)
      return damaged(r, "a vector program's length makes no sense");
    for (uint32_t i = 0; out && i < v.n; i++)
      if (!isa_vop_decode(p + i * 8, &out[*count].ops[i]))
        return refuse(r, "E-image",
                      "vector program %u: micro-operation %u is not valid; compile the model again",
                      *count, i);
    if (out) out[*count].n = (int)v.n;
    p += v.n * 8u;
    if (++*count > UINT16_MAX + 1u) return damaged(r, "more than 65536 vector programs");
  }
  return true;
}

static bool read_vprogs(Reader *r) {
  IsaImage *img = r->img;
  if (!walk_vprogs(r, &img->nvprogs, NULL)) return false;
  img->vprogs = ARENA_ARRAY(img->arena, IsaVprog, img->nvprogs);
  return walk_vprogs(r, &img->nvprogs, img->vprogs);
}

static bool read_io(Reader *r) {
  IsaImage *img = r->img;
  if (!count_records(r, SEC_IO, sizeof(IoRecord), &img->nio)) return false;
  img->io = ARENA_ARRAY(img->arena, IsaIo, img->nio);
  for (uint32_t i = 0; i < img->nio; i++) {
    IoRecord q;
    memcpy(&q, r->sec[SEC_IO].data + i * sizeof q, sizeof q);
    const char *name = string_at(r, q.name);
    if (!name || q.role > IO_STATE || q.dtype >= DT_COUNT || q.rank > 8)
      return damaged(r, "an input or output makes no sense");
    IsaIo *io = &img->io[i];
    *io = (IsaIo){.role = (IsaIoRole)q.role,
                  .name = name,
                  .dtype = (DType)q.dtype,
                  .rank = (int)q.rank,
                  .addr = q.addr};
    for (uint32_t a = 0; a < 8; a++) {
      if (a < q.rank)
        io->shape[a] = q.shape[a];
      else if (q.shape[a] != 0)
        return damaged(r, "an input or output has sizes beyond its rank");
    }
  }
  return true;
}

static bool read_segments(Reader *r) {
  IsaImage *img = r->img;
  uint64_t at = 0, data = r->sec[SEC_DATA].size;
  if (!count_records(r, SEC_SEG, sizeof(SegRecord), &img->nsegments)) return false;
  img->segments = ARENA_ARRAY(img->arena, IsaSegment, img->nsegments);
  for (uint32_t i = 0; i < img->nsegments; i++) {
    SegRecord q;
    memcpy(&q, r->sec[SEC_SEG].data + i * sizeof q, sizeof q);
    const char *name = string_at(r, q.name);
    if (!name || q.zero != 0) return damaged(r, "a segment makes no sense");
    /* Data lies in segment order, each start aligned, nothing between. */
    if (q.offset != at || q.size > data || q.offset > data - q.size)
      return damaged(r, "a segment's data lies outside section .data");
    img->segments[i] = (IsaSegment){
        .name = name, .addr = q.addr, .size = q.size, .data = r->sec[SEC_DATA].data + q.offset};
    at = (q.offset + q.size + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
  }
  return true;
}

static bool read_labels(Reader *r) {
  IsaImage *img = r->img;
  uint32_t n = 0;
  if (!count_records(r, SEC_SYMTAB, sizeof(Elf64_Sym), &n) ||
      !count_records(r, SEC_SRCMAP, sizeof(SrcMapRecord), &img->nsrcmap))
    return false;
  img->nsymbols = n ? n - 1 : 0; /* entry 0 is ELF's null symbol */
  img->symbols = ARENA_ARRAY(img->arena, IsaSymbol, img->nsymbols);
  for (uint32_t i = 0; i < img->nsymbols; i++) {
    Elf64_Sym q;
    memcpy(&q, r->sec[SEC_SYMTAB].data + (i + 1) * sizeof q, sizeof q);
    const char *name = string_at(r, q.st_name);
    if (!name || q.st_value % ISA_INSN_BYTES != 0 || q.st_value / ISA_INSN_BYTES > img->ninsns)
      return damaged(r, "a label makes no sense");
    img->symbols[i] = (IsaSymbol){.name = name, .insn = (uint32_t)(q.st_value / ISA_INSN_BYTES)};
  }
  img->srcmap = ARENA_ARRAY(img->arena, IsaSrcMap, img->nsrcmap);
  for (uint32_t i = 0; i < img->nsrcmap; i++) {
    SrcMapRecord q;
    memcpy(&q, r->sec[SEC_SRCMAP].data + i * sizeof q, sizeof q);
    const char *file = string_at(r, q.file), *op = string_at(r, q.op);
    if (!file || !op || q.zero != 0) return damaged(r, "a source map entry makes no sense");
    img->srcmap[i] = (IsaSrcMap){
        .insn = q.insn, .line = q.line, .col = q.col, .file = file, .op = op, .macs = q.macs};
  }
  return true;
}

bool isa_image_read_memory(const void *data, size_t size, const char *label, IsaImage *out,
                           DiagEngine *diag) {
  isa_image_init(out);
  Reader r = {.data = data,
              .size = size,
              .label = arena_strdup(out->arena, label),
              .diag = diag,
              .img = out};
  bool ok = check_header(&r) && find_sections(&r) && check_version(&r) && check_sum(&r) &&
            read_program(&r) && read_code(&r) && read_vprogs(&r) && read_io(&r) &&
            read_segments(&r) && read_labels(&r) && isa_image_check(out, label, diag);
  if (!ok) isa_image_free(out);
  return ok;
}

bool isa_image_read(const char *path, IsaImage *out, DiagEngine *diag) {
  FileMap map;
  const char *why = "";
  if (!diag_map_file(diag, path, &map, &why)) {
    diag_error(diag, SRC_LOC_NONE, "E-file", "cannot read '%s': %s", path, why);
    memset(out, 0, sizeof *out);
    return false;
  }
  if (!isa_image_read_memory(map.data, map.size, path, out, diag)) {
    file_unmap(&map);
    return false;
  }
  out->map = map;
  return true;
}
