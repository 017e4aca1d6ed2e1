/* vx: bounds of every stream, then the compiled program. */
#include "runtime/runtime_internal.h"

/* Highest byte a stream reaches + 1; false after a trap. Only the loops that a use walks count. */
static bool check_stream(NpurtModel *m, const IsaDesc *d, int s, unsigned use, bool store) {
  int64_t count[5], stride[5], lo, hi;
  bool acc = d->vec.stream[s].space == SPACE_ACC;
  int64_t size = acc ? (int64_t)(m->dev.acc_size / 4) : (int64_t)m->dev.spm_size;
  int64_t es = acc ? 1 : (int64_t)dtype_size((DType)d->vec.stream[s].dtype);
  bool walk[5] = {true, true, use & VX_USE_RED, use & VX_USE_RED, use & (VX_USE_RED | VX_USE_PASS)};
  for (int j = 0; j < 5; j++) {
    count[j] = walk[j] ? d->vec.count[j] : 1;
    stride[j] = d->vec.stream[s].stride[j];
    if (count[j] == 0) return true;
  }
  if (!rt_range(d->vec.stream[s].base, 5, count, stride, &lo, &hi) || lo < 0 || hi > size - es)
    return rt_trap(m, "E-bounds",
                   "stream %d does not lie inside the %s of %lld %s: it reaches from %lld to %lld",
                   s, acc ? "accumulators" : "scratchpad", (long long)size, acc ? "words" : "bytes",
                   (long long)lo, (long long)hi);
  if (store) {
    if (acc)
      device_touch_acc(m, hi + 1);
    else
      device_touch_spm(m, hi + es);
  }
  return true;
}

static bool check_streams(NpurtModel *m, const IsaDesc *d, const VxUse *use) {
  for (int s = 0; s < d->nstreams; s++) {
    /* A use in the reduction body reaches furthest; the others stay at its start, which may be
     * another place only when the body never runs. */
    unsigned uses[3] = {VX_USE_ROW, VX_USE_PASS, VX_USE_RED};
    for (int i = 0; i < 3; i++) {
      if (use->load[s] & uses[i] && !check_stream(m, d, s, uses[i], false)) return false;
      if (use->store[s] & uses[i] && !check_stream(m, d, s, uses[i], true)) return false;
    }
  }
  return true;
}

bool sem_VX(NpurtModel *m, const IsaInsn *in, const IsaDesc *d) {
  const IsaVprog *p = &m->img.vprogs[in->vp];
  double elements = 1; /* an empty inner loop still costs its outer ones */
  VxArgs args;
  char why[256];
  for (int j = 0; j < 5; j++) {
    args.count[j] = d->vec.count[j];
    elements *= j < VLOOP_R0 || d->vec.count[j] ? (double)d->vec.count[j] : 1;
  }
  if (!rt_step(m, elements)) return false;
  if (!check_streams(m, d, vx_cache_use(m->vx, in->vp))) return false;
  for (int s = 0; s < d->nstreams; s++) {
    bool acc = d->vec.stream[s].space == SPACE_ACC;
    args.base[s] = (acc ? m->dev.acc : m->dev.spm) + (size_t)d->vec.stream[s].base * (acc ? 4 : 1);
    for (int j = 0; j < 5; j++)
      args.stride[s][j] = (int64_t)d->vec.stream[s].stride[j] * (acc ? 4 : 1);
  }
  VxFn fn = vx_cache_get(m->vx, in->vp, d, elements, why);
  if (!fn) return rt_trap(m, "E-jit", "the vector program cannot be compiled: %s", why);
  if (m->check) check_vx(m->check, p, d);
  fn(&args);
  return true;
}
