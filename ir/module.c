/* Modules and functions: creation, ownership, attached tensor files. */
#include "ir/internal.h"

#include <string.h>

IrModule *ir_module_new(DiagEngine *diag) {
  Arena *arena = arena_new();
  IrModule *m = ARENA_NEW(arena, IrModule);
  m->arena = arena;
  m->strings = str_table_new();
  m->diag = diag;
  m->impl = ARENA_NEW(arena, struct IrModuleImpl);
  return m;
}

void ir_module_free(IrModule *m) {
  if (!m) return;
  HASH_CLEAR(hh, m->impl->types);
  HASH_CLEAR(hh, m->impl->attrs);
  HASH_CLEAR(hh, m->impl->initializers);
  for (FileEntry *e = m->impl->files; e; e = e->next)
    if (!e->alias) tensor_file_close(e->file);
  str_table_free(m->strings);
  arena_free(m->arena);
}

const char *ir_str(IrModule *m, const char *s) {
  return str_intern(m->strings, s);
}

TensorFile *ir_module_file(IrModule *m, const char *path) {
  for (FileEntry *e = m->impl->files; e; e = e->next)
    if (!strcmp(e->alias ? e->alias : tensor_file_path(e->file), path)) return e->file;
  return NULL;
}

static void add_file(IrModule *m, TensorFile *f, const char *alias) {
  FileEntry *e = ARENA_NEW(m->arena, FileEntry);
  *e = (FileEntry){.alias = alias ? arena_strdup(m->arena, alias) : NULL, .file = f};
  FileEntry **end = &m->impl->files;
  while (*end) end = &(*end)->next;
  *end = e;
}

TensorFile *ir_module_attach(IrModule *m, TensorFile *f) {
  TensorFile *known = ir_module_file(m, tensor_file_path(f));
  if (known) {
    if (known != f) tensor_file_close(f);
    return known;
  }
  add_file(m, f, NULL);
  return f;
}

void module_attach_alias(IrModule *m, TensorFile *f, const char *alias) {
  if (!ir_module_file(m, alias)) add_file(m, f, alias);
}

IrFunc *ir_func_new(IrModule *m, const char *name, IrLevel level) {
  IrFunc *f = ARENA_NEW(m->arena, IrFunc);
  f->module = m;
  f->name = ir_str(m, name);
  f->level = level;
  f->body = block_new(m, f, NULL);
  int cap = capacity_for(m->nfuncs);
  if (m->nfuncs + 1 > cap || !m->funcs) {
    IrFunc **grown = ARENA_ARRAY(m->arena, IrFunc *, capacity_for(m->nfuncs + 1));
    if (m->nfuncs) memcpy(grown, m->funcs, sizeof *grown * (size_t)m->nfuncs);
    m->funcs = grown;
  }
  m->funcs[m->nfuncs++] = f;
  return f;
}

void ir_func_erase(IrFunc *f) {
  IrModule *m = f->module;
  for (int i = 0; i < m->nfuncs; i++) {
    if (m->funcs[i] != f) continue;
    memmove(&m->funcs[i], &m->funcs[i + 1], sizeof *m->funcs * (size_t)(m->nfuncs - i - 1));
    m->nfuncs--;
    return;
  }
}

const IrAttr *ir_func_attr(const IrFunc *f, const char *name) {
  return attrs_find(f->attrs, f->nattrs, name);
}

void ir_set_func_attr(IrFunc *f, const char *name, const IrAttr *value) {
  attrs_set(f->module, &f->attrs, &f->nattrs, name, value);
}

int capacity_for(int n) {
  int cap = 1;
  while (cap < n) cap *= 2;
  return cap;
}
