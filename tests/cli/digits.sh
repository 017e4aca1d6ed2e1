#!/bin/bash
# The digits example end to end. Usage: digits.sh TOOLS_DIR SOURCE_DIR
# Trained accuracy of the two models on the test split, by train.py's own numpy: 355 and 357 of 360.
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
digits=$source/examples/digits

# right FILE: how many labels were hit
right() { sed -n 's/.*(\([0-9]*\) of 360).*/\1/p' "$1"; }

for case in mlp:355 cnn:357; do
  model=$digits/${case%:*}.mdl trained=${case#*:}
  ok npucc "$model" --reference --input "$digits/test.safetensors" --labels "$digits/test.safetensors"
  [ "$(right out)" = "$trained" ] || fail "$model on the host: $(right out) right, trained to $trained"
  for options in "-D N=8" "-D N=8 -O0" "--calibrate $digits/calibration.safetensors" "--machine cloud"; do
    # shellcheck disable=SC2086
    ok npucc "$model" $options -o d.bin
    ok npusim d.bin --input "$digits/test.safetensors" --labels "$digits/test.safetensors"
    n=$(right out)
    [ "${n:-0}" -ge $((trained - 4)) ] || fail "$model $options: only $n of 360 right"
  done
done

# Machines after published ones give what the host gives: weights of 8 bits and bf16 activations change a score by a
# few hundredths at most, and the same on every machine but for the order of sums.
for net in mlp cnn; do
  ok npucc "$digits/$net.mdl" -D N=8 --reference --input "$digits/test.safetensors" --output host.npy
  for machine in tpuv4i ethos_u85 gemmini h100 blackhole; do
    ok npucc "$digits/$net.mdl" -D N=8 --machine $machine -o d.bin
    ok npusim d.bin --input "$digits/test.safetensors" --output got.npy
    ok npu-diff host.npy got.npy --atol 0.05
  done
done

# --weights with every tensor stands in for the file the model names, which may then be elsewhere.
cp "$digits/mlp.mdl" moved.mdl
ok npucc moved.mdl --weights "$digits/mlp.safetensors" -o moved.bin
bad "cannot open tensor file 'mlp.safetensors'" npucc moved.mdl -o moved.bin
bad "cannot open tensor file 'mlp.safetensors'" npucc moved.mdl --weights "$digits/cnn.safetensors" -o moved.bin

# Labels that cannot be: of another shape, of a class there is not.
test=$digits/test.safetensors
bad "are u8[360,64], but 360 samples are run; give one label per sample" npusim d.bin --input "$test" --labels "$test:image"
cat >eleven.mdl <<'END'
model m(x: f32[3, 2]) -> (y: s32[3]) { return cast(sum(x, axis = 1) * 0 + 11, s32) }
END
ok npucc eleven.mdl -o eleven.bin
ok npusim eleven.bin --random 1 --output eleven.npy
bad "label 11 of sample 0 in 'eleven.npy' is none of the classes 0..9" npusim d.bin --input "$test[0:3]" --labels eleven.npy

# All of it is found before the model runs: this one would trap, for there is no row 7.
cat >trap.mdl <<'END'
model m(i: s32[1]) -> (y: f32[1, 2]) {
  weight w: f32[4, 2] = ones()
  return embed(i, w)
}
END
cat >seven.mdl <<'END'
model m(x: f32[1]) -> (y: s32[1]) { return cast(x * 0 + 7, s32) }
END
ok npucc trap.mdl -o trap.bin
ok npucc seven.mdl -o seven.bin
ok npusim seven.bin --random 1 --output seven.npy
trapped "index" npusim trap.bin --input seven.npy --output y.npy
bad "label 7 of sample 0 in 'seven.npy' is none of the classes 0..1" npusim trap.bin --input seven.npy --labels seven.npy --output y.npy
bad "cannot open tensor file" npusim trap.bin --input seven.npy --labels missing.npy --output y.npy
bad "has no tensor 'other'" npusim trap.bin --input seven.npy --labels seven.npy:other --output y.npy
bad "has no rows [1:2]" npusim trap.bin --input seven.npy --labels "seven.npy[1:2]" --output y.npy
bad "are s32[3], but 1 sample is run" npusim trap.bin --input seven.npy --labels eleven.npy --output y.npy
bad "needs an output of shape [samples, classes]" npusim seven.bin --random 1 --labels seven.npy --output y.npy
absent y.npy

# Inputs of different first axes: three runs of one row and of two.
cat >made.ir <<'END'
func @m(%o: f32[1]) -> (x: f32[3,4], s: f32[6,1,4], short: f32[5,1,4]) level graph {
  %c = constant {data = data<f32[6,1], [0, 1, 2, 3, 4, 5]>} : () -> f32[6,1]
  %ten = constant {value = 10.0} : () -> f32[]
  %rows = broadcast %c {shape = [6, 4]} : (f32[6,1]) -> f32[6,4]
  %x = slice %rows {begin = [0, 0], end = [3, 4]} : (f32[6,4]) -> f32[3,4]
  %tens = mul %rows, %ten : (f32[6,4], f32[]) -> f32[6,4]
  %s = reshape %tens {shape = [6, 1, 4]} : (f32[6,4]) -> f32[6,1,4]
  %short = slice %s {begin = [0, 0, 0], end = [5, 1, 4]} : (f32[6,1,4]) -> f32[5,1,4]
  return %x, %s, %short : (f32[3,4], f32[6,1,4], f32[5,1,4]) -> ()
}
END
cat >two.mdl <<'END'
model m(x: f32[1, 4], s: f32[2, 1, 4]) -> (y: f32[1, 4], z: f32[2, 1, 4], n: f32[]) {
  return x * 2, s + x[0, 0], sum(s)
}
END
ok npucc made.ir -o made.bin
ok npusim made.bin --random 1 --output made.safetensors
ok npucc two.mdl --no-quantize -o two.bin
for run in "npusim two.bin" "npucc two.mdl --reference"; do
  ok $run --input made.safetensors
  has "y: f32[3,4] = 0 0 0 0 2 2 2 2 4 4 ..." out
  has "z: f32[6,1,4] = 0 0 0 0 10 10 10 10 21 21 ..." out
  has "n: f32[3] = 40 200 360" out
  bad "'x' has 3 samples at 1 a run (3 runs), 's' has 5 samples at 2 a run (2.5 runs)" \
    $run --input x=made.safetensors:x --input s=made.safetensors:short
done
exit $failed
