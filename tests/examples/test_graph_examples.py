"""What the example of graphs prints, to the letter. Graphs need Spark."""

from __future__ import annotations

from typing import Any


def test_friends(run: Any) -> None:
    assert run("graph_friends.py", master="local") == [
        "dan is at the centre with a score of 0.180",
        "circle: ann, bob, cat, dan, eve",
        "circle: flo, gus",
        "all friends of ann know each other",
        "ann should meet dan",
    ]
