/* Runs .mdl test files: graph IR or diagnostics against the expectations in the file. RUN: -D N=8,
 * --model NAME,
 * --weights FILE (beside the test file), --locations. */
#include <string.h>

#include "frontend/frontend.h"
#include "tests/support/textcheck.h"

typedef struct {
  Arena *arena;
  MdlDefine defines[8];
  const char *weights[8], *settings[8];
  MdlOptions options;
  bool locations;
} Arguments;

static bool parse_arguments(const TextCase *c, Arguments *a, StrBuf *why) {
  a->options.defines = a->defines;
  a->options.weight_files = a->weights;
  a->options.settings = a->settings;
  for (int i = 0; i < c->argc; i++) {
    const char *arg = c->argv[i], *value = i + 1 < c->argc ? c->argv[i + 1] : "";
    if (strcmp(arg, "--locations") == 0) {
      a->locations = true;
      continue;
    }
    i++;
    if (strcmp(arg, "-D") == 0) {
      const char *eq = strchr(value, '=');
      MdlDefine *d = &a->defines[a->options.ndefines++ % 8];
      if (!eq || !parse_i64(eq + 1, &d->value)) return false;
      d->name = arena_strndup(a->arena, value, (size_t)(eq - value));
    } else if (strcmp(arg, "--set") == 0) {
      a->settings[a->options.nsettings++ % 8] = value;
    } else if (strcmp(arg, "--model") == 0) {
      a->options.model = value;
    } else if (strcmp(arg, "--weights") == 0) {
      a->weights[a->options.nweight_files++ % 8] = path_beside(a->arena, c->path, value);
    } else {
      strbuf_printf(why, "unknown argument %s\n", arg);
      return false;
    }
  }
  return true;
}

/* The text of a good module is read back to the same text. */
static bool round_trip(const TextCase *c, const StrBuf *text, DiagEngine *diag, StrBuf *why) {
  StrBuf again = {0};
  IrModule *m = ir_parse(text->data, text->len, c->path, diag);
  if (m) ir_print(m, &again, false);
  bool same = m && strcmp(text->data, again.data) == 0;
  if (!same)
    strbuf_printf(why, "%s: the IR text does not read back to itself:\n%s\n", c->path,
                  again.data ? again.data : "");
  strbuf_free(&again);
  ir_module_free(m);
  return same;
}

static bool run(const TextCase *c, DiagEngine *diag, StrBuf *output, StrBuf *why) {
  Arguments a = {.arena = arena_new()};
  bool ok = parse_arguments(c, &a, why);
  IrModule *m = ok ? mdl_read(c->path, &a.options, diag) : NULL;
  if (m) {
    StrBuf plain = {0};
    if (!ir_verify(m)) {
      strbuf_printf(why, "%s: the graph is not valid\n", c->path);
      ok = false;
    }
    ir_print(m, &plain, false);
    ok &= round_trip(c, &plain, diag, why);
    ir_print(m, output, a.locations);
    strbuf_free(&plain);
  } else if (ok && diag_errors(diag) == 0) {
    strbuf_printf(why, "%s: no module and no error\n", c->path);
    ok = false;
  }
  ir_module_free(m);
  arena_free(a.arena);
  return ok;
}

int main(int argc, char **argv) {
  return textcheck_main(argc, argv, run);
}
