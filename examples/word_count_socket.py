"""Counts the words that arrive at a socket, for as long as they arrive.

In one terminal start a server that sends what you type:

    nc -lk 9999

in another one the job, and then type lines into the first:

    python examples/word_count_socket.py
    python examples/word_count_socket.py --host 192.168.0.7 --port 1234

The job connects again when the connection breaks. Stop it with Ctrl-C, or start it with ``--until-closed`` to
let it end when the server closes the connection.
"""

import argparse

from firesteel.common import Types
from firesteel.datastream import StreamExecutionEnvironment


def main() -> None:
    parser = argparse.ArgumentParser(description="Counts the words that arrive at a socket.")
    parser.add_argument("--host", default="localhost", help="where the server is (default: localhost)")
    parser.add_argument("--port", type=int, default=9999, help="the server's port (default: 9999)")
    parser.add_argument("--until-closed", action="store_true", help="end when the connection is closed")
    options = parser.parse_args()

    env = StreamExecutionEnvironment.get_execution_environment()

    retries = 0 if options.until_closed else -1
    lines = env.socket_text_stream(options.host, options.port, max_retry=retries)
    words = lines.flat_map(lambda line: line.split(), output_type=Types.STRING())
    ones = words.map(lambda word: (word, 1), output_type=Types.TUPLE([Types.STRING(), Types.LONG()]))
    counts = ones.key_by(lambda pair: pair[0]).sum(1)
    counts.print()

    env.execute("word count, socket")


if __name__ == "__main__":
    main()
