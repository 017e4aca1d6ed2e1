/* How well the DRAM models meet what a DRAM simulator reached:
 *   dram_fit PATTERNS.csv [tolerance %]
 * A row of the file is memory (lpddr4 or hbm2), pattern, run_bytes, stride_bytes (a number or
 * `random`), read_share, chunk_bytes, streams, share_of_peak. The requests of a pattern go through
 * the model of the timed simulator, and through the closed form of the compiler's costs. Prints
 * mean and largest error per memory, and rows beyond the tolerance (5). Memories: edge's DRAM at 32
 * GB/s of peak, cloud's at 256. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/dram.h"

enum { SETS = 8, MAX_STREAMS = 3, REQUEST_BYTES = 64, REGION = 1 << 30, WRAP = 512 << 20 };

typedef struct {
  char memory[16], pattern[40];
  double run, stride; /* stride < 0: random */
  double reads;       /* share */
  double chunk, want;
} Row;

typedef struct {
  bool write, sequential;
  uint64_t base, at; /* at: within the region */
  uint64_t left;     /* of the run */
} Stream;

typedef struct {
  MachineDesc machine;
  double peak; /* bytes per cycle */
  uint64_t bytes;
} Memory;

static uint64_t random_state = 1;
static uint64_t random_below(uint64_t n) { /* xorshift64*, Vigna 2016 */
  random_state ^= random_state >> 12;
  random_state ^= random_state << 25;
  random_state ^= random_state >> 27;
  return (random_state * UINT64_C(2685821657736338717) >> 16) % n;
}

/* Streams of a pattern: r and w, capital where runs move. */
static const struct {
  const char *pattern, *streams;
} kinds[] = {{"seq_read", "r"},
             {"seq_write", "w"},
             {"run_read", "R"},
             {"run_write", "W"},
             {"run_read2", "RR"},
             {"mix_rw", "rw"},
             {"two_reads", "rr"},
             {"three_reads", "rrr"},
             {"two_reads_one_write", "rrw"},
             {"run_read_seq_write", "Rw"},
             {"run_read_run_write", "RW"},
             {"run_read_seq_read_seq_write", "Rrw"}};

static const char *streams_of(const Row *row) {
  for (size_t i = 0; i < NPU_COUNTOF(kinds); i++)
    if (strcmp(kinds[i].pattern, row->pattern) == 0) return kinds[i].streams;
  return NULL;
}

static bool writes(char stream) {
  return stream == 'w' || stream == 'W';
}

/* The k-th stream's part of the bytes. */
static double share_of(const Row *row, const char *streams, size_t k) {
  double same = 0;
  bool write = writes(streams[k]);
  for (size_t i = 0; streams[i]; i++) same += writes(streams[i]) == write;
  return (write ? 1 - row->reads : row->reads) / same;
}

/* Bytes the k-th stream moves at its turn; the smallest turn is the row's chunk. */
static double turn_of(const Row *row, const char *streams, size_t k) {
  double least = 1;
  for (size_t i = 0; streams[i]; i++) least = fmin(least, share_of(row, streams, i));
  double part = row->chunk > 0 ? row->chunk * share_of(row, streams, k) / least : 65536;
  return round(part / REQUEST_BYTES) * REQUEST_BYTES;
}

static uint64_t random_start(void) {
  return random_below(WRAP / REQUEST_BYTES) * REQUEST_BYTES;
}

static void start_streams(const Row *row, const char *streams, Stream *s) {
  for (size_t k = 0; streams[k]; k++) {
    s[k] = (Stream){.write = writes(streams[k]),
                    .sequential = strchr("rw", streams[k]) != NULL,
                    .base = k * (uint64_t)REGION + (random_below(REGION / 8192) << 12)};
    s[k].left = s[k].sequential ? UINT64_MAX : (uint64_t)row->run;
    if (!s[k].sequential && row->stride < 0) s[k].at = random_start();
  }
}

static void advance(const Row *row, Stream *s, uint64_t bytes) {
  s->at += bytes;
  s->left -= bytes;
  if (s->left) return;
  s->left = (uint64_t)row->run;
  s->at = row->stride < 0 ? random_start() : (s->at + (uint64_t)(row->stride - row->run)) % WRAP;
}

static double by_address(const Memory *m, const Row *row, const char *streams) {
  double sum = 0;
  for (int set = 0; set < SETS; set++) {
    Stream s[MAX_STREAMS];
    Dram *d = dram_new(&m->machine);
    start_streams(row, streams, s);
    double moved = 0, from = -1, moved_from = 0;
    while (moved < (double)m->bytes)
      for (size_t k = 0; streams[k]; k++) {
        uint64_t turn = (uint64_t)turn_of(row, streams, k);
        while (turn) {
          uint64_t addr = s[k].base + s[k].at, bytes = dram_block_rest(d, addr);
          bytes = bytes < s[k].left ? bytes : s[k].left;
          bytes = bytes < turn ? bytes : turn;
          DramAnswer a = dram_request(d, 0, addr, (uint32_t)bytes, s[k].write);
          if (from < 0 && moved >= (double)m->bytes / 8) from = a.accepted, moved_from = moved;
          moved += (double)bytes;
          turn -= bytes;
          advance(row, &s[k], bytes);
        }
      }
    sum += (moved - moved_from) / (dram_accepts(d) - from) / m->peak;
    dram_free(d);
  }
  return sum / SETS;
}

static double in_closed_form(const Memory *m, const Row *row, const char *streams) {
  double bytes = 1 << 24, cycles = 0, written = 0, group = 0;
  for (size_t k = 0; streams[k]; k++) {
    double part = bytes * share_of(row, streams, k);
    IsaDramRuns r = {.bytes = part};
    if (strchr("RW", streams[k]))
      r = (IsaDramRuns){.bytes = row->run,
                        .n = 1,
                        .count = {part / row->run},
                        .stride = {fmax(row->stride, 0)},
                        .irregular = row->stride < 0,
                        .reach = WRAP};
    cycles += isa_dram_cycles(&m->machine, &r);
    if (writes(streams[k])) written += part, group = turn_of(row, streams, k);
  }
  if (streams[1]) cycles = isa_dram_together(&m->machine, cycles, written, group);
  return bytes / cycles / m->peak;
}

static bool read_row(const char *line, Row *r) {
  char stride[32];
  int streams;
  if (sscanf(line, "%15[^,],%39[^,],%lf,%31[^,],%lf,%lf,%d,%lf", r->memory, r->pattern, &r->run,
             stride, &r->reads, &r->chunk, &streams, &r->want) != 8)
    return false;
  r->stride = strcmp(stride, "random") == 0 ? -1 : strtod(stride, NULL);
  return true;
}

static Memory memory_of(const char *machine, double peak_gbs, uint64_t bytes) {
  Memory m = {.bytes = bytes};
  DiagEngine *diag = diag_new();
  if (!machine_load(machine, &m.machine, diag)) abort();
  diag_free(diag);
  m.machine.dram_gbs = peak_gbs * (1 - m.machine.dram_refresh);
  m.peak = peak_gbs / m.machine.clock_ghz;
  return m;
}

int main(int argc, char **argv) {
  FILE *f = argc > 1 ? fopen(argv[1], "r") : NULL;
  if (!f) {
    fprintf(stderr, "usage: dram_fit PATTERNS.csv [TOLERANCE]\n");
    return 2;
  }
  double tolerance = argc > 2 ? strtod(argv[2], NULL) : 5;
  const char *names[] = {"lpddr4", "hbm2"};
  const Memory memory[] = {memory_of("edge", 32, 4 << 20), memory_of("cloud", 256, 16 << 20)};
  double sum[2][2] = {{0}}, most[2][2] = {{0}};
  int n[2] = {0};
  char line[512];
  Row row;
  while (fgets(line, sizeof line, f)) {
    const char *streams;
    if (!read_row(line, &row) || !(streams = streams_of(&row))) continue;
    int k = strcmp(row.memory, names[1]) == 0;
    double got[] = {by_address(&memory[k], &row, streams),
                    in_closed_form(&memory[k], &row, streams)};
    n[k]++;
    for (int j = 0; j < 2; j++) {
      double error = 100 * (got[j] / row.want - 1);
      sum[k][j] += fabs(error);
      most[k][j] = fmax(most[k][j], fabs(error));
      if (fabs(error) > tolerance)
        printf("%-11s %-6s %-28s run %-6g stride %-7g reads %-5g chunk %-6g %.4f, simulator %.4f: "
               "%+.1f %%\n",
               j ? "closed form" : "by address", row.memory, row.pattern, row.run, row.stride,
               row.reads, row.chunk, got[j], row.want, error);
    }
  }
  fclose(f);
  for (int k = 0; k < 2; k++)
    for (int j = 0; j < 2 && n[k]; j++)
      printf("%-6s %-11s %d patterns, error: mean %.2f %%, largest %.2f %%\n", names[k],
             j ? "closed form" : "by address", n[k], sum[k][j] / n[k], most[k][j]);
  return 0;
}
