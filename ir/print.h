/* Private to the printer and the parser of IR text. */
#ifndef NPU_IR_PRINT_H
#define NPU_IR_PRINT_H
#include "ir/internal.h"

#define TEXT_SPLAT_BYTES                                                                           \
  (16 << 20) /* largest data written as splat(...): bounds what a short text can ask for */
#define TEXT_LIST_ELEMENTS 64 /* largest data written as a list of numbers */

bool text_is_word(const char *s); /* printable without quotes */
/* ndims < 0: dimensions print as d0, d1, ... */
void print_attr(StrBuf *b, const IrModule *m, const IrAttr *a, int ndims, const char *const *dims);
/* Whether value is what the parser fills in when the attribute is absent. */
bool is_default(const IrOp *op, const char *name, const IrAttr *value);
#endif
