/* The timed mode's state, shared by its files. */
#ifndef TIMED_INTERNAL_H
#define TIMED_INTERNAL_H
#include "runtime/runtime_internal.h"

/* What the engines share by equal parts: bytes of DRAM when it is flat, bytes of scratchpad, rows
 * of accumulators. */
typedef enum { RES_DRAM, RES_SPM, RES_ACC, RES_COUNT } Resource;

typedef struct {
  uint32_t pc;
  double visible; /* when it has reached the queue */
  IsaDesc desc;
  bool has_desc;
  IsaCost cost;
  uint32_t issue; /* check: the sequencer's last event at issue */
} Entry;

typedef struct {
  double at;
  uint32_t pc, event;
} Done; /* occupancy over, gives due */

typedef enum { E_IDLE, E_TAKE, E_PLANE, E_BUSY } EngineState;

typedef struct {
  Entry *queue; /* ring of depth */
  uint32_t head, count;
  EngineState state;
  double since;
  uint32_t pc, event;     /* running; event in check mode */
  double start, end;      /* of occupancy; end without its shares of resources */
  double need[RES_COUNT]; /* it still wants of each */
  double from;            /* a transfer moves nothing before */
  DmaWalk walk;           /* requests to the DRAM still to be made, while it is in `moving` */
  double request, pace;   /* earliest time of the next request, and cycles from one to the next */
  double data;            /* when the last of the data requested so far has moved */
  uint64_t opened;        /* rows of DRAM */
  double latency;
  Done *done; /* ring of instructions whose gives are due, in order */
  uint32_t done_head, done_count, done_cap;
  double last_done;
} Engine;

/* The descriptors kept on chip, least recently loaded first: per descriptor of the image its
 * neighbours in that order. FETCH_NONE: no neighbour. */
typedef struct {
  struct {
    uint32_t before, after;
    bool kept;
  } * at; /* NULL: all are on chip */
  uint32_t first, last, count;
} FetchCache;
enum { FETCH_NONE = INT32_MAX };

typedef enum { S_RUN, S_TAKE, S_QUEUE, S_DESC, S_FENCE, S_END } SeqState;

typedef struct {
  NpurtModel *m;
  Engine eng[ENGINE_COUNT];
  uint32_t depth;
  double now;
  double part[RES_COUNT];                         /* of each who wants some, until the next event */
  uint8_t wanting[RES_COUNT], setting_up, moving; /* sets of engines: 1 << e */
  double capacity[RES_COUNT];                     /* per cycle */
  Dram *dram;                                     /* NULL: flat, RES_DRAM */
  int served;                                     /* engine whose request the DRAM took last */
  SeqState seq;
  double seq_ready, seq_since;
  bool seq_give; /* the instruction that ends at seq_ready is `give` at m->pc of then */
  uint32_t give_pc, give_event;
  uint32_t seq_pc;              /* last executed or issued */
  double desc_ready[ISA_DESCS]; /* when the descriptor registers are loaded */
  double fetch_free;            /* when the next descriptor can be fetched */
  FetchCache cache;             /* descriptors on chip */
  double drained;               /* at `halt`: when the DRAM has written all; 0 before */
  bool failed;
} Sim;

/* Differences of time below it are rounding. */
static const double timed_epsilon = 1e-9;

/* timed_share.c: what limits several engines together */
void share_init(Sim *s);
void share_free(Sim *s);
/* The instruction that engine e starts wants its parts; called before and after its effect. */
void share_start(Sim *s, IsaEngine e, const IsaCost *c);
void share_started(Sim *s, IsaEngine e, const IsaCost *c);
/* Whether all of its parts have been served. */
static inline bool share_served(const Sim *s, IsaEngine e) {
  uint8_t any = s->setting_up | s->moving;
  for (int r = 0; r < RES_COUNT; r++) any |= s->wanting[r];
  return !(any >> e & 1);
}
/* The next moment at which something ends, given that nothing else happens before `t`. */
double share_next(Sim *s, double t);
void share_pass(Sim *s, double to);

/* timed_fetch.c: descriptors on their way to the registers */
void fetch_init(Sim *s);
void fetch_free_all(Sim *s);
/* A `dload` executed at `at`. */
void fetch_start(Sim *s, const IsaInsn *in, double at);
/* When the descriptor register that an instruction uses or changes is there; 0 when it has none. */
double fetch_ready(const Sim *s, const IsaInsn *in);

/* timed_deadlock.c: says who waits for what; false */
bool timed_deadlock(Sim *s);
/* timed.c: the counts an instruction takes are there. */
bool timed_can_take(const Sim *s, const IsaInsn *in);
#endif
