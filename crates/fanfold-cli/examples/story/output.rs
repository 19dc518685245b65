//! The output of programs.

use std::fmt::Write as _;

/// A test that may fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Test {
    Water,
    Lock,
    Refusal,
    January,
    BeforeSpring,
    Spring,
    Summer,
    BeforeAutumn,
    Autumn,
    Sheet,
    Export,
}

impl Test {
    fn name(self) -> &'static str {
        match self {
            Test::Water => "test_books_at_the_next_water",
            Test::Lock => "test_lock_takes_one_at_a_time",
            Test::Refusal => "test_refuses_without_water",
            Test::January => "test_wall_clock_to_utc[2026-01-15 12:00-2026-01-15 11:00]",
            Test::BeforeSpring => "test_wall_clock_to_utc[2026-03-29 01:30-2026-03-29 00:30]",
            Test::Spring => "test_wall_clock_to_utc[2026-03-29 04:10-2026-03-29 02:10]",
            Test::Summer => "test_wall_clock_to_utc[2026-07-01 12:00-2026-07-01 10:00]",
            Test::BeforeAutumn => "test_wall_clock_to_utc[2026-10-25 01:30-2026-10-24 23:30]",
            Test::Autumn => "test_wall_clock_to_utc[2026-10-25 04:10-2026-10-25 03:10]",
            Test::Sheet => "test_day_sheet_is_in_port_time",
            Test::Export => "test_books_a_berth_by_name",
        }
    }

    fn complaint(self) -> &'static str {
        match self {
            Test::Spring => {
                "assert datetime.datetime(2026, 3, 29, 3, 10, tzinfo=datetime.timezone.utc) == datetime.datetime(2026, 3, 29, 2, 10, tzinfo=datetime.timezone.utc)"
            }
            Test::Autumn => {
                "assert datetime.datetime(2026, 10, 25, 2, 10, tzinfo=datetime.timezone.utc) == datetime.datetime(2026, 10, 25, 3, 10, tzinfo=datetime.timezone.utc)"
            }
            _ => "assert (['05:10  in   Oste                   Holzhafen'] and False)",
        }
    }
}

/// Every test, and whether it passes.
pub(super) fn tests(failing: &[Test]) -> Vec<(Test, bool)> {
    use Test::{
        Autumn, BeforeAutumn, BeforeSpring, Export, January, Lock, Refusal, Sheet, Spring, Summer, Water,
    };
    let all =
        [Water, Lock, Refusal, January, BeforeSpring, Spring, Summer, BeforeAutumn, Autumn, Sheet, Export];
    all.into_iter().map(|test| (test, !failing.contains(&test))).collect()
}

/// The output of pytest.
pub(super) fn pytest(tests: &[(Test, bool)]) -> String {
    let mut out = String::from(
        "============================= test session starts ==============================\n\
         platform linux -- Python 3.12.4, pytest-8.3.2, pluggy-1.5.0\nrootdir: /code/harbour\n\
         configfile: pyproject.toml\nplugins: cov-5.0.0, xdist-3.6.1\ncollected 11 items\n\n",
    );
    for (i, (test, passes)) in tests.iter().enumerate() {
        let verdict = if *passes { "PASSED" } else { "FAILED" };
        let _ = writeln!(
            out,
            "tests/test_schedule.py::{} {verdict} [{:>3}%]",
            test.name(),
            (i + 1) * 100 / tests.len()
        );
    }
    let failed: Vec<Test> = tests.iter().filter(|(_, passes)| !passes).map(|(test, _)| *test).collect();
    if !failed.is_empty() {
        out.push_str("\n=================================== FAILURES ===================================\n");
    }
    for test in &failed {
        let _ = writeln!(out, "_____ {} _____\n", test.name());
        let _ = writeln!(out, "    def {}(local, utc):", test.name().split('[').next().unwrap_or_default());
        let _ = writeln!(
            out,
            ">       assert CLOCK.to_utc(parse_local(local)) == parse_local(utc).replace(tzinfo=UTC)"
        );
        let _ = writeln!(out, "E       {}", test.complaint());
        let _ = writeln!(out, "\ntests/test_schedule.py:53: AssertionError");
    }
    if failed.is_empty() {
        out.push_str("\n============================== 11 passed in 0.41s ==============================\n");
        return out;
    }
    out.push_str("=========================== short test summary info ============================\n");
    for test in &failed {
        let _ = writeln!(out, "FAILED tests/test_schedule.py::{} - {}", test.name(), test.complaint());
    }
    let n_passed = tests.len() - failed.len();
    let _ = writeln!(
        out,
        "========================= {} failed, {n_passed} passed in 0.47s =========================",
        failed.len()
    );
    out
}

/// The output of the script that replays a ticket: water and lock, minute by minute, then the sheet.
pub(super) fn ticket_log(booked: &str, n_lines: usize) -> String {
    let mut out =
        String::from("replaying HB-2207: Hamme (IMO9321483) asks for 2026-03-29 04:10, port Europe/Berlin\n");
    for i in 0..n_lines {
        let minute = i * 5;
        let height = 3.1 + 2.4 * (minute as f64 / 118.0 + 0.4).sin();
        let state = if height > 1.5 { "open" } else { "shut" };
        let _ = writeln!(
            out,
            "2026-03-29T{:02}:{:02}:00Z gauge=sill height={height:.2} lock={state} queue={} seq={}",
            minute / 60 % 24,
            minute % 60,
            i * 7 % 3,
            40_117 + i * 13
        );
    }
    let _ = writeln!(
        out,
        "WARN  booked {booked} port time, wanted 04:10: difference {}",
        if booked == "04:10" { "0h00" } else { "1h00" }
    );
    let _ = writeln!(out, "{booked}  in   Hamme                  Kornkai 1");
    out
}

/// The output of the script about offsets.
pub(super) fn offsets(day: &str, before: &str, after: &str) -> String {
    let mut out = format!("Europe/Berlin on {day}\n");
    for quarter in 0..16 {
        let is_late = quarter >= 8;
        let offset = if is_late { after } else { before };
        let _ = writeln!(out, "  {:02}:{:02} local  {offset}  fold=0", quarter / 4, quarter % 4 * 15);
    }
    let _ = writeln!(out, "  offset_on({day}) = {before}");
    out
}

/// An exported day.
pub(super) fn csv(n_rows: usize) -> String {
    let names = ["Hamme", "Oste", "Wümme", "Geeste", "Lune", "Aller", "Eider", "Krückau"];
    let berths = [
        ("Kornkai 1", "grain"),
        ("Holzhafen", "timber"),
        ("Nordmole", "containers"),
        ("Kieshafen", "aggregate"),
    ];
    let mut out = String::from("imo,ship,berth,cargo,arrives,leaves,draught_m\n");
    for i in 0..n_rows {
        let (berth, cargo) = berths[i * 5 % 4];
        let _ = writeln!(
            out,
            "IMO9{:06},{} {},{berth},{cargo},2026-10-24 {:02}:{:02},2026-10-25 {:02}:{:02},{}.{}",
            104_729 + i * 7_919,
            names[i % 8],
            i / 8 + 1,
            i * 11 % 24,
            i * 5 % 60,
            i * 17 % 24,
            i * 35 % 60,
            4 + i % 3,
            i * 3 % 10
        );
    }
    out
}

/// The output of tox.
pub(super) fn tox(version: &str) -> String {
    let mut out = format!("create: /code/harbour/.tox with CPython {version}\n");
    let packages = [
        ("tzdata", 337),
        ("pytest", 342),
        ("pluggy", 20),
        ("iniconfig", 6),
        ("packaging", 53),
        ("harbour", 14),
    ];
    for (i, (name, size)) in packages.iter().enumerate() {
        let _ = writeln!(
            out,
            "Collecting {name}\n  Using cached {name}-{}.{}-py3-none-any.whl ({size} kB)",
            i + 1,
            i * 2
        );
    }
    out.push_str("Successfully installed harbour iniconfig packaging pluggy pytest tzdata\n");
    let _ = writeln!(
        out,
        "commands: pytest -q\n............                                     [100%]\n12 passed in 0.5{}s",
        version.len()
    );
    let _ = writeln!(out, "  congratulations :)");
    out
}

pub(super) const LOG: &str = "\
c41e9d0 tides: signed off by the gauge office
7be2051 berths: Kieshafen is dredged to 6.0 m
11fa8c3 export: customs wants the draught with one decimal
e0977ab schedule: the lock takes one ship at a time
5d0be44 clock: keep the port's zone in one place
3aa6712 schedule: refuse with a reason
90c1e7f tides: correct by the last gauge reading
2b7741d berths: cargo is an enum
f55c0a8 export: JSON for the pilots' app
8e21b93 schedule: day sheet
04d6cc1 tides: six constituents are enough
a7b01fe first light
";

pub(super) const PACKAGES: &str = "\
Package       Version
------------- -------
coverage      7.6.1
execnet       2.1.1
harbour       0.9.3
iniconfig     2.0.0
mypy          1.11.1
packaging     24.1
pluggy        1.5.0
pytest        8.3.2
pytest-cov    5.0.0
pytest-xdist  3.6.1
ruff          0.6.2
tzdata        2026.1
";

pub(super) const HISTORY: &str = "\
commit 5d0be44
Author: Enno Harms <enno@harbour.example>
Date:   Tue Jan 13 09:12:44 2026 +0100

    clock: keep the port's zone in one place

diff --git a/harbour/clock.py b/harbour/clock.py
@@ -24,9 +24,14 @@ class PortClock:
-    def to_utc(self, local):
-        return self.zone.localize(local).astimezone(UTC)
+    def offset_on(self, day: date) -> timedelta:
+        midnight = datetime.combine(day, time(0, 0), tzinfo=self.zone)
+        return midnight.utcoffset() or timedelta(0)
+
+    def to_utc(self, local: datetime) -> datetime:
+        return (local - self.offset_on(local.date())).replace(tzinfo=UTC)
";

pub(super) const NO_ATTRIBUTE: &str = "\
FFFFFFFFFFF                                                              [100%]
E       AttributeError: 'PortClock' object has no attribute 'offset_at'. Did you mean: 'offset_on'?
harbour/clock.py:37: AttributeError
11 failed in 0.38s
";

pub(super) const EXPORT_TEST: &str = "\
from datetime import datetime

from harbour.berths import BERTHS, Cargo, Ship, Stay
from harbour.clock import UTC, PortClock
from harbour.export import to_csv

GEESTE = Ship(\"IMO9226920\", \"Geeste\", 82.0, 4.4, Cargo.TIMBER)


def test_leaves_in_winter_time():
    stay = Stay(GEESTE, BERTHS[2], datetime(2026, 10, 24, 20, 0, tzinfo=UTC), datetime(2026, 10, 25, 3, 10, tzinfo=UTC))
    row = to_csv([stay], PortClock(\"Europe/Berlin\")).splitlines()[1].split(\",\")
    assert row[4:6] == [\"2026-10-24 22:00\", \"2026-10-25 04:10\"]
";

pub(super) const EXPORT_FAILS: &str = "\
F                                                                        [100%]
E       AssertionError: assert ['2026-10-24 22:00', '2026-10-25 05:10'] == ['2026-10-24 22:00', '2026-10-25 04:10']
E         At index 1 diff: '2026-10-25 05:10' != '2026-10-25 04:10'
tests/test_export.py:13: AssertionError
1 failed in 0.09s
";

pub(super) const EXPORT_PASSES: &str = "\
.                                                                        [100%]
1 passed in 0.08s
";

pub(super) const UNUSED_IMPORT: &str = "\
harbour/clock.py:10:28: F401 [*] `datetime.time` imported but unused
Found 1 error.
[*] 1 fixable with the `--fix` option.
";

pub(super) const CHANGELOG: &str = "\
# Changelog

## Unreleased

## 0.9.3 - 2026-03-02
- The draught is exported with one decimal.

## 0.9.2 - 2026-02-11
- The lock takes one ship at a time.
- Requests are refused with a reason.
";

pub(super) const CHANGED: &str = "\
# Changelog

## Unreleased
- HB-2207: times on the days when the clocks change are no longer an hour off, neither on the
  day sheet nor in the CSV.

## 0.9.3 - 2026-03-02
- The draught is exported with one decimal.

## 0.9.2 - 2026-02-11
";

pub(super) const STATUS: &str = "\
 M CHANGELOG.md
 M harbour/clock.py
 M harbour/export.py
?? tests/test_export.py
";
