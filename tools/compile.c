/* libnpucc: reading, the pipeline level by level, emission. */
#include "tools/compile.h"

#include <string.h>

#include "backend/npu/npu.h"
#include "passes/passes.h"
#include "tools/calibration.h"
#include "tools/hostrun.h"
#include "tools/tensorspec.h"

typedef struct {
  char *text;
  bool standard; /* of a level's pipeline: left out when the input is past its level */
} PipelineItem;

struct Npucc {
  NpuccOptions options;
  MachineDesc machine;
  DiagEngine *diag;
  IrModule *module;
  IrModule *empty; /* stands in until a model is read, so that passes can be listed */
  PassManager *pm;
  HostRunner host;
  bool broken; /* the pipeline's text is wrong: reported */
  PipelineItem *items;
  int nitems, next;
};

void npucc_options_init(NpuccOptions *o) {
  *o = (NpuccOptions){.opt_level = 2, .quantize = true, .run = {.stop_after = -1}};
}

static bool register_passes(Npucc *c) {
  for (const Pass *const *p = builtin_passes; *p; p++)
    if (!pass_manager_register(c->pm, *p)) return false;
  pass_manager_trust(c->pm);
  for (size_t i = 0; i < c->options.nplugins; i++)
    if (!pass_manager_load_plugin(c->pm, c->options.plugins[i])) return false;
  return true;
}

/* The pass manager of module m, with every pass registered and the host attached. */
static bool attach(Npucc *c, IrModule *m) {
  pass_manager_free(c->pm);
  c->pm = pass_manager_new(m, &c->machine);
  c->host = (HostRunner){.module = m, .machine = &c->machine, .diag = c->diag};
  pass_manager_set_host(c->pm, &c->host, hostrun_evaluate, hostrun_observe);
  return register_passes(c);
}

/* The item at the start of text, "a{x=1,y=2}", which ends at a comma outside braces. */
static size_t item_length(const char *text) {
  size_t len = 0;
  for (int depth = 0; text[len] && (depth > 0 || text[len] != ','); len++)
    depth += text[len] == '{' ? 1 : text[len] == '}' && depth > 0 ? -1 : 0;
  return len;
}

static void add_items(Npucc *c, const char *text, bool standard);

/* default, default{O=1,quantize=false}: the pipeline of a level, in place. False after a
 * diagnostic. */
static bool add_default(Npucc *c, const char *options, size_t len) {
  int level = c->options.opt_level;
  bool quantize = c->options.quantize, ok = true;
  char text[64];
  snprintf(text, sizeof text, "%.*s", len > 2 ? (int)len - 2 : 0, len ? options + 1 : "");
  for (char *at = text; ok && *at;) {
    size_t n = strcspn(at, ",");
    char *next = at + n + (at[n] != 0);
    at[n] = 0;
    if (strncmp(at, "O=", 2) == 0 && at[2] >= '0' && at[2] <= '2' && !at[3])
      level = at[2] - '0';
    else if (strcmp(at, "quantize=true") == 0 || strcmp(at, "quantize=false") == 0)
      quantize = at[9] == 't';
    else
      ok = false;
    at = next;
  }
  if (ok)
    add_items(c, pipeline_for_level(level, quantize), true);
  else
    diag_error(c->diag, SRC_LOC_NONE, "E-pipeline",
               "`default%.*s`: its options are O=0, 1 or 2 and quantize=true or false", (int)len,
               options);
  return ok;
}

static void add_items(Npucc *c, const char *text, bool standard) {
  for (bool more = *text != 0; more;) {
    text += strspn(text, " ");
    size_t len = item_length(text), name = strcspn(text, "{,");
    if (name == 7 && memcmp(text, "default", 7) == 0 && !standard) {
      c->broken |= !add_default(c, text + name, len - name);
    } else {
      char *copy = mem_alloc(len + 1);
      memcpy(copy, text, len);
      c->items = mem_realloc(c->items, (size_t)(c->nitems + 1) * sizeof *c->items);
      c->items[c->nitems++] = (PipelineItem){copy, standard};
    }
    more = text[len] == ',';
    text += len + more;
  }
}

void npucc_print_pipeline(const Npucc *c, StrBuf *out) {
  for (int i = 0; i < c->nitems; i++) strbuf_printf(out, "%s%s", i ? "," : "", c->items[i].text);
  strbuf_putc(out, '\n');
}

/* The pass an item of the pipeline names; NULL when there is none (the manager will say so). */
static const Pass *item_pass(const Npucc *c, const char *item) {
  size_t len = strcspn(item, "{ ");
  for (size_t i = 0; i < pass_manager_count(c->pm); i++) {
    const Pass *p = pass_manager_at(c->pm, i);
    if (strlen(p->name) == len && memcmp(p->name, item, len) == 0) return p;
  }
  return NULL;
}

bool npucc_rounds(const Pass *p) {
  return p && strcmp(p->name, "quantize") == 0;
}

/* A calibration file must be there even when the model turns out to have nothing to calibrate. */
static bool check_calibration_file(const Npucc *c) {
  if (strcmp(c->options.calibrate, "random") == 0) return true;
  const char *text = c->options.calibrate;
  size_t name = tensor_spec_name(text);
  Arena *a = arena_new();
  TensorSpec spec = tensor_spec_parse(a, name ? text + name + 1 : text);
  TensorFile *f = tensor_file_open(spec.path, c->diag, SRC_LOC_NONE);
  tensor_file_close(f);
  arena_free(a);
  return f != NULL;
}

static bool check_options(const Npucc *c) {
  if (!c->options.calibrate) return true;
  for (int i = 0; i < c->nitems; i++)
    if (npucc_rounds(item_pass(c, c->items[i].text))) return check_calibration_file(c);
  diag_error(c->diag, SRC_LOC_NONE, "E-option",
             "there is nothing to calibrate: the pipeline has no pass 'quantize'; leave out "
             "--no-quantize, or add the pass");
  return false;
}

Npucc *npucc_new(const NpuccOptions *o, DiagEngine *diag) {
  Npucc *c = mem_alloc(sizeof *c);
  c->options = *o;
  c->machine = o->machine ? *o->machine : *machine_default();
  c->diag = diag;
  c->empty = ir_module_new(diag);
  add_items(c, o->pipeline ? o->pipeline : "default", false);
  if (!c->broken && attach(c, c->empty) && check_options(c)) return c;
  npucc_free(c);
  return NULL;
}

void npucc_free(Npucc *c) {
  if (!c) return;
  pass_manager_free(c->pm);
  ir_module_free(c->module);
  ir_module_free(c->empty);
  for (int i = 0; i < c->nitems; i++) mem_free(c->items[i].text);
  mem_free(c->items);
  mem_free(c);
}

static bool take_module(Npucc *c, IrModule *m, const char *path) {
  if (!m) return false;
  if (m->nfuncs == 0)
    diag_error(c->diag, SRC_LOC_NONE, "E-empty", "'%s' holds no function; there is nothing to do",
               path);
  bool ok = m->nfuncs > 0;
  if (ok && c->options.calibrate && m->funcs[0]->level > IR_GRAPH) {
    diag_error(
        c->diag, SRC_LOC_NONE, "E-calibrate",
        "there is nothing to calibrate: '%s' is past the graph level, where types are chosen",
        path);
    ok = false;
  }
  if (!ok || !attach(c, m)) {
    ir_module_free(m);
    return false;
  }
  ir_module_free(c->module);
  c->module = m;
  c->next = 0;
  return true;
}

bool npucc_read_ir(Npucc *c, const char *text, size_t len, const char *label) {
  IrModule *m = ir_parse(text, len, label, c->diag);
  if (m && !ir_verify(m)) {
    ir_module_free(m);
    return false;
  }
  return take_module(c, m, label);
}

/* The function that is compiled: the only one, or the one of that name. */
static bool choose_function(Npucc *c, const char *path) {
  IrModule *m = c->module;
  const char *name = c->options.mdl.model;
  StrBuf all = {0};
  for (int i = 0; i < m->nfuncs; i++) {
    if (name ? !strcmp(m->funcs[i]->name, name) : m->nfuncs == 1) {
      m->funcs[0] = m->funcs[i];
      m->nfuncs = 1;
      strbuf_free(&all);
      return true;
    }
    strbuf_printf(&all, "%s@%s", i ? ", " : "", m->funcs[i]->name);
  }
  if (name)
    diag_error(c->diag, SRC_LOC_NONE, "E-model", "'%s' holds no function @%s; it holds %s", path,
               name, all.data);
  else
    diag_error(c->diag, SRC_LOC_NONE, "E-model",
               "'%s' holds %d functions: %s; choose the one to compile with --model NAME", path,
               m->nfuncs, all.data);
  strbuf_free(&all);
  return false;
}

bool npucc_read(Npucc *c, const char *path) {
  const MdlOptions *mdl = &c->options.mdl;
  if (!str_ends_with(path, ".ir")) return take_module(c, mdl_read(path, mdl, c->diag), path);
  if (mdl->ndefines || mdl->nsettings || mdl->nweight_files) {
    diag_error(c->diag, SRC_LOC_NONE, "E-option",
               "'%s' is IR text: -D and --weights are for .mdl models", path);
    return false;
  }
  FileMap map;
  const char *why;
  if (!diag_map_file(c->diag, path, &map, &why)) {
    diag_error(c->diag, SRC_LOC_NONE, "E-file", "cannot read '%s': %s", path, why);
    return false;
  }
  bool ok = npucc_read_ir(c, (const char *)map.data, map.size, path) && choose_function(c, path);
  file_unmap(&map);
  return ok;
}

/* ---- passes ---- */

/* Items to run: all, or as many as --stop-after says. */
static int items_end(const Npucc *c) {
  int n = c->options.run.stop_after;
  return n < 0 || n > c->nitems ? c->nitems : n;
}

static bool run_some(Npucc *c, IrLevel until) {
  StrBuf text = {0};
  PassRunOptions run = c->options.run;
  bool calibrate = false;
  for (int end = items_end(c); c->next < end; c->next++) {
    const Pass *p = item_pass(c, c->items[c->next].text);
    if (p && p->to > until) break;
    /* Text may enter at a later level; the standard pipeline then starts there. */
    if (p && c->items[c->next].standard && p->from < c->module->funcs[0]->level) continue;
    calibrate |= c->options.calibrate && npucc_rounds(p);
    strbuf_printf(&text, "%s%s", text.len ? "," : "", c->items[c->next].text);
  }
  run.stop_after = -1; /* counted here, across calls */
  bool ok = true;
  if (text.len) {
    ok = pass_manager_add_pipeline(c->pm, text.data) &&
         (!calibrate ||
          pass_manager_set_option(c->pm, "quantize", "calibrate", c->options.calibrate)) &&
         pass_manager_run(c->pm, &run);
  }
  strbuf_free(&text);
  return ok;
}

/* Does a pass still to run calibrate? */
static bool will_calibrate(const Npucc *c) {
  if (!c->options.calibrate || c->module->funcs[0]->level != IR_GRAPH) return false;
  for (int i = c->next; i < items_end(c); i++)
    if (npucc_rounds(item_pass(c, c->items[i].text))) return true;
  return false;
}

/* A pipeline that makes nests out of the model and leaves its types as they are. */
static bool keeps_types(const Npucc *c) {
  bool lowers = false;
  for (int i = 0; i < c->nitems; i++) {
    const Pass *p = item_pass(c, c->items[i].text);
    if (npucc_rounds(p)) return false;
    lowers |= p && p->from == IR_GRAPH && p->to > IR_GRAPH;
  }
  return lowers;
}

static bool is_f32(const IrValue *v) {
  return v->type->dtype == DT_F32;
}

/* Says which hints about the types of products nothing will look at: one a line. */
static void warn_of_hints(const Npucc *c) {
  uint32_t line = 0;
  if (!keeps_types(c)) return;
  for (const IrOp *op = c->module->funcs[0]->body->first; op; op = op->next) {
    const char *asked = ir_get_bool(op, "hint.int8", false)   ? "int8"
                        : ir_get_bool(op, "hint.bf16", false) ? "bf16"
                                                              : NULL;
    if (!asked || !ir_has_trait(op, IR_PRODUCT) || (line && op->loc.line == line)) continue;
    if (!is_f32(ir_operand(op, 0)) || !is_f32(ir_operand(op, 1))) continue; /* done before */
    line = op->loc.line;
    diag_warning(c->diag, op->loc, "W-hint",
                 "`@%s` has no effect: the pass `quantize`, which would see to it, is not among "
                 "the passes%s",
                 asked, c->options.quantize ? "" : " (--no-quantize)");
  }
}

bool npucc_run_passes(Npucc *c, IrLevel until) {
  if (c->next == 0) warn_of_hints(c);
  if (!will_calibrate(c)) return run_some(c, until);
  FloatResults *before = float_results(&c->host, c->module->funcs[0], c->options.calibrate);
  bool ok = before && run_some(c, IR_GRAPH) &&
            float_results_compare(before, &c->host, c->module->funcs[0]);
  float_results_free(before);
  return ok && (until == IR_GRAPH || run_some(c, until));
}

void npucc_after_each(Npucc *c, bool (*after)(void *user, const Pass *pass), void *user) {
  c->options.run.after = after;
  c->options.run.user = user;
}

const char *npucc_next_pass(const Npucc *c) {
  return c->next < items_end(c) ? c->items[c->next].text : NULL;
}

/* ---- results ---- */

static void map_sources(IsaImage *img, const PathMaps *paths) {
  for (uint32_t i = 0; paths->n && i < img->nsrcmap; i++) {
    StrBuf b = {0};
    strbuf_mapped_path(&b, paths, img->srcmap[i].file);
    img->srcmap[i].file = b.len ? arena_strdup(img->arena, b.data) : "";
    strbuf_free(&b);
  }
}

bool npucc_emit_image(Npucc *c, IsaImage *out) {
  const IrFunc *f = c->module->funcs[0];
  memset(out, 0, sizeof *out);
  if (f->level != IR_PROGRAM) {
    diag_error(c->diag, SRC_LOC_NONE, "E-pipeline",
               "the pipeline ended before the program level, so there is nothing to encode; let it "
               "run to its last pass");
    return false;
  }
  if (!ir_verify(c->module)) {
    /* Passes of plugins are verified when they run: one of the compiler's own left it so. */
    diag_error(c->diag, SRC_LOC_NONE, "E-internal",
               "the program is not encoded; report it, with the pass that --verify-each names");
    return false;
  }
  if (!npu_emit(f, &c->machine, out, c->diag)) return false;
  map_sources(out, &c->options.paths);
  return true;
}

IrModule *npucc_module(Npucc *c) {
  return c->module;
}

PassManager *npucc_passes(Npucc *c) {
  return c->pm;
}

HostProgram *npucc_host(Npucc *c) {
  return hostrun_compile(&c->host, c->module->funcs[0]);
}
