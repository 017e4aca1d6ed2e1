/* Private to the parser of IR text: tokens and what its files share. */
#ifndef NPU_IR_PARSE_H
#define NPU_IR_PARSE_H
#include "ir/internal.h"

#define PARSE_MAX_DEPTH 64 /* of nested lists and regions */

typedef enum { TOK_END, TOK_WORD, TOK_NUMBER, TOK_STRING, TOK_ARROW, TOK_PUNCT, TOK_BAD } TokenKind;

typedef struct {
  TokenKind kind;
  const char
      *text; /* in the input; of a string without its quotes, escapes undone at string_value */
  size_t len;
  char punct;
  uint32_t line, col;
} Token;

typedef struct Lexer {
  const char *text;
  size_t len, pos;
  uint32_t line;
  size_t line_start;
} Lexer;
Token lex_next(Lexer *l);

typedef struct Name { /* a value in scope */
  UT_hash_handle hh;
  IrValue *value;
  SrcLoc loc;
  char text[]; /* "%0" for numbers, the bare hint otherwise */
} Name;

typedef struct ParseScope {
  Name *names;
  struct ParseScope *outer; /* NULL at a function and at a kernel body: nothing outside is seen */
  bool kernel;
} ParseScope;

typedef struct {
  IrModule *m;
  DiagEngine *diag;
  const char *file; /* interned label */
  Lexer lex;
  Token tok; /* the next one */
  ParseScope *scope;
  int ndims; /* of the kernel whose attributes are being read, -1: none */
  const char *dims[IR_MAX_DIMS];
  StrBuf scratch;
  bool failed; /* reported: everything returns quickly from now on */
} Parser;

void advance(Parser *p);
SrcLoc token_loc(const Parser *p, const Token *t);
/* Reports once per parse and returns false; `wanted` starts "expected ...". */
bool parse_error(Parser *p, SrcLoc loc, const char *code, const char *fmt, ...) NPU_PRINTF(4, 5);
bool expected(Parser *p, const char *what);
bool at_punct(const Parser *p, char c);
bool at_word(const Parser *p, const char *word);
bool take_punct(Parser *p, char c); /* false, silently, when it is not next */
bool need_punct(Parser *p, char c);
/* The interned value of a string token (which must be next), or NULL after an error. */
const char *string_value(Parser *p);
/* A word or a string. */
const char *name_value(Parser *p, const char *what);
bool need_uint(Parser *p, uint64_t max, uint64_t *out);

const IrType *parse_type(Parser *p);
bool parse_loc(Parser *p, SrcLoc *loc); /* *loc stays as it is when no place is next */
bool parse_args(Parser *p, IrBlock *b);
bool parse_attrs(Parser *p, IrOp *op, IrFunc *f); /* of op, or of f when op is NULL */
bool parse_block(Parser *p, IrBlock *b, int depth);
/* Forgets the names of s and goes back to the scope before it. */
void scope_leave(Parser *p, ParseScope *s, ParseScope *back);
const IrAttr *parse_attr(Parser *p, int depth);
IrValue *parse_operand(Parser *p);                          /* NULL after an error */
bool parse_int(Parser *p, int64_t *out);                    /* with or without a sign */
bool parse_literal(Parser *p, bool negative, int64_t *out); /* a sign has been read */
/* The text form of a program op, with at most its first operand read; *form is false, and nothing
 * has been read, when it is written like other ops. */
bool parse_form(Parser *p, IrOp *op, bool *form);
/* Reads ahead for `dims`, so that maps can use its names wherever they stand; then returns to where
 * it was. */
void find_dim_names(Parser *p);
#endif
