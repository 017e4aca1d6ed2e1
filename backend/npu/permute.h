/* Constants in the order their layout stores them in. */
#ifndef NPU_PERMUTE_H
#define NPU_PERMUTE_H
#include <stddef.h>
#include <stdint.h>

/* Copies row-major elements of 1, 2 or 4 bytes into storage order: axis layout[0] outermost. */
void permute_elements(size_t size, int rank, const int64_t *shape, const int64_t *layout,
                      const uint8_t *from, uint8_t *to);
#endif
