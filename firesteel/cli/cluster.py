"""Starts, stops and shows the job manager: a server that runs jobs as a service, see docs/job-manager.md."""

from __future__ import annotations

import argparse
import json
import os
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from firesteel.cli.showing import duration, table
from firesteel.errors import JobManagerError, SetupError

if TYPE_CHECKING:
    from firesteel.cluster.client import ClusterClient

__all__ = ["HELP", "configure", "run"]

SECONDS_TO_ELECT = 15.0
HELP = "start, stop or show the job manager"


def configure(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(metavar="action", required=True, dest="action")
    start = actions.add_parser("start", help="start the job manager in the background")
    start.add_argument("--port", type=int, help="where it listens, on loopback; default 8081, 0 takes any that is free")
    start.add_argument("--bind", dest="address", metavar="ADDRESS", help="another address; takes TLS")
    start.add_argument(
        "--host", dest="hosts", action="append", metavar="NAME", help="a name that clients may use for it"
    )
    start.add_argument("--certificate", metavar="FILE", help="the certificate for TLS")
    start.add_argument("--key", metavar="FILE", help="its key")
    start.add_argument("--slots", type=int, metavar="N", help="how many jobs run at the same time; default: cores")
    start.add_argument(
        "--warm-drivers", type=int, metavar="N", help="how many drivers wait for a job with Spark started; default: 1"
    )
    start.add_argument(
        "--registry",
        metavar="URL",
        help="for several job managers: postgresql://user@host/database; the password is FIRESTEEL_REGISTRY_PASSWORD",
    )
    start.add_argument("--registry-password-file", metavar="FILE", help="where the password is, instead")
    start.add_argument("--cluster-id", metavar="NAME", help="the schema of the tables; default: firesteel")
    start.add_argument("--zookeeper", metavar="HOST:PORT,…", help="elect by ZooKeeper instead of the database")
    start.add_argument("--advertise", dest="advertised", metavar="NAME", help="the name that others reach it by")
    start.add_argument("--foreground", action="store_true", help="stay, until Ctrl-C or SIGTERM; jobs run on then")
    stop = actions.add_parser("stop", help="stop the job manager; its jobs go on when it is started again")
    stop.add_argument("--leave-jobs", action="store_true", help="let the jobs run on: the next job manager adopts them")
    status = actions.add_parser("status", help="show the job manager and how many jobs it has")
    status.add_argument("--json", action="store_true", help="print it as JSON")
    for one in (start, stop, status):
        one.add_argument(
            "--dir", type=Path, metavar="FOLDER", help="where it keeps what it knows; default FIRESTEEL_CLUSTER_DIR"
        )
        one.add_argument("-v", "--verbose", action="store_true", default=argparse.SUPPRESS, help=argparse.SUPPRESS)


def run(options: argparse.Namespace) -> int:
    try:
        return {"start": _start, "stop": _stop, "status": _status}[options.action](options)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] in ("starlette", "uvicorn", "psutil", "multipart", "python_multipart"):
            raise SetupError(
                f"The job manager needs {error.name}, which is not installed: pip install 'firesteel[cluster]'."
            ) from error
        raise


def _start(options: argparse.Namespace) -> int:
    # All that the server needs is loaded here, so that what is missing is reported here.
    from firesteel.cluster import server
    from firesteel.cluster.settings import ClusterSettings, registry_password
    from firesteel.cluster.starting import start_in_background
    from firesteel.common.configuration import Configuration

    place = os.environ.get("FIRESTEEL_CONF_DIR")
    configuration = Configuration.from_file(place) if place else Configuration()
    settings = ClusterSettings.of(
        configuration,
        folder=options.dir,
        address=options.address,
        port=options.port,
        slots=options.slots,
        warm_drivers=options.warm_drivers,
        hosts=tuple(options.hosts) if options.hosts else None,
        advertised=options.advertised,
        registry=options.registry,
        registry_password=registry_password(options.registry_password_file) if options.registry_password_file else None,
        cluster_id=options.cluster_id,
        zookeeper=options.zookeeper,
        certificate=options.certificate,
        key=options.key,
    )
    if options.foreground:
        return server.serve(settings, lambda address: _print_address(address, settings.folder))
    found = start_in_background(settings)
    _print_address(found.address, found.folder)
    return 0


def _print_address(address: str, folder: Path) -> None:
    print(f"The job manager listens at {address}", flush=True)
    print(f"Its token is in {folder / 'token'}; one that allows looking only is beside it.", flush=True)


def _folder(options: argparse.Namespace) -> Path:
    from firesteel.cluster.folders import default_folder

    return options.dir or default_folder()


def _stop(options: argparse.Namespace) -> int:
    from firesteel.cluster.client import ClusterClient
    from firesteel.cluster.processes import Process
    from firesteel.cluster.starting import find_members, find_running

    folder = _folder(options)
    running = find_running(folder)
    # Those that stand by first: none of them need take over.
    for member in find_members(folder):
        if running is not None and member.pid != running.pid:
            process = Process.of(member.pid)
            process.send(signal.SIGTERM)
            if not process.wait(30):
                raise JobManagerError(
                    f"The job manager at {member.address} (process {member.pid}) did not end in time."
                )
    client = ClusterClient.find(folder=folder)
    if running is None or client is None:
        raise JobManagerError("No job manager runs here.")
    process = Process.of(running.pid)
    if _leads(client, folder):
        client.end(options.leave_jobs)
    else:
        # The leader is on another machine, and none of this one's business.
        process.send(signal.SIGTERM)
    if not process.wait(150):
        raise JobManagerError(f"The job manager (process {running.pid}) did not end in time.")
    print("The job manager has ended; its jobs run on." if options.leave_jobs else "The job manager has ended.")
    return 0


def _leads(client: ClusterClient, folder: Path) -> bool:
    """Whether the last job manager of a folder on this machine leads; waits for an election that is under way."""
    if not (folder / "members").is_dir():
        return True
    deadline = time.monotonic() + SECONDS_TO_ELECT
    while (leads := client.leads()) is None and time.monotonic() < deadline:
        time.sleep(0.2)
    return bool(leads)


def _status(options: argparse.Namespace) -> int:
    from firesteel.cluster.client import ClusterClient

    client = ClusterClient.find(folder=_folder(options))
    if client is None:
        if options.json:
            print(json.dumps({"running": False}))
        raise JobManagerError("No job manager runs here.")
    known: dict[str, Any] = {**client.get("/firesteel/v1/manager"), **client.get("/overview")}
    if options.json:
        print(json.dumps({"running": True, "address": client.address, **known}, indent=2))
        return 0
    rows = [
        ["address", client.address],
        ["version", known["firesteel"]],
        ["runs for", duration(int(time.time() * 1000) - known["started"])],
        ["slots", f"{known['slots-available']} of {known['slots-total']} free"],
        ["warm drivers", str(known["warmDrivers"])],
        [
            "jobs",
            f"{known['jobs-running']} running or waiting, {known['jobs-finished']} finished, "
            f"{known['jobs-failed']} failed, {known['jobs-cancelled']} cancelled",
        ],
        ["epoch", str(known["epoch"])],
        ["folder", known["folder"]],
    ]
    print("\n".join(table(["job manager", ""], rows)))
    return 0
