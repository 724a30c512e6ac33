"""What all pictures share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from freshline.base.duration import DAY, HOUR, MINUTE, SECOND
from freshline.base.errors import InputError

# More would not be readable on a page.
CURVES_MAX: Final = 12
COLUMNS: Final = 3
COLORS: Final = 20
_PIXELS = 1_000  # the width of a curve's axes, generously
_SPANS = ("#ff7f0e", "#9467bd", "#8c564b", "#7f7f7f")
_SHADE = 0.18
# A user's name is shown as it is; matplotlib would otherwise interpret `$`.
names_as_written = rc_context({"text.parse_math": False})

# A span to shade in all axes: its name, start and end.
Span = tuple[str, int, int]
Points = Sequence[tuple[int, int]]  # (instant, height)


def save(figure: Figure, path: Path) -> None:
    """Writes a picture as PNG; creates the folder if it is missing."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=110)
    except OSError as error:
        raise InputError(
            f"cannot draw into {path.parent}: {error.strerror}", "Name a folder that can be written"
        ) from error


def thinned(points: Iterable[tuple[int, int]], end_us: int) -> list[tuple[int, int]]:
    """Limits the points to what is visible: the first, lowest, highest and last of each pixel."""
    kept: list[tuple[int, int]] = []
    for _, pixel in groupby(points, key=lambda point: point[0] * _PIXELS // (end_us + 1)):
        here = list(pixel)
        heights = [height for _, height in here]
        chosen = {0, heights.index(min(heights)), heights.index(max(heights)), len(here) - 1}
        kept += [here[number] for number in sorted(chosen)]
    return kept


def unit_of(span_us: int) -> tuple[int, str]:
    """The best unit for a span of time, and its name."""
    for unit_us, name in ((DAY, "days"), (HOUR, "hours"), (MINUTE, "minutes")):
        if span_us >= 2 * unit_us:
            return unit_us, name
    return SECOND, "seconds"


def span_colors(spans: Sequence[Span]) -> dict[str, str]:
    """A colour for each name of a span."""
    names = dict.fromkeys(name for name, _, _ in spans)
    return {name: _SPANS[number % len(_SPANS)] for number, name in enumerate(names)}


def span_handles(colors: Mapping[str, str]) -> list[Patch]:
    """The legend entries of the spans."""
    return [Patch(color=color, alpha=_SHADE, label=name) for name, color in colors.items()]


def shade(axes: Axes, spans: Sequence[Span], colors: Mapping[str, str], unit_us: int) -> None:
    """Shades the spans."""
    for name, begin, end in spans:
        axes.axvspan(begin / unit_us, end / unit_us, color=colors[name], alpha=_SHADE, linewidth=0)
