/* frontend: model files to graph IR. Includes ir and support only. */
#ifndef NPU_FRONTEND_H
#define NPU_FRONTEND_H
#include "ir/ir.h"

NPU_C_BEGIN

typedef struct {
  const char *name;
  int64_t value;
} MdlDefine; /* -D NAME=VALUE */
typedef struct {
  const MdlDefine *defines;
  size_t ndefines;
  const char *model;               /* which model of the file; NULL: the only one, or the last */
  const char *const *weight_files; /* searched before those the model names; may be empty */
  size_t nweight_files;
  /* Like defines, "NAME=text": the text is read as what the parameter's default is, an integer, a
   * real, true or false, an element type, or itself. */
  const char *const *settings;
  size_t nsettings;
} MdlOptions;
/* Reads path ("-": standard input) and everything it imports into a module with one graph-level
 * function. Function arguments are the model's inputs by name, result_names its outputs. NULL after
 * at least one error in diag; all independent errors of the file are reported. */
IrModule *mdl_read(const char *path, const MdlOptions *options, DiagEngine *diag);
IrModule *mdl_read_text(const char *text, size_t len, const char *label, const MdlOptions *options,
                        DiagEngine *diag);
/* The reference manual of operators (markdown), from the op table. */
void mdl_manual(StrBuf *out);
NPU_C_END
#endif
