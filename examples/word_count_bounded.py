"""Counts the words of a text file as a bounded stream: every word gives an update.

    python examples/word_count_bounded.py
    python examples/word_count_bounded.py --input some/other/file.txt

Compare with word_count_batch.py: the same program there prints each word once. Here ``hello`` is printed
three times, with 1, 2 and 3, because a stream does not wait to see whether more is to come.
"""

import argparse
from pathlib import Path

from firesteel.common import Types
from firesteel.datastream import StreamExecutionEnvironment

WORDS = Path(__file__).parent / "data" / "words.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts the words of a text file, as a stream.")
    parser.add_argument("--input", default=str(WORDS), help="a text file, or a folder of them")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()

    lines = env.read_text_file(options.input)
    words = lines.flat_map(lambda line: line.split(), output_type=Types.STRING())
    ones = words.map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.LONG()]))
    counts = ones.key_by(lambda pair: pair[0]).sum(1)
    counts.print()

    env.execute("word count, bounded stream")


if __name__ == "__main__":
    main()
