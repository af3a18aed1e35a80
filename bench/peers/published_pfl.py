"""pfl-research's side of the published tasks: its simulated backend, one process for each thread.

    python published_pfl.py FOLDER TASK ROUNDS THREADS

FOLDER has MNIST's IDX files. Prints one line of JSON. The seconds are those of the rounds: starting
PyTorch and reading the images is not counted. Several threads inside PyTorch would slow down models
as small as these, so `torch.distributed.run` starts processes of one thread, among which pfl deals
the clients of a round.
"""

import importlib.metadata
import os
import sys
import time

import numpy
import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam.base import NNTrainHyperParams
from pfl.metrics import Metrics
from pfl.model.pytorch import PyTorchModel
from torch import nn

import published_tasks as tasks

FOLDER, TASK, THREADS = tasks.arguments()


class Classifier(nn.Module):
    """A model with the loss that pfl asks for; its accuracy is measured by `Rounds`."""

    def __init__(self):
        super().__init__()
        self.layers = tasks.build(TASK.model)
        self.cross_entropy = nn.CrossEntropyLoss()

    def forward(self, x):
        return self.layers(x)

    def loss(self, x, y, eval=False):
        return self.cross_entropy(self(x), y)

    def metrics(self, x, y, eval=False):
        return {}


class Rounds(TrainingProcessCallback):
    """Progress, and the test accuracy of every `evaluate_every`-th round and the last one."""

    def __init__(self):
        self.progress = tasks.Progress(TASK.rounds)
        self.accuracy = None

    def after_central_iteration(self, aggregate_metrics, model, *, central_iteration):
        done = central_iteration + 1
        if os.environ["RANK"] == "0":
            self.progress.show(done)
        if done % TASK.evaluate_every == 0 or done == TASK.rounds:
            self.accuracy = tasks.accuracy(model.pytorch_model, FOLDER)
        return False, Metrics()


def federated():
    """The clients as pfl draws them: all in every round, or some at random."""
    clients = tasks.Clients(FOLDER, TASK)
    everyone = TASK.per_round == TASK.clients
    sampler = get_user_sampler("minimize_reuse" if everyone else "random", range(TASK.clients))
    return FederatedDataset(lambda client: Dataset(raw_data=clients.data(client)), sampler)


def main():
    torch.set_num_threads(1)
    torch.manual_seed(0)
    numpy.random.seed(0)
    classifier = Classifier()
    central = torch.optim.SGD(classifier.parameters(), lr=1.0)
    model = PyTorchModel(classifier, torch.optim.SGD, central)
    data, rounds = federated(), Rounds()
    backend = SimulatedBackend(training_data=data, val_data=data)
    algorithm = NNAlgorithmParams(
        central_num_iterations=TASK.rounds,
        # Accuracy is measured on the test images instead of on clients.
        evaluation_frequency=TASK.rounds + 1,
        train_cohort_size=TASK.per_round,
        val_cohort_size=0,
    )
    local = NNTrainHyperParams(
        local_num_epochs=TASK.epochs,
        local_learning_rate=TASK.learning_rate,
        local_batch_size=TASK.batch,
    )
    start = time.perf_counter()
    FederatedAveraging().run(
        algorithm, backend, model, model_train_params=local, callbacks=[rounds]
    )
    seconds = time.perf_counter() - start
    if os.environ["RANK"] == "0":
        version = importlib.metadata.version
        name = f"pfl-research {version('pfl')} (PyTorch {version('torch')})"
        tasks.answer(name, seconds, rounds.accuracy)


if __name__ == "__main__":
    if "RANK" not in os.environ:
        start = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={THREADS}"]
        os.execv(sys.executable, [sys.executable, *start, *sys.argv])
    main()
