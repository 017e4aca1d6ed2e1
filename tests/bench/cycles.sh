#!/bin/bash
# Simulated cycles against the roofline's bound: they depend on nothing but compiler and machine, so this is a test.
# Usage: cycles.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../cli/lib.sh"

# within PERCENT MODEL MACHINE OPTIONS...: no more than PERCENT of the bound.
within() {
  local percent=$1 model=$2 machine=$3 got
  shift 3
  ok npucc "$source/tests/bench/$model" --machine "$machine" "$@" -o m.bin
  ok npusim m.bin --random 1 --report
  got=$(sed -n 's/.* % of the bound (\([0-9]*\) of \([0-9]*\) cycles)$/\1 \2/p' out |
    awk '{ printf "%.1f", 100 * $2 / $1 }')
  echo "$model $* on $machine: ${got:-nothing} % of the bound"
  awk -v got="${got:-1e9}" -v most="$percent" 'BEGIN { exit !(got >= 100 && got <= most) }' ||
    fail "$model $* on $machine: ${got:-nothing} %, wanted 100 to $percent"
}

for machine in edge cloud; do
  # Flat DRAM and ports without limits, then the machines as they are.
  within 110 matmul_s8.mdl $machine,ideal
  within 115 matmul_s8.mdl $machine
  within 115 layer.mdl $machine
  within 115 layer_s8.mdl $machine
  within 115 layer.mdl $machine --calibrate random
done
exit $failed
