"""What travels between base station and devices, as Flower records."""

from __future__ import annotations

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, MetricRecord, RecordDict

ARRAYS = "arrays"
CONFIG = "config"
METRICS = "metrics"
UPDATE = "update"
COUNTS = "counts"

MOST_CLASSES = 256

# The codes of the errors with which a device refuses or fails; Flower's own codes are small.
REFUSED = 1000
FAILED = 1001


class Layout:
    """How a model's arrays lie in a flat vector: floating-point arrays, in the order of their names' record."""

    def __init__(self, arrays: ArrayRecord):
        self._arrays = arrays
        values = {name: array.numpy() for name, array in arrays.items()}
        # Counters and the like (whole numbers) are no parameters: they travel as they are.
        self._floats = {name: value for name, value in values.items() if np.issubdtype(value.dtype, np.floating)}
        self.parameters = sum(value.size for value in self._floats.values())

    def flatten(self, arrays: ArrayRecord) -> np.ndarray:
        """The parameters of a record with this layout; ValueError if it has another."""
        parts = []
        for name, like in self._floats.items():
            if name not in arrays:
                raise ValueError(f"no array `{name}`")
            value = arrays[name].numpy()
            if value.shape != like.shape:
                raise ValueError(f"array `{name}` has shape {value.shape}; expected {like.shape}")
            parts.append(np.asarray(value, dtype=np.float32).ravel())
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.float32)

    def record(self, flat: np.ndarray) -> ArrayRecord:
        """A record of this layout with these parameters."""
        arrays, start = ArrayRecord(), 0
        for name, array in self._arrays.items():
            like = self._floats.get(name)
            if like is None:
                arrays[name] = array
                continue
            part = flat[start : start + like.size]
            arrays[name] = Array(np.ascontiguousarray(part.reshape(like.shape).astype(like.dtype)))
            start += like.size
        return arrays


def flat_record(name: str, flat: np.ndarray) -> ArrayRecord:
    """A record with one flat array."""
    return ArrayRecord({name: Array(np.ascontiguousarray(flat, dtype=np.float32))})


def question(run: str, round: int, device: int, cost: float) -> ConfigRecord:
    """What a device is asked in a round."""
    return ConfigRecord({"run": run, "round": round, "device": device, "cost": float(cost), "server-round": round})


def read_question(content: RecordDict) -> tuple[str, int, int, float]:
    """Run, round, device and cost of a question; ValueError if it is none."""
    record = content.config_records.get(CONFIG)
    if record is None:
        raise ValueError(f"the request has no record `{CONFIG}`")
    values = []
    for name, kind in (("run", str), ("round", int), ("device", int), ("cost", float)):
        value = record.get(name)
        if type(value) is not kind:
            raise ValueError(f"`{name}` of the request is {value!r}; expected {kind.__name__}")
        values.append(value)
    return tuple(values)


def answer(update: np.ndarray, device: int, round: int, samples: int) -> RecordDict:
    """A device's answer: the noisy update and public numbers, nothing else."""
    metrics = MetricRecord({"device": device, "round": round, "num-examples": samples})
    return RecordDict({ARRAYS: flat_record(UPDATE, update), METRICS: metrics})


def read_answer(content: RecordDict, device: int, round: int, parameters: int) -> np.ndarray:
    """The update of an answer; ValueError if it is not one to this question or not of this size."""
    metrics = content.metric_records.get(METRICS, {})
    if (metrics.get("device"), metrics.get("round")) != (device, round):
        raise ValueError("the answer belongs to another request")
    arrays = content.array_records.get(ARRAYS, {})
    if list(arrays) != [UPDATE]:
        raise ValueError(f"its arrays are {list(arrays)}; expected ['{UPDATE}']")
    array = arrays[UPDATE]
    # numpy.save adds a header of at most a few hundred bytes. Checked first: what is too large is not unpacked.
    if len(array.data) > 4 * parameters + 1024:
        raise ValueError(f"the update has {len(array.data)} bytes, which is too many for {parameters} parameters")
    value = array.numpy()
    if value.dtype != np.float32 or value.shape != (parameters,):
        raise ValueError(f"the update is {value.dtype} {value.shape}; expected float32 ({parameters},)")
    return value


def read_histogram(content: RecordDict) -> np.ndarray:
    """The label counts of an answer; ValueError if there are none."""
    arrays = content.array_records.get(ARRAYS, {})
    if list(arrays) != [COUNTS] or len(arrays[COUNTS].data) > MOST_CLASSES * 8 + 1024:
        raise ValueError("not a label histogram")
    return np.asarray(arrays[COUNTS].numpy(), dtype=np.float64).ravel()


def numbers(record: dict) -> MetricRecord:
    """Those entries of a dictionary that a MetricRecord can hold."""
    kept = {name: value for name, value in record.items() if type(value) in (int, float)}
    return MetricRecord(kept)
