/* Construction of syntax trees. */
#include "frontend/ast.h"

Node *node_new(Arena *arena, NodeKind kind, SrcLoc loc) {
  Node *n = ARENA_NEW(arena, Node);
  n->kind = kind;
  n->loc = n->name_loc = loc;
  return n;
}

Node *node_named(Arena *arena, NodeKind kind, SrcLoc loc, const char *name) {
  Node *n = node_new(arena, kind, loc);
  n->name = name;
  return n;
}

Node *node_binary(Arena *arena, Operator op, Node *a, Node *b, SrcLoc loc) {
  Node *n = node_new(arena, NODE_BINARY, loc);
  n->op = op;
  n->a = a;
  n->b = b;
  return n;
}

Node *node_unary(Arena *arena, Operator op, Node *a, SrcLoc loc) {
  Node *n = node_new(arena, NODE_UNARY, loc);
  n->op = op;
  n->a = a;
  return n;
}

void node_append(NodeList *list, Node *item) {
  if (list->last)
    list->last->next = item;
  else
    list->first = item;
  list->last = item;
  list->n++;
}

const char *operator_spelling(Operator op) {
  static const char *const spelling[] = {
      [OP_ADD] = "+",   [OP_SUB] = "-",    [OP_MUL] = "*",   [OP_DIV] = "/",
      [OP_MOD] = "%",   [OP_MATMUL] = "@", [OP_EQ] = "==",   [OP_NE] = "!=",
      [OP_LT] = "<",    [OP_LE] = "<=",    [OP_GT] = ">",    [OP_GE] = ">=",
      [OP_AND] = "and", [OP_OR] = "or",    [OP_NOT] = "not", [OP_NEG] = "-"};
  return spelling[op];
}

SrcLoc loc_span(SrcLoc a, SrcLoc b) {
  a.end_line = b.end_line;
  a.end_col = b.end_col;
  return a;
}
