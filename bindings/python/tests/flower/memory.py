"""A Flower Grid in memory: the ClientApps run in this process, and a test may touch what passes."""

from __future__ import annotations

import atexit
import itertools
import shutil
import struct
import tempfile
from pathlib import Path

import numpy as np
from flwr.app import Context, Message, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

# Flower's processes set this when they start; messages are made out in its name.
TaskIdentity.run_id, TaskIdentity.node_id, TaskIdentity.task_id = 1, 1, 1



def write_images(folder: Path) -> Path:
    """A data set of noisy stripes as IDX files: read in a millisecond, the same in every process."""
    rng = np.random.default_rng(1)
    for name, count in (("train", 400), ("t10k", 50)):
        labels = np.arange(count, dtype=np.uint8) % 10
        images = rng.integers(0, 120, (count, 28, 28), dtype=np.uint8)
        for image, label in zip(images, labels, strict=True):
            image[2 * label : 2 * label + 4] += 100
        head = struct.pack(">HBBIII", 0, 8, 3, count, 28, 28)
        (folder / f"{name}-images-idx3-ubyte").write_bytes(head + images.tobytes())
        head = struct.pack(">HBBI", 0, 8, 1, count)
        (folder / f"{name}-labels-idx1-ubyte").write_bytes(head + labels.tobytes())
    return folder


DATA = write_images(Path(tempfile.mkdtemp(prefix="lapa-test-images-")))
atexit.register(shutil.rmtree, DATA, ignore_errors=True)

# Five small devices: a round takes milliseconds.
CONFIG = f"""
[run]
rounds = 3
seed = 7
evaluate_every = 3
[data]
name = "idx:{DATA}"
[model]
name = "logistic"
[partition.mix]
iid = 3
non_iid = 2
iid_samples = [40, 60]
non_iid_samples = [20, 30]
[learn]
averaging = 0.0
[privacy]
epsilon = 8.0
[transmit]
uplink = "ideal"
"""

DEVICES = 5


class MemoryGrid(Grid):
    """Nodes with random-looking numbers, as in reality.

    ``meddle(messages, replies)`` may replace the replies of a call, ``before(message)`` may act before a message
    arrives. ``sent`` keeps every message.
    """

    def __init__(self, meddle=lambda messages, replies: replies, before=lambda message: None):
        self.nodes: dict[int, tuple[ClientApp, Context]] = {}
        self.meddle, self.before = meddle, before
        self.sent: list[Message] = []
        self._ids = itertools.count(1)

    def add(self, app: ClientApp, node: int, **config) -> None:
        """Connects a node."""
        context = Context(run_id=1, node_id=node, node_config=config, state=RecordDict(), run_config={})
        self.nodes[node] = (app, context)

    def send_and_receive(self, messages, *, timeout=None):
        replies = []
        messages = list(messages)
        for message in messages:
            message.metadata.__dict__["_message_id"] = str(next(self._ids))
            self.sent.append(message)
            self.before(message)
            app, context = self.nodes[message.metadata.dst_node_id]
            replies.append(app(message, context))
        return self.meddle(messages, replies)

    def get_node_ids(self):
        return list(self.nodes)

    @property
    def run(self):
        raise NotImplementedError

    set_run = create_message = push_messages = pull_messages = lambda self, *_, **__: None


def federation(app: ClientApp, folder: Path, devices: int = DEVICES, **hooks) -> MemoryGrid:
    """Devices 0, 1, … with ledgers in the folder, at nodes in no order."""
    grid = MemoryGrid(**hooks)
    for device in range(devices):
        node = 1000 + (device * 7919) % 1000
        ledger = str(ledger_of(folder, device))
        grid.add(app, node, **{"partition-id": device, "lapa-ledger": ledger, "lapa-seeded": True})
    return grid


def ledger_of(folder: Path, device: int) -> Path:
    """The file of a device's ledger."""
    return folder / f"device-{device}" / "ledger.db"


def node_of(grid: MemoryGrid, device: int) -> int:
    """The node of a device."""
    return next(node for node, (_, context) in grid.nodes.items() if context.node_config["partition-id"] == device)
