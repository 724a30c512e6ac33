"""What a user reads when a pool, a feed or a table is wrong by itself."""

import pytest

from complaints import HEAD, complaints, with_feed, with_pool, with_tables

NUMBER_AND_UNIT = "Write a number and a unit, such as '5 minutes' or '300s'."
TRACKS = "is not a whole number from 1 to 1000000. Write how many jobs may run at once."
POLICIES = (
    "Write 'fifo', 'rm', 'edf', 'edf-strict', 'clustered-edf', 'prp', 'aus', 'aus-slack', "
    "'lrm', 'lrm-paper', 'rds-edf', 'rds-hef', 'rds-quota' or 'admit-all'."
)
TABLE_KEYS = (
    "`feed`, `select`, `sql`, `sources`, `timestamp`, `refresh`, `period`, `phase`, `lookback`, "
    "`lookback_trusted`, `align`, `pool`, `target_lag`, `cost`, `late_after`, `weight`, `history`, "
    "`slices`, `deadline`, `node`, `selectivity` or `discard`"
)
USELESS_UNDER_EDF = "it has no effect with the policy edf. Remove it, or set `policy: aus`."
USELESS_ON_STREAM = "it has no effect on a continuous feed. Remove it, or set `arrival: files`."
USELESS_ON_BASE = "it has no effect on a table that loads a feed. Remove it."
WHOLE_NAME = "Write the files' whole name with strptime's directives, such as `packets-%Y%m%dT%H%M%S.csv`."


@pytest.mark.parametrize(
    ("pool", "message"),
    [
        ("{}", ": `tracks` is missing. Add how many jobs may run at once, such as `tracks: 2`."),
        ("{tracks: }", ".tracks: it is empty. Add how many jobs may run at once, such as `tracks: 2`."),
        ("{tracks: 0}", f".tracks: 0 {TRACKS}"),
        ("{tracks: true}", f".tracks: true {TRACKS}"),
        ("{tracks: 2.0}", f".tracks: 2.0 {TRACKS}"),
        ("{tracks: '2'}", f".tracks: '2' {TRACKS}"),
        ("{tracks: [2]}", f".tracks: a list {TRACKS}"),
        ("{tracks: 1, policy: lifo}", f".policy: 'lifo' is not a choice here. {POLICIES}"),
        ("{tracks: 1, policy: yes}", f".policy: true is not a choice here. {POLICIES}"),
        (
            "{tracks: 1, cluster_factor: 2}",
            ".cluster_factor: it has no effect with the policy edf. Remove it, or set `policy: prp`.",
        ),
        (
            "{tracks: 1, policy: prp, cluster_factor: 0.5}",
            ".cluster_factor: 0.5 is out of range. Write a number of 1 or more.",
        ),
        ("{tracks: 1, provisioning: worst}", f".provisioning: {USELESS_UNDER_EDF}"),
        ("{tracks: 1, policy: edf, provisioning: average}", f".provisioning: {USELESS_UNDER_EDF}"),
        ("{tracks: 1, recovery: fastest}", f".recovery: {USELESS_UNDER_EDF}"),
        (
            "{tracks: 1, policy: prp, recovery: together}",
            ".recovery: it has no effect with the policy prp. Remove it, or set `policy: aus`.",
        ),
        (
            "{tracks: 1, policy: aus, cluster_factor: 2}",
            ".cluster_factor: it has no effect with the policy aus. Remove it, or set `policy: prp`.",
        ),
        (
            "{tracks: 1, policy: aus, provisioning: best}",
            ".provisioning: 'best' is not a choice here. Write 'worst' or 'average'.",
        ),
        (
            "{tracks: 1, policy: aus, provisioning: }",
            ".provisioning: it is empty. Give it a value, or remove the key.",
        ),
        (
            "{tracks: 1, policy: aus-slack, recovery: 1.5}",
            ".recovery: 1.5 is not a choice here. Write 'fastest' or 'together'.",
        ),
        (
            "{tracks: 1, policy: edf-strict, blocking: 1s}",
            ".blocking: it has no effect with the policy edf-strict. Remove it, or set `policy: edf`.",
        ),
        (
            "{tracks: 1, blocking: 5}",
            ".blocking: the duration 5 has no unit. Add the unit, such as '5s'.",
        ),
        ("{tracks: 1, polcy: rm}", ": unknown key `polcy`. Perhaps `policy` is meant."),
        (
            "{tracks: 1, computers: 3}",
            ": unknown key `computers`. The keys here are `tracks`, `policy`, `cluster_factor`, "
            "`provisioning`, `recovery`, `blocking`, `preemptive`, `rescheduling`, `threshold`, "
            "`gains` or `node`.",
        ),
        ("5", ": the number 5 stands where a mapping of keys belongs. Write keys and their values below it."),
    ],
)
def test_a_wrong_pool_is_refused(pool: str, message: str) -> None:
    assert with_pool(pool) == [f"freshline.yml:3: pools.updates{message}"]


@pytest.mark.parametrize(
    ("feed", "message"),
    [
        (
            "{}",
            ": a feed of files has no `period`. "
            "Add the time between two files, such as `period: 5 minutes`, or set `arrival: continuous`.",
        ),
        ("{period: 300}", ".period: the duration 300 has no unit. Add the unit, such as '300s'."),
        ("{period: 1.5}", ".period: the duration 1.5 has no unit. Add the unit, such as '1.5s'."),
        ("{period: 0s}", ".period: the duration is zero. Give one above zero, such as '5 minutes'."),
        ("{period: 0}", ".period: the duration is zero. Give one above zero, such as '5 minutes'."),
        ("{period: 1:30}", f".period: '1:30' is not a duration. {NUMBER_AND_UNIT}"),
        ("{period: no}", f".period: false is not a duration. {NUMBER_AND_UNIT}"),
        ("{period: }", ".period: it is empty. Give it a value, or remove the key."),
        ("{period: 5m, jitter: -1s}", f".jitter: '-1s' is not a duration. {NUMBER_AND_UNIT}"),
        (
            "{period: 5m, jitter: 6m}",
            ".jitter: it is longer than the feed's period of 5m. Give at most the period.",
        ),
        (
            "{arrival: continuous, phase: 1s}",
            ".phase: it has no effect on a continuous feed. Move it to the tables that load the feed.",
        ),
        (
            "{arrival: continuous, jitter: 0}",
            ".jitter: it has no effect on a continuous feed. Remove it, or set `arrival: files`.",
        ),
        (
            "{arrival: continuous, timestamp_jitter: 1s}",
            ".timestamp_jitter: it has no effect on a continuous feed. Remove it, or set `arrival: files`.",
        ),
        (
            "{arrival: daily, period: 1d}",
            ".arrival: 'daily' is not a choice here. Write 'files' or 'continuous'.",
        ),
        (
            "{period: 1s, format: xml}",
            ".format: 'xml' is not a choice here. Write 'csv', 'json' or 'parquet'.",
        ),
        (
            "{period: 1s, path: 7}",
            ".path: the number 7 stands where text belongs. Put it in quotes if it is meant as text.",
        ),
        ("{period: 1s, path: ''}", ".path: it is empty. Give it a value, or remove the key."),
        ("{arrival: continuous, format: csv, encoding: utf-8}", f".encoding: {USELESS_ON_STREAM}"),
        (
            "{period: 1s, format: json, encoding: utf-8}",
            ".encoding: it has an effect on csv files only. Remove it, or set `format: csv`.",
        ),
        (
            "{period: 1s, format: csv, encoding: utf-16}",
            ".encoding: 'utf-16' is not an encoding that can be read. Write `utf-8`, `us-ascii`, "
            "`iso-8859-1`, `windows-1250`, `windows-1251` or `windows-1252`.",
        ),
        ("{arrival: continuous, format: csv, header: no}", f".header: {USELESS_ON_STREAM}"),
        ("{arrival: continuous, name_timestamp: '%Y'}", f".name_timestamp: {USELESS_ON_STREAM}"),
        ("{arrival: continuous, lateness: 0}", f".lateness: {USELESS_ON_STREAM}"),
        ("{arrival: continuous, ahead: 1s}", f".ahead: {USELESS_ON_STREAM}"),
        ("{arrival: continuous, after_load: keep}", f".after_load: {USELESS_ON_STREAM}"),
        (
            "{period: 1s, format: json, header: yes}",
            ".header: it has an effect on csv files only. Remove it, or set `format: csv`.",
        ),
        (
            "{period: 1s, format: csv, header: 'yes'}",
            ".header: 'yes' is neither true nor false. Write true or false, without quotes.",
        ),
        (
            "{period: 1s, name_timestamp: packets.csv}",
            f".name_timestamp: 'packets.csv' is not a strptime pattern. {WHOLE_NAME}",
        ),
        (
            "{period: 1s, name_timestamp: '%Y%Y'}",
            f".name_timestamp: '%Y%Y' is not a strptime pattern. {WHOLE_NAME}",
        ),
        (
            "{period: 1s, name_timestamp: '%H%M.csv'}",
            f".name_timestamp: '%H%M.csv' does not determine an instant. {WHOLE_NAME}",
        ),
        (
            "{period: 1s, after_load: move}",
            ".after_load: 'move' is not a choice here. Write 'keep', 'archive' or 'delete'.",
        ),
    ],
)
def test_a_wrong_feed_is_refused(feed: str, message: str) -> None:
    assert with_feed(feed) == [f"freshline.yml:5: feeds.extra{message}"]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (
            "{target_lag: 1m}",
            ": it has neither a feed nor sources. "
            "Add `feed` to make it a base table, or `sql` or `sources` to make it a derived one.",
        ),
        (
            "{feed: packets, sql: SELECT * FROM beats}",
            ".sql: a table that loads a feed cannot have SQL. "
            "Remove `feed` or `sql`: a query over this table is another table.",
        ),
        (
            "{feed: packets, sources: [beats]}",
            f".sources: {USELESS_ON_BASE}",
        ),
        ("{feed: packets, lookback: 0}", f".lookback: {USELESS_ON_BASE}"),
        ("{feed: packets, align: 1s}", f".align: {USELESS_ON_BASE}"),
        ("{feed: packets, lookback_trusted: no}", f".lookback_trusted: {USELESS_ON_BASE}"),
        (
            "{sources: [packets], period: 1m, lookback_trusted: true}",
            ".lookback_trusted: it has no effect without `lookback`. Remove it, or add `lookback`.",
        ),
        (
            "{sources: [packets], period: 1m, lookback: 1s, lookback_trusted: 1}",
            ".lookback_trusted: 1 is neither true nor false. Write true or false, without quotes.",
        ),
        (
            "{feed: packets, timestamp: ts}",
            ".timestamp: it has no effect without `select`. Remove it: the column is that of the feed.",
        ),
        (
            "{feed: packets, select: SELECT * FROM packets JOIN beats}",
            ".select: it reads `beats`, and may read only the feed of the table. "
            "Read `packets`; a query over tables is `sql`.",
        ),
        (
            "{feed: packets, select: SELECT * FROM packets WHERE}",
            ".select: the SQL does not parse at line 1, column 27, near `WHERE`. "
            "Correct the SQL there or just before.",
        ),
        (
            "{sources: [packets], period: 1s, select: SELECT * FROM packets}",
            ".select: it has no effect on a table that loads no feed. Make it part of the `sql`.",
        ),
        (
            "{sources: [packets], period: 1m, align: 61s}",
            ".align: it is longer than the table's period of 1m. Give at most the period, or lengthen the "
            "period.",
        ),
        (
            "{sources: [packets], period: 1m, align: 0}",
            ".align: the duration is zero. Give one above zero, such as '5 minutes'.",
        ),
        (
            "{feed: packets, period: 1m}",
            ".period: it is not the period of its feed `packets`, 5m. "
            "Remove it: each file of the feed is one update.",
        ),
        (
            "{feed: packets, phase: 1s}",
            ".phase: it has no effect on a table that loads a feed of files. Move it to the feed `packets`.",
        ),
        (
            "{feed: flows}",
            ": neither it nor its feed `flows` has a `period`. "
            "Add `period` to the table or to the feed, such as `period: 5 minutes`.",
        ),
        (
            "{sources: [packets]}",
            ": a derived table has no `period`. "
            "Add the time between two updates, such as `period: 15 minutes`.",
        ),
        (
            "{sources: [beats, packets], period: 1s, phase: 1s}",
            ".phase: it has no effect, for files upstream release this table. "
            "Move it to the feeds upstream that deliver files.",
        ),
        ("{sources: [], period: 1s}", ".sources: it is empty. Give it a value, or remove the key."),
        (
            "{sources: packets, period: 1s}",
            ".sources: text stands where a list belongs. Write a list, such as [packets, hosts].",
        ),
        (
            "{sources: [beats, 5], period: 1s}",
            ".sources: the number 5 stands where text belongs. Put it in quotes if it is meant as text.",
        ),
        ("{sources: [beats, Beats], period: 1s}", ".sources: it names `beats` twice. Remove one of the two."),
        (
            "{feed: packets, target_lag: 0}",
            ".target_lag: the duration is zero. Give one above zero, such as '5 minutes'.",
        ),
        (
            "{feed: packets, late_after: 0}",
            ".late_after: the duration is zero. Give one above zero, such as '5 minutes'.",
        ),
        (
            "{feed: packets, late_after: 0s}",
            ".late_after: the duration is zero. Give one above zero, such as '5 minutes'.",
        ),
        (
            "{feed: packets, late_after: 90}",
            ".late_after: the duration 90 has no unit. Add the unit, such as '90s'.",
        ),
        (
            "{feed: packets, history: 0}",
            ".history: the duration is zero. Give one above zero, such as '5 minutes'.",
        ),
        (
            "{feed: packets, history: 59s}",
            ".history: a history is from a minute to a year. Give one between, such as '1 day'.",
        ),
        (
            "{feed: packets, history: 53 weeks}",
            ".history: a history is from a minute to a year. Give one between, such as '1 day'.",
        ),
        (
            "{feed: packets, history: 400 years}",
            ".history: '400 years' has the unknown unit 'years'. "
            "Use us, ms, s, m, h, d or w, or their names.",
        ),
        ("{feed: packets, weight: -1}", ".weight: -1 is out of range. Write a number of 0 or more."),
        (
            "{feed: packets, weight: heavy}",
            ".weight: 'heavy' is not a number. Write a number of 0 or more, without quotes.",
        ),
        (
            "{feed: packets, cost: {variability: 0.1}}",
            ".cost: neither `startup` nor `rate` is given. Add one, such as `startup: 3s`.",
        ),
        (
            "{feed: packets, cost: 3s}",
            ".cost: text stands where a mapping of keys belongs. Write keys and their values below it.",
        ),
        (
            "{feed: packets, cost: {startup: 3}}",
            ".cost.startup: the duration 3 has no unit. Add the unit, such as '3s'.",
        ),
        ("{feed: packets, cost: {rate: -1}}", ".cost.rate: -1 is out of range. Write a number of 0 or more."),
        (
            "{feed: packets, cost: {rate: 1e999999}}",
            ".cost.rate: 1E+999999 is out of range. Write a number of 0 or more.",
        ),
        (
            "{feed: packets, cost: {rate: '0.1'}}",
            ".cost.rate: '0.1' is not a number. Write a number of 0 or more, without quotes.",
        ),
        (
            "{feed: packets, cost: {rate: 1, variability: 1.5}}",
            ".cost.variability: 1.5 is out of range. Write a number from 0 to 1.",
        ),
        (
            "{feed: packets, cost: {rate: 1, fixed: 1}}",
            ".cost: unknown key `fixed`. The keys here are `startup`, `rate`, `per_row`, `variability`, "
            "`tasks`, `stages`, `task` or `loaded`.",
        ),
        (
            "{feed: packets, jitter: 1s}",
            f": unknown key `jitter`. It belongs under `feeds`; the keys here are {TABLE_KEYS}.",
        ),
    ],
)
def test_a_wrong_table_is_refused(table: str, message: str) -> None:
    assert with_tables(f"extra: {table}") == [f"freshline.yml:11: tables.extra{message}"]


def test_an_empty_entry_is_not_taken_for_the_key_of_its_name():
    remedy = "it is empty. Give it a value, or remove the key."
    assert with_tables("tracks:") == [f"freshline.yml:11: tables.tracks: {remedy}"]
    pool = complaints(HEAD.replace("  updates: {tracks: 2}\n", "  updates: {tracks: 2}\n  tracks:\n"))
    assert f"freshline.yml:4: pools.tracks: {remedy}" in pool


def test_a_path_has_no_character_with_the_code_0() -> None:
    said = "it has a character with the code 0, which no path can have. Remove it."
    assert with_feed(r'{period: 5m, path: "a\0b"}') == [f"freshline.yml:5: feeds.extra.path: {said}"]
    assert complaints(HEAD + r'storage: "\0"') == [f"freshline.yml:11: storage: {said}"]


@pytest.mark.parametrize(
    ("history", "said"),
    [
        ("0", "the duration is zero. Give one above zero, such as '5 minutes'."),
        (
            "for ever",
            "'for ever' is not a duration. Write a number and a unit, such as '5 minutes' or '300s'.",
        ),
        ("10 s", "a history is from a minute to a year. Give one between, such as '1 day'."),
        ("30000 days", "a history is from a minute to a year. Give one between, such as '1 day'."),
        ("", "it is empty. Give it a value, or remove the key."),
    ],
)
def test_a_wrong_history_of_the_warehouse_is_refused(history: str, said: str) -> None:
    assert complaints(f"{HEAD}history: {history}") == [f"freshline.yml:11: history: {said}"]
