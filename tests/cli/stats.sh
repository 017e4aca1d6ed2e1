#!/bin/bash
# What --stats counts, against counts by hand.
# Usage: stats.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# counts TEXT...: standard error is these lines, without the blanks in front.
counts() {
  printf '%s\n' "$@" >want
  sed -E 's|^// *([0-9]+) *|\1 |' err | grep -v -e 'schedules tried' -e ' sync: ' >got
  diff want got >&2 || fail "counts"
}

cat >counted.mdl <<'EOM'
model m(x: f32[4, 8], n: s32[4]) -> (y: f32[4, 3], k: s32[4]) {
  weight w: f32[8, 3] = normal(seed = 1)
  u = exp(x)           # nobody reads it
  a = relu(x @ w)
  b = relu(x @ w)      # two ops that are there already
  return a + b, (n + 3) + 5
}
EOM
# Left are x @ w, relu, + and n + 8; relu and + join the product. Every tensor has 64 bytes or a multiple of them: x and
# w 128 each, n, y and k 64.
ok npucc counted.mdl --passes=dce,cse,reassociate,fold,lower,fuse,legalize,tile,plan,pipeline,sync,allocate --stats -o m.bin
counts "1 dce: ops removed" "2 cse: ops merged" "1 reassociate: constants joined" "1 fold: ops run at compile time" \
  "4 lower: ops lowered" "0 fuse: producers read through" "2 fuse: consumers fused" "2 tile: kernels" \
  "448 plan: DRAM bytes" "2 pipeline: kernels"
ok npucc counted.mdl --passes=cse,quantize --emit graph --stats
counts "2 cse: ops merged" "24 quantize: weights in 8 bits" "1 quantize: products bf16 x s8" \
  "1 quantize: activations in bf16"
# A depthwise convolution has nothing to share on the array.
cat >depthwise.mdl <<'EOM'
model m(x: s8[1, 32, 16, 16], w: s8[32, 1, 3, 3]) -> (y: s32[1, 32, 14, 14]) { return conv2d(x, w, groups = 32) }
EOM
ok npucc depthwise.mdl --passes=lower,fuse,legalize,tile --emit nest --stats
counts "1 lower: ops lowered" "0 fuse: producers read through" \
  "1 tile: products on the vector unit" "1 tile: kernels"

exit $failed
