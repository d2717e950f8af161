"""Changes from which level on a running job logs."""

from __future__ import annotations

import argparse

from firesteel.cli.targets import add_manager, find_job

__all__ = ["HELP", "configure", "run"]

HELP = "change from which level on a running job logs"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", help="the job's id, the beginning of it, or its name")
    parser.add_argument("level", help="DEBUG, INFO, WARNING, ERROR or CRITICAL")
    parser.add_argument("logger", nargs="?", default="", help="the logger; by default all")
    add_manager(parser)


def run(options: argparse.Namespace) -> int:
    levels = find_job(options).set_log_level(options.level, options.logger)
    for logger, level in sorted(levels.items()):
        print(f"{logger or 'all loggers'}: {level}")
    return 0
