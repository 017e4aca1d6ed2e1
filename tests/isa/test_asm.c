/* Assembler and disassembler: as(dis(x)) = x for the image that uses everything and for random
 * images; errors have a place and a way out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/isa/image_util.h"

static void round_trip(const IsaImage *img) {
  DiagEngine *d = diag_new();
  StrBuf text = {0}, text2 = {0}, a = {0}, b = {0};
  IsaImage back;
  isa_disassemble(img, &text);
  bool ok = isa_assemble(text.data, text.len, "dis.s", &back, d);
  if (!ok) {
    fputs(text.data, stderr);
    diag_print_all(d, stderr, false);
  }
  assert_true(ok);
  assert_true(isa_image_serialize(img, &a, d));
  assert_true(isa_image_serialize(&back, &b, d));
  assert_int_equal(a.len, b.len);
  assert_memory_equal(a.data, b.data, a.len);
  isa_disassemble(&back, &text2);
  assert_string_equal(text.data, text2.data);
  isa_image_free(&back);
  strbuf_free(&text);
  strbuf_free(&text2);
  strbuf_free(&a);
  strbuf_free(&b);
  diag_free(d);
}

static void test_round_trip(void **state) {
  (void)state;
  StrBuf bytes = {0};
  small_image(&bytes);
  DiagEngine *d = diag_new();
  IsaImage img;
  assert_true(isa_image_read_memory(bytes.data, bytes.len, "mem", &img, d));
  round_trip(&img);
  isa_image_free(&img);
  strbuf_free(&bytes);
  diag_free(d);
}

/* ---- random images ---- */

static void random_desc(Rng *r, IsaDesc *d) {
  memset(d, 0, sizeof *d);
  d->kind = (uint8_t)rng_range(r, DESC_DMA, DESC_VECTOR);
  d->rank = d->kind == DESC_DMA ? (uint8_t)rng_range(r, 1, 5) : 0;
  static const uint8_t sizes[] = {1, 2, 4};
  d->elsize = d->kind == DESC_DMA ? sizes[rng_range(r, 0, 2)] : 0;
  if (d->kind == DESC_PLANE || d->kind == DESC_ROWS)
    d->dtype = (uint8_t)rng_range(r, DT_S8, DT_BF16);
  if (d->kind == DESC_ROWS && d->dtype == DT_BF16)
    d->wdtype = (uint8_t)rng_range(r, DT_S8, DT_BF16);
  if (d->kind == DESC_VECTOR) {
    d->nstreams = (uint8_t)rng_range(r, 0, 8);
    for (int s = 0; s < d->nstreams; s++) {
      d->vec.stream[s].space = (uint8_t)rng_range(r, 0, 1);
      d->vec.stream[s].dtype = (uint8_t)(d->vec.stream[s].space ? rng_range(r, DT_F32, DT_S32)
                                                                : rng_range(r, DT_S8, DT_S32));
    }
  }
  for (unsigned f = 0; f < isa_field_count(); f++) {
    IsaField info;
    if (rng_range(r, 0, 2) == 0 || !isa_field_info(f, (IsaDescKind)d->kind, &info)) continue;
    if (strcmp(info.name, "base") == 0 && info.element >= d->nstreams) continue;
    if (strcmp(info.name, "stride") == 0 && info.element >= 5 * d->nstreams) continue;
    bool count = !strcmp(info.name, "k") || !strcmp(info.name, "m") || !strcmp(info.name, "n") ||
                 !strcmp(info.name, "size") || !strcmp(info.name, "count");
    int64_t v = count ? rng_range(r, 0, 4) : (int64_t)rng_u64(r);
    if (!count && info.size == 4) v = info.is_signed ? (int32_t)(uint32_t)v : (int64_t)(uint32_t)v;
    isa_field_set(d, (uint8_t)f, v);
  }
}

/* A random operation that obeys the rules: v0 and r0 are always written first. */
static void random_vprog(Rng *r, IsaVprog *p) {
  memset(p, 0, sizeof *p);
  p->ops[p->n++] =
      (IsaVop){.op = VOP_MOV, .dst = VARG_R0, .a = VARG_IMM, .imm = (uint32_t)rng_u64(r)};
  p->ops[p->n++] = (IsaVop){.op = VOP_VEC};
  p->ops[p->n++] = (IsaVop){.op = VOP_LD, .dst = 0, .stream = (uint8_t)rng_range(r, 0, 7)};
  for (int64_t i = 0, n = rng_range(r, 0, 40); i < n; i++) {
    IsaVop v = {.op = (uint8_t)rng_range(r, VOP_LD, VOP_COS_F),
                .dst = (uint8_t)rng_range(r, 0, 15)};
    char buf[8];
    bool imm = false;
    const char *l = isa_vop_letters((IsaVopKind)v.op, buf);
    if (!strchr(l, 'd')) v.dst = 0;
    for (; *l; l++) {
      uint8_t x = (uint8_t[]){0, VARG_R0, VARG_IMM}[rng_range(r, 0, 2)];
      if (*l == 's')
        v.stream = (uint8_t)rng_range(r, 0, 7);
      else if (*l == 'a')
        v.a = x;
      else if (*l == 'b')
        v.b = x;
      else if (*l == 'c')
        v.c = x;
      if (strchr("abc", *l) && x == VARG_IMM) imm = true;
    }
    if (imm) v.imm = rng_range(r, 0, 1) ? (uint32_t)rng_u64(r) : (uint32_t)rng_range(r, -100, 100);
    p->ops[p->n++] = v;
  }
  p->ops[p->n++] = (IsaVop){.op = VOP_RSUM_F, .dst = VARG_R0 + 1};
  p->ops[p->n++] = (IsaVop){.op = VOP_ENDV};
}

static void random_insn(Rng *r, const IsaImage *img, IsaInsn *in) {
  memset(in, 0, sizeof *in);
  in->kind = (IsaInsnKind)rng_range(r, 0, INSN_COUNT - 1);
  bool engine = isa_insn_info(in->kind)->engine != ENGINE_SEQ;
  IsaArgs args = isa_insn_args(in->kind);
  for (int i = 0; i < args.n; i++) switch (args.arg[i]) {
    case ARG_RD: in->rd = (uint8_t)rng_range(r, 0, 31); break;
    case ARG_RS: in->rs = (uint8_t)rng_range(r, 0, 31); break;
    case ARG_RT: in->rt = (uint8_t)rng_range(r, 0, 31); break;
    case ARG_DN: in->dn = (uint8_t)rng_range(r, 0, 63); break;
    case ARG_FLD: in->field = (uint8_t)rng_range(r, 0, (int64_t)isa_field_count() - 1); break;
    case ARG_IMM: in->imm = rng_range(r, 0, 63); break;
    case ARG_TGT: in->target = (uint32_t)rng_range(r, 0, img->ninsns - 1); break;
    case ARG_IDX: in->target = (uint32_t)rng_range(r, 0, img->ndescs - 1); break;
    case ARG_VP: in->vp = (uint16_t)rng_range(r, 0, img->nvprogs - 1); break;
    case ARG_MEM:
      in->rs = (uint8_t)rng_range(r, 0, 31);
      in->imm = rng_range(r, -(int64_t)2147483648, 2147483647);
      break;
    }
  if (engine || in->kind == INSN_TAKE)
    in->take[0] = (IsaSemRef){(uint8_t)rng_range(r, 0, 63), (uint8_t)rng_range(r, 1, 15)};
  if (engine || in->kind == INSN_GIVE)
    in->give[0] = (IsaSemRef){(uint8_t)rng_range(r, 0, 63), (uint8_t)rng_range(r, 1, 15)};
}

static void random_image(Rng *r, IsaImage *img) {
  isa_image_init(img);
  Arena *a = img->arena;
  assert_true(machine_load(machine_builtin_name((size_t)rng_range(r, 0, 2)), &img->machine, NULL));
  img->machine.dram_latency_ns = rng_uniform(r) * 1000;
  img->ideal_macs_bf16 = rng_uniform(r) * 1e12;
  img->ndescs = (uint32_t)rng_range(r, 1, 6);
  img->nvprogs = (uint32_t)rng_range(r, 1, 3);
  img->ninsns = (uint32_t)rng_range(r, 1, 60);
  img->descs = ARENA_ARRAY(a, IsaDesc, img->ndescs);
  for (uint32_t i = 0; i < img->ndescs; i++) random_desc(r, &img->descs[i]);
  img->vprogs = ARENA_ARRAY(a, IsaVprog, img->nvprogs);
  for (uint32_t i = 0; i < img->nvprogs; i++) random_vprog(r, &img->vprogs[i]);
  img->code = arena_alloc(a, (size_t)img->ninsns * 16);
  for (uint32_t i = 0; i < img->ninsns; i++) {
    IsaInsn in;
    random_insn(r, img, &in);
    if (i + 1 == img->ninsns) in = (IsaInsn){.kind = INSN_HALT};
    assert_true(isa_encode(&in, img->code + (size_t)i * 16, NULL));
  }
  img->nsymbols = (uint32_t)rng_range(r, 0, 5);
  img->symbols = ARENA_ARRAY(a, IsaSymbol, img->nsymbols);
  for (uint32_t i = 0; i < img->nsymbols; i++)
    img->symbols[i] =
        (IsaSymbol){arena_printf(a, "l%u%s", i, i % 2 ? "\t\"x\xc3" : ""), (i * img->ninsns) / 6};
  img->nsegments = (uint32_t)rng_range(r, 0, 3);
  img->segments = ARENA_ARRAY(a, IsaSegment, img->nsegments);
  uint64_t at = 0;
  for (uint32_t i = 0; i < img->nsegments; i++) {
    uint64_t size = (uint64_t)rng_range(r, 1, 3000);
    uint8_t *data = arena_alloc(a, size);
    for (uint64_t k = 0; k < size; k++)
      data[k] = rng_range(r, 0, 99) < 2 || k % 700 > 500 ? 0 : (uint8_t)rng_u64(r);
    at += (uint64_t)rng_range(r, 0, 50);
    img->segments[i] = (IsaSegment){arena_printf(a, "seg %u", i), at, size, data};
    at += size;
  }
  img->dram_bytes = at + (uint64_t)rng_range(r, 0, 100);
}

static void test_random_images(void **state) {
  (void)state;
  Rng r;
  rng_seed(&r, 3);
  for (int i = 0; i < 150; i++) {
    IsaImage img;
    random_image(&r, &img);
    round_trip(&img);
    isa_image_free(&img);
  }
}

/* ---- errors ---- */

static void expect_error(const char *text, uint32_t line, uint32_t col, const char *part) {
  DiagEngine *d = diag_new();
  IsaImage img;
  assert_false(isa_assemble(text, strlen(text), "bad.s", &img, d));
  bool found = false;
  for (size_t i = 0; i < diag_count(d); i++) {
    const Diag *g = diag_get(d, i);
    if (g->loc.line == line && (col == 0 || g->loc.col == col) && strstr(g->message, part))
      found = true;
  }
  if (!found) {
    diag_print_all(d, stderr, false);
    fail_msg("no error at %u:%u with '%s'", line, col, part);
  }
  diag_free(d);
}

static void test_errors(void **state) {
  (void)state;
  expect_error("  ld0.fil d1\n  halt\n", 1, 3, "did you mean 'ld0.fill'");
  expect_error("  halt\n.desk 0 dma\n", 2, 1, "did you mean '.desc'");
  expect_error("li r1, 5\nli r32, 1\nhalt\n", 2, 4, "r0..r31");
  expect_error("li r1\nhalt\n", 1, 6, "expected ','");
  expect_error("li r1, 1 2\nhalt\n", 1, 10, "unexpected '2'");
  expect_error("li r1, 140737488355328\nhalt\n", 1, 8, "an immediate is");
  expect_error("loop: bne r1, r2, lop\nhalt\n", 1, 7, "did you mean 'loop'");
  expect_error("jmp @2\nhalt\n", 0, 0, "jump target 2");
  expect_error("dset d1.siz.0, r1\nhalt\n", 1, 6, "did you mean 'size.0'");
  expect_error("dset d1, r1\nhalt\n", 1, 6, "such as d3.size.0");
  expect_error("ld0 d1 take s1:16\nhalt\n", 1, 16, "1 to 15");
  expect_error("ld0 d1 take s1, s2, s3\nhalt\n", 1, 21, "at most two");
  expect_error("ld0 d1 take s64\nhalt\n", 1, 13, "s0..s63");
  expect_error("dload d1, 0\nhalt\n", 1, 1, "descriptor 0 does not exist");
  expect_error("vx p0, d1\nhalt\n", 1, 1, "vector program 0 does not exist");
  expect_error("shl r1, r1, 64\nhalt\n", 1, 1, "shift");
  expect_error("a: halt\na: halt\n", 2, 1, "'a' is defined twice");
  expect_error(".dram 64\n.dram 64\nhalt\n", 2, 7, "given twice");
  expect_error(".desc 0 dma rank=1 elsize=1 rank=1\nhalt\n", 1, 29, "'rank' is given twice");
  expect_error(".desc 1 dma rank=1 elsize=1\nhalt\n", 1, 7, "this one is 0");
  expect_error(".desc 0 dma rank=1 elsize=3\nhalt\n", 1, 7, "1, 2 or 4");
  expect_error(".desc 0 dma rank=1 elsize=1 acc=3\nhalt\n", 1, 29, "no field 'acc'");
  expect_error(".desc 0 dma rank=1 elsize=1 spm=-3\nhalt\n", 1, 33, "does not fit");
  expect_error(".desc 0 dma rank=1 elsize=1 size=[1,2,3,4,5,6]\nhalt\n", 1, 45, "more than 5");
  expect_error(".desc 0 plane dtype=f32 n=1\nhalt\n", 1, 7, "s8 or bf16");
  expect_error(".vprog 0 { vec; ld v0, s0; ad.f v0, v0, v0; endv }\nhalt\n", 1, 28,
               "did you mean 'add.f'");
  expect_error(".vprog 0 {\n  vec\n  st s0, v3\n  endv\n}\nhalt\n", 1, 0,
               "read before it is written");
  expect_error(".vprog 0 {\n  vec\n", 1, 0, "not closed");
  expect_error(".segment \"a\" 0 4\n.hex 001\n.end\nhalt\n", 2, 6, "odd number");
  expect_error(".segment \"a\" 0 4\n.hex 00\n.end\nhalt\n", 1, 0, "has 1 bytes of data, not 4");
  expect_error(".segment \"a\" 0 4\n.zero 5\n.end\nhalt\n", 2, 0, "longer");
  expect_error(".segment \"a\" 0 4\n.zero 4\n.end\n.segment \"b\" 3 1\n.zero 1\n.end\nhalt\n", 4,
               10, "overlaps");
  expect_error(".machine edgy\nhalt\n", 1, 10, "not a built-in machine");
  expect_error(".machine {\nname = x\nclok_ghz = 1\n}\nhalt\n", 3, 0, "did you mean 'clock_ghz'");
  expect_error(".io input \"x\" f16[1] 0\nhalt\n", 1, 5, "dtype is not");
  expect_error(".io input \"x f32[1] 0\nhalt\n", 1, 11, "closing");
  expect_error(".machine edge\n.machine cloud\nhalt\n", 2, 10, ".machine is given twice");
  expect_error(".roofline macs_s8=1\n.roofline macs_s8=1\nhalt\n", 2, 11, "given twice");
  expect_error(".roofline macs_s8=1 macs_s8=2\nhalt\n", 1, 21, "macs_s8 is given twice");
  /* tensors and segments that share bytes: y's first with x's last, z within x, the same place */
  expect_error(".io input \"x\" f32[4] 0\n.io output \"y\" s8[8] 15\nhalt\n", 2, 5,
               "output 'y' overlaps input 'x' at byte 15");
  expect_error(".io input \"x\" f32[4] 16\n.io input \"z\" s8[1] 20\nhalt\n", 2, 5,
               "input 'z' overlaps input 'x' at byte 20");
  expect_error(".io output \"y\" f32[4] 64\n.io state \"s\" f32[4] 64\nhalt\n", 2, 5,
               "state 's' overlaps output 'y'");
  expect_error(".io input \"x\" f32[2] 0\n.io output \"y\" f32[2] 4\n.io state \"s\" f32[1] "
               "32\nhalt\n",
               2, 5, "at byte 4");
  expect_error(".segment \"w\" 8 4\n.zero 4\n.end\n.io input \"x\" s8[9] 0\nhalt\n", 1, 10,
               "segment 'w' overlaps input 'x'");
  expect_error(".segment \"w\" 8 4\n.zero 4\n.end\n.io output \"y\" s8[4] 8\nhalt\n", 1, 10,
               "segment 'w' overlaps output 'y'");
  expect_error(".segment \"w\" 8 4\n.zero 4\n.end\n.io state \"s\" s8[2] 9\nhalt\n", 1, 10,
               "partly outside state 's'");
  expect_error(".io input \"x\" s8[65] 0\n.dram 64\nhalt\n", 1, 5, "outside the 64 bytes");
  expect_error(".dram 3000000000\nhalt\n", 0, 0, "machine 'edge' has");
  expect_error("li r1, 1\n", 0, 0, "run off its end");
  expect_error("", 0, 0, "no instructions");
}

/* Assembles with this many warnings, one of which is at that line and has that code. */
static void expect_warning(const char *text, unsigned n, uint32_t line, const char *code) {
  DiagEngine *d = diag_new();
  IsaImage img;
  bool found = n == 0;
  assert_true(isa_assemble(text, strlen(text), "warn.s", &img, d));
  for (size_t i = 0; i < diag_count(d); i++)
    found = found || (diag_get(d, i)->loc.line == line && !strcmp(diag_get(d, i)->code, code));
  if (diag_count(d) != n || !found) diag_print_all(d, stderr, false);
  assert_int_equal(diag_count(d), n);
  assert_true(found);
  isa_image_free(&img);
  diag_free(d);
}

static void test_warnings(void **state) {
  (void)state;
  expect_warning("halt\n", 1, 0, "W-machine");
  expect_warning(".machine edge\nhalt\n", 0, 0, "");
  expect_warning(".machine edge\n.io output \"y\" s8[4] 0\nsync.st\nhalt\n", 1, 2, "W-unwritten");
  expect_warning(".machine edge\n.io output \"y\" s8[4] 0\nst d0\nhalt\n", 0, 0, "");
  /* neighbours, and a state's first value, are as they should be */
  expect_warning(".machine edge\n.io input \"x\" s8[4] 0\n.io input \"z\" s8[4] 8\n"
                 ".io state \"s\" s8[4] 4\n.segment \"s\" 4 4\n.zero 4\n.end\n"
                 ".segment \"w\" 12 4\n.zero 4\n.end\nhalt\n",
                 0, 0, "");
}

static void test_several_errors(void **state) {
  (void)state;
  DiagEngine *d = diag_new();
  IsaImage img;
  const char *text = "foo\nli r99, 1\nhalt 3\nhalt\n";
  assert_false(isa_assemble(text, strlen(text), "bad.s", &img, d));
  assert_int_equal(diag_errors(d), 3);
  StrBuf shown = {0};
  diag_format(d, diag_get(d, 1), false, &shown);
  assert_non_null(strstr(shown.data, "bad.s:2:4: error:"));
  assert_non_null(strstr(shown.data, "li r99, 1"));
  strbuf_free(&shown);
  diag_free(d);
  d = diag_new();
  StrBuf many = {0};
  for (int i = 0; i < 100; i++) strbuf_puts(&many, "bad\n");
  assert_false(isa_assemble(many.data, many.len, "bad.s", &img, d));
  assert_int_equal(diag_errors(d), 21);
  assert_non_null(strstr(diag_get(d, 20)->message, "80 more"));
  strbuf_free(&many);
  diag_free(d);
}

static void test_default_dram(void **state) {
  (void)state;
  DiagEngine *d = diag_new();
  IsaImage img;
  const char *text = ".io input \"x\" f32[3] 100\nhalt";
  assert_true(isa_assemble(text, strlen(text), "t.s", &img, d));
  assert_int_equal(img.dram_bytes, 112);
  isa_image_free(&img);
  diag_free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_round_trip),     cmocka_unit_test(test_random_images),
      cmocka_unit_test(test_errors),         cmocka_unit_test(test_warnings),
      cmocka_unit_test(test_several_errors), cmocka_unit_test(test_default_dram)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
