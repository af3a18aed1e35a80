"""The tasks of `cargo xtask bench-peers --published` as the peers see them: data, models, training.

Numbers are those of experiments/published, whose README names their sources.
"""

import json
import pathlib
import signal
import sys
import time
from typing import NamedTuple

import torch
from torch import nn

CLASSES = 10
# Seconds after which a peer that hangs ends, so that the others still run.
LONGEST = 3600


class Task(NamedTuple):
    clients: int
    per_round: int
    rounds: int
    epochs: int
    batch: int
    learning_rate: float
    evaluate_every: int
    samples: int  # of one client, in two shards of the images sorted by label
    model: str


TASKS = {
    "lr-mnist": Task(1000, 10, 100, 1, 10, 0.03, 20, 60, "logistic"),
    "cnn": Task(100, 100, 5, 5, 50, 0.1, 1, 500, "cnn"),
}


class Arguments(NamedTuple):
    """What a peer's script is called with: FOLDER TASK ROUNDS THREADS."""

    folder: pathlib.Path
    task: Task
    threads: int


def arguments():
    signal.alarm(LONGEST)
    folder, name, rounds, threads = sys.argv[1:]
    task = TASKS[name]._replace(rounds=int(rounds))
    return Arguments(pathlib.Path(folder), task, int(threads))


def build(name):
    """The models of lapa: logistic regression, or its CNN without a norm."""
    if name == "logistic":
        return nn.Sequential(nn.Flatten(), nn.Linear(784, CLASSES))
    return nn.Sequential(
        nn.Conv2d(1, 10, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Conv2d(10, 20, 5),
        nn.MaxPool2d(2),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(320, 50),
        nn.ReLU(),
        nn.Linear(50, CLASSES),
    )


def mnist(folder, part):
    """Images as bytes and labels of a part, "train" or "t10k"."""

    def read(name, header):
        data = (folder / name).read_bytes()[header:]
        return torch.frombuffer(bytearray(data), dtype=torch.uint8)

    images = read(f"{part}-images-idx3-ubyte", 16).reshape(-1, 1, 28, 28)
    return images, read(f"{part}-labels-idx1-ubyte", 8).long()


class Clients:
    """The training images, two shards of equal labels for each client."""

    def __init__(self, folder, task):
        images, labels = mnist(folder, "train")
        used = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
        used = used[: task.clients * task.samples]
        by_label = used[torch.argsort(labels[used], stable=True)]
        shards = by_label.reshape(2 * task.clients, task.samples // 2)
        dealt = torch.randperm(len(shards), generator=torch.Generator().manual_seed(1))
        self.samples = shards[dealt].reshape(task.clients, task.samples)
        self.images, self.labels = images, labels

    def data(self, client):
        """Images from 0 to 1 and labels of a client, in a new random order."""
        chosen = self.samples[client]
        chosen = chosen[torch.randperm(len(chosen))]
        return self.images[chosen] / 255, self.labels[chosen]


def train(model, x, y, task):
    """Plain SGD for some epochs, each in a new order."""
    optimizer = torch.optim.SGD(model.parameters(), lr=task.learning_rate)
    loss = nn.CrossEntropyLoss()
    for _ in range(task.epochs):
        for batch in torch.randperm(len(y)).split(task.batch):
            optimizer.zero_grad()
            loss(model(x[batch]), y[batch]).backward()
            optimizer.step()


@torch.no_grad()
def accuracy(model, folder):
    """Accuracy on the test images."""
    images, labels = mnist(folder, "t10k")
    right = sum(
        (model(x / 255).argmax(1) == y).sum().item()
        for x, y in zip(images.split(1000), labels.split(1000))
    )
    return right / len(labels)


class Progress:
    """A line on standard error at most every second."""

    def __init__(self, rounds):
        self.rounds, self.shown = rounds, 0.0

    def show(self, done):
        if time.perf_counter() - self.shown > 1 or done == self.rounds:
            self.shown = time.perf_counter()
            print(f"round {done}/{self.rounds}", file=sys.stderr, flush=True)


def answer(name, seconds, reached):
    """The result, as the last line of standard output."""
    print(json.dumps({"name": name, "seconds": seconds, "accuracy": reached}), flush=True)
