#!/bin/bash
# Attention with masks of -inf, whatever the kind of numbers: scores are all equal, so that row i of a causal mask weighs
# each of its i + 1 values by 1 / (i + 1), which bf16 and 8 bits keep to two digits; a row without any is NaN.
# Usage: infinity.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >attention.mdl <<'END'
model m(x: f32[3, 4]) -> (p: f32[3, 3], y: f32[3, 1], none: f32[3, 3], top: f32[3]) {
  weight w: f32[4, 4] = normal(seed = 1)
  q = (x * 0) @ w
  mask = [[0, -inf, -inf], [0, 0, -inf], [0, 0, 0]]
  p = softmax(q @ q' * 0.5 + mask)
  return p, p @ (x[:, 0:1] * 0 + [[0.6], [1.2], [1.8]]), softmax(q @ q' - inf), reduce_max(mask + q @ q', axis = 1)
}
END
near() { # near NAME WANT...: the values shown for an output, each within 0.06
  grep "^$1: " out | awk -v want="${*:2}" '{
    n = split(want, w, " ")
    for (i = 1; i <= n; i++) if ($(i + 3) < w[i] - .06 || $(i + 3) > w[i] + .06) exit 1
  }' || fail "$options: $1 is not ${*:2}: $(cat out)"
}
check() {
  near p 1 0 0 0.5 0.5 0 0.333 0.333 0.333
  near y 0.6 0.9 1.2
  near top 0 0 0
  [ "$(grep -o -- '-\?nan' out | wc -l)" = 9 ] || fail "$options: a fully masked row is not NaN"
}
for options in "" -O0 --no-quantize "--calibrate random"; do
  # shellcheck disable=SC2086
  ok npucc attention.mdl -o a.bin $options
  ok npusim a.bin --random 3 --mode check
  check
done
for options in --reference --reference=compiled; do
  ok npucc attention.mdl $options --random 3
  check
done
exit $failed
