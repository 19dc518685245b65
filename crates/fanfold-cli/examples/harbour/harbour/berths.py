"""Berths and the ships that fit them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum


class Cargo(str, Enum):
    GRAIN = "grain"
    TIMBER = "timber"
    CONTAINERS = "containers"
    AGGREGATE = "aggregate"
    PROJECT = "project"


@dataclass(frozen=True)
class Berth:
    name: str
    length_m: float
    depth_m: float
    cargo: frozenset[Cargo]
    has_crane: bool = False
    behind_lock: bool = True

    def takes(self, ship: "Ship") -> bool:
        return ship.length_m + 10 <= self.length_m and ship.cargo in self.cargo


@dataclass(frozen=True)
class Ship:
    imo: str
    name: str
    length_m: float
    draught_m: float
    cargo: Cargo
    under_keel_m: float = 0.6

    @property
    def water_needed_m(self) -> float:
        return self.draught_m + self.under_keel_m


@dataclass(frozen=True)
class Stay:
    ship: Ship
    berth: Berth
    arrives: datetime
    leaves: datetime

    def overlaps(self, other: "Stay") -> bool:
        return self.berth == other.berth and self.arrives < other.leaves and other.arrives < self.leaves


BERTHS = (
    Berth("Kornkai 1", 145.0, 7.4, frozenset({Cargo.GRAIN}), has_crane=True),
    Berth("Kornkai 2", 120.0, 7.0, frozenset({Cargo.GRAIN, Cargo.AGGREGATE})),
    Berth("Holzhafen", 98.0, 6.2, frozenset({Cargo.TIMBER, Cargo.PROJECT}), has_crane=True),
    Berth("Nordmole", 182.0, 9.1, frozenset({Cargo.CONTAINERS, Cargo.PROJECT}), has_crane=True, behind_lock=False),
    Berth("Kieshafen", 110.0, 6.0, frozenset({Cargo.AGGREGATE})),
)


def berth_named(name: str) -> Berth:
    for berth in BERTHS:
        if berth.name.casefold() == name.casefold():
            return berth
    known = ", ".join(berth.name for berth in BERTHS)
    raise KeyError(f"no berth {name!r}; there are {known}")
