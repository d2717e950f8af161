import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.common.typeutils.TypeSerializer;
import org.apache.flink.cep.EventComparator;
import org.apache.flink.cep.functions.PatternProcessFunction;
import org.apache.flink.cep.functions.TimedOutPartialMatchHandler;
import org.apache.flink.cep.nfa.compiler.NFACompiler;
import org.apache.flink.cep.operator.CepOperator;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.api.common.serialization.SerializerConfigImpl;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.ObjectMapper;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ArrayNode;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.node.ObjectNode;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;
import org.apache.flink.util.Collector;
import org.apache.flink.util.OutputTag;

/** Reads scenarios, one JSON object a line, runs each on Flink's CEP operator and prints its result as a line. */
public final class CepOracle {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final OutputTag<Event> LATE = new OutputTag<>("late") {};
    private static final TypeSerializer<Event> EVENTS =
            Types.POJO(Event.class).createSerializer(new SerializerConfigImpl());

    private CepOracle() {}

    public static void main(String[] arguments) throws Exception {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        var out = new PrintStream(System.out, false, StandardCharsets.UTF_8);
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            out.println(run(JSON.readTree(line)));
            out.flush();
        }
    }

    private static ObjectNode run(JsonNode scenario) throws Exception {
        ObjectNode result = JSON.createObjectNode();
        Pattern<Event, ?> pattern;
        NFACompiler.NFAFactory<Event> factory;
        boolean timeouts = scenario.path("timeouts").asBoolean();
        try {
            pattern = Patterns.of(scenario.get("pattern"));
            factory = NFACompiler.compileFactory(pattern, timeouts);
        } catch (Exception refused) {
            return result.put("refused", refused.getClass().getSimpleName()).put("why", refused.getMessage());
        }
        ArrayNode out = result.putArray("out");
        Recorder recorder = timeouts ? new RecorderWithTimeouts(out) : new Recorder(out);
        EventComparator<Event> byValue =
                scenario.path("comparator").asBoolean() ? (a, b) -> Integer.compare(a.value, b.value) : null;
        boolean processingTime = scenario.path("time").asText("event").equals("processing");
        var operator =
                new CepOperator<Event, String, String>(
                        EVENTS,
                        processingTime,
                        factory,
                        byValue,
                        pattern.getAfterMatchSkipStrategy(),
                        recorder,
                        LATE);
        recorder.operator = operator;
        try (var harness = new KeyedOneInputStreamOperatorTestHarness<>(operator, event -> event.key, Types.STRING)) {
            harness.open();
            for (JsonNode step : scenario.get("input")) {
                feed(harness, step);
                var late = harness.getSideOutput(LATE);
                while (late != null && !late.isEmpty()) {
                    var event = late.poll().getValue();
                    out.addArray().add("late").add(event.key).add(shown(event));
                }
            }
        } catch (Exception failed) {
            Throwable cause = failed;
            while (cause.getCause() != null) {
                cause = cause.getCause();
            }
            result.put("error", cause.getClass().getSimpleName()).put("why", cause.getMessage());
        }
        return result;
    }

    private static void feed(
            KeyedOneInputStreamOperatorTestHarness<String, Event, String> harness,
            JsonNode step)
            throws Exception {
        switch (step.get(0).asText()) {
            case "e":
                long time = step.get(4).asLong();
                var event = new Event(step.get(1).asText(), step.get(2).asText(), step.get(3).asInt(), time);
                harness.processElement(event, time);
                break;
            case "w":
                harness.processWatermark(step.get(1).asLong());
                break;
            case "p":
                harness.setProcessingTime(step.get(1).asLong());
                break;
            case "end":
                harness.processWatermark(Long.MAX_VALUE);
                break;
            default:
                throw new IllegalArgumentException("unknown input " + step);
        }
    }

    private static ArrayNode shown(Event event) {
        return JSON.createArrayNode().add(event.kind).add(event.value).add(event.time);
    }

    /** Writes down what it is called with. */
    private static class Recorder extends PatternProcessFunction<Event, String> {
        final transient ArrayNode out;
        transient CepOperator<?, ?, ?> operator;

        Recorder(ArrayNode out) {
            this.out = out;
        }

        @Override
        public void processMatch(
                Map<String, List<Event>> match,
                Context context,
                Collector<String> collector) {
            note("match", match, context.timestamp());
        }

        void note(String what, Map<String, List<Event>> match, long time) {
            ArrayNode entry = out.addArray().add(what).add((String) operator.getCurrentKey()).add(time);
            ArrayNode steps = entry.addArray();
            match.forEach((name, events) -> {
                ArrayNode shown = steps.addArray().add(name).addArray();
                events.forEach(event -> shown.add(shown(event)));
            });
        }
    }

    private static final class RecorderWithTimeouts extends Recorder
            implements TimedOutPartialMatchHandler<Event> {
        RecorderWithTimeouts(ArrayNode out) {
            super(out);
        }

        @Override
        public void processTimedOutMatch(
                Map<String, List<Event>> match, Context context) {
            note("timeout", match, context.timestamp());
        }
    }
}
