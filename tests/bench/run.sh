#!/bin/bash
# Measures what README.md shows and prints every command before its figures.
# Usage: run.sh [BUILD_DIR]     (default build/release)
set -u -o pipefail
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}") || exit 1
PATH=$build/tools:$build/tests/bench:$PATH
shared=${NPUCC_SHARED:-../shared/data}
bench=tests/bench
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
failed=0

# show COMMAND...: what a reader would type.
show() {
  local line="$*"
  line=${line//$out\//}
  echo "\$ ${line//$shared\//\$NPUCC_SHARED/}"
}
# run COMMAND...: shows, runs, prints what it says.
run() {
  show "$@"
  "$@" 2>&1 | sed "s#$out/##g" || { echo "FAILED (exit $?)"; failed=1; }
}
quietly() { "$@" >/dev/null || { echo "FAILED: $*"; failed=1; }; }
# cycles BINARY: simulated cycles and the roofline's bound.
cycles() {
  show npusim "$1" --random 1 --report
  npusim "$1" --random 1 --report >"$out/report" || { echo FAILED; failed=1; }
  grep -E '^(cycles|roofline) ' "$out/report"
  grep -A1 '^roofline ' "$out/report" | sed -n 2p
}
# agree NAME MODEL ROWS COLUMNS OPTIONS...: the simulator against the host on random inputs, as compiled
# and as written.
agree() {
  local name=$1 model=$2 m=$3 n=$4
  shift 4
  quietly npucc "$model" "$@" -o "$out/$name.bin"
  quietly npucc "$model" "$@" --reference=compiled --random 1 -o "$out/host.npy"
  quietly npucc "$model" "$@" --reference --random 1 -o "$out/float.npy"
  for mode in fast timed check; do
    quietly npusim "$out/$name.bin" --mode $mode --random 1 -o "$out/$mode.npy"
    cmp "$out/fast.npy" "$out/$mode.npy" || failed=1
  done
  echo "# $name: $model $*"
  if cmp -s "$out/fast.npy" "$out/host.npy"; then
    echo "all modes and the host's --reference=compiled: the same bytes"
  else
    echo "all modes the same bytes; the host's --reference=compiled differs by"
    npucc $bench/largest_error.mdl -D M="$m" -D N="$n" --reference -i a="$out/host.npy" -i b="$out/fast.npy"
  fi
  case $model in
    *s8.mdl) ;;
    *)
      echo "against the float reference"
      npucc $bench/largest_error.mdl -D M="$m" -D N="$n" --reference -i a="$out/float.npy" -i b="$out/fast.npy"
      ;;
  esac
}

echo "== machine"
echo "$(nproc) processors; $(grep -m1 ^flags /proc/cpuinfo | tr ' ' '\n' | grep -xE 'avx2|avx512f|avx512_vnni|avx_vnni|avx512_bf16|amx_tile|amx_int8' | tr '\n' ' ')"

echo
echo "== MNIST, 10,000 test images"
if [ -f "$shared/mnist/t10k.safetensors" ]; then
  model=tests/conformance/mnist/mnist.mdl
  weights=$shared/mnist/mnist.safetensors images=$shared/mnist/t10k.safetensors
  run npucc $model -D N=16 --weights "$weights" --reference -i "$images" --labels "$images"
  for machine in edge cloud; do
    run npucc $model -D N=16 --weights "$weights" --machine $machine -o "$out/weights.bin"
    run npusim "$out/weights.bin" -i "$images" --labels "$images"
    run npucc $model -D N=16 --weights "$weights" --machine $machine --calibrate "${images}[0:256]" -o "$out/static.bin"
    run npusim "$out/static.bin" -i "$images" --labels "$images"
  done
else
  echo "skipped: no mnist in $shared; name its folder in NPUCC_SHARED"
fi

echo
echo "== 1024 x 1024 x 1024, s8: cycles against the roofline"
for machine in edge cloud; do
  run npucc $bench/matmul_s8.mdl --machine $machine -o "$out/mm-$machine.bin"
  cycles "$out/mm-$machine.bin"
done

echo
echo "== 1 x 4096 x 4096: cycles against the DRAM bound"
for machine in edge cloud; do
  run npucc $bench/layer_s8.mdl --machine $machine -o "$out/layer.bin"
  cycles "$out/layer.bin"
  run npucc $bench/layer.mdl --machine $machine -o "$out/layer.bin"
  cycles "$out/layer.bin"
  run npucc $bench/layer.mdl --machine $machine --calibrate random -o "$out/layer.bin"
  cycles "$out/layer.bin"
done

echo
echo "== results"
odd="-D M=127 -D K=129 -D N=131"
for machine in edge cloud; do
  # shellcheck disable=SC2086
  {
    agree "odd, s8, $machine" $bench/matmul_s8.mdl 127 131 $odd --machine $machine
    agree "odd, 8-bit weights, $machine" $bench/layer.mdl 127 131 $odd --machine $machine
    agree "odd, f32, $machine" $bench/layer.mdl 127 131 $odd --machine $machine --no-quantize
  }
done
agree "row, s8" $bench/layer_s8.mdl 1 4096
agree "row, 8-bit weights" $bench/layer.mdl 1 4096

echo
echo "== simulator speed"
if [ -x "$build/tests/bench/bench_mxu" ]; then
  run bench_mxu "$out/mm-edge.bin"
  run bench_mxu "$out/mm-cloud.bin"
  run bench_mxu
else
  echo "skipped: bench_mxu needs libdnnl-dev"
fi

echo
echo "== compile time and memory"
run measure 15 npucc --version
[ ! -f "$shared/mnist/mnist.safetensors" ] ||
  for options in "" "-D N=16" "-D N=16 --calibrate $shared/mnist/t10k.safetensors[0:256]"; do
    # shellcheck disable=SC2086
    run measure 15 npucc tests/conformance/mnist/mnist.mdl --weights "$shared/mnist/mnist.safetensors" $options -o "$out/m.bin"
  done
run measure 15 npucc $bench/layer.mdl -o "$out/l.bin"
run measure 15 npucc $bench/layer.mdl --no-quantize -o "$out/l.bin"
run measure 15 npucc $bench/layer_s8.mdl -o "$out/l.bin"
exit $failed
