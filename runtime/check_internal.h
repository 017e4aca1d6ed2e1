/* Between check.c and check_order.c: the events of a run in check mode and their order. */
#ifndef RUNTIME_CHECK_INTERNAL_H
#define RUNTIME_CHECK_INTERNAL_H
#include "runtime/runtime_internal.h"

/* Per engine, how many of its instructions have finished. */
typedef struct {
  uint32_t at[ENGINE_COUNT];
} VClock;

/* An instruction that was begun. Events are numbered from 1 in the order they begin. */
typedef struct {
  uint32_t pc, clock; /* clock: its number among those of its engine, from 1 */
  uint8_t engine;
  uint32_t previous; /* of its engine; 0: none */
  uint32_t issue;    /* what the sequencer had done last when it issued this one; 0: nothing */
  uint32_t plane; /* a pop: the load of its plane; a plane load: the pop that made room; else 0 */
  VClock know;    /* what has finished for certain when it starts, once solved */
} Event;

typedef struct Order Order;

Order *order_new(const NpurtModel *m);
void order_free(Order *o);
void order_start_run(Order *o);
/* Last event of the sequencer, for what it issues. */
uint32_t order_issue(const Order *o);
/* Records that an instruction starts; returns its number. */
uint32_t order_begin(Order *o, IsaEngine e, uint32_t pc, uint32_t issue);
/* The event has finished and gives what its instruction gives. */
void order_give(Order *o, uint32_t id);
/* NULL for an event before the last fence. */
const Event *order_event(const Order *o, uint32_t id);
/* Works out `know` of all events since the last fence. */
void order_solve(Order *o);
/* After order_solve: whether `earlier` has finished in every timing when `later`, an event since
 * the last fence, starts. */
bool order_knows(const Order *o, uint32_t later, uint32_t earlier);
/* Everything recorded has finished, and what begins from here on begins after it. */
void order_fence(Order *o);
/* Whether the engine starts an instruction before the data of the one before has arrived. */
bool order_is_load(unsigned engine);
#endif
