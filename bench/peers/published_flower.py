"""Flower's side of the published tasks: its simulation engine on Ray, one actor for each thread.

    python published_flower.py FOLDER TASK ROUNDS THREADS

FOLDER has MNIST's IDX files. Prints one line of JSON. The seconds are those of the strategy's
rounds. Starting Ray is not counted; Ray's actors start in the first round, which is.
"""

import importlib.metadata
import logging
import os
import pathlib
import time

# Read when Flower and Ray are imported, or by Ray's actors.
os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
os.environ["PYTHONPATH"] = str(pathlib.Path(__file__).parent)

import torch
from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

import published_tasks as tasks

FOLDER, TASK, THREADS = tasks.arguments()
client_app, server_app = ClientApp(), ServerApp()
result = {}


def clients(folder, task):
    """The clients' data, read once by each actor."""
    if not hasattr(tasks, "shared"):
        torch.set_num_threads(1)
        tasks.shared = tasks.Clients(folder, task)
    return tasks.shared


@client_app.train()
def train(message, context):
    model = tasks.build(TASK.model)
    model.load_state_dict(message.content["arrays"].to_torch_state_dict())
    x, y = clients(FOLDER, TASK).data(context.node_config["partition-id"])
    tasks.train(model, x, y, TASK)
    content = {
        "arrays": ArrayRecord(model.state_dict()),
        "metrics": MetricRecord({"num-examples": len(y)}),
    }
    return Message(content=RecordDict(content), reply_to=message)


@server_app.main()
def main(grid, context):
    model, progress = tasks.build(TASK.model), tasks.Progress(TASK.rounds)

    def evaluate(number, arrays):
        progress.show(number)
        if number == 0 or number % TASK.evaluate_every and number != TASK.rounds:
            return None
        model.load_state_dict(arrays.to_torch_state_dict())
        result["accuracy"] = tasks.accuracy(model, FOLDER)
        return MetricRecord({"accuracy": result["accuracy"]})

    strategy = FedAvg(
        fraction_train=TASK.per_round / TASK.clients,
        fraction_evaluate=0.0,
        min_available_nodes=TASK.clients,
    )
    start = time.perf_counter()
    strategy.start(
        grid, ArrayRecord(model.state_dict()), num_rounds=TASK.rounds, evaluate_fn=evaluate
    )
    result["seconds"] = time.perf_counter() - start


def name():
    version = importlib.metadata.version
    return f"Flower {version('flwr')} (Ray {version('ray')}, PyTorch {version('torch')})"


if __name__ == "__main__":
    logging.getLogger("flwr").setLevel(logging.WARNING)
    torch.manual_seed(0)
    run_simulation(
        server_app,
        client_app,
        num_supernodes=TASK.clients,
        backend_config={
            "init_args": {"num_cpus": THREADS, "include_dashboard": False},
            "client_resources": {"num_cpus": 1, "num_gpus": 0.0},
        },
    )
    tasks.answer(name(), result["seconds"], result["accuracy"])
