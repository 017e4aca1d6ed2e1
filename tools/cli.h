/* What the commands share: option tables, help, diagnostics on standard error, text on standard
 * output, exit statuses. */
#ifndef NPU_CLI_H
#define NPU_CLI_H
#include "isa/isa.h"
#include "support/support.h"

/* How a command ends: X(name, number, meaning). The only list; --help prints it. */
#define CLI_STATUSES(X)                                                                            \
  X(OK, 0, "success")                                                                              \
  X(FAILED, 1, "an error in what was given: a file, a model, a program, a limit")                  \
  X(USAGE, 2, "wrong usage: an option, its value, or options that do not go together")             \
  X(TRAPPED, 3, "the simulated program was stopped by an error of its own")                        \
  X(INTERNAL, 70, "an internal error; please report it")
typedef enum {
#define X(name, number, meaning) CLI_##name = number,
  CLI_STATUSES(X)
#undef X
} CliStatus;

/* An option. letter 0: long form only; name NULL: short form only; metavar NULL: no value;
 * "[=X|Y]": optional, one of these. A name may be shortened as long as it stays unique. An entry
 * with neither letter nor name is a heading in --help. */
typedef struct {
  int id; /* > 0, returned by cli_next */
  char letter;
  const char *name, *metavar, *help;
} CliOption;

typedef struct {
  const char *usage; /* "npucc [options] MODEL.mdl" */
  const char *about; /* what the command does, one or two lines */
  const char *more;  /* examples, after the options; may be NULL */
  bool simulates;    /* can end with CLI_TRAPPED */
  bool compares;     /* ends as diff(1) does: 1 is a difference, 2 any trouble */
  const char *fails; /* what else it ends with CLI_FAILED for; may be NULL */
} CliCommand;

enum { CLI_END = 0, CLI_DONE = -1, CLI_ERROR = -2, CLI_MAX_OPTIONS = 64 };
typedef struct Cli Cli;
/* options ends with a zero entry. --help, -h unless the command has it, and --version are
 * added. From here on a crash ends the
 * process with CLI_INTERNAL and a message. */
Cli *cli_new(const CliCommand *command, const CliOption *options, int argc, char **argv);
void cli_free(Cli *c);
/* Who knows what crashed: called in the signal's handler, where little is allowed; true when it has
 * said all there is to say. */
void cli_explain_crash(bool (*explain)(int number));
/* The command's diagnostics, printed to standard error as they come, in colour on a terminal. Lives
 * as long as c; until then running out of memory is one of them (E-memory) and ends the process. */
DiagEngine *cli_diag(const Cli *c);
/* What main returns after all is done, `ok` or not: a CliStatus, from what was reported. */
int cli_status(const Cli *c, bool ok);
/* The failure to come is one of the simulated program. */
void cli_trapped(Cli *c);
/* The next option's id with its value (NULL without one); CLI_END after the last; CLI_DONE when
 * --help or --version was printed; CLI_ERROR when a message was printed. */
int cli_next(Cli *c, const char **value);
/* What is left after the options. */
int cli_positionals(const Cli *c, char ***out);
/* What --help does; CLI_DONE or CLI_ERROR. */
int cli_help(const Cli *c);
/* Wrong usage: prints "COMMAND: error: ..." and a pointer to --help; returns false. */
bool cli_error(Cli *c, const char *fmt, ...) NPU_PRINTF(2, 3);
/* The value of option `what` as an integer of [lo, hi]; false after a message. */
bool cli_int(Cli *c, const char *what, const char *value, int64_t lo, int64_t hi, int64_t *out);
/* The same for a number of at least 0. */
bool cli_tolerance(Cli *c, const char *what, const char *value, double *out);

/* A growing list of option values. */
typedef struct {
  const char **items;
  int n;
} CliList;
void cli_list_add(CliList *l, const char *value);
void cli_list_split(CliList *l, const char *value, Arena *a); /* at commas */
void cli_list_free(CliList *l);

/* Writes text to path, or to standard output when path is NULL or "-". */
bool cli_write(const char *path, const StrBuf *text, DiagEngine *diag);
bool cli_read(const char *path, FileMap *out, DiagEngine *diag);
/* A machine by name or file; NULL name gives edge. */
bool cli_machine(const char *name, MachineDesc *out, DiagEngine *diag);
#endif
