"""Word count without a single declared type, on two subtasks: values travel pickled."""

from firesteel.datastream import StreamExecutionEnvironment

ORDER = "none"
LINES = ["to be or not to be", "that is the question", "to be"]


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    words = env.from_collection(LINES).flat_map(lambda line: line.split())
    pairs = words.map(lambda word: (word, 1))
    pairs.key_by(lambda pair: pair[0]).reduce(lambda a, b: (a[0], a[1] + b[1])).print()
    env.execute("word count")


if __name__ == "__main__":
    main()
