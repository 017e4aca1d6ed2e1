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
  IsaRoofline r = {
      .mxu = (img->ideal_macs_s8 + img->ideal_macs_bf16 * (double)m->mxu_bf16_slowdown) / array,
      .vpu = img->ideal_vpu_ops / ((double)m->vpu_lanes * (double)m->vpu_issue),
      .dram = img->ideal_dram_bytes / machine_dram_bytes_per_cycle(m)};
  r.bound = fmax(fmax(r.mxu, r.vpu), r.dram);
  return r;
}
