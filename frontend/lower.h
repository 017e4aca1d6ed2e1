/* Lowering of a model's syntax tree to graph IR. Private to frontend/. */
#ifndef NPU_FRONTEND_LOWER_H
#define NPU_FRONTEND_LOWER_H
#include "frontend/frontend.h"
#include "frontend/program.h"
#include "frontend/value.h"

#define MAX_OPS 1000000        /* ops of one model */
#define MAX_ITERATIONS 1000000 /* of all compile-time loops together */
#define MAX_DEPTH 400          /* nesting of expressions, blocks and calls while lowering */
#define MAX_BYTES (128 << 20)  /* of lists, texts and names, the syntax tree not counted */
#define MAX_ERRORS 100         /* then lowering stops */

/* ---- names ---- */

typedef enum {
  BIND_VARIABLE, /* may be assigned again */
  BIND_INPUT,    /* may be assigned again */
  BIND_CONST,
  BIND_PARAM,
  BIND_LOOP,
  BIND_STATE,
} BindKind;

typedef struct Box {
  int64_t begin[IR_MAX_RANK], end[IR_MAX_RANK];
  SrcLoc loc;
  struct Box *next;
} Box;

typedef struct StateVar {
  const char *name;
  const IrType *type;
  SrcLoc loc;
  IrValue *current;
  Box *written; /* what has been assigned so far */
  struct StateVar *next;
} StateVar;

typedef struct Binding {
  const char *name; /* interned: the key is the pointer */
  BindKind kind;
  Value value;
  SrcLoc loc;
  const Node *decl;
  StateVar *state;
  UT_hash_handle hh;
} Binding;

/* The names of one model, function call or constant expression. */
typedef struct Scope {
  Binding *names;   /* uthash */
  const Node *decl; /* NODE_MODEL, NODE_FN; NULL for constants */
  struct Scope *caller;
  SrcLoc call_loc;
  bool returned;
  Value result; /* of a function; of a model a TUPLE always */
  const Node *return_stmt;
} Scope;

/* ---- weights ---- */

typedef struct WeightUse { /* one tensor of a file that the model uses */
  const TensorEntry *entry;
  TensorFile *file;
  SrcLoc loc;
  IrOp *op; /* the weight op; its bytes are read when the rest of the model is right */
  bool read;
  Value value;
  UT_hash_handle hh;
} WeightUse;

typedef struct {
  TensorFile **files; /* owned by the module */
  size_t nfiles;
  bool incomplete; /* a file could not be opened: names may be missing because of it */
  bool given;      /* --weights: a file the model names is only missed with one of its tensors */
  const char *absent;
  SrcLoc absent_loc;
  WeightUse *uses;
} Weights;

typedef struct ActiveHint {
  const IrHint *hint; /* of those about numerics the innermost counts */
  const IrAttr *value;
  SrcLoc loc;
  bool on_reals;    /* some operation on reals was made under it */
  bool on_products; /* some product of reals carries it */
  struct ActiveHint *outer;
} ActiveHint;

typedef struct { /* a place that has been reported */
  SrcLoc loc, call;
  char code[24];
  uint64_t message; /* hash */
} Reported;

typedef struct Lower {
  IrModule *m;
  IrFunc *func;
  Arena *arena;
  Program *program;
  DiagEngine *outer; /* the caller's; m->diag forwards to it, without repetitions */
  Reported reported[MAX_ERRORS];
  int nreported;
  bool muted; /* the last error was a repetition, so are its notes */
  Scope *scope;
  ActiveHint *hints;
  StateVar *states, **last_state;
  Weights weights;
  size_t tree_bytes; /* the arena's before lowering */
  int64_t ops, iterations;
  int64_t initializers; /* so far: the next one's seed unless it names its own */
  int depth, loops;
  bool stopped; /* a limit was reached: nothing more is lowered or reported */
} Lower;

/* context.c: diagnostics, names, ops */
void lower_forward(void *lower, const DiagEngine *d, const Diag *diag);
void lower_error(Lower *l, SrcLoc loc, const char *code, const char *fmt, ...) NPU_PRINTF(4, 5);
void lower_warning(Lower *l, SrcLoc loc, const char *code, const char *fmt, ...) NPU_PRINTF(4, 5);
void lower_note(Lower *l, SrcLoc loc, const char *fmt, ...) NPU_PRINTF(3, 4);
/* Reports E-limit once and stops everything. */
void lower_stop(Lower *l, SrcLoc loc, const char *fmt, ...) NPU_PRINTF(3, 4);
/* One level deeper; false, reported, at the limit. Undone by l->depth--. */
bool lower_enter(Lower *l, SrcLoc loc);
void scope_push(Lower *l, Scope *s, const Node *decl, SrcLoc call_loc);
void scope_pop(Lower *l);
Binding *scope_find(const Scope *s, const char *name);
Binding *scope_bind(Lower *l, const char *name, BindKind kind, Value v, SrcLoc loc,
                    const Node *decl);
/* Builds an op; NULL after reporting. Operands are tensors. Adds active hints and, on errors,
 * notes. */
IrOp *lower_op(Lower *l, SrcLoc loc, IrOpKind kind, size_t n, const Value *operands, size_t nattrs,
               const IrAttrInit *attrs);
/* Its results as a value. */
Value lower_results(IrOp *op, SrcLoc loc, Arena *arena);
Value lower_op1(Lower *l, SrcLoc loc, IrOpKind kind, Value x, size_t nattrs,
                const IrAttrInit *attrs);
const IrAttr *lower_attr(Lower *l, Value v); /* of a compile-time value */

/* literal.c: numbers and lists of numbers as tensors */
/* Converts v to a tensor of dtype unless it is one; poison after reporting. */
Value literal_tensor(Lower *l, Value v, DType dtype, SrcLoc loc);
/* Makes operands of one elementwise op tensors: numbers take the element type of the tensors beside
 * them. first is the first operand that takes part. False after reporting. */
bool literal_adapt(Lower *l, Value *operands, size_t n, size_t first, SrcLoc loc);

/* expr.c */
Value eval(Lower *l, const Node *n);     /* may give a TUPLE */
Value eval_one(Lower *l, const Node *n); /* one value */
bool eval_int(Lower *l, const Node *n, const char *what, int64_t *out);
Value eval_global(Lower *l, Global *g);
/* NULL after reporting. */
const IrType *eval_type(Lower *l, const Node *type, const char *of);
/* call.c, function.c, builtin.c, slice.c, weight.c */
Value eval_call(Lower *l, const Node *n);
Value call_function(Lower *l, const Node *call, const Global *g);
bool call_builtin(Lower *l, const Node *call, Value *out); /* false: no such builtin */
const char *const *builtin_names(size_t *n);
Value eval_index(Lower *l, const Node *n);
/* The box of x's type that items select; squeezed[axis] where an integer removed the axis. */
typedef struct {
  int64_t begin[IR_MAX_RANK], end[IR_MAX_RANK], step[IR_MAX_RANK];
  bool squeezed[IR_MAX_RANK];
} Selection;
bool slice_select(Lower *l, const IrType *type, const Node *index, const char *what,
                  Selection *out);
const IrType *slice_type(Lower *l, const IrType *type, const Selection *s);
void weights_open(Lower *l, const char *path, SrcLoc loc);
void weights_statement(Lower *l, const Node *n);
Value weight_lookup(Lower *l, const char *name, SrcLoc loc);
/* Reads the tensors looked up so far from their files, or only the one that is v. */
void weights_read(Lower *l, const IrValue *v);
void weights_free(Lower *l);
bool callable_op(const char *name, IrOpKind *out);
void op_signature(StrBuf *b, IrOpKind kind);

/* stmt.c, state.c, hint.c, init.c */
void exec_block(Lower *l, NodeList body);
void exec_weight(Lower *l, const Node *n);
void exec_state(Lower *l, const Node *n);
void state_assign(Lower *l, Binding *b, const Node *index, Value v, SrcLoc loc);
/* The model's parameters, from the options or their defaults. */
void params_bind(Lower *l, const Node *model, const MdlOptions *o);
/* Pushes the hints of a statement; returns what to hand to hints_pop after it. */
ActiveHint *hints_push(Lower *l, NodeList hints);
void hints_pop(Lower *l, ActiveHint *outer, bool failed);
/* Gives op the hints that are active. */
void hints_attach(Lower *l, IrOp *op);
/* Place of the value a scope returns next; *next starts as the first of the return statement. */
SrcLoc return_place(const Scope *s, const Node **next);
/* Checks v against a declared tensor `what name` and adapts literals; poison after reporting. */
Value check_declared(Lower *l, Value v, const Node *decl, const IrType *type, const char *what,
                     SrcLoc loc);
#endif
