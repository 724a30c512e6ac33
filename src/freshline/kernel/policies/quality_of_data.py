"""How many updates are discarded to give requests more time (paper 003, section 4.4.2)."""

from __future__ import annotations


class QualityOfData:
    """mwde, the weighted error up to which updates are discarded, and μ, mwde for each µs gained by it.

    Several changes in one period build on each other. In print each starts from the measurement, which would
    gain the same time twice.

    >>> quality = QualityOfData(update_us=2_000_000)
    >>> quality.measured(0)
    >>> quality.change(-500_000), quality.mwde
    (-500000.0, 0.25)
    """

    def __init__(self, update_us: float) -> None:
        self.mwde = 0.0
        self._per_us = 1.0 / max(1.0, update_us)  # as if all time of the updates could be gained
        self._gained_us = 0.0  # gc

    def measured(self, gained_us: float) -> None:
        """A period is over, which has gained that much."""
        self._gained_us = gained_us
        if self.mwde > 0 and gained_us > 0:
            self._per_us = self.mwde / gained_us

    def change(self, more_us: float) -> float:
        """Gives updates more time, or less, within limits; returns the actual change (figure 6)."""
        mwde = min(1.0, max(0.0, self._per_us * (self._gained_us - more_us)))
        changed_us = (self.mwde - mwde) / self._per_us
        self.mwde = mwde
        self._gained_us -= changed_us
        return changed_us
