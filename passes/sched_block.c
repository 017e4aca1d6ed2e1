/* Geometry of blocks: from a tensor's affine map and the tile sizes follow the box a DMA descriptor
 * moves, where it lies in scratchpad, and the byte stride of every kernel dimension inside it. */
#include "passes/sched.h"
#include <string.h>

int64_t sched_tile(const KernelInfo *ki, const Schedule *s, int dim) {
  int64_t extent = ki->k.extent[dim], t = s->tile[dim] < extent ? s->tile[dim] : extent;
  if (t < 1) t = 1;
  if (s->block[dim] > 0) t = round_up(t, s->block[dim]);
  return t;
}

int64_t sched_tiles(const KernelInfo *ki, const Schedule *s, int dim) {
  return ceil_div(ki->k.extent[dim], sched_tile(ki, s, dim));
}

bool sched_accumulates(const KernelInfo *ki, const Schedule *s, uint32_t reduced) {
  for (int d = 0; d < ki->k.ndims; d++)
    if ((reduced & ki->tileable_red) >> d & 1 && sched_tiles(ki, s, d) > 1) return true;
  return false;
}

int sched_depth(const KernelInfo *ki, const Schedule *s, uint32_t dims) {
  (void)ki;
  int depth = 0;
  for (int i = 0; i < s->norder; i++)
    if (dims >> s->order[i] & 1) depth = i + 1;
  return depth;
}

/* One axis of the tensor while the box is put together. */
typedef struct {
  int64_t len, dstride, extent, sstride;
  IrAffine coord;
  int64_t
      inner[IR_MAX_DIMS]; /* elements of this axis between neighbours along each kernel dimension */
  int64_t first;          /* elements from the box's edge to local index 0 */
  bool fill, gather;
  int rank; /* wanted place in SPM: higher is further in */
} Axis;

/* Sums and products of a block's geometry; once one leaves 64 bits, *fits is false. */
static int64_t times(int64_t a, int64_t b, bool *fits) {
  int64_t r = 0;
  *fits = mul_i64(a, b, &r) && *fits;
  return r;
}
static void add_to(int64_t *sum, int64_t a, bool *fits) {
  *fits = add_i64(*sum, a, sum) && *fits;
}

static IrAffine affine_scaled(const IrAffine *a, int64_t by, bool *fits) {
  IrAffine r = *a;
  for (int d = 0; d < IR_MAX_DIMS; d++) r.coef[d] = times(r.coef[d], by, fits);
  r.cst = times(r.cst, by, fits);
  return r;
}

static void affine_add(IrAffine *to, const IrAffine *a, bool *fits) {
  for (int d = 0; d < IR_MAX_DIMS; d++) add_to(&to->coef[d], a->coef[d], fits);
  add_to(&to->cst, a->cst, fits);
}

static bool affine_is_constant(const IrAffine *a) {
  for (int d = 0; d < IR_MAX_DIMS; d++)
    if (a->coef[d]) return false;
  return true;
}

/* An axis read by one dimension, starting inside the tensor: the box walks every coef-th element.
 */
static bool axis_strided(Axis *ax, const IrAffine *a, int64_t extent, int dim, int64_t tile,
                         int64_t reach) {
  int64_t c = a->coef[dim];
  if (c == 1 || a->cst < 0 || a->cst >= extent) return false;
  ax->len = tile;
  ax->extent = c > 0 ? (extent - 1 - a->cst) / c + 1 : a->cst / -c + 1;
  ax->coord.coef[dim] = reach > tile;
  ax->inner[dim] = 1;
  ax->fill = reach > ax->extent;
  return true;
}

static bool axis_affine(const KernelInfo *ki, const Schedule *s, const IrAffine *a, int64_t extent,
                        int64_t stride, Axis *ax, int64_t *offset) {
  int ndims = 0, dim = 0;
  int64_t lo = a->cst, hi = a->cst;
  bool fits = true;
  ax->dstride = stride, ax->extent = extent, ax->len = 1;
  ax->coord.index = -1;
  for (int d = 0; d < ki->k.ndims; d++)
    if (a->coef[d]) ndims++, dim = d;
  int64_t reach = ndims == 1 ? sched_tiles(ki, s, dim) * sched_tile(ki, s, dim) : 0;
  if (ndims == 1 && axis_strided(ax, a, extent, dim, sched_tile(ki, s, dim), reach)) {
    add_to(offset, times(a->cst, stride, &fits), &fits);
    ax->dstride = times(stride, a->coef[dim], &fits);
    return fits;
  }
  ax->coord.cst = a->cst;
  for (int d = 0; d < ki->k.ndims; d++) {
    int64_t c = a->coef[d], t = sched_tile(ki, s, d), tiles = sched_tiles(ki, s, d);
    if (!c) continue;
    int64_t reaches = times(c, t - 1, &fits), span = times(c, tiles * t - 1, &fits);
    if (t > 1) ax->inner[d] = c;
    ax->coord.coef[d] = tiles > 1 ? c : 0;
    add_to(&ax->len, c < 0 ? times(reaches, -1, &fits) : reaches, &fits);
    add_to(c < 0 ? &lo : &hi, span, &fits);
    if (c < 0) {
      add_to(&ax->coord.cst, reaches, &fits);
      add_to(&ax->first, times(reaches, -1, &fits), &fits);
    }
  }
  ax->fill = lo < 0 || hi >= extent;
  return fits;
}

/* Merges axis i with i+1 when the inner one is whole and both walk memory and scratchpad as one. */
static bool axes_merge(Axis *ax, int *n, int i, bool *fits) {
  Axis *a = &ax[i], *b = &ax[i + 1];
  if (a->gather || b->gather || b->fill || b->len != b->extent || !affine_is_constant(&b->coord) ||
      b->coord.cst)
    return false;
  if (a->dstride != b->dstride * b->extent || a->sstride != b->sstride * b->len) return false;
  a->coord = affine_scaled(&a->coord, b->extent, fits);
  a->len = times(a->len, b->len, fits), a->extent = times(a->extent, b->extent, fits);
  a->dstride = b->dstride, a->sstride = b->sstride;
  memmove(b, b + 1, sizeof *b * (size_t)(*n - i - 2));
  (*n)--;
  return true;
}

/* Folds an always-inside axis of length one into the address. */
static void axes_fold(Axis *ax, int *n, int i, Block *b, bool *fits) {
  IrAffine bytes = affine_scaled(&ax[i].coord, ax[i].dstride, fits);
  affine_add(&b->dram, &bytes, fits);
  memmove(&ax[i], &ax[i + 1], sizeof *ax * (size_t)(*n - i - 1));
  (*n)--;
}

static void place_in_spm(Axis *ax, int n, int64_t elsize, int64_t *bytes, bool *fits) {
  bool placed[IR_MAX_RANK] = {false};
  int64_t stride = elsize;
  for (int k = 0; k < n; k++) { /* innermost first: highest rank, then the last axis */
    int best = -1;
    for (int i = 0; i < n; i++)
      if (!placed[i] && (best < 0 || ax[i].rank >= ax[best].rank)) best = i;
    placed[best] = true;
    ax[best].sstride = stride;
    stride = times(stride, ax[best].len, fits);
  }
  *bytes = stride;
}

/* What no scratchpad holds is refused before anything is computed from it. */
static bool is_block(int64_t bytes, bool fits, const char **why) {
  *why = "a block larger than any scratchpad";
  return fits && bytes <= (int64_t)UINT32_MAX + 1;
}

static bool finish_block(Axis *ax, int n, int64_t elsize, Block *b, const char **why) {
  bool fits = true;
  place_in_spm(ax, n, elsize, &b->bytes, &fits);
  if (!is_block(b->bytes, fits, why)) return false;
  for (int i = 0; i < n; i++) {
    b->first += ax[i].first * ax[i].sstride;
    for (int d = 0; d < IR_MAX_DIMS; d++) b->dim_stride[d] += ax[i].inner[d] * ax[i].sstride;
  }
  for (int i = n - 1; i >= 0; i--)
    if (ax[i].len == 1 && !ax[i].fill && !ax[i].gather && affine_is_constant(&ax[i].coord))
      axes_fold(ax, &n, i, b, &fits);
  for (int i = n - 2; i >= 0; i--) axes_merge(ax, &n, i, &fits);
  for (int i = n - 1; i >= 0 && n > 5; i--)
    if (ax[i].len == 1 && !ax[i].fill && !ax[i].gather) axes_fold(ax, &n, i, b, &fits);
  if (n == 0)
    ax[n++] =
        (Axis){.len = 1, .dstride = elsize, .extent = 1, .sstride = elsize, .coord.index = -1};
  if (n > 5) {
    *why = "blocks of more than five axes: pad, slice or update fewer at once";
    return false;
  }
  b->rank = n;
  for (int i = 0; i < n; i++) {
    b->len[i] = ax[i].len, b->dstride[i] = ax[i].dstride, b->sstride[i] = ax[i].sstride;
    b->extent[i] = ax[i].extent, b->coord[i] = ax[i].coord;
    b->fill = b->fill || ax[i].fill;
  }
  *why = "addresses of more than 64 bits";
  return fits;
}

bool sched_contracts(const KernelInfo *ki, const IrAffine *a) {
  bool any = false;
  for (int d = 0; d < ki->k.ndims; d++) {
    if (a->coef[d] && !(ki->step[ki->mxu_step].red >> d & 1)) return false;
    any = any || a->coef[d];
  }
  return any;
}

/* The dimension that alone walks an operand's last stored axis (`contraction`: its last stored
 * contraction axis) element by element; -1: none. */
static int last_dim(const KernelInfo *ki, int operand, bool contraction) {
  const IrType *t = ir_operand(ki->op, operand)->type;
  const IrMap *map = ir_kernel_in_map(ki->op, operand);
  int order[IR_MAX_RANK], i = t->rank - 1;
  ir_layout(ir_operand(ki->op, operand), order);
  while (i >= 0 &&
         (t->shape[order[i]] == 1 || (contraction && !sched_contracts(ki, &map->axis[order[i]]))))
    i--;
  if (i < 0 || map->axis[order[i]].index >= 0) return -1;
  const IrAffine *a = &map->axis[order[i]];
  int dim = -1;
  for (int d = 0; d < ki->k.ndims; d++)
    if (a->coef[d]) dim = dim < 0 && a->coef[d] == 1 ? d : IR_MAX_DIMS;
  return dim < IR_MAX_DIMS ? dim : -1;
}

/* Planes can have their contraction innermost where it is stored so and is what the streamed factor
 * has innermost too. */
static bool transposes(const KernelInfo *ki, int streamed, int plane) {
  int dim = last_dim(ki, streamed, true);
  return dim >= 0 && dim == last_dim(ki, plane, false);
}

/* Where an operand's axes lie in scratchpad: the array wants the contraction innermost in the
 * streamed factor, and in planes the columns, or the contraction where it is stored so: DMA moves
 * runs, not elements. Everything else keeps the tensor's storage order. */
static int axis_place(const KernelInfo *ki, const Schedule *s, int operand, const IrAffine *a) {
  if (ki->mxu_step < 0) return 0;
  const Step *st = &ki->step[ki->mxu_step];
  bool streamed = st->factor[s->stream] == operand, plane = st->factor[!s->stream] == operand;
  int n = sched_column_dim(ki, s->stream);
  if (plane && n >= 0 && a->coef[n] && !transposes(ki, st->factor[s->stream], operand)) return 2;
  return (streamed || plane) && sched_contracts(ki, a);
}

static bool build_block(const KernelInfo *ki, const Schedule *s, const IrValue *tensor,
                        const IrMap *map, int operand, Block *b, const char **why) {
  const IrType *t = tensor->type;
  int order[IR_MAX_RANK], n = 0;
  int64_t elsize = (int64_t)dtype_size(t->dtype), stride[IR_MAX_RANK], step = elsize, offset = 0;
  Axis ax[IR_MAX_RANK];
  memset(b, 0, sizeof *b);
  memset(ax, 0, sizeof ax);
  b->gather = -1;
  b->dram.index = -1;
  ir_layout(tensor, order);
  for (int i = t->rank - 1; i >= 0; i--) stride[order[i]] = step, step *= t->shape[order[i]];
  for (int pass = 0; pass < 2; pass++) /* the gathered axis becomes box axis 0 */
    for (int i = 0; i < t->rank; i++) {
      int a = order[i];
      const IrAffine *af = &map->axis[a];
      if ((af->index >= 0) != (pass == 0)) continue;
      Axis *x = &ax[n++];
      if (af->index < 0) {
        *why = "coordinates of more than 64 bits";
        if (!axis_affine(ki, s, af, t->shape[a], stride[a], x, &offset)) return false;
        x->rank = operand >= 0 ? axis_place(ki, s, operand, af) : 0;
        continue;
      }
      Block list;
      if (b->gather >= 0 || af->cst || !sched_operand_block(ki, s, af->index, &list, why)) {
        *why = "a gather along two axes or from an offset";
        return false;
      }
      b->gather = af->index;
      x->gather = true;
      x->dstride = stride[a], x->extent = t->shape[a], x->len = list.bytes / 4, x->coord.index = -1;
      x->first = list.first / 4;
      for (int d = 0; d < IR_MAX_DIMS; d++) x->inner[d] = list.dim_stride[d] / 4;
    }
  if (!finish_block(ax, n, elsize, b, why)) return false;
  b->dram.cst += offset;
  return true;
}

bool sched_operand_block(const KernelInfo *ki, const Schedule *s, int operand, Block *out,
                         const char **why) {
  return build_block(ki, s, ir_operand(ki->op, operand), ir_kernel_in_map(ki->op, operand), operand,
                     out, why);
}

bool sched_result_block(const KernelInfo *ki, const Schedule *s, int result, Block *out,
                        const char **why) {
  return build_block(ki, s, &ki->op->results[result], ir_kernel_out_map(ki->op, result), -1, out,
                     why);
}

bool sched_stage_block(const KernelInfo *ki, const Schedule *s, int store, Block *out,
                       const char **why) {
  const Store *st = &ki->store[store];
  bool fits = true;
  memset(out, 0, sizeof *out);
  out->gather = -1;
  out->bytes = (int64_t)dtype_size(st->dtype);
  for (int d = ki->k.ndims - 1; d >= 0; d--)
    if (st->dims >> d & 1) {
      out->dim_stride[d] = out->bytes;
      out->bytes = times(out->bytes, sched_tile(ki, s, d), &fits);
    }
  return is_block(out->bytes, fits, why);
}

void sched_acc_block(const Mxu *mx, const MachineDesc *m, Block *out) {
  memset(out, 0, sizeof *out);
  out->gather = -1;
  for (int d = 0; d < IR_MAX_DIMS; d++) out->dim_stride[d] = mx->acc_stride[d] * m->mxu_cols;
  if (mx->n >= 0) out->dim_stride[mx->n] = 1; /* column blocks of a row are neighbours */
  out->bytes = mx->acc_rows;
}
