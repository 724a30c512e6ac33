"""The page and the figures of `freshline experiment service-classes`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from freshline import __version__
from freshline.base.errors import InputError
from freshline.pictures.figures import save
from freshline_lab.experiments.classes.class_pictures import Panel, classes_figure
from freshline_lab.experiments.classes.service_measures import REFERENCES
from freshline_lab.experiments.classes.service_requirements import Requirement, at_load, requirements
from freshline_lab.experiments.classes.service_runs import PERIOD_S

Record = dict[str, Any]

_LIMIT: Final = 1.35  # of the reference: the declared overshoot
_BY_LOAD: Final = {
    "ate_steady": "error, steady",
    "admitted_steady": "admitted, steady",
    "unanswered": "unanswered",
    "sdte": "sdte",
}


def write_page(
    record: Record, into: Path, seed: int, runs: int, seconds: int, quick: bool
) -> tuple[Path, list[str]]:
    """Writes results.json, the figures and page.md; returns the page, and the unmet requirements."""
    required = list(requirements(record, seconds))
    try:
        into.mkdir(parents=True, exist_ok=True)
        (into / "results.json").write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
        page = into / "page.md"
        command = "freshline experiment service-classes" + (" --quick" if quick else "")
        made = f"seed {seed}, {runs} runs of {seconds} s each. Made by `{command}`"
        page.write_text(page_of(record, required, made), encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write into {into}: {error.strerror}", "Name a folder that can be written"
        ) from error
    _save_figures(record, into)
    return page, [f"{each}: {measured}" for each, measured, met in required if not met]


def page_of(record: Record, required: list[Requirement], made: str) -> str:
    """The page, made from the results only."""
    lines = [
        "# Service classes: paper 003, figures 7 to 9",
        "",
        f"Freshline {__version__}, {made}.",
        "",
        "Four classes, the first the most important, may have errors of 30, 20, 40 and 50 % on average",
        "(`error`), with an overshoot of 35 % at most. Their requests have one mandatory part and 1 to 10",
        "optional ones; an answer's error is the share of the optional parts that are missing at its",
        "deadline, and 100 % if the mandatory one is. 1,000 objects are updated meanwhile (0.37 of the",
        "track); updates go first. A load of 100 % fills the track with requests alone. `rds-edf` and `rds-",
        "hef` are the paper's, `rds-quota` is ours, `admit-all` rejects and discards nothing. Kernel and",
        "policies are those of `freshline run`.",
        "",
        "Where the print is silent: the sampling period is 5 s; data errors are fractions; all servers",
        "begin with a fourth of what updates leave, and gains are for equal shares of a load of 100 %.",
        "",
        "## Figure 7: varying load",
        "",
        "![by load](figure.png)",
        "",
    ]
    for algorithm in _algorithms(record):
        lines += [f"### {algorithm}", "", *_by_load(record, algorithm), ""]
    if record["esterr"]:
        lines += ["## Figure 8: estimation errors, at a load of 300 %", "", *_by_error(record), ""]
    lines += ["## Figure 9: the transient at a load of 200 %", "", *_transient(record), ""]
    if record["step"]:
        lines += ["## A step: 50, 300 and 50 %, at 200 and 400 s", "", *_step(record), ""]
    lines += ["## Paper and measurement side by side", "", *_claims(record), ""]
    lines += ["## Requirements", "", "| required | measured | met |", "|---|---|---|"]
    lines += [f"| {each} | {measured} | {'yes' if met else '**no**'} |" for each, measured, met in required]
    return "\n".join([*lines, ""])


def _algorithms(record: Record) -> list[str]:
    return list(dict.fromkeys(at["algorithm"] for at in record["loads"]))


def _by_load(record: Record, algorithm: str) -> list[str]:
    rows = [
        "By class: error over the run and steady; admitted, steady; unanswered; sdte (all in percent);",
        "overshoot (percent) and settling (s), where a tenth are admitted.",
        "",
        "| load | mwde | class 1 | class 2 | class 3 | class 4 |",
        "|---:|---:|---|---|---|---|",
    ]
    for at in record["loads"]:
        if at["algorithm"] == algorithm:
            cells = " | ".join(_cell(each) for each in at["classes"])
            rows.append(f"| {at['load']} | {at['mwde']:.1f} | {cells} |")
    return rows


def _cell(found: Record) -> str:
    course = "-" if found["overshoot"] is None else f"{found['overshoot']:.0f} %, {found['settling']} s"
    return (
        f"{found['ate']:.1f}, {found['ate_steady']:.1f}; {found['admitted_steady']:.1f}; "
        f"{found['unanswered']:.1f}; {found['sdte']:.1f}; {course}"
    )


def _by_error(record: Record) -> list[str]:
    rows = [
        "Steady error and, in brackets, what is admitted, in percent.",
        "",
        "| esterr | algorithm | mwde | class 1 | class 2 | class 3 | class 4 |",
        "|---:|---|---:|---|---|---|---|",
    ]
    for at in record["esterr"]:
        cells = " | ".join(
            f"{each['ate_steady']:.1f} ({each['admitted_steady']:.0f})" for each in at["classes"]
        )
        rows.append(f"| {at['esterr']:g} | {at['algorithm']} | {at['mwde']:.1f} | {cells} |")
    return rows


def _transient(record: Record) -> list[str]:
    rows = [
        "![transient](transient.png)",
        "",
        "The highest error of a period on average over the runs, above the reference, and when it ended.",
        "Paper: 2.18, 33.24 and 38.21 %, at 20, 15 and 10 s. It does not say with which capacities its",
        "servers begin; with equal ones its controllers do not do that. Capacity is c(k); where there are",
        "no servers, the time that a class's parts took.",
        "",
        "| algorithm | class 1 | class 2 | class 3 |",
        "|---|---|---|---|",
    ]
    for at in record["transient"]:
        cells = []
        for found, reference in zip(at["classes"][:3], REFERENCES, strict=False):
            highest = max(found["ate"])
            end = (found["ate"].index(highest) + 1) * PERIOD_S
            cells.append(f"{highest / reference - 100:.1f} % at {end} s")
        rows.append(f"| {at['algorithm']} | " + " | ".join(cells) + " |")
    return rows


def _step(record: Record) -> list[str]:
    rows = [
        "Overshoot, and how long after the first step the errors were back.",
        "",
        "| algorithm | class 1 | class 2 | class 3 | class 4 |",
        "|---|---|---|---|---|",
    ]
    for at in record["step"]:
        cells = [
            "-" if each["overshoot"] is None else f"{each['overshoot']:.1f} %, {each['settling']} s"
            for each in at["classes"]
        ]
        rows.append(f"| {at['algorithm']} | " + " | ".join(cells) + " |")
    return rows


def _claims(record: Record) -> list[str]:
    loads = sorted({at["load"] for at in record["loads"]})

    def course(algorithm: str, place: int, key: str) -> str:
        found = [(load, at_load(record["loads"], load, algorithm)) for load in loads]
        return ", ".join(f"{at['classes'][place][key]:.0f} at {load}" for load, at in found if at)

    def mwde() -> str:
        found = [(load, at_load(record["loads"], load, "rds-edf")) for load in loads]
        return ", ".join(f"{at['mwde']:.0f} at {load}" for load, at in found if at)

    claims = [
        (
            "errors of admitted classes reach their references",
            course("rds-edf", 0, "ate_steady") + " (class 1)",
        ),
        ("class 4's admission falls from 140 % on, then class 3's", course("rds-edf", 3, "admitted_steady")),
        ("class 4's error falls from 180 % on and rises above 240 %", course("rds-edf", 3, "ate")),
        ("mwde begins to rise at 100 %", mwde()),
        ("Admit-All violates the specification", course("admit-all", 0, "ate") + " (class 1)"),
        (
            "RDS-HEF has the lower sdte, by 6.73 % at most",
            f"rds-edf {course('rds-edf', 0, 'sdte')}; rds-hef {course('rds-hef', 0, 'sdte')} (class 1)",
        ),
        ("requests without any answer are not told of", course("rds-edf", 0, "unanswered") + " (class 1)"),
    ]
    rows = ["| the paper says | measured: percent at a load |", "|---|---|"]
    return [*rows, *(f"| {claim} | {measured} |" for claim, measured in claims)]


def _save_figures(record: Record, into: Path) -> None:
    algorithms = _algorithms(record)
    classes = range(len(REFERENCES))
    by_load = [
        [
            Panel(
                f"class {place + 1}: {title}",
                {
                    name: [
                        (at["load"], at["classes"][place][key])
                        for at in record["loads"]
                        if at["algorithm"] == name
                    ]
                    for name in algorithms
                },
                _levels(place) if key == "ate_steady" else (),
            )
            for place in classes
        ]
        for key, title in _BY_LOAD.items()
    ]
    save(classes_figure(by_load, "load (percent)", "Paper 003, figure 7, measured"), into / "figure.png")
    over_time = [
        [
            Panel(
                f"class {place + 1}: {title}",
                {
                    at["algorithm"]: [
                        ((period + 1) * PERIOD_S, value)
                        for period, value in enumerate(at["classes"][place][key])
                    ]
                    for at in record["transient"]
                },
                _levels(place) if key == "ate" else (),
            )
            for place in classes
        ]
        for key, title in (("ate", "error"), ("admitted", "admitted"), ("capacity", "capacity (s)"))
    ]
    title = "Paper 003, figure 9, measured: load 200 %"
    save(classes_figure(over_time, "time (seconds)", title), into / "transient.png")


def _levels(place: int) -> tuple[float, float]:
    reference = 100 * REFERENCES[place]
    return reference, _LIMIT * reference
