/* Time in the DRAM: channels, banks and rows by hashed address, a write buffer and a bounded queue
 * per channel, turn-around between reads and writes. Deterministic; formulas in isa/README.md,
 * section DRAM. Times are cycles of the core's clock. */
#ifndef RUNTIME_DRAM_H
#define RUNTIME_DRAM_H
#include "isa/isa.h"

/* Of two times, none NaN; fmax and fmin are calls. */
static inline double later(double a, double b) {
  return a > b ? a : b;
}
static inline double sooner(double a, double b) {
  return a < b ? a : b;
}

typedef struct Dram Dram;
/* NULL when the machine's DRAM has no channels: a flat bandwidth, which the caller shares out. */
Dram *dram_new(const MachineDesc *m);
void dram_free(Dram *d); /* NULL is fine */
/* When the next request can be accepted: a full queue lets none in. */
double dram_accepts(const Dram *d);
/* Hands over a request of `bytes` at `addr`, all of one interleave block, at time `at` (no earlier
 * than any handed over before, or it waits for them and for dram_accepts). */
typedef struct {
  double accepted; /* when the queue took it */
  double done;     /* when its bytes have moved; of a write, when it was accepted */
  uint64_t opened; /* rows, by it or by the writes that it filled the buffer with */
} DramAnswer;
DramAnswer dram_request(Dram *d, double at, uint64_t addr, uint32_t bytes, bool write);
/* Bytes from addr to the end of its interleave block. */
uint64_t dram_block_rest(const Dram *d, uint64_t addr);
/* Serves what write buffers hold; when the last of it has moved. */
double dram_drain(Dram *d, double now);
/* Rows opened so far, by reads and writes. */
uint64_t dram_activations(const Dram *d);
#endif
