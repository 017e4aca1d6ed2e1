/* The syntax tree of model files. One node type; what a kind uses of it is said beside the kind.
 * Nodes live in the arena of the Program that parsed them. */
#ifndef NPU_FRONTEND_AST_H
#define NPU_FRONTEND_AST_H
#include "support/support.h"

typedef enum {
  /* expressions */
  NODE_INT,       /* i */
  NODE_REAL,      /* r */
  NODE_BOOL,      /* i */
  NODE_TEXT,      /* list: TEXT_PART and expressions, joined when evaluated */
  NODE_TEXT_PART, /* name: the characters */
  NODE_NAME,      /* name */
  NODE_LIST,      /* list */
  NODE_UNARY,     /* op, a */
  NODE_BINARY,    /* op, a, b */
  NODE_TRANSPOSE, /* a */
  NODE_CALL,      /* name, name_loc; list: arguments; list2: compile-time arguments in [] */
  NODE_INDEX,     /* a; list: expressions, RANGE, ELLIPSIS */
  NODE_RANGE,     /* a : b : c, each may be NULL */
  NODE_ELLIPSIS,  /* */
  NODE_BROKEN,    /* stands where the text could not be parsed */
  /* parts */
  NODE_ARG,   /* call argument: name or NULL, a */
  NODE_DECL,  /* declared tensor: name, a: TYPE or NULL */
  NODE_PARAM, /* compile-time parameter: name, a: default or NULL */
  NODE_TYPE,  /* name: dtype; list: dims; i: 1 when there are brackets */
  NODE_HINT,  /* name; list: arguments; i: 1 once it has been warned about */
  /* statements */
  NODE_ASSIGN,  /* list: targets; list2: values */
  NODE_CONST,   /* name, a */
  NODE_STATE,   /* name, a: TYPE, b: initial value or NULL */
  NODE_WEIGHT,  /* name, a: TYPE, b: initializer */
  NODE_WEIGHTS, /* a: TEXT */
  NODE_FOR,     /* name, a: from or list, b: to or NULL, list: body */
  NODE_IF,      /* a, list: then, list2: else */
  NODE_RETURN,  /* list */
  NODE_HINTED,  /* list: hints, a: statement */
  NODE_EXPR,    /* list: values nobody uses: an error when run */
  /* declarations of a file (CONST and WEIGHTS too) */
  NODE_IMPORT, /* a: TEXT */
  NODE_FN, /* name, args, list2: PARAMs, outs, list: body, calls; i: 1 when its header is broken */
  NODE_MODEL, /* the same */
} NodeKind;

typedef enum {
  OP_ADD,
  OP_SUB,
  OP_MUL,
  OP_DIV,
  OP_MOD,
  OP_MATMUL,
  OP_EQ,
  OP_NE,
  OP_LT,
  OP_LE,
  OP_GT,
  OP_GE,
  OP_AND,
  OP_OR,
  OP_NOT,
  OP_NEG,
} Operator;

typedef struct Node Node;
typedef struct {
  Node *first, *last;
  size_t n;
} NodeList;

struct Node {
  NodeKind kind;
  Operator op;
  SrcLoc loc;
  SrcLoc name_loc;
  const char *name; /* interned, so that equal names are the same pointer; texts are not interned */
  int64_t i;
  double r;
  Node *a, *b, *c;
  NodeList list, list2, args, outs, calls;
  Node *next; /* in the one list it is in */
};

#define NODE_EACH(item, l) for (Node *item = (l).first; item; item = item->next)

Node *node_new(Arena *arena, NodeKind kind, SrcLoc loc);
Node *node_named(Arena *arena, NodeKind kind, SrcLoc loc, const char *name);
Node *node_binary(Arena *arena, Operator op, Node *a, Node *b, SrcLoc loc);
Node *node_unary(Arena *arena, Operator op, Node *a, SrcLoc loc);
void node_append(NodeList *list, Node *item);
const char *operator_spelling(Operator op);

/* The range from the start of a to the end of b. */
SrcLoc loc_span(SrcLoc a, SrcLoc b);
#endif
