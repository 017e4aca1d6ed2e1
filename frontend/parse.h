/* From the text of one file to its syntax tree: scanner, line-end rule, parser. */
#ifndef NPU_FRONTEND_PARSE_H
#define NPU_FRONTEND_PARSE_H
#include "frontend/ast.h"

typedef struct {
  Arena *arena;      /* for nodes */
  StrTable *strings; /* for names */
  DiagEngine *diag;
} ParseContext;

/* Parses a file; false when something could not be parsed (reported). Whatever could be is in decls
 * all the same. *lost is set when a statement was dropped whose effects are unknown. label must
 * outlive the nodes. */
bool parse_file(const ParseContext *pc, const char *label, const char *text, size_t len,
                NodeList *decls, bool *lost);
#endif
