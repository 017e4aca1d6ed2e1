#!/bin/bash
# What messages say is true and helps: code in them compiles, reasons of failed writes are named, numbers too large are
# not called no numbers, tensors without a name are not quoted. Usage: messages.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# ---- code in hints: what the message says to write stands in for the faulty expression
# advice TYPE EXPRESSION: a, b, c, x and index in the advice are inputs of that type.
advice() {
  local type=$1 faulty=$2 code
  model() {
    echo "model m(a: $type[4], b: $type[4], c: s8[4], x: $type[4], index: s32[4]) -> (y: $type[4]) {"
    printf '  y = %s\n  return a\n}\n' "$1"
  }
  model "$faulty" >faulty.mdl
  bad "error" npucc faulty.mdl -o x.bin
  code=$(sed -n 's/.*; \(for [a-z ]*\)\{0,1\}\(of comparisons \)\{0,1\}\(to [a-z ]* \)\{0,1\}\(write\|use\) \(.*[a-z0-9)]\)\( for one.*\)\{0,1\} \[E-.*/\5/p' err |
    sed 's/ for one that is computed//')
  [ -n "$code" ] || {
    fail "no code in:"
    cat err >&2
    return
  }
  model "$code" >advised.mdl
  ok npucc advised.mdl --reference --random 1
}
advice f32 "a % b"
advice s32 "a % b"
advice s32 "a % 3"
advice s8 "a % b"
advice f32 "a < b and b < a"
advice f32 "a < b or b < a"
advice f32 "not (a < b)"
advice f32 "a[index]"
# a - floor(a / b) * b of integers, by Python: [-7 % 3, 7 % 3, 6 % 3, -1 % 3] = [2, 1, 0, 2]
cat >modulo.mdl <<'END'
model modulo(x: f32[1]) -> (y: s32[4]) {
  z = cast(x * 0, s32)
  a = concat(z - 7, z + 7, z + 6, z - 1)
  b = a * 0 + 3
  return a - cast(floor(cast(a, f32) / cast(b, f32)), s32) * b
}
END
ok npucc modulo.mdl --reference --random 1
has "y: s32[4] = 2 1 0 2" out

# ---- writes that fail
cat >copy.mdl <<'END'
model copy(x: f32[64, 64]) -> (y: f32[64, 64]) { return x + 0 }
END
ok npucc copy.mdl -o copy.bin
full() { # full COMMAND...: the disk is full, as far as this command sees
  bad "No space left on device" "$@"
}
for end in npy npz safetensors; do
  ln -s /dev/full full.$end
  full npucc copy.mdl --reference --random 1 -o full.$end
  full npusim copy.bin --random 1 -o full.$end
done
npusim copy.bin --random 1 --trace /dev/full -o y.npy >out 2>err && fail "a full disk"
has "No space left on device" err
full npucc copy.mdl -o /dev/full
full npucc copy.mdl --emit asm -o /dev/full
full npu-opt copy.mdl -o /dev/full
full bash -c "npucc copy.mdl --emit nest >/dev/full"
full bash -c "npu-objdump copy.bin >/dev/full"
ok npu-objdump copy.bin
cp out copy.s
full npu-as copy.s -o /dev/full
limited() { (trap '' XFSZ && ulimit -f 1 && "$@"); }
for end in npy npz safetensors; do
  bad "File too large" limited npucc copy.mdl --reference --random 1 -o large.$end
  absent large.$end
done
bad "File too large" limited npucc copy.mdl -o large.bin
absent large.bin

# ---- numbers
huge=99999999999999999999
cat >n.mdl <<'END'
model n(x: f32[N]) -> (y: f32[N]) with N = 1, g = 1.5 { return x * g }
END
bad "an integer of 64 bits" npucc n.mdl -D N=$huge
bad "this parameter is an integer" npucc n.mdl -D N=1x
misused "a whole number of 64 bits" npucc n.mdl --passes="tile{slots=$huge}"
misused "-O wants an integer from 0 to 2" npucc n.mdl -O $huge
misused "and a value of 64 bits" npusim copy.bin --arg 1=$huge
ok npu-objdump -m copy.bin
cp out own.machine
for value in $huge 0x1ffffffffffffffff -$huge; do
  sed "s/^queue_depth.*/queue_depth = $value/" own.machine >huge.machine
  bad "queue_depth = $value is out of range: allowed are" npucc n.mdl --machine huge.machine
done
sed "s/^clock_ghz.*/clock_ghz = 1e999/" own.machine >huge.machine
bad "clock_ghz = 1e999 is out of range" npucc n.mdl --machine huge.machine
sed "s/^queue_depth.*/queue_depth = 1x/" own.machine >huge.machine
bad "'1x' is not an integer" npucc n.mdl --machine huge.machine
sed "s/^ *halt/  li r1, $huge\n  halt/" copy.s >huge.s
bad "not $huge" npu-as huge.s

# ---- tensors without a name
ok npucc copy.mdl --reference --random 1 -o y.npy
bad "'y.npy' has no rows [5:5]: its first axis has 64" npusim copy.bin --input 'y.npy[5:5]'
bad "an array without a name" npusim copy.bin --input x=y.npy:other
cat >w.mdl <<'END'
model w(x: f32[1, 4]) -> (y: f32[1, 4]) {
  weights "nan.npy"
  return x * weight("nan")
}
END
cat >nan.mdl <<'END'
model nan(x: f32[1]) -> (y: f32[1, 4]) {
  z = x * 0
  return reshape(concat(z, z, z / z, z), [1, 4])
}
END
ok npucc nan.mdl --reference --random 1 -o nan.npy
bad 'tensor `nan` of nan.npy' npucc w.mdl -o w.bin
sed -i 's/weight("nan")/weight("nam")/' w.mdl
bad 'did you mean `nan`?' npucc w.mdl -o w.bin

# ---- files of other integer types
printf '\x93NUMPY\x01\x00\x46\x00%-69s\n\x01\0\0\0' "{'descr': '<u4', 'fortran_order': False, 'shape': (1,), }" >u4.npy
cat >int.mdl <<'END'
model int(i: s32[1]) -> (o: s32[1]) { return i + i }
END
ok npucc int.mdl -o int.bin
bad "convert it with .astype('int64')" npusim int.bin --input u4.npy

exit $failed
