"""Nexmark's queries in our own words, for the tables of ``nexmark_files``.

Missing are q12, whose windows of processing time depend on the clock, and q13, which looks rows up in another system.
"""

QUERIES = {
    "q0": """
        SELECT auction, bidder, price, date_time, extra FROM bid
    """,
    "q1": """
        SELECT auction, bidder, 0.908 * price AS euros, date_time, extra FROM bid
    """,
    "q2": """
        SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0
    """,
    "q3": """
        SELECT p.name, p.city, p.state, a.id FROM auction AS a JOIN person AS p ON p.id = a.seller
        WHERE a.category = 10 AND p.state IN ('OR', 'ID', 'CA')
    """,
    "q4": """
        SELECT category, AVG(highest) AS average FROM (
        SELECT a.id, a.category, MAX(b.price) AS highest FROM auction AS a JOIN bid AS b ON b.auction = a.id
        WHERE b.date_time BETWEEN a.date_time AND a.expires GROUP BY a.id, a.category
        ) GROUP BY category
    """,
    "q5": """
        WITH counts AS (
        SELECT auction, COUNT(*) AS bids, window_start, window_end
        FROM TABLE(HOP(TABLE bid, DESCRIPTOR(date_time), INTERVAL '2' SECOND, INTERVAL '10' SECOND))
        GROUP BY auction, window_start, window_end
        )
        SELECT c.auction, c.bids, c.window_start FROM counts AS c
        JOIN (SELECT MAX(bids) AS most, window_start, window_end FROM counts GROUP BY window_start, window_end) AS m
        ON c.window_start = m.window_start AND c.window_end = m.window_end AND c.bids = m.most
    """,
    "q6": """
        SELECT seller, AVG(paid) OVER (PARTITION BY seller ORDER BY date_time ROWS BETWEEN 10 PRECEDING AND CURRENT
        ROW) AS average
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id, seller ORDER BY paid DESC) AS place FROM (
        SELECT a.id, a.seller, b.price AS paid, b.date_time FROM auction AS a JOIN bid AS b ON a.id = b.auction
        WHERE b.date_time BETWEEN a.date_time AND a.expires)) WHERE place = 1
    """,
    "q7": """
        SELECT b.auction, b.price, b.bidder, b.date_time FROM bid AS b JOIN (
        SELECT MAX(price) AS highest, window_end AS dt FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(date_time), INTERVAL
        '10' SECOND))
        GROUP BY window_start, window_end
        ) AS h ON b.price = h.highest WHERE b.date_time BETWEEN h.dt - INTERVAL '10' SECOND AND h.dt
    """,
    "q8": """
        SELECT p.id, p.name, p.window_start FROM (
        SELECT id, name, window_start, window_end FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(date_time), INTERVAL
        '10' SECOND))
        GROUP BY id, name, window_start, window_end
        ) AS p JOIN (
        SELECT seller, window_start, window_end FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(date_time), INTERVAL
        '10' SECOND))
        GROUP BY seller, window_start, window_end
        ) AS a ON p.id = a.seller AND p.window_start = a.window_start AND p.window_end = a.window_end
    """,
    "q9": """
        SELECT id, item_name, seller, auction, bidder, price, bid_at FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY price DESC, bid_at ASC) AS place FROM (
        SELECT a.id, a.item_name, a.seller, b.auction, b.bidder, b.price, b.date_time AS bid_at
        FROM auction AS a JOIN bid AS b ON a.id = b.auction WHERE b.date_time BETWEEN a.date_time AND a.expires)
        ) WHERE place <= 1
    """,
    "q10": """
        SELECT auction, bidder, price, date_time, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS dt, DATE_FORMAT(date_time,
        'HH:mm') AS hm FROM bid
    """,
    "q11": """
        SELECT bidder, COUNT(*) AS bids, window_start, window_end
        FROM TABLE(SESSION(TABLE bid PARTITION BY bidder, DESCRIPTOR(date_time), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end
    """,
    "q14": """
        SELECT auction, bidder, 0.908 * price AS price,
        CASE WHEN HOUR(date_time) BETWEEN 8 AND 18 THEN 'day' WHEN HOUR(date_time) <= 6 OR HOUR(date_time) >= 20
        THEN 'night' ELSE 'other' END AS part,
        CHAR_LENGTH(extra) - CHAR_LENGTH(REPLACE(extra, 'c', '')) AS letters
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000
    """,
    "q15": """
        SELECT DATE_FORMAT(date_time, 'yyyy-MM-dd') AS dt, COUNT(*) AS bids, COUNT(*) FILTER (WHERE price < 10000)
        AS low, COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS mid,
        COUNT(*) FILTER (WHERE price >= 1000000) AS high, COUNT(DISTINCT bidder) AS bidders, COUNT(DISTINCT bidder)
        FILTER (WHERE price < 10000) AS bidder_low,
        COUNT(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS bidder_mid, COUNT(DISTINCT
        bidder) FILTER (WHERE price >= 1000000) AS bidder_high, COUNT(DISTINCT auction) AS auctions, COUNT(DISTINCT
        auction) FILTER (WHERE price < 10000) AS auction_low,
        COUNT(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS auction_mid, COUNT(DISTINCT
        auction) FILTER (WHERE price >= 1000000) AS auction_high FROM bid GROUP BY DATE_FORMAT(date_time,
        'yyyy-MM-dd')
    """,
    "q16": """
        SELECT channel, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS dt, MAX(DATE_FORMAT(date_time, 'HH:mm')) AS latest,
        COUNT(*) AS bids, COUNT(*) FILTER (WHERE price < 10000) AS low, COUNT(*) FILTER (WHERE price >= 10000 AND
        price < 1000000) AS mid,
        COUNT(*) FILTER (WHERE price >= 1000000) AS high, COUNT(DISTINCT bidder) AS bidders, COUNT(DISTINCT bidder)
        FILTER (WHERE price < 10000) AS bidder_low,
        COUNT(DISTINCT bidder) FILTER (WHERE price >= 10000 AND price < 1000000) AS bidder_mid, COUNT(DISTINCT
        bidder) FILTER (WHERE price >= 1000000) AS bidder_high, COUNT(DISTINCT auction) AS auctions, COUNT(DISTINCT
        auction) FILTER (WHERE price < 10000) AS auction_low,
        COUNT(DISTINCT auction) FILTER (WHERE price >= 10000 AND price < 1000000) AS auction_mid, COUNT(DISTINCT
        auction) FILTER (WHERE price >= 1000000) AS auction_high FROM bid GROUP BY channel, DATE_FORMAT(date_time,
        'yyyy-MM-dd')
    """,
    "q17": """
        SELECT auction, DATE_FORMAT(date_time, 'yyyy-MM-dd') AS dt, COUNT(*) AS bids, COUNT(*) FILTER (WHERE price <
        10000) AS low, COUNT(*) FILTER (WHERE price >= 10000 AND price < 1000000) AS mid,
        COUNT(*) FILTER (WHERE price >= 1000000) AS high, MIN(price) AS lowest, MAX(price) AS highest, AVG(price) AS
        average, SUM(price) AS total FROM bid GROUP BY auction, DATE_FORMAT(date_time, 'yyyy-MM-dd')
    """,
    "q18": """
        SELECT auction, bidder, price, channel, date_time FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY date_time DESC) AS place FROM bid) WHERE
        place <= 1
    """,
    "q19": """
        SELECT auction, price, place FROM (
        SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS place FROM bid) WHERE place <= 10
    """,
    "q20": """
        SELECT b.auction, b.bidder, b.price, b.channel, a.item_name, a.reserve, a.seller, a.category
        FROM bid AS b JOIN auction AS a ON b.auction = a.id WHERE a.category = 10
    """,
    "q21": """
        SELECT auction, bidder, price, channel,
        CASE WHEN LOWER(channel) = 'web' THEN '0' WHEN LOWER(channel) = 'phone' THEN '1' WHEN LOWER(channel) =
        'shop' THEN '2' ELSE REGEXP_EXTRACT(url, '(/item/)([0-9a-f]+)', 2) END AS channel_id
        FROM bid WHERE REGEXP_EXTRACT(url, '(/item/)([0-9a-f]+)', 2) IS NOT NULL OR LOWER(channel) IN ('web',
        'phone', 'shop')
    """,
    "q22": """
        SELECT auction, bidder, price, channel, SPLIT_INDEX(url, '/', 3) AS dir1, SPLIT_INDEX(url, '/', 4) AS dir2,
        SPLIT_INDEX(url, '/', 5) AS dir3 FROM bid
    """,
}
