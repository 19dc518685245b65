//! All routes.

use super::find::{recall, search};
use super::openapi::describe;
use super::route::{Answer, Kind, Method, Parameter, Place, Route};
use super::sessions::{folds, fork, list, messages, one};

const SESSION: Parameter =
    path("session", "Its id, the beginning of that, its title, or its number in the list");

/// All routes, in the order in which they are described.
pub(crate) const ROUTES: [Route; 8] = [
    Route {
        method: Method::Get,
        path: "/sessions",
        name: "listSessions",
        words: "Sessions, the last written to first",
        parameters: &[
            number("limit", "At most so many, from 1 to 1,000; 50 if nothing is said"),
            number("offset", "After so many"),
            query("source", "Only of this source"),
        ],
        answer: Answer::List("sessions", "Session"),
        run: list,
    },
    Route {
        method: Method::Get,
        path: "/sessions/{session}",
        name: "getSession",
        words: "How a session stands: tokens against its window, folds, pins",
        parameters: &[SESSION],
        answer: Answer::Shape("Standing"),
        run: one,
    },
    Route {
        method: Method::Get,
        path: "/sessions/{session}/messages",
        name: "getMessages",
        words: "Messages as they were said, each the JSON that its client sent",
        parameters: &[
            SESSION,
            number("from", "The first message, counted from 0"),
            number("limit", "At most so many, from 1 to 1,000; 100 if nothing is said"),
        ],
        answer: Answer::List("messages", "Message"),
        run: messages,
    },
    Route {
        method: Method::Get,
        path: "/sessions/{session}/folds",
        name: "getFolds",
        words: "Every fold that was made, with the handles that it gave",
        parameters: &[SESSION],
        answer: Answer::List("folds", "Fold"),
        run: folds,
    },
    Route {
        method: Method::Post,
        path: "/sessions/{session}/fork",
        name: "forkSession",
        words: "Makes a session that goes its own way after some messages of this one",
        parameters: &[
            SESSION,
            Parameter {
                name: "at",
                place: Place::Body,
                kind: Kind::Number,
                words: "After so many messages; all if nothing is said",
            },
            Parameter { name: "title", place: Place::Body, kind: Kind::Text, words: "What to call it" },
        ],
        answer: Answer::Shape("Session"),
        run: fork,
    },
    Route {
        method: Method::Get,
        path: "/search",
        name: "search",
        words: "What was said: by words, around a message, in a session, or lately; the JSON of `fanfold search --json`",
        parameters: &[
            query("query", "Words to look for"),
            query("session_id", "A session"),
            number("around_message_id", "The id of a message of it"),
            number("window", "So many messages on either side, from 1 to 20"),
            number("limit", "At most so many results, from 1 to 10"),
            number("offset", "Results to skip"),
            query("sort", "newest or oldest first; the best if nothing is said"),
            query("role_filter", "Roles, by commas: user, assistant, tool, system, other"),
            query("source_filter", "Sources, by commas"),
            query("since", "Said on this day or later: 2026-11-15"),
            query("before", "Said before this day"),
            number("max_chars", "The longest text that is shown whole"),
        ],
        answer: Answer::Shape("Found"),
        run: search,
    },
    Route {
        method: Method::Get,
        path: "/recall/{handle}",
        name: "recall",
        words: "The original behind a handle, byte for byte",
        parameters: &[
            path("handle", "The digits in brackets where something was folded"),
            query("session", "The session; if none is named, the last written to that has the handle"),
            query("lines", "Only these lines, counted from 1: 40, 1-40, 40-"),
            query("search", "Only lines with this text, in any case"),
            number("around", "How many lines around each found one"),
        ],
        answer: Answer::Text,
        run: recall,
    },
    Route {
        method: Method::Get,
        path: "/openapi.json",
        name: "describe",
        words: "This description",
        parameters: &[],
        answer: Answer::Shape("Description"),
        run: |_, _| Ok(describe()),
    },
];

const fn path(name: &'static str, words: &'static str) -> Parameter {
    Parameter { name, place: Place::Path, kind: Kind::Text, words }
}

const fn query(name: &'static str, words: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, kind: Kind::Text, words }
}

const fn number(name: &'static str, words: &'static str) -> Parameter {
    Parameter { name, place: Place::Query, kind: Kind::Number, words }
}
