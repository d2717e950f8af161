"""The job on its way to a worker: functions by value, classes of the user's script, and import paths.

Functions and classes of ``__main__`` do not exist in a worker, so they travel by value (cloudpickle). Records that are
instances of such classes are pickled by reference, though, so the worker puts the classes into its own ``__main__``.
"""

from __future__ import annotations

import pickle
import sys
from dataclasses import replace
from typing import Any

import cloudpickle

from firesteel.common.secret import is_secret_key, secrets_left_out
from firesteel.engine.payload import JobPayload
from firesteel.errors import SerializationError, short_repr
from firesteel.graph.specs import CollectSpec, PrintSpec, SinkFunctionSpec, SinkSpec
from firesteel.graph.stream_graph import StreamNode
from firesteel.graph.transformations import Ship
from firesteel.runtime.job_spec import JobSpec

__all__ = ["pickle_job", "pickle_job_to_keep", "without_sinks"]


def pickle_job(job: JobSpec, import_paths: tuple[str, ...] = ()) -> JobPayload:
    """The job on its way to a worker, or an error that names what cannot travel."""
    try:
        pickled = cloudpickle.dumps((_main_classes(), job), protocol=pickle.HIGHEST_PROTOCOL)
    except Exception as error:
        raise _explain(job, error) from error
    return JobPayload(job.job_id, import_paths, pickled)


def pickle_job_to_keep(job: JobSpec, whole: JobPayload) -> JobPayload:
    """The ``whole`` job as it is stored for those who replay a batch: without its sinks, which a replay does not use
    and which know how to get into databases and services, and without other secrets."""
    parameters = {key: "***" if is_secret_key(key) else value for key, value in job.job_parameters.items()}
    with secrets_left_out():
        return replace(whole, pickled=pickle_job(replace(without_sinks(job), job_parameters=parameters)).pickled)


def without_sinks(job: JobSpec) -> JobSpec:
    """The job with its sinks replaced by prints, and what it prints and collects shown with names."""
    graph = job.graph.graph
    nodes = {
        node_id: replace(node, spec=PrintSpec(node.name))
        if isinstance(node.spec, SinkSpec | SinkFunctionSpec | CollectSpec)
        else node
        for node_id, node in graph.nodes.items()
    }
    return replace(job, graph=replace(job.graph, graph=replace(graph, nodes=nodes)))


def _main_classes() -> dict[str, type]:
    main = sys.modules["__main__"]
    found = {}
    for name, value in list(vars(main).items()):
        if isinstance(value, type) and value.__module__ == "__main__" and value.__qualname__ == name:
            try:
                cloudpickle.dumps(value)
            except Exception:
                # Not every class of a script is meant to travel; one that is will be missed by name.
                continue
            found[name] = value
    return found


def _explain(job: JobSpec, error: Exception) -> SerializationError:
    """Which operator, and which name in its function's closure, cannot be pickled."""
    for node in job.graph.graph.nodes.values():
        try:
            cloudpickle.dumps(node.spec)
        except Exception as own:
            return SerializationError(_sentence(f"The function of operator {node.name!r}", node, node.spec, own))
    for edge in job.graph.graph.edges:
        try:
            cloudpickle.dumps(edge.partitioning)
        except Exception as own:
            what = f"The {_SHIPPED[edge.partitioning.ship]} in front of operator"
            node = job.graph.graph.nodes[edge.target]
            return SerializationError(_sentence(f"{what} {node.name!r}", node, edge.partitioning, own))
    return SerializationError(f"The job cannot be pickled: {error}")


_SHIPPED = {Ship.HASH: "key selector", Ship.CUSTOM: "partitioner or key selector"}


def _sentence(what: str, node: StreamNode, holder: Any, error: Exception) -> str:
    culprit = ""
    for function in _user_callables(holder):
        found = _culprit(function)
        if found:
            culprit = f" The culprit is {found}."
            break
    return (
        f"{what}, built at {node.built_at}, cannot be pickled, so it cannot reach the workers: {error}.{culprit} "
        "Create such objects in open() instead of holding them in the function."
    )


_HOLDING = ("function", "enumerator", "reader", "sink", "strategy", "selector", "partitioner", "spec")


def _user_callables(holder: Any) -> list[Any]:
    members = [value for name, value in vars(holder).items() if name in _HOLDING]
    inner = [getattr(value, "func", None) or getattr(value, "_function", None) for value in members]
    return [value for value in (*inner, *members) if value is not None]


def _culprit(function: Any) -> str | None:
    code = getattr(function, "__code__", None)
    if code is not None:
        cells = zip(code.co_freevars, function.__closure__ or (), strict=False)
        names = {name: cell.cell_contents for name, cell in cells}
        names |= {name: function.__globals__[name] for name in code.co_names if name in function.__globals__}
    else:
        names = {f"self.{name}": value for name, value in getattr(function, "__dict__", {}).items()}
    for name, value in names.items():
        try:
            cloudpickle.dumps(value)
        except Exception:
            return f"{name!r}, a {type(value).__name__}: {short_repr(value, 80)}"
    return None
