"""Random graphs, what algorithms should make of them, and blocks that run in this process, without Spark."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from pyspark.sql.types import LongType, StringType

from firesteel.gelly.blocks import STATE, STATS, Assembly, assemble, read_cells, resolve
from firesteel.gelly.hashing import spark_hash
from firesteel.gelly.supersteps import BlockProgram, _block, _Results, _Step

Pairs = list[tuple[int, int, float]]


@st.composite
def small_graphs(draw: st.DrawFn) -> tuple[int, Pairs]:
    """Up to nine vertices, edges with lengths, loops among them."""
    size = draw(st.integers(1, 9))
    ids = st.integers(0, size - 1)
    edges = draw(st.dictionaries(st.tuples(ids, ids), st.integers(1, 9), max_size=24))
    return size, [(source, target, float(length)) for (source, target), length in edges.items()]


def random_graphs(seed: int, count: int) -> list[tuple[int, Pairs]]:
    """The same kind of graphs, many at once, for a test that can afford one example; a vertex alone is among them."""
    chosen = random.Random(seed)
    graphs: list[tuple[int, Pairs]] = [(1, [])]
    for _ in range(count - 1):
        size = chosen.randint(1, 9)
        pairs = {(chosen.randrange(size), chosen.randrange(size)) for _ in range(chosen.randint(0, 24))}
        graphs.append((size, [(source, target, float(chosen.randint(1, 9))) for source, target in sorted(pairs)]))
    return graphs


def side_by_side(graphs: list[tuple[int, Pairs]]) -> nx.DiGraph:
    """One graph of many, each with ids of its own."""
    whole = nx.DiGraph()
    for number, (size, edges) in enumerate(graphs):
        whole.add_nodes_from(number * 100 + vertex for vertex in range(size))
        for source, target, length in edges:
            whole.add_edge(number * 100 + source, number * 100 + target, weight=length)
    return whole


# What should come out


def page_rank(whole: nx.DiGraph, iterations: int) -> dict[Any, float]:
    """So many steps of the surfer, in networkx's matrix; its own function goes on until nothing changes."""
    steps = np.linalg.matrix_power(nx.google_matrix(whole, weight=None), iterations)
    return dict(zip(whole, np.full(len(whole), 1 / len(whole)) @ steps, strict=True))


def scaled(scores: dict[Any, float]) -> dict[Any, float]:
    length = math.sqrt(sum(score * score for score in scores.values()))
    return {key: score / length for key, score in scores.items()} if length else scores


def hits(whole: nx.DiGraph, iterations: int) -> tuple[dict[Any, float], dict[Any, float]]:
    """By its definition: networkx stops where it thinks fit."""
    hub = dict.fromkeys(whole, 1.0)
    authority: dict[Any, float] = {}
    for _ in range(iterations):
        authority = scaled({v: sum(hub[u] for u in whole.predecessors(v)) for v in whole})
        hub = scaled({v: sum(authority[u] for u in whole.successors(v)) for v in whole})
    return hub, authority


def spread_labels(whole: nx.DiGraph, supersteps: int) -> dict[Any, Any]:
    """Gelly's rule, message by message."""
    labels, active = {v: v for v in whole}, set(whole)
    for _ in range(supersteps):
        inbox = defaultdict(list)
        for source, target in whole.edges:
            if source in active:
                inbox[target].append(labels[source])
        for vertex, messages in inbox.items():
            most, best = 1, labels[vertex]
            for label, count in Counter(messages).items():
                if count > most or (count == most and label > best):
                    most, best = count, label
            labels[vertex] = best
        active = set(inbox)
    return labels


def communities(whole: nx.DiGraph, supersteps: int, delta: float) -> dict[Any, Any]:
    """The same with scores."""
    state, active = {v: (v, 1.0) for v in whole}, set(whole)
    both = [(u, v, d["weight"]) for u, v, d in whole.edges(data=True)]
    both += [(v, u, weight) for u, v, weight in both]
    for superstep in range(1, supersteps + 1):
        inbox = defaultdict(list)
        for source, target, weight in both:
            if source in active:
                label, score = state[source]
                inbox[target].append((label, score * weight))
        for vertex, messages in inbox.items():
            total: dict[Any, float] = defaultdict(float)
            highest: dict[Any, float] = {}
            for label, score in messages:
                total[label] += score
                highest[label] = max(score, highest.get(label, -math.inf))
            best = min(total, key=lambda label: (-total[label], label))
            moved = best != state[vertex][0]
            state[vertex] = (best, highest[best] - (delta / superstep if moved else 0))
        active = set(inbox)
    return {vertex: label for vertex, (label, _) in state.items()}


def close(found: dict[Any, float], wanted: dict[Any, float]) -> None:
    assert found.keys() == wanted.keys()
    assert all(math.isclose(found[key], wanted[key], rel_tol=1e-6, abs_tol=1e-9) for key in wanted)


# Blocks in this process


def run_blocks(
    program: BlockProgram,
    vertices: dict[Any, Any],
    edges: list[tuple[Any, Any, Any]],
    blocks: int,
    supersteps: int,
    by_source: bool = False,
) -> dict[Any, tuple[Any, ...]]:
    """What Spark does with blocks: rows go to the partition of their block, superstep by superstep."""
    tokens = tuple(range(100, 100 + blocks))
    assembly = Assembly(tokens, vertex_value=True, edge_value=True, by_source=by_source)
    rows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for one, value in vertices.items():
        row = {"block": 0, "source": one, "target": one, "target_block": -1, "value": None, "vertex": value}
        rows[_number(one, blocks)].append(row)
    for source, target, value in edges:
        row = {"block": 0, "source": source, "target": target, "target_block": _number(target, blocks), "value": value}
        rows[_number(source, blocks)].append({**row, "vertex": None})
    made = [assemble(assembly, number, pa.Table.from_pylist(mine)).table() for number, mine in rows.items()]
    found = {t: resolve(assembly, tokens.index(t), part.to_batches()).table() for t, part in _by_block(made).items()}
    static = _by_block(list(found.values()))
    current: dict[int, pa.Table] = {}
    empty = next(iter(static.values())).slice(0, 0)
    shared = None
    for superstep in range(1, supersteps + 1):
        step = _Step(tokens, program, superstep, shared)
        sent = [step(part, current.get(token, empty)) for token, part in static.items()]
        current = _by_block(sent)
        stats = [_stats(part) for part in current.values()]
        shared, go_on = program.merge(stats, superstep)
        if not go_on:
            break
    width = len(program.results(*_any_state(static, current, tokens, program)))
    results = _Results(tokens, program, ["id", *(f"c{number}" for number in range(width))])
    tables = [results(part, current.get(token, empty)) for token, part in static.items()]
    return {row[0]: row[1:] for table in tables for row in zip(*table.to_pydict().values(), strict=True)}


def _number(one: Any, blocks: int) -> int:
    return spark_hash(one, StringType() if isinstance(one, str) else LongType()) % blocks


def _by_block(tables: list[pa.Table]) -> dict[int, pa.Table]:
    whole = pa.concat_tables(tables)
    tokens = sorted(set(whole["block"].to_pylist()))
    return {token: whole.filter(pa.compute.equal(whole["block"], token)) for token in tokens}


def _stats(part: pa.Table) -> Any:
    return read_cells(part.to_batches(), (STATS,))[STATS, 0]


def _any_state(static: Any, current: Any, tokens: Any, program: BlockProgram) -> tuple[Any, Any]:
    token = next(iter(static))
    _, block = _block(tokens, static[token])
    return block, read_cells(current[token].to_batches(), (STATE,))[STATE, 0]
