#!/bin/bash
# Where the compiler's 64-bit numbers become fields, no cast cuts them: they pass isa_field_set, which looks at the field's
# type. Nothing else of scheduling and emission is narrowed to 32 bits.
# Usage: casts.sh SOURCE_DIR
set -u
cd "$1" || exit 1
if grep -nE '\((u?int32_t|unsigned|long)\) *[^0-9 ]*(len|size|stride|bytes|coord|extent|cst|addr|trip|rows|tile|block)' \
  passes/sched_*.c passes/tile*.c passes/pipeline*.c passes/p*.c backend/npu/*.c; then
  echo "a 64-bit number is narrowed; write descriptor fields with isa_field_set, check others" >&2
  exit 1
fi
if grep -nE '(dma|plane|rows|vec)\.[a-z.]*(\[[^]]*\])?[a-z.]*(\[[^]]*\])? *= *\(u?int' passes/*.c backend/npu/*.c |
  grep -vE '\.(dtype|space) *='; then
  echo "a descriptor field is written past isa_field_set" >&2
  exit 1
fi
