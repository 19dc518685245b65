//! Connections to a memory provider: a local MCP program, an MCP server, or a server with plain HTTP routes.

pub(crate) mod config; //         addresses, tools, limits
pub(crate) mod error; //          what can go wrong
pub(crate) mod tool_names; //     rejects misleading tool names
pub(crate) mod tool_selection; // selects the tools to search and write with
mod search_terms; //              keywords of a question
mod search_results; //            search results as lines
mod limited_http; //              HTTP with limited answers
mod child_program; //             a program run as a child process
mod http; //                      plain HTTP routes
mod mcp; //                       MCP
pub(crate) mod connection; //     either of them
