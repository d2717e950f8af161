"""Algorithms on blocks, without Spark: the same arrays and rows, in this process, against networkx."""

from __future__ import annotations

import math

import networkx as nx
import pytest
from gellykit import (
    Pairs,
    close,
    communities,
    hits,
    page_rank,
    run_blocks,
    side_by_side,
    small_graphs,
    spread_labels,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from firesteel.errors import ProgramError
from firesteel.gelly import blocks
from firesteel.gelly.library.labels import _CommunityProgram, _LabelProgram
from firesteel.gelly.library.pagerank import _HITSProgram, _PageRankProgram
from firesteel.gelly.library.paths import _PathProgram

MANY = st.lists(small_graphs(), min_size=1, max_size=6)


def edges_of(whole: nx.DiGraph) -> list[tuple[int, int, float]]:
    return [(u, v, d["weight"]) for u, v, d in whole.edges(data=True)]


@settings(max_examples=40)
@given(graphs=MANY, cut=st.integers(1, 4))
def test_scores(graphs: list[tuple[int, Pairs]], cut: int) -> None:
    whole = side_by_side(graphs)
    ones = dict.fromkeys(whole, 0)
    ranks = run_blocks(_PageRankProgram(0.85, 6, -1.0, len(whole)), ones, edges_of(whole), cut, 7)
    close({v: row[0] for v, row in ranks.items()}, page_rank(whole, 6))
    scores = run_blocks(_HITSProgram(-1.0), ones, edges_of(whole), cut, 9)
    hub, authority = hits(whole, 4)
    close({v: row[0] for v, row in scores.items()}, hub)
    close({v: row[1] for v, row in scores.items()}, authority)


@settings(max_examples=40)
@given(graphs=MANY, cut=st.integers(1, 4))
def test_labels(graphs: list[tuple[int, Pairs]], cut: int) -> None:
    whole = side_by_side(graphs)
    own = {vertex: vertex for vertex in whole}
    found = run_blocks(_LabelProgram(5), own, edges_of(whole), cut, 6)
    assert {v: row[0] for v, row in found.items()} == spread_labels(whole, 5)
    both = [*edges_of(whole), *((v, u, weight) for u, v, weight in edges_of(whole))]
    found = run_blocks(_CommunityProgram(4, 0.5), own, both, cut, 5)
    assert {v: row[0] for v, row in found.items()} == communities(whole, 4, 0.5)


@settings(max_examples=40)
@given(graphs=MANY, cut=st.integers(1, 4))
def test_paths(graphs: list[tuple[int, Pairs]], cut: int) -> None:
    whole = side_by_side(graphs)
    begin = {vertex: 0.0 if vertex == 0 else math.inf for vertex in whole}
    found = run_blocks(_PathProgram(100), begin, edges_of(whole), cut, 101)
    known = nx.single_source_dijkstra_path_length(whole, 0)
    assert {v: row[0] for v, row in found.items()} == {v: known.get(v, math.inf) for v in whole}


def test_large_values_travel_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks, "CELL", 50)
    ring = [(vertex, (vertex + 1) % 40, 1.0) for vertex in range(40)]
    begin = {vertex: 0.0 if vertex == 0 else math.inf for vertex in range(40)}
    assert run_blocks(_PathProgram(100), begin, ring, 3, 101) == {vertex: (float(vertex),) for vertex in range(40)}


def test_ids_may_be_text() -> None:
    begin = {"a": 0.0, "b": math.inf, "c": math.inf}
    found = run_blocks(_PathProgram(9), begin, [("a", "b", 2.0), ("b", "c", 3.0)], 2, 10)
    assert found == {"a": (0.0,), "b": (2.0,), "c": (5.0,)}


def test_what_is_not_a_graph() -> None:
    with pytest.raises(ProgramError, match=r"^An edge names vertex 5 as its source, but there is no such vertex\."):
        run_blocks(_PathProgram(9), {1: 0.0, 2: 1.0, 3: 1.0, 4: 1.0}, [(5, 1, 1.0)], 2, 10)
    with pytest.raises(ProgramError, match=r"^An edge names vertex 7 as its target, but there is no such vertex\."):
        run_blocks(_PathProgram(9), {1: 0.0, 2: 1.0}, [(1, 7, 1.0)], 2, 10)
