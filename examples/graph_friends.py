"""A small social network: who matters, which circles there are, who should get to know whom.

python examples/graph_friends.py
"""

from firesteel.gelly import Graph
from firesteel.gelly.library import AdamicAdar, ConnectedComponents, LocalClusteringCoefficient, PageRank

FRIENDS = [
    ("ann", "bob"),
    ("ann", "cat"),
    ("bob", "cat"),
    ("bob", "dan"),
    ("cat", "dan"),
    ("dan", "eve"),
    ("flo", "gus"),
]


def main() -> None:
    # Friendship goes both ways.
    graph = Graph.from_collection(FRIENDS).get_undirected().cache()

    ranks = graph.run(PageRank(iterations=10))
    best = ranks.orderBy("score", ascending=False).first()
    print(f"{best.id} is at the centre with a score of {best.score:.3f}")

    circles: dict[str, list[str]] = {}
    for row in graph.run(ConnectedComponents()).orderBy("id").collect():
        circles.setdefault(row.value, []).append(row.id)
    for members in circles.values():
        print(f"circle: {', '.join(members)}")

    for row in graph.run(LocalClusteringCoefficient()).where("score = 1").orderBy("id").collect():
        print(f"all friends of {row.id} know each other")

    known = {frozenset(pair) for pair in FRIENDS}
    pairs = graph.run(AdamicAdar()).orderBy("score", ascending=False).collect()
    one, other = next((row.vertex0, row.vertex1) for row in pairs if {row.vertex0, row.vertex1} not in known)
    print(f"{one} should meet {other}")


if __name__ == "__main__":
    main()
