"""Prints docs/reference.md: every key of `freshline.yml`, from its JSON schema.

    PYTHONPATH=src .venv/bin/python scripts/key_reference.py > docs/reference.md

`tests/docs/test_reference.py` compares the page with what this script prints.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from freshline.definitions.file import json_schema

Schema = dict[str, Any]

COMMAND = "PYTHONPATH=src .venv/bin/python scripts/key_reference.py > docs/reference.md"
_INTRODUCTION = f"""\
# Keys of `freshline.yml`

This page is generated from the JSON schema (`freshline schema`). Do not edit it; run

    {COMMAND}

[semantics.md](semantics.md) says what the keys mean together, and [formulas.md](formulas.md) what is computed
from them.

- **Bold** keys are required.
- A duration is numbers with units, such as `5 minutes`, `300s` or `1h 30m`. It may be `0` only where the type
  says so.
- A name begins with a letter or `_`, has letters, digits and `_`, and at most 128 characters.
- An unknown key is an error, and so is a key that has no effect where it stands.
"""
_DURATION_START = r"^\s*([0-9]+"  # the pattern of a duration begins so


def reference(schema: Schema) -> str:
    """The page as Markdown."""
    definitions: Schema = schema["$defs"]
    sections = {name: _entry(key) for name, key in schema["properties"].items() if _entry(key)}
    blocks = [_INTRODUCTION, _block("## The file", schema, definitions)]
    done: set[str] = set()
    for name, entry in sections.items():
        done.add(entry)
        blocks.append(_block(f"## `{name}`", definitions[entry], definitions))
    blocks += [
        _block(f"## {definition['title']}", definition, definitions)
        for name, definition in definitions.items()
        if name not in done
    ]
    return "\n".join(blocks)


def _block(heading: str, schema: Schema, definitions: Schema) -> str:
    required = schema.get("required", ())
    rows = "\n".join(
        f"| {f'**`{name}`**' if name in required else f'`{name}`'} | {kind} | {_text(key)} |"
        for name, key in schema["properties"].items()
        for kind in [f"[entries](#{name}) by name" if _entry(key) else _type(key, definitions)]
    )
    notes = "".join(f"\n{each}\n" for each in _alternatives(schema))
    return (
        f"{heading}\n\n{schema['description']}\n{notes}\n| key | value | meaning |\n|---|---|---|\n{rows}\n"
    )


def _alternatives(schema: Schema) -> Iterator[str]:
    """Which keys must be there, where that is more than a list."""
    if "anyOf" in schema:
        yield f"At least one of these is required: {', '.join(_choices(schema['anyOf']))}."
    if "oneOf" in schema:
        yield f"Either {'; or '.join(_choices(schema['oneOf']))}; not both."


def _choices(choices: list[Schema]) -> list[str]:
    """Each choice in words; one that is a choice itself has `or` in it."""
    return [
        " or ".join(f"`{key}`" for part in choice.get("anyOf", [choice]) for key in part["required"])
        for choice in choices
    ]


def _entry(key: Schema) -> str:
    """The definition that a section's entries follow; empty where the key is no section."""
    entries = key.get("additionalProperties")
    return _name(entries) if isinstance(entries, dict) and "$ref" in entries else ""


def _name(reference: Schema) -> str:
    return str(reference["$ref"]).rsplit("/", 1)[-1]


def _type(key: Schema, definitions: Schema) -> str:
    """The kind of value that a key takes, with its limits."""
    if "$ref" in key:
        title = definitions[_name(key)]["title"]
        return f"[{title.lower()}](#{_anchor(title)})"
    if "enum" in key:
        # A bar ends a cell, and a tab is not visible.
        values = (str(value).replace("|", "\\|").replace("\t", "\\t") for value in key["enum"])
        return ", ".join(f"`{value}`" for value in values)
    if str(key.get("pattern", "")).startswith(_DURATION_START):
        return "duration or 0" if "integer" in key["type"] else "duration"
    if "anyOf" in key and all("type" in each for each in key["anyOf"]):
        return " or ".join(_type(each, definitions) for each in key["anyOf"])
    if key.get("type") == "array":
        return f"list of {_plural(key['items'])}"
    if key.get("type") == "object":
        return "settings by name"
    return _plain(key)


def _plain(key: Schema) -> str:
    names = {"string": "text", "integer": "whole number", "number": "number", "boolean": "true or false"}
    return names[key["type"]] + _limits(key)


def _plural(items: Schema) -> str:
    return "lists of names" if items.get("type") == "array" else "names"


def _limits(key: Schema) -> str:
    """The range of a number.

    >>> _limits({"exclusiveMinimum": 0, "maximum": 1}), _limits({"minimum": 1}), _limits({})
    (' above 0 and up to 1', ' of at least 1', '')
    """
    words = [
        f"{word} {key[name]:,}"
        for name, word in (
            ("exclusiveMinimum", "above"),
            ("minimum", "of at least"),
            ("maximum", "up to"),
        )
        if name in key
    ]
    return f" {' and '.join(words)}" if words else ""


def _text(key: Schema) -> str:
    text = str(key["description"])
    if "default" in key and "default" not in text and key["default"] not in ({}, None):
        text += f" Default: `{key['default']}`."
    if key.get("examples") and not _is_usual(key["examples"]):
        examples = ", ".join(f"`{_example(example)}`" for example in key["examples"])
        text += f" Example: {examples}."
    return text.replace("|", r"\|")


def _is_usual(examples: list[Any]) -> bool:
    """Whether these are the examples that every duration has; the introduction names them."""
    return examples == ["5 minutes", "300s", "1h 30m"]


def _example(example: Any) -> str:
    return example if isinstance(example, str) else json.dumps(example)


def _anchor(title: str) -> str:
    return title.lower().replace(" ", "-")


if __name__ == "__main__":
    print(reference(json_schema()), end="")
