#!/bin/bash
# Usage: cli.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

cat >two.mdl <<'END'
model two(x: f32[N, 4], k: f32[4]) -> (y: f32[N, 4], s: f32[4])
  with N = 1
{
  return relu(x) * k, k + k
}
END
cat >int.mdl <<'END'
model int(i: s32[2]) -> (o: s32[2]) {
  return i + i
}
END
cat >same.mdl <<'END'
model same(x: f32[N, 4]) -> (y: f32[N, 4])
  with N = 1
{
  return x + 0
}
END

# ---- every command
for tool in npucc npu-opt npu-as npu-objdump npusim npu-diff; do
  ok $tool --help
  has "usage: $tool" out
  ok $tool --version
  has "$tool " out
  misused "unknown option '--hlep'; did you mean '--help'?" $tool --hlep
  misused "unknown option '-Z'" $tool -Z
  wanted="give one"
  [ $tool != npu-diff ] || wanted="give two"
  misused "$wanted" $tool
  misused "$wanted" $tool a b c
done
ok npu-diff --help
for status in "0  no difference" "1  a difference" "2  wrong usage, or files" "70  an internal error"; do has "  $status" out; done
bad "standard output" bash -c "npucc two.mdl --emit graph >/dev/full"
bad "standard output" bash -c "npucc --help >/dev/full"
bad "cannot read '<stdin>'" bash -c "npucc - <&-"
[ "$(grep -c error err)" = 1 ] || fail "one error is enough when there is no input"

# ---- npucc
ok npucc two.mdl -o two.bin -v
has "machine edge" err
ok npucc two.mdl
same two.bin two.bin
bad "nothing.mdl" npucc nothing.mdl -o x.bin
bad "/nonexistent/x.bin" npucc two.mdl -o /nonexistent/x.bin
misused "unknown option '--emti'; did you mean '--emit'?" npucc --emti graph two.mdl
misused "--emit knows graph" npucc --emit tree two.mdl
cp two.mdl source.mdl
bad "would overwrite the file that is read" npucc source.mdl -o ./source.mdl
bad "--reproducer './source.mdl' would overwrite" npucc source.mdl --passes=tile --reproducer ./source.mdl
bad "--reproducer 'source.mdl' would overwrite" npu-opt source.mdl --passes=tile --reproducer source.mdl
same two.mdl source.mdl
misused "-O wants an integer from 0 to 2" npucc -O3 two.mdl
misused "-D wants NAME=VALUE" npucc -D N two.mdl
bad "-D N=many: this parameter is an integer" npucc -D N=many two.mdl
cat >kinds.mdl <<'END'
model m(x: f32[2]) -> (y: f32[2]) with gain = 1.5, plus = true, of = "a" {
  if plus { x = x + gain } else { x = x * gain }
  if of == "b" { x = -x }
  return x
}
END
ok npucc kinds.mdl -D gain=2.5 -D plus=false -D of=b --passes= --emit graph
has "value = 2.5" out
has "mul %x" out
has "neg" out
bad "this parameter is a boolean" npucc kinds.mdl -D plus=maybe
misused "did you mean 'fuse'" npucc --print-after fsue two.mdl
misused "--print-before: there is no pass 'fsue'; did you mean 'fuse'" npucc --print-before fsue two.mdl
misused "did you mean" npucc --passes=canonicalise two.mdl
misused "nothing to calibrate" npucc --no-quantize --calibrate random two.mdl
bad "cannot open tensor file 'c.npz'" npucc --calibrate c.npz two.mdl
bad "E-machine" npucc --machine nowhere two.mdl -o x.bin
misused "belong to --reference" npucc --input x.npy two.mdl
misused "--passes names the passes and -O chooses them" npucc --passes=lower -O1 two.mdl
misused "--reference is float or compiled" npucc --reference=exact two.mdl
for option in --passes=fuse "--stop-after 1" --stats --time-passes --print-after-all --print-changed "--print-before fuse" "--calibrate random"; do
  # shellcheck disable=SC2086
  misused "belong to --reference=compiled" npucc two.mdl --reference --random 1 $option
done
misused "--manual takes no model" npucc --manual two.mdl
printf 'ONNX\0\1' >model.onnx
bad "model.onnx: error: this is not text" npucc model.onnx -o x.bin
[ "$(grep -c error err)" = 1 ] || fail "one error is enough for a file that is not text"
misused "is IR text" npucc -D N=2 two.ir
absent x.bin
for what in graph nest program asm dot; do ok npucc two.mdl --emit $what && [ -s out ] || fail "--emit $what is empty"; done
for level in 0 1 2; do ok npucc two.mdl -O$level -o o$level.bin; done
ok npucc two.mdl --machine cloud -o cloud.bin
ok npu-objdump -m cloud.bin
has "cloud" out
ok npucc --manual
has "conv2d" out
# What a pass was given and what it made of it: cse finds nothing, canonicalize drops the second relu.
cat >changed.mdl <<'END'
model changed(x: f32[4]) -> (y: f32[4]) {
  return relu(relu(x))
}
END
ok npucc changed.mdl --passes=cse,canonicalize --emit graph --print-before canonicalize --print-changed -o changed.ir
cat >want <<'END'
// cse: no change
// before canonicalize
func @changed(%x: f32[4]) -> (y: f32[4]) level graph {
  %0 = relu %x : (f32[4]) -> f32[4]
  %1 = relu %0 : (f32[4]) -> f32[4]
  return %1 : (f32[4]) -> ()
}
// after canonicalize
func @changed(%x: f32[4]) -> (y: f32[4]) level graph {
  %0 = relu %x : (f32[4]) -> f32[4]
  return %0 : (f32[4]) -> ()
}
END
same err want
ok npucc two.mdl --print-after lower,fuse --verify-each --time-passes --stats -o x.bin
has "// after lower" err
has "// after fuse" err
has "canonicalize" err

# ---- levels as text, one pass at a time
ok npucc two.mdl --emit graph -o graph.ir
ok npucc two.mdl --emit nest -o nest.ir
ok npucc graph.ir -o fromgraph.bin
sed 's/^func @[^(]*/func @other/' graph.ir | cat graph.ir - >both.ir
bad "holds 2 functions" npucc both.ir -o both.bin
bad "holds no function @third" npucc both.ir --model third -o both.bin
ok npucc both.ir --model other -o both.bin
ok npu-opt graph.ir -o again.ir
same graph.ir again.ir
ok npu-opt nest.ir -o again.ir
same nest.ir again.ir
ok npu-opt --passes=lower,fuse,layout --stop-after 1 graph.ir -o one.ir
ok npu-opt --passes=lower graph.ir -o lower.ir
same one.ir lower.ir
ok bash -c "npucc two.mdl --emit graph | npu-opt --passes=lower - >piped.ir"
same piped.ir lower.ir
bad "'nest.ir' is past the graph level" npucc nest.ir --calibrate random -o x.bin
bad "works on the nest level" npu-opt --passes=tile --reproducer repro.ir graph.ir
has "npu-opt --passes='tile" repro.ir
ok npu-opt repro.ir -o again.ir
bad "works on the nest level" npu-opt --passes=tile --machine cloud --reproducer "re pro.ir" graph.ir
has "--machine 'cloud' 're pro.ir'" "re pro.ir"
bad "works on the nest level" bash -c "$(head -n 1 're pro.ir' | cut -c4-)"
same graph.ir again.ir
misused "--list-passes takes no file" npu-opt --list-passes graph.ir
bad "error" npu-opt two.s
printf 'func @broken(' >broken.ir
bad "broken.ir:1:" npu-opt broken.ir

# ---- assembler and inspector
ok npu-objdump two.bin
cp out two.s
ok npu-as two.s -o two2.bin
cp two.s source.s
bad "would overwrite the file that is read" npu-as source.s -o ./source.s
same two.s source.s
same two.bin two2.bin
ok npu-objdump -d two.bin
has "two.mdl:" out
has "return relu(x) * k, k + k" out
mkfifo pipe
printf '.loc "pipe" 1 1 "x"\nhalt\n' >pipe.s
ok npu-as pipe.s -o pipe.bin
ok timeout 10 npu-objdump -d pipe.bin
ok npu-objdump -i two.bin
has "input   x" out
has "output  s" out
ok npu-objdump -h two.bin
has "code" out
head -c 1000 two.bin >cut.bin
bad "E-image" npu-objdump cut.bin
bad "E-image" npusim cut.bin --random 1
bad "cannot read 'none.bin'" npusim none.bin

# ---- running: data made with the reference of a model that copies its input
bad "the model has no output 'x'" npucc same.mdl -D N=10 --reference --random 5 --output x=x10.npy
absent x10.npy
ok npucc same.mdl -D N=10 --reference --random 5 --output y=x10.npy
ok npucc same.mdl -D N=10 --reference --random 5 --output again.npy
same x10.npy again.npy
ok npucc two.mdl --reference --random 3 --output s=k.npy --output y=y1.safetensors
bad "the model has no output 'z'; it has 'y', 's'" npusim two.bin --random 1 --output z=z.npy
bad ".npy holds one" npusim two.bin --random 1 --output z.npy
bad "must end in .npy" npusim two.bin --random 1 --output y=z.txt
bad "/nonexistent/z.npy" npusim two.bin --random 1 --output y=/nonexistent/z.npy
bad "input 'k' (f32[4]) is not given" npusim two.bin --input x=x10.npy
bad "the model has no input 'q'" npusim two.bin --input q=x10.npy
bad "given twice" npusim two.bin --input x=x10.npy --input x=x10.npy
bad "declared f32[4]" npusim two.bin --input k=x10.npy --input x=x10.npy
bad "cannot open tensor file 'none.npy'" npusim two.bin --input x=none.npy --random 1
bad "has no tensor 'q'" npusim two.bin --input x=y1.safetensors:q --random 1
bad "convert it to an integer type" bash -c "npucc int.mdl -o int.bin && npusim int.bin --input k.npy"
misused "unknown mode 'slow'" npusim --mode slow two.bin
misused "measures no time" npusim --mode fast --report two.bin
misused "--arg wants NUMBER=VALUE" npusim two.bin --arg x --random 1
misused "with a number below 64" npusim two.bin --arg 64=1 --random 1
bad "E-machine" npusim two.bin --machine cloud --random 1
absent z.npy z.txt

# Ten samples through batches of one, three and ten are the same ten results, in every mode.
ok npusim two.bin --input x=x10.npy --input k=k.npy --output y=y10.npy
for n in 3 10 16; do
  ok npucc two.mdl -D N=$n -o n.bin
  for mode in fast timed check; do
    ok npusim n.bin --mode $mode --input x=x10.npy --input k=k.npy --output y=yn.npy
    same y10.npy yn.npy
  done
done
ok npucc two.mdl --reference --input x=x10.npy --input k=k.npy --output y=yr.npy
same y10.npy yr.npy

# What a run computes of all its samples together needs whole runs.
cat >mixed.mdl <<'END'
model mixed(x: f32[N, 4]) -> (y: f32[4, N]) with N = 5 { return x' }
END
ok npucc mixed.mdl -o mixed.bin
ok npusim mixed.bin --input x=x10.npy
[ ! -s err ] || fail "a warning about whole runs"
ok npucc mixed.mdl -D N=3 -o mixed.bin
ok npusim mixed.bin --input x=x10.npy
has "output 'y' may count twice" err

# Rows of a file.
ok npusim two.bin --input 'x=x10.npy[3:7]' --input k=k.npy --output y=four.npy
ok npucc two.mdl --reference --input 'x=x10.npy[3:7]' --input k=k.npy --output y=yr.npy
same four.npy yr.npy
ok npusim two.bin --input 'x=y10.npy[4:]' --input k=k.npy --output six.npz
ok npusim two.bin --input 'x=six.npz:y[:1]' --input k=k.npy
bad "no rows [4:11]" npusim two.bin --input 'x=x10.npy[4:11]' --input k=k.npy
cat >product.mdl <<'END'
model product(x: f32[1, 4]) -> (y: f32[1, 8]) {
  weight w: f32[8, 4] = normal(seed = 1)
  return x @ w'
}
END
ok npucc product.mdl --calibrate 'x10.npy[2:]' -o x.bin
bad "no rows [10:]" npucc product.mdl --calibrate 'x=x10.npy[10:]' -o none.bin
absent none.bin
ok npucc product.mdl --emit program --elide-data 8 -o elided.ir
has "elided>" elided.ir
bad "print it without --elide-data" npu-opt elided.ir
misused "elide-data" npucc product.mdl --emit program --elide-data 0

# Outputs in one file, tensors chosen by name, states of files.
ok npusim two.bin --input x=x10.npy --input k=k.npy --output all.npz
ok npusim two.bin --input x=all.npz:y --input k=k.npy --output y=twice.npy
ok npusim two.bin --input x=x10.npy --input k=k.npy --report --trace trace.json
has "roofline" out
has "traceEvents" trace.json
bad "cannot write the trace '/nonexistent/t'" npusim two.bin --random 1 --output y=untraced.npy --trace /nonexistent/t
absent untraced.npy
bad "--trace './two.bin' would overwrite" npusim two.bin --random 1 --trace ./two.bin
ok npusim two.bin --random 7
has "y: f32[1,4] =" out

# An infinity is a value like any other.
cat >inf.mdl <<'END'
model inf(x: f32[4]) -> (y: f32[4]) {
  return x / 0
}
END
ok npucc inf.mdl --no-quantize -o inf.bin
ok npucc inf.mdl --reference --random 1 --output inf.npy
ok npusim inf.bin --input x=inf.npy --output still.npy
cmp inf.npy still.npy || fail "an infinity did not come through"

# ---- how commands end, beyond success, 1 and 2
cat >nine.mdl <<'END'
model nine(x: f32[1]) -> (y: s32[1]) { return cast(x * 0 + 9, s32) }
END
cat >pick.mdl <<'END'
model pick(x: f32[3], i: s32[1]) -> (y: f32[1]) { return gather(x, i) }
END
ok npucc nine.mdl --reference --random 1 --output nine.npy
ok npucc pick.mdl -o pick.bin
for mode in fast timed check; do trapped "outside 0..2" npusim pick.bin --mode $mode --random 1 --input i=nine.npy --output y=picked.npy; done
absent picked.npy
trapped "limit" npusim two.bin --random 1 --max-instructions 3
# A crash, here a signal from outside, is an internal error.
ends 70 "npucc: internal error" bash -c 'npucc - < <(sleep 2) & sleep 0.5; kill -ABRT $!; wait $!'
for tool in npucc npu-opt npu-as npu-objdump npusim; do
  ok $tool --help
  for status in "0  success" "1  an error in what was given" "2  wrong usage" "70  an internal error"; do has "  $status" out; done
done
has "   3  the simulated program" out

# ---- short names of options, values with and without =, names with = and [
for tool in npucc npu-opt npu-as npusim; do
  ok $tool -h
  has "usage: $tool" out
done
ok npu-objdump -h
has "usage: npu-objdump" out
ok npucc two.mdl --out=short.bin --verb
has "short.bin: machine edge" err
ok npucc two.mdl --outp short.bin
ok npucc two.mdl --emit=graph --pass=
misused "option '--v' is ambiguous; it could be '--verbose', '--verify-each' or '--version'" npucc two.mdl --v
misused "option '--no-quantize' takes no value" npucc two.mdl --no-q=1
misused "option '--outp' needs a value" npucc two.mdl --outp
ok npucc two.mdl --reference compiled --random 1
ok npucc two.mdl --ref=compiled --rand=1
misused "give one model" npucc two.mdl --reference exact --random 1
ok npucc two.mdl -o a=b.bin
same two.bin a=b.bin
ok npusim a=b.bin --random 1 -o ./a=b.npz -o s='s=[1].npy'
bad "no output 'a'; it has 'y', 's' (a file of this name is './a=b.npz')" npusim two.bin --random 1 -o a=b.npz
ok npucc same.mdl -o same.bin
ok npusim same.bin --input a=b.npz:y
ok npusim same.bin --input ./a=b.npz:y
ok npusim two.bin --random 2 --input 'x=a=b.npz:y' --input 'k=s=[1].npy'
ok npusim same.bin --input "./a=b.npz:y[0:1]"
bad "no input 'q'; it has x: f32[1,4], k: f32[4] (a file of this name is './q=b.npz')" npusim two.bin --input q=b.npz
ok npucc product.mdl --calibrate './a=b.npz:y' -o x.bin
ok npucc product.mdl --calibrate 'a=b.npz:y[0:1]' -o x.bin

# ---- pipelines by name
pipeline() { ok npu-opt --print-pipeline --passes="$1" && cp out pipeline; }
for level in 0 1 2; do
  ok npucc -O$level --print-pipeline
  cp out by_level
  pipeline "default{O=$level}"
  same by_level pipeline
done
has "layout,legalize,tile" pipeline
pipeline default
same by_level pipeline
ok npucc --no-quantize --print-pipeline
cp out by_level
pipeline "default{quantize=false}"
same by_level pipeline
[ "$(grep -c quantize pipeline)" = 0 ] || fail "quantize in a pipeline without it"
pipeline "dce, default{O=0},sync{}"
grep -q "^dce," pipeline || fail "what stands before default"
has "quantize,lower,legalize,tile{search=false,slots=1},plan,pipeline,sync,allocate,sync{}" pipeline
ok npucc two.mdl --passes=default -o named.bin
same two.bin named.bin
ok npucc nest.ir -o unnamed.bin
ok npucc nest.ir --passes=default -o named.bin
same unnamed.bin named.bin
ok npucc two.mdl --passes=cse,default -o named.bin
misused "its options are O=0, 1 or 2 and quantize=true or false" npucc two.mdl --passes="default{O=3}" -o x3.bin
absent x3.bin

exit $failed
