"""The compiled half of lapa; its docstrings explain everything."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Any, Literal, TypeAlias, final

import numpy as np
import numpy.typing as npt

Config: TypeAlias = str | PathLike[str] | Mapping[str, Any]
Path: TypeAlias = str | PathLike[str]
Floats: TypeAlias = npt.NDArray[np.float32]
Adjacency: TypeAlias = Literal["zero-out", "add-remove", "replace-one"]

__version__: str

class LapaError(Exception): ...
class ConfigError(LapaError): ...
class DataError(LapaError): ...
class LedgerError(LapaError): ...
class Refused(LapaError): ...

def main(arguments: Sequence[str]) -> int: ...
def run(
    config: Config | None = None,
    *,
    changes: Sequence[str] | None = None,
    on_round: Callable[[dict[str, Any]], bool | None] | None = None,
    out: Path | None = None,
    resume: Path | None = None,
) -> RunResult: ...
def account(
    sigma: float | None = None,
    rounds: int = 1,
    *,
    delta: float,
    sampling_rate: float | None = None,
    adjacency: Adjacency = "zero-out",
    events: Sequence[tuple[float | None, float, int]] | None = None,
) -> dict[str, float | None]: ...
def calibrate(
    epsilon: float,
    delta: float,
    rounds: int,
    *,
    sampling_rate: float | None = None,
    adjacency: Adjacency = "zero-out",
    accountant: Literal["naive", "advanced", "zcdp", "rdp", "gdp", "pld"] = "pld",
) -> float: ...
def link(
    config: Config | None = None,
    *,
    changes: Sequence[str] | None = None,
    round: int = 1,
) -> dict[str, list[Any]]: ...
def clip_and_noise(
    gradient: npt.ArrayLike,
    *,
    clip_norm: float,
    sigma: float,
    denominator: float | None = None,
    seed: int | None = None,
) -> Floats: ...
@final
class RunResult:
    @property
    def history(self) -> dict[str, list[Any]]: ...
    @property
    def devices(self) -> dict[str, list[Any]]: ...
    @property
    def summary(self) -> dict[str, Any] | None: ...
    @property
    def model(self) -> dict[str, Floats] | None: ...
    @property
    def folder(self) -> PathLike[str] | None: ...

@final
class Filter:
    def __new__(cls, epsilon: float, delta: float, *, order: float | None = None) -> Filter: ...
    @staticmethod
    def plan(
        epsilon: float,
        delta: float,
        rounds: int,
        *,
        sampling_rate: float,
        adjacency: Adjacency = "zero-out",
    ) -> Filter: ...
    def cost(
        self, sigma: float, *, sampling_rate: float | None = None, adjacency: Adjacency = "zero-out"
    ) -> float: ...
    def sigma_for(
        self, cost: float, *, sampling_rate: float | None = None, adjacency: Adjacency = "zero-out"
    ) -> float: ...
    def request(self, cost: float, floor: float = 0.0) -> float: ...
    def charge(self, cost: float) -> None: ...
    def spent_epsilon(self) -> float: ...
    @property
    def epsilon(self) -> float: ...
    @property
    def delta(self) -> float: ...
    @property
    def capacity(self) -> float: ...
    @property
    def spent(self) -> float: ...
    @property
    def left(self) -> float: ...
    @property
    def theorem(self) -> str: ...
    @property
    def kind(self) -> Literal["gdp", "renyi", "plan"]: ...

@final
class Ledger:
    def __new__(cls, path: Path, *, read_only: bool = False) -> Ledger: ...
    def begin(
        self,
        run: str,
        filters: Mapping[int, Filter],
        *,
        data: str = "records",
        adjacency: Adjacency = "zero-out",
    ) -> dict[int, float]: ...
    def charge(
        self,
        run: str,
        round: int,
        device: int,
        *,
        sigma: float,
        sampling_rate: float | None = None,
    ) -> float: ...
    def releases(self) -> list[dict[str, Any]]: ...
    def declarations(self) -> list[dict[str, Any]]: ...
    @property
    def path(self) -> PathLike[str]: ...

@final
class Allocator:
    def __new__(
        cls,
        name: Literal["lapa", "uniform", "arb", "optimal-split"] = "lapa",
        *,
        rounds: int,
        devices: int,
        epsilon: float | None = None,
        proportional: float | None = None,
        integral: float | None = None,
        window: int | None = None,
        error: Literal["raw", "relative", "debiased"] | None = None,
        schedule: Literal["formula", "text"] | None = None,
        split: Literal["formula", "text"] | None = None,
        decay: float | None = None,
        seed: int = 0,
    ) -> Allocator: ...
    def allocate(
        self,
        round: int,
        left: Mapping[int, float],
        *,
        weights: Mapping[int, float] | None = None,
        sensitivities: Mapping[int, float] | None = None,
    ) -> dict[int, float]: ...
    def observe(
        self,
        round: int,
        gradients: Mapping[int, npt.ArrayLike],
        *,
        weights: Mapping[int, float],
        sigmas: Mapping[int, float] | None = None,
    ) -> None: ...
    def state(self) -> str: ...
    def restore(self, state: str) -> None: ...
    @property
    def name(self) -> str: ...

@final
class Device:
    def __new__(
        cls,
        config: Config,
        device: int,
        *,
        ledger: Path,
        seeded: bool = False,
        images: npt.NDArray[np.uint8] | None = None,
        labels: npt.NDArray[np.uint8] | None = None,
        classes: int | None = None,
        samples: int | None = None,
        parameters: int | None = None,
        changes: Sequence[str] | None = None,
    ) -> Device: ...
    def describe(self) -> dict[str, float]: ...
    def train(self, run: str, round: int, parameters: npt.ArrayLike, cost: float) -> Floats: ...
    def privatize(
        self, run: str, round: int, update: npt.ArrayLike | Callable[[], npt.ArrayLike], cost: float
    ) -> Floats: ...
    def histogram(self, run: str, cost: float) -> npt.NDArray[np.float64]: ...
    def spent(self) -> dict[str, float]: ...

@final
class BaseStation:
    def __new__(
        cls,
        config: Config,
        devices: Sequence[Mapping[str, float]],
        *,
        folder: Path,
        initial: npt.ArrayLike | None = None,
        changes: Sequence[str] | None = None,
    ) -> BaseStation: ...
    def ask_histograms(self) -> list[dict[str, Any]]: ...
    def learn_histograms(self, answers: Mapping[int, npt.ArrayLike]) -> list[dict[str, Any]]: ...
    def ask(self, present: Sequence[int]) -> list[dict[str, Any]]: ...
    def step(self, answers: Mapping[int, npt.ArrayLike]) -> dict[str, Any]: ...
    def evaluate(self) -> tuple[float, float]: ...
    def summary(self) -> dict[str, Any]: ...
    @property
    def run(self) -> str: ...
    @property
    def round(self) -> int: ...
    @property
    def rounds(self) -> int: ...
    @property
    def parameters(self) -> Floats: ...
    @property
    def evaluated(self) -> Floats: ...
