/* The address mapping and the order of work are those of a DRAM controller with open rows, one
 * queue per channel and writes drained in groups; `tests/bench/dram_fit` compares the bandwidth of
 * access patterns with what a cycle-accurate DRAM simulator reached for them. That the data bus
 * does not wait for a missing row, only the request does, stands in for the reordering of such a
 * controller. */
#include "runtime/dram.h"

typedef struct {
  int64_t row;       /* -1: closed */
  double open, free; /* when the row can be used; when the bank can activate another */
} Bank;

typedef struct {
  int64_t row;
  uint32_t bank, bytes;
} Write;

/* A request that has not finished. */
typedef struct {
  double done;
  uint32_t bytes;
} Pending;

typedef struct {
  double bus;  /* when the data bus is free */
  double last; /* activation */
  bool writing;
  uint64_t held, queued; /* bytes in the write buffer; bytes not finished */
  size_t nwrites, npending;
  Write *write;
  size_t first, room; /* of a ring, the earliest done first; room is a power of two */
  Pending *pending;
  Bank *bank;
} Channel;

/* The last number that was folded: neighbours fold the same one. */
typedef struct {
  uint64_t of;
  uint32_t fold;
} Folded;

struct Dram {
  Folded above, row; /* zeros fold to zero */
  Channel *channel;
  uint32_t nchannels, channel_bits, nbanks, bank_bits;
  uint32_t block_bits, row_bits; /* interleave and rows: 1 << bits bytes */
  uint64_t interleave, write_limit, queue_limit;
  double byte; /* cycles of a byte on a channel */
  double trc, tact, topen, turn;
  double now; /* when the last request was accepted, or the queue had room again */
  uint64_t activations;
};

static uint32_t log2_of(uint64_t power) {
  uint32_t n = 0;
  while (power >>= 1) n++;
  return n;
}

/* Exclusive or of all digits of `bits` bits. */
static uint32_t fold(uint64_t x, uint32_t bits) {
  uint64_t r = 0;
  for (; bits && x; x >>= bits) r ^= x & ((UINT64_C(1) << bits) - 1);
  return (uint32_t)r;
}

static inline uint32_t folded(Folded *last, uint64_t x, uint32_t bits) {
  if (x != last->of) *last = (Folded){x, fold(x, bits)};
  return last->fold;
}

Dram *dram_new(const MachineDesc *m) {
  if (m->dram_channels == 0) return NULL;
  Dram *d = mem_alloc(sizeof *d);
  d->nchannels = (uint32_t)m->dram_channels;
  d->nbanks = (uint32_t)m->dram_banks;
  d->channel_bits = log2_of(d->nchannels);
  d->bank_bits = log2_of(d->nbanks);
  d->interleave = (uint64_t)m->dram_interleave;
  d->block_bits = log2_of(d->interleave);
  d->row_bits = log2_of((uint64_t)m->dram_row_bytes);
  d->write_limit = (uint64_t)m->dram_write_queue * ISA_DRAM_REQUEST;
  d->queue_limit = (uint64_t)m->dram_queue * ISA_DRAM_REQUEST;
  d->byte = (double)m->dram_channels / machine_dram_bytes_per_cycle(m);
  /* The sustained bandwidth has refresh in it; the other times pass in what refresh leaves. */
  double stretch = m->clock_ghz / (1 - m->dram_refresh);
  d->trc = m->dram_trc_ns * stretch;
  d->tact = m->dram_tact_ns * stretch;
  d->topen = m->dram_topen_ns * stretch;
  d->turn = m->dram_turn_ns * stretch;
  d->channel = mem_alloc(d->nchannels * sizeof *d->channel);
  for (uint32_t i = 0; i < d->nchannels; i++) {
    Channel *c = &d->channel[i];
    c->last = -d->tact;
    c->bank = mem_alloc(d->nbanks * sizeof *c->bank);
    for (uint32_t b = 0; b < d->nbanks; b++) c->bank[b].row = -1;
    /* Every entry has at least one byte. */
    c->write = mem_alloc(d->write_limit * sizeof *c->write);
    c->room = 1;
    while (c->room < d->queue_limit + d->write_limit + d->interleave) c->room *= 2;
    c->pending = mem_alloc(c->room * sizeof *c->pending);
  }
  return d;
}

void dram_free(Dram *d) {
  if (!d) return;
  for (uint32_t i = 0; i < d->nchannels; i++) {
    mem_free(d->channel[i].bank);
    mem_free(d->channel[i].write);
    mem_free(d->channel[i].pending);
  }
  mem_free(d->channel);
  mem_free(d);
}

double dram_accepts(const Dram *d) {
  return d->now;
}
uint64_t dram_block_rest(const Dram *d, uint64_t addr) {
  return d->interleave - (addr & (d->interleave - 1));
}
uint64_t dram_activations(const Dram *d) {
  return d->activations;
}

/* ---- what has not finished, the earliest first ---- */

static Pending *pending_at(Channel *c, size_t i) {
  return &c->pending[(c->first + i) & (c->room - 1)];
}

/* The bus serves in order and only rows that open late are out of it: the place is near the end. */
static void pending_push(Channel *c, Pending p) {
  size_t i = c->npending++;
  for (; i && pending_at(c, i - 1)->done > p.done; i--) *pending_at(c, i) = *pending_at(c, i - 1);
  *pending_at(c, i) = p;
  c->queued += p.bytes;
}

static double pending_pop(Channel *c) {
  Pending p = *pending_at(c, 0);
  c->first = (c->first + 1) & (c->room - 1);
  c->npending--;
  c->queued -= p.bytes;
  return p.done;
}

/* ---- service ---- */

static double serve(Dram *d, Channel *c, bool write, int64_t row, uint32_t bank, uint32_t bytes) {
  if (c->writing != write) {
    c->bus = later(c->bus, d->now) + d->turn;
    c->last = later(c->last, c->bus);
    c->writing = write;
  }
  Bank *b = &c->bank[bank];
  if (b->row != row) {
    c->last = later(d->now, c->last + d->tact);
    double at = later(c->last, b->free);
    b->open = at + d->topen;
    b->free = at + d->trc;
    b->row = row;
    d->activations++;
  }
  double start = later(c->bus, d->now), time = bytes * d->byte,
         tail = (bytes < ISA_DRAM_REQUEST ? bytes : ISA_DRAM_REQUEST) * d->byte;
  c->bus = start + time;
  double done = later(c->bus - tail, b->open) + tail;
  b->free = later(b->free, done);
  pending_push(c, (Pending){done, bytes});
  return done;
}

static bool before(const Write *a, const Write *b) {
  return a->row != b->row ? a->row < b->row : a->bank < b->bank;
}

/* By row, in order of arrival within one. */
static void serve_writes(Dram *d, Channel *c) {
  for (size_t i = 1; i < c->nwrites; i++) {
    Write w = c->write[i];
    size_t j = i;
    for (; j && before(&w, &c->write[j - 1]); j--) c->write[j] = c->write[j - 1];
    c->write[j] = w;
  }
  for (size_t i = 0; i < c->nwrites; i++)
    serve(d, c, true, c->write[i].row, c->write[i].bank, c->write[i].bytes);
  c->nwrites = 0;
  c->held = 0;
}

DramAnswer dram_request(Dram *d, double at, uint64_t addr, uint32_t bytes, bool write) {
  uint64_t activations = d->activations;
  d->now = later(d->now, at);
  DramAnswer answer = {.accepted = d->now, .done = d->now};
  uint64_t block = addr >> d->block_bits, above = block >> d->channel_bits;
  uint32_t index =
      (uint32_t)(block & (d->nchannels - 1)) ^ folded(&d->above, above, d->channel_bits);
  uint64_t page = ((above << d->block_bits) + (addr & (d->interleave - 1))) >> d->row_bits;
  uint64_t row = page >> d->bank_bits;
  uint32_t bank = (uint32_t)(page & (d->nbanks - 1)) ^ folded(&d->row, row, d->bank_bits);
  Channel *c = &d->channel[index];
  if (write) {
    c->write[c->nwrites++] = (Write){(int64_t)row, bank, bytes};
    c->held += bytes;
    if (c->held >= d->write_limit) serve_writes(d, c);
  } else {
    answer.done = serve(d, c, false, (int64_t)row, bank, bytes);
  }
  while (c->queued > d->queue_limit) d->now = later(d->now, pending_pop(c));
  answer.opened = d->activations - activations;
  return answer;
}

double dram_drain(Dram *d, double now) {
  d->now = later(d->now, now);
  double done = now;
  for (uint32_t i = 0; i < d->nchannels; i++) {
    Channel *c = &d->channel[i];
    serve_writes(d, c);
    if (c->writing && c->npending) done = later(done, pending_at(c, c->npending - 1)->done);
  }
  return done;
}
