/* Vector programs: encodings by hand, text, structure rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "isa/isa.h"
#include "isa/isa_internal.h"

/* bits 0..7 code | 8..12 d | 13..18 a | 19..24 b | 25..30 c or stream | 32..63 immediate, on paper.
 */
static const struct {
  const char *text;
  uint64_t word;
} goldens[] = {
    {"vec", 0x01},
    {"ld v3, s5", 0x08 | 3u << 8 | 5u << 25},
    {"st s7, v15", 0x09 | 15u << 13 | 7u << 25},
    {"add.f v1, v2, v3", 0x10 | 1u << 8 | 2u << 13 | 3u << 19},
    {"max.f v0, v0, 0.0", 0x14 | 63u << 19},
    {"mul.f v4, r7, 0.5", 0x12 | 4u << 8 | 23u << 13 | 63u << 19 | 0x3f000000ull << 32},
    {"add.i v4, v4, -2", 0x20 | 4u << 8 | 4u << 13 | 63u << 19 | 0xfffffffeull << 32},
    {"sel v1, v2, v3, 1.0", 0x30 | 1u << 8 | 2u << 25 | 3u << 13 | 63u << 19 | 0x3f800000ull << 32},
    {"rsum.f r1, v0", 0x50 | 17u << 8},
    {"sum.f v5, v2", 0x56 | 5u << 8 | 2u << 13},
    {"iota v9", 0x0b | 9u << 8},
};

static void test_golden(void **state) {
  (void)state;
  for (size_t i = 0; i < NPU_COUNTOF(goldens); i++) {
    IsaVop v, back;
    char why[160];
    uint8_t got[8], want[8];
    assert_true(isa_vop_parse(goldens[i].text, strlen(goldens[i].text), &v, why));
    isa_vop_encode(&v, got);
    memcpy(want, &goldens[i].word, 8);
    if (memcmp(got, want, 8) != 0) fail_msg("%s: wrong encoding", goldens[i].text);
    assert_true(isa_vop_decode(got, &back));
    assert_memory_equal(&v, &back, sizeof v);
    StrBuf b = {0};
    isa_vop_print(&back, &b);
    assert_string_equal(b.data, goldens[i].text);
    strbuf_free(&b);
  }
}

static void test_codes_differ(void **state) {
  (void)state;
  for (unsigned a = 0; a < VOP_COUNT; a++)
    for (unsigned b = 0; b < a; b++) {
      assert_int_not_equal(isa_vop_info((IsaVopKind)a)->code, isa_vop_info((IsaVopKind)b)->code);
      assert_string_not_equal(isa_vop_info((IsaVopKind)a)->mnemonic,
                              isa_vop_info((IsaVopKind)b)->mnemonic);
    }
}

/* A word decodes exactly when it encodes back to itself. */
static void test_decode_exact(void **state) {
  (void)state;
  Rng r;
  rng_seed(&r, 5);
  int accepted = 0;
  for (int i = 0; i < 200000; i++) {
    uint64_t w = rng_u64(&r);
    w = (w & ~(uint64_t)255) | isa_vop_info((IsaVopKind)rng_range(&r, 0, VOP_COUNT - 1))->code;
    w &= (uint64_t[]){0xffff, 0x7ffff, 0x1ffffff, 0x7fffffff, ~(uint64_t)0}[rng_range(&r, 0, 4)];
    uint8_t in[8], out[8];
    memcpy(in, &w, 8);
    IsaVop v;
    if (!isa_vop_decode(in, &v)) continue;
    accepted++;
    isa_vop_encode(&v, out);
    assert_memory_equal(in, out, 8);
  }
  assert_true(accepted > 1000);
  uint8_t unknown[8] = {0xff}, dst[8] = {0x0b, 24}, stream[8] = {0x08, 0, 0, 16};
  IsaVop v;
  assert_false(isa_vop_decode(unknown, &v));
  assert_false(isa_vop_decode(dst, &v));
  assert_false(isa_vop_decode(stream, &v));
}

static void accept(const char *text) {
  IsaVprog p;
  char why[160] = "";
  const char *w = "";
  if (!isa_vprog_parse(text, &p, why)) fail_msg("%s: %s", text, why);
  if (!isa_vprog_check(&p, 4, &w)) fail_msg("%s: %s", text, w);
  StrBuf b = {0};
  isa_vprog_print(&p, "; ", &b);
  assert_string_equal(b.data, text);
  strbuf_free(&b);
}
static void reject(const char *text, const char *part) {
  IsaVprog p;
  char why[160] = "";
  const char *w = why;
  bool parsed = isa_vprog_parse(text, &p, why);
  if (parsed && isa_vprog_check(&p, 4, &w)) fail_msg("%s: accepted", text);
  if (!strstr(w, part)) fail_msg("%s: '%s' does not say '%s'", text, w, part);
}

static void test_text(void **state) {
  (void)state;
  accept("vec; ld v0, s0; max.f v0, v0, 0.0; st s1, v0; endv");
  accept("vec; ld v0, s0; rmax.f r0, v0; endv; vec; ld v0, s0; sub.f v0, v0, r0; exp.f v0, v0; st "
         "s1, v0; "
         "rsum.f r1, v0; endv; recip.f r1, r1; vec; ld v1, s1; mul.f v1, v1, r1; st s1, v1; endv");
  accept("vec; mov v0, 0; red; ld v1, s0; ld v2, s1; mul.f v1, v1, v2; add.f v0, v0, v1; endr; st "
         "s2, v0; endv");
  accept("ld r0, s3; add.f r1, r0, 1.0; st s2, r1");
  accept("vec; mov v0, 1; mov v1, 1.0; mov v2, -7; sel v3, v0, v1, v2; endv");
  accept("vec; ld v0, s0; max.f v0, v0, -inf; mul.f v0, v0, 0.33333334; endv");
  reject("vec; ld v0, s0", "vec without endv");
  reject("endv", "endv without vec");
  reject("vec; vec; endv; endv", "vec inside vec");
  reject("red; endr", "red outside vec");
  reject("vec; red; endv", "endv without vec, or inside red");
  reject("vec; red; endr; red; endr; endv", "at most one red");
  reject("vec; ld r0, s0; endv", "destination is a v register");
  reject("ld v0, s0", "destination is an r register");
  reject("vec; ld v0, s4; endv", "stream number");
  reject("vec; st s0, v0; endv", "before it is written");
  reject("vec; ld v0, s0; add.f v0, v0, r0; endv", "an r register is read before");
  reject("vec; ld v0, s0; endv; vec; st s0, v0; endv", "before it is written");
  reject("vec; ld v0, s0; rsum.f r0, v0; add.f v0, v0, r0; endv", "after endv");
  reject("rsum.f r0, 1.0", "outside vec");
  accept("vec; red; ld v0, s0; rsum.f r0, v0; endr; endv; st s1, r0");
  accept("vec; red; ld v1, s0; sum.f v0, v1; sum.f v2, 1.0; endr; add.f v0, v0, v2; endv");
  reject("vec; ld v0, s0; sum.f v1, v0; endv", "outside red");
  reject("sum.f r0, 1.0", "outside red");
  reject("vec; red; ld v1, s0; sum.f v0, v1; add.f v1, v0, v1; endr; endv", "after endr");
  reject("vec; red; ld v1, s0; sum.f v0, v1; ld v0, s0; endr; endv", "written before endr");
  reject("vec; red; ld v1, s0; sum.f v0, v1; sum.f v0, v1; endr; endv", "same destination");
  reject("vec; red; ld v1, s0; sum.f r0, v1; endr; endv", "is a v register");
  reject("vec; ld v0, s0; rsum.f v1, v0; endv", "r register");
  reject("vec; ld v0, s0; rsum.f r1, v0; rmax.f r1, v0; endv", "same destination");
  reject("vec; ld v16, s0; endv", "destination");
  reject("vec; ld v0, s8; endv", "stream");
  reject("vec; ld v0; endv", "takes 'd, s'");
  reject("vec; ld v0, s0, s1; endv", "after the operands");
  reject("vec; add.i v0, 1.5, 1; endv", "integer operation");
  reject("vec; ld v0, s0; sel v0, v0, 1, 2; endv", "one immediate");
  reject("vec; ad.i v0, 1, 1; endv", "did you mean 'add.i'");
  reject("", "1..64");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_golden), cmocka_unit_test(test_codes_differ),
      cmocka_unit_test(test_decode_exact), cmocka_unit_test(test_text)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
