#!/bin/bash
# A trained network on the 10,000 test images of MNIST: accuracy as written, and as compiled in both
# numerics, simulated end to end. Usage: mnist.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/../../cli/lib.sh"

data=${NPUCC_SHARED:-$source/../shared/data}/mnist
if [ ! -f "$data/t10k.safetensors" ] || [ ! -f "$data/mnist.safetensors" ]; then
  echo "skipped: no mnist/t10k.safetensors and mnist/mnist.safetensors in ${data%/mnist}; name their folder in NPUCC_SHARED"
  exit 77
fi
images=$data/t10k.safetensors
model=$source/tests/conformance/mnist/mnist.mdl
compile() { ok npucc "$model" --weights "$data/mnist.safetensors" "$@"; }

# right FROM TO: the last command counted that many of the 10,000 images.
right() {
  local count
  count=$(sed -n 's/^top-1 accuracy of scores: .*(\([0-9]*\) of 10000)$/\1/p' out)
  echo "$label: ${count:-no count} of 10000"
  if [ -z "$count" ] || [ "$count" -lt "$1" ] || [ "$count" -gt "$2" ]; then
    fail "$label: ${count:-no count}, wanted $1 to $2 of 10000"
    cat out err >&2
  fi
}

# ---- accuracy. ONNX Runtime gives 9,891.
label="float, host" && compile -D N=16 --reference -i "$images" --labels "$images" && right 9889 9893
for machine in edge cloud; do
  compile -D N=16 --machine $machine -o weights-$machine.bin
  compile -D N=16 --machine $machine --calibrate "${images}[0:256]" -o static-$machine.bin
done
label="8-bit weights, edge" && ok npusim weights-edge.bin -i "$images" --labels "$images" && right 9880 10000
label="8-bit static, edge" && ok npusim static-edge.bin -i "$images" --labels "$images" -o static.npy && right 9850 10000
label="8-bit static, cloud" && ok npusim static-cloud.bin -i "$images" --labels "$images" -o cloud.npy && right 9850 10000
same static.npy cloud.npy

# ---- the simulator computes the host's bytes: convolutions and the product in integers, and what is
# around them in f32, one rounding per operation on both sides.
compile -D N=16 --calibrate "${images}[0:256]" --reference=compiled -i "$images" --labels "$images" -o host.npy
same host.npy static.npy
some="${images}[1000:1300]" # the last batch is not full
compile -D N=16 --calibrate "${images}[0:256]" --reference=compiled -i "$some" -o host.npy
for machine in edge cloud; do
  for mode in fast timed check; do
    ok npusim static-$machine.bin --mode $mode -i "$some" -o $machine-$mode.npy
    same host.npy $machine-$mode.npy
  done
done
exit $failed
