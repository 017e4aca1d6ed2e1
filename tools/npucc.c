/* npucc: the compiler's command. */
#include <string.h>
#include <unistd.h>

#include "tools/batch.h"
#include "tools/bisect.h"
#include "tools/compile_args.h"
#include "tools/hostrun.h"

enum {
  OPT_OUTPUT = 1,
  OPT_DEFINE,
  OPT_LEVEL,
  OPT_CALIBRATE,
  OPT_NO_QUANTIZE,
  OPT_EMIT,
  OPT_WEIGHTS,
  OPT_MODEL,
  OPT_MANUAL,
  OPT_VERBOSE,
  OPT_REFERENCE,
  OPT_INPUT,
  OPT_RANDOM,
  OPT_LABELS,
  OPT_BISECT,
  OPT_TOLERANCE,
};
static const CliOption options[] = {
    {OPT_OUTPUT, 'o', "output", "FILE",
     "the binary (default: the model's name with .bin), the text of --emit, or the outputs of "
     "--reference"},
    {OPT_DEFINE, 'D', NULL, "NAME=VALUE", "set a parameter of the model. Repeatable"},
    {OPT_WEIGHTS, 0, "weights", "FILE",
     "look for weights here before the model's own files. Repeatable"},
    {OPT_MODEL, 0, "model", "NAME",
     "which model of the file (default: the last), or which function of IR text"},
    {OPT_EMIT, 0, "emit", "WHAT",
     "print graph, nest, program, asm or dot instead of writing a binary"},
    COMPILE_ARGS_NAMES,
    {OPT_VERBOSE, 'v', "verbose", NULL, "tell what was made, on standard error"},
    {OPT_MANUAL, 0, "manual", NULL, "print the manual of the model language's operators, and exit"},
    {0, 0, NULL, NULL, "Target and numbers:"},
    COMPILE_ARGS_MACHINE,
    {OPT_LEVEL, 'O', NULL, "LEVEL", "optimization level 0, 1 or 2 (default 2)"},
    {OPT_CALIBRATE, 0, "calibrate", "FILE|random",
     "8-bit activations: measure ranges on these inputs (first axis: samples; images.npz[0:256]: a "
     "part of them)"},
    {OPT_NO_QUANTIZE, 0, "no-quantize", NULL, "keep the model's own types"},
    COMPILE_ARGS_PASSES,
    COMPILE_ARGS_WATCH,
    {0, 0, NULL, NULL, "Running on the host instead of compiling:"},
    {OPT_REFERENCE, 0, "reference", "[=float|compiled]",
     "run the model as written (float, the default) or as quantized and optimized (compiled)"},
    {OPT_BISECT, 0, "bisect", NULL,
     "run the model after every pass, as far as nests, and name the first that changes an output; "
     "exit status 1 when there is one"},
    {OPT_TOLERANCE, 0, "tolerance", "T",
     "what --bisect lets a pass change of an output, relative, rms (default 0.001; quantize at "
     "least 0.1; nothing in a model of integers)"},
    {OPT_INPUT, 'i', "input", "[NAME=]FILE[:TENSOR][ROWS]", "as for npusim. Repeatable"},
    {OPT_RANDOM, 0, "random", "SEED", "draw the inputs not given"},
    {OPT_LABELS, 0, "labels", "FILE[:TENSOR][ROWS]", "print the top-1 accuracy"},
    {0},
};
static const CliCommand command = {
    .usage = "npucc [options] MODEL.mdl",
    .about =
        "Compiles a model for the NPU. The model is a .mdl file ('-': standard input) or IR text "
        "(.ir).",
    .more = "  npucc digits.mdl -o digits.bin\n"
            "  npucc digits.mdl -D N=8 --machine cloud --calibrate images.npz -o digits.bin\n"
            "  npucc digits.mdl --emit nest\n"
            "  npucc digits.mdl --reference --input images.npz --output scores.npy\n"
            "  npucc digits.mdl --load-pass mine.so --passes mine,default --bisect --random 1\n",
    .fails = "a pass that --bisect found",
};

typedef enum { EMIT_BINARY, EMIT_GRAPH, EMIT_NEST, EMIT_PROGRAM, EMIT_ASM, EMIT_DOT } Emit;

typedef struct {
  CompileArgs args;
  CliList outputs, inputs, weights, settings;
  Emit emit;
  bool verbose, manual, reference, compiled, bisect, found;
  double tolerance; /* of --bisect; below 0: not given */
  BatchOptions batch;
  const char *model, *output; /* output NULL: standard output */
  const char *chooser;        /*  the option that chooses a pipeline, NULL: none */
} Options;

/* ---- compiling ---- */

static void tell_image(const IsaImage *img, const char *path) {
  uint64_t data = 0;
  for (uint32_t i = 0; i < img->nsegments; i++) data += img->segments[i].size;
  fprintf(stderr,
          "%s: machine %s, %u instructions, %u descriptors, %u vector programs, %.1f kB of data, "
          "%.1f kB of DRAM\n",
          path, img->machine.name, img->ninsns, img->ndescs, img->nvprogs, (double)data / 1e3,
          (double)img->dram_bytes / 1e3);
}

/* digits/mlp.mdl -> mlp.bin, in the current folder. */
static const char *default_output(Arena *a, const char *model) {
  if (strcmp(model, "-") == 0) return "a.bin";
  const char *slash = strrchr(model, '/'), *name = slash ? slash + 1 : model;
  const char *dot = strrchr(name, '.');
  return arena_printf(a, "%.*s.bin", (int)(dot && dot > name ? dot - name : (long)strlen(name)),
                      name);
}

static bool emit_image(Npucc *c, const Options *o, DiagEngine *diag) {
  IsaImage img = {0};
  bool ok = npucc_emit_image(c, &img);
  if (ok && o->emit == EMIT_ASM) {
    StrBuf text = {0};
    isa_disassemble(&img, &text);
    ok = cli_write(o->output, &text, diag);
    strbuf_free(&text);
  } else if (ok) {
    ok = isa_image_write(&img, o->output, diag);
    if (ok && o->verbose) tell_image(&img, o->output);
  }
  isa_image_free(&img);
  return ok;
}

static bool emit_ir(Npucc *c, const Options *o, DiagEngine *diag) {
  StrBuf text = {0};
  if (o->emit == EMIT_DOT)
    ir_print_dot(npucc_module(c), &text);
  else
    ir_print_with(npucc_module(c), &text, &o->args.options.run.print);
  bool ok = cli_write(o->output, &text, diag);
  strbuf_free(&text);
  return ok;
}

static bool compile(Npucc *c, const Options *o, DiagEngine *diag) {
  IrLevel until = o->emit == EMIT_GRAPH || o->emit == EMIT_DOT ? IR_GRAPH
                  : o->emit == EMIT_NEST                       ? IR_NEST
                                                               : IR_PROGRAM;
  if (!npucc_run_passes(c, until)) return false;
  return o->emit == EMIT_BINARY || o->emit == EMIT_ASM ? emit_image(c, o, diag)
                                                       : emit_ir(c, o, diag);
}

/* ---- running on the host ---- */

static bool run_host(void *user, const void *const *inputs, void *const *outputs,
                     DiagEngine *diag) {
  return host_run(user, inputs, outputs, diag);
}

static bool reference(Npucc *c, const Options *o, DiagEngine *diag) {
  if (o->compiled && !npucc_run_passes(c, IR_GRAPH)) return false;
  const IrFunc *f = npucc_module(c)->funcs[0];
  ModelPort *inputs = ARENA_ARRAY(o->args.arena, ModelPort, f->body->nargs + 1);
  ModelPort *outputs = ARENA_ARRAY(o->args.arena, ModelPort, f->nresults + 1);
  hostrun_inputs(f, inputs);
  hostrun_outputs(f, outputs);
  HostProgram *p = npucc_host(c);
  if (!p) return false;
  BatchModel m = {inputs, outputs, f->body->nargs, f->nresults, run_host, p};
  StrBuf text = {0};
  bool ok = batch_run(&m, &o->batch, &text, diag) && (!text.len || cli_write(NULL, &text, diag));
  strbuf_free(&text);
  host_free(p);
  return ok;
}

static bool find_pass(Npucc *c, Options *o, DiagEngine *diag) {
  BisectOptions b = {&o->batch, o->tolerance < 0 ? BISECT_TOLERANCE : o->tolerance};
  return bisect(c, &o->args.machine, &b, diag, &o->found);
}

/* Says where the result of compiling goes; those of --reference wait for the model's outputs. */
static bool claim_output(Options *o, DiagEngine *diag) {
  if (o->reference || o->bisect) return true;
  if (!o->outputs.n && o->emit == EMIT_BINARY) {
    o->output = default_output(o->args.arena, o->model);
    return diag_writes(diag, "the default output", o->output);
  }
  o->output = o->outputs.n ? o->outputs.items[0] : NULL;
  return !o->output || diag_writes(diag, "--output", o->output);
}

static bool run(Options *o, DiagEngine *diag) {
  bool ok = claim_output(o, diag) && compile_args_finish(&o->args, diag);
  Npucc *c = ok ? npucc_new(&o->args.options, diag) : NULL;
  ok = c && compile_args_check(&o->args, c, diag) && npucc_read(c, o->model) &&
       (o->reference ? reference(c, o, diag)
        : o->bisect  ? find_pass(c, o, diag)
                     : compile(c, o, diag));
  npucc_free(c);
  return ok;
}

static bool print_manual(DiagEngine *diag) {
  StrBuf text = {0};
  mdl_manual(&text);
  bool ok = cli_write(NULL, &text, diag);
  strbuf_free(&text);
  return ok;
}

/* ---- options ---- */

static bool take_define(Cli *cli, const char *value, Options *o) {
  const char *eq = strchr(value, '=');
  if (!eq || eq == value || !eq[1]) return cli_error(cli, "-D wants NAME=VALUE, not '%s'", value);
  cli_list_add(&o->settings, value);
  return true;
}

static bool take_emit(Cli *cli, const char *value, Options *o) {
  static const char *const names[] = {"graph", "nest", "program", "asm", "dot"};
  for (size_t i = 0; i < NPU_COUNTOF(names); i++)
    if (strcmp(value, names[i]) == 0) {
      o->emit = (Emit)(EMIT_GRAPH + i);
      return true;
    }
  return cli_error(cli, "--emit knows graph, nest, program, asm and dot, not '%s'", value);
}

static bool take_reference(Cli *cli, const char *value, Options *o) {
  o->reference = true;
  o->compiled = value && strcmp(value, "compiled") == 0;
  return !value || o->compiled || strcmp(value, "float") == 0 ||
         cli_error(cli, "--reference is float or compiled, not '%s'", value);
}

static bool take_option(Cli *cli, int id, const char *value, Options *o) {
  NpuccOptions *npucc = &o->args.options;
  int64_t n;
  switch (id) {
  case OPT_OUTPUT: cli_list_add(&o->outputs, value); break;
  case OPT_INPUT: cli_list_add(&o->inputs, value); break;
  case OPT_WEIGHTS: cli_list_add(&o->weights, value); break;
  case OPT_DEFINE: return take_define(cli, value, o);
  case OPT_EMIT: return take_emit(cli, value, o);
  case OPT_REFERENCE: return take_reference(cli, value, o);
  case OPT_MODEL: npucc->mdl.model = value; break;
  case OPT_CALIBRATE: npucc->calibrate = value; break;
  case OPT_NO_QUANTIZE:
    npucc->quantize = false;
    o->chooser = "--no-quantize";
    break;
  case OPT_VERBOSE: o->verbose = true; break;
  case OPT_MANUAL: o->manual = true; break;
  case OPT_BISECT: o->bisect = npucc->run.verify_each = true; break;
  case OPT_TOLERANCE: return cli_tolerance(cli, "--tolerance", value, &o->tolerance);
  case OPT_LABELS: o->batch.labels = value; break;
  case OPT_LEVEL:
    if (!cli_int(cli, "-O", value, 0, 2, &n)) return false;
    npucc->opt_level = (int)n;
    o->chooser = "-O";
    break;
  case OPT_RANDOM:
    if (!cli_int(cli, "--random", value, 0, INT64_MAX, &n)) return false;
    o->batch.random = true;
    o->batch.seed = (uint64_t)n;
    break;
  default: return compile_args_take(&o->args, cli, id, value);
  }
  return true;
}

/* Options that only some of what the command does take. */
static bool check_together(Cli *cli, const Options *o) {
  bool runs = o->reference || o->bisect;
  if (!runs && (o->inputs.n || o->batch.random))
    return cli_error(cli, "--input, --random and --labels belong to --reference, the first two "
                          "also to --bisect; npusim runs binaries");
  if (!o->reference && o->batch.labels) return cli_error(cli, "--labels belongs to --reference");
  if (!o->bisect && o->tolerance >= 0) return cli_error(cli, "--tolerance belongs to --bisect");
  if (o->reference && o->bisect)
    return cli_error(cli, "--reference runs the model and --bisect compares; give one of them");
  if (o->bisect && (o->outputs.n || o->emit != EMIT_BINARY))
    return cli_error(cli, "--bisect writes nothing but what it found; leave out --output and "
                          "--emit");
  if (o->reference && o->emit != EMIT_BINARY)
    return cli_error(cli, "--reference runs the model and --emit prints it; give one of them");
  if (o->chooser && o->args.options.pipeline)
    return cli_error(cli, "--passes names the passes and %s chooses them; give one of them",
                     o->chooser);
  if (o->reference && !o->compiled && compile_args_for_passes(&o->args))
    return cli_error(cli, "--reference runs the model as written, before any pass; --calibrate and "
                          "the options of passes belong to --reference=compiled");
  return o->reference || o->outputs.n <= 1 || cli_error(cli, "give one --output");
}

static bool finish_options(Cli *cli, Options *o) {
  char **files;
  if (cli_positionals(cli, &files) != 1) return cli_error(cli, "give one model");
  if (!check_together(cli, o)) return false;
  o->model = files[0];
  o->batch.inputs = o->inputs.items;
  o->batch.ninputs = o->inputs.n;
  o->batch.outputs = o->outputs.items;
  o->batch.noutputs = o->outputs.n;
  o->batch.progress = isatty(STDERR_FILENO);
  o->args.options.mdl.weight_files = o->weights.items;
  o->args.options.mdl.nweight_files = (size_t)o->weights.n;
  o->args.options.mdl.settings = o->settings.items;
  o->args.options.mdl.nsettings = (size_t)o->settings.n;
  return true;
}

int main(int argc, char **argv) {
  Cli *cli = cli_new(&command, options, argc, argv);
  Options o = {.tolerance = -1};
  compile_args_init(&o.args);
  const char *value;
  int id;
  bool ok = true;
  while (ok && (id = cli_next(cli, &value)) != CLI_END && id != CLI_DONE)
    ok = id != CLI_ERROR && take_option(cli, id, value, &o);
  char **files;
  if (ok && id == CLI_END && o.manual)
    ok = cli_positionals(cli, &files) == 0 ? print_manual(cli_diag(cli))
                                           : cli_error(cli, "--manual takes no model");
  else if (ok && id == CLI_END && o.args.print_pipeline)
    ok = compile_args_print_pipeline(&o.args, cli_diag(cli));
  else if (ok && id == CLI_END)
    ok = finish_options(cli, &o) && run(&o, cli_diag(cli));
  cli_list_free(&o.outputs);
  cli_list_free(&o.inputs);
  cli_list_free(&o.weights);
  cli_list_free(&o.settings);
  compile_args_free(&o.args);
  int status = cli_status(cli, ok);
  if (ok && o.found) status = CLI_FAILED;
  cli_free(cli);
  return status;
}
