/* IR: kernels, layouts, padding, constants and weight files. */
#include "tests/unit/ir_fixture.h"
#include <math.h>

/* ---- kernels ---- */

/* y[r] = sum over c of x[i[r], c] */
static IrOp *gather_sum(Fixture *t, IrValue *i, IrValue *x) {
  const char *names[] = {"r", "c"};
  int64_t extents[] = {3, 5};
  IrMap in[2] = {ir_map_zero(1), ir_map_zero(2)}, out = ir_map_zero(1);
  ir_map_dim(&in[0], 0, 0, 1);
  in[1].axis[0].index = 0;
  ir_map_dim(&in[1], 1, 1, 1);
  ir_map_dim(&out, 0, 0, 1);
  const IrType *type = ir_type_parse(t->m, "f32[3]");
  IrValue *inputs[] = {i, x};
  IrOp *k = ir_kernel_new(&t->b, 2, names, extents, 2, inputs, in, NULL, 1, &type, &out);
  IrBuilder b = ir_builder_at_end(k->region, SRC_LOC_NONE);
  int64_t over = 1;
  IrAttrInit attrs[] = {{"op", ir_attr_str(t->m, "sum")}, {"over", ir_attr_ints(t->m, &over, 1)}};
  IrValue *sum = ir_result(ir_build(&b, IR_OP_REDUCE, 1, &k->region->args[1], 2, attrs), 0);
  ir_build(&b, IR_OP_YIELD, 1, &sum, 0, NULL);
  return k;
}

static void test_kernel(void **state) {
  Fixture *t = *state;
  t->f->level = IR_NEST;
  IrValue *i = arg(t, "i", DT_S32, 1, (int64_t[]){3}),
          *x = arg(t, "x", DT_F32, 2, (int64_t[]){9, 5});
  IrOp *k = gather_sum(t, i, x);
  finish(t, ir_result(k, 0));
  assert_true(ir_verify(t->m));
  IrKernel info;
  ir_kernel_read(k, &info);
  assert_int_equal(info.ndims, 2);
  assert_string_equal(info.name[1], "c");
  assert_int_equal(info.extent[1], 5);
  double pad;
  assert_false(ir_kernel_pad(k, 1, &pad));
  /* x varies over c directly and over r through the index operand */
  assert_int_equal(ir_scalar_dims(k, k->region->args[0]), 1);
  assert_int_equal(ir_scalar_dims(k, k->region->args[1]), 3);
  assert_int_equal(ir_scalar_dims(k, ir_result(k->region->first, 0)), 1);
  IrFunc *copy = ir_func_clone(t->f, "g", NULL, NULL);
  IrOp *kc = copy->body->first;
  assert_ptr_not_equal(kc->region, k->region);
  assert_ptr_equal(ir_operand(kc->region->first, 0), kc->region->args[1]);
  assert_true(ir_verify(t->m));
}

static void test_layout(void **state) {
  Fixture *t = *state;
  IrValue *y = ir_build1(&t->b, IR_OP_RELU, arg(t, "x", DT_F32, 3, (int64_t[]){2, 3, 4}));
  int order[IR_MAX_RANK], wanted[] = {0, 2, 1};
  ir_layout(y, order);
  assert_int_equal(order[2], 2);
  ir_set_layout(y, wanted);
  ir_layout(y, order);
  for (int i = 0; i < 3; i++) assert_int_equal(order[i], wanted[i]);
}

/* ---- padding: PyTorch's and TensorFlow's rules ---- */

static void check_pads(Fixture *t, const IrAttr *pad, int64_t stride, int64_t in, int64_t k,
                       const int64_t want[4]) {
  IrOp *op = ir_op_new(t->m, IR_OP_CONV2D, SRC_LOC_NONE, 0, NULL, 0, NULL);
  int64_t got[4];
  ir_set_attr(op, "pad", pad);
  ir_set_attr(op, "stride", ir_attr_int(t->m, stride));
  assert_true(ir_resolve_pads(op, in, in, k, k, got));
  for (int i = 0; i < 4; i++) assert_int_equal(got[i], want[i]);
}

static void test_pads(void **state) {
  Fixture *t = *state;
  IrModule *m = t->m;
  check_pads(t, ir_attr_int(m, 3), 1, 9, 3, (int64_t[]){3, 3, 3, 3});
  check_pads(t, ir_attr_ints(m, (int64_t[]){1, 2}, 2), 1, 9, 3, (int64_t[]){1, 2, 1, 2});
  check_pads(t, ir_attr_ints(m, (int64_t[]){1, 2, 3, 4}, 4), 1, 9, 3, (int64_t[]){1, 2, 3, 4});
  /* TensorFlow: out = ceil(in / stride), total = (out - 1) * stride + k - in, the odd one after */
  check_pads(t, ir_attr_str(m, "same"), 1, 9, 3, (int64_t[]){1, 1, 1, 1});
  check_pads(t, ir_attr_str(m, "same"), 2, 224, 3, (int64_t[]){0, 0, 1, 1});
  check_pads(t, ir_attr_str(m, "same"), 1, 9, 4, (int64_t[]){1, 1, 2, 2});
  check_pads(t, ir_attr_str(m, "same"), 4, 9, 1, (int64_t[]){0, 0, 0, 0});
}

/* ---- constants ---- */

static IrValue *weight(Fixture *t, const char *init, const char *type, int64_t seed) {
  IrAttrInit attrs[] = {{"init", ir_attr_str(t->m, init)}, {"type", ir_attr_str(t->m, type)},
                        {"seed", ir_attr_int(t->m, seed)}, {"std", ir_attr_float(t->m, 0.5)},
                        {"mean", ir_attr_float(t->m, 2)},  {"lo", ir_attr_float(t->m, -1)},
                        {"hi", ir_attr_float(t->m, 3)}};
  return ir_result(ir_build(&t->b, IR_OP_WEIGHT, 0, NULL, 7, attrs), 0);
}

static void test_initializers(void **state) {
  Fixture *t = *state;
  const IrData *n = ir_constant_data(weight(t, "normal", "f32[1000]", 7));
  const IrData *u = ir_constant_data(weight(t, "uniform", "bf16[1000]", 7));
  assert_ptr_equal(n, ir_constant_data(weight(t, "normal", "f32[1000]", 7)));
  assert_ptr_not_equal(n, ir_constant_data(weight(t, "normal", "f32[1000]", 8)));
  Rng r;
  rng_seed(&r, 7);
  for (int i = 0; i < 1000; i++)
    assert_true(((const float *)n->bytes)[i] == (float)(rng_normal(&r) * 0.5 + 2));
  rng_seed(&r, 7);
  for (int i = 0; i < 1000; i++) {
    float f = (float)(-1 + 4 * rng_uniform(&r));
    assert_int_equal(((const uint16_t *)u->bytes)[i], f32_to_bf16(f));
  }
}

static void test_splats(void **state) {
  Fixture *t = *state;
  double v = -1;
  assert_true(
      ir_constant_splat(weight(t, "ones", "f32[65536,65536]", 0), &v)); /* 16 GiB: not made */
  assert_true(v == 1);
  assert_true(ir_constant_splat(weight(t, "zeros", "f32[3]", 0), &v));
  assert_true(v == 0);
  assert_false(ir_constant_splat(weight(t, "normal", "f32[3]", 0), &v));
  const IrType *type = ir_type_parse(t->m, "bf16[2,2]");
  IrValue *c = ir_build_splat(&t->b, type, 0.1);
  assert_true(ir_constant_splat(c, &v));
  assert_true(
      v == (double)bf16_to_f32(f32_to_bf16(0.1f))); /* what an element is, not what was asked for */
  const uint16_t *bytes = ir_constant_data(c)->bytes;
  for (int i = 0; i < 4; i++) assert_int_equal(bytes[i], f32_to_bf16(0.1f));
  int32_t big[] = {2147483647, 2147483647, 2147483646};
  const IrAttr *data = ir_attr_data(t->m, ir_type_parse(t->m, "s32[3]"), big);
  assert_false(ir_constant_splat(ir_build_constant(&t->b, data), &v));
  data = ir_attr_data(t->m, ir_type_parse(t->m, "s32[2]"), big);
  assert_true(ir_constant_splat(ir_build_constant(&t->b, data), &v));
  assert_true(v == 2147483647.0);
  assert_null(ir_constant_data(vector(t, "x")));
}

/* ---- data of a weight file ------------------------------------------------------------- */

static bool parses(Fixture *t, const char *data, IrModule **out) {
  char text[512];
  snprintf(text, sizeof text,
           "func @f() -> () level graph {\n"
           "  %%w = weight {data = data<%s>} : () -> f32[2]\n"
           "  return\n"
           "}\n",
           data);
  *out = ir_parse(text, strlen(text), SCRATCH "/model.ir", t->diag);
  if (!*out) return false;
  StrBuf printed = {0};
  ir_print(*out, &printed, false);
  assert_string_equal(printed.data, text);
  strbuf_free(&printed);
  return true;
}

/* Opened beside the text, printed as a reference, mapped and not copied; what does not fit is
 * refused. */
static void test_file_data(void **state) {
  Fixture *t = *state;
  float v[] = {1, 2, 3, 4};
  TensorEntry e = {
      .name = "w", .dtype = DT_F32, .rank = 2, .shape = {2, 2}, .data = v, .bytes = sizeof v};
  assert_true(tensor_file_write(SCRATCH "/ir_test.safetensors", &e, 1, t->diag));
  IrModule *m;
  assert_true(parses(t, "f32[2], file(\"ir_test.safetensors\", \"w\")", &m));
  const IrData *d = ir_constant_data(ir_result(m->funcs[0]->body->first, 0));
  const TensorEntry *entry = tensor_file_find(ir_module_file(m, "ir_test.safetensors"), "w");
  TensorFile *file = ir_module_file(m, "ir_test.safetensors");
  assert_ptr_equal(d->bytes, tensor_file_data(file, entry, t->diag, SRC_LOC_NONE));
  ir_module_free(m);
  assert_true(parses(t, "f32[2], file(\"ir_test.safetensors\", \"w\", 8)", &m));
  d = ir_constant_data(ir_result(m->funcs[0]->body->first, 0));
  assert_true(dtype_get(DT_F32, d->bytes, 0) == 3 && dtype_get(DT_F32, d->bytes, 1) == 4);
  ir_module_free(m);
  const char *bad[] = {"f32[2], file(\"ir_test.safetensors\", \"v\")",
                       "s32[2], file(\"ir_test.safetensors\", \"w\")",
                       "f32[5], file(\"ir_test.safetensors\", \"w\")",
                       "f32[2], file(\"ir_test.safetensors\", \"w\", 12)"};
  for (size_t i = 0; i < NPU_COUNTOF(bad); i++) {
    assert_false(parses(t, bad[i], &m));
    assert_int_equal(diag_errors(t->diag), i + 1);
    assert_string_equal(diag_get(t->diag, i)->code, "E-weight");
  }
  remove(SCRATCH "/ir_test.safetensors");
}

int main(void) {
  const struct CMUnitTest tests[] = {T(test_kernel),       T(test_layout), T(test_pads),
                                     T(test_initializers), T(test_splats), T(test_file_data)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
