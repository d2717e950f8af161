"""The command line: ``python -m benchmarks [--cases …] [--engines …] [--quick]``."""

import argparse
import datetime
import sys
import time
from pathlib import Path

from benchmarks import environments, machine, report, runner
from benchmarks.cases import CASES, ENGINES

RESULTS = Path(__file__).resolve().parent / "results"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES), metavar="CASE")
    parser.add_argument("--engines", nargs="+", choices=ENGINES, default=list(ENGINES), metavar="ENGINE")
    parser.add_argument("--records", type=int, help="records of the large run instead of each case's own number")
    parser.add_argument("--repeats", type=int, default=3, help="how often both sizes are run (median)")
    parser.add_argument("--quick", action="store_true", help="a tenth of the records, once: only to try it out")
    parser.add_argument("--output", type=Path, default=RESULTS, help="directory of the JSON files")
    parser.add_argument("--prepare", action="store_true", help="only make the peers' environments")
    return parser.parse_args()


def is_complete(options: argparse.Namespace) -> bool:
    """Only a whole run at full size may become ``latest.json``, from which the plot is drawn."""
    full = set(options.cases) == set(CASES) and set(options.engines) == set(ENGINES)
    return full and not options.quick and options.records is None


def main() -> int:
    options = arguments()
    engines = [ENGINES[name] for name in options.engines]
    for name in sorted({engine.environment for engine in engines if engine.environment}):
        environments.prepare(name)
    if options.prepare:
        return 0

    repeats = 1 if options.quick else options.repeats
    settings = {"repeats": repeats, "quick": options.quick, "records": options.records}
    about = machine.describe()
    path = report.new_file(options.output, datetime.date.today())
    results: report.Results = {}
    for name in options.cases:
        case = CASES[name]
        for engine in engines:
            if engine.name not in case.engines:
                continue
            records = case.records_for(engine.name, options.records, options.quick)
            print(f"{name}: {engine.name} …", end=" ", flush=True)
            started = time.monotonic()
            result = runner.run(case, engine, records, repeats)
            results.setdefault(name, {})[engine.name] = result
            print(
                f"{'failed after' if 'error' in result else ''} {time.monotonic() - started:.0f} s",
                flush=True,
            )
            path.write_text(report.document(results, about, settings))
    if is_complete(options):
        (options.output / "latest.json").write_text(path.read_text())
    print(report.table(results))
    print(f"\n{path}")
    return 1 if any("error" in result for engines in results.values() for result in engines.values()) else 0


if __name__ == "__main__":
    sys.exit(main())
