"""The smallest Flower app with lapa, written into a folder: what `up` runs, and tests."""

from __future__ import annotations

from pathlib import Path

PROJECT = """\
[project]
name = "lapa-app"
version = "1.0.0"
description = "LAPA on Flower"
license = { file = "LICENSE" }
dependencies = ["flwr>=1.41,<1.43"]

[tool.flwr.app]
publisher = "lapa"

[tool.flwr.app.components]
serverapp = "lapa_app:server"
clientapp = "lapa_app:client"

[tool.flwr.app.config]
folder = "run"
nodes = 2
timeout = 600.0
"""

CODE = '''\
"""LAPA on Flower: a minimal app."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp
from lapa.flower import LapaStrategy, lapa_client

CONFIG = Path(__file__).with_name("lapa.toml")

client = lapa_client(CONFIG)
server = ServerApp()


@server.main()
def main(grid: Grid, context: Context) -> None:
    settings = context.run_config
    nodes, timeout = settings["nodes"], settings["timeout"]
    strategy = LapaStrategy(CONFIG, folder=settings["folder"], min_available_nodes=nodes, wait=timeout)
    strategy.start(grid, timeout=timeout)
    summary = strategy.station.summary()
    print({name: summary[name] for name in ("rounds", "accuracy", "loss", "epsilon_provable", "epsilon_spent")})
'''


def write(folder: Path, config: str) -> Path:
    """Writes the app with this configuration of lapa, and returns its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "pyproject.toml").write_text(PROJECT)
    (folder / "lapa_app.py").write_text(CODE)
    (folder / "lapa.toml").write_text(config)
    (folder / "LICENSE").write_text("Licensed under the MIT or the Apache 2.0 license, at your option.\n")
    return folder
