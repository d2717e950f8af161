"""A word count, for PyFlink and for Firesteel; whoever starts it waits for its first line."""

import argparse
import importlib

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--engine", choices=["firesteel", "pyflink"], default="firesteel")
options = parser.parse_args()

common = importlib.import_module(f"{options.engine}.common")
datastream = importlib.import_module(f"{options.engine}.datastream")

Types = common.Types
LINES = ["to be or not to be", "that is the question", "whether it is nobler in the mind to suffer"] * 10


def main() -> None:
    env = datastream.StreamExecutionEnvironment.get_execution_environment()
    env.set_parallelism(2)
    (
        env.from_collection(LINES, Types.STRING())
        .flat_map(lambda line: line.split(), Types.STRING())
        .map(lambda word: (word, 1), Types.TUPLE([Types.STRING(), Types.INT()]))
        .key_by(lambda pair: pair[0], Types.STRING())
        .reduce(lambda a, b: (a[0], a[1] + b[1]))
        .print()
    )
    env.execute("word count")


main()
