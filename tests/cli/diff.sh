#!/bin/bash
# npu-diff: figures worked out by hand. Usage: diff.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

make() { # make FILE EXPRESSION: from z, four zeros
  printf 'model make(x: f32[4]) -> (y: f32[2, 2]) {\n  z = x * 0\n  return reshape(%s, [2, 2])\n}\n' "$2" >make.mdl
  ok npucc make.mdl --reference --random 1 -o "$1"
}
differs() { # differs TEXT ARGUMENTS...: exits 1, with TEXT on standard output
  local text=$1 code
  shift
  npu-diff "$@" >out 2>err
  code=$?
  [ $code = 1 ] || fail "npu-diff $*: exit status $code"
  has "$text" out
}
make a.npy "z + 2"
make b.npy "concat(z[0:3] + 2, z[3:4] + 3)"
make c.safetensors "z + 2"
# one of four elements, 2 against 3: abs 1, rel 1/3, rms sqrt(1/4)
differs "the array: DIFFERENT, 1 of 4 differ, max abs 1, max rel 0.333333, rms 0.5, first at [1, 1]: 2 and 3" a.npy b.npy
ok npu-diff a.npy a.npy
has "the array: equal, 0 of 4 differ, max abs 0, max rel 0, rms 0" out
ok npu-diff -q a.npy a.npy
[ ! -s out ] || fail "--quiet"
ok npu-diff a.npy b.npy --atol 1
ok npu-diff a.npy b.npy --rtol 0.34
differs "1 of 4" a.npy b.npy --rtol 0.33
differs "1 of 4" a.npy b.npy --atol 0.99
differs "max rel 0.5" b.npy a.npy --rtol 0.49
ok npu-diff a.npy c.safetensors

printf 'model make(x: f32[4]) -> (y: bf16[2, 2]) {\n  return cast(reshape(x * 0 + 2, [2, 2]), bf16)\n}\n' >bf16.mdl
ok npucc bf16.mdl --reference --random 1 -o bf16.safetensors
ok npu-diff a.npy bf16.safetensors

make nan.npy "z / 0"
make inf.npy "(z + 1) / 0"
differs "4 of 4 differ" nan.npy nan.npy
ok npu-diff nan.npy nan.npy --equal-nan
ok npu-diff inf.npy inf.npy
differs "4 of 4 differ, max abs inf" a.npy inf.npy --rtol 1 --atol 1e30
differs "4 of 4 differ" nan.npy a.npy --atol 1e30

printf 'model two(x: f32[4]) -> (p: f32[4], q: f32[4]) {\n  return x, x + 0\n}\n' >two.mdl
printf 'model two(x: f32[4]) -> (p: f32[4], r: f32[2]) {\n  return x, x[0:2]\n}\n' >other.mdl
printf 'model two(x: f32[4]) -> (p: f32[2], q: f32[4]) {\n  return x[0:2], x\n}\n' >shapes.mdl
ok npucc two.mdl --reference --random 1 -o two.npz
ok npucc two.mdl --reference --random 1 -o two.safetensors
ok npucc other.mdl --reference --random 1 -o other.npz
ok npucc shapes.mdl --reference --random 1 -o shapes.npz
ok npu-diff two.npz two.safetensors
differs "q: only in two.npz" two.npz other.npz
has "r: only in other.npz" out
differs "p: DIFFERENT, f32[4] and f32[2]" two.npz shapes.npz

misused "give two files" npu-diff a.npy
misused "--rtol wants a number of at least 0, not '-1'" npu-diff a.npy b.npy --rtol -1
ends 2 "cannot open tensor file 'none.npy'" npu-diff a.npy none.npy
ends 2 "this is no tensor file" npu-diff a.npy make.mdl

exit $failed
