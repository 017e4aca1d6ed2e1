/* Runs IR text files through passes: RUN: names the pipeline ("RUN: canonicalize,dce"), the printed
 * result is compared with the CHECK lines. Every pass is followed by the verifier, and the result
 * must read back to itself. */
#include "passes/passes.h"
#include "tests/support/textcheck.h"
#include "tools/hostrun.h"
#include <string.h>

static bool register_passes(PassManager *pm) {
  for (const Pass *const *p = builtin_passes; *p; p++)
    if (!pass_manager_register(pm, *p)) return false;
  return true;
}

static bool run_pipeline(IrModule *m, DiagEngine *diag, const char *pipeline) {
  HostRunner host = {.module = m, .machine = machine_default(), .diag = diag};
  PassManager *pm = pass_manager_new(m, host.machine);
  PassRunOptions options = {.verify_each = true, .stop_after = -1};
  pass_manager_set_host(pm, &host, hostrun_evaluate, hostrun_observe);
  bool ok = register_passes(pm) && pass_manager_add_pipeline(pm, pipeline) &&
            pass_manager_run(pm, &options);
  pass_manager_free(pm);
  return ok;
}

static bool reads_back(const TextCase *c, const StrBuf *text, DiagEngine *diag) {
  IrModule *m = ir_parse(text->data, text->len, c->path, diag);
  StrBuf again = {0};
  if (m) ir_print(m, &again, false);
  bool same = m && strcmp(again.data, text->data) == 0;
  strbuf_free(&again);
  ir_module_free(m);
  return same;
}

static bool run(const TextCase *c, DiagEngine *diag, StrBuf *output, StrBuf *why) {
  if (c->argc != 1) {
    strbuf_printf(why, "RUN: needs one pipeline\n");
    return false;
  }
  IrModule *m = ir_parse(c->text, c->len, c->path, diag);
  if (!m) return true; /* the file says which errors it expects */
  bool ok = true;
  if (ir_verify(m) && run_pipeline(m, diag, c->argv[0])) {
    ir_print(m, output, false);
    ok = reads_back(c, output, diag);
    if (!ok)
      strbuf_printf(why, "%s: the result does not read back to itself:\n%s", c->path, output->data);
  }
  ir_module_free(m);
  return ok;
}

int main(int argc, char **argv) {
  return textcheck_main(argc, argv, run);
}
