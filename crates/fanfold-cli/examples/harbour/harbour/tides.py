"""Water over the sill, from a handful of harmonic constituents.

The predictions are good to about a decimetre, which is what the gate keeper works
with; `TideTable.correct` shifts them by the last gauge reading.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Iterator

from .clock import MINUTE, UTC

EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Constituent:
    name: str
    amplitude_m: float
    phase_deg: float
    speed_deg_per_hour: float

    def height(self, hours: float) -> float:
        angle = math.radians(self.speed_deg_per_hour * hours - self.phase_deg)
        return self.amplitude_m * math.cos(angle)


M2 = Constituent("M2", 2.21, 118.0, 28.9841042)
S2 = Constituent("S2", 0.74, 161.0, 30.0000000)
N2 = Constituent("N2", 0.43, 96.0, 28.4397295)
K1 = Constituent("K1", 0.12, 212.0, 15.0410686)
O1 = Constituent("O1", 0.09, 355.0, 13.9430356)
M4 = Constituent("M4", 0.17, 70.0, 57.9682084)


@dataclass
class TideTable:
    """Predicted heights above chart datum at one gauge."""

    mean_level_m: float
    constituents: tuple[Constituent, ...] = (M2, S2, N2, K1, O1, M4)
    correction_m: float = 0.0
    _memo: dict[int, float] = field(default_factory=dict, repr=False)

    def height_at(self, moment: datetime) -> float:
        minutes = int((moment - EPOCH) / MINUTE)
        if minutes not in self._memo:
            hours = minutes / 60
            total = sum(c.height(hours) for c in self.constituents)
            self._memo[minutes] = self.mean_level_m + total
        return self._memo[minutes] + self.correction_m

    def correct(self, moment: datetime, gauge_m: float) -> None:
        self.correction_m = 0.0
        self.correction_m = gauge_m - self.height_at(moment)

    def walk(self, start: datetime, end: datetime, step: timedelta = 5 * MINUTE) -> Iterator[tuple[datetime, float]]:
        at = start
        while at <= end:
            yield at, self.height_at(at)
            at += step

    def windows_above(self, depth_m: float, start: datetime, end: datetime) -> list[tuple[datetime, datetime]]:
        """The spans in which there is at least this much water."""
        windows: list[tuple[datetime, datetime]] = []
        opened: datetime | None = None
        for at, height in self.walk(start, end):
            if height >= depth_m and opened is None:
                opened = at
            elif height < depth_m and opened is not None:
                windows.append((opened, at))
                opened = None
        if opened is not None:
            windows.append((opened, end))
        return windows

    def extremes(self, start: datetime, end: datetime) -> list[tuple[datetime, float, str]]:
        """High and low waters, by walking and looking at both neighbours."""
        points = list(self.walk(start, end))
        found = []
        for (_, before), (at, height), (_, after) in zip(points, points[1:], points[2:]):
            if before < height >= after:
                found.append((at, height, "HW"))
            elif before > height <= after:
                found.append((at, height, "LW"))
        return found
