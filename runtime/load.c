/* From a binary to a model that can run, and the host's access to it. */
#include "runtime/runtime_internal.h"
#include <string.h>

static const SrcLoc nowhere = {0};

uint64_t rt_io_bytes(const IsaIo *io) {
  uint64_t n = dtype_size(io->dtype);
  for (int i = 0; i < io->rank; i++) n *= (uint64_t)io->shape[i];
  return n;
}

static bool io_fits(const IsaImage *img, const IsaIo *io) {
  int64_t n = (int64_t)dtype_size(io->dtype);
  if (io->rank < 0 || io->rank > 8 || io->dtype >= DT_MACHINE_COUNT) return false;
  for (int i = 0; i < io->rank; i++)
    if (io->shape[i] < 0 || !mul_i64(n, io->shape[i], &n)) return false;
  return io->addr <= img->dram_bytes && (uint64_t)n <= img->dram_bytes - io->addr;
}

/* What the reader cannot know without the machine, and what a wrong reader must not cost us. */
static bool check_image(const NpurtModel *m, DiagEngine *diag) {
  const IsaImage *img = &m->img;
  SrcLoc at = {.file = m->label};
  if (img->ninsns == 0)
    return diag_error(diag, at, "E-binary", "the binary holds no instructions"), false;
  if (img->dram_bytes > (uint64_t)img->machine.dram_bytes) {
    diag_error(
        diag, at, "E-binary", "the program uses %llu bytes of DRAM, its machine `%s` has %lld",
        (unsigned long long)img->dram_bytes, img->machine.name, (long long)img->machine.dram_bytes);
    return false;
  }
  for (uint32_t i = 0; i < img->nsegments; i++) {
    const IsaSegment *s = &img->segments[i];
    if (s->addr <= img->dram_bytes && s->size <= img->dram_bytes - s->addr) continue;
    diag_error(diag, at, "E-binary",
               "segment `%s` (%llu bytes at %llu) lies outside the program's %llu bytes of DRAM",
               s->name ? s->name : "", (unsigned long long)s->size, (unsigned long long)s->addr,
               (unsigned long long)img->dram_bytes);
    return false;
  }
  for (uint32_t i = 0; i < img->nio; i++) {
    if (io_fits(img, &img->io[i])) continue;
    diag_error(diag, at, "E-binary",
               "tensor `%s` does not lie inside the program's %llu bytes of DRAM",
               img->io[i].name ? img->io[i].name : "", (unsigned long long)img->dram_bytes);
    return false;
  }
  return true;
}

/* The machine to run on: what the program was compiled for, or another of the same sizes. */
static bool choose_machine(NpurtModel *m, DiagEngine *diag) {
  const MachineDesc *want = m->opt.machine;
  const char *key = want ? machine_size_difference(&m->img.machine, want) : NULL;
  if (key) {
    diag_error(diag, (SrcLoc){.file = m->label}, "E-machine",
               "the binary was compiled for machine `%s`, which differs from `%s` in `%s`, a size "
               "that programs are made for; compile it again for that machine, or run it without "
               "choosing one",
               m->img.machine.name, want->name, key);
    return false;
  }
  if (want) m->img.machine = *want;
  return true;
}

static bool decode_code(NpurtModel *m, DiagEngine *diag) {
  m->insns = mem_alloc(((size_t)m->img.ninsns + 1) * sizeof *m->insns);
  for (uint32_t pc = 0; pc < m->img.ninsns; pc++) {
    const char *why = "";
    if (isa_decode(m->img.code + (size_t)pc * ISA_INSN_BYTES, &m->insns[pc], &why)) continue;
    diag_error(diag, (SrcLoc){.file = m->label}, "E-binary", "instruction %u cannot be decoded: %s",
               pc, why);
    return false;
  }
  for (int k = 0; k < INSN_COUNT; k++) {
    const IsaInsnInfo *i = isa_insn_info((IsaInsnKind)k);
    m->names_desc[k] = k != INSN_DLOAD && strstr(i->operands, "dn") != NULL;
    m->desc_used[k] = i->engine != ENGINE_SEQ && m->names_desc[k];
  }
  return true;
}

/* isa_desc_check looks at counts; addresses, strides and coordinates may change without asking it
 * again. */
static void find_size_fields(NpurtModel *m) {
  static const char *const moving[] = {"dram",    "spm",  "dstride", "sstride", "coord",
                                       "extent",  "fill", "index",   "kstride", "nstride",
                                       "mstride", "acc",  "astride", "base",    "stride"};
  for (unsigned f = 0; f < isa_field_count() && f < 256; f++) {
    char name[24];
    size_t len = strcspn(isa_field_name((uint8_t)f, name), ".");
    m->size_field[f] = true;
    for (size_t i = 0; i < NPU_COUNTOF(moving); i++)
      if (strlen(moving[i]) == len && memcmp(moving[i], isa_field_name((uint8_t)f, name), len) == 0)
        m->size_field[f] = false;
  }
}

static bool check_programs(NpurtModel *m, DiagEngine *diag) {
  m->vprog_streams = mem_alloc(m->img.nvprogs + 1);
  for (uint32_t i = 0; i < m->img.nvprogs; i++) {
    const IsaVprog *p = &m->img.vprogs[i];
    const char *why = "";
    if (!isa_vprog_check(p, ISA_STREAMS, &why)) {
      diag_error(diag, (SrcLoc){.file = m->label}, "E-binary", "vector program %u: %s", i, why);
      return false;
    }
    VxUse use;
    vx_use(p, &use);
    for (int s = 0; s < ISA_STREAMS; s++)
      if (use.load[s] || use.store[s]) m->vprog_streams[i] = (uint8_t)(s + 1);
  }
  return true;
}

static bool prepare(NpurtModel *m, const char *path, DiagEngine *diag) {
  if (!check_image(m, diag) || !choose_machine(m, diag) || !decode_code(m, diag) ||
      !check_programs(m, diag))
    return false;
  find_size_fields(m);
  int host = rt_host_level();
  int allowed = (int)m->opt.host - (int)NPURT_HOST_PORTABLE;
  m->level = allowed < 0 || allowed > host ? host : allowed;
  m->mxu = mxu_kernels(m->level);
  const char *why;
  if (!device_init(m, file_is_mapped(&m->img.map) ? path : NULL, &why))
    return diag_error(diag, nowhere, "E-memory", "%s", why), false;
  const MachineDesc *mc = &m->img.machine;
  m->tmp_a = mem_alloc(RT_TMP_ROWS * ((size_t)mc->mxu_rows * 2 + 64) + 64);
  m->tmp_c = mem_alloc(RT_TMP_ROWS * (size_t)mc->mxu_cols * sizeof(int32_t));
  m->vx = vx_cache_new(&m->img, m->insns, m->level);
  profile_init(m);
  return true;
}

static NpurtModel *load(const char *path, const void *data, size_t size,
                        const NpurtOptions *options, DiagEngine *diag) {
  NpurtModel *m = mem_alloc(sizeof *m);
  m->arena = arena_new();
  m->label = arena_strdup(m->arena, path ? path : "(memory)");
  m->opt = options ? *options : (NpurtOptions){.mode = NPURT_TIMED};
  bool ok = path ? isa_image_read(path, &m->img, diag)
                 : isa_image_read_memory(data, size, m->label, &m->img, diag);
  if (ok && prepare(m, path, diag)) return m;
  npurt_free(m);
  return NULL;
}

NpurtModel *npurt_load(const char *path, const NpurtOptions *options, DiagEngine *diag) {
  return load(path, NULL, 0, options, diag);
}

NpurtModel *npurt_load_memory(const void *data, size_t size, const NpurtOptions *options,
                              DiagEngine *diag) {
  return load(NULL, data, size, options, diag);
}

void npurt_free(NpurtModel *m) {
  if (!m) return;
  check_free(m->check);
  vx_cache_free(m->vx);
  device_free(m);
  mem_free(m->insns);
  mem_free(m->vprog_streams);
  mem_free(m->ops);
  mem_free(m->op_of);
  mem_free(m->op_macs);
  mem_free(m->op_tally);
  mem_free(m->tmp_a);
  mem_free(m->tmp_c);
  mem_free(m->list);
  mem_free(m->trace);
  isa_image_free(&m->img);
  arena_free(m->arena);
  mem_free(m);
}

const IsaImage *npurt_image(const NpurtModel *m) {
  return &m->img;
}

const IsaIo *npurt_find_io(const NpurtModel *m, IsaIoRole role, const char *name) {
  for (uint32_t i = 0; i < m->img.nio; i++)
    if (m->img.io[i].role == role && strcmp(m->img.io[i].name, name) == 0) return &m->img.io[i];
  return NULL;
}

void *npurt_io_data(NpurtModel *m, const IsaIo *io) {
  return m->dev.dram + io->addr;
}

void npurt_set_arg(NpurtModel *m, int number, int64_t value) {
  if (number >= 0 && number < RT_ARGS) m->dev.args[number] = value;
}

void npurt_reset(NpurtModel *m) {
  device_reload_dram(m);
}

bool npurt_run(NpurtModel *m, DiagEngine *diag) {
  m->diag = diag;
  device_start(m);
  bool ok;
  switch (m->opt.mode) {
  case NPURT_FAST:
    ok = run_fast(m);
    profile_finish_run(m, 0);
    break;
  case NPURT_CHECK:
    if (!m->check) m->check = check_new(m);
    if (!m->check)
      return diag_error(diag, nowhere, "E-memory", "out of address space for check mode"), false;
    check_start_run(m->check);
    ok = run_timed(m);
    ok = check_finish(m->check, ok) == 0 && ok;
    break;
  default: ok = run_timed(m); break;
  }
  m->diag = NULL;
  return ok;
}
