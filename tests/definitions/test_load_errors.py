"""What a user reads when things do not fit together: names, references, cycles, sections."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from complaints import HEAD, complaints, with_tables
from freshline.base.errors import DefinitionErrors, InputError
from freshline.definitions.load import loads


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ("{feed: pakets}", ".feed: there is no feed `pakets`. Perhaps `packets` is meant."),
        ("{feed: Packets}", ".feed: there is no feed `Packets`. Perhaps `packets` is meant."),
        (
            "{feed: hosts}",
            ".feed: there is no feed `hosts`. "
            "Define it under `feeds`, or name `packets`, `flows` or `beats`.",
        ),
        (
            "{feed: packets, pool: queries}",
            ".pool: there is no pool `queries`. Define it under `pools`, or name `updates`.",
        ),
        ("{feed: packets, pool: Updates}", ".pool: there is no pool `Updates`. Perhaps `updates` is meant."),
        (
            "{sources: [beets], period: 1s}",
            ".sources: there is no table `beets`. Perhaps `beats` is meant.",
        ),
        (
            "{sql: SELECT * FROM flows, period: 1s}",
            ".sql: there is no table `flows`. "
            "It is a feed: add a table that loads it, `flows: {feed: flows}`.",
        ),
        (
            "{sql: SELECT * FROM hosts, period: 1s}",
            ".sql: there is no table `hosts`. "
            "Define it under `tables`, or name `packets`, `beats` or `extra`.",
        ),
        (
            "{sql: SELECT * FROM beats JOIN packets, sources: [beats], period: 1s}",
            ".sql: it reads `packets`, which `sources` does not name. "
            "Add it to `sources`, or remove `sources`.",
        ),
        (
            "{sql: SELECT * FROM beats WHERE, sources: [beats], period: 1s}",
            ".sql: the SQL does not parse at line 1, column 25, near `WHERE`. "
            "Correct the SQL there or just before.",
        ),
        (
            "{sql: DROP TABLE beats, period: 1s}",
            ".sql: the SQL is not a query: it begins with 'DROP'. "
            "Write one query that begins with SELECT or WITH.",
        ),
        (
            "{sql: SELECT * FROM Extra JOIN beats, period: 1s}",
            ".sql: it reads itself. Read another table, or give this one another name.",
        ),
    ],
)
def test_a_reference_to_nothing_is_refused(table: str, message: str) -> None:
    assert with_tables(f"extra: {table}") == [f"freshline.yml:11: tables.extra{message}"]


def test_the_line_of_a_listed_source_is_its_own() -> None:
    assert with_tables("extra:", "  period: 1s", "  sources:", "  - beats", "  - beets") == [
        "freshline.yml:15: tables.extra.sources: there is no table `beets`. Perhaps `beats` is meant."
    ]


def test_a_cycle_is_printed() -> None:
    assert with_tables(
        "late: {sources: [c], period: 1s}",
        "a: {sql: SELECT * FROM beats JOIN b, period: 1s}",
        "b: {sources: [c], period: 1s}",
        "c: {sources: [a], period: 1s}",
        "x: {sources: [y], period: 1s}",
        "y: {sources: [x], period: 1s, phase: 1s}",
    ) == [
        "freshline.yml:12: tables.a: the tables read each other in a cycle, a -> b -> c -> a. "
        "Remove one of these reads.",
        "freshline.yml:15: tables.x: the tables read each other in a cycle, x -> y -> x. "
        "Remove one of these reads.",
    ]


def test_with_several_pools_a_table_names_its_own() -> None:
    assert complaints(HEAD.replace("pools:\n", "pools:\n  other: {tracks: 1}\n")) == [
        f"freshline.yml:{line}: tables.{table}: `pool` is missing, and there are 2 pools. "
        "Add `pool` with `other` or `updates`."
        for line, table in ((10, "packets"), (11, "beats"))
    ]


@pytest.mark.parametrize("name", ["a-b", "2nd", "ä", "tächle", '""', "x" * 129, "a.b", '"a\\n"'])
def test_a_name_that_sql_could_not_use_is_refused(name: str) -> None:
    shown = {'""': "", '"a\\n"': "a\n", "x" * 129: "x" * 100 + "…"}.get(name, name)
    assert with_tables(f"{name}: {{feed: packets}}") == [
        f"freshline.yml:11: tables: `{shown}` cannot be a name. "
        "Begin with a-z, A-Z or _, and go on with up to 127 of a-z, A-Z, 0-9 and _."
    ]


def test_names_that_differ_only_in_case_are_two_definitions_of_one() -> None:
    assert with_tables("Packets: {feed: packets}") == [
        "freshline.yml:11: tables: two definitions of one name: "
        "`Packets` is `packets` of line 9 in another case. Rename one of the two."
    ]


def test_two_definitions_of_one_name_are_refused() -> None:
    assert with_tables("packets: {feed: packets}") == [
        "freshline.yml:11: two definitions of one name: `packets` is already on line 9. "
        "Rename or remove one of the two."
    ]


@pytest.mark.parametrize("section", ["pools", "tables"])
def test_a_section_whose_only_key_is_wrong_is_not_called_empty_as_well(section: str) -> None:
    text = "name: n\npools: {u: {tracks: 1}}\nfeeds: {f: {period: 5m}}\ntables: {u: {feed: f}}\n"
    line = 2 if section == "pools" else 4
    assert complaints(text.replace(f"{section}: {{u:", f"{section}: {{5:")) == [
        f"freshline.yml:{line}: YAML reads the key `5` as the number 5, not as text. Quote it or rename it."
    ]


def test_a_name_that_yaml_takes_for_something_else_is_refused_once() -> None:
    assert with_tables("on: {feed: packets}", "1: {feed: packets}", "t: {sources: ['on'], period: 1s}") == [
        "freshline.yml:11: YAML reads the key `on` as true, not as text. Quote it or rename it.",
        "freshline.yml:12: YAML reads the key `1` as the number 1, not as text. Quote it or rename it.",
    ]


@pytest.mark.parametrize(
    ("text", "messages"),
    [
        (
            "storage: ./here",
            [
                "1: `name` is missing. Add one, such as `name: network`.",
                "1: `tables` is missing. Add a table, such as `tables: {packets: {feed: packets}}`.",
                "1: `pools` is missing. Add a pool, such as `pools: {updates: {tracks: 2}}`.",
            ],
        ),
        (
            "name: yes\npools: {}\nfeeds:\ntables: [a]",
            [
                "1: name: true stands where text belongs. Put it in quotes if it is meant as text.",
                "2: pools: it is empty. Add a pool, such as `pools: {updates: {tracks: 2}}`.",
                "3: feeds: it is empty. Give it a value, or remove the key.",
                "4: tables: a list stands where a mapping of names belongs. "
                "Write names below it, each with its keys.",
            ],
        ),
        (
            "name: n\npools: {}\nfeeds: {f: {period: 1s}}\ntables: {t: {feed: f}}",
            ["2: pools: it is empty. Add a pool, such as `pools: {updates: {tracks: 2}}`."],
        ),
        (
            "name: ''\ndashboards: {}\ntable: {}\npools: {p: {tracks: 1}}\ntables: {}",
            [
                "1: name: it is empty. Add one, such as `name: network`.",
                "2: unknown key `dashboards`. "
                "The keys here are `name`, `storage`, `history`, `cores`, `links`, `pools`, `feeds`, "
                "`tables`, `queries`, `classes` or `nodes`.",
                "3: unknown key `table`. Perhaps `tables` is meant.",
                "5: tables: it is empty. Add a table, such as `tables: {packets: {feed: packets}}`.",
            ],
        ),
    ],
)
def test_what_every_file_needs_is_asked_for(text: str, messages: list[str]) -> None:
    assert complaints(text) == [f"freshline.yml:{message}" for message in messages]


def test_one_error_is_an_input_error_with_its_parts() -> None:
    with pytest.raises(InputError) as raised:
        loads(HEAD.replace("tracks: 2", "tracks: 0"), file="lake.yml")
    assert not isinstance(raised.value, DefinitionErrors)
    assert (str(raised.value.place), raised.value.what, raised.value.remedy) == (
        "lake.yml:3",
        "pools.updates.tracks: 0 is not a whole number from 1 to 1000000",
        "Write how many jobs may run at once",
    )


def test_independent_errors_are_reported_together_in_the_order_of_the_file() -> None:
    text = HEAD.replace("tracks: 2", "trucks: 2").replace("period: 5m", "period: 5")
    assert complaints(
        f"{text}  hosts: {{sources: [packets], period: 1s, phase: 1s}}\n  orders: {{feed: order}}\n"
    ) == [
        "freshline.yml:3: pools.updates: `tracks` is missing. "
        "Add how many jobs may run at once, such as `tracks: 2`.",
        "freshline.yml:3: pools.updates: unknown key `trucks`. Perhaps `tracks` is meant.",
        "freshline.yml:5: feeds.packets.period: the duration 5 has no unit. Add the unit, such as '5s'.",
        "freshline.yml:12: tables.orders.feed: there is no feed `order`. "
        "Define it under `feeds`, or name `packets`, `flows` or `beats`.",
    ]


def test_thousands_of_mistakes_are_reported_without_comparing_every_name_with_every_other() -> None:
    wrong = [f"t{i}: {{sources: [missing{i}], period: 1s}}" for i in range(2_000)]
    assert len(with_tables(*wrong)) == 2_000


SCALARS = [
    "5",
    "0",
    "-1",
    "0.5",
    "1e9",
    "5s",
    "yes",
    "~",
    "''",
    "packets",
    "[a, 1]",
    "{a: 1}",
    "{}",
    "*x",
    "SELECT",
]
KEYS = [
    "name",
    "pools",
    "feeds",
    "tables",
    "feed",
    "sql",
    "sources",
    "period",
    "phase",
    "cost",
    "rate",
    "tracks",
    "<<",
]
TREES = st.recursive(
    st.sampled_from(SCALARS),
    lambda trees: st.dictionaries(st.sampled_from(KEYS), trees, max_size=4).map(
        lambda keys: "{" + ", ".join(f"{key}: {value}" for key, value in keys.items()) + "}"
    ),
)


@given(st.one_of(TREES, TREES.map(lambda tree: f"{HEAD}  extra: {tree}\n"), st.text()))
def test_whatever_is_written_ends_in_a_warehouse_or_in_sentences(text: str) -> None:
    try:
        said = str(loads(text).pools)
    except InputError as error:
        said = str(error)
    assert re.match(r"freshline\.yml:\d+: |{'", said)
