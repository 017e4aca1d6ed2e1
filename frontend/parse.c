/* Between scanner and parser: which line ends end a statement, what a syntax error says, and the
 * texts with {expressions} inside. */
#include "frontend/parse_internal.h"

#include <string.h>

#include "frontend/mdl.tab.h"

int mdl_yylex(MDL_YYSTYPE *value, SrcLoc *loc, Parser *p);
int mdl_yylex_init_extra(Parser *p, void **scanner);
int mdl_yylex_destroy(void *scanner);
void *mdl_yy_scan_bytes(const char *bytes, int len, void *scanner);
void parser_syntax_error(Parser *p, SrcLoc loc, int found, const char *found_name,
                         const char *const *expected, int nexpected, bool expression);

#define MAX_FILE (64 << 20)
#define MAX_TREE_BYTES (1u << 30) /* of all files together */

/* ---- errors ---- */

void parser_error(Parser *p, SrcLoc loc, const char *fmt, ...) {
  p->failed = true;
  if (loc.line == p->last_error.line && loc.col == p->last_error.col) return;
  p->last_error = loc;
  va_list ap;
  va_start(ap, fmt);
  diag_report(p->pc->diag, DIAG_ERROR, loc, "E-parse", fmt, ap);
  va_end(ap);
}

static bool listed(const char *name, const char *const *list, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(name, list[i]) == 0) return true;
  return false;
}

/* Tokens that begin an expression: said as "an expression". */
static const char *const starters[] = {"number",   "real number", "name",   "text",
                                       "`weight`", "`(`",         "`[`",    "`-`",
                                       "`not`",    "`true`",      "`false`"};
/* Tokens that could go on with an expression: true, but never what the reader forgot. */
static const char *const operators[] = {"`+`",  "`-`",   "`*`",  "`/`",  "`%`",  "`@`",
                                        "`<`",  "`>`",   "`==`", "`!=`", "`<=`", "`>=`",
                                        "`or`", "`and`", "`'`",  "`(`",  "`[`"};

static void describe_expected(StrBuf *b, const char *const *expected, int n, bool expression) {
  const char *kept[8];
  int k = 0;
  if (expression) kept[k++] = "an expression";
  for (int i = 0; i < n; i++) {
    bool drop = expression ? listed(expected[i], starters, NPU_COUNTOF(starters))
                           : listed(expected[i], operators, NPU_COUNTOF(operators));
    if (strcmp(expected[i], "`=`") == 0 && listed("`)`", expected, (size_t)n)) drop = true;
    if (strcmp(expected[i], "end of line") == 0 && listed("`model`", expected, (size_t)n))
      drop = true;
    if (drop || strcmp(expected[i], "end of file") == 0) continue;
    if (k < (int)NPU_COUNTOF(kept)) kept[k++] = expected[i];
  }
  if (expression && k > 4) k = 1;
  for (int i = 0; i < k; i++)
    strbuf_printf(b, "%s%s", i == 0 ? "expected " : i == k - 1 ? " or " : ", ", kept[i]);
}

static const char *misspelt_keyword(const Parser *p) {
  static const char *const words[] = {"model",  "fn",      "import", "const", "state",
                                      "weight", "weights", "for",    "else",  "return"};
  const char *tried[] = {p->prev_name, p->last_name};
  for (size_t i = 0; i < NPU_COUNTOF(tried); i++) {
    if (!tried[i] || strlen(tried[i]) < 2) continue;
    const char *near = str_nearest(tried[i], words, NPU_COUNTOF(words));
    if (near && str_distance(tried[i], near) <= strlen(near) / 3) return near;
  }
  return NULL;
}

/* The statement being read is dropped: what it names may have been defined in it. */
static void suspect_statement(Parser *p) {
  for (Node *n = p->line_names.first, *next; n; n = next) {
    next = n->next;
    n->next = NULL;
    node_append(&p->suspects, n);
  }
  p->line_names = (NodeList){0};
  p->dropping = p->last != TOK_END && p->last != '{';
}

/* Leaves all ( and [ opened since the last {. */
static void close_brackets(Parser *p) {
  while (p->open > 0 && p->stack[p->open - 1].token != '{') p->open--, p->orphans++;
}

void parser_syntax_error(Parser *p, SrcLoc loc, int found, const char *found_name,
                         const char *const *expected, int nexpected, bool expression) {
  /* Outside of all declarations one complaint is enough until the next one begins. */
  if ((p->between || p->torn) && listed("`model`", expected, (size_t)nexpected)) return;
  StrBuf text = {0};
  bool end = strcmp(found_name, "end of line") == 0 || found == 0 || p->last == TOK_MODEL ||
             p->last == TOK_FN || p->last == TOK_IMPORT;
  /* Where a statement could begin, of all that could come only the block's end is missing. */
  bool statement = listed("`return`", expected, (size_t)nexpected);
  if (!statement)
    describe_expected(&text, expected, nexpected, expression);
  else if (end)
    strbuf_puts(&text, "expected `}`");
  strbuf_printf(&text, "%s", text.len ? ", found " : "unexpected ");
  if (p->last == TOK_NAME && p->last_name)
    strbuf_printf(&text, "`%s`", p->last_name);
  else
    strbuf_puts(&text, p->last > TOK_END || !p->ended_by_file ? found_name
                       : p->expression                        ? "the closing `}`"
                                                              : "end of file");
  if (statement && listed(found_name, operators, NPU_COUNTOF(operators)))
    strbuf_puts(&text, "; to go on with the line before, put it at that line's end");
  const char *keyword = misspelt_keyword(p);
  if (keyword) strbuf_printf(&text, "; did you mean `%s`?", keyword);
  bool repeated = loc.line == p->last_error.line && loc.col == p->last_error.col;
  parser_error(p, loc, "%s", text.data);
  if (end && !repeated && p->open > 0) {
    const OpenBracket *o = &p->stack[p->open - 1];
    if (o->token != '{' || p->last != TOK_END || p->ended_by_file)
      diag_note(p->pc->diag, o->loc, "this `%c` is not closed", o->token);
  }
  strbuf_free(&text);
  close_brackets(p);
  suspect_statement(p);
}

/* ---- line ends ---- */

static bool in_brackets(const Parser *p) {
  return p->open > 0 && p->stack[p->open - 1].token != '{';
}

/* No statement ends with this token, so the next line goes on with it. */
static bool wants_more(int token) {
  switch (token) {
  case 0:
  case TOK_START_FILE:
  case TOK_END:
  case '{':
  case '(':
  case '[':
  case ',':
  case ':':
  case '+':
  case '-':
  case '*':
  case '/':
  case '%':
  case '@':
  case '<':
  case '>':
  case TOK_EQ:
  case TOK_NE:
  case TOK_LE:
  case TOK_GE:
  case TOK_AND:
  case TOK_OR:
  case TOK_NOT:
  case TOK_ARROW:
  case TOK_WITH:
  case TOK_IN:
  case TOK_DOTS: return true;
  default: return false;
  }
}

static bool ends_operand(int token) {
  switch (token) {
  case TOK_NAME:
  case TOK_INT:
  case TOK_REAL:
  case TOK_TEXT:
  case TOK_TRUE:
  case TOK_FALSE:
  case ')':
  case ']':
  case '\'': return true;
  default: return false;
  }
}

static bool is_keyword(int token) {
  switch (token) {
  case TOK_CONST:
  case TOK_STATE:
  case TOK_WEIGHTS:
  case TOK_FOR:
  case TOK_IF:
  case TOK_RETURN:
  case TOK_FN:
  case TOK_MODEL:
  case TOK_IMPORT: return true;
  default: return false;
  }
}

/* After an operand and a line end inside brackets, this can only be a new statement: a bracket is
 * missing. */
static bool starts_statement(int token) {
  switch (token) {
  case TOK_NAME:
  case TOK_INT:
  case TOK_REAL:
  case TOK_TEXT:
  case TOK_WEIGHT:
  case '}':
  case 0: return true;
  default: return is_keyword(token);
  }
}

static ReadToken scan(Parser *p) {
  ReadToken t = {0};
  if (p->nahead > 0) {
    t = p->ahead[0];
    p->nahead--;
    memmove(p->ahead, p->ahead + 1, (size_t)p->nahead * sizeof *p->ahead);
    return t;
  }
  MDL_YYSTYPE value = {0};
  t.token = mdl_scan(&value, &t.loc, p->scanner);
  if (t.token == 0) t.loc = (SrcLoc){p->label, p->line, p->col, p->line, p->col};
  memcpy(&t.value, &value, sizeof t.value);
  return t;
}

static void unread(Parser *p, ReadToken t) {
  memmove(p->ahead + 1, p->ahead, (size_t)p->nahead * sizeof *p->ahead);
  p->ahead[0] = t;
  p->nahead++;
}

static bool is_newline(ReadToken t) {
  return t.token == TOK_END && t.loc.end_line > t.loc.line;
}

/* The i-th token to come, line ends before the first one left out. */
static ReadToken peek(Parser *p, int i) {
  while (p->nahead <= i) {
    int n = p->nahead;
    ReadToken t;
    p->nahead = 0; /* scan past what is kept */
    do t = scan(p);
    while (n == 0 && is_newline(t));
    p->nahead = n;
    p->ahead[p->nahead++] = t;
  }
  return p->ahead[i];
}

/* Whether the line end that was just read ends a statement; what follows is left to be read. */
static bool newline_counts(Parser *p) {
  int next = peek(p, 0).token;
  if (in_brackets(p) && !wants_more(p->last))
    return ends_operand(p->last) && starts_statement(next);
  if (wants_more(p->last)) {
    /* `a +` and `b = 1` on the next line: something is missing here, not there. */
    bool fresh = p->last == TOK_START_FILE || p->last == TOK_END || p->last == '{';
    if (fresh || in_brackets(p) || p->last == TOK_WITH || p->last == ',') return false;
    return is_keyword(next) || (next == TOK_NAME && peek(p, 1).token == '=');
  }
  return next != '{' && next != TOK_ARROW && next != TOK_WITH && next != TOK_ELSE;
}

static void track_brackets(Parser *p, int token, SrcLoc loc) {
  if (token == '(' || token == '[' || token == '{') {
    if (p->open < MAX_OPEN)
      p->stack[p->open++] = (OpenBracket){token, loc};
    else
      p->too_deep = true;
  } else if (token == '}') {
    close_brackets(p);
    p->orphans = 0;
    if (p->open > 0) p->open--;
  } else if ((token == ')' || token == ']') && in_brackets(p))
    p->open--;
}

/* What a dropped statement may have defined is what it names. */
static void track_names(Parser *p, int token) {
  if (token == TOK_NAME) {
    Node *n = node_named(p->pc->arena, NODE_NAME, SRC_LOC_NONE, p->last_name);
    node_append(p->dropping ? &p->suspects : &p->line_names, n);
  } else if (token == TOK_END || token == '{') {
    p->line_names = (NodeList){0};
    p->dropping = false;
  }
}

static bool begins_declaration(int token) {
  return token == TOK_FN || token == TOK_MODEL || token == TOK_IMPORT;
}

/* What is handed on before a declaration: inside a block its `}`, which is missing; then a line's
 * end. */
static ReadToken end_declaration(Parser *p, ReadToken t) {
  close_brackets(p);
  if (p->open > 0) {
    parser_error(p, t.loc, "expected `}` before this declaration");
    diag_note(p->pc->diag, p->stack[p->open - 1].loc, "this `{` is not closed");
    p->torn = true;
  }
  unread(p, t);
  t.token = p->open > 0 ? '}' : TOK_END;
  return t;
}

int mdl_yylex(MDL_YYSTYPE *value, SrcLoc *loc, Parser *p) {
  int token;
  if (p->start_token) {
    token = p->start_token;
    p->start_token = 0;
    *loc = (SrcLoc){p->label, p->line, p->col, p->line, p->col};
    p->last = token == TOK_START_FILE ? token : TOK_INT;
    p->expression = token == TOK_START_EXPR;
    return token;
  }
  ReadToken t;
  for (;;) {
    t = scan(p);
    if (p->orphans > 0 && (t.token == ')' || t.token == ']') && !in_brackets(p)) {
      p->orphans--;
      continue;
    }
    if (!is_newline(t)) break;
    t.loc.end_line = t.loc.line, t.loc.end_col = t.loc.col + 1;
    if (!p->expression && newline_counts(p)) break;
  }
  if (begins_declaration(t.token) && (p->open > 0 || p->last == '}')) t = end_declaration(p, t);
  token = t.token;
  *loc = t.loc;
  memcpy(value, &t.value, sizeof t.value);
  /* A statement also ends before `}` and at the end of the file. */
  if ((token == '}' || token == 0) && !p->expression && p->last != TOK_END && p->last != '{' &&
      p->last != TOK_START_FILE) {
    p->ended_by_file = token == 0;
    unread(p, t);
    token = TOK_END;
  }
  if (token == 0) p->ended_by_file = true;
  track_brackets(p, token, *loc);
  if (p->too_deep) {
    parser_error(p, *loc, "this is nested too deeply: at most %d brackets may be open", MAX_OPEN);
    token = 0;
  }
  if (arena_bytes(p->pc->arena) > MAX_TREE_BYTES) {
    parser_error(p, *loc, "the model's text is too long: write what repeats with `for` and `fn`");
    token = 0;
  }
  p->prev_name = p->last == TOK_NAME ? p->last_name : NULL;
  p->last_name = token == TOK_NAME ? value->s : NULL;
  p->last = token;
  track_names(p, token);
  if (token == TOK_MDL_YYerror) suspect_statement(p), close_brackets(p);
  return token;
}

/* ---- pieces the grammar asks for ---- */

static bool parse(Parser *p, int start_token, const char *text, size_t len) {
  p->start_token = start_token;
  mdl_yylex_init_extra(p, &p->scanner);
  mdl_yy_scan_bytes(text, (int)len, p->scanner);
  p->aborted = mdl_yyparse(p) != 0;
  bool ok = !p->aborted && !p->failed;
  mdl_yylex_destroy(p->scanner);
  return ok;
}

/* The expression between braces at raw[at..end). */
static Node *text_expression(Parser *p, SrcLoc loc, const char *raw, size_t at, size_t end) {
  if (at == end) {
    parser_error(p, loc, "there is nothing between `{}` in this text; write `{{}}` for braces");
    return node_new(p->pc->arena, NODE_BROKEN, loc);
  }
  Parser *sub = mem_alloc(sizeof *sub);
  sub->pc = p->pc;
  sub->label = p->label;
  sub->line = loc.line;
  sub->col = loc.col + 1 + (uint32_t)at;
  if (!parse(sub, TOK_START_EXPR, raw + at, end - at)) {
    p->failed = true;
    sub->expr = node_new(p->pc->arena, NODE_BROKEN, loc);
  }
  Node *expr = sub->expr;
  for (Node *call = sub->calls.first, *next; call; call = next) {
    next = call->next;
    call->next = NULL;
    node_append(&p->calls, call);
  }
  mem_free(sub);
  return expr;
}

Node *parser_text(Parser *p, SrcLoc loc, const char *raw) {
  Node *text = node_new(p->pc->arena, NODE_TEXT, loc);
  bool failed = p->failed;
  p->failed = false;
  StrBuf part = {0};
  size_t len = strlen(raw);
  for (size_t i = 0; i < len; i++) {
    SrcLoc at = {loc.file, loc.line, loc.col + 1 + (uint32_t)i, loc.line,
                 loc.col + 2 + (uint32_t)i};
    char c = raw[i];
    if (c == '\\' && i + 1 < len) {
      char e = raw[++i];
      if (e == 'n' || e == 't')
        strbuf_putc(&part, e == 'n' ? '\n' : '\t');
      else if (e == '"' || e == '\\')
        strbuf_putc(&part, e);
      else
        parser_error(p, at, "unknown escape `\\%c`: there are \\\" \\\\ \\n \\t", e);
    } else if ((c == '{' || c == '}') && raw[i + 1] == c) {
      strbuf_putc(&part, c);
      i++;
    } else if (c == '{') {
      const char *close = strchr(raw + i, '}');
      if (!close) {
        parser_error(p, at, "this `{` is not closed; write `{{` for a brace itself");
        break;
      }
      if (part.len)
        node_append(&text->list, node_named(p->pc->arena, NODE_TEXT_PART, loc,
                                            arena_strndup(p->pc->arena, part.data, part.len)));
      part.len = 0;
      node_append(&text->list, text_expression(p, loc, raw, i + 1, (size_t)(close - raw)));
      i = (size_t)(close - raw);
    } else if (c == '}') {
      parser_error(p, at, "this `}` closes nothing; write `}}` for a brace itself");
    } else {
      strbuf_putc(&part, c);
    }
  }
  if (part.len)
    node_append(&text->list, node_named(p->pc->arena, NODE_TEXT_PART, loc,
                                        arena_strndup(p->pc->arena, part.data, part.len)));
  strbuf_free(&part);
  if (p->failed) text->kind = NODE_BROKEN;
  p->failed |= failed;
  return text;
}

Node *parser_call(Parser *p, Node *callee, NodeList args, SrcLoc loc) {
  Node *call = node_new(p->pc->arena, NODE_CALL, loc);
  Node *name = callee->kind == NODE_INDEX ? callee->a : callee;
  if (callee->kind == NODE_BROKEN) return callee;
  if (name->kind != NODE_NAME) {
    parser_error(p, callee->loc, "only a name can be called");
    call->kind = NODE_BROKEN;
    return call;
  }
  call->name = name->name;
  call->name_loc = name->loc;
  call->list = args;
  NODE_EACH(item, callee->kind == NODE_INDEX ? callee->list : (NodeList){0}) {
    if (item->kind == NODE_RANGE || item->kind == NODE_ELLIPSIS)
      parser_error(p, item->loc, "a compile-time argument is a value, not a range");
  }
  if (callee->kind == NODE_INDEX) call->list2 = callee->list;
  node_append(&p->calls, node_named(p->pc->arena, NODE_NAME, name->loc, name->name));
  return call;
}

bool parse_file(const ParseContext *pc, const char *label, const char *text, size_t len,
                Parsed *out) {
  Parser *p = mem_alloc(sizeof *p);
  p->pc = pc;
  p->label = label;
  p->line = p->col = 1;
  bool ok = false;
  if (len > MAX_FILE) {
    diag_error(pc->diag, (SrcLoc){label, 0, 0, 0, 0}, "E-limit",
               "a model file is at most 64 MiB, this one is %zu bytes", len);
  } else if (len && memchr(text, 0, len)) { /* or every line of it would be an error */
    diag_error(pc->diag, (SrcLoc){label, 0, 0, 0, 0}, "E-parse",
               "this is not text: models are written in the model language (.mdl)");
  } else {
    if (len >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0) text += 3, len -= 3;
    ok = parse(p, TOK_START_FILE, text, len);
  }
  *out = (Parsed){p->decls, p->suspects, p->aborted};
  mem_free(p);
  return ok;
}
