"""LapaStrategy and lapa_client over a grid in memory."""

import random

import numpy as np
import pytest
from flwr.app import Array, ArrayRecord, Error, Message, RecordDict
from memory import CONFIG, DEVICES, federation, ledger_of, node_of

import lapa
from lapa.flower import LapaStrategy, lapa_client, records


@pytest.fixture(scope="module")
def simulated() -> np.ndarray:
    """The model of the simulator."""
    return flat(lapa.run(CONFIG).model)


def flat(model: dict) -> np.ndarray:
    return np.concatenate([np.asarray(array, dtype=np.float32).ravel() for array in model.values()])


def strategy(folder, **options) -> LapaStrategy:
    return LapaStrategy(CONFIG, folder=folder / "run", **{"min_available_nodes": DEVICES, "wait": 0.0, **options})


def releases(folder, device: int) -> int:
    return lapa.Device(CONFIG, device, ledger=ledger_of(folder, device), seeded=True).spent()["releases"]


def update_of(reply: Message, value: np.ndarray) -> Message:
    """The same reply with another update."""
    reply.content[records.ARRAYS] = ArrayRecord({records.UPDATE: Array(value)})
    return reply


def is_train(messages) -> bool:
    return messages[0].metadata.message_type == "train"


def the_round(messages) -> int:
    return int(messages[0].metadata.group_id)


def test_shuffled_and_repeated_replies_give_the_simulators_model_to_the_bit(tmp_path, simulated):
    order = random.Random(5)

    def meddle(messages, replies):
        replies = replies + [order.choice(replies)]
        order.shuffle(replies)
        return replies

    grid = federation(lapa_client(CONFIG), tmp_path, meddle=meddle)
    lapa_strategy = strategy(tmp_path)
    result = lapa_strategy.start(grid)
    assert lapa_strategy.station.parameters.tobytes() == simulated.tobytes()
    assert result.arrays["parameters"].numpy().tobytes() == simulated.tobytes()
    assert sorted(result.train_metrics_clientapp) == [1, 2, 3]
    assert [releases(tmp_path, device) for device in range(DEVICES)] == [3] * DEVICES


def test_every_device_has_a_question_of_its_own_and_nothing_but_noise_comes_back(tmp_path):
    seen = []

    def meddle(messages, replies):
        seen.extend(replies if is_train(messages) else [])
        return replies

    grid = federation(lapa_client(CONFIG), tmp_path, meddle=meddle)
    strategy(tmp_path).start(grid, num_rounds=1)
    questions = [message.content.config_records["config"] for message in grid.sent[DEVICES:]]
    assert [question["device"] for question in questions] == list(range(DEVICES))
    assert all(question["cost"] > 0.0 and question["round"] == 1 for question in questions)
    for reply in seen:
        assert set(reply.content) == {"arrays", "metrics"}
        assert set(reply.content["metrics"]) == {"device", "round", "num-examples"}


def test_a_killed_server_goes_on_where_it_was_and_nothing_is_spent_twice(tmp_path, simulated):
    class Killed(Exception):
        pass

    def meddle(messages, replies):
        if is_train(messages) and the_round(messages) == 2:
            raise Killed
        return replies

    with pytest.raises(Killed):
        strategy(tmp_path).start(federation(lapa_client(CONFIG), tmp_path, meddle=meddle))
    assert [releases(tmp_path, device) for device in range(DEVICES)] == [2] * DEVICES

    grid = federation(lapa_client(CONFIG), tmp_path)
    resumed = strategy(tmp_path)
    result = resumed.start(grid)
    assert sorted(result.train_metrics_clientapp) == [2, 3]
    assert resumed.station.parameters.tobytes() == simulated.tobytes()
    assert [releases(tmp_path, device) for device in range(DEVICES)] == [3] * DEVICES


def test_a_run_goes_on_without_a_device_that_is_away(tmp_path):
    strategy(tmp_path).start(federation(lapa_client(CONFIG), tmp_path), num_rounds=1)
    grid = federation(lapa_client(CONFIG), tmp_path)
    del grid.nodes[node_of(grid, 0)]
    resumed = strategy(tmp_path, min_available_nodes=DEVICES - 1)
    resumed.start(grid)
    assert resumed.station.round == 3
    assert [releases(tmp_path, device) for device in (0, 1)] == [1, 3]


def test_a_device_whose_node_was_started_again_is_asked_under_its_new_number(tmp_path, simulated):
    def meddle(messages, replies):
        if is_train(messages) and the_round(messages) == 1:
            app, context = grid.nodes.pop(node_of(grid, 3))
            grid.add(app, 7, **context.node_config)
        return replies

    grid = federation(lapa_client(CONFIG), tmp_path, meddle=meddle)
    moved = strategy(tmp_path)
    moved.start(grid)
    assert moved.station.parameters.tobytes() == simulated.tobytes()


def test_an_exhausted_device_refuses_and_the_run_goes_on_without_it(tmp_path, caplog):
    def before(message):
        # Another run spends what device 2 has left, behind the base station's back.
        if message.metadata.message_type == "train" and message.metadata.group_id == "2":
            device = lapa.Device(CONFIG, 2, ledger=ledger_of(tmp_path, 2), seeded=True)
            model = np.zeros(device.describe()["parameters"], dtype=np.float32)
            for round in (1, 2, 3):
                if (left := device.describe()["left"]) > 0.0:
                    device.train("another run", round, model, min(left, 1.0))

    grid = federation(lapa_client(CONFIG), tmp_path, before=before)
    exhausted = strategy(tmp_path)
    exhausted.start(grid)
    assert exhausted.station.round == 3
    assert "device 2 sent no update: refused" in caplog.text
    assert [releases(tmp_path, device) for device in (1, 2)] == [3, 3]


class Greedy(LapaStrategy):
    """Asks for a thousand times what its base station says."""

    def configure_train(self, server_round, arrays, config, grid):
        messages = super().configure_train(server_round, arrays, config, grid)
        for message in messages:
            message.content.config_records["config"]["cost"] *= 1000.0
        return messages


def test_a_greedy_server_is_refused_by_the_devices(tmp_path, caplog):
    grid = federation(lapa_client(CONFIG), tmp_path)
    greedy = Greedy(CONFIG, folder=tmp_path / "run", min_available_nodes=DEVICES, wait=0.0)
    before = None

    def remember(*_):
        nonlocal before
        before = greedy.station.parameters if before is None else before

    grid.before = lambda message: remember() if greedy.station is not None else None
    greedy.start(grid)
    assert greedy.station.parameters.tobytes() == before.tobytes()
    assert caplog.text.count("refused") >= 3 * DEVICES
    assert [releases(tmp_path, device) for device in range(DEVICES)] == [0] * DEVICES


def test_replies_that_are_no_updates_are_dropped_and_the_others_count(tmp_path, caplog):
    length = 7850

    def meddle(messages, replies):
        if not is_train(messages):
            return replies
        by_device = {reply.content["metrics"]["device"]: reply for reply in replies}
        if the_round(messages) == 1:
            update_of(by_device[0], np.full(length, np.nan, dtype=np.float32))
            update_of(by_device[1], np.full(length, 1e30, dtype=np.float32))
            update_of(by_device[2], np.zeros(length * 50, dtype=np.float32))
            update_of(by_device[3], np.zeros(length, dtype=np.float16))
        elif the_round(messages) == 2:
            by_device[0].content["metrics"]["device"] = 1
            by_device[1].content["metrics"]["round"] = 1
            del by_device[2].content["arrays"]
            by_device[3].content["arrays"]["more"] = Array(np.zeros(3, dtype=np.float32))
            unasked = Message(RecordDict(), reply_to=messages[0])
            unasked.metadata.__dict__["_src_node_id"] = 99
            replies.append(unasked)
        else:
            # Two answers that differ: neither counts, whichever came first.
            other = Message(RecordDict(dict(by_device[0].content)), reply_to=messages[0])
            other.metadata.__dict__["_src_node_id"] = by_device[0].metadata.src_node_id
            replies.append(update_of(other, np.zeros(length, dtype=np.float32)))
        return replies

    grid = federation(lapa_client(CONFIG), tmp_path, meddle=meddle)
    hostile = strategy(tmp_path)
    counted = []
    step = LapaStrategy.aggregate_train

    def counting(self, server_round, replies):
        model = self.station.parameters
        outcome = step(self, server_round, replies)
        counted.append(model.tobytes() != self.station.parameters.tobytes())
        return outcome

    hostile.aggregate_train = counting.__get__(hostile)
    hostile.start(grid)
    assert counted == [True, True, True]
    assert np.isfinite(hostile.station.parameters).all()
    for device in range(4):
        assert f"dropped the reply from device {device}" in caplog.text
    for text in ("not finite", "norm", "too many for 7850", "float16", "another request", "its arrays are"):
        assert text in caplog.text
    assert "node 99, which had no request" in caplog.text
    assert "dropped device 0: it sent two different answers" in caplog.text


def test_lost_replies_are_left_out_and_a_silent_round_ends_the_run(tmp_path, caplog):
    def meddle(messages, replies):
        if not is_train(messages):
            return replies
        return replies[:2] if the_round(messages) == 1 else []

    lost = strategy(tmp_path)
    lost.start(federation(lapa_client(CONFIG), tmp_path, meddle=meddle))
    assert lost.station.round == 1
    assert "no device answered in round 2" in caplog.text


def test_a_run_stops_when_asked_to(tmp_path):
    stopped = strategy(tmp_path)
    result = stopped.start(federation(lapa_client(CONFIG), tmp_path), stop=lambda round, metrics: round == 2)
    assert stopped.station.round == 2 and sorted(result.train_metrics_clientapp) == [1, 2]
    with pytest.raises(ValueError, match="num_rounds = 4, but budgets are planned for run.rounds = 3"):
        strategy(tmp_path / "more").start(federation(lapa_client(CONFIG), tmp_path / "more"), num_rounds=4)


def test_nodes_that_do_not_say_who_they_are_are_left_out(tmp_path, caplog):
    def meddle(messages, replies):
        if is_train(messages):
            return replies
        # Device 4 never answers, and device 3 has an error the first time.
        kept = []
        for message, reply in zip(messages, replies, strict=True):
            device = reply.content["metrics"]["device"]
            first = len(messages) > 1
            if device == 3 and first:
                kept.append(Message(Error(0, "broken"), reply_to=message))
            elif device != 4:
                kept.append(reply)
        return kept

    grid = federation(lapa_client(CONFIG), tmp_path, meddle=meddle)
    # A node that is none of ours claims to be device 1.
    grid.add(lapa_client(CONFIG), 5000, **grid.nodes[node_of(grid, 1)][1].node_config)
    few = strategy(tmp_path, min_available_nodes=4, wait=60.0)
    few.start(grid, num_rounds=1)
    assert "a node did not describe itself: broken" in caplog.text
    assert "a node did not describe itself: no reply" in caplog.text
    assert "left out a second node that claims to be device 1" in caplog.text
    assert [releases(tmp_path, device) for device in (1, 3, 4)] == [1, 1, 0]
    with pytest.raises(RuntimeError, match="0 devices after 0 s, but 5 are required"):
        strategy(tmp_path / "none").start(federation(lapa_client(CONFIG), tmp_path / "none", devices=0))


def test_a_node_needs_a_number_and_a_ledger(tmp_path, caplog):
    grid = federation(lapa_client(CONFIG), tmp_path, devices=0)
    grid.add(lapa_client(CONFIG), 1, **{"lapa-ledger": str(tmp_path / "a.db")})
    grid.add(lapa_client(CONFIG), 2, **{"partition-id": 0})
    with pytest.raises(RuntimeError, match="0 devices"):
        strategy(tmp_path, min_available_nodes=1).start(grid)
    assert "has no integer `partition-id`" in caplog.text and "has no `lapa-ledger`" in caplog.text


def test_the_owners_configuration_wins_over_the_apps(tmp_path, caplog):
    # The app, which comes from the server, wants ten times the budget.
    generous = CONFIG.replace("epsilon = 8.0", "epsilon = 80.0")
    owner = tmp_path / "owner.toml"
    owner.write_text(CONFIG)
    grid = federation(lapa_client(generous), tmp_path)
    for _, context in grid.nodes.values():
        context.node_config["lapa-config"] = str(owner)
    kept = strategy(tmp_path)
    kept.start(grid, num_rounds=1)
    assert kept.station.round == 1
    device = lapa.Device(CONFIG, 0, ledger=ledger_of(tmp_path, 0), seeded=True)
    assert device.spent()["declared"] == 8.0


def test_without_a_configuration_of_the_owners_an_app_cannot_raise_the_budget(tmp_path, caplog):
    def meet(epsilon: str, folder: str, **config) -> LapaStrategy:
        changed = CONFIG.replace("epsilon = 8.0", f"epsilon = {epsilon}")
        grid = federation(lapa_client(changed), tmp_path)
        for _, context in grid.nodes.values():
            context.node_config.update(config)
        met = LapaStrategy(changed, folder=tmp_path / folder, min_available_nodes=DEVICES, wait=0.0)
        met.start(grid, num_rounds=1)
        return met

    assert meet("8.0", "first").station.round == 1
    before = [releases(tmp_path, device) for device in range(DEVICES)]
    with pytest.raises(RuntimeError, match="0 devices"):
        meet("80.0", "raised")
    refused = "device 3 refuses: the app requests privacy.epsilon = 80, but the device's ledger allows 8"
    assert refused in caplog.text and "`lapa-config`" in caplog.text
    assert [releases(tmp_path, device) for device in range(DEVICES)] == before
    owner = tmp_path / "owner.toml"
    owner.write_text(CONFIG.replace("epsilon = 8.0", "epsilon = 80.0"))
    raised = meet("80.0", "raised", **{"lapa-config": str(owner)})
    assert raised.station.round == 1 and raised.station.summary()["epsilon_provable"] == 80.0


def test_errors_of_a_device_have_one_text(tmp_path, caplog):
    reasons = set()
    for error in (ValueError("patient 17"), lapa.DataError("patient 17"), SystemExit(4), KeyError()):

        def data(context, error=error):
            raise error

        grid = federation(lapa_client(CONFIG, data=data), tmp_path, 1)
        (node,) = grid.nodes
        for kind in ("query", "query.histogram", "train"):
            content = RecordDict({"config": records.question("run", 1, 0, 1.0)})
            (reply,) = grid.send_and_receive([Message(content, dst_node_id=node, message_type=kind)])
            reasons.add((reply.error.code, reply.error.reason))
    assert reasons == {(records.FAILED, "the device could not answer; see its own log")}
    assert "patient 17" in caplog.text


def test_simulated_nodes_keep_their_ledgers_where_the_app_says(tmp_path, simulated):
    grid = federation(lapa_client(CONFIG, ledgers=tmp_path / "ledgers", seeded=True), tmp_path)
    for _, context in grid.nodes.values():
        del context.node_config["lapa-ledger"]
    ray = strategy(tmp_path)
    ray.start(grid)
    assert ray.station.parameters.tobytes() == simulated.tobytes()
    assert len(list((tmp_path / "ledgers").glob("device-*.db"))) == DEVICES


def test_label_histograms_are_asked_for_first(tmp_path):
    config = CONFIG + '[aggregate]\nrule = "wasserstein"\n'
    expected = flat(lapa.run(config).model)
    grid = federation(lapa_client(config), tmp_path)
    rule = LapaStrategy(config, folder=tmp_path / "run", min_available_nodes=DEVICES, wait=0.0)
    rule.start(grid)
    kinds = [message.metadata.message_type for message in grid.sent[: 3 * DEVICES]]
    assert kinds == ["query"] * DEVICES + ["query.histogram"] * DEVICES + ["train"] * DEVICES
    assert rule.station.parameters.tobytes() == expected.tobytes()
