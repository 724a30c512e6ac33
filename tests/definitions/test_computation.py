"""What a table's rows are computed by: when two texts are the same, and what is said when they are not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

from freshline.definitions.computation import Computation, changes, only_adds
from freshline.definitions.load import loads
from freshline.definitions.warehouse import Warehouse

QUERIES = [
    "SELECT ts, src, sum(bytes) AS bytes FROM packets GROUP BY ts, src",
    "SELECT window.start AS ts, count(*) AS n FROM packets GROUP BY window(ts, '10 minutes')",
    "WITH big AS (SELECT * FROM packets WHERE bytes > 1.5e3 AND src <> 'A b') "
    "SELECT ts, CASE WHEN bytes IS NULL THEN 'none' ELSE upper(src) END AS kind FROM big",
    "SELECT greatest(a.ts, b.ts) AS ts, a.src FROM packets a JOIN hosts b ON a.src = b.src "
    "AND a.ts BETWEEN b.ts AND b.ts + INTERVAL 1 HOUR",
    "SELECT ts, to_json(struct(Src, `Date`)) AS j, CAST(bytes AS decimal(10, 2)) AS d FROM packets",
    "SELECT DISTINCT ts, date_trunc('hour', ts) AS h FROM packets UNION ALL SELECT ts, ts AS h FROM hosts",
]
_SPARK = Dialect.get_or_raise("spark")
_GAPS = st.sampled_from([" ", "\n", "\t  ", " /* why: 'it' */ ", " -- so it is\n", "\n\n  "])
_VALUES = (TokenType.STRING, TokenType.NUMBER, TokenType.IDENTIFIER)


def change(before: str | None, now: str | None) -> list[str]:
    return changes(Computation(sql=before), Computation(sql=now))


@st.composite
def rewritten(draw, sql: str) -> str:  # type: ignore[no-untyped-def]
    """The same query with other spaces, comments and letters of keywords and functions."""
    tokens = _SPARK.tokenize(sql)
    text = draw(st.sampled_from(["", "-- first of all\n", "  "]))
    for number, token in enumerate(tokens):
        word = sql[token.start : token.end + 1]
        following = tokens[number + 1].token_type if number + 1 < len(tokens) else None
        name = following is TokenType.DOT or (
            token.token_type is TokenType.VAR and following is not TokenType.L_PAREN
        )
        if not name and token.token_type not in _VALUES:
            word = draw(st.sampled_from([word.upper(), word.lower(), word.title()]))
        # Where two words stood apart they still must, and a hint stands only behind SELECT.
        apart = number + 1 < len(tokens) and tokens[number + 1].start > token.end + 1
        text += word + (draw(_GAPS) if apart else "")
        if token.token_type is TokenType.SELECT:
            text += draw(st.sampled_from(["", "/*+ COALESCE(1) */ "]))
    return text + draw(st.sampled_from(["", ";", " ;\n", " -- the end", "\n/* the end */"]))


@given(st.data(), st.sampled_from(QUERIES))
def test_spaces_comments_hints_and_the_case_of_keywords_are_no_change(data, sql):
    assert change(sql, data.draw(rewritten(sql))) == []


@given(st.data(), st.sampled_from(QUERIES))
def test_every_other_word_is_a_change(data, sql):
    """A value, a name or an operator that is replaced, left out or said twice."""
    tokens = [token for token in _SPARK.tokenize(sql) if token.end >= token.start]
    token = data.draw(st.sampled_from(tokens))
    word = sql[token.start : token.end + 1]
    other = data.draw(st.sampled_from(["", f"{word} {word}", "other", "'x'", "7", "+", "SELECT"]))
    edited = f"{sql[: token.start]} {other} {sql[token.end + 1 :]}"
    assert bool(change(sql, edited)) == (other != word)


@pytest.mark.parametrize(
    ("before", "now"),
    [
        ("SELECT ts, v:Date FROM t", "SELECT ts, v:date FROM t"),
        ("SELECT ts, to_json(struct(Date)) AS j FROM t", "SELECT ts, to_json(struct(DATE)) AS j FROM t"),
        ("SELECT ts, 'A' AS a FROM t", "SELECT ts, 'a' AS a FROM t"),
        ("SELECT ts, a + 1 AS a FROM t", "SELECT ts, a + 1L AS a FROM t"),
        ("SELECT ts, a AS b FROM t", "SELECT ts, a AS B FROM t"),
    ],
)
def test_case_and_type_count_where_rows_depend_on_them(before, now):
    assert len(change(before, now)) == 1


def test_what_does_not_parse_any_more_is_compared_as_it_is():
    assert change("SELECT ) FROM t", " SELECT ) FROM t\n") == []
    assert len(change("SELECT ) FROM t", "SELECT 1 FROM t")) == 1
    assert len(change("SELECT 'a FROM t", "SELECT a FROM t")) == 1
    deep = "SELECT " + "(" * 3_000 + "1" + ")" * 3_000 + " FROM t"
    assert change(deep, deep) == []


def test_a_change_is_told_with_both_texts():
    assert change("SELECT ts, -- when\n  a FROM t", "SELECT ts, b\nFROM t") == [
        '`sql` was "SELECT ts, a FROM t", and is "SELECT ts, b FROM t"'
    ]
    assert change(None, "SELECT 1 FROM t") == ['`sql` was not given, and is "SELECT 1 FROM t"']


def test_of_long_texts_only_what_differs_is_told():
    columns = [f"column_{number}" for number in range(200)]
    before = f"SELECT {', '.join(columns)} FROM t"
    (sentence,) = change(before, before.replace("column_100,", "other,"))
    assert len(sentence) < 250
    assert "column_100, column_101" in sentence
    assert "column_99, other, column_101" in sentence


def test_lengths_and_the_timestamp_count_and_are_told_in_the_users_words():
    before = Computation(sql="SELECT 1 FROM t", timestamp="ts", lookback_us=60_000_000)
    now = Computation(sql="SELECT 1 FROM t", timestamp="at", align_us=3_600_000_000)
    assert changes(before, now) == [
        "`timestamp` was ts, and is at",
        "`lookback` was 1m, and is not given",
        "`align` was not given, and is 1h",
    ]


def test_what_the_scheduler_alone_needs_is_no_part_of_it():
    text = """\
name: w
pools: {{updates: {{tracks: {tracks}}}}}
feeds: {{packets: {{period: {period}}}}}
tables:
  packets: {{feed: packets, target_lag: {period}}}
  traffic: {{sql: "SELECT ts FROM packets", timestamp: ts, period: {period}, cost: {{startup: {period}}}}}
"""
    before, now = (loads(text.format(tracks=n, period=f"{n}m")) for n in (1, 2))
    for name in ("packets", "traffic"):
        assert before.tables[name] != now.tables[name]
        assert of(before, name) == of(now, name)


def of(warehouse: Warehouse, name: str) -> Computation:
    return Computation.of(warehouse.tables[name], warehouse.feeds)


def test_what_is_left_out_of_files_and_of_a_feed_counts():
    text = """\
name: w
pools: {{main: {{tracks: 1, policy: rds-quota}}}}
classes: {{all: {{error: 0.3}}}}
feeds: {{levels: {{period: 1m}}, cars: {{period: 1m{shed}}}}}
tables:
  levels: {{feed: levels{discard}}}
  cars: {{feed: cars}}
  read: {{sql: "SELECT ts FROM cars", timestamp: ts, period: 1m}}
"""
    plain, other = (
        loads(text.format(shed=shed, discard=discard))
        for shed, discard in (
            ("", ""),
            (", shed: {most: 5, per: 1s, value: speed}", ", discard: {key: k, value: v}"),
        )
    )
    assert changes(of(plain, "levels"), of(other, "levels")) == [
        "`discard` was not given, and is by v of each k"
    ]
    assert changes(of(other, "cars"), of(plain, "cars")) == [
        "`shed` of its feed was to the 5 of 1s with the highest speed, and is not given"
    ]
    assert changes(of(plain, "read"), of(other, "read")) == []


def test_a_record_of_another_version_is_read_as_far_as_it_is_known():
    assert Computation.from_record({"sql": "SELECT 1 FROM t", "shape": "round"}) == Computation(
        "SELECT 1 FROM t"
    )


@pytest.mark.parametrize(
    ("now", "only"),
    [
        ("SELECT ts, qty, item FROM orders WHERE item <> ''", True),
        ("select ts, item, price * 2 AS qty FROM orders WHERE item <> '' -- more", True),
        ("SELECT ts, item, qty FROM orders", False),
        ("SELECT ts, qty FROM orders WHERE item <> ''", False),
        ("SELECT ts, upper(item) AS item, qty FROM orders WHERE item <> ''", False),
        (None, False),
    ],
)
def test_a_select_that_only_has_more_columns_is_known(now, only):
    assert only_adds("SELECT ts, item FROM orders WHERE item <> ''", now, ["qty"]) is only
    assert not only_adds(None, now, ["qty"])
