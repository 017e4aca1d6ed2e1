#!/bin/bash
# npucc --bisect: passes of a plugin that compute something else by an amount known beforehand.
# Usage: bisect.sh TOOLS_DIR SOURCE_DIR WRONG_PASSES.so
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"
wrong=$3

cat >net.mdl <<'END'
model net(x: f32[4, 64]) -> (y: f32[4, 16], z: f32[4]) {
  weight w: f32[64, 16] = normal(seed = 1, std = 0.1)
  h = relu(x @ w)
  return h - 0.125, sum(h, axis = 1)
}
END
cat >integers.mdl <<'END'
model integers(x: s8[1000]) -> (y: s32[1000], z: s32[]) {
  s = cast(x, s32)
  return s * 1000000, sum(s)
}
END
cat >words.mdl <<'END'
model words(x: s32[4]) -> (y: f32[4, 8]) {
  weight table: f32[10, 8] = normal(seed = 2)
  return embed(x, table) * 2.0
}
END

# search ARGUMENTS...: into out and err, its exit status in $code
search() {
  npucc --load-pass "$wrong" --bisect --random 1 "$@" >out 2>err
  code=$?
}
# finds NAME ARGUMENTS...: the last line names the pass
finds() {
  local name=$1
  shift
  search "$@"
  [ $code = 1 ] || fail "$*: exit status $code"
  tail -1 out | grep -q "^$name is the first pass" || {
    fail "$*: not '$name' but:"
    cat out err >&2
  }
}
finds_none() {
  search "$@"
  [ $code = 0 ] || fail "$*: exit status $code"
  tail -1 out | grep -q "^no pass changes an output" || {
    fail "$*: found something:"
    cat out err >&2
  }
}
# line NAME CHANGE IN_ALL OUTPUT: one line, of these columns
line() {
  [ "$(sed -n "s/ *<-- too much$//;s/^\($1\)  */\1 /p" out | tr -s ' ' | grep -cFx "$1 $2 $3 $4")" = 1 ] || {
    fail "no one line '$1 $2 $3 $4' in:"
    cat out >&2
  }
}
back=lower,fuse,layout,legalize,tile,plan,pipeline,sync,allocate
columns() { [ "$(grep -c "^$1" out)" = "$2" ] || fail "$2 lines of $1 in: $(cat out)"; }

# ---- nothing wrong: every level, quantized or not, the passes of each with its line
for how in -O0 -O1 -O2 --no-quantize "--calibrate random" --passes=$back "--machine cloud"; do
  # shellcheck disable=SC2086
  finds_none net.mdl $how
done
search net.mdl
line "roofline" 0 0 -
line "canonicalize (2nd)" 0 "$(awk '$1 == "quantize" { print $3 }' out)" -
grep -q "^plan " out || fail "the last pass of nests is not compared"
has "pipeline                not compared, nor what follows: the host does not run programs" out
columns canonicalize 2
[ "$(wc -l <out)" = 21 ] || fail "a heading, 18 passes, the pipeline's line, the verdict"
finds_none integers.mdl
tail -1 out | grep -qx "no pass changes an output" || fail "integers may not change at all"

# ---- which occurrence: the pass runs twice and does wrong the second time, or the first
twice=canonicalize,scale{by=1.5,turn=2},canonicalize,scale{by=1.5,turn=2},$back
finds "scale (2nd)" net.mdl --passes="$twice"
line "scale" 0 0 -
line "scale (2nd)" 0.5 0.5 y
line "lower" 0 0.5 -
finds "scale" net.mdl --passes="${twice//turn=2/turn=1}"
line "scale (2nd)" 0 0.5 -
finds "scale (3rd)" net.mdl --passes="scale{turn=9},scale{turn=9},scale{by=3,turn=3}"
# undone later: both passes are marked, the first is named; 1.5 to 1 is a third
finds "scale" net.mdl --passes="scale{by=1.5},canonicalize,scale{by=0.6666666666666666,turn=2},lower"
[ "$(grep -c "<-- too much" out)" = 2 ] || fail "two passes changed an output"
line "scale (2nd)" 0.333 "$(awk '$1 == "scale" && $2 == "(2nd)" { print $4 }' out)" y

# ---- late: in nests, after the last pass that the host runs
finds "swap-max" net.mdl --passes="lower,fuse,layout,legalize,tile,swap-max,plan,pipeline,sync,allocate"
finds "swap-max" net.mdl --passes="lower,fuse,layout,legalize,tile,plan,swap-max,pipeline,sync,allocate"
has "pipeline " out

# ---- how much: by the tolerance given, equal is not more; quantize has its own
pass='scale{by=1.001953125}' # by 2^-9: 0.00195 of the size
finds "scale" net.mdl --passes="$pass"
finds_none net.mdl --passes="$pass" --tolerance 0.002
finds "scale" net.mdl --passes="$pass" --tolerance 0.0019
finds "scale" net.mdl --passes="scale{by=1.0000001}" --tolerance 0
finds_none net.mdl --passes="$pass" --tolerance 1
finds_none net.mdl --tolerance 1e-5
finds "scale" net.mdl --passes="quantize,scale{by=1.05},lower"
finds "scale" net.mdl --passes="quantize,scale{by=inf},lower"
line "scale" inf inf y
finds "scale" net.mdl --passes="quantize,scale{by=nan},lower" # NaN for numbers, not unseen

# ---- integers: one of a thousand, by one of a billion
finds "scale" integers.mdl --passes="scale{by=1},$back"
finds "scale" integers.mdl --passes="scale{by=1},$back" --tolerance 10
finds_none words.mdl
has "warning: --random draws only zeros for input 'x'" err

# ---- what cannot be compared
finds "give-argument" net.mdl --passes="canonicalize,give-argument,cse"
has "pass \`give-argument\` changed the model's inputs or outputs" err
! grep -q cse out || fail "nothing can be compared with other outputs"
finds "index-outside" words.mdl --passes="canonicalize,index-outside,$back"
has "E-index" err
grep -q "^index-outside *does not run on the host" out || fail "the line says so"

# ---- with other options of passes; data from a file
finds_none net.mdl --passes="canonicalize,scale{by=9}" --stop-after 1
columns scale 0
finds_none net.mdl --stop-after 0
finds_none net.mdl --passes=
search net.mdl --passes="canonicalize,cse" --time-passes --print-changed
[ $code = 0 ] && has "cse: no change" err && has " total" err
ok npucc net.mdl --emit graph -o net.ir
finds "scale" net.ir --passes="scale{by=2}"
ok npucc net.mdl --emit nest -o nest.ir
finds_none nest.ir --passes=tile,plan
finds "swap-max" nest.ir --passes=swap-max
sed 's/net(x: f32\[4, 64\]) .*/net(x: f32[4, 64]) -> (y: f32[4, 64]) {/;/weight w/d;/h = /d;s/return .*/return x * 1.0/' net.mdl >data.mdl
sed 's/f32\[4, /f32[10, /g' data.mdl >ten.mdl
ok npucc ten.mdl --reference --random 7 -o ten.npy
npucc --load-pass "$wrong" --bisect net.mdl --input ten.npy --passes="cse,scale{by=1.5},lower" >out 2>err
[ $? = 1 ] || fail "ten samples of a file"
line "scale" 0.5 0.5 y
bad "input 'x' (f32[4,64]) is not given; use --input" npucc --bisect net.mdl

# ---- wrong usage
misused "give one of them" npucc --bisect --reference net.mdl --random 1
misused "leave out --output and --emit" npucc --bisect net.mdl --random 1 -o x.bin
misused "leave out --output and --emit" npucc --bisect net.mdl --random 1 --emit nest
misused "--labels belongs to --reference" npucc --bisect net.mdl --random 1 --labels l.npy
misused "--tolerance belongs to --bisect" npucc net.mdl --tolerance 1
misused "--tolerance belongs to --bisect" npucc net.mdl --reference --random 1 --tolerance 1
for t in -1 nan x ""; do misused "--tolerance wants a number of at least 0" npucc --bisect net.mdl --random 1 --tolerance "$t"; done
misused "there is no pass \`canonicalise\`" npucc --bisect net.mdl --random 1 --passes=canonicalise
misused "give one model" npucc --bisect --random 1
absent net.bin
exit $failed
