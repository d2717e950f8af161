"""Runs one recorded micro-batch of a checkpoint again in this process, so that breakpoints work. Nothing is written."""

from __future__ import annotations

import argparse
import pdb
import sys

from firesteel.cli.program import submission_of
from firesteel.errors import FiresteelError

__all__ = ["HELP", "configure", "run"]

HELP = "run a recorded micro-batch again in this process, for a debugger"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("checkpoint", help="the job's checkpoint folder")
    parser.add_argument("-b", "--batch", type=int, metavar="N", help="which batch; by default the last one that began")
    parser.add_argument("--pdb", action="store_true", help="look around with pdb where a function fails")
    parser.add_argument(
        "--program",
        dest="command",
        nargs=argparse.REMAINDER,
        metavar="FILE",
        help="take the functions from this program (with its arguments), not from the folder; comes last",
    )
    parser.set_defaults(parallelism=None, master=None, settings=[])


def run(options: argparse.Namespace) -> int:
    from firesteel.engine.job_context import job_spec
    from firesteel.engine.replay import replay, shown
    from firesteel.engine.spark.savepoints import read_stores

    program = dependencies = None
    if options.command:
        options.program, *options.arguments = options.command
        submission = submission_of(options)
        program, dependencies = job_spec(submission), submission.dependencies
    try:
        replayed = replay(options.checkpoint, options.batch, read_stores, program, dependencies)
    except FiresteelError as error:
        if not options.pdb:
            raise
        print(error, file=sys.stderr)
        cause: BaseException = error
        while cause.__cause__ is not None:
            cause = cause.__cause__
        pdb.post_mortem(cause.__traceback__)
        return 1
    print("\n".join(shown(replayed)))
    return 0
