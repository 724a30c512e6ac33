"""A user's file as the records of a warehouse."""

import gc
from fractions import Fraction
from pathlib import Path

import pytest

from freshline.base.duration import DAY, HOUR, MINUTE, SECOND
from freshline.base.errors import InputError, Place
from freshline.definitions.load import load, loads
from freshline.definitions.sections.cost import Cost
from freshline.definitions.sections.feeds import Feed, Landing
from freshline.definitions.sections.pools import Pool
from freshline.definitions.sections.tables import Table
from freshline.definitions.warehouse import Warehouse

EXAMPLE = """\
name: network
storage: ./warehouse
pools:
  updates: {tracks: 2, policy: edf}     # fifo | rm | edf | edf-strict | clustered-edf | prp | aus | aus-slack
feeds:
  packets: {path: landing/packets, format: csv, schema: "ts timestamp, src string, bytes long", timestamp: ts,
            period: 5 minutes, jitter: 10s}
tables:
  packets: {feed: packets, target_lag: 20 minutes, cost: {startup: 3s, rate: 0.1, variability: 0.2}}
  traffic: {sql: "SELECT ts, src, sum(bytes) AS bytes FROM packets GROUP BY ts, src", period: 15 minutes,
            target_lag: 1 hour, pool: updates, cost: {startup: 9s, rate: 0.1}}
"""


def example_from(file: str) -> Warehouse:
    """What the example means, line by line."""
    return Warehouse(
        name="network",
        storage="./warehouse",
        pools={"updates": Pool("updates", 2, "edf", Fraction(10), place=Place(file, 4))},
        feeds={
            "packets": Feed(
                name="packets",
                arrival="files",
                period_us=5 * MINUTE,
                phase_us=0,
                jitter_us=10 * SECOND,
                timestamp_jitter_us=0,
                landing=Landing("landing/packets", "csv", "ts timestamp, src string, bytes long", "ts"),
                place=Place(file, 6),
            )
        },
        tables={
            "packets": Table(
                name="packets",
                pool="updates",
                period_us=5 * MINUTE,
                feed="packets",
                timestamp="ts",
                target_lag_us=20 * MINUTE,
                cost=Cost(3 * SECOND, Fraction(1, 10), Fraction(1, 5)),
                place=Place(file, 9),
            ),
            "traffic": Table(
                name="traffic",
                pool="updates",
                period_us=15 * MINUTE,
                sources=("packets",),
                sql="SELECT ts, src, sum(bytes) AS bytes FROM packets GROUP BY ts, src",
                timestamp="ts",
                target_lag_us=HOUR,
                cost=Cost(9 * SECOND, Fraction(1, 10), Fraction(0)),
                place=Place(file, 10),
            ),
        },
        topological_order=("packets", "traffic"),
        released_by_files=frozenset({"packets", "traffic"}),
    )


def test_the_example_becomes_these_records() -> None:
    assert loads(EXAMPLE) == example_from("freshline.yml")


def test_a_file_becomes_the_same_records_as_its_text(tmp_path: Path) -> None:
    path = tmp_path / "network.yml"
    path.write_text(EXAMPLE)
    assert load(path) == load(str(path)) == example_from(str(path))


def test_what_is_left_out_has_its_default() -> None:
    text = """
    name: n
    pools: {p: {tracks: 1}}
    feeds: {f: {period: 1s}}
    tables: {t: {feed: f, cost: {rate: 1}}}
    """
    warehouse = loads(text)
    assert warehouse.storage == "./warehouse"
    place = Place("freshline.yml", 3)
    assert warehouse.pools["p"] == Pool("p", 1, "edf", Fraction(10), "worst", "fastest", place)
    assert warehouse.feeds["f"] == Feed("f", "files", SECOND, place=Place("freshline.yml", 4))
    assert warehouse.tables["t"] == Table(
        "t", "p", SECOND, feed="f", cost=Cost(0, Fraction(1), Fraction(0)), place=Place("freshline.yml", 5)
    )
    assert (warehouse.tables["t"].late_after_us, warehouse.tables["t"].weight) == (None, 1)


def test_every_key_of_recovery_reaches_its_record() -> None:
    text = """
    name: n
    pools:
      p: {tracks: 1, policy: aus, provisioning: average, recovery: together}
      q: {tracks: 2, policy: aus-slack, provisioning: worst, recovery: fastest}
    feeds: {f: {period: 10s}}
    tables:
      a: {feed: f, pool: p, late_after: 1m, weight: 2.5}
      b: {sources: [a], period: 20s, pool: q, weight: 0}
    """
    warehouse = loads(text)
    assert [*warehouse.pools.values()] == [
        Pool("p", 1, "aus", Fraction(10), "average", "together", Place("freshline.yml", 4)),
        Pool("q", 2, "aus-slack", Fraction(10), "worst", "fastest", Place("freshline.yml", 5)),
    ]
    places = [Place("freshline.yml", line) for line in (8, 9)]
    weight = Fraction(5, 2)
    assert [*warehouse.tables.values()] == [
        Table("a", "p", 10 * SECOND, "f", late_after_us=MINUTE, weight=weight, place=places[0]),
        Table("b", "q", 20 * SECOND, sources=("a",), weight=Fraction(0), place=places[1]),
    ]


def test_a_tables_history_is_its_own_or_the_warehouses_or_a_day() -> None:
    text = """
    name: n
    history: 2 weeks
    pools: {p: {tracks: 1}}
    feeds: {f: {period: 1s}}
    tables: {t: {feed: f}, u: {feed: f, history: 1 minute}}
    """
    tables = loads(text).tables
    assert (tables["t"].history_us, tables["u"].history_us) == (14 * DAY, MINUTE)
    assert loads(text.replace("history: 2 weeks", "")).tables["t"].history_us == DAY


def test_every_key_reaches_its_record() -> None:
    text = """
    name: n
    storage: s3://lake
    pools: {p: {tracks: 3, policy: prp, cluster_factor: 2.5}, q: {tracks: 1}}
    feeds:
      f: {arrival: files, period: 10s, phase: 4s, jitter: 3s, timestamp_jitter: 2s, path: in, format: json}
      g: {arrival: continuous, period: 20s}
    tables:
      a: {feed: f, period: 10s, pool: p}
      b: {feed: g, phase: 7s, pool: q, target_lag: 1m}
      c: {feed: g, period: 5s, pool: q}
      d: {sources: [b, C], sql: SELECT * FROM b, period: 9s, phase: 0, pool: q, cost: {startup: 1ms}}
    """
    warehouse = loads(text)
    assert warehouse.storage == "s3://lake"
    assert [*warehouse.pools.values()] == [
        Pool("p", 3, "prp", Fraction(5, 2), place=Place("freshline.yml", 4)),
        Pool("q", 1, "edf", place=Place("freshline.yml", 4)),
    ]
    landing = Landing("in", "json")
    assert [*warehouse.feeds.values()] == [
        Feed(
            "f", "files", 10 * SECOND, 4 * SECOND, 3 * SECOND, 2 * SECOND, landing, Place("freshline.yml", 6)
        ),
        Feed("g", "continuous", 20 * SECOND, place=Place("freshline.yml", 7)),
    ]
    places = [Place("freshline.yml", line) for line in range(9, 13)]
    cost = Cost(1000, Fraction(0))
    assert [*warehouse.tables.values()] == [
        Table("a", "p", 10 * SECOND, "f", place=places[0]),
        Table("b", "q", 20 * SECOND, "g", phase_us=7 * SECOND, target_lag_us=MINUTE, place=places[1]),
        Table("c", "q", 5 * SECOND, "g", place=places[2]),
        Table("d", "q", 9 * SECOND, sources=("b", "c"), sql="SELECT * FROM b", cost=cost, place=places[3]),
    ]


def test_every_key_of_a_live_warehouse_reaches_its_record() -> None:
    text = """
    name: n
    pools: {p: {tracks: 1}}
    feeds:
      f: {period: 10s, path: in, format: csv, schema: "at timestamp, n int", timestamp: at, header: no,
          encoding: Windows-1252,
          name_timestamp: "%Y%m%d.csv", lateness: 2s, ahead: 0, after_load: archive}
    tables:
      a: {feed: f, select: "SELECT at AS ts, n FROM F", timestamp: ts}
      b: {sql: "SELECT * FROM a", period: 9s, lookback: 3s, lookback_trusted: true, align: 9s}
      c: {sources: [b], period: 9s, timestamp: time}
    """
    warehouse = loads(text)
    assert warehouse.feeds["f"].landing == Landing(
        path="in",
        format="csv",
        schema="at timestamp, n int",
        timestamp="at",
        header=False,
        encoding="windows-1252",
        name_timestamp="%Y%m%d.csv",
        lateness_us=2 * SECOND,
        ahead_us=0,
        after_load="archive",
    )
    a, b, c = warehouse.tables.values()
    assert (a.select, a.timestamp) == ("SELECT at AS ts, n FROM F", "ts")
    assert (b.timestamp, b.lookback_us, b.align_us) == ("ts", 3 * SECOND, 9 * SECOND)
    assert (c.timestamp, c.lookback_us, c.align_us) == ("time", 0, None)


def test_a_timestamp_column_is_that_of_the_first_source_and_unknown_where_that_is() -> None:
    text = """
    name: n
    pools: {p: {tracks: 1}}
    feeds: {f: {period: 1s, timestamp: ts}, g: {period: 1s, timestamp: at}, h: {period: 1s}}
    tables:
      last: {sources: [both], period: 1s}
      both: {sources: [b, a], period: 1s}
      a: {feed: f}
      b: {feed: g}
      c: {feed: h}
      unknown: {sources: [c, a], period: 1s}
    """
    assert {table.name: table.timestamp for table in loads(text).tables.values()} == {
        "last": "at",
        "both": "at",
        "a": "ts",
        "b": "at",
        "c": None,
        "unknown": None,
    }


def small(*tables: str) -> Warehouse:
    lines = "".join(f"  {table}\n" for table in tables)
    feeds = "feeds: {files: {period: 1s}, stream: {arrival: continuous, period: 1s}}"
    return loads(f"name: n\npools: {{p: {{tracks: 1}}}}\n{feeds}\ntables:\n{lines}")


def test_tables_come_after_their_sources_and_else_as_they_are_defined() -> None:
    warehouse = small(
        "daily: {sources: [hourly], period: 1d}",
        "b: {feed: stream}",
        "hourly: {sources: [a, b], period: 1h}",
        "a: {feed: files}",
        "other: {sources: [b], period: 1h}",
    )
    assert warehouse.topological_order == ("b", "a", "hourly", "daily", "other")
    assert [*warehouse.tables] == ["daily", "b", "hourly", "a", "other"]


def test_a_table_is_released_by_files_if_any_feed_upstream_delivers_files() -> None:
    warehouse = small(
        "a: {feed: files}",
        "b: {feed: stream}",
        "only_b: {sources: [b], period: 1s, phase: 1s}",
        "both: {sources: [only_b, a], period: 1s}",
        "last: {sources: [both], period: 1s}",
    )
    assert warehouse.released_by_files == {"a", "both", "last"}
    assert warehouse.tables["only_b"].phase_us == SECOND


def test_tables_in_sql_are_found_whatever_their_case() -> None:
    warehouse = small("Packets: {feed: files}", "t: {sql: select * from PACKETS, period: 1s}")
    assert warehouse.tables["t"].sources == ("Packets",)


def test_sources_may_be_more_than_the_sql_reads() -> None:
    warehouse = small(
        "a: {feed: files}", "b: {feed: files}", "t: {sql: SELECT * FROM B, sources: [a, b], period: 1s}"
    )
    assert warehouse.tables["t"].sources == ("a", "b")


def test_a_query_may_give_a_common_table_expression_the_name_of_its_own_table() -> None:
    warehouse = small("a: {feed: files}", "t: {sql: WITH t AS (SELECT * FROM a) SELECT * FROM t, period: 1s}")
    assert warehouse.tables["t"].sources == ("a",)


def test_two_tables_may_load_one_feed_and_share_its_name() -> None:
    warehouse = small("files: {feed: files}", "copy: {feed: files, period: 1000ms}")
    assert [table.feed for table in warehouse.tables.values()] == ["files", "files"]


def test_a_feed_and_a_pool_that_nothing_uses_are_fine() -> None:
    text = "name: n\npools: {p: {tracks: 1}, q: {tracks: 1}}\nfeeds: {f: {period: 1s}, g: {period: 1s}}\n"
    assert [*loads(text + "tables: {t: {feed: f, pool: p}}").feeds] == ["f", "g"]


def test_more_work_than_the_tracks_can_do_is_no_mistake_in_the_file() -> None:
    warehouse = small("a: {feed: files, cost: {startup: 1h, rate: 7}}")
    assert warehouse.tables["a"].cost == Cost(HOUR, Fraction(7))


def test_rates_are_exact() -> None:
    warehouse = small("a: {feed: files, cost: {rate: 0.1, variability: 1e-3}}")
    assert warehouse.tables["a"].cost == Cost(0, Fraction(1, 10), Fraction(1, 1000))


def test_merged_defaults_count_as_written() -> None:
    warehouse = small(
        "a: {feed: files, cost: &cost {startup: 1s, rate: 1}}",
        "b: &derived {sources: [a], period: 1h, cost: *cost}",
        "c: {<<: *derived, period: 2h, cost: {<<: *cost, rate: 2}}",
    )
    assert warehouse.tables["c"] == Table(
        "c", "p", 2 * HOUR, sources=("a",), cost=Cost(SECOND, Fraction(2)), place=Place("freshline.yml", 7)
    )


def test_a_chain_of_ten_thousand_tables_is_ordered() -> None:
    chain = [f"t{i}: {{sources: [t{i + 1}], period: 1s}}" for i in range(10_000)]
    warehouse = small(*chain, "t10000: {feed: files}")
    assert warehouse.topological_order == tuple(f"t{i}" for i in range(10_000, -1, -1))


def test_the_garbage_collector_is_left_as_it_was() -> None:
    usual = gc.get_threshold()
    loads(EXAMPLE)
    with pytest.raises(InputError):
        loads("")
    assert gc.get_threshold() == usual
