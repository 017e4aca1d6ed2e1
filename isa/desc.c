/* Descriptor fields by number and name, and the rules a descriptor obeys. */
#include "isa/isa_internal.h"
#include <string.h>

_Static_assert(sizeof(IsaDesc) == 256, "the descriptor record is part of the binary format");

enum {
  KIND_D = 1 << DESC_DMA,
  KIND_W = 1 << DESC_PLANE,
  KIND_M = 1 << DESC_ROWS,
  KIND_V = 1 << DESC_VECTOR
};

static const struct {
  const char *name;
  unsigned kinds;
  uint8_t first, count, size;
  bool is_signed;
  const char *doc;
} rows[] = {
#define D KIND_D
#define W KIND_W
#define M KIND_M
#define V KIND_V
#define FIELD(e, name, kinds, type, count, doc)                                                    \
  {name, kinds, ISA_FIELD_##e, count, sizeof(type), (type)-1 < (type)1, doc},
#include "isa/descfields.def"
#undef FIELD
};

/* Places the rows ask for: one per kind of descriptor but vector ones, and those. */
enum {
#define FIELD(e, name, kinds, type, count, doc)                                                    \
  +!!((kinds)&KIND_D) + !!((kinds)&KIND_W) + !!((kinds)&KIND_M)
  PLACES = 0
#include "isa/descfields.def"
#undef FIELD
#define FIELD(e, name, kinds, type, count, doc) +!!((kinds)&KIND_V)
  ,
  VECTOR_PLACES = 0
#include "isa/descfields.def"
#undef FIELD
};
#undef D
#undef W
#undef M
#undef V

/* Where a field lives, per kind; the record's layout is the struct. */
static uint16_t row_offset(unsigned row, IsaDescKind kind) {
  static const uint16_t dma[][2] = {{ISA_FIELD_DRAM, offsetof(IsaDesc, dma.dram)},
                                    {ISA_FIELD_SPM, offsetof(IsaDesc, dma.spm)},
                                    {ISA_FIELD_SIZE, offsetof(IsaDesc, dma.size)},
                                    {ISA_FIELD_DSTRIDE, offsetof(IsaDesc, dma.dstride)},
                                    {ISA_FIELD_SSTRIDE, offsetof(IsaDesc, dma.sstride)},
                                    {ISA_FIELD_COORD, offsetof(IsaDesc, dma.coord)},
                                    {ISA_FIELD_EXTENT, offsetof(IsaDesc, dma.extent)},
                                    {ISA_FIELD_FILL, offsetof(IsaDesc, dma.fill)},
                                    {ISA_FIELD_INDEX, offsetof(IsaDesc, dma.index)},
                                    {ISA_FIELDS, 0}};
  static const uint16_t plane[][2] = {{ISA_FIELD_SPM, offsetof(IsaDesc, plane.spm)},
                                      {ISA_FIELD_KCOUNT, offsetof(IsaDesc, plane.k)},
                                      {ISA_FIELD_KSTRIDE, offsetof(IsaDesc, plane.kstride)},
                                      {ISA_FIELD_NCOUNT, offsetof(IsaDesc, plane.n)},
                                      {ISA_FIELD_NSTRIDE, offsetof(IsaDesc, plane.nstride)},
                                      {ISA_FIELDS, 0}};
  static const uint16_t mrows[][2] = {{ISA_FIELD_SPM, offsetof(IsaDesc, rows.spm)},
                                      {ISA_FIELD_KCOUNT, offsetof(IsaDesc, rows.k)},
                                      {ISA_FIELD_KSTRIDE, offsetof(IsaDesc, rows.kstride)},
                                      {ISA_FIELD_MCOUNT, offsetof(IsaDesc, rows.m)},
                                      {ISA_FIELD_MSTRIDE, offsetof(IsaDesc, rows.mstride)},
                                      {ISA_FIELD_ACC, offsetof(IsaDesc, rows.acc)},
                                      {ISA_FIELD_ASTRIDE, offsetof(IsaDesc, rows.astride)},
                                      {ISA_FIELDS, 0}};
  _Static_assert(NPU_COUNTOF(dma) + NPU_COUNTOF(plane) + NPU_COUNTOF(mrows) - 3 == PLACES,
                 "a field of descfields.def has no place above");
  const uint16_t(*t)[2] = kind == DESC_DMA ? dma : kind == DESC_PLANE ? plane : mrows;
  for (; (*t)[0] != ISA_FIELDS; t++)
    if ((*t)[0] == rows[row].first) return (*t)[1];
  return 0;
}

static uint16_t vector_offset(unsigned first, unsigned element) {
  _Static_assert(VECTOR_PLACES == 3, "a field of vector descriptors has no place below");
  size_t s = sizeof(((IsaDesc *)0)->vec.stream[0]);
  if (first == ISA_FIELD_BASE)
    return (uint16_t)(offsetof(IsaDesc, vec.stream[0].base) + s * element);
  if (first == ISA_FIELD_STRIDE)
    return (uint16_t)(offsetof(IsaDesc, vec.stream[0].stride) + s * (element / 5) +
                      4 * (element % 5));
  return (uint16_t)(offsetof(IsaDesc, vec.count) + 4 * element);
}

unsigned isa_field_count(void) {
  return ISA_FIELDS;
}

/* Rows lie in the order of their fields. */
static unsigned row_of(unsigned field) {
  unsigned low = 0, high = NPU_COUNTOF(rows);
  if (field >= ISA_FIELDS) return high;
  while (high - low > 1) {
    unsigned middle = (low + high) / 2;
    if (field < rows[middle].first)
      high = middle;
    else
      low = middle;
  }
  return low;
}

bool isa_field_info(unsigned field, IsaDescKind kind, IsaField *out) {
  unsigned r = row_of(field);
  if (r == NPU_COUNTOF(rows)) return false;
  if (kind != DESC_NONE && !(rows[r].kinds >> kind & 1)) return false;
  unsigned e = field - rows[r].first;
  *out = (IsaField){.name = rows[r].name,
                    .kinds = rows[r].kinds,
                    .element = (uint8_t)e,
                    .count = rows[r].count,
                    .size = rows[r].size,
                    .is_signed = rows[r].is_signed,
                    .doc = rows[r].doc};
  if (kind == DESC_VECTOR)
    out->offset = vector_offset(rows[r].first, e);
  else if (kind != DESC_NONE)
    out->offset = (uint16_t)(row_offset(r, kind) + e * rows[r].size);
  return true;
}

bool isa_field_in_kind(unsigned field, IsaDescKind kind) {
  unsigned r = row_of(field);
  return r != NPU_COUNTOF(rows) && kind != DESC_NONE && kind <= DESC_VECTOR &&
         rows[r].kinds >> kind & 1;
}

bool isa_field_by_name(IsaDescKind kind, const char *name, uint8_t *out) {
  const char *dot = strchr(name, '.');
  size_t len = dot ? (size_t)(dot - name) : strlen(name);
  int64_t element = 0;
  if (dot && (!parse_i64(dot + 1, &element) || element < 0 || dot[1] == '+' || dot[1] == '-'))
    return false;
  for (unsigned r = 0; r < NPU_COUNTOF(rows); r++) {
    if (strlen(rows[r].name) != len || memcmp(rows[r].name, name, len) != 0) continue;
    if (kind != DESC_NONE && !(rows[r].kinds >> kind & 1)) return false;
    if ((dot != NULL) != (rows[r].count > 1) || element >= rows[r].count) return false;
    *out = (uint8_t)(rows[r].first + element);
    return true;
  }
  return false;
}

const char *isa_field_name(unsigned field, char buf[24]) {
  unsigned r = row_of(field);
  if (r == NPU_COUNTOF(rows)) return "?";
  if (rows[r].count == 1) return rows[r].name;
  snprintf(buf, 24, "%s.%u", rows[r].name, field - rows[r].first);
  return buf;
}

int64_t isa_field_get(const IsaDesc *d, unsigned field) {
  IsaField f;
  if (d->kind == DESC_NONE || d->kind > DESC_VECTOR || !isa_field_info(field, d->kind, &f))
    return 0;
  const uint8_t *p = (const uint8_t *)d + f.offset;
  if (f.size == 8) {
    int64_t v;
    memcpy(&v, p, 8);
    return v;
  }
  uint32_t v;
  memcpy(&v, p, 4);
  return f.is_signed ? (int64_t)(int32_t)v : (int64_t)v;
}

bool isa_field_set(IsaDesc *d, unsigned field, int64_t value) {
  IsaField f;
  if (d->kind == DESC_NONE || d->kind > DESC_VECTOR || !isa_field_info(field, d->kind, &f))
    return false;
  uint8_t *p = (uint8_t *)d + f.offset;
  if (f.size == 8) {
    memcpy(p, &value, 8);
    return true;
  }
  if (f.is_signed ? value < INT32_MIN || value > INT32_MAX : value < 0 || value > UINT32_MAX)
    return false;
  uint32_t v = (uint32_t)value;
  memcpy(p, &v, 4);
  return true;
}

static const char *const kind_names[] = {[DESC_NONE] = "none",
                                         [DESC_DMA] = "dma",
                                         [DESC_PLANE] = "plane",
                                         [DESC_ROWS] = "rows",
                                         [DESC_VECTOR] = "vector"};
const char *isa_desc_kind_name(IsaDescKind k) {
  return k <= DESC_VECTOR ? kind_names[k] : "?";
}
bool isa_desc_kind_by_name(const char *name, IsaDescKind *out) {
  for (unsigned k = DESC_DMA; k <= DESC_VECTOR; k++)
    if (strcmp(kind_names[k], name) == 0) {
      *out = (IsaDescKind)k;
      return true;
    }
  return false;
}

static bool refuse(const char **why, const char *text) {
  if (why) *why = text;
  return false;
}

/* Copies the header members and fields the kind defines into a zeroed record. */
static void canonical(const IsaDesc *d, IsaDesc *out) {
  memset(out, 0, sizeof *out);
  out->kind = d->kind;
  if (d->kind == DESC_DMA) {
    out->rank = d->rank;
    out->elsize = d->elsize;
  }
  if (d->kind == DESC_PLANE || d->kind == DESC_ROWS) out->dtype = d->dtype;
  if (d->kind == DESC_ROWS) out->wdtype = d->wdtype;
  if (d->kind == DESC_VECTOR) {
    out->nstreams = d->nstreams;
    for (unsigned s = 0; s < d->nstreams && s < ISA_STREAMS; s++) {
      out->vec.stream[s].space = d->vec.stream[s].space;
      out->vec.stream[s].dtype = d->vec.stream[s].dtype;
    }
  }
  for (unsigned f = 0; f < ISA_FIELDS; f++) {
    if (!isa_field_in_kind(f, d->kind)) continue;
    if (d->kind == DESC_VECTOR &&
        ((f >= ISA_FIELD_BASE + (unsigned)d->nstreams && f <= ISA_FIELD_END_BASE) ||
         f >= ISA_FIELD_STRIDE + 5u * d->nstreams))
      continue;
    isa_field_set(out, f, isa_field_get(d, f));
  }
}

/* Bytes the kind does not define are zero and the small header fields are in range. */
static bool wellformed(const IsaDesc *d, const char **why) {
  switch (d->kind) {
  case DESC_DMA:
    if (d->rank < 1 || d->rank > 5) return refuse(why, "rank of a DMA box is 1..5");
    if (d->elsize != 1 && d->elsize != 2 && d->elsize != 4)
      return refuse(why, "elsize of a DMA box is 1, 2 or 4 bytes");
    break;
  case DESC_PLANE:
    if (d->dtype != DT_S8 && d->dtype != DT_BF16)
      return refuse(why, "dtype of a plane is s8 or bf16");
    break;
  case DESC_ROWS:
    if (d->dtype != DT_S8 && d->dtype != DT_BF16) return refuse(why, "dtype of rows is s8 or bf16");
    if (d->wdtype != DT_S8 && d->wdtype != DT_BF16) return refuse(why, "wdtype is s8 or bf16");
    if (d->dtype == DT_S8 && d->wdtype == DT_BF16)
      return refuse(why, "s8 rows do not multiply bf16 planes: use s8*s8, bf16*bf16 or bf16*s8");
    break;
  case DESC_VECTOR:
    if (d->nstreams > ISA_STREAMS) return refuse(why, "a vector descriptor has at most 8 streams");
    for (unsigned s = 0; s < d->nstreams; s++) {
      if (d->vec.stream[s].space > SPACE_ACC) return refuse(why, "stream space is spm or acc");
      if (d->vec.stream[s].dtype >= DT_MACHINE_COUNT)
        return refuse(why, "stream dtype is s8, bf16, f32 or s32");
      if (d->vec.stream[s].space == SPACE_ACC && dtype_size((DType)d->vec.stream[s].dtype) != 4)
        return refuse(why, "an acc stream is f32 or s32");
    }
    break;
  default: return refuse(why, "unknown descriptor kind");
  }
  IsaDesc c;
  canonical(d, &c);
  if (memcmp(&c, d, sizeof c) != 0)
    return refuse(why, "bytes that this descriptor kind does not use are not zero");
  return true;
}

/* a*b*... <= limit without overflow. */
static bool product_within(const uint32_t *v, unsigned n, int64_t limit) {
  int64_t p = 1;
  for (unsigned i = 0; i < n; i++)
    if (!mul_i64(p, v[i], &p)) return false;
  return p <= limit;
}

bool isa_desc_check(const IsaDesc *d, const MachineDesc *m, const char **why) {
  return wellformed(d, why) && isa_desc_fits(d, m, why);
}

bool isa_desc_fits(const IsaDesc *d, const MachineDesc *m, const char **why) {
  const int64_t many = (int64_t)1 << 40;
  switch (d->kind) {
  case DESC_DMA:
    if (!product_within(d->dma.size, d->rank, UINT32_MAX))
      return refuse(why, "size: a DMA box has at most 2^32 - 1 elements");
    break;
  case DESC_PLANE:
    if (!product_within(d->plane.k, 3, m->mxu_rows))
      return refuse(why, "k: more K elements than the array has rows (mxu_rows)");
    if (d->plane.n > m->mxu_cols)
      return refuse(why, "n: more N elements than the array has columns (mxu_cols)");
    break;
  case DESC_ROWS:
    if (!product_within(d->rows.k, 3, m->mxu_rows))
      return refuse(why, "k: more K elements than the array has rows (mxu_rows)");
    if (!product_within(d->rows.m, 3, many)) return refuse(why, "m: too many rows");
    break;
  case DESC_VECTOR:
    if (!product_within(d->vec.count, 5, many)) return refuse(why, "count: too many iterations");
    break;
  default: return refuse(why, "unknown descriptor kind");
  }
  return true;
}
