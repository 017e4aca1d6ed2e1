/* The built-in passes and the order they run in. */
#include "passes/passes.h"

#define PASS(name) extern const Pass pass_##name;
#include "passes/passes.def"
#undef PASS

const Pass *const builtin_passes[] = {
#define PASS(name) &pass_##name,
#include "passes/passes.def"
#undef PASS
    NULL,
};

#define SIMPLIFY "canonicalize,reassociate,fold,cse,dce,"
#define BACK ",plan,pipeline,sync,allocate"

/* 0: as written, nothing overlaps. 1: simplified, fused, tiled by search. 2: also storage orders
 * chosen. */
const char *pipeline_for_level(int level, bool quantize) {
  if (level <= 0)
    return quantize ? "roofline,quantize,lower,legalize,tile{search=false,slots=1}" BACK
                    : "roofline,lower,legalize,tile{search=false,slots=1}" BACK;
  if (level == 1)
    return quantize ? "roofline," SIMPLIFY "quantize,dce,lower,fuse,legalize,tile" BACK
                    : "roofline," SIMPLIFY "lower,fuse,legalize,tile" BACK;
  return quantize ? "roofline," SIMPLIFY "quantize," SIMPLIFY "lower,fuse,layout,legalize,tile" BACK
                  : "roofline," SIMPLIFY "lower,fuse,layout,legalize,tile" BACK;
}
