/* The in-memory image: life cycle and the roofline. */
#include "isa/isa_internal.h"
#include <math.h>
#include <string.h>

void isa_image_init(IsaImage *img) {
  memset(img, 0, sizeof *img);
  img->machine = *machine_default();
  img->arena = arena_new();
}

void isa_image_free(IsaImage *img) {
  arena_free(img->arena);
  if (img->map.base) file_unmap(&img->map);
  memset(img, 0, sizeof *img);
}

IsaRoofline isa_roofline(const IsaImage *img) {
  const MachineDesc *m = &img->machine;
  double array = (double)m->mxu_rows * (double)m->mxu_cols;
  double lanes = (double)m->vpu_lanes * (double)m->vpu_issue;
  double s8 = fmax(array, lanes), bf16 = fmax(array / (double)m->mxu_bf16_slowdown, lanes);
  IsaRoofline r = {.compute = img->ideal_macs_s8 / s8 + img->ideal_macs_bf16 / bf16,
                   .dram = img->ideal_dram_bytes / machine_dram_bytes_per_cycle(m)};
  r.bound = fmax(r.compute, r.dram);
  return r;
}
