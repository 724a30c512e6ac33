"""What a section of the file is, and what the rules of all sections have in common."""

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
    """A run needs no more of the section than a plan."""


@dataclass(frozen=True, slots=True)
class Section(Generic[E, R]):
    """Entries of one kind, by name: what a user may write, and how it becomes the records of a warehouse."""

    name: str  # in the file and in `Warehouse`
    entry: type[E]
    # From the entries that are right by themselves to the section's fields of a `Warehouse`.
    resolve: Callable[[Resolution], dict[str, Any]]
    from_record: Callable[[dict[str, Any]], R]  # a record that was written as JSON
    check_live: Callable[[LiveCheck], None] = _nothing  # what a run needs beyond that
    is_needed: bool = False  # no warehouse is without
    unless: str | None = None  # but one that has this section
    # What to do about the section, or about a key of its entries, where it must be there and is not.
    missing: Mapping[str, str] = field(default_factory=dict)
    description: str = ""
    to_record: Callable[[Any], dict[str, Any]] = asdict  # what `from_record` reads, but for fractions as text


class Resolution:
    """The entries that are right by themselves, on their way to a warehouse: what is wrong is collected.

    The document has the other entries too, and to refer to one of those is not another error.
    """

    def __init__(
        self,
        entries: Mapping[str, Mapping[str, Any]],
        document: Document,
        history_us: int | None,
        links: Sequence[Sequence[str]] | None = None,
    ) -> None:
        self.history_us = history_us  # of tables that do not say it themselves
        self.links = links  # between nodes; None: all
        self.errors: list[InputError] = []
        self.fields: dict[str, Any] = {}  # of the warehouse, as far as its sections are resolved
        self._entries = entries
        self._document = document
        self._names = {section: Names(section, document.tree.get(section, ())) for section in entries}

    def entries(self, section: Section[E, R]) -> Mapping[str, E]:
        return self._entries[section.name]

    def records(self, section: Section[E, R]) -> Mapping[str, R]:
        """What became of a section that comes before."""
        records: Mapping[str, R] = self.fields[section.name]
        return records

    def names(self, section: Section[E, R]) -> Names:
        """The names that a section defines, whether or not their entries are right."""
        return self._names[section.name]

    def place(self, path: Path) -> Place:
        return self._document.place(path)

    def report(self, path: Path, what: str, remedy: str) -> None:
        self.errors.append(InputError(about(path, what), remedy, self._document.place(path)))


class LiveCheck:
    """What may be planned and simulated, but cannot be run on data."""

    def __init__(self, warehouse: Warehouse) -> None:
        self.warehouse = warehouse
        self.errors: list[InputError] = []
        # By section and name, what a query may read, as far as it is known in spite of errors.
        self.relations: dict[str, dict[str, Relation]] = {}

    def report(self, path: Path, place: Place, what: str, remedy: str) -> None:
        self.errors.append(InputError(about(path, what), remedy, place))
