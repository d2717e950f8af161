"""The command line: ``python -m benchmarks [--group …] [--cases …] [--engines …] [--quick]``."""

import argparse
import datetime
import sys
import time
from pathlib import Path

from benchmarks import environments, grid, kafka, machine, report, runner
from benchmarks.cases import ENGINES, Case, Engine
from benchmarks.catalogue import CASES, GROUPS

RESULTS = Path(__file__).resolve().parent / "results"


def arguments(words: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--group", nargs="+", choices=GROUPS, metavar="GROUP", help=f"some of {', '.join(GROUPS)}")
    parser.add_argument("--cases", nargs="+", choices=CASES, metavar="CASE", help="single cases instead of groups")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), metavar="ENGINE")
    parser.add_argument("--records", type=int, help="records of the large run instead of each case's own number")
    parser.add_argument("--repeats", type=int, default=3, help="how often both sizes are run (median)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, once: only to try it out")
    parser.add_argument("--timeout", type=float, default=runner.TIMEOUT, help="seconds for a case on an engine")
    parser.add_argument("--output", type=Path, default=RESULTS, help="directory of the JSON files")
    parser.add_argument("--prepare", action="store_true", help="only make the peers' environments")
    options = parser.parse_args(words)
    if options.cases and options.group:
        parser.error("give either --group or --cases")
    groups = options.group or GROUPS
    options.cases = options.cases or [case.name for group in GROUPS if group in groups for case in GROUPS[group]]
    return options


def complete_groups(options: argparse.Namespace) -> list[str]:
    """The groups that are run whole and at full size: only those may become ``latest-<group>.json``."""
    if options.quick or options.records is not None:
        return []
    asked, engines = set(options.cases), set(options.engines)
    return [
        group
        for group, cases in GROUPS.items()
        if asked >= {case.name for case in cases} and engines >= {name for case in cases for name in case.engines}
    ]


def steps(options: argparse.Namespace) -> list[tuple[Case, Engine]]:
    cases = [CASES[name] for name in options.cases]
    return [(case, ENGINES[name]) for case in cases for name in case.engines if name in options.engines]


def show(line: str) -> None:
    print(f"    {line}", flush=True)


def main() -> int:
    options = arguments()
    planned = steps(options)
    # PyFlink's environment is made for tools that compare with it, too, so --prepare makes those of all engines asked.
    used = [ENGINES[name] for name in options.engines] if options.prepare else [engine for _, engine in planned]
    for name in sorted({engine.environment for engine in used if engine.environment}):
        environments.prepare(name)
    if options.prepare:
        return 0

    repeats = 1 if options.quick else options.repeats
    settings = {"repeats": repeats, "quick": options.quick, "records": options.records}
    about = machine.describe()
    path = report.new_file(options.output, datetime.date.today())
    results: report.Results = {}
    begun = time.monotonic()
    broker = kafka.Broker()
    for number, (case, engine) in enumerate(planned, 1):
        records = case.records_for(engine.name, options.records, options.quick)
        size = f", {records:,} records" if case.records else ""
        print(f"[{number}/{len(planned)}] {case.name}: {engine.name}{size}", flush=True)
        started = time.monotonic()
        result = runner.run(case, engine, records, repeats, options.timeout, show, broker)
        results.setdefault(case.name, {})[engine.name] = result
        path.write_text(report.document(results, about, settings))
        for line in report.describe(engine.name, result):
            show(line)
        now = time.monotonic()
        took = "failed after" if "error" in result else "took"
        show(f"{took} {now - started:.0f} s, {(now - begun) / 60:.0f} min in all")
    broker.close()
    for group in complete_groups(options):
        own = {case.name: results[case.name] for case in GROUPS[group]}
        (options.output / f"latest-{group}.json").write_text(report.document(own, about, settings))
    print(report.table(results))
    print(f"\n{grid.grids(results)}")
    print(f"\n{path}")
    return 1 if any("error" in result for engines in results.values() for result in engines.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
