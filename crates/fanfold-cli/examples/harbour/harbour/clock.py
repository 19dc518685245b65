"""Local time of a port, and how it is written down.

Every time inside harbour is an aware datetime in UTC. Local time exists at the
edges only: in requests of agents, on the printed schedule and in exported files.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

UTC = timezone.utc
MINUTE = timedelta(minutes=1)


@dataclass(frozen=True)
class PortClock:
    """The clock on the wall of one port."""

    zone_name: str

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.zone_name)

    def offset_on(self, day: date) -> timedelta:
        """How far the port's clock is ahead of UTC on a day."""
        midnight = datetime.combine(day, time(0, 0), tzinfo=self.zone)
        return midnight.utcoffset() or timedelta(0)

    def to_utc(self, local: datetime) -> datetime:
        """A wall-clock reading as UTC."""
        if local.tzinfo is not None:
            return local.astimezone(UTC)
        return (local - self.offset_on(local.date())).replace(tzinfo=UTC)

    def to_local(self, moment: datetime) -> datetime:
        """What the clock on the wall shows at a moment."""
        if moment.tzinfo is None:
            raise ValueError(f"{moment.isoformat()} has no time zone")
        naive = moment.astimezone(UTC).replace(tzinfo=None)
        return naive + self.offset_on(naive.date())

    def day_of(self, moment: datetime) -> date:
        return self.to_local(moment).date()


def parse_local(text: str) -> datetime:
    """Reads `2026-03-29 04:10` or `2026-03-29T04:10`."""
    for pattern in ("%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M:%S"):
        try:
            return datetime.strptime(text.strip(), pattern)
        except ValueError:
            continue
    raise ValueError(f"not a time: {text!r}, expected YYYY-MM-DD HH:MM")


def round_to(moment: datetime, step: timedelta = 5 * MINUTE) -> datetime:
    """The nearest full step, halves upwards, as pilots book them."""
    day = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    n_steps = (moment - day + step / 2) // step
    return day + n_steps * step


def format_span(start: datetime, end: datetime) -> str:
    hours, minutes = divmod(int((end - start) / MINUTE), 60)
    return f"{hours}h{minutes:02d}"
