/* measure RUNS COMMAND...: median processor time (user and system) and the largest memory of a
 * command that is run RUNS times. Its output is dropped. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MAX_RUNS = 99 };

static double seconds(struct timeval t) {
  return (double)t.tv_sec + 1e-6 * (double)t.tv_usec;
}

/* Negative when the command failed. */
static double run_once(char **command, long *peak_kb) {
  pid_t child = fork();
  if (child == 0) {
    int null = open("/dev/null", O_WRONLY);
    dup2(null, STDOUT_FILENO);
    execvp(command[0], command);
    perror(command[0]);
    _exit(127);
  }
  int status;
  struct rusage use;
  if (child < 0 || wait4(child, &status, 0, &use) < 0) return -1;
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) return -1;
  if (use.ru_maxrss > *peak_kb) *peak_kb = use.ru_maxrss;
  return seconds(use.ru_utime) + seconds(use.ru_stime);
}

static int compare(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  int runs = argc > 2 ? atoi(argv[1]) : 0;
  if (runs < 1 || runs > MAX_RUNS) {
    fprintf(stderr, "usage: measure RUNS COMMAND...   (1 to %d runs)\n", MAX_RUNS);
    return 1;
  }
  double times[MAX_RUNS];
  long peak_kb = 0;
  for (int i = 0; i < runs; i++)
    if ((times[i] = run_once(argv + 2, &peak_kb)) < 0) {
      fprintf(stderr, "measure: %s failed\n", argv[2]);
      return 1;
    }
  qsort(times, (size_t)runs, sizeof *times, compare);
  printf("  %.0f ms of processor time (median of %d), at most %.1f MB\n", 1e3 * times[runs / 2],
         runs, (double)peak_kb * 1024 / 1e6);
  return 0;
}
