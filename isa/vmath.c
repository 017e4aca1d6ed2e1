/* Special functions as straight-line programs of basic micro-operations. They define exp.f, log.f,
 * tanh.f, erf.f, sin.f and cos.f: every implementation expands these steps, so all agree bit for
 * bit.
 *
 * Polynomials and argument reductions of exp, log, tanh, sin, cos: S. Moshier, Cephes Mathematical
 * Library, single precision (expf, logf, tanhf, sinf), public. erf: N. Juffa's two-interval minimax
 * approximation (stackoverflow.com/q/35148198), written without fused multiply-add. The reduction
 * of sin and cos by pi/2 is Cody and Waite's in five parts, the first four of nine bits, so that
 * multiples up to 2^15 are exact.
 *
 * Values out of the ordinary:
 * - exp: NaN -> NaN, overflow -> inf, -inf -> 0; denormal results are rounded once: the power of
 *   two is applied in two factors of which the first is exact
 * - log: NaN -> NaN, below 0 -> NaN, +-0 -> -inf, inf -> inf; denormal arguments are scaled by 2^23
 *   first
 * - tanh, erf: NaN -> NaN, +-inf -> +-1, +-0 -> +-0
 * - sin, cos: NaN, +-inf -> NaN, sin(+-0) = +-0; accurate for |x| <= 51471 (2^15 * pi / 2), beyond
 *   that the reduced argument loses bits; results stay within [-1, 1] */
#include "isa/isa_internal.h"
#include <string.h>

/* A list of steps is a macro over S(prefix, name, operation, a, b, c, immediate bits): once it
 * becomes an enumeration that numbers the names, once the table. IMM is the step's immediate, o no
 * operand. */
#define AS_NAME(F, name, op, a, b, c, bits) F##_##name,
#define AS_STEP(F, name, op, a, b, c, bits) {VOP_##op, F##_##a, F##_##b, F##_##c, bits},
#define FUNCTION(F, STEPS)                                                                         \
  enum { F##_o = 0, F##_IMM = VMATH_IMM, F##_x = 0, STEPS(AS_NAME, F) F##_END };                   \
  static const VmathStep F##_steps[] = {STEPS(AS_STEP, F)};

/* exp(arg): n = rne(arg / ln 2), r = arg - n ln 2 in two parts, polynomial, times 2^(n/2) 2^(n -
 * n/2). */
#define EXP_OF(S, F, arg)                                                                          \
  S(F, cap, MIN_F, IMM, arg, o, 0x42b20000 /* 89.0 */)                                             \
  S(F, lim, MAX_F, IMM, cap, o, 0xc2d00000 /* -104.0 */)                                           \
  S(F, t, MUL_F, lim, IMM, o, 0x3fb8aa3b /* 1.44269504088896341 */)                                \
  S(F, n, RNE_F, t, o, o, 0)                                                                       \
  S(F, n1, MUL_F, n, IMM, o, 0x3f318000 /* 0.693359375 */)                                         \
  S(F, r1, SUB_F, lim, n1, o, 0)                                                                   \
  S(F, n2, MUL_F, n, IMM, o, 0xb95e8083 /* -2.12194440e-4 */)                                      \
  S(F, r, SUB_F, r1, n2, o, 0)                                                                     \
  S(F, p0, MUL_F, r, IMM, o, 0x39506967 /* 1.9875691500e-4 */)                                     \
  S(F, p1, ADD_F, p0, IMM, o, 0x3ab743ce /* 1.3981999507e-3 */)                                    \
  S(F, p2, MUL_F, p1, r, o, 0)                                                                     \
  S(F, p3, ADD_F, p2, IMM, o, 0x3c088908 /* 8.3334519073e-3 */)                                    \
  S(F, p4, MUL_F, p3, r, o, 0)                                                                     \
  S(F, p5, ADD_F, p4, IMM, o, 0x3d2aa9c1 /* 4.1665795894e-2 */)                                    \
  S(F, p6, MUL_F, p5, r, o, 0)                                                                     \
  S(F, p7, ADD_F, p6, IMM, o, 0x3e2aaaaa /* 1.6666665459e-1 */)                                    \
  S(F, p8, MUL_F, p7, r, o, 0)                                                                     \
  S(F, p9, ADD_F, p8, IMM, o, 0x3f000000 /* 5.0000001201e-1 */)                                    \
  S(F, rr, MUL_F, r, r, o, 0)                                                                      \
  S(F, q0, MUL_F, p9, rr, o, 0)                                                                    \
  S(F, q1, ADD_F, q0, r, o, 0)                                                                     \
  S(F, q2, ADD_F, q1, IMM, o, 0x3f800000 /* 1.0 */)                                                \
  S(F, ni, CVT_IF, n, o, o, 0)                                                                     \
  S(F, h1, SHR_I, ni, IMM, o, 1)                                                                   \
  S(F, h2, SUB_I, ni, h1, o, 0)                                                                    \
  S(F, b1, ADD_I, h1, IMM, o, 127)                                                                 \
  S(F, s1, SHL_I, b1, IMM, o, 23)                                                                  \
  S(F, b2, ADD_I, h2, IMM, o, 127)                                                                 \
  S(F, s2, SHL_I, b2, IMM, o, 23)                                                                  \
  S(F, y1, MUL_F, q2, s1, o, 0)                                                                    \
  S(F, y2, MUL_F, y1, s2, o, 0)
#define EXP_STEPS(S, F) EXP_OF(S, F, x)
FUNCTION(EXP, EXP_STEPS)

/* x = m 2^e with m in [sqrt(1/2), sqrt(2)): log x = log m + e ln 2. */
#define LOG_STEPS(S, F)                                                                            \
  S(F, tiny, LT_F, x, IMM, o, 0x00800000 /* 1.17549435e-38 */)                                     \
  S(F, big, MUL_F, x, IMM, o, 0x4b000000 /* 8388608.0 */)                                          \
  S(F, u, SEL, big, x, tiny, 0)                                                                    \
  S(F, down, MUL_I, tiny, IMM, o, 23)                                                              \
  S(F, eb, SHR_I, u, IMM, o, 23)                                                                   \
  S(F, e0, SUB_I, eb, IMM, o, 126)                                                                 \
  S(F, e1, SUB_I, e0, down, o, 0)                                                                  \
  S(F, mb, AND_I, u, IMM, o, 0x007fffff)                                                           \
  S(F, m, OR_I, mb, IMM, o, 0x3f000000)                                                            \
  S(F, low, LT_F, m, IMM, o, 0x3f3504f3 /* 0.707106781186547524 */)                                \
  S(F, e2, SUB_I, e1, low, o, 0)                                                                   \
  S(F, m2, ADD_F, m, m, o, 0)                                                                      \
  S(F, m3, SEL, m2, m, low, 0)                                                                     \
  S(F, r, SUB_F, m3, IMM, o, 0x3f800000 /* 1.0 */)                                                 \
  S(F, e, CVT_FI, e2, o, o, 0)                                                                     \
  S(F, z, MUL_F, r, r, o, 0)                                                                       \
  S(F, p0, MUL_F, r, IMM, o, 0x3d9021bb /* 7.0376836292e-2 */)                                     \
  S(F, p1, ADD_F, p0, IMM, o, 0xbdebd1b8 /* -1.1514610310e-1 */)                                   \
  S(F, p2, MUL_F, p1, r, o, 0)                                                                     \
  S(F, p3, ADD_F, p2, IMM, o, 0x3def251a /* 1.1676998740e-1 */)                                    \
  S(F, p4, MUL_F, p3, r, o, 0)                                                                     \
  S(F, p5, ADD_F, p4, IMM, o, 0xbdfe5d4f /* -1.2420140846e-1 */)                                   \
  S(F, p6, MUL_F, p5, r, o, 0)                                                                     \
  S(F, p7, ADD_F, p6, IMM, o, 0x3e11e9bf /* 1.4249322787e-1 */)                                    \
  S(F, p8, MUL_F, p7, r, o, 0)                                                                     \
  S(F, p9, ADD_F, p8, IMM, o, 0xbe2aae50 /* -1.6668057665e-1 */)                                   \
  S(F, pa, MUL_F, p9, r, o, 0)                                                                     \
  S(F, pb, ADD_F, pa, IMM, o, 0x3e4cceac /* 2.0000714765e-1 */)                                    \
  S(F, pc, MUL_F, pb, r, o, 0)                                                                     \
  S(F, pd, ADD_F, pc, IMM, o, 0xbe7ffffc /* -2.4999993993e-1 */)                                   \
  S(F, pe, MUL_F, pd, r, o, 0)                                                                     \
  S(F, pf, ADD_F, pe, IMM, o, 0x3eaaaaaa /* 3.3333331174e-1 */)                                    \
  S(F, pg, MUL_F, pf, r, o, 0)                                                                     \
  S(F, ph, MUL_F, pg, z, o, 0)                                                                     \
  S(F, l2, MUL_F, e, IMM, o, 0xb95e8083 /* -2.12194440e-4 */)                                      \
  S(F, y0, ADD_F, ph, l2, o, 0)                                                                    \
  S(F, hz, MUL_F, z, IMM, o, 0x3f000000 /* 0.5 */)                                                 \
  S(F, y1, SUB_F, y0, hz, o, 0)                                                                    \
  S(F, y2, ADD_F, y1, r, o, 0)                                                                     \
  S(F, l1, MUL_F, e, IMM, o, 0x3f318000 /* 0.693359375 */)                                         \
  S(F, y, ADD_F, y2, l1, o, 0)                                                                     \
  S(F, neg, LT_F, x, IMM, o, 0)                                                                    \
  S(F, a0, SEL, IMM, y, neg, 0x7fc00000)                                                           \
  S(F, zero, EQ_F, x, IMM, o, 0)                                                                   \
  S(F, a1, SEL, IMM, a0, zero, 0xff800000)                                                         \
  S(F, isinf, EQ_F, x, IMM, o, 0x7f800000)                                                         \
  S(F, a2, SEL, x, a1, isinf, 0)                                                                   \
  S(F, isnan, NE_F, x, x, o, 0)                                                                    \
  S(F, a3, SEL, x, a2, isnan, 0)
FUNCTION(LOG, LOG_STEPS)

/* |x| < 0.625: odd polynomial; else 1 - 2 / (exp(2 |x|) + 1). The sign is put back at the end. */
#define TANH_STEPS(S, F)                                                                           \
  S(F, a, ABS_F, x, o, o, 0)                                                                       \
  S(F, z, MUL_F, a, a, o, 0)                                                                       \
  S(F, t0, MUL_F, z, IMM, o, 0xbbbaf0ea /* -5.70498872745e-3 */)                                   \
  S(F, t1, ADD_F, t0, IMM, o, 0x3ca9134e /* 2.06390887954e-2 */)                                   \
  S(F, t2, MUL_F, t1, z, o, 0)                                                                     \
  S(F, t3, ADD_F, t2, IMM, o, 0xbd5c1e2d /* -5.37397155531e-2 */)                                  \
  S(F, t4, MUL_F, t3, z, o, 0)                                                                     \
  S(F, t5, ADD_F, t4, IMM, o, 0x3e088393 /* 1.33314422036e-1 */)                                   \
  S(F, t6, MUL_F, t5, z, o, 0)                                                                     \
  S(F, t7, ADD_F, t6, IMM, o, 0xbeaaaa99 /* -3.33332819422e-1 */)                                  \
  S(F, t8, MUL_F, t7, z, o, 0)                                                                     \
  S(F, t9, MUL_F, t8, a, o, 0)                                                                     \
  S(F, small, ADD_F, t9, a, o, 0)                                                                  \
  S(F, a2, ADD_F, a, a, o, 0)                                                                      \
  EXP_OF(S, F, a2)                                                                                 \
  S(F, d, ADD_F, y2, IMM, o, 0x3f800000 /* 1.0 */)                                                 \
  S(F, f, DIV_F, IMM, d, o, 0x40000000 /* 2.0 */)                                                  \
  S(F, large, SUB_F, IMM, f, o, 0x3f800000 /* 1.0 */)                                              \
  S(F, is, LT_F, a, IMM, o, 0x3f200000 /* 0.625 */)                                                \
  S(F, v, SEL, small, large, is, 0)                                                                \
  S(F, sign, AND_I, x, IMM, o, 0x80000000)                                                         \
  S(F, y, OR_I, v, sign, o, 0)
FUNCTION(TANH, TANH_STEPS)

/* |x| <= 0.921875: odd polynomial; else 1 - exp(-polynomial), flat from 4 on. */
#define ERF_STEPS(S, F)                                                                            \
  S(F, a, ABS_F, x, o, o, 0)                                                                       \
  S(F, s, MUL_F, a, a, o, 0)                                                                       \
  S(F, t0, MUL_F, s, IMM, o, 0xba1c7000 /* -5.96761703e-4 */)                                      \
  S(F, t1, ADD_F, t0, IMM, o, 0x3ba38d2c /* 4.99119423e-3 */)                                      \
  S(F, t2, MUL_F, t1, s, o, 0)                                                                     \
  S(F, t3, ADD_F, t2, IMM, o, 0xbcdb48d9 /* -2.67681349e-2 */)                                     \
  S(F, t4, MUL_F, t3, s, o, 0)                                                                     \
  S(F, t5, ADD_F, t4, IMM, o, 0x3de70e22 /* 1.12819925e-1 */)                                      \
  S(F, t6, MUL_F, t5, s, o, 0)                                                                     \
  S(F, t7, ADD_F, t6, IMM, o, 0xbec09380 /* -3.76125336e-1 */)                                     \
  S(F, t8, MUL_F, t7, s, o, 0)                                                                     \
  S(F, t9, ADD_F, t8, IMM, o, 0x3e0375d4 /* 1.28379166e-1 */)                                      \
  S(F, ta, MUL_F, t9, a, o, 0)                                                                     \
  S(F, small, ADD_F, ta, a, o, 0)                                                                  \
  S(F, w, MIN_F, IMM, a, o, 0x40800000 /* 4.0 */)                                                  \
  S(F, ws, MUL_F, w, w, o, 0)                                                                      \
  S(F, g0, MUL_F, w, IMM, o, 0xb7910000 /* -1.72853470e-5 */)                                      \
  S(F, g1, ADD_F, g0, IMM, o, 0x39c8e7d9 /* 3.83197126e-4 */)                                      \
  S(F, g2, MUL_F, w, IMM, o, 0xbb7e8a1c /* -3.88396438e-3 */)                                      \
  S(F, g3, ADD_F, g2, IMM, o, 0x3cc6b1a1 /* 2.42546219e-2 */)                                      \
  S(F, g4, MUL_F, g1, ws, o, 0)                                                                    \
  S(F, g5, ADD_F, g4, g3, o, 0)                                                                    \
  S(F, g6, MUL_F, g5, w, o, 0)                                                                     \
  S(F, g7, ADD_F, g6, IMM, o, 0xbddaae5c /* -1.06777877e-1 */)                                     \
  S(F, g8, MUL_F, g7, w, o, 0)                                                                     \
  S(F, g9, ADD_F, g8, IMM, o, 0xbf228550 /* -6.34846687e-1 */)                                     \
  S(F, ga, MUL_F, g9, w, o, 0)                                                                     \
  S(F, gb, ADD_F, ga, IMM, o, 0xbe03ce86 /* -1.28717512e-1 */)                                     \
  S(F, gc, MUL_F, gb, w, o, 0)                                                                     \
  S(F, gd, SUB_F, gc, w, o, 0)                                                                     \
  EXP_OF(S, F, gd)                                                                                 \
  S(F, large, SUB_F, IMM, y2, o, 0x3f800000 /* 1.0 */)                                             \
  S(F, is, LE_F, a, IMM, o, 0x3f6c0000 /* 0.921875 */)                                             \
  S(F, v, SEL, small, large, is, 0)                                                                \
  S(F, sign, AND_I, x, IMM, o, 0x80000000)                                                         \
  S(F, y, OR_I, v, sign, o, 0)
FUNCTION(ERF, ERF_STEPS)

/* n = rne(x / (pi/2)), r = x - n pi/2; both polynomials; pick by n mod 4. */
#define TRIG_REDUCE(S, F)                                                                          \
  S(F, t, MUL_F, x, IMM, o, 0x3f22f983 /* 0.636619772367581343 */)                                 \
  S(F, n, RNE_F, t, o, o, 0)                                                                       \
  S(F, m0, MUL_F, n, IMM, o, 0x3fc90000 /* 1.5703125 */)                                           \
  S(F, r0, SUB_F, x, m0, o, 0)                                                                     \
  S(F, m1, MUL_F, n, IMM, o, 0x39fd8000 /* 0.00048351287841796875 */)                              \
  S(F, r1, SUB_F, r0, m1, o, 0)                                                                    \
  S(F, m2, MUL_F, n, IMM, o, 0x34a88000 /* 3.1385570764541626e-07 */)                              \
  S(F, r2, SUB_F, r1, m2, o, 0)                                                                    \
  S(F, m3, MUL_F, n, IMM, o, 0x2e858000 /* 6.070877134334296e-11 */)                               \
  S(F, r3, SUB_F, r2, m3, o, 0)                                                                    \
  S(F, m4, MUL_F, n, IMM, o, 0x298c234c /* 6.223372171896613e-14 */)                               \
  S(F, r4, SUB_F, r3, m4, o, 0)                                                                    \
  S(F, r5, MIN_F, IMM, r4, o, 0x3f4ccccd /* 0.8 */)                                                \
  S(F, r, MAX_F, IMM, r5, o, 0xbf4ccccd /* -0.8 */)                                                \
  S(F, z, MUL_F, r, r, o, 0)                                                                       \
  S(F, s0, MUL_F, z, IMM, o, 0xb94ca1f9 /* -1.9515295891e-4 */)                                    \
  S(F, s1, ADD_F, s0, IMM, o, 0x3c08839e /* 8.3321608736e-3 */)                                    \
  S(F, s2, MUL_F, s1, z, o, 0)                                                                     \
  S(F, s3, ADD_F, s2, IMM, o, 0xbe2aaaa3 /* -1.6666654611e-1 */)                                   \
  S(F, s4, MUL_F, s3, z, o, 0)                                                                     \
  S(F, s5, MUL_F, s4, r, o, 0)                                                                     \
  S(F, sn, ADD_F, s5, r, o, 0)                                                                     \
  S(F, c0, MUL_F, z, IMM, o, 0x37ccf5ce /* 2.443315711809948e-5 */)                                \
  S(F, c1, ADD_F, c0, IMM, o, 0xbab6061a /* -1.388731625493765e-3 */)                              \
  S(F, c2, MUL_F, c1, z, o, 0)                                                                     \
  S(F, c3, ADD_F, c2, IMM, o, 0x3d2aaaa5 /* 4.166664568298827e-2 */)                               \
  S(F, c4, MUL_F, c3, z, o, 0)                                                                     \
  S(F, c5, MUL_F, c4, z, o, 0)                                                                     \
  S(F, c6, MUL_F, z, IMM, o, 0x3f000000 /* 0.5 */)                                                 \
  S(F, c7, SUB_F, c5, c6, o, 0)                                                                    \
  S(F, cs, ADD_F, c7, IMM, o, 0x3f800000 /* 1.0 */)                                                \
  S(F, q, CVT_IF, n, o, o, 0)
#define TRIG_PICK(S, F, quarter)                                                                   \
  S(F, odd, AND_I, quarter, IMM, o, 1)                                                             \
  S(F, v, SEL, cs, sn, odd, 0)                                                                     \
  S(F, g0, AND_I, quarter, IMM, o, 2)                                                              \
  S(F, g1, SHL_I, g0, IMM, o, 30)                                                                  \
  S(F, y, XOR_I, v, g1, o, 0)
#define SIN_STEPS(S, F)                                                                            \
  TRIG_REDUCE(S, F)                                                                                \
  TRIG_PICK(S, F, q)                                                                               \
  S(F, zero, EQ_F, x, IMM, o, 0)                                                                   \
  S(F, out, SEL, x, y, zero, 0)
#define COS_STEPS(S, F)                                                                            \
  TRIG_REDUCE(S, F)                                                                                \
  S(F, q1, ADD_I, q, IMM, o, 1)                                                                    \
  TRIG_PICK(S, F, q1)
FUNCTION(SIN, SIN_STEPS)
FUNCTION(COS, COS_STEPS)

static const VmathFn functions[] = {
#define X(f, name, max_ulp) {name, VOP_##f##_F, NPU_COUNTOF(f##_steps), f##_steps, max_ulp},
    ISA_VMATH(X)
#undef X
};

const VmathFn *vmath_fn(IsaVopKind vop) {
  for (size_t i = 0; i < NPU_COUNTOF(functions); i++)
    if (functions[i].vop == vop) return &functions[i];
  return NULL;
}

float vmath_eval(IsaVopKind vop, float x) {
  const VmathFn *fn = vmath_fn(vop);
  uint32_t value[256];
  memcpy(&value[0], &x, 4);
  for (int i = 0; i < fn->nsteps; i++) {
    const VmathStep *s = &fn->steps[i];
    value[i + 1] = isa_vop_eval((IsaVopKind)s->op, s->a == VMATH_IMM ? s->imm : value[s->a],
                                s->b == VMATH_IMM ? s->imm : value[s->b],
                                s->c == VMATH_IMM ? s->imm : value[s->c]);
  }
  float y;
  memcpy(&y, &value[fn->nsteps], 4);
  return y;
}
