"""Private federated learning over wireless links, with privacy figures that can be trusted.

`run` simulates a federation; `account`, `calibrate`, `Filter` and `Ledger` are about privacy alone;
`link` shows a radio link; `Allocator` and `clip_and_noise` are for training loops of one's own;
`Device` and `BaseStation` make a real federation, over Flower with `lapa.flower`.
"""

from ._lapa import (
    Allocator,
    BaseStation,
    ConfigError,
    DataError,
    Device,
    Filter,
    LapaError,
    Ledger,
    LedgerError,
    Refused,
    RunResult,
    __version__,
    account,
    calibrate,
    clip_and_noise,
    link,
    run,
)

__all__ = [
    "Allocator",
    "BaseStation",
    "ConfigError",
    "DataError",
    "Device",
    "Filter",
    "LapaError",
    "Ledger",
    "LedgerError",
    "Refused",
    "RunResult",
    "__version__",
    "account",
    "calibrate",
    "clip_and_noise",
    "link",
    "run",
]
