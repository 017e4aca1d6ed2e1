/* What the commands share; see cli.h. */
#include "tools/cli.h"

#include <errno.h>
#include <getopt.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct Cli {
  const CliCommand *command;
  const CliOption *options;
  int noptions, argc;
  char **argv;
  struct option longs[CLI_MAX_OPTIONS + 3];
  char shorts[3 * CLI_MAX_OPTIONS + 4];
};

/* What getopt_long returns: letters for short options, ID_FIRST + index for long ones. */
enum { ID_FIRST = 256, ID_HELP = 10001, ID_VERSION = 10002, HELP_COLUMN = 30 };

static bool optional_value(const CliOption *o) {
  return o->metavar && strncmp(o->metavar, "[=", 2) == 0;
}

Cli *cli_new(const CliCommand *command, const CliOption *options, int argc, char **argv) {
  Cli *c = mem_alloc(sizeof *c);
  *c = (Cli){.command = command, .options = options, .argc = argc, .argv = argv};
  char *s = c->shorts;
  struct option *l = c->longs;
  *s++ = ':'; /* a missing value is reported apart from an unknown option */
  for (const CliOption *o = options; o->letter || o->name || o->help; o++, c->noptions++) {
    if (o->letter) {
      *s++ = o->letter;
      if (o->metavar) *s++ = ':';
    }
    int needs = optional_value(o) ? optional_argument
                : o->metavar      ? required_argument
                                  : no_argument;
    if (o->name) *l++ = (struct option){o->name, needs, NULL, ID_FIRST + c->noptions};
  }
  *l++ = (struct option){"help", no_argument, NULL, ID_HELP};
  *l++ = (struct option){"version", no_argument, NULL, ID_VERSION};
  opterr = 0;
  optind = 1;
  return c;
}

void cli_free(Cli *c) {
  mem_free(c);
}

static const char *program(const Cli *c) {
  const char *slash = strrchr(c->argv[0], '/');
  return slash ? slash + 1 : c->argv[0];
}

static void print_option(const CliOption *o) {
  if (!o->letter && !o->name) {
    printf("\n%s\n", o->help);
    return;
  }
  StrBuf left = {0};
  strbuf_puts(&left, o->letter ? "  -" : "      ");
  if (o->letter) strbuf_printf(&left, o->name ? "%c, " : "%c", o->letter);
  if (o->name) strbuf_printf(&left, "--%s", o->name);
  if (o->metavar) strbuf_printf(&left, optional_value(o) ? "%s" : " %s", o->metavar);
  if (left.len >= HELP_COLUMN)
    printf("%s\n%*s%s\n", left.data, HELP_COLUMN, "", o->help);
  else
    printf("%-*s%s\n", HELP_COLUMN, left.data, o->help);
  strbuf_free(&left);
}

static void print_help(const Cli *c) {
  static const CliOption always[] = {{ID_HELP, 0, "help", NULL, "show this text and exit"},
                                     {ID_VERSION, 0, "version", NULL, "show the version and exit"}};
  printf("usage: %s\n%s\n", c->command->usage, c->command->about);
  for (int i = 0; i < c->noptions; i++) print_option(&c->options[i]);
  printf("\n");
  for (size_t i = 0; i < NPU_COUNTOF(always); i++) print_option(&always[i]);
  if (c->command->more) printf("\n%s", c->command->more);
}

/* What --help and --version end with. */
static int flushed(const Cli *c) {
  if (fflush(stdout) == 0) return CLI_DONE;
  fprintf(stderr, "%s: error: cannot write standard output: %s\n", program(c), strerror(errno));
  return CLI_ERROR;
}

bool cli_error(const Cli *c, const char *fmt, ...) {
  va_list ap;
  va_start(ap, fmt);
  fprintf(stderr, "%s: error: ", program(c));
  vfprintf(stderr, fmt, ap);
  fprintf(stderr, " (%s --help lists the options)\n", program(c));
  va_end(ap);
  return false;
}

/* Names the nearest option to one that is unknown. */
static void unknown_option(const Cli *c) {
  const char *given = c->argv[optind - 1];
  if (optopt > 0 && optopt < ID_FIRST) {
    cli_error(c, "unknown option '-%c'", optopt);
    return;
  }
  char word[64];
  size_t len = strcspn(given + 2, "=");
  snprintf(word, sizeof word, "%.*s", (int)len, given + 2);
  const char *names[CLI_MAX_OPTIONS + 2];
  size_t n = 0;
  for (const struct option *l = c->longs; l->name; l++) {
    if (strcmp(l->name, word) == 0) {
      cli_error(c, "option '--%s' takes no value", word);
      return;
    }
    names[n++] = l->name;
  }
  const char *near = str_nearest(word, names, n);
  if (near)
    cli_error(c, "unknown option '--%s'; did you mean '--%s'?", word, near);
  else
    cli_error(c, "unknown option '--%s'", word);
}

int cli_next(Cli *c, const char **value) {
  int id = getopt_long(c->argc, c->argv, c->shorts, c->longs, NULL);
  *value = optarg;
  switch (id) {
  case -1: return CLI_END;
  case ID_HELP: print_help(c); return flushed(c);
  case ID_VERSION: printf("%s " NPUCC_VERSION "\n", program(c)); return flushed(c);
  case '?': unknown_option(c); return CLI_ERROR;
  case ':': cli_error(c, "option '%s' needs a value", c->argv[optind - 1]); return CLI_ERROR;
  }
  for (int i = 0; i < c->noptions; i++)
    if (c->options[i].letter == id) return c->options[i].id;
  return c->options[id - ID_FIRST].id;
}

int cli_positionals(const Cli *c, char ***out) {
  *out = c->argv + optind;
  return c->argc - optind;
}

bool cli_int(const Cli *c, const char *what, const char *value, int64_t lo, int64_t hi,
             int64_t *out) {
  if (parse_i64(value, out) && *out >= lo && *out <= hi) return true;
  return cli_error(c, "%s wants an integer from %lld to %lld, not '%s'", what, (long long)lo,
                   (long long)hi, value);
}

void cli_list_add(CliList *l, const char *value) {
  l->items = mem_realloc(l->items, (size_t)(l->n + 1) * sizeof *l->items);
  l->items[l->n++] = value;
}

void cli_list_split(CliList *l, const char *value, Arena *a) {
  for (;;) {
    size_t len = strcspn(value, ",");
    cli_list_add(l, arena_strndup(a, value, len));
    if (!value[len]) return;
    value += len + 1;
  }
}

void cli_list_free(CliList *l) {
  mem_free(l->items);
  *l = (CliList){0};
}

/* ---- diagnostics and text ---- */

static void print_diag(void *user, const DiagEngine *d, const Diag *diag) {
  (void)user;
  StrBuf text = {0};
  diag_format(d, diag, isatty(STDERR_FILENO), &text);
  fwrite(text.data, 1, text.len, stderr);
  strbuf_free(&text);
}

DiagEngine *cli_diag_new(void) {
  DiagEngine *d = diag_new();
  diag_set_sink(d, print_diag, NULL);
  return d;
}

bool cli_write(const char *path, const StrBuf *text, DiagEngine *diag) {
  const char *why;
  if (file_write_atomic(path ? path : "-", text->data, text->len, &why)) return true;
  diag_error(diag, SRC_LOC_NONE, "E-file", "cannot write %s: %s", path ? path : "standard output",
             why);
  return false;
}

bool cli_read(const char *path, FileMap *out, DiagEngine *diag) {
  const char *why;
  if (file_map(path, out, &why)) return true;
  diag_error(diag, SRC_LOC_NONE, "E-file", "cannot read '%s': %s", path, why);
  return false;
}

static bool same_file(const char *a, const char *b) {
  struct stat x, y;
  if (stat(a, &x) != 0 || stat(b, &y) != 0 || !S_ISREG(x.st_mode)) return false;
  return x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

bool cli_spares(const Cli *c, const char *source, const char *option, const char *path) {
  return !path || !same_file(source, path) ||
         cli_error(c, "%s '%s' would overwrite the file that is read; give another", option, path);
}

bool cli_machine(const char *name, MachineDesc *out, DiagEngine *diag) {
  if (name) return machine_load(name, out, diag);
  *out = *machine_default();
  return true;
}
