//! A reply that is rendered once and sent to every request, for measuring proxies.

use std::time::Duration;

use super::{ScriptedReply, http, reply};
use crate::generators::bodies::BodyFormat;

/// The prepared responses of each API.
#[derive(Debug, Clone)]
pub struct ConstantReply {
    whole: Vec<(BodyFormat, Vec<u8>)>,
    streams: Vec<(BodyFormat, Vec<Vec<u8>>)>,
    /// The pause between two events of a stream.
    pub(super) pause: Duration,
}

const KINDS: [BodyFormat; 3] = [BodyFormat::Chat, BodyFormat::Responses, BodyFormat::Anthropic];

impl ConstantReply {
    /// Prepares a reply whose text is one phrase repeated `n_pieces` times.
    pub fn new(n_pieces: usize, pause: Duration) -> ConstantReply {
        let text = "a word or two of it. ".repeat(n_pieces.max(1));
        let reply = ScriptedReply { text, ..ScriptedReply::default() };
        let body = serde_json::json!({ "model": "quick" });
        let mut constant = ConstantReply { whole: Vec::new(), streams: Vec::new(), pause };
        for kind in KINDS {
            let answer = reply::whole(kind, &reply, &body, 0, 100);
            constant.whole.push((kind, http::whole(200, &[], answer.to_string().as_bytes())));
            let events = reply::events(kind, &reply, &body, 0, 100);
            let mut pieces: Vec<Vec<u8>> = events.iter().map(|event| http::chunk(event.as_bytes())).collect();
            // Like most servers, send the head together with the first event.
            let mut first = http::head(200, &reply::STREAM);
            first.append(&mut pieces[0]);
            pieces[0] = first;
            pieces.push(http::chunk(b""));
            constant.streams.push((kind, pieces));
        }
        constant
    }

    pub(super) fn whole(&self, kind: BodyFormat) -> &[u8] {
        self.whole.iter().find(|(known, _)| *known == kind).map_or(&[], |(_, answer)| answer)
    }

    pub(super) fn stream(&self, kind: BodyFormat) -> &[Vec<u8>] {
        self.streams.iter().find(|(known, _)| *known == kind).map_or(&[], |(_, pieces)| pieces)
    }
}
