"""The job manager itself, and the drivers as task managers."""

from __future__ import annotations

import contextlib
import os
import platform
import sys
import threading
import time
import traceback
from typing import Any

import psutil

from firesteel import __version__
from firesteel.cluster.log_files import last_lines, log_files, read_range
from firesteel.cluster.masking import Masker, masked_settings
from firesteel.cluster.processes import Process, session_members
from firesteel.cluster.registry import ENDED
from firesteel.cluster.rest.calls import Call, Endpoints, File, RestError, inside
from firesteel.cluster.rest.shapes import job_overview, taskmanager_of
from firesteel.cluster.views import JobView

__all__ = ["ENDPOINTS", "FLINK_VERSION", "config_of"]

ENDPOINTS = Endpoints()
FLINK_VERSION = "2.3.0"
"""The version whose REST API this is."""
MAX_LOG = 8 << 20


@ENDPOINTS.get("/config")
def config(call: Call) -> Any:
    """What a page must know first."""
    return config_of(history=False)


def config_of(history: bool) -> dict[str, Any]:
    offset = -(time.altzone if time.localtime().tm_isdst else time.timezone)
    return {
        "refresh-interval": 3000,
        "timezone-name": time.tzname[0],
        "timezone-offset": offset * 1000,
        "flink-version": FLINK_VERSION,
        "flink-revision": f"firesteel {__version__}",
        "features": {
            "web-submit": not history,
            "web-cancel": not history,
            "web-rescale": False,
            "web-history": history,
        },
    }


@ENDPOINTS.get("/overview")
def overview(call: Call) -> Any:
    """How many jobs and slots there are."""
    states = [row.state for row in call.cluster.supervisor.rows()]
    return {
        "taskmanagers": sum(job.row.pid != 0 for job in _running(call)),
        "slots-total": call.cluster.settings.slots,
        "slots-available": call.cluster.supervisor.free_slots,
        "jobs-running": sum(state not in ENDED for state in states),
        "jobs-finished": states.count("FINISHED"),
        "jobs-cancelled": states.count("CANCELED"),
        "jobs-failed": states.count("FAILED"),
        "flink-version": FLINK_VERSION,
        "flink-commit": f"firesteel {__version__}",
    }


# Applications: a program and its job are one here.


def _application(view: JobView) -> dict[str, Any]:
    state = {"INITIALIZING": "CREATED", "RESTARTING": "RUNNING", "CANCELLING": "CANCELING", "SUSPENDED": "CREATED"}
    return {
        "id": view.id,
        "name": view.row.name,
        "start-time": view.start_time,
        "end-time": view.end_time,
        "duration": view.duration,
        "status": state.get(view.row.state, view.row.state),
    }


@ENDPOINTS.get("/applications/overview")
def applications(call: Call) -> Any:
    """All programs with their jobs."""
    found = [JobView(row) for row in call.cluster.supervisor.rows()]
    return {"applications": [{**_application(view), "jobs": {view.row.state: 1}} for view in found]}


@ENDPOINTS.get("/applications/{jobid}")
def application(call: Call) -> Any:
    """One program with its job."""
    view = call.job()
    names = ("CREATED", "FAILING", "FAILED", "RUNNING", "CANCELED", "CANCELING", "FINISHED")
    times = {one: view.row.times.get("CANCELLING" if one == "CANCELING" else one, 0) for one in names}
    return {**_application(view), "timestamps": times, "jobs": [job_overview(view)]}


@ENDPOINTS.get("/applications/{jobid}/exceptions")
def application_exceptions(call: Call) -> Any:
    """Why a program failed, where its job did not."""
    view = call.job()
    entries = []
    if view.row.state == "FAILED" and not view.exceptions.failures:
        text = view.masker.text(view.row.failure)
        known = {"exceptionName": "firesteel.errors.ProgramError", "stacktrace": text, "timestamp": view.row.ended}
        entries.append({**known, "jobId": view.id})
    return {"exceptionHistory": {"entries": entries}}


@ENDPOINTS.post("/applications/{jobid}/cancel", status=202, body={})
def application_cancel(call: Call) -> Any:
    """Cancels a program's job."""
    call.cluster.supervisor.cancel(call.job_id)
    return {}


# The job manager


def _settings(call: Call) -> list[dict[str, str]]:
    settings = call.cluster.settings
    known = {
        "rest.address": settings.address,
        "rest.port": str(settings.port),
        "firesteel.cluster.dir": str(settings.folder),
        "firesteel.cluster.slots": str(settings.slots),
        "firesteel.cluster.history": str(settings.history),
    }
    return [{"key": key, "value": value} for key, value in masked_settings(known).items()]


@ENDPOINTS.get("/jobmanager/config")
def jobmanager_config(call: Call) -> Any:
    """The settings of the job manager."""
    return _settings(call)


@ENDPOINTS.get("/jobs/{jobid}/jobmanager/config")
@ENDPOINTS.get("/applications/{jobid}/jobmanager/config")
def job_jobmanager_config(call: Call) -> Any:
    """The settings of the job manager of a job."""
    _ = call.job_id
    return _settings(call)


def _environment() -> dict[str, Any]:
    return {
        "jvm": {
            "version": f"Python {platform.python_version()} ({platform.python_implementation()})",
            "arch": platform.machine(),
            "options": [f"-X {name}" for name in sys._xoptions],
        },
        "classpath": [one for one in sys.path if one],
    }


@ENDPOINTS.get("/jobmanager/environment")
def environment(call: Call) -> Any:
    """The Python that runs the job manager."""
    return _environment()


@ENDPOINTS.get("/jobs/{jobid}/jobmanager/environment")
def job_environment(call: Call) -> Any:
    """The Python that runs the job manager of a job."""
    _ = call.job_id
    return _environment()


@ENDPOINTS.get("/jobmanager/metrics", query={"get": {"type": "string"}})
def jobmanager_metrics(call: Call) -> Any:
    """The metrics of the job manager."""
    process = psutil.Process()
    known = {
        "taskSlotsTotal": call.cluster.settings.slots,
        "taskSlotsAvailable": call.cluster.supervisor.free_slots,
        "numRunningJobs": sum(row.state not in ENDED for row in call.cluster.supervisor.rows()),
        "Status.Process.Memory.Resident": process.memory_info().rss,
        "Status.Process.Threads": process.num_threads(),
    }
    wanted = call.query.get("get")
    if not wanted:
        return [{"id": name} for name in known]
    return [{"id": name, "value": str(known[name])} for name in wanted.split(",") if name in known]


def _masked(call: Call, content: bytes) -> File:
    masker = Masker({}, call.cluster.tokens.all)
    return File(masker.text(content.decode(errors="replace")).encode())


@ENDPOINTS.get("/jobmanager/logs")
def logs(call: Call) -> Any:
    """The job manager's own log files."""
    found = log_files(call.cluster.folder.logs)
    return {"logs": [{"name": one.name, "size": one.size, "mtime": one.changed} for one in found]}


@ENDPOINTS.get("/jobmanager/logs/{name}")
def log(call: Call) -> Any:
    """One of the job manager's log files, its end if it is long."""
    path = inside(call.cluster.folder.logs, call.path["name"])
    if path is None:
        raise RestError(404, "There is no such log file.")
    return _masked(call, read_range(path, -MAX_LOG, MAX_LOG))


@ENDPOINTS.get("/jobmanager/log")
@ENDPOINTS.get("/jobmanager/stdout")
def main_log(call: Call) -> Any:
    """The job manager's log."""
    path = inside(call.cluster.folder.logs, call.cluster.log)
    return _masked(call, b"" if path is None else read_range(path, -MAX_LOG, MAX_LOG))


@ENDPOINTS.get("/jobmanager/thread-dump")
def thread_dump(call: Call) -> Any:
    """What each thread of the job manager does."""
    names = {thread.ident: thread.name for thread in threading.enumerate()}
    found = []
    for ident, frame in sys._current_frames().items():
        name = names.get(ident, str(ident))
        text = f'"{name}" Id={ident}\n' + "".join(traceback.format_stack(frame))
        found.append({"threadName": name, "stringifiedThreadInfo": text})
    return {"threadInfos": found}


@ENDPOINTS.get("/jobs/{jobid}/jobmanager/log-url")
def log_url(call: Call) -> Any:
    """Where the log of a job's job manager is."""
    return {"url": f"{call.base}/#/job/{call.job_id}/logs"}


# Task managers: one driver a job


def _running(call: Call) -> list[JobView]:
    found = [call.cluster.view(row.id) for row in call.cluster.supervisor.rows() if row.state not in ENDED]
    return [view for view in found if view.row.pid]


def _resource(cores: float, megabytes: int) -> dict[str, Any]:
    none = {"taskOffHeapMemory": 0, "managedMemory": 0, "networkMemory": 0, "extendedResources": {}}
    return {"cpuCores": cores, "taskHeapMemory": megabytes, **none}


def _taskmanager(view: JobView) -> dict[str, Any]:
    memory, used = psutil.virtual_memory(), _memory(view)
    sizes = ("frameworkHeap", "frameworkOffHeap", "taskOffHeap", "networkMemory", "managedMemory", "jvmMetaspace")
    return {
        "id": taskmanager_of(view),
        "path": f"process:{view.row.pid}",
        "dataPort": -1,
        "jmxPort": -1,
        "timeSinceLastHeartbeat": view.now,
        "slotsNumber": 1,
        "freeSlots": 0,
        "assignedTasks": sum(vertex.parallelism for vertex in view.vertices),
        "totalResource": _resource(float(os.cpu_count() or 1), used >> 20),
        "freeResource": _resource(0.0, 0),
        "hardware": {
            "cpuCores": os.cpu_count() or 1,
            "physicalMemory": memory.total,
            "freeMemory": memory.available,
            "managedMemory": 0,
        },
        "memoryConfiguration": {
            **dict.fromkeys(sizes, 0),
            "taskHeap": used,
            "jvmOverhead": 0,
            "totalFlinkMemory": used,
            "totalProcessMemory": used,
        },
    }


def _memory(view: JobView) -> int:
    """Bytes of the driver, its JVM and its workers."""
    total = 0
    for one in session_members(Process(view.row.pid, view.row.pid_started)):
        with contextlib.suppress(psutil.Error):
            total += psutil.Process(one.pid).memory_info().rss
    return total


@ENDPOINTS.get("/taskmanagers")
def taskmanagers(call: Call) -> Any:
    """The drivers of all running jobs."""
    return {"taskmanagers": [_taskmanager(view) for view in _running(call)]}


@ENDPOINTS.get("/taskmanagers/metrics", query={"get": {"type": "string"}})
def taskmanager_metrics(call: Call) -> Any:
    """The metrics of all drivers, taken together."""
    if not call.query.get("get"):
        return [{"id": "Status.Process.Memory.Resident"}]
    used = [float(_memory(view)) for view in _running(call)]
    if not used or "Status.Process.Memory.Resident" not in call.query["get"].split(","):
        return []
    known = {"min": min(used), "max": max(used), "avg": sum(used) / len(used), "sum": sum(used), "skew": 0.0}
    return [{"id": "Status.Process.Memory.Resident", **known}]


def _one(call: Call) -> JobView:
    for view in _running(call):
        if taskmanager_of(view) == call.path["taskmanagerid"]:
            return view
    raise RestError(404, f"There is no task manager {call.path['taskmanagerid'][:60]!r}.")


@ENDPOINTS.get("/taskmanagers/{taskmanagerid}")
def taskmanager(call: Call) -> Any:
    """One driver."""
    view = _one(call)
    known = _taskmanager(view)
    used = known["memoryConfiguration"]["taskHeap"]
    slot = {"jobId": view.id, "resource": known["totalResource"], "assignedTasks": known["assignedTasks"]}
    zero = (
        "nonHeapUsed nonHeapCommitted nonHeapMax directCount directUsed directMax mappedCount mappedUsed mappedMax "
        "nettyShuffleMemorySegmentsAvailable nettyShuffleMemorySegmentsUsed nettyShuffleMemorySegmentsTotal "
        "nettyShuffleMemoryAvailable nettyShuffleMemoryUsed nettyShuffleMemoryTotal"
    )
    metrics = {"heapUsed": used, "heapCommitted": used, "heapMax": used, **dict.fromkeys(zero.split(), 0)}
    return {**known, "allocatedSlots": [slot], "metrics": {**metrics, "garbageCollectors": []}}


@ENDPOINTS.get("/taskmanagers/{taskmanagerid}/metrics", query={"get": {"type": "string"}})
def one_taskmanager_metrics(call: Call) -> Any:
    """The metrics of one driver."""
    view = _one(call)
    if not call.query.get("get"):
        return [{"id": "Status.Process.Memory.Resident"}]
    if "Status.Process.Memory.Resident" not in call.query["get"].split(","):
        return []
    return [{"id": "Status.Process.Memory.Resident", "value": str(_memory(view))}]


@ENDPOINTS.get("/taskmanagers/{taskmanagerid}/logs")
def taskmanager_logs(call: Call) -> Any:
    """The log files of one driver."""
    found = log_files(call.cluster.folder.job(_one(call).id).logs)
    return {"logs": [{"name": one.name, "size": one.size, "mtime": one.changed} for one in found]}


@ENDPOINTS.get("/taskmanagers/{taskmanagerid}/logs/{name}")
def taskmanager_log_file(call: Call) -> Any:
    """One log file of a driver."""
    view = _one(call)
    path = inside(call.cluster.folder.job(view.id).logs, call.path["name"])
    if path is None:
        raise RestError(404, "There is no such log file.")
    return File(view.masker.text(read_range(path, -MAX_LOG, MAX_LOG).decode(errors="replace")).encode())


@ENDPOINTS.get("/taskmanagers/{taskmanagerid}/log")
@ENDPOINTS.get("/taskmanagers/{taskmanagerid}/stdout")
def taskmanager_log(call: Call) -> Any:
    """The log of one driver: what it and its workers print is in it."""
    view = _one(call)
    path = call.cluster.folder.job(view.id).log(view.row.driver)
    content = last_lines(path, 20_000, MAX_LOG) if path.is_file() else b""
    return File(view.masker.text(content.decode(errors="replace")).encode())


@ENDPOINTS.get("/taskmanagers/{taskmanagerid}/thread-dump")
def taskmanager_threads(call: Call) -> Any:
    """What the threads of a driver do, which is not known."""
    _one(call)
    return {"threadInfos": []}


@ENDPOINTS.get("/jobs/{jobid}/taskmanagers/{taskmanagerid}/log-url")
def taskmanager_log_url(call: Call) -> Any:
    """Where the log of a driver is."""
    return {"url": f"{call.base}/#/job/{call.job_id}/logs"}
