"""The base station."""

from pathlib import Path

from flwr.app import Context
from flwr.serverapp import Grid, ServerApp
from lapa.flower import LapaStrategy

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Runs all rounds, or those that are left of an interrupted run."""
    settings = context.run_config
    strategy = LapaStrategy(
        Path(__file__).with_name("config.toml"),
        folder=Path(settings["folder"]).absolute(),
        min_available_nodes=settings["nodes"],
        wait=settings["timeout"],
    )
    strategy.start(grid, timeout=settings["timeout"])
    accuracy, loss = strategy.station.evaluate()
    provable = strategy.station.summary()["epsilon_provable"]
    print(f"after {strategy.station.round} rounds: accuracy {accuracy:.2%}, loss {loss:.4f}, ε provable {provable}")
