"""LAPA on Flower: a strategy for the base station, a client and a mod for the devices.

``LapaStrategy`` runs in a ServerApp, ``lapa_client`` is a ClientApp that trains with lapa's own engine, and
``lapa_mod`` makes private what a ClientApp of one's own returns. ``python -m lapa.flower up`` tries a federation
out on this machine. docs/deploy.md takes it to several.
"""

try:
    import flwr  # noqa: F401
except ModuleNotFoundError as error:
    raise ModuleNotFoundError(
        "lapa.flower needs Flower: pip install 'flwr[simulation]>=1.41,<1.43'", name="flwr"
    ) from error

from .client import lapa_client, lapa_mod
from .strategy import LapaStrategy

__all__ = ["LapaStrategy", "lapa_client", "lapa_mod"]
