/* npu-diff: compares the tensors of two files within tolerances. */
#include <string.h>

#include "support/tensorfile.h"
#include "tools/cli.h"
#include "tools/difference.h"

enum { OPT_RTOL = 1, OPT_ATOL, OPT_NAN, OPT_QUIET };
static const CliOption options[] = {
    {OPT_RTOL, 0, "rtol", "R", "allow a difference of R times the second file's value (default 0)"},
    {OPT_ATOL, 0, "atol", "A", "allow a difference of A, added to that of --rtol (default 0)"},
    {OPT_NAN, 0, "equal-nan", NULL, "NaN equals NaN"},
    {OPT_QUIET, 'q', "quiet", NULL, "print nothing about tensors that are equal"},
    {0},
};
static const CliCommand command = {
    .usage = "npu-diff [options] A B",
    .about =
        "Compares the tensors of two files (.npy, .npz or .safetensors) by name: elements differ\n"
        "when |a - b| > A + R * |b|. Infinities equal themselves, NaN nothing. The array of an\n"
        ".npy file is compared with the one tensor of the other file. A tensor that only one\n"
        "file has is a difference.",
    .compares = true,
    .more = "  npu-diff expected.npz got.npz --rtol 1e-3 --atol 1e-6\n",
};

typedef struct {
  Tolerance tolerance;
  bool quiet;
} Options;

/* ---- one tensor ---- */

static void put_index(const TensorEntry *t, size_t at, StrBuf *out) {
  size_t index[TENSOR_MAX_RANK];
  for (int d = t->rank - 1; d >= 0; d--) {
    index[d] = at % (size_t)t->shape[d];
    at /= (size_t)t->shape[d];
  }
  strbuf_putc(out, '[');
  for (int d = 0; d < t->rank; d++) strbuf_printf(out, d ? ", %zu" : "%zu", index[d]);
  strbuf_putc(out, ']');
}

static const char *shown(const TensorEntry *t) {
  return *t->name ? t->name : "the array";
}

static void put_difference(const Options *o, const TensorEntry *t, const Difference *d,
                           StrBuf *out) {
  if (o->quiet && !d->differing) return;
  strbuf_printf(out, "%s: %s, %zu of %zu differ, max abs %.6g, max rel %.6g, rms %.6g", shown(t),
                d->differing ? "DIFFERENT" : "equal", d->differing, d->n, d->max_abs, d->max_rel,
                difference_rms(d));
  if (d->differing) {
    strbuf_puts(out, ", first at ");
    put_index(t, d->first, out);
    strbuf_printf(out, ": %.9g and %.9g", d->a, d->b);
  }
  strbuf_putc(out, '\n');
}

static bool same_shape(const TensorEntry *a, const TensorEntry *b) {
  return a->rank == b->rank && memcmp(a->shape, b->shape, (size_t)a->rank * sizeof *a->shape) == 0;
}

static void put_shape(const TensorEntry *t, StrBuf *out) {
  strbuf_printf(out, "%s[", dtype_name(t->dtype));
  for (int d = 0; d < t->rank; d++)
    strbuf_printf(out, d ? ",%lld" : "%lld", (long long)t->shape[d]);
  strbuf_putc(out, ']');
}

/* False after a diagnostic; *equal only ever becomes false. */
static bool compare(const Options *o, TensorFile *fa, TensorFile *fb, const TensorEntry *a,
                    const TensorEntry *b, DiagEngine *diag, StrBuf *out, bool *equal) {
  if (!same_shape(a, b)) {
    strbuf_printf(out, "%s: DIFFERENT, ", shown(a));
    put_shape(a, out);
    strbuf_puts(out, " and ");
    put_shape(b, out);
    strbuf_putc(out, '\n');
    *equal = false;
    return true;
  }
  const void *x = tensor_file_data(fa, a, diag, SRC_LOC_NONE);
  const void *y = x ? tensor_file_data(fb, b, diag, SRC_LOC_NONE) : NULL;
  if (!y) return false;
  Difference d =
      difference_of(&o->tolerance, a->dtype, x, b->dtype, y, a->bytes / dtype_size(a->dtype));
  put_difference(o, a, &d, out);
  *equal = *equal && d.differing == 0;
  return true;
}

/* ---- all tensors ---- */

/* The array of an .npy file goes with the only tensor of the other file. */
static const TensorEntry *partner(TensorFile *other, const TensorFile *own, const TensorEntry *t) {
  const TensorEntry *found = tensor_file_find(other, t->name);
  bool only = tensor_file_count(other) == 1 && tensor_file_count(own) == 1;
  const TensorEntry *single = only ? tensor_file_at(other, 0) : NULL;
  return found || !single || (*t->name && *single->name) ? found : single;
}

static bool compare_files(const Options *o, TensorFile *a, TensorFile *b, DiagEngine *diag,
                          StrBuf *out, bool *equal) {
  for (size_t i = 0; i < tensor_file_count(a); i++) {
    const TensorEntry *t = tensor_file_at(a, i), *u = partner(b, a, t);
    if (u && !compare(o, a, b, t, u, diag, out, equal)) return false;
    if (u) continue;
    strbuf_printf(out, "%s: only in %s\n", shown(t), tensor_file_path(a));
    *equal = false;
  }
  for (size_t i = 0; i < tensor_file_count(b); i++) {
    const TensorEntry *t = tensor_file_at(b, i);
    if (partner(a, b, t)) continue;
    strbuf_printf(out, "%s: only in %s\n", shown(t), tensor_file_path(b));
    *equal = false;
  }
  return true;
}

static bool run(const Options *o, char **files, DiagEngine *diag, bool *equal) {
  TensorFile *a = tensor_file_open(files[0], diag, SRC_LOC_NONE);
  TensorFile *b = a ? tensor_file_open(files[1], diag, SRC_LOC_NONE) : NULL;
  StrBuf out = {0};
  bool ok = b && compare_files(o, a, b, diag, &out, equal);
  if (ok && out.len) ok = cli_write(NULL, &out, diag);
  strbuf_free(&out);
  tensor_file_close(a);
  tensor_file_close(b);
  return ok;
}

static bool take_option(Cli *cli, int id, const char *value, Options *o) {
  switch (id) {
  case OPT_RTOL: return cli_tolerance(cli, "--rtol", value, &o->tolerance.rtol);
  case OPT_ATOL: return cli_tolerance(cli, "--atol", value, &o->tolerance.atol);
  case OPT_NAN: o->tolerance.equal_nan = true; break;
  case OPT_QUIET: o->quiet = true; break;
  }
  return true;
}

int main(int argc, char **argv) {
  Cli *cli = cli_new(&command, options, argc, argv);
  Options o = {0};
  const char *value;
  char **files;
  int id;
  bool ok = true, equal = true;
  while (ok && (id = cli_next(cli, &value)) != CLI_END && id != CLI_DONE)
    ok = id != CLI_ERROR && take_option(cli, id, value, &o);
  if (ok && id == CLI_END)
    ok = cli_positionals(cli, &files) == 2 ? run(&o, files, cli_diag(cli), &equal)
                                           : cli_error(cli, "give two files to compare");
  /* As diff(1): a difference is 1, so what keeps from comparing is 2. */
  int status = cli_status(cli, ok);
  if (status == CLI_FAILED) status = CLI_USAGE;
  cli_free(cli);
  if (ok && !equal) status = CLI_FAILED;
  return status;
}
