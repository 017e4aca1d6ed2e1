/* Random models as .mdl text: valid by construction, so that whatever happens to one is the
 * compiler's doing. */
#ifndef TESTS_FUZZ_GRAPH_GEN_H
#define TESTS_FUZZ_GRAPH_GEN_H
#include "support/dtype.h"
#include "support/support.h"

enum { GEN_VALUES = 96, GEN_RANK = 5, GEN_ELEMENTS = 20000, GEN_WORK = 2000000 };

/* A value of the model while it is written. */
typedef struct {
  char name[24];
  DType dtype;
  int rank;
  int64_t shape[GEN_RANK];
  double mag;  /* about how large elements are; kept small so that bounds mean something */
  bool exact;  /* no float sum in its past: the same bits whatever the order of additions */
  double zero; /* > 0: its elements are that near to zero by construction */
  bool used;
  bool
      special; /* an input of zeros of both signs, infinities, NaN: read by what tames them alone */
} GenValue;

typedef struct {
  Rng rng;
  int n;
  GenValue v[GEN_VALUES];
  StrBuf inputs, body, text; /* text: the whole model */
  int nweights, nstates, nfar;
  bool tables; /* some value was read from a table of reals, which quantize rounds */
  bool coarse; /* some value was rounded to bf16 after a float sum */
  int nout;
  int out[4]; /* values returned */
} Gen;

/* Writes a model of about `size` operators. Inputs named i<number>_<limit> are indices below limit,
 * those named z<number> special values, those named far<number> numbers about 1000. */
void gen_model(Gen *g, uint64_t seed, int size);
void gen_free(Gen *g);

/* ---- for the operators (graph_ops.h): each returns false when no operand fits ---- */

int64_t gen_range(Gen *g, int64_t lo, int64_t hi);
bool gen_chance(Gen *g, double p);
int64_t gen_elements(int rank, const int64_t *shape);
/* A value of dtype with rank in [lo, hi], recent ones more often; NULL when there is none. exact:
 * only exact ones. */
GenValue *gen_pick(Gen *g, DType t, int lo, int hi, bool exact);
/* Adds "v<n> = <text>"; NULL when the result would be too large. */
GenValue *gen_emit(Gen *g, DType t, int rank, const int64_t *shape, double mag, bool exact,
                   const char *fmt, ...) NPU_PRINTF(7, 8);
/* A new weight with an initializer; its name. */
const char *gen_weight(Gen *g, int rank, const int64_t *shape, double std, char name[24]);
const char *gen_positive_weight(Gen *g, int rank, const int64_t *shape, char name[24]);
/* One of s8. */
const char *gen_integer_weight(Gen *g, int rank, const int64_t *shape, char name[24]);
/* A new index input of the given length, values below limit. */
GenValue *gen_index_input(Gen *g, int64_t length, int64_t limit);
/* A new input of special values, named z<number>. */
GenValue *gen_special_input(Gen *g, int64_t length);
/* A new input of numbers about 1000, which other operators do not see; its name begins with far. */
const char *gen_far_input(Gen *g, int rank, const int64_t *shape, char name[24]);
/* A new input. */
GenValue *gen_input(Gen *g, DType t, int rank, const int64_t *shape);
int64_t gen_dim(Gen *g); /* mostly small, sometimes a prime past a tile */
#endif
