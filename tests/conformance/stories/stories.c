/* A trained language model, token by token and as one text, on the host and on the simulated
 * machine, against tokens and logits computed elsewhere in float64. Usage: stories SOURCE_DIR
 * MODEL.mdl. Exits 77 when the data is not there. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "runtime/npurt.h"
#include "tests/support/compare.h"
#include "tools/compile.h"

enum { SKIPPED = 77, VOCABULARY = 512, STEPS = 200, LOGITS = 32, BOS = 1 };

typedef struct {
  const char *model, *weights;
  const int32_t *tokens; /* [STEPS], the answers */
  const float *logits;   /* [LOGITS, VOCABULARY] */
  int32_t text[STEPS];   /* what is read: BOS and all answers but the last */
  DiagEngine *diag;
  bool failed;
} Oracle;

/* One compiled model with the arguments (token, pos) and the results (logits, ...). */
typedef struct {
  Npucc *compiler;
  HostProgram *host;
  NpurtModel *npu;
} Machine;

static void machine_free(Machine *m) {
  npurt_free(m->npu);
  host_free(m->host);
  npucc_free(m->compiler);
}

static NpurtModel *simulate(Npucc *c, NpurtMode mode, DiagEngine *diag) {
  char path[] = "/tmp/npucc-stories-XXXXXX";
  int fd = mkstemp(path);
  if (fd < 0) return NULL;
  close(fd);
  IsaImage image = {0};
  NpurtModel *m = NULL;
  const NpurtOptions options = {.mode = mode};
  if (npucc_run_passes(c, IR_PROGRAM) && npucc_emit_image(c, &image) &&
      isa_image_write(&image, path, diag))
    m = npurt_load(path, &options, diag);
  isa_image_free(&image);
  unlink(path);
  return m;
}

/* mode < 0: the model as written, on the host. */
static bool machine_new(Machine *m, Oracle *o, const char *model, bool quantize, int mode) {
  NpuccOptions options;
  npucc_options_init(&options);
  options.quantize = quantize;
  options.mdl.model = model;
  options.mdl.weight_files = &o->weights;
  options.mdl.nweight_files = 1;
  *m = (Machine){.compiler = npucc_new(&options, o->diag)};
  bool ok = m->compiler && npucc_read(m->compiler, o->model);
  if (ok && mode < 0) m->host = npucc_host(m->compiler);
  if (ok && mode >= 0) m->npu = simulate(m->compiler, (NpurtMode)mode, o->diag);
  if (m->host || m->npu) return true;
  machine_free(m);
  return false;
}

static void *npu_tensor(const Machine *m, IsaIoRole role, const char *name) {
  return npurt_io_data(m->npu, npurt_find_io(m->npu, role, name));
}

/* Runs on `count` tokens from position pos. next may be NULL. */
static bool machine_run(Machine *m, Oracle *o, const int32_t *tokens, int count, int32_t pos,
                        float *logits, int32_t *next) {
  const size_t token_bytes = (size_t)count * sizeof *tokens;
  const size_t logit_bytes = (size_t)count * VOCABULARY * sizeof *logits;
  if (m->host) {
    const void *inputs[] = {tokens, &pos};
    void *outputs[] = {logits, next};
    return host_run(m->host, inputs, outputs, o->diag);
  }
  memcpy(npu_tensor(m, IO_INPUT, "token"), tokens, token_bytes);
  memcpy(npu_tensor(m, IO_INPUT, "pos"), &pos, sizeof pos);
  if (!npurt_run(m->npu, o->diag)) return false;
  memcpy(logits, npu_tensor(m, IO_OUTPUT, "logits"), logit_bytes);
  if (next) memcpy(next, npu_tensor(m, IO_OUTPUT, "next"), sizeof *next);
  return true;
}

/* ---- comparison ---- */

static double largest_error(const float *got, const float *want, int rows) {
  return tensor_error(DT_F32, got, want, (size_t)rows * VOCABULARY);
}

static int32_t best(const float *logits) {
  int32_t b = 0;
  for (int32_t i = 1; i < VOCABULARY; i++)
    if (logits[i] > logits[b]) b = i;
  return b;
}

static void judge(Oracle *o, const char *what, double error, double error_bound, int agree,
                  int least, int of) {
  bool ok = error <= error_bound && agree >= least;
  printf("%-34s largest error %.2g (bound %.2g), %d of %d tokens (at least %d)%s\n", what, error,
         error_bound, agree, of, least, ok ? "" : "  FAILED");
  o->failed |= !ok;
}

static void cannot(Oracle *o, const char *what) {
  printf("%s: FAILED\n", what);
  diag_print_all(o->diag, stderr, false);
  o->failed = true;
}

/* The first LOGITS tokens as one text. logits receives what came out. */
static void prefill(Oracle *o, const char *what, bool quantize, int mode, double bound, int least,
                    float *logits) {
  Machine m;
  if (!machine_new(&m, o, "prefill", quantize, mode)) {
    cannot(o, what);
    return;
  }
  int agree = 0;
  if (machine_run(&m, o, o->text, LOGITS, 0, logits, NULL)) {
    for (int i = 0; i < LOGITS; i++) agree += best(logits + i * VOCABULARY) == o->tokens[i];
    judge(o, what, largest_error(logits, o->logits, LOGITS), bound, agree, least, LOGITS);
  } else {
    cannot(o, what);
  }
  machine_free(&m);
}

/* Token by token, the model reading what it wrote (free) or the known text. */
static void step(Oracle *o, const char *what, bool quantize, int mode, bool free_running, int steps,
                 double bound, int least) {
  Machine m;
  if (!machine_new(&m, o, "step", quantize, mode)) {
    cannot(o, what);
    return;
  }
  float logits[VOCABULARY];
  int32_t token = BOS, next = -1;
  int agree = 0;
  double worst = 0;
  bool ok = true;
  for (int i = 0; ok && i < steps; i++) {
    ok = machine_run(&m, o, &token, 1, i, logits, &next);
    double e = ok && i < LOGITS ? largest_error(logits, o->logits + i * VOCABULARY, 1) : 0;
    if (!(e <= worst)) worst = e;
    agree += next == o->tokens[i];
    token = free_running ? next : o->tokens[i];
  }
  if (ok)
    judge(o, what, worst, bound, agree, least, steps);
  else
    cannot(o, what);
  machine_free(&m);
}

static void compare(Oracle *o) {
  static float host[LOGITS * VOCABULARY], fast[LOGITS * VOCABULARY], other[LOGITS * VOCABULARY];
  /* In f32 the logits, some tens in size, differ by rounding alone; every token must be right. */
  prefill(o, "prefill, f32, host", false, -1, 1e-4, LOGITS, host);
  prefill(o, "prefill, f32, simulated", false, NPURT_FAST, 1e-4, LOGITS, fast);
  prefill(o, "prefill, f32, simulated, check", false, NPURT_CHECK, 1e-4, LOGITS, other);
  if (memcmp(fast, other, sizeof fast) != 0) {
    printf("modes fast and check differ: FAILED\n");
    o->failed = true;
  }
  step(o, "step, f32, host", false, -1, true, STEPS, 1e-4, STEPS);
  step(o, "step, f32, simulated", false, NPURT_FAST, true, STEPS, 1e-4, STEPS);
  /* 8-bit weights and bf16 activations. */
  prefill(o, "prefill, 8-bit weights, simulated", true, NPURT_FAST, 0.6, LOGITS - 2, other);
  step(o, "step, 8-bit weights, simulated", true, NPURT_FAST, false, STEPS, 0.6, STEPS - 10);
}

/* ---- data ---- */

static const void *tensor(TensorFile *f, const char *name, DType dtype, size_t bytes,
                          DiagEngine *diag) {
  const TensorEntry *t = f ? tensor_file_find(f, name) : NULL;
  return t && t->dtype == dtype && t->bytes == bytes ? tensor_file_data(f, t, diag, SRC_LOC_NONE)
                                                     : NULL;
}

static bool load(Oracle *o, TensorFile *f) {
  static int32_t tokens[STEPS];
  static float logits[LOGITS * VOCABULARY];
  const void *t = tensor(f, "tokens", DT_S32, sizeof tokens, o->diag);
  const void *l = tensor(f, "logits", DT_F32, sizeof logits, o->diag);
  if (!t || !l) return false;
  memcpy(tokens, t, sizeof tokens);
  memcpy(logits, l, sizeof logits);
  o->tokens = tokens;
  o->logits = logits;
  o->text[0] = BOS;
  memcpy(o->text + 1, tokens, sizeof tokens - sizeof *tokens);
  return true;
}

static int run(const char *folder, const char *model) {
  Arena *a = arena_new();
  const char *answers = arena_printf(a, "%s/stories260K/greedy200.safetensors", folder);
  Oracle o = {.model = model,
              .weights = arena_printf(a, "%s/stories260K/stories260K.safetensors", folder),
              .diag = diag_new()};
  int code = 1;
  if (!file_exists(answers) || !file_exists(o.weights)) {
    printf("skipped: no stories260K/*.safetensors in %s; name their folder in NPUCC_SHARED\n",
           folder);
    code = SKIPPED;
  } else {
    TensorFile *f = tensor_file_open(answers, o.diag, SRC_LOC_NONE);
    if (load(&o, f)) {
      compare(&o);
      code = o.failed;
    } else {
      cannot(&o, "greedy200.safetensors: tokens s32[200], logits f32[32,512]");
    }
    tensor_file_close(f);
  }
  diag_free(o.diag);
  arena_free(a);
  return code;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fputs("usage: stories SOURCE_DIR MODEL.mdl\n", stderr);
    return 1;
  }
  const char *shared = getenv("NPUCC_SHARED");
  char folder[4096];
  if (shared)
    snprintf(folder, sizeof folder, "%s", shared);
  else
    snprintf(folder, sizeof folder, "%s/../shared/data", argv[1]);
  return run(folder, argv[2]);
}
