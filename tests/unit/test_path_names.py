"""Names of files and folders from texts that people choose."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from firesteel.common.path_names import path_name

ODD = [
    "",
    ".",
    "..",
    "/",
    "/etc/passwd",
    "../../victim",
    "a/b",
    "a\\b",
    "a\0b",
    "user totals",
    "User_totals",
    "集計一",
    "集計二",
    "é",
    "e\u0301",
    "\udcff",
    "_hidden",
    ".hidden",
    "dot.",
    "con",
    "nul.txt",
    "x" * 300,
    "x" * 301,
    "a=b",
    "%2e%2e",
    "~",
]
PORTABLE = re.compile(r"[a-z0-9][a-z0-9._-]*")


@pytest.mark.parametrize("text", ["user_totals", "source-1", "a", "0", "v1.2", "cbc357ccb763df2852fee8c4fc7d55f2"])
def test_a_plain_name_stays(text: str) -> None:
    assert path_name(text) == text


def test_odd_texts_have_names_of_their_own() -> None:
    texts = [*ODD, "user_totals", *(path_name(text) for text in ODD)]
    names = {path_name(text).casefold() for text in texts}
    assert len(names) == len(texts), "a name that was made is a text, too, and has another name"


@given(st.text(st.characters() | st.sampled_from("aA._-/ ")))
def test_any_text_has_a_portable_name(text: str) -> None:
    name = path_name(text)
    assert PORTABLE.fullmatch(name)
    assert len(name) <= 93
    assert not name.endswith(".")
    assert name == text or re.search("-[0-9a-f]{32}$", name)
