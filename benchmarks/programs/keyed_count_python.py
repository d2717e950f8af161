"""A count per key in a bare Python loop: the user's functions called directly, with no engine around them."""

from collections.abc import Iterator

import loops
from measure import arguments, report, slope

parser = arguments(__doc__)
parser.add_argument("--keys", type=int, default=10_000)
options = parser.parse_args()
KEYS = options.keys


class Count:
    """The least that a keyed value state can be: a dict, and the key of the record at hand."""

    def __init__(self) -> None:
        self.values: dict[str, int] = {}
        self.key = ""

    def value(self) -> int | None:
        return self.values.get(self.key)

    def update(self, value: int) -> None:
        self.values[self.key] = value


class CountPerKey:
    def __init__(self, count: Count) -> None:
        self.count = count

    def process_element(self, value: str, ctx: object) -> Iterator[tuple[str, int]]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield value, count


def loop(start: int, end: int) -> int:
    to_user = lambda n: f"user-{n * 2654435761 % KEYS}"  # noqa: E731
    key_of = lambda user: user  # noqa: E731
    keep = lambda pair: False  # noqa: E731
    count = Count()
    process_element = CountPerKey(count).process_element
    kept = 0
    for n in range(start, end):
        user = to_user(n)
        count.key = key_of(user)
        for pair in process_element(user, None):
            if keep(pair):
                kept += 1
    return kept


report(slope(lambda records: loops.run(loop, records, options.parallelism), options.records, options.repeats))
