#!/bin/sh
# From a fresh Debian 12 to recognised digits: installs packages, builds, compiles both models of
# examples/digits and runs them on the simulated machine.
set -eu
cd "$(dirname "$0")/.."

examples/setup.sh
echo "building (once, a minute or two) ..."
cmake --preset release >build-configure.log 2>&1 || { cat build-configure.log >&2; exit 1; }
rm -f build-configure.log
cmake --build --preset release --target npucc npusim npu-objdump show_digits >/dev/null
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
