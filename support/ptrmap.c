/* Maps from pointers. See ptrmap.h. */
#include "support/ptrmap.h"

void ptr_map_put(PtrMap **m, const void *key, void *value) {
  PtrMap *e = NULL;
  HASH_FIND_PTR(*m, &key, e);
  if (!e) {
    e = mem_alloc(sizeof *e);
    e->key = key;
    HASH_ADD_PTR(*m, key, e);
  }
  e->value = value;
}

void *ptr_map_get(PtrMap *m, const void *key) {
  PtrMap *e = NULL;
  HASH_FIND_PTR(m, &key, e);
  return e ? e->value : NULL;
}

void ptr_map_free(PtrMap **m) {
  PtrMap *e, *next;
  HASH_ITER(hh, *m, e, next) {
    HASH_DEL(*m, e);
    mem_free(e);
  }
}
