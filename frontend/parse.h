/* From the text of one file to its syntax tree: scanner, line-end rule, parser. */
#ifndef NPU_FRONTEND_PARSE_H
#define NPU_FRONTEND_PARSE_H
#include "frontend/ast.h"

typedef struct {
  Arena *arena;      /* for nodes */
  StrTable *strings; /* for names */
  DiagEngine *diag;
} ParseContext;

typedef struct {
  NodeList decls;    /* what could be parsed */
  NodeList suspects; /* names of statements that could not: they may have been defined there */
  bool aborted;      /* the rest of the file is missing */
} Parsed;

/* Parses a file; false when something could not be parsed (reported). label must outlive the nodes.
 */
bool parse_file(const ParseContext *pc, const char *label, const char *text, size_t len,
                Parsed *out);
#endif
