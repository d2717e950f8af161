"""reduce with a lambda and with a class; a key's first record passes as it is."""

from firesteel.common import Types
from firesteel.datastream import ReduceFunction, RuntimeContext, StreamExecutionEnvironment

ORDER = "label"


class Longest(ReduceFunction):
    def open(self, runtime_context: RuntimeContext) -> None:
        self.mark = "!"

    def reduce(self, value1: str, value2: str) -> str:
        return value1 if len(value1) >= len(value2) else value2 + self.mark


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(1)
    words = env.from_collection(["ape", "bear", "ant", "antelope", "bee", "buffalo", "cat"], Types.STRING())
    by_letter = words.key_by(lambda word: word[0], Types.STRING())
    by_letter.reduce(Longest()).print("class")
    by_letter.reduce(lambda a, b: f"{a},{b}").print("lambda")
    env.execute("reduce")


if __name__ == "__main__":
    main()
