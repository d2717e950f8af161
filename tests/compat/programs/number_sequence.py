"""The number sequence source, on two subtasks, counted and summed by key."""

from firesteel.common import Types, WatermarkStrategy
from firesteel.datastream import StreamExecutionEnvironment
from firesteel.datastream.connectors.number_seq import NumberSequenceSource

ORDER = "none"


def main() -> None:
    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    numbers = env.from_source(NumberSequenceSource(-3, 16), WatermarkStrategy.no_watermarks(), "numbers")
    numbers.filter(lambda n: n % 5 == 0).map(lambda n: f"multiple {n}", Types.STRING()).print()
    single = env.from_source(NumberSequenceSource(7, 7), WatermarkStrategy.no_watermarks(), "one number")
    single.map(lambda n: (type(n).__name__, n)).print("single")
    env.execute("number sequence")


if __name__ == "__main__":
    main()
