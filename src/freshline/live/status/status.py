"""The status of a running warehouse: its records and the file that other processes read."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

from freshline.base.atomic_write import replace_text
from freshline.base.duration import seconds
from freshline.base.errors import InputError
from freshline.definitions.language.policies import PolicyName
from freshline.live import kinds_of_work
from freshline.live.status.section import Row, StatusSection


@dataclass(frozen=True)
class TrackStatus:
    """A track at one instant and the table of its job."""

    number: int
    pool: str
    table: str | None
    since_us: int | None


@dataclass(frozen=True)
class PoolStatus:
    """A pool and its effective policy, which differs if its own is of no use without a bound."""

    name: str
    policy: PolicyName
    behaves_as: PolicyName


@dataclass(frozen=True)
class Progress:
    """The present activity of a start, and its progress if that can be counted."""

    doing: str
    done: int = 0
    of: int = 0

    def __str__(self) -> str:
        return f"{self.doing}, {self.done} of {self.of}" if self.of else self.doing


@dataclass(frozen=True)
class WarehouseStatus:
    """A running warehouse at one instant and its process.

    `sections` has the rows of each kind of work, by the section's name. Each section is an attribute too:
    `status.tables` are its rows, `status.placement` is its only row or None.
    """

    name: str
    run_id: str
    host: str
    pid: int
    at_us: int
    started_us: int
    tracks: tuple[TrackStatus, ...]
    broken_assumptions: tuple[str, ...]  # the latest, oldest first
    quarantined: int  # files
    recoveries: tuple[str, ...] = ()  # present ones and the latest ended ones, the last first
    pools: tuple[PoolStatus, ...] = ()
    starting: Progress | None = None  # the progress of its start
    node: str | None = None  # the node of this run; None: no nodes, or all of them
    sections: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # A section without rows is left out, so that equal statuses compare equal.
        filled = {name: rows for name, rows in self.sections.items() if rows}
        object.__setattr__(self, "sections", filled)

    def __getattr__(self, name: str) -> Any:
        for section in kinds_of_work.sections():
            if section.name == name:
                return section.told(self.rows(section))
        raise AttributeError(f"a status has no {name}")

    def rows(self, section: StatusSection[Row]) -> tuple[Row, ...]:
        return self.sections.get(section.name, ())

    def changed(self, **values: Any) -> Self:
        """A copy with other fields, or with other rows in some sections."""
        rows = {name: value for name, value in values.items() if name not in vars(self)}
        fields = {name: value for name, value in values.items() if name not in rows}
        return replace(self, **fields, sections={**self.sections, **rows})

    @property
    def is_opening(self) -> bool:
        """Whether the run is still opening: nothing can be loaded, and its sections are empty."""
        known = (self.rows(each) for each in kinds_of_work.sections() if not each.single)
        return self.starting is not None and not any(known)

    def of_the_past(self) -> Self:
        """The status after a run that ended without a last status."""
        return self.changed(
            **{
                section.name: tuple(map(section.ended, self.rows(section)))
                for section in kinds_of_work.sections()
            }
        )

    def record(self, as_of_us: int) -> dict[str, Any]:
        """The JSON of `freshline status --json` and of the service."""
        shown: dict[str, Any] = {
            "starting": None if self.starting is None else vars(self.starting),
            "pools": [vars(pool) for pool in self.pools],
        }
        for section in kinds_of_work.sections():
            shown[section.name] = section.told([section.record(row, as_of_us) for row in self.rows(section)])
        return shown

    def summary_record(self, stopped_because: str | None, holds: bool) -> dict[str, Any]:
        """The JSON of a run's summary."""
        shown: dict[str, Any] = {
            "name": self.name,
            "run": self.run_id,
            "for": seconds(self.at_us - self.started_us),
            "stopped_because": stopped_because,
            "holds": holds,
        }
        for section in kinds_of_work.sections():
            records = [section.summary_record(row, self.at_us) for row in self.rows(section)]
            shown[section.name] = section.told(records)
        return shown | {
            "broken_assumptions": list(self.broken_assumptions),
            "quarantined": self.quarantined,
        }

    def to_json(self) -> str:
        # `vars`, because `dataclasses.asdict` copies every value, which takes most of the time.
        record = {name: value for name, value in vars(self).items() if name != "sections"}
        record["tracks"] = [vars(track) for track in self.tracks]
        record["pools"] = [vars(pool) for pool in self.pools]
        record["starting"] = None if self.starting is None else vars(self.starting)
        for section in kinds_of_work.sections():
            record[section.name] = section.told([vars(row) for row in self.rows(section)])
        return json.dumps(record)

    @classmethod
    def from_json(cls, text: str) -> Self:
        record: dict[str, Any] = json.loads(text)
        sections = {}
        for section in kinds_of_work.sections():
            told = record.pop(section.name)
            rows = ([] if told is None else [told]) if section.single else told
            sections[section.name] = tuple(section.read(row) for row in rows)
        return cls(
            **record
            | {
                "tracks": tuple(TrackStatus(**track) for track in record["tracks"]),
                "broken_assumptions": tuple(record["broken_assumptions"]),
                "recoveries": tuple(record["recoveries"]),
                "pools": tuple(PoolStatus(**pool) for pool in record["pools"]),
                "starting": Progress(**record["starting"]) if record["starting"] else None,
                "sections": sections,
            }
        )

    def write(self, path: Path) -> None:
        """Replaces the status file."""
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_text(path, self.to_json())

    @classmethod
    def read(cls, path: Path) -> Self:
        try:
            return cls.from_json(path.read_text(encoding="utf-8"))
        except FileNotFoundError:
            what = f"there is no status at {path}: this warehouse has not run yet"
            raise InputError(what, "Start it with `freshline run`") from None
        except OSError as error:
            raise InputError(f"cannot read {path}: {error.strerror}", "Make the file readable") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            what = f"{path} is not a status that this version of Freshline can read"
            raise InputError(
                what, "Run the same version as the runner, or restart `freshline run`"
            ) from error
