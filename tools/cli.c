/* What the commands share; see cli.h. */
#include "tools/cli.h"

#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

struct Cli {
  const CliCommand *command;
  const CliOption *options;
  int noptions, argc;
  char **argv;
  DiagEngine *diag;
  bool misused, trapped;
  struct option longs[CLI_MAX_OPTIONS + 3];
  char shorts[3 * CLI_MAX_OPTIONS + 4];
};

/* What getopt_long returns: letters for short options, ID_FIRST + index for long ones. */
enum { ID_FIRST = 256, ID_HELP = 10001, ID_VERSION = 10002, HELP_COLUMN = 30 };

static const char *program(const Cli *c) {
  const char *slash = strrchr(c->argv[0], '/');
  return slash ? slash + 1 : c->argv[0];
}

static void print_diag(void *user, const DiagEngine *d, const Diag *diag) {
  (void)user;
  StrBuf text = {0};
  diag_format(d, diag, isatty(STDERR_FILENO), &text);
  fwrite(text.data, 1, text.len, stderr);
  strbuf_free(&text);
}

/* ---- how a command ends ---- */

/* Codes of diagnostics that say more than that something given was wrong. */
static const struct {
  const char *code;
  CliStatus status;
} code_status[] = {
    {"E-internal", CLI_INTERNAL}, {"E-option", CLI_USAGE},  {"E-pass", CLI_USAGE},
    {"E-pipeline", CLI_USAGE},    {"E-memory", CLI_FAILED},
};

/* The status of the first error whose code is in the table; CLI_OK when there is none. */
static CliStatus status_by_code(const DiagEngine *d) {
  for (size_t i = 0; i < diag_count(d); i++) {
    const Diag *diag = diag_get(d, i);
    for (size_t k = 0; diag->severity == DIAG_ERROR && k < NPU_COUNTOF(code_status); k++)
      if (strcmp(diag->code, code_status[k].code) == 0) return code_status[k].status;
  }
  return CLI_OK;
}

static CliStatus status_of(const Cli *c, bool ok) {
  if (ok) return CLI_OK;
  if (c->misused) return CLI_USAGE;
  CliStatus status = status_by_code(c->diag);
  return status != CLI_OK ? status : c->trapped ? CLI_TRAPPED : CLI_FAILED;
}

int cli_status(const Cli *c, bool ok) {
  return (int)status_of(c, ok);
}

void cli_trapped(Cli *c) {
  c->trapped = true;
}

/* What a handler of signals can know: it is called with nothing but the signal. */
static char crash_message[200];
static bool (*explain_crash)(int number);

/* When a mapped file became shorter than what is read of it, says so and ends. */
static void file_cut_short(const void *at) {
  static char before[] = "error: '",
              after[] = "' was cut short while it was read; do not change files in use [E-file]\n";
  char *path = file_mapped_at(at);
  if (!path) return;
  struct iovec parts[3] = {
      {before, sizeof before - 1}, {path, strlen(path)}, {after, sizeof after - 1}};
  ssize_t written = writev(STDERR_FILENO, parts, 3);
  (void)written;
  _exit(CLI_FAILED);
}

static void crashed(int number, siginfo_t *info, void *context) {
  (void)context;
  if (number == SIGBUS && info->si_code == BUS_ADRERR) file_cut_short(info->si_addr);
  if (!explain_crash || !explain_crash(number)) {
    ssize_t written = write(STDERR_FILENO, crash_message, strlen(crash_message));
    (void)written; /* nothing is left to be done about it */
  }
  _exit(CLI_INTERNAL);
}

void cli_explain_crash(bool (*explain)(int number)) {
  explain_crash = explain;
}

/* Handlers that are there (those of a sanitizer) stay. */
static void catch_crashes(const char *name) {
  static char stack[1 << 16]; /* the stack may be what ran out */
  static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
  snprintf(crash_message, sizeof crash_message,
           "%.60s: internal error: the command crashed; please report it, with what it was given\n",
           name);
  stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
  sigaltstack(&alternative, NULL);
  for (size_t i = 0; i < NPU_COUNTOF(signals); i++) {
    struct sigaction old, handler = {.sa_sigaction = crashed,
                                     .sa_flags = (int)(SA_ONSTACK | SA_RESETHAND | SA_SIGINFO)};
    if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler == SIG_DFL)
      sigaction(signals[i], &handler, NULL);
  }
}

/* Of the process, as memory is: where running out of it is reported, and some to do so with. */
static DiagEngine *reporting;
static void *reserve;
enum { RESERVE = 1 << 18 };

static void out_of_memory(size_t bytes) {
  size_t n = diag_count(reporting);
  const char *last = n ? diag_get(reporting, n - 1)->code : NULL;
  mem_free(reserve);
  reserve = NULL;
  if (!last || strcmp(last, "E-memory") != 0) /* else whoever asked has said it, with its place */
    diag_error(reporting, SRC_LOC_NONE, "E-memory", "out of memory: %zu bytes more were asked for",
               bytes);
  _exit(CLI_FAILED); /* what is buffered is not complete */
}

static void catch_exhaustion(DiagEngine *diag) {
  reporting = diag;
  reserve = mem_alloc(RESERVE);
  mem_set_exhausted(out_of_memory);
}

static void forget_exhaustion(void) {
  mem_set_exhausted(NULL);
  mem_free(reserve);
  reserve = NULL;
}

/* ---- options ---- */

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
  if (!strchr(c->shorts, 'h')) *s++ = 'h';
  *l++ = (struct option){"help", no_argument, NULL, ID_HELP};
  *l++ = (struct option){"version", no_argument, NULL, ID_VERSION};
  opterr = 0;
  optind = 1;
  c->diag = diag_new();
  diag_set_sink(c->diag, print_diag, NULL);
  diag_track_files(c->diag);
  catch_exhaustion(c->diag);
  catch_crashes(program(c));
  return c;
}

void cli_free(Cli *c) {
  forget_exhaustion();
  diag_free(c->diag);
  mem_free(c);
}

DiagEngine *cli_diag(const Cli *c) {
  return c->diag;
}

/* What getopt_long found; NULL for a letter that is none of the command's own, which is -h. */
static const CliOption *option_of(const Cli *c, int id) {
  if (id >= ID_FIRST) return &c->options[id - ID_FIRST];
  for (int i = 0; i < c->noptions; i++)
    if (c->options[i].letter == id) return &c->options[i];
  return NULL;
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

static void print_statuses(const Cli *c) {
  static const struct {
    CliStatus status;
    const char *meaning;
  } rows[] = {
#define X(name, number, meaning) {CLI_##name, meaning},
      CLI_STATUSES(X)
#undef X
  };
  static const char *const compared[] = {
      [CLI_OK] = "no difference",
      [CLI_FAILED] = "a difference",
      [CLI_USAGE] = "wrong usage, or files that cannot be compared",
  };
  printf("\nExit status:\n");
  for (size_t i = 0; i < NPU_COUNTOF(rows); i++) {
    CliStatus status = rows[i].status;
    if (status == CLI_TRAPPED && !c->command->simulates) continue;
    bool own = c->command->compares && status < (CliStatus)NPU_COUNTOF(compared);
    printf("  %2d  %s", (int)status, own ? compared[status] : rows[i].meaning);
    if (status == CLI_FAILED && c->command->fails) printf("; or %s", c->command->fails);
    printf("\n");
  }
}

static void print_help(const Cli *c) {
  char letter = option_of(c, 'h') ? 0 : 'h'; /* unless the command means something else by it */
  const CliOption always[] = {{ID_HELP, letter, "help", NULL, "show this text and exit"},
                              {ID_VERSION, 0, "version", NULL, "show the version and exit"}};
  printf("usage: %s\n%s\n", c->command->usage, c->command->about);
  for (int i = 0; i < c->noptions; i++) print_option(&c->options[i]);
  printf("\n");
  for (size_t i = 0; i < NPU_COUNTOF(always); i++) print_option(&always[i]);
  if (c->command->more) printf("\n%s", c->command->more);
  print_statuses(c);
}

/* What --help and --version end with. */
static int flushed(const Cli *c) {
  if (fflush(stdout) == 0) return CLI_DONE;
  fprintf(stderr, "%s: error: cannot write standard output: %s\n", program(c), strerror(errno));
  return CLI_ERROR;
}

int cli_help(const Cli *c) {
  print_help(c);
  return flushed(c);
}

bool cli_error(Cli *c, const char *fmt, ...) {
  c->misused = true;
  va_list ap;
  va_start(ap, fmt);
  fprintf(stderr, "%s: error: ", program(c));
  vfprintf(stderr, fmt, ap);
  fprintf(stderr, " (%s --help lists the options)\n", program(c));
  va_end(ap);
  return false;
}

/* The options a word may stand for: itself, or all that begin with it. Returns how many. */
static size_t candidates(const Cli *c, const char *word, size_t len, const char **out) {
  size_t n = 0;
  for (const struct option *l = c->longs; l->name; l++) {
    if (strncmp(l->name, word, len) != 0) continue;
    if (!l->name[len]) return out[0] = l->name, 1;
    out[n++] = l->name;
  }
  return n;
}

static void ambiguous_option(Cli *c, const char *word, const char *const *names, size_t n) {
  StrBuf list = {0};
  for (size_t i = 0; i < n; i++)
    strbuf_printf(&list, "%s'--%s'", i == 0 ? "" : i + 1 < n ? ", " : " or ", names[i]);
  cli_error(c, "option '--%s' is ambiguous; it could be %s", word, list.data);
  strbuf_free(&list);
}

/* Says what is wrong with the option getopt_long refused. */
static void unknown_option(Cli *c) {
  const char *given = c->argv[optind - 1];
  if (optopt > 0 && optopt < ID_FIRST) {
    cli_error(c, "unknown option '-%c'", optopt);
    return;
  }
  char word[64];
  snprintf(word, sizeof word, "%.*s", (int)strcspn(given + 2, "="), given + 2);
  const char *names[NPU_COUNTOF(c->longs)];
  size_t n = candidates(c, word, strlen(word), names);
  if (n == 1) {
    cli_error(c, "option '--%s' takes no value", names[0]);
    return;
  }
  if (n > 1) {
    ambiguous_option(c, word, names, n);
    return;
  }
  n = candidates(c, "", 0, names);
  const char *near = str_nearest(word, names, n);
  cli_error(c, near ? "unknown option '--%s'; did you mean '--%s'?" : "unknown option '--%s'", word,
            near);
}

/* Takes the next argument as the value of an option whose value is optional, when it is one of the
 * words of its metavar, "[=float|compiled]". */
static const char *optional_word(const Cli *c, const CliOption *o) {
  const char *next = optind < c->argc ? c->argv[optind] : NULL;
  if (!next || !*next || !optional_value(o)) return NULL;
  for (const char *w = o->metavar + 2; *w; w += strcspn(w, "|]") + 1) {
    if (strcspn(w, "|]") != strlen(next) || strncmp(w, next, strlen(next)) != 0) continue;
    optind++;
    return next;
  }
  return NULL;
}

int cli_next(Cli *c, const char **value) {
  int id = getopt_long(c->argc, c->argv, c->shorts, c->longs, NULL);
  *value = optarg;
  switch (id) {
  case -1: return CLI_END;
  case ID_HELP: return cli_help(c);
  case ID_VERSION: printf("%s " NPUCC_VERSION "\n", program(c)); return flushed(c);
  case '?': unknown_option(c); return CLI_ERROR;
  case ':': cli_error(c, "option '%s' needs a value", c->argv[optind - 1]); return CLI_ERROR;
  }
  const CliOption *o = option_of(c, id);
  if (!o) return cli_help(c);
  if (!*value) *value = optional_word(c, o);
  return o->id;
}

int cli_positionals(const Cli *c, char ***out) {
  *out = c->argv + optind;
  return c->argc - optind;
}

bool cli_int(Cli *c, const char *what, const char *value, int64_t lo, int64_t hi, int64_t *out) {
  if (parse_i64(value, out) && *out >= lo && *out <= hi) return true;
  return cli_error(c, "%s wants an integer from %lld to %lld, not '%s'", what, (long long)lo,
                   (long long)hi, value);
}

bool cli_tolerance(Cli *c, const char *what, const char *value, double *out) {
  return (parse_f64(value, out) && *out >= 0) ||
         cli_error(c, "%s wants a number of at least 0, not '%s'", what, value);
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

/* ---- files ---- */

bool cli_write(const char *path, const StrBuf *text, DiagEngine *diag) {
  const char *why;
  if (file_write_atomic(path ? path : "-", text->data, text->len, &why)) return true;
  diag_error(diag, SRC_LOC_NONE, "E-file", "cannot write %s: %s", path ? path : "standard output",
             why);
  return false;
}

bool cli_read(const char *path, FileMap *out, DiagEngine *diag) {
  const char *why;
  if (diag_map_file(diag, path, out, &why)) return true;
  diag_error(diag, SRC_LOC_NONE, "E-file", "cannot read '%s': %s", path, why);
  return false;
}

bool cli_machine(const char *name, MachineDesc *out, DiagEngine *diag) {
  if (name) return machine_load(name, out, diag);
  *out = *machine_default();
  return true;
}
