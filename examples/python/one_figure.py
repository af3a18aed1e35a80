# %% [markdown]
# # One figure of the paper, in a notebook
#
# The comparison of aggregation rules (Section V-B) in a quick form: FedAvg, BEDA and the paper's
# Wasserstein weights over links without errors, a few seeds and rounds. `lapa reproduce aggregation`
# makes the whole figure and judges its claims.
#
#     python examples/python/one_figure.py [--rounds 40] [--seeds 2] [--data mnist] [--out figure.svg]
#
# Needs `lapa`; matplotlib draws the curves if it is installed. In a notebook or in an editor that knows
# cells, run it cell by cell.

# %%
import argparse
import statistics
from pathlib import Path

import lapa

parser = argparse.ArgumentParser(description="Aggregation rules of the paper, in a quick form.")
parser.add_argument("--rounds", type=int, default=40)
parser.add_argument("--seeds", type=int, default=2)
parser.add_argument("--data", default="mnist", help="mnist, fashion-mnist or synthetic")
parser.add_argument("--out", type=Path, default=Path("aggregation.svg"))
options, _ = parser.parse_known_args()

# %% [markdown]
# The experiment is that of `lapa reproduce aggregation`; only the rule differs between curves, and a
# seed decides devices and batches alike for all of them.

# %%
config = Path(__file__).parents[2] / "experiments" / "paper" / "aggregation.toml"
rules = {
    "FedAvg (benchmark 1)": ["aggregate.rule=fedavg"],
    "BEDA (benchmark 2)": ["aggregate.rule=fedadp"],
    "Wasserstein (configuration 1)": [],
}
shared = [
    f"run.rounds={options.rounds}",
    "run.evaluate_every=5",
    f"data.name={options.data}",
    "transmit.uplink=ideal",
]

# %%
curves = {}
for name, changes in rules.items():
    results = [lapa.run(config, changes=[*shared, *changes, f"run.seed={seed}"]) for seed in range(options.seeds)]
    rounds = results[0].history["round"]
    accuracy = [
        statistics.fmean(values)
        for values in zip(*(result.history["accuracy"] for result in results))
        if None not in values
    ]
    evaluated = [number for number, value in zip(rounds, results[0].history["accuracy"]) if value is not None]
    curves[name] = (evaluated, accuracy)
    print(f"{name:32} {100 * accuracy[-1]:6.2f} % after {evaluated[-1]} rounds, mean of {options.seeds} seeds")

# %%
try:
    import matplotlib
except ImportError:
    print("matplotlib is not installed: no figure was drawn")
else:
    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(6, 4), layout="constrained")
    for name, (evaluated, accuracy) in curves.items():
        axes.plot(evaluated, [100 * value for value in accuracy], label=name)
    axes.set(xlabel="round", ylabel="test accuracy (%)", title=f"Aggregation rules, {options.data}, ideal links")
    axes.legend()
    figure.savefig(options.out)
    print(f"drawn in {options.out}")
