//! The same answer to everybody, made once: for measuring what stands in front of it.

use std::time::Duration;

use super::{Said, http, reply};
use crate::bodies::Kind;

/// What everybody is answered.
#[derive(Debug, Clone)]
pub struct Quick {
    whole: Vec<(Kind, Vec<u8>)>,
    streams: Vec<(Kind, Vec<Vec<u8>>)>,
    /// So long between two events of a stream.
    pub(super) pause: Duration,
}

const KINDS: [Kind; 3] = [Kind::Chat, Kind::Responses, Kind::Anthropic];

impl Quick {
    /// An answer of so many pieces of text.
    pub fn new(n_pieces: usize, pause: Duration) -> Quick {
        let text = "a word or two of it. ".repeat(n_pieces.max(1));
        let said = Said { text, ..Said::default() };
        let body = serde_json::json!({ "model": "quick" });
        let mut quick = Quick { whole: Vec::new(), streams: Vec::new(), pause };
        for kind in KINDS {
            let answer = reply::whole(kind, &said, &body, 0, 100);
            quick.whole.push((kind, http::whole(200, &[], answer.to_string().as_bytes())));
            let events = reply::events(kind, &said, &body, 0, 100);
            let mut pieces: Vec<Vec<u8>> = events.iter().map(|event| http::chunk(event.as_bytes())).collect();
            // The head leaves with the first event, as most servers have it.
            let mut first = http::head(200, &reply::STREAM);
            first.append(&mut pieces[0]);
            pieces[0] = first;
            pieces.push(http::chunk(b""));
            quick.streams.push((kind, pieces));
        }
        quick
    }

    pub(super) fn whole(&self, kind: Kind) -> &[u8] {
        self.whole.iter().find(|(known, _)| *known == kind).map_or(&[], |(_, answer)| answer)
    }

    pub(super) fn stream(&self, kind: Kind) -> &[Vec<u8>] {
        self.streams.iter().find(|(known, _)| *known == kind).map_or(&[], |(_, pieces)| pieces)
    }
}
