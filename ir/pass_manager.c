/* The pass manager's registry: built-in rows, plugins, options. */
#include "ir/pm.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>

PassManager *pass_manager_new(IrModule *m, const struct MachineDesc *machine) {
  PassManager *pm = mem_alloc(sizeof *pm);
  pm->module = m;
  pm->machine = machine;
  pm->arena = arena_new();
  pm->scratch = arena_new();
  return pm;
}

void pass_manager_free(PassManager *pm) {
  if (!pm) return;
  for (size_t i = 0; i < pm->nplugins; i++) dlclose(pm->plugins[i]);
  mem_free(pm->plugins);
  mem_free(pm->passes);
  mem_free(pm->queue);
  mem_free(pm->stats);
  mem_free(pm->times);
  arena_free(pm->scratch);
  arena_free(pm->arena);
  mem_free(pm);
}

size_t pass_manager_count(const PassManager *pm) {
  return pm->npasses;
}

const Pass *pass_manager_at(const PassManager *pm, size_t i) {
  return pm->passes[i];
}

void pass_manager_set_host(PassManager *pm, void *host,
                           bool (*evaluate)(void *, IrFunc *, const IrAttr **),
                           bool (*observe)(void *, IrFunc *, const char *, int, IrValue *const *,
                                           float *, float *)) {
  pm->host = host;
  pm->evaluate = evaluate;
  pm->observe = observe;
}

const Pass *pm_find(const PassManager *pm, const char *name) {
  for (size_t i = 0; i < pm->npasses; i++)
    if (!strcmp(pm->passes[i]->name, name)) return pm->passes[i];
  return NULL;
}

int pass_option_count(const Pass *pass) {
  int n = 0;
  while (pass->options && pass->options[n].name) n++;
  return n;
}

/* ---- option values ---- */

/* NULL when text is a value of the option's type, else what it must be. */
static const char *option_problem(const PassOption *o, const char *text) {
  int64_t i;
  double f;
  if (!strcmp(o->type, "int"))
    return parse_i64(text, &i)            ? NULL
           : number_too_large(text, true) ? "a whole number of 64 bits"
                                          : "a whole number";
  if (!strcmp(o->type, "float")) return parse_f64(text, &f) ? NULL : "a number";
  if (!strcmp(o->type, "bool"))
    return !strcmp(text, "true") || !strcmp(text, "false") ? NULL : "true or false";
  return strcmp(o->type, "str") ? "of type int, float, bool or str" : NULL;
}

const char *pm_option_default(const PassOption *o) {
  if (o->dflt) return o->dflt;
  return !strcmp(o->type, "bool") ? "false" : !strcmp(o->type, "str") ? "" : "0";
}

static const char *option_value(const PassContext *pc, const char *name) {
  for (int i = 0; i < pass_option_count(pc->pass); i++)
    if (!strcmp(pc->pass->options[i].name, name)) return pc->option_values[i];
  return "";
}

bool pass_option_bool(const PassContext *pc, const char *name) {
  return !strcmp(option_value(pc, name), "true");
}

int64_t pass_option_int(const PassContext *pc, const char *name) {
  int64_t v = 0;
  return parse_i64(option_value(pc, name), &v) ? v : 0;
}

double pass_option_float(const PassContext *pc, const char *name) {
  double v = 0;
  return parse_f64(option_value(pc, name), &v) ? v : 0;
}

const char *pass_option_str(const PassContext *pc, const char *name) {
  return option_value(pc, name);
}

bool pm_set_option(PassManager *pm, QueuedPass *q, const char *name, const char *value,
                   SrcLoc loc) {
  int n = pass_option_count(q->pass);
  const char **names = ARENA_ARRAY(pm->arena, const char *, n + 1);
  for (int i = 0; i < n; i++) {
    const PassOption *o = &q->pass->options[i];
    names[i] = o->name;
    if (strcmp(o->name, name)) continue;
    const char *wanted = option_problem(o, value);
    if (wanted)
      diag_error(pm->module->diag, loc, "E-option", "%s of pass `%s` must be %s, found \"%s\"",
                 name, q->pass->name, wanted, value);
    else
      q->values[i] = arena_strdup(pm->arena, value);
    return !wanted;
  }
  const char *near = str_nearest(name, names, (size_t)n);
  StrBuf list = {0};
  for (int i = 0; i < n; i++) strbuf_printf(&list, "%s%s", i ? ", " : "; it has ", names[i]);
  diag_error(pm->module->diag, loc, "E-option", "pass `%s` has no option `%s`%s%s%s", q->pass->name,
             name,
             near ? "; did you mean `"
             : n  ? list.data
                  : "; it has none",
             near ? near : "", near ? "`?" : "");
  strbuf_free(&list);
  return false;
}

bool pass_manager_set_option(PassManager *pm, const char *pass, const char *option,
                             const char *value) {
  bool found = false, ok = true;
  if (!pm_find(pm, pass)) return pm_unknown_pass(pm, pass, SRC_LOC_NONE);
  for (size_t i = 0; i < pm->nqueue; i++) {
    if (strcmp(pm->queue[i].pass->name, pass)) continue;
    found = true;
    ok = ok && pm_set_option(pm, &pm->queue[i], option, value, SRC_LOC_NONE);
  }
  if (!found)
    diag_error(pm->module->diag, SRC_LOC_NONE, "E-pass",
               "the pipeline has no pass `%s` to set %s of; add it", pass, option);
  return found && ok;
}

bool pm_unknown_pass(PassManager *pm, const char *name, SrcLoc loc) {
  const char **names = ARENA_ARRAY(pm->arena, const char *, pm->npasses + 1);
  for (size_t i = 0; i < pm->npasses; i++) names[i] = pm->passes[i]->name;
  const char *near = str_nearest(name, names, pm->npasses);
  diag_error(pm->module->diag, loc, "E-pass", "there is no pass `%s`%s%s%s", name,
             near ? "; did you mean `" : "; --list-passes shows all", near ? near : "",
             near ? "`?" : "");
  return false;
}

/* ---- registration ---- */

static bool register_fail(PassManager *pm, const char *name, const char *why) {
  diag_error(pm->module->diag, SRC_LOC_NONE, "E-plugin", "pass `%s` cannot be registered: %s", name,
             why);
  return false;
}

static bool single_level(IrLevel l) {
  return l == IR_GRAPH || l == IR_NEST || l == IR_PROGRAM;
}

bool pass_manager_register(PassManager *pm, const Pass *pass) {
  if (!pass || pass->abi != NPU_PASS_ABI || pass->size != sizeof *pass)
    return register_fail(pm, "?", "it was built for another version of ir/pass.h; rebuild it");
  if (!pass->name || !*pass->name ||
      pass->name[strspn(pass->name, "abcdefghijklmnopqrstuvwxyz0123456789-")])
    return register_fail(pm, pass->name ? pass->name : "",
                         "names are lower case letters, digits and dashes");
  if (!pass->run || !single_level(pass->from) || !single_level(pass->to))
    return register_fail(pm, pass->name, "it has no function or no level");
  if (pm_find(pm, pass->name)) return register_fail(pm, pass->name, "the name is taken");
  for (int i = 0; i < pass_option_count(pass); i++) {
    const PassOption *o = &pass->options[i];
    if (!o->type || option_problem(o, pm_option_default(o)))
      return register_fail(pm, pass->name,
                           "an option's type is unknown or its default not of that type");
  }
  pm->passes = mem_realloc(pm->passes, (pm->npasses + 1) * sizeof(Pass *));
  pm->passes[pm->npasses++] = pass;
  return true;
}

void pass_manager_trust(PassManager *pm) {
  pm->ntrusted = pm->npasses;
}

bool pm_is_trusted(const PassManager *pm, const Pass *pass) {
  for (size_t i = 0; i < pm->ntrusted; i++)
    if (pm->passes[i] == pass) return true;
  return false;
}

static bool plugin_fail(PassManager *pm, const char *path, void *handle, const char *why) {
  diag_error(pm->module->diag, SRC_LOC_NONE, "E-plugin", "%s: %s", path, why);
  if (handle) dlclose(handle);
  return false;
}

/* The address of a function of the plugin; NULL when there is none of that name. */
static void *plugin_function(void *handle, const char *name) {
  void *symbol = dlsym(handle, name);
  Dl_info info;
  const ElfW(Sym) *row = NULL;
  if (!symbol || !dladdr1(symbol, &info, (void **)&row, RTLD_DL_SYMENT) || !row) return NULL;
  return ELF64_ST_TYPE(row->st_info) == STT_FUNC ? symbol : NULL;
}

/* The plugin's stamp against ours. The first rows that differ go into *why. */
static bool same_stamp(PassManager *pm, void *handle, const char **why) {
  const NpuStampRow *own = npu_plugin_stamp();
  NpuStampEntry entry;
  void *symbol = plugin_function(handle, NPU_STAMP_SYMBOL);
  *why = "it does not say which tables it was built against; rebuild it with this npucc's headers";
  if (!symbol) return false;
  memcpy(&entry, &symbol, sizeof entry); /* ISO C has no cast from object to function pointer */
  const NpuStampRow *its = entry();
  for (; own->name && its->name; own++, its++)
    if (strcmp(own->name, its->name) || own->value != its->value) break;
  if (!own->name && !its->name) return true;
  *why = arena_printf(
      pm->arena,
      "built against other tables: it has `%s` (%llu) where this npucc has `%s` (%llu); rebuild it "
      "with this npucc's headers",
      its->name ? its->name : "nothing", (unsigned long long)its->value,
      own->name ? own->name : "nothing", (unsigned long long)own->value);
  return false;
}

bool pass_manager_load_plugin(PassManager *pm, const char *path) {
  /* dlopen searches the system folders for a name without a slash; here a path is meant. */
  const char *here = strchr(path, '/') ? path : arena_printf(pm->arena, "./%s", path);
  const char *why;
  if (!diag_reads(pm->module->diag, path, &why)) return plugin_fail(pm, path, NULL, why);
  void *handle = dlopen(here, RTLD_NOW | RTLD_LOCAL);
  if (!handle) return plugin_fail(pm, path, NULL, dlerror());
  if (!dlsym(handle, NPU_PLUGIN_SYMBOL))
    return plugin_fail(pm, path, handle, "not a pass plugin: it has no symbol " NPU_PLUGIN_SYMBOL);
  void *symbol = plugin_function(handle, NPU_PLUGIN_SYMBOL);
  if (!symbol)
    return plugin_fail(pm, path, handle,
                       "not a pass plugin: " NPU_PLUGIN_SYMBOL " is not a function");
  NpuPluginEntry entry;
  memcpy(&entry, &symbol, sizeof entry);
  const NpuPlugin *plugin = entry();
  if (!plugin || plugin->abi != NPU_PASS_ABI || plugin->size != sizeof *plugin || !plugin->passes)
    return plugin_fail(pm, path, handle, "built for another version of ir/pass.h; rebuild it");
  if (!same_stamp(pm, handle, &why)) return plugin_fail(pm, path, handle, why);
  pm->plugins = mem_realloc(pm->plugins, (pm->nplugins + 1) * sizeof(void *));
  pm->plugins[pm->nplugins++] = handle; /* from here on it stays open: registered rows are in it */
  for (const Pass *const *p = plugin->passes; *p; p++)
    if (!pass_manager_register(pm, *p)) return false;
  return true;
}
