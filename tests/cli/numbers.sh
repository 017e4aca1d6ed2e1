#!/bin/bash
# What the default pipeline may round, by value: what must come out is worked out by hand.
# Usage: numbers.sh TOOLS_DIR SOURCE_DIR
# shellcheck source=tests/cli/lib.sh
. "$(dirname "$0")/lib.sh"

# values FILE.npy: its elements (f32), one to a line.
values() { tail -c +129 "$1" | od -An -v -tf4 | tr -s ' ' '\n' | grep .; }

# near_zero BOUND NAME...
near_zero() {
  local bound=$1 name got
  shift
  for name in "$@"; do
    got=$(values "$name.npy" | awk '{ x = $1 < 0 ? -$1 : $1; if (!(x <= most)) most = x } END { print most + 0 }')
    awk -v got="$got" -v bound="$bound" 'BEGIN { exit !(got <= bound) }' ||
      fail "$name: as large as $got, wanted at most $bound ($level)"
  done
}

# run MODEL "OUTPUTS" OPTIONS...: each output goes to a file of its name.
run() {
  local model=$1 name files=()
  for name in $2; do files+=(--output "$name=$name.npy"); done
  ok npucc "$model" "${@:3}" -o m.bin
  ok npusim m.bin --random 1 "${files[@]}"
}

# Every row of h holds one value 512 times, so that its variance and its distances from the mean are 0, whichever way
# they are written. h * h in bf16 would be off by up to 2^-9 of it: 0.2 where h is about 8.
cat >equal_rows.mdl <<'END'
model m(x: f32[4, 64]) -> (product: f32[4, 1], power: f32[4, 1], negated: f32[4, 1], scaled: f32[4, 1], turned: f32[1, 4],
                           centred: f32[4, 512], twice: f32[4, 1], ones: f32[4, 1], pooled: f32[1, 1, 4, 1],
                           joined: f32[4, 1], crossed: f32[4, 512], several: f32[4, 1])
{
  weight w: f32[512, 64] = ones()
  weight o: f32[512, 1] = ones()
  h = relu(x @ w')
  m = mean(h, axis = 1, keep = true)
  product = mean(h * h, axis = 1, keep = true) - m * m
  power = mean(pow(h, 2), axis = 1, keep = true) - pow(m, 2)
  negated = mean(h * h, axis = 1, keep = true) + -(m * m)
  scaled = 2 * mean((h * 0.5) * h, axis = 1, keep = true) + m * m * -1
  t = transpose(h, [1, 0])
  n = mean(t, axis = 0, keep = true)
  turned = mean(t * t, axis = 0, keep = true) - n * n
  centred = h - m
  twice = mean(centred * centred, axis = 1, keep = true)
  ones = (h * h) @ o * 0.001953125 - m * m
  i = reshape(h, [1, 1, 4, 512])
  p = avg_pool(i, [1, 512])
  pooled = avg_pool(i * i, [1, 512]) - p * p
  c = concat(h, h, axis = 1)
  k = mean(c, axis = 1, keep = true)
  joined = mean(c * c, axis = 1, keep = true) - k * k
  g = h * 0.3
  crossed = h * g - reshape(g, [4, 512]) * h
  q = h * h
  several = mean(q, axis = 1, keep = true) - reduce_max(q, axis = 1, keep = true) + (m * m - reduce_min(q, axis = 1, keep = true))
  return product, power, negated, scaled, turned, centred, twice, ones, pooled, joined, crossed, several
}
END
zeros="product power negated scaled turned centred twice ones pooled joined crossed several"
for level in -O0 -O1 -O2; do
  run equal_rows.mdl "$zeros" $level
  # shellcheck disable=SC2086
  near_zero 1e-3 $zeros
done

# Beside 1000 bf16 keeps multiples of 4; the differences from the mean are those of p.
cat >offset.mdl <<'END'
model m(x: f32[3, 64]) -> (d: f32[3, 8], e: f32[3, 8])
{
  weight w: f32[8, 64] = normal(seed = 1, std = 0.1)
  weight b: f32[8] = uniform(seed = 2, lo = 999.99999, hi = 1000.00001)
  p = x @ w'
  q = p - mean(p, axis = 1, keep = true)
  h = p + b
  d = h - mean(h, axis = 1, keep = true) - q
  k = reshape(h, [8, 3])
  e = reshape(k, [3, 8]) - 1000 - p
  return d, e
}
END
for level in -O0 -O1 -O2; do
  run offset.mdl "d e" $level
  near_zero 1e-3 d e
done

# What hints ask for: 64 * 1.001 = 64.064, where the factor 1.001 in bf16 is 1; and the square of a 64.064 that was kept
# is 4104.2, its neighbours in bf16 4096 and 4112.
cat >hints.mdl <<'END'
model m(x: f32[1, 64]) -> (exact: f32[1, 1], rounded: f32[1, 1], square: f32[1, 1], kept: f32[1, 1])
{
  weight w: f32[64, 64] = ones()
  a = x * 0 + 1.001
  @f32 h = a @ w
  exact = mean(h, axis = 1, keep = true) - 64.064
  rounded = mean(a @ w, axis = 1, keep = true) - 64
  @bf16 q = h * h
  square = mean(q, axis = 1, keep = true) - 4096
  kept = mean(h * h, axis = 1, keep = true) - 4104.1961
  return exact, rounded, square, kept
}
END
for level in -O0 -O1 -O2; do
  run hints.mdl "exact rounded square kept" $level
  near_zero 4e-3 exact rounded square kept
done

# Between the model's own dequantize and quantize nothing is rounded: the bytes of the model as it stands.
cat >integers.mdl <<'END'
model m(x: s8[1, 8, 6, 6], f: f32[4, 36]) ->
  (pool: s8[1, 8, 1, 1], gate: s8[1, 8, 6, 6], join: s8[1, 16, 6, 6], soft: s8[1, 8, 6, 6], product: s8[8, 16],
   attend: s8[36, 8], cut: s8[1, 8, 6, 6], scales: s8[1, 8, 6, 6], whole: s8[1, 8, 6, 6], also: s8[8, 36], float: f32[8, 4],
   plain: f32[1, 8, 3, 3])
{
  weight w: s8[8, 8, 1, 1] = uniform(seed = 1, lo = -9.0, hi = 9.0)
  weight wf: f32[16, 36] = normal(seed = 2, std = 0.2)
  weight wg: f32[4, 36] = normal(seed = 3, std = 0.2)
  weight ws: f32[8] = uniform(seed = 4, lo = 0.01, hi = 0.04)
  sum = conv2d(x, w)
  h = requantize(sum, multiplier = 0.02, zero_point = 3)
  d = dequantize(h, scale = 0.05, zero_point = 3)
  pool = quantize(avg_pool(d, [6, 6]), scale = 0.0004, zero_point = -7)
  gate = quantize(d * sigmoid(d) + d, scale = 0.04)
  join = quantize(concat(d, relu(d) * 0.7, axis = 1), scale = 0.03)
  soft = quantize(softmax(d, axis = 1), scale = 0.00390625, zero_point = -128)
  e = reshape(d, [8, 36])
  product = quantize(linear(e, wf), scale = 0.1)
  attend = quantize(e' @ (e @ e') * 0.02, scale = 0.5)
  cut = quantize(relu6(dequantize(sum, ws, axis = 1)), scale = 0.025)
  scales = quantize(dequantize(sum, ws, axis = 1), scale = 0.03)
  whole = cast(floor(d * 7) + d * 3, s8)
  float = linear(e, wg)
  also = quantize(e + e * 0.3, scale = 0.07)
  return pool, gate, join, soft, product, attend, cut, scales, whole, also, float, avg_pool(d, [2, 2])
}
END
exact="pool gate join soft product attend cut scales whole also plain"
for level in -O0 -O1 -O2; do
  for seed in 1 2 3; do
    awk -v seed=$seed 'BEGIN { srand(seed); for (i = 0; i < 288; i++) printf "%c", 33 + int(rand() * 94) }' >bytes
    { printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '|i1', 'fortran_order': False, 'shape': (1, 8, 6, 6), }"; cat bytes; } >x.npy
    files=()
    for name in $exact; do files+=(--output "$name=$name.npy"); done
    ok npucc integers.mdl $level -o m.bin
    ok npusim m.bin --input x=x.npy --random 1 "${files[@]}"
    for name in $exact; do mv $name.npy $name.got.npy; done
    ok npucc integers.mdl $level --no-quantize -o m.bin
    ok npusim m.bin --input x=x.npy --random 1 "${files[@]}"
    for name in $exact; do same $name.npy $name.got.npy; done
  done
done

# Integers of more digits than bf16 keeps, rounded to it inside a kernel, ties to even: 256, 260, -256 and 999424, times 3,
# plus 1.
cat >digits.mdl <<'END'
model m(x: s32[4]) -> (y: f32[4])
{
  return cast(cast(x, bf16), f32) * 3 + 1
}
END
{ printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<i4', 'fortran_order': False, 'shape': (4,), }"
  printf '\x01\x01\0\0\x03\x01\0\0\xff\xfe\xff\xff\x41\x42\x0f\0'; } >x.npy
for level in -O0 -O1 -O2; do
  ok npucc digits.mdl $level -o m.bin
  ok npusim m.bin --input x.npy --output y.npy
  got=$(values y.npy | awk '{ printf "%d ", $1 }')
  [ "$got" = "769 781 -767 2998273 " ] || fail "s32 through bf16 $level: $got"
done
exit $failed
