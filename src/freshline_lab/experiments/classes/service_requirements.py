"""The requirements of service classes, and whether the measurements meet them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from statistics import fmean
from typing import Any, Final

from freshline_lab.experiments.classes.service_measures import ADMITTED_LEAST, REFERENCES

Record = dict[str, Any]
# The requirement, the measurement, and whether it is met.
Requirement = tuple[str, str, bool]

_AS_PRINTED: Final = ("rds-edf", "rds-hef")
_LIMIT: Final = 1.35  # of the reference: the declared overshoot
_COMPARED: Final = (100, 240)  # loads
_SETTLED_S: Final = 600  # with the paper's gains, a shorter run has not settled in its second half


def requirements(record: Record, seconds: int) -> Iterator[Requirement]:
    """All requirements that these results can decide, for runs of that length."""
    loads = record["loads"]
    for algorithm in _AS_PRINTED if seconds >= _SETTLED_S else ():
        yield _steady(algorithm, [at for at in loads if at["load"] >= 100 and at["algorithm"] == algorithm])
    yield from _as_printed(loads)
    if record["esterr"]:
        for algorithm in _AS_PRINTED:
            found = [at for at in record["esterr"] if at["algorithm"] == algorithm]
            required, measured, met = _steady(algorithm, found)
            yield required.replace("from load 100 on", "whatever the estimation error"), measured, met
    yield from _of_quota(record)


def admitted(of_class: Record) -> bool:
    """Whether enough requests of the class are admitted for its error to be meaningful."""
    return bool(of_class["admitted_steady"] >= 100 * ADMITTED_LEAST)


def at_load(loads: list[Record], load: float, algorithm: str) -> Record | None:
    found = [at for at in loads if (at["load"], at["algorithm"]) == (load, algorithm)]
    return found[0] if found else None


def _steady(algorithm: str, found: list[Record]) -> Requirement:
    worst = max(
        abs(of_class["ate_steady"] / (100 * reference) - 1)
        for at in found
        for of_class, reference in zip(at["classes"], REFERENCES, strict=True)
        if admitted(of_class)
    )
    required = f"{algorithm}: steady errors within 10 % of the reference, from load 100 on"
    return required, f"{worst:.1%} off at worst", worst <= 0.1


def _as_printed(loads: list[Record]) -> Iterator[Requirement]:
    numbers = sorted({at["load"] for at in loads})
    edf = {load: at_load(loads, load, "rds-edf") for load in numbers}
    mwde = {load: at["mwde"] for load, at in edf.items() if at is not None}
    before, after = max(load for load in numbers if load < 100), min(load for load in numbers if load > 100)
    yield (
        "rds-edf: mwde begins at load 100",
        f"{mwde[before]:.1f} % at {before}, {mwde[100]:.1f} % at 100, {mwde[after]:.1f} % at {after}",
        mwde[before] < 1 < mwde[100] < mwde[after],
    )
    fourth = {load: at["classes"][3] for load, at in edf.items() if at is not None}
    if {120, 140, 180, 240} <= fourth.keys():
        shares = {load: fourth[load]["admitted_steady"] for load in (120, 140, 240)}
        yield (
            "rds-edf: class 4's admission falls from 140 on and is 0 at 240",
            ", ".join(f"{share:.1f} % at {load}" for load, share in shares.items()),
            shares[140] < shares[120] and shares[240] < 1,
        )
        errors = {load: fourth[load]["ate"] for load in (180, 240, numbers[-1])}
        yield (
            "rds-edf: class 4's error falls from 180 on and rises again above 240",
            ", ".join(f"{error:.1f} % at {load}" for load, error in errors.items()),
            errors[240] < errors[180] and errors[numbers[-1]] > errors[240],
        )
    spread = {
        name: fmean(each["sdte"] for at in loads if at["algorithm"] == name for each in at["classes"])
        for name in _AS_PRINTED
    }
    yield (
        "sdte of rds-hef below that of rds-edf on average",
        f"{spread['rds-hef']:.1f} and {spread['rds-edf']:.1f} %",
        spread["rds-hef"] < spread["rds-edf"],
    )
    everybody = at_load(loads, 200, "admit-all")
    if everybody is not None:
        over = [
            of_class["ate"] / (100 * reference)
            for of_class, reference in zip(everybody["classes"], REFERENCES, strict=True)
        ]
        yield (
            "admit-all: every class above its limit at 200",
            ", ".join(f"{each:.2f}" for each in over) + " of the reference",
            min(over) > _LIMIT,
        )


def _of_quota(record: Record) -> Iterator[Requirement]:
    own = [at for at in record["loads"] if at["algorithm"] == "rds-quota"]
    counted = [
        (of_class, 100 * reference)
        for at in own
        for of_class, reference in zip(at["classes"], REFERENCES, strict=True)
        if admitted(of_class)
    ]
    worst: list[tuple[str, Callable[[Record, float], float], float, str]] = [
        ("overshoot at most 20 %", lambda each, _: float(each["overshoot"]), 20, "%"),
        ("settling within 10 s", lambda each, _: float(each["settling"]), 10, "s"),
        (
            "steady errors at most the reference",
            lambda each, reference: 100 * each["ate_steady"] / reference,
            100,
            "% of it",
        ),
        ("at most 1 % unanswered", lambda each, _: float(each["unanswered"]), 1, "%"),
    ]
    for required, value, most, unit in worst:
        found = max(value(of_class, reference) for of_class, reference in counted)
        yield f"rds-quota: {required}", f"{found:.1f} {unit} at worst", found <= most
    yield from _against_feedback(record["loads"])
    for load, least in ((200, (99, 99, 75)), (300, (99, 88))):
        found_at = at_load(own, load, "rds-quota")
        if found_at is not None:
            shares = [each["admitted_steady"] for each in found_at["classes"]][: len(least)]
            yield (
                f"rds-quota: admitted at {load} at least {'/'.join(str(each) for each in least)} %",
                "/".join(f"{share:.1f}" for share in shares) + " %",
                all(share >= each for share, each in zip(shares, least, strict=True)),
            )
    for at in record["step"]:
        if at["algorithm"] == "rds-quota":
            found = max(each["overshoot"] or 0 for each in at["classes"])
            yield "rds-quota: overshoot in the step at most 35 %", f"{found:.1f} %", found <= 35


def _against_feedback(loads: list[Record]) -> Iterator[Requirement]:
    """Over the classes that both admit, at the compared loads."""
    first, last = _COMPARED
    both = [
        (ours, theirs)
        for load in sorted({at["load"] for at in loads if first <= at["load"] <= last})
        if (quota := at_load(loads, load, "rds-quota")) and (edf := at_load(loads, load, "rds-edf"))
        for ours, theirs in zip(quota["classes"], edf["classes"], strict=True)
    ]
    fair = [(ours, theirs) for ours, theirs in both if admitted(ours) and admitted(theirs)]
    spread = fmean(ours["sdte"] for ours, _ in fair) / fmean(theirs["sdte"] for _, theirs in fair)
    yield (
        "rds-quota: sdte at most 0.75 of rds-edf's, loads 100 to 240",
        f"{spread:.2f} of it",
        spread <= 0.75,
    )
    answered = sum(ours["answered_steady"] for ours, _ in both) / sum(
        theirs["answered_steady"] for _, theirs in both
    )
    required = "rds-quota: 1.1 times as many answered as with rds-edf, loads 100 to 240"
    yield required, f"{answered:.2f} times", answered >= 1.1
