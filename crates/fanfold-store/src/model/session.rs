//! Who points at which message, where they come from, and what happened to them.

use std::fmt;

use crate::model::NodeId;

/// A moment, in milliseconds since 1970. It comes in as a value: no store looks at a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub i64);

impl fmt::Display for Millis {
    /// As people write it: `2026-11-15 14:09:24`, in UTC.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1000);
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = calendar_date(days);
        write!(f, "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
    }
}

impl Millis {
    /// The moment at which a day begins, in UTC: `2026-11-15`. None if it is no day.
    pub fn from_date(text: &str) -> Option<Millis> {
        let mut parts = text.trim().splitn(3, '-').map(|part| part.parse::<i64>().ok());
        let mut next = || parts.next().flatten();
        let (year, month, day) = (next()?, next()?, next()?);
        if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        // Years begin in March here, so that the leap day is a year's last.
        let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let days =
            years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1 - 719_468;
        Some(Millis(days * 86_400_000))
    }
}

/// The date so many days after 1970-01-01, by the calendar of 400 years with 146,097 days.
fn calendar_date(days: i64) -> (i64, i64, i64) {
    // Years begin in March here, so that the leap day is a year's last.
    let days = days + 719_468;
    let era = days.div_euclid(146_097);
    let day_of_era = days.rem_euclid(146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i64::from(month <= 2), month, day)
}

/// Names a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub String);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// How a session came from another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It goes on with the same task: the other one ended for it. Both are one lineage.
    Rotation,
    /// It goes its own way from a message on. It is a lineage of its own.
    Fork,
    /// It works for the other one. It is a lineage of its own.
    Subagent,
}

impl Relation {
    /// Its name in a store.
    pub fn name(self) -> &'static str {
        match self {
            Relation::Rotation => "rotation",
            Relation::Fork => "fork",
            Relation::Subagent => "subagent",
        }
    }

    /// The relation of that name.
    pub fn from_name(name: &str) -> Option<Relation> {
        [Relation::Rotation, Relation::Fork, Relation::Subagent]
            .into_iter()
            .find(|relation| relation.name() == name)
    }
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// It was rotated: a child goes on.
    Compression,
    /// The user went on in a fork.
    Branched,
    /// It worked for another one and is done.
    Subagent,
    /// The user began anew.
    Reset,
    /// Something else.
    Other(String),
}

impl EndReason {
    /// Its name in a store.
    pub fn name(&self) -> &str {
        match self {
            EndReason::Compression => "compression",
            EndReason::Branched => "branched",
            EndReason::Subagent => "subagent",
            EndReason::Reset => "reset",
            EndReason::Other(reason) => reason,
        }
    }

    /// The reason of that name.
    pub fn from_name(name: &str) -> EndReason {
        match name {
            "compression" => EndReason::Compression,
            "branched" => EndReason::Branched,
            "subagent" => EndReason::Subagent,
            "reset" => EndReason::Reset,
            other => EndReason::Other(other.to_owned()),
        }
    }
}

/// What is known of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// Its id, for life.
    pub id: SessionId,
    /// Who made it: `cli`, `proxy`, `claude-code`, `subagent`.
    pub source: String,
    /// The format of its messages.
    pub format: String,
    /// The model it was last sent to.
    pub model: Option<String>,
    /// What people call it.
    pub title: Option<String>,
    /// What it is for; travels along the lineage.
    pub goal: Option<String>,
    /// The session it came from, and how.
    pub parent: Option<(SessionId, Relation)>,
    /// The first session of its lineage: itself, unless it came by rotation.
    pub root: SessionId,
    /// Its newest message.
    pub tip: Option<NodeId>,
    /// How many messages lead to the tip.
    pub n_messages: u32,
    /// How many events it has.
    pub n_events: u32,
    /// When it was made.
    pub started_at: Millis,
    /// When something was last written to it.
    pub updated_at: Millis,
    /// When and why it ended. The first reason stays.
    pub ended: Option<(Millis, EndReason)>,
}

/// Something that happened to a session, in order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// Its position among the events of its session, from 0.
    pub seq: u32,
    /// When.
    pub at: Millis,
    /// The tip of the session at that moment.
    pub tip: Option<NodeId>,
    /// What kind: `fold`, `request`, `pinned`, `checkpoint`, `rewound`. The engine gives them their meaning.
    pub kind: String,
    /// The rest, as JSON.
    pub body: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_written_by_the_calendar() {
        let written = |at| Millis(at).to_string();
        assert_eq!(written(0), "1970-01-01 00:00:00");
        assert_eq!(written(951_827_696_000), "2000-02-29 12:34:56");
        assert_eq!(written(1_794_751_764_999), "2026-11-15 14:09:24");
        assert_eq!(written(-1), "1969-12-31 23:59:59");
    }
    #[test]
    fn days_begin_where_the_calendar_says() {
        let begins = |day| Millis::from_date(day).map(|at| at.0 / 1000);
        assert_eq!(begins("1970-01-01"), Some(0));
        assert_eq!(begins("2000-02-29"), Some(951_782_400));
        assert_eq!(begins("2026-11-15"), Some(1_794_700_800));
        for wrong in ["", "2026", "2026-13-01", "yesterday", "2026-11-15-1"] {
            assert_eq!(begins(wrong), None, "{wrong}");
        }
    }
}
