/* Shadow memory: for every byte of a space, the number of the access that last touched it (0:
 * none). Granules of 64 bytes hold one number while they are uniform and are split into bytes when
 * they are not, so it is exact. */
#ifndef RUNTIME_SHADOW_H
#define RUNTIME_SHADOW_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
  uint32_t *cell; /* per granule: a number, or SHADOW_SPLIT + index of 64 numbers; a lazy mapping */
  size_t granules;
  uint32_t (*split)[64];
  uint32_t nsplit, cap, free_list; /* free_list: index + 1, chained through element 0 */
  bool used;
} Shadow;
enum { SHADOW_GRANULE = 64 };
#define SHADOW_SPLIT 0x80000000u

bool shadow_init(Shadow *s, size_t bytes);
void shadow_free(Shadow *s);
void shadow_clear(Shadow *s);
void shadow_set(Shadow *s, size_t addr, size_t bytes, uint32_t id);
/* Calls visit for maximal runs of equal numbers in [addr, addr + bytes). */
void shadow_visit(const Shadow *s, size_t addr, size_t bytes,
                  void (*visit)(void *user, size_t lo, size_t hi, uint32_t id), void *user);
#endif
