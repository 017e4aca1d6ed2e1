/* A model file with everything it imports: the table of constants, functions and models. */
#ifndef NPU_FRONTEND_PROGRAM_H
#define NPU_FRONTEND_PROGRAM_H
#include "frontend/ast.h"
#include "frontend/value.h"

#include <stdlib.h>

#include "support/ptrmap.h"

typedef struct Global {
  const char *name;           /* interned: the key is the pointer */
  const Node *decl;           /* NODE_CONST, NODE_FN or NODE_MODEL */
  bool evaluating, evaluated; /* constants */
  Value value;
  int mark; /* recursion check: 0 new, 1 on the path, 2 done */
  bool recursive;
  const Node *called_at; /* recursion check: the call that leads on along the path */
  UT_hash_handle hh;
} Global;

typedef struct {
  Arena *arena;
  StrTable *strings;
  DiagEngine *diag;
  Global *globals;  /* uthash, in order of definition */
  NodeList weights; /* NODE_WEIGHTS of files, in order */
  const char *main_file;
  bool failed;       /* some text could not be parsed or imported */
  bool lost;         /* and definitions may be missing because of it */
  NodeList suspects; /* names in statements that were dropped */
  struct SourceFile *files;
} Program;

/* Reads path ("-": standard input), or text when it is not NULL, and what it imports. */
void program_load(Program *p, const char *path, const char *text, size_t len);
void program_free(Program *p);
/* Whether a text that could not be read may have defined name. */
bool program_may_define(const Program *p, const char *name);
Global *program_find(const Program *p, const char *name);
/* Reports every cycle of functions calling each other and marks its members. */
void program_check_recursion(Program *p);
/* The model called name, or the only or last one of the main file; NULL after reporting. */
const Node *program_model(Program *p, const char *name);
#endif
