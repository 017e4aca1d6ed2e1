/* Writes the container. libelf lays out everything but the constants in a memory file; the
 * constants follow straight from where they are, so a model's weights are never copied. */
#include "isa/container.h"
#include <errno.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>
#define uthash_malloc(n) mem_alloc(n)
#define uthash_free(p, n) mem_free(p)
#include <uthash.h>

static const char *const names[SEC_COUNT] = {
#define X(e, n) n,
    CONTAINER_SECTIONS(X)
#undef X
};

/* ---- section contents ---- */

typedef struct {
  char *text;
  uint32_t offset;
  UT_hash_handle hh;
} Known;
typedef struct {
  const IsaImage *img;
  const IsaSegment *segments; /* by address */
  StrBuf sec[SEC_COUNT];      /* .data stays empty */
  uint64_t offset[SEC_COUNT], size[SEC_COUNT];
  Known *known; /* strings already in .strtab */
  Arena *arena;
} Writer;

static uint32_t add_string(Writer *w, const char *s) {
  if (!s || !*s) return 0;
  Known *k;
  HASH_FIND_STR(w->known, s, k);
  if (k) return k->offset;
  k = ARENA_NEW(w->arena, Known);
  k->text = arena_strdup(w->arena, s);
  k->offset = (uint32_t)w->sec[SEC_STRTAB].len;
  strbuf_write(&w->sec[SEC_STRTAB], s, strlen(s) + 1);
  HASH_ADD_KEYPTR(hh, w->known, k->text, strlen(k->text), k);
  return k->offset;
}

static void fill_small(Writer *w) {
  const IsaImage *img = w->img;
  NoteRecord note = {.namesz = sizeof NPU_NOTE_NAME,
                     .descsz = 8,
                     .type = NOTE_TYPE_VERSION,
                     .name = NPU_NOTE_NAME,
                     .major = ISA_VERSION_MAJOR,
                     .minor = ISA_VERSION_MINOR};
  strbuf_write(&w->sec[SEC_NOTE], &note, sizeof note);
  strbuf_write(&w->sec[SEC_SUM], "\0\0\0\0", 4);
  machine_print(&img->machine, &w->sec[SEC_MACHINE]);
  ProgramRecord p = {img->dram_bytes, img->ideal_macs_s8, img->ideal_macs_bf16,
                     img->ideal_dram_bytes};
  strbuf_write(&w->sec[SEC_PROGRAM], &p, sizeof p);
  strbuf_write(&w->sec[SEC_TEXT], img->code, (size_t)img->ninsns * ISA_INSN_BYTES);
  if (img->ndescs) strbuf_write(&w->sec[SEC_DESC], img->descs, img->ndescs * sizeof(IsaDesc));
  for (uint32_t i = 0; i < img->nvprogs; i++) {
    const IsaVprog *vp = &img->vprogs[i];
    VprogRecord r = {.n = (uint32_t)vp->n};
    strbuf_write(&w->sec[SEC_VPROG], &r, sizeof r);
    for (int k = 0; k < vp->n; k++) {
      uint8_t op[8];
      isa_vop_encode(&vp->ops[k], op);
      strbuf_write(&w->sec[SEC_VPROG], op, sizeof op);
    }
  }
}

static void fill_named(Writer *w) {
  const IsaImage *img = w->img;
  strbuf_putc(&w->sec[SEC_STRTAB], 0);
  for (uint32_t i = 0; i < img->nio; i++) {
    const IsaIo *io = &img->io[i];
    IoRecord r = {.role = io->role,
                  .dtype = io->dtype,
                  .rank = (uint32_t)io->rank,
                  .name = add_string(w, io->name),
                  .addr = io->addr};
    memcpy(r.shape, io->shape, sizeof(int64_t) * (size_t)io->rank);
    strbuf_write(&w->sec[SEC_IO], &r, sizeof r);
  }
  uint64_t at = 0;
  for (uint32_t i = 0; i < img->nsegments; i++) {
    const IsaSegment *s = &w->segments[i];
    SegRecord r = {.name = add_string(w, s->name), .addr = s->addr, .size = s->size, .offset = at};
    strbuf_write(&w->sec[SEC_SEG], &r, sizeof r);
    w->size[SEC_DATA] = at + s->size;
    at = (at + s->size + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
  }
  for (uint32_t i = 0; i < img->nsrcmap; i++) {
    const IsaSrcMap *m = &img->srcmap[i];
    SrcMapRecord r = {.insn = m->insn,
                      .line = m->line,
                      .col = m->col,
                      .file = add_string(w, m->file),
                      .op = add_string(w, m->op),
                      .macs = m->macs};
    strbuf_write(&w->sec[SEC_SRCMAP], &r, sizeof r);
  }
  Elf64_Sym none = {0};
  strbuf_write(&w->sec[SEC_SYMTAB], &none, sizeof none);
  for (uint32_t i = 0; i < img->nsymbols; i++) {
    Elf64_Sym s = {.st_name = add_string(w, img->symbols[i].name),
                   .st_info = ELF64_ST_INFO(STB_LOCAL, STT_NOTYPE),
                   .st_shndx = SEC_TEXT + 1,
                   .st_value = (uint64_t)img->symbols[i].insn * ISA_INSN_BYTES};
    strbuf_write(&w->sec[SEC_SYMTAB], &s, sizeof s);
  }
}

/* ---- layout ---- */

static Elf64_Shdr section_header(const Writer *w, ContainerSection s, uint32_t name) {
  Elf64_Shdr h = {.sh_name = name,
                  .sh_type = SHT_PROGBITS,
                  .sh_offset = w->offset[s],
                  .sh_size = w->size[s],
                  .sh_addralign = s == SEC_DATA ? DATA_ALIGN : 16};
  switch (s) {
  case SEC_NOTE:
    h.sh_type = SHT_NOTE;
    h.sh_addralign = 4;
    break;
  case SEC_TEXT:
    h.sh_flags = SHF_ALLOC | SHF_EXECINSTR;
    h.sh_entsize = ISA_INSN_BYTES;
    break;
  case SEC_DATA: h.sh_flags = SHF_ALLOC | SHF_WRITE; break;
  case SEC_SYMTAB:
    h.sh_type = SHT_SYMTAB;
    h.sh_link = SEC_STRTAB + 1;
    h.sh_info = w->img->nsymbols + 1; /* all are local */
    h.sh_entsize = sizeof(Elf64_Sym);
    break;
  case SEC_STRTAB:
  case SEC_SHSTRTAB: h.sh_type = SHT_STRTAB; break;
  default: break;
  }
  return h;
}

/* Offsets of all sections; returns that of the section headers, which come before .data. */
static uint64_t lay_out(Writer *w) {
  uint64_t at = sizeof(Elf64_Ehdr);
  for (int s = 0; s < SEC_DATA; s++) {
    at = (at + 15) / 16 * 16;
    w->offset[s] = at;
    w->size[s] = w->sec[s].len;
    at += w->size[s];
  }
  uint64_t headers = (at + 15) / 16 * 16;
  at = headers + (SEC_COUNT + 1) * sizeof(Elf64_Shdr);
  w->offset[SEC_DATA] = (at + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
  return headers;
}

static bool add_section(Elf *elf, Writer *w, ContainerSection s, uint32_t name) {
  Elf_Scn *scn = elf_newscn(elf);
  Elf64_Shdr *h = scn ? elf64_getshdr(scn) : NULL;
  if (!h) return false;
  *h = section_header(w, s, name);
  if (s == SEC_DATA || w->size[s] == 0) return true;
  Elf_Data *d = elf_newdata(scn);
  if (!d) return false;
  d->d_buf = w->sec[s].data;
  d->d_size = w->size[s];
  d->d_type = ELF_T_BYTE;
  d->d_version = EV_CURRENT;
  d->d_align = h->sh_addralign;
  return true;
}

static bool build_elf(Elf *elf, Writer *w) {
  Elf64_Ehdr *e = elf64_newehdr(elf);
  if (!e) return false;
  uint32_t name[SEC_COUNT];
  StrBuf *tab = &w->sec[SEC_SHSTRTAB];
  strbuf_putc(tab, 0);
  for (int s = 0; s < SEC_COUNT; s++) {
    name[s] = (uint32_t)tab->len;
    strbuf_write(tab, names[s], strlen(names[s]) + 1);
  }
  uint64_t headers = lay_out(w);
  e->e_ident[EI_CLASS] = ELFCLASS64;
  e->e_ident[EI_DATA] = ELFDATA2LSB;
  e->e_type = ET_EXEC;
  e->e_machine = NPU_ELF_MACHINE;
  e->e_version = EV_CURRENT;
  e->e_shoff = headers;
  e->e_shstrndx = SEC_SHSTRTAB + 1;
  elf_flagelf(elf, ELF_C_SET, ELF_F_LAYOUT);
  for (int s = 0; s < SEC_COUNT; s++)
    if (!add_section(elf, w, (ContainerSection)s, name[s])) return false;
  return elf_update(elf, ELF_C_WRITE) >= 0;
}

/* Everything before .data, padded to its offset. */
static uint8_t *build_prefix(Writer *w, const char **why) {
  int fd = memfd_create("npucc", MFD_CLOEXEC);
  if (fd < 0) {
    *why = strerror(errno);
    return NULL;
  }
  uint8_t *prefix = NULL;
  errno = 0; /* libelf does not say why it could not write */
  elf_version(EV_CURRENT);
  Elf *elf = elf_begin(fd, ELF_C_WRITE, NULL);
  if (elf && build_elf(elf, w)) {
    size_t n = w->offset[SEC_DATA], got = 0;
    prefix = arena_alloc(w->arena, n);
    while (got < n) {
      ssize_t r = pread(fd, prefix + got, n - got, (off_t)got);
      if (r <= 0) break; /* the rest is padding */
      got += (size_t)r;
    }
  } else {
    *why = errno ? strerror(errno) : elf_errmsg(-1);
  }
  if (elf) elf_end(elf);
  close(fd);
  return prefix;
}

/* ---- output ---- */

typedef bool Sink(void *user, const void *data, size_t size);

static bool put_data(const Writer *w, Sink *put, void *user) {
  static const uint8_t zeros[DATA_ALIGN];
  uint64_t at = 0;
  for (uint32_t i = 0; i < w->img->nsegments; i++) {
    uint64_t aligned = (at + DATA_ALIGN - 1) / DATA_ALIGN * DATA_ALIGN;
    if (!put(user, zeros, (size_t)(aligned - at))) return false;
    if (!put(user, w->segments[i].data, (size_t)w->segments[i].size)) return false;
    at = aligned + w->segments[i].size;
  }
  return true;
}

static bool sink_crc(void *user, const void *data, size_t size) {
  uLong *crc = user;
  *crc = crc32_z(*crc, data, size);
  return true;
}
static bool sink_file(void *user, const void *data, size_t size) {
  return size == 0 || fwrite(data, 1, size, user) == size;
}
static bool sink_buf(void *user, const void *data, size_t size) {
  if (size) strbuf_write(user, data, size);
  return true;
}

static int by_address(const void *a, const void *b) {
  const IsaSegment *x = a, *y = b;
  return x->addr < y->addr ? -1 : x->addr > y->addr;
}

static bool put_image(const IsaImage *img, Sink *put, void *user, const char **why) {
  Writer w = {.img = img, .arena = arena_new()};
  w.segments = img->segments;
  bool ok = false;
  fill_small(&w);
  fill_named(&w);
  uint8_t *prefix = build_prefix(&w, why);
  if (prefix) {
    uLong crc = crc32_z(0, prefix, w.offset[SEC_DATA]);
    put_data(&w, sink_crc, &crc);
    uint32_t sum = (uint32_t)crc;
    memcpy(prefix + w.offset[SEC_SUM], &sum, 4);
    ok = put(user, prefix, w.offset[SEC_DATA]) && put_data(&w, put, user);
    if (!ok) *why = strerror(errno);
  }
  HASH_CLEAR(hh, w.known);
  for (int s = 0; s < SEC_COUNT; s++) strbuf_free(&w.sec[s]);
  arena_free(w.arena);
  return ok;
}

static int by_instruction(const void *a, const void *b) {
  const IsaSymbol *x = a, *y = b;
  return x->insn < y->insn   ? -1
         : x->insn > y->insn ? 1
                             : strcmp(x->name ? x->name : "", y->name ? y->name : "");
}

/* Segments and labels in order, then every rule a reader will hold the file to. */
static bool prepare(const IsaImage *img, const char *label, IsaImage *sorted, Arena *arena,
                    DiagEngine *diag) {
  *sorted = *img;
  if (img->nsegments) {
    sorted->segments = arena_copy(arena, img->segments, img->nsegments * sizeof(IsaSegment));
    qsort(sorted->segments, img->nsegments, sizeof(IsaSegment), by_address);
  }
  if (img->nsymbols) {
    sorted->symbols = arena_copy(arena, img->symbols, img->nsymbols * sizeof(IsaSymbol));
    qsort(sorted->symbols, img->nsymbols, sizeof(IsaSymbol), by_instruction);
  }
  return isa_image_check(sorted, label, diag);
}

bool isa_image_serialize(const IsaImage *img, StrBuf *out, DiagEngine *diag) {
  Arena *arena = arena_new();
  IsaImage sorted;
  const char *why = "";
  bool ok = prepare(img, "image", &sorted, arena, diag);
  if (ok && !put_image(&sorted, sink_buf, out, &why)) {
    diag_error(diag, SRC_LOC_NONE, "E-file", "cannot build the binary: %s", why);
    ok = false;
  }
  arena_free(arena);
  return ok;
}

bool isa_image_write(const IsaImage *img, const char *path, DiagEngine *diag) {
  Arena *arena = arena_new();
  IsaImage sorted;
  const char *why = "";
  bool ok = prepare(img, path, &sorted, arena, diag);
  if (ok) {
    AtomicFile *f = atomic_file_begin(path, &why);
    ok = f != NULL;
    if (f && put_image(&sorted, sink_file, atomic_file_stream(f), &why)) {
      ok = atomic_file_commit(f, &why);
    } else if (f) {
      ok = false;
      atomic_file_abort(f);
    }
    if (!ok)
      diag_error(diag, SRC_LOC_NONE, "E-file",
                 "cannot write '%s': %s; check the folder and the free space", path, why);
  }
  arena_free(arena);
  return ok;
}
