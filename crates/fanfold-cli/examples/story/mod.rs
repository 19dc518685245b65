//! The script of the demo conversation, as calls of an agent.

mod agent; //  what an agent can do, and what comes back
mod output; // what programs print

use serde_json::{Value, json};

use agent::Agent;
use output::{Test, pytest};

const SYSTEM: &str = "You are a careful software engineer working in a checkout of the project `harbour`, which plans \
when ships pass a tidal lock. Look before you change anything, make the smallest change that is right, and run the \
tests after each change. Tools: bash, read, edit.";

const FIRST_WISH: &str = "Agents complain that on the Sunday the clocks go forward, ships that ask for an early \
morning slot are booked an hour off. Hamme asked for 04:10 on 29 March and the day sheet had her at 05:10. Please find \
out why and fix it. Don't touch the tide tables: the gauge people signed them off last week. Ticket is HB-2207.";

const SECOND_WISH: &str = "Good. The customs office says the CSV has the same hour off in the night of 25 October, \
and only in the column `leaves`. Fix that too, and add a test for it. Keep the column names as they are, their importer \
is picky.";

const THIRD_WISH: &str = "Thanks. Last thing: write it into CHANGELOG.md under Unreleased, and tell me which versions \
of Python you ran the tests with.";

/// The tool schemas.
pub(super) fn tools() -> Value {
    let tool = |name: &str, about: &str, fields: &[&str]| {
        let properties: serde_json::Map<String, Value> =
            fields.iter().map(|field| ((*field).to_owned(), json!({ "type": "string" }))).collect();
        json!({ "type": "function", "function": { "name": name, "description": about,
            "parameters": { "type": "object", "properties": properties } } })
    };
    json!([
        tool("bash", "Runs a command in the project's directory.", &["command"]),
        tool("read", "Reads a file, or lines of it.", &["path", "offset", "limit"]),
        tool("edit", "Replaces a text in a file.", &["path", "old", "new"]),
    ])
}

/// All messages, from the first to the last.
pub(super) fn messages() -> Vec<Value> {
    let mut agent = Agent::new(SYSTEM);
    agent.user(FIRST_WISH);
    explore(&mut agent);
    find_cause(&mut agent);
    fix_clock(&mut agent);
    agent.reply(
        "Fixed. `PortClock.offset_on` asked for the offset at midnight, and on the two days a year when the clocks \
         change that is not the offset at the time in question. `to_utc` and `to_local` now ask the zone for the very \
         moment (harbour/clock.py). The tide tables are untouched. All 11 tests pass.",
    );
    agent.user(SECOND_WISH);
    fix_export(&mut agent);
    agent.reply(
        "The CSV took the offset of the day of arrival for both columns, so a stay over the night of 25 October left \
         an hour early on paper. Both columns now go through `PortClock.to_local`; names and order are unchanged. The \
         new test is tests/test_export.py::test_leaves_in_winter_time.",
    );
    agent.user(THIRD_WISH);
    document(&mut agent);
    agent.messages
}

fn explore(agent: &mut Agent) {
    agent.with_text("I'll look at the project first.").list_files();
    agent.with_text("").bash("git log --oneline -12", output::LOG);
    agent.with_text("").read("harbour/schedule.py");
    agent.with_text("The request's local time goes through the clock. That is where an hour could get lost.");
    agent.read("harbour/clock.py");
    agent.with_text("Let me see who else uses these offsets.").grep("offset_on");
    agent.with_text("").grep("to_utc");
    agent.with_text("").grep("to_local");
    agent.with_text("I'd like to see the tests before I run them.").read("tests/test_schedule.py");
    agent
        .with_text("")
        .bash("python -m pytest -q", &pytest(&output::tests(&[Test::Spring, Test::Autumn, Test::Sheet])));
    agent.with_text("Three failures, all on days of change. Is the zone data itself right here?");
    agent.bash("python -c \"import zoneinfo,tzdata; print(tzdata.__version__)\"", "2026.1\n");
    agent.with_text("").bash("pip list --format=columns", output::PACKAGES);
}

fn find_cause(agent: &mut Agent) {
    agent.with_text("I'll reproduce it by hand, with the ship of the ticket.");
    agent.bash("python scripts/replay_ticket.py HB-2207", &output::ticket_log("05:10", 64));
    agent.with_text("").read("harbour/tides.py");
    agent.with_text(
        "The table works in UTC throughout and never looks at the wall clock; it stays out of this.",
    );
    agent.read("harbour/berths.py");
    agent.with_text("Berths don't know the time of day. Back to the clock.").read_lines(
        "harbour/clock.py",
        27,
        22,
    );
    for (day, before, after) in [
        ("2026-03-28", "+01:00", "+01:00"),
        ("2026-03-29", "+01:00", "+02:00"),
        ("2026-10-24", "+02:00", "+02:00"),
        ("2026-10-25", "+02:00", "+01:00"),
    ] {
        agent.with_text("");
        let command = format!("python scripts/offsets.py {day}");
        agent.bash(&command, &output::offsets(day, before, after));
    }
    agent.with_text("There it is: at midnight of 29 March it is still +01:00, at 04:10 it is +02:00. `offset_on` knows days only.");
    agent.bash("python scripts/replay_ticket.py HB-2207 --trace", &output::ticket_log("05:10", 120));
    agent.with_text("").bash("git log -p --follow -n 3 -- harbour/clock.py", output::HISTORY);
}

fn fix_clock(agent: &mut Agent) {
    agent.with_text(
        "The offset must be that of the moment, not of the day. First try: give `offset_on` a datetime.",
    );
    agent.edit(
        "harbour/clock.py",
        "        return (local - self.offset_on(local.date())).replace(tzinfo=UTC)",
        "        return (local - self.offset_at(local)).replace(tzinfo=UTC)",
    );
    agent.with_text("").bash("python -m pytest -q tests/test_schedule.py", output::NO_ATTRIBUTE);
    agent.with_text("Of course, it isn't there yet.").read_lines("harbour/clock.py", 20, 30);
    agent.with_text("Simpler: let the zone do all of it.").edit(
        "harbour/clock.py",
        "        return (local - self.offset_at(local)).replace(tzinfo=UTC)",
        "        return local.replace(tzinfo=self.zone).astimezone(UTC)",
    );
    let remaining = [Test::Sheet];
    agent.with_text("").bash("python -m pytest -q", &pytest(&output::tests(&remaining)));
    agent.with_text(
        "`to_utc` is right now. The sheet still isn't: `to_local` takes the offset of the UTC day.",
    );
    agent.edit(
        "harbour/clock.py",
        "        naive = moment.astimezone(UTC).replace(tzinfo=None)\n        return naive + self.offset_on(naive.date())",
        "        return moment.astimezone(self.zone).replace(tzinfo=None)",
    );
    agent.with_text("").bash("python -m pytest -q", &pytest(&output::tests(&[])));
    agent.with_text("").bash("python scripts/replay_ticket.py HB-2207", &output::ticket_log("04:10", 64));
    agent
        .with_text("Wall-clock times that happen twice deserve a look: Python takes the first one (fold=0).");
    agent.bash(
        "python scripts/offsets.py 2026-10-25 --both",
        &output::offsets("2026-10-25", "+02:00", "+01:00"),
    );
    agent.with_text("").read("harbour/clock.py");
    agent.with_text("").bash("ruff check harbour tests", "All checks passed!\n");
    agent.with_text("").bash("mypy harbour", "Success: no issues found in 6 source files\n");
    agent.with_text("").diff();
}

fn fix_export(agent: &mut Agent) {
    agent.with_text("").read("harbour/export.py");
    agent.with_text("").grep("offset");
    agent.with_text("Arrival and departure share one offset. I'll write the test first.");
    agent.bash(&format!("cat > tests/test_export.py <<'EOF'\n{}EOF", output::EXPORT_TEST), "");
    agent.set_file("tests/test_export.py", output::EXPORT_TEST);
    agent.with_text("").bash("python -m pytest -q tests/test_export.py", output::EXPORT_FAILS);
    agent.with_text("").edit(
        "harbour/export.py",
        "        offset = clock.offset_on(stay.arrives.date())\n",
        "",
    );
    for column in ["arrives", "leaves"] {
        agent.with_text("").edit(
            "harbour/export.py",
            &format!("f\"{{stay.{column} + offset:%Y-%m-%d %H:%M}}\""),
            &format!("f\"{{clock.to_local(stay.{column}):%Y-%m-%d %H:%M}}\""),
        );
    }
    agent.with_text("").bash("python -m pytest -q tests/test_export.py", output::EXPORT_PASSES);
    agent.with_text("").bash("python -m pytest -q", &pytest(&output::tests(&[])));
    agent.with_text("Now nothing should use `offset_on` any more.").grep("offset_on");
    agent
        .with_text("Only its definition is left. Is it part of what we promise?")
        .bash("grep -rn offset_on docs README.md", "");
    agent.with_text("It isn't documented, so it goes.").edit(
        "harbour/clock.py",
        "    def offset_on(self, day: date) -> timedelta:\n        \"\"\"How far the port's clock is ahead of UTC on a day.\"\"\"\n        midnight = datetime.combine(day, time(0, 0), tzinfo=self.zone)\n        return midnight.utcoffset() or timedelta(0)\n\n",
        "",
    );
    agent.with_text("").bash("ruff check harbour tests", output::UNUSED_IMPORT);
    agent.with_text("").edit(
        "harbour/clock.py",
        "from datetime import date, datetime, time, timedelta, timezone",
        "from datetime import date, datetime, timedelta, timezone",
    );
    agent.with_text("").bash("ruff check harbour tests", "All checks passed!\n");
    agent.with_text("").bash("python -m pytest -q", &pytest(&output::tests(&[])));
    agent.with_text("").bash("python scripts/export_day.py 2026-10-24 --csv", &output::csv(48));
    agent.with_text("").diff();
}

fn document(agent: &mut Agent) {
    agent.with_text("").bash("head -20 CHANGELOG.md", output::CHANGELOG);
    agent.with_text("").bash("ls .venvs && tox --listenvs", "py310\npy311\npy312\n\npy310\npy311\npy312\n");
    for version in ["3.10.14", "3.11.9", "3.12.4"] {
        let short: String = version.split('.').take(2).collect();
        agent.with_text("").bash(&format!("tox -e py{short}"), &output::tox(version));
    }
    agent.with_text("").bash(
        "sed -i '/^## Unreleased/r /tmp/entry.md' CHANGELOG.md && head -12 CHANGELOG.md",
        output::CHANGED,
    );
    agent.with_text("").bash("git status --short", output::STATUS);
    agent.reply(
        "CHANGELOG.md has an entry for HB-2207 under Unreleased. The tests pass on Python 3.10.14, 3.11.9 and 3.12.4.",
    );
}
