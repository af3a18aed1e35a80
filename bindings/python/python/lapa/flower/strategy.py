"""The base station's side: a Flower strategy around ``lapa.BaseStation``."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from flwr.app import ArrayRecord, ConfigRecord, Message, MessageType, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.serverapp.strategy import FedAvg, Result

import lapa

from . import records

log = logging.getLogger("flwr")

POLL_SECONDS = 2.0


class LapaStrategy(FedAvg):
    """Federated learning with LAPA's budgets: weights, selection, budgets per device, server momentum, ledger.

    ``config`` and ``changes`` are a configuration of lapa; its ``run.rounds`` is the number of rounds. ``folder``
    keeps the run: a strategy that finds one there goes on after its last round. The run begins when
    ``min_available_nodes`` devices have said who they are, and fails if they have not within ``wait`` seconds.

    Differs from FedAvg: it never asks the nodes to evaluate, since what they would return is not noised.

    >>> strategy = LapaStrategy("[run]\\nrounds = 3", folder="runs/flower")
    """

    def __init__(
        self,
        config,
        *,
        folder: str | Path,
        changes: list[str] | tuple[str, ...] = (),
        min_available_nodes: int = 2,
        wait: float = 120.0,
    ):
        super().__init__(min_available_nodes=min_available_nodes, min_train_nodes=1)
        self.fraction_evaluate, self.min_evaluate_nodes = 0.0, 0
        self.station: lapa.BaseStation | None = None
        self._config, self._changes = config, list(changes)
        self._folder, self._wait = Path(folder), wait
        self._layout: records.Layout | None = None
        # Node → device number, or None for a node that is left out.
        self._devices: dict[int, int | None] = {}
        self._asked: dict[int, int] = {}
        self._timeout = 3600.0

    def summary(self) -> None:
        """Logs what the strategy will do."""
        if self.station is not None:
            log.info("\t├──> Run %s in %s", self.station.run, self._folder)
            log.info("\t├──> Rounds: %d (%d done)", self.station.rounds, self.station.round)
        log.info("\t└──> Devices: at least %d", self.min_available_nodes)

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord | None = None,
        num_rounds: int | None = None,
        timeout: float = 3600.0,
        train_config: ConfigRecord | None = None,
        evaluate_config: ConfigRecord | None = None,
        evaluate_fn: Callable[[int, ArrayRecord], MetricRecord | None] | None = None,
        stop: Callable[[int, MetricRecord], bool] | None = None,
    ) -> Result:
        """Runs what is left of the run.

        ``initial_arrays`` is the first model of an app that trains by itself; without it lapa's own model is
        trained. ``num_rounds`` may end the run before ``run.rounds``, so may ``stop(round, metrics)`` by returning
        true. A round takes at most ``timeout`` seconds: who has not answered by then is left out of it. A round
        in which no device says anything ends the run; starting it again goes on with that round.
        """
        result, self._timeout = Result(), timeout
        arrays = self._begin(grid, initial_arrays)
        station = self.station
        if num_rounds is not None and num_rounds > station.rounds:
            raise ValueError(f"num_rounds = {num_rounds}, but budgets are planned for run.rounds = {station.rounds}")
        last = station.rounds if num_rounds is None else num_rounds
        log.info("Starting %s:", type(self).__name__)
        self.summary()
        result.arrays = arrays
        while station.round < last:
            round = station.round + 1
            log.info("[ROUND %d/%d]", round, last)
            messages = self.configure_train(round, arrays, train_config or ConfigRecord(), grid)
            replies = grid.send_and_receive(messages, timeout=timeout)
            stepped, metrics = self.aggregate_train(round, replies)
            if stepped is None:
                log.warning("no device answered in round %d; the run stops here and can be resumed", round)
                break
            result.arrays = arrays = stepped
            result.train_metrics_clientapp[round] = metrics
            if evaluate_fn is not None and (evaluated := evaluate_fn(round, arrays)) is not None:
                log.info("evaluated: %s", evaluated)
                result.evaluate_metrics_serverapp[round] = evaluated
            if stop is not None and stop(round, metrics):
                log.info("stopped after round %d, as requested", round)
                break
        return result

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """One question per device that takes part, each with its own cost."""
        online = set(grid.get_node_ids())
        self._meet(grid, online)
        nodes = {device: node for node, device in self._devices.items() if device is not None and node in online}
        questions = self.station.ask(sorted(nodes))
        self._asked, messages = {}, []
        for asked in questions:
            device = asked["device"]
            self._asked[nodes[device]] = device
            own = records.question(self.station.run, server_round, device, asked["cost"])
            # What the app's author sends along must not replace what the strategy asks.
            record = ConfigRecord({**config, **own})
            content = RecordDict({records.ARRAYS: arrays, records.CONFIG: record})
            messages.append(self._message(content, nodes[device], MessageType.TRAIN, str(server_round)))
        return messages

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Steps the model by the answers that count. Their order does not matter.

        Nothing where no device answered or refused: then the round is not over.
        """
        parameters = len(self.station.parameters)
        answers, twice, refused = {}, set(), 0
        for reply in replies:
            node = reply.metadata.src_node_id
            device = self._asked.get(node)
            if reply.has_error():
                log.warning("device %s sent no update: %s", "?" if device is None else device, reply.error.reason)
                refused += reply.error.code == records.REFUSED
                continue
            if device is None:
                log.warning("dropped a reply from node %d, which had no request", node)
                continue
            try:
                update = records.read_answer(reply.content, device, server_round, parameters)
            except (ValueError, TypeError) as error:
                log.warning("dropped the reply from device %d: %s", device, error)
                continue
            if device in answers and answers[device].tobytes() != update.tobytes():
                twice.add(device)
            answers[device] = update
        for device in twice:
            log.warning("dropped device %d: it sent two different answers", device)
            del answers[device]
        if not answers and not refused:
            return None, None
        record = self.station.step(answers)
        for dropped in record["dropped"]:
            log.warning("dropped the reply from device %d: %s", dropped["device"], dropped["reason"])
        counted = len(answers) - len(record["dropped"])
        log.info("\t└──> %d of %d devices answered", counted, len(self._asked))
        return self._arrays(), records.numbers(record)

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """None: what a node would say of its own records is not noised."""
        return []

    def _begin(self, grid: Grid, initial_arrays: ArrayRecord | None) -> ArrayRecord:
        """Meets the devices, and begins the run or goes on with it."""
        first = None
        if initial_arrays is not None:
            self._layout = records.Layout(initial_arrays)
            first = self._layout.flatten(initial_arrays)
        described: dict[int, dict] = {}
        deadline = time.monotonic() + self._wait
        while True:
            described |= {facts["device"]: facts for facts in self._meet(grid, set(grid.get_node_ids()))}
            if len(described) >= self.min_available_nodes:
                break
            if time.monotonic() > deadline:
                raise RuntimeError(
                    f"{len(described)} devices after {self._wait:g} s, but {self.min_available_nodes} are required"
                )
            time.sleep(POLL_SECONDS)
        # A run that goes on knows all its devices, also those that are away.
        before = self._folder / "devices.json"
        if before.exists():
            described = {facts["device"]: facts for facts in json.loads(before.read_text())} | described
        facts = [described[device] for device in sorted(described)]
        self.station = lapa.BaseStation(
            self._config, facts, changes=self._changes, folder=self._folder, initial=first
        )
        self._learn_histograms(grid)
        return self._arrays()

    def _learn_histograms(self, grid: Grid) -> None:
        """Asks for the label histograms, where the rule of aggregation goes by them."""
        questions = self.station.ask_histograms()
        if not questions:
            return
        online = set(grid.get_node_ids())
        nodes = {device: node for node, device in self._devices.items() if node in online}
        messages, asked = [], {}
        for question in questions:
            device = question["device"]
            if device in nodes:
                asked[nodes[device]] = device
                config = records.question(self.station.run, 0, device, question["cost"])
                content = RecordDict({records.CONFIG: config})
                messages.append(self._message(content, nodes[device], f"{MessageType.QUERY}.histogram", "0"))
        counts = {}
        for reply in grid.send_and_receive(messages, timeout=self._timeout):
            device = asked.get(reply.metadata.src_node_id)
            if reply.has_error() or device is None:
                log.warning("no label histogram from device %s", device)
                continue
            try:
                counts[device] = records.read_histogram(reply.content)
            except (ValueError, TypeError) as error:
                log.warning("dropped the label histogram from device %d: %s", device, error)
        for dropped in self.station.learn_histograms(counts):
            log.warning("dropped the label histogram from device %d: %s", dropped["device"], dropped["reason"])

    def _arrays(self) -> ArrayRecord:
        """The global model as it is sent."""
        flat = self.station.parameters
        return records.flat_record("parameters", flat) if self._layout is None else self._layout.record(flat)

    def _meet(self, grid: Grid, online: set[int]) -> list[dict]:
        """Asks nodes that are new who they are. Returns what those that count said."""
        new = sorted(node for node in online if node not in self._devices)
        if not new:
            return []
        # A device whose model is trained elsewhere learns its size from this.
        parameters = 0 if self._layout is None else self._layout.parameters
        hello = RecordDict({records.CONFIG: ConfigRecord({"parameters": parameters})})
        asked = [self._message(hello, node, MessageType.QUERY, "") for node in new]
        replies = {reply.metadata.src_node_id: reply for reply in grid.send_and_receive(asked, timeout=self._timeout)}
        described = []
        for node in new:
            reply = replies.get(node)
            facts = self._introduction(reply, online)
            if facts is not None:
                described.append(facts)
                self._devices[node] = facts["device"]
            elif reply is None or not reply.has_error():
                self._devices[node] = None
            # One that had an error is asked again: it may have been a passing one.
        return described

    def _introduction(self, reply: Message | None, online: set[int]) -> dict | None:
        """What a node says of itself, or nothing if it does not count."""
        if reply is None or reply.has_error():
            log.warning("a node did not describe itself: %s", "no reply" if reply is None else reply.error.reason)
            return None
        facts = dict(reply.content.metric_records.get(records.METRICS, {}))
        device = facts.get("device")
        if type(device) is not int or device < 0:
            log.warning("left out a node that claims to be device %r", device)
            return None
        # A device whose node was started again comes back as a new node, when the old one is gone.
        if any(number == device and node in online for node, number in self._devices.items()):
            log.warning("left out a second node that claims to be device %d", device)
            return None
        return facts

    def _message(self, content: RecordDict, node: int, kind: str, group: str) -> Message:
        return Message(content, dst_node_id=node, message_type=kind, ttl=self._timeout, group_id=group)
