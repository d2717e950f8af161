import org.apache.flink.cep.pattern.conditions.IterativeCondition;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** The conditions of scenarios. */
final class Conditions {
    private Conditions() {}

    static IterativeCondition<Event> of(JsonNode spec) {
        String test = spec.fieldNames().next();
        JsonNode argument = spec.get(test);
        return new IterativeCondition<>() {
            @Override
            public boolean filter(Event event, Context<Event> context) throws Exception {
                switch (test) {
                    case "true":
                        return true;
                    case "kind":
                        return event.kind.equals(argument.asText());
                    case "above":
                        return event.value > argument.asInt();
                    case "below":
                        return event.value < argument.asInt();
                    case "sum_below":
                        int sum = event.value;
                        for (var earlier : context.getEventsForPattern(argument.get(0).asText())) {
                            sum += earlier.value;
                        }
                        return sum < argument.get(1).asInt();
                    case "above_last":
                        Integer last = null;
                        for (var earlier : context.getEventsForPattern(argument.asText())) {
                            last = earlier.value;
                        }
                        return last == null || event.value > last;
                    default:
                        throw new IllegalArgumentException("unknown condition " + test);
                }
            }
        };
    }
}
