/* Loading: files, imports, the table of definitions, the recursion check. */
#include "frontend/program.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "frontend/parse.h"

#define MAX_IMPORT_DEPTH 64
#define MAX_CALL_CHAIN 100

typedef struct SourceFile {
  const char *path; /* as written, for messages */
  const char *real; /* without links and dots: files are loaded once */
  bool loading;
  SrcLoc imported_at;
  struct SourceFile *next, *importer;
} SourceFile;

static void load(Program *p, const char *path, const char *text, size_t len, SrcLoc at,
                 SourceFile *importer, int depth);

/* ---- definitions ---- */

Global *program_find(const Program *p, const char *name) {
  Global *g = NULL;
  HASH_FIND_PTR(p->globals, &name, g);
  return g;
}

static const char *kind_word(const Node *n) {
  return n->kind == NODE_CONST ? "constant" : n->kind == NODE_FN ? "function" : "model";
}

static void define(Program *p, const Node *decl) {
  Global *g = program_find(p, decl->name);
  if (g) {
    diag_error(p->diag, decl->name_loc, "E-duplicate", "`%s` is defined twice", decl->name);
    diag_note(p->diag, g->decl->name_loc, "the first definition, a %s, is here",
              kind_word(g->decl));
    p->failed = true;
    return;
  }
  g = ARENA_NEW(p->arena, Global);
  g->name = decl->name;
  g->decl = decl;
  HASH_ADD_PTR(p->globals, name, g);
}

static const char *plain_text(const Node *text) {
  if (text->list.n == 0) return "";
  if (text->list.n > 1 || text->list.first->kind != NODE_TEXT_PART) return NULL;
  return text->list.first->name;
}

/* ---- files ---- */

static void report_cycle(Program *p, SourceFile *f, SourceFile *from, SrcLoc at) {
  StrBuf b = {0};
  size_t n = 0;
  for (SourceFile *s = from; s; s = s->importer) {
    n++;
    if (s == f) break;
  }
  SourceFile **chain = ARENA_ARRAY(p->arena, SourceFile *, n);
  size_t i = n;
  for (SourceFile *s = from; i > 0; s = s->importer) chain[--i] = s;
  for (i = 0; i < n; i++) strbuf_printf(&b, "%s -> ", chain[i]->path);
  diag_error(p->diag, at, "E-import", "files import each other in a circle: %s%s",
             b.data ? b.data : "", f->path);
  for (i = 1; i < n; i++)
    diag_note(p->diag, chain[i]->imported_at, "`%s` is imported here", chain[i]->path);
  strbuf_free(&b);
  p->failed = true;
}

static void import(Program *p, const Node *decl, SourceFile *from, int depth) {
  if (decl->a->kind == NODE_BROKEN) { /* reported */
    p->lost = true;
    return;
  }
  const char *name = plain_text(decl->a);
  if (!name || !*name) {
    diag_error(p->diag, decl->a->loc, "E-import", "the file to import is written out, without {}");
    p->failed = true;
    return;
  }
  const char *path = path_beside(p->arena, from->path, name);
  load(p, path, NULL, 0, decl->loc, from, depth + 1);
}

static void parse_source(Program *p, SourceFile *f, const char *text, size_t len, int depth) {
  ParseContext pc = {p->arena, p->strings, p->diag};
  Parsed parsed;
  diag_add_source(p->diag, f->path, text, len);
  if (!parse_file(&pc, f->path, text, len, &parsed)) p->failed = true;
  p->lost |= parsed.aborted;
  for (Node *n = parsed.suspects.first, *next; n; n = next) {
    next = n->next;
    n->next = NULL;
    node_append(&p->suspects, n);
  }
  for (Node *d = parsed.decls.first, *next; d; d = next) {
    next = d->next;
    if (d->kind == NODE_IMPORT)
      import(p, d, f, depth);
    else if (d->kind == NODE_WEIGHTS) {
      d->next = NULL;
      node_append(&p->weights, d);
    } else
      define(p, d);
  }
}

static void load(Program *p, const char *path, const char *text, size_t len, SrcLoc at,
                 SourceFile *importer, int depth) {
  bool in_memory = text || strcmp(path, "-") == 0;
  char *real = in_memory ? NULL : path_real(p->arena, path);
  const char *key = real ? str_intern(p->strings, real) : path;
  for (SourceFile *s = p->files; s; s = s->next) {
    if (strcmp(s->real, key) != 0) continue;
    if (s->loading) report_cycle(p, s, importer, at);
    return;
  }
  if (depth > MAX_IMPORT_DEPTH) {
    diag_error(p->diag, at, "E-limit", "imports are nested more than %d deep", MAX_IMPORT_DEPTH);
    p->failed = true;
    return;
  }
  SourceFile *f = ARENA_NEW(p->arena, SourceFile);
  *f = (SourceFile){str_intern(p->strings, strcmp(path, "-") == 0 ? "<stdin>" : path),
                    key,
                    true,
                    at,
                    p->files,
                    importer};
  p->files = f;
  if (!importer) p->main_file = f->path;
  if (text) {
    parse_source(p, f, text, len, depth);
  } else {
    FileMap map;
    const char *why = NULL;
    if (diag_map_file(p->diag, path, &map, &why)) {
      parse_source(p, f, (const char *)map.data, map.size, depth);
      file_unmap(&map);
    } else {
      diag_error(p->diag, at, importer ? "E-import" : "E-file", "cannot read '%s': %s", f->path,
                 why);
      p->failed = p->lost = true;
    }
  }
  f->loading = false;
}

void program_load(Program *p, const char *path, const char *text, size_t len) {
  load(p, path, text, len, SRC_LOC_NONE, NULL, 0);
}

void program_free(Program *p) {
  HASH_CLEAR(hh, p->globals);
}

bool program_may_define(const Program *p, const char *name) {
  if (p->lost) return true;
  NODE_EACH(n, p->suspects) if (n->name == name) return true;
  return false;
}

/* ---- recursion ---- */

static void report_recursion(Program *p, Global *start, const Global *end, const Node *call) {
  StrBuf b = {0};
  Global *g = start;
  for (;;) {
    strbuf_printf(&b, "%s -> ", g->name);
    g->recursive = true;
    if (g == end) break;
    g = program_find(p, g->called_at->name);
  }
  diag_error(p->diag, call->loc, "E-recursion", "functions may not call themselves: %s%s", b.data,
             start->name);
  for (g = start; g != end; g = program_find(p, g->called_at->name))
    diag_note(p->diag, g->called_at->loc, "`%s` calls `%s` here", g->name, g->called_at->name);
  strbuf_free(&b);
}

static void visit(Program *p, Global *g, int depth) {
  g->mark = 1;
  if (depth > MAX_CALL_CHAIN) {
    diag_error(p->diag, g->decl->name_loc, "E-limit", "functions call each other more than %d deep",
               MAX_CALL_CHAIN);
    g->recursive = true;
    g->mark = 2;
    return;
  }
  NODE_EACH(call, g->decl->calls) {
    Global *callee = program_find(p, call->name);
    if (!callee || callee->decl->kind != NODE_FN) continue;
    g->called_at = call;
    if (callee->mark == 0)
      visit(p, callee, depth + 1);
    else if (callee->mark == 1 && !callee->recursive)
      report_recursion(p, callee, g, call);
  }
  g->mark = 2;
}

void program_check_recursion(Program *p) {
  for (Global *g = p->globals; g; g = g->hh.next)
    if (g->decl->kind == NODE_FN && g->mark == 0) visit(p, g, 0);
}

/* ---- choice of the model ---- */

const Node *program_model(Program *p, const char *name) {
  const Node *last = NULL, *chosen = NULL;
  const char **names = ARENA_ARRAY(p->arena, const char *, HASH_COUNT(p->globals) + 1);
  size_t n = 0;
  for (Global *g = p->globals; g; g = g->hh.next) {
    if (g->decl->kind != NODE_MODEL) continue;
    names[n++] = g->name;
    if (name && strcmp(g->name, name) == 0) chosen = g->decl;
    if (strcmp(g->decl->loc.file, p->main_file) == 0) last = g->decl;
  }
  SrcLoc file = {p->main_file, 0, 0, 0, 0};
  if (name && chosen) return chosen;
  if (name && !p->failed) {
    const char *near = str_nearest(name, names, n);
    if (near)
      diag_error(p->diag, file, "E-model", "there is no model `%s`; did you mean `%s`?", name,
                 near);
    else
      diag_error(p->diag, file, "E-model", "there is no model `%s` in this file", name);
  }
  if (name) return NULL;
  if (!last && !p->failed)
    diag_error(p->diag, file, "E-model",
               "this file has no model; one begins `model name(input: f32[1, 4]) -> (output: "
               "f32[1, 2]) {`");
  return last;
}
