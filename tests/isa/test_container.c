/* The container: what is written is read back; whatever is cut or flipped is refused; lies behind a
 * right checksum are refused too. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "isa/container.h"
#include "tests/isa/image_util.h"
#include <elf.h>

static void test_read_back(void **state) {
  (void)state;
  StrBuf bytes = {0}, again = {0};
  small_image(&bytes);
  DiagEngine *d = diag_new();
  IsaImage img;
  assert_true(isa_image_read_memory(bytes.data, bytes.len, "mem", &img, d));
  assert_null(machine_difference(&img.machine, machine_default()));
  assert_int_equal(img.ninsns, 13);
  assert_int_equal(img.ndescs, 4);
  assert_int_equal(img.nvprogs, 1);
  assert_int_equal(img.vprogs[0].n, 9);
  assert_int_equal(img.nio, 3);
  assert_string_equal(img.io[1].name, "y");
  assert_int_equal(img.io[1].role, IO_OUTPUT);
  assert_int_equal(img.io[1].dtype, DT_F32);
  assert_int_equal(img.io[1].rank, 2);
  assert_int_equal(img.io[1].shape[1], 64);
  assert_int_equal(img.io[1].addr, 4096);
  assert_int_equal(img.io[2].rank, 0);
  assert_int_equal(img.dram_bytes, 8196);
  assert_int_equal(img.nsegments, 1);
  assert_int_equal(img.segments[0].addr, 512);
  assert_int_equal(img.segments[0].size, 100);
  static const uint8_t head[5] = {0, 1, 2, 3, 255}, tail[8] = {0, 0, 0xc0, 0x3f, 0, 0, 0, 0xc0};
  assert_memory_equal(img.segments[0].data, head, 5);
  assert_memory_equal((const uint8_t *)img.segments[0].data + 92, tail, 8);
  assert_int_equal(img.nsymbols, 3);
  assert_string_equal(img.symbols[2].name, "end of it");
  assert_int_equal(img.symbols[1].insn, 2);
  assert_int_equal(img.nsrcmap, 2);
  assert_string_equal(img.srcmap[0].op, "linear \"q\"");
  assert_int_equal(img.srcmap[1].insn, 5);
  assert_true(img.ideal_macs_s8 == 4096 && img.ideal_dram_bytes == 4096 &&
              img.ideal_macs_bf16 == 7);
  assert_true(img.srcmap[0].macs == 8192 && img.srcmap[1].macs == 0);
  /* segment data is not copied */
  const char *data = img.segments[0].data;
  assert_true(data > bytes.data && data < bytes.data + bytes.len);
  assert_true(isa_image_serialize(&img, &again, d));
  assert_int_equal(again.len, bytes.len);
  assert_memory_equal(again.data, bytes.data, bytes.len);
  isa_image_free(&img);
  strbuf_free(&again);
  strbuf_free(&bytes);
  diag_free(d);
}

static void test_file(void **state) {
  (void)state;
  char path[] = "/tmp/npucc-test-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  StrBuf bytes = {0};
  small_image(&bytes);
  DiagEngine *d = diag_new();
  IsaImage img, back;
  assert_true(isa_image_read_memory(bytes.data, bytes.len, "mem", &img, d));
  assert_true(isa_image_write(&img, path, d));
  assert_true(isa_image_read(path, &back, d));
  assert_int_equal(back.map.size, bytes.len);
  assert_memory_equal(back.map.data, bytes.data, bytes.len);
  isa_image_free(&back);
  assert_false(isa_image_write(&img, "/nonexistent-folder/x.bin", d));
  assert_false(isa_image_read("/nonexistent-folder/x.bin", &back, d));
  assert_int_equal(diag_errors(d), 2);
  isa_image_free(&img);
  unlink(path);
  strbuf_free(&bytes);
  diag_free(d);
}

/* One diagnostic, whose text contains part. */
static void expect_refused(const void *data, size_t size, const char *part) {
  DiagEngine *d = diag_new();
  IsaImage img;
  assert_false(isa_image_read_memory(data, size, "mem", &img, d));
  assert_true(diag_errors(d) >= 1);
  if (part && !strstr(diag_get(d, 0)->message, part))
    fail_msg("'%s' does not say '%s'", diag_get(d, 0)->message, part);
  diag_free(d);
}

static void test_truncation(void **state) {
  (void)state;
  StrBuf bytes = {0};
  small_image(&bytes);
  for (size_t n = 0; n < bytes.len; n++) {
    uint8_t *cut =
        mem_alloc(n + 1); /* its own block, so that a sanitizer sees a read past the end */
    memcpy(cut, bytes.data, n);
    expect_refused(cut, n, NULL);
    mem_free(cut);
  }
  strbuf_putc(&bytes, 'x');
  expect_refused(bytes.data, bytes.len, "damaged");
  strbuf_free(&bytes);
}

static void test_bit_flips(void **state) {
  (void)state;
  StrBuf bytes = {0};
  small_image(&bytes);
  for (size_t bit = 0; bit < bytes.len * 8; bit += 3) {
    bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ 1 << bit % 8);
    expect_refused(bytes.data, bytes.len, NULL);
    bytes.data[bit / 8] = (char)(bytes.data[bit / 8] ^ 1 << bit % 8);
  }
  strbuf_free(&bytes);
}

/* ---- lies with a right checksum ---- */

static uint8_t *section(const StrBuf *b, ContainerSection s, uint64_t *size) {
  uint8_t *p = (uint8_t *)b->data;
  Elf64_Ehdr e;
  Elf64_Shdr h;
  memcpy(&e, p, sizeof e);
  memcpy(&h, p + e.e_shoff + (size_t)(s + 1) * sizeof h,
         sizeof h); /* in the order written, after the null section */
  if (size) *size = h.sh_size;
  return p + h.sh_offset;
}

static void expect_lie(StrBuf *b, const char *part) {
  assert_true(isa_image_seal((uint8_t *)b->data, b->len));
  expect_refused(b->data, b->len, part);
  strbuf_free(b);
  *b = (StrBuf){0};
  small_image(b);
}

static void put64(uint8_t *p, uint64_t v) {
  memcpy(p, &v, 8);
}
static void put32(uint8_t *p, uint32_t v) {
  memcpy(p, &v, 4);
}

/* A binary from before two parameters existed: their lines are comments. */
static void test_old_machine(void **state) {
  (void)state;
  StrBuf b = {0};
  small_image(&b);
  for (int i = 0; i < 2; i++) {
    char *text = (char *)section(&b, SEC_MACHINE, NULL);
    char *line = strstr(text, i ? "\ndma_setup = " : "\nseq_ipc = ");
    assert_non_null(line);
    line[1] = '#';
  }
  expect_lie(&b, "'seq_ipc', 'dma_setup' are missing");
  strbuf_free(&b);
}

static void test_lies(void **state) {
  (void)state;
  StrBuf b = {0};
  small_image(&b);
  uint8_t *text = section(&b, SEC_TEXT, NULL);
  text[10 * 16 + 8] = 0xff; /* jump target */
  expect_lie(&b, "jump target");
  section(&b, SEC_TEXT, NULL)[0] = 0xee;
  expect_lie(&b, "unknown opcode");
  section(&b, SEC_TEXT, NULL)[16 + 8] = 0x55; /* dload index */
  expect_lie(&b, "does not exist");
  section(&b, SEC_TEXT, NULL)[5 * 16 + 7] = 9; /* vx program */
  expect_lie(&b, "vector program 9");
  memset(section(&b, SEC_TEXT, NULL) + 12 * 16, 0, 16);
  section(&b, SEC_TEXT, NULL)[12 * 16] = 0x5b; /* fence instead of halt */
  expect_lie(&b, "run off");
  section(&b, SEC_DESC, NULL)[0] = 7;
  expect_lie(&b, "descriptor kind");
  section(&b, SEC_DESC, NULL)[250] = 1;
  expect_lie(&b, "not zero");
  put32(section(&b, SEC_DESC, NULL) + 256 + 12, 70000); /* k.0 of the plane */
  expect_lie(&b, "mxu_rows");
  put32(section(&b, SEC_VPROG, NULL), 65);
  expect_lie(&b, "vector program");
  section(&b, SEC_VPROG, NULL)[8] = 0x99;
  expect_lie(&b, "micro-operation 0");
  section(&b, SEC_VPROG, NULL)[8] = 0x02; /* endv first */
  expect_lie(&b, "endv");
  put64(section(&b, SEC_IO, NULL) + 16, 8100); /* x: 128 bytes up to 8228 of 8196 */
  expect_lie(&b, "outside");
  put64(section(&b, SEC_IO, NULL) + 88 + 16, 4097);
  expect_lie(&b, "multiple");
  put64(section(&b, SEC_IO, NULL) + 24, (uint64_t)1 << 62);
  expect_lie(&b, "axis");
  put64(section(&b, SEC_IO, NULL) + 24, (uint64_t)-1);
  expect_lie(&b, "axis 0");
  put32(section(&b, SEC_IO, NULL) + 12, 100000); /* name */
  expect_lie(&b, "input or output");
  put32(section(&b, SEC_IO, NULL) + 8, 9); /* rank */
  expect_lie(&b, "input or output");
  put64(section(&b, SEC_SEG, NULL) + 16, 101);
  expect_lie(&b, ".data");
  put64(section(&b, SEC_SEG, NULL) + 8, UINT64_MAX - 50);
  expect_lie(&b, "outside");
  put64(section(&b, SEC_PROGRAM, NULL), (uint64_t)1 << 40);
  expect_lie(&b, "machine 'edge'");
  put64(section(&b, SEC_PROGRAM, NULL) + 8, 0x7ff8000000000000); /* NaN */
  expect_lie(&b, "roofline");
  section(&b, SEC_MACHINE, NULL)[0] = 'x';
  expect_lie(&b, "unknown key");
  put32(section(&b, SEC_SRCMAP, NULL), 99);
  expect_lie(&b, "source map");
  put64(section(&b, SEC_SYMTAB, NULL) + 24 + 8, 8);
  expect_lie(&b, "label");
  put32(section(&b, SEC_NOTE, NULL) + 20, 7);
  expect_lie(&b, "understands version 2");
  strbuf_free(&b);
}

static void test_other_files(void **state) {
  (void)state;
  StrBuf b = {0};
  small_image(&b);
  expect_refused("hello", 5, "not a model binary");
  b.data[18] = 62; /* e_machine: x86-64 */
  expect_refused(b.data, b.len, "not for this machine");
  put32((uint8_t *)b.data + 60, 0xffff); /* e_shnum: more headers than the file has room for */
  b.data[18] = 0x50;
  expect_refused(b.data, b.len, "damaged");
  strbuf_free(&b);
  DiagEngine *d = diag_new(); /* a checksum over changed data */
  small_image(&b);
  section(&b, SEC_DATA, NULL)[3] = 1;
  expect_refused(b.data, b.len, "checksum");
  /* a later minor version is read */
  strbuf_free(&b);
  small_image(&b);
  put32(section(&b, SEC_NOTE, NULL) + 24, 9);
  assert_true(isa_image_seal((uint8_t *)b.data, b.len));
  IsaImage img;
  assert_true(isa_image_read_memory(b.data, b.len, "mem", &img, d));
  isa_image_free(&img);
  strbuf_free(&b);
  diag_free(d);
}

/* The writer holds images to the same rules. */
static void test_writer_checks(void **state) {
  (void)state;
  StrBuf b = {0}, out = {0};
  small_image(&b);
  DiagEngine *d = diag_new();
  IsaImage img;
  assert_true(isa_image_read_memory(b.data, b.len, "mem", &img, d));
  img.dram_bytes = 600;
  assert_false(isa_image_serialize(&img, &out, d));
  assert_non_null(strstr(diag_get(d, 0)->message, "segment 0 'w'"));
  assert_int_equal(out.len, 0);
  isa_image_free(&img);
  strbuf_free(&b);
  diag_free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_read_back),   cmocka_unit_test(test_file),
      cmocka_unit_test(test_truncation),  cmocka_unit_test(test_bit_flips),
      cmocka_unit_test(test_old_machine), cmocka_unit_test(test_lies),
      cmocka_unit_test(test_other_files), cmocka_unit_test(test_writer_checks)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
