/* The functions handed to plugins. */
#include "ir/ir.h"

static const IrApi api = {
    .abi = NPU_PASS_ABI,
    .size = sizeof(IrApi),
#define API(ret, name, function, args) .name = function,
#include "ir/api.def"
#undef API
};

const IrApi *ir_api(void) {
  return &api;
}
