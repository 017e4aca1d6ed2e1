/* Time in the DRAM in closed form, for costs that know no addresses. The timed simulator goes by
 * address (runtime/dram.c); isa/README.md, section DRAM, has both. */
#include "isa/isa_internal.h"
#include <math.h>

/* What the reordering of a controller does not hide, fitted (tests/bench/dram_fit prints how well):
 * of tRC / banks, for each row opened at irregular places and at regular ones that do not fall on
 * whole blocks; of the time of several streams; of a change of direction and back. */
static const double irregular = 0.28, unaligned = 0.14, several = 0.05, turn_pair = 1.25;

static double cycles_of(const MachineDesc *m, double ns) {
  return ns * m->clock_ghz / (1 - m->dram_refresh);
}

double isa_common_divisor(double a, double b) {
  while (b > 0) {
    double rest = fmod(a, b);
    a = b;
    b = rest;
  }
  return a;
}

/* The grid run starts lie on, up to a block. */
static double grid_of(const MachineDesc *m, const IsaDramRuns *r) {
  double grid = (double)m->dram_interleave;
  for (int i = 0; i < r->n; i++)
    grid = isa_common_divisor(grid, r->irregular && i == r->n - 1 ? ISA_DRAM_REQUEST
                                                                  : fabs(r->stride[i]));
  return grid;
}

static double runs_of(const IsaDramRuns *r) {
  double runs = 1;
  for (int i = 0; i < r->n; i++) runs *= r->count[i];
  return runs;
}

/* The part of accesses to any places among so many bytes that find another row of their bank open.
 */
static double misses(const MachineDesc *m, double bytes) {
  double open = (double)m->dram_row_bytes * (double)m->dram_banks * (double)m->dram_channels;
  return bytes / (bytes + open);
}

double isa_dram_activations(const MachineDesc *m, const IsaDramRuns *r) {
  double runs = runs_of(r), row = (double)m->dram_row_bytes;
  if (m->dram_channels == 0 || runs * r->bytes == 0) return 0;
  if (runs == 1) return fmax(1, r->bytes / row);
  /* Blocks a run touches, each in a channel of its own as far as there are; then whole rows. */
  double channels = (double)m->dram_channels, block = (double)m->dram_interleave,
         blocks = fmax(ceil(r->bytes / block), 1 + (r->bytes - grid_of(m, r)) / block),
         rows = fmin(blocks, channels) + fmax(0, r->bytes - block * channels) / row,
         span = r->bytes;
  /* Runs close to one another find the row open. */
  for (int i = 0; i < r->n; i++) {
    bool far = r->irregular && i == r->n - 1;
    if (!far) span += (r->count[i] - 1) * fabs(r->stride[i]);
    rows = far ? rows * r->count[i] * misses(m, span + r->reach)
               : fmin(rows * r->count[i], fmax(rows, span / row));
  }
  return rows;
}

double isa_dram_cycles(const MachineDesc *m, const IsaDramRuns *r) {
  double runs = runs_of(r), bus = runs * r->bytes / machine_dram_bytes_per_cycle(m);
  if (m->dram_channels == 0 || runs <= 1) return bus;
  double opened = isa_dram_activations(m, r) / (double)m->dram_channels, part = 0;
  if (grid_of(m, r) < (double)m->dram_interleave) part = r->irregular ? irregular : unaligned;
  bus += opened * part * cycles_of(m, m->dram_trc_ns) / (double)m->dram_banks;
  return fmax(bus, opened * cycles_of(m, m->dram_tact_ns));
}

double isa_dram_together(const MachineDesc *m, double cycles, double written, double group) {
  if (m->dram_channels == 0) return cycles;
  /* Every channel turns once for what its buffer held, or for its part of the group. */
  double channels = (double)m->dram_channels,
         held = fmax((double)m->dram_write_queue * ISA_DRAM_REQUEST, group / channels);
  return cycles * (1 + several) +
         written / channels / held * turn_pair * cycles_of(m, m->dram_turn_ns);
}
