"""A device."""

import os
from pathlib import Path

from lapa.flower import lapa_client

# A SuperNode names its own ledger in --node-config. Simulated nodes cannot: theirs lie here.
LEDGERS = Path(os.environ.get("LAPA_LEDGERS", "lapa-ledgers")).absolute()

app = lapa_client(Path(__file__).with_name("config.toml"), ledgers=LEDGERS)
