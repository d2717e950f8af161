"""SQL: the paths and shapes of Flink's SQL gateway, in the versions 1 to 3 of its API, and what our page needs besides.

All of it takes the token that allows changes: whoever may ask for a result has had a query run.
"""

from __future__ import annotations

import time
from typing import Any

from firesteel import __version__
from firesteel.cluster.rest.calls import Call, Endpoints, RestError
from firesteel.cluster.sql_sessions import SessionAnswerError

__all__ = ["ENDPOINTS"]

ENDPOINTS = Endpoints()
VERSIONS = ("v1", "v2", "v3")
OWN = "/firesteel/v1/sql"
SESSION = "/sessions/{session_handle}"
OPERATION = f"{SESSION}/operations/{{operation_handle}}"
FORMATS = ("JSON", "PLAIN_TEXT")
LONGEST = 1 << 19
"""Characters of a statement or a script."""
SECONDS_TO_CONFIGURE = 60.0
INCOMPLETE = 'Encountered "<EOF>"'
"""By this Flink's SQL client knows that a statement goes on behind the semicolon: it reads on, and sends it again."""

_TEXT = {"type": "string", "nullable": True}
_STATEMENT = {
    "statement": {"type": "string"},
    "executionTimeout": {"type": "integer", "nullable": True},
    "executionConfig": {"type": "object", "additionalProperties": {"type": "string"}, "nullable": True},
}
_OPEN = {
    "sessionName": _TEXT,
    "properties": {"type": "object", "additionalProperties": {"type": "string"}, "nullable": True},
}


@ENDPOINTS.get("/info", versions=VERSIONS)
def info(call: Call) -> Any:
    """What this is, as Flink's SQL gateway says it."""
    return {"productName": "Firesteel", "version": __version__}


@ENDPOINTS.get("/api_versions", versions=VERSIONS)
def api_versions(call: Call) -> Any:
    """The versions of the API of Flink's SQL gateway that are understood."""
    return {"versions": [version.upper() for version in VERSIONS]}


@ENDPOINTS.post("/sessions", body=_OPEN, versions=VERSIONS)
def open_session(call: Call) -> Any:
    """Begins an SQL session, with settings if there are any."""
    given = call.body.get("properties")
    given = {} if given is None else given
    if not isinstance(given, dict) or not all(isinstance(value, str | int | float) for value in given.values()):
        raise RestError(400, "properties should have texts by key.")
    settings = {str(key): str(value) for key, value in given.items()}
    if any("\x1f" in f"{key}{value}" or "\x00" in f"{key}{value}" or "=" in key for key, value in settings.items()):
        raise RestError(400, "A setting has a character that cannot be part of one.")
    name = (call.text("sessionName") or "")[:200]
    return {"sessionHandle": _refusing(call, call.cluster.sql.open, settings, name)}


@ENDPOINTS.get(SESSION, changes=True, versions=VERSIONS)
def session(call: Call) -> Any:
    """The settings of a session, passwords masked."""
    return {"properties": _ask(call, "settings")}


@ENDPOINTS.delete(SESSION, versions=VERSIONS)
def close_session(call: Call) -> Any:
    """Ends a session and its queries. Jobs of INSERT statements go on."""
    call.cluster.sql.end(call.path["session_handle"])
    return {"status": "CLOSED"}


@ENDPOINTS.post(f"{SESSION}/heartbeat", versions=VERSIONS)
def heartbeat(call: Call) -> Any:
    """Keeps a session that is not used from ending."""
    call.cluster.sql.touch(call.path["session_handle"])
    return {}


@ENDPOINTS.post(f"{SESSION}/statements", body=_STATEMENT, versions=VERSIONS)
def execute(call: Call) -> Any:
    """Begins one statement."""
    _no_own_settings(call)
    return {"operationHandle": _ask(call, "execute", statement=_text(call, "statement"))}


@ENDPOINTS.post(f"{SESSION}/configure-session", body=_STATEMENT, versions=VERSIONS[1:])
def configure(call: Call) -> Any:
    """Runs one statement that makes or changes a table, a view or a setting, to its end."""
    text = _text(call, "statement")
    if (text.split() or [""])[0].upper() not in ("SET", "RESET", "CREATE", "DROP", "USE", "ALTER"):
        raise RestError(400, "A session is configured by SET, RESET, CREATE, DROP, USE and ALTER.")
    handle = _ask(call, "execute", statement=text)
    deadline = time.monotonic() + SECONDS_TO_CONFIGURE
    while _ask(call, "status", operation=handle) in ("PENDING", "RUNNING"):
        if time.monotonic() > deadline:
            raise RestError(408, f"The statement did not end within {SECONDS_TO_CONFIGURE:.0f} s.")
        time.sleep(0.02)
    _ask(call, "fetch", operation=handle, token=0, format="JSON")
    return {}


@ENDPOINTS.get(f"{OPERATION}/status", changes=True, versions=VERSIONS)
def status(call: Call) -> Any:
    """How far a statement is."""
    return {"status": _ask(call, "status", operation=call.path["operation_handle"])}


@ENDPOINTS.post(f"{OPERATION}/cancel", versions=VERSIONS)
def cancel(call: Call) -> Any:
    """Ends a statement, such as a query that runs."""
    return {"status": _ask(call, "cancel", operation=call.path["operation_handle"])}


@ENDPOINTS.delete(f"{OPERATION}/close", versions=VERSIONS)
def close(call: Call) -> Any:
    """Ends a statement, and forgets its result."""
    _ask(call, "forget", operation=call.path["operation_handle"])
    return {"status": "CLOSED"}


_RESULT = {"rowFormat": {"type": "string", "enum": list(FORMATS)}, "place": {"type": "boolean"}}


@ENDPOINTS.get(f"{OPERATION}/result/{{token}}", changes=True, versions=VERSIONS, query=_RESULT)
def fetch(call: Call) -> Any:
    """A page of a result: the one that was fetched last, or the next one. With place=true an error has its place in the
    statement."""
    token, chosen = call.number("token"), call.query.get("rowFormat", "JSON").upper()
    if chosen not in FORMATS:
        raise RestError(400, f"rowFormat should be JSON or PLAIN_TEXT, got {chosen[:40]!r}.")
    operation = call.path["operation_handle"]
    found = _ask(call, "fetch", operation=operation, token=token, format=chosen)
    if found["resultType"] != "EOS":
        following = token if found["resultType"] == "NOT_READY" else token + 1
        place = f"{call.prefix or '/v2'}/sessions/{call.path['session_handle']}/operations/{operation}"
        found["nextResultUri"] = f"{place}/result/{following}?rowFormat={chosen}{'&place=true' * call.flag('place')}"
    return found


# What is not Flink's.


@ENDPOINTS.get(f"{OWN}/sessions", own=True, changes=True)
def sessions(call: Call) -> Any:
    """The SQL sessions that live, and how long each was not used."""
    return {"sessions": call.cluster.sql.listed(), "most": call.cluster.settings.sql_sessions}


@ENDPOINTS.post(f"{OWN}{SESSION}/scripts", own=True, body={"script": {"type": "string"}})
def script(call: Call) -> Any:
    """Begins statements with semicolons between them, one after the other. After one that failed no more are run."""
    return {"statements": _ask(call, "script", script=_text(call, "script"))}


def _text(call: Call, name: str) -> str:
    text = call.body.get(name)
    if not isinstance(text, str) or not text.strip():
        raise RestError(400, f"{name} should be a text, and not empty.")
    if len(text) > LONGEST:
        raise RestError(413, f"{name} has at most {LONGEST:,} characters.")
    return text


def _no_own_settings(call: Call) -> None:
    if call.body.get("executionConfig"):
        raise RestError(
            400, "Settings of one statement alone (executionConfig) are not there: SET them for the session."
        )


def _ask(call: Call, what: str, **arguments: Any) -> Any:
    return _refusing(call, call.cluster.sql.ask, call.path["session_handle"], what, **arguments)


def _refusing(call: Call, action: Any, *arguments: Any, **named: Any) -> Any:
    """An error in a statement is the client's."""
    try:
        return action(*arguments, **named)
    except SessionAnswerError as error:
        if call.flag("place"):
            place = {key: error.error[key] for key in ("message", "line", "column", "length") if key in error.error}
            raise RestError(400, str(error), error=place) from None
        # Flink's own clients show an error only if there is nothing in the answer but texts.
        raise RestError(400, str(error), *([INCOMPLETE] if error.error.get("incomplete") else [])) from None
    except TimeoutError as error:
        raise RestError(503, str(error)) from None
