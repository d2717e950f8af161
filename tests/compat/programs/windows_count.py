"""Count windows: tumbling and sliding, with a fold and with all elements. What does not fill one is never seen."""

from collections.abc import Iterable, Iterator

from firesteel.common import Types
from firesteel.datastream import ProcessWindowFunction, StreamExecutionEnvironment

ORDER = "label"
Reading = tuple[str, int]


class Show(ProcessWindowFunction):
    def __init__(self, name: str) -> None:
        self.name = name

    def process(self, key: str, context: ProcessWindowFunction.Context, elements: Iterable[Reading]) -> Iterator[str]:
        yield f"{self.name} {key}> {[reading[1] for reading in elements]}"


def add(one: Reading, other: Reading) -> Reading:
    return one[0], one[1] + other[1]


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    readings = [("ab"[n % 3 == 0], n) for n in range(17)]
    stream = env.from_collection(readings, Types.TUPLE([Types.STRING(), Types.INT()]))
    keyed = stream.key_by(lambda reading: reading[0], Types.STRING())
    keyed.count_window(3).process(Show("3"), Types.STRING()).print()
    keyed.count_window(4, 2).process(Show("4 every 2"), Types.STRING()).print()
    keyed.count_window(3).reduce(add).map(lambda r: f"3 reduced {r[0]}> {r[1]}", Types.STRING()).print()
    keyed.count_window(4, 1).reduce(add).map(lambda r: f"4 every 1 reduced {r[0]}> {r[1]}", Types.STRING()).print()
    env.execute("count windows")


if __name__ == "__main__":
    main()
