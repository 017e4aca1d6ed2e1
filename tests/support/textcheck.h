/* Text-in, text-out tests. A test file carries its expectations in comments (`#` or `//`):
 *
 *   RUN: arguments                     for the driver, split at spaces; several lines are joined
 *   CHECK: text                        found in the output, after the match before it
 *   CHECK-NEXT: text                   the same, on the line after the match before it
 *   CHECK-NOT: text                    not found between the matches around it
 *   CHECK-COUNT-3: text                that many matches, one after the other
 *   expected-error {{text}}            a diagnostic at this line whose "message [code]" contains
 * text; expected-warning, expected-note    the same for the others; several may stand on a line
 *   expected-error@-1 {{...}}          at another line: relative, @+1, @-2;
 *   expected-error@none {{...}}        without a line;
 *   expected-error@other.mdl:3 {{...}} in another file
 *
 * In CHECK text, {{re}} is a POSIX extended regular expression, [[X:re]] one whose match [[X]] then
 * stands for; everything else is literal, runs of blanks match each other. Every error and warning
 * must be expected; notes may be left unmentioned. A file without any expectation fails, and so
 * does one with a word that is meant to be one of these and is not: CHECK-SAME, CHEK,
 * expected-eror. */
#ifndef NPU_TESTS_TEXTCHECK_H
#define NPU_TESTS_TEXTCHECK_H
#include "support/support.h"

typedef struct {
  const char *path;
  const char *text;
  size_t len;
  int argc; /* words of the RUN lines */
  const char **argv;
} TextCase;

/* Runs one case; output and diagnostics are compared with the expectations afterwards. Returns
 * false and writes to *why for what the expectations cannot express (a failed verification, say).
 */
typedef bool (*TextRun)(const TextCase *c, DiagEngine *diag, StrBuf *output, StrBuf *why);

/* Compare; append what is wrong to report; add the number of expectations to *checks. True when all
 * is as expected. */
bool textcheck_output(const TextCase *c, const char *output, StrBuf *report, int *checks);
bool textcheck_diagnostics(const TextCase *c, const DiagEngine *diag, StrBuf *report, int *checks);

/* main() of a test driver: runs every file of the command line, prints the failures and a summary.
 * Returns the exit status. */
int textcheck_main(int argc, char **argv, TextRun run);

/* The lines of a text, one after another; start with {.text, .left}. */
typedef struct {
  const char *text;
  size_t left;
  const char *line;
  size_t len;
  int number;
} TextLines;
bool textcheck_line(TextLines *t);
#endif
