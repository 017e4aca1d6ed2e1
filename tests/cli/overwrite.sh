#!/bin/bash
# No result overwrites what it is made of, or another result. Usage: overwrite.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >part.mdl <<'END'
fn twice(x) { return x + x }
END
cat >m.mdl <<'END'
import "part.mdl"
model m(x: f32[1, 4]) -> (y: f32[1, 512], z: f32[1, 4]) {
  weights "w.npz"
  return x @ weight("y"), twice(x)
}
END
cat >w.mdl <<'END'
model w(x: f32[4, 512], l: f32[3]) -> (y: f32[4, 512], l: s32[3]) { return x, cast(l * 0, s32) }
END
ok npucc w.mdl --reference --random 1 --output w.npz
ok npucc w.mdl --reference --random 1 --output l=labels.npy
ok npucc m.mdl --reference --random 1 --output z=in.npy
cat >copy.mdl <<'END'
model copy(x: f32[N, 4]) -> (y: f32[N, 4]) with N = 1 { return x + 0 }
END
ok npucc copy.mdl -D N=3 --reference --random 1 --output y=three.npy
ok npucc m.mdl -o m.bin
ok npucc m.mdl --passes= --emit graph -o m.ir
ok npu-objdump m.bin
cp out m.s
ok npu-objdump -m m.bin
cp out own.machine
ln in.npy hard.npy
ln -s in.npy soft.npy
ln -s . folder
state() { find . -maxdepth 1 -type f ! -name out ! -name err | sort | xargs cksum; }
before=$(state)

# kept TEXT COMMAND...: fails with TEXT, and every file is as it was.
kept() {
  bad "$@"
  [ "$(state)" = "$before" ] || fail "$*: files changed"
}
read_text="would overwrite the file that is read"

for spelling in w.npz ./w.npz "$work/w.npz" folder/w.npz; do kept "$read_text" npucc m.mdl -o "$spelling"; done
kept "$read_text" npucc m.mdl -o m.mdl
kept "$read_text" npucc m.mdl -o part.mdl
kept "$read_text" npucc m.mdl --emit graph -o w.npz
kept "$read_text" npucc m.mdl --reproducer w.npz -o made.npz
kept "$read_text" npucc m.mdl --weights labels.npy -o labels.npy
kept "$read_text" npucc m.mdl --calibrate in.npy -o in.npy
kept "$read_text" npucc m.mdl --machine own.machine -o own.machine
kept "$read_text" npucc m.ir -o w.npz
kept "$read_text" npucc m.ir -o m.ir
kept "the default output 'm.bin' $read_text" npucc m.bin
kept "$read_text" npucc m.mdl --reference --input in.npy --output z=in.npy
kept "$read_text" npucc m.mdl --reference --random 1 --output w.npz
kept "$read_text" npucc m.mdl --reference --random 1 --labels labels.npy --output z=labels.npy
kept "are one file" npucc m.mdl -o made.npz --reproducer ./made.npz
kept "$read_text" npu-opt m.ir -o m.ir
kept "$read_text" npu-opt m.ir -o w.npz
kept "$read_text" npu-opt m.ir --reproducer m.ir
kept "$read_text" npu-opt m.ir --machine own.machine -o folder/own.machine
kept "$read_text" npu-as m.s -o m.s
for spelling in in.npy hard.npy soft.npy folder/in.npy; do kept "$read_text" npusim m.bin --input in.npy --output z=$spelling; done
kept "$read_text" npusim m.bin --random 1 --trace m.bin
kept "$read_text" npusim m.bin --random 1 --machine own.machine --trace own.machine
kept "$read_text" npusim m.bin --input in.npy --trace in.npy
kept "$read_text" npusim m.bin --random 1 --labels labels.npy --output z=labels.npy
kept "are one file" npusim m.bin --random 1 --output z=made.npy --trace made.npy
kept "are one file" npusim m.bin --random 1 --output z=made.npy --trace folder/made.npy
kept "are one file" npusim m.bin --random 1 --output z=made.npz --output y=./made.npz

# What cannot be lost: devices, standard output, one file of several tensors, a file read twice.
ok npusim m.bin --random 1 --output z=out.npz --output y=out.npz --trace /dev/null
ok npucc m.mdl -o /dev/null --reproducer /dev/null
ok npucc m.mdl --emit graph -o -
ok npucc m.mdl --emit graph -o /dev/stdout
ok npucc m.mdl --weights w.npz --calibrate in.npy -o m.bin
ok npucc m.mdl -o m.bin
ok npucc copy.mdl --reference --input x=three.npy --output y=new.npy

exit $failed
