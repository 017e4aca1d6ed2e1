#!/bin/bash
# Numbers of more than 32 bits: loops, axes and positions that long give right values or an error with a place.
# Usage: wide.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# One element of little-endian bytes as a .npy file: npy FILE DESCR BYTES
npy() {
  local head
  head=$(printf "%-117s" "{'descr': '$2', 'fortran_order': False, 'shape': (1,), }")
  { printf '\x93NUMPY\x01\x00\x76\x00%s\n' "$head"; printf '%b' "$3"; } >"$1"
}
npy two.npy '<f4' '\x00\x00\x00\x40'
npy three.npy '|i1' '\x03'

# gives TEXT COMMAND...: the outputs shown contain the line TEXT.
gives() {
  local text=$1
  shift
  ok "$@"
  has "$text" out
}

# 641 * 6700417 = 2^32 + 1: as f32, 2^33 is the sum of that many twos. 65536 * 65536 = 2^32.
cat >models.mdl <<'EOM'
model sums(x: f32[1]) -> (s: f32, big: f32, small: f32, avg: f32) {
  b = broadcast(x, [65536, 65536])
  return sum(broadcast(x, [641, 6700417])), reduce_max(b), reduce_min(b), mean(b)
}
model mixed(x: f32[1]) -> (s: f32[3], e: f32) {
  t = [[1.0, -2.0, 4.0]] * broadcast(x, [8589934592, 3])
  return sum(t, axis = 0), reduce_max(exp(broadcast(x - 2, [5000000000])))
}
model first(x: f32[1]) -> (p: s32[2]) { return argmax(broadcast(x, [2, 2000000000])) }
model beyond(x: f32[1]) -> (p: s32) { return argmax(broadcast(x, [2147483649])) }
model table(x: f32[1]) -> (p: s32) { return argmax(exp(broadcast(x, [2000000000]))) }
EOM
for level in 1 2; do
  ok npucc models.mdl --model sums -O$level --no-quantize -o sums.bin
  gives 's: f32[] = 8.58993e+09' npusim sums.bin --input two.npy
  for name in big small avg; do has "$name: f32[] = 2" out; done
  ok npucc models.mdl --model mixed -O$level --no-quantize -o mixed.bin
  gives 's: f32[3] = 1.71799e+10 -3.43597e+10 6.87195e+10' npusim mixed.bin --input two.npy
  has 'e: f32[] = 1' out
  ok npucc models.mdl --model first -O$level -o first.bin
  gives 'p: s32[2] = 0 0' npusim first.bin --input two.npy
done
bad 'models.mdl:10:46: error: `argmax`: axis 0 has 2147483649 elements' npucc models.mdl --model beyond -o no.bin
bad 'models.mdl:11:45: error: a table of 2000000000 positions does not fit' npucc models.mdl --model table -o no.bin
absent no.bin

# Loops of a nest that occupy no scratchpad: merged they would be 2^32 and more iterations, one alone is.
nest() { # nest DIMS OVER
  cat <<EOM
func @wide(%x: s8[1]) -> (y: s32[]) level nest {
  %y = kernel %x {dims = [$1], in_maps = [(0)], out_maps = [()], pads = ["none"]} : (s8[1]) -> s32[] { ^(%a: s8):
    %b = cast %a {dtype = s32} : (s8) -> s32
    %s = reduce %b {op = "max", over = [$2]} : (s32) -> s32
    yield %s : (s32) -> ()
  }
  return %y : (s32[]) -> ()
}
EOM
}
program=legalize,tile,plan,pipeline,sync,allocate
nest '["a", 65536], ["b", 65536]' '0, 1' >merged.ir
nest '["a", 4294967296]' 0 >single.ir
for file in merged single; do
  ok npucc $file.ir --passes=$program -o $file.bin
  gives 'y: s32[] = 3' npusim $file.bin --input three.npy --mode fast
done
# No field of a descriptor takes the place of another number: 2^41 iterations are more than one instruction counts.
nest '["a", 1048576], ["b", 2097152]' '0, 1' >many.ir
ok npucc many.ir --passes=$program -o many.bin

exit $failed
