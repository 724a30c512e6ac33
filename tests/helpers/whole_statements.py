"""Statements that people bring and that an update cannot only append to, over facts `a` and keys `b`.

`a` has (ts, k, v), `b` has (ts, k, w). Every table is computed whole, some of them over others.
"""

STATEMENTS = {
    # Totals and the newest row of a key: no time among the columns.
    "by_key": "SELECT k, count(*) AS n, sum(v) AS total, max(v) AS most FROM a GROUP BY k",
    "everything": "SELECT count(*) AS n, sum(v) AS total, min(ts) AS first_at FROM a",
    "newest": "SELECT k, max_by(v, ts) AS v FROM (SELECT ts, k, max(v) AS v FROM a GROUP BY ts, k) "
    "GROUP BY k",
    "kinds": "SELECT DISTINCT k FROM a",
    "many": "SELECT k, count(*) AS n FROM a GROUP BY k HAVING count(*) > 3",
    "by_parts": "SELECT k, v, count(*) AS n FROM a GROUP BY ROLLUP (k, v)",
    # Windows that are still open, overlap or follow the calendar.
    "open_hour": "SELECT date_trunc('hour', ts) AS ts, k, sum(v) AS total FROM a GROUP BY 1, 2",
    "of_weeks": "SELECT date_trunc('week', ts) AS ts, count(*) AS n FROM a GROUP BY 1",
    "sliding": "SELECT window.start AS ts, count(*) AS n FROM a GROUP BY window(ts, '2 seconds', '1 second')",
    "ends": "SELECT window.end AS ts, sum(v) AS total FROM a GROUP BY window(ts, '1 second')",
    "sessions": "SELECT session_window.start AS ts, k, count(*) AS n FROM a "
    "GROUP BY session_window(ts, '300 milliseconds'), k",
    # Joins that a later row may change.
    "left_join": "SELECT a.ts, a.k, a.v, b.w FROM a LEFT JOIN b ON a.k = b.k AND a.ts = b.ts",
    "full_join": "SELECT coalesce(a.ts, b.ts) AS ts, a.k, b.w FROM a FULL JOIN b ON a.k = b.k AND "
    "a.ts = b.ts",
    "right_join": "SELECT a.ts, b.k, b.w FROM a RIGHT JOIN b ON a.ts = b.ts AND a.k = b.k",
    "dimension": "SELECT a.ts, a.k, a.v, d.most FROM a JOIN (SELECT k, max(w) AS most FROM b GROUP BY k) d "
    "ON a.k = d.k",
    "unmatched": "SELECT a.ts, a.k FROM a LEFT ANTI JOIN b ON a.k = b.k AND a.v = b.w",
    "matched": "SELECT ts, k, v FROM a WHERE EXISTS (SELECT 1 FROM b WHERE b.k = a.k AND b.w = a.v)",
    "among": "SELECT ts, k, v FROM a WHERE v IN (SELECT w FROM b)",
    "above": "SELECT ts, k, v FROM a WHERE v > (SELECT avg(w) FROM b)",
    "all_pairs": "SELECT a.ts, b.ts AS other, a.v * b.w AS vw FROM a CROSS JOIN b WHERE a.v = 3 AND b.w = 3",
    # Rows that look at rows before and after them.
    "steps": "SELECT ts, k, v, v - lag(v) OVER (PARTITION BY k ORDER BY ts, v) AS step FROM a",
    "running": "SELECT ts, k, sum(v) OVER (PARTITION BY k ORDER BY ts RANGE UNBOUNDED PRECEDING) AS "
    "total FROM a",
    "next_one": "SELECT ts, k, v, lead(v) OVER (PARTITION BY k ORDER BY ts, v) AS following FROM a",
    "ranked": "SELECT ts, k, v, rank() OVER (ORDER BY v DESC) AS place FROM a",
    "top": "SELECT k, v FROM a ORDER BY v DESC, k, ts LIMIT 5",
    # Sets, pivots, shifted times, and the clock.
    "both": "SELECT k FROM a INTERSECT SELECT k FROM b",
    "only_a": "SELECT v AS n FROM a EXCEPT SELECT w FROM b",
    "pivoted": "SELECT * FROM (SELECT k, v FROM a) PIVOT (sum(v) FOR k IN ('x', 'y', 'z'))",
    "shifted": "SELECT ts + INTERVAL '0.5' SECOND AS ts, k, v FROM a",
    "undated": "SELECT CASE WHEN v > 5 THEN ts END AS ts, k, v FROM a",
    "recent": "SELECT ts, k, v FROM a WHERE ts > now() - INTERVAL 1 SECOND",
    "today": "SELECT ts, k, current_date AS today FROM a WHERE CAST(ts AS date) = current_date()",
    # Tables over such tables, and beside appended ones.
    "shares": "SELECT k, total / (SELECT sum(total) FROM by_key) AS share FROM by_key",
    "late_again": "SELECT s.ts, s.k, s.v, t.n FROM shifted s JOIN by_key t ON s.k = t.k",
    "of_sliding": "SELECT date_trunc('minute', ts) AS ts, max(n) AS most FROM sliding GROUP BY 1",
}
