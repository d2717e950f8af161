"""Tables of Kafka that were recorded from PyFlink: how they are declared, and their messages in JSON."""

from __future__ import annotations

from typing import Any


def declaration(case: dict[str, Any], topic: str, servers: str) -> str:
    """The CREATE TABLE of a case."""
    given = {"topic": topic, "properties.bootstrap.servers": servers, "scan.bounded.mode": "latest-offset"}
    given |= case["options"]
    if given["connector"] == "kafka":
        given.setdefault("scan.startup.mode", "earliest-offset")
    written = ", ".join(f"'{key}' = '{value}'" for key, value in given.items())
    return f"CREATE TABLE f ({case['columns']}) WITH ({written})"


def outgoing(message: list[Any]) -> dict[str, Any]:
    """Key and value, and headers where there are some, as a producer takes them."""
    key, value, *headers = message
    made: dict[str, Any] = {"key": _content(key), "value": _content(value)}
    if headers:
        made["headers"] = [(name, _content(content)) for name, content in headers[0]]
    return made


def noted(message: Any) -> list[Any]:
    """The opposite, for a message that was read."""
    found = [_shown(message.key()), _shown(message.value())]
    if message.headers():
        found.append([[name, _shown(content)] for name, content in message.headers()])
    return found


def _content(text: str | None) -> bytes | None:
    if text is None:
        return None
    return bytes.fromhex(text[2:]) if text.startswith("0x") else text.encode()


def _shown(content: bytes | None) -> str | None:
    """Text, or 0x and digits where it is none."""
    if content is None:
        return None
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return f"0x{content.hex()}"
    return text if text.isprintable() and not text.startswith("0x") else f"0x{content.hex()}"
