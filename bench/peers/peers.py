"""PyTorch side of the peers' benchmark.

Reads one command per line on standard input and answers one JSON line on standard output, so that
`cargo xtask bench-peers` can take turns between PyTorch and our engine:

    about               versions and thread count
    batch S             gradient of the batch-norm CNN, default memory layout
    channels_last S     the same gradient, model and images in channels_last layout
    vmap S              per-sample clipped gradient of the group-norm CNN, vmap(grad)
    NET S               gradient of cifar-cnn or resnet-8, channels_last layout, 100 color images
    NET-vmap S          per-sample clipped gradient of them, vmap(grad)
    round S             one federated round of 15 devices, two threads
    quit

NET is `cifar-cnn` or `resnet-8`. S is the length of one measurement in seconds. Model, batch size and loss are those of `lapa bench`:
the first 400 training images of MNIST, softmax cross-entropy averaged over the batch. The argument
is the folder of MNIST's IDX files.

Run by hand:  printf 'batch 1\\nquit\\n' | python bench/peers/peers.py "$(lapa data path)/mnist"
"""

import json
import pathlib
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import torch
from torch import nn
from torch.func import functional_call, grad, vmap

BATCH = 400
COLORS = 100
DEVICES = 15
CLIP_NORM = 1.0
LEARNING_RATE = 0.1
MOMENTUM = 0.9
# What vmap is offered; the fastest depends on the machine's caches.
CHUNKS = (50, 100, 200, 400)
COLOR_CHUNKS = (10, 25, 50, 100)


def cnn(norm):
    """The paper's CNN; `norm` is the normalization module after the second convolution."""
    return nn.Sequential(
        nn.Conv2d(1, 10, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(10, 20, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        norm,
        nn.Flatten(),
        nn.Linear(320, 50),
        nn.ReLU(),
        nn.Linear(50, 10),
    )


def images(count, first):
    """`count` training images of MNIST from number `first` on, scaled to [0, 1], and labels."""
    folder = pathlib.Path(sys.argv[1])

    def read(name, header, size):
        data = (folder / name).read_bytes()[header + first * size : header + (first + count) * size]
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)

    x = read("train-images-idx3-ubyte", 16, 28 * 28).reshape(count, 1, 28, 28) / 255
    return x, read("train-labels-idx1-ubyte", 8, 1).long()


class Residual(nn.Module):
    """The sum of a body and a shortcut, which is a 1x1 convolution where the shape changes."""

    def __init__(self, width, channels, stride):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(width, channels, 3, stride, 1),
            nn.GroupNorm(8, channels),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.GroupNorm(8, channels),
        )
        same = (width, stride) == (channels, 1)
        self.shortcut = nn.Identity() if same else nn.Conv2d(width, channels, 1, stride)

    def forward(self, x):
        return self.body(x) + self.shortcut(x)


def resnet8():
    modules, width = [nn.Conv2d(3, 16, 3, padding=1), nn.GroupNorm(8, 16), nn.ReLU()], 16
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        modules += [Residual(width, channels, stride), nn.ReLU()]
        width = channels
    return nn.Sequential(*modules, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10))


def cifar_cnn():
    modules, width = [], 3
    for channels in (32, 64, 128):
        for _ in range(2):
            modules += [nn.Conv2d(width, channels, 3, padding=1), nn.Tanh()]
            width = channels
        modules.append(nn.MaxPool2d(2))
    return nn.Sequential(
        *modules, nn.Flatten(), nn.Linear(2048, 128), nn.Tanh(), nn.Linear(128, 10)
    )


NETS = {"cifar-cnn": cifar_cnn, "resnet-8": resnet8}


def colors():
    """Color images without meaning, and labels."""
    return torch.rand(COLORS, 3, 32, 32), torch.arange(COLORS) % 10


def gradient_loop(model, x, y):
    """The usual training loop up to the flat gradient."""
    loss = nn.CrossEntropyLoss()
    parameters = list(model.parameters())

    def step():
        model.zero_grad(set_to_none=True)
        loss(model(x), y).backward()
        return torch.cat([p.grad.reshape(-1) for p in parameters])

    return step


def batch():
    return gradient_loop(cnn(nn.BatchNorm2d(20)), *images(BATCH, 0))


def channels_last():
    model = cnn(nn.BatchNorm2d(20)).to(memory_format=torch.channels_last)
    x, y = images(BATCH, 0)
    return gradient_loop(model, x.to(memory_format=torch.channels_last), y)


def net(name):
    model = NETS[name]().to(memory_format=torch.channels_last)
    x, y = colors()
    return gradient_loop(model, x.to(memory_format=torch.channels_last), y)


def vmap_step(model, x, y, chunk):
    """Mean of the clipped per-sample gradients, `chunk` samples in one vmap call."""
    model = model.to(memory_format=torch.channels_last)
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    loss = nn.CrossEntropyLoss()

    def sample_loss(parameters, image, label):
        return loss(functional_call(model, parameters, (image[None],)), label[None])

    per_sample = vmap(grad(sample_loss), in_dims=(None, 0, 0))

    def step():
        total = 0.0
        for xs, ys in zip(x.split(chunk), y.split(chunk)):
            # Norms and weighted sums tensor by tensor: joining the per-sample gradients first
            # would copy chunk x 21,880 numbers.
            parts = [g.flatten(1) for g in per_sample(parameters, xs, ys).values()]
            squares = sum(torch.linalg.vector_norm(g, dim=1) ** 2 for g in parts)
            weights = torch.clamp(CLIP_NORM / squares.sqrt(), max=1.0)
            total = total + torch.cat([weights @ g for g in parts])
        return total / len(x)

    return step


def vmap_best(model, x, y, chunks):
    """The vmap loop with the chunk size that is fastest here, from a short trial of each."""
    trials = {chunk: rate(vmap_step(model, x, y, chunk), 0.5) for chunk in chunks}
    best = max(trials, key=trials.get)
    return vmap_step(model, x, y, best), {"chunk": best}


@torch.no_grad()
def load(model, weights):
    """Copies the flat `weights` into the model, whatever its memory layout."""
    parameters = list(model.parameters())
    for p, values in zip(parameters, weights.split([p.numel() for p in parameters])):
        p.copy_(values.view_as(p))


def round_step():
    """Every device's gradient from the same model, their mean, and the server's momentum step.

    Two workers share the devices, each with a model of its own and one thread inside PyTorch;
    autograd leaves the interpreter lock while it computes.
    """
    models = [cnn(nn.BatchNorm2d(20)).to(memory_format=torch.channels_last) for _ in range(2)]
    shards = []
    for device in range(DEVICES):
        x, y = images(BATCH, device * BATCH)
        shards.append((x.to(memory_format=torch.channels_last), y))
    weights = torch.cat([p.detach().reshape(-1) for p in models[0].parameters()])
    velocity = torch.zeros_like(weights)
    pool = ThreadPoolExecutor(2)

    def work(worker):
        load(models[worker], weights)
        total = torch.zeros_like(weights)
        for x, y in shards[worker::2]:
            total += gradient_loop(models[worker], x, y)()
        return total

    def step():
        first, second = pool.map(work, range(2))
        velocity.mul_(MOMENTUM).add_((first + second) / DEVICES)
        weights.sub_(velocity, alpha=LEARNING_RATE)

    return step


def rate(step, seconds):
    """Steps of `step` per second over at least `seconds`, after a warm-up."""
    for _ in range(3):
        step()
    count = 0
    start = time.perf_counter()
    while True:
        step()
        count += 1
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return count / elapsed


LOOPS = {
    "batch": lambda: (batch(), {}),
    "channels_last": lambda: (channels_last(), {}),
    "vmap": lambda: vmap_best(cnn(nn.GroupNorm(4, 20)), *images(BATCH, 0), CHUNKS),
    "round": lambda: (round_step(), {}),
    **{name: lambda name=name: (net(name), {}) for name in NETS},
    **{
        f"{name}-vmap": lambda name=name: vmap_best(NETS[name](), *colors(), COLOR_CHUNKS)
        for name in NETS
    },
}


def answer(line, ready):
    """The answer to one command; `ready` keeps the loops made so far."""
    words = line.split()
    if words == ["about"]:
        return {"torch": torch.__version__, "threads": torch.get_num_threads()}
    if len(words) != 2 or words[0] not in LOOPS:
        return {"error": f"command {line.strip()!r}; known: about, quit, {' S, '.join(LOOPS)} S"}
    mode, seconds = words[0], float(words[1])
    if mode not in ready:
        ready[mode] = LOOPS[mode]()
    step, notes = ready[mode]
    per_second = rate(step, seconds)
    if mode == "round":
        return {"mode": mode, "seconds": 1 / per_second, **notes}
    batch = COLORS if mode.startswith(tuple(NETS)) else BATCH
    return {"mode": mode, "samples_per_s": batch * per_second, **notes}


def main():
    torch.set_num_threads(1)
    torch.manual_seed(1)
    ready = {}
    for line in sys.stdin:
        if line.split() == ["quit"]:
            break
        print(json.dumps(answer(line, ready)), flush=True)


if __name__ == "__main__":
    main()
