/* npu-opt: passes on IR text. */
#include <string.h>

#include "tools/compile_args.h"

enum { OPT_OUTPUT = 1, OPT_LIST };
static const CliOption options[] = {
    {OPT_OUTPUT, 'o', "output", "FILE", "where to write the IR (default: standard output)"},
    {OPT_LIST, 0, "list-passes", NULL, "list the passes with levels and options, and exit"},
    COMPILE_ARGS_NAMES,
    COMPILE_ARGS_MACHINE,
    COMPILE_ARGS_PASSES,
    COMPILE_ARGS_WATCH,
    {0},
};
static const CliCommand command = {
    .usage = "npu-opt [options] FILE.ir",
    .about = "Reads IR text ('-': standard input), verifies it, runs passes and prints the result, "
             "which is "
             "IR\n"
             "text again. An .mdl model is read too, as the graph it stands for.",
    .more = "  npu-opt --passes=lower,fuse,tile in.ir\n",
};

/* ---- --list-passes ---- */

static const char *level_name(IrLevel l) {
  return l == IR_GRAPH ? "graph" : l == IR_NEST ? "nest" : "program";
}

static void list_passes(PassManager *pm, StrBuf *out) {
  for (size_t i = 0; i < pass_manager_count(pm); i++) {
    const Pass *p = pass_manager_at(pm, i);
    StrBuf levels = {0};
    strbuf_puts(&levels, level_name(p->from));
    if (p->to != p->from) strbuf_printf(&levels, " -> %s", level_name(p->to));
    strbuf_printf(out, "%-16s %-16s %s\n", p->name, levels.data, p->help);
    for (const PassOption *o = p->options; o && o->name; o++)
      strbuf_printf(out, "    %s=%s: %s. %s\n", o->name, o->dflt ? o->dflt : "", o->type, o->help);
    strbuf_free(&levels);
  }
}

/* ---- running ---- */

static bool read_input(Npucc *c, const char *path, DiagEngine *diag) {
  if (str_ends_with(path, ".mdl")) return npucc_read(c, path);
  FileMap map;
  if (!cli_read(path, &map, diag)) return false;
  bool ok = npucc_read_ir(c, (const char *)map.data, map.size, path);
  file_unmap(&map);
  return ok;
}

static bool run(CompileArgs *a, const char *path, const char *output, bool list, DiagEngine *diag) {
  bool free_to_write = !output || diag_writes(diag, "--output", output);
  Npucc *c = free_to_write && compile_args_finish(a, diag) ? npucc_new(&a->options, diag) : NULL;
  StrBuf out = {0};
  bool ok = c && compile_args_check(a, c, diag);
  if (ok && list) {
    list_passes(npucc_passes(c), &out);
  } else if (ok) {
    ok = read_input(c, path, diag) && npucc_run_passes(c, IR_PROGRAM);
    if (ok) ir_print_with(npucc_module(c), &out, &a->options.run.print);
  }
  ok = ok && cli_write(output, &out, diag);
  strbuf_free(&out);
  npucc_free(c);
  return ok;
}

int main(int argc, char **argv) {
  Cli *cli = cli_new(&command, options, argc, argv);
  CompileArgs args;
  compile_args_init(&args);
  const char *value, *output = NULL;
  char **files;
  bool list = false, ok = true;
  int id;
  while (ok && (id = cli_next(cli, &value)) != CLI_END && id != CLI_DONE) {
    if (id == OPT_OUTPUT)
      output = value;
    else if (id == OPT_LIST)
      list = true;
    else
      ok = id != CLI_ERROR && compile_args_take(&args, cli, id, value);
  }
  if (!args.options.pipeline) args.options.pipeline = "";
  if (ok && id == CLI_END && args.print_pipeline) {
    ok = compile_args_print_pipeline(&args, cli_diag(cli));
  } else if (ok && id == CLI_END) {
    if (cli_positionals(cli, &files) != (list ? 0 : 1))
      ok = cli_error(cli, list ? "--list-passes takes no file" : "give one file of IR text");
    else
      ok = run(&args, list ? NULL : files[0], output, list, cli_diag(cli));
  }
  compile_args_free(&args);
  int status = cli_status(cli, ok);
  cli_free(cli);
  return status;
}
