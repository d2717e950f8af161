"""The program as data: transformations, the stream graph, and the job graph that the engine lowers.

Nothing here runs anything. The builder writes transformations, :mod:`.stream_graph` resolves what was left open
(parallelism, names, ids), :mod:`.job_graph` cuts the graph into stages, and :mod:`.plan` shows it as JSON.
"""
