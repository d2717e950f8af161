"""A failure as Flink's clients read it: an object of Java, serialized. Only so do they show its text."""

from __future__ import annotations

import base64
import struct

__all__ = ["serialized_throwable"]

# Java's serialization protocol.
_MAGIC = b"\xac\xed\x00\x05"
_NULL, _REFERENCE, _CLASS, _OBJECT, _STRING, _ARRAY, _END = b"p", b"q", b"r", b"s", b"t", b"u", b"x"
_PLAIN, _WRITES_ITSELF = 2, 3
_LONGEST = 60_000
"""Bytes; a text has at most 65,535."""


def serialized_throwable(name: str, message: str) -> str:
    """An ``org.apache.flink.util.SerializedThrowable`` in Base64, of an exception of a class that need not exist there.

    >>> serialized_throwable("firesteel.errors.SavepointError", "no room")[:16]
    'rO0ABXNyAClvcmcu'
    """
    # Strings that were written before are referred to by number: that of String's own type is the second one.
    string = _REFERENCE + b"\x00\x7e\x00\x01"
    throwable = _described(
        "java.lang.Throwable",
        0xD5C6352739_77B8CB,
        _WRITES_ITSELF,
        b"L" + _utf("cause") + _text("Ljava/lang/Throwable;"),
        b"L" + _utf("detailMessage") + string,
        b"[" + _utf("stackTrace") + _text("[Ljava/lang/StackTraceElement;"),
        b"L" + _utf("suppressedExceptions") + _text("Ljava/util/List;"),
    )
    exception = _described("java.lang.Exception", 0xD0FD1F3E1A3B1CC4, _PLAIN, above=throwable)
    described = _described(
        "org.apache.flink.util.SerializedThrowable",
        0x65169DF51FA713F3,
        _PLAIN,
        b"L" + _utf("fullStringifiedStackTrace") + _text("Ljava/lang/String;"),
        b"L" + _utf("originalErrorClassName") + string,
        b"[" + _utf("serializedException") + _text("[B"),
        above=exception,
    )
    no_trace = _ARRAY + _described("[Ljava.lang.StackTraceElement;", 0x02462A3C3CFD2239, _PLAIN) + struct.pack(">i", 0)
    nothing = _OBJECT + _described("java.util.Collections$EmptyList", 0x7AB817B43CA79EDE, _PLAIN)
    of_throwable = _NULL + _text(message) + no_trace + nothing + _END
    # Without the exception itself, which is none of Java's.
    own = _text(f"{name}: {message}\n") + _text(name) + _NULL
    return base64.b64encode(_MAGIC + _OBJECT + described + of_throwable + own).decode()


def _described(name: str, version: int, flags: int, *fields: bytes, above: bytes = _NULL) -> bytes:
    head = _CLASS + _utf(name) + struct.pack(">QBH", version, flags, len(fields))
    return head + b"".join(fields) + _END + above


def _text(text: str) -> bytes:
    return _STRING + _utf(text)


def _utf(text: str) -> bytes:
    """Java's own UTF-8: each half of a surrogate pair for itself, and two bytes for NUL.

    >>> _utf("aé"), _utf("\\0")
    (b'\\x00\\x03a\\xc3\\xa9', b'\\x00\\x02\\xc0\\x80')
    """
    units = struct.iter_unpack(">H", text.encode("utf-16-be", "surrogatepass"))
    found = bytearray()
    for (unit,) in units:
        found += b"\xc0\x80" if unit == 0 else chr(unit).encode("utf-8", "surrogatepass")
        if len(found) > _LONGEST:
            break
    return struct.pack(">H", len(found)) + found
