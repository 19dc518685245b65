"""Schedules as files for agents, pilots and the customs office."""

from __future__ import annotations

import csv
import io
import json
from datetime import timedelta

from .berths import Stay
from .clock import PortClock

COLUMNS = ("imo", "ship", "berth", "cargo", "arrives", "leaves", "draught_m")


def to_csv(stays: list[Stay], clock: PortClock) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for stay in sorted(stays, key=lambda stay: (stay.arrives, stay.ship.imo)):
        offset = clock.offset_on(stay.arrives.date())
        writer.writerow([
            stay.ship.imo,
            stay.ship.name,
            stay.berth.name,
            stay.ship.cargo.value,
            f"{stay.arrives + offset:%Y-%m-%d %H:%M}",
            f"{stay.leaves + offset:%Y-%m-%d %H:%M}",
            f"{stay.ship.draught_m:.1f}",
        ])
    return out.getvalue()


def to_json(stays: list[Stay]) -> str:
    rows = [
        {
            "imo": stay.ship.imo,
            "berth": stay.berth.name,
            "arrives": stay.arrives.isoformat(),
            "leaves": stay.leaves.isoformat(),
        }
        for stay in stays
    ]
    return json.dumps(rows, indent=2)


def pilot_note(stay: Stay, clock: PortClock, lead: timedelta = timedelta(minutes=90)) -> str:
    boards = clock.to_local(stay.arrives - lead)
    return f"Pilot for {stay.ship.name} boards {boards:%d %b %H:%M} (port time), draught {stay.ship.draught_m:.1f} m"
