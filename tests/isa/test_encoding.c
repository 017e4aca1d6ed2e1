/* Encodings: golden bytes worked out by hand from the layout in isa/README.md, an overlap proof
 * over the whole table, and decode(encode(x)) = x with random fields. */
#include "isa/isa.h"
#include "isa/isa_internal.h"
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

/* The sixteen bytes, first byte first. Worked out on paper:
 *   byte 0 opcode, byte 1 flags; take0 at bit 16, take1 at 26, give0 at 36, give1 at 46, each
 * semaphore in the low 6 bits and count in the high 4; operands from bit 56 (byte 7) on, low bit
 * first. */
typedef struct {
  const char *text;
  IsaInsn in;
  const char *bytes;
} Golden;

static const Golden goldens[] = {
    /* rd = 1 in bits 56..60, imm = 5 from bit 61: 1 | 5 << 5 = 0xa1 */
    {"li r1, 5", {.kind = INSN_LI, .rd = 1, .imm = 5}, "01 00 0000000000 a1 0000000000000000"},
    /* rd = 31: 0x1f; imm = -1 is 48 ones from bit 61 to 108: byte 7 = 0xff, bytes 8..12 = ff, byte
       13 = bits 104..108 = 0x1f */
    {"li r31, -1", {.kind = INSN_LI, .rd = 31, .imm = -1}, "01 00 0000000000 ff ffffffffff1f0000"},
    /* rd 2, rs 3 at bit 61, rt 4 at bit 66: 2 | 3 << 5 | 4 << 10 = 0x1062 */
    {"add r2, r3, r4",
     {.kind = INSN_ADD, .rd = 2, .rs = 3, .rt = 4},
     "03 00 0000000000 62 1000000000000000"},
    /* rd 4, rs 5 at 61, imm -2 is 47 ones from bit 67 on: 4 | 5 << 5 | 0xfffffffffffe << 10 */
    {"maxi r4, r5, -2",
     {.kind = INSN_MAXI, .rd = 4, .rs = 5, .imm = -2},
     "0f 00 0000000000 a4 f8ffffffffff0300"},
    /* rs 1, rt 2 at 61, target 7 at 66: 1 | 2 << 5 | 7 << 10 = 0x1c41 */
    {"bne r1, r2, @7",
     {.kind = INSN_BNE, .rs = 1, .rt = 2, .target = 7},
     "52 00 0000000000 41 1c00000000000000"},
    /* rd 5, rs 6 at 61, offset 16 at 66: 5 | 6 << 5 | 16 << 10 = 0x40c5 */
    {"lds r5, [r6 + 16]",
     {.kind = INSN_LDS, .rd = 5, .rs = 6, .imm = 16},
     "55 00 0000000000 c5 4000000000000000"},
    /* offset -4 = 0xfffffffc at bit 66: 5 | 6 << 5 | 0xfffffffc << 10 = 0x3fffffff0c5 */
    {"lds r5, [r6 - 4]",
     {.kind = INSN_LDS, .rd = 5, .rs = 6, .imm = -4},
     "55 00 0000000000 c5 f0ffffff03000000"},
    /* d3; takes s1:1 = 0x041 at bit 16, s2:1 = 0x042 at 26, give s4:1 = 0x044 at 36:
     * 0x041 | 0x042 << 10 | 0x044 << 20 = 0x4410841 -> 41 08 41 04 00 */
    {"ld0.fill d3 take s1:1, s2:1 give s4:1",
     {.kind = INSN_LD0_FILL, .dn = 3, .take = {{1, 1}, {2, 1}}, .give = {{4, 1}}},
     "10 01 4108410400 03 0000000000000000"},
    /* take s63:15 = 0x3ff in all four places: 40 ones; d63 */
    {"st d63 take s63:15, s63:15 give s63:15, s63:15",
     {.kind = INSN_ST, .dn = 63, .take = {{63, 15}, {63, 15}}, .give = {{63, 15}, {63, 15}}},
     "12 00 ffffffffff 3f 0000000000000000"},
    /* d3, field 12 (coord.1) at bit 62, rs 4 at 70: field list: dram 0, spm 1, size 2-6, dstride
     * 7-11, sstride 12-16, coord 17-21, so coord.1 = 18: 3 | 18 << 6 | 4 << 14 = 0x10483 */
    {"dset d3.coord.1, r4",
     {.kind = INSN_DSET, .dn = 3, .field = 18, .rs = 4},
     "61 00 0000000000 83 0401000000000000"},
    /* d1, spm = 1, imm 64 at bit 70: 1 | 1 << 6 | 64 << 14 = 0x100041 */
    {"daddi d1.spm, 64",
     {.kind = INSN_DADDI, .dn = 1, .field = 1, .imm = 64},
     "64 00 0000000000 41 0010000000000000"},
    /* d9, index 300 at bit 62: 9 | 300 << 6 = 0x4b09 */
    {"dload d9, 300",
     {.kind = INSN_DLOAD, .dn = 9, .target = 300},
     "60 00 0000000000 09 4b00000000000000"},
    {"mm.load.t d2", {.kind = INSN_MM_LOAD_T, .dn = 2}, "20 01 0000000000 02 0000000000000000"},
    /* give0 s5:2 = 0x085 at bit 36 = 0x085 << 20 = 0x8500000 */
    {"mm.mul.pop.acc d7 give s5:2",
     {.kind = INSN_MM_MUL_POP_ACC, .dn = 7, .give = {{5, 2}}},
     "21 03 0000500800 07 0000000000000000"},
    /* program 258 in 16 bits, d4 at bit 72: 02 01 04 */
    {"vx p258, d4", {.kind = INSN_VX, .vp = 258, .dn = 4}, "30 00 0000000000 02 0104000000000000"},
    {"sync.vpu take s0:1",
     {.kind = INSN_SYNC_VPU, .take = {{0, 1}}},
     "70 05 4000000000 00 0000000000000000"},
    {"take s3:4", {.kind = INSN_TAKE, .take = {{3, 4}}}, "59 00 0301000000 00 0000000000000000"},
    {"halt", {.kind = INSN_HALT}, "5c 00 0000000000 00 0000000000000000"},
};

static void from_hex(const char *s, uint8_t out[16]) {
  int n = 0;
  unsigned high = 16;
  for (; *s; s++) {
    if (*s == ' ') continue;
    unsigned v = *s <= '9' ? (unsigned)(*s - '0') : (unsigned)(*s - 'a') + 10;
    if (high == 16) {
      high = v;
    } else {
      out[n++] = (uint8_t)(high * 16 + v);
      high = 16;
    }
  }
  assert_int_equal(n, 16);
}

static void test_golden(void **state) {
  (void)state;
  for (size_t i = 0; i < NPU_COUNTOF(goldens); i++) {
    uint8_t want[16], got[16];
    const char *why = NULL;
    from_hex(goldens[i].bytes, want);
    assert_true(isa_encode(&goldens[i].in, got, &why));
    if (memcmp(got, want, 16) != 0) fail_msg("%s: wrong bytes", goldens[i].text);
    IsaInsn back;
    assert_true(isa_decode(want, &back, &why));
    StrBuf b = {0};
    isa_insn_print(&back, NULL, &b);
    assert_string_equal(b.data, goldens[i].text);
    strbuf_free(&b);
  }
}

/* Two rows may not accept the same opcode and flags. */
static void test_no_overlap(void **state) {
  (void)state;
  for (unsigned a = 0; a < INSN_COUNT; a++) {
    const IsaInsnInfo *x = isa_insn_info((IsaInsnKind)a);
    assert_int_not_equal(x->opcode, 0); /* an all-zero word is no instruction */
    assert_int_equal(x->flags & ~x->flags_mask, 0);
    unsigned bits = 56;
    IsaArgs args = isa_insn_args((IsaInsnKind)a);
    for (int i = 0; i < args.n; i++) bits += isa_arg_bits(args.arg[i]);
    assert_true(bits <= 128);
    bool reserved = (x->opcode >= 0x18 && x->opcode <= 0x1f) ||
                    (x->opcode >= 0x28 && x->opcode <= 0x2f) ||
                    (x->opcode >= 0x40 && x->opcode <= 0x4f);
    assert_false(reserved);
    for (unsigned b = 0; b < a; b++) {
      const IsaInsnInfo *y = isa_insn_info((IsaInsnKind)b);
      assert_string_not_equal(x->mnemonic, y->mnemonic);
      unsigned both = x->flags_mask & y->flags_mask;
      if (x->opcode == y->opcode && (x->flags & both) == (y->flags & both))
        fail_msg("%s and %s overlap", x->mnemonic, y->mnemonic);
    }
  }
}

static void random_insn(Rng *r, IsaInsnKind k, IsaInsn *in) {
  memset(in, 0, sizeof *in);
  in->kind = k;
  IsaArgs args = isa_insn_args(k);
  for (int i = 0; i < args.n; i++) switch (args.arg[i]) {
    case ARG_RD: in->rd = (uint8_t)rng_range(r, 0, 31); break;
    case ARG_RS: in->rs = (uint8_t)rng_range(r, 0, 31); break;
    case ARG_RT: in->rt = (uint8_t)rng_range(r, 0, 31); break;
    case ARG_DN: in->dn = (uint8_t)rng_range(r, 0, 63); break;
    case ARG_FLD: in->field = (uint8_t)rng_range(r, 0, (int64_t)isa_field_count() - 1); break;
    case ARG_IMM: in->imm = rng_range(r, -((int64_t)1 << 47), ((int64_t)1 << 47) - 1); break;
    case ARG_TGT:
    case ARG_IDX: in->target = (uint32_t)rng_u64(r); break;
    case ARG_VP: in->vp = (uint16_t)rng_u64(r); break;
    case ARG_MEM:
      in->rs = (uint8_t)rng_range(r, 0, 31);
      in->imm = (int32_t)(uint32_t)rng_u64(r);
      break;
    }
  if (k == INSN_SHL || k == INSN_SHR) in->imm &= 63;
  bool engine = isa_insn_info(k)->engine != ENGINE_SEQ;
  if (engine || k == INSN_TAKE)
    for (int64_t i = 0, n = rng_range(r, 0, 2); i < n; i++)
      in->take[i] = (IsaSemRef){(uint8_t)rng_range(r, 0, 63), (uint8_t)rng_range(r, 1, 15)};
  if (engine || k == INSN_GIVE)
    for (int64_t i = 0, n = rng_range(r, 0, 2); i < n; i++)
      in->give[i] = (IsaSemRef){(uint8_t)rng_range(r, 0, 63), (uint8_t)rng_range(r, 1, 15)};
}

static void test_round_trip(void **state) {
  (void)state;
  Rng r;
  rng_seed(&r, 1);
  for (unsigned k = 0; k < INSN_COUNT; k++)
    for (int i = 0; i < 200; i++) {
      IsaInsn in, back;
      uint8_t bytes[16];
      const char *why = "";
      random_insn(&r, (IsaInsnKind)k, &in);
      assert_true(isa_encode(&in, bytes, &why));
      assert_true(isa_decode(bytes, &back, &why));
      assert_memory_equal(&in, &back, sizeof in);
    }
}

/* Every 16-byte word that decodes encodes to itself: no bit is ignored. */
static void test_decode_is_exact(void **state) {
  (void)state;
  Rng r;
  rng_seed(&r, 2);
  unsigned accepted = 0;
  for (unsigned k = 0; k < INSN_COUNT; k++)
    for (int i = 0; i < 300; i++) {
      IsaInsn in, back;
      uint8_t bytes[16], again[16];
      random_insn(&r, (IsaInsnKind)k, &in);
      assert_true(isa_encode(&in, bytes, NULL));
      int64_t bit = rng_range(&r, 0, 127);
      bytes[bit / 8] = (uint8_t)(bytes[bit / 8] ^ 1u << bit % 8);
      if (!isa_decode(bytes, &back, NULL)) continue;
      accepted++;
      assert_true(isa_encode(&back, again, NULL));
      assert_memory_equal(bytes, again, 16);
    }
  assert_true(accepted > 1000);
}

static void refuse(IsaInsn in, const char *part) {
  uint8_t bytes[16];
  const char *why = "";
  assert_false(isa_encode(&in, bytes, &why));
  assert_non_null(strstr(why, part));
}

static void test_refusals(void **state) {
  (void)state;
  refuse((IsaInsn){.kind = INSN_LI, .rd = 32}, "rd");
  refuse((IsaInsn){.kind = INSN_LI, .imm = (int64_t)1 << 47}, "imm");
  refuse((IsaInsn){.kind = INSN_SHL, .imm = 64}, "shift");
  refuse((IsaInsn){.kind = INSN_LD0, .dn = 64}, "dn");
  refuse((IsaInsn){.kind = INSN_LD0, .take = {{64, 1}}}, "s0..s63");
  refuse((IsaInsn){.kind = INSN_LD0, .take = {{1, 16}}}, "15");
  refuse((IsaInsn){.kind = INSN_DSET, .field = 250}, "field");
  refuse((IsaInsn){.kind = INSN_ADD, .take = {{1, 1}}}, "take");
  uint8_t zero[16] = {0}, bad[16];
  IsaInsn in;
  const char *why = "";
  assert_false(isa_decode(zero, &in, &why));
  assert_non_null(strstr(why, "opcode"));
  from_hex("5c 00 0000000000 01 0000000000000000", bad); /* halt with operand bits */
  assert_false(isa_decode(bad, &in, &why));
  from_hex("10 03 0000000000 01 0000000000000000", bad); /* ld0 has no flags 3 */
  assert_false(isa_decode(bad, &in, &why));
  assert_non_null(strstr(why, "flags"));
}

static void test_fields(void **state) {
  (void)state;
  uint8_t f;
  char buf[24];
  assert_true(isa_field_by_name(DESC_DMA, "size.2", &f));
  assert_int_equal(f, 4);
  assert_string_equal(isa_field_name(4, buf), "size.2");
  assert_false(isa_field_by_name(DESC_DMA, "size.5", &f));
  assert_false(isa_field_by_name(DESC_DMA, "size", &f));
  assert_false(isa_field_by_name(DESC_DMA, "acc", &f));
  assert_true(isa_field_by_name(DESC_ROWS, "acc", &f));
  IsaDesc d = {.kind = DESC_VECTOR, .nstreams = 2};
  assert_true(isa_field_by_name(DESC_VECTOR, "stride.8", &f)); /* stream 1, loop r1 */
  assert_true(isa_field_set(&d, f, -12));
  assert_int_equal(d.vec.stream[1].stride[VLOOP_R1], -12);
  assert_int_equal(isa_field_get(&d, f), -12);
  assert_false(isa_field_set(&d, f, (int64_t)1 << 31));
  IsaDesc dma = {.kind = DESC_DMA, .rank = 1, .elsize = 1};
  assert_true(isa_field_by_name(DESC_DMA, "spm", &f));
  assert_false(isa_field_set(&dma, f, -1));
  assert_true(isa_field_set(&dma, f, 0xffffffff));
  assert_int_equal(isa_field_get(&dma, f), 0xffffffff);
  for (unsigned i = 0; i < isa_field_count(); i++) { /* names and numbers are inverse */
    uint8_t back;
    assert_true(isa_field_by_name(DESC_NONE, isa_field_name((uint8_t)i, buf), &back));
    assert_int_equal(back, i);
  }
}

/* Byte places from the manual's table, not from the struct. */
static void test_desc_layout(void **state) {
  (void)state;
  IsaDesc d = {.kind = DESC_DMA, .rank = 2, .elsize = 4};
  d.dma.dram = 0x1122334455667788;
  d.dma.spm = 0xaabbccdd;
  d.dma.size[1] = 7;
  d.dma.extent[0] = 9;
  d.dma.sstride[4] = -1;
  const uint8_t *p = (const uint8_t *)&d;
  assert_int_equal(p[0], 1);
  assert_int_equal(p[1], 2);
  assert_int_equal(p[2], 4);
  assert_int_equal(p[8], 0x88);
  assert_int_equal(p[16], 0xdd);
  assert_int_equal(p[32], 7);
  assert_int_equal(p[128], 9);
  assert_int_equal(p[184], 0xff);
  IsaDesc v = {.kind = DESC_VECTOR, .nstreams = 1};
  v.vec.count[VLOOP_V] = 64;
  v.vec.stream[1].base = 5;
  p = (const uint8_t *)&v;
  assert_int_equal(p[5], 1);
  assert_int_equal(p[24], 64);
  assert_int_equal(p[28 + 28 + 4], 5);
}

static void test_desc_check(void **state) {
  (void)state;
  const MachineDesc *m = machine_default();
  const char *why = "";
  IsaDesc d = {.kind = DESC_PLANE, .dtype = DT_S8, .plane = {.k = {1, 1, 64}, .n = 64}};
  assert_true(isa_desc_check(&d, m, &why));
  d.plane.k[0] = 2;
  assert_false(isa_desc_check(&d, m, &why));
  assert_non_null(strstr(why, "mxu_rows"));
  d.plane.k[0] = 0xffffffff;
  d.plane.k[1] = 0xffffffff;
  d.plane.k[2] = 0xffffffff;
  assert_false(isa_desc_check(&d, m, &why));
  IsaDesc e = {.kind = DESC_DMA, .rank = 6, .elsize = 1};
  assert_false(isa_desc_check(&e, m, &why));
  e.rank = 2;
  assert_true(isa_desc_check(&e, m, &why));
  e.elsize = 3;
  assert_false(isa_desc_check(&e, m, &why));
  e.elsize = 1;
  e.bytes[247] = 1;
  assert_false(isa_desc_check(&e, m, &why));
  assert_non_null(strstr(why, "zero"));
  IsaDesc r = {.kind = DESC_ROWS, .dtype = DT_S8, .wdtype = DT_BF16};
  assert_false(isa_desc_check(&r, m, &why));
  r.dtype = DT_BF16;
  r.wdtype = DT_S8;
  assert_true(isa_desc_check(&r, m, &why));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_golden),      cmocka_unit_test(test_no_overlap),
      cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_decode_is_exact),
      cmocka_unit_test(test_refusals),    cmocka_unit_test(test_fields),
      cmocka_unit_test(test_desc_layout), cmocka_unit_test(test_desc_check),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
