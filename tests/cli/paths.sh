#!/bin/bash
# Results do not depend on where the sources are: their paths are stored as given, mapped on demand.
# Usage: paths.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

mkdir -p here "far away/deep=er/lib" lib
cat >here/m.mdl <<'END'
import "lib/part.mdl"
model m(x: f32[1, 64]) -> (y: f32[1, 64]) {
  weights "w.safetensors"
  return twice(x @ weight("y"))
}
END
mkdir here/lib
cat >here/lib/part.mdl <<'END'
fn twice(x) { return softmax(x + x) }
END
cat >w.mdl <<'END'
model w(x: f32[64, 64]) -> (y: f32[64, 64]) { return x }
END
ok npucc w.mdl --reference --random 1 --output here/w.safetensors
cp -r here/. "far away/deep=er"
far="$work/far away/deep=er"

# As given; a command's folder does not count.
(cd here && npucc m.mdl -o ../one.bin) || fail "in the folder"
(cd "$far" && npucc m.mdl -o "$work/two.bin") || fail "in the other folder"
same one.bin two.bin
ok npucc here/m.mdl -o given.bin
ok npu-objdump given.bin
has '"here/m.mdl"' out
has '"here/lib/part.mdl"' out

# The same bytes from anywhere.
ok npucc "$far/m.mdl" --file-prefix-map "$far/=" -o far.bin
same one.bin far.bin
ok npucc "$far/m.mdl" --file-prefix-map="$work=here" --file-prefix-map "$far=here" --file-prefix-map nothing=x -o far.bin
same given.bin far.bin
ok npucc "$far/m.mdl" --file-prefix-map "$far=here" --file-prefix-map "$work=late" -o late.bin
ok npu-objdump late.bin
has '"late/far away/deep=er/m.mdl"' out

# Text of every level, with places and the names of weight files.
for what in "--passes= --emit graph" "--emit graph" "--emit nest" "--emit program" "--emit asm"; do
  # shellcheck disable=SC2086
  ok npucc here/m.mdl --locations $what -o given.txt
  # shellcheck disable=SC2086
  ok npucc "$far/m.mdl" --locations $what --file-prefix-map "$far=here" -o far.txt
  same given.txt far.txt
done
ok npucc here/m.mdl --locations --passes= --emit graph -o given.ir
has 'file("here/w.safetensors"' given.ir
has 'loc("here/m.mdl"' given.ir
ok npu-opt given.ir --locations --file-prefix-map here/= -o mapped.ir
has 'file("w.safetensors"' mapped.ir
has 'loc("lib/part.mdl"' mapped.ir

# Messages name the file that is there.
echo 'model m(x: f32[1]) -> (y: f32[1]) { return z }' >here/wrong.mdl
bad "here/wrong.mdl:1:44: error" npucc here/wrong.mdl --file-prefix-map here=there -o x.bin
misused "--file-prefix-map wants OLD=NEW" npucc here/m.mdl --file-prefix-map here -o x.bin

exit $failed
