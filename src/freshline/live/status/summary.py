"""The summary of a run: observed staleness beside bounds and targets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console, RenderableType

from freshline.base.duration import format_duration
from freshline.base.printable import printable
from freshline.live import kinds_of_work
from freshline.live.status.status import WarehouseStatus

_REASONS_MAX = 10


def targets_exceeded(status: WarehouseStatus) -> int:
    """The number of targets that were exceeded at any time of the run."""
    return sum(each.exceeded(status.rows(each), status.at_us) for each in kinds_of_work.sections())


def show_summary(
    screen: Console,
    status: WarehouseStatus,
    started_us: int,
    ended_us: int,
    asserted_max_us: Mapping[str, int | None] | None = None,
) -> None:
    """Prints the figures of every row of every section, and whether targets were kept.

    `asserted_max_us` has, by table, the worst staleness while its bound was asserted; without it every bound
    counts as asserted throughout.
    """
    screen.print(
        f"{status.name} over {format_duration(ended_us - started_us)}",
        style="bold",
        highlight=False,
        markup=False,
    )
    in_order = sorted(kinds_of_work.sections(), key=lambda each: each.rank)
    has_rows = any(status.rows(each) for each in in_order if each.leads and not each.single)
    for section in in_order:
        rows = status.rows(section)
        shown: list[RenderableType] = []
        if rows or (section.alone and not has_rows):
            shown = section.summary(rows, status.at_us)
        for part in shown:
            screen.print(part)
    for section in in_order:
        for line in section.verdict_lines(status.rows(section), status.at_us):
            screen.print(line, highlight=False)
    _show_reasons(screen, status, asserted_max_us or {})
    if status.recoveries:
        _show_some(screen, "Recoveries", status.recoveries[:_REASONS_MAX], len(status.recoveries), "")


def _show_reasons(
    screen: Console, status: WarehouseStatus, asserted_max_us: Mapping[str, int | None]
) -> None:
    """Prints why bounds did not hold: a broken assumption, or an error in the proof or its implementation."""
    broken = status.broken_assumptions
    if broken:
        title = "Assumptions that did not hold"
        _show_some(screen, title, broken[-_REASONS_MAX:], len(broken), "the last ")
        return
    for section in kinds_of_work.sections():
        for text in section.unexplained(status.rows(section), asserted_max_us):
            screen.print(text, highlight=False, markup=False)


def _show_some(screen: Console, title: str, sentences: Sequence[str], count_all: int, which: str) -> None:
    some = f" ({which}{_REASONS_MAX} of {count_all})" if count_all > _REASONS_MAX else ""
    screen.print(f"{title}{some}:", highlight=False)
    for sentence in sentences:
        screen.print(f"  - {printable(sentence)}", highlight=False, markup=False)
