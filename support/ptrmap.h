/* Maps from pointers, for passes over large graphs. Private to this tree: not installed. */
#ifndef NPU_SUPPORT_PTRMAP_H
#define NPU_SUPPORT_PTRMAP_H
#include "support/support.h"

#define uthash_malloc(size) mem_alloc(size)
#define uthash_free(p, size) mem_free(p)
#include <uthash.h>

/* Pointer to pointer. An empty map is NULL. Entries come from mem_alloc and are linked in the order
 * in which their keys came. */
typedef struct PtrMap {
  const void *key;
  void *value;
  UT_hash_handle hh;
} PtrMap;
void ptr_map_put(PtrMap **m, const void *key, void *value);
void *ptr_map_get(PtrMap *m, const void *key); /* NULL when absent */
void ptr_map_free(PtrMap **m);

/* Numbers in place of the values: 0 when absent. */
static inline void ptr_map_put_int(PtrMap **m, const void *key, uintptr_t n) {
  ptr_map_put(m, key, (void *)n);
}
static inline uintptr_t ptr_map_get_int(PtrMap *m, const void *key) {
  return (uintptr_t)ptr_map_get(m, key);
}
#endif
