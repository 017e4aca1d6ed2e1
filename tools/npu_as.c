/* npu-as: assembly text to a binary. */
#include "tools/cli.h"

enum { OPT_OUTPUT = 1 };
static const CliOption options[] = {
    {OPT_OUTPUT, 'o', "output", "FILE", "where to write the binary (default a.bin)"},
    {0},
};
static const CliCommand command = {
    .usage = "npu-as [options] FILE.s",
    .about = "Assembles a whole program image: machine, descriptors, vector programs, segments, "
             "inputs and\n"
             "outputs, instructions. '-' reads standard input. The syntax is described in "
             "isa/README.md.",
    .more = "npu-objdump of the result prints text that assembles to the same bytes.\n",
};

static bool assemble(const char *path, const char *output, DiagEngine *diag) {
  FileMap map;
  if (!cli_read(path, &map, diag)) return false;
  IsaImage image = {0};
  bool ok = isa_assemble((const char *)map.data, map.size, path, &image, diag) &&
            isa_image_write(&image, output, diag);
  isa_image_free(&image);
  file_unmap(&map);
  return ok;
}

int main(int argc, char **argv) {
  Cli *cli = cli_new(&command, options, argc, argv);
  const char *output = "a.bin", *value;
  int id;
  while ((id = cli_next(cli, &value)) > 0) output = value;
  char **files;
  bool ok = id == CLI_DONE;
  if (id == CLI_END) {
    if (cli_positionals(cli, &files) == 1) {
      ok = diag_writes(cli_diag(cli), "--output", output) &&
           assemble(files[0], output, cli_diag(cli));
    } else {
      cli_error(cli, "give one file to assemble");
    }
  }
  int status = cli_status(cli, ok);
  cli_free(cli);
  return status;
}
