/* Native code of vector programs: which specialisations exist, and LLVM's ORC JIT behind them. The
 * first request compiles every specialisation that the image's code shows statically, in one
 * module; others follow one by one. */
#include "runtime/vx_internal.h"
#include <llvm-c/LLJIT.h>
#include <llvm-c/Orc.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm-c/Transforms/PassBuilder.h>
#include <llvm/Config/llvm-config.h>
#include <string.h>
#include <threads.h>

typedef struct {
  VxKey key;
  VxFn fn;
  bool tuned;  /* compiled with optimization */
  double work; /* lane operations so far */
} VxEntry;

/* Lane operations after which compiling again pays: about as long as the compilation takes. */
static const double hot = 1 << 25;

enum { QUICK, TUNED, TIERS };

struct VxCache {
  const IsaImage *img;
  const IsaInsn *insns;
  VxUse *use; /* per program */
  int level;
  LLVMOrcLLJITRef jit[TIERS];
  VxEntry *entries;
  size_t n, cap;
  size_t *slots; /* open addressing by key hash: entry + 1 */
  size_t nslots;
  bool scanned;
};

static once_flag llvm_once = ONCE_FLAG_INIT;
static void llvm_start(void) {
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
}

/* ---- keys ---- */

static VxKey key_of(const VxCache *c, uint32_t vp, const IsaDesc *d) {
  VxKey k;
  memset(&k, 0, sizeof k);
  k.vp = vp;
  const VxUse *use = &c->use[vp];
  for (int s = 0; s < d->nstreams; s++) {
    if (!use->load[s] && !use->store[s]) continue;
    k.dtype[s] = d->vec.stream[s].dtype;
    int64_t es = d->vec.stream[s].space == SPACE_ACC ? 1 : (int64_t)dtype_size((DType)k.dtype[s]);
    int64_t stride = d->vec.stream[s].stride[VLOOP_V];
    /* The stride of a loop of one iteration means nothing. */
    k.kind[s] = d->vec.count[VLOOP_V] <= 1 || stride == es ? VX_UNIT
                : stride == 0                              ? VX_ZERO
                                                           : VX_STRIDED;
  }
  return k;
}

static size_t key_hash(const VxKey *k) {
  const uint8_t *p = (const uint8_t *)k;
  uint64_t h = 1469598103934665603u; /* FNV-1a */
  for (size_t i = 0; i < sizeof *k; i++) h = (h ^ p[i]) * 1099511628211u;
  return (size_t)h;
}

static VxEntry *key_find(VxCache *c, const VxKey *k) {
  if (!c->nslots) return NULL;
  for (size_t i = key_hash(k);; i++) {
    size_t at = c->slots[i & (c->nslots - 1)];
    if (!at) return NULL;
    if (memcmp(&c->entries[at - 1].key, k, sizeof *k) == 0) return &c->entries[at - 1];
  }
}

static void slot_put(VxCache *c, size_t entry) {
  size_t i = key_hash(&c->entries[entry].key);
  while (c->slots[i & (c->nslots - 1)]) i++;
  c->slots[i & (c->nslots - 1)] = entry + 1;
}

static void key_add(VxCache *c, const VxKey *k) {
  if (c->n == c->cap) {
    c->cap = c->cap ? 2 * c->cap : 16;
    c->entries = mem_realloc(c->entries, c->cap * sizeof *c->entries);
    mem_free(c->slots);
    c->nslots = 2 * c->cap;
    c->slots = mem_alloc(c->nslots * sizeof *c->slots);
    for (size_t i = 0; i < c->n; i++) slot_put(c, i);
  }
  c->entries[c->n] = (VxEntry){.key = *k};
  slot_put(c, c->n++);
}

/* Follows descriptor loads through the code in order and notes what each vx would see. */
static void scan_code(VxCache *c) {
  const IsaDesc *held[ISA_DESCS] = {0};
  for (uint32_t pc = 0; pc < c->img->ninsns; pc++) {
    const IsaInsn *in = &c->insns[pc];
    if (in->kind == INSN_DLOAD && in->target < c->img->ndescs)
      held[in->dn] = &c->img->descs[in->target];
    const char *why;
    const IsaDesc *d = in->kind == INSN_VX ? held[in->dn] : NULL;
    if (!d || d->kind != DESC_VECTOR || in->vp >= c->img->nvprogs) continue;
    if (!isa_vprog_check(&c->img->vprogs[in->vp], d->nstreams, &why)) continue;
    VxKey k = key_of(c, in->vp, d);
    if (!key_find(c, &k)) key_add(c, &k);
  }
  c->scanned = true;
}

/* ---- LLVM ---- */

static bool fail(char why[256], LLVMErrorRef err) {
  char *text = LLVMGetErrorMessage(err);
  snprintf(why, 256, "%s", text);
  LLVMDisposeErrorMessage(text);
  return false;
}

static LLVMTargetMachineRef target_machine(int level, int tier, char why[256]) {
  static const char *const cpus[] = {"x86-64", "x86-64-v3", "x86-64-v4", "x86-64-v4"};
  char *triple = LLVMGetDefaultTargetTriple(), *host = LLVMGetHostCPUName(), *error = NULL;
  const char *cpu = strncmp(triple, "x86_64", 6) == 0 ? cpus[level] : host;
  LLVMTargetRef target;
  LLVMTargetMachineRef tm = NULL;
  if (LLVMGetTargetFromTriple(triple, &target, &error)) {
    snprintf(why, 256, "%s", error);
    LLVMDisposeMessage(error);
  } else {
    tm = LLVMCreateTargetMachine(target, triple, cpu, "",
                                 tier == TUNED ? LLVMCodeGenLevelLess : LLVMCodeGenLevelNone,
                                 LLVMRelocDefault, LLVMCodeModelJITDefault);
  }
  LLVMDisposeMessage(triple);
  LLVMDisposeMessage(host);
  return tm;
}

static bool jit_start(VxCache *c, int tier, char why[256]) {
  if (c->jit[tier]) return true;
  call_once(&llvm_once, llvm_start);
  LLVMTargetMachineRef tm = target_machine(c->level, tier, why);
  if (!tm) return false;
  LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
  LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
      builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(tm));
  LLVMOrcLLJITRef jit;
  LLVMErrorRef err = LLVMOrcCreateLLJIT(&jit, builder);
  if (err) return fail(why, err);
  c->jit[tier] = jit;
  LLVMOrcDefinitionGeneratorRef symbols;
  err = LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(
      &symbols, LLVMOrcLLJITGetGlobalPrefix(jit), NULL, NULL);
  if (err) return fail(why, err);
  LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(jit), symbols);
  return true;
}

static void gen_init(VxGen *g, LLVMContextRef cx, int level, LLVMOrcLLJITRef jit) {
  *g = (VxGen){.cx = cx, .level = level};
  g->mod = LLVMModuleCreateWithNameInContext("vx", cx);
  LLVMSetTarget(g->mod, LLVMOrcLLJITGetTripleString(jit));
  LLVMSetDataLayout(g->mod, LLVMOrcLLJITGetDataLayoutStr(jit));
  g->b = LLVMCreateBuilderInContext(cx);
  g->i8 = LLVMInt8TypeInContext(cx);
  g->i16 = LLVMInt16TypeInContext(cx);
  g->i32 = LLVMInt32TypeInContext(cx);
  g->i64 = LLVMInt64TypeInContext(cx);
  g->f32 = LLVMFloatTypeInContext(cx);
  g->f64 = LLVMDoubleTypeInContext(cx);
  g->ptr = LLVMPointerType(g->i8, 0);
  g->v32 = LLVMVectorType(g->i32, 16);
  g->vf32 = LLVMVectorType(g->f32, 16);
  g->vf64 = LLVMVectorType(g->f64, 16);
}

static LLVMOrcThreadSafeContextRef context_new(LLVMContextRef *cx) {
#if LLVM_VERSION_MAJOR >= 21
  *cx = LLVMContextCreate();
  return LLVMOrcCreateNewThreadSafeContextFromLLVMContext(*cx);
#else
  LLVMOrcThreadSafeContextRef ts = LLVMOrcCreateNewThreadSafeContext();
  *cx = LLVMOrcThreadSafeContextGetContext(ts);
  return ts;
#endif
}

static bool module_add(LLVMOrcLLJITRef jit, VxGen *g, LLVMOrcThreadSafeContextRef ts,
                       char why[256]) {
  LLVMPassBuilderOptionsRef options = LLVMCreatePassBuilderOptions();
  LLVMErrorRef err = LLVMRunPasses(g->mod, "mem2reg,early-cse", NULL, options);
  LLVMDisposePassBuilderOptions(options);
  LLVMOrcThreadSafeModuleRef tsm = LLVMOrcCreateNewThreadSafeModule(g->mod, ts);
  if (err) {
    LLVMOrcDisposeThreadSafeModule(tsm);
    return fail(why, err);
  }
  err = LLVMOrcLLJITAddLLVMIRModule(jit, LLVMOrcLLJITGetMainJITDylib(jit), tsm);
  return err ? fail(why, err) : true;
}

static bool entry_link(LLVMOrcLLJITRef jit, VxEntry *e, size_t i, char why[256]) {
  char name[32];
  LLVMOrcExecutorAddress address;
  snprintf(name, sizeof name, "vx%zu", i);
  LLVMErrorRef err = LLVMOrcLLJITLookup(jit, &address, name);
  if (err) return fail(why, err);
  uintptr_t code = (uintptr_t)address;
  memcpy(&e->fn, &code, sizeof code);
  return true;
}

/* Compiles entries [from, to) that lack code of this tier, as one module. */
static bool compile(VxCache *c, size_t from, size_t to, int tier, char why[256]) {
  if (!jit_start(c, tier, why)) return false;
  LLVMContextRef cx;
  LLVMOrcThreadSafeContextRef ts = context_new(&cx);
  VxGen g;
  gen_init(&g, cx, c->level, c->jit[tier]);
  char name[32];
  for (size_t i = from; i < to; i++) {
    VxEntry *e = &c->entries[i];
    if (tier == QUICK && e->fn) continue;
    snprintf(name, sizeof name, "vx%zu", i);
    vx_emit_program(&g, &c->img->vprogs[e->key.vp], &e->key, name);
  }
  LLVMDisposeBuilder(g.b);
  bool ok = module_add(c->jit[tier], &g, ts, why);
  LLVMOrcDisposeThreadSafeContext(ts);
  for (size_t i = from; ok && i < to; i++) {
    VxEntry *e = &c->entries[i];
    if (tier == QUICK && e->fn) continue;
    ok = entry_link(c->jit[tier], e, i, why);
    e->tuned = tier == TUNED;
  }
  return ok;
}

/* ---- the cache ---- */

VxCache *vx_cache_new(const IsaImage *img, const IsaInsn *insns, int level) {
  VxCache *c = mem_alloc(sizeof *c);
  c->img = img;
  c->insns = insns;
  c->level = level;
  c->use = mem_alloc((img->nvprogs + 1) * sizeof *c->use);
  for (uint32_t i = 0; i < img->nvprogs; i++) vx_use(&img->vprogs[i], &c->use[i]);
  return c;
}

void vx_cache_free(VxCache *c) {
  if (!c) return;
  for (int t = 0; t < TIERS; t++) {
    LLVMErrorRef err = c->jit[t] ? LLVMOrcDisposeLLJIT(c->jit[t]) : NULL;
    if (err) LLVMConsumeError(err);
  }
  mem_free(c->entries);
  mem_free(c->slots);
  mem_free(c->use);
  mem_free(c);
}

const VxUse *vx_cache_use(const VxCache *c, uint32_t vp) {
  return &c->use[vp];
}

VxFn vx_cache_get(VxCache *c, uint32_t vp, const IsaDesc *d, double elements, char why[256]) {
  VxKey k = key_of(c, vp, d);
  if (!c->scanned) scan_code(c);
  VxEntry *e = key_find(c, &k);
  if (!e) key_add(c, &k);
  if ((!e || !e->fn) && !compile(c, 0, c->n, QUICK, why)) return NULL;
  e = key_find(c, &k);
  e->work += elements * c->img->vprogs[vp].n;
  size_t at = (size_t)(e - c->entries);
  if (!e->tuned && e->work > hot && !compile(c, at, at + 1, TUNED, why)) return NULL;
  return e->fn;
}
