/* What a vector program does with its streams, and the element moves that compiled programs call.
 */
#include "runtime/runtime_internal.h"
#include <string.h>

void vx_use(const IsaVprog *p, VxUse *out) {
  memset(out, 0, sizeof *out);
  uint8_t where = VX_USE_ROW;
  for (int i = 0; i < p->n; i++) {
    const IsaVop *v = &p->ops[i];
    switch ((IsaVopKind)v->op) {
    case VOP_VEC:
    case VOP_ENDR: where = VX_USE_PASS; break;
    case VOP_RED: where = VX_USE_RED; break;
    case VOP_ENDV: where = VX_USE_ROW; break;
    case VOP_LD: out->load[v->stream] |= where; break;
    case VOP_ST: out->store[v->stream] |= where; break;
    default: break;
    }
  }
}

_Static_assert(DT_MACHINE_COUNT == 4, "another element type of the machine needs its lanes");

static uint32_t load_lane(const uint8_t *p, DType t) {
  uint32_t w;
  uint16_t h;
  switch (t) {
  case DT_S8: return (uint32_t)(int32_t)(int8_t)*p;
  case DT_BF16: memcpy(&h, p, 2); return (uint32_t)h << 16;
  default: memcpy(&w, p, 4); return w;
  }
}

static void store_lane(uint8_t *p, DType t, uint32_t v) {
  float f;
  uint16_t h;
  int32_t s = (int32_t)v;
  switch (t) {
  case DT_S8: *p = (uint8_t)(int8_t)(s < -128 ? -128 : s > 127 ? 127 : s); return;
  case DT_BF16:
    memcpy(&f, &v, 4);
    h = f32_to_bf16(f);
    memcpy(p, &h, 2);
    return;
  default: memcpy(p, &v, 4); return;
  }
}

void vx_load_lanes(const uint8_t *p, int64_t stride, int64_t n, uint32_t *lanes, int32_t dtype) {
  for (int64_t i = 0; i < n; i++) lanes[i] = load_lane(p + i * stride, (DType)dtype);
}

void vx_store_lanes(uint8_t *p, int64_t stride, int64_t n, const uint32_t *lanes, int32_t dtype) {
  for (int64_t i = 0; i < n; i++) store_lane(p + i * stride, (DType)dtype, lanes[i]);
}
