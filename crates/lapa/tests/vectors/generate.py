"""Writes the JSON vectors of this folder: gradients by PyTorch, to test our own engine against.

    python -m venv venv && venv/bin/pip install torch==2.15.0 numpy==2.4.6
    venv/bin/python crates/lapa/tests/vectors/generate.py

Every input and parameter is an exact 32-bit float; every result is computed from them in 64-bit
arithmetic, so it is the true value to all the digits written. There is no random generator: two
runs of the same versions write the same bytes. README.md describes the files.
"""

import json
import math
import pathlib

import numpy
import torch
from torch import nn
from torch.func import functional_call, grad, vmap
from torch.nn import functional as F

HERE = pathlib.Path(__file__).parent
VERSIONS = {"torch": torch.__version__.split("+")[0], "numpy": numpy.__version__}
IMAGE_SEED = 1_000_000


def unit(start, count):
    """`count` numbers k/2^20 in [0, 1): a 32-bit integer hash of start, start + 1, …"""
    h = numpy.arange(start, start + count, dtype=numpy.uint32)
    h = h * numpy.uint32(2654435761)
    h = h ^ (h >> numpy.uint32(15))
    h = h * numpy.uint32(2246822519)
    h = h ^ (h >> numpy.uint32(13))
    return torch.from_numpy((h >> numpy.uint32(12)).astype(numpy.float64) / 2**20)


def spread(shape, start, scale, shift=0.0):
    """A tensor of shift + scale * (unit - 1/2); exact in 32 bits for the scales used here."""
    values = shift + scale * (unit(start, math.prod(shape)) - 0.5)
    assert torch.equal(values.float().double(), values)
    return values.reshape(shape)


def images(count):
    """28x28 images, zero at the border and in about a quarter of the middle; labels in turn.

    Pixels are bytes, scaled to [0, 1] by a 32-bit product with 1/255."""
    u = unit(IMAGE_SEED, count * 784).reshape(count, 1, 28, 28)
    scaled = (torch.floor(256 * u).float() * torch.tensor(1 / 255, dtype=torch.float32)).double()
    middle = torch.zeros(28, 28, dtype=torch.bool)
    middle[5:23, 5:23] = True
    return torch.where(middle & (u >= 0.25), scaled, 0.0), (3 * torch.arange(count) + 1) % 10


def number(x):
    """Nine significant digits: enough to give back a 32-bit float."""
    x = float(f"{float(x):.9g}")
    return int(x) if x == int(x) and abs(x) < 1e9 else x


def numbers(tensor):
    return [number(x) for x in tensor.detach().reshape(-1).tolist()]


def tensor(t):
    return {"shape": list(t.shape), "data": numbers(t)}


def write(name, content):
    text = json.dumps({"versions": VERSIONS, **content}, separators=(",", ":"))
    # One case to a line, so that a change shows up as a few lines.
    text = text.replace('},{"name"', '},\n{"name"').replace('":[{"name"', '":[\n{"name"')
    (HERE / name).write_text(text + "\n")
    print(f"{name}: {len(text):,} bytes")


# Single layers


def layer(name, function, x, upstream_start, params=(), **settings):
    """One layer: output, and the gradients of sum(output * upstream)."""
    x = x.clone().requires_grad_()
    params = {key: p.clone().requires_grad_() for key, p in params}
    y = function(x, *params.values())
    upstream = spread(y.shape, upstream_start, 2.0)
    grads = torch.autograd.grad(y, [x, *params.values()], upstream)
    return {
        "name": name,
        **settings,
        "input": tensor(x),
        "params": {key: tensor(p) for key, p in params.items()},
        "output": tensor(y),
        "upstream": tensor(upstream),
        "d_input": tensor(grads[0]),
        "d_params": {key: tensor(g) for key, g in zip(params, grads[1:])},
    }


def conv(name, batch, cin, cout, size, k, start):
    params = [
        ("weight", spread((cout, cin, k, k), start + 5000, 1.0)),
        ("bias", spread((cout,), start + 7000, 1.0)),
    ]
    x = spread((batch, cin, *size), start, 2.0)
    return layer(name, F.conv2d, x, start + 9000, params, kernel=k)


def norm(name, function, x, start, **settings):
    channels = x.shape[1]
    params = [
        ("weight", spread((channels,), start + 5000, 1.0, 1.0)),
        ("bias", spread((channels,), start + 7000, 1.0)),
    ]
    return layer(name, function, x, start + 9000, params, eps=1e-5, **settings)


def tied(shape, start):
    """Values in quarters, -1/2 to 1/4, so that equal maxima are frequent; some are exact zeros."""
    return torch.floor(spread(shape, start, 1.0) * 4) / 4


def cross_entropy(name, logits, labels):
    logits = logits.clone().requires_grad_()
    loss = F.cross_entropy(logits, labels)
    (d_input,) = torch.autograd.grad(loss, logits)
    return {
        "name": name,
        "input": tensor(logits),
        "labels": labels.tolist(),
        "loss": number(loss.item()),
        "d_input": tensor(d_input),
    }


def layers():
    def batch_norm(x, weight, bias):
        return F.batch_norm(x, None, None, weight, bias, training=True, eps=1e-5)

    def group_norm(x, weight, bias):
        return F.group_norm(x, 4, weight, bias, eps=1e-5)

    def max_pool(x):
        return F.max_pool2d(x, 2)

    linear = [
        ("weight", spread((5, 7), 215_000, 1.0)),
        ("bias", spread((5,), 217_000, 1.0)),
    ]
    return {
        "conv": [
            conv("k5_cin1", 2, 1, 3, (9, 9), 5, 10_000),
            conv("k5_cin2", 2, 2, 3, (7, 8), 5, 30_000),
            conv("k3_cin3", 2, 3, 4, (6, 5), 3, 50_000),
            conv("k3_cin1", 3, 1, 2, (4, 6), 3, 70_000),
        ],
        "max_pool": [
            layer("distinct", max_pool, spread((2, 3, 4, 6), 90_000, 2.0), 99_000),
            layer("ties", max_pool, tied((2, 2, 6, 6), 110_000), 119_000),
            layer("odd_ties", max_pool, tied((2, 2, 5, 7), 130_000), 139_000),
            layer("all_equal", max_pool, torch.zeros(1, 1, 4, 4).double(), 149_000),
        ],
        "relu": [layer("with_zeros", F.relu, tied((3, 8), 150_000), 159_000)],
        "tanh": [layer("wide", torch.tanh, spread((3, 8), 170_000, 8.0), 179_000)],
        "batch_norm": [
            norm("maps", batch_norm, spread((4, 3, 3, 4), 180_000, 2.0, 0.5), 180_000),
            norm("one_pixel", batch_norm, spread((6, 2, 1, 1), 190_000, 2.0), 190_000),
        ],
        "group_norm": [
            norm("maps", group_norm, spread((3, 8, 3, 2), 200_000, 2.0, 0.5), 200_000, groups=4),
            norm("one_map_each", group_norm, spread((2, 4, 3, 3), 205_000, 2.0), 205_000, groups=4),
        ],
        "linear": [layer("small", F.linear, spread((4, 7), 210_000, 2.0), 219_000, linear)],
        "cross_entropy": [
            cross_entropy("mild", spread((4, 10), 220_000, 4.0), torch.tensor([3, 0, 9, 3])),
            # Needs the largest logit subtracted before exp.
            cross_entropy("large", spread((3, 10), 230_000, 512.0), torch.tensor([1, 1, 7])),
        ],
    }


def configured(layer_of_toml, x, start, shapes=(), function=None):
    """One layer as a configuration has it; all its parameters are one flat vector `weight`."""
    sizes = [math.prod(shape) for shape in shapes]

    def whole(x, weight=None):
        parts = weight.split(sizes) if sizes else []
        return function(x, *(part.view(shape) for part, shape in zip(parts, shapes)))

    params = [("weight", spread((sum(sizes),), start + 5000, 1.0))] if sizes else []
    name = "_".join(f"{k}{v}" for k, v in layer_of_toml.items() if isinstance(v, int)) or "plain"
    return layer(name, whole, x, start + 9000, params, layer=layer_of_toml)


def configured_layers():
    def conv(x_shape, start, channels, kernel, stride=1, padding=0, standardized=False):
        def function(x, weight, bias):
            if standardized:
                weight = F.layer_norm(weight, weight.shape[1:], eps=1e-5)
            return F.conv2d(x, weight, bias, stride, padding)

        toml = {"type": "conv", "channels": channels, "kernel": kernel, "stride": stride}
        toml |= {"padding": padding, "standardized": standardized}
        shapes = [(channels, x_shape[1], kernel, kernel), (channels,)]
        return configured(toml, spread(x_shape, start, 2.0), start, shapes, function)

    def pool(kind, function, x, start, kernel, stride):
        toml = {"type": kind, "kernel": kernel, "stride": stride}
        return configured(toml, x, start, function=lambda x: function(x, kernel, stride))

    def identity_block(x, w1, b1, gamma, beta, w2, b2):
        y = F.group_norm(F.conv2d(x, w1, b1, padding=1), 2, gamma, beta)
        return x + F.conv2d(torch.tanh(y), w2, b2, padding=1)

    def strided_block(x, w1, b1, w2, b2, w3, b3):
        y = F.gelu(F.conv2d(x, w1, b1, 2, 1))
        return F.conv2d(x, w3, b3, 2) + F.conv2d(y, w2, b2, padding=1)

    def batch_norm_block(x, w1, b1, gamma, beta):
        return x + F.batch_norm(F.conv2d(x, w1, b1), None, None, gamma, beta, training=True)

    def toml(channels, **more):
        return {"type": "conv", "channels": channels, "kernel": 3, "padding": 1, **more}

    identity = [toml(4), {"type": "group-norm", "groups": 2}, {"type": "tanh"}, toml(4)]
    strided = [toml(5, stride=2), {"type": "gelu"}, toml(5)]
    pointwise = [{"type": "conv", "channels": 3, "kernel": 1}, {"type": "batch-norm"}]

    def residual(layers, x, start, shapes, function):
        return configured({"type": "residual", "layers": layers}, x, start, shapes, function)

    return [
        conv((2, 3, 5, 6), 400_000, 4, 3, padding=1),
        conv((2, 2, 7, 5), 410_000, 3, 3, stride=2, padding=1),
        conv((2, 2, 9, 8), 420_000, 3, 4, stride=3, padding=2),
        conv((2, 5, 4, 3), 430_000, 6, 1),
        conv((2, 2, 3, 3), 440_000, 2, 5, padding=2),
        conv((2, 3, 6, 5), 450_000, 4, 3, padding=1, standardized=True),
        conv((3, 3, 7, 7), 460_000, 2, 3, stride=2, standardized=True),
        # One row, and an odd number of channels.
        conv((1, 2, 1, 19), 470_000, 5, 3, padding=1),
        pool("max-pool", F.max_pool2d, tied((2, 2, 7, 8), 480_000), 480_000, 3, 2),
        pool("max-pool", F.max_pool2d, spread((2, 2, 5, 5), 490_000, 2.0), 490_000, 2, 1),
        pool("max-pool", F.max_pool2d, spread((1, 2, 7, 7), 495_000, 2.0), 495_000, 2, 3),
        pool("average-pool", F.avg_pool2d, spread((2, 2, 7, 8), 500_000, 2.0), 500_000, 3, 2),
        pool("average-pool", F.avg_pool2d, spread((2, 2, 5, 4), 510_000, 2.0), 510_000, 2, 2),
        configured(
            {"type": "global-average-pool"},
            spread((2, 3, 3, 5), 520_000, 2.0),
            520_000,
            function=lambda x: F.adaptive_avg_pool2d(x, 1),
        ),
        configured({"type": "gelu"}, spread((3, 8), 530_000, 16.0), 530_000, function=F.gelu),
        residual(
            identity,
            spread((2, 4, 4, 5), 540_000, 2.0),
            540_000,
            [(4, 4, 3, 3), (4,), (4,), (4,), (4, 4, 3, 3), (4,)],
            identity_block,
        ),
        residual(
            strided,
            spread((2, 3, 7, 6), 560_000, 2.0),
            560_000,
            [(5, 3, 3, 3), (5,), (5, 5, 3, 3), (5,), (5, 3, 1, 1), (5,)],
            strided_block,
        ),
        residual(
            pointwise,
            spread((3, 3, 3, 4), 580_000, 2.0),
            580_000,
            [(3, 3, 1, 1), (3,), (3,), (3,)],
            batch_norm_block,
        ),
    ]


# Whole models


def cnn_tanh():
    modules = cnn([nn.GroupNorm(4, 20)])
    return nn.Sequential(*(nn.Tanh() if isinstance(m, nn.ReLU) else m for m in modules))


def cifar_cnn():
    modules, width = [], 1
    for channels in (32, 64, 128):
        for _ in range(2):
            modules += [nn.Conv2d(width, channels, 3, padding=1), nn.Tanh()]
            width = channels
        modules.append(nn.MaxPool2d(2))
    head = [nn.Flatten(), nn.Linear(1152, 128), nn.Tanh(), nn.Linear(128, 10)]
    return nn.Sequential(*modules, *head)


class Residual(nn.Module):
    """The sum of a body and a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, body, width, channels, stride):
        super().__init__()
        self.body = nn.Sequential(*body)
        same = (width, stride) == (channels, 1)
        self.shortcut = nn.Identity() if same else nn.Conv2d(width, channels, 1, stride)

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


def resnet8():
    modules, width = [nn.Conv2d(1, 16, 3, padding=1), nn.GroupNorm(8, 16), nn.ReLU()], 16
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        body = [nn.Conv2d(width, channels, 3, stride, 1), nn.GroupNorm(8, channels), nn.ReLU()]
        body += [nn.Conv2d(channels, channels, 3, padding=1), nn.GroupNorm(8, channels)]
        modules += [Residual(body, width, channels, stride), nn.ReLU()]
        width = channels
    return nn.Sequential(*modules, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def cnn(middle):
    return nn.Sequential(
        nn.Conv2d(1, 10, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(10, 20, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        *middle,
        nn.Flatten(),
        nn.Linear(320, 50),
        nn.ReLU(),
        nn.Linear(50, 10),
    )


def fill(model):
    """Sets every parameter by the formula and returns what README.md calls `tensors`."""
    model.double()
    tensors, first = [], 0
    for name, p in model.named_parameters():
        module = model.get_submodule(name.rpartition(".")[0])
        is_norm = isinstance(module, (nn.BatchNorm2d, nn.GroupNorm))
        shift = 1.0 if is_norm and name.endswith("weight") else 0.0
        # About twice the deviation that keeps the size of the activations, as a power of two.
        fan_in = 16 if is_norm else module.weight[0].numel()
        scale = 2.0 ** round(math.log2(4.0 / math.sqrt(fan_in)))
        with torch.no_grad():
            p.copy_(spread(p.shape, first, scale, shift))
        kind = type(module).__name__
        tensors.append({"name": f"{kind}.{name}", "shape": list(p.shape), "first": first})
        tensors[-1] |= {"scale": number(scale), "shift": number(shift)}
        first += p.numel()
    return tensors


def flat(tensors):
    return torch.cat([t.detach().reshape(-1) for t in tensors])


def described(gradient, tensors, stride):
    """A gradient as README.md describes it: every stride-th entry, and sums over the rest."""
    parts = []
    for t in tensors:
        part = gradient[t["first"] : t["first"] + math.prod(t["shape"])]
        # A sum that is zero but for rounding is written as zero.
        total = part.sum().item() if part.sum().abs() > 1e-12 * part.norm() else 0.0
        parts.append({"name": t["name"], "sum": number(total), "norm": number(part.norm())})
    return {
        "stride": stride,
        "data": numbers(gradient[::stride]),
        "norm": number(gradient.norm()),
        "tensors": parts,
    }


def batch_gradient(model, x, y):
    logits = model(x)
    loss = F.cross_entropy(logits, y)
    return logits, loss, flat(torch.autograd.grad(loss, list(model.parameters())))


def check_single_precision(model, x, y, gradient):
    """No sign or maximum may hang on rounding, or the vector would test luck."""
    single = batch_gradient(model.float(), x.float(), y)[2].double()
    model.double()
    error = ((single - gradient).norm() / gradient.norm()).item()
    assert error < 5e-6, f"32-bit gradient is off by {error}"


def problem(model, tensors, x, y):
    values = flat(model.parameters())
    return {
        "parameters": values.numel(),
        "tensors": tensors,
        "parameters_start": numbers(values[:8]),
        "batch": len(y),
        "image_seed": IMAGE_SEED,
        # Row 14 of the first image: the border ends and begins in it.
        "image_row_14": numbers(x[0, 0, 14]),
        "labels": y.tolist(),
    }


def whole(model, batch, stride):
    tensors = fill(model)
    x, y = images(batch)
    logits, loss, gradient = batch_gradient(model, x, y)
    check_single_precision(model, x, y, gradient)
    return {
        **problem(model, tensors, x, y),
        "logits": tensor(logits),
        "loss": number(loss.item()),
        "gradient": described(gradient, tensors, stride),
    }


def per_sample(model, batch, stride):
    """The mean of a model's per-sample gradients, each clipped to norm C."""
    tensors = fill(model)
    x, y = images(batch)
    parameters = {name: p.detach() for name, p in model.named_parameters()}

    def loss(parameters, image, label):
        return F.cross_entropy(functional_call(model, parameters, (image[None],)), label[None])

    grads = vmap(grad(loss), in_dims=(None, 0, 0))(parameters, x, y)
    grads = torch.cat([g.reshape(batch, -1) for g in grads.values()], 1)
    # The slow way, one sample at a time, must agree.
    for i in range(batch):
        alone = batch_gradient(model, x[i : i + 1], y[i : i + 1])[2]
        assert torch.allclose(alone, grads[i], rtol=1e-10, atol=1e-12)
    norms = grads.norm(dim=1)
    # Between the two middle norms: half the samples are clipped, none is on the edge.
    ordered = norms.sort().values
    clip = number(torch.round((ordered[batch // 2 - 1] + ordered[batch // 2]) * 32) / 64)
    clipped = (grads * torch.clamp(clip / norms, max=1.0)[:, None]).mean(0)
    return {
        **problem(model, tensors, x, y),
        "clip_norm": clip,
        "sample_norms": numbers(norms),
        "gradient": described(clipped, tensors, stride),
    }


def momentum():
    """torch.optim.SGD on five given gradients: v = m v + g; w = w - lr v."""
    w = nn.Parameter(spread((6,), 300_000, 2.0))
    lr, m = 0.125, 0.75
    start = tensor(w)
    optimizer = torch.optim.SGD([w], lr=lr, momentum=m)
    steps = []
    for step in range(5):
        w.grad = spread((6,), 310_000 + 100 * step, 2.0)
        gradient = numbers(w.grad)
        optimizer.step()
        velocity = numbers(optimizer.state[w]["momentum_buffer"])
        steps.append({"gradient": gradient, "velocity": velocity, "weights": numbers(w)})
    return {"learning_rate": lr, "momentum": m, "start": start["data"], "steps": steps}


def main():
    torch.set_num_threads(1)
    write("layers.json", layers())
    write("cnn_batch.json", whole(cnn([nn.BatchNorm2d(20)]), 6, 1))
    write("cnn_group.json", whole(cnn([nn.GroupNorm(4, 20)]), 6, 1))
    write("cnn_none.json", whole(cnn([]), 6, 7))
    hidden = [nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10)]
    write("mlp.json", whole(nn.Sequential(*hidden), 6, 7))
    write("logistic.json", whole(nn.Sequential(nn.Flatten(), nn.Linear(784, 10)), 6, 7))
    write("cnn_per_sample.json", per_sample(cnn([nn.GroupNorm(4, 20)]), 8, 7))
    write("momentum.json", momentum())
    write("configured_layers.json", {"cases": configured_layers()})
    write("cnn_tanh.json", whole(cnn_tanh(), 6, 13))
    write("cifar_cnn.json", whole(cifar_cnn(), 3, 499))
    write("resnet8.json", whole(resnet8(), 4, 67))
    write("resnet8_per_sample.json", per_sample(resnet8(), 4, 67))
    write("cifar_cnn_per_sample.json", per_sample(cifar_cnn(), 4, 499))


if __name__ == "__main__":
    main()
