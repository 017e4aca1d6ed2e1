/* npu-objdump: what a binary holds, as text. */
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>

#include "tools/cli.h"
#include "tools/samples.h"

enum { OPT_DISASSEMBLE = 1, OPT_SECTIONS, OPT_IO, OPT_MACHINE };
static const CliOption options[] = {
    {OPT_DISASSEMBLE, 'd', "disassemble", NULL,
     "instructions with addresses, labels and the model lines they come from"},
    {OPT_SECTIONS, 'h', "sections", NULL,
     "what the binary is made of, in bytes; without a file, -h shows this text"},
    {OPT_IO, 'i', "io", NULL, "inputs, outputs and states with types and DRAM addresses"},
    {OPT_MACHINE, 'm', "machine", NULL, "the machine it was compiled for"},
    {0},
};
static const CliCommand command = {
    .usage = "npu-objdump [options] FILE.bin",
    .about =
        "Shows a program. Without an option: everything, as text that npu-as assembles to the same "
        "bytes.",
};

/* ---- -d ---- */

/* Source files named by the binary, read when they are where they were. */
typedef struct {
  const char *file;
  FileMap map;
  bool there;
  StrBuf starts; /* size_t: where every line begins */
} SourceText;

/* A pipe or a device that a binary names must not be waited for. */
static bool is_regular(const char *path) {
  struct stat st;
  return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

static void source_close(SourceText *s) {
  if (s->there) file_unmap(&s->map);
  s->there = false;
  s->starts.len = 0;
}

static void source_open(SourceText *s, const char *file) {
  const char *why;
  source_close(s);
  s->file = file;
  s->there = is_regular(file) && file_map(file, &s->map, &why);
  for (size_t at = 0; s->there && at < s->map.size;) {
    strbuf_write(&s->starts, &at, sizeof at);
    const uint8_t *stop = memchr(s->map.data + at, '\n', s->map.size - at);
    at = stop ? (size_t)(stop - s->map.data) + 1 : s->map.size;
  }
}

/* Prints line number `line` of the open source, if it can. */
static void put_source_line(SourceText *s, const char *file, uint32_t line, StrBuf *out) {
  if (!s->file || strcmp(s->file, file) != 0) source_open(s, file);
  if (!line || line > s->starts.len / sizeof(size_t)) return;
  size_t at;
  memcpy(&at, s->starts.data + (line - 1) * sizeof at, sizeof at);
  const char *p = (const char *)s->map.data + at, *end = (const char *)s->map.data + s->map.size;
  const char *stop = memchr(p, '\n', (size_t)(end - p));
  while (p < end && (*p == ' ' || *p == '\t')) p++;
  if (stop && stop < p) return;
  strbuf_puts(out, "  ");
  strbuf_write(out, p, (size_t)((stop ? stop : end) - p));
}

static void disassemble(const IsaImage *img, StrBuf *out) {
  SourceText source = {0};
  uint32_t symbol = 0, place = 0;
  for (uint32_t i = 0; i < img->ninsns; i++) {
    for (; symbol < img->nsymbols && img->symbols[symbol].insn <= i; symbol++)
      strbuf_printf(out, "\n%s:\n", img->symbols[symbol].name);
    for (; place < img->nsrcmap && img->srcmap[place].insn <= i; place++) {
      const IsaSrcMap *m = &img->srcmap[place];
      strbuf_printf(out, "; %s:%u:%u %s", m->file, m->line, m->col, m->op);
      if (m->line) put_source_line(&source, m->file, m->line, out);
      strbuf_putc(out, '\n');
    }
    IsaInsn in;
    const char *why;
    strbuf_printf(out, "%6u:  ", i);
    if (isa_decode(img->code + (size_t)i * ISA_INSN_BYTES, &in, &why))
      isa_insn_print(&in, img, out);
    else
      strbuf_printf(out, "; %s", why);
    strbuf_putc(out, '\n');
  }
  source_close(&source);
  strbuf_free(&source.starts);
}

/* ---- -h, -i, -m ---- */

static void sections(const IsaImage *img, StrBuf *out) {
  uint64_t data = 0;
  for (uint32_t i = 0; i < img->nsegments; i++) data += img->segments[i].size;
  strbuf_printf(out, "%-12s %10s %14s\n", "part", "count", "bytes");
  strbuf_printf(out, "%-12s %10u %14zu\n", "code", img->ninsns,
                (size_t)img->ninsns * ISA_INSN_BYTES);
  strbuf_printf(out, "%-12s %10u %14zu\n", "descriptors", img->ndescs,
                img->ndescs * sizeof *img->descs);
  size_t vops = 0;
  for (uint32_t i = 0; i < img->nvprogs; i++) vops += (size_t)img->vprogs[i].n;
  strbuf_printf(out, "%-12s %10u %14zu\n", "vector code", img->nvprogs, 8 * vops);
  strbuf_printf(out, "%-12s %10u %14" PRIu64 "\n", "data", img->nsegments, data);
  strbuf_printf(out, "%-12s %10u %14s\n", "symbols", img->nsymbols, "");
  strbuf_printf(out, "%-12s %10u %14s\n", "source map", img->nsrcmap, "");
  strbuf_printf(out, "%-12s %10s %14" PRIu64 "\n\n", "DRAM used", "", img->dram_bytes);
  for (uint32_t i = 0; i < img->nsegments; i++)
    strbuf_printf(out, "%12" PRIx64 " %14" PRIu64 "  %s\n", img->segments[i].addr,
                  img->segments[i].size, img->segments[i].name);
}

static void signature(const IsaImage *img, StrBuf *out) {
  static const char *const roles[] = {"input", "output", "state"};
  for (uint32_t i = 0; i < img->nio; i++) {
    const IsaIo *io = &img->io[i];
    strbuf_printf(out, "%-6s  %-16s  ", roles[io->role], io->name);
    port_print(out, io->dtype, io->rank, io->shape);
    strbuf_printf(out, "  at 0x%" PRIx64 "\n", io->addr);
  }
}

/* The parts asked for, in the order of the bits. */
static void dump(const IsaImage *img, unsigned parts, StrBuf *out) {
  if (!parts) isa_disassemble(img, out);
  if (parts & 1u << OPT_MACHINE) machine_print(&img->machine, out);
  if (parts & 1u << OPT_IO) signature(img, out);
  if (parts & 1u << OPT_SECTIONS) sections(img, out);
  if (parts & 1u << OPT_DISASSEMBLE) disassemble(img, out);
}

static bool run(const char *path, unsigned parts, DiagEngine *diag) {
  IsaImage image = {0};
  bool ok = isa_image_read(path, &image, diag);
  if (ok) {
    StrBuf out = {0};
    dump(&image, parts, &out);
    ok = cli_write(NULL, &out, diag);
    strbuf_free(&out);
  }
  isa_image_free(&image);
  return ok;
}

int main(int argc, char **argv) {
  Cli *cli = cli_new(&command, options, argc, argv);
  unsigned parts = 0;
  const char *value;
  char **files;
  int id;
  while ((id = cli_next(cli, &value)) > 0) parts |= 1u << id;
  bool help = argc == 2 && strcmp(argv[1], "-h") == 0;
  bool ok = id == CLI_DONE || (help && cli_help(cli) == CLI_DONE);
  if (id == CLI_END && !help)
    ok = cli_positionals(cli, &files) == 1 ? run(files[0], parts, cli_diag(cli))
                                           : cli_error(cli, "give one binary to show");
  int status = cli_status(cli, ok);
  cli_free(cli);
  return status;
}
