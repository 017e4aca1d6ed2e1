/* Compares the operator table in frontend/README.md with the one the op table gives; --write puts
 * it there. */
#include <string.h>

#include "frontend/frontend.h"

static const char begin_mark[] = "<!-- operators: written by check_manual --write -->\n";
static const char end_mark[] = "<!-- end of operators -->\n";

int main(int argc, char **argv) {
  bool write = argc == 3 && strcmp(argv[1], "--write") == 0;
  const char *path = argc > 1 ? argv[argc - 1] : "", *why = NULL;
  FileMap map;
  if (argc < 2 || !file_map(path, &map, &why)) {
    fprintf(stderr, "usage: check_manual [--write] README.md (%s)\n", why ? why : "no file");
    return 2;
  }
  StrBuf table = {0}, out = {0};
  mdl_manual(&table);
  const char *text = (const char *)map.data, *end = text + map.size;
  const char *b = memmem(text, map.size, begin_mark, strlen(begin_mark));
  const char *e = b ? memmem(b, (size_t)(end - b), end_mark, strlen(end_mark)) : NULL;
  int status = 1;
  if (!e) {
    fprintf(stderr, "%s: the marks around the operator table are missing\n", path);
  } else {
    b += strlen(begin_mark);
    bool same = (size_t)(e - b) == table.len && memcmp(b, table.data, table.len) == 0;
    if (!same && write) {
      strbuf_write(&out, text, (size_t)(b - text));
      strbuf_write(&out, table.data, table.len);
      strbuf_write(&out, e, (size_t)(end - e));
      same = file_write_atomic(path, out.data, out.len, &why);
    }
    if (!same)
      fprintf(stderr, "%s: the operator table is out of date; run check_manual --write\n", path);
    status = !same;
  }
  strbuf_free(&table);
  strbuf_free(&out);
  file_unmap(&map);
  return status;
}
