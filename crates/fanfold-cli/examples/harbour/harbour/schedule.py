"""Who comes in when: requests against water, lock and berth."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from .berths import BERTHS, Berth, Ship, Stay
from .clock import MINUTE, PortClock, format_span, round_to
from .tides import TideTable

SILL_DEPTH_M = 4.9
LOCKING = timedelta(minutes=35)
HORIZON = timedelta(hours=30)


class Refused(Exception):
    """A request that can't be met, with a reason for the agent."""

    def __init__(self, ship: Ship, reason: str):
        super().__init__(f"{ship.name} ({ship.imo}): {reason}")
        self.ship, self.reason = ship, reason


@dataclass(frozen=True)
class Request:
    ship: Ship
    wanted_local: datetime
    stay: timedelta
    berth: str | None = None
    max_wait: timedelta = timedelta(hours=13)


@dataclass
class Schedule:
    clock: PortClock
    tides: TideTable
    stays: list[Stay] = field(default_factory=list)
    log: list[str] = field(default_factory=list)

    def book(self, request: Request) -> Stay:
        wanted = round_to(self.clock.to_utc(request.wanted_local))
        arrives = self._first_passage(request.ship, wanted, request.max_wait)
        berth = self._free_berth(request, arrives, arrives + request.stay)
        leaves = self._last_passage(request.ship, arrives + request.stay)
        stay = Stay(request.ship, berth, arrives, leaves)
        self.stays.append(stay)
        waited = format_span(wanted, arrives)
        self.log.append(f"booked {request.ship.name} at {berth.name}, waits {waited}")
        return stay

    def _first_passage(self, ship: Ship, wanted: datetime, max_wait: timedelta) -> datetime:
        needed = ship.water_needed_m - SILL_DEPTH_M
        for opens, closes in self.tides.windows_above(needed, wanted, wanted + HORIZON):
            passage = max(opens, wanted)
            if closes - passage < LOCKING:
                continue
            if passage - wanted > max_wait:
                break
            if self._lock_is_free(passage):
                return passage
        raise Refused(ship, f"no water for {ship.draught_m:.1f} m within {format_span(wanted, wanted + max_wait)}")

    def _last_passage(self, ship: Ship, wanted: datetime) -> datetime:
        needed = ship.water_needed_m - SILL_DEPTH_M
        for opens, closes in self.tides.windows_above(needed, wanted, wanted + HORIZON):
            passage = max(opens, wanted)
            if closes - passage >= LOCKING and self._lock_is_free(passage):
                return passage
        raise Refused(ship, "can't leave within the horizon")

    def _lock_is_free(self, moment: datetime) -> bool:
        passages = [stay.arrives for stay in self.stays] + [stay.leaves for stay in self.stays]
        return all(abs(moment - passage) >= LOCKING for passage in passages)

    def _free_berth(self, request: Request, arrives: datetime, leaves: datetime) -> Berth:
        wanted = request.berth
        for berth in BERTHS:
            if wanted is not None and berth.name != wanted:
                continue
            if not berth.takes(request.ship):
                continue
            trial = Stay(request.ship, berth, arrives, leaves + MINUTE)
            if not any(trial.overlaps(stay) for stay in self.stays):
                return berth
        raise Refused(request.ship, f"no free berth for {request.ship.length_m:.0f} m of {request.ship.cargo.value}")

    def day_sheet(self, day) -> list[str]:
        lines = []
        for stay in sorted(self.stays, key=lambda stay: stay.arrives):
            if self.clock.day_of(stay.arrives) == day:
                local = self.clock.to_local(stay.arrives)
                lines.append(f"{local:%H:%M}  in   {stay.ship.name:<22} {stay.berth.name}")
            if self.clock.day_of(stay.leaves) == day:
                local = self.clock.to_local(stay.leaves)
                lines.append(f"{local:%H:%M}  out  {stay.ship.name:<22} {stay.berth.name}")
        return sorted(lines)
