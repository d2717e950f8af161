"""Lines of a socket, a count per key, collected: for PyFlink and for Firesteel."""

from collections.abc import Iterator
from typing import Any

import both
import delays

parser = both.arguments(__doc__)
parser.add_argument("--bundle-ms", type=int, help="of PyFlink: how long it gathers records for Python")
options = parser.parse_args()
engine = both.Engine(options)
Types = engine.common.Types
ValueStateDescriptor = engine.state.ValueStateDescriptor
HOST = "127.0.0.1"


class CountPerKey(engine.datastream.KeyedProcessFunction):  # type: ignore[name-defined,misc]
    """Yields each line and how many of its key there were so far."""

    def open(self, runtime_context: Any) -> None:
        self.count = runtime_context.get_state(ValueStateDescriptor("count", Types.LONG()))

    def process_element(self, value: Any, ctx: Any) -> Iterator[str]:
        count = (self.count.value() or 0) + 1
        self.count.update(count)
        yield f"{value},{count}"


def lines(env: Any) -> Any:
    if options.engine == "firesteel":
        return env.socket_text_stream(HOST, delays.PORT)
    # PyFlink has no name for it in Python.
    stream = env._j_stream_execution_environment.socketTextStream(HOST, delays.PORT)
    return engine.datastream.DataStream(stream)


env = engine.environment()
if options.bundle_ms is not None:
    settings = engine.common.Configuration()
    settings.set_string("python.fn-execution.bundle.time", str(options.bundle_ms))
    env.configure(settings)
users = lines(env).map(lambda line: line, Types.STRING()).key_by(lambda line: line.split(",")[0], Types.STRING())
found = delays.Delays()
for result in users.process(CountPerKey(), Types.STRING()).execute_and_collect():
    found.note(result)
