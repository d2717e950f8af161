"""Hashes, Base64, URLs and other ways to write text."""

from __future__ import annotations

import base64
import binascii
import hashlib
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.table.functions.registry import Function, Signature, register
from firesteel.table.functions.text import maybe_string, string_result
from firesteel.table.functions.values import by_value, row_by_row
from firesteel.table.logical.expressions import Expression
from firesteel.table.types.data_types import (
    MAX_LENGTH,
    ArrayType,
    CharType,
    DataType,
    MapType,
    VarBinaryType,
    VarCharType,
)
from firesteel.table.types.derivation import any_nullable

__all__: list[str] = []

_STRING = VarCharType(MAX_LENGTH)
_TEXT = Signature(("string",))


def _fixed(length: int) -> Callable[[Sequence[Expression]], DataType]:
    def rule(arguments: Sequence[Expression]) -> DataType:
        return CharType(length, is_nullable=any_nullable([argument.type for argument in arguments]))

    return rule


def _hash(name: str) -> Callable[[str], str]:
    return lambda text: hashlib.new(name, text.encode()).hexdigest()


for _name, _length in {"MD5": 32, "SHA1": 40, "SHA224": 56, "SHA256": 64, "SHA384": 96, "SHA512": 128}.items():
    register(Function(_name, _TEXT, _fixed(_length), by_value(_hash(_name.lower()))))


def _sha2(text: str, bits: int) -> str | None:
    return hashlib.new(f"sha{bits}", text.encode()).hexdigest() if bits in (224, 256, 384, 512) else None


register(
    Function(
        "SHA2",
        Signature(("string", "integer")),
        lambda arguments: VarCharType(128, is_nullable=any_nullable([each.type for each in arguments])),
        by_value(_sha2),
    )
)


def _from_base64(text: str) -> str | None:
    try:
        # Java does without the signs at the end that fill a group up.
        filled = text + "=" * (-len(text) % 4)
        return base64.b64decode(filled, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        return None


def _url_decoded(text: str) -> str | None:
    try:
        return urllib.parse.unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        return None


register(Function("TO_BASE64", _TEXT, string_result, by_value(lambda text: base64.b64encode(text.encode()).decode())))
register(Function("FROM_BASE64", _TEXT, string_result, by_value(_from_base64)))
register(Function("URL_ENCODE", _TEXT, maybe_string, by_value(lambda text: urllib.parse.quote_plus(text, safe="*-._"))))
register(Function("URL_DECODE", _TEXT, maybe_string, by_value(_url_decoded)))


def _unhex(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else f"0{text}") if " " not in text else None
    except ValueError:
        return None


register(Function("UNHEX", _TEXT, lambda arguments: VarBinaryType(MAX_LENGTH), by_value(_unhex)))
register(
    Function(
        "ENCODE",
        Signature(("string", "string")),
        lambda arguments: VarBinaryType(MAX_LENGTH, is_nullable=any_nullable([each.type for each in arguments])),
        by_value(lambda text, charset: text.encode(charset, "replace")),
        can_fail=True,
    )
)
register(
    Function(
        "DECODE",
        Signature(("binary", "string")),
        string_result,
        by_value(lambda data, charset: data.decode(charset, "replace")),
        can_fail=True,
    )
)


def _url_part(url: str, part: str, key: str | None = None) -> str | None:
    try:
        parsed = urllib.parse.urlsplit(url)
    except ValueError:
        return None
    if key is not None:
        if part != "QUERY":
            return None
        for pair in parsed.query.split("&"):
            name, _, value = pair.partition("=")
            if name == key:
                return value
        return None
    file = parsed.path + (f"?{parsed.query}" if parsed.query else "")
    return {
        "HOST": parsed.hostname,
        "PATH": parsed.path,
        "QUERY": parsed.query or None,
        "REF": parsed.fragment or None,
        "PROTOCOL": parsed.scheme or None,
        "FILE": file,
        "AUTHORITY": parsed.netloc or None,
        "USERINFO": parsed.username,
    }.get(part)


register(
    Function("PARSE_URL", Signature(("string", "string", "string"), optional=1), maybe_string, by_value(_url_part))
)


def _split(text: str, separator: str) -> list[str]:
    return list(text) if not separator else text.split(separator)


register(
    Function(
        "SPLIT",
        Signature(("string", "string")),
        lambda arguments: ArrayType(_STRING.not_null(), is_nullable=any_nullable([each.type for each in arguments])),
        by_value(_split),
    )
)


def _str_to_map(text: Any, pairs: str = ",", values: str = "=") -> Any:
    if text is None:
        return None
    found: dict[str, str | None] = {}
    for pair in text.split(pairs):
        key, mark, value = pair.partition(values)
        found[key] = value if mark else None
    return list(found.items())


register(
    Function(
        "STR_TO_MAP",
        Signature(("string", "string", "string"), optional=2),
        lambda arguments: MapType(_STRING, _STRING, is_nullable=any_nullable([each.type for each in arguments])),
        row_by_row(_str_to_map),
    )
)
