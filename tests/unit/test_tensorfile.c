/* Tensor files: what the writers write reads back, and files that lie are refused with a reason.
 * The bytes of the lying files are written out here by hand, after the formats' documents. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/tensorfile.h"

/* ---- helpers ---- */

/* Opens bytes that must be refused; the message must contain `what`. */
static void refused(const void *data, size_t size, const char *what) {
  DiagEngine *d = diag_new();
  TensorFile *f = tensor_file_open_memory(data, size, "t", d);
  assert_null(f);
  assert_int_equal(diag_errors(d), 1);
  if (!strstr(diag_get(d, 0)->message, what))
    fail_msg("expected \"%s\" in: %s", what, diag_get(d, 0)->message);
  diag_free(d);
}

static TensorFile *opened(const void *data, size_t size) {
  DiagEngine *d = diag_new();
  TensorFile *f = tensor_file_open_memory(data, size, "t", d);
  if (!f) fail_msg("%s", diag_get(d, 0)->message);
  diag_free(d);
  return f;
}

static const void *elements(TensorFile *f, const TensorEntry *e) {
  DiagEngine *quiet = diag_new();
  const void *data = tensor_file_data(f, e, quiet, SRC_LOC_NONE);
  if (!data) fail_msg("%s", diag_get(quiet, 0)->message);
  diag_free(quiet);
  return data;
}

static StrBuf safetensors(const char *header, size_t payload) {
  StrBuf b = {0};
  size_t n = strlen(header);
  for (int i = 0; i < 8; i++) strbuf_putc(&b, (char)(n >> 8 * i & 255));
  strbuf_puts(&b, header);
  for (size_t i = 0; i < payload; i++) strbuf_putc(&b, (char)i);
  return b;
}

static void safetensors_refused(const char *header, size_t payload, const char *what) {
  StrBuf b = safetensors(header, payload);
  refused(b.data, b.len, what);
  strbuf_free(&b);
}

static StrBuf npy(const char *header, size_t payload) {
  StrBuf b = {0};
  size_t n = strlen(header);
  strbuf_write(&b, "\x93NUMPY\1\0", 8);
  strbuf_putc(&b, (char)(n & 255));
  strbuf_putc(&b, (char)(n >> 8));
  strbuf_puts(&b, header);
  for (size_t i = 0; i < payload; i++) strbuf_putc(&b, (char)i);
  return b;
}

static void npy_refused(const char *header, size_t payload, const char *what) {
  StrBuf b = npy(header, payload);
  refused(b.data, b.len, what);
  strbuf_free(&b);
}

/* ---- safetensors ---- */

static void safetensors_reads(void **state) {
  (void)state;
  StrBuf b = safetensors(
      "{\"__metadata__\":{\"a\":\"b\"},\"x\":{\"dtype\":\"U8\",\"shape\":[2,2],"
      "\"data_offsets\":[2,6]},\"y\":{\"dtype\":\"I16\",\"shape\":[],\"data_offsets\":[0,2]}"
      ",\"z\":{\"dtype\":\"F32\",\"shape\":[0,9],\"data_offsets\":[6,6]}}  ",
      6);
  TensorFile *f = opened(b.data, b.len);
  assert_int_equal(tensor_file_count(f), 3);
  const TensorEntry *x = tensor_file_find(f, "x");
  assert_int_equal(x->rank, 2);
  assert_int_equal(x->bytes, 4);
  assert_int_equal(dtype_get(x->dtype, elements(f, x), 3), 5);
  assert_int_equal(tensor_file_find(f, "y")->rank, 0);
  assert_int_equal(tensor_file_find(f, "z")->bytes, 0);
  assert_null(tensor_file_find(f, "w"));
  tensor_file_close(f);
  strbuf_free(&b);
}

static void safetensors_lies_are_refused(void **state) {
  (void)state;
  safetensors_refused("{\"x\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}", 3,
                      "claims bytes 0 to 4 of a buffer of 3");
  safetensors_refused("{\"x\":{\"dtype\":\"F32\",\"shape\":[4],\"data_offsets\":[0,4]}}", 4,
                      "need 16");
  safetensors_refused("{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,2]}}", 4,
                      "claims bytes");
  safetensors_refused("{\"x\":{\"dtype\":\"U8\",\"shape\":[-2],\"data_offsets\":[0,2]}}", 2,
                      "not a whole number");
  safetensors_refused("{\"x\":{\"dtype\":\"U8\",\"shape\":[1.5],\"data_offsets\":[0,2]}}", 2,
                      "not a whole number");
  safetensors_refused(
      "{\"x\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0,
      "more elements than fit");
  safetensors_refused("{\"x\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
                      "\"y\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}",
                      3, "overlap");
  safetensors_refused("{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}", 2,
                      "belong to no tensor");
  safetensors_refused("{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 2,
                      "belong to no tensor");
  safetensors_refused("{\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                      "\"x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[1,2]}}",
                      2, "twice");
  safetensors_refused("{\"x\":[]}", 0, "not an object");
  safetensors_refused("{\"w\\u0000x\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1,
                      "NUL character");
  safetensors_refused("{\"x\":", 0, "not a JSON object");
  safetensors_refused("{\"x\":{\"dtype\":\"U8\"}}", 0, "shape");
  StrBuf b = safetensors("{}", 0);
  b.data[3] = 1; /* header length beyond the file */
  refused(b.data, b.len, "truncated");
  strbuf_free(&b);
}

static void unknown_types_are_named_when_wanted(void **state) {
  (void)state;
  StrBuf b = safetensors("{\"x\":{\"dtype\":\"F8_E4M3\",\"shape\":[2],\"data_offsets\":[0,2]},"
                         "\"y\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[2,4]}}",
                         4);
  TensorFile *f = opened(b.data, b.len);
  assert_int_equal(tensor_file_count(f), 1);
  assert_null(tensor_file_find(f, "x"));
  assert_non_null(strstr(tensor_file_why_unusable(f, "x"), "F8_E4M3"));
  assert_null(tensor_file_why_unusable(f, "y"));
  tensor_file_close(f);
  strbuf_free(&b);
}

/* ---- npy ---- */

static void npy_reads(void **state) {
  (void)state;
  StrBuf b = npy("{'descr': '<i2', 'fortran_order': False, 'shape': (2, 3), }   \n", 12);
  TensorFile *f = opened(b.data, b.len);
  const TensorEntry *x = tensor_file_find(f, "");
  assert_int_equal(x->rank, 2);
  assert_int_equal(x->shape[1], 3);
  assert_int_equal(dtype_get(x->dtype, elements(f, x), 1), 0x0302);
  tensor_file_close(f);
  strbuf_free(&b);
  b = npy("{'shape': (), 'fortran_order': True, \"descr\": '|b1'}", 1);
  f = opened(b.data, b.len);
  assert_int_equal(tensor_file_at(f, 0)->rank, 0);
  tensor_file_close(f);
  strbuf_free(&b);
}

static void fortran_order_is_transposed(void **state) {
  (void)state;
  StrBuf b = npy("{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3, 2)}", 12);
  TensorFile *f = opened(b.data, b.len);
  const TensorEntry *x = tensor_file_at(f, 0);
  /* Element (i, j, k) is stored at i + 2 j + 6 k. */
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 3; j++)
      for (int k = 0; k < 2; k++)
        assert_int_equal(((const uint8_t *)elements(f, x))[(i * 3 + j) * 2 + k], i + 2 * j + 6 * k);
  tensor_file_close(f);
  strbuf_free(&b);
}

static void npy_lies_are_refused(void **state) {
  (void)state;
  const char *two = "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }";
  npy_refused(two, 7, "truncated");
  npy_refused(two, 9, "more than one array");
  npy_refused("{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8, "big-endian");
  npy_refused("{'descr': '<c8', 'fortran_order': False, 'shape': (1,), }", 8, "'<c8'");
  npy_refused("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8,
              "structured");
  npy_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8, "header");
  npy_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (2 2), }", 16, "header");
  npy_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,)}", 8,
              "header");
  npy_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (4294967296, 4294967296)}", 8,
              "more elements than fit");
  npy_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}", 4,
              "at most 8");
  npy_refused("{'descr': '<f4', 'fortran_order': False}", 4, "header");
  npy_refused("{'descr': '<f4', 'fortran_order': Maybe, 'shape': ()}", 4, "header");
  npy_refused("{'descr': '<f4', 'fortran_order': False, 'shape': (1", 4, "header");
  StrBuf b = npy(two, 8);
  for (size_t n = 0; n < b.len; n++) refused(b.data, n, "");
  b.data[6] = 9;
  refused(b.data, b.len, "version 9");
  strbuf_free(&b);
}

static void other_files_are_refused(void **state) {
  (void)state;
  refused("", 0, "empty");
  refused("hello world, this is text", 25, "no tensor file");
  refused("PK\3\4 and nothing", 16, "directory");
  DiagEngine *d = diag_new();
  assert_null(tensor_file_open("/nonexistent.npz", d, SRC_LOC_NONE));
  assert_string_equal(diag_get(d, 0)->code, "E-file");
  diag_free(d);
}

/* ---- writing ---- */

static void written_files_read_back(void **state) {
  (void)state;
  const float a[6] = {1, 2, 3, 4, 5, -6.5f};
  const uint16_t h[2] = {0x3f80, 0xc000};
  const int64_t i = -7;
  const TensorEntry tensors[] = {
      {"a", DT_F32, 2, {2, 3}, a, sizeof a},
      {"layer \"0\".w", DT_BF16, 1, {2}, h, sizeof h},
      {"s", DT_S64, 0, {0}, &i, sizeof i},
      {"none", DT_U8, 2, {0, 4}, NULL, 0},
  };
  char dir[] = "/tmp/npucc-test-XXXXXX", path[64];
  assert_non_null(mkdtemp(dir));
  DiagEngine *d = diag_new();
  static const char *const names[] = {"t.safetensors", "t.npz", "t.npy"};
  for (size_t k = 0; k < 3; k++) {
    snprintf(path, sizeof path, "%s/%s", dir, names[k]);
    TensorEntry some[4];
    memcpy(some, tensors, sizeof some);
    if (k > 0) some[1].dtype = DT_U8, some[1].shape[0] = 4; /* numpy has no bf16 */
    size_t n = k == 2 ? 1 : 4;
    assert_true(tensor_file_write(path, some, n, d));
    TensorFile *f = tensor_file_open(path, d, SRC_LOC_NONE);
    assert_non_null(f);
    assert_int_equal(tensor_file_count(f), n);
    for (size_t t = 0; t < n; t++) {
      const TensorEntry *e = tensor_file_find(f, k == 2 ? "" : some[t].name);
      assert_non_null(e);
      assert_int_equal(e->dtype, some[t].dtype);
      assert_int_equal(e->rank, some[t].rank);
      assert_memory_equal(e->shape, some[t].shape, sizeof(int64_t) * (size_t)e->rank);
      assert_int_equal(e->bytes, some[t].bytes);
      if (e->bytes) assert_memory_equal(elements(f, e), some[t].data, e->bytes);
    }
    tensor_file_close(f);
    unlink(path);
  }
  assert_int_equal(diag_errors(d), 0);
  snprintf(path, sizeof path, "%s/t.npz", dir);
  assert_false(tensor_file_write(path, tensors, 4, d)); /* bf16 */
  assert_non_null(strstr(diag_get(d, 0)->message, ".safetensors"));
  assert_false(file_exists(path));
  snprintf(path, sizeof path, "%s/t.txt", dir);
  assert_false(tensor_file_write(path, tensors, 1, d));
  snprintf(path, sizeof path, "%s/t.npy", dir);
  assert_false(tensor_file_write(path, tensors, 2, d));
  diag_free(d);
  assert_int_equal(rmdir(dir), 0); /* nothing is left behind */
}

/* ---- npz ---- */

/* Flips every byte of a small archive in turn: each must be read or refused, never crash, and a
 * changed element must be noticed by the checksum. */
static void damaged_archives_are_noticed(void **state) {
  (void)state;
  const uint8_t a[4] = {1, 2, 3, 4};
  const TensorEntry t = {"a", DT_U8, 1, {4}, a, sizeof a};
  char path[] = "/tmp/npucc-test-XXXXXX.npz";
  int fd = mkstemps(path, 4);
  assert_true(fd >= 0);
  close(fd);
  DiagEngine *d = diag_new();
  assert_true(tensor_file_write(path, &t, 1, d));
  FileMap m;
  const char *why;
  assert_true(file_map(path, &m, &why));
  uint8_t *copy = malloc(m.size);
  for (size_t i = 0; i < m.size; i++) {
    memcpy(copy, m.data, m.size);
    copy[i] ^= 0xff;
    TensorFile *f = tensor_file_open_memory(copy, m.size, "t", d);
    const TensorEntry *e = f ? tensor_file_find(f, "a") : NULL;
    const void *data = e ? tensor_file_data(f, e, d, SRC_LOC_NONE) : NULL;
    if (data) assert_memory_equal(data, a, sizeof a);
    tensor_file_close(f);
    f = tensor_file_open_memory(m.data, i, "t", d); /* cut at every length */
    assert_null(f);
  }
  free(copy);
  file_unmap(&m);
  unlink(path);
  diag_free(d);
}

/* A deflated member, made by numpy.savez_compressed(x=numpy.arange(3, dtype='u1')) with
 * Python 3.11. */
static const char deflated_hex[] =
#include "tests/unit/deflated_npz.inc"
    ;

static void deflated_members_are_inflated(void **state) {
  (void)state;
  size_t n = (sizeof deflated_hex - 1) / 2;
  uint8_t *data = malloc(n);
  for (size_t i = 0; i < n; i++) {
    char two[3] = {deflated_hex[2 * i], deflated_hex[2 * i + 1], 0};
    data[i] = (uint8_t)strtoul(two, NULL, 16);
  }
  TensorFile *f = opened(data, n);
  const TensorEntry *e = tensor_file_find(f, "x");
  assert_non_null(e);
  assert_int_equal(e->bytes, 3);
  assert_memory_equal(elements(f, e), "\0\1\2", 3);
  tensor_file_close(f);
  free(data);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(safetensors_reads),
      cmocka_unit_test(safetensors_lies_are_refused),
      cmocka_unit_test(unknown_types_are_named_when_wanted),
      cmocka_unit_test(npy_reads),
      cmocka_unit_test(fortran_order_is_transposed),
      cmocka_unit_test(npy_lies_are_refused),
      cmocka_unit_test(other_files_are_refused),
      cmocka_unit_test(written_files_read_back),
      cmocka_unit_test(damaged_archives_are_noticed),
      cmocka_unit_test(deflated_members_are_inflated),
  };
  return cmocka_run_group_tests_name("tensorfile", tests, NULL, NULL);
}
