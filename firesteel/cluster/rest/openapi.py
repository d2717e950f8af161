"""The description of the REST API, made of the list of its end points."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from firesteel import __version__
from firesteel.cluster import own_api
from firesteel.cluster.rest.calls import Call, Endpoint, Endpoints

__all__ = ["ENDPOINTS", "describe"]

ENDPOINTS = Endpoints()

_HEX = {"type": "string", "pattern": "^[0-9a-f]{32}$"}
_NUMBER = {"type": "integer", "minimum": 0}
_PARAMETERS: dict[str, dict[str, Any]] = {
    "jobid": _HEX,
    "vertexid": _HEX,
    "triggerid": _HEX,
    "subtask": _NUMBER,
    "attempt": _NUMBER,
    "checkpointid": _NUMBER,
}
_STATUS = {
    "400": "The request cannot be understood, or the program cannot run.",
    "401": "There is no token, or a wrong one.",
    "403": "The token does not allow it, or the request comes from another site.",
    "404": "There is no such thing.",
    "408": "The request took too long.",
    "409": "The state of the job does not allow it.",
    "410": "The SQL session has ended.",
    "413": "The request is too large.",
    "503": "The job does not answer.",
}


def describe(endpoints: Iterable[Endpoint]) -> dict[str, Any]:
    """An OpenAPI document, version 3.0."""
    paths: dict[str, dict[str, Any]] = {}
    for one in [*endpoints, *_of_the_page()]:
        paths.setdefault(one.path, {})[one.method.lower()] = _operation(one)
    return {
        "openapi": "3.0.3",
        "info": {
            "title": "Firesteel's job manager",
            "version": __version__,
            "description": "Flink's REST API (the same paths are there below /v1), that of its SQL gateway (below /v1 "
            "to /v3, too), and Firesteel's own.",
        },
        "security": [{"token": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Errors": {
                    "type": "object",
                    "required": ["errors"],
                    "properties": {"errors": {"type": "array", "items": {"type": "string"}}},
                }
            },
        },
    }


def _of_the_page() -> list[Endpoint]:
    """What the page asks for, and its way in and out. They have a server of their own, so nothing is called here."""

    def described(method: str, path: str, summary: str, **more: Any) -> Endpoint:
        def handler(call: Call) -> Any: ...

        handler.__doc__ = summary
        return Endpoint(method, path, handler, method != "GET", own=True, **more)

    found = [described(method, path, summary, query=query) for method, path, summary, query in own_api.described()]
    token = {"token": {"type": "string"}}
    login = described("POST", f"{own_api.PREFIX}/login", "A cookie for a token.", body=token)
    return [*found, login, described("POST", f"{own_api.PREFIX}/logout", "Takes the cookie back.")]


def _operation(one: Endpoint) -> dict[str, Any]:
    names = re.findall(r"{(\w+)}", one.path)
    parameters: list[dict[str, Any]] = [
        {"name": name, "in": "path", "required": True, "schema": _PARAMETERS.get(name, {"type": "string"})}
        for name in names
    ]
    parameters += [{"name": name, "in": "query", "schema": dict(schema)} for name, schema in one.query.items()]
    refused = {"$ref": "#/components/schemas/Errors"}
    responses: dict[str, Any] = {
        str(one.status): {"description": "The answer.", "content": {"*/*": {}}},
        **{
            status: {"description": text, "content": {"application/json": {"schema": refused}}}
            for status, text in _STATUS.items()
        },
    }
    known: dict[str, Any] = {
        "summary": one.summary,
        "operationId": re.sub(r"\W+", "-", f"{one.method.lower()}{one.path}").strip("-"),
        "parameters": parameters,
        "responses": responses,
        "x-firesteel-changes": one.changes,
    }
    if one.upload:
        form = {"type": "object", "properties": {"jarfile": {"type": "string", "format": "binary"}}}
        known["requestBody"] = {"content": {"multipart/form-data": {"schema": form}}}
    elif one.body is not None:
        schema = {"type": "object", "properties": {name: dict(value) for name, value in one.body.items()}}
        known["requestBody"] = {"content": {"application/json": {"schema": schema}}}
    return known


@ENDPOINTS.get("/openapi.json", own=True)
def openapi(call: Call) -> Any:
    """This description."""
    from firesteel.cluster.rest.endpoints import all_endpoints

    return describe(all_endpoints())
