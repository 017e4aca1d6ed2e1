/* A small image that uses everything, as text, and helpers around it. */
#ifndef TEST_ISA_IMAGE_UTIL_H
#define TEST_ISA_IMAGE_UTIL_H
#include "isa/isa.h"
#include "isa/isa_internal.h"

static const char small_text[] =
    "# a comment\n"
    ".machine edge\n"
    ".roofline macs_s8=4096.0 dram_bytes=0x1p12 macs_bf16=7\n"
    ".io input \"x\" s8[2,64] 256\n"
    ".io output \"y\" f32[2, 64] 4096  // another comment\n"
    ".io state \"h\" s32[] 8192\n"
    ".segment \"w\" 512 100\n"
    ".hex 00010203 ff\n"
    ".zero 87\n"
    ".f32 1.5, -2\n"
    ".end\n"
    ".desc 0 dma rank=2 elsize=1 dram=256 size=[2,64] dstride=[64,1] sstride=[64,1] extent=[2,64]\n"
    ".desc 1 plane dtype=s8 spm=1024 k=[1,1,64] kstride=[0,0,64] n=64 nstride=1\n"
    ".desc 2 rows dtype=bf16 wdtype=s8 spm=0 k=[1,1,64] kstride=[0,0,2] m=[1,1,2] "
    "mstride=[0,0,128] acc=4 astride=[0,0,1]\n"
    ".desc 3 vector count=[2,1,1,1,64] s0=acc:s32@256[64,0,0,0,1] s1=spm:f32@8192[256,0,0,0,4]\n"
    ".vprog 0 { vec; ld v0, s0; cvt.fi v1, v0; mul.f v1, v1, 0.5; sel v2, v0, v1, 1.0; st s1, v2; "
    "rmax.f r0, v1; endv\n"
    "  mov r1, r0 }\n"
    "start:\n"
    "  .loc \"m.mdl\" 3 5 \"linear \\\"q\\\"\" macs=8192\n"
    "  li r1, 0\n"
    "  dload d0, 0\n"
    "loop.1: dset d0.coord.1, r1\n"
    "  ld0.fill d0 take s1:1, s2 give s4:3\n"
    "  mm.load d1\n"
    "  .loc \"m.mdl\" 4 1 \"relu\"\n"
    "  vx p0, d3\n"
    "  take s4:3\n"
    "  lds r3, [r1 + 16]\n"
    "  ldd r4, [r1 - 16]\n"
    "  addi r1, r1, 64\n"
    "  bne r1, r2, loop.1\n"
    "  jmp @12\n"
    "\"end of it\":\n"
    "  halt\n";

/* The container's bytes; asserts on any diagnostic. */
static inline void small_image(StrBuf *bytes) {
  DiagEngine *d = diag_new();
  IsaImage img;
  bool ok = isa_assemble(small_text, sizeof small_text - 1, "small.s", &img, d) &&
            isa_image_serialize(&img, bytes, d);
  if (!ok) diag_print_all(d, stderr, false);
  assert_true(ok);
  isa_image_free(&img);
  diag_free(d);
}
#endif
