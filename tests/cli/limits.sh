#!/bin/bash
# Shapes beyond what fits: what lies outside of a tensor costs no memory, what has to be kept and cannot is an error.
# Usage: limits.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# ---- reads far outside
# Of each window only the middle lies inside: the largest and the mean of what is there is the element itself.
cat >dilated.mdl <<'END'
model m(x: f32[1, 1, 5, 5], b: bf16[1, 1, 3, 37]) -> (y: f32[1, 1, 5, 5], z: bf16[1, 1, 3, 37], c: f32[1, 1, 5, 5])
  with N = 1000000
{
  weight k: f32[1, 1, 5, 5] = ones()
  weight w: f32[1, 1, 3, 3] = ones()
  return x + max_pool(k, 3, stride = 1, dilation = N, pad = N), max_pool(b, 3, stride = 1, dilation = N, pad = N),
         conv2d(x, w, dilation = N, pad = N)
}
END
cat >plain.mdl <<'END'
model m(x: f32[1, 1, 5, 5], b: bf16[1, 1, 3, 37]) -> (y: f32[1, 1, 5, 5], z: bf16[1, 1, 3, 37], c: f32[1, 1, 5, 5]) {
  return x + 1, b, x
}
END
ok npucc plain.mdl --no-quantize -o plain.bin
ok npusim plain.bin --random 1 --output plain.safetensors
for n in 37 1000 1000000 1073741822; do
  ok npucc dilated.mdl -D N=$n --reference --random 1 --output d.safetensors
  same d.safetensors plain.safetensors
  ok npucc dilated.mdl -D N=$n --no-quantize -o d.bin
  ok npusim d.bin --random 1 --output d.safetensors
  same d.safetensors plain.safetensors
  ok npucc dilated.mdl -D N=$n --calibrate random -o d.bin
done

# Large offsets and strides of either sign, vectors with one lane inside, an index read outside of its tensor.
cat >nests.ir <<'END'
func @f(%unused: f32[1]) -> (a: f32[20], b: f32[20], c: s8[3], d: f32[3], e: f32[4], f: f32[20]) level nest {
  %x = constant {data = data<f32[4], [1.0, 2.0, 3.0, 4.0]>} : () -> f32[4]
  %q = constant {data = data<s8[4], [1, 2, 3, 4]>} : () -> s8[4]
  %i = constant {data = data<s32[2], [1, 0]>} : () -> s32[2]
  %s = constant {value = 6.0} : () -> f32[4]
  %a = kernel %x {dims = [["i", 20]], in_maps = [(i*1000000007 - 7000000046)], out_maps = [(i)], pads = [-9.0]} : (f32[4]) -> f32[20] { ^(%v: f32):
    yield %v : (f32) -> ()
  }
  %b = kernel %x {dims = [["i", 20]], in_maps = [(3 - i*200000)], out_maps = [(i)], pads = [7.0]} : (f32[4]) -> f32[20] { ^(%v: f32):
    yield %v : (f32) -> ()
  }
  %c = kernel %q {dims = [["i", 3], ["k", 3]], in_maps = [(k*1125899906842624 - 1125899906842624 + i)], out_maps = [(i)], pads = [-100.0]} : (s8[4]) -> s8[3] { ^(%v: s8):
    %0 = cast %v {dtype = s32} : (s8) -> s32
    %1 = reduce %0 {op = "max", over = [1]} : (s32) -> s32
    %2 = cast %1 {dtype = s8} : (s32) -> s8
    yield %2 : (s8) -> ()
  }
  %d = kernel %i, %x {dims = [["k", 3]], in_maps = [(k*100000000 - 100000000), (@0)], out_maps = [(k)], pads = [2, "none"]} : (s32[2], f32[4]) -> f32[3] { ^(%j: s32, %v: f32):
    yield %v : (f32) -> ()
  }
  %e = kernel %x {dims = [["i", 4], ["k", 3]], in_maps = [(i + k*500000 - 500000)], out_maps = [(i)], pads = [0.5]} : (f32[4]) -> f32[4] { ^(%v: f32):
    %0 = reduce %v {op = "sum", over = [1]} : (f32) -> f32
    yield %0 : (f32) -> ()
  }
  %f = kernel %s {dims = [["i", 20]], in_maps = [(i*100000 - 100000)], out_maps = [(i)], pads = [1.0]} : (f32[4]) -> f32[20] { ^(%v: f32):
    yield %v : (f32) -> ()
  }
  return %a, %b, %c, %d, %e, %f : (f32[20], f32[20], s8[3], f32[3], f32[4], f32[20]) -> ()
}
END
ok npucc nests.ir --reference=compiled --passes= --random 1
cat >want <<'END'
a: f32[20] = -9 -9 -9 -9 -9 -9 -9 4 -9 -9 ...
b: f32[20] = 4 7 7 7 7 7 7 7 7 7 ...
c: s8[3] = 1 2 3
d: f32[3] = 3 2 3
e: f32[4] = 2 3 4 5
f: f32[20] = 1 6 1 1 1 1 1 1 1 1 ...
END
same out want

# ---- no memory for it
cat >big.mdl <<'END'
model m(x: f32[R, K], z: f32[K, R]) -> (y: f32[R]) with R = 1000000, K = 1 {
  return sum(x @ z, axis = 1)
}
END
echo 'model m(x: f32[1000000, 1000000]) -> (y: f32[1000000]) { return sum(x, axis = 1) }' >in.mdl
cat >out.mdl <<'END'
model m(x: f32[R, 1]) -> (y: f32[R, R]) with R = 1000000 {
  state s: f32[R, R]
  s = s + x
  return s
}
END
cat >weight.mdl <<'END'
model m(x: f32[1, K]) -> (y: f32[1, K]) with K = 92000 {
  weight w: f32[K, K] = normal()
  return x @ w
}
END
bad "big.mdl:2:14: error: the host has no memory" npucc big.mdl --reference --random 1 --output y.npy
bad "[E-memory]" npucc big.mdl -D K=1000000 --reference --random 1 --output y.npy
bad "bytes of input 'x' [E-memory]" npucc in.mdl --reference --random 1 --output y.npy
bad "[E-memory]" npucc out.mdl --reference --random 1 --output y.npy
bad "[E-dram]" npucc out.mdl -o y.npy
if [ "$(awk '/MemTotal/ { print int($2 / 1048576) }' /proc/meminfo)" -lt 31 ]; then
  bad "weight.mdl:2:10: error: there is no memory" npucc weight.mdl -o y.npy
fi
absent y.npy

# ---- imports: 64 files deep is as deep as they go
echo 'fn deepest(x) { return relu(x) }' >i64.mdl
for i in {1..63}; do echo "import \"i$((i + 1)).mdl\"" >i$i.mdl; done
printf 'import "i1.mdl"\nmodel m(x: f32[2]) -> (y: f32[2]) { return deepest(x) }\n' >imports.mdl
ok npucc imports.mdl -o i.bin
echo 'import "imports.mdl"' >further.mdl
bad "imports are nested more than 64 deep [E-limit]" npucc further.mdl -o i.bin

exit $failed
