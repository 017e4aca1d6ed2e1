/* The pass manager: registry, pipelines as text, options, levels, checks, dumps, reproducers,
 * plugins. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <stdlib.h>
#include <string.h>

#include "ir/ir.h"

static const char graph[] = "func @f(%x: f32[4]) -> (y: f32[4]) level graph {\n"
                            "  %y = add %x, %x : (f32[4], f32[4]) -> f32[4]\n"
                            "  return %y : (f32[4]) -> ()\n"
                            "}\n";

typedef struct {
  DiagEngine *diag;
  IrModule *m;
  PassManager *pm;
  PassRunOptions o;
} Fixture;

/* ---- passes under test: each leaves a trace in a function attribute ---- */

static PassStatus trace(PassContext *pc, IrFunc *f) {
  const IrAttr *before = ir_func_attr(f, "trace");
  char text[256];
  snprintf(text, sizeof text, "%s%s;", before ? before->s : "", pc->pass->name);
  ir_set_func_attr(f, "trace", ir_attr_str(pc->module, text));
  pass_count(pc, "visits", 2);
  pass_count(pc, "visits", 1);
  return PASS_OK;
}

static PassStatus options(PassContext *pc, IrFunc *f) {
  char text[256];
  snprintf(text, sizeof text, "%lld %g %d %s", (long long)pass_option_int(pc, "count"),
           pass_option_float(pc, "budget"), pass_option_bool(pc, "fast"),
           pass_option_str(pc, "file"));
  ir_set_func_attr(f, "trace", ir_attr_str(pc->module, text));
  return PASS_OK;
}

static PassStatus complain(PassContext *pc, IrFunc *f) {
  diag_error(pc->diag, f->loc, "E-test", "no good");
  return PASS_FAILED;
}

static PassStatus silent(PassContext *pc, IrFunc *f) {
  return (void)pc, (void)f, PASS_FAILED;
}

/* The addition of equals has no place among nests. */
static PassStatus down(PassContext *pc, IrFunc *f) {
  IrOp *add = f->body->first;
  ir_replace_all_uses(ir_result(add, 0), ir_operand(add, 0));
  ir_op_erase(add);
  return trace(pc, f);
}

static PassStatus damage(PassContext *pc, IrFunc *f) {
  f->body->first->results[0].type = ir_type_parse(pc->module, "f32[5]");
  return PASS_OK;
}

/* Makes a function of its own, which must not be visited, and erases it when told to. */
static PassStatus outline(PassContext *pc, IrFunc *f) {
  ir_func_erase(ir_func_new(pc->module, "scratch", IR_GRAPH));
  IrFunc *kept = ir_func_new(pc->module, "kept", IR_GRAPH);
  IrBuilder b = ir_builder_at_end(kept->body, SRC_LOC_NONE);
  ir_build(&b, IR_OP_RETURN, 0, NULL, 0, NULL);
  return trace(pc, f);
}

#define PASS_ROW(id, text, l0, l1, opts, fn)                                                       \
  static const Pass id = {NPU_PASS_ABI, sizeof(Pass), text, "help", l0, l1, opts, fn}
static const PassOption option_rows[] = {{"count", "int", "3", "n"},
                                         {"budget", "float", "0.5", "x"},
                                         {"fast", "bool", NULL, "b"},
                                         {"file", "str", "none", "f"},
                                         {0}};
PASS_ROW(pass_a, "first", IR_GRAPH, IR_GRAPH, NULL, trace);
PASS_ROW(pass_b, "second", IR_GRAPH, IR_GRAPH, NULL, trace);
PASS_ROW(pass_down, "down", IR_GRAPH, IR_NEST, NULL, down);
PASS_ROW(pass_nest, "on-nests", IR_NEST, IR_NEST, NULL, trace);
PASS_ROW(pass_options, "options", IR_GRAPH, IR_GRAPH, option_rows, options);
PASS_ROW(pass_complain, "complain", IR_GRAPH, IR_GRAPH, option_rows, complain);
PASS_ROW(pass_silent, "silent", IR_GRAPH, IR_GRAPH, NULL, silent);
PASS_ROW(pass_damage, "damage", IR_GRAPH, IR_GRAPH, NULL, damage);
PASS_ROW(pass_outline, "outline", IR_GRAPH, IR_GRAPH, NULL, outline);
static const Pass *const rows[] = {&pass_a,      &pass_b,       &pass_down,
                                   &pass_nest,   &pass_options, &pass_complain,
                                   &pass_silent, &pass_damage,  &pass_outline};

static int setup(void **state) {
  Fixture *t = mem_alloc(sizeof *t);
  t->diag = diag_new();
  t->m = ir_parse(graph, sizeof graph - 1, "graph.ir", t->diag);
  t->pm = pass_manager_new(t->m, NULL);
  for (size_t i = 0; i < NPU_COUNTOF(rows); i++) assert_true(pass_manager_register(t->pm, rows[i]));
  t->o = (PassRunOptions){.stop_after = -1};
  *state = t;
  return 0;
}

static int teardown(void **state) {
  Fixture *t = *state;
  pass_manager_free(t->pm);
  ir_module_free(t->m);
  diag_free(t->diag);
  mem_free(t);
  return 0;
}

static bool run(Fixture *t, const char *pipeline) {
  return pass_manager_add_pipeline(t->pm, pipeline) && pass_manager_run(t->pm, &t->o);
}

static const char *traced(Fixture *t) {
  const IrAttr *a = ir_func_attr(t->m->funcs[0], "trace");
  return a ? a->s : "";
}

static bool reported(Fixture *t, const char *code, const char *text) {
  for (size_t i = 0; i < diag_count(t->diag); i++) {
    const Diag *d = diag_get(t->diag, i);
    if (!strcmp(d->code ? d->code : "note", code) && strstr(d->message, text)) return true;
  }
  return false;
}

/* ---- pipelines ---- */

static void test_order(void **state) {
  Fixture *t = *state;
  assert_true(run(t, " first , second,first,"
                     "second"));
  assert_string_equal(traced(t), "first;second;first;second;");
  assert_true(run(t, "  ")); /* nothing, and the queue was emptied */
  assert_string_equal(traced(t), "first;second;first;second;");
}

static void test_options(void **state) {
  Fixture *t = *state;
  assert_true(run(t, "options"));
  assert_string_equal(traced(t), "3 0.5 0 none");
  assert_true(run(t, "options{count=-7, file=\"a \\\"b\\\", {c}\", fast ,budget = 1e3}"));
  assert_string_equal(traced(t), "-7 1000 1 a \"b\", {c}");
  assert_true(run(t, "options{file=\"\"}"));
  assert_string_equal(traced(t), "3 0.5 0 ");
  assert_true(pass_manager_add_pipeline(t->pm, "options,first"));
  assert_true(pass_manager_set_option(t->pm, "options", "count", "11"));
  assert_true(pass_manager_run(t->pm, &t->o));
  assert_string_equal(traced(t), "11 0.5 0 nonefirst;");
}

static void test_pipeline_errors(void **state) {
  Fixture *t = *state;
  static const struct {
    const char *text, *code, *message;
    uint32_t col;
  } cases[] = {
      {"first,secnod", "E-pass", "there is no pass `secnod`; did you mean `second`?", 7},
      {"first,xyzzyplugh", "E-pass", "--list-passes", 7},
      {"options{cuont=1}", "E-option", "has no option `cuont`; did you mean `count`?", 9},
      {"options{zzzzzzzz=1}", "E-option", "it has count, budget, fast, file", 9},
      {"first{x=1}", "E-option", "it has none", 7},
      {"options{count=1.5}", "E-option", "must be a whole number, found \"1.5\"", 9},
      {"options{count}", "E-option", "must be a whole number, found \"true\"", 9},
      {"options{fast=maybe}", "E-option", "must be true or false", 9},
      {"options{count=}", "E-pipeline", "expected a value, found `}`", 15},
      {"options{file=\"a}", "E-pipeline", "expected a closing quote, found the end", 17},
      {"options{count=1", "E-pipeline", "expected `,` or `}`, found the end", 16},
      {"first second", "E-pipeline", "expected `,` or `{`, found `s`", 7},
      {"first,,second", "E-pipeline", "expected a pass name, found `,`", 7},
      {"first,", "E-pipeline", "expected a pass name, found the end", 7},
  };
  for (size_t i = 0; i < NPU_COUNTOF(cases); i++) {
    size_t before = diag_count(t->diag);
    assert_false(pass_manager_add_pipeline(t->pm, cases[i].text));
    assert_int_equal(diag_count(t->diag), before + 1);
    const Diag *d = diag_get(t->diag, before);
    assert_string_equal(d->code, cases[i].code);
    assert_non_null(strstr(d->message, cases[i].message));
    assert_int_equal(d->loc.col, cases[i].col);
  }
  assert_true(pass_manager_run(t->pm, &t->o)); /* all or nothing: nothing was queued */
  assert_string_equal(traced(t), "");
  assert_false(pass_manager_set_option(t->pm, "options", "count", "1"));
  assert_true(reported(t, "E-pass", "the pipeline has no pass `options`"));
}

static void test_levels(void **state) {
  Fixture *t = *state;
  assert_true(run(t, "first,down,on-nests"));
  assert_int_equal(t->m->funcs[0]->level, IR_NEST);
  assert_false(run(t, "first"));
  assert_true(
      reported(t, "E-level", "pass `first` works on the graph level, but @f is at the nest level"));
  assert_string_equal(traced(t), "first;down;on-nests;");
}

static void test_functions_made_by_a_pass(void **state) {
  Fixture *t = *state;
  assert_true(run(t, "outline"));
  assert_int_equal(t->m->nfuncs, 2);
  assert_null(ir_func_attr(t->m->funcs[1], "trace"));
  assert_true(run(t, "first")); /* from now on it is one like the others */
  assert_non_null(ir_func_attr(t->m->funcs[1], "trace"));
}

static void test_stop_after(void **state) {
  Fixture *t = *state;
  t->o.stop_after = 2;
  assert_true(run(t, "first,second,first"));
  assert_string_equal(traced(t), "first;second;");
  t->o.stop_after = 0;
  assert_true(run(t, "first"));
  assert_string_equal(traced(t), "first;second;");
}

/* ---- failures ---- */

static void test_failures(void **state) {
  Fixture *t = *state;
  assert_false(run(t, "complain,first"));
  assert_string_equal(traced(t), ""); /* nothing runs after a failure */
  assert_int_equal(diag_errors(t->diag), 1);
  assert_false(run(t, "silent"));
  assert_true(reported(t, "E-internal", "pass `silent` failed on @f without saying why"));
}

static void test_verify_each(void **state) {
  Fixture *t = *state;
  t->o.verify_each = true;
  assert_false(run(t, "first,damage,first"));
  assert_true(reported(t, "E-shape", "result 0 is written as f32[5]"));
  assert_true(reported(t, "note", "pass `damage` reported success and left this"));
  assert_string_equal(traced(t), "first;");
}

/* Without --verify-each a pass is held to what it reports, but for the compiler's own, which are in
 * debug builds alone. */
static void test_verify_others(void **state) {
  Fixture *t = *state;
  assert_false(run(t, "first,damage,first"));
  assert_true(reported(t, "note", "pass `damage` reported success and left this"));
  assert_string_equal(traced(t), "first;");
}
/* What a pass of the compiler's own leaves is an internal error, of another a mistake of its. */
static void test_whose_mistake(void **state) {
  Fixture *t = *state;
  t->o.verify_each = true;
  assert_false(run(t, "damage"));
  assert_false(reported(t, "E-internal", ""));
  pass_manager_trust(t->pm);
  assert_false(run(t, "damage"));
  assert_true(reported(t, "E-internal", "pass `damage`, which is the compiler's own"));
}
static void test_verify_debug(void **state) {
  Fixture *t = *state;
  pass_manager_trust(t->pm);
#ifdef NDEBUG
  assert_true(run(t, "first,damage,first"));
  assert_string_equal(traced(t), "first;first;");
#else
  assert_false(run(t, "first,damage,first"));
  assert_true(reported(t, "E-internal", "pass `damage`, which is the compiler's own"));
  assert_string_equal(traced(t), "first;");
#endif
}

/* The file is IR as it was before the pass, and its first line the pipeline that fails on it again.
 */
static void test_reproducer(void **state) {
  Fixture *t = *state;
  const char *path = SCRATCH "/reproducer.ir", *why;
  remove(path);
  t->o.reproducer = path;
  assert_true(run(t, "first"));
  assert_false(file_exists(path));
  assert_false(run(t, "second,complain{file=\"a 'b'\",count=3}"));
  FileMap f;
  assert_true(file_map(path, &f, &why));
  static const char line[] =
      "// npu-opt --passes='complain{file=\"a '\\''b'\\''\"}' --verify-each\n";
  assert_true(f.size > sizeof line);
  assert_memory_equal(f.data, line, sizeof line - 1);
  IrModule *again = ir_parse((const char *)f.data, f.size, path, t->diag);
  assert_non_null(again);
  assert_string_equal(ir_func_attr(again->funcs[0], "trace")->s, "first;second;");
  ir_module_free(again);
  file_unmap(&f);
  remove(path);
}

/* ---- what is printed ---- */

static char *captured(Fixture *t, const char *pipeline, bool *ok) {
  char *text = NULL;
  size_t size;
  t->o.print_stream = open_memstream(&text, &size);
  *ok = run(t, pipeline);
  fclose(t->o.print_stream);
  return text;
}

static void test_dumps_read_back(void **state) {
  Fixture *t = *state;
  bool ok;
  t->o.print_after = (const char *const[]){"second"};
  t->o.nprint_after = 1;
  char *text = captured(t, "first,second,first", &ok);
  assert_true(ok);
  assert_memory_equal(text, "// after second\n", 16);
  IrModule *again = ir_parse(text, strlen(text), "dump.ir", t->diag);
  assert_non_null(again);
  assert_string_equal(ir_func_attr(again->funcs[0], "trace")->s, "first;second;");
  ir_module_free(again);
  free(text);
  t->o.print_after = (const char *const[]){"secnd"};
  free(captured(t, "first", &ok));
  assert_false(ok);
  assert_true(reported(t, "E-pass", "did you mean `second`?"));
}

static void test_times_and_statistics(void **state) {
  Fixture *t = *state;
  bool ok;
  t->o.stats = t->o.time_passes = true;
  char *text = captured(t, "first,second,first", &ok);
  assert_true(ok);
  assert_non_null(strstr(text, " 6  first: visits\n"));
  assert_non_null(strstr(text, " 3  second: visits\n"));
  assert_non_null(strstr(text, "// total"));
  free(text);
}

/* ---- registration ---- */

static void test_registration(void **state) {
  Fixture *t = *state;
  assert_false(pass_manager_register(t->pm, &pass_a));
  assert_true(reported(t, "E-plugin", "`first` cannot be registered: the name is taken"));
  Pass p = pass_a;
  p.name = "other";
  p.abi++;
  assert_false(pass_manager_register(t->pm, &p));
  p.abi--;
  p.size--;
  assert_false(pass_manager_register(t->pm, &p));
  p.size++;
  p.name = "Other name";
  assert_false(pass_manager_register(t->pm, &p));
  static const PassOption wrong[] = {{"n", "int", "three", ""}, {0}};
  p.name = "other";
  p.options = wrong;
  assert_false(pass_manager_register(t->pm, &p));
  assert_int_equal(pass_manager_count(t->pm), NPU_COUNTOF(rows));
}

static void test_plugin(void **state) {
  Fixture *t = *state;
  assert_true(pass_manager_load_plugin(t->pm, PLUGIN));
  assert_string_equal(pass_manager_at(t->pm, pass_manager_count(t->pm) - 1)->name, "double");
  assert_true(run(t, "double"));
  const IrOp *mul = t->m->funcs[0]->body->last->prev;
  assert_int_equal(mul->kind, IR_OP_MUL);
  assert_true(ir_verify(t->m));
  assert_false(pass_manager_load_plugin(t->pm, PLUGIN)); /* its pass exists already */
}

static void test_plugin_errors(void **state) {
  Fixture *t = *state;
  assert_false(pass_manager_load_plugin(t->pm, "no_such_plugin.so"));
  assert_true(reported(t, "E-plugin", "no_such_plugin.so"));
  assert_false(pass_manager_load_plugin(t->pm, PLUGIN_OLD));
  assert_true(reported(t, "E-plugin", "built for another version of ir/pass.h; rebuild it"));
  assert_false(pass_manager_load_plugin(t->pm, PLUGIN_DATA));
  assert_true(reported(t, "E-plugin", "npu_plugin is not a function"));
  assert_int_equal(pass_manager_count(t->pm), NPU_COUNTOF(rows));
}

int main(void) {
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
  const struct CMUnitTest tests[] = {T(test_order),
                                     T(test_options),
                                     T(test_pipeline_errors),
                                     T(test_levels),
                                     T(test_functions_made_by_a_pass),
                                     T(test_stop_after),
                                     T(test_failures),
                                     T(test_verify_each),
                                     T(test_verify_others),
                                     T(test_whose_mistake),
                                     T(test_verify_debug),
                                     T(test_reproducer),
                                     T(test_dumps_read_back),
                                     T(test_times_and_statistics),
                                     T(test_registration),
                                     T(test_plugin),
                                     T(test_plugin_errors)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
