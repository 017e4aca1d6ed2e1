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

#define SIMPLIFY "canonicalize,fold,cse,dce"
#define BACK "tile,plan,pipeline,sync,allocate"

const char *pipeline_for_level(int level, bool quantize) {
  if (level <= 0) return quantize ? "quantize,lower," BACK : "lower," BACK;
  if (!quantize) return SIMPLIFY ",lower,fuse,layout," BACK;
  return SIMPLIFY ",quantize," SIMPLIFY ",lower,fuse,layout," BACK;
}
