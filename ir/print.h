/* Private to the printer and the parser of IR text. */
#ifndef NPU_IR_PRINT_H
#define NPU_IR_PRINT_H
#include "ir/internal.h"

#define TEXT_SPLAT_BYTES                                                                           \
  (16 << 20) /* largest data written as splat(...): bounds what a short text can ask for */
#define TEXT_LIST_ELEMENTS 64 /* largest data written as a list of numbers */

typedef struct {
  const IrModule *m;
  StrBuf *out;
  IrPrintOptions options;
  PtrMap *names; /* value to its printed name, mem_alloc'd */
  int indent;
} Printer;

typedef struct { /* the attributes an op's form shows, so that they are not printed again */
  const char *shown[4];
  int nshown;
} FormText;

typedef struct { /* how the attributes of one op print */
  const IrModule *m;
  int ndims; /* < 0: dimensions print as d0, d1, ... */
  const char *const *dims;
  int64_t elide_data; /* as in IrPrintOptions */
  const PathMaps *paths;
} AttrStyle;

bool text_is_word(const char *s); /* printable without quotes */
void print_word(StrBuf *b, const char *s);
void print_value(Printer *p, const IrValue *v);
void print_path(StrBuf *b, const PathMaps *paths, const char *path); /* quoted */
void print_attr(StrBuf *b, const AttrStyle *style, const IrAttr *a);
/* The form of a program op after its mnemonic. False, nothing printed, when it has none or its
 * attributes do not fit it. */
bool print_form(Printer *p, const IrOp *op, FormText *f);
/* The token that is the one result of an op of this kind written without types; NULL: no result. */
const char *form_result(IrOpKind kind);
/* Whether value is what the parser fills in when the attribute is absent. */
bool is_default(const IrOp *op, const char *name, const IrAttr *value);
#endif
