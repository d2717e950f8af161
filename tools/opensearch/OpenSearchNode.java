import org.codelibs.opensearch.runner.OpenSearchRunner;

/** One node on loopback, for tests: the folder for its data and the port of its interface are the arguments. */
public class OpenSearchNode {
    public static void main(String[] arguments) throws Exception {
        OpenSearchRunner runner = new OpenSearchRunner();
        runner.onBuild((number, settings) -> {
            settings.put("network.host", "127.0.0.1");
            settings.put("discovery.type", "single-node");
            settings.put("http.port", arguments[1]);
            settings.put("transport.port", arguments[2]);
        }).build(OpenSearchRunner.newConfigs().clusterName("firesteel").numOfNode(1).basePath(arguments[0]));
        Thread.sleep(Long.MAX_VALUE);
    }
}
