"""A count per key from Kafka to Kafka with Bytewax. Its sink has no transactions, so results may come twice."""

import bytewax.operators as op
import kafka_settings
import measure
from bytewax.connectors.kafka import KafkaSink, KafkaSinkMessage, KafkaSource, KafkaSourceMessage
from bytewax.dataflow import Dataflow
from cluster import run_in_processes

options = kafka_settings.arguments(__doc__).parse_args()
STAMPED, USER = kafka_settings.STAMPED, kafka_settings.USER


def count(state: int | None, line: str) -> tuple[int, str]:
    counted = (state or 0) + 1
    return counted, f"{line}:{counted}"


def decoded(message: KafkaSourceMessage[bytes, bytes]) -> str:
    return message.value.decode()[:STAMPED]


def dataflow(records: int) -> Dataflow:
    flow = Dataflow("kafka")
    servers = [kafka_settings.SERVERS]
    topics = kafka_settings.topics(records, options.live)
    messages = op.input("in", flow, KafkaSource(servers, topics, tail=options.live, batch_size=1000))
    lines = op.map("lines", messages, decoded)
    keyed = op.key_on("keyed", lines, lambda line: line[:USER])
    counts = op.stateful_map("counts", keyed, count)
    outgoing = op.map("outgoing", counts, lambda pair: KafkaSinkMessage(None, pair[1].encode()))
    op.output("out", outgoing, KafkaSink(servers, kafka_settings.RESULTS))
    return flow


def job(records: int) -> None:
    run_in_processes(lambda: dataflow(records), options.parallelism)


if options.live:
    job(0)
else:
    measure.report(measure.slope(job, options.records, options.repeats))
