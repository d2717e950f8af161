"""Ratios, aims, the table on the terminal and the JSON files."""

import datetime
import json
import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.cases import FIRESTEEL, FIRESTEEL_ROCKSDB, PYFLINK, Case
from benchmarks.catalogue import CASES, LARGE_STATE, LIMITS, MANY_KEYS, NEXMARK_SQL

Results = dict[str, dict[str, Any]]
"""Case name to engine name to the measurement."""


@dataclass(frozen=True)
class Ratio:
    """A comparison; ``met`` is None where there is no aim."""

    case: str
    label: str
    value: float
    aim: str = ""
    met: bool | None = None


def rate(results: Results, case: str, engine: str) -> float | None:
    value = results.get(case, {}).get(engine, {}).get("rate")
    return float(value) if value else None


def ratios(results: Results) -> list[Ratio]:
    found: list[Ratio] = []
    for case in CASES.values():
        if case.kind == "rate":
            found += rate_ratios(results, case)
            found += backend_ratios(results, case)
            found += processor_ratios(results, case)
    found += whole_nexmark(results)
    found += many_keys(results)
    found += large_state(results)
    found += startup(results)
    found += limits(results)
    return found


def rate_ratios(results: Results, case: Case) -> Iterator[Ratio]:
    ours = rate(results, case.name, FIRESTEEL)
    aims = {aim.against: aim.at_least for aim in case.aims}
    for engine in case.engines:
        theirs = rate(results, case.name, engine)
        if engine in (FIRESTEEL, FIRESTEEL_ROCKSDB) or ours is None or theirs is None:
            continue
        value = ours / theirs
        aim = aims.get(engine)
        yield Ratio(
            case.name,
            f"firesteel / {engine}",
            value,
            "" if aim is None else f">= {aim:g}",
            None if aim is None else value >= aim,
        )


def processor_ratios(results: Results, case: Case) -> Iterator[Ratio]:
    """How much more processor time a record costs PyFlink, and whether both gave the same number of rows."""
    ours, theirs = (results.get(case.name, {}).get(engine, {}) for engine in (FIRESTEEL, PYFLINK))
    used, theirs_used = (each.get("processor_seconds_per_million") for each in (ours, theirs))
    if used and theirs_used and used > 0 and theirs_used > 0:
        yield Ratio(case.name, "processor time pyflink / firesteel", theirs_used / used)
    rows, theirs_rows = ours.get("rows"), theirs.get("rows")
    if rows and theirs_rows:
        yield Ratio(case.name, "rows firesteel / pyflink", rows / theirs_rows, "= 1", rows == theirs_rows)


def whole_nexmark(results: Results) -> Iterator[Ratio]:
    """The geometric mean over the queries."""
    pairs = ((rate(results, case.name, FIRESTEEL), rate(results, case.name, PYFLINK)) for case in NEXMARK_SQL)
    found = [ours / theirs for ours, theirs in pairs if ours and theirs]
    if found:
        mean = statistics.geometric_mean(found)
        yield Ratio("nexmark_sql", f"geometric mean of {len(found)} queries", mean, ">= 1.5", mean >= 1.5)


def backend_ratios(results: Results, case: Case) -> Iterator[Ratio]:
    """The rocksdb backend, compared with the other one and with PyFlink."""
    rocksdb = rate(results, case.name, FIRESTEEL_ROCKSDB)
    for label, engine in (("rocksdb / hashmap", FIRESTEEL), ("firesteel_rocksdb / pyflink", PYFLINK)):
        other = rate(results, case.name, engine)
        if rocksdb and other:
            yield Ratio(case.name, label, rocksdb / other)


def large_state(results: Results) -> Iterator[Ratio]:
    """Limits of a batch's time are aims of the rocksdb backend, which is there for large state."""
    case, most = LARGE_STATE
    for engine, result in results.get(case, {}).items():
        if "cost" in result:
            aimed = engine == FIRESTEEL_ROCKSDB
            label = f"{engine}: batch among many / few keys"
            met = result["cost"] <= most if aimed else None
            yield Ratio(case, label, result["cost"], f"<= {most:g}" if aimed else "", met)


def limits(results: Results) -> Iterator[Ratio]:
    for case, figure, most in LIMITS:
        for engine, result in results.get(case, {}).items():
            if figure in result:
                yield Ratio(case, f"{engine}: {figure}", result[figure], f"<= {most:g}", result[figure] <= most)


def many_keys(results: Results) -> Iterator[Ratio]:
    few_case, many_case, most = MANY_KEYS
    few, many = rate(results, few_case, FIRESTEEL), rate(results, many_case, FIRESTEEL)
    if few and many:
        cost = few / many
        yield Ratio(many_case, f"cost of a record / {few_case}", cost, f"<= {most:g}", cost <= most)


def startup(results: Results) -> Iterator[Ratio]:
    seconds = {engine: result.get("seconds") for engine, result in results.get("startup", {}).items()}
    ours, theirs = seconds.get(FIRESTEEL), seconds.get(PYFLINK)
    if ours and theirs:
        yield Ratio("startup", "firesteel / pyflink (seconds)", ours / theirs, "<= 1", ours <= theirs)


def table(results: Results) -> str:
    lines = []
    for name, engines in results.items():
        lines += ["", f"{name}: {CASES[name].title}"]
        for engine, result in engines.items():
            lines += [f"  {line}" for line in describe(engine, result)]
    compared = ratios(results)
    if compared:
        lines += ["", f"{'case':<22}{'ratio':<52}{'measured':>10}  {'aim':<9}"]
        for ratio in compared:
            verdict = "" if ratio.met is None else "met" if ratio.met else "MISSED"
            lines.append(f"{ratio.case:<22}{ratio.label:<52}{ratio.value:>10.2f}  {ratio.aim:<9}{verdict}")
    return "\n".join(lines)


def describe(engine: str, result: dict[str, Any]) -> list[str]:
    """A measurement in words; what is neither a rate nor a start is shown figure by figure."""
    if "error" in result:
        return [f"{engine:<20}failed: {last_line(result['error'])}"]
    if "rate" in result:
        shown = f"{result['rate']:>12,.0f}" if result["rate"] else f"{'too noisy':>12}"
        about = f"{result['records']:,} records{spread(result['rates'])}{memory(result)}"
        if "commit_ms" in result:
            about += f"; a commit takes {result['commit_ms']:.0f} ms"
        return [f"{engine:<20}{shown} records/s   ({about})"]
    if "seconds" in result:
        return [f"{engine:<20}{result['seconds']:>12.2f} s to the first output"]
    return [f"{engine:<20}{key}: {format_figures(value)}" for key, value in result.items()]


def last_line(error: str) -> str:
    return (error.strip().splitlines() or ["no message"])[-1]


def memory(result: dict[str, Any]) -> str:
    """The most memory of the largest Python worker and of the JVM, where it was looked at."""
    found = result.get("memory") or {}
    names = {"largest_worker_mib": "worker", "jvm_mib": "JVM"}
    return "".join(f"; {name} {found[key]:,.0f} MiB" for key, name in names.items() if found.get(key))


def spread(rates: list[float | None]) -> str:
    """The lowest and the highest of the repeats."""
    found = [each for each in rates if each]
    return f"; {min(found):,.0f} to {max(found):,.0f}" if len(found) > 1 else ""


def format_figures(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {format_figures(each)}" for key, each in value.items())
    if isinstance(value, list):
        return "; ".join(format_figures(each) for each in value)
    return f"{value:,.1f}" if isinstance(value, float) else f"{value:,}" if isinstance(value, int) else str(value)


def new_file(directory: Path, today: datetime.date) -> Path:
    """``<date>-<n>.json`` with the first free number."""
    directory.mkdir(parents=True, exist_ok=True)
    number = 1
    while (path := directory / f"{today.isoformat()}-{number}.json").exists():
        number += 1
    return path


def document(results: Results, machine: dict[str, Any], settings: dict[str, Any]) -> str:
    content = {
        "date": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "machine": machine,
        "settings": settings,
        "results": results,
        "ratios": [asdict(ratio) for ratio in ratios(results)],
    }
    return json.dumps(content, indent=2) + "\n"
