/* npusim: runs a binary on the simulated machine. */
#include <string.h>
#include <unistd.h>

#include "runtime/npurt.h"
#include "tools/batch.h"
#include "tools/cli.h"

enum {
  OPT_INPUT = 1,
  OPT_OUTPUT,
  OPT_RANDOM,
  OPT_LABELS,
  OPT_MODE,
  OPT_REPORT,
  OPT_TRACE,
  OPT_MACHINE,
  OPT_ARG,
  OPT_LIMIT,
};
static const CliOption options[] = {
    {0, 0, NULL, NULL, "Data:"},
    {OPT_INPUT, 'i', "input", "[NAME=]FILE[:TENSOR][ROWS]",
     ".npy, .npz or .safetensors; without NAME by tensor names; ROWS as in images.npz[0:256]. "
     "Repeatable"},
    {OPT_OUTPUT, 'o', "output", "[NAME=]FILE[:TENSOR]",
     "where outputs go, by the file's ending. Repeatable; without it they are shown"},
    {OPT_RANDOM, 0, "random", "SEED", "draw the inputs not given: floats normal, indices zero"},
    {OPT_LABELS, 0, "labels", "FILE[:TENSOR][ROWS]",
     "print the top-1 accuracy of the first [rows, classes] output"},
    {OPT_ARG, 0, "arg", "N=VALUE",
     "set host argument N, read by the `arg` instruction. Repeatable"},
    {0, 0, NULL, NULL, "Simulation:"},
    {OPT_MODE, 0, "mode", "MODE",
     "fast (results only), timed (cycles and energy, the default), check (timed, and races and "
     "uninitialised reads)"},
    {OPT_MACHINE, 0, "machine", "NAME|FILE[,KEY=VALUE...]",
     "run on this machine: other times and energies, the same sizes"},
    {OPT_LIMIT, 0, "max-instructions", "N", "stop a run after N instructions"},
    {0, 0, NULL, NULL, "Reports:"},
    {OPT_REPORT, 0, "report", NULL,
     "cycles, time, engines, bytes, roofline, energy, per operation"},
    {OPT_TRACE, 0, "trace", "FILE", "engine activity as Chrome trace JSON"},
    {0},
};
static const CliCommand command = {
    .usage = "npusim [options] MODEL.bin",
    .about = "Runs a compiled model. Inputs with more samples than the model takes at once are run "
             "batch "
             "by\n"
             "batch and the outputs put together.",
    .more = "  npusim digits.bin --input image=x.npy --output scores=y.npy\n"
            "  npusim digits.bin --input images.safetensors --output y.npz --report\n",
    .simulates = true,
};

typedef struct {
  Cli *cli;
  const char *binary, *machine, *trace;
  NpurtOptions npurt;
  BatchOptions batch;
  CliList inputs, outputs, args;
  bool report;
} Options;

enum { HOST_ARGS = 64 }; /* what the machine has */

/* ---- running ---- */

typedef struct {
  Cli *cli;
  NpurtModel *model;
  const IsaIo **inputs, **outputs;
  int ninputs, noutputs;
} Runner;

static bool run_once(void *user, const void *const *inputs, void *const *outputs,
                     DiagEngine *diag) {
  Runner *r = user;
  for (int i = 0; i < r->ninputs; i++) {
    const IsaIo *io = r->inputs[i];
    ModelPort p = {.dtype = io->dtype, .rank = io->rank};
    memcpy(p.shape, io->shape, sizeof p.shape);
    memcpy(npurt_io_data(r->model, io), inputs[i], port_bytes(&p));
  }
  if (!npurt_run(r->model, diag)) {
    cli_trapped(r->cli);
    return false;
  }
  for (int i = 0; i < r->noutputs; i++) {
    const IsaIo *io = r->outputs[i];
    ModelPort p = {.dtype = io->dtype, .rank = io->rank};
    memcpy(p.shape, io->shape, sizeof p.shape);
    memcpy(outputs[i], npurt_io_data(r->model, io), port_bytes(&p));
  }
  return true;
}

/* The binary's signature in one role. Returns the count. */
static int signature(const IsaImage *img, IsaIoRole role, const IsaIo **ios, ModelPort *ports) {
  int n = 0;
  for (uint32_t i = 0; i < img->nio; i++) {
    const IsaIo *io = &img->io[i];
    if (io->role != role) continue;
    ports[n] = (ModelPort){.name = io->name, .dtype = io->dtype, .rank = io->rank};
    memcpy(ports[n].shape, io->shape, sizeof ports[n].shape);
    ios[n++] = io;
  }
  return n;
}

static bool run_model(NpurtModel *model, const Options *o, StrBuf *text, DiagEngine *diag) {
  const IsaImage *img = npurt_image(model);
  Arena *a = arena_new();
  ModelPort *inputs = ARENA_ARRAY(a, ModelPort, img->nio + 1);
  ModelPort *outputs = ARENA_ARRAY(a, ModelPort, img->nio + 1);
  Runner r = {.cli = o->cli,
              .model = model,
              .inputs = ARENA_ARRAY(a, const IsaIo *, img->nio + 1),
              .outputs = ARENA_ARRAY(a, const IsaIo *, img->nio + 1)};
  r.ninputs = signature(img, IO_INPUT, r.inputs, inputs);
  r.noutputs = signature(img, IO_OUTPUT, r.outputs, outputs);
  BatchModel m = {inputs, outputs, r.ninputs, r.noutputs, run_once, &r};
  bool ok = batch_run(&m, &o->batch, text, diag);
  arena_free(a);
  return ok;
}

static bool set_arguments(NpurtModel *model, const CliList *args, DiagEngine *diag) {
  for (int i = 0; i < args->n; i++) {
    const char *eq = strchr(args->items[i], '=');
    int64_t number = -1, value;
    char left[24] = "";
    if (eq) snprintf(left, sizeof left, "%.*s", (int)(eq - args->items[i]), args->items[i]);
    if (!eq || !parse_i64(left, &number) || !parse_i64(eq + 1, &value) || number < 0 ||
        number >= HOST_ARGS) {
      diag_error(diag, SRC_LOC_NONE, "E-option",
                 "--arg wants NUMBER=VALUE with a number below %d and a value of 64 bits, not '%s'",
                 HOST_ARGS, args->items[i]);
      return false;
    }
    npurt_set_arg(model, (int)number, value);
  }
  return true;
}

static bool run(Options *o, DiagEngine *diag) {
  MachineDesc machine;
  const char *why;
  if (o->trace && !diag_writes(diag, "--trace", o->trace)) return false;
  if (o->trace && !file_can_write(o->trace, &why)) {
    diag_error(diag, SRC_LOC_NONE, "E-file", "cannot write the trace '%s': %s", o->trace, why);
    return false;
  }
  if (o->machine) {
    if (!machine_load(o->machine, &machine, diag)) return false;
    o->npurt.machine = &machine;
  }
  o->npurt.trace = o->trace != NULL;
  o->batch.quiet = o->report;
  NpurtModel *model = npurt_load(o->binary, &o->npurt, diag);
  if (!model) return false;
  StrBuf text = {0};
  bool ok = set_arguments(model, &o->args, diag) && run_model(model, o, &text, diag);
  if (ok && o->report)
    npurt_report(model, &text);
  else if (ok && o->npurt.mode != NPURT_FAST)
    npurt_summary(model, &text);
  bool ran = ok; /* what cannot be written takes nothing else with it */
  if (ran && text.len) ok = cli_write(NULL, &text, diag);
  if (ran && o->trace) ok = npurt_trace_write(model, o->trace, diag) && ok;
  strbuf_free(&text);
  npurt_free(model);
  return ok;
}

/* ---- options ---- */

static bool parse_mode(Cli *cli, const char *value, Options *o) {
  static const char *const names[] = {"fast", "timed", "check"};
  for (size_t i = 0; i < NPU_COUNTOF(names); i++)
    if (strcmp(value, names[i]) == 0) {
      o->npurt.mode = (NpurtMode)i;
      return true;
    }
  return cli_error(cli, "unknown mode '%s'; it is fast, timed or check", value);
}

static bool take_option(Cli *cli, int id, const char *value, Options *o) {
  int64_t n;
  switch (id) {
  case OPT_INPUT: cli_list_add(&o->inputs, value); break;
  case OPT_OUTPUT: cli_list_add(&o->outputs, value); break;
  case OPT_ARG: cli_list_add(&o->args, value); break;
  case OPT_LABELS: o->batch.labels = value; break;
  case OPT_MODE: return parse_mode(cli, value, o);
  case OPT_MACHINE: o->machine = value; break;
  case OPT_REPORT: o->report = true; break;
  case OPT_TRACE: o->trace = value; break;
  case OPT_RANDOM:
    if (!cli_int(cli, "--random", value, 0, INT64_MAX, &n)) return false;
    o->batch.random = true;
    o->batch.seed = (uint64_t)n;
    break;
  case OPT_LIMIT:
    if (!cli_int(cli, "--max-instructions", value, 1, INT64_MAX, &n)) return false;
    o->npurt.max_instructions = (uint64_t)n;
    break;
  }
  return true;
}

static bool finish_options(Cli *cli, Options *o) {
  char **files;
  if (cli_positionals(cli, &files) != 1) return cli_error(cli, "give one binary to run");
  if (o->npurt.mode == NPURT_FAST && (o->report || o->trace))
    return cli_error(cli, "--mode fast measures no time; leave it out for --report and --trace");
  o->binary = files[0];
  o->batch.inputs = o->inputs.items;
  o->batch.ninputs = o->inputs.n;
  o->batch.outputs = o->outputs.items;
  o->batch.noutputs = o->outputs.n;
  o->batch.progress = isatty(STDERR_FILENO);
  return true;
}

int main(int argc, char **argv) {
  Cli *cli = cli_new(&command, options, argc, argv);
  Options o = {.npurt = {.mode = NPURT_TIMED}};
  const char *value;
  int id;
  bool ok = true;
  while (ok && (id = cli_next(cli, &value)) != CLI_END && id != CLI_DONE)
    ok = id != CLI_ERROR && take_option(cli, id, value, &o);
  if (ok && id == CLI_END) {
    o.cli = cli;
    ok = finish_options(cli, &o) && run(&o, cli_diag(cli));
  }
  cli_list_free(&o.inputs);
  cli_list_free(&o.outputs);
  cli_list_free(&o.args);
  int status = cli_status(cli, ok);
  cli_free(cli);
  return status;
}
