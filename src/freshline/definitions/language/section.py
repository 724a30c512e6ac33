"""The shape of a section of the file, and what the rules of all sections share."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from freshline.base.errors import InputError, Place, about
from freshline.base.names import Names
from freshline.definitions.language.document import Document
from freshline.definitions.language.values import Entry
from freshline.sql.time import Relation

if TYPE_CHECKING:
    from freshline.definitions.warehouse import Warehouse

E = TypeVar("E", bound=Entry)
R = TypeVar("R")
Path = tuple[str | int, ...]


def _nothing(check: LiveCheck) -> None:
    """The default: a run needs no more from the section than a plan does."""


@dataclass(frozen=True, slots=True)
class Section(Generic[E, R]):
    """Entries of one kind, by name: the model of an entry, and how entries become records of a warehouse."""

    name: str  # in the file and in `Warehouse`
    entry: type[E]
    # Turns the entries that are valid by themselves into the section's fields of a `Warehouse`.
    resolve: Callable[[Resolution], dict[str, Any]]
    from_record: Callable[[dict[str, Any]], R]  # reads a record that was written as JSON
    check_live: Callable[[LiveCheck], None] = _nothing  # checks what a run needs in addition
    is_needed: bool = False  # every warehouse has it
    unless: str | None = None  # except one that has this section
    # The remedy if the section, or a required key of its entries, is missing.
    missing: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    to_record: Callable[[Any], dict[str, Any]] = asdict  # for `from_record`; fractions become text later


class Resolution:
    """The entries that are valid by themselves, while they become a warehouse; collects the errors.

    The document also has the invalid entries. A reference to one of those is not another error.
    """

    def __init__(
        self,
        entries: Mapping[str, Mapping[str, Any]],
        document: Document,
        history_us: int | None,
        links: Sequence[Sequence[str]] | None = None,
    ) -> None:
        self.history_us = history_us  # the default of tables without `history`
        self.links = links  # between nodes; None: all
        self.errors: list[InputError] = []
        self.fields: dict[str, Any] = {}  # of the warehouse, for the sections resolved so far
        self._entries = entries
        self._document = document
        self._names = {section: Names(section, document.tree.get(section, ())) for section in entries}

    def entries(self, section: Section[E, R]) -> Mapping[str, E]:
        return self._entries[section.name]

    def records(self, section: Section[E, R]) -> Mapping[str, R]:
        """The records of a section that was resolved earlier."""
        records: Mapping[str, R] = self.fields[section.name]
        return records

    def names(self, section: Section[E, R]) -> Names:
        """The names that a section defines, including those of invalid entries."""
        return self._names[section.name]

    def place(self, path: Path) -> Place:
        return self._document.place(path)

    def report(self, path: Path, what: str, remedy: str) -> None:
        self.errors.append(InputError(about(path, what), remedy, self._document.place(path)))


class LiveCheck:
    """Collects the errors of definitions that can be planned and simulated but cannot run on data."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self.errors: list[InputError] = []
        # By section and name: what a query may read, as far as it is known despite errors.
        self.relations: dict[str, dict[str, Relation]] = {}

    def report(self, path: Path, place: Place, what: str, remedy: str) -> None:
        self.errors.append(InputError(about(path, what), remedy, place))
