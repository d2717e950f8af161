"""Hashes, Base64, URLs and other ways to write text."""

from __future__ import annotations

import base64
import binascii
import codecs
import hashlib
import re
import string
import urllib.parse
from collections.abc import Callable, Sequence
from typing import Any

from firesteel.errors import FailureKind, ProgramError
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

__all__ = ["EncodingError"]


class EncodingError(ProgramError):
    """A value that cannot be encoded or decoded in the way asked for."""

    kind = FailureKind.PERMANENT


_STRING = VarCharType(MAX_LENGTH)
_TEXT = Signature(("string",))
_BYTES = Signature(("string or binary",))


def _fixed(length: int) -> Callable[[Sequence[Expression]], DataType]:
    def rule(arguments: Sequence[Expression]) -> DataType:
        return CharType(length, is_nullable=any_nullable([argument.type for argument in arguments]))

    return rule


def _hash(name: str) -> Callable[[str], str]:
    return lambda text: hashlib.new(name, text.encode()).hexdigest()


for _name, _length in {"MD5": 32, "SHA1": 40, "SHA224": 56, "SHA256": 64, "SHA384": 96, "SHA512": 128}.items():
    register(Function(_name, _BYTES, _fixed(_length), by_value(_hash(_name.lower()))))


def _sha2(text: str, bits: int) -> str:
    if bits not in (224, 256, 384, 512):
        raise EncodingError(f"SHA2 takes 224, 256, 384 or 512 bits, got {bits}.")
    return hashlib.new(f"sha{bits}", text.encode()).hexdigest()


register(
    Function(
        "SHA2",
        Signature(("string or binary", "integer")),
        lambda arguments: VarCharType(128, is_nullable=any_nullable([each.type for each in arguments])),
        by_value(_sha2),
        can_fail=True,
    )
)


def _from_base64(text: str) -> str:
    try:
        # Java does without the signs at the end that fill a group up.
        filled = text + "=" * (-len(text) % 4)
        return base64.b64decode(filled, validate=True).decode("utf-8", "replace")
    except (binascii.Error, ValueError):
        raise EncodingError(f"FROM_BASE64 takes text in Base64, got {text!r}.") from None


_BROKEN_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


def _url_encoded(text: str) -> str:
    # Java's encoder escapes the tilde, too.
    return urllib.parse.quote_plus(text, safe="*-._").replace("~", "%7E")


def _url_decoded(text: str) -> str | None:
    return None if _BROKEN_ESCAPE.search(text) else urllib.parse.unquote_plus(text, errors="replace")


register(Function("TO_BASE64", _BYTES, string_result, by_value(lambda text: base64.b64encode(text.encode()).decode())))
register(Function("FROM_BASE64", _BYTES, string_result, by_value(_from_base64), can_fail=True))
register(Function("URL_ENCODE", _TEXT, maybe_string, by_value(_url_encoded)))
register(Function("URL_DECODE", _TEXT, maybe_string, by_value(_url_decoded)))


def _unhex(text: str) -> bytes | None:
    try:
        # Of an odd number of digits the first one becomes a byte of zero, as Flink's documentation has it.
        if len(text) % 2 and text[0] not in string.hexdigits:
            return None
        return bytes.fromhex(text if len(text) % 2 == 0 else f"00{text[1:]}") if " " not in text else None
    except ValueError:
        return None


register(Function("UNHEX", _TEXT, lambda arguments: VarBinaryType(MAX_LENGTH), by_value(_unhex)))


def _known(charset: str) -> str:
    try:
        return codecs.lookup(charset).name
    except LookupError:
        raise EncodingError(f"There is no character set {charset!r}. UTF-8, UTF-16 and US-ASCII are some.") from None


def _encoded(text: str, charset: str) -> bytes:
    return text.encode(_known(charset), "replace")


def _decoded(data: bytes, charset: str) -> str:
    return data.decode(_known(charset), "replace")


register(
    Function(
        "ENCODE",
        Signature(("string", "string")),
        lambda arguments: VarBinaryType(MAX_LENGTH, is_nullable=any_nullable([each.type for each in arguments])),
        by_value(_encoded),
        can_fail=True,
    )
)
register(
    Function(
        "DECODE",
        Signature(("binary", "string")),
        string_result,
        by_value(_decoded),
        can_fail=True,
    )
)


def _url_part(url: str, part: str, key: str | None = None) -> str | None:
    try:
        parsed = urllib.parse.urlsplit(url)
    except ValueError:
        return None
    if not parsed.scheme:
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
        "USERINFO": parsed.netloc.rpartition("@")[0] or None,
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
        lambda arguments: ArrayType(_STRING, is_nullable=any_nullable([each.type for each in arguments])),
        by_value(_split),
    )
)


def _str_to_map(text: Any, pairs: str = ",", values: str = "=") -> Any:
    if text is None or pairs is None or values is None:
        return None
    found: dict[str, str | None] = {}
    # Both separators are regular expressions, as in Flink.
    for pair in re.split(pairs, text) if text else ():
        key, *value = re.split(values, pair, maxsplit=1)
        found[key] = value[0] if value else None
    return list(found.items())


register(
    Function(
        "STR_TO_MAP",
        Signature(("string", "string", "string"), optional=2),
        lambda arguments: MapType(_STRING, _STRING),
        row_by_row(_str_to_map),
    )
)
