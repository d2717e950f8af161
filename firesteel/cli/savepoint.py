"""Takes a savepoint of a running job, or deletes one."""

from __future__ import annotations

import argparse

from firesteel.cli.targets import add_manager, find_job

__all__ = ["HELP", "configure", "run"]

HELP = "take a savepoint of a running job, or dispose of one"


def configure(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group(required=True)
    what.add_argument("job", nargs="?", help="the job's id, the beginning of it, or its name")
    what.add_argument("-d", "--dispose", metavar="PATH", help="delete this savepoint")
    add_manager(parser)
    parser.add_argument("directory", nargs="?", help="where to put it; by default where the job's configuration says")


def run(options: argparse.Namespace) -> int:
    if options.dispose is not None:
        from firesteel.engine.savepoints.taking import dispose

        dispose(options.dispose)
        print(f"Deleted {options.dispose}")
        return 0
    job = find_job(options)
    print(f"Taking a savepoint of {job.name!r} ({job.id}) …", flush=True)
    print(job.savepoint(options.directory))
    return 0
