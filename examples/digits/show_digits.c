/* show_digits MODEL.bin TEST.safetensors: recognises the test images on the simulated machine,
 * shows the first few beside what the model says they are, and tells accuracy, time and energy. An
 * example of using libnpurt. */
#include <string.h>

#include "runtime/npurt.h"

enum { SIDE = 8, PIXELS = SIDE * SIDE, CLASSES = 10, SHOWN = 8, PER_LINE = 4 };

typedef struct {
  NpurtModel *model;
  const IsaIo *input, *output;
  const TensorEntry *images, *labels;
  const char *pixels, *classes; /* their elements */
  int64_t rows, batch;
} Job;

static int best(const float *scores) {
  int b = 0;
  for (int c = 1; c < CLASSES; c++)
    if (scores[c] > scores[b]) b = c;
  return b;
}

/* Runs every image; says[i] is the class of image i. */
static bool run_all(Job *j, uint8_t *says, DiagEngine *diag) {
  float *in = npurt_io_data(j->model, j->input);
  const float *out = npurt_io_data(j->model, j->output);
  for (int64_t first = 0; first < j->rows; first += j->batch) {
    for (int64_t k = 0; k < j->batch; k++) {
      int64_t row = first + k < j->rows ? first + k : j->rows - 1; /* fill the last batch */
      dtype_convert(DT_F32, in + k * PIXELS, j->images->dtype,
                    j->pixels + (size_t)(row * PIXELS) * dtype_size(j->images->dtype), PIXELS);
    }
    if (!npurt_run(j->model, diag)) return false;
    for (int64_t k = 0; k < j->batch && first + k < j->rows; k++)
      says[first + k] = (uint8_t)best(out + k * CLASSES);
  }
  return true;
}

static int label(const Job *j, int64_t row) {
  return (int)dtype_get(j->labels->dtype, j->classes, (size_t)row);
}

/* A line of pictures, two characters a pixel, and what they are under them. */
static void show(const Job *j, const int64_t *rows, int n, const uint8_t *says) {
  static const char *const shades[] = {"  ", "░░", "▒▒", "▓▓", "██"};
  for (int y = 0; y < SIDE; y++) {
    for (int k = 0; k < n; k++) {
      for (int x = 0; x < SIDE; x++) {
        size_t at = (size_t)(rows[k] * PIXELS + y * SIDE + x);
        double v = dtype_get(j->images->dtype, j->pixels, at); /* 0 to 16 */
        printf("%s", shades[(int)(v / 16 * 4 + 0.5)]);
      }
      printf("  ");
    }
    printf("\n");
  }
  for (int k = 0; k < n; k++)
    printf("says %d, is %d %s", says[rows[k]], label(j, rows[k]),
           says[rows[k]] == label(j, rows[k]) ? "     " : "(!)  ");
  printf("\n\n");
}

/* Images spread evenly over the test set. */
static void show_some(const Job *j, const uint8_t *says) {
  for (int64_t first = 0; first < SHOWN; first += PER_LINE) {
    int64_t rows[PER_LINE];
    for (int64_t k = 0; k < PER_LINE; k++) rows[k] = (first + k) * j->rows / SHOWN;
    show(j, rows, PER_LINE, says);
  }
}

static void summarize(const Job *j, const uint8_t *says) {
  int64_t right = 0;
  for (int64_t i = 0; i < j->rows; i++) right += says[i] == label(j, i);
  const NpurtProfile *p = npurt_profile(j->model);
  double images = (double)p->runs * (double)j->batch;
  double picojoules = p->energy.total;
  printf("%lld of %lld right (%.2f %%)\n", (long long)right, (long long)j->rows,
         100 * (double)right / (double)j->rows);
  printf("%.0f cycles, %.2f us and %.3f uJ per image\n", p->cycles / images,
         p->seconds * 1e6 / images, picojoules / images / 1e6);
}

static bool is_digits(const Job *j) {
  return j->input && j->output && j->images && j->labels && j->images->rank == 2 &&
         j->images->shape[1] == PIXELS && j->labels->rank == 1 &&
         j->labels->shape[0] == j->images->shape[0] && j->images->shape[0] > 0 &&
         j->input->rank == 2 && j->input->shape[1] == PIXELS && j->input->dtype == DT_F32 &&
         j->output->rank == 2 && j->output->shape[1] == CLASSES && j->output->dtype == DT_F32;
}

static bool run(const char *binary, const char *test, DiagEngine *diag) {
  NpurtOptions options = {.mode = NPURT_TIMED};
  TensorFile *file = tensor_file_open(test, diag, SRC_LOC_NONE);
  NpurtModel *model = file ? npurt_load(binary, &options, diag) : NULL;
  bool ok = model != NULL;
  if (ok) {
    Job j = {.model = model,
             .input = npurt_find_io(model, IO_INPUT, "image"),
             .output = npurt_find_io(model, IO_OUTPUT, "scores"),
             .images = tensor_file_find(file, "image"),
             .labels = tensor_file_find(file, "labels")};
    ok = is_digits(&j);
    if (!ok) {
      diag_error(diag, SRC_LOC_NONE, "E-input", "'%s' and '%s' are no digits model and test set",
                 binary, test);
    } else {
      j.rows = j.images->shape[0];
      j.batch = j.input->shape[0];
      j.pixels = tensor_file_data(file, j.images, diag, SRC_LOC_NONE);
      j.classes = tensor_file_data(file, j.labels, diag, SRC_LOC_NONE);
      uint8_t *says = mem_alloc((size_t)j.rows);
      ok = j.pixels && j.classes && run_all(&j, says, diag);
      if (ok) show_some(&j, says);
      if (ok) summarize(&j, says);
      mem_free(says);
    }
  }
  npurt_free(model);
  tensor_file_close(file);
  return ok;
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: show_digits MODEL.bin TEST.safetensors\n");
    return 2;
  }
  DiagEngine *diag = diag_new();
  bool ok = run(argv[1], argv[2], diag);
  diag_print_all(diag, stderr, false);
  diag_free(diag);
  return ok ? 0 : 1;
}
