from datetime import date, datetime, timedelta

import pytest

from harbour.berths import Cargo, Ship
from harbour.clock import UTC, PortClock, parse_local
from harbour.schedule import LOCKING, Refused, Request, Schedule
from harbour.tides import TideTable

CLOCK = PortClock("Europe/Berlin")
HAMME = Ship("IMO9321483", "Hamme", 104.0, 5.8, Cargo.GRAIN)
OSTE = Ship("IMO9186637", "Oste", 88.0, 4.9, Cargo.TIMBER)
WUEMME = Ship("IMO9404857", "Wümme", 138.0, 7.2, Cargo.GRAIN)


@pytest.fixture
def schedule():
    return Schedule(CLOCK, TideTable(mean_level_m=3.1))


def test_books_at_the_next_water(schedule):
    stay = schedule.book(Request(HAMME, parse_local("2026-02-10 08:00"), timedelta(hours=20)))
    assert stay.berth.name == "Kornkai 1"
    assert stay.arrives >= datetime(2026, 2, 10, 7, 0, tzinfo=UTC)


def test_lock_takes_one_at_a_time(schedule):
    first = schedule.book(Request(HAMME, parse_local("2026-02-10 08:00"), timedelta(hours=20)))
    second = schedule.book(Request(OSTE, parse_local("2026-02-10 08:00"), timedelta(hours=12)))
    assert abs(second.arrives - first.arrives) >= LOCKING


def test_refuses_without_water(schedule):
    with pytest.raises(Refused, match="no water for 7.2 m"):
        schedule.book(Request(WUEMME, parse_local("2026-02-12 14:00"), timedelta(hours=6), max_wait=timedelta(0)))


@pytest.mark.parametrize(
    ("local", "utc"),
    [
        ("2026-01-15 12:00", "2026-01-15 11:00"),
        ("2026-03-29 01:30", "2026-03-29 00:30"),
        ("2026-03-29 04:10", "2026-03-29 02:10"),
        ("2026-07-01 12:00", "2026-07-01 10:00"),
        ("2026-10-25 01:30", "2026-10-24 23:30"),
        ("2026-10-25 04:10", "2026-10-25 03:10"),
    ],
)
def test_wall_clock_to_utc(local, utc):
    assert CLOCK.to_utc(parse_local(local)) == parse_local(utc).replace(tzinfo=UTC)


def test_day_sheet_is_in_port_time(schedule):
    schedule.book(Request(OSTE, parse_local("2026-03-29 04:10"), timedelta(hours=9)))
    sheet = schedule.day_sheet(date(2026, 3, 29))
    assert sheet and sheet[0].startswith("04:10")
