/* Programs nobody would write: random instructions over random descriptors, in all modes. Nothing
 * may crash (the memories stand between pages that trap), every failure is a diagnostic, and
 * programs that check mode finds nothing in give the same output in every mode. */
#include "runtime_util.h"
#include <stdio.h>

static Rng rng;
static int64_t between(int64_t lo, int64_t hi) {
  return rng_range(&rng, lo, hi);
}

/* Mostly reasonable, sometimes absurd. */
static int64_t number(int64_t reasonable, int64_t lo, int64_t hi) {
  const int64_t absurd[] = {0,
                            1,
                            -1,
                            127,
                            INT32_MAX,
                            INT32_MIN,
                            UINT32_MAX,
                            INT64_MAX,
                            INT64_MIN,
                            (int64_t)1 << 40,
                            reasonable + 1};
  int64_t v = between(0, 60) ? between(0, reasonable) : absurd[between(0, NPU_COUNTOF(absurd) - 1)];
  return v < lo ? lo : v > hi ? hi : v;
}

static void random_desc(IsaDesc *d, IsaDescKind kind) {
  static const char *const counts[] = {"size", "k", "n", "m", "count"};
  memset(d, 0, sizeof *d);
  d->kind = (uint8_t)kind;
  d->rank = d->kind == DESC_DMA ? (uint8_t)between(1, 5) : 0;
  if (d->kind == DESC_DMA) d->elsize = (const uint8_t[]){1, 2, 4}[between(0, 2)];
  bool bf16 = between(0, 1);
  if (d->kind == DESC_PLANE || d->kind == DESC_ROWS) d->dtype = bf16 ? DT_BF16 : DT_S8;
  if (d->kind == DESC_ROWS) d->wdtype = bf16 && between(0, 1) ? DT_BF16 : DT_S8;
  if (d->kind == DESC_VECTOR) {
    d->nstreams = (uint8_t)between(2, 4);
    for (int s = 0; s < d->nstreams; s++) {
      d->vec.stream[s].space = (uint8_t)(between(0, 3) == 0);
      d->vec.stream[s].dtype =
          (uint8_t)(d->vec.stream[s].space ? between(DT_F32, DT_S32) : between(DT_S8, DT_S32));
    }
  }
  for (unsigned f = 0; f < isa_field_count(); f++) {
    char buf[24];
    const char *name = isa_field_name((uint8_t)f, buf);
    size_t len = strcspn(name, ".");
    if (!isa_field_in_kind((uint8_t)f, (IsaDescKind)d->kind)) continue;
    if (d->kind == DESC_VECTOR &&
        (strncmp(name, "base", 4) == 0 || strncmp(name, "stride", 6) == 0)) {
      int64_t e = atoi(name + len + 1), s = name[0] == 'b' ? e : e / 5;
      if (s >= d->nstreams) continue;
    }
    bool count = false;
    for (size_t i = 0; i < NPU_COUNTOF(counts); i++)
      count = count || (strlen(counts[i]) == len && strncmp(name, counts[i], len) == 0);
    int64_t v = count ? number(between(0, 3) ? 4 : 20, 0, UINT32_MAX)
                      : number(strstr(name, "stride") ? 16 : 512, INT64_MIN, INT64_MAX);
    if (strncmp(name, "extent", 6) == 0 && between(0, 3)) v = 600;
    isa_field_set(d, (uint8_t)f, v);
  }
}

static int64_t register_for(IsaInsnKind k) {
  switch (isa_insn_info(k)->engine) {
  case ENGINE_LD0:
  case ENGINE_LD1:
  case ENGINE_ST: return 0;
  case ENGINE_MXW: return 1;
  case ENGINE_MXM: return 2;
  case ENGINE_VPU: return 3;
  default: return between(0, 3);
  }
}

static void random_insn(IsaInsn *in, uint32_t ninsns, uint32_t ndescs, uint32_t nvprogs) {
  memset(in, 0, sizeof *in);
  in->kind = (IsaInsnKind)between(0, INSN_COUNT - 1);
  if (between(0, 1)) in->kind = (IsaInsnKind)between(INSN_DLOAD, INSN_VX);
  if (in->kind == INSN_HALT && between(0, 3)) in->kind = INSN_FENCE;
  const char *ops = isa_insn_info(in->kind)->operands;
  if (strstr(ops, "rd")) in->rd = (uint8_t)between(0, 3);
  if (strstr(ops, "rs") || strstr(ops, "mem")) in->rs = (uint8_t)between(0, 3);
  if (strstr(ops, "rt")) in->rt = (uint8_t)between(0, 3);
  if (strstr(ops, "dn"))
    in->dn = (uint8_t)(between(0, 30) ? register_for(in->kind) : between(0, 3));
  if (strstr(ops, "fld")) do
      in->field = (uint8_t)between(0, isa_field_count() - 1);
    while (between(0, 30) && !isa_field_in_kind(in->field, (IsaDescKind)(DESC_DMA + in->dn)));
  if (strstr(ops, "tgt")) in->target = (uint32_t)between(0, ninsns - 1);
  if (strstr(ops, "idx")) in->target = (uint32_t)(between(0, ndescs / 4 - 1) * 4 + in->dn);
  if (strstr(ops, "vp")) in->vp = (uint16_t)between(0, nvprogs - 1);
  if (strstr(ops, "imm")) in->imm = number(40, -((int64_t)1 << 47), ((int64_t)1 << 47) - 1);
  if (strstr(ops, "mem")) in->imm = number(400, INT32_MIN, INT32_MAX);
  if (in->kind == INSN_SHL || in->kind == INSN_SHR) in->imm &= 63;
  if (in->kind == INSN_ARG) in->imm &= 63;
  bool engine = isa_insn_info(in->kind)->engine != ENGINE_SEQ || in->kind == INSN_TAKE ||
                in->kind == INSN_GIVE;
  for (int i = 0; engine && i < 2; i++) {
    if (between(0, 12) == 0) in->take[i] = (IsaSemRef){(uint8_t)between(0, 2), 1};
    if (between(0, 2) == 0)
      in->give[i] = (IsaSemRef){(uint8_t)between(0, 2), (uint8_t)between(1, 3)};
  }
}

static const char *const programs[] = {
    "vec; ld v0, s0; st s1, v0; endv",
    ("vec; ld v0, s0; rmax.f r0, v0; endv; vec; ld v0, s1; sub.f v0, v0, r0; st s1, v0; endv; "
     "st s0, r0"),
    "vec; mov v0, 0; red; ld v1, s1; add.i v0, v0, v1; endr; st s0, v0; endv",
};

/* Descriptor i is of kind i mod 4, and register i mostly holds one of that kind. */
enum { INSNS = 24, DESCS = 12 };

static void random_image(IsaImage *img) {
  char why[160];
  isa_image_init(img);
  img->dram_bytes = 8192;
  img->ninsns = INSNS;
  img->ndescs = DESCS;
  img->nvprogs = NPU_COUNTOF(programs);
  img->code = arena_alloc(img->arena, INSNS * ISA_INSN_BYTES);
  img->descs = ARENA_ARRAY(img->arena, IsaDesc, DESCS);
  img->vprogs = ARENA_ARRAY(img->arena, IsaVprog, NPU_COUNTOF(programs));
  for (size_t i = 0; i < NPU_COUNTOF(programs); i++)
    assert_true(isa_vprog_parse(programs[i], &img->vprogs[i], why));
  for (uint32_t i = 0; i < DESCS; i++) do
      random_desc(&img->descs[i], (IsaDescKind)(DESC_DMA + i % 4));
    while (!isa_desc_check(&img->descs[i], &img->machine, &(const char *){NULL}));
  for (uint32_t i = 0; i < INSNS; i++) {
    IsaInsn in = {.kind = i == INSNS - 1 ? INSN_HALT : INSN_DLOAD, .dn = (uint8_t)(i % 4)};
    const char *text;
    if (i < 4) in.target = i;
    if (i == INSNS - 1) in.dn = 0;
    uint8_t *code = img->code + i * ISA_INSN_BYTES;
    do { /* not every choice can be encoded */
      if (i >= 4 && i < INSNS - 1) random_insn(&in, INSNS, DESCS, img->nvprogs);
    } while (!isa_encode(&in, code, &text) && i >= 4 && i < INSNS - 1);
  }
  img->io = ARENA_ARRAY(img->arena, IsaIo, 2);
  img->nio = 2;
  img->io[0] = (IsaIo){.role = IO_INPUT, .name = "x", .dtype = DT_S8, .rank = 1, .shape = {4096}};
  img->io[1] = (IsaIo){
      .role = IO_STATE, .name = "y", .dtype = DT_S8, .rank = 1, .shape = {4096}, .addr = 4096};
}

/* What a run left: whether it succeeded, and the state (an output would have to be written). */
static bool run_image(const char *path, NpurtMode mode, NpurtHost host, uint8_t out[4096]) {
  Run r = {.diag = diag_new()};
  NpurtOptions o = {.mode = mode, .host = host, .max_instructions = 3000};
  r.m = npurt_load(path, &o, r.diag);
  if (!r.m) show(r.diag);
  assert_non_null(r.m);
  uint8_t *x = io_bytes(&r, IO_INPUT, "x");
  for (int i = 0; i < 4096; i++)
    x[i] = (uint8_t)(i % 251 == 0 ? 3 : 0); /* also a plausible index list */
  bool ok = npurt_run(r.m, r.diag);
  assert_int_equal(ok, diag_errors(r.diag) == 0);
  memcpy(out, io_bytes(&r, IO_STATE, "y"), 4096);
  run_free(&r);
  return ok;
}

static void random_images(void **state) {
  (void)state;
  int n = getenv("HOSTILE_IMAGES") ? atoi(getenv("HOSTILE_IMAGES")) : 300, clean = 0;
  rng_seed(&rng, getenv("HOSTILE_SEED") ? strtoull(getenv("HOSTILE_SEED"), NULL, 0) : 7);
  char path[] = "/tmp/npurt-hostile-XXXXXX";
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  for (int i = 0; i < n; i++) {
    IsaImage img;
    random_image(&img);
    DiagEngine *d = diag_new();
    if (!isa_image_write(&img, path, d)) show(d);
    assert_int_equal(diag_errors(d), 0);
    diag_free(d);
    isa_image_free(&img);
    static uint8_t fast[4096], timed[4096], check[4096];
    bool fast_ok = run_image(path, NPURT_FAST, (NpurtHost)(NPURT_HOST_PORTABLE + i % 4), fast),
         timed_ok = run_image(path, NPURT_TIMED, NPURT_HOST_BEST, timed);
    bool check_ok = run_image(path, NPURT_CHECK, NPURT_HOST_BEST, check);
    if (!check_ok) continue;
    clean++;
    assert_true(timed_ok);
    assert_memory_equal(timed, check, 4096);
    if (fast_ok) assert_memory_equal(timed, fast, 4096);
  }
  if (n >= 300) assert_true(clean > 0);
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(random_images)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
