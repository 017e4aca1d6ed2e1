#!/bin/bash
# Plants N random one-token mistakes in the product's C code, one at a time, and looks whether a test notices:
#   tests/mutation/run.sh N [SEED [FIRST_DRAW]]
# Each is built; one that does not compile, or compiles to the same code as before, is drawn again. Then the tests run,
# quick ones first, until one fails or takes too long. Works on a copy of what git tracks, in build/mutation, and prints
# a line per mistake, then the survivors. The draw of a mistake is printed, so that one can be repeated:
# tests/mutation/run.sh 1 SEED DRAW. About 30 seconds per mistake that is caught, 2 minutes per survivor, on two cores.
set -u
cd "$(dirname "$0")/../.." || exit 1
if ! [[ ${1:-} =~ ^[0-9]+$ && ${2:-1} =~ ^[0-9]+$ && ${3:-0} =~ ^[0-9]+$ ]]; then
  echo "usage: tests/mutation/run.sh N [SEED [FIRST_DRAW]]" >&2
  exit 2
fi
wanted=$1
seed=${2:-1}
draw=${3:-0}
folder=$PWD/build/mutation
source=$folder/source # with a mistake
right=$folder/right   # without
build=$folder/build
export NPUCC_SHARED=${NPUCC_SHARED:-$PWD/../shared/data}

rm -rf "$source" "$right"
mkdir -p "$right"
git ls-files -z | xargs -0 cp --parents -t "$right" || exit 1
cp -r "$right" "$source"
cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release >/dev/null || exit 1

# A mutated program may eat all memory, or wait for an end of input that does not come.
limited() { (ulimit -v 12000000; timeout 900 "$@") </dev/null; }
tests() { limited ctest --test-dir "$build" -j2 --timeout 120 --stop-on-failure "$@" >"$folder/tests.log" 2>&1; }
compile() { limited ninja -C "$build" >"$folder/build.log" 2>&1; }
code() { find "$build" -name '*.o' -print0 | sort -z | xargs -0 sha256sum | sha256sum; }

compile || { tail -20 "$folder/build.log" >&2; exit 1; }
cp "$build/tests/mutation/mutate" "$folder/mutate"
tests || { echo "the tests fail without any mistake:" >&2; tail -20 "$folder/tests.log" >&2; exit 1; }
clean=$(code)
cd "$source" || exit 1
mapfile -t files < <(find support isa ir frontend passes backend runtime tools -name '*.[ch]' -o -name '*.def' | sort)

planted=0 caught=0 survivors=()
for ((; planted < wanted; draw++)); do
  mistake=$("$folder/mutate" "$seed" "$draw" "${files[@]}") || exit 1
  file=${mistake%%:*}
  if compile && [ "$(code)" != "$clean" ]; then
    planted=$((planted + 1))
    if tests -LE 'e2e|conformance' && tests -L 'e2e|conformance'; then
      survivors+=("draw $draw: $mistake")
      verdict=SURVIVED
    else
      caught=$((caught + 1))
      verdict="caught by $(sed -n 's/^.*[0-9]* - \([^ ]*\) (.*)$/\1/p' "$folder/tests.log" | head -1)"
    fi
    echo "$planted. draw $draw: $mistake: $verdict"
  fi
  # A new time stamp, so that the right code is built again.
  cp "$right/$file" "$file"
done

echo
echo "$planted mistakes that change something, $caught caught, ${#survivors[@]} not (seed $seed, draws up to $draw)"
[ ${#survivors[@]} = 0 ] || printf '%s\n' "${survivors[@]}"
