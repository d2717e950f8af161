import java.time.Duration;
import org.apache.flink.cep.nfa.aftermatch.AfterMatchSkipStrategy;
import org.apache.flink.cep.pattern.Pattern;
import org.apache.flink.cep.pattern.WithinType;
import org.apache.flink.shaded.jackson2.com.fasterxml.jackson.databind.JsonNode;

/** Makes Flink's pattern of a scenario's. The calls on a step come in one fixed order. */
final class Patterns {
    private Patterns() {}

    static Pattern<Event, ?> of(JsonNode pattern) {
        return chain(pattern.get("steps"), skip(pattern.get("skip")));
    }

    private static Pattern<Event, Event> chain(
            JsonNode steps, AfterMatchSkipStrategy skip) {
        Pattern<Event, Event> built = null;
        for (JsonNode step : steps) {
            built = refined(step.has("group") ? group(built, step, skip) : single(built, step, skip), step);
        }
        return built;
    }

    private static Pattern<Event, Event> single(
            Pattern<Event, Event> before,
            JsonNode step,
            AfterMatchSkipStrategy skip) {
        String name = step.get("name").asText();
        switch (step.get("how").asText()) {
            case "begin":
                return skip == null ? Pattern.begin(name) : Pattern.begin(name, skip);
            case "next":
                return before.next(name);
            case "followed_by":
                return before.followedBy(name);
            case "followed_by_any":
                return before.followedByAny(name);
            case "not_next":
                return before.notNext(name);
            case "not_followed_by":
                return before.notFollowedBy(name);
            default:
                throw new IllegalArgumentException("unknown step " + step);
        }
    }

    private static Pattern<Event, Event> group(
            Pattern<Event, Event> before,
            JsonNode step,
            AfterMatchSkipStrategy skip) {
        var inner = chain(step.get("group"), null);
        switch (step.get("how").asText()) {
            case "begin":
                return skip == null ? Pattern.begin(inner) : Pattern.begin(inner, skip);
            case "next":
                return before.next(inner);
            case "followed_by":
                return before.followedBy(inner);
            case "followed_by_any":
                return before.followedByAny(inner);
            default:
                throw new IllegalArgumentException("no such step with a group: " + step);
        }
    }

    private static Pattern<Event, Event> refined(
            Pattern<Event, Event> built,
            JsonNode step) {
        for (JsonNode condition : step.path("where")) {
            built = built.where(Conditions.of(condition));
        }
        for (JsonNode condition : step.path("or")) {
            built = built.or(Conditions.of(condition));
        }
        if (step.has("quantifier")) {
            built = quantified(built, step);
        }
        if (step.has("until")) {
            built = built.until(Conditions.of(step.get("until")));
        }
        if (step.path("optional").asBoolean()) {
            built = built.optional();
        }
        if (step.path("greedy").asBoolean()) {
            built = built.greedy();
        }
        if (step.path("consecutive").asBoolean()) {
            built = built.consecutive();
        }
        if (step.path("allow_combinations").asBoolean()) {
            built = built.allowCombinations();
        }
        if (step.has("within")) {
            built = built.within(Duration.ofMillis(step.get("within").asLong()));
        }
        if (step.has("within_previous")) {
            Duration window = Duration.ofMillis(step.get("within_previous").asLong());
            built = built.within(window, WithinType.PREVIOUS_AND_CURRENT);
        }
        return built;
    }

    private static Pattern<Event, Event> quantified(
            Pattern<Event, Event> built,
            JsonNode step) {
        JsonNode quantifier = step.get("quantifier");
        Duration window = step.has("window") ? Duration.ofMillis(step.get("window").asLong()) : null;
        int first = quantifier.path(1).asInt();
        switch (quantifier.get(0).asText()) {
            case "one_or_more":
                return window == null ? built.oneOrMore() : built.oneOrMore(window);
            case "times_or_more":
                return window == null ? built.timesOrMore(first) : built.timesOrMore(first, window);
            case "times":
                if (quantifier.size() == 2) {
                    return window == null ? built.times(first) : built.times(first, window);
                }
                int last = quantifier.get(2).asInt();
                return window == null ? built.times(first, last) : built.times(first, last, window);
            default:
                throw new IllegalArgumentException("unknown quantifier " + quantifier);
        }
    }

    private static AfterMatchSkipStrategy skip(JsonNode spec) {
        if (spec == null) {
            return null;
        }
        String step = spec.path("step").asText();
        boolean strict = spec.path("throw").asBoolean();
        switch (spec.get("kind").asText()) {
            case "no_skip":
                return AfterMatchSkipStrategy.noSkip();
            case "skip_to_next":
                return AfterMatchSkipStrategy.skipToNext();
            case "skip_past_last_event":
                return AfterMatchSkipStrategy.skipPastLastEvent();
            case "skip_to_first":
                var first = AfterMatchSkipStrategy.skipToFirst(step);
                return strict ? first.throwExceptionOnMiss() : first;
            case "skip_to_last":
                var last = AfterMatchSkipStrategy.skipToLast(step);
                return strict ? last.throwExceptionOnMiss() : last;
            default:
                throw new IllegalArgumentException("unknown skip strategy " + spec);
        }
    }
}
