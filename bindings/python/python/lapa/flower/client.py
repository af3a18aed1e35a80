"""The device's side: a ClientApp with lapa's engine, and a mod for ClientApps of one's own.

Flower starts a process per message and keeps `Context.state` in memory only. So a device's budget lives in a
ledger, a file that its owner names in the node's configuration:

    partition-id = 3                 the device's number
    lapa-ledger = "…/ledger.db"      what was released; the budget is enforced from it
    lapa-config = "…/device.toml"    the owner's own configuration: budget, clipping norm; wins over the app's.
                                     Without it the app's counts, but no ε above the largest that the ledger has
    lapa-seeded = true               tests only: noise follows from run.seed and protects nobody
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from pathlib import Path

import numpy as np
from flwr.app import Array, ArrayRecord, Context, Error, Message, MessageType, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

import lapa

from . import records

log = logging.getLogger("flwr")


def lapa_client(
    config,
    *,
    changes: list[str] | tuple[str, ...] = (),
    data: Callable[[Context], tuple[np.ndarray, np.ndarray]] | None = None,
    ledgers: str | Path | None = None,
    seeded: bool = False,
) -> ClientApp:
    """A ClientApp that trains with lapa's engine.

    ``data(context)`` returns the device's own images (uint8, n × rows × columns) and labels (uint8); without it
    the device takes its partition of the configured data set. ``ledgers`` and ``seeded`` are for Flower's
    simulation only, whose nodes have no configuration of their own: a folder for all ledgers, and noise from
    ``run.seed``. A node that names a ledger of its own follows neither.

    >>> app = lapa_client("[run]\\nrounds = 3")
    """
    owner = _Owner(config, changes, ledgers, seeded)
    app = ClientApp()

    def device(context: Context) -> lapa.Device:
        if data is None:
            return owner.device(context)
        images, labels = data(context)
        return owner.device(context, images=images, labels=labels)

    @app.query()
    def query(message: Message, context: Context) -> Message:
        return _guarded(message, lambda: _description(device(context)))

    @app.query("histogram")
    def histogram(message: Message, context: Context) -> Message:
        def act() -> RecordDict:
            run, _, number, cost = records.read_question(message.content)
            mine = device(context)
            _same_device(mine, number)
            counts = Array(np.ascontiguousarray(mine.histogram(run, cost)))
            return RecordDict({records.ARRAYS: ArrayRecord({records.COUNTS: counts})})

        return _guarded(message, act)

    @app.train()
    def train(message: Message, context: Context) -> Message:
        def act() -> RecordDict:
            run, round, number, cost = records.read_question(message.content)
            mine = device(context)
            facts = _same_device(mine, number)
            arrays = message.content.array_records.get(records.ARRAYS, {})
            if len(arrays) != 1:
                raise ValueError(f"the request has {len(arrays)} arrays; expected one")
            parameters = next(iter(arrays.values())).numpy()
            update = mine.train(run, round, parameters, cost)
            return records.answer(update, number, round, facts["samples"])

        return _guarded(message, act)

    return app


class lapa_mod:
    """A Flower mod that makes private what one's own training function returns.

    The function gets the global model and returns its arrays after training, as in any Flower app. The mod sends
    the difference instead, clipped, charged to the device's ledger and noised (``lapa.Device.privatize``). It
    drops everything else that the function returns, such as its loss: that is not noised. For the same reason it
    refuses every other message, evaluation on the device included, but the question who this is, which it answers
    itself. It must be the first of an app's mods, so that nothing passes it by.

    The release is charged before the function is called; what would be refused is not trained. If the function
    fails in any way, the node's log says so, and the server gets an update of noise alone: an error is a sign of
    the records that no noise covers.

    ``samples`` is the number of the device's records, which is public, or a function of the context. ``changes``,
    ``ledgers`` and ``seeded`` are as in ``lapa_client``.

    >>> private = lapa_mod("[run]\\nrounds = 3", samples=600)
    >>> app = ClientApp(mods=[private])
    >>> _ = app.query()(private.query)
    """

    def __init__(
        self,
        config,
        *,
        samples: int | Callable[[Context], int],
        changes: list[str] | tuple[str, ...] = (),
        ledgers: str | Path | None = None,
        seeded: bool = False,
    ):
        self._owner = _Owner(config, changes, ledgers, seeded)
        self._samples = samples

    def _device(self, context: Context, parameters: int) -> lapa.Device:
        samples = self._samples(context) if callable(self._samples) else self._samples
        return self._owner.device(context, samples=samples, parameters=parameters)

    def query(self, message: Message, context: Context) -> Message:
        """Answers the base station's question who this is; register it with ``app.query()``, so that Flower passes
        the question on."""

        def act() -> RecordDict:
            parameters = message.content.config_records[records.CONFIG]["parameters"]
            return _description(self._device(context, parameters))

        return _guarded(message, act)

    def __call__(self, message: Message, context: Context, call_next) -> Message:
        """Flower's interface of a mod."""
        kind = message.metadata.message_type
        if kind == MessageType.QUERY:
            return self.query(message, context)
        if kind.split(".")[0] != MessageType.TRAIN:
            return _error(message, records.REFUSED, "message refused: its answer would have no noise")

        def act() -> RecordDict:
            run, round, number, cost = records.read_question(message.content)
            model = message.content.array_records[records.ARRAYS]
            layout = records.Layout(model)
            mine = self._device(context, layout.parameters)
            facts = _same_device(mine, number)
            before = layout.flatten(model)

            def train() -> np.ndarray:
                # An exit, too, would be a sign of the records.
                try:
                    return _difference(before, call_next(message, context), layout)
                except BaseException:
                    log.exception("the training function failed; only noise is sent")
                    return np.zeros_like(before)

            update = mine.privatize(run, round, train, cost)
            return records.answer(update, number, round, facts["samples"])

        return _guarded(message, act)


def _difference(before: np.ndarray, reply: Message, layout: records.Layout) -> np.ndarray:
    """What training has changed; ValueError if the reply does not say."""
    if reply.has_error():
        raise ValueError(f"the training function returned an error: {reply.error.reason}")
    trained = list(reply.content.array_records.values())
    if len(trained) != 1:
        raise ValueError(f"the training function returned {len(trained)} array records; expected one")
    update = before - layout.flatten(trained[0])
    if not np.isfinite(update).all():
        raise ValueError("the training function returned values that are not finite")
    return update


class _Owner:
    """Opens the device that a node's configuration describes."""

    def __init__(self, config, changes, ledgers, seeded: bool):
        self._config, self._changes = config, list(changes)
        self._ledgers, self._seeded = ledgers, seeded

    def device(self, context: Context, **records_of_the_device) -> lapa.Device:
        node = context.node_config
        number = node.get("partition-id")
        if type(number) is not int:
            raise lapa.ConfigError("the node configuration has no integer `partition-id`")
        # The owner's file stands alone: the app, which comes from the server, must not change it.
        config, changes = self._config, self._changes
        if "lapa-config" in node:
            config, changes = Path(str(node["lapa-config"])), []
        if "lapa-ledger" in node:
            ledger, seeded = Path(str(node["lapa-ledger"])), node.get("lapa-seeded") is True
        elif self._ledgers is not None:
            ledger, seeded = Path(self._ledgers) / f"device-{number}.db", self._seeded
        else:
            raise lapa.ConfigError("the node configuration has no `lapa-ledger`, the file with its spent budget")
        ledger.parent.mkdir(parents=True, exist_ok=True)
        device = lapa.Device(config, number, changes=changes, ledger=ledger, seeded=seeded, **records_of_the_device)
        if "lapa-ledger" in node and "lapa-config" not in node:
            _refuse_a_raised_budget(device, ledger)
        return device


def _refuse_a_raised_budget(device: lapa.Device, ledger: Path) -> None:
    """Refuses a larger ε than the device ever had, which its owner has not asked for: the app's does not count."""
    facts = device.describe()
    known = [declared["epsilon"] for declared in lapa.Ledger(ledger, read_only=True).declarations()]
    if known and facts["epsilon"] > max(known):
        raise lapa.Refused(
            f"device {facts['device']} refuses: the app requests privacy.epsilon = {facts['epsilon']:g}, but the "
            f"device's ledger allows {max(known):g}. Its owner may raise that in a configuration file that the "
            "node names as `lapa-config`"
        )


def _description(device: lapa.Device) -> RecordDict:
    return RecordDict({records.METRICS: MetricRecord(device.describe())})


def _same_device(device: lapa.Device, number: int) -> dict:
    facts = device.describe()
    if facts["device"] != number:
        raise lapa.Refused(f"the request is for device {number}, but this is device {facts['device']}")
    return facts


def _guarded(message: Message, act: Callable[[], RecordDict]) -> Message:
    """The answer, or an error. What went wrong stays in the device's own log: it may tell of its records, as may the
    kind of an exception, and an exit. So there is one text for all of them."""
    try:
        return Message(act(), reply_to=message)
    except lapa.Refused as refusal:
        log.warning("refused: %s", refusal)
        return _error(message, records.REFUSED, f"refused: {refusal}")
    except BaseException:
        log.exception("cannot answer")
        return _error(message, records.FAILED, "the device could not answer; see its own log")


def _error(message: Message, code: int, reason: str) -> Message:
    return Message(Error(code=code, reason=reason), reply_to=message)
