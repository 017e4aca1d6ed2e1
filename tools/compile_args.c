/* Options of the compiler that npucc and npu-opt share. */
#include "tools/compile_args.h"
#include "tools/crash.h"

#include <string.h>

void compile_args_init(CompileArgs *a) {
  *a = (CompileArgs){.arena = arena_new()};
  npucc_options_init(&a->options);
  a->options.run.print_stream = stderr;
  a->options.run.watch = crash_watch();
}

void compile_args_free(CompileArgs *a) {
  cli_list_free(&a->print_before);
  cli_list_free(&a->print_after);
  cli_list_free(&a->plugins);
  mem_free(a->paths);
  arena_free(a->arena);
}

/* OLD=NEW at the last `=`, as GCC and Clang do. */
static bool take_prefix_map(CompileArgs *a, Cli *cli, const char *value) {
  const char *eq = strrchr(value, '=');
  if (!eq) return cli_error(cli, "--file-prefix-map wants OLD=NEW, not '%s'", value);
  a->paths = mem_realloc(a->paths, (a->npaths + 1) * sizeof *a->paths);
  a->paths[a->npaths++] = (PathMap){arena_strndup(a->arena, value, (size_t)(eq - value)), eq + 1};
  return true;
}

bool compile_args_take(CompileArgs *a, Cli *cli, int id, const char *value) {
  PassRunOptions *run = &a->options.run;
  int64_t n;
  switch (id) {
  case CARG_MACHINE: a->machine_name = value; break;
  case CARG_LOAD_PASS: cli_list_add(&a->plugins, value); break;
  case CARG_PASSES: a->options.pipeline = value; break;
  case CARG_REPRODUCER: run->reproducer = value; break;
  case CARG_PRINT_AFTER: cli_list_split(&a->print_after, value, a->arena); break;
  case CARG_PRINT_BEFORE: cli_list_split(&a->print_before, value, a->arena); break;
  case CARG_PRINT_CHANGED: run->print_changed = true; break;
  case CARG_PRINT_AFTER_ALL: run->print_after_all = true; break;
  case CARG_PREFIX_MAP: return take_prefix_map(a, cli, value);
  case CARG_PRINT_PIPELINE: a->print_pipeline = true; break;
  case CARG_LOCATIONS: run->print.locations = true; break;
  case CARG_ELIDE_DATA:
    return cli_int(cli, "--elide-data", value, 1, INT64_MAX, &run->print.elide_data);
  case CARG_VERIFY_EACH: run->verify_each = true; break;
  case CARG_TIME_PASSES: run->time_passes = true; break;
  case CARG_STATS: run->stats = true; break;
  case CARG_STOP_AFTER:
    if (!cli_int(cli, "--stop-after", value, 0, INT16_MAX, &n)) return false;
    run->stop_after = (int)n;
    break;
  }
  return true;
}

/* As one word of the shell. */
static void put_quoted(StrBuf *b, const char *before, const char *word) {
  strbuf_puts(b, before);
  strbuf_putc(b, '\'');
  for (const char *c = word; *c; c++)
    if (*c == '\'')
      strbuf_puts(b, "'\\''");
    else
      strbuf_putc(b, *c == '\n' ? ' ' : *c);
  strbuf_putc(b, '\'');
}

static const char *reproducer_args(CompileArgs *a) {
  StrBuf b = {0};
  if (a->machine_name) put_quoted(&b, "--machine ", a->machine_name);
  for (int i = 0; i < a->plugins.n; i++)
    put_quoted(&b, b.len ? " --load-pass " : "--load-pass ", a->plugins.items[i]);
  put_quoted(&b, b.len ? " " : "", a->options.run.reproducer);
  const char *text = arena_strdup(a->arena, b.data);
  strbuf_free(&b);
  return text;
}

bool compile_args_finish(CompileArgs *a, DiagEngine *diag) {
  NpuccOptions *o = &a->options;
  const char *reproducer = o->run.reproducer;
  if (reproducer && !diag_writes(diag, "--reproducer", reproducer)) return false;
  if (!cli_machine(a->machine_name, &a->machine, diag)) return false;
  o->machine = &a->machine;
  if (o->run.reproducer) o->run.reproducer_args = reproducer_args(a);
  o->paths = (PathMaps){a->paths, a->npaths};
  o->run.print.paths = &o->paths;
  o->plugins = a->plugins.items;
  o->nplugins = (size_t)a->plugins.n;
  o->run.print_before = a->print_before.items;
  o->run.nprint_before = a->print_before.n;
  o->run.print_after = a->print_after.items;
  o->run.nprint_after = a->print_after.n;
  return true;
}

bool compile_args_for_passes(const CompileArgs *a) {
  const PassRunOptions *run = &a->options.run;
  return a->options.pipeline || a->options.calibrate || run->stop_after >= 0 || run->reproducer ||
         a->print_before.n || a->print_after.n || run->print_after_all || run->print_changed ||
         run->verify_each || run->time_passes || run->stats;
}

static bool are_passes(const CliList *words, const char *option, const char *const *names, size_t n,
                       DiagEngine *diag) {
  for (int k = 0; k < words->n; k++) {
    bool known = false;
    for (size_t i = 0; i < n; i++) known |= strcmp(names[i], words->items[k]) == 0;
    if (known) continue;
    const char *near = str_nearest(words->items[k], names, n);
    diag_error(diag, SRC_LOC_NONE, "E-option", "%s: there is no pass '%s'%s%s%s", option,
               words->items[k], near ? "; did you mean '" : "; npu-opt --list-passes shows all",
               near ? near : "", near ? "'?" : "");
    return false;
  }
  return true;
}

bool compile_args_check(const CompileArgs *a, Npucc *c, DiagEngine *diag) {
  PassManager *pm = npucc_passes(c);
  size_t n = pass_manager_count(pm);
  const char **names = ARENA_ARRAY(a->arena, const char *, n);
  for (size_t i = 0; i < n; i++) names[i] = pass_manager_at(pm, i)->name;
  return are_passes(&a->print_before, "--print-before", names, n, diag) &&
         are_passes(&a->print_after, "--print-after", names, n, diag);
}

bool compile_args_print_pipeline(CompileArgs *a, DiagEngine *diag) {
  StrBuf text = {0};
  Npucc *c = compile_args_finish(a, diag) ? npucc_new(&a->options, diag) : NULL;
  if (c) npucc_print_pipeline(c, &text);
  bool ok = c && cli_write(NULL, &text, diag);
  strbuf_free(&text);
  npucc_free(c);
  return ok;
}
