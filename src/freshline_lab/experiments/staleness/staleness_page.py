"""The page and the figure of `freshline experiment staleness-bounds`."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from freshline import __version__
from freshline.base.errors import InputError

BASELINE = "a track for each table"
_STYLES = {
    "RM": ("#7f7f7f", "v"),
    "PRP, factor 10": ("#ff7f0e", "s"),
    "PRP, factor 1": ("#bcbd22", "D"),
    "NP-GEDF": ("#1f77b4", "o"),
    "C-NP-GEDF": ("#d62728", "^"),
}

Outcome = dict[str, Any]


class FillSetting:
    """The outcomes of one fill and one choice of phases."""

    def __init__(self, fill: float, phases: str, outcomes: list[Outcome]) -> None:
        self.fill = fill
        self.phases = phases
        self._by_key = {
            (outcome["policy"], outcome["tracks"]): outcome
            for outcome in outcomes
            if outcome["fill"] == fill and outcome["phases"] == phases
        }
        self.tracks = sorted({tracks for _, tracks in self._by_key})

    @property
    def title(self) -> str:
        return f"u = {self.fill:g}, {'phase 0' if self.phases == 'zero' else 'uniform phases'}"

    def outcome(self, policy: str, tracks: int) -> Outcome:
        return self._by_key[policy, tracks]

    def ratio(self, policy: str, tracks: int) -> float:
        """MWS(m)/MWS(|τ|): figure 5(a)."""
        return float(
            self.outcome(policy, tracks)["observed_mws"] / self.outcome(BASELINE, tracks)["observed_mws"]
        )

    def pessimism(self, policy: str, tracks: int, bound: str = "paper_bound_mws") -> float | None:
        """(bound − observed)/observed: figure 5(b)."""
        outcome = self.outcome(policy, tracks)
        if outcome[bound] is None:
            return None
        return float((outcome[bound] - outcome["observed_mws"]) / outcome["observed_mws"])


def write_page(record: dict[str, Any], out: Path) -> Path:
    """Writes results.json, figure.png and page.md; returns the page's path."""
    settings = list(_settings(record["outcomes"]))
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / "results.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        _figure(settings).savefig(out / "figure.png", dpi=90)
        page = out / "page.md"
        page.write_text(_page(record, settings), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write into {out}: {error.strerror}", "Name a folder that can be written"
        ) from error
    return page


def _settings(outcomes: list[Outcome]) -> Iterator[FillSetting]:
    seen: dict[tuple[float, str], None] = {(o["fill"], o["phases"]): None for o in outcomes}
    for fill, phases in seen:
        yield FillSetting(fill, phases, outcomes)


def _figure(settings: list[FillSetting]) -> Figure:
    figure = Figure(figsize=(4.2 * len(settings), 7), layout="constrained")
    grid = figure.subplots(2, len(settings), sharex=True, squeeze=False)
    for column, setting in enumerate(settings):
        above, below = grid[0][column], grid[1][column]
        for policy, (color, marker) in _STYLES.items():
            line = {"color": color, "marker": marker, "label": policy, "markersize": 5}
            above.plot(setting.tracks, [setting.ratio(policy, m) for m in setting.tracks], **line)
            pessimism = [setting.pessimism(policy, m) for m in setting.tracks]
            if None not in pessimism:
                below.plot(setting.tracks, pessimism, **line)
                ours = [setting.pessimism(policy, m, "bound_mws") for m in setting.tracks]
                line["label"] = f"{policy}, per-task bound"
                below.plot(setting.tracks, ours, linestyle=":", **line)
        above.set_title(setting.title)
        below.set_xlabel("tracks m")
        below.set_xticks(setting.tracks)
        below.set_ylim(bottom=0)
        for axes in (above, below):
            axes.grid(alpha=0.3)
    grid[0][0].set_ylabel("MWS(m) / MWS(|τ|)")
    grid[1][0].set_ylabel("(bound − observed) / observed")
    grid[0][0].legend(fontsize=8)
    grid[1][0].legend(fontsize=8)
    figure.suptitle("Paper 004, figure 5, measured: (a) observed staleness, (b) pessimism of the bounds")
    return figure


def _page(record: dict[str, Any], settings: list[FillSetting]) -> str:
    events = [outcome["events"] for outcome in record["outcomes"]]
    lines = [
        "# Staleness and its bounds: paper 004, section 5",
        "",
        f"Freshline {__version__}, seed {record['seed']}. Made by `freshline experiment staleness-bounds`.",
        f"At least {record['events']:,} scheduling events (releases and completions)",
        f"a simulation: {min(events):,} to {max(events):,}, as results.json says of each.",
        "",
        "The paper does not say which utilisation fills the task set (0.11 on average, 0.132 at worst), nor",
        "the phases of its tasks. Both matter, so all four readings were run. PRP's clusters are",
        "under-determined in print: periods within a factor of 10, or 1 (a cluster for each period).",
        "",
        "Pessimism is (bound − observed)/observed. It is given for the paper's bound and, after the slash,",
        "for the smaller bound for each task that `freshline plan` uses (docs/np-gedf-per-task.md).",
        "",
        "![figure](figure.png)",
        "",
    ]
    for setting in settings:
        lines += [f"## {setting.title}", "", *_table(setting), ""]
    lines += ["## Paper and measurement side by side", "", *_claims(settings), ""]
    return "\n".join(lines)


def _table(setting: FillSetting) -> list[str]:
    policies = list(_STYLES)
    rows = [
        "| m | tables | " + " | ".join(policies) + " | clusters | pessimism NP-GEDF | pessimism C-NP-GEDF |",
        "|" + "---:|" * (len(policies) + 5),
    ]
    for m in setting.tracks:
        ratios = " | ".join(f"{setting.ratio(policy, m):.2f}" for policy in policies)
        clustered = setting.outcome("C-NP-GEDF", m)
        rows.append(
            f"| {m} | {clustered['tables']} | {ratios} | {clustered['clusters']} "
            f"| {_both(setting, 'NP-GEDF', m)} | {_both(setting, 'C-NP-GEDF', m)} |"
        )
    return [*rows, "", "Columns of policies: MWS(m)/MWS(|τ|), observed."]


def _both(setting: FillSetting, policy: str, tracks: int) -> str:
    paper, ours = setting.pessimism(policy, tracks), setting.pessimism(policy, tracks, "bound_mws")
    return f"{paper:.2f} / {ours:.2f}"


def _claims(settings: list[FillSetting]) -> list[str]:
    rows = ["| the paper says | " + " | ".join(setting.title for setting in settings) + " |"]
    rows.append("|---|" + "---|" * len(settings))
    claims = {
        "C-NP-GEDF is better than PRP for all m except 8": _better_than_prp,
        "at m = 8 only one cluster satisfies (10)": _single_clusters,
        "at m = 8 NP-GEDF and C-NP-GEDF are nearly identical": _identical_at_8,
        "at m = 8 NP-GEDF and C-NP-GEDF are worse than PRP": _worse_at_8,
        "the bound is about twice the observed (pessimism about 1)": _pessimism_range,
        "on large platforms C-NP-GEDF has the better bound": _better_bound,
    }
    for claim, measure in claims.items():
        rows.append(f"| {claim} | " + " | ".join(measure(setting) for setting in settings) + " |")
    return rows


def _better_than_prp(setting: FillSetting) -> str:
    better = [
        m
        for m in setting.tracks
        if setting.ratio("C-NP-GEDF", m)
        < min(setting.ratio("PRP, factor 10", m), setting.ratio("PRP, factor 1", m))
    ]
    return f"better at m = {_listed(better)}"


def _single_clusters(setting: FillSetting) -> str:
    single = [m for m in setting.tracks if setting.outcome("C-NP-GEDF", m)["clusters"] == 1]
    return f"one cluster at m = {_listed(single)}"


def _identical_at_8(setting: FillSetting) -> str:
    return f"{setting.ratio('NP-GEDF', 8):.3f} and {setting.ratio('C-NP-GEDF', 8):.3f}"


def _worse_at_8(setting: FillSetting) -> str:
    prp = f"{setting.ratio('PRP, factor 10', 8):.2f} (10), {setting.ratio('PRP, factor 1', 8):.2f} (1)"
    return f"{setting.ratio('NP-GEDF', 8):.2f} against PRP's {prp}"


def _pessimism_range(setting: FillSetting) -> str:
    values = [
        value
        for m in setting.tracks
        for policy in ("NP-GEDF", "C-NP-GEDF")
        if (value := setting.pessimism(policy, m)) is not None
    ]
    return f"{min(values):.2f} to {max(values):.2f}"


def _better_bound(setting: FillSetting) -> str:
    m = setting.tracks[-1]
    clustered, global_ = (
        setting.outcome(policy, m)["paper_bound_mws"] for policy in ("C-NP-GEDF", "NP-GEDF")
    )
    return f"at m = {m}: {clustered:.0f} against {global_:.0f}"


def _listed(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers)) or "none"
