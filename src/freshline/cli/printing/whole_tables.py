"""Tables that are computed whole: why, how large they may become, and what they keep on disk."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from rich.console import Console

from freshline.base.duration import SECOND, format_duration
from freshline.cli.printing.grid import tell
from freshline.planning.plan.plan import Plan, WholePlan

_NAMED_MAX: Final = 8  # the others are counted


def show_whole_tables(screen: Console, plan: Plan) -> None:
    """Prints what a user should know of each."""
    for whole in plan.whole[:_NAMED_MAX]:
        for sentence in _sentences(whole):
            tell(screen, f"  {sentence}")
    if len(plan.whole) > _NAMED_MAX:
        tell(
            screen,
            f"  ... and {len(plan.whole) - _NAMED_MAX} more tables are computed whole: --json has them.",
        )


def whole_record(plan: Plan, name: str) -> dict[str, Any]:
    """How a table is kept up to date, as JSON."""
    table = plan.warehouse.tables[name]
    record: dict[str, Any] = {"refresh": table.refresh}
    if not table.is_whole:
        return record
    record["because"] = [{"what": what, "remedy": remedy} for what, remedy in table.full_because]
    whole = next((each for each in plan.whole if each.name == name), None)
    if whole is not None:
        lasts_s = whole.lasts_s
        record["rows"] = whole.rows
        record["rows_most"] = whole.rows_most
        record["lasts"] = None if lasts_s is None else float(lasts_s)
        record["versions_kept"] = whole.versions_kept
    return record


def _sentences(whole: WholePlan) -> Iterator[str]:
    what, remedy = whole.because[0]
    yield f"{whole.name} is computed whole (refresh: full): {what}. To append instead: {remedy}."
    if whole.rows_most is not None:
        now = f"it reads {whole.rows:,} now" if whole.rows else "it has not run yet"
        most = f"the targets hold while it reads at most {whole.rows_most:,} rows"
        yield f"{whole.name}: {most}; {now}{_until(whole)}."
    if whole.versions_kept > 1:
        yield f"{whole.name}: its history keeps up to {whole.versions_kept:,} replaced versions on disk."
    if whole.pool_helps:
        names = ", ".join(whole.pool_helps[:_NAMED_MAX])
        yield f"{whole.name}: a pool of its own, with one track, would prove {names}."


def _until(whole: WholePlan) -> str:
    lasts_s = whole.lasts_s
    if lasts_s is None:
        return ""
    if not lasts_s:
        return ", which is too many"
    return f", and at the rate of its feeds that lasts {format_duration(int(lasts_s) * SECOND, down=True)}"
