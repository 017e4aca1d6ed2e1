#!/bin/bash
# Models of many results, states and inputs: each keeps its own place.
# Usage: many.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# 40 outputs of a constant input, 40 states that count by their number, 40 inputs of which each is added.
n=40
{
  echo "model many($(seq -f 'x%g: f32[2]' -s ', ' 0 $((n - 1)))) ->"
  echo "  ($(seq -f 'y%g: f32[2]' -s ', ' 0 $((n - 1))), all: f32[2]) {"
  echo "  t = x0 * 0"
  for i in $(seq 0 $((n - 1))); do
    echo "  state s$i: f32[2]"
    echo "  s$i = s$i + $i"
    echo "  t = t + x$i * 0 + s$i"
  done
  echo "  return $(seq -f 's%g * 1' -s ', ' 0 $((n - 1))), t"
  echo "}"
} >many.mdl
for level in 0 2; do
  ok npucc many.mdl -O$level --no-quantize -o many.bin
  ok npusim many.bin --random 1
  for i in $(seq 0 $((n - 1))); do has "y$i: f32[2] = $i $i" out; done
  has "all: f32[2] = 780 780" out # 0 + 1 + ... + 39
done

exit $failed
