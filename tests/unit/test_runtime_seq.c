/* What the sequencer's arithmetic and branches do: every instruction on numbers worked out here.
 * A wrong result runs into a load from a negative address. */
#include "runtime_util.h"
#include <stdio.h>

#define HIGH "\nshl r2, r2, 63\n" /* r2 = 1 becomes the most negative number */

typedef struct {
  long long r2, r3;
  const char *text; /* sets r1 */
  long long r1;
} Case;

static const Case cases[] = {
    {0, 0, "li r1, -140737488355328", -140737488355328}, /* the least of 48 bits */
    {7, 9, "mov r1, r3", 9},
    {-5, 7, "add r1, r2, r3", 2},
    {-5, 0, "addi r1, r2, -7", -12},
    {3, 10, "sub r1, r2, r3", -7},
    {-3, 4, "mul r1, r2, r3", -12},
    {1 << 20, 1 << 20, "mul r1, r2, r3", 1ll << 40},
    {-6, 0, "muli r1, r2, -7", 42},
    {5, 0, "shl r1, r2, 0", 5},
    {-3, 0, "shl r1, r2, 4", -48},
    {-9, 0, "shr r1, r2, 1", -5}, /* arithmetic: towards minus infinity */
    {-1, 0, "shr r1, r2, 63", -1},
    {12, 10, "and r1, r2, r3", 8},
    {-2, 255, "and r1, r2, r3", 254},
    {12, 10, "or r1, r2, r3", 14},
    {-8, 3, "or r1, r2, r3", -5},
    {-4, 3, "min r1, r2, r3", -4},
    {3, -4, "min r1, r2, r3", -4},
    {-4, 0, "mini r1, r2, 3", -4},
    {9, 0, "mini r1, r2, 3", 3},
    {9, 0, "mini r1, r2, -3", -3},
    {-4, 3, "max r1, r2, r3", 3},
    {3, -4, "max r1, r2, r3", 3},
    {-4, 0, "maxi r1, r2, 3", 3},
    {-4, 0, "maxi r1, r2, -9", -4},
    {1, 0, HIGH "shr r1, r2, 63", -1},
    {1, 1, HIGH "min r1, r2, r3\nshr r1, r1, 63", -1},
    {1, 0, HIGH "addi r1, r2, -1\nshr r1, r1, 32", 2147483647}, /* wraps */
    {1, 1, HIGH "sub r1, r3, r2\nshr r1, r1, 32", -2147483648}, /* wraps */
    {1, 3, HIGH "mul r1, r2, r3\nshr r1, r1, 63", -1},          /* wraps */
};

static void run_case(const Case *c, long long expected, bool holds) {
  char text[400];
  snprintf(text, sizeof text,
           "li r2, %lld\nli r3, %lld\n%s\nli r4, %lld\nbeq r1, r4, good\nli r5, -4\nldd r5, "
           "[r5 + 0]\ngood: halt\n",
           c->r2, c->r3, c->text, expected);
  for (int mode = NPURT_FAST; mode <= NPURT_CHECK; mode++) {
    Run r = load_text(text, (NpurtMode)mode);
    if (holds)
      run_ok(&r);
    else
      expect_fail(&r, "E-bounds", "DRAM");
    run_free(&r);
  }
}

static void scalars(void **state) {
  (void)state;
  for (size_t i = 0; i < NPU_COUNTOF(cases); i++) run_case(&cases[i], cases[i].r1, true);
  run_case(&cases[1], cases[1].r1 + 1, false); /* a wrong one is noticed */
}

/* A branch is taken for exactly one of two pairs. */
static void branches(void **state) {
  static const struct {
    const char *name;
    int taken[2], not_taken[2];
  } list[] = {{"beq", {4, 4}, {4, 5}},
              {"bne", {4, 5}, {4, 4}},
              {"blt", {-5, 4}, {4, 4}},
              {"bge", {4, 4}, {-5, 4}}};
  (void)state;
  for (size_t i = 0; i < NPU_COUNTOF(list); i++) {
    char text[300];
    const int *t = list[i].taken, *n = list[i].not_taken;
    snprintf(text, sizeof text,
             "li r1, %d\nli r2, %d\n%s r1, r2, next\nbad: li r5, -4\nldd r5, [r5 + 0]\nnext: li "
             "r1, %d\nli r2, %d\n%s r1, r2, bad\njmp end\njmp bad\nend: halt\n",
             t[0], t[1], list[i].name, n[0], n[1], list[i].name);
    for (int mode = NPURT_FAST; mode <= NPURT_CHECK; mode++) {
      Run r = load_text(text, (NpurtMode)mode);
      run_ok(&r);
      run_free(&r);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(scalars), cmocka_unit_test(branches)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
