"""A running warehouse on a screen of 80 columns."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.text import Text

from freshline.base.duration import format_duration
from freshline.base.instants import utc
from freshline.base.printable import printable
from freshline.live import kinds_of_work
from freshline.live.status.screen_table import screen_table
from freshline.live.status.section import line
from freshline.live.status.status import Progress, TrackStatus, WarehouseStatus

_TRACKS_MAX = 12
_LINES_MAX = 5  # of messages and of broken assumptions


def render(status: WarehouseStatus, now_us: int, running: bool = True) -> RenderableType:
    """The warehouse as it was at `status.at_us`, with staleness as of now.

    If not `running`, the runner has ended: staleness is as of its last status, and the heading has its age.
    """
    as_of_us = now_us if running else status.at_us
    parts: list[RenderableType] = [_heading(status, now_us, running)]
    if status.starting is not None:
        parts.append(_starting(status.starting, running))
    for section in kinds_of_work.sections():
        parts += [_sentence(each) for each in section.heading(status.rows(section))]
    if status.is_opening:
        return Group(*parts)
    parts += _sections(status, as_of_us)
    parts += [
        line(f"Pool {pool.name} ({pool.policy}): no bound: behaves as {pool.behaves_as}.", "yellow")
        for pool in status.pools
        if pool.behaves_as != pool.policy
    ]
    said = _said(status, as_of_us)
    parts += _lines("Messages", said.get("Messages", [])[:_LINES_MAX], "red")
    parts += _lines("Held back", said.get("Held back", [])[:_LINES_MAX], "yellow")
    parts += _lines("Left out", said.get("Left out", [])[:_LINES_MAX], "cyan")
    parts += _lines("Recoveries", status.recoveries[:_LINES_MAX], "cyan")
    if running:
        parts += [Text(), _tracks(status.tracks, now_us)]
    parts += _lines("Broken assumptions", status.broken_assumptions[-_LINES_MAX:], "yellow")
    parts += _lines("Missed deadlines", said.get("Missed deadlines", [])[:_LINES_MAX], "red")
    if status.quarantined:
        files = "1 file is" if status.quarantined == 1 else f"{status.quarantined} files are"
        parts += [Text(), line(f"{files} in quarantine: `freshline quarantine list` says why.", "yellow")]
    return Group(*parts)


def _sections(status: WarehouseStatus, as_of_us: int) -> list[RenderableType]:
    shown: list[RenderableType] = []
    for section in sorted(kinds_of_work.sections(), key=lambda each: not each.leads):
        rows = status.rows(section)
        view = section.view(rows, as_of_us) if rows or (section.alone and not shown) else []
        shown += [Text(), *view] if view else []
    return shown


def _said(status: WarehouseStatus, as_of_us: int) -> dict[str, list[str]]:
    said: dict[str, list[str]] = {}
    for section in sorted(kinds_of_work.sections(), key=lambda each: each.rank):
        for title, lines in section.lines(status.rows(section), as_of_us).items():
            said.setdefault(title, []).extend(lines)
    return said


def _heading(status: WarehouseStatus, now_us: int, running: bool) -> Text:
    line = Text(no_wrap=True, overflow="ellipsis")
    line.append(status.name, style="bold")
    if running:
        up = format_duration(now_us - status.started_us)
        line.append(f" at {utc(now_us):%H:%M:%S} UTC, up {up}, process {status.pid} on {status.host}")
    else:
        line.append(" is not running", style="bold red")
        age = format_duration(now_us - status.at_us)
        line.append(f": figures of {age} ago, {utc(status.at_us):%Y-%m-%d %H:%M:%S} UTC")
    return line


def _starting(progress: Progress, running: bool) -> Text:
    return line(
        f"Starting: {progress}." if running else f"The run ended during its start: {progress}.", "cyan"
    )


def _tracks(tracks: Sequence[TrackStatus], now_us: int) -> RenderableType:
    busy_first = sorted(tracks, key=lambda track: track.table is None)
    table = screen_table(
        tracks if len(tracks) <= _TRACKS_MAX else busy_first[:_TRACKS_MAX],
        {
            ">track": lambda track: str(track.number),
            "pool": lambda track: Text(track.pool),
            "runs": lambda track: Text(track.table) if track.table else Text("idle", style="dim"),
            ">since": lambda track: (
                "" if track.since_us is None else format_duration(max(0, now_us - track.since_us))
            ),
        },
    )
    if len(tracks) <= _TRACKS_MAX:
        return table
    busy = sum(track.table is not None for track in tracks)
    return Group(table, Text(f"{busy} of {len(tracks)} tracks are busy.", style="dim"))


def _lines(title: str, sentences: Iterable[str], style: str) -> list[RenderableType]:
    lines: list[RenderableType] = [line(f"  {sentence}", style) for sentence in sentences]
    return [Text(), Text(title, style="bold"), *lines] if lines else []


def _sentence(text: str) -> Text:
    return Text(f"{printable(text[:1].upper() + text[1:])}.", style="yellow")
