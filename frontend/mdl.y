/* Grammar of model files. The scanner's line ends reach this grammar only where they end a statement
 * (parse.c); a statement that cannot be parsed is dropped up to its end and the rest is parsed on. */
%define api.pure full
%define api.prefix {mdl_yy}
%define api.token.prefix {TOK_}
%define api.location.type {SrcLoc}
%define parse.error custom
%define parse.lac full
%locations
%param {Parser *p}
%expect 0

%code requires {
#include "frontend/parse_internal.h"
}

%code provides {
int mdl_scan(MDL_YYSTYPE *value, SrcLoc *loc, void *scanner);
}

%code {
#include <stdio.h>
#include <string.h>

int mdl_yylex(MDL_YYSTYPE *value, SrcLoc *loc, Parser *p);
void mdl_yyerror(SrcLoc *loc, Parser *p, const char *msg);
void parser_syntax_error(Parser *p, SrcLoc loc, int found, const char *found_name, const char *const *expected,
                         int nexpected, bool expression);

#define YYMALLOC mem_alloc
#define YYFREE mem_free
#define YYMAXDEPTH 20000
#define YYLLOC_DEFAULT(current, rhs, n)                                                            \
  do {                                                                                             \
    if (n) (current) = loc_span(YYRHSLOC(rhs, 1), YYRHSLOC(rhs, n));                               \
    else {                                                                                         \
      (current) = YYRHSLOC(rhs, 0);                                                                \
      (current).line = (current).end_line, (current).col = (current).end_col;                      \
    }                                                                                              \
  } while (0)

#define NEW(kind, loc) node_new(p->pc->arena, kind, loc)
#define NAMED(kind, loc, name) node_named(p->pc->arena, kind, loc, name)
#define BINARY(op, a, b, loc) node_binary(p->pc->arena, op, a, b, loc)
}

%union {
  int64_t i;
  double r;
  const char *s;
  Node *node;
  NodeList list;
}

%token END_OF_FILE 0 "end of file"
%token START_FILE START_EXPR
%token END "end of line"
%token <i> INT "number"
%token <r> REAL "real number"
%token <s> NAME "name"
%token <s> TEXT "text"
%token MODEL "`model`" WITH "`with`" FN "`fn`" IMPORT "`import`" CONST "`const`" STATE "`state`"
%token WEIGHT "`weight`" WEIGHTS "`weights`" FOR "`for`" IN "`in`" IF "`if`" ELSE "`else`"
%token RETURN "`return`" AND "`and`" OR "`or`" NOT "`not`" TRUE "`true`" FALSE "`false`"
%token ARROW "`->`" ELLIPSIS "`...`" DOTS "`..`" EQ "`==`" NE "`!=`" LE "`<=`" GE "`>=`"
%token '+' "`+`" '-' "`-`" '*' "`*`" '/' "`/`" '%' "`%`" '@' "`@`" '<' "`<`" '>' "`>`" '=' "`=`"
%token ',' "`,`" ':' "`:`" '(' "`(`" ')' "`)`" '{' "`{`" '}' "`}`" '[' "`[`" ']' "`]`" '\'' "`'`"

%left OR
%left AND
%precedence NOT
%nonassoc EQ NE '<' LE '>' GE
%left '+' '-'
%left '*' '/' '%' '@'
%precedence NEGATE
%precedence HINT_NAME
%precedence '('

%type <node> decl header fn_or_model type type_opt statement simple hint expr postfix primary slice arg opt_expr
%type <node> declared param
%type <list> block else_opt exprs args args_opt slices declareds declareds_opt params params_opt outs_opt hints
%type <list> statements with_opt fn_params

%%

start: START_FILE decls | START_EXPR expr { p->expr = $2; };

decls: %empty | decls END
     | decls decl END {
         node_append(&p->decls, $2);
         p->calls = (NodeList){0};
         if ($2->kind != NODE_CONST && $2->kind != NODE_WEIGHTS) p->between = false;
       }
     | decls error END { p->between = true; yyerrok; }
     | decls IMPORT error END {
         Node *import = NEW(NODE_IMPORT, @2);
         import->a = NEW(NODE_BROKEN, @3);
         node_append(&p->decls, import);
         yyerrok;
       }
     | decls error block END { p->calls = (NodeList){0}; yyerrok; }
     ;

decl: IMPORT TEXT { $$ = NEW(NODE_IMPORT, @$); $$->a = parser_text(p, @2, $2); }
    | CONST NAME '=' expr { $$ = NAMED(NODE_CONST, @2, $2); $$->a = $4; }
    | WEIGHTS TEXT { $$ = NEW(NODE_WEIGHTS, @$); $$->a = parser_text(p, @2, $2); }
    | header block { $$ = $1; $$->list = $2; $$->calls = p->calls; }
    | fn_or_model error block { $$ = $1; $$->i = 1; yyerrok; }
    ;

fn_or_model: MODEL NAME { $$ = NAMED(NODE_MODEL, @2, $2); }
           | FN NAME { $$ = NAMED(NODE_FN, @2, $2); }
           ;

header: MODEL NAME '(' declareds_opt ')' outs_opt with_opt {
          $$ = NAMED(NODE_MODEL, @2, $2);
          $$->args = $4, $$->outs = $6, $$->list2 = $7;
        }
      | FN NAME '(' declareds_opt ')' fn_params outs_opt {
          $$ = NAMED(NODE_FN, @2, $2);
          $$->args = $4, $$->list2 = $6, $$->outs = $7;
        }
      | FN NAME '[' params_opt ']' '(' declareds_opt ')' outs_opt {
          $$ = NAMED(NODE_FN, @2, $2);
          $$->args = $7, $$->list2 = $4, $$->outs = $9;
        }
      ;

fn_params: %empty { $$ = (NodeList){0}; } | '[' params_opt ']' { $$ = $2; };
with_opt: %empty { $$ = (NodeList){0}; } | WITH params { $$ = $2; };
outs_opt: %empty { $$ = (NodeList){0}; }
        | ARROW '(' declareds_opt ')' { $$ = $3; }
        | ARROW declared { $$ = (NodeList){0}; node_append(&$$, $2); }
        ;

declareds_opt: %empty { $$ = (NodeList){0}; } | declareds | declareds ',';
declareds: declared { $$ = (NodeList){0}; node_append(&$$, $1); }
         | declareds ',' declared { $$ = $1; node_append(&$$, $3); }
         ;
declared: NAME type_opt { $$ = NAMED(NODE_DECL, @1, $1); $$->a = $2; };
type_opt: %empty { $$ = NULL; } | ':' type { $$ = $2; };
type: NAME { $$ = NAMED(NODE_TYPE, @$, $1); }
    | NAME '[' ']' { $$ = NAMED(NODE_TYPE, @$, $1); $$->i = 1; }
    | NAME '[' exprs ']' { $$ = NAMED(NODE_TYPE, @$, $1); $$->i = 1; $$->list = $3; $$->name_loc = @1; }
    ;

params_opt: %empty { $$ = (NodeList){0}; } | params;
params: param { $$ = (NodeList){0}; node_append(&$$, $1); }
      | params ',' param { $$ = $1; node_append(&$$, $3); }
      ;
param: NAME { $$ = NAMED(NODE_PARAM, @1, $1); }
     | NAME '=' expr { $$ = NAMED(NODE_PARAM, @1, $1); $$->a = $3; }
     ;

block: '{' statements '}' { $$ = $2; }
     | '{' statements hints '}' {
         $$ = $2;
         parser_error(p, @3, "a hint stands before the statement it is about; none follows here");
       }
     ;

statements: %empty { $$ = (NodeList){0}; }
          | statements END
          | statements statement END { $$ = $1; if ($2) node_append(&$$, $2); }
          | statements error END { $$ = $1; yyerrok; }
          ;

statement: simple
         | hints simple { $$ = NEW(NODE_HINTED, @$); $$->list = $1; $$->a = $2; }
         ;

simple: exprs { $$ = NEW(NODE_EXPR, @$); $$->list = $1; }
      | exprs '=' exprs { $$ = NEW(NODE_ASSIGN, @$); $$->list = $1; $$->list2 = $3; }
      | exprs '=' error {
          $$ = NEW(NODE_ASSIGN, @$);
          $$->list = $1;
          node_append(&$$->list2, NEW(NODE_BROKEN, @3));
        }
      | CONST NAME '=' expr { $$ = NAMED(NODE_CONST, @2, $2); $$->a = $4; }
      | CONST NAME '=' error { $$ = NAMED(NODE_CONST, @2, $2); $$->a = NEW(NODE_BROKEN, @4); }
      | STATE NAME ':' type { $$ = NAMED(NODE_STATE, @2, $2); $$->a = $4; }
      | STATE NAME ':' type '=' expr { $$ = NAMED(NODE_STATE, @2, $2); $$->a = $4; $$->b = $6; }
      | WEIGHT NAME ':' type '=' expr { $$ = NAMED(NODE_WEIGHT, @2, $2); $$->a = $4; $$->b = $6; }
      | WEIGHTS TEXT { $$ = NEW(NODE_WEIGHTS, @$); $$->a = parser_text(p, @2, $2); }
      | FOR NAME IN expr DOTS expr block {
          $$ = NAMED(NODE_FOR, loc_span(@1, @6), $2);
          $$->name_loc = @2;
          $$->a = $4, $$->b = $6, $$->list = $7;
        }
      | FOR NAME IN expr block {
          $$ = NAMED(NODE_FOR, loc_span(@1, @4), $2);
          $$->name_loc = @2;
          $$->a = $4, $$->list = $5;
        }
      | FOR error block {
          $$ = NAMED(NODE_FOR, @1, str_intern(p->pc->strings, ""));
          $$->a = NEW(NODE_BROKEN, @2), $$->list = $3;
          yyerrok;
        }
      | FOR error { $$ = NULL; }
      | IF expr block else_opt {
          $$ = NEW(NODE_IF, loc_span(@1, @2));
          $$->a = $2, $$->list = $3, $$->list2 = $4;
        }
      | IF error block else_opt {
          $$ = NEW(NODE_IF, @1);
          $$->a = NEW(NODE_BROKEN, @2), $$->list = $3, $$->list2 = $4;
          yyerrok;
        }
      | IF error { $$ = NULL; }
      | RETURN { $$ = NEW(NODE_RETURN, @$); }
      | RETURN exprs { $$ = NEW(NODE_RETURN, @$); $$->list = $2; }
      | RETURN error { $$ = NEW(NODE_RETURN, @$); node_append(&$$->list, NEW(NODE_BROKEN, @2)); }
      ;

else_opt: %empty { $$ = (NodeList){0}; }
        | ELSE block { $$ = $2; }
        | ELSE IF expr block else_opt {
            Node *n = NEW(NODE_IF, loc_span(@2, @3));
            n->a = $3, n->list = $4, n->list2 = $5;
            $$ = (NodeList){0};
            node_append(&$$, n);
          }
        ;

hints: hint { $$ = (NodeList){0}; node_append(&$$, $1); }
     | hints hint { $$ = $1; node_append(&$$, $2); }
     | hints END
     ;
hint: '@' NAME %prec HINT_NAME { $$ = NAMED(NODE_HINT, @$, $2); }
    | '@' NAME '(' args_opt ')' { $$ = NAMED(NODE_HINT, @$, $2); $$->list = $4; }
    ;

exprs: expr { $$ = (NodeList){0}; node_append(&$$, $1); }
     | exprs ',' expr { $$ = $1; node_append(&$$, $3); }
     ;

expr: postfix
    | '-' expr %prec NEGATE { $$ = node_unary(p->pc->arena, OP_NEG, $2, @$); }
    | NOT expr { $$ = node_unary(p->pc->arena, OP_NOT, $2, @$); }
    | expr '+' expr { $$ = BINARY(OP_ADD, $1, $3, @$); }
    | expr '-' expr { $$ = BINARY(OP_SUB, $1, $3, @$); }
    | expr '*' expr { $$ = BINARY(OP_MUL, $1, $3, @$); }
    | expr '/' expr { $$ = BINARY(OP_DIV, $1, $3, @$); }
    | expr '%' expr { $$ = BINARY(OP_MOD, $1, $3, @$); }
    | expr '@' expr { $$ = BINARY(OP_MATMUL, $1, $3, @$); }
    | expr EQ expr { $$ = BINARY(OP_EQ, $1, $3, @$); }
    | expr NE expr { $$ = BINARY(OP_NE, $1, $3, @$); }
    | expr '<' expr { $$ = BINARY(OP_LT, $1, $3, @$); }
    | expr LE expr { $$ = BINARY(OP_LE, $1, $3, @$); }
    | expr '>' expr { $$ = BINARY(OP_GT, $1, $3, @$); }
    | expr GE expr { $$ = BINARY(OP_GE, $1, $3, @$); }
    | expr AND expr { $$ = BINARY(OP_AND, $1, $3, @$); }
    | expr OR expr { $$ = BINARY(OP_OR, $1, $3, @$); }
    ;

postfix: primary
       | postfix '\'' { $$ = NEW(NODE_TRANSPOSE, @$); $$->a = $1; }
       | postfix '[' slices ']' { $$ = NEW(NODE_INDEX, @$); $$->a = $1; $$->list = $3; }
       | postfix '(' args_opt ')' { $$ = parser_call(p, $1, $3, @$); }
       | WEIGHT '(' args_opt ')' {
           $$ = NAMED(NODE_CALL, @$, str_intern(p->pc->strings, "weight"));
           $$->name_loc = @1, $$->list = $3;
         }
       ;

primary: INT { $$ = NEW(NODE_INT, @$); $$->i = $1; }
       | REAL { $$ = NEW(NODE_REAL, @$); $$->r = $1; }
       | TRUE { $$ = NEW(NODE_BOOL, @$); $$->i = 1; }
       | FALSE { $$ = NEW(NODE_BOOL, @$); }
       | TEXT { $$ = parser_text(p, @1, $1); }
       | NAME { $$ = NAMED(NODE_NAME, @$, $1); }
       | '(' expr ')' { $$ = $2; }
       | '[' ']' { $$ = NEW(NODE_LIST, @$); }
       | '[' exprs ']' { $$ = NEW(NODE_LIST, @$); $$->list = $2; }
       | '[' exprs ',' ']' { $$ = NEW(NODE_LIST, @$); $$->list = $2; }
       ;

slices: slice { $$ = (NodeList){0}; node_append(&$$, $1); }
      | slices ',' slice { $$ = $1; node_append(&$$, $3); }
      ;
slice: expr
     | NAME '=' expr { $$ = NAMED(NODE_ARG, @$, $1); $$->name_loc = @1; $$->a = $3; }
     | ELLIPSIS { $$ = NEW(NODE_ELLIPSIS, @$); }
     | opt_expr ':' opt_expr { $$ = NEW(NODE_RANGE, @$); $$->a = $1, $$->b = $3; }
     | opt_expr ':' opt_expr ':' opt_expr { $$ = NEW(NODE_RANGE, @$); $$->a = $1, $$->b = $3, $$->c = $5; }
     ;
opt_expr: %empty { $$ = NULL; } | expr;

args_opt: %empty { $$ = (NodeList){0}; } | args | args ',';
args: arg { $$ = (NodeList){0}; node_append(&$$, $1); }
    | args ',' arg { $$ = $1; node_append(&$$, $3); }
    ;
arg: expr { $$ = NEW(NODE_ARG, @$); $$->a = $1; }
   | NAME '=' expr { $$ = NAMED(NODE_ARG, @$, $1); $$->name_loc = @1; $$->a = $3; }
   ;

%%

static int yyreport_syntax_error(const yypcontext_t *ctx, Parser *p) {
  yysymbol_kind_t found = yypcontext_token(ctx), want[80];
  int n = yypcontext_expected_tokens(ctx, want, (int)NPU_COUNTOF(want));
  const char *names[NPU_COUNTOF(want)];
  bool expression = false;
  int kept = 0;
  for (int i = 0; i < n; i++)
    if (want[i] == YYSYMBOL_REAL) expression = true;
  for (int i = 0; i < n; i++) names[kept++] = yysymbol_name(want[i]);
  parser_syntax_error(p, *yypcontext_location(ctx), found == YYSYMBOL_YYEOF ? 0 : (int)found,
                      found == YYSYMBOL_YYEMPTY ? "nothing" : yysymbol_name(found), names, kept, expression);
  return 0;
}

void mdl_yyerror(SrcLoc *loc, Parser *p, const char *msg) {
  (void)msg; /* only "memory exhausted" comes this way */
  p->too_deep = true;
  parser_error(p, *loc, "this is nested too deeply");
}
