/* IR: interning, use lists, building, cloning, the verifier. Data: test_ir_data.c. Text and shapes:
 * tests/ir. */
#include "tests/unit/ir_fixture.h"
#include <math.h>

/* Forward and backward walks agree and every slot points back. */
static void check_uses(const IrValue *v, int count) {
  int n = 0;
  for (const IrUse *u = v->uses, *before = NULL; u; before = u, u = u->next, n++) {
    assert_ptr_equal(u->value, v);
    assert_ptr_equal(u->prev, before);
    assert_ptr_equal(&u->op->operands[u->index], u);
  }
  assert_int_equal(n, count);
  assert_int_equal(ir_use_count(v), count);
  assert_int_equal(ir_has_one_use(v), count == 1);
}

/* ---- interning --------------------------------------------------------------------------- */

static void test_types_are_interned(void **state) {
  Fixture *t = *state;
  int64_t a[] = {2, 3}, b[] = {3, 2};
  const IrType *x = ir_type_tensor(t->m, DT_F32, 2, a);
  assert_ptr_equal(x, ir_type_tensor(t->m, DT_F32, 2, a));
  assert_ptr_not_equal(x, ir_type_tensor(t->m, DT_F32, 2, b));
  assert_ptr_not_equal(x, ir_type_tensor(t->m, DT_S32, 2, a));
  assert_ptr_equal(x, ir_type_with_dtype(t->m, ir_type_tensor(t->m, DT_S8, 2, a), DT_F32));
  assert_ptr_not_equal(ir_type_scalar(t->m, DT_F32), ir_type_tensor(t->m, DT_F32, 0, NULL));
  assert_ptr_equal(ir_type_token(t->m, "reg"), ir_type_token(t->m, "reg"));
  assert_int_equal(ir_type_bytes(ir_type_tensor(t->m, DT_BF16, 2, a)), 12);
  assert_int_equal(ir_type_elements(ir_type_scalar(t->m, DT_F32)), 1);
}

static void test_type_text(void **state) {
  Fixture *t = *state;
  const char *good[] = {"f32[1,28,28]", "s8[]", "bf16", "!reg"};
  for (size_t i = 0; i < NPU_COUNTOF(good); i++) {
    StrBuf b = {0};
    const IrType *type = ir_type_parse(t->m, good[i]);
    assert_non_null(type);
    ir_type_print(&b, type);
    assert_string_equal(b.data, good[i]);
    strbuf_free(&b);
  }
  assert_ptr_equal(ir_type_parse(t->m, " f32[ 2 , 3 ] "), ir_type_parse(t->m, "f32[2,3]"));
  const char *bad[] = {"",
                       "f33[1]",
                       "f32[0]",
                       "f32[-1]",
                       "f32[1",
                       "f32[1]]",
                       "f32[1,,2]",
                       "!",
                       "f32[1.0]",
                       "f32[1099511627777]",
                       "f32[1048576,1048577]",
                       "f32[1,1,1,1,1,1,1,1,1]",
                       "f32 x"};
  for (size_t i = 0; i < NPU_COUNTOF(bad); i++) assert_null(ir_type_parse(t->m, bad[i]));
}

static void test_attrs_are_interned(void **state) {
  Fixture *t = *state;
  IrModule *m = t->m;
  assert_ptr_equal(ir_attr_int(m, 3), ir_attr_int(m, 3));
  assert_ptr_not_equal(ir_attr_int(m, 1), ir_attr_bool(m, true));
  assert_ptr_not_equal(ir_attr_int(m, 1), ir_attr_float(m, 1));
  assert_ptr_not_equal(ir_attr_float(m, 0.0), ir_attr_float(m, -0.0));
  assert_ptr_equal(ir_attr_float(m, NAN), ir_attr_float(m, -NAN));
  assert_ptr_equal(ir_attr_str(m, "a"), ir_attr_str(m, "a"));
  int64_t v[40] = {1, 2, 3};
  assert_ptr_equal(ir_attr_ints(m, v, 40), ir_attr_ints(m, v, 40));
  assert_ptr_not_equal(ir_attr_ints(m, v, 3), ir_attr_ints(m, v, 2));
  assert_ptr_not_equal(ir_attr_ints(m, v, 0), ir_attr_str(m, ""));
  IrMap a = ir_map_zero(1), b = ir_map_zero(1);
  ir_map_dim(&a, 0, 2, 3);
  assert_ptr_not_equal(ir_attr_map(m, &a), ir_attr_map(m, &b));
  ir_map_dim(&b, 0, 2, 3);
  b.axis[5].cst = 7; /* beyond the rank: not part of the map */
  assert_ptr_equal(ir_attr_map(m, &a), ir_attr_map(m, &b));
  const IrType *type = ir_type_parse(m, "f32[1]");
  float one = 1;
  assert_ptr_not_equal(ir_attr_data(m, type, &one), ir_attr_data(m, type, &one));
}

/* ---- use lists ----------------------------------------------------------------------------- */

static void test_use_lists(void **state) {
  Fixture *t = *state;
  IrValue *x = vector(t, "x"), *y = vector(t, "y");
  IrOp *add = ir_build2(&t->b, IR_OP_ADD, x, x)->def;
  IrOp *mul = ir_build2(&t->b, IR_OP_MUL, x, y)->def;
  check_uses(x, 3);
  check_uses(y, 1);
  ir_set_operand(add, 1, y);
  check_uses(x, 2);
  check_uses(y, 2);
  ir_replace_all_uses(x, y);
  check_uses(x, 0);
  check_uses(y, 4);
  ir_replace_all_uses(y, y);
  check_uses(y, 4);
  ir_op_erase(mul);
  check_uses(y, 2);
  assert_ptr_equal(t->f->body->last, add);
  assert_true(ir_verify(t->m) == false); /* no return yet */
}

/* Growing and shrinking an operand list moves its slots in memory; the lists must follow. */
static void test_operands_grow_and_shrink(void **state) {
  Fixture *t = *state;
  IrValue *x = vector(t, "x"), *y = vector(t, "y");
  IrOp *op = ir_op_new(t->m, IR_OP_CONCAT, SRC_LOC_NONE, 0, NULL, 0, NULL);
  ir_op_append(t->f->body, op);
  for (int i = 0; i < 37; i++) ir_add_operand(op, i % 3 ? x : y);
  check_uses(x, 24);
  check_uses(y, 13);
  for (int i = 0; i < 20; i++) ir_remove_operand(op, (i * 7) % op->noperands);
  assert_int_equal(op->noperands, 17);
  assert_int_equal(ir_use_count(x) + ir_use_count(y), 17);
  check_uses(x, ir_use_count(x));
  check_uses(y, ir_use_count(y));
  for (int i = 0; i < 17; i++) assert_int_equal(op->operands[i].index, i);
  ir_op_erase(op);
  check_uses(x, 0);
}

static void test_block_order(void **state) {
  Fixture *t = *state;
  IrValue *x = vector(t, "x");
  IrOp *a = ir_build1(&t->b, IR_OP_RELU, x)->def, *c = ir_build1(&t->b, IR_OP_RELU, x)->def;
  IrBuilder before = ir_builder_before(c), after = ir_builder_after(c);
  IrOp *b = ir_build1(&before, IR_OP_NEG, x)->def, *d = ir_build1(&after, IR_OP_ABS, x)->def;
  IrOp *order[] = {a, b, c, d};
  const IrOp *op = t->f->body->first;
  for (int i = 0; i < 4; i++, op = op->next) {
    assert_ptr_equal(op, order[i]);
    assert_ptr_equal(op->prev, i ? order[i - 1] : NULL);
  }
  ir_op_unlink(b);
  ir_op_insert_after(d, b);
  assert_ptr_equal(t->f->body->last, b);
  assert_ptr_equal(a->next, c);
  assert_int_equal(b->noperands, 1); /* unlinking keeps operands */
}

static void test_arguments(void **state) {
  Fixture *t = *state;
  IrValue *x = vector(t, "x"), *y = vector(t, "y"), *z = vector(t, NULL);
  assert_int_equal(z->index, 2);
  (void)y;
  ir_block_remove_arg(t->f->body, 1);
  assert_int_equal(t->f->body->nargs, 2);
  assert_ptr_equal(t->f->body->args[1], z);
  assert_int_equal(z->index, 1);
  assert_int_equal(x->index, 0);
}

/* ---- building ------------------------------------------------------------------------------ */

static void test_defaults_are_filled(void **state) {
  Fixture *t = *state;
  IrValue *x = arg(t, "x", DT_F32, 4, (int64_t[]){1, 2, 8, 8});
  IrAttrInit kernel = {"kernel", ir_attr_int(t->m, 2)};
  IrOp *pool = ir_build(&t->b, IR_OP_MAX_POOL, 1, &x, 1, &kernel);
  assert_ptr_equal(ir_attr(pool, "stride"), kernel.value); /* stride:ints=kernel */
  assert_int_equal(ir_get_int(pool, "pad", -1), 0);
  assert_int_equal(ir_get_int(pool, "dilation", -1), 1);
  IrOp *sum = ir_build(&t->b, IR_OP_SUM, 1, &x, 0, NULL);
  assert_string_equal(ir_get_str(sum, "axis", ""), "all");
  assert_false(ir_get_bool(sum, "keep", true));
  IrAttrInit bounds[] = {{"lo", ir_attr_int(t->m, 0)}, {"hi", ir_attr_int(t->m, 6)}};
  IrOp *clip = ir_build(&t->b, IR_OP_CLIP, 1, &x, 2, bounds);
  assert_int_equal(ir_attr(clip, "lo")->kind, IR_ATTR_FLOAT); /* declared float, given as int */
  IrOp *gelu = ir_build(&t->b, IR_OP_GELU, 1, &x, 0, NULL);
  assert_null(ir_attr(gelu, "approximate")); /* default none: absent */
}

static void test_build_reports_and_leaves_nothing(void **state) {
  Fixture *t = *state;
  IrValue *x = vector(t, "x"), *y = arg(t, "y", DT_F32, 1, (int64_t[]){3});
  t->b.loc = (SrcLoc){"net.mdl", 7, 3, 7, 9};
  assert_null(ir_build2(&t->b, IR_OP_ADD, x, y));
  assert_int_equal(diag_errors(t->diag), 1);
  const Diag *d = diag_get(t->diag, 0);
  assert_string_equal(d->code, "E-shape");
  assert_int_equal(d->loc.line, 7);
  assert_non_null(strstr(d->message, "f32[4] and f32[3]"));
  check_uses(x, 0);
  assert_null(t->f->body->first);
}

static void test_attr_access(void **state) {
  Fixture *t = *state;
  IrOp *op = ir_op_new(t->m, IR_OP_INSN, SRC_LOC_NONE, 0, NULL, 0, NULL);
  const char *names[] = {"m", "a", "z", "k", "b"};
  for (int i = 0; i < 5; i++) ir_set_attr(op, names[i], ir_attr_int(t->m, i));
  for (int i = 1; i < op->nattrs; i++)
    assert_true(strcmp(op->attrs[i - 1].name, op->attrs[i].name) < 0);
  ir_set_attr(op, "k", ir_attr_int(t->m, 9));
  assert_int_equal(op->nattrs, 5);
  assert_int_equal(ir_get_int(op, "k", 0), 9);
  ir_set_attr(op, "a", NULL);
  ir_set_attr(op, "nothing", NULL);
  assert_int_equal(op->nattrs, 4);
  assert_null(ir_attr(op, "a"));
  int64_t v[3], out[2] = {0};
  for (int i = 0; i < 3; i++) v[i] = i + 5;
  ir_set_attr(op, "list", ir_attr_ints(t->m, v, 3));
  assert_int_equal(ir_get_ints(op, "list", out, 2), 2); /* never more than there is room for */
  assert_int_equal(out[1], 6);
  assert_int_equal(ir_get_ints(op, "k", out, 2), 1);
  assert_int_equal(ir_get_ints(op, "absent", out, 2), 0);
  assert_true(ir_get_float(op, "k", 0) == 9.0); /* accepts an int */
}

static void test_signatures(void **state) {
  (void)state;
  const IrParam *p;
  int n = ir_op_params(IR_OP_CONV2D, &p);
  assert_int_equal(n, 9);
  assert_string_equal(p[2].name, "bias");
  assert_true(p[2].is_operand && p[2].optional);
  assert_string_equal(p[4].name, "pad");
  assert_string_equal(p[4].type, "pads");
  assert_string_equal(p[7].dflt, "0.0");
  n = ir_op_params(IR_OP_CONCAT, &p);
  assert_int_equal(n, 2);
  assert_true(p[0].variadic);
  assert_string_equal(p[0].name, "x");
  assert_int_equal(ir_op_params(IR_OP_WEIGHT, &p), 9);
  assert_null(p[8].dflt == NULL ? "" : NULL);
  IrOpKind kind;
  for (int k = 0; k < IR_OP_COUNT; k++) {
    assert_true(ir_op_by_name(ir_op_info((IrOpKind)k)->name, &kind));
    assert_int_equal(kind, k);
  }
  assert_false(ir_op_by_name("no_such_op", &kind));
}

/* ---- cloning --------------------------------------------------------------------------------- */

static void count_copies(void *user, const IrValue *old, IrValue *copy) {
  assert_ptr_not_equal(old, copy);
  assert_ptr_equal(old->type, copy->type);
  ++*(int *)user;
}

static void test_clone_function(void **state) {
  Fixture *t = *state;
  IrValue *x = vector(t, "x");
  IrValue *y = ir_build1(&t->b, IR_OP_RELU, ir_build2(&t->b, IR_OP_ADD, x, x));
  y->name = ir_str(t->m, "y");
  ir_set_func_attr(t->f, "note", ir_attr_int(t->m, 1));
  finish(t, y);
  int copies = 0;
  IrFunc *g = ir_func_clone(t->f, "f", count_copies, &copies);
  assert_int_equal(copies, 3);
  StrBuf text = {0};
  ir_func_erase(t->f);
  ir_print(t->m, &text, false);
  assert_string_equal(text.data,
                      "func @f(%x: f32[4]) -> (y: f32[4]) level graph attributes {note = 1} {\n"
                      "  %0 = add %x, %x : (f32[4], f32[4]) -> f32[4]\n"
                      "  %y = relu %0 : (f32[4]) -> f32[4]\n"
                      "  return %y : (f32[4]) -> ()\n"
                      "}\n");
  strbuf_free(&text);
  check_uses(x, 2); /* the original is untouched */
  check_uses(g->body->args[0], 2);
  assert_true(ir_verify(t->m));
}

/* Constants of more elements than asked for print without them, the others with. */
static void test_elide(void **state) {
  Fixture *t = *state;
  const float values[5] = {1, 2, 3, 4, 5};
  IrValue *five = ir_build_constant(
      &t->b, ir_attr_data(t->m, ir_type_tensor(t->m, DT_F32, 1, (int64_t[]){5}), values));
  ir_build_constant(&t->b,
                    ir_attr_data(t->m, ir_type_tensor(t->m, DT_F32, 1, (int64_t[]){4}), values));
  finish(t, five);
  StrBuf text = {0};
  ir_print_with(t->m, &text, &(IrPrintOptions){.elide_data = 4});
  assert_non_null(strstr(text.data, "data<f32[5], elided>"));
  assert_non_null(strstr(text.data, "data<f32[4], [1.0, 2.0, 3.0, 4.0]>"));
  strbuf_free(&text);
}

static IrValue *to_user(void *user, IrValue *old) {
  return old->name ? user : NULL;
}

/* Operands from outside go through the map, those of the region to their copies. */
static void test_clone_op(void **state) {
  Fixture *t = *state;
  IrValue *x = vector(t, "x"), *y = vector(t, "y"), *z = vector(t, NULL);
  IrOp *add = ir_build2(&t->b, IR_OP_ADD, x, z)->def;
  add->results[0].name = ir_str(t->m, "sum");
  IrOp *copy = ir_op_clone(t->m, add, to_user, y);
  assert_null(copy->parent);
  assert_ptr_equal(ir_operand(copy, 0), y);
  assert_ptr_equal(ir_operand(copy, 1), z); /* the map said nothing: as it was */
  assert_string_equal(copy->results[0].name, "sum");
  check_uses(z, 2);
  ir_op_erase(copy);
  check_uses(z, 1);
  check_uses(y, 0);
}

/* ---- verifier: what text cannot say ---- */

static bool reported(Fixture *t, const char *code, const char *text) {
  for (size_t i = 0; i < diag_count(t->diag); i++)
    if (diag_get(t->diag, i)->code && !strcmp(diag_get(t->diag, i)->code, code) &&
        strstr(diag_get(t->diag, i)->message, text))
      return true;
  return false;
}

static void test_verify_dominance(void **state) {
  Fixture *t = *state;
  IrValue *x = vector(t, "x"), *y = ir_build1(&t->b, IR_OP_RELU, x),
          *z = ir_build1(&t->b, IR_OP_NEG, y);
  finish(t, z);
  assert_true(ir_verify(t->m));
  ir_op_unlink(y->def);
  ir_op_insert_after(z->def, y->def);
  assert_false(ir_verify(t->m));
  assert_true(reported(t, "E-scope", "defined after its use"));
}

static void test_verify_stray_use(void **state) {
  Fixture *t = *state;
  IrValue *x = vector(t, "x"), *y = ir_build1(&t->b, IR_OP_RELU, x);
  IrOp *lost = ir_build1(&t->b, IR_OP_NEG, y)->def;
  finish(t, y);
  ir_op_unlink(lost); /* but not erased: still holds y */
  assert_false(ir_verify(t->m));
  assert_true(reported(t, "E-uses", "outside the function"));
}

static void test_verify_broken_list(void **state) {
  Fixture *t = *state;
  IrValue *x = vector(t, "x"), *y = ir_build1(&t->b, IR_OP_RELU, x);
  finish(t, y);
  t->f->body->last->operands[0].value = x; /* behind the use list's back */
  assert_false(ir_verify(t->m));
  assert_true(reported(t, "E-uses", "use list"));
}

static void test_dot(void **state) {
  Fixture *t = *state;
  finish(t, ir_build1(&t->b, IR_OP_RELU, vector(t, "a\"b")));
  StrBuf b = {0};
  ir_print_dot(t->m, &b);
  assert_non_null(strstr(b.data, "label=\"a\\\"b\\nf32[4]\""));
  assert_non_null(strstr(b.data, "n1 -> n2;"));
  assert_non_null(strstr(b.data, "n2 -> n3;"));
  strbuf_free(&b);
}

int main(void) {
  const struct CMUnitTest tests[] = {T(test_types_are_interned),
                                     T(test_type_text),
                                     T(test_attrs_are_interned),
                                     T(test_use_lists),
                                     T(test_operands_grow_and_shrink),
                                     T(test_block_order),
                                     T(test_arguments),
                                     T(test_defaults_are_filled),
                                     T(test_build_reports_and_leaves_nothing),
                                     T(test_attr_access),
                                     T(test_signatures),
                                     T(test_clone_function),
                                     T(test_elide),
                                     T(test_clone_op),
                                     T(test_verify_dominance),
                                     T(test_verify_stray_use),
                                     T(test_verify_broken_list),
                                     T(test_dot)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
