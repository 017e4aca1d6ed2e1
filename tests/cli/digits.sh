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

# --weights with every tensor stands in for the file the model names, which may then be elsewhere.
cp "$digits/mlp.mdl" moved.mdl
ok npucc moved.mdl --weights "$digits/mlp.safetensors" -o moved.bin
bad "cannot open tensor file 'mlp.safetensors'" npucc moved.mdl -o moved.bin
bad "cannot open tensor file 'mlp.safetensors'" npucc moved.mdl --weights "$digits/cnn.safetensors" -o moved.bin

# Labels that cannot be: of another shape, of a class there is not.
test=$digits/test.safetensors
bad "are u8[360,64], but 360 samples were run; give one label per sample" npusim d.bin --input "$test" --labels "$test:image"
cat >eleven.mdl <<'END'
model m(x: f32[3, 2]) -> (y: s32[3]) { return cast(sum(x, axis = 1) * 0 + 11, s32) }
END
ok npucc eleven.mdl -o eleven.bin
ok npusim eleven.bin --random 1 --output eleven.npy
bad "label 11 of sample 0 in 'eleven.npy' is none of the classes 0..9" npusim d.bin --input "$test[0:3]" --labels eleven.npy
exit $failed
