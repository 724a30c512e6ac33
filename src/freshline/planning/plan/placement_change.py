"""What another placement of the steps would change."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from typing import Any, Final

from freshline.base.duration import MILLISECOND
from freshline.planning.plan.step_placement import StepPlacement

# A smaller change of a sub-deadline is none: the solver rounds.
_CHANGE_LEAST_US: Final = MILLISECOND


@dataclass(frozen=True, slots=True)
class PlacementChange:
    """The differences of another placement from that of the next run."""

    moves: tuple[tuple[str, str, str], ...]  # a step, its node and its other node
    sub_deadlines: tuple[str, ...]  # the steps with other sub-deadlines
    proven: tuple[str, ...]  # the outputs that would hold, and do not
    unproven: tuple[str, ...]  # the outputs that hold, and would not

    @property
    def sentence(self) -> str:
        """The differences, without a full stop."""
        if not self.moves and not self.sub_deadlines:
            return "`freshline place --apply` would change nothing"
        would = [f"move {step} from {node} to {other}" for step, node, other in self.moves]
        if self.sub_deadlines:
            would.append(f"change the sub-deadlines of {', '.join(self.sub_deadlines)}")
        then = f", and prove {', '.join(self.proven)}" if self.proven else ""
        lost = f"; {', '.join(self.unproven)} would not be proven any more" if self.unproven else ""
        return f"`freshline place --apply` would {', '.join(would)}{then}{lost}"

    def record(self) -> dict[str, Any]:
        return {
            "moves": [{"step": step, "from": node, "to": other} for step, node, other in self.moves],
            "sub_deadlines": list(self.sub_deadlines),
            "proven": list(self.proven),
            "unproven": list(self.unproven),
        }


def placement_change(
    here: StepPlacement, hold: Set[str], there: StepPlacement, would_hold: Set[str]
) -> PlacementChange:
    """What the second placement would change, with the outputs that hold under each."""
    nodes = [(step, node, there.nodes[step]) for step, node in here.nodes.items()]
    return PlacementChange(
        tuple((step, node, other) for step, node, other in nodes if node != other),
        tuple(
            step
            for step, until_us in here.sub_deadlines_us.items()
            if abs(until_us - there.sub_deadlines_us[step]) >= _CHANGE_LEAST_US
        ),
        tuple(sorted(would_hold - hold)),
        tuple(sorted(hold - would_hold)),
    )
