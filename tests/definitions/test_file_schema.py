"""The JSON schema that editors get."""

from typing import Any

from freshline.base.duration import DURATION_PATTERN
from freshline.definitions.file import WarehouseFile, json_schema
from freshline.definitions.language.document import parse

NAMES = {"pattern": "^[A-Za-z_][A-Za-z0-9_]{0,127}$"}
EXAMPLES = ["5 minutes", "300s", "1h 30m"]


def without_descriptions(schema: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {key: value for key, value in keys.items() if key != "description"}
        for name, keys in schema["properties"].items()
    }


def test_the_schema_says_which_draft_it_is_and_what_it_describes() -> None:
    schema = json_schema()
    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "Freshline warehouse"
    assert schema["required"] == ["name", "tables"]
    assert schema["anyOf"] == [{"required": ["pools"]}, {"required": ["nodes"]}]
    assert schema["additionalProperties"] is False
    assert without_descriptions(schema) == {
        "name": {"type": "string", "minLength": 1, "examples": ["network"]},
        "storage": {"type": "string", "minLength": 1, "default": "./warehouse"},
        "history": {
            "type": "string",
            "pattern": DURATION_PATTERN,
            "examples": ["5 minutes", "300s", "1h 30m"],
        },
        "cores": {"type": "integer", "minimum": 1, "maximum": 1_000_000_000_000, "examples": [8]},
        "links": {
            "type": "array",
            "items": {"type": "array", "items": {"type": "string", "minLength": 1}},
            "examples": [[["edge", "centre"]]],
        },
        "pools": {
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/PoolEntry"},
            "propertyNames": NAMES,
            "minProperties": 1,
            "default": {},
        },
        "feeds": {
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/FeedEntry"},
            "propertyNames": NAMES,
            "default": {},
        },
        "tables": {
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/TableEntry"},
            "propertyNames": NAMES,
            "minProperties": 1,
        },
        "queries": {
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/QueryEntry"},
            "propertyNames": NAMES,
            "default": {},
        },
        "classes": {
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/ClassEntry"},
            "propertyNames": NAMES,
            "default": {},
        },
        "nodes": {
            "type": "object",
            "additionalProperties": {"$ref": "#/$defs/NodeEntry"},
            "propertyNames": NAMES,
            "default": {},
        },
    }


def test_a_duration_is_text_of_a_pattern_with_examples() -> None:
    table = json_schema()["$defs"]["TableEntry"]
    assert without_descriptions(table)["period"] == {
        "type": "string",
        "pattern": DURATION_PATTERN,
        "examples": EXAMPLES,
    }


def test_a_duration_that_may_be_zero_may_be_a_bare_zero() -> None:
    table = json_schema()["$defs"]["TableEntry"]
    assert without_descriptions(table)["phase"] == {
        "type": ["string", "integer"],
        "pattern": DURATION_PATTERN,
        "examples": EXAMPLES,
        "minimum": 0,
        "maximum": 0,
    }


def test_a_pool_has_its_choices_limits_and_defaults() -> None:
    pool = json_schema()["$defs"]["PoolEntry"]
    assert pool["required"] == ["tracks"]
    assert without_descriptions(pool) == {
        "tracks": {"type": "integer", "minimum": 1, "maximum": 1_000_000, "examples": [2]},
        "policy": {
            "type": "string",
            "enum": [
                "fifo",
                "rm",
                "edf",
                "edf-strict",
                "clustered-edf",
                "prp",
                "aus",
                "aus-slack",
                "lrm",
                "lrm-paper",
                "rds-edf",
                "rds-hef",
                "rds-quota",
                "admit-all",
            ],
            "default": "edf",
        },
        "cluster_factor": {"type": "number", "minimum": 1},
        "provisioning": {"type": "string", "enum": ["worst", "average"]},
        "recovery": {"type": "string", "enum": ["fastest", "together"]},
        "blocking": {
            "type": ["string", "integer"],
            "pattern": DURATION_PATTERN,
            "examples": ["1s"],
            "minimum": 0,
            "maximum": 0,
        },
        "preemptive": {"type": "boolean"},
        "rescheduling": {"type": "string", "enum": ["optimistic", "pessimistic", "permissive"]},
        "threshold": {"type": "number", "minimum": 0, "examples": [200000]},
        "gains": {"type": "string", "enum": ["fixed", "scheduled"]},
        "node": {"type": "string", "minLength": 1},
    }


def test_a_query_has_its_limits() -> None:
    query = json_schema()["$defs"]["QueryEntry"]
    assert query["required"] == ["sql", "window", "stride"]
    keys = without_descriptions(query)
    assert keys["weight"] == {"type": "number", "exclusiveMinimum": 0}
    assert keys["selectivity"] == {"type": "number", "exclusiveMinimum": 0, "maximum": 1}
    assert keys["keep_least"] == {"type": "number", "minimum": 0, "maximum": 1}


def test_a_table_is_base_or_derived() -> None:
    table = json_schema()["$defs"]["TableEntry"]
    assert table["oneOf"] == [
        {"required": ["feed"]},
        {"anyOf": [{"required": ["sql"]}, {"required": ["sources"]}]},
    ]
    assert list(table["properties"]) == [
        "feed", "select", "sql", "sources", "timestamp", "refresh", "period", "phase", "lookback",
        "lookback_trusted", "align", "pool", "target_lag", "cost", "late_after", "weight", "history",
        "slices", "deadline", "node", "selectivity", "discard",
    ]  # fmt: skip
    assert without_descriptions(table)["late_after"] == without_descriptions(table)["period"]
    assert without_descriptions(table)["weight"] == {"type": "number", "minimum": 0}


def test_a_feed_has_its_choices_and_examples() -> None:
    feed = without_descriptions(json_schema()["$defs"]["FeedEntry"])
    assert {key: feed[key] for key in ("format", "header", "name_timestamp", "after_load")} == {
        "format": {"type": "string", "enum": ["csv", "json", "parquet"]},
        "header": {"type": "boolean"},
        "name_timestamp": {"type": "string", "minLength": 1, "examples": ["packets-%Y%m%dT%H%M%S.csv"]},
        "after_load": {"type": "string", "enum": ["keep", "archive", "delete"]},
    }


def test_a_cost_has_exact_numbers_and_at_least_one_part() -> None:
    cost = json_schema()["$defs"]["CostEntry"]
    assert cost["anyOf"] == [{"required": ["startup"]}, {"required": ["rate"]}, {"required": ["per_row"]}]
    assert without_descriptions(cost)["rate"] == {"type": "number", "minimum": 0, "default": 0.0}
    assert without_descriptions(cost)["variability"] == {
        "type": "number",
        "minimum": 0,
        "maximum": 1,
        "default": 0.0,
    }


def test_every_key_is_described() -> None:
    schema = json_schema()
    undescribed = [
        (owner["title"], name)
        for owner in (schema, *schema["$defs"].values())
        for name, keys in owner["properties"].items()
        if not keys.get("description")
    ]
    assert undescribed == []


def test_nothing_in_the_schema_may_be_null() -> None:
    assert "null" not in str(json_schema())
    assert "None" not in str(json_schema())


def test_the_schemas_keys_are_those_that_are_read() -> None:
    text = """
    name: n
    storage: s
    history: 2 days
    cores: 8
    links: [[here, there]]
    pools: {p: {tracks: 1, policy: prp, cluster_factor: 2, provisioning: worst, recovery: fastest,
                blocking: 1s, preemptive: true, rescheduling: permissive, threshold: 5, gains: fixed,
                node: here}}
    feeds: {f: {arrival: files, period: 1s, phase: 0, jitter: 0s, timestamp_jitter: 1s, rows: 10,
                node: here, age: 1s, burst: 5,
                path: p, format: csv,
                schema: ts timestamp, timestamp: ts, header: no, encoding: utf-8, delimiter: ";",
                name_timestamp: "%Y", lateness: 0, ahead: 0,
                after_load: keep, shed: {most: 1, per: 1s, value: n}}}
    tables: {t: {feed: f, select: s, sql: s, sources: [a], timestamp: ts, refresh: auto,
                 period: 1s, phase: 1s, lookback: 0, lookback_trusted: false, align: 1s,
                 pool: p, target_lag: 1s,
                 cost: {startup: 1s, rate: 1, per_row: 1ns, variability: 0, tasks: 2, stages: 2,
                        task: 1s, loaded: true},
                 late_after: 1s, weight: 2, history: 1d,
                 slices: {by: k}, deadline: 1s, node: here, selectivity: 0.5,
                 discard: {key: k, value: v}}}
    queries: {q: {sql: s, window: 1s, stride: 1s, deadline: 1s, weight: 2, keep_least: 0.5, pool: p,
                  cost: {rate: 1}, selectivity: 0.5, part: 0, into: q}}
    classes: {c: {error: 0.3, data_error_factor: 2, settling: 60s, overshoot: 0.35, pool: p}}
    nodes: {here: {master: "local[1]", speed: 2, policy: fifo, cores: 2, conf: {spark.ui.enabled: false}}}
    """
    tree = parse(text, "freshline.yml").tree
    schema = json_schema()
    WarehouseFile.model_validate(tree)
    assert list(tree) == list(schema["properties"])
    for section, definition in (
        ("pools", "PoolEntry"),
        ("feeds", "FeedEntry"),
        ("tables", "TableEntry"),
        ("queries", "QueryEntry"),
        ("classes", "ClassEntry"),
        ("nodes", "NodeEntry"),
    ):
        (entry,) = tree[section].values()
        assert list(entry) == list(schema["$defs"][definition]["properties"])
    assert list(tree["tables"]["t"]["cost"]) == list(schema["$defs"]["CostEntry"]["properties"])
