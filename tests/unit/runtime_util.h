/* For the tests of the runtime: programs from assembly text, loaded and run. */
#ifndef RUNTIME_UTIL_H
#define RUNTIME_UTIL_H
#include "runtime/npurt.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after the standard headers it needs */
#include <cmocka.h>

typedef struct {
  DiagEngine *diag;
  NpurtModel *m;
} Run;

static inline void show(const DiagEngine *d) {
  diag_print_all(d, stderr, false);
}

static inline void assemble(const char *text, IsaImage *img) {
  DiagEngine *d = diag_new();
  bool ok = isa_assemble(text, strlen(text), "test.s", img, d);
  if (!ok) show(d);
  assert_true(ok);
  diag_free(d);
}

/* `edge` without the limits that have an ideal value, data 100 cycles after the request. */
static inline const MachineDesc *plain_machine(void) {
  static MachineDesc m;
  DiagEngine *d = diag_new();
  assert_true(machine_load("edge,ideal,dram_latency_ns=100", &m, d));
  diag_free(d);
  return &m;
}

/* Assembles, writes, loads; without a machine of its own a text runs on plain_machine(). */
static inline Run load_with(const char *text, NpurtOptions o) {
  IsaImage img;
  if (!o.machine && !strstr(text, ".machine")) o.machine = plain_machine();
  assemble(text, &img);
  char path[] = "/tmp/npurt-test-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  Run r = {.diag = diag_new()};
  bool written = isa_image_write(&img, path, r.diag);
  if (written) r.m = npurt_load(path, &o, r.diag);
  if (!r.m) show(r.diag);
  unlink(path);
  isa_image_free(&img);
  assert_non_null(r.m);
  return r;
}

static inline Run load_text(const char *text, NpurtMode mode) {
  return load_with(text, (NpurtOptions){.mode = mode});
}

static inline void run_free(Run *r) {
  npurt_free(r->m);
  diag_free(r->diag);
}

static inline void run_ok(Run *r) {
  bool ok = npurt_run(r->m, r->diag);
  if (!ok) show(r->diag);
  assert_true(ok);
}

/* Some diagnostic with this code whose message holds the text. */
static inline bool has_diag(const Run *r, const char *code, const char *text) {
  for (size_t i = 0; i < diag_count(r->diag); i++) {
    const Diag *d = diag_get(r->diag, i);
    if (code && (!d->code || strcmp(d->code, code) != 0)) continue;
    if (strstr(d->message, text)) return true;
  }
  return false;
}

static inline void expect_fail(Run *r, const char *code, const char *text) {
  assert_false(npurt_run(r->m, r->diag));
  if (!has_diag(r, code, text)) show(r->diag);
  assert_true(has_diag(r, code, text));
}

static inline void *io_bytes(Run *r, IsaIoRole role, const char *name) {
  const IsaIo *io = npurt_find_io(r->m, role, name);
  assert_non_null(io);
  return npurt_io_data(r->m, io);
}
#endif
