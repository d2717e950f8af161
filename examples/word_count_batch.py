"""Counts the words of a text file in BATCH mode: every word comes out once, with its final count.

    python examples/word_count_batch.py
    python examples/word_count_batch.py --input some/other/file.txt

The mode is a setting, not another API. This does the same:

    firesteel run -D execution.runtime-mode=BATCH examples/word_count_bounded.py
"""

import argparse
from pathlib import Path

from firesteel.common import Types
from firesteel.datastream import RuntimeExecutionMode, StreamExecutionEnvironment

WORDS = Path(__file__).parent / "data" / "words.txt"


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts the words of a text file, in BATCH mode.")
    parser.add_argument("--input", default=str(WORDS), help="a text file, or a folder of them")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()
    env.set_runtime_mode(RuntimeExecutionMode.BATCH)

    lines = env.read_text_file(options.input)
    words = lines.flat_map(lambda line: line.split(), output_type=Types.STRING())
    ones = words.map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.LONG()]))
    counts = ones.key_by(lambda pair: pair[0]).sum(1)
    counts.print()

    env.execute("word count, batch")


if __name__ == "__main__":
    main()
