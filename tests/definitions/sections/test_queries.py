"""Queries, slices and rows as users write them: what becomes of them, and what is said of wrong ones."""

import json
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import sampled
from complaints import complaints
from freshline.base.duration import MILLISECOND, SECOND
from freshline.base.errors import NOWHERE
from freshline.definitions.load import loads
from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.queries import Query, QuerySource
from freshline.definitions.serial import from_record, to_record
from freshline.sql.operators import Aggregate, Join, Stream
from freshline.sql.slices import Slices
from freshline_lab.campaigns.sql.query_statements import QueryStatements

HEAD = """\
name: network
pools:
  updates: {tracks: 2}
  answers: {tracks: 1, policy: lrm}
feeds:
  packets: {period: 5m, rows: 12500.5, schema: "ts timestamp, src string, bytes long", timestamp: ts}
  hosts: {period: 5m, schema: "ts timestamp, src string, site string", timestamp: ts}
tables:
  packets: {feed: packets, slices: {by: SRC}}
  hosts: {feed: hosts}
  busy: {sql: "SELECT ts, src, sum(bytes) AS bytes FROM packets GROUP BY ts, src", period: 10m, slices: {}}
queries:
"""
SQL = "SELECT src, sum(bytes) AS bytes FROM packets GROUP BY src"
RIGHT = f"{{sql: {SQL!r}, window: 1m, stride: 10s}}"


def with_query(query: str) -> list[str]:
    """The errors with a query, `volume` on line 13."""
    return complaints(f"{HEAD}  volume: {query}\n")


def keyed(keys: str) -> str:
    return RIGHT.replace("}", f", {keys}}}")


def test_a_query_has_defaults() -> None:
    warehouse = loads(f"{HEAD}  volume: {RIGHT}\n")
    assert replace(warehouse.queries["volume"], place=NOWHERE) == Query(
        "volume",
        SQL,
        "answers",
        window_us=60 * SECOND,
        stride_us=10 * SECOND,
        deadline_us=10 * SECOND,
        weight=Fraction(1),
        keep_least=Fraction(0),
        tables=("packets",),
        sides=(QuerySource("packets", "packets", True),),
        operators=Aggregate(Stream("packets")),
    )
    assert warehouse.queries["volume"].place.line == 13
    assert warehouse.feeds["packets"].rows == Fraction("12500.5")
    assert warehouse.feeds["hosts"].rows is None
    assert [warehouse.tables[name].slices for name in warehouse.tables] == [Slices("SRC"), None, Slices()]
    assert {table.pool for table in warehouse.tables.values()} == {"updates"}, "the only one of tables"


def test_a_query_has_what_is_said_of_it() -> None:
    sql = "SELECT h.site, count(*) AS n FROM packets P JOIN hosts AS h ON h.src = p.SRC GROUP BY h.site"
    text = (
        f"{{sql: {sql!r}, window: 5s, stride: 10s, deadline: 8s, weight: 0.5, keep_least: 0.1, "
        "pool: answers, cost: {startup: 50ms, rate: 0.1}, selectivity: 0.02, part: 0, into: sites}"
    )
    query = loads(f"{HEAD}  by_site: {text}\n").queries["by_site"]
    assert (query.window_us, query.stride_us, query.deadline_us) == (5 * SECOND, 10 * SECOND, 8 * SECOND)
    assert (query.weight, query.keep_least, query.selectivity) == (
        Fraction(1, 2),
        Fraction(1, 10),
        Fraction(1, 50),
    )
    assert (query.cost, query.part_us, query.into) == (Cost(50 * MILLISECOND, Fraction(1, 10)), 0, "sites")
    assert query.sides == (QuerySource("p", "packets", True), QuerySource("h", "hosts", False))
    assert query.operators == Aggregate(Join(Fraction(1, 50), Stream("packets"), Stream("hosts")))


def test_a_record_has_queries_slices_and_rows_and_may_be_of_before_there_were_any() -> None:
    text = HEAD.replace("policy: lrm", "policy: lrm-paper, rescheduling: permissive, threshold: 2.5")
    warehouse = loads(f"{text}  volume: {keyed('cost: {rate: 0.1}, selectivity: 0.5, into: sums')}\n")
    record = json.loads(json.dumps(to_record(warehouse)))
    read = from_record(record)
    assert to_record(read) == record
    assert read.queries["volume"] == replace(warehouse.queries["volume"], place=NOWHERE)
    assert read.tables["packets"].slices == Slices("SRC")
    assert read.feeds["packets"].rows == Fraction("12500.5")
    assert read.pools["answers"].threshold == Fraction(5, 2)
    del record["queries"]
    for table in record["tables"].values():
        del table["slices"]
    for feed in record["feeds"].values():
        del feed["rows"]
    for pool in record["pools"].values():
        del pool["preemptive"], pool["rescheduling"], pool["threshold"]
    old = from_record(record)
    assert (old.queries, old.tables["packets"].slices, old.feeds["packets"].rows) == ({}, None, None)


ANOTHER = (
    "Add a pool for queries, with `policy: rm` or `lrm` or `lrm-paper`, such as "
    "`answers: {tracks: 1, policy: lrm}`."
)


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("{window: 1m, stride: 1s}", ": `sql` is missing. Add the query, such as `sql: SELECT src, "),
        (f"{{sql: {SQL!r}, stride: 1s}}", ": `window` is missing. Add the length of time that it reads, suc"),
        (f"{{sql: {SQL!r}, window: 1s}}", ": `stride` is missing. Add the time between two answers, such as"),
        (keyed("deadline: 11s"), ".deadline: it is beyond the stride of 10s. Give at most the stride, or"),
        (keyed("deadline: 0"), ".deadline: the duration is zero."),
        (keyed("weight: 0"), ".weight: 0 is out of range. Write a number above 0."),
        (keyed("weight: -1"), ".weight: -1 is out of range."),
        (keyed("keep_least: 1.5"), ".keep_least: 1.5 is out of range. Write a number from 0 to 1."),
        (keyed("selectivity: 0"), ".selectivity: 0 is out of range. Write a number above 0, at most 1."),
        (keyed("selectivity: 2"), ".selectivity: 2 is out of range."),
        (keyed("cost: {}"), ".cost: neither `startup` nor `rate` is given. Add one, such as `startup: 3s`."),
        (keyed("part: -1s"), ".part: "),
        (keyed("period: 1s"), ": unknown key `period`. It belongs under `feeds`; the keys here are `sql`, "),
        (keyed("pool: nowhere"), ".pool: there is no pool `nowhere`."),
        (
            keyed("pool: updates"),
            f".pool: the pool `updates` has `policy: edf`, which is for tables. {ANOTHER}",
        ),
        (keyed("into: packets"), ".into: it is the name of the table `packets`. Give it a name of its own."),
        (keyed("into: HOSTS"), ".into: it is the name of the table `hosts`."),
        (keyed("into: a-b"), ".into: `a-b` cannot be a name. Begin with a-z, A-Z or _, and go on with up to"),
        ("{sql: SELECT 1, window: 1s, stride: 1s}", ".sql: it reads no table. Name a table of the warehouse"),
        ("{sql: SELECT src FROM hosts, window: 1s, stride: 1s}", ".sql: it reads `hosts`, which is not kept"),
        ("{sql: SELECT src FROM pakets, window: 1s, stride: 1s}", ".sql: there is no table `pakets`. Perhap"),
        ("{sql: SELECT src FROM volume, window: 1s, stride: 1s}", ".sql: there is no table `volume`. It is"),
        ("{sql: SELECT site FROM packets, window: 1s, stride: 1s}", ".sql: there is no column `site` in `pa"),
        ("{sql: SELECT site FROM busy, window: 1s, stride: 1s}", ".sql: there is no column `site` in `busy`"),
        ("{sql: SELECT sum(bytes) FROM packets, window: 1s, stride: 1s, into: s}", ".sql: its column `SUM(b"),
        (
            "{sql: SELECT src AS _Keep FROM packets, window: 1s, stride: 1s, into: s}",
            ".sql: its column `_Keep` is one that a table of answers has itself. Give it another name",
        ),
        (
            "{sql: 'SELECT src AS _N_low, count(*) AS n FROM packets GROUP BY src', window: 1s, stride: 1s, "
            "into: s}",
            ".sql: its column `_N_low` is one that a table of answers has itself",
        ),
        ("{sql: DELETE FROM packets, window: 1s, stride: 1s}", ".sql: the SQL is not a query: it begins"),
        ("{sql: SELECT DISTINCT src FROM packets, window: 1s, stride: 1s}", ".sql: it has a DISTINCT."),
        ("5", ": the number 5 stands where a mapping of keys belongs."),
    ],
)  # fmt: skip
def test_a_wrong_query_is_refused_with_its_place(query: str, message: str) -> None:
    said = with_query(query)
    assert len(said) == 1, said
    assert said[0].startswith(f"freshline.yml:13: queries.volume{message}")


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("packets: {feed: packets, ", "packets: {feed: packets, pool: answers, ",
         "9: tables.packets.pool: the pool `answers` (`policy: lrm`) is for queries. Name a pool of tables"),
        ("{tracks: 1, policy: lrm}", "{tracks: 1, policy: rm}",
         "9: tables.packets: `pool` is missing, and there are 2 pools. Add `pool` with `updates` or `answer"),
        ("{tracks: 1, policy: lrm}", "{tracks: 1, policy: rm, rescheduling: optimistic}",
         "4: pools.answers.rescheduling: it has no effect with the policy rm. Remove it, or set `policy: lr"),
        ("updates: {tracks: 2}", "updates: {tracks: 2, preemptive: true}",
         "3: pools.updates.preemptive: it has no effect with the policy edf. Remove it, or set `policy: rm`"),
        ("policy: lrm", "policy: lrm, preemptive: true",
         "4: pools.answers.preemptive: it has no effect with the policy lrm."),
        ("policy: lrm", "policy: lrm, threshold: 5",
         "4: pools.answers.threshold: it has an effect with permissive rescheduling only. Remove it, or set"),
        ("policy: lrm", "policy: lrm, rescheduling: permissive",
         "4: pools.answers: `threshold` is missing, and permissive rescheduling goes by it. Add the weighte"),
        ("policy: lrm", "policy: lrm, rescheduling: sometimes",
         "4: pools.answers.rescheduling: 'sometimes' is not a choice here. Write 'optimistic', 'pessimistic"),
        ("  answers: {tracks: 1, policy: lrm}\n", "",
         f"12: queries.volume: no pool can hold queries. {ANOTHER}"),
        ("  answers:", "  more: {tracks: 1, policy: lrm-paper}\n  answers:",
         "14: queries.volume: `pool` is missing, and there are 2 pools that can hold queries. Add `pool` wi"),
        ("by: SRC", "by: dst", "9: tables.packets.slices.by: the table has no column `dst`."),
        ("by: SRC", "outliers: byte", "9: tables.packets.slices.outliers: the table has no column `byte`."),
        (
            "slices: {}",
            "slices: {outliers: bytes}",
            "11: tables.busy.slices.outliers: a table that loads no feed has no outliers of its own.",
        ),
        ("slices: {}", "slices: {by: site}", "11: tables.busy.slices.by: the table has no column `site`."),
        ("slices: {}", "slices: ", "11: tables.busy.slices: it is empty. Give it a value, or remove the key"),
        ("slices: {}", "slices: {key: src}", "11: tables.busy.slices: unknown key `key`."),
        ("slices: {}", "slices: true", "11: tables.busy.slices: true stands where a mapping of keys belongs"),
        ("rows: 12500.5", "rows: 0", "6: feeds.packets.rows: 0 is out of range. Write a number above 0."),
        ("rows: 12500.5", "rows: many", "6: feeds.packets.rows: 'many' is not a number."),
    ],
)  # fmt: skip
def test_what_queries_need_of_pools_tables_and_feeds_is_checked(
    before: str, after: str, message: str
) -> None:
    said = complaints(f"{HEAD.replace(before, after)}  volume: {RIGHT}\n")
    assert said[0].startswith(f"freshline.yml:{message}"), said


def test_a_pool_holds_tables_or_queries_and_an_update_is_never_put_aside() -> None:
    rm = HEAD.replace("policy: lrm", "policy: rm, preemptive: true").replace(
        "hosts}", "hosts, pool: answers}"
    )
    assert complaints(f"{rm}  volume: {RIGHT}\n") == [
        "freshline.yml:10: tables.hosts.pool: the pool `answers` (`preemptive: true`) is for queries. Name a "
        "pool of tables, such as one with `policy: edf`.",
        f"freshline.yml:13: queries.volume: no pool can hold queries. {ANOTHER}",
    ]
    shared = HEAD.replace("{tracks: 2}", "{tracks: 2, policy: rm}")
    tables = shared.replace("{feed: ", "{pool: updates, feed: ").replace('{sql: "', '{pool: updates, sql: "')
    assert complaints(f"{tables}  volume: {keyed('pool: updates')}\n") == [
        "freshline.yml:13: queries.volume.pool: the pool `updates` holds tables, and a pool holds tables or "
        f"queries. {ANOTHER}"
    ]


def test_names_are_not_used_twice() -> None:
    text = f"{HEAD}  Packets: {RIGHT}\n  one: {keyed('into: sums')}\n  two: {keyed('into: SUMS')}\n"
    text += f"  three: {keyed('into: two')}\n  four: {keyed('into: four')}\n"
    assert complaints(text) == [
        "freshline.yml:13: queries.Packets: it has the same name as the table `packets` of line 9. Rename "
        "one of the two.",
        "freshline.yml:15: queries.two.into: it is the name of the answers of `one`. "
        "Give it a name of its own.",
        "freshline.yml:16: queries.three.into: it is the name of the query `two`. Give it a name of its own.",
    ]


def test_what_is_wrong_with_a_table_is_not_said_again_of_its_queries() -> None:
    text = HEAD.replace("{feed: packets, slices", "{feed: packets, period: 7s, slices: 5, slicez")
    said = complaints(f"{text}  volume: {RIGHT}\n")
    assert said
    assert not [message for message in said if "queries" in message]


def test_a_window_may_be_shorter_than_the_stride() -> None:
    query = loads(f"{HEAD}  volume: {RIGHT.replace('1m', '1s')}\n").queries["volume"]
    assert query.window_us < query.stride_us


def test_slice_is_a_column_that_nobody_may_have() -> None:
    text = HEAD.replace("src string, bytes long", "src string, _slice int")
    said = complaints(f"{text}  volume: {{sql: SELECT _slice FROM packets, window: 1s, stride: 1s}}\n")
    assert said[0].startswith(
        "freshline.yml:13: queries.volume.sql: `_slice` is a column that Freshline keeps for itself."
    )


THREE = """\
name: network
pools:
  updates: {tracks: 2}
  answers: {tracks: 2, policy: %s}
feeds:
  a: {period: 1s, rows: 100, schema: "ts timestamp, k long, v long", timestamp: ts}
  b: {period: 1s, rows: 100, schema: "ts timestamp, k long, w long", timestamp: ts}
  c: {period: 1s, rows: 100, schema: "ts timestamp, j long, x long", timestamp: ts}
tables:
  a: {feed: a, pool: updates, slices: {by: k}}
  b: {feed: b, pool: updates, slices: {by: k}}
  c: {feed: c, pool: updates, slices: {by: j}}
queries:
"""
numbers = st.integers(1, 10**6)


@st.composite
def definitions(draw: st.DrawFn, wrong: bool = False) -> str:
    """Queries over three tables; if they are to be wrong, one of them is."""
    policies = ["rm", "rm, preemptive: true", "lrm", "lrm, rescheduling: pessimistic", "lrm-paper"]
    text = THREE % draw(st.sampled_from([*policies, "lrm, rescheduling: permissive, threshold: 5"]))
    count = draw(st.integers(1, 4))
    broken = draw(st.integers(0, count - 1)) if wrong else -1
    for number in range(count):
        statements = QueryStatements(draw(st.integers(0, 10**6)))
        stride_ms, window_ms = draw(numbers), draw(numbers)
        keys = {
            "sql": json.dumps(statements.right().sql),
            "window": f"{window_ms}ms",
            "stride": f"{stride_ms}ms",
            "deadline": f"{draw(st.integers(1, stride_ms))}ms",
            "weight": draw(numbers) / 100,
            "keep_least": draw(st.integers(0, 100)) / 100,
            "part": f"{draw(st.integers(0, 1000))}ms",
        }
        if number == broken:
            keys |= draw(
                st.sampled_from(
                    [
                        {"sql": json.dumps(statements.wrong())},
                        {"deadline": f"{stride_ms + 1}ms"},
                        {"weight": 0},
                        {"keep_least": 1.01},
                        {"pool": "updates"},
                        {"into": "b"},
                        {"window": "0s"},
                        {"stride": 5},
                        {"selectivity": 0},
                        {"nothing": "1s"},
                    ]
                )
            )
        text += f"  q{number}: {{{', '.join(f'{key}: {value}' for key, value in keys.items())}}}\n"
    return text


@sampled(100)
@given(definitions())
def test_every_right_definition_is_taken_whole_and_its_record_gives_it_back(text: str) -> None:
    warehouse = loads(text)
    assert len(warehouse.queries) == text.count("  q")
    for query in warehouse.queries.values():
        assert query.pool == "answers"
        assert query.deadline_us <= query.stride_us
        assert {side.table for side in query.sides} == {*query.tables}
        assert any(side.in_slices for side in query.sides)
        assert query.operators is not None
    record = json.loads(json.dumps(to_record(warehouse)))
    assert to_record(from_record(record)) == record


@sampled(100)
@given(definitions(wrong=True))
def test_every_wrong_definition_is_refused_with_the_place_of_the_wrong_query(text: str) -> None:
    said = complaints(text)
    assert len(said) == 1, said
    line = int(said[0].split(":")[1])
    assert line > 13
    assert said[0].split(": ")[1].startswith(f"queries.q{line - 14}")
