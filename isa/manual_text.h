/* Prose of the manual. */
#ifndef NPU_ISA_MANUAL_TEXT_H
#define NPU_ISA_MANUAL_TEXT_H
#include "isa/isa.h"
extern const char manual_intro[], manual_encoding[], manual_instructions[], manual_order[],
    manual_descriptors[], manual_transfers[], manual_matrix[], manual_vector[], manual_vmath[],
    manual_machine[], manual_cost[], manual_dram[], manual_energy[], manual_roofline[],
    manual_container[], manual_assembly[], manual_reserved[], manual_recipe[];
/* What a descriptor kind is for, with its header members. */
const char *manual_desc_text(IsaDescKind kind);
#endif
