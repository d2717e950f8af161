"""Draws ``docs/images/bench.svg`` from the latest results: ``python -m benchmarks.plot [--group …]``."""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from benchmarks.cases import FIRESTEEL, FIRESTEEL_ROCKSDB
from benchmarks.catalogue import CASES, GROUPS

ROOT = Path(__file__).resolve().parent.parent
RESULTS = Path(__file__).resolve().parent / "results"
IMAGES = ROOT / "docs" / "images"

COLOURS = {FIRESTEEL: "#d9480f", FIRESTEEL_ROCKSDB: "#f4a261"}
OTHERS = "#adb5bd"


def bars(axes: Axes, title: str, measured: dict[str, Any]) -> None:
    """One case: a horizontal bar an engine, the rate written at its end."""
    rates = {engine: result["rate"] for engine, result in measured.items() if result.get("rate")}
    names = list(reversed(rates))
    colours = [COLOURS.get(name, OTHERS) for name in names]
    labels = [name.replace("_", " ") for name in names]
    drawn = axes.barh(labels, [rates[name] for name in names], color=colours, height=0.7)
    axes.bar_label(drawn, labels=[f"{rates[name]:,.0f}" for name in names], padding=4, fontsize=8)
    axes.set_title(title, loc="left", fontsize=10, fontweight="bold")
    axes.set_xscale("log")
    axes.tick_params(axis="y", length=0, labelsize=9)
    axes.tick_params(axis="x", labelsize=8)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)


def draw(document: dict[str, Any], target: Path) -> None:
    results = document["results"]
    # A case that failed on every engine has no bar.
    cases = [
        name
        for name in results
        if CASES[name].kind == "rate" and any(result.get("rate") for result in results[name].values())
    ]
    if not cases:
        raise SystemExit("no rate was measured, so there is nothing to draw")
    rates = [result["rate"] for name in cases for result in results[name].values() if result.get("rate")]
    matplotlib.rcParams["svg.hashsalt"] = "firesteel"
    bars_in = [len(results[name]) for name in cases]
    heights = [0.55 + 0.27 * count for count in bars_in]
    figure, grid = pyplot.subplots(
        len(cases), 1, figsize=(8, sum(heights)), sharex=True, squeeze=False, height_ratios=heights
    )
    for axes, name in zip(grid[:, 0], cases, strict=True):
        bars(axes, CASES[name].title, results[name])
    grid[0, 0].set_xlim(min(rates) / 3, max(rates) * 6)
    about = document["machine"]
    grid[-1, 0].set_xlabel(f"records a second, logarithmic; {about['cores']} cores, {about['cpu']}", fontsize=8)
    figure.tight_layout()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plot", description=__doc__)
    parser.add_argument("--group", choices=GROUPS, default="engine")
    parser.add_argument("--input", type=Path, help="results/latest-<group>.json unless told otherwise")
    parser.add_argument("--output", type=Path, help="docs/images/bench.svg or bench-<group>.svg unless told otherwise")
    options = parser.parse_args()
    source = options.input or RESULTS / f"latest-{options.group}.json"
    name = "bench.svg" if options.group == "engine" else f"bench-{options.group}.svg"
    target = options.output or IMAGES / name
    draw(json.loads(source.read_text()), target)
    print(target)


if __name__ == "__main__":
    main()
