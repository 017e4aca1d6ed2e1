/* Images as text that assembles to the same bytes. */
#include "isa/isa_internal.h"
#include <ctype.h>
#include <string.h>

/* ---- labels ---- */

static bool plain_name(const char *s) {
  if (!isalpha((unsigned char)*s) && *s != '_' && *s != '.' && *s != '$') return false;
  for (; *s; s++)
    if (!isalnum((unsigned char)*s) && *s != '_' && *s != '.' && *s != '$') return false;
  return true;
}
static void print_name(const char *s, StrBuf *out) {
  if (plain_name(s))
    strbuf_puts(out, s);
  else
    strbuf_quote(out, s);
}
/* The first label at an instruction; they stand in the order of the instructions. */
static const char *label_at(const IsaImage *img, uint32_t insn) {
  uint32_t low = 0, high = img ? img->nsymbols : 0, end = high;
  while (low < high) {
    uint32_t middle = low + (high - low) / 2;
    if (img->symbols[middle].insn < insn)
      low = middle + 1;
    else
      high = middle;
  }
  return low < end && img->symbols[low].insn == insn ? img->symbols[low].name : NULL;
}

/* ---- instructions ---- */

static void print_sems(const char *word, const IsaSemRef *refs, StrBuf *out) {
  for (int i = 0; i < 2; i++) {
    if (refs[i].count == 0) continue;
    strbuf_printf(out, "%s s%u:%u", i ? "," : word, (unsigned)refs[i].sem, (unsigned)refs[i].count);
  }
}

static void print_arg(const IsaInsn *in, IsaArg arg, const IsaImage *img, StrBuf *out) {
  const char *label;
  switch (arg) {
  case ARG_RD: strbuf_printf(out, "r%u", (unsigned)in->rd); break;
  case ARG_RS: strbuf_printf(out, "r%u", (unsigned)in->rs); break;
  case ARG_RT: strbuf_printf(out, "r%u", (unsigned)in->rt); break;
  case ARG_DN: strbuf_printf(out, "d%u", (unsigned)in->dn); break;
  case ARG_FLD: break; /* printed with the register */
  case ARG_IMM: strbuf_printf(out, "%lld", (long long)in->imm); break;
  case ARG_VP: strbuf_printf(out, "p%u", (unsigned)in->vp); break;
  case ARG_IDX: strbuf_printf(out, "%u", in->target); break;
  case ARG_MEM:
    if (in->imm == 0)
      strbuf_printf(out, "[r%u]", (unsigned)in->rs);
    else
      strbuf_printf(out, "[r%u %c %lld]", (unsigned)in->rs, in->imm < 0 ? '-' : '+',
                    (long long)(in->imm < 0 ? -in->imm : in->imm));
    break;
  case ARG_TGT:
    label = label_at(img, in->target);
    if (label)
      print_name(label, out);
    else
      strbuf_printf(out, "@%u", in->target);
    break;
  }
}

void isa_insn_print(const IsaInsn *in, const IsaImage *img, StrBuf *out) {
  char buf[24];
  if (in->kind == INSN_TAKE || in->kind == INSN_GIVE) { /* the mnemonic is the clause */
    const IsaSemRef *refs = in->kind == INSN_TAKE ? in->take : in->give;
    const char *word = in->kind == INSN_TAKE ? "take" : "give";
    if (refs[0].count || refs[1].count)
      print_sems(word, refs, out);
    else
      strbuf_puts(out, word);
    return;
  }
  strbuf_puts(out, isa_insn_info(in->kind)->mnemonic);
  IsaArgs args = isa_insn_args(in->kind);
  for (int i = 0; i < args.n; i++) {
    if (args.arg[i] == ARG_FLD) continue;
    strbuf_puts(out, i ? ", " : " ");
    print_arg(in, args.arg[i], img, out);
    if (i + 1 < args.n && args.arg[i + 1] == ARG_FLD)
      strbuf_printf(out, ".%s", isa_field_name(in->field, buf));
  }
  print_sems(" take", in->take, out);
  print_sems(" give", in->give, out);
}

/* ---- descriptors ---- */

/* key=value, or key=[v,v,...] without the zeros at the end; nothing when all are zero. */
static void print_fields(const IsaDesc *d, uint8_t first, const IsaField *f, StrBuf *out) {
  unsigned n = f->count;
  while (n > 0 && isa_field_get(d, (uint8_t)(first + n - 1)) == 0) n--;
  if (n == 0) return;
  strbuf_printf(out, " %s=%s", f->name, f->count > 1 ? "[" : "");
  for (unsigned i = 0; i < n; i++)
    strbuf_printf(out, "%s%lld", i ? "," : "", (long long)isa_field_get(d, (uint8_t)(first + i)));
  if (f->count > 1) strbuf_putc(out, ']');
}

static void print_streams(const IsaDesc *d, StrBuf *out) {
  for (unsigned s = 0; s < d->nstreams; s++) {
    const int32_t *st = d->vec.stream[s].stride;
    strbuf_printf(out, " s%u=%s:%s@%u[%d,%d,%d,%d,%d]", s,
                  d->vec.stream[s].space == SPACE_ACC ? "acc" : "spm",
                  dtype_name((DType)d->vec.stream[s].dtype), d->vec.stream[s].base, st[0], st[1],
                  st[2], st[3], st[4]);
  }
}

void isa_desc_print(const IsaDesc *d, StrBuf *out) {
  strbuf_puts(out, isa_desc_kind_name((IsaDescKind)d->kind));
  if (d->kind == DESC_DMA)
    strbuf_printf(out, " rank=%u elsize=%u", (unsigned)d->rank, (unsigned)d->elsize);
  if (d->kind == DESC_PLANE || d->kind == DESC_ROWS)
    strbuf_printf(out, " dtype=%s", dtype_name((DType)d->dtype));
  if (d->kind == DESC_ROWS) strbuf_printf(out, " wdtype=%s", dtype_name((DType)d->wdtype));
  unsigned step;
  for (unsigned f = 0; f < isa_field_count(); f += step) {
    IsaField info;
    isa_field_info(f, DESC_NONE, &info);
    step = info.count;
    if (!isa_field_in_kind((uint8_t)f, (IsaDescKind)d->kind)) continue;
    if (d->kind == DESC_VECTOR &&
        (strcmp(info.name, "base") == 0 || strcmp(info.name, "stride") == 0))
      continue;
    print_fields(d, (uint8_t)f, &info, out);
  }
  if (d->kind == DESC_VECTOR) print_streams(d, out);
}

/* ---- data ---- */

static void print_base64(const uint8_t *p, size_t n, StrBuf *out) {
  static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  strbuf_puts(out, ".b64 ");
  for (size_t i = 0; i < n; i += 3) {
    size_t left = n - i;
    unsigned v = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                 (left > 2 ? p[i + 2] : 0u);
    char quad[4] = {digits[v >> 18], digits[v >> 12 & 63], left > 1 ? digits[v >> 6 & 63] : '=',
                    left > 2 ? digits[v & 63] : '='};
    strbuf_write(out, quad, 4);
  }
  strbuf_putc(out, '\n');
}

static size_t zero_run(const uint8_t *p, size_t n) {
  size_t i = 0;
  while (i < n && i < 1 << 20 && p[i] == 0) i++;
  return i;
}

static void print_hex(const uint8_t *p, size_t n, StrBuf *out) {
  strbuf_puts(out, ".hex");
  for (size_t i = 0; i < n; i++) strbuf_printf(out, "%s%02x", i % 4 ? "" : " ", p[i]);
  strbuf_putc(out, '\n');
}

/* Short segments in hex, longer ones in base64; runs of zeros as a count. */
static void print_segment(const IsaSegment *s, StrBuf *out) {
  enum { HEX_LINE = 32, B64_LINE = 57, HEX_LIMIT = 1024 };
  strbuf_puts(out, ".segment ");
  strbuf_quote(out, s->name ? s->name : "");
  strbuf_printf(out, " %llu %llu\n", (unsigned long long)s->addr, (unsigned long long)s->size);
  const uint8_t *p = s->data;
  size_t left = (size_t)s->size, width = left <= HEX_LIMIT ? HEX_LINE : B64_LINE;
  while (left) {
    size_t n = zero_run(p, left);
    if (n >= HEX_LINE || n == left) {
      strbuf_printf(out, ".zero %zu\n", n);
    } else {
      n = left < width ? left : width;
      if (width == HEX_LINE)
        print_hex(p, n, out);
      else
        print_base64(p, n, out);
    }
    p += n;
    left -= n;
  }
  strbuf_puts(out, ".end\n");
}

/* ---- image ---- */

static void print_io(const IsaIo *io, StrBuf *out) {
  static const char *const roles[] = {"input", "output", "state"};
  strbuf_printf(out, ".io %s ", roles[io->role]);
  strbuf_quote(out, io->name);
  strbuf_printf(out, " %s[", dtype_name(io->dtype));
  for (int i = 0; i < io->rank; i++)
    strbuf_printf(out, "%s%lld", i ? "," : "", (long long)io->shape[i]);
  strbuf_printf(out, "] %llu\n", (unsigned long long)io->addr);
}

static void print_head(const IsaImage *img, StrBuf *out) {
  strbuf_printf(out, "# npucc assembly, format %d.%d\n.machine {\n", ISA_VERSION_MAJOR,
                ISA_VERSION_MINOR);
  machine_print(&img->machine, out);
  strbuf_printf(out, "}\n.dram %llu\n.roofline macs_s8=", (unsigned long long)img->dram_bytes);
  strbuf_double(out, img->ideal_macs_s8);
  strbuf_puts(out, " macs_bf16=");
  strbuf_double(out, img->ideal_macs_bf16);
  strbuf_puts(out, " dram_bytes=");
  strbuf_double(out, img->ideal_dram_bytes);
  strbuf_putc(out, '\n');
}

static void print_code(const IsaImage *img, StrBuf *out) {
  uint32_t loc = 0, sym = 0;
  for (uint32_t i = 0; i < img->ninsns; i++) {
    for (; sym < img->nsymbols && img->symbols[sym].insn == i; sym++) {
      print_name(img->symbols[sym].name, out);
      strbuf_puts(out, ":\n");
    }
    for (; loc < img->nsrcmap && img->srcmap[loc].insn == i; loc++) {
      const IsaSrcMap *m = &img->srcmap[loc];
      strbuf_puts(out, "  .loc ");
      strbuf_quote(out, m->file ? m->file : "");
      strbuf_printf(out, " %u %u ", m->line, m->col);
      strbuf_quote(out, m->op ? m->op : "");
      if (m->macs > 0) {
        strbuf_puts(out, " macs=");
        strbuf_double(out, m->macs);
      }
      strbuf_putc(out, '\n');
    }
    IsaInsn in;
    isa_decode(img->code + (size_t)i * ISA_INSN_BYTES, &in, NULL);
    strbuf_puts(out, "  ");
    isa_insn_print(&in, img, out);
    strbuf_putc(out, '\n');
  }
  for (; sym < img->nsymbols; sym++) {
    print_name(img->symbols[sym].name, out);
    strbuf_puts(out, ":\n");
  }
}

void isa_disassemble(const IsaImage *img, StrBuf *out) {
  print_head(img, out);
  for (uint32_t i = 0; i < img->nio; i++) print_io(&img->io[i], out);
  for (uint32_t i = 0; i < img->nsegments; i++) print_segment(&img->segments[i], out);
  for (uint32_t i = 0; i < img->ndescs; i++) {
    strbuf_printf(out, ".desc %u ", i);
    isa_desc_print(&img->descs[i], out);
    strbuf_putc(out, '\n');
  }
  for (uint32_t i = 0; i < img->nvprogs; i++) {
    strbuf_printf(out, ".vprog %u {\n  ", i);
    isa_vprog_print(&img->vprogs[i], "\n  ", out);
    strbuf_puts(out, "\n}\n");
  }
  print_code(img, out);
}
