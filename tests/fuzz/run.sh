#!/usr/bin/env bash
# Fuzzes every reader of bytes under ASan and UBSan, two at a time:
#   tests/fuzz/run.sh [SECONDS [TARGET...]]        600 seconds each by default
# Needs Clang with its runtime (libclang-rt-14-dev). Crashing inputs are left in build/fuzz/findings.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-600}
shift || true
targets=("$@")
[ ${#targets[@]} -gt 0 ] || targets=(fuzz_mdl fuzz_ir fuzz_asm fuzz_binary fuzz_run fuzz_tensorfile)
build=${BUILD:-build/fuzz}
cmake -S . -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCMAKE_C_COMPILER="${CC:-clang-14}" \
  -DCMAKE_CXX_COMPILER="${CXX:-clang++-14}" -DNPUCC_FUZZ=ON -DNPUCC_SANITIZE=ON >/dev/null
ninja -C "$build" npucc npu-objdump "${targets[@]}" | tail -1
mkdir -p "$build/findings"
export ASAN_OPTIONS=detect_odr_violation=0

# First inputs: what the tests and examples have, and what the tools make of it.
seed() {
  local dir="$build/corpus/$1"
  mkdir -p "$dir"
  case $1 in
  fuzz_mdl) cp tests/frontend/*.mdl tests/passes/models/*.mdl examples/*/*.mdl "$dir" ;;
  fuzz_ir) find tests -name '*.ir' -exec cp --backup=numbered {} "$dir" \; ;;
  fuzz_tensorfile) find tests/frontend/inputs examples -name '*.np[yz]' -size -64k -exec cp {} "$dir" \; -o \
    -name '*.safetensors' -size -64k -exec cp {} "$dir" \; ;;
  *)
    for model in tests/passes/models/*.mdl; do
      local name
      name=$(basename "$model" .mdl)
      "$build/tools/npucc" "$model" --machine tests/e2e/machines/tiny.txt -o "$dir/$name.bin" 2>/dev/null || continue
      [ "$1" != fuzz_asm ] || { "$build/tools/npu-objdump" "$dir/$name.bin" >"$dir/$name.s" && rm "$dir/$name.bin"; }
    done
    ;;
  esac
}

one() {
  seed "$1"
  "$build/tests/fuzz/$1" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=4096 -max_len=65536 \
    -artifact_prefix="$build/findings/$1-" "$build/corpus/$1" >"$build/$1.log" 2>&1
  local status=$?
  echo "$1: exit $status, $(grep -E '^(#[0-9]+.*DONE|Done)' "$build/$1.log" | tail -1)"
  return $status
}

export -f seed one
export build seconds
printf '%s\n' "${targets[@]}" | xargs -P 2 -I{} bash -c 'one {}'
