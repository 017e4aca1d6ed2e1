/* manual_check FILE: is FILE the manual the tables give? manual_check --write FILE: writes it. */
#include "isa/isa.h"
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv) {
  bool write = argc == 3 && strcmp(argv[1], "--write") == 0;
  if (argc != 2 && !write) {
    fprintf(stderr, "usage: manual_check [--write] FILE\n");
    return 2;
  }
  const char *path = argv[argc - 1], *why = "";
  StrBuf text = {0};
  FileMap map;
  isa_manual(&text);
  bool ok;
  if (write) {
    ok = file_write_atomic(path, text.data, text.len, &why);
    if (!ok) fprintf(stderr, "%s: %s\n", path, why);
  } else if (!file_map(path, &map, &why)) {
    ok = false;
    fprintf(stderr, "%s: %s\n", path, why);
  } else {
    ok = map.size == text.len && memcmp(map.data, text.data, text.len) == 0;
    if (!ok) fprintf(stderr, "%s is not what isa_manual() writes; run 'ninja isa-manual'\n", path);
    file_unmap(&map);
  }
  strbuf_free(&text);
  return ok ? 0 : 1;
}
