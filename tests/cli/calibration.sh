#!/bin/bash
# Calibration that says nothing, or whose result is worth nothing, is spoken of. Usage: calibration.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >product.mdl <<'END'
model product(x: f32[1, 4]) -> (y: f32[1, 8]) {
  weight w: f32[8, 4] = normal(seed = 1)
  return x @ w'
}
END
make() { # make FILE EXPRESSION: 20 rows of data by the reference; x is random
  printf 'model make(x: f32[20, 4]) -> (y: f32[20, 4]) {\n  return %s\n}\n' "$2" >make.mdl
  ok npucc make.mdl --reference --random 1 -o "$1"
}
make zero.npy "x * 0"
make nan.npy "x * 0 / 0"
make infinite.npy "(x * 0 + 1) / 0"
make good.npy "x"
# The last row is 10,000 times as large as the others: their 8 bits are all gone.
printf 'model make(x: f32[20, 4]) -> (y: f32[20, 4]) {\n  return concat(x[0:19] * 0.001, x[19:20] * 0 + 1000)\n}\n' >make.mdl
ok npucc make.mdl --reference --random 1 -o wide.npy

quiet() {
  ok "$@"
  [ ! -s err ] || fail "$*: $(cat err)"
}
says() { # says TEXT COMMAND...
  local text=$1
  shift
  ok "$@"
  has "$text" err
  has "W-calibrate" err
}
quiet npucc product.mdl --calibrate good.npy -o x.bin
quiet npucc product.mdl --calibrate random -o x.bin
printf 'model same(x: f32[1, 4]) -> (y: f32[1, 4]) { return relu(x) }\n' >same.mdl
quiet npucc same.mdl --calibrate good.npy -o x.bin # nothing to round: no difference
says "all 80 values of input 'x' are zero" npucc product.mdl --calibrate zero.npy -o x.bin
says "of 80 values of input 'x' in the calibration data 80 are NaN and 0 infinite" npucc product.mdl --calibrate nan.npy -o x.bin
says "0 are NaN and 80 infinite" npucc product.mdl --calibrate infinite.npy -o x.bin
says "was never other than 0 or NaN" npucc product.mdl --calibrate nan.npy -o x.bin
has "product.mdl:1:" err
says "output 'y' of the quantized model differs from the model's own by 1 of its size" npucc product.mdl --calibrate wide.npy -o x.bin

# Indices are drawn over what they choose from: a table whose only large row is the last.
cat >table.mdl <<'END'
model table(i: s32[1, 8]) -> (y: f32[1, 8, 4]) {
  weight t: f32[16, 32] = normal(seed = 1)
  weight w: f32[4, 32] = normal(seed = 2)
  return linear(embed(i, t), w)
}
END
quiet npucc table.mdl --calibrate random -o x.bin
ok npucc table.mdl --calibrate random --passes=quantize --emit graph -o x.ir
sed 's/embed(i, t)/embed(i * 0, t)/' table.mdl >first.mdl
ok npucc first.mdl --calibrate random --passes=quantize --emit graph -o first.ir
has "draws only zeros for input 'i'" err
scale() { grep -o 'requantize .*multiplier = [-0-9.e]*' "$1" | head -1 | sed 's/.*= //'; }
[ "$(scale x.ir)" != "$(scale first.ir)" ] || fail "only the first row of the table was seen"
# As well through what moves indices or holds them at bounds: the very samples, so the same scale.
for way in "reshape(transpose(i, [1, 0]), [1, 8])" "min(max(i, 0), 15)" "clip(i, 0, 15)" "where(i < 0, 0, i)" \
  "cast(cast(i, f32), s32)" "concat(i[0:1, 0:4], i[0:1, 4:8], axis = 1)"; do
  sed "s/embed(i, t)/embed($way, t)/" table.mdl >moved.mdl
  quiet npucc moved.mdl --calibrate random -o x.bin
  ok npucc moved.mdl --calibrate random --passes=quantize --emit graph -o moved.ir
  [ "$(scale x.ir)" = "$(scale moved.ir)" ] || fail "$way: another range"
done
# Two tables: indices below the smaller.
cat >both.mdl <<'END'
model both(i: s32[1, 8]) -> (y: f32[1, 8, 4]) {
  weight t: f32[16, 32] = normal(seed = 1)
  weight u: f32[2, 32] = normal(seed = 3)
  weight w: f32[4, 32] = normal(seed = 2)
  return linear(embed(i, t) + embed(reshape(i, [1, 8]), u), w)
}
END
quiet npucc both.mdl --calibrate random -o x.bin

# A hint that does nothing.
sed "s/  return x @ w'/  @int8 y = x @ w'\n  return y/" product.mdl >hint.mdl
ok npucc hint.mdl -o x.bin
has "hint.mdl:3:" err
has "need ranges: give --calibrate [W-hint]" err
quiet npucc hint.mdl --calibrate good.npy -o x.bin
ok npucc hint.mdl --no-quantize -o x.bin
has "hint.mdl:3:13: warning: \`@int8\` has no effect: the pass \`quantize\`, which would see to it, is not among the passes (--no-quantize) [W-hint]" err
ok npucc hint.mdl --passes=lower,legalize,tile,plan,pipeline,sync,allocate -o x.bin
has "is not among the passes [W-hint]" err
sed 's/@int8/@bf16/' hint.mdl >bf16.mdl
quiet npucc bf16.mdl -o x.bin
ok npucc bf16.mdl --no-quantize -o x.bin
has "\`@bf16\` has no effect" err
quiet npucc hint.mdl --reference --random 1 -o x.npy
quiet npucc hint.mdl --passes= --emit graph -o hint.ir
quiet npucc hint.mdl --calibrate good.npy --passes=quantize --emit graph -o done.ir
quiet npucc done.ir --passes=lower,legalize,tile,plan,pipeline,sync,allocate -o x.bin
# products that 8 bits are not for
cat >not.mdl <<'END'
model nothing(x: f32[4, 4], z: f32[4, 4]) -> (a: f32[4, 4], b: f32[4, 4], c: f32[2, 4, 4], d: f32[4, 4]) {
  weight w: f32[4, 4] = normal(seed = 1)
  weight v: f32[2, 4, 4] = normal(seed = 1)
  @int8 a = x @ z
  @int8 b = w @ x
  @int8 c = x @ v
  @int8 d = relu(x @ w)
  return a, b, c, d
}
END
ok npucc not.mdl --calibrate random -o x.bin
for at in 4:13 5:13; do has "not.mdl:$at: warning: \`@int8\` has no effect: 8 bits are for products with a constant of reals as their second factor [W-hint]" err; done
has "not.mdl:6:13: warning: \`@int8\` has no effect on the activations of a product with a batch" err
[ "$(grep -c warning err)" = 3 ] || fail "three warnings, the last statement has an effect: $(cat err)"

exit $failed
