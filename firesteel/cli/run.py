"""Runs a program with settings: in this process, or (with -d, or -m host:port) as a job of the job manager. What the
program's code sets wins over the settings, and they over config.yaml."""

from __future__ import annotations

import argparse
import sys
import time

from firesteel.cli import submission
from firesteel.cli.program import add_program, run_program, settings_of, warn_of_secrets
from firesteel.cli.targets import needed_manager

__all__ = ["HELP", "configure", "run"]

HELP = "run a program, here or with the job manager"


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "-d", "--detached", action="store_true", help="hand it to the job manager and return at once; see also -m"
    )
    parser.add_argument(
        "--supervised", action="store_true", help="in a process that is started again from its checkpoint when it dies"
    )
    submission.add_savepoint(parser)
    add_program(parser)


def run(options: argparse.Namespace) -> int:
    submission.split_master(options)
    if options.detached or options.jobmanager is not None:
        return _with_manager(options)
    if options.savepoint is not None:
        options.settings.append(f"execution.state-recovery.path={options.savepoint}")
    if options.lenient:
        options.settings.append("execution.state-recovery.ignore-unclaimed-state=true")
    if options.supervised:
        return _supervised(options)
    run_program(options)
    return 0


def _supervised(options: argparse.Namespace) -> int:
    # Here, not at the top: a plain run does not need it.
    from firesteel.cluster.per_job import run_supervised

    warn_of_secrets(options.settings)
    return run_supervised(options.program, options.arguments, settings_of(options))


def _with_manager(options: argparse.Namespace) -> int:
    client = needed_manager(options)
    job_id = submission.submitted(client, options)
    print(f"Job has been submitted with JobID {job_id}", flush=True)
    if options.detached:
        return 0
    # Attached: the job's output is shown, and its end is this command's.
    job = client.job(job_id)
    shown: set[str] = set()
    # A job in a driver that waited for it has something to show within a second.
    pause = 0.05
    while True:
        ended = job.refresh().known["ended"] is not None
        names = [one["name"] for one in client.logs(job_id) if one["name"].endswith(".log")]
        for name in sorted(set(names) - shown, key=lambda one: (len(one), one)):
            shown.add(name)
            for text in client.follow_log(job_id, name, 0, True):
                sys.stdout.write(text)
                sys.stdout.flush()
        if ended:
            break
        time.sleep(pause)
        pause = min(2 * pause, 0.5)
    state = job.known["state"]
    if state != "FINISHED":
        print(job.known["failure"] or f"The job was {state.lower()}.", file=sys.stderr)
    return 0 if state == "FINISHED" else 1
