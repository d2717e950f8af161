"""One table a group, in Markdown, to be read on a terminal and pasted into a page."""

from collections.abc import Callable, Iterable
from typing import Any

from benchmarks.cases import BYTEWAX, FIRESTEEL, FIRESTEEL_ROCKSDB, PYFLINK, QUIX, TWO_LOOPS, Case
from benchmarks.catalogue import GROUPS
from benchmarks.report import Results, last_line

DASH = "-"
Cell = Callable[[dict[str, Any]], str]


def grids(results: Results) -> str:
    """The tables of all groups but the first, which has engines of its own in every row."""
    return "\n\n".join(table for group in GROUPS if group != "engine" for table in tables(results, group))


def tables(results: Results, group: str) -> Iterable[str]:
    cases = [case for case in GROUPS[group] if case.name in results]
    rates = [case for case in cases if case.kind == "rate"]
    if rates:
        yield markdown(columns(rates), [(case.title, results[case.name]) for case in rates])
    for case in cases:
        if case.kind in ("latency", "live"):
            yield markdown(LATENCY, [(engine, result) for engine, result in results[case.name].items()])
        if case.name == "large_state":
            yield markdown(LARGE_STATE, [(engine, result) for engine, result in results[case.name].items()])


def columns(cases: list[Case]) -> dict[str, Cell]:
    """The columns of rates; those of the rocksdb backend only where it was measured."""
    both = any(FIRESTEEL_ROCKSDB in case.engines for case in cases)
    engines = {FIRESTEEL: "hashmap" if both else "Firesteel"}
    if both:
        engines[FIRESTEEL_ROCKSDB] = "rocksdb"
    found: dict[str, Cell] = {f"{name}, records/s": rate_cell(engine) for engine, name in engines.items()}
    found["PyFlink, records/s"] = rate_cell(PYFLINK)
    found |= {f"{name} / PyFlink": ratio_cell(engine, PYFLINK) for engine, name in engines.items()}
    if both:
        found["rocksdb / hashmap"] = ratio_cell(FIRESTEEL_ROCKSDB, FIRESTEEL)
    for engine, name in OTHERS.items():
        if any(engine in case.engines for case in cases):
            found[f"{name}, records/s"] = rate_cell(engine)
            found[f"Firesteel / {name}"] = ratio_cell(FIRESTEEL, engine)
    if any(case.kafka_bytes for case in cases):
        found["a commit, ms"] = commit_cell
        return found
    engines[PYFLINK] = "PyFlink"
    found |= {f"{name}, worker and JVM in MiB": memory_cell(engine) for engine, name in engines.items()}
    return found


OTHERS = {QUIX: "Quix Streams", BYTEWAX: "Bytewax", TWO_LOOPS: "two bare loops"}
"""Engines that some groups compare with."""


def commit_cell(row: dict[str, Any]) -> str:
    took = (row.get(FIRESTEEL) or {}).get("commit_ms")
    return f"{took:.0f}" if took else DASH


def rate_cell(engine: str) -> Cell:
    def cell(row: dict[str, Any]) -> str:
        result = row.get(engine)
        if result is None:
            return DASH
        if "error" in result:
            return f"failed: {last_line(result['error'])[:60]}".replace("|", "/")
        return f"{result['rate']:,.0f}" if result.get("rate") else "too noisy"

    return cell


def ratio_cell(engine: str, against: str) -> Cell:
    def cell(row: dict[str, Any]) -> str:
        one, other = ((row.get(name) or {}).get("rate") for name in (engine, against))
        return f"{one / other:,.2f}" if one and other else DASH

    return cell


def memory_cell(engine: str) -> Cell:
    def cell(row: dict[str, Any]) -> str:
        memory = (row.get(engine) or {}).get("memory")
        return peaks(memory) if memory else DASH

    return cell


def peaks(memory: dict[str, Any]) -> str:
    found = (memory.get("largest_worker_mib"), memory.get("jvm_mib"))
    return " and ".join(f"{size:,.0f}" if size else DASH for size in found)


def figure(part: str, key: str, form: str = ",.0f") -> Cell:
    """A figure of the large state: of its few or many keys."""

    def cell(row: dict[str, Any]) -> str:
        if "error" in row:
            return f"failed: {last_line(row['error'])[:60]}".replace("|", "/")
        return format(row[part][key], form) if part in row else row.get("skipped", DASH)

    return cell


def large_memory(row: dict[str, Any]) -> str:
    return peaks(row["many_keys"]["memory"]) if "many_keys" in row else DASH


LATENCY: dict[str, Cell] = {
    "median, ms": figure("latency_ms", "median"),
    "99 of 100, ms": figure("latency_ms", "p99"),
    "results a second": figure("latency_ms", "results a second"),
}

LARGE_STATE: dict[str, Cell] = {
    "keys": figure("many_keys", "keys"),
    "filled in, s": figure("many_keys", "fill_seconds"),
    "batch among them, ms": figure("many_keys", "batch_ms"),
    "batch among few, ms": figure("few_keys", "batch_ms"),
    "cost": lambda row: f"{row['cost']:.2f}" if "cost" in row else DASH,
    "worker and JVM in MiB": large_memory,
}


def markdown(cells: dict[str, Cell], rows: list[tuple[str, dict[str, Any]]]) -> str:
    lines = [["case", *cells], ["---"] * (len(cells) + 1)]
    lines += [[title, *(cell(row) for cell in cells.values())] for title, row in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
