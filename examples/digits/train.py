#!/usr/bin/env python3
"""Trains the two digit classifiers of this folder and writes their weights and the test split.

    /usr/bin/python3 train.py        # Debian: apt-get install python3-sklearn

Needs numpy and, for the pictures alone, scikit-learn. Takes about a minute and gives the same files
every time. Writes mlp.safetensors, cnn.safetensors, calibration.safetensors and test.safetensors.
"""
import pathlib

import numpy as np
from sklearn.datasets import load_digits

import safetensors_numpy

HERE = pathlib.Path(__file__).parent
TEST = 360
CALIBRATION = 256


# ---- layers: forward returns (output, backward); backward turns the gradient of the output into that
# ---- of the input and stores those of the parameters in grads

def linear(p, name, x, grads):
    w, b = p[name + ".weight"], p[name + ".bias"]

    def backward(g):
        grads[name + ".weight"], grads[name + ".bias"] = g.T @ x, g.sum(0)
        return g @ w
    return x @ w.T + b, backward


def relu(x):
    return np.maximum(x, 0), lambda g: g * (x > 0)


def conv3x3(p, name, x, grads):
    """3x3 convolution, stride 1, padding 1, of [n, c, h, w], as one matrix product."""
    w, b = p[name + ".weight"], p[name + ".bias"]
    n, c, height, width = x.shape
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    taps = [padded[:, :, i:i + height, j:j + width] for i in range(3) for j in range(3)]
    columns = np.stack(taps, -1).transpose(0, 2, 3, 1, 4).reshape(n * height * width, c * 9)
    flat = w.reshape(len(w), -1)
    y = (columns @ flat.T + b).reshape(n, height, width, -1).transpose(0, 3, 1, 2)

    def backward(g):
        g = g.transpose(0, 2, 3, 1).reshape(n * height * width, -1)
        grads[name + ".weight"], grads[name + ".bias"] = (g.T @ columns).reshape(w.shape), g.sum(0)
        d = (g @ flat).reshape(n, height, width, c, 9).transpose(0, 3, 1, 2, 4)
        out = np.zeros_like(padded)
        for t in range(9):
            i, j = divmod(t, 3)
            out[:, :, i:i + height, j:j + width] += d[..., t]
        return out[:, :, 1:-1, 1:-1]
    return y, backward


def max_pool2(x):
    n, c, h, w = x.shape
    blocks = x.reshape(n, c, h // 2, 2, w // 2, 2)
    y = blocks.max((3, 5))
    hit = blocks == y[:, :, :, None, :, None]

    def backward(g):
        return (hit * g[:, :, :, None, :, None] / hit.sum((3, 5), keepdims=True)).reshape(x.shape)
    return y, backward


# ---- the two networks, as in mlp.mdl and cnn.mdl, up to the softmax

def mlp(p, x, grads):
    steps = [lambda x: linear(p, "fc1", x, grads), relu,
             lambda x: linear(p, "fc2", x, grads), relu,
             lambda x: linear(p, "fc3", x, grads)]
    return run(steps, x / 16)


def cnn(p, x, grads):
    steps = [lambda x: conv3x3(p, "conv1", x, grads), relu,
             lambda x: conv3x3(p, "conv2", x, grads), relu, max_pool2,
             lambda x: (x.reshape(len(x), -1), lambda g: g.reshape(-1, 32, 4, 4)),
             lambda x: linear(p, "fc", x, grads)]
    return run(steps, x.reshape(-1, 1, 8, 8) / 16)


def run(steps, x):
    backs = []
    for step in steps:
        x, back = step(x)
        backs.append(back)

    def backward(g):
        for back in reversed(backs):
            g = back(g)
    return x, backward


SHAPES = {
    mlp: {"fc1": (64, 64), "fc2": (32, 64), "fc3": (10, 32)},
    cnn: {"conv1": (16, 1, 3, 3), "conv2": (32, 16, 3, 3), "fc": (10, 512)},
}


# ---- training

def shifted(images, rng):
    """One picture in four moved by up to one pixel each way."""
    out = images.copy()
    for k in np.flatnonzero(rng.random(len(images)) < 0.25):
        image = images[k].reshape(8, 8)
        dy, dx = rng.integers(-1, 2, 2)
        padded = np.pad(image, 1)
        out[k] = padded[1 + dy:9 + dy, 1 + dx:9 + dx].reshape(-1)
    return out


def train(network, images, labels, epochs):
    """Adam on the cross-entropy."""
    rng = np.random.default_rng(7)
    p = {}
    for name, shape in SHAPES[network].items():
        fan_in = np.prod(shape[1:])
        p[name + ".weight"] = rng.normal(0, np.sqrt(2 / fan_in), shape)
        p[name + ".bias"] = np.zeros(shape[0])
    m = {k: np.zeros_like(v) for k, v in p.items()}
    v = {k: np.zeros_like(v) for k, v in p.items()}
    step = 0
    for epoch in range(epochs):
        rate = 0.003 * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
        moved = shifted(images, rng)
        order = rng.permutation(len(images))
        for at in range(0, len(order), 64):
            batch = order[at:at + 64]
            grads = {}
            y, backward = network(p, moved[batch], grads)
            e = np.exp(y - y.max(1, keepdims=True))
            g = e / e.sum(1, keepdims=True)
            g[np.arange(len(batch)), labels[batch]] -= 1
            backward(g / len(batch))
            step += 1
            for k in p:
                m[k] += 0.1 * (grads[k] - m[k])
                v[k] += 0.001 * (grads[k] ** 2 - v[k])
                p[k] -= rate * (m[k] / (1 - 0.9 ** step)) / (np.sqrt(v[k] / (1 - 0.999 ** step)) + 1e-8)
    return p


def main():
    digits = load_digits()
    order = np.random.default_rng(0).permutation(len(digits.data))
    images, labels = digits.data[order], digits.target[order]
    train_images, train_labels = images[TEST:], labels[TEST:]
    for network, epochs in ((mlp, 60), (cnn, 25)):
        p = train(network, train_images, train_labels, epochs)
        right = (network(p, images[:TEST], {})[0].argmax(1) == labels[:TEST]).sum()
        print(f"{network.__name__}: {right} of {TEST} test images right ({100 * right / TEST:.2f} %)")
        safetensors_numpy.save(HERE / f"{network.__name__}.safetensors",
                               {k: w.astype(np.float32) for k, w in p.items()})
    safetensors_numpy.save(HERE / "test.safetensors", {
        "image": images[:TEST].astype(np.uint8), "labels": labels[:TEST].astype(np.uint8)})
    safetensors_numpy.save(HERE / "calibration.safetensors", {
        "image": train_images[:CALIBRATION].astype(np.uint8)})


if __name__ == "__main__":
    main()
