/* mm.load and mm.mul: the plane FIFO, row views, and their way to the host's matrix kernels. */
#include "runtime/runtime_internal.h"
#include <stdlib.h>
#include <string.h>

bool rt_is_plane_load(IsaInsnKind k) {
  return k == INSN_MM_LOAD || k == INSN_MM_LOAD_T;
}
bool rt_is_plane_pop(IsaInsnKind k) {
  return k == INSN_MM_MUL_POP || k == INSN_MM_MUL_POP_ACC;
}

bool rt_plane_ready(const NpurtModel *m, const IsaInsn *in, const char **why) {
  const Device *d = &m->dev;
  *why = NULL;
  if (rt_is_plane_load(in->kind) && d->waiting + 1 >= d->nplanes)
    *why = "the plane FIFO is full";
  else if (rt_is_plane_pop(in->kind) && d->waiting == 0)
    *why = "the plane FIFO is empty";
  return *why == NULL;
}

/* ---- planes ---- */

/* Gathers the elements, K-major when K is what lies contiguous. */
static void plane_copy(RtPlane *p, const IsaDesc *d, const uint8_t *spm, size_t es) {
  const uint32_t *k = d->plane.k;
  const int32_t *ks = d->plane.kstride;
  int64_t ns = d->plane.nstride;
  p->kmajor = ns != (int64_t)es && ks[2] == (int64_t)es;
  size_t kcount = 0;
  for (uint32_t a = 0; a < k[0]; a++)
    for (uint32_t b = 0; b < k[1]; b++) {
      const uint8_t *run = spm + (int64_t)a * ks[0] + (int64_t)b * ks[1];
      if (p->kmajor) {
        for (uint32_t n = 0; n < p->n; n++)
          memcpy(p->raw + ((size_t)n * p->k + kcount) * es, run + n * ns, k[2] * es);
        kcount += k[2];
        continue;
      }
      for (uint32_t c = 0; c < k[2]; c++, kcount++) {
        const uint8_t *src = run + (int64_t)c * ks[2];
        uint8_t *dst = p->raw + kcount * p->n * es;
        if (ns == (int64_t)es)
          memcpy(dst, src, p->n * es);
        else
          for (uint32_t n = 0; n < p->n; n++) memcpy(dst + n * es, src + n * ns, es);
      }
    }
}

static bool plane_prepare(NpurtModel *m, const IsaDesc *d, RowsView *v) {
  int64_t es = (int64_t)dtype_size((DType)d->dtype), lo, hi;
  int64_t count[4], stride[4];
  *v = (RowsView){.spm = d->plane.spm, .ktotal = 1};
  for (int i = 0; i < 3; i++) {
    v->k[i] = count[i] = d->plane.k[i];
    v->kstride[i] = stride[i] = d->plane.kstride[i];
    v->ktotal *= count[i];
  }
  count[3] = d->plane.n;
  stride[3] = d->plane.nstride;
  if (v->ktotal == 0 || count[3] == 0)
    return rt_trap(m, "E-desc", "a weight plane needs at least one row and one column");
  if (!rt_step(m, (double)(v->ktotal * count[3]))) return false;
  if (!rt_range(v->spm, 4, count, stride, &lo, &hi) || lo < 0 || hi > (int64_t)m->dev.spm_size - es)
    return rt_trap(
        m, "E-bounds",
        "the plane does not lie inside the scratchpad of %zu bytes: it reaches from %lld to %lld",
        m->dev.spm_size, (long long)lo, (long long)hi);
  return true;
}

static bool mm_load(NpurtModel *m, const IsaDesc *d) {
  RowsView v;
  Device *dev = &m->dev;
  if (!plane_prepare(m, d, &v)) return false;
  DType t = (DType)d->dtype;
  if (m->check) check_plane(m->check, &v, d->plane.n, d->plane.nstride, (int64_t)dtype_size(t));
  RtPlane *p = &dev->planes[(dev->first + dev->waiting) % dev->nplanes];
  p->dtype = t;
  p->k = (uint32_t)v.ktotal;
  p->n = d->plane.n;
  p->has_s8 = p->has_f32 = false;
  plane_copy(p, d, dev->spm + v.spm, dtype_size(t));
  dev->waiting++;
  return true;
}

/* ---- row views ---- */

/* Drops loops of one iteration and merges loops that continue each other; fills from the back with
 * ones. */
static void merge_loops(int64_t count[3], int64_t s0[3], int64_t s1[3]) {
  int64_t c[3] = {1, 1, 1}, a[3] = {0}, b[3] = {0};
  int at = 3;
  for (int i = 2; i >= 0; i--) {
    if (count[i] == 1) continue;
    if (at < 3 && s0[i] == c[at] * a[at] && s1[i] == c[at] * b[at]) {
      c[at] *= count[i];
      continue;
    }
    at--;
    c[at] = count[i];
    a[at] = s0[i];
    b[at] = s1[i];
  }
  memcpy(count, c, sizeof c);
  memcpy(s0, a, sizeof a);
  memcpy(s1, b, sizeof b);
}

/* Whether the loops name every place once: with strides by ascending size, each exceeds all the
 * smaller reach. */
static bool loops_distinct(const int64_t count[3], const int64_t stride[3]) {
  int64_t reach = 0;
  bool used[3] = {false};
  for (int round = 0; round < 3; round++) {
    int best = -1;
    for (int i = 0; i < 3; i++)
      if (!used[i] && (best < 0 || llabs(stride[i]) < llabs(stride[best]))) best = i;
    used[best] = true;
    if (count[best] == 1) continue;
    if (llabs(stride[best]) <= reach) return false;
    reach += (count[best] - 1) * llabs(stride[best]);
  }
  return true;
}

static bool rows_prepare(NpurtModel *m, const IsaDesc *d, RowsView *v) {
  int64_t es = (int64_t)dtype_size((DType)d->dtype), lo, hi, cols = m->img.machine.mxu_cols;
  int64_t count[6], stride[6], zero[3] = {0}, arow[3];
  *v = (RowsView){.spm = d->rows.spm, .ktotal = 1, .mtotal = 1};
  for (int i = 0; i < 3; i++) {
    v->k[i] = count[i] = d->rows.k[i];
    v->kstride[i] = stride[i] = d->rows.kstride[i];
    v->m[i] = count[3 + i] = d->rows.m[i];
    v->mstride[i] = stride[3 + i] = d->rows.mstride[i];
    arow[i] = d->rows.astride[i];
    v->ktotal *= v->k[i];
    v->mtotal *= v->m[i];
  }
  if (v->ktotal == 0 || v->mtotal == 0) return rt_step(m, 0); /* no rows: nothing to do */
  if (!rt_step(m, (double)v->ktotal * (double)v->mtotal)) return false;
  if (!rt_range(v->spm, 6, count, stride, &lo, &hi) || lo < 0 || hi > (int64_t)m->dev.spm_size - es)
    return rt_trap(
        m, "E-bounds",
        "the rows do not lie inside the scratchpad of %zu bytes: they reach from %lld to %lld",
        m->dev.spm_size, (long long)lo, (long long)hi);
  if (!rt_range(d->rows.acc, 3, v->m, arow, &lo, &hi) || lo < 0 || hi >= m->img.machine.acc_rows)
    return rt_trap(m, "E-bounds", "accumulator rows %lld..%lld are outside 0..%lld", (long long)lo,
                   (long long)hi, (long long)(m->img.machine.acc_rows - 1));
  device_touch_acc(m, (hi + 1) * cols);
  v->distinct = loops_distinct(v->m, arow);
  v->acc = (int64_t)d->rows.acc * cols;
  for (int i = 0; i < 3; i++) v->astride[i] = arow[i] * cols;
  merge_loops(v->k, v->kstride, zero);
  merge_loops(v->m, v->mstride, v->astride);
  return true;
}

/* ---- multiplying ---- */

typedef struct {
  NpurtModel *m;
  const RowsView *v;
  const RtPlane *p;
  size_t es;
  bool f32, acc, contiguous;
} Mul;

static void kernel(const Mul *u, const uint8_t *a, ptrdiff_t lda, int32_t *c, ptrdiff_t ldc,
                   size_t m) {
  if (u->f32)
    u->m->mxu->f32_mul(u->p, (const uint16_t *)(const void *)a, lda, (float *)(void *)c, ldc, m,
                       u->acc);
  else
    u->m->mxu->s8_mul(u->p, (const int8_t *)a, lda, c, ldc, m, u->acc);
}

static void pack_row(const Mul *u, const uint8_t *src, uint8_t *dst) {
  const RowsView *v = u->v;
  for (int64_t a = 0; a < v->k[0]; a++)
    for (int64_t b = 0; b < v->k[1]; b++) {
      const uint8_t *run = src + a * v->kstride[0] + b * v->kstride[1];
      size_t n = (size_t)v->k[2];
      if (v->kstride[2] == (int64_t)u->es || n == 1)
        memcpy(dst, run, n * u->es);
      else
        for (size_t i = 0; i < n; i++)
          memcpy(dst + i * u->es, run + (int64_t)i * v->kstride[2], u->es);
      dst += n * u->es;
    }
}

/* Rows collected from wherever they lie, multiplied together, results put where they belong. */
typedef struct {
  size_t n;
  int32_t *dst[RT_TMP_ROWS];
} Batch;

static void batch_flush(const Mul *u, Batch *b) {
  size_t lda = (size_t)u->m->img.machine.mxu_rows * 2 + 64,
         ldc = (size_t)u->m->img.machine.mxu_cols;
  size_t row = u->p->n * sizeof(int32_t);
  if (u->acc)
    for (size_t i = 0; i < b->n; i++) memcpy(u->m->tmp_c + i * ldc, b->dst[i], row);
  if (b->n) kernel(u, u->m->tmp_a, (ptrdiff_t)lda, u->m->tmp_c, (ptrdiff_t)ldc, b->n);
  for (size_t i = 0; i < b->n; i++) memcpy(b->dst[i], u->m->tmp_c + i * ldc, row);
  b->n = 0;
}

static void batch_run(const Mul *u, Batch *b, const uint8_t *a, int32_t *c) {
  const RowsView *v = u->v;
  size_t lda = (size_t)u->m->img.machine.mxu_rows * 2 + 64;
  size_t limit =
      v->distinct ? RT_TMP_ROWS : 1; /* a row named twice must see its own earlier result */
  for (int64_t i = 0; i < v->m[2]; i++) {
    pack_row(u, a + i * v->mstride[2], u->m->tmp_a + b->n * lda);
    b->dst[b->n++] = c + i * v->astride[2];
    if (b->n == limit) batch_flush(u, b);
  }
}

static void multiply(const Mul *u) {
  const RowsView *v = u->v;
  const uint8_t *spm = u->m->dev.spm + v->spm;
  int32_t *acc = (int32_t *)(void *)u->m->dev.acc + v->acc;
  bool direct = u->contiguous && v->distinct && (v->m[2] >= 16 || v->mtotal == v->m[2]);
  Batch b = {0};
  for (int64_t i = 0; i < v->m[0]; i++)
    for (int64_t j = 0; j < v->m[1]; j++) {
      const uint8_t *a = spm + i * v->mstride[0] + j * v->mstride[1];
      int32_t *c = acc + i * v->astride[0] + j * v->astride[1];
      if (direct)
        kernel(u, a, v->mstride[2], c, v->astride[2], (size_t)v->m[2]);
      else
        batch_run(u, &b, a, c);
    }
  batch_flush(u, &b);
}

static void plane_pack(NpurtModel *m, RtPlane *p, bool f32) {
  if (f32 && !p->has_f32) mxu_f32_pack(p);
  if (!f32 && !p->has_s8) {
    m->mxu->s8_pack(p, p->s8);
    p->has_s8 = true;
  }
}

static bool plane_current(NpurtModel *m, bool pop) {
  Device *dev = &m->dev;
  if (pop) {
    dev->current = dev->first;
    dev->first = (dev->first + 1) % dev->nplanes;
    dev->waiting--;
  } else if (dev->current == UINT32_MAX) {
    return rt_trap(m, "E-plane", "no plane was popped yet; the first multiply must be mm.mul.pop");
  }
  return true;
}

static bool mm_mul(NpurtModel *m, const IsaDesc *d, bool pop, bool acc) {
  RowsView v;
  if (!rows_prepare(m, d, &v) || !plane_current(m, pop)) return false;
  RtPlane *p = &m->dev.planes[m->dev.current];
  if (p->dtype != (DType)d->wdtype)
    return rt_trap(m, "E-plane", "the plane holds %s, the descriptor expects %s",
                   dtype_name(p->dtype), dtype_name((DType)d->wdtype));
  if (p->k != v.ktotal)
    return rt_trap(m, "E-plane", "the rows have %lld elements of K, the plane %u",
                   (long long)v.ktotal, p->k);
  if (v.mtotal == 0) return true;
  size_t es = dtype_size((DType)d->dtype);
  bool f32 = d->dtype == DT_BF16;
  profile_useful(m, (double)v.mtotal * (double)v.ktotal * p->n, f32);
  bool one_run = v.k[0] * v.k[1] == 1 && (v.k[2] == 1 || v.kstride[2] == (int64_t)es);
  Mul u = {.m = m, .v = &v, .p = p, .es = es, .f32 = f32, .acc = acc, .contiguous = one_run};
  plane_pack(m, p, f32);
  if (!m->check) {
    multiply(&u);
    return true;
  }
  check_rows(m->check, &v, (int64_t)es, p->n, acc);
  bool watch = acc && !f32;
  if (watch) check_sums_before(m->check, &v, p->n);
  multiply(&u);
  if (watch) check_sums_after(m->check, &v, p->n);
  return true;
}

#define ARGS NpurtModel *m, const IsaInsn *in, const IsaDesc *d
bool sem_MM_LOAD(ARGS) {
  return (void)in, mm_load(m, d);
}
bool sem_MM_LOAD_T(ARGS) {
  return (void)in, mm_load(m, d);
}
bool sem_MM_MUL(ARGS) {
  return (void)in, mm_mul(m, d, false, false);
}
bool sem_MM_MUL_ACC(ARGS) {
  return (void)in, mm_mul(m, d, false, true);
}
bool sem_MM_MUL_POP(ARGS) {
  return (void)in, mm_mul(m, d, true, false);
}
bool sem_MM_MUL_POP_ACC(ARGS) {
  return (void)in, mm_mul(m, d, true, true);
}
