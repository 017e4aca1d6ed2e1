/* Where a model's outputs go; see outputs.h. */
#include "tools/outputs.h"

#include <string.h>

/* One file with some of the outputs. */
typedef struct {
  char *path;
  int *ports;
  char **names; /* of the tensors in the file */
  size_t n;
} OutputFile;

struct OutputPlan {
  Arena *arena;
  OutputFile *files;
  size_t nfiles;
  const ModelPort *ports;
  int nports;
};

static bool output_error(DiagEngine *diag, const char *fmt, ...) NPU_PRINTF(2, 3);
static bool output_error(DiagEngine *diag, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  diag_report(diag, DIAG_ERROR, SRC_LOC_NONE, "E-output", fmt, ap);
  va_end(ap);
  return false;
}

static OutputFile *file_of(OutputPlan *p, const char *path) {
  for (size_t i = 0; i < p->nfiles; i++)
    if (strcmp(p->files[i].path, path) == 0) return &p->files[i];
  p->files = mem_realloc(p->files, (p->nfiles + 1) * sizeof *p->files);
  OutputFile *f = &p->files[p->nfiles++];
  *f = (OutputFile){.path = arena_strdup(p->arena, path)};
  return f;
}

static void file_add(OutputPlan *p, OutputFile *f, int port, const char *name) {
  f->ports = mem_realloc(f->ports, (f->n + 1) * sizeof *f->ports);
  f->names = mem_realloc(f->names, (f->n + 1) * sizeof *f->names);
  f->ports[f->n] = port;
  f->names[f->n++] = arena_strdup(p->arena, name);
}

static bool known_ending(const char *path) {
  return str_ends_with(path, ".npy") || str_ends_with(path, ".npz") ||
         str_ends_with(path, ".safetensors");
}

static bool unknown_output(const OutputPlan *p, const char *spec, size_t len, DiagEngine *diag) {
  StrBuf have = {0};
  for (int i = 0; i < p->nports; i++)
    strbuf_printf(&have, "%s'%s'", i ? ", " : "", p->ports[i].name);
  output_error(diag, "the model has no output '%.*s'; it has %s (a file of this name is './%s')",
               (int)len, spec, have.len ? have.data : "none", spec);
  strbuf_free(&have);
  return false;
}

/* "name=file[:tensor]" or "file"; a `/` before the `=` makes it a part of the file's name. */
static bool add_spec(OutputPlan *p, const char *spec, DiagEngine *diag) {
  size_t len = strcspn(spec, "=/");
  if (spec[len] != '=') {
    OutputFile *f = file_of(p, spec);
    for (int i = 0; i < p->nports; i++) file_add(p, f, i, p->ports[i].name);
    return true;
  }
  for (int i = 0; i < p->nports; i++) {
    const char *name = p->ports[i].name;
    if (strlen(name) != len || memcmp(name, spec, len) != 0) continue;
    char *path = arena_strdup(p->arena, spec + len + 1), *colon = strrchr(path, ':');
    bool named = false;
    if (colon && !known_ending(path)) {
      *colon = 0;
      named = known_ending(path);
      if (!named) *colon = ':';
    }
    file_add(p, file_of(p, path), i, named ? colon + 1 : name);
    return true;
  }
  return unknown_output(p, spec, len, diag);
}

/* What would only be found when writing, after a long run. */
static bool check_file(const OutputPlan *p, const OutputFile *f, DiagEngine *diag) {
  if (!known_ending(f->path))
    return output_error(diag, "output file '%s' must end in .npy, .npz or .safetensors", f->path);
  if (str_ends_with(f->path, ".npy") && f->n != 1)
    return output_error(diag,
                        "'%s' would have to hold %zu tensors: .npy holds one; use .npz or "
                        ".safetensors",
                        f->path, f->n);
  for (size_t i = 0; i < f->n; i++)
    if (p->ports[f->ports[i]].dtype == DT_BF16 && !str_ends_with(f->path, ".safetensors"))
      return output_error(diag,
                          "output '%s' is bf16, a type numpy lacks; write a .safetensors file "
                          "instead of '%s'",
                          p->ports[f->ports[i]].name, f->path);
  const char *why;
  if (!diag_writes(diag, "--output", f->path)) return false;
  if (file_can_write(f->path, &why)) return true;
  diag_error(diag, SRC_LOC_NONE, "E-file", "cannot write '%s': %s", f->path, why);
  return false;
}

OutputPlan *outputs_plan(const ModelPort *ports, int nports, const char *const *specs, int nspecs,
                         DiagEngine *diag) {
  OutputPlan *p = mem_alloc(sizeof *p);
  *p = (OutputPlan){.arena = arena_new(), .ports = ports, .nports = nports};
  bool ok = true;
  for (int i = 0; ok && i < nspecs; i++) ok = add_spec(p, specs[i], diag);
  for (size_t i = 0; ok && i < p->nfiles; i++) ok = check_file(p, &p->files[i], diag);
  if (ok) return p;
  outputs_free(p);
  return NULL;
}

void outputs_free(OutputPlan *p) {
  if (!p) return;
  for (size_t i = 0; i < p->nfiles; i++) {
    mem_free(p->files[i].ports);
    mem_free(p->files[i].names);
  }
  mem_free(p->files);
  arena_free(p->arena);
  mem_free(p);
}

bool outputs_write(const OutputPlan *p, const TensorEntry *tensors, DiagEngine *diag) {
  bool all = true; /* one that fails takes no other with it */
  for (size_t i = 0; i < p->nfiles; i++) {
    const OutputFile *f = &p->files[i];
    TensorEntry *list = mem_alloc(f->n * sizeof *list);
    for (size_t k = 0; k < f->n; k++) {
      list[k] = tensors[f->ports[k]];
      list[k].name = f->names[k];
    }
    all = tensor_file_write(f->path, list, f->n, diag) && all;
    mem_free(list);
  }
  return all;
}
