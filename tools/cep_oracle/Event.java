/** An event of a scenario. Flink serializes it as a POJO. */
public final class Event {
    public String key;
    public String kind;
    public int value;
    public long time;

    public Event() {}

    Event(String key, String kind, int value, long time) {
        this.key = key;
        this.kind = kind;
        this.value = value;
        this.time = time;
    }
}
