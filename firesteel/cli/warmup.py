"""Makes the archive of classes from which Spark's JVM starts faster. It lies in the user's cache folder."""

from __future__ import annotations

import argparse

__all__ = ["HELP", "configure", "run"]

HELP = "prepare this machine for fast starts"


def configure(parser: argparse.ArgumentParser) -> None:
    """There is nothing to choose."""


def run(options: argparse.Namespace) -> int:
    # Here, not at the top: the other commands need not load pyspark.
    from firesteel.engine.spark.warmup import warm_up

    print(f"The archive of classes is {warm_up()}.")
    return 0
