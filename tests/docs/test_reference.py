"""docs/reference.md is what scripts/key_reference.py prints of the JSON schema."""

import importlib.util
from pathlib import Path
from types import ModuleType

from freshline.definitions.file import json_schema

ROOT = Path(__file__).parents[2]


def script() -> ModuleType:
    spec = importlib.util.spec_from_file_location("key_reference", ROOT / "scripts" / "key_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_reference_is_what_the_schema_says() -> None:
    key_reference = script()
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert page == key_reference.reference(json_schema()), f"regenerate it: {key_reference.COMMAND}"


def test_every_key_of_the_schema_is_on_the_page() -> None:
    page = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    schema = json_schema()
    keys = {key for part in (schema, *schema["$defs"].values()) for key in part["properties"]}
    assert {key for key in keys if f"`{key}`" not in page} == set()


def test_limits_are_said_in_words() -> None:
    limits = script()._limits
    assert limits({"exclusiveMinimum": 0, "maximum": 1}) == " above 0 and up to 1"
    assert limits({"minimum": 1}) == " of at least 1"
    assert limits({}) == ""
