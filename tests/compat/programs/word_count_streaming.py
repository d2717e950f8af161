"""Word count over a bounded stream: an update at every record."""

from firesteel.common import Types
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

LINES = ["to be or not to be", "that is the question", "to be"]


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.STREAMING)
    env.set_parallelism(1)
    (
        env.from_collection(LINES, Types.STRING())
        .flat_map(lambda line: line.split(), Types.STRING())
        .map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0])
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .print()
    )
    env.execute("word count")


if __name__ == "__main__":
    main()
