/* Compares the op table between the marks in a markdown file with the one generated from
 * ir/ops.def, or, with
 * --write, replaces it. */
#include "ir/ir.h"

#include <string.h>

static const char begin[] = "<!-- op table: begin (generated, see ninja ir-manual) -->\n";
static const char end[] = "<!-- op table: end -->";

int main(int argc, char **argv) {
  bool rewrite = argc == 3 && !strcmp(argv[1], "--write");
  const char *path = argc >= 2 ? argv[argc - 1] : "", *why;
  FileMap f;
  if (argc != 2 + rewrite || !file_map(path, &f, &why))
    return fprintf(stderr, "usage: ir_manual_check [--write] FILE\n"), 2;
  const char *text = (const char *)f.data, *from = memmem(text, f.size, begin, sizeof begin - 1);
  const char *to = from ? memmem(from, (size_t)(text + f.size - from), end, sizeof end - 1) : NULL;
  if (!to) return fprintf(stderr, "%s: no marks for the op table\n", path), 2;
  from += sizeof begin - 1;
  StrBuf table = {0}, out = {0};
  ir_manual(&table);
  bool same = table.len == (size_t)(to - from) && !memcmp(table.data, from, table.len);
  int status = 0;
  if (!same && rewrite) {
    strbuf_write(&out, text, (size_t)(from - text));
    strbuf_write(&out, table.data, table.len);
    strbuf_write(&out, to, (size_t)(text + f.size - to));
    if (!file_write_atomic(path, out.data, out.len, &why))
      fprintf(stderr, "%s: %s\n", path, why), status = 2;
  } else if (!same) {
    fprintf(stderr, "%s: the op table is out of date; run `ninja ir-manual`\n", path);
    status = 1;
  }
  strbuf_free(&table);
  strbuf_free(&out);
  file_unmap(&f);
  return status;
}
