#!/bin/bash
# What each limit of a machine costs a model, in percent of the cycles on the same machine without limits:
#   tests/bench/sensitivity.sh MODEL [MACHINE [NPUCC_OPTION...]]
# Tools are taken from TOOLS (build/release/tools). Two schedules are timed: one made for the machine without limits,
# and one made for the machine as it is. The second part changes one parameter of the machine at a time, from ideal to
# harsh, under the schedule made for the machine.
set -eu
[ $# -ge 1 ] || { echo "usage: tests/bench/sensitivity.sh MODEL [MACHINE [NPUCC_OPTION...]]" >&2; exit 2; }
root=$(cd "$(dirname "$0")/../.." && pwd)
tools=${TOOLS:-$root/build/release/tools}
model=$1 machine=${2:-edge}
shift $(($# < 2 ? $# : 2))
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The machine without limits; a closed row's time is in the latency then.
"$tools/npucc" "$model" --machine "$machine" "$@" -o "$work/made.bin" 2>"$work/err" || { cat "$work/err" >&2; exit 1; }
"$tools/npu-objdump" -m "$work/made.bin" >"$work/machine"
value() { sed -n "s/^$1 = //p" "$work/machine"; }
latency=$(awk "BEGIN { print $(value dram_latency_ns) + $(value dram_topen_ns) }")
ideal=$machine,ideal,dram_latency_ns=$latency
"$tools/npucc" "$model" --machine "$ideal" "$@" -o "$work/ideal.bin" 2>/dev/null

cycles() { "$tools/npusim" "$work/$1.bin" --random 1 --machine "$2" --output "$work/o.npz" | sed -n 's/ cycles,.*//p'; }
base=$(cycles ideal "$ideal")
row() { # row NAME BINARY MACHINE
  local c
  c=$(cycles "$2" "$3")
  printf '| %-34s | %12d | %+7.1f %% |\n' "$1" "$c" "$(awk "BEGIN { print 100 * ($c / $base - 1) }")"
}
# set KEY...: the machine's own values of these, as changes.
set_keys() { for key in "$@"; do printf ',%s=%s' "$key" "$(value "$key")"; done; }

printf '%s on %s\n\n| limit, alone, schedule without limits | cycles | more |\n|---|---|---|\n' "$(basename "$model")" "$machine"
row "none" ideal "$ideal"
row "DRAM: channels, banks, rows" ideal "$ideal$(set_keys dram_channels dram_trc_ns dram_tact_ns dram_topen_ns \
  dram_turn_ns dram_refresh dram_latency_ns)"
row "scratchpad ports and banks" ideal "$ideal$(set_keys spm_bytes_per_cycle spm_word)"
row "array drain" ideal "$ideal$(set_keys mxu_latency)"
row "accumulator ports" ideal "$ideal$(set_keys acc_rows_per_cycle)"
row "special functions, row reductions" ideal "$ideal$(set_keys vpu_sfu_rate vpu_div_passes vpu_exp_passes \
  vpu_sin_passes vpu_reduce_step)"
row "set-up of transfers" ideal "$ideal$(set_keys dma_setup)"
row "fetch of descriptors" ideal "$ideal$(set_keys dload_ns)"
row "all" ideal "$machine"
row "all, schedule made for them" made "$machine"

base=$(cycles made "$machine")
printf '\n| parameter, schedule made for %s | cycles | more |\n|---|---|---|\n' "$machine"
row "as it is" made "$machine"
for change in dram_channels=0 dram_latency_ns=0 dram_latency_ns=200 dram_turn_ns=0 dram_turn_ns=50 dram_trc_ns=0 \
  dram_trc_ns=120 dram_queue=8 dram_queue=256 spm_bytes_per_cycle=1099511627776 \
  spm_bytes_per_cycle=$(($(value spm_bytes_per_cycle) / 2)) mxu_latency=0 mxu_latency=$((2 * $(value mxu_latency))) \
  acc_rows_per_cycle=1048576 acc_rows_per_cycle=1 vpu_start=0 vpu_start=32 vpu_sfu_rate=4096 \
  vpu_sfu_rate=$((($(value vpu_sfu_rate) + 3) / 4)) vpu_reduce_step=0 vpu_reduce_step=8 dma_setup=0 dma_setup=64 \
  dload_ns=0 dload_ns=400 desc_cache=1 seq_ipc=4 seq_ipc=0.5 queue_depth=1024 queue_depth=2; do
  row "$change" made "$machine,$change"
done
# A size: what runs on it is compiled for it.
for change in mxu_planes=1 mxu_planes=8; do
  "$tools/npucc" "$model" --machine "$machine,$change" "$@" -o "$work/other.bin" 2>/dev/null
  row "$change, compiled for it" other "$machine,$change"
done
