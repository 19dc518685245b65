//! Sessions: a pointer to the newest message, the relation to other sessions, and events.

use std::fmt;

use crate::model::NodeId;

/// A time in milliseconds since 1970. Callers pass it in; stores do not read a clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Millis(pub i64);

impl fmt::Display for Millis {
    /// Prints the time in UTC: `2026-11-15 14:09:24`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let seconds = self.0.div_euclid(1000);
        let (days, rest) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
        let (year, month, day) = calendar_date(days);
        write!(f, "{year:04}-{month:02}-{day:02} {:02}:{:02}:{:02}", rest / 3600, rest / 60 % 60, rest % 60)
    }
}

impl Millis {
    /// Parses a date such as `2026-11-15` to its first millisecond in UTC; `None` if it is invalid.
    pub fn from_date(text: &str) -> Option<Millis> {
        let mut parts = text.trim().splitn(3, '-').map(|part| part.parse::<i64>().ok());
        let mut next = || parts.next().flatten();
        let (year, month, day) = (next()?, next()?, next()?);
        if !(1970..=9999).contains(&year) || !(1..=12).contains(&month) || !(1..=31).contains(&day) {
            return None;
        }
        // Count years from March, so that the leap day is the last day of a year.
        let (years, months) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
        let days =
            years * 365 + years / 4 - years / 100 + years / 400 + (months * 153 + 2) / 5 + day - 1 - 719_468;
        Some(Millis(days * 86_400_000))
    }
}

/// Converts days since 1970-01-01 to a Gregorian date (400 years have 146,097 days).
fn calendar_date(days: i64) -> (i64, i64, i64) {
    // Count years from March, so that the leap day is the last day of a year.
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

/// The id of a session.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SessionId(pub String);

impl fmt::Display for SessionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The relation of a session to its parent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relation {
    /// It continues the task of its parent, which has ended. Both belong to one lineage.
    Rotation,
    /// It branches off its parent at a message and starts a new lineage.
    Fork,
    /// It works for its parent and starts a new lineage.
    Subagent,
}

impl Relation {
    /// Returns the stored name.
    pub fn name(self) -> &'static str {
        match self {
            Relation::Rotation => "rotation",
            Relation::Fork => "fork",
            Relation::Subagent => "subagent",
        }
    }

    /// Returns the relation with a stored name.
    pub fn from_name(name: &str) -> Option<Relation> {
        [Relation::Rotation, Relation::Fork, Relation::Subagent]
            .into_iter()
            .find(|relation| relation.name() == name)
    }
}

/// Why a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EndReason {
    /// It was rotated: a child session continues it.
    Compression,
    /// The user continued in a fork.
    Branched,
    /// The subagent finished.
    Subagent,
    /// The user started a new conversation.
    Reset,
    /// Any other reason.
    Other(String),
}

impl EndReason {
    /// Returns the stored name.
    pub fn name(&self) -> &str {
        match self {
            EndReason::Compression => "compression",
            EndReason::Branched => "branched",
            EndReason::Subagent => "subagent",
            EndReason::Reset => "reset",
            EndReason::Other(reason) => reason,
        }
    }

    /// Returns the reason with a stored name.
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

/// A session without its messages and events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    /// The id, which never changes.
    pub id: SessionId,
    /// The program that created it: `cli`, `proxy`, `claude-code`, `subagent`.
    pub source: String,
    /// The wire format of its messages.
    pub format: String,
    /// The model that it was last sent to.
    pub model: Option<String>,
    /// The title, unique in the store.
    pub title: Option<String>,
    /// The goal of the task; the engine moves it to the session that continues the task.
    pub goal: Option<String>,
    /// The parent session and the relation to it.
    pub parent: Option<(SessionId, Relation)>,
    /// The first session of the lineage: the session itself, unless it is a rotation.
    pub root: SessionId,
    /// The newest message.
    pub tip: Option<NodeId>,
    /// The number of messages up to the tip.
    pub n_messages: u32,
    /// The number of events.
    pub n_events: u32,
    /// When it was created.
    pub started_at: Millis,
    /// When it was last written to.
    pub updated_at: Millis,
    /// When and why it ended. A second end does not replace the first.
    pub ended: Option<(Millis, EndReason)>,
}

/// A session to create.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSession {
    /// Its id.
    pub id: SessionId,
    /// The program that creates it: `cli`, `proxy`, `claude-code`, `subagent`.
    pub source: String,
    /// The wire format of its messages.
    pub format: String,
    /// The parent session and the relation to it.
    pub parent: Option<(SessionId, Relation)>,
    /// The message after which it continues, usually one of its parent; `None` for an empty session.
    pub tip: Option<NodeId>,
}

impl NewSession {
    /// Returns the row of the created session. A rotation inherits the root of its parent.
    pub fn to_row(&self, parents_root: Option<&SessionId>, n_messages: u32, at: Millis) -> SessionRow {
        let is_rotation = matches!(self.parent, Some((_, Relation::Rotation)));
        SessionRow {
            id: self.id.clone(),
            source: self.source.clone(),
            format: self.format.clone(),
            model: None,
            title: None,
            goal: None,
            parent: self.parent.clone(),
            root: parents_root.filter(|_| is_rotation).unwrap_or(&self.id).clone(),
            tip: self.tip,
            n_messages,
            n_events: 0,
            started_at: at,
            updated_at: at,
            ended: None,
        }
    }
}

/// A change to one attribute of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionUpdate {
    /// Sets or removes the title. Titles are unique in a store.
    Title(Option<String>),
    /// Sets or removes the goal.
    Goal(Option<String>),
    /// Sets the model that the session is sent to.
    Model(String),
    /// Ends the session, unless it has already ended.
    End(EndReason),
    /// Removes the end.
    Reopen,
}

impl SessionRow {
    /// Applies a change that is made at a time.
    pub fn apply(&mut self, change: &SessionUpdate, at: Millis) {
        match change {
            SessionUpdate::Title(title) => self.title.clone_from(title),
            SessionUpdate::Goal(goal) => self.goal.clone_from(goal),
            SessionUpdate::Model(model) => self.model = Some(model.clone()),
            SessionUpdate::End(reason) => {
                self.ended.get_or_insert((at, reason.clone()));
            }
            SessionUpdate::Reopen => self.ended = None,
        }
    }
}

/// A recorded event of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventRow {
    /// The sequence number among the events of the session, from 0.
    pub seq: u32,
    /// When it was recorded.
    pub at: Millis,
    /// The tip of the session when the event was recorded.
    pub tip: Option<NodeId>,
    /// The kind: `fold`, `request`, `pinned`, `checkpoint`, `rewound`. The engine defines the meaning.
    pub kind: String,
    /// The data of the event as JSON.
    pub body: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_print_as_utc_dates() {
        let written = |at| Millis(at).to_string();
        assert_eq!(written(0), "1970-01-01 00:00:00");
        assert_eq!(written(951_827_696_000), "2000-02-29 12:34:56");
        assert_eq!(written(1_794_751_764_999), "2026-11-15 14:09:24");
        assert_eq!(written(-1), "1969-12-31 23:59:59");
    }
    #[test]
    fn dates_parse_to_the_start_of_the_day() {
        let begins = |day| Millis::from_date(day).map(|at| at.0 / 1000);
        assert_eq!(begins("1970-01-01"), Some(0));
        assert_eq!(begins("2000-02-29"), Some(951_782_400));
        assert_eq!(begins("2026-11-15"), Some(1_794_700_800));
        for wrong in ["", "2026", "2026-13-01", "yesterday", "2026-11-15-1"] {
            assert_eq!(begins(wrong), None, "{wrong}");
        }
    }
}
