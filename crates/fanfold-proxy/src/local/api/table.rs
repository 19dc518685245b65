//! All routes.

use super::find::{recall, search};
use super::openapi::describe;
use super::route::{Method, Parameter, ParameterLocation, ParameterType, ResponseShape, Route};
use super::sessions::{folds, fork, list, messages, one};

const SESSION: Parameter = path("session", "Its id, a prefix of that, its title, or its number in the list");

/// All routes, in the order of the description.
pub(crate) const ROUTES: [Route; 8] = [
    Route {
        method: Method::Get,
        path: "/sessions",
        name: "listSessions",
        description: "Sessions, newest first",
        parameters: &[
            number("limit", "Maximum number, from 1 to 1,000; 50 by default"),
            number("offset", "Number of sessions to skip"),
            query("source", "Only sessions of this source"),
        ],
        answer: ResponseShape::List("sessions", "Session"),
        run: list,
    },
    Route {
        method: Method::Get,
        path: "/sessions/{session}",
        name: "getSession",
        description: "The state of a session: tokens, window, folds, pins",
        parameters: &[SESSION],
        answer: ResponseShape::Shape("Standing"),
        run: one,
    },
    Route {
        method: Method::Get,
        path: "/sessions/{session}/messages",
        name: "getMessages",
        description: "Messages, each with the JSON that the client sent",
        parameters: &[
            SESSION,
            number("from", "The first message, counted from 0"),
            number("limit", "Maximum number, from 1 to 1,000; 100 by default"),
        ],
        answer: ResponseShape::List("messages", "Message"),
        run: messages,
    },
    Route {
        method: Method::Get,
        path: "/sessions/{session}/folds",
        name: "getFolds",
        description: "All folds with their handles",
        parameters: &[SESSION],
        answer: ResponseShape::List("folds", "Fold"),
        run: folds,
    },
    Route {
        method: Method::Post,
        path: "/sessions/{session}/fork",
        name: "forkSession",
        description: "Creates a session that begins with the messages of this one",
        parameters: &[
            SESSION,
            Parameter {
                name: "at",
                location: ParameterLocation::Body,
                kind: ParameterType::Number,
                description: "Number of messages to take over; all by default",
            },
            Parameter {
                name: "title",
                location: ParameterLocation::Body,
                kind: ParameterType::Text,
                description: "Title of the new session",
            },
        ],
        answer: ResponseShape::Shape("Session"),
        run: fork,
    },
    Route {
        method: Method::Get,
        path: "/search",
        name: "search",
        description: "Messages by words, around a message, in a session, or the newest; the JSON of `fanfold search --json`",
        parameters: &[
            query("query", "Words to search for"),
            query("session_id", "A session"),
            number("around_message_id", "The id of a message in the session"),
            number("window", "Messages on either side, from 1 to 20"),
            number("limit", "Maximum number of results, from 1 to 10"),
            number("offset", "Results to skip"),
            query("sort", "newest or oldest first; best first by default"),
            query("role_filter", "Roles, separated by commas: user, assistant, tool, system, other"),
            query("source_filter", "Sources, separated by commas"),
            query("since", "On this day or later: 2026-11-15"),
            query("before", "Before this day"),
            number("max_chars", "Longer texts are shortened"),
        ],
        answer: ResponseShape::Shape("Found"),
        run: search,
    },
    Route {
        method: Method::Get,
        path: "/recall/{handle}",
        name: "recall",
        description: "The original behind a handle, byte for byte",
        parameters: &[
            path("handle", "The handle of a step or a part of it: 12, 7-11, 12.2"),
            query("session", "The session; by default the newest one that has the handle"),
            query("lines", "Only these lines, counted from 1: 40, 1-40, 40-"),
            query("search", "Only lines with this text, in any case"),
            number("around", "Lines of context around each match"),
        ],
        answer: ResponseShape::Text,
        run: recall,
    },
    Route {
        method: Method::Get,
        path: "/openapi.json",
        name: "describe",
        description: "This description",
        parameters: &[],
        answer: ResponseShape::Shape("Description"),
        run: |_, _| Ok(describe()),
    },
];

const fn path(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, location: ParameterLocation::Path, kind: ParameterType::Text, description }
}

const fn query(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, location: ParameterLocation::Query, kind: ParameterType::Text, description }
}

const fn number(name: &'static str, description: &'static str) -> Parameter {
    Parameter { name, location: ParameterLocation::Query, kind: ParameterType::Number, description }
}
