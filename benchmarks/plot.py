"""Draws ``docs/images/bench.svg`` from the latest results: ``python -m benchmarks.plot``."""

import argparse
import json
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib import pyplot
from matplotlib.axes import Axes

from benchmarks.cases import CASES, FIRESTEEL

ROOT = Path(__file__).resolve().parent.parent
LATEST = Path(__file__).resolve().parent / "results" / "latest.json"
IMAGE = ROOT / "docs" / "images" / "bench.svg"

OURS, OTHERS = "#d9480f", "#adb5bd"


def bars(axes: Axes, title: str, measured: dict[str, Any]) -> None:
    """One case: a horizontal bar an engine, the rate written at its end."""
    rates = {engine: result["rate"] for engine, result in measured.items() if result.get("rate")}
    names = list(reversed(rates))
    colours = [OURS if name == FIRESTEEL else OTHERS for name in names]
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
    cases = [name for name in document["results"] if CASES[name].kind == "rate"]
    rates = [result["rate"] for name in cases for result in document["results"][name].values() if result.get("rate")]
    matplotlib.rcParams["svg.hashsalt"] = "firesteel"
    figure, grid = pyplot.subplots(len(cases), 1, figsize=(8, 1.9 * len(cases)), sharex=True, squeeze=False)
    for axes, name in zip(grid[:, 0], cases, strict=True):
        bars(axes, CASES[name].title, document["results"][name])
    grid[0, 0].set_xlim(min(rates) / 3, max(rates) * 6)
    about = document["machine"]
    grid[-1, 0].set_xlabel(f"records a second, logarithmic; {about['cores']} cores, {about['cpu']}", fontsize=8)
    figure.tight_layout()
    target.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(target, metadata={"Date": None})
    pyplot.close(figure)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.plot", description=__doc__)
    parser.add_argument("--input", type=Path, default=LATEST)
    parser.add_argument("--output", type=Path, default=IMAGE)
    options = parser.parse_args()
    draw(json.loads(options.input.read_text()), options.output)
    print(options.output)


if __name__ == "__main__":
    main()
