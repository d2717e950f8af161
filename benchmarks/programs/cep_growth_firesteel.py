"""What an event costs while partial matches of its key are open: with the matcher alone, in microseconds.

Each of so many events begins a partial match. Then come events that none of them takes, and at last one that ends them
all. An event is tried on every partial match, so the first figure grows with their number; that of a match must not.
"""

import argparse
import time

from measure import progress, report

from firesteel.cep import AfterMatchSkipStrategy, Pattern
from firesteel.cep.automaton import compile_pattern
from firesteel.cep.matching import Matcher, Runs

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--records", type=int, default=100_000, help="how often a partial match is tried, about")
options = parser.parse_args()

OPEN = (0, 1, 10, 100, 1_000, 10_000)


def opened(matcher: Matcher, number: int) -> Runs:
    runs = matcher.initial()
    for place in range(number):
        matcher.process(runs, "a", place)
    return runs


def main() -> None:
    steps = Pattern.begin("a").where(lambda event: event == "a").followed_by_any("b").where(lambda event: event == "b")
    matcher = Matcher(compile_pattern(steps), AfterMatchSkipStrategy.no_skip())
    per_event, per_match = {}, {}
    for number in OPEN:
        runs, events = opened(matcher, number), max(10, options.records // (number + 1))
        began = time.process_time()
        for _ in range(events):
            matcher.process(runs, "c", number)
        per_event[number] = (time.process_time() - began) / events * 1e6
        began = time.process_time()
        matches = matcher.process(runs, "b", number)
        per_match[number] = (time.process_time() - began) / max(1, len(matches)) * 1e6
        progress(f"{number:,} open: {per_event[number]:.1f} us an event, {per_match[number]:.1f} us a match")
    report({"open": list(OPEN), "us_per_event": list(per_event.values()), "us_per_match": list(per_match.values())})


if __name__ == "__main__":
    main()
