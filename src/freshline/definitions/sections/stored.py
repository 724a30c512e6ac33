"""What periodic tables and steps share: both are stored as tables."""

from __future__ import annotations

from typing import Protocol

from freshline.base.errors import Place
from freshline.definitions.sections.cost import Cost
from freshline.sql.slices import Slices


class StoredDefinition(Protocol):
    """What a table holds and what it is computed from, regardless of when it is updated."""

    @property
    def name(self) -> str: ...

    @property
    def feed(self) -> str | None: ...

    @property
    def sources(self) -> tuple[str, ...]: ...

    @property
    def sql(self) -> str | None: ...

    @property
    def select(self) -> str | None: ...

    @property
    def timestamp(self) -> str | None: ...

    @property
    def lookback_us(self) -> int: ...

    @property
    def lookback_trusted(self) -> bool: ...

    @property
    def align_us(self) -> int | None: ...

    @property
    def cost(self) -> Cost | None: ...

    @property
    def history_us(self) -> int: ...

    @property
    def place(self) -> Place: ...

    @property
    def slices(self) -> Slices | None: ...
