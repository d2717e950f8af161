"""Where the programs of the group ``kafka`` find their broker and topics. Only the standard library is used here."""

import argparse
import os

import measure

SERVERS = os.environ.get("BENCH_KAFKA_SERVERS", "")
RESULTS = os.environ.get("BENCH_KAFKA_RESULTS", "")
STAMPED = 25
"""The part of a record that is kept: the user's name and the moment of its making."""
USER = 11
"""The part that is the user's name."""
COMMIT_SECONDS = 1.0
"""How often engines commit that do so by the clock."""
PARTS = 2


def options(parser: argparse.ArgumentParser) -> argparse.ArgumentParser:
    parser.add_argument("--read", action="store_true", help="only read, and write nothing")
    parser.add_argument("--live", action="store_true", help="go on for ever instead of measuring")
    return parser


def arguments(description: str) -> argparse.ArgumentParser:
    return options(measure.arguments(description))


def topics(records: int, live: bool = False) -> list[str]:
    source = os.environ["BENCH_KAFKA_SOURCE"]
    return [f"{source}-{part}" if live else f"{source}-{records}-{part}" for part in range(PARTS)]
