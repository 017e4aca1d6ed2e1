/* Where a model's outputs go: the --output options, checked before anything runs. */
#ifndef NPU_OUTPUTS_H
#define NPU_OUTPUTS_H
#include "tools/samples.h"

typedef struct OutputPlan OutputPlan;
/* Checks names, file endings, types and that the files can be written. NULL after a diagnostic
 * (E-output, E-file). */
OutputPlan *outputs_plan(const ModelPort *ports, int nports, const char *const *specs, int nspecs,
                         DiagEngine *diag);
void outputs_free(OutputPlan *p);
/* Writes every file; tensors are parallel to ports. */
bool outputs_write(const OutputPlan *p, const TensorEntry *tensors, DiagEngine *diag);
#endif
