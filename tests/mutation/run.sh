#!/bin/bash
# Plants N random one-token mistakes in the product's C code, one at a time, and looks whether a test notices:
#   tests/mutation/run.sh N [SEED [FIRST_DRAW]]
# Each is built; one that does not compile, or compiles to the same code as before, is drawn again. Then the tests run,
# those that took least without a mistake first, until one fails or takes too long. Works on a copy of what git tracks,
# in build/mutation; prints a line per mistake and, at the end or when interrupted, the survivors. Draws do not depend on
# each other: an interrupted run is continued by the next with the draw it came to, and tests/mutation/run.sh 1 SEED DRAW
# repeats a mistake. README.md says how long it takes.
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

rm -rf "$folder/fresh"
mkdir -p "$folder/fresh"
git ls-files -z | xargs -0 cp --parents -t "$folder/fresh" || exit 1

# A mutated program may eat all memory, write without end, or wait for an end of input that does not come.
# In the background, so that the traps below need not wait for it.
limited() {
  (ulimit -v 12000000 -f 8000000; exec timeout "$@") </dev/null &
  running=$!
  wait $running
}
compile() { limited 600 ninja -C "$build" >"$folder/build.log" 2>&1; }
code() { find "$build" -name '*.o' -print0 | sort -z | xargs -0 sha256sum | sha256sum; }
# tests SECONDS_OF_ONE SECONDS_OF_ALL [ctest options...]
tests() { limited "$2" ctest --test-dir "$build" -j2 --timeout "$1" --stop-on-failure "${@:3}" >"$folder/tests.log" 2>&1; }

# Builds and tests without a mistake, for the seconds each test takes: ctest keeps "name runs seconds".
prepare() {
  rm -rf "$right" "$source" "$build"
  cp -r "$folder/fresh" "$right"
  cp -r "$folder/fresh" "$source"
  # Most of a build after a mistake is linking some fifty programs.
  local linker
  linker=$(command -v ld.gold >/dev/null && echo -fuse-ld=gold)
  cmake -S "$source" -B "$build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXE_LINKER_FLAGS="$linker" \
    -DCMAKE_SHARED_LINKER_FLAGS="$linker" >/dev/null || exit 1
  compile || { tail -20 "$folder/build.log" >&2; exit 1; }
  SECONDS=0
  tests 120 1200 || { echo "the tests fail without any mistake:" >&2; tail -20 "$folder/tests.log" >&2; exit 1; }
  echo $((4 * SECONDS + 60)) >"$folder/patience"
  cp "$build/tests/mutation/mutate" "$folder/mutate"
  cp "$build/Testing/Temporary/CTestCostData.txt" "$folder/seconds"
}

if [ -f "$folder/seconds" ] && diff -rq "$folder/fresh" "$right" >/dev/null; then
  # An earlier run's, perhaps with its last mistake in it.
  diff -rq "$right" "$source" | awk '/^Files/ { print $2, $4 }' | xargs -r -n2 cp
  compile || exit 1
else
  prepare
fi
patience=$(cat "$folder/patience")
clean=$(code)

# The tests that took from $1 to below $2 seconds, as a pattern.
taking() { awk -v from="$1" -v to="$2" 'NF == 3 && $3 >= from && $3 < to { printf "%s%s", sep, $1; sep = "|" }' "$folder/seconds"; }
quick=$(taking 0 0.3) middling=$(taking 0.3 2.5) slow=$(taking 2.5 1000)
all_pass() {
  tests 20 "$patience" -R "^($quick)\$" && tests 60 "$patience" -R "^($middling)\$" && tests 120 "$patience" -R "^($slow)\$"
}

cd "$source" || exit 1
mapfile -t files < <(find support isa ir frontend passes backend runtime tools -name '*.[ch]' -o -name '*.def' | sort)
planted=0 caught=0 survivors=()
summary() { # perhaps from within something whose output goes elsewhere
  kill "$running" 2>/dev/null
  {
    echo
    echo "$planted mistakes that change something, $caught caught, ${#survivors[@]} not (seed $seed; the next draw is $draw)"
    [ ${#survivors[@]} = 0 ] || printf '%s\n' "${survivors[@]}"
  } >&3
}
exec 3>&1
trap summary EXIT
trap 'exit 1' INT TERM HUP

for ((; planted < wanted; draw++)); do
  SECONDS=0
  mistake=$("$folder/mutate" "$seed" "$draw" "${files[@]}") || exit 1
  file=${mistake%%:*}
  if compile && [ "$(code)" != "$clean" ]; then
    if all_pass; then
      survivors+=("draw $draw: $mistake")
      verdict=SURVIVED
    else
      caught=$((caught + 1))
      verdict=$(sed -n 's/^.*[0-9]* - \([^ ]*\) (.*)$/caught by \1/p' "$folder/tests.log" | head -1)
    fi
    planted=$((planted + 1))
    echo "$planted. draw $draw: $mistake: ${verdict:-caught, takes too long} ($SECONDS s)"
  fi
  # A new time stamp, so that the right code is built again.
  cp "$right/$file" "$file"
done
