#!/bin/bash
# Every file a command reads may be a pipe, which is read once; files that shrink while they are read are an error.
# Usage: pipes.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >m.mdl <<'END'
model m(x: f32[N, 64]) -> (y: f32[N, 10]) with N = 2 {
  weights "w.safetensors"
  return x @ weight("fc3.weight")' + weight("fc3.bias")
}
END
cp "$source/examples/digits/mlp.safetensors" w.safetensors
cp "$source/examples/digits/calibration.safetensors" c.safetensors
grep -q fc3.weight w.safetensors || fail "the digits' weights have other names"
sed -i 's/x: f32\[N, 64\]/image: f32[N, 64]/; s/return x @/h = image[:, 0:32]\n  return h @/' m.mdl
run() { timeout 60 "$@"; }
ok npucc m.mdl -o want.bin --calibrate c.safetensors
ok npusim want.bin --input c.safetensors[0:4] --output want.npy

mkfifo fifo
feed() { cat "$1" >fifo & }
feed m.mdl && ok run npucc fifo --weights w.safetensors -o got.bin --calibrate c.safetensors
ok run npucc m.mdl --weights <(cat w.safetensors) -o got.bin --calibrate c.safetensors
ok run npusim got.bin --input c.safetensors[0:4] --output got.npy
same want.npy got.npy
feed c.safetensors && ok run npucc m.mdl -o got.bin --calibrate fifo
same want.bin got.bin
ok run npucc m.mdl -o got.bin --calibrate <(cat c.safetensors)
same want.bin got.bin
feed want.bin && ok run npusim fifo --input c.safetensors[0:4] --output got.npy
same want.npy got.npy
ok run npusim <(cat want.bin) --input c.safetensors[0:4] --output got.npy
same want.npy got.npy
ok run bash -c "npusim /dev/stdin --input c.safetensors[0:4] --output got.npy <want.bin"
ok run bash -c "cat want.bin | npusim - --input c.safetensors[0:4] --output got.npy"
same want.npy got.npy
ok npusim want.bin --input c.safetensors --output want.npy
feed c.safetensors && ok run npusim want.bin --input fifo --output got.npy
same want.npy got.npy
ok npucc m.mdl --emit asm -o text.s --calibrate c.safetensors
ok run npu-objdump -d <(cat want.bin)
feed text.s && ok run npu-as fifo -o got.bin
ok npusim want.bin --input "$source/examples/digits/test.safetensors" --labels "$source/examples/digits/test.safetensors"
cp out want.txt
ok run bash -c "cat '$source/examples/digits/test.safetensors' | npusim want.bin --input /dev/stdin --labels /dev/stdin"
same out want.txt

# ---- shrinking while it is read: the pipe holds the command up when its weights are mapped already
cat >big.mdl <<'END'
model m(x: f32[1, 1024]) -> (y: f32[1, 1024]) {
  return x @ weight("w")'
}
END
echo 'model m(x: f32[1024]) -> (w: f32[1024, 1024]) { return x + broadcast(x, [1024, 1024]) }' >make.mdl
ok npucc make.mdl --reference --random 1 --output big.safetensors
rm -f fifo && mkfifo fifo
# A sanitizer's own handler would answer instead.
ASAN_OPTIONS=${ASAN_OPTIONS:-}:handle_sigbus=0 \
  npucc big.mdl --weights big.safetensors --weights fifo -o got2.bin 2>err &
command=$!
exec 3>fifo # returns when the command has come to open the pipe, after the weights
truncate -s 2M big.safetensors
cat w.safetensors >&3
exec 3>&-
wait $command
code=$?
[ $code = 1 ] || fail "a file that shrinks: exit code $code"
has "big.safetensors' was cut short while it was read" err
absent got2.bin
exit $failed
