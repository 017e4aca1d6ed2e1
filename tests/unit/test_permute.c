/* Constants in storage order, against the definition element by element. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "backend/npu/permute.h"
#include "ir/ir.h"

/* Where the element of storage position `at` lies in row-major order. */
static int64_t source_of(int64_t at, int rank, const int64_t *shape, const int64_t *layout) {
  int64_t index[IR_MAX_RANK], from = 0;
  for (int i = rank - 1; i >= 0; i--) {
    index[layout[i]] = at % shape[layout[i]];
    at /= shape[layout[i]];
  }
  for (int d = 0; d < rank; d++) from = from * shape[d] + index[d];
  return from;
}

static void check(size_t size, int rank, const int64_t *shape, const int64_t *layout) {
  int64_t n = 1;
  for (int d = 0; d < rank; d++) n *= shape[d];
  size_t bytes = (size_t)n * size;
  uint8_t *from = malloc(bytes), *to = malloc(bytes);
  for (size_t i = 0; i < bytes; i++) from[i] = (uint8_t)(i * 2654435761u >> 13);
  permute_elements(size, rank, shape, layout, from, to);
  for (int64_t i = 0; i < n; i++)
    assert_memory_equal(to + (size_t)i * size,
                        from + (size_t)source_of(i, rank, shape, layout) * size, size);
  free(from);
  free(to);
}

static void every_order(void **state) {
  (void)state;
  static const int64_t shapes[][4] = {{1, 1, 1, 1}, {2, 3, 4, 5}, {1, 70, 3, 129}, {65, 1, 64, 2}};
  for (size_t size = 1; size <= 4; size *= 2)
    for (size_t s = 0; s < NPU_COUNTOF(shapes); s++)
      for (int code = 0; code < 256; code++) { /* all layouts of four axes */
        int64_t layout[4];
        int seen = 0;
        for (int i = 0; i < 4; i++) {
          layout[i] = code >> 2 * i & 3;
          seen |= 1 << layout[i];
        }
        if (seen == 15) check(size, 4, shapes[s], layout);
      }
}

static void matrices(void **state) {
  (void)state;
  static const int64_t turned[] = {1, 0};
  for (int64_t rows = 1; rows <= 200; rows += 63) /* on both sides of a block's edge */
    for (int64_t columns = 1; columns <= 200; columns += 21)
      for (size_t size = 1; size <= 4; size *= 2)
        check(size, 2, (const int64_t[]){rows, columns}, turned);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_order),
      cmocka_unit_test(matrices),
  };
  return cmocka_run_group_tests_name("permute", tests, NULL, NULL);
}
