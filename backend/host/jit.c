/* LLVM module to native code in this process, through ORC's LLJIT. */
#include "backend/host/host_internal.h"
#include <llvm-c/Analysis.h>
#include <llvm-c/Error.h>
#include <llvm-c/Target.h>
#include <llvm-c/TargetMachine.h>
#include <llvm/Config/llvm-config.h>

struct HostJit {
  LLVMOrcThreadSafeContextRef tsc;
  LLVMOrcLLJITRef jit;
  LLVMModuleRef text; /* kept for printing */
  HostGen gen;
};

static bool report(LLVMErrorRef err, DiagEngine *diag, SrcLoc loc) {
  if (!err) return true;
  char *text = LLVMGetErrorMessage(err);
  diag_error(diag, loc, "E-host-llvm", "LLVM cannot compile for this computer: %s", text);
  LLVMDisposeErrorMessage(text);
  return false;
}

static LLVMContextRef context_new(LLVMOrcThreadSafeContextRef *tsc) {
#if LLVM_VERSION_MAJOR >= 21
  LLVMContextRef ctx = LLVMContextCreate();
  *tsc = LLVMOrcCreateNewThreadSafeContextFromLLVMContext(ctx);
  return ctx;
#else
  *tsc = LLVMOrcCreateNewThreadSafeContext();
  return LLVMOrcThreadSafeContextGetContext(*tsc);
#endif
}

/* The host's processor with all it can do. */
static LLVMTargetMachineRef machine_new(char **why) {
  char *triple = LLVMGetDefaultTargetTriple(), *cpu = LLVMGetHostCPUName(),
       *features = LLVMGetHostCPUFeatures();
  LLVMTargetRef target;
  LLVMTargetMachineRef tm = NULL;
  if (!LLVMGetTargetFromTriple(triple, &target, why))
    tm = LLVMCreateTargetMachine(target, triple, cpu, features, LLVMCodeGenLevelDefault,
                                 LLVMRelocDefault, LLVMCodeModelJITDefault);
  LLVMDisposeMessage(triple);
  LLVMDisposeMessage(cpu);
  LLVMDisposeMessage(features);
  return tm;
}

static bool lljit_new(HostJit *j, DiagEngine *diag, SrcLoc loc) {
  char *why = NULL;
  LLVMTargetMachineRef tm = machine_new(&why);
  if (!tm) {
    diag_error(diag, loc, "E-host-llvm", "LLVM cannot compile for this computer: %s",
               why ? why : "no target");
    LLVMDisposeMessage(why);
    return false;
  }
  LLVMOrcLLJITBuilderRef builder = LLVMOrcCreateLLJITBuilder();
  LLVMOrcLLJITBuilderSetJITTargetMachineBuilder(
      builder, LLVMOrcJITTargetMachineBuilderCreateFromTargetMachine(tm));
  if (!report(LLVMOrcCreateLLJIT(&j->jit, builder), diag, loc)) return false;
  /* For what the processor has no instruction for: rounding without SSE4.1 calls the C library. */
  LLVMOrcDefinitionGeneratorRef process;
  char prefix = LLVMOrcLLJITGetGlobalPrefix(j->jit);
  if (!report(LLVMOrcCreateDynamicLibrarySearchGeneratorForProcess(&process, prefix, NULL, NULL),
              diag, loc))
    return false;
  LLVMOrcJITDylibAddGenerator(LLVMOrcLLJITGetMainJITDylib(j->jit), process);
  return true;
}

HostJit *host_jit_new(DiagEngine *diag, SrcLoc loc) {
  LLVMInitializeNativeTarget();
  LLVMInitializeNativeAsmPrinter();
  HostJit *j = mem_alloc(sizeof *j);
  LLVMContextRef c = context_new(&j->tsc);
  j->gen = (HostGen){.ctx = c,
                     .mod = LLVMModuleCreateWithNameInContext("npucc", c),
                     .b = LLVMCreateBuilderInContext(c),
                     .i1 = LLVMInt1TypeInContext(c),
                     .i8 = LLVMInt8TypeInContext(c),
                     .i16 = LLVMInt16TypeInContext(c),
                     .i32 = LLVMInt32TypeInContext(c),
                     .i64 = LLVMInt64TypeInContext(c),
                     .f32 = LLVMFloatTypeInContext(c),
                     .f64 = LLVMDoubleTypeInContext(c)};
  if (lljit_new(j, diag, loc)) {
    LLVMSetTarget(j->gen.mod, LLVMOrcLLJITGetTripleString(j->jit));
    LLVMSetDataLayout(j->gen.mod, LLVMOrcLLJITGetDataLayoutStr(j->jit));
    return j;
  }
  host_jit_free(j);
  return NULL;
}

void host_jit_free(HostJit *j) {
  if (!j) return;
  LLVMDisposeBuilder(j->gen.b);
  if (j->gen.mod) LLVMDisposeModule(j->gen.mod);
  if (j->text) LLVMDisposeModule(j->text);
  if (j->jit) LLVMConsumeError(LLVMOrcDisposeLLJIT(j->jit));
  LLVMOrcDisposeThreadSafeContext(j->tsc);
  mem_free(j);
}

HostGen *host_jit_gen(HostJit *j) {
  return &j->gen;
}

bool host_jit_compile(HostJit *j, DiagEngine *diag, SrcLoc loc) {
#ifndef NDEBUG
  char *why = NULL;
  bool broken = LLVMVerifyModule(j->gen.mod, LLVMReturnStatusAction, &why);
  if (broken) diag_error(diag, loc, "E-internal", "wrong LLVM IR: %s", why);
  LLVMDisposeMessage(why);
  if (broken) return false;
#endif
  j->text = LLVMCloneModule(j->gen.mod);
  LLVMOrcThreadSafeModuleRef module = LLVMOrcCreateNewThreadSafeModule(j->gen.mod, j->tsc);
  j->gen.mod = NULL;
  LLVMErrorRef err =
      LLVMOrcLLJITAddLLVMIRModule(j->jit, LLVMOrcLLJITGetMainJITDylib(j->jit), module);
  if (err) LLVMOrcDisposeThreadSafeModule(module);
  return report(err, diag, loc);
}

void *host_jit_lookup(HostJit *j, const char *symbol, DiagEngine *diag, SrcLoc loc) {
  LLVMOrcExecutorAddress at = 0;
  if (!report(LLVMOrcLLJITLookup(j->jit, &at, symbol), diag, loc)) return NULL;
  return (void *)(uintptr_t)at;
}

void host_jit_print(const HostJit *j, StrBuf *out) {
  char *text = LLVMPrintModuleToString(j->text);
  strbuf_puts(out, text);
  LLVMDisposeMessage(text);
}
