/* ir: one data structure for the three levels (graph, nest, program): types, attributes, values,
 * ops, regions, the op table, text printer and parser, verifier, and the pass manager.
 *
 * Ownership: an IrModule owns everything reachable from it in one arena; nothing is freed singly.
 * Types, attributes and strings are interned per module: equal means pointer-equal. */
#ifndef NPU_IR_H
#define NPU_IR_H
#include "support/dtype.h"
#include "support/support.h"
#include "support/tensorfile.h"

NPU_C_BEGIN

#define IR_MAX_RANK 8  /* axes of a tensor */
#define IR_MAX_DIMS 16 /* dimensions of a kernel */

typedef struct IrModule IrModule;
typedef struct IrFunc IrFunc;
typedef struct IrBlock IrBlock;
typedef struct IrOp IrOp;
typedef struct IrValue IrValue;
typedef struct IrUse IrUse;

/* ---- levels and op kinds --------------------------------------------------------------------- */

typedef enum {
  IR_GRAPH = 1,
  IR_NEST = 2,
  IR_PROGRAM = 4,
  IR_BODY = 8
} IrLevel; /* bits: a row may allow several */
/* IR_BODY is the inside of a kernel: scalar ops over the iteration domain. */

typedef enum {
  IR_PURE = 1,        /* no effect but its results: may be removed, merged, folded */
  IR_ELEMENTWISE = 2, /* result element i depends on operand elements i only (after broadcasting) */
  IR_COMMUTATIVE = 4,
  IR_IDEMPOTENT = 8, /* f(f(x)) = f(x) */
  IR_TERMINATOR = 16,
  IR_HAS_REGION = 32,
  IR_DATA_MOVEMENT = 64, /* results are a rearrangement of operand elements, values untouched */
  IR_CONSTANT = 128,     /* result known at compile time */
  IR_PASSES_ERROR = 256, /* a small relative error of an operand is about as small a one of the
                            result; without it, one may become large or a jump */
  IR_PRODUCT = 512,      /* sums of products of elements of the first two operands */
} IrTraits;

/* Notes on ops whose names begin so are the compiler's own, and no others than these. They say how
 * to compute, never what. */
#define IR_HINT_PREFIX "hint."
enum { IR_HINT_COUNT = 7 };
typedef struct {
  const char *name, *attr; /* "bf16", "hint.bf16" */
  const char *type;        /* of the note, as in signatures */
  const char *argument;    /* name of the argument in models; NULL: it takes none */
  bool effective;          /* some pass looks at it */
  bool numerics;           /* says in what to compute: one of them at a time */
  bool products;           /* concerns products alone */
} IrHint;
extern const IrHint ir_hints[IR_HINT_COUNT];
struct IrOp;
/* An op made in place of another is to be computed as that one was to be. */
void ir_copy_hints(struct IrOp *to, const struct IrOp *from);

typedef enum {
#define OP(e, ...) IR_OP_##e,
#include "ir/ops.def"
#undef OP
  IR_OP_COUNT
} IrOpKind;

/* Those of kernel bodies, with the same numbers. */
typedef enum {
#define OP(e, ...)
#define BODY_OP(e, ...) IR_BODY_##e = IR_OP_##e,
#include "ir/ops.def"
#undef OP
} IrBodyKind;

/* ---- types ----------------------------------------------------------------------------------- */

typedef enum {
  IR_TYPE_TENSOR, /* dtype and shape; rank 0 is a scalar tensor */
  IR_TYPE_SCALAR, /* an element inside a kernel body */
  IR_TYPE_TOKEN,  /* program level: kinds named in token ("reg", "buf", "sem", "desc", "vprog",
                     "addr") */
} IrTypeKind;

typedef struct IrType {
  IrTypeKind kind;
  DType dtype;
  int rank;
  int64_t shape[IR_MAX_RANK];
  const char *token;
} IrType;
const IrType *ir_type_tensor(IrModule *m, DType dtype, int rank, const int64_t *shape);
const IrType *ir_type_scalar(IrModule *m, DType dtype);
const IrType *ir_type_token(IrModule *m, const char *token);
const IrType *ir_type_with_dtype(IrModule *m, const IrType *t,
                                 DType dtype); /* same kind and shape */
int64_t ir_type_elements(const IrType *t);     /* 1 for scalars */
int64_t ir_type_bytes(const IrType *t);
void ir_type_print(StrBuf *b,
                   const IrType *t); /* f32[1,28,28], f32[] (rank 0), f32 (scalar), !reg */
/* The type written as text; NULL when it is not a type. Reports nothing. */
const IrType *ir_type_parse(IrModule *m, const char *text);

/* ---- attributes ------------------------------------------------------------------------------ */

#define NPU_ATTR_KINDS(X) X(INT) X(FLOAT) X(BOOL) X(STR) X(DTYPE) X(ARRAY) X(MAP) X(DATA)
typedef enum {
#define X(e) IR_ATTR_##e,
  NPU_ATTR_KINDS(X)
#undef X
} IrAttrKind;

/* sum over d of coef[d] * dim[d] + cst; when index >= 0 the axis is instead indirect: the
 * coordinate is the value of kernel operand number `index` (an s32 tensor read at its own map) plus
 * cst. */
typedef struct {
  int64_t coef[IR_MAX_DIMS];
  int64_t cst;
  int index; /* -1: affine */
} IrAffine;
/* One affine expression per tensor axis. */
typedef struct {
  int rank;
  IrAffine axis[IR_MAX_RANK];
} IrMap;

/* Constant tensor data: row-major elements of dtype. Bytes belong to the module or to a mapped
 * file. */
typedef struct IrData {
  const IrType *type;
  const void *bytes; /* ir_type_bytes(type) of them; possibly unaligned when mapped */
  const char *file,
      *name; /* origin when it is a tensor of a weight file, printed instead of the bytes */
} IrData;

typedef struct IrAttr {
  IrAttrKind kind;
  union {
    int64_t i;
    double f;
    bool b;
    const char *s;
    DType dtype;
    struct {
      const struct IrAttr **items;
      size_t n;
    } array;
    const IrMap *map;
    const IrData *data; /* interned by identity of the IrData, never compared by content */
  };
} IrAttr;
const IrAttr *ir_attr_int(IrModule *m, int64_t i);
const IrAttr *ir_attr_float(IrModule *m, double f);
const IrAttr *ir_attr_bool(IrModule *m, bool b);
const IrAttr *ir_attr_str(IrModule *m, const char *s);
const IrAttr *ir_attr_dtype(IrModule *m, DType t);
const IrAttr *ir_attr_array(IrModule *m, const IrAttr *const *items, size_t n);
const IrAttr *ir_attr_ints(IrModule *m, const int64_t *v, size_t n); /* array of ints */
const IrAttr *ir_attr_map(IrModule *m, const IrMap *map);
/* Copies bytes into the module. */
const IrAttr *ir_attr_data(IrModule *m, const IrType *type, const void *bytes);
/* Refers to bytes owned by an attached tensor file (see ir_module_attach). */
const IrAttr *ir_attr_data_file(IrModule *m, const IrType *type, const void *bytes,
                                const char *file, const char *name);
/* Refers to data the module already holds, such as ir_constant_data's. */
const IrAttr *ir_attr_data_of(IrModule *m, const IrData *data);
/* Takes over uninitialised module memory to be filled by the caller: *bytes_out has
 * ir_type_bytes(type). */
const IrAttr *ir_attr_data_new(IrModule *m, const IrType *type, void **bytes_out);
void ir_attr_print(StrBuf *b, const IrModule *m, const IrAttr *a);

/* ---- values, ops, blocks ---- */

struct IrUse { /* operand slot `index` of `op` uses the value; doubly linked in the value's use list
                */
  IrOp *op;
  int index;
  IrUse *prev, *next;
  IrValue *value;
};
struct IrValue {
  const IrType *type;
  IrOp *def;        /* NULL for a block argument */
  IrBlock *block;   /* the block when it is an argument */
  int index;        /* result or argument number */
  const char *name; /* interned hint for printing, or NULL */
  IrUse *uses;
};
typedef struct {
  const char *name;
  const IrAttr *value;
} IrNamedAttr; /* name interned */

struct IrOp {
  IrOpKind kind;
  SrcLoc loc;
  IrBlock *parent;
  IrOp *prev, *next;
  int noperands, nresults, nattrs;
  IrUse *operands;
  IrValue *results;   /* array */
  IrNamedAttr *attrs; /* sorted by name */
  IrBlock *region;    /* the single block of its region, or NULL */
  IrModule *module;   /* owner of the memory, also while the op is in no block */
};
struct IrBlock {
  IrOp *owner; /* op whose region this is, or NULL for a function body */
  IrFunc *func;
  int nargs;
  IrValue **args;
  IrOp *first, *last;
};

/* A function: level graph, nest or program. Argument and result names are the model's I/O names. */
struct IrFunc {
  IrModule *module;
  const char *name;
  IrLevel level;
  IrBlock *body;             /* ends in `return` */
  const char **result_names; /* one per operand of the return */
  int nresults;
  IrNamedAttr *attrs; /* function attributes, e.g. machine-independent notes of passes */
  int nattrs;
  SrcLoc loc;
};
struct IrModule {
  Arena *arena;
  StrTable *strings;
  DiagEngine *diag; /* not owned */
  IrFunc **funcs;
  int nfuncs;
  struct IrModuleImpl *impl; /* private: intern tables, attached files, use-slot free lists */
};

IrModule *ir_module_new(DiagEngine *diag);
void ir_module_free(IrModule *m);
/* Keeps a tensor file open as long as the module; takes ownership. Repeated paths return the first.
 */
TensorFile *ir_module_attach(IrModule *m, TensorFile *f);
TensorFile *ir_module_file(IrModule *m, const char *path); /* an attached file, or NULL */
const char *ir_str(IrModule *m, const char *s);            /* intern */

IrFunc *ir_func_new(IrModule *m, const char *name, IrLevel level);
void ir_func_erase(IrFunc *f); /* removes it from its module */
/* Copies f under a new name. value_map (may be NULL) is called for every argument and op result
 * with its copy. */
IrFunc *ir_func_clone(const IrFunc *f, const char *name,
                      void (*value_map)(void *user, const IrValue *old, IrValue *copy), void *user);
IrValue *ir_block_add_arg(IrBlock *b, const IrType *type, const char *name);
IrFunc *ir_block_func(const IrBlock *b);
IrModule *ir_op_module(const IrOp *op);
/* Removes a function argument that has no uses. */
void ir_block_remove_arg(IrBlock *b, int index);

/* Creates an op detached from any block. Result types are given (see ir_build for inferred ones).
 */
IrOp *ir_op_new(IrModule *m, IrOpKind kind, SrcLoc loc, int noperands, IrValue *const *operands,
                int nresults, const IrType *const *result_types);
void ir_op_append(IrBlock *b, IrOp *op);
void ir_op_insert_before(IrOp *pos, IrOp *op);
void ir_op_insert_after(IrOp *pos, IrOp *op);
void ir_op_unlink(IrOp *op); /* leaves the block, keeps operands */
void ir_op_erase(IrOp *op);  /* unlinks and drops its operand uses; results must be unused */
IrBlock *ir_op_add_region(IrOp *op); /* creates the op's block */
static inline IrValue *ir_operand(const IrOp *op, int i) {
  return op->operands[i].value;
}
static inline IrValue *ir_result(const IrOp *op, int i) {
  return &op->results[i];
}
void ir_set_operand(IrOp *op, int i, IrValue *v);
void ir_add_operand(IrOp *op, IrValue *v);
void ir_remove_operand(IrOp *op, int i);
void ir_replace_all_uses(IrValue *from, IrValue *to);
bool ir_has_one_use(const IrValue *v);
int ir_use_count(const IrValue *v);
/* Deep copy of op (attributes shared, region cloned), operands mapped through `map(user, old)`. */
IrOp *ir_op_clone(IrModule *m, const IrOp *op, IrValue *(*map)(void *user, IrValue *old),
                  void *user);

const IrAttr *ir_attr(const IrOp *op,
                      const char *name); /* NULL when absent; name need not be interned */
void ir_set_attr(IrOp *op, const char *name, const IrAttr *value); /* value NULL removes */
bool ir_same_attrs(const IrOp *a, const IrOp *b); /* the same names with the same values */
int64_t ir_get_int(const IrOp *op, const char *name, int64_t otherwise);
double ir_get_float(const IrOp *op, const char *name,
                    double otherwise); /* accepts an int attribute */
bool ir_get_bool(const IrOp *op, const char *name, bool otherwise);
const char *ir_get_str(const IrOp *op, const char *name, const char *otherwise);
/* Count, at most max; one int counts as one; 0 when absent or not integers. */
int ir_get_ints(const IrOp *op, const char *name, int64_t *out, int max);
const IrAttr *ir_func_attr(const IrFunc *f, const char *name);           /* NULL when absent */
void ir_set_func_attr(IrFunc *f, const char *name, const IrAttr *value); /* value NULL removes */

/* ---- builder ---- */

/* Insertion point: appends to block when before is NULL. */
typedef struct {
  IrModule *m;
  IrBlock *block;
  IrOp *before;
  SrcLoc loc;
} IrBuilder;
IrBuilder ir_builder_at_end(IrBlock *b, SrcLoc loc);
IrBuilder ir_builder_before(IrOp *op);
IrBuilder ir_builder_after(IrOp *op);
typedef struct {
  const char *name;
  const IrAttr *value;
} IrAttrInit;
/* Builds an op with inferred result types (the row's shape rule). On a shape error reports it to
 * the module's diagnostics at b->loc and returns NULL. Attributes the signature gives defaults are
 * filled in. */
IrOp *ir_build(IrBuilder *b, IrOpKind kind, int noperands, IrValue *const *operands, int nattrs,
               const IrAttrInit *attrs);
IrOp *ir_build_typed(IrBuilder *b, IrOpKind kind, int noperands, IrValue *const *operands,
                     int nresults, const IrType *const *types, int nattrs, const IrAttrInit *attrs);
/* Shorthands returning result 0 (NULL on error). */
IrValue *ir_build1(IrBuilder *b, IrOpKind kind, IrValue *x);
IrValue *ir_build2(IrBuilder *b, IrOpKind kind, IrValue *x, IrValue *y);
IrValue *ir_build_cast(IrBuilder *b, IrValue *x, DType to); /* x itself when it already is `to` */
/* A graph-level `constant` of one element repeated (splat) or of given data. */
IrValue *ir_build_splat(IrBuilder *b, const IrType *type, double value);
IrValue *ir_build_constant(IrBuilder *b, const IrAttr *data);
/* Body level: a scalar constant. */
IrValue *ir_build_scalar(IrBuilder *b, DType dtype, double value);

/* ---- op table ---- */

/* One parameter of an op: a tensor operand or an attribute. Parsed once from the row's signature.
 */
typedef struct {
  const char *name;
  bool is_operand;
  bool optional;    /* operand may be missing (only trailing ones) */
  bool variadic;    /* operand repeated */
  const char *type; /* attribute: int float bool str dtype ints pads axes any map maps data ... ;
                       operand: NULL */
  const char *dflt; /* attribute default as text, or NULL when required */
} IrParam;
typedef struct IrOpInfo {
  IrOpKind kind;
  const char *name;
  unsigned levels;       /* IrLevel bits */
  unsigned traits;       /* IrTraits bits */
  const char *signature; /* "x, w, bias? | stride:ints=1, pad:pads=0" */
  int nresults;          /* -1: from attributes or given */
  const char *doc;       /* one line */
} IrOpInfo;
const IrOpInfo *ir_op_info(IrOpKind kind);
bool ir_op_by_name(const char *name, IrOpKind *out);
int ir_op_params(IrOpKind kind, const IrParam **out); /* count */
void ir_manual(StrBuf *out);                          /* the op table as markdown */
static inline bool ir_is(const IrOp *op, IrOpKind kind) {
  return op && op->kind == kind;
}
bool ir_has_trait(const IrOp *op, unsigned traits);
/* The op's shape rule on operand types: fills types[0..*n) (room for 64); false after reporting at
 * loc. */
bool ir_infer(IrModule *m, IrOpKind kind, SrcLoc loc, int noperands, IrValue *const *operands,
              int nattrs, const IrNamedAttr *attrs, const IrType **types, int *n);

/* Axis given by the user as -rank..rank-1 to 0..rank-1; -1 when out of range. */
int ir_axis(int64_t axis, int rank);
/* NumPy broadcasting of two shapes; false when they do not agree. */
bool ir_broadcast_shapes(const IrType *a, const IrType *b, int *rank, int64_t *shape);
/* conv/pool padding attribute (1, 2, 4 ints or "same") to top, left, bottom, right for input ih x
 * iw. */
bool ir_resolve_pads(const IrOp *op, int64_t ih, int64_t iw, int64_t kh, int64_t kw,
                     int64_t out_tlbr[4]);
/* Constant data behind a value defined by `constant` or `weight`; NULL otherwise. */
const IrData *ir_constant_data(const IrValue *v);
bool ir_constant_splat(const IrValue *v, double *out); /* all elements equal */

/* ---- nest level ---- */
/* `kernel`: a perfectly general loop nest. Operands and results are tensors; attributes are
 * - dims = [["oh", 28], ["oc", 128], ...]: every dimension, named, with its extent;
 * - in_maps, one per operand: tensor coordinates from dimensions;
 * - pads, one per operand: what a read out of range gives, or "none" when there is no such read;
 * - out_maps, one per result: each axis is one dimension, or 0 along an axis of one element.
 * The region takes one scalar per operand, of the operand's element type, and holds scalar ops
 * (level body), `reduce` {op = "sum"|"max"|"min", over = [dimension numbers]} and `index` {dim};
 * it ends in `yield` with one scalar per result, of the result's element type. A scalar varies over
 * the dimensions of its operands; `reduce` removes those it reduces over; what is yielded varies
 * over no dimension that the result's map does not name. Arithmetic in a body is f32 or s32: other
 * element types are cast first. Bodies are evaluated as written: f32 IEEE, no contraction, no
 * reassociation except by `reduce` over floats, whose order is the scheduler's. */
typedef struct {
  int ndims;
  const char *name[IR_MAX_DIMS];
  int64_t extent[IR_MAX_DIMS];
  int nin, nout;
} IrKernel;
void ir_kernel_read(const IrOp *op, IrKernel *out);
const IrMap *ir_kernel_in_map(const IrOp *op, int operand);
const IrMap *ir_kernel_out_map(const IrOp *op, int result);
bool ir_kernel_pad(const IrOp *op, int operand, double *value); /* false: "none" */
/* Creates a kernel with its empty block (arguments in place), at b. pads[i] NULL means "none". */
IrOp *ir_kernel_new(IrBuilder *b, int ndims, const char *const *names, const int64_t *extents,
                    int nin, IrValue *const *inputs, const IrMap *in_maps,
                    const IrAttr *const *pads, int nout, const IrType *const *out_types,
                    const IrMap *out_maps);
/* Dimensions (bit set) a body scalar varies over. */
uint32_t ir_scalar_dims(const IrOp *kernel, const IrValue *scalar);
/* Map helpers: zeroed map of rank; axis = dim (+cst). */
IrMap ir_map_zero(int rank);
void ir_map_dim(IrMap *m, int axis, int dim, int64_t coef);
uint32_t ir_map_dims(const IrMap *m); /* dims with a nonzero coefficient on any axis */
/* Storage order of a value at nest level: order[i] = logical axis stored at position i (outermost
 * first). Identity unless the defining op carries `layout` (array of one array per result). */
void ir_layout(const IrValue *v, int order[IR_MAX_RANK]);
void ir_set_layout(IrValue *v, const int *order); /* v must be an op result */

/* ---- text ---- */

/* Lossless: parse(print(m)) prints the same. locations: also print loc("f":l:c). */
void ir_print(const IrModule *m, StrBuf *out, bool locations);
typedef struct {
  bool locations;     /* as above */
  int64_t elide_data; /* > 0: constants of more elements, unless all are equal or in a file, print
                         as `elided`, which cannot be read back */
  const PathMaps *paths; /* what names of files become; NULL: as they are */
} IrPrintOptions;
void ir_print_with(const IrModule *m, StrBuf *out, const IrPrintOptions *options);
void ir_print_op(const IrModule *m, const IrOp *op,
                 StrBuf *out); /* one op on its own, for messages: long data is elided */
/* Parses a module; tensor files named in data attributes are opened relative to label's folder.
 * NULL after reporting to diag. */
IrModule *ir_parse(const char *text, size_t len, const char *label, DiagEngine *diag);
/* Structure, types, levels, dominance, signatures, kernel form. Reports each problem located; true
 * if none. */
bool ir_verify(IrModule *m);
void ir_print_dot(const IrModule *m, StrBuf *out); /* graphviz */

NPU_C_END

/* ---- passes ---- */
#include "ir/pass.h"
#endif
