#!/bin/sh
# From a fresh Debian 12 to recognised digits: installs packages, builds, compiles both models of
# examples/digits and runs them on the simulated machine.
set -eu
cd "$(dirname "$0")/.."

examples/setup.sh
echo "building (once, a minute or two) ..."
mkdir -p build
quietly() { "$@" >build/quickstart.log 2>&1 || { cat build/quickstart.log >&2; exit 1; }; }
quietly cmake --preset release
quietly cmake --build --preset release --target npucc npu-opt npu-as npu-objdump npusim show_digits
bin=build/release/tools
out=build/release/quickstart
mkdir -p "$out"

for model in mlp cnn; do
  echo
  echo "== examples/digits/$model.mdl"
  $bin/npucc "examples/digits/$model.mdl" -o "$out/$model.bin" -v
  build/release/examples/digits/show_digits "$out/$model.bin" examples/digits/test.safetensors
done

echo
echo "Next: $bin/npusim $out/cnn.bin --input examples/digits/test.safetensors --labels examples/digits/test.safetensors --report"
