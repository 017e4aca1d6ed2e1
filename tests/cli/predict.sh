#!/bin/bash
# Predicted cycles, by which tile chooses, are within a fifth of what the simulator counts.
# Usage: predict.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# indices NAME SHAPE N: NAME.npy of SHAPE, indices spread over 0 to N - 1.
indices() {
  cat >indices.mdl <<EOM
model m(x: f32[$2]) -> (y: s32[$2]) { return cast(min(abs(x) * $3 / 3, $3 - 1), s32) }
EOM
  ok npucc indices.mdl --reference --random "$3" --output "y=$1.npy"
}

predicts() { # predicts MODEL MACHINE [INPUT.npy...]: named inputs, the others random
  local predicted cycles inputs=()
  npucc "$1" --machine "$2" --emit nest --elide-data 4 >nest || fail "$1"
  predicted=$(grep -o 'predicted = [0-9]*' nest | awk '{ s += $3 } END { print s }')
  ok npucc "$1" --machine "$2" -o m.bin
  for input in "${@:3}"; do inputs+=(--input "${input%%[0-9]*}=$input"); done
  ok npusim m.bin "${inputs[@]}" --random 1 --output o.npz
  cycles=$(awk '$2 == "cycles," { print $1 }' out)
  [ $((5 * cycles)) -le $((6 * predicted)) ] && [ $((6 * cycles)) -ge $((5 * predicted)) ] ||
    fail "$1 on $2: $predicted cycles predicted, $cycles counted"
}

# Blocks too scattered for DMA to move at DRAM's speed, as tempting as their use by the array is.
cat >scattered.mdl <<'EOM'
model m(x: s8[1, 32, 112, 112]) -> (y: s8[1, 32, 112, 112]) {
  weight w: f32[32, 1, 3, 3] = normal(std = 20)
  return requantize(conv2d(x, cast(w, s8), pad = 1, groups = 32, pad_value = -128), multiplier = 0.01)
}
EOM
# First tiles that lie partly in the border, and last ones that use few of the lanes.
cat >border.mdl <<'EOM'
model m(x: f32[1, 24, 56, 56]) -> (y: f32[1, 144, 28, 28]) {
  weight p: f32[144, 24, 1, 1] = normal(std = 0.2)
  weight d: f32[144, 1, 3, 3] = normal(std = 0.2)
  return relu6(conv2d(relu6(conv2d(x, p)), d, stride = 2, pad = 1, groups = 144))
}
EOM
# Latency is most of what a short kernel takes.
cat >short.mdl <<'EOM'
model m(x: f32[6, 9, 5], i: s32[2, 3]) -> (y: f32[6, 9, 2, 3]) { return gather(x, i, axis = 2) }
EOM
# What is gathered has one slot: its list comes first, and it is computed on before the next.
cat >embed.mdl <<'EOM'
model m(i: s32[512]) -> (y: f32[512, 256]) {
  weight t: f32[3000, 256] = normal()
  return embed(i, t)
}
EOM
cat >positions.mdl <<'EOM'
model m(i: s32[8, 128], p: f32[128, 512]) -> (y: f32[8, 128, 512]) {
  weight t: f32[3000, 512] = normal()
  return embed(i, t) + p
}
EOM
cat >two_tables.mdl <<'EOM'
model m(i: s32[2048], j: s32[2048]) -> (y: f32[2048, 128]) {
  weight t: f32[500, 128] = normal()
  weight u: f32[500, 128] = normal()
  return gelu(embed(i, t) + embed(j, u))
}
EOM
cat >bag.mdl <<'EOM'
model m(i: s32[4096]) -> (y: f32[256]) {
  weight t: f32[3000, 256] = normal()
  return sum(embed(i, t), axis = 0)
}
EOM
cat >slices.mdl <<'EOM'
model m(x: f32[64, 2000], i: s32[700]) -> (y: f32[64, 700]) { return gather(x, i, axis = 1) }
EOM
indices i1 512 3000
indices i2 "8, 128" 3000
indices i3 2048 500
indices j3 2048 500
indices i4 4096 3000
indices i5 700 2000
for machine in edge cloud; do
  predicts scattered.mdl $machine
  predicts border.mdl $machine
  predicts embed.mdl $machine i1.npy
  predicts positions.mdl $machine i2.npy
  predicts two_tables.mdl $machine i3.npy j3.npy
  predicts bag.mdl $machine i4.npy
  predicts slices.mdl $machine i5.npy
done
# Small planes of one row each: the array waits for the sequencer, which is busy nine tenths of the time.
cat >one_row.mdl <<'EOM'
model m(x: s8[1, 256], w: s8[256, 1024]) -> (y: s32[1, 1024]) { return matmul(x, w) }
EOM
sed 's/^mxu_\(rows\|cols\|load_rate\) .*/mxu_\1 = 8/; s/^vpu_lanes.*/vpu_lanes = 4/' "$source/isa/machines/edge.txt" >sequencer.txt
predicts short.mdl cloud
predicts one_row.mdl sequencer.txt

exit $failed
