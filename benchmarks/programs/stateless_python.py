"""map and filter in a bare Python loop: the user's functions called directly, with no engine around them."""

import loops
from measure import arguments, report, slope

options = arguments(__doc__).parse_args()


def loop(start: int, end: int) -> int:
    to_pair = lambda n: (n, n * 3)  # noqa: E731
    is_even = lambda pair: pair[1] % 2 == 0  # noqa: E731
    keep = lambda pair: False  # noqa: E731
    kept = 0
    for n in range(start, end):
        pair = to_pair(n)
        if is_even(pair) and keep(pair):
            kept += 1
    return kept


report(slope(lambda records: loops.run(loop, records, options.parallelism), options.records, options.repeats))
