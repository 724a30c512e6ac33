"""The whole of `freshline.yml` as a model, and its JSON schema."""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Final

from pydantic import ConfigDict, Field, create_model
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from freshline.base.names import NAME_PATTERN
from freshline.definitions.language.section import Section
from freshline.definitions.language.values import Count, Entry, Given, History, PathText, Text
from freshline.definitions.warehouse import SECTIONS


class FileEntry(Entry):
    """The keys of the file beside its sections."""

    model_config = ConfigDict(title="Freshline warehouse")

    name: Text = Field(description="The name of the warehouse.", examples=["network"])
    storage: PathText = Field("./warehouse", description="The directory that holds the tables.")
    history_us: Given[History] = Field(
        None,
        alias="history",
        description="How long readers can follow a table's changes and read its earlier versions, from a "
        "minute to a year (default 1 day). A table may have a `history` of its own.",
    )
    cores: Given[Count] = Field(
        None,
        description="The cores that the tracks share: of the cluster, or of the machine that all local nodes "
        "run on. Costs then count what tracks take from each other (default: not counted; nodes with a local "
        "master have as many as it names).",
        examples=[8],
    )
    links: Given[list[list[Text]]] = Field(
        None,
        description="Pairs of nodes: the second can read tables of the first (default: each node can read "
        "tables of every other).",
        examples=[[["edge", "centre"]]],
    )


def _one_of_them(schema: dict[str, Any]) -> None:
    """Adds that a section is required unless another one is present."""
    schema["anyOf"] = [
        {"required": [key]}
        for name, section in SECTIONS.items()
        if section.unless is not None
        for key in (name, section.unless)
    ]


def _field(section: Section[Any, Any]) -> tuple[Any, Any]:
    named: dict[str, Any] = {"propertyNames": {"pattern": NAME_PATTERN}}
    if section.is_needed:
        named["minProperties"] = 1
    default: Any = ... if section.is_needed and section.unless is None else {}
    return dict[str, section.entry], Field(  # type: ignore[name-defined]
        default, description=section.description, json_schema_extra=named
    )


_SECTIONS: Final[dict[str, Any]] = {name: _field(section) for name, section in SECTIONS.items()}
WarehouseFile = create_model(
    "WarehouseFile",
    __doc__="A warehouse: its feeds, its tables and the pools that update them.",
    __base__=FileEntry,
    **_SECTIONS,
)


class _EditorSchema(GenerateJsonSchema):
    """Leaves out null types and null defaults, which only say that a key is optional."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        if schema.get("default") is None:
            return self.generate_inner(schema["schema"])
        return super().default_schema(schema)

    def encode_default(self, dft: Any) -> Any:
        return float(dft) if isinstance(dft, Fraction) else super().encode_default(dft)

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False


def json_schema() -> dict[str, Any]:
    """The JSON schema (draft 2020-12) of `freshline.yml`, for editors."""
    schema = WarehouseFile.model_json_schema(schema_generator=_EditorSchema)
    _one_of_them(schema)
    return {"$schema": _EditorSchema.schema_dialect, **schema}
