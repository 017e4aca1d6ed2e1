/* What the generated scanner and parser share with parse.c. */
#ifndef NPU_FRONTEND_PARSE_INTERNAL_H
#define NPU_FRONTEND_PARSE_INTERNAL_H
#include "frontend/parse.h"

#define MAX_OPEN 256 /* brackets open at once */

typedef struct {
  int token; /* '(' '[' '{' */
  SrcLoc loc;
} OpenBracket;

typedef struct {
  int token;
  SrcLoc loc;
  union {
    int64_t i;
    double r;
    const char *s;
  } value;
} ReadToken;

typedef struct Parser {
  const ParseContext *pc;
  const char *label;
  void *scanner;
  uint32_t line, col; /* scanner's position */
  int start_token;    /* given to the parser first; 0 once given */
  /* line-end rule */
  int last;                          /* last token handed to the parser */
  const char *last_name, *prev_name; /* text of the last token and of the one before, when names */
  bool ended_by_file;                /* the end of the file was reached */
  bool expression;                   /* parsing one expression, not a file */
  ReadToken ahead[4];                /* read but not handed on yet */
  int nahead;
  int open;
  OpenBracket stack[MAX_OPEN];
  /* results */
  NodeList decls;
  Node *expr;     /* of an expression parse */
  NodeList calls; /* calls met since the last declaration */
  SrcLoc last_error;
  NodeList line_names; /* names since the statement began */
  NodeList suspects;   /* names of statements that were dropped: they may have been defined there */
  bool dropping;
  int orphans;  /* brackets closed by force: their closing ones may still come */
  bool between; /* in text no declaration could be made of, reported */
  bool torn;    /* a block was ended by force: its rest stands outside of all declarations */
  bool failed, aborted, too_deep;
} Parser;

/* A diagnostic of the parser: at most one per place. */
void parser_error(Parser *p, SrcLoc loc, const char *fmt, ...) NPU_PRINTF(3, 4);
/* Splits a text token at its {expressions}. */
Node *parser_text(Parser *p, SrcLoc loc, const char *raw);
/* A call, from callee (a name, or a name with [compile-time arguments]) and arguments. */
Node *parser_call(Parser *p, Node *callee, NodeList args, SrcLoc loc);
#endif
