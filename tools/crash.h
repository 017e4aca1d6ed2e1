/* Crashes inside passes, as a user should meet them: which pass it was, and the reproducer that was
 * asked for. */
#ifndef NPU_CRASH_H
#define NPU_CRASH_H
#include "ir/pass.h"

/* What passes are to be run with so that a crash can be told. */
PassWatch *crash_watch(void);
#endif
