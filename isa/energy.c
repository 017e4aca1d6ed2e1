/* Energy of what costs count. isa/README.md states it in words. */
#include "isa/isa_internal.h"

static IsaEnergy summed(IsaEnergy e) {
  e.total = 0;
#define X(member, name) e.total += e.member;
  ISA_ENERGIES(X)
#undef X
  return e;
}

IsaEnergy isa_energy(const IsaCost *c, bool bf16, const MachineDesc *m) {
  return summed((IsaEnergy){.mac = c->macs * (bf16 ? m->pj_mac_bf16 : m->pj_mac_s8),
                            .vpu = c->vpu_ops * m->pj_vpu_op,
                            .sfu = c->sfu_ops * m->pj_sfu_op,
                            .acc = c->acc_bytes * m->pj_acc_byte,
                            .spm = c->spm_bytes * m->pj_spm_byte,
                            .dram = (c->dram_read + c->dram_write) * m->pj_dram_byte,
                            .activate = c->activations * m->pj_dram_activate});
}

IsaEnergy isa_energy_control(double instructions, double descriptors, const MachineDesc *m) {
  double pj = instructions * m->pj_instruction + descriptors * m->pj_descriptor;
  return (IsaEnergy){.control = pj, .total = pj};
}

IsaEnergy isa_energy_time(double cycles, const MachineDesc *m) {
  return summed((IsaEnergy){.leakage = cycles * m->pj_static_cycle,
                            .standby = cycles * m->pj_dram_static_cycle});
}

void isa_energy_add(IsaEnergy *sum, const IsaEnergy *e) {
#define X(member, name) sum->member += e->member;
  ISA_ENERGIES(X)
#undef X
  sum->total += e->total;
}
