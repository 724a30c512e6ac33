"""The facts about every policy. A new policy is a file with its order, and an entry here."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Literal

PolicyName = str  # one of POLICIES
Held = Literal["tables", "queries", "classes"]


@dataclass(frozen=True, slots=True)
class Policy:
    """How a policy orders the jobs of a pool, and what holds for it."""

    order: str  # `module:Class` of its order (see `freshline.kernel.core.order`)
    proven: bool = False  # a response bound is proven; otherwise there is no guarantee
    adaptive: bool = False  # late tables get shorter periods until they have caught up
    preemptive: bool = False  # a job may be interrupted for another one
    # How it divides the tracks of a pool: into clusters of similar periods that help each other, or into
    # clusters that act as separate pools.
    clusters: Literal["helping", "isolated"] | None = None
    options: frozenset[str] = frozenset()  # the keys of a pool that have an effect with it
    discards: bool = False  # may skip updates that change little, if the table has `discard`
    # What a pool with it may hold: tables or queries, or tables and classes.
    holds: frozenset[Held] = frozenset({"tables"})


# `blocking` has an effect if jobs may start before their release and a bound counts them.
_BLOCKING: Final = frozenset({"blocking"})
_RECOVERY: Final = frozenset({"provisioning", "recovery", *_BLOCKING})
_SHEDDING: Final = frozenset({"rescheduling", "threshold"})
_QUERIES: Final[frozenset[Held]] = frozenset({"queries"})
_CLASSES: Final[frozenset[Held]] = frozenset({"tables", "classes"})
_GAINS: Final = frozenset({"gains"})

POLICIES: dict[PolicyName, Policy] = {
    "fifo": Policy("freshline.kernel.policies.fifo:Fifo"),
    "rm": Policy(
        "freshline.kernel.policies.rm:RateMonotonic",
        options=frozenset({"preemptive"}),
        holds=frozenset({"tables", "queries"}),
    ),
    "edf": Policy("freshline.kernel.policies.edf:Edf", proven=True, options=_BLOCKING),
    "edf-strict": Policy("freshline.kernel.policies.edf:StrictEdf", proven=True),
    "clustered-edf": Policy(
        "freshline.kernel.policies.edf:Edf", proven=True, clusters="isolated", options=_BLOCKING
    ),
    "prp": Policy(
        "freshline.kernel.policies.prp:Proportional",
        clusters="helping",
        options=frozenset({"cluster_factor"}),
    ),
    "aus": Policy("freshline.kernel.recovery.aus:Aus", proven=True, adaptive=True, options=_RECOVERY),
    "aus-slack": Policy(
        "freshline.kernel.recovery.aus_slack:AusSlack", proven=True, adaptive=True, options=_RECOVERY
    ),
    "lrm": Policy(
        "freshline.kernel.policies.lrm:Lrm", proven=True, preemptive=True, options=_SHEDDING, holds=_QUERIES
    ),
    "lrm-paper": Policy(
        "freshline.kernel.policies.lrm_paper:LrmPaper", preemptive=True, options=_SHEDDING, holds=_QUERIES
    ),
    "rds-edf": Policy(
        "freshline.kernel.policies.rds:RdsEdf", proven=True, discards=True, options=_GAINS, holds=_CLASSES
    ),
    "rds-hef": Policy(
        "freshline.kernel.policies.rds:RdsHef", proven=True, discards=True, options=_GAINS, holds=_CLASSES
    ),
    "rds-quota": Policy(
        "freshline.kernel.policies.rds_quota:RdsQuota", proven=True, discards=True, holds=_CLASSES
    ),
    "admit-all": Policy("freshline.kernel.policies.admit_all:AdmitAll", proven=True, holds=_CLASSES),
}


def with_option(option: str) -> list[PolicyName]:
    """The policies with which a key of a pool has an effect."""
    return [name for name, policy in POLICIES.items() if option in policy.options]


def policies_for(held: Held) -> list[PolicyName]:
    """The policies of pools that may hold tables, queries or classes."""
    return [name for name, policy in POLICIES.items() if held in policy.holds]


def adaptive_policies() -> list[PolicyName]:
    return [name for name, policy in POLICIES.items() if policy.adaptive]


def discarding_policies() -> list[PolicyName]:
    return [name for name, policy in POLICIES.items() if policy.discards]


def as_written(names: Iterable[PolicyName]) -> str:
    """Policies as help texts write them: `policy: a` or `b`."""
    return f"`policy: {'` or `'.join(names)}`"
