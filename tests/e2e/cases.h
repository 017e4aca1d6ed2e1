/* The table of end-to-end cases. */
#ifndef TESTS_E2E_CASES_H
#define TESTS_E2E_CASES_H
#include "tests/e2e/oracle.h"

typedef enum {
  CASE_STEP =
      1, /* jumps: a rounded input may give another result, so only exact numbers are compared */
  CASE_TWICE = 2,  /* runs three times; has a state */
  CASE_STATIC = 4, /* also with static s8 */
} CaseFlags;

typedef struct {
  const char *name, *in, *out, *body;
  const char *ranges;  /* "x=0.1:3 i=0:V": inputs not drawn from N(0, 1), all of s8, or -999..999 */
  const char *weights; /* "w=O,C/G,KH,KW b=O": tensors of the weight file */
  const char *shapes[8]; /* values of the model's parameters, one string per variant */
  OracleFn *oracle;      /* NULL: the host reference as read is the oracle */
  double (*unary)(double);
  double (*binary)(double, double);
  unsigned flags;
} Case;
extern const Case e2e_cases[];
extern const size_t e2e_ncases;
#endif
