#!/usr/bin/env python3
"""Writes the weight files of the frontend tests; needs nothing but Python."""
import io, json, struct, zipfile

def safetensors(path, tensors):
    header, data = {}, b""
    for name, (dtype, shape, raw) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    open(path, "wb").write(struct.pack("<Q", len(text)) + text + data)

def npy(descr, shape, raw):
    head = "{'descr': '%s', 'fortran_order': False, 'shape': %s, }" % (descr, repr(tuple(shape)))
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + raw

def f32(*v): return struct.pack("<%df" % len(v), *v)

safetensors("small.safetensors", {
    "fc1.weight": ("F32", [3, 4], f32(*range(12))),
    "fc1.bias": ("F32", [3], f32(1, 2, 3)),
    "layers.0.weight": ("F32", [2, 2], f32(1, 0, 0, 1)),
    "layers.1.weight": ("F32", [2, 2], f32(2, 0, 0, 2)),
    "half": ("F16", [2], struct.pack("<2e", 1.5, -2.0)),
    "double": ("F64", [2], struct.pack("<2d", 0.1, 3.0)),
    "long": ("I64", [2], struct.pack("<2q", 7, -9)),
    "byte": ("U8", [2], bytes([200, 3])),
    "brain": ("BF16", [2], struct.pack("<2H", 0x3f80, 0xc000)),
    "tiny": ("I8", [2], struct.pack("<2b", -5, 6)),
})
nan, inf = float("nan"), float("inf")
safetensors("bad.safetensors", {
    "nan": ("F32", [2, 3], f32(0, 1, 2, 3, nan, inf)),
    "inf": ("F32", [2], f32(inf, 0)),
    "brain": ("BF16", [3], struct.pack("<3H", 0, 0, 0xff80)),
    "half": ("F16", [1], struct.pack("<e", inf)),
    "both": ("F32", [3], f32(-inf, 0, nan)),
    "both16": ("BF16", [3], struct.pack("<3H", 0x7f80, 0, 0xffc0)),
    "double": ("F64", [2], struct.pack("<2d", 1, -inf)),
    "long": ("I64", [2], struct.pack("<2q", 1, 1 << 40)),
    "eight": ("F8_E4M3", [2], bytes([0x38, 0x40])),
})
safetensors("limits.safetensors", {
    "fits": ("I64", [2], struct.pack("<2q", -1 << 31, (1 << 31) - 1)),
    "below": ("I64", [2], struct.pack("<2q", 0, (-1 << 31) - 1)),
    "above": ("I64", [1, 2], struct.pack("<2q", 0, 1 << 31)),
    "unsigned": ("U8", [2], bytes([0, 255])),
    "short": ("I16", [2], struct.pack("<2h", -1 << 15, (1 << 15) - 1)),
    "largest": ("F64", [2], struct.pack("<2d", 3.4028234663852886e38, -3.4028234663852886e38)),
    "too large": ("F64", [1], struct.pack("<d", 3.5e38)),
})
open("bias.npy", "wb").write(npy("<f4", [3], f32(4, 5, 6)))
with zipfile.ZipFile("extra.npz", "w", zipfile.ZIP_DEFLATED) as z:
    z.writestr("scale.npy", npy("<f4", [4], f32(1, 1, 1, 1)))
open("broken.safetensors", "wb").write(struct.pack("<Q", 1 << 40) + b"{}")

def ramp(*shape):
    n = 1
    for d in shape: n *= d
    return ("F32", list(shape), f32(*[((i * 7 + n) % 13 - 6) / 8 for i in range(n)]))

D, L, H, G, F, V = 8, 2, 4, 2, 12, 5
llama = {"tok_embeddings.weight": ramp(V, D), "norm.weight": ramp(D), "output.weight": ramp(V, D)}
for l in range(L):
    p = "layers.%d." % l
    llama.update({p + "attention_norm.weight": ramp(D), p + "ffn_norm.weight": ramp(D),
                  p + "attention.wq.weight": ramp(D, D), p + "attention.wo.weight": ramp(D, D),
                  p + "attention.wk.weight": ramp(D * G // H, D), p + "attention.wv.weight": ramp(D * G // H, D),
                  p + "feed_forward.w1.weight": ramp(F, D), p + "feed_forward.w3.weight": ramp(F, D),
                  p + "feed_forward.w2.weight": ramp(D, F)})
safetensors("tiny_llama.safetensors", llama)
