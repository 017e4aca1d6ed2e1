#!/bin/bash
# Whatever the times of a machine are, a program's results stay the same bytes: every parameter of class TIME at its
# least and its most, alone. Usage: machines.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >net.mdl <<'EOM'
model net(x: f32[1, 8, 20, 20], i: s32[16]) -> (y: f32[1, 16, 10, 10], z: f32[16, 24]) {
  weight w: f32[16, 8, 3, 3] = normal(seed = 1)
  weight t: f32[1, 24] = normal(seed = 2)
  return softmax(conv2d(x, w, stride = 2, pad = 1), axis = 1), exp(embed(i, t))
}
EOM
ok npucc net.mdl --calibrate random -o net.bin
ok npusim net.bin --random 3 --output right.npz

tried=0
while IFS='|' read -r _ key _ class least most _; do
  key=${key//[\` ]/} class=${class// /}
  [ "$class" = TIME ] || continue
  for value in ${least// /} ${most// /}; do
    # What must go with it.
    case "$key=$value" in
      dram_interleave=65536) also=,dram_row_bytes=1048576 ;;
      dram_row_bytes=64) also=,dram_interleave=64 ;;
      spm_bytes_per_cycle=1) also=,spm_word=1 ;;
      spm_word=4096) also=,spm_bytes_per_cycle=65536 ;;
      *) also= ;;
    esac
    tried=$((tried + 1))
    ok npusim net.bin --random 3 --machine "edge,$key=$value$also" --output other.npz
    same right.npz other.npz
  done
done <"$source/isa/README.md"
[ $tried -ge 60 ] || fail "only $tried machines tried: is the table in isa/README.md another?"

ok npusim net.bin --random 3 --machine edge,ideal --mode check --output other.npz
same right.npz other.npz
bad "differs from \`edge+\` in \`mxu_planes\`, a size" npusim net.bin --random 3 --machine edge,mxu_planes=3
exit $failed
