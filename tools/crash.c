/* See crash.h. What a handler of signals calls is only what POSIX lets it call. */
#include "tools/crash.h"
#include "tools/cli.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static PassWatch watch;

static const struct {
  int number;
  const char *what;
} signals[] = {{SIGSEGV, "segmentation fault"},
               {SIGBUS, "bus error"},
               {SIGFPE, "arithmetic exception"},
               {SIGILL, "illegal instruction"},
               {SIGABRT, "abort"}};

static void put(const char *text) {
  size_t len = strlen(text);
  while (len > 0) {
    ssize_t n = write(STDERR_FILENO, text, len);
    if (n <= 0) return;
    text += n;
    len -= (size_t)n;
  }
}

/* False when no pass was running. */
static bool explain(int number) {
  const char *what = "fatal signal", *pass = watch.pass, *function = watch.function;
  if (!pass) return false;
  for (size_t i = 0; i < NPU_COUNTOF(signals); i++)
    if (signals[i].number == number) what = signals[i].what;
  put("error: pass `");
  put(pass);
  put("` crashed");
  if (function) put(" on @");
  if (function) put(function);
  put(": ");
  put(what);
  put("; it is a mistake in the pass [E-internal]\n");
  if (watch.draft && rename(watch.draft, watch.reproducer) == 0) {
    put("note: ");
    put(watch.reproducer);
    put(" repeats it, its first line says how\n");
  }
  return true;
}

PassWatch *crash_watch(void) {
  cli_explain_crash(explain);
  return &watch;
}
