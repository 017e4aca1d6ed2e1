#!/bin/bash
# Milliseconds that a layer takes to compile in models of more and more layers, pass by pass: columns of equal numbers are
# work linear in the model. Small numbers of layers show what starting costs.
# Usage: linear.sh [BUILD_DIR] [LAYERS...]     (default build/release, 250 2000 20000)
set -u
cd "$(dirname "$0")/../.." || exit 1
build=$(realpath "${1:-build/release}") || exit 1
shift
[ $# -gt 0 ] || set -- 250 2000 20000
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

# model KIND LAYERS
model() {
  case $1 in
    chain)
      echo "model m(x: f32[4, 16]) -> (y: f32[4, 16]) {"
      echo "  h = x; for i in 0..$2 { h = softmax(h) }; return h }"
      ;;
    weights)
      echo "model m(x: f32[1, 8]) -> (y: f32[1, 8]) {"
      seq "$2" | sed 's/.*/  weight w&: f32[8, 8] = normal(seed = &)/'
      echo "  h = x"
      seq -f '  h = relu(h @ w%.0f)' "$2"
      echo "  return h }"
      ;;
    states)
      echo "model m(x: f32[4, 16]) -> (y: f32[4, 16]) {"
      echo "  h = x"
      seq "$2" | sed 's/.*/  state s&: f32[4, 16]; s& = softmax(h + s&); h = s&/'
      echo "  return h }"
      ;;
    results)
      echo "model m(x: f32[4, 16]) -> ($(seq -f 'y%.0f: f32[4, 16]' -s ', ' "$2")) {"
      seq "$2" | sed 's/.*/  r& = softmax(x * &.5)/'
      echo "  return $(seq -f 'r%.0f' -s ', ' "$2") }"
      ;;
    alive)
      echo "model m(x: f32[4, 16]) -> (y: f32[4, 16]) {"
      seq "$2" | sed 's/.*/  h& = softmax(x + &)/'
      echo "  h = x"
      seq "$2" | tac | sed 's/.*/  h = softmax(h + h&)/'
      echo "  return h }"
      ;;
  esac
}

for kind in chain weights states results alive; do
  for n in "$@"; do
    model $kind "$n" >"$out/m.mdl"
    start=$(date +%s%N)
    "$build/tools/npucc" "$out/m.mdl" --time-passes -o "$out/m.bin" >"$out/times" 2>&1 || {
      cat "$out/times"
      exit 1
    }
    stop=$(date +%s%N)
    awk -v n="$n" -v kind=$kind -v ms=$(((stop - start) / 1000000)) '
      /^\/\/ +[a-z]/ && $2 != "pass" && $2 != "total" { t[$2] += $3; if (!($2 in seen)) { seen[$2]; order[++k] = $2 } }
      END {
        printf "%-8s %6d layers: %.3f ms a layer in all;", kind, n, ms / n
        for (i = 1; i <= k; i++) if (t[order[i]] / n >= 0.005) printf " %s %.3f", order[i], t[order[i]] / n
        print ""
      }' "$out/times"
  done
done
