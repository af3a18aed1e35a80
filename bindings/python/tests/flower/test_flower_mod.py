"""lapa_mod: one's own training function, made private. And the snippet of docs/deploy.md."""

import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, ConfigRecord, Error, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import ServerApp
from memory import federation, ledger_of

import lapa
from lapa.flower import LapaStrategy, lapa_mod, records

CONFIG = """
[run]
rounds = 3
[learn]
learning_rate = 1.0
momentum = 0.0
averaging = 0.0
clip_norm = 0.5
[privacy]
epsilon = 1000000.0
[transmit]
uplink = "ideal"
"""

MODEL = {"weight": np.zeros((2, 3), dtype=np.float32), "steps": np.array(4), "bias": np.ones(2)}


def first_model() -> ArrayRecord:
    return ArrayRecord({name: Array(value) for name, value in MODEL.items()})


def app_with(train, **options) -> ClientApp:
    private = lapa_mod(CONFIG, samples=50, **options)
    app = ClientApp(mods=[private])
    app.query()(private.query)
    app.train()(train)
    return app


def step_toward_one(message: Message, context) -> Message:
    """Trains: every weight moves by 0.1; and tells more than it should."""
    arrays = message.content["arrays"]
    trained = {name: array.numpy() for name, array in arrays.items()}
    trained["weight"] = trained["weight"] + np.float32(0.1)
    record = ArrayRecord({name: Array(np.asarray(value)) for name, value in trained.items()})
    loss = MetricRecord({"train_loss": 0.123, "num-examples": 50})
    return Message(RecordDict({"arrays": record, "metrics": loss}), reply_to=message)


def strategy(folder, devices=2) -> LapaStrategy:
    return LapaStrategy(CONFIG, folder=folder / "run", min_available_nodes=devices, wait=0.0)


def test_own_training_takes_a_private_step_and_tells_nothing_else(tmp_path):
    seen = []
    grid = federation(app_with(step_toward_one), tmp_path, 2, meddle=lambda _, some: seen.extend(some) or some)
    result = strategy(tmp_path).start(grid, first_model(), num_rounds=2)
    # A budget of a million is nearly no noise: two steps of 0.1.
    weight = result.arrays["weight"].numpy()
    assert weight.shape == (2, 3) and weight.dtype == np.float32
    np.testing.assert_allclose(weight, 0.2, atol=0.02)
    np.testing.assert_allclose(result.arrays["bias"].numpy(), 1.0, atol=0.02)
    assert result.arrays["bias"].numpy().dtype == np.float64
    assert result.arrays["steps"].numpy() == 4
    for reply in seen[2:]:
        assert set(reply.content["metrics"]) == {"device", "round", "num-examples"}


def test_updates_are_clipped_whatever_the_training_returns(tmp_path):
    def wild(message, context):
        arrays = message.content["arrays"]
        arrays["weight"] = Array(np.full((2, 3), 1e6, dtype=np.float32))
        return Message(RecordDict({"arrays": arrays}), reply_to=message)

    result = strategy(tmp_path).start(federation(app_with(wild), tmp_path, 2), first_model(), num_rounds=1)
    assert np.linalg.norm(result.arrays["weight"].numpy()) < 0.6


def raising(error):
    def train(message, context):
        raise error

    return train


def replying(**arrays):
    """Training that returns these array records."""

    def train(message, context):
        return Message(RecordDict({name: ArrayRecord(record) for name, record in arrays.items()}), reply_to=message)

    return train


def flipped(message, context):
    raise lapa.Refused("patient 17 has no age")


SHORT = {name: Array(value) for name, value in MODEL.items() if name != "bias"}
WRONG = {name: Array(value) for name, value in (MODEL | {"bias": np.ones(3)}).items()}
INFINITE = {name: Array(value) for name, value in (MODEL | {"bias": np.array([1.0, np.inf])}).items()}
WHOLE = {name: Array(value) for name, value in MODEL.items()}


@pytest.mark.parametrize(
    "failing",
    [
        raising(ValueError("patient 17 has no age")),
        raising(SystemExit(3)),
        raising(KeyboardInterrupt()),
        raising(GeneratorExit()),
        flipped,
        lambda message, context: None,
        lambda message, context: Message(Error(5, "patient 17 has no age"), reply_to=message),
        replying(),
        replying(first=WHOLE, second=WHOLE),
        replying(arrays=SHORT),
        replying(arrays=WRONG),
        replying(arrays=INFINITE),
    ],
)
def test_training_that_fails_is_charged_and_noise_comes_of_it(tmp_path, caplog, failing):
    replies = []
    grid = federation(app_with(failing), tmp_path, 2, meddle=lambda _, some: replies.extend(some) or some)
    failed = strategy(tmp_path)
    result = failed.start(grid, first_model(), num_rounds=1)
    assert failed.station.round == 1
    assert len(replies) == 4 and not any(reply.has_error() for reply in replies)
    # A change of zero, and a little noise.
    weight = result.arrays["weight"].numpy()
    assert (weight != 0.0).all() and np.abs(weight).max() < 0.02
    for device in range(2):
        mine = lapa.Device(CONFIG, device, ledger=ledger_of(tmp_path, device), seeded=True, samples=50, parameters=8)
        assert mine.spent()["releases"] == 1
    assert caplog.text.count("the training function failed; only noise is sent") == 2


def test_what_is_refused_is_not_trained(tmp_path):
    trained = []

    def train(message, context):
        trained.append(1)
        return step_toward_one(message, context)

    grid = federation(app_with(train), tmp_path, 1)
    (node,) = grid.nodes
    hello = RecordDict({"config": ConfigRecord({"parameters": 8})})
    (reply,) = grid.send_and_receive([Message(hello, dst_node_id=node, message_type="query")])
    left = reply.content["metrics"]["left"]

    def ask(cost: float, round: int = 1, device: int = 0) -> Message:
        config = records.question("run", round, device, cost)
        content = RecordDict({"arrays": first_model(), "config": config})
        (reply,) = grid.send_and_receive([Message(content, dst_node_id=node, message_type="train")])
        return reply

    for question in ((1000 * left,), (float("nan"),), (-1.0,), (left, 9), (left, 1, 3)):
        assert ask(*question).error.code == records.REFUSED
    assert trained == []
    assert not ask(left).has_error() and trained == [1]
    # All is spent: the same question has its answer, others are not trained for.
    assert not ask(left).has_error() and ask(left / 3, 2).error.code == records.REFUSED
    assert trained == [1]


def test_only_the_question_who_this_is_passes_the_mod(tmp_path):
    private = lapa_mod(CONFIG, samples=50)
    app, called = ClientApp(mods=[private]), []

    def tell(message, context):
        called.append(1)
        return Message(RecordDict({"metrics": MetricRecord({"records": 50.0})}), reply_to=message)

    app.query()(tell)
    app.query("peek")(tell)
    app.evaluate()(tell)
    grid = federation(app, tmp_path, 1)
    (node,) = grid.nodes
    for kind in ("query.peek", "evaluate", "query.default"):
        (reply,) = grid.send_and_receive([Message(RecordDict(), dst_node_id=node, message_type=kind)])
        assert reply.error.code == records.REFUSED and "would have no noise" in reply.error.reason
    # What it passes it answers itself, whatever the app has for it.
    hello = RecordDict({"config": ConfigRecord({"parameters": 8})})
    (reply,) = grid.send_and_receive([Message(hello, dst_node_id=node, message_type="query")])
    assert reply.content["metrics"]["samples"] == 50 and called == []


def test_a_repeated_round_is_answered_from_the_ledger_although_training_is_not_repeatable(tmp_path):
    class Killed(Exception):
        pass

    def drifting(message, context):
        arrays = message.content["arrays"]
        moved = arrays["weight"].numpy() + np.random.default_rng().random((2, 3), dtype=np.float32) * np.float32(0.1)
        arrays["weight"] = Array(moved)
        return Message(RecordDict({"arrays": arrays}), reply_to=message)

    def meddle(messages, replies):
        if messages[0].metadata.message_type == "train":
            raise Killed
        return replies

    with pytest.raises(Killed):
        strategy(tmp_path).start(federation(app_with(drifting), tmp_path, 2, meddle=meddle), first_model())
    resumed = strategy(tmp_path)
    result = resumed.start(federation(app_with(drifting), tmp_path, 2), first_model(), num_rounds=1)
    assert resumed.station.round == 1 and (result.arrays["weight"].numpy() != 0.0).all()
    for device in range(2):
        mine = lapa.Device(CONFIG, device, ledger=ledger_of(tmp_path, device), seeded=True, samples=50, parameters=8)
        assert mine.spent()["releases"] == 1


def document() -> str:
    for folder in Path(__file__).parents:
        if (folder / "docs" / "deploy.md").exists():
            return (folder / "docs" / "deploy.md").read_text()
    pytest.skip("docs/deploy.md is not beside the tests")


def snippet(name: str) -> str:
    found = re.search(rf"<!-- {re.escape(name)} -->\n```\w+\n(.*?)```", document(), re.DOTALL)
    assert found is not None, f"docs/deploy.md has no block {name}"
    return found.group(1)


def test_the_ten_lines_of_the_documentation_work(tmp_path, monkeypatch):
    blocks = {name: snippet(name) for name in ("server_app.py", "client_app.py", "lapa.toml")}
    added = [line for block in list(blocks.values())[:2] for line in block.splitlines() if line.endswith("# lapa")]
    assert 0 < len(added) <= 10

    task = types.ModuleType("my_app.task")
    task.first_model = lambda: [np.zeros((2, 3), dtype=np.float32)]
    task.fit = lambda arrays, partition: [array + np.float32(0.1) for array in arrays]
    monkeypatch.setitem(sys.modules, "my_app", types.ModuleType("my_app"))
    monkeypatch.setitem(sys.modules, "my_app.task", task)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "lapa.toml").write_text(blocks["lapa.toml"])
    client, server = {"__file__": str(tmp_path / "x.py")}, {"__file__": str(tmp_path / "x.py")}
    exec(blocks["client_app.py"], client)
    exec(blocks["server_app.py"], server)
    assert isinstance(server["app"], ServerApp)
    grid = federation(client["app"], tmp_path, 2)
    context = next(iter(grid.nodes.values()))[1]
    context.run_config.update({"num-rounds": 3})
    server["app"](grid, context)
    releases = [len(message.content.config_records) for message in grid.sent if message.metadata.group_id == "3"]
    assert releases == [1, 1]
