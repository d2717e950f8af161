"""All end points."""

from __future__ import annotations

from firesteel.cluster.rest import (
    checkpoints,
    information,
    jobs,
    metrics,
    openapi,
    operations,
    own,
    programs,
    sql_gateway,
    vertices,
)
from firesteel.cluster.rest.calls import Endpoint

__all__ = ["all_endpoints"]


def all_endpoints() -> list[Endpoint]:
    """In the order in which they are looked through: fixed parts of paths before those that may be anything."""
    found = [
        one
        for part in (information, programs, operations, metrics, checkpoints, vertices, jobs, sql_gateway, own, openapi)
        for one in part.ENDPOINTS
    ]
    return sorted(found, key=lambda one: [part.startswith("{") for part in one.path.split("/")])
