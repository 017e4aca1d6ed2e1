/* What the files of ir/ share among themselves; nothing outside ir/ includes it. */
#ifndef NPU_IR_INTERNAL_H
#define NPU_IR_INTERNAL_H
#include "ir/ir.h"
#include "support/ptrmap.h"

#define IR_MAX_RESULTS 64           /* of an op whose types are inferred */
#define IR_MAX_ELEMENTS (1ll << 40) /* of a tensor */
#define IR_MAX_INDEX (1ll << 31)    /* of an axis whose positions are computed with, in s32 */

/* Everything interned hangs in tables keyed by the bytes that define it; entries live in the arena.
 */
typedef struct Interned {
  UT_hash_handle hh;
  const void *thing;
} Interned;

typedef struct FileEntry {
  const char *alias; /* as data attributes name it, when that is not its path */
  TensorFile *file;
  struct FileEntry *next;
} FileEntry;

/* Values of an initializer, made once; keyed by the attributes that define them. */
struct IrModuleImpl {
  Interned *types, *attrs, *initializers;
  FileEntry *files;
};

/* Smallest power of two holding n; arrays of ops and blocks always have that capacity, so that it
 * need not be stored. */
int capacity_for(int n);

void module_attach_alias(IrModule *m, TensorFile *f, const char *alias);

/* Sorted attribute lists, shared by ops and functions. */
const IrAttr *attrs_find(const IrNamedAttr *attrs, int n, const char *name);
void attrs_set(IrModule *m, IrNamedAttr **attrs, int *n, const char *name, const IrAttr *value);

/* The row's defaults for attributes not given, and ints where a float is declared turned into
 * floats. */
void fill_defaults(IrOp *op);
/* The default of parameter p as an attribute; NULL when it has none or names another attribute
 * (which is then looked up among attrs). */
const IrAttr *param_default(IrModule *m, const IrParam *p, const IrNamedAttr *attrs, int nattrs);
/* Writes value to every element of zeroed bytes, through a double, so that s32 keeps all its bits.
 */
/* ir_attr_data_new, for the op at loc. */
const IrAttr *attr_data_at(IrModule *m, SrcLoc loc, const IrType *type, void **bytes_out);
void data_splat(const IrType *type, double value, void *bytes);
bool attr_is_ints(const IrAttr *a); /* an int, or an array of ints */

/* hint.c: is a note one of the compiler's own? A hint by its note's name, or NULL. The error about
 * a name that is none, and false. */
bool is_hint(const char *attr);
const IrHint *hint_find(const char *attr);
bool hint_unknown(IrModule *m, SrcLoc loc, const char *attr);

/* Operand count, required attributes, attribute kinds. Reports each problem. */
bool signature_check(IrModule *m, IrOpKind kind, SrcLoc loc, int noperands,
                     const IrNamedAttr *attrs, int nattrs);

IrBlock *block_new(IrModule *m, IrFunc *f, IrOp *owner);
IrModule *block_module(const IrBlock *b);

/* Whether the names of a kernel's `dims` can stand in printed maps (identifiers, distinct, not like
 * d3). Fills names[0..count) and returns count, or -1. */
int kernel_dim_names(const IrAttr *dims, const char **names);
#endif
